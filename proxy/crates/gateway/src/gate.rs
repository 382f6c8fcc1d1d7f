//! Call limits: concurrency and rate, per key, server and tenant.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use domain::{CallLimits, RateLimit};
use parking_lot::Mutex;

/// Shortest wait that a refusal asks for.
const RETRY_MIN: Duration = Duration::from_secs(1);

/// Bounds the calls of one key, server or tenant.
#[derive(Debug)]
pub struct Gate {
    concurrent_max: u32,
    running: AtomicU32,
    bucket: Option<Mutex<Bucket>>,
    limits: CallLimits,
}

/// Held while a call runs; dropping it ends the call.
#[derive(Debug)]
pub struct Permit(Arc<Gate>);

/// A call that may not run now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// When to try again.
    pub retry_after: Duration,
}

impl Gate {
    /// A gate with these limits; absent limits bound nothing.
    pub fn new(limits: &CallLimits) -> Arc<Self> {
        Arc::new(Self {
            concurrent_max: limits.concurrent_calls_max.unwrap_or(u32::MAX),
            running: AtomicU32::new(0),
            bucket: limits
                .rate
                .map(|rate| Mutex::new(Bucket::full(rate, Instant::now()))),
            limits: limits.clone(),
        })
    }

    /// The limits it was made with, to tell whether a reload changed them.
    pub fn limits(&self) -> &CallLimits {
        &self.limits
    }

    /// Lets one call in.
    ///
    /// # Errors
    /// Says how long to wait when the rate or the concurrency is used up.
    pub fn enter(self: &Arc<Self>) -> Result<Permit, Refused> {
        self.enter_at(Instant::now())
    }

    fn enter_at(self: &Arc<Self>, now: Instant) -> Result<Permit, Refused> {
        let taken = self
            .running
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| {
                (n < self.concurrent_max).then(|| n + 1)
            });
        if taken.is_err() {
            return Err(Refused {
                retry_after: RETRY_MIN,
            });
        }
        let permit = Permit(Arc::clone(self));
        match &self.bucket {
            Some(bucket) => bucket.lock().take(now).map(|()| permit),
            None => Ok(permit),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

#[derive(Debug)]
struct Bucket {
    rate: RateLimit,
    tokens: f64,
    filled_at: Instant,
}

impl Bucket {
    fn full(rate: RateLimit, now: Instant) -> Self {
        Self {
            rate,
            tokens: f64::from(rate.burst),
            filled_at: now,
        }
    }

    fn take(&mut self, now: Instant) -> Result<(), Refused> {
        let passed = now.saturating_duration_since(self.filled_at).as_secs_f64();
        self.tokens = (self.tokens + passed * self.rate.per_second).min(f64::from(self.rate.burst));
        self.filled_at = now;
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        let wait = (1.0 - self.tokens) / self.rate.per_second.max(f64::MIN_POSITIVE);
        let wait = Duration::try_from_secs_f64(wait.min(3600.0)).unwrap_or(RETRY_MIN);
        Err(Refused {
            retry_after: wait.max(RETRY_MIN),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrency_is_bounded_and_given_back() {
        let gate = Gate::new(&CallLimits {
            concurrent_calls_max: Some(2),
            rate: None,
        });
        let first = gate.enter().unwrap();
        let _second = gate.enter().unwrap();
        assert_eq!(gate.enter().unwrap_err().retry_after, RETRY_MIN);
        drop(first);
        assert!(gate.enter().is_ok());
    }

    #[test]
    fn a_refused_rate_gives_its_concurrency_back() {
        let rate = RateLimit {
            per_second: 0.1,
            burst: 1,
        };
        let gate = Gate::new(&CallLimits {
            concurrent_calls_max: Some(1),
            rate: Some(rate),
        });
        drop(gate.enter().unwrap());
        for _ in 0..3 {
            assert!(gate.enter().unwrap_err().retry_after > RETRY_MIN);
        }
    }

    #[test]
    fn the_bucket_refills_evenly_and_never_over_its_burst() {
        let start = Instant::now();
        let mut bucket = Bucket::full(
            RateLimit {
                per_second: 2.0,
                burst: 2,
            },
            start,
        );
        assert!(bucket.take(start).is_ok() && bucket.take(start).is_ok());
        assert!(bucket.take(start).is_err());
        assert!(bucket.take(start + Duration::from_millis(600)).is_ok());
        let later = start + Duration::from_secs(3600);
        assert!(bucket.take(later).is_ok() && bucket.take(later).is_ok());
        assert!(bucket.take(later).is_err());
    }
}
