//! How long a server waits before its next start, after starts that failed.

use std::time::{Duration, Instant};

use runner_api::{ApiError, ErrorCode};

const FIRST: Duration = Duration::from_millis(500);
const MAX: Duration = Duration::from_secs(30);

/// When a server may be started again, and why not now.
pub(crate) struct Backoff {
    failures: u32,
    not_before: Instant,
    last_error: Option<String>,
}

impl Backoff {
    /// Nothing has failed yet.
    pub(crate) fn new() -> Self {
        Self {
            failures: 0,
            not_before: Instant::now(),
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
