//! Out of a build's sandbox.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, fchown, lchown, symlink};
use std::path::Path;

use anyhow::{Result, bail};

use crate::room::Promise;

/// What a layer may hold.
pub(super) const LAYER_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
const LAYER_FILES_MAX: u64 = 200_000;

/// Copies a hostile tree: nothing is followed, nothing but files, folders and links is taken, and there are bounds.
#[derive(Default)]
pub(super) struct Copy {
    /// Of all files so far.
    pub bytes: u64,
    files: u64,
    /// Who gets the copies; the runner itself if nobody is named.
    owner: Option<u32>,
    /// What is there already stays.
    beside: bool,
    /// The room that was promised for it.
    promise: Option<Promise>,
}

impl Copy {
    /// Copies into room that was promised.
    pub fn within(promise: Promise) -> Self {
        Self {
            promise: Some(promise),
            ..Self::default()
        }
    }

    /// Copies for a user, into a folder that may have some already.
    pub fn owned_by(owner: u32) -> Self {
        Self {
            owner: Some(owner),
            beside: true,
            ..Self::default()
        }
    }
}

impl Copy {
    /// Nothing more is copied: the rest of the promised room is given back.
    pub fn no_more(&mut self) {
        if let Some(promise) = &mut self.promise {
            promise.no_more();
        }
    }

    pub fn folder(&mut self, from: &Path, to: &Path, depth: usize) -> Result<()> {
        if depth > 64 {
            bail!("a built layer is nested too deeply");
        }
        match fs::DirBuilder::new().mode(0o755).create(to) {
            Err(error) if self.is_fine(&error) => {}
            made => made?,
        }
        lchown(to, self.owner, self.owner)?;
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
                match symlink(fs::read_link(&from)?, &to) {
                    Err(error) if self.is_fine(&error) => continue,
                    made => made?,
                }
                lchown(&to, self.owner, self.owner)?;
            }
        }
        Ok(())
    }

    fn is_fine(&self, error: &io::Error) -> bool {
        self.beside && error.kind() == io::ErrorKind::AlreadyExists
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
        let target: io::Result<File> = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(to);
        let mut target = match target {
            Err(error) if self.is_fine(&error) => return Ok(()),
            target => target?,
        };
        fchown(&target, self.owner, self.owner)?;
        let copied = io::copy(&mut source, &mut target)?;
        if let Some(promise) = &mut self.promise {
            promise.wrote(copied);
        }
        // Compiled Python names the time of its source; another time would make it worthless.
        target.set_modified(meta.modified()?)?;
        Ok(())
    }
}
