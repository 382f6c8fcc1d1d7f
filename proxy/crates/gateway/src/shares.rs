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
    /// So many more of this owner's.
    pub fn add(&mut self, owner: &Arc<str>, more: usize) {
        self.all += more;
        match self.of.get_mut(owner) {
            Some(count) => *count += more,
            None => {
                self.of.insert(Arc::clone(owner), more);
            }
        }
    }

    /// So many less of this owner's; no more than there are.
    pub fn take_off(&mut self, owner: &str, less: usize) {
        let Some(count) = self.of.get_mut(owner) else {
            return;
        };
        let less = less.min(*count);
        self.all -= less;
        *count -= less;
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

/// What one taker has, until it is dropped.
#[derive(Debug)]
pub struct Share {
    of: Arc<Shares>,
    owner: Arc<str>,
    count: usize,
}

impl Shares {
    /// Takes one.
    ///
    /// # Errors
    /// All, or this owner's share of them, are taken.
    pub fn take(self: &Arc<Self>, owner: &Arc<str>, limits: ShareLimits) -> Result<Share, Taken> {
        let mut share = self.none(owner);
        share.take_more(1, limits).map(|()| share)
    }

    /// Takes none yet.
    pub fn none(self: &Arc<Self>, owner: &Arc<str>) -> Share {
        Share {
            of: Arc::clone(self),
            owner: Arc::clone(owner),
            count: 0,
        }
    }
}

impl Share {
    /// Takes so many more, or none of them.
    ///
    /// # Errors
    /// They are more than are left of all, or of this owner's share.
    pub fn take_more(&mut self, more: usize, limits: ShareLimits) -> Result<(), Taken> {
        if more == 0 {
            return Ok(());
        }
        let mut tally = self.of.0.lock();
        if more > limits.all_max.saturating_sub(tally.all) {
            return Err(Taken::All);
        }
        if more > limits.share_max.saturating_sub(tally.of(&self.owner)) {
            return Err(Taken::Share);
        }
        tally.add(&self.owner, more);
        self.count += more;
        Ok(())
    }

    /// How many it has.
    pub fn count(&self) -> usize {
        self.count
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.count > 0 {
            self.of.0.lock().take_off(&self.owner, self.count);
        }
    }
}

#[cfg(test)]
impl Shares {
    /// How many are taken, and by how many owners.
    pub fn taken(&self) -> (usize, usize) {
        let tally = self.0.lock();
        (tally.all, tally.of.len())
    }

    /// How many are this owner's.
    pub fn of(&self, owner: &str) -> usize {
        self.0.lock().of(owner)
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
        assert_eq!(shares.taken(), (0, 0));
    }
}
