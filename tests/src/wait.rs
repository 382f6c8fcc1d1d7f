//! Waiting for conditions.

use std::time::{Duration, Instant};

/// How long anything may take that is expected to happen.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Asks `f` again and again until it has an answer. Panics with `what` when `timeout` is over.
pub fn until<T>(what: &str, timeout: Duration, mut f: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(found) = f() {
            return found;
        }
        assert!(
            Instant::now() < deadline,
            "gave up after {timeout:?} waiting for {what}"
        );
        // A poll interval, not a synchronisation: the outcome does not depend on its length.
        std::thread::sleep(Duration::from_millis(5));
    }
}
