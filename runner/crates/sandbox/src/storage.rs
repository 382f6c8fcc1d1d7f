//! Writable storage of one sandbox: a sparse file with a file system of exactly the sold size.
//!
//! The writable layer of gVisor is a file in that file system, so the guest meets ENOSPC at the plan's limit and the
//! host's disk never pays more. (Newer runsc has a size of its own for this; the packaged one has not.)

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use nix::mount::{MntFlags, umount2};

use crate::error::SandboxError;
use crate::process::Run;

const STEP_MAX: Duration = Duration::from_secs(30);

/// Makes a sparse file with a file system of `mib` MiB and mounts it. About 20 ms.
///
/// # Errors
/// What `mkfs.ext4` or `mount` said.
pub fn mount_sized(image: &Path, at: &Path, mib: u32) -> Result<(), SandboxError> {
    fs::create_dir_all(at).map_err(|e| SandboxError::io("make", at, e))?;
    // A left-over of a sandbox that was not taken away in order: never used again.
    let _ = fs::remove_file(image);
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(image)
        .map_err(|e| SandboxError::io("make", image, e))?;
    file.set_len(u64::from(mib) * 1024 * 1024)
        .map_err(|e| SandboxError::io("size", image, e))?;
    drop(file);
    // No journal: nothing in it outlives the sandbox. An inode per 16 KiB: a build makes many files. nodiscard: it is sparse already.
    let options =
        "-q -F -m 0 -i 16384 -O ^has_journal,^resize_inode -E lazy_itable_init=1,nodiscard";
    run(
        "mkfs.ext4",
        options.split(' ').map(str::to_owned).chain([text(image)]),
    )?;
    // `discard` gives deleted blocks back to the host's disk.
    let flags = ["-o", "loop,nosuid,nodev,noexec,discard,noatime"].map(str::to_owned);
    run("mount", flags.into_iter().chain([text(image), text(at)]))
}

/// Unmounts and removes. Fine if it is not there.
pub fn unmount(image: &Path, at: &Path) {
    let _ = umount2(at, MntFlags::MNT_DETACH);
    let _ = fs::remove_dir(at);
    let _ = fs::remove_file(image);
}

/// Bytes in use in a file system of its own, as `statfs` counts them; 0 while it is not mounted: what lies there then is
/// the host's disk.
pub(crate) fn used_bytes(at: &Path) -> u64 {
    let device = |path: &Path| fs::metadata(path).map(|m| m.dev()).ok();
    let mounted = device(at).is_some() && device(at) != at.parent().and_then(device);
    if !mounted {
        return 0;
    }
    rustix::fs::statvfs(at).map_or(0, |s| s.f_blocks.saturating_sub(s.f_bfree) * s.f_frsize)
}

fn run(program: &str, args: impl Iterator<Item = String>) -> Result<(), SandboxError> {
    let args = args.collect();
    Run {
        program,
        args,
        input: "",
        wait_max: STEP_MAX,
    }
    .output()
    .map(|_| ())
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_folder_is_nobodys_storage() {
        let dir = tempfile::tempdir().expect("a folder");
        let at = dir.path().join("store");
        assert_eq!(used_bytes(&at), 0);
        fs::create_dir(&at).expect("made");
        assert_eq!(used_bytes(&at), 0, "the host's own disk was counted");
    }
}
