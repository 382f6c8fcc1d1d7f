//! Bodies of requests that are held: their bytes, over all principals and for each of them.
//!
//! A body is held from its first byte until it was decided about. What one principal sends slowly, or all at once, would else be
//! as much memory as it has connections and streams. Most bodies are short and come at once: the first bytes of each are free,
//! and cost neither a lock nor an allocation. What comes after them is taken in steps, before it is held.

use std::sync::Arc;

use metrics::{Counter, Gauge, counter, gauge};

use crate::shares::{Share, ShareLimits, Shares, Taken};

/// As much of each body is not counted.
const FREE_BYTES: usize = 64 << 10;
/// A body that is longer takes so many at once: 16 times for one of 4 MiB.
const STEP_BYTES: usize = 256 << 10;

/// All bodies that are held.
pub(crate) struct Bodies {
    shares: Arc<Shares>,
    bytes: Gauge,
    refused_of_all: Counter,
    refused_of_share: Counter,
}

/// What one body takes, until it is dropped.
#[derive(Default)]
pub(crate) struct Held(Option<Taking>);

struct Taking {
    share: Share,
    bodies: Arc<Bodies>,
}

/// Whose body it is, and what he may hold.
pub(crate) struct Holder<'a> {
    pub(crate) bodies: &'a Arc<Bodies>,
    pub(crate) owner: &'a Arc<str>,
    pub(crate) limits: ShareLimits,
}

impl Default for Bodies {
    fn default() -> Self {
        let refused = |reason| counter!("weir_bodies_refused_total", "reason" => reason);
        Self {
            shares: Arc::default(),
            bytes: gauge!("weir_bodies_bytes"),
            refused_of_all: refused("all"),
            refused_of_share: refused("principal"),
        }
    }
}

impl Bodies {
    /// What a body takes that is no longer than this: a bound below it would refuse it also where it is alone.
    pub fn taken_by_one(bytes_max: usize) -> usize {
        bytes_max.div_ceil(STEP_BYTES).saturating_mul(STEP_BYTES)
    }

    fn count_refused(&self, taken: Taken) {
        match taken {
            Taken::All => self.refused_of_all.increment(1),
            Taken::Share => self.refused_of_share.increment(1),
        }
    }
}

impl Held {
    /// The body is so long now. Asked before that much of it is held.
    ///
    /// # Errors
    /// There is no room for it; what it took before stays taken until this is dropped.
    #[inline]
    pub fn grow_to(&mut self, bytes: usize, holder: &Holder<'_>) -> Result<(), Taken> {
        let taken = self.0.as_ref().map_or(0, |taking| taking.share.count());
        match bytes.checked_sub(FREE_BYTES + taken) {
            None | Some(0) => Ok(()),
            Some(over) => self.take(over, holder),
        }
    }

    #[cold]
    fn take(&mut self, over: usize, holder: &Holder<'_>) -> Result<(), Taken> {
        let more = over.div_ceil(STEP_BYTES) * STEP_BYTES;
        let bodies = holder.bodies;
        let taking = self.0.get_or_insert_with(|| Taking {
            share: bodies.shares.none(holder.owner),
            bodies: Arc::clone(bodies),
        });
        let took = taking.share.take_more(more, holder.limits);
        match took {
            Ok(()) => bodies.bytes.increment(more as f64),
            Err(taken) => bodies.count_refused(taken),
        }
        took
    }

    /// It is held no longer.
    pub fn end(&mut self) {
        self.0 = None;
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        self.bodies.bytes.decrement(self.share.count() as f64);
    }
}

