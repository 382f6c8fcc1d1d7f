//! Which cores a sandbox runs on: a fixed few, and never all of the machine's.
//!
//! Why not only a weight and a quota: gVisor switches between its threads tens of thousands of times a second. A busy
//! sandbox that may use every core then keeps others, on the same machine and of the same weight, waiting for up to 1 s
//! (measured on Linux 6.18, whose weight of a group on each core changes with every such switch); confined to some cores
//! it costs them 10 to 20 ms. A quota that is reached is worse than none: each of its periods begins with a stampede.

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

/// One core's worth of shares.
const SHARES_PER_CORE: u32 = 512;

/// The cores that this process may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores(Vec<usize>);

impl Cores {
    /// Asks the kernel. One core, the first, if it does not say.
    pub fn of_this_process() -> Self {
        let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
        let usable: Vec<usize> = (0..CpuSet::count())
            .filter(|core| set.is_set(*core).unwrap_or(false))
            .collect();
        Self(if usable.is_empty() { vec![0] } else { usable })
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The cores of the sandbox at this place: as many as its shares are worth, but one is left to the others wherever
    /// there is more than one. Places follow each other around.
    pub(crate) fn of(&self, shares: u32, place: u32) -> Vec<usize> {
        let worth = shares.div_ceil(SHARES_PER_CORE) as usize;
        let count = worth.clamp(1, self.count().saturating_sub(1).max(1));
        let first = place as usize * count;
        (first..first + count)
            .map(|n| self.0[n % self.count()])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cores: &[usize], shares: u32, place: u32, expected: &[usize]) {
        let found = Cores(cores.to_vec()).of(shares, place);
        assert_eq!(found, expected, "{shares} shares at {place} of {cores:?}");
    }

    #[test]
    fn a_sandbox_never_has_every_core() {
        check(&[3], 4096, 7, &[3]);
        check(&[0, 1], 1024, 0, &[0]);
        check(&[0, 1], 1024, 1, &[1]);
        check(&[0, 1], 4096, 2, &[0]);
        check(&[0, 1, 2, 3], 4096, 0, &[0, 1, 2]);
        check(&[0, 1, 2, 3], 4096, 1, &[3, 0, 1]);
        check(&[0, 1, 2, 3], 1024, 1, &[2, 3]);
        check(&[4, 6, 8], 513, 1, &[8, 4]);
        check(&[4, 6, 8], 512, 1, &[6]);
    }

    #[test]
    fn this_process_has_a_core() {
        assert!(Cores::of_this_process().count() > 0);
    }
}
