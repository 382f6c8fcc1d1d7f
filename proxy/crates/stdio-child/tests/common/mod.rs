//! What the tests of real processes share: a marked server description, and the processes that wear the mark.
#![allow(dead_code, clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use stdio_child::{ChildSpec, REAPER_COMMAND, ReaperMode};

/// Far longer than anything here takes; a test that needs it has failed.
pub const DEADLINE: Duration = Duration::from_secs(20);
const MARK_NAME: &str = "STDIO_CHILD_TEST";

pub fn testbed() -> PathBuf {
    env!("CARGO_BIN_EXE_stdio-child-testbed").into()
}

/// A mark that no other test has; it goes into the environment of everything a test starts.
pub fn new_mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{next}", std::process::id())
}

pub fn mark_env(mark: &str) -> (&'static str, &str) {
    (MARK_NAME, mark)
}

/// `sh -c SCRIPT`, and its mark.
pub fn shell(script: &str) -> (ChildSpec, String) {
    let (mut spec, mark) = program("sh");
    spec.args = vec!["-c".into(), script.into()];
    (spec, mark)
}

pub fn program(program: &str) -> (ChildSpec, String) {
    let mark = new_mark();
    let mut spec = ChildSpec::new(program);
    spec.env = vec![(MARK_NAME.into(), mark.clone().into())];
    // Long enough that a server which may end politely does, on the slowest machine.
    spec.stop_grace = DEADLINE;
    spec.reaper = ReaperMode::Program(testbed(), vec![REAPER_COMMAND.into()]);
    (spec, mark)
}

/// The living processes that wear the mark, reapers included. (A zombie has no environment.)
pub fn marked(mark: &str) -> BTreeSet<i32> {
    let entry = format!("{MARK_NAME}={mark}");
    let wears = |pid: &i32| {
        fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
            environ
                .split(|byte| *byte == 0)
                .any(|one| one == entry.as_bytes())
        })
    };
    pids().filter(wears).collect()
}

/// A process, told from later ones with the same id by its start time.
pub type Identity = (i32, u64);

pub fn identity(pid: i32) -> Option<Identity> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let started = text[text.rfind(')')? + 2..].split(' ').nth(19)?;
    Some((pid, started.parse().ok()?))
}

/// The state letter, parent and name of a process, dead or alive.
pub fn stat(pid: i32) -> Option<(char, i32, String)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let name = text[text.find('(')? + 1..text.rfind(')')?].to_owned();
    let mut fields = text[text.rfind(')')? + 2..].split(' ');
    Some((
        fields.next()?.chars().next()?,
        fields.next()?.parse().ok()?,
        name,
    ))
}

/// Children of this process that wait to be reaped.
pub fn own_zombies() -> BTreeSet<i32> {
    let own = std::process::id() as i32;
    let is_own_zombie =
        |pid: &i32| stat(*pid).is_some_and(|(state, parent, _)| state == 'Z' && parent == own);
    pids().filter(is_own_zombie).collect()
}

pub fn open_fds() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn pids() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Looks again and again until `condition` holds.
pub async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < DEADLINE,
            "not within {DEADLINE:?}: {what}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Fails instead of hanging.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future)
        .await
        .expect("within the deadline")
}

/// Nothing wears the mark, and none of `processes` lives or waits to be reaped. What the death of its parent has
/// made a zombie of init's is init's to reap, and some do so only every few seconds.
pub async fn all_gone(mark: &str, processes: &BTreeSet<Identity>) {
    let is_gone = |process: &Identity| {
        identity(process.0) != Some(*process)
            || stat(process.0).is_none_or(|(state, parent, _)| state == 'Z' && parent == 1)
    };
    eventually(&format!("all of {processes:?} gone"), || {
        marked(mark).is_empty() && processes.iter().all(is_gone)
    })
    .await;
}
