//! The few things the writer does to the disk. After a failure the log is opened anew: nothing here is retried, because
//! a second fsync can succeed after the first one lost the data.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// What must be free before a log that failed is written again: no record is longer.
const ROOM_BYTES: usize = crate::frame::LINE_BYTES_MAX;

/// What could not be done.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) doing: Arc<str>,
    pub(crate) source: Arc<io::Error>,
}

impl Fault {
    fn new(what: &str, path: &Path, source: io::Error) -> Self {
        Fault {
            doing: format!("{what} {}", path.display()).into(),
            source: Arc::new(source),
        }
    }
}

/// The disk as the writer uses it; tests can make any one step fail.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    /// Without it the sync steps are left out.
    pub(crate) fsync: bool,
    #[cfg(test)]
    pub(crate) fuse: Option<tests::Fuse>,
}

impl Disk {
    pub(crate) fn new(fsync: bool) -> Self {
        Disk {
            fsync,
            #[cfg(test)]
            fuse: None,
        }
    }

    pub(crate) fn make_dir(&self, dir: &Path) -> Result<(), Fault> {
        self.step("making", dir, || {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)
        })
    }

    /// Opens for appending, and makes the file if need be, readable by its owner only.
    pub(crate) fn open_append(&self, path: &Path) -> Result<File, Fault> {
        let open = || {
            OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .open(path)
        };
        self.step("opening", path, open)
    }

    /// Opens a file that is there, for appending.
    pub(crate) fn reopen(&self, path: &Path) -> Result<File, Fault> {
        self.step("opening", path, || {
            OpenOptions::new().append(true).open(path)
        })
    }

    pub(crate) fn append(&self, file: &mut File, path: &Path, bytes: &[u8]) -> Result<(), Fault> {
        #[cfg(test)]
        if self.fuse.as_ref().is_some_and(tests::Fuse::about_to_blow) {
            file.write_all(&bytes[..bytes.len() / 2])
                .map_err(|error| Fault::new("writing", path, error))?;
        }
        self.step("writing", path, || file.write_all(bytes))
    }

    pub(crate) fn sync(&self, file: &File, path: &Path) -> Result<(), Fault> {
        self.sync_step("syncing", path, || file.sync_data())
    }

    pub(crate) fn sync_dir(&self, dir: &Path) -> Result<(), Fault> {
        self.sync_step("syncing", dir, || File::open(dir)?.sync_all())
    }

    /// Puts a whole file in place: it is there with all its bytes or not at all.
    pub(crate) fn put(&self, path: &Path, bytes: &[u8]) -> Result<(), Fault> {
        let temporary = path.with_extension(crate::segment::TEMPORARY);
        let create = || {
            OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&temporary)
        };
        let mut file = self.step("making", &temporary, create)?;
        self.append(&mut file, &temporary, bytes)?;
        self.sync(&file, &temporary)?;
        self.step("renaming", &temporary, || fs::rename(&temporary, path))
    }

    /// That the file is what stands at the path: what goes into one that was removed or replaced is nowhere.
    pub(crate) fn is_there(&self, file: &File, path: &Path) -> Result<(), Fault> {
        self.step("looking for", path, || match is_at(file, path)? {
            true => Ok(()),
            false => Err(io::Error::new(
                io::ErrorKind::NotFound,
                "another file stands there",
            )),
        })
    }

    /// That there is room for the longest record. What is written for it does not compress, and is gone again after.
    pub(crate) fn try_room(&self, dir: &Path) -> Result<(), Fault> {
        let path = dir.join("room").with_extension(crate::segment::TEMPORARY);
        let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
        let mut bytes = Vec::with_capacity(ROOM_BYTES + 8);
        while bytes.len() < ROOM_BYTES {
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            bytes.extend_from_slice(&noise.to_le_bytes());
        }
        let mut file = self.open_append(&path)?;
        let written = self
            .append(&mut file, &path, &bytes)
            .and_then(|()| self.sync(&file, &path));
        // What was half written takes the room that is missing.
        self.remove(&path).and(written)
    }

    /// Writes each byte of a file once more, in its place: pages that a failed sync left count as written and may not be.
    pub(crate) fn rewrite(&self, path: &Path) -> Result<(), Fault> {
        let rewrite = || {
            let file = OpenOptions::new().read(true).write(true).open(path)?;
            let (mut buffer, mut at) = (vec![0; 1 << 20], 0);
            loop {
                let read = file.read_at(&mut buffer, at)?;
                if read == 0 {
                    return if self.fsync { file.sync_all() } else { Ok(()) };
                }
                file.write_all_at(&buffer[..read], at)?;
                at += read as u64;
            }
        };
        self.step("writing once more", path, rewrite)
    }

    pub(crate) fn truncate(&self, path: &Path, bytes: u64) -> Result<(), Fault> {
        let cut = || {
            let file = OpenOptions::new().write(true).open(path)?;
            file.set_len(bytes)?;
            if self.fsync { file.sync_all() } else { Ok(()) }
        };
        self.step("cutting", path, cut)
    }

    pub(crate) fn remove(&self, path: &Path) -> Result<(), Fault> {
        let remove = || match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        self.step("removing", path, remove)
    }

    pub(crate) fn read<T>(
        &self,
        path: &Path,
        read: impl FnOnce() -> io::Result<T>,
    ) -> Result<T, Fault> {
        self.step("reading", path, read)
    }

    fn sync_step(
        &self,
        what: &str,
        path: &Path,
        sync: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), Fault> {
        #[cfg(test)]
        if self.fuse.is_some() {
            // Whether it fails is what is tested, and hundreds of real ones take their time.
            return self.step(what, path, || Ok(()));
        }
        if self.fsync {
            self.step(what, path, sync)
        } else {
            Ok(())
        }
    }

    fn step<T>(
        &self,
        what: &str,
        path: &Path,
        act: impl FnOnce() -> io::Result<T>,
    ) -> Result<T, Fault> {
        #[cfg(test)]
        if let Some(fuse) = &self.fuse {
            fuse.burn().map_err(|error| Fault::new(what, path, error))?;
        }
        act().map_err(|error| Fault::new(what, path, error))
    }
}

