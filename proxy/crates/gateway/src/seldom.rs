//! Lines of the log that a peer can cause as often as it likes: so many in a while, and then a count of the rest.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Lets so many through in each period.
#[derive(Debug)]
pub struct Seldom {
    most: u32,
    every: Duration,
    period: Mutex<Option<Period>>,
}

#[derive(Debug)]
struct Period {
    since: Instant,
    let_through: u32,
    left_out: u64,
}

impl Seldom {
    /// `most` in each period of `every`.
    pub fn new(most: u32, every: Duration) -> Self {
        Self {
            most,
            every,
            period: Mutex::new(None),
        }
    }

    /// Whether one more may be said now, and how many were left out before it.
    pub fn admits(&self, now: Instant) -> Option<u64> {
        let mut held = self.period.lock();
        let period = held.get_or_insert(Period {
            since: now,
            let_through: 0,
            left_out: 0,
        });
        let mut left_out = 0;
        if now.saturating_duration_since(period.since) >= self.every {
            left_out = std::mem::take(&mut period.left_out);
            (period.since, period.let_through) = (now, 0);
        }
        if period.let_through < self.most {
            period.let_through += 1;
            return Some(left_out);
        }
        period.left_out += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_said_and_the_rest_is_counted() {
        let seldom = Seldom::new(2, Duration::from_secs(10));
        let begun = Instant::now();
        let at = |s: u64| seldom.admits(begun + Duration::from_secs(s));
        assert_eq!([at(0), at(1), at(2), at(9)], [Some(0), Some(0), None, None]);
        assert_eq!([at(10), at(11), at(12)], [Some(2), Some(0), None]);
        assert_eq!(at(30), Some(1));
    }
}
