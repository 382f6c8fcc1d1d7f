//! Whose the two folders of a runner are. Both are locked while it lives. What lies in the one of the run outlives it, so that
//! names its runner too: what another finds in there would be nobody's to it, and be ended.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use crate::paths::Paths;
use crate::store;

/// A helper that a killed runner was just starting holds the lock of its parent until it is a program of its own.
const LOCK_MAX: Duration = Duration::from_secs(2);

/// Who used the folder of the run last.
#[derive(Serialize, Deserialize)]
struct User {
    tag: String,
    state: PathBuf,
}

/// Takes a folder, for as long as what it gives is kept.
///
/// # Errors
/// Another runner works with it, or the system's.
pub fn take(folder: &Path) -> Result<Flock<File>> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(folder.join("lock"))?;
    let deadline = Instant::now() + LOCK_MAX;
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((again, Errno::EWOULDBLOCK)) if Instant::now() < deadline => file = again,
            Err((_, Errno::EWOULDBLOCK)) => {
                bail!("another weir-runner works with {}", folder.display())
            }
            Err((_, error)) => return Err(error).context("lock a folder of the runner"),
        }
        std::thread::sleep(LOCK_MAX / 100);
    }
}

/// The same for the folder of the run, as the runner with this tag.
///
/// # Errors
/// As [`take`]; or there are sandboxes in it of a runner that does not run now and is still there, with a state folder of its own.
pub fn take_run(paths: &Paths, tag: &str) -> Result<Flock<File>> {
    let lock = take(&paths.run)?;
    let note = paths.run.join("user.json");
    if let Some(user) = store::get::<User>(&note)
        && user.tag != tag
        && user.state != paths.state
        && user.state.exists()
    {
        let (run, state) = (paths.run.display(), user.state.display());
        ensure!(
            !has_sandboxes(&paths.run),
            "{run} has the sandboxes of the weir-runner with {state}; use another folder, or end them with \
             `weir-runner --state {state} --run {run} purge`"
        );
    }
    let (tag, state) = (tag.to_owned(), paths.state.clone());
    store::put(&note, &User { tag, state }).context("write down whose a folder is")?;
    Ok(lock)
}

fn has_sandboxes(run: &Path) -> bool {
    ["boxes", "netns"].iter().any(|part| {
        let entries = fs::read_dir(run.join(part));
        // One that cannot be read may have some.
        !entries.is_ok_and(|mut entries| entries.next().is_none())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_let_go_in_a_moment_is_waited_for() {
        let dir = tempfile::tempdir().expect("a folder");
        let held = take(dir.path()).expect("nobody has it");
        let (waits, waited) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _tell = waits.send(take(dir.path()).is_ok());
            });
            assert!(waited.recv_timeout(LOCK_MAX / 10).is_err(), "it is held");
            drop(held);
            assert_eq!(waited.recv(), Ok(true));
        });
        let _held = take(dir.path()).expect("nobody has it");
        assert!(take(dir.path()).is_err(), "who keeps it is another runner");
    }

    #[test]
    fn a_folder_of_the_run_is_of_one_runner() {
        let dir = tempfile::tempdir().expect("a folder");
        let paths = |state: &str| {
            let [state, run] = [state, "run"].map(|name| dir.path().join(name));
            Paths::make(&state, &run).expect("made")
        };
        let (one, other) = (paths("one"), paths("other"));
        let words = |taken: Result<Flock<File>>| taken.expect_err("it is the first's").to_string();
        let held = take_run(&one, "aaaa").expect("nobody has it");
        assert!(words(take_run(&other, "bbbb")).contains("another weir-runner works with"));
        drop(held);
        // It does not run, but its sandboxes do.
        let sandbox = one.run.join("boxes/abcd");
        fs::create_dir(&sandbox).expect("made");
        let said = words(take_run(&other, "bbbb"));
        let state = one.state.display().to_string();
        assert!(said.contains(&format!("--state {state} --run")), "{said}");
        drop(take_run(&one, "aaaa").expect("its own"));
        // None is left; and the other is the one whose it is from then on.
        fs::remove_dir(&sandbox).expect("removed");
        drop(take_run(&other, "bbbb").expect("nobody's"));
        fs::create_dir(&sandbox).expect("made");
        assert!(take_run(&one, "aaaa").is_err());
        // Whose state is gone cannot end them, so whoever comes does.
        fs::remove_dir_all(&other.state).expect("removed");
        drop(take_run(&one, "aaaa").expect("nobody's"));
    }
}
