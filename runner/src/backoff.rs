//! How long a server waits before its next start: after starts that failed, and when its sandboxes end by their own
//! fault again and again. A start costs the host a second of processor time that no plan limits, so one that is wanted
//! after every crash would be at the neighbours' cost.

use std::time::{Duration, Instant};

use runner_api::{ApiError, ErrorCode, GoneReason};

const FIRST: Duration = Duration::from_millis(500);
const MAX: Duration = Duration::from_secs(30);
/// Crashes that are followed by a start at once.
const CRASHES_FREE: u32 = 3;
/// One crash is forgotten after this long without another.
const FORGIVEN_AFTER: Duration = Duration::from_secs(20);

/// When a server may be started again, and why not now.
pub(crate) struct Backoff {
    failures: u32,
    crashes: u32,
    last_crash: Instant,
    not_before: Instant,
    last_error: Option<String>,
}

impl Backoff {
    /// Nothing has failed yet.
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            failures: 0,
            crashes: 0,
            last_crash: now,
            not_before: now,
            last_error: None,
        }
    }

    /// A start may begin.
    pub(crate) fn over(&self, now: Instant) -> bool {
        now >= self.not_before
    }

    /// A sandbox answers.
    pub(crate) fn ready(&mut self) {
        self.failures = 0;
        self.last_error = None;
    }

    /// A start came to nothing: each in a row doubles the wait.
    pub(crate) fn start_failed(&mut self, now: Instant, words: String) {
        self.not_before = now + doubled(self.failures);
        self.failures += 1;
        self.last_error = Some(words);
    }

    /// A sandbox that had served is gone. Only what its own program did counts; of one that outlived a runner nobody
    /// knows the exit code, so it may have been killed.
    pub(crate) fn ended(&mut self, now: Instant, reason: &GoneReason) {
        use GoneReason::{Exited, HostDiskFull, OutOfMemory, TooManyProcesses};
        if matches!(
            reason,
            OutOfMemory | TooManyProcesses | HostDiskFull | Exited { code: Some(_) }
        ) {
            self.crashed(now, reason);
        }
    }

    /// A crash, or a start that was killed from outside: the next one may well succeed.
    pub(crate) fn crashed(&mut self, now: Instant, reason: &GoneReason) {
        let quiet = now.saturating_duration_since(self.last_crash).as_secs();
        let forgiven = u32::try_from(quiet / FORGIVEN_AFTER.as_secs()).unwrap_or(u32::MAX);
        self.crashes = self.crashes.saturating_sub(forgiven) + 1;
        self.last_crash = now;
        if self.crashes > CRASHES_FREE {
            self.not_before = now + doubled(self.crashes - CRASHES_FREE - 1);
            let words = crate::words::of(reason);
            self.last_error = Some(format!("it ended again and again: {words}"));
        }
    }

    /// What went wrong last; none once a sandbox answers.
    pub(crate) fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// For those who want a sandbox meanwhile.
    pub(crate) fn refusal(&self, now: Instant) -> ApiError {
        let words = self.last_error().unwrap_or("the server did not start");
        let wait = self.not_before.saturating_duration_since(now);
        ApiError {
            retry_after_ms: Some(u64::try_from(wait.as_millis()).unwrap_or(0)),
            ..ApiError::new(ErrorCode::StartFailed, words)
        }
    }
}

/// The first wait, doubled so many times.
fn doubled(times: u32) -> Duration {
    FIRST.saturating_mul(1 << times.min(16)).min(MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRASH: GoneReason = GoneReason::Exited { code: Some(1) };

    /// How long it has to wait after each of these, in ms; numbers are seconds from the beginning.
    fn waits(events: &[(u64, GoneReason)]) -> Vec<u64> {
        let mut backoff = Backoff::new();
        let began = Instant::now();
        let waits = events.iter().map(|(at, reason)| {
            let now = began + Duration::from_secs(*at);
            backoff.ended(now, reason);
            let wait = backoff.refusal(now).retry_after_ms.unwrap_or_default();
            assert_eq!(backoff.over(now), wait == 0, "{reason:?} at {at} s");
            wait
        });
        waits.collect()
    }

    #[test]
    fn crashes_in_a_row_are_waited_for() {
        let crashes: Vec<_> = (0..12).map(|n| (n, CRASH)).collect();
        let expected = [
            0, 0, 0, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000,
        ];
        assert_eq!(waits(&crashes), expected);
    }

    #[test]
    fn seldom_crashes_and_other_ends_are_not() {
        let seldom: Vec<_> = (0..10).map(|n| (n * 20, CRASH)).collect();
        assert_eq!(waits(&seldom), [0; 10]);
        let other = [
            GoneReason::Killed,
            GoneReason::Idle,
            GoneReason::Exited { code: None },
        ];
        let other: Vec<_> = other
            .iter()
            .cycle()
            .take(9)
            .map(|r| (1, r.clone()))
            .collect();
        assert_eq!(waits(&other), [0; 9]);
    }

    #[test]
    fn a_wait_is_forgotten_with_its_crashes() {
        let mut events: Vec<_> = (0..5).map(|_| (0, GoneReason::OutOfMemory)).collect();
        // Three of the five are forgiven by then.
        events.push((60, GoneReason::OutOfMemory));
        assert_eq!(waits(&events), [0, 0, 0, 500, 1000, 0]);
    }

    #[test]
    fn failed_starts_double_the_wait_until_one_answers() {
        let mut backoff = Backoff::new();
        let now = Instant::now();
        for expected in [500, 1000, 2000] {
            backoff.start_failed(now, "no module".into());
            let refusal = backoff.refusal(now);
            assert_eq!(refusal.retry_after_ms, Some(expected));
            assert_eq!(refusal.message, "no module");
        }
        backoff.ready();
        assert_eq!(backoff.last_error(), None);
        backoff.start_failed(now, "again".into());
        assert_eq!(backoff.refusal(now).retry_after_ms, Some(500));
    }
}
