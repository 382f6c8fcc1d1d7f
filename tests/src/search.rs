//! The search for canaries in everything that was written: files in whole trees, holes left out, and what processes show of
//! themselves.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use aho_corasick::AhoCorasick;
use nix::unistd::{Whence, lseek64};

use crate::Canary;

/// Bytes that are read at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// A search for some canaries, in every form.
#[derive(Debug)]
pub struct Search {
    automaton: AhoCorasick,
    /// By pattern: which canary, and what its form is called.
    patterns: Vec<(usize, &'static str)>,
    longest: usize,
}

/// A canary that should not be where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Which one, by its place in the list.
    pub canary: usize,
    /// Its form.
    pub form: &'static str,
    /// Where.
    pub place: PathBuf,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.place.display(), self.form)
    }
}

/// What was looked through. A search that saw nothing finds nothing, so what it saw is part of the answer.
#[derive(Debug, Default)]
pub struct Seen {
    /// What was found.
    pub found: Vec<Found>,
    /// Files that were read to their end.
    pub files: usize,
    /// Bytes of them, holes left out.
    pub bytes: u64,
    /// Files that could not be read.
    pub unread: Vec<PathBuf>,
}

impl Search {
    /// A search for all of these.
    pub fn new(canaries: &[Canary]) -> Self {
        let forms: Vec<_> = canaries
            .iter()
            .enumerate()
            .flat_map(|(n, canary)| {
                canary
                    .forms()
                    .into_iter()
                    .map(move |(name, form)| (n, name, form))
            })
            .collect();
        let automaton = AhoCorasick::new(forms.iter().map(|(_, _, form)| form));
        Self {
            automaton: automaton.expect("a few short needles"),
            patterns: forms.iter().map(|(n, name, _)| (*n, *name)).collect(),
            longest: forms
                .iter()
                .map(|(_, _, form)| form.len())
                .max()
                .unwrap_or(0),
        }
    }

    /// What stands in these bytes; each canary and form is told once.
    pub fn bytes(&self, place: impl AsRef<Path>, bytes: &[u8]) -> Vec<Found> {
        let mut found = Vec::new();
        self.add(place.as_ref(), bytes, &mut found);
        found
    }

    fn add(&self, place: &Path, bytes: &[u8], found: &mut Vec<Found>) {
        for hit in self.automaton.find_overlapping_iter(bytes) {
            let (canary, form) = self.patterns[hit.pattern().as_usize()];
            let hit = Found {
                canary,
                form,
                place: place.to_owned(),
            };
            if !found.contains(&hit) {
                found.push(hit);
            }
        }
    }

