//! How long to wait before a server that ended is started again. No clock, no randomness of its own.

use std::time::Duration;

/// The numbers of a [`Backoff`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffPolicy {
    /// The first wait.
    pub first: Duration,
    /// No wait is longer.
    pub max: Duration,
    /// A server that lived this long was well: the next wait is a first one again.
    pub healthy_after: Duration,
}

impl Default for BackoffPolicy {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(250),
            max: Duration::from_secs(30),
            healthy_after: Duration::from_secs(60),
        }
    }
}

/// Doubling waits with a cap; each is drawn from the upper half of its value, so that many servers
/// which fell together do not start together.
///
/// ```
/// use std::time::Duration;
/// use stdio_child::{Backoff, BackoffPolicy};
/// let mut backoff = Backoff::new(BackoffPolicy::default(), 7);
/// let wait = backoff.after_exit(Duration::from_millis(3));
/// assert!(wait >= Duration::from_millis(125) && wait <= Duration::from_millis(250));
/// ```
#[derive(Clone, Debug)]
pub struct Backoff {
    policy: BackoffPolicy,
    failures: u32,
    jitter: u64,
}

impl Backoff {
    /// A back-off with no failure yet. Equal seeds give equal waits.
    pub fn new(policy: BackoffPolicy, seed: u64) -> Self {
        Self {
            policy,
            failures: 0,
            jitter: seed,
        }
    }

    /// The wait before the next start, after a server that lived for `uptime`.
    pub fn after_exit(&mut self, uptime: Duration) -> Duration {
        if uptime >= self.policy.healthy_after {
            self.failures = 0;
        }
        // 2^31 times any useful first wait is over any cap, so the shift may stop there.
        let factor = 1u32 << self.failures.min(31);
        let full = self
            .policy
            .first
            .saturating_mul(factor)
            .min(self.policy.max);
        self.failures = self.failures.saturating_add(1);
        let half = full / 2;
        half + (full - half).mul_f64(self.next_fraction())
    }

    /// How many starts in a row ended before the healthy time.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// SplitMix64, the top 53 bits as a number from 0 to just under 1.
    fn next_fraction(&mut self) -> f64 {
        self.jitter = self.jitter.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.jitter;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: BackoffPolicy = BackoffPolicy {
        first: Duration::from_millis(100),
        max: Duration::from_secs(5),
        healthy_after: Duration::from_secs(60),
    };

    /// Waits after each uptime (ms) lie in the upper half of the expected full wait (ms).
    fn check(uptimes_and_full: &[(u64, u64)]) {
        for seed in 0..200 {
            let mut backoff = Backoff::new(POLICY, seed);
            for &(uptime, full) in uptimes_and_full {
                let wait = backoff.after_exit(Duration::from_millis(uptime));
                let (low, high) = (full / 2, full);
                assert!(
                    (low..=high).contains(&(wait.as_millis() as u64)),
                    "seed {seed}: {wait:?} is not within {low}..={high} ms"
                );
            }
        }
    }

    #[test]
    fn doubles_up_to_the_cap() {
        check(&[
            (0, 100),
            (0, 200),
            (0, 400),
            (0, 800),
            (0, 1600),
            (0, 3200),
            (0, 5000),
            (0, 5000),
        ]);
    }

    #[test]
    fn a_healthy_run_starts_over() {
        check(&[(0, 100), (59_999, 200), (60_000, 100), (0, 200)]);
    }

    #[test]
    fn equal_seeds_give_equal_waits_and_others_differ() {
        let run = |seed| {
            let mut backoff = Backoff::new(POLICY, seed);
            (0..8)
                .map(|_| backoff.after_exit(Duration::ZERO))
                .collect::<Vec<_>>()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    #[test]
    fn never_overflows() {
        let policy = BackoffPolicy {
            first: Duration::MAX,
            max: Duration::MAX,
            healthy_after: Duration::MAX,
        };
        for policy in [
            policy,
            BackoffPolicy {
                first: Duration::ZERO,
                ..POLICY
            },
        ] {
            let mut backoff = Backoff::new(policy, 3);
            backoff.failures = u32::MAX - 1;
            for _ in 0..4 {
                assert!(backoff.after_exit(Duration::ZERO) <= policy.max);
            }
        }
    }
}
