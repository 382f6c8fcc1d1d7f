//! What is scarce and shared by all principals: counted over all and for each of them, so that one cannot take all of it.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// How many there are, and how many of them are each owner's. Holds no owner that has none.
#[derive(Debug, Default)]
pub struct Tally {
    all: usize,
    of: HashMap<Arc<str>, usize>,
}

impl Tally {
    /// One more of this owner's.
    pub fn add(&mut self, owner: &Arc<str>) {
        self.all += 1;
        match self.of.get_mut(owner) {
            Some(count) => *count += 1,
            None => {
                self.of.insert(Arc::clone(owner), 1);
            }
        }
    }

    /// One less of this owner's.
    pub fn take_off(&mut self, owner: &str) {
        let Some(count) = self.of.get_mut(owner) else {
            return;
        };
        self.all -= 1;
        *count -= 1;
        if *count == 0 {
            self.of.remove(owner);
        }
    }

    /// How many are this owner's.
    pub fn of(&self, owner: &str) -> usize {
        self.of.get(owner).copied().unwrap_or(0)
    }
}

/// Bounds of what is shared.
#[derive(Debug, Clone, Copy)]
pub struct ShareLimits {
    /// Over all.
    pub all_max: usize,
    /// Of one principal.
    pub share_max: usize,
}

/// Why there is none left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// All are taken.
    All,
    /// All that one principal may have are taken.
    Share,
}

/// Counts what is taken.
#[derive(Debug, Default)]
pub struct Shares(Mutex<Tally>);

/// One taken, until it is dropped.
#[derive(Debug)]
pub struct Share {
    of: Arc<Shares>,
    owner: Arc<str>,
}

impl Shares {
    /// Takes one.
    ///
    /// # Errors
    /// All, or this owner's share of them, are taken.
    pub fn take(self: &Arc<Self>, owner: &Arc<str>, limits: ShareLimits) -> Result<Share, Taken> {
        let mut tally = self.0.lock();
        if tally.all >= limits.all_max {
            return Err(Taken::All);
        }
        if tally.of(owner) >= limits.share_max {
            return Err(Taken::Share);
        }
        tally.add(owner);
        Ok(Share {
            of: Arc::clone(self),
            owner: Arc::clone(owner),
        })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.0.lock().take_off(&self.owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_owner_leaves_some_to_the_others_and_gives_back_what_it_had() {
        let shares = Arc::new(Shares::default());
        let limits = ShareLimits {
            all_max: 5,
            share_max: 3,
        };
        let take = |owner: &str| shares.take(&owner.into(), limits);
        let mut held: Vec<_> = (0..3).map(|_| take("a").unwrap()).collect();
        assert_eq!(take("a").unwrap_err(), Taken::Share);
        held.extend((0..2).map(|_| take("b").unwrap()));
        assert_eq!(take("b").unwrap_err(), Taken::All);
        assert_eq!(take("c").unwrap_err(), Taken::All);
        held.remove(0);
        held.push(take("a").unwrap());
        drop(held);
        let tally = shares.0.lock();
        assert_eq!((tally.all, tally.of.len()), (0, 0));
    }
}
