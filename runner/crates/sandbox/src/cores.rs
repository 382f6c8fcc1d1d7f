//! Which cores a sandbox runs on: a fixed few, and never all of the machine's.
//!
//! Why not only a weight and a quota: gVisor switches between its threads tens of thousands of times a second. A busy
//! sandbox that may use every core then keeps others, on the same machine and of the same weight, waiting for up to 1 s
//! (measured on Linux 6.18, whose weight of a group on each core changes with every such switch); confined to some cores
//! it costs them 10 to 20 ms. A quota that is reached is worse than none: each of its periods begins with a stampede.

use std::collections::HashMap;
use std::str::FromStr;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use thiserror::Error;

/// One core's worth of shares.
const SHARES_PER_CORE: u32 = 512;

/// The cores that sandboxes may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores(Vec<usize>);

/// Why a list of cores is none.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum NotCores {
    /// Neither a number nor two with a dash between.
    #[error("`{0}` is neither a core nor a range of cores; write for example 2-7,9")]
    Unreadable(String),
    /// Not there, or not given to this process.
    #[error("core {0} is not one that this process may use")]
    NotOurs(usize),
}

/// A list as the kernel writes it, like `2-7,9`, of cores that this process may use.
impl FromStr for Cores {
    type Err = NotCores;

    fn from_str(list: &str) -> Result<Self, NotCores> {
        Self::of_this_process().only(list)
    }
}

impl Cores {
    /// Asks the kernel. One core, the first, if it does not say.
    pub fn of_this_process() -> Self {
        let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
        let usable: Vec<usize> = (0..CpuSet::count())
            .filter(|core| set.is_set(*core).unwrap_or(false))
            .collect();
        Self(if usable.is_empty() { vec![0] } else { usable })
    }

    /// Those of them that a list names.
    fn only(&self, list: &str) -> Result<Self, NotCores> {
        let mut named = Vec::new();
        for part in list.split(',') {
            let unreadable = || NotCores::Unreadable(part.to_owned());
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<usize>().map_err(|_| unreadable());
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(unreadable());
            }
            // Stops at the first that is not there, however far the range goes.
            for core in first..=last {
                if !self.0.contains(&core) {
                    return Err(NotCores::NotOurs(core));
                }
                if !named.contains(&core) {
                    named.push(core);
                }
            }
        }
        Ok(Self(named))
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The cores that a sandbox is made with, before it gets its own: one more, if it has only one. gVisor's kernel counts
    /// them once, and with a single one it lets its own threads wait for each other, up to 10 ms a time.
    pub(crate) fn at_birth(&self, own: &[usize]) -> Vec<usize> {
        let mut cores = own.to_vec();
        if let [one] = own {
            cores.extend(self.0.iter().copied().find(|core| core != one));
        }
        cores
    }

    /// The cores of a sandbox: as many as its shares are worth, but one is left to the others wherever there is more than
    /// one. Those with the fewest sandboxes, as `load` counts them; among equals, places follow each other around.
    pub(crate) fn of(&self, shares: u32, place: u32, load: impl Fn(usize) -> usize) -> Vec<usize> {
        let worth = shares.div_ceil(SHARES_PER_CORE) as usize;
        let count = worth.clamp(1, self.count().saturating_sub(1).max(1));
        let first = place as usize * count;
        let mut around: Vec<usize> = (first..first + self.count())
            .map(|n| self.0[n % self.count()])
            .collect();
        around.sort_by_key(|core| load(*core));
        around.truncate(count);
        around
    }
}

/// As the kernel and runsc write them: `0,3`.
pub(crate) fn list(cores: &[usize]) -> String {
    let numbers: Vec<String> = cores.iter().map(usize::to_string).collect();
    numbers.join(",")
}

/// Which sandbox is on which cores.
#[derive(Debug, Default)]
pub(crate) struct Assigned(HashMap<String, On>);

#[derive(Debug)]
struct On {
    cores: Vec<usize>,
    /// It has processes, or had.
    launched: bool,
}

