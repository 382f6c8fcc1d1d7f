//! Out of a build's sandbox.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::Path;

use anyhow::{Result, bail};

/// What a layer may hold.
const LAYER_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
const LAYER_FILES_MAX: u64 = 200_000;

/// Copies a hostile tree: nothing is followed, nothing but files, folders and links is taken, and there are bounds.
#[derive(Default)]
pub(super) struct Copy {
    /// Of all files so far.
    pub bytes: u64,
    files: u64,
}

impl Copy {
    pub fn folder(&mut self, from: &Path, to: &Path, depth: usize) -> Result<()> {
        if depth > 64 {
            bail!("a built layer is nested too deeply");
        }
        fs::DirBuilder::new().mode(0o755).create(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            let kind = entry.file_type()?;
            self.files += 1;
            if self.files > LAYER_FILES_MAX {
                bail!("a built layer has more than {LAYER_FILES_MAX} files");
            }
            if kind.is_dir() {
                self.folder(&from, &to, depth + 1)?;
            } else if kind.is_file() {
                self.file(&from, &to)?;
            } else if kind.is_symlink() {
                // Read by the guest only, in its own tree; nothing on the host follows it.
                symlink(fs::read_link(&from)?, &to)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, from: &Path, to: &Path) -> Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let nofollow = (nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_NONBLOCK).bits();
        let mut source = OpenOptions::new()
            .read(true)
            .custom_flags(nofollow)
            .open(from)?;
        let meta = source.metadata()?;
        self.bytes += meta.len();
        if self.bytes > LAYER_BYTES_MAX {
            bail!("a built layer is larger than {} MiB", LAYER_BYTES_MAX >> 20);
        }
        let mode = if meta.permissions().mode() & 0o111 == 0 {
            0o644
        } else {
            0o755
        };
        let mut target: File = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(to)?;
        io::copy(&mut source, &mut target)?;
        // Compiled Python names the time of its source; another time would make it worthless.
        target.set_modified(meta.modified()?)?;
        Ok(())
    }
}
