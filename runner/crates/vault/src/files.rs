//! Whole files that change from old to new in one step.

use std::io;

use crate::disk::Disk;
use crate::error::VaultError;

/// The longest file: a value in base64, and what stands around it.
const FILE_BYTES_MAX: u64 = 128 * 1024;
const UNFINISHED: &str = ".new";

/// A disk on which a file is old or new, whatever happens.
pub struct Files<D> {
    disk: D,
    /// A sync failed. To try again may succeed without having written anything, so nothing is tried again.
    poisoned: bool,
}

impl<D: Disk> Files<D> {
    /// Takes a disk; what was not finished on it is removed.
    pub fn open(disk: D) -> Result<Self, VaultError> {
        let mut files = Self {
            disk,
            poisoned: false,
        };
        for name in files.list()? {
            if name.ends_with(UNFINISHED) {
                files.disk.remove(&name).map_err(failed(&name, "removed"))?;
            }
        }
        Ok(files)
    }

    pub fn list(&self) -> Result<Vec<String>, VaultError> {
        let mut names = self.disk.list().map_err(failed("", "listed"))?;
        names.sort();
        Ok(names)
    }

    pub fn read(&self, name: &str) -> Result<Vec<u8>, VaultError> {
        let bytes = self
            .disk
            .read(name, FILE_BYTES_MAX)
            .map_err(failed(name, "read"))?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(VaultError::Damaged {
                file: name.to_owned(),
                what: "too long",
            });
        }
        Ok(bytes)
    }

    /// When this returns, the new bytes survive a power cut. When it fails, the old ones or the new ones are there.
    pub fn replace(&mut self, name: &str, bytes: &[u8]) -> Result<(), VaultError> {
        self.usable()?;
        let replaced = replace(&mut self.disk, name, bytes);
        // Whatever failed in it may have been a sync.
        self.poisoned |= replaced.as_ref().is_err_and(|e| e.unsure);
        replaced.map_err(|e| failed(name, e.what)(e.source))
    }

    pub fn remove(&mut self, name: &str) -> Result<(), VaultError> {
        self.usable()?;
        self.disk.remove(name).map_err(failed(name, "removed"))?;
        let synced = self.disk.sync_names();
        self.must(name, synced)
    }

    fn usable(&self) -> Result<(), VaultError> {
        if self.poisoned {
            Err(VaultError::Poisoned)
        } else {
            Ok(())
        }
    }

    fn must(&mut self, name: &str, synced: io::Result<()>) -> Result<(), VaultError> {
        self.poisoned |= synced.is_err();
        synced.map_err(failed(name, "made durable"))
    }
}

/// Why a file was not replaced.
#[derive(Debug, thiserror::Error)]
#[error("a file cannot be {what}")]
pub struct NotReplaced {
    /// The participle.
    pub what: &'static str,
    /// A sync failed: what the disk holds is not known.
    pub unsure: bool,
    /// The system's.
    pub source: io::Error,
}

/// Replaces a whole file. When this returns, the new bytes survive a power cut; when it fails, the old ones or the new
/// ones are there. Beside it lies an unfinished file for the while, with `.new` at its end.
///
/// # Errors
/// The disk's.
pub fn replace(disk: &mut impl Disk, name: &str, bytes: &[u8]) -> Result<(), NotReplaced> {
    let failed = |what, unsure| {
        move |source| NotReplaced {
            what,
            unsure,
            source,
        }
    };
    let unfinished = format!("{name}{UNFINISHED}");
    disk.write(&unfinished, bytes)
        .map_err(failed("written", false))?;
    disk.sync(&unfinished)
        .map_err(failed("made durable", true))?;
    disk.rename(&unfinished, name)
        .map_err(failed("written", false))?;
    disk.sync_names().map_err(failed("made durable", true))
}

fn failed(file: &str, what: &'static str) -> impl FnOnce(io::Error) -> VaultError {
    let file = file.to_owned();
    move |source| VaultError::Disk { file, what, source }
}
