//! Empty file systems: made once for each size, and copied after that. Making one takes some 15 ms of every start, copying its
//! few hundred kilobytes one.
//!
//! All of one size have the same identity (UUID, hash seed). It is seen by nobody: a guest has a file in it, not the file
//! system, and no journal or second device knows them by name.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{Mode, OFlags, SeekFrom, seek};
use rustix::io::Errno;

use crate::error::SandboxError;

/// Sizes that are kept; the one that was not asked for the longest goes.
const KEPT_MAX: usize = 16;
/// What a copy may read. More is there only if the host's file system cannot tell what was never written.
const COPIED_BYTES_MAX: u64 = 64 * 1024 * 1024;
const CHUNK_BYTES: usize = 64 * 1024;

/// The sizes in MiB, the one that was asked for last at the end; of files without a name, that end with this process.
static KEPT: Mutex<Vec<(u32, Arc<File>)>> = Mutex::new(Vec::new());

/// Puts an empty file system of `mib` MiB into a new file.
///
/// # Errors
/// The disk's, or what `mkfs.ext4` said.
pub(super) fn put(image: &Path, mib: u32) -> Result<(), SandboxError> {
    let Some(blank) = kept(mib) else {
        make(image, mib)?;
        keep(image, mib);
        return Ok(());
    };
    let to = new_file(image).map_err(|e| SandboxError::io("make", image, e))?;
    match copy(&blank, &to) {
        Ok(true) => return Ok(()),
        Ok(false) => {}
        Err(error) => tracing::warn!(%error, "an empty file system cannot be copied"),
    }
    fs::remove_file(image).map_err(|e| SandboxError::io("remove", image, e))?;
    make(image, mib)
}

fn kept(mib: u32) -> Option<Arc<File>> {
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let at = all.iter().position(|(size, _)| *size == mib)?;
    let found = all.remove(at);
    let file = Arc::clone(&found.1);
    all.push(found);
    Some(file)
}

/// Keeps a copy of an image that nobody has mounted yet. Without one the next is made as this one was.
fn keep(image: &Path, mib: u32) {
    let kept = nameless(image).and_then(|to| Ok((copy(&File::open(image)?, &to)?, to)));
    match kept {
        Ok((true, file)) => {
            let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|(size, _)| *size != mib);
            if all.len() >= KEPT_MAX {
                all.remove(0);
            }
            all.push((mib, Arc::new(file)));
        }
        Ok((false, _)) => tracing::debug!("this disk does not tell what is empty"),
        Err(error) => tracing::debug!(%error, "an empty file system is not kept"),
    }
}

fn make(image: &Path, mib: u32) -> Result<(), SandboxError> {
    let file = new_file(image).map_err(|e| SandboxError::io("make", image, e))?;
    file.set_len(u64::from(mib) * 1024 * 1024)
        .map_err(|e| SandboxError::io("size", image, e))?;
    drop(file);
    // No journal: nothing in it outlives the sandbox. An inode per 16 KiB: a build makes many files. nodiscard: it is sparse already.
    let options =
        "-q -F -m 0 -i 16384 -O ^has_journal,^resize_inode -E lazy_itable_init=1,nodiscard";
    super::run(
        "mkfs.ext4",
        options
            .split(' ')
            .map(str::to_owned)
            .chain([super::text(image)]),
    )
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// A file without a name on the same disk.
fn nameless(beside: &Path) -> io::Result<File> {
    let dir = beside.parent().unwrap_or(Path::new("."));
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(dir, flags, Mode::RUSR | Mode::WUSR)?;
    Ok(file.into())
}

/// Copies what was ever written, and leaves the rest empty. False if that is more than an empty file system has.
fn copy(from: &File, to: &File) -> io::Result<bool> {
    let len = from.metadata()?.len();
    to.set_len(len)?;
    let mut buffer = vec![0; CHUNK_BYTES];
    let (mut at, mut copied) = (0, 0);
    // A descriptor that copies on other threads share has one place to read from: each seek gives the place it found, and
    // what is read is named by its place, so nothing depends on it.
    loop {
        let begin = match seek(from, SeekFrom::Data(at)) {
            Ok(begin) => begin,
            // Nothing more is there.
            Err(Errno::NXIO) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        let end = seek(from, SeekFrom::Hole(begin))?;
        copied += end - begin;
        if copied > COPIED_BYTES_MAX {
            return Ok(false);
        }
        at = begin;
        while at < end {
            let wanted = usize::try_from(end - at).map_or(CHUNK_BYTES, |n| n.min(CHUNK_BYTES));
            let part = &mut buffer[..wanted];
            from.read_exact_at(part, at)?;
            to.write_all_at(part, at)?;
            at += wanted as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_same_bytes_and_the_same_holes() {
        use std::os::unix::fs::MetadataExt as _;
        let dir = tempfile::tempdir().expect("a folder");
        let file = |name: &str| new_file(&dir.path().join(name)).expect("made");
        for (case, len, written) in [
            ("empty", 0, vec![]),
            ("a hole", 10 << 20, vec![]),
            ("at both ends", 10 << 20, vec![(0, 5), ((10 << 20) - 7, 7)]),
            ("more than a chunk", 10 << 20, vec![(1 << 20, 200_000)]),
            ("whole", 70_000, vec![(0, 70_000)]),
        ] {
            let (from, to) = (file(&format!("{case} from")), file(&format!("{case} to")));
            from.set_len(len).expect("sized");
            for (at, size) in written {
                let bytes: Vec<u8> = (0..size).map(|n: u32| (n % 251) as u8 + 1).collect();
                from.write_all_at(&bytes, at).expect("written");
            }
            assert!(copy(&from, &to).expect("copied"), "{case}");
            let [read, wanted] = [&to, &from].map(|file| {
                let mut bytes = vec![0; usize::try_from(len).expect("small")];
                file.read_exact_at(&mut bytes, 0).expect("read");
                bytes
            });
            assert!(read == wanted, "{case}");
            let [copied, first] = [&to, &from].map(|f| f.metadata().expect("there").blocks());
            assert!(copied <= first, "{case}: {copied} blocks of {first}");
        }
    }

    #[test]
    fn what_is_no_empty_file_system_is_not_copied() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = |name: &str| new_file(&dir.path().join(name)).expect("made");
        let (from, to) = (file("from"), file("to"));
        let megabyte = vec![1; 1 << 20];
        for n in 0..=COPIED_BYTES_MAX >> 20 {
            from.write_all_at(&megabyte, n << 20).expect("written");
        }
        assert!(!copy(&from, &to).expect("looked at"));
    }
}
