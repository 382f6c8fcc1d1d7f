//! Counters of our own that outlive the program that counts, as the kernel's do: a small file for each sandbox, written
//! with every step.
//!
//! What was written is the page cache's, whatever becomes of the process; no disk is waited for. The next life goes on in
//! the same file, so a reading of it is one of the same counter: nothing has to be carried over, and so nothing can be
//! carried over twice or not at all. When the machine goes, the sandbox goes with it, and what came since the last
//! reading.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::meter::Counter;

/// Epoch, three amounts and a checksum.
const RECORD_BYTES: usize = 4 * 8 + 4;
/// The longest file: a record, and whose it is.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Leases given.
    Requests,
    /// Bytes to the outside.
    EgressBytes,
    /// Bytes from the outside.
    IngressBytes,
}

/// What one sandbox was given and moved, over all lives of the program.
///
/// ```
/// use metering::{Count, Tally};
/// let dir = tempfile::tempdir().unwrap();
/// let path = dir.path().join("sandbox");
/// Tally::go_on(&path, b"whose", 1).unwrap().add(Count::Requests, 2);
/// // Another life:
/// let tally = Tally::go_on(&path, b"whose", 2).unwrap();
/// tally.add(Count::Requests, 1);
/// assert_eq!(tally.get(Count::Requests).value, 3);
/// ```
#[derive(Debug)]
pub struct Tally {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    epoch: u64,
    amounts: [u64; 3],
    file: Option<File>,
}

impl Tally {
    /// Goes on in a file, or begins one that says `whose` it is. A new one, and one that is damaged, begins at nothing in
    /// `epoch`, so that a meter knows it from the one before.
    ///
    /// # Errors
    /// The system's.
    pub fn go_on(path: &Path, whose: &[u8], epoch: u64) -> io::Result<Self> {
        match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => {
                if let Some((epoch, amounts)) = read(&file)? {
                    return Ok(Self::of(epoch, amounts, Some(file)));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        // Beside its place first: a file that is there is a whole one.
        let unfinished = path.with_extension("new");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let file = options.mode(0o600).open(&unfinished)?;
        file.write_all_at(&record(epoch, [0; 3]), 0)?;
        file.write_all_at(whose, RECORD_BYTES as u64)?;
        fs::rename(&unfinished, path)?;
        Ok(Self::of(epoch, [0; 3], Some(file)))
    }

    /// One that ends with the program, for when no file can be had.
    pub fn unkept(epoch: u64) -> Self {
        Self::of(epoch, [0; 3], None)
    }

    /// Whose a file is.
    ///
    /// # Errors
    /// The system's; `InvalidData` for a file of something else.
    pub fn whose(path: &Path) -> io::Result<Vec<u8>> {
        if fs::metadata(path)?.len() > FILE_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = fs::read(path)?;
        if bytes.len() < RECORD_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(bytes.split_off(RECORD_BYTES))
    }

    fn of(epoch: u64, amounts: [u64; 3], file: Option<File>) -> Self {
        let state = State {
            epoch,
            amounts,
            file,
        };
        Self {
            state: Mutex::new(state),
        }
    }

    /// Adds. When it returns, the end of this program loses it no more.
    pub fn add(&self, what: Count, amount: u64) {
        let mut state = self.lock();
        let sum = &mut state.amounts[what as usize];
        *sum = sum.saturating_add(amount);
        if let Some(file) = &state.file {
            // In one piece within one page. An error is made good by the next step, which writes everything again; the
            // place is taken already, so a full disk is none.
            let _ = file.write_all_at(&record(state.epoch, state.amounts), 0);
        }
    }

    /// The amount so far.
    pub fn get(&self, what: Count) -> Counter {
        let state = self.lock();
        Counter {
            value: state.amounts[what as usize],
            epoch: state.epoch,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn record(epoch: u64, amounts: [u64; 3]) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    let numbers = [epoch, amounts[0], amounts[1], amounts[2]];
    for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    let crc = crc32fast::hash(&bytes[..RECORD_BYTES - 4]);
    bytes[RECORD_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Nothing if it is damaged.
fn read(file: &File) -> io::Result<Option<(u64, [u64; 3])>> {
    let mut bytes = [0; RECORD_BYTES];
    match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let number = |at: usize| {
        let mut eight = [0; 8];
        eight.copy_from_slice(&bytes[8 * at..8 * at + 8]);
        u64::from_le_bytes(eight)
    };
    let (epoch, amounts) = (number(0), [number(1), number(2), number(3)]);
    Ok((record(epoch, amounts) == bytes).then_some((epoch, amounts)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Count; 3] = [Count::Requests, Count::EgressBytes, Count::IngressBytes];

    #[test]
    fn a_file_goes_on_over_lives() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("tally");
        for life in 1..=5 {
            let tally = Tally::go_on(&path, b"acme", life).expect("opens");
            for (what, amount) in ALL.into_iter().zip([1, 20, 300]) {
                tally.add(what, amount);
                let counter = tally.get(what);
                assert_eq!((counter.value, counter.epoch), (life * amount, 1));
            }
        }
        assert_eq!(Tally::whose(&path).expect("read"), b"acme");
        assert_eq!(fs::read_dir(dir.path()).expect("read").count(), 1);
    }

    #[test]
    fn a_damaged_file_is_another_counter() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("tally");
        let whole = {
            let tally = Tally::go_on(&path, b"acme", 1).expect("made");
            tally.add(Count::Requests, 7);
            fs::read(&path).expect("read")
        };
        for at in 0..RECORD_BYTES {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            for bytes in [&changed[..], &whole[..at]] {
                fs::write(&path, bytes).expect("written");
                let counter = Tally::go_on(&path, b"acme", 2)
                    .expect("made anew")
                    .get(Count::Requests);
                assert_eq!((counter.value, counter.epoch), (0, 2), "{at}");
            }
        }
    }

    #[test]
    fn many_may_count_at_once() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("tally");
        let tally = Tally::go_on(&path, b"", 1).expect("made");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| tally.add(Count::EgressBytes, 3)));
            }
        });
        drop(tally);
        let again = Tally::go_on(&path, b"", 2).expect("opens");
        assert_eq!(again.get(Count::EgressBytes).value, 12_000);
    }
}
