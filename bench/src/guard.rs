//! No target outlives the benchmark: an interrupt ends the children first, then this program.

use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

static CHILDREN: Mutex<Vec<u32>> = Mutex::new(Vec::new());
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static SCRATCH: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static AT_END: Mutex<Vec<Box<dyn FnOnce() + Send>>> = Mutex::new(Vec::new());

/// Takes over SIGINT, SIGTERM and SIGHUP. Call before any thread is started.
pub fn install() -> anyhow::Result<()> {
    let set = signals();
    set.thread_block()?;
    std::thread::spawn(move || {
        if let Ok(signal) = set.wait() {
            INTERRUPTED.store(true, Ordering::SeqCst);
            end_children();
            std::process::exit(128 + signal as i32);
        }
    });
    Ok(())
}

/// Leaves the end of the program to the interrupt, if there is one: the run fails when its targets go, and that failure
/// is neither news nor the exit code.
pub fn yield_to_interrupt() {
    while INTERRUPTED.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// Runs `spawn` with these signals let through: a child inherits the mask, and one that cannot hear SIGTERM would have
/// to be killed, with children of its own left behind.
pub fn unmasked<T>(spawn: impl FnOnce() -> T) -> T {
    let blocked = SigSet::thread_get_mask().ok();
    let _ = signals().thread_unblock();
    let spawned = spawn();
    if let Some(mask) = blocked {
        let _ = mask.thread_set_mask();
    }
    spawned
}

fn signals() -> SigSet {
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]
        .into_iter()
        .collect()
}

/// Makes a child of ours end with its parent, however that one ends.
pub fn end_with_parent() {
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGTERM);
}

/// Adds a child.
pub fn watch(pid: u32) {
    if let Ok(mut children) = CHILDREN.lock() {
        children.push(pid);
    }
}

/// The child was waited for; its number may be someone else's now.
pub fn unwatch(pid: u32) {
    if let Ok(mut children) = CHILDREN.lock() {
        children.retain(|&child| child != pid);
    }
}

/// A folder to remove when interrupted.
pub fn scratch(folder: PathBuf) {
    if let Ok(mut scratch) = SCRATCH.lock() {
        scratch.push(folder);
    }
}

/// What is to be done when interrupted, after the children have ended and before the folders go.
pub fn at_end(work: impl FnOnce() + Send + 'static) {
    if let Ok(mut all) = AT_END.lock() {
        all.push(Box::new(work));
    }
}

/// Ends the program where going on is not possible.
pub fn give_up(why: &str) -> ! {
    let _ = writeln!(std::io::stderr(), "weir-bench: {why}");
    end_children();
    std::process::exit(3)
}

/// Asks, waits two seconds, kills.
fn end_children() {
    let children = CHILDREN
        .lock()
        .map(|mut children| std::mem::take(&mut *children))
        .unwrap_or_default();
    let mut left: Vec<Pid> = children
        .into_iter()
        .filter_map(|pid| i32::try_from(pid).ok())
        .map(Pid::from_raw)
        .collect();
    for &pid in &left {
        let _ = kill(pid, Signal::SIGTERM);
        if let Ok(root) = u32::try_from(pid.as_raw()) {
            crate::process::signal_tree(root, Signal::SIGCONT);
        }
    }
    for _ in 0..100 {
        left.retain(|&pid| waitpid(pid, Some(WaitPidFlag::WNOHANG)) == Ok(WaitStatus::StillAlive));
        if left.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    for pid in left {
        let _ = kill(pid, Signal::SIGKILL);
    }
    let work = AT_END.lock().map(|mut all| std::mem::take(&mut *all));
    work.unwrap_or_default().into_iter().for_each(|work| work());
    let folders = SCRATCH
        .lock()
        .map(|mut scratch| std::mem::take(&mut *scratch))
        .unwrap_or_default();
    for folder in folders {
        let _ = std::fs::remove_dir_all(folder);
    }
}