impl Assigned {
    /// Chooses for a sandbox that is about to start. `lives` tells of one that was launched whether it has a process yet:
    /// one that ended by itself is not in the way of its successor.
    pub(crate) fn choose(
        &mut self,
        id: &str,
        cores: &Cores,
        (shares, place): (u32, u32),
        lives: impl Fn(&str) -> bool,
    ) -> Vec<usize> {
        let counted: Vec<&On> = self
            .0
            .iter()
            .filter(|(id, on)| !on.launched || lives(id))
            .map(|(_, on)| on)
            .collect();
        let load = |core| counted.iter().filter(|on| on.cores.contains(&core)).count();
        let cores = cores.of(shares, place, load);
        let on = On {
            cores: cores.clone(),
            launched: false,
        };
        self.0.insert(id.to_owned(), on);
        cores
    }

    /// One that was found again, on the cores that the kernel says (a list like `0-1,3`).
    pub(crate) fn found(&mut self, id: &str, list: &str, cores: &Cores) {
        // Of cores that are not for sandboxes any more nothing has to be known.
        let cores = cores.only(list.trim()).map_or_else(|_| Vec::new(), |c| c.0);
        let launched = true;
        self.0.insert(id.to_owned(), On { cores, launched });
    }

    /// The cores of one; none if it is not known.
    pub(crate) fn of(&self, id: &str) -> Vec<usize> {
        self.0
            .get(id)
            .map(|on| on.cores.clone())
            .unwrap_or_default()
    }

    /// It runs.
    pub(crate) fn launched(&mut self, id: &str) {
        if let Some(on) = self.0.get_mut(id) {
            on.launched = true;
        }
    }

    /// It ends.
    pub(crate) fn forget(&mut self, id: &str) {
        self.0.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cores: &[usize], shares: u32, place: u32, expected: &[usize]) {
        let found = Cores(cores.to_vec()).of(shares, place, |_| 0);
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
    fn a_sandbox_is_made_with_more_than_one_core() {
        for (all, own, expected) in [
            (&[0, 1][..], &[1][..], &[1, 0][..]),
            (&[4, 6, 8], &[4], &[4, 6]),
            (&[4, 6, 8], &[8, 4], &[8, 4]),
            (&[3], &[3], &[3]),
            (&[3], &[], &[]),
        ] {
            let born = Cores(all.to_vec()).at_birth(own);
            assert_eq!(born, expected, "{own:?} of {all:?}");
        }
    }

    #[test]
    fn who_begins_anew_does_not_come_to_a_neighbours_core() {
        let (cores, mut assigned) = (Cores(vec![0, 1]), Assigned::default());
        let one = (1024, 0);
        assert_eq!(assigned.choose("neighbour", &cores, one, |_| true), [0]);
        assigned.launched("neighbour");
        // Whatever its place: each start has another.
        for place in 1..6 {
            let name = format!("bomb-{place}");
            // The one before has ended and is not taken away yet.
            let lives = |id: &str| id == "neighbour";
            let chosen = assigned.choose(&name, &cores, (1024, place), lives);
            assert_eq!(chosen, [1], "at {place}");
            assigned.launched(&name);
        }
        // One that has not begun counts, too.
        assert_eq!(assigned.choose("a", &cores, (512, 6), |_| true), [0]);
        assigned.forget("neighbour");
        assigned.forget("a");
        assert_eq!(assigned.choose("b", &cores, (512, 1), |_| true), [0]);
        // Found again after a restart.
        let mut assigned = Assigned::default();
        assigned.found("x", "1\n", &cores);
        assert_eq!(assigned.choose("y", &cores, (512, 1), |_| true), [0]);
    }

    #[test]
    fn a_list_names_some_of_them() {
        let all = Cores(vec![0, 1, 2, 3, 6]);
        let cases: [(&str, Result<&[usize], NotCores>); 8] = [
            ("2", Ok(&[2])),
            ("1-3", Ok(&[1, 2, 3])),
            ("6,0-1, 1", Ok(&[6, 0, 1])),
            ("3-5", Err(NotCores::NotOurs(4))),
            ("0-18446744073709551615", Err(NotCores::NotOurs(4))),
            ("3-1", Err(NotCores::Unreadable("3-1".into()))),
            ("", Err(NotCores::Unreadable(String::new()))),
            ("1,x", Err(NotCores::Unreadable("x".into()))),
        ];
        for (list, expected) in cases {
            let found = all.only(list);
            assert_eq!(found, expected.map(|cores| Cores(cores.to_vec())), "{list}");
        }
    }

    #[test]
    fn this_process_has_a_core() {
        assert!(Cores::of_this_process().count() > 0);
    }
}
