//! Which cores run what.
//!
//! On a machine whose scheduler may put a target next to the load generator in one window and across cores in the
//! next, the same call costs 8 or 28 us of CPU and the ratios of a run mean little. So by default the target gets cores
//! of its own, always the same. Waking an idle core has a price too (tens of us on a virtual machine), paid by every
//! target alike; on one single core there is no such price, and what is left is the work itself.
//!
//! A child inherits the cores of the thread that starts it.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// How cores are given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Pin {
    /// Half of the cores to the target, the rest to load and upstream.
    Split,
    /// Everything on one core: no wake-ups across cores, and no parallelism either.
    One,
    /// Wherever the kernel likes.
    None,
}

/// Who runs where. Empty sets mean: wherever the kernel likes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cores {
    /// Load generator.
    pub load: Vec<usize>,
    /// Echo upstream.
    pub upstream: Vec<usize>,
    /// Floors, peers and the proxy under test.
    pub target: Vec<usize>,
}

impl Cores {
    /// Gives out the cores this process may use.
    pub fn give_out(pin: Pin) -> Cores {
        let all = allowed();
        match (pin, all.last()) {
            (Pin::Split, _) => share(&all),
            (Pin::One, Some(&last)) => Cores {
                load: vec![last],
                upstream: vec![last],
                target: vec![last],
            },
            (Pin::One, None) | (Pin::None, _) => Cores::default(),
        }
    }

    /// Cores a target has, at least one.
    pub fn for_target(&self) -> usize {
        if self.target.is_empty() {
            allowed().len().max(1)
        } else {
            self.target.len()
        }
    }

    /// For the report.
    pub fn describe(&self) -> String {
        if self.target.is_empty() {
            return "not pinned".to_owned();
        }
        format!(
            "load on cores {:?}, upstream on {:?}, targets on {:?}",
            self.load, self.upstream, self.target
        )
    }
}

/// Runs `start` on the given cores, so that what it starts stays there, then goes back to `home`.
pub fn on<T>(cores: &[usize], home: &[usize], start: impl FnOnce() -> T) -> T {
    move_to(cores);
    let started = start();
    move_to(home);
    started
}

/// Moves this thread, and the threads and processes it starts from now on.
pub fn move_to(cores: &[usize]) {
    let mut set = CpuSet::new();
    if cores.is_empty() || cores.iter().any(|&core| set.set(core).is_err()) {
        return;
    }
    // Where pinning is forbidden the run goes on unpinned; the spread between rounds will show it.
    let _ = sched_setaffinity(Pid::from_raw(0), &set);
}

fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else {
        return Vec::new();
    };
    (0..CpuSet::count())
        .filter(|&core| set.is_set(core).unwrap_or(false))
        .collect()
}

fn share(all: &[usize]) -> Cores {
    let (rest, target) = all.split_at(all.len() - all.len() / 2);
    match rest.len() {
        0 => Cores::default(),
        _ if target.is_empty() => Cores::default(),
        1 => Cores {
            load: rest.to_vec(),
            upstream: rest.to_vec(),
            target: target.to_vec(),
        },
        n => {
            let (load, upstream) = rest.split_at(n - n / 2);
            Cores {
                load: load.to_vec(),
                upstream: upstream.to_vec(),
                target: target.to_vec(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        assert_eq!(share(&[]), Cores::default());
        assert_eq!(share(&[3]), Cores::default());
        assert_eq!(
            share(&[0, 1]),
            Cores {
                load: vec![0],
                upstream: vec![0],
                target: vec![1]
            }
        );
        assert_eq!(
            share(&[0, 1, 2]),
            Cores {
                load: vec![0],
                upstream: vec![1],
                target: vec![2]
            }
        );
        let eight = share(&[0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(
            (eight.load, eight.upstream, eight.target),
            (vec![0, 1], vec![2, 3], vec![4, 5, 6, 7])
        );
    }

    #[test]
    fn children_stay_where_they_are_started() {
        std::thread::spawn(|| {
            let all = allowed();
            let last = [*all.last().unwrap()];
            let inside = on(&last, &all, || std::thread::spawn(allowed).join().unwrap());
            assert_eq!(inside, last);
            assert_eq!(allowed(), all);
        })
        .join()
        .unwrap();
    }
}
