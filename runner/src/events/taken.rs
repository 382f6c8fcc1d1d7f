//! How far numbers of events are taken, on disk. It has to be raised when there is no room for anything, so it is written
//! over itself: two slots of fixed length in a file that is allocated at the start, in turns. The newer whole one counts; a
//! power cut while one is written leaves the other.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::store;

/// In a block of the disk of its own.
const SLOT_BYTES: usize = 4096;
const HASH_BYTES: usize = 32;

/// How far numbers are taken.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Taken {
    pub upto: u64,
    /// The start of the machine in which the last number that was told of is in the file, whatever became of this program;
    /// empty if it may not be.
    pub boot: String,
}

/// One that was written, and the how manieth.
#[derive(Default, Serialize, Deserialize)]
struct Slot {
    turn: u64,
    taken: Taken,
}

/// The note of a file of events.
pub(super) struct Note {
    path: PathBuf,
    file: Option<File>,
    turn: u64,
}

impl Note {
    /// Opens it, or makes it of what an earlier version left, and gives what it says.
    pub fn open(events: &Path) -> (Self, Taken) {
        let path = events.with_extension("slots");
        let mut note = Self {
            path,
            file: None,
            turn: 0,
        };
        if let Some(slot) = note.newest() {
            note.turn = slot.turn;
            return (note, slot.taken);
        }
        let [sure, unsure] = [
            events.with_extension("taken"),
            events.with_extension("unsure"),
        ];
        let taken = store::get(&sure).unwrap_or_else(|| Taken {
            boot: String::new(),
            ..store::get(&unsure).unwrap_or_default()
        });
        match note.write(&taken) {
            Ok(()) => [sure, unsure].iter().for_each(|old| store::remove(old)),
            Err(error) => {
                tracing::error!(%error, "no room can be had for the numbers of events");
                // Another name needs no room. What is told from here on may not be in the file.
                let _ = fs::rename(&sure, &unsure);
            }
        }
        (note, taken)
    }

    /// Writes it, safe from a power cut.
    ///
    /// # Errors
    /// The system's. What it said before is there still.
    pub fn write(&mut self, taken: &Taken) -> io::Result<()> {
        let turn = self.turn + 1;
        let bytes = slot(turn, taken)?;
        let at = place(turn);
        match &self.file {
            Some(file) => {
                file.write_all_at(&bytes, at as u64)?;
                file.sync_data()?;
            }
            None => {
                let mut both = vec![0; 2 * SLOT_BYTES];
                both[at..at + SLOT_BYTES].copy_from_slice(&bytes);
                store::put_bytes(&self.path, &both)?;
                self.file = Some(OpenOptions::new().write(true).open(&self.path)?);
            }
        }
        self.turn = turn;
        Ok(())
    }

    fn newest(&mut self) -> Option<Slot> {
        let bytes = fs::read(&self.path).ok()?;
        let slots = bytes.chunks_exact(SLOT_BYTES).filter_map(read);
        let newest = slots.max_by_key(|slot| slot.turn);
        if newest.is_none() {
            tracing::error!(path = %self.path.display(), "how far numbers are taken cannot be read");
        }
        // One of another length is made anew.
        if bytes.len() == 2 * SLOT_BYTES {
            self.file = OpenOptions::new().write(true).open(&self.path).ok();
        }
        newest
    }
}

/// Where the slot of a turn begins.
fn place(turn: u64) -> usize {
    if turn.is_multiple_of(2) {
        0
    } else {
        SLOT_BYTES
    }
}

fn slot(turn: u64, taken: &Taken) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(&Slot {
        turn,
        taken: taken.clone(),
    })?;
    if bytes.len() > SLOT_BYTES - HASH_BYTES {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    bytes.resize(SLOT_BYTES - HASH_BYTES, b' ');
    let hash = Sha256::digest(&bytes);
    bytes.extend_from_slice(&hash);
    Ok(bytes)
}

fn read(slot: &[u8]) -> Option<Slot> {
    let (bytes, hash) = slot.split_at_checked(SLOT_BYTES - HASH_BYTES)?;
    if Sha256::digest(bytes).as_slice() != hash {
        return None;
    }
    serde_json::from_slice(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(upto: u64) -> Taken {
        Taken {
            upto,
            boot: "one".to_owned(),
        }
    }

    #[test]
    fn the_newer_whole_slot_counts() {
        let dir = tempfile::tempdir().expect("a folder");
        let events = dir.path().join("events.jsonl");
        let slots = events.with_extension("slots");
        let said = || Note::open(&events).1;
        assert_eq!(said(), Taken::default());
        let (mut note, _) = Note::open(&events);
        for upto in 1..=5 {
            note.write(&taken(upto)).expect("written");
            assert_eq!(said(), taken(upto));
            let now = fs::read(&slots).expect("read");
            // The next one cut off, after any part of it.
            let next = super::slot(note.turn + 1, &taken(99)).expect("small");
            let at = place(note.turn + 1);
            for cut in [0, 1, 9, 200, SLOT_BYTES - 1, SLOT_BYTES] {
                let mut torn = now.clone();
                torn[at..at + cut].copy_from_slice(&next[..cut]);
                fs::write(&slots, &torn).expect("written");
                let expected = if cut == SLOT_BYTES { 99 } else { upto };
                assert_eq!(said(), taken(expected), "{cut}");
            }
            fs::write(&slots, &now).expect("written");
        }
        // Neither.
        fs::write(&slots, vec![7; 2 * SLOT_BYTES]).expect("written");
        assert_eq!(said(), Taken::default());
        note.write(&taken(7)).expect("written");
        assert_eq!(said(), taken(7));
        fs::write(&slots, "short").expect("written");
        let (mut note, found) = Note::open(&events);
        assert_eq!(found, Taken::default());
        note.write(&taken(8)).expect("written");
        assert_eq!(said(), taken(8));
        assert!(
            slot(
                1,
                &Taken {
                    upto: 1,
                    boot: "x".repeat(SLOT_BYTES)
                }
            )
            .is_err()
        );
    }

    #[test]
    fn what_an_earlier_version_wrote_is_taken_over() {
        let dir = tempfile::tempdir().expect("a folder");
        let events = dir.path().join("events.jsonl");
        for (name, expected) in [
            ("taken", taken(20_001)),
            (
                "unsure",
                Taken {
                    boot: String::new(),
                    ..taken(20_001)
                },
            ),
        ] {
            let old = events.with_extension(name);
            store::put(&old, &taken(20_001)).expect("written");
            assert_eq!(Note::open(&events).1, expected);
            assert!(!old.exists(), "{name}");
            assert_eq!(Note::open(&events).1, expected);
            fs::remove_file(events.with_extension("slots")).expect("there");
        }
        // With no room for the new one, the old one stays, and nothing is taken for sure.
        store::put(&events.with_extension("taken"), &taken(5)).expect("written");
        let in_the_way = dir.path().join("events.slots.new");
        fs::create_dir(&in_the_way).expect("made");
        assert_eq!(Note::open(&events).1, taken(5));
        let unsure = Taken {
            boot: String::new(),
            ..taken(5)
        };
        assert_eq!(Note::open(&events).1, unsure);
        fs::remove_dir(&in_the_way).expect("removed");
        assert_eq!(Note::open(&events).1, unsure);
        assert!(events.with_extension("slots").exists());
    }
}
