//! Writable storage of one sandbox: a sparse file with a file system of exactly the sold size.
//!
//! The writable layer of gVisor is a file in that file system, so the guest meets ENOSPC at the plan's limit and the
//! host's disk never pays more. (Newer runsc has a size of its own for this; the packaged one has not.)

mod blank;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use nix::mount::{MntFlags, umount2};

use crate::error::SandboxError;
use crate::process::Run;

const STEP_MAX: Duration = Duration::from_secs(30);

/// How a storage is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    /// As fast as the host can; for what is short and awaited.
    Fast,
    /// At a bounded speed in the long run, once somebody has begun that ([`wait_for_disk`]).
    Paced,
}

/// Makes a sparse file with a file system of `mib` MiB and mounts it. About 15 ms, the first of each size 30.
///
/// # Errors
/// What `mkfs.ext4` or `mount` said.
pub fn mount_sized(image: &Path, at: &Path, mib: u32, writes: Writes) -> Result<(), SandboxError> {
    fs::create_dir_all(at).map_err(|e| SandboxError::io("make", at, e))?;
    // A left-over of a sandbox that was not taken away in order: never used again.
    let _ = fs::remove_file(image);
    blank::put(image, mib)?;
    // `discard` gives deleted blocks back to the host's disk.
    let flags = ["-o", "loop,nosuid,nodev,noexec,discard,noatime"].map(str::to_owned);
    run("mount", flags.into_iter().chain([text(image), text(at)]))?;
    if let Some(device) = own_device(at) {
        write_straight(device, writes);
    }
    Ok(())
}

/// Percents of what the kernel lets all of the host leave unwritten, the most first, that one storage may use before the
/// kernel begins to write: it is thrown away at its end, so most of it need never be written.
const UNWRITTEN_PERCENT: &[&str] = &["20", "5", "1"];
/// What a paced one may leave unwritten, in bytes: so much goes at the speed of memory.
const UNWRITTEN_BYTES: &str = "134217728";
/// The same in percents, for kernels that know no bytes (before 6.2).
const UNWRITTEN_PERCENT_OF_PACED: &str = "4";

/// Spares the host most of the work of writing it out. The kernel's writers run on whichever core is free, which is a
/// neighbour's. Without any of this it works as well.
fn write_straight(device: u64, writes: Writes) {
    // The sum of all shares is limited: later sandboxes get less, or what the kernel gives by itself.
    let _one_of_them = match writes {
        Writes::Fast => UNWRITTEN_PERCENT
            .iter()
            .any(|percent| tell(device, "min_ratio", percent)),
        Writes::Paced => {
            tell(device, "min_bytes", UNWRITTEN_BYTES)
                || tell(device, "min_ratio", UNWRITTEN_PERCENT_OF_PACED)
        }
    };
    // Past the cache of the file that holds the file system, which would be copied once more. Not every disk can. Nobody
    // waits for it: what is written until then goes through the cache, and a device that serves another sandbox by then
    // wants the same.
    let name = format!("/dev/loop{}", rustix::fs::minor(device));
    let words = ["--direct-io=on".to_owned(), name];
    let told = std::thread::Builder::new()
        .name("weir-storage".into())
        .spawn(move || {
            if let Err(error) = run("losetup", words.into_iter()) {
                tracing::debug!(%error, "storage is written through the cache");
            }
        });
    if let Err(error) = told {
        tracing::debug!(%error, "storage is written through the cache");
    }
}

/// Lets whoever writes to a paced storage wait for its device once [`UNWRITTEN_BYTES`] are not on it yet, however much room for
/// unwritten data the host has left. How fast the device is, somebody else bounds.
///
/// Who writes and deletes a gigabyte again and again would take the memory and the caches that all cores share otherwise, and
/// neighbours wait for those.
pub(crate) fn wait_for_disk(device: u64) {
    let most = tell(device, "max_bytes", UNWRITTEN_BYTES)
        || tell(device, "max_ratio", UNWRITTEN_PERCENT_OF_PACED);
    if !(most && tell(device, "strict_limit", "1")) {
        tracing::debug!("storage is written at the speed of memory: this kernel has no such bound");
    }
}

/// The device serves another file system next.
fn forget(device: u64) {
    for (name, usual) in [
        ("strict_limit", "0"),
        ("min_ratio", "0"),
        ("max_ratio", "100"),
    ] {
        tell(device, name, usual);
    }
}

/// Sets how much of a device's data may be unwritten. False if the kernel refuses it.
fn tell(device: u64, name: &str, value: &str) -> bool {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    fs::write(format!("/sys/class/bdi/{major}:{minor}/{name}"), value).is_ok()
}

/// The device of a file system that is mounted here, and not above.
pub(crate) fn own_device(at: &Path) -> Option<u64> {
    let device = |path: &Path| fs::metadata(path).map(|m| m.dev()).ok();
    device(at).filter(|own| Some(*own) != at.parent().and_then(device))
}

/// Unmounts and removes. Fine if it is not there.
pub fn unmount(image: &Path, at: &Path) {
    if let Some(device) = own_device(at) {
        forget(device);
    }
    let _ = umount2(at, MntFlags::MNT_DETACH);
    let _ = fs::remove_dir(at);
    let _ = fs::remove_file(image);
}

/// Bytes in use in a file system of its own, as `statfs` counts them; 0 while it is not mounted: what lies there then is
/// the host's disk.
pub(crate) fn used_bytes(at: &Path) -> u64 {
    if own_device(at).is_none() {
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
