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
        let unfinished = format!("{name}{UNFINISHED}");
        self.disk
            .write(&unfinished, bytes)
            .map_err(failed(name, "written"))?;
        let synced = self.disk.sync(&unfinished);
        self.must(name, synced)?;
        self.disk
            .rename(&unfinished, name)
            .map_err(failed(name, "written"))?;
        let synced = self.disk.sync_names();
        self.must(name, synced)
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

fn failed(file: &str, what: &'static str) -> impl FnOnce(io::Error) -> VaultError {
    let file = file.to_owned();
    move |source| VaultError::Disk { file, what, source }
}
