//! In a process of its own: a reaper takes whatever child it finds.

use std::time::{Duration, Instant};

use sandbox::Reaper;

fn is_zombie(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.contains(") Z ")
}

#[test]
#[allow(
    clippy::zombie_processes,
    reason = "that nobody waits for it is what is tested"
)]
fn an_ended_child_is_taken_in_the_second_round() {
    let child = std::process::Command::new("true").spawn().expect("true");
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_zombie(child.id()) {
        assert!(Instant::now() < deadline, "it does not end");
        std::thread::yield_now();
    }
    let mut reaper = Reaper::default();
    reaper.round();
    assert!(
        is_zombie(child.id()),
        "whoever waits for it has a round's time"
    );
    assert_eq!(reaper.round(), 1);
    assert!(!std::path::Path::new(&format!("/proc/{}", child.id())).exists());
}
