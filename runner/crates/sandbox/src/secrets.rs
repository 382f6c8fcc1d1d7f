//! Secrets of one sandbox: a tmpfs of its own, filled by the host, read-only in the guest.

use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown};
use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::error::SandboxError;
use crate::spec::GUEST_UID;

/// One secret to mount. The bytes are borrowed: who unsealed them wipes them.
#[derive(Clone, Copy)]
pub struct SecretFile<'a> {
    /// Its name, one plain path component.
    pub name: &'a str,
    /// Its value.
    pub value: &'a [u8],
}

/// Room for the most and longest secrets (64 of 64 KiB), and some for the file system itself.
const SIZE: &str = "size=8m,nr_inodes=128,mode=0700";

/// Makes the tmpfs and fills it: folder 0500, files 0400, owned by the guest's user. Swap cannot take it: the host's
/// tmpfs is made with `noswap` where the kernel knows it (6.4 and newer).
pub(crate) fn mount_filled(at: &Path, files: &[SecretFile<'_>]) -> Result<(), SandboxError> {
    fs::create_dir_all(at).map_err(|e| SandboxError::io("make", at, e))?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let options = format!("{SIZE},noswap");
    mount(
        Some("weir-secrets"),
        at,
        Some("tmpfs"),
        flags,
        Some(options.as_str()),
    )
    .or_else(|_| mount(Some("weir-secrets"), at, Some("tmpfs"), flags, Some(SIZE)))
    .map_err(|e| SandboxError::io("mount", at, e))?;
    for file in files {
        write(&at.join(file.name), file.value).map_err(|e| SandboxError::io("write", at, e))?;
    }
    chown(at, Some(GUEST_UID), Some(GUEST_UID))
        .and_then(|()| fs::set_permissions(at, Permissions::from_mode(0o500)))
        .map_err(|e| SandboxError::io("set the owner of", at, e))
}

/// Takes the tmpfs away; its pages go back to the kernel. Fine if it is not there.
pub(crate) fn unmount(at: &Path) {
    let _ = umount2(at, MntFlags::MNT_DETACH);
    let _ = fs::remove_dir(at);
}

fn write(path: &Path, value: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o400)
        .open(path)?;
    file.write_all(value)?;
    chown(path, Some(GUEST_UID), Some(GUEST_UID))
}