/// Whether the path leads to this very file.
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let (own, there) = (file.metadata()?, fs::metadata(path)?);
    Ok((own.dev(), own.ino()) == (there.dev(), there.ino()))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    /// A directory in memory where there is one, for tests that make hundreds of logs.
    pub(crate) fn scratch() -> tempfile::TempDir {
        tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .unwrap()
    }

    /// Makes the n-th step (from 0) and all after it fail.
    #[derive(Debug, Clone)]
    pub(crate) struct Fuse(Arc<AtomicI64>);

    impl Fuse {
        pub(crate) fn new(steps: i64) -> Self {
            Fuse(Arc::new(AtomicI64::new(steps)))
        }

        /// From now on every step works.
        pub(crate) fn mend(&self) {
            self.0.store(i64::MAX, Ordering::SeqCst);
        }

        pub(crate) fn blown(&self) -> bool {
            self.0.load(Ordering::SeqCst) < 0
        }

        pub(super) fn about_to_blow(&self) -> bool {
            self.0.load(Ordering::SeqCst) == 0
        }

        pub(super) fn burn(&self) -> io::Result<()> {
            match self.0.fetch_sub(1, Ordering::SeqCst) {
                left if left > 0 => Ok(()),
                _ => Err(io::Error::other("the fuse blew")),
            }
        }
    }

    #[test]
    fn a_put_file_is_whole_or_absent() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.idx");
        for steps in 0..4 {
            let disk = Disk {
                fsync: true,
                fuse: Some(Fuse::new(steps)),
            };
            assert!(disk.put(&path, b"whole").is_err(), "{steps}");
            assert!(!path.exists());
        }
        Disk {
            fsync: true,
            fuse: Some(Fuse::new(4)),
        }
        .put(&path, b"whole")
        .unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
    }
}