impl std::fmt::Debug for Bodies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bodies")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1 << 10;
    const MIB: usize = 1 << 20;

    fn holder<'a>(bodies: &'a Arc<Bodies>, owner: &'a Arc<str>, limits: ShareLimits) -> Holder<'a> {
        Holder {
            bodies,
            owner,
            limits,
        }
    }

    #[test]
    fn a_body_takes_steps_beyond_what_is_free() {
        let limits = ShareLimits {
            all_max: 8 * MIB,
            share_max: 4 * MIB,
        };
        // How long it grows, and what is taken then, or why not.
        let cases: [(&[usize], Result<usize, Taken>); 9] = [
            (&[0], Ok(0)),
            (&[1], Ok(0)),
            (&[64 * KIB], Ok(0)),
            (&[64 * KIB + 1], Ok(256 * KIB)),
            (&[100, 300 * KIB, 320 * KIB], Ok(256 * KIB)),
            (&[320 * KIB, 320 * KIB + 1], Ok(512 * KIB)),
            (&[4 * MIB], Ok(4 * MIB)),
            (&[4 * MIB + 64 * KIB], Ok(4 * MIB)),
            (&[4 * MIB + 64 * KIB + 1], Err(Taken::Share)),
        ];
        for (lengths, expected) in cases {
            let bodies = Arc::<Bodies>::default();
            let owner = "a".into();
            let mut held = Held::default();
            let grown = lengths
                .iter()
                .try_for_each(|bytes| held.grow_to(*bytes, &holder(&bodies, &owner, limits)));
            let taken = grown.map(|()| bodies.shares.of("a"));
            assert_eq!(taken, expected, "{lengths:?}");
            assert_eq!(held.0.is_some(), expected != Ok(0), "{lengths:?}");
            drop(held);
            assert_eq!(bodies.shares.taken(), (0, 0), "{lengths:?}");
        }
    }

    #[test]
    fn the_longest_message_fits_where_it_is_alone() {
        for bytes_max in [1024, 65_537, MIB + 1, 4 * MIB, 5_000_000, 64 * MIB] {
            let one = Bodies::taken_by_one(bytes_max);
            let limits = ShareLimits {
                all_max: one,
                share_max: one,
            };
            let (bodies, owner) = (Arc::default(), "a".into());
            let mut held = Held::default();
            // What is longer is known by its last piece, which has at most as much as is free.
            for bytes in [bytes_max, bytes_max + FREE_BYTES] {
                let grown = held.grow_to(bytes, &holder(&bodies, &owner, limits));
                assert_eq!(grown, Ok(()), "{bytes} of {bytes_max}");
            }
        }
    }

    /// Bodies come, grow, are refused, end and break off in any order, and limits change meanwhile.
    #[test]
    fn whatever_happens_no_bound_is_passed_and_nothing_stays() {
        for seed in 1..=200_u64 {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut random = |below: usize| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state % below as u64) as usize
            };
            let bodies = Arc::<Bodies>::default();
            let owners: [Arc<str>; 3] = ["a".into(), "b".into(), "c".into()];
            let mut open: Vec<(usize, usize, Held)> = Vec::new();
            let mut limits = ShareLimits {
                all_max: 8 * MIB,
                share_max: 3 * MIB,
            };
            for _ in 0..400 {
                match random(8) {
                    0..=2 => open.push((random(3), 0, Held::default())),
                    3..=5 if !open.is_empty() => {
                        let at = random(open.len());
                        let (owner, length, held) = &mut open[at];
                        *length += 1 + random(600 * KIB);
                        let owner = &owners[*owner];
                        let (before, of) = (bodies.shares.taken().0, bodies.shares.of(owner));
                        match held.grow_to(*length, &holder(&bodies, owner, limits)) {
                            Ok(()) => {
                                let (all, of_owner) =
                                    (bodies.shares.taken().0, bodies.shares.of(owner));
                                assert!(
                                    all == before || all <= limits.all_max,
                                    "seed {seed}: {all}"
                                );
                                assert!(
                                    of_owner == of || of_owner <= limits.share_max,
                                    "seed {seed}: {of_owner}"
                                );
                            }
                            Err(_) => {
                                assert_eq!(bodies.shares.taken().0, before, "seed {seed}");
                                open.swap_remove(at);
                            }
                        }
                    }
                    6 if !open.is_empty() => {
                        let at = random(open.len());
                        open.swap_remove(at);
                    }
                    7 => limits.share_max = (1 + random(6)) * MIB,
                    _ => {}
                }
                let counted: usize = open
                    .iter()
                    .filter_map(|(_, _, held)| Some(held.0.as_ref()?.share.count()))
                    .sum();
                assert_eq!(bodies.shares.taken().0, counted, "seed {seed}");
                for (_, length, held) in &open {
                    let share = held.0.as_ref().map_or(0, |taking| taking.share.count());
                    assert!(length.saturating_sub(FREE_BYTES) <= share, "seed {seed}");
                    assert!(share < length + STEP_BYTES, "seed {seed}");
                }
            }
            drop(open);
            assert_eq!(bodies.shares.taken(), (0, 0), "seed {seed}");
        }
    }

    #[test]
    fn threads_that_take_and_leave_at_once_leave_nothing() {
        let bodies = Arc::<Bodies>::default();
        let limits = ShareLimits {
            all_max: 4 * MIB,
            share_max: 2 * MIB,
        };
        std::thread::scope(|scope| {
            for n in 0..4_usize {
                let bodies = &bodies;
                scope.spawn(move || {
                    let owner = ["a", "b"][n % 2].into();
                    for round in 0..2000 {
                        let mut held = Held::default();
                        let holder = holder(bodies, &owner, limits);
                        for step in 1..6 {
                            let bytes = step * (300 * KIB + round);
                            if held.grow_to(bytes, &holder).is_err() {
                                break;
                            }
                        }
                        assert!(bodies.shares.of(&owner) <= limits.share_max);
                    }
                });
            }
        });
        assert_eq!(bodies.shares.taken(), (0, 0));
    }
}
