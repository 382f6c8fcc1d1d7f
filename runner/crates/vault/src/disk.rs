//! The few file operations that the vault needs, behind a trait: what a power cut leaves of them is tried on a
//! simulated disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// One flat folder. Names hold only a-z, 0-9, '-' and '.'.
pub trait Disk {
    /// The names of all files.
    ///
    /// # Errors
    /// The system's.
    fn list(&self) -> io::Result<Vec<String>>;

    /// A file's bytes, at most `bytes_max` and one more.
    ///
    /// # Errors
    /// The system's.
    fn read(&self, name: &str, bytes_max: u64) -> io::Result<Vec<u8>>;

    /// Makes a file of these bytes, or truncates one. Durable after [`Disk::sync`].
    ///
    /// # Errors
    /// The system's.
    fn write(&mut self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Makes a file's bytes durable.
    ///
    /// # Errors
    /// The system's. What is on the disk is unknown then.
    fn sync(&mut self, name: &str) -> io::Result<()>;

    /// Puts one file in another's place. Durable after [`Disk::sync_names`].
    ///
    /// # Errors
    /// The system's.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. Durable after [`Disk::sync_names`].
    ///
    /// # Errors
    /// The system's.
    fn remove(&mut self, name: &str) -> io::Result<()>;

    /// Makes the folder's names durable.
    ///
    /// # Errors
    /// The system's. What is on the disk is unknown then.
    fn sync_names(&mut self) -> io::Result<()>;
}

/// A real folder, which one process uses at a time.
#[derive(Debug)]
pub struct Dir {
    path: PathBuf,
    /// Held for its lock.
    _lock: Option<File>,
}

impl Dir {
    const LOCK: &'static str = "lock";

    /// Opens a folder, and makes it where it is missing, for its owner only.
    ///
    /// # Errors
    /// The system's; `WouldBlock` when another process has it open.
    pub fn open(path: &Path) -> io::Result<Self> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)?;
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path.join(Self::LOCK))?;
        lock.try_lock()?;
        Ok(Self {
            path: path.to_owned(),
            _lock: Some(lock),
        })
    }

    /// A folder that is there, and that somebody else sees to: a lock above it keeps other processes away.
    pub fn within(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            _lock: None,
        }
    }
}

impl Disk for Dir {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            // A name that is no text is not one of ours.
            let name = entry?.file_name().into_string().ok();
            names.extend(name.filter(|name| name != Self::LOCK));
        }
        Ok(names)
    }

    fn read(&self, name: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(self.path.join(name))?
            .take(bytes_max + 1)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options.open(self.path.join(name))?.write_all(bytes)
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        File::open(self.path.join(name))?.sync_all()
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync_names(&mut self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}