    /// All files under a folder, their names and what links say. No link is followed.
    pub fn tree(&self, dir: &Path) -> Seen {
        let mut seen = Seen::default();
        let mut folders = vec![dir.to_owned()];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = fs::read_dir(&folder) else {
                seen.unread.push(folder);
                continue;
            };
            for path in entries.flatten().map(|e| e.path()) {
                self.add(&path, path.as_os_str().as_bytes(), &mut seen.found);
                let kind = fs::symlink_metadata(&path).map(|m| m.file_type());
                match kind {
                    Ok(kind) if kind.is_dir() => folders.push(path),
                    Ok(kind) if kind.is_file() => self.file(&path, &mut seen),
                    Ok(kind) if kind.is_symlink() => {
                        let target = fs::read_link(&path).unwrap_or_default();
                        self.add(&path, target.as_os_str().as_bytes(), &mut seen.found);
                    }
                    // Pipes and sockets hold nothing; what is gone was removed in the meantime.
                    _ => {}
                }
            }
        }
        seen
    }

    fn file(&self, path: &Path, seen: &mut Seen) {
        let read = File::open(path).and_then(|file| self.read(file, path, seen));
        match read {
            Ok(()) => seen.files += 1,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => seen.unread.push(path.to_owned()),
        }
    }

    /// Goes from one piece of data to the next: a sandbox's storage is gigabytes of nothing.
    fn read(&self, mut file: File, path: &Path, seen: &mut Seen) -> io::Result<()> {
        let mut buffer = Vec::new();
        let mut at = 0;
        // Where a file system knows no holes, all is data.
        while let Ok(start) = lseek64(&file, at, Whence::SeekData) {
            let end = lseek64(&file, start, Whence::SeekHole)?;
            file.seek(SeekFrom::Start(start.unsigned_abs()))?;
            buffer.clear();
            let mut left = (end - start).unsigned_abs();
            while left > 0 {
                // What may be the beginning of a needle stays.
                let keep = buffer.len().min(self.longest);
                buffer.drain(..buffer.len() - keep);
                let want = left.min(CHUNK_BYTES as u64);
                let got = (&mut file).take(want).read_to_end(&mut buffer)?;
                if got == 0 {
                    break;
                }
                self.add(path, &buffer, &mut seen.found);
                left -= got as u64;
                seen.bytes += got as u64;
            }
            at = end;
        }
        Ok(())
    }

    /// Environment and command line of every process of this machine.
    pub fn processes(&self) -> Seen {
        let mut seen = Seen::default();
        let entries = fs::read_dir("/proc").expect("there is a /proc");
        for process in entries.flatten().map(|e| e.path()) {
            if !process.join("environ").exists() {
                continue;
            }
            for name in ["environ", "cmdline", "comm"] {
                let path = process.join(name);
                // It may have ended by now.
                if let Ok(bytes) = fs::read(&path) {
                    self.add(&path, &bytes, &mut seen.found);
                    seen.files += 1;
                    seen.bytes += bytes.len() as u64;
                }
            }
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_canary_in_a_tree_is_found_and_told() {
        let canaries = [Canary::github(), Canary::aws()];
        let search = Search::new(&canaries);
        let dir = tempfile::tempdir().expect("a folder");
        let inner = dir.path().join("a/b");
        fs::create_dir_all(&inner).expect("made");
        fs::write(inner.join("clean"), "nothing").expect("written");
        let seen = search.tree(dir.path());
        assert_eq!((seen.found, seen.files, seen.bytes), (vec![], 1, 7));
        // Behind a hole, over the edge of a chunk, in a name and in a link.
        let mut sparse = File::create(inner.join("sparse")).expect("made");
        sparse.seek(SeekFrom::Start(5 << 30)).expect("a place");
        sparse
            .write_all(canaries[0].hex().as_bytes())
            .expect("written");
        for cut in [1, 20, 39] {
            let mut long = vec![b'.'; CHUNK_BYTES - cut];
            long.extend(canaries[1].base64().into_bytes());
            fs::write(inner.join(format!("long{cut}")), long).expect("written");
        }
        fs::write(inner.join(canaries[1].value()), "").expect("written");
        std::os::unix::fs::symlink(canaries[0].value(), inner.join("link")).expect("linked");
        let seen = search.tree(dir.path());
        let mut told: Vec<_> = seen
            .found
            .iter()
            .map(|f| {
                (
                    f.canary,
                    f.form,
                    f.place
                        .file_name()
                        .expect("a name")
                        .to_string_lossy()
                        .into_owned(),
                )
            })
            .collect();
        told.sort();
        let expected = [
            (0, "hex", "sparse"),
            (0, "plain", "link"),
            (1, "base64", "long1"),
            (1, "base64", "long20"),
            (1, "base64", "long39"),
            (1, "plain", canaries[1].value()),
        ];
        assert_eq!(
            told,
            expected.map(|(n, form, place)| (n, form, place.to_owned()))
        );
        assert!(seen.bytes < 5 << 20, "holes are not read: {}", seen.bytes);
        assert!(seen.unread.is_empty());
    }

    #[test]
    fn a_canary_in_an_environment_is_found() {
        let canary = Canary::stripe();
        let search = Search::new(std::slice::from_ref(&canary));
        let mut child = Command::new("cat")
            .env("LEAK", canary.base64())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("cat runs");
        // A process that has only just become another program shows no environment yet.
        let mut said = [0];
        child
            .stdin
            .as_mut()
            .expect("piped")
            .write_all(b"x")
            .expect("written");
        child
            .stdout
            .as_mut()
            .expect("piped")
            .read_exact(&mut said)
            .expect("an answer");
        let seen = search.processes();
        child.kill().expect("killed");
        child.wait().expect("waited");
        let place = PathBuf::from(format!("/proc/{}/environ", child.id()));
        assert!(
            seen.found
                .iter()
                .any(|f| f.place == place && f.form == "base64"),
            "{:?}",
            seen.found
        );
    }
}
