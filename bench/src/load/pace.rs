//! When open-loop calls are due, and waiting for that moment without burning a core.

use std::time::{Duration, Instant};

/// The time of the n-th call from the start, without the drift of adding up rounded gaps.
pub fn due(n: u64, per_second: u32) -> Duration {
    let nanos = u128::from(n) * 1_000_000_000 / u128::from(per_second.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Sleeps until `due`. Says how late we woke, or `None` when the time was already over on entry: then the connection
/// was busy and the delay is the target's.
pub fn wait_until(due: Instant) -> Option<Duration> {
    let now = Instant::now();
    if now >= due {
        return None;
    }
    std::thread::sleep(due - now);
    Some(Instant::now().saturating_duration_since(due))
}

/// Asks the kernel to wake this thread on time, not up to 50 us later to save power.
pub fn sharpen() {
    let _ = nix::sys::prctl::set_timerslack(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_times_do_not_drift() {
        assert_eq!(due(0, 3), Duration::ZERO);
        assert_eq!(due(3_000_000, 3), Duration::from_secs(1_000_000));
        assert_eq!(due(1, 1000), Duration::from_millis(1));
        assert_eq!(due(5, 0), Duration::from_secs(5));
    }

    #[test]
    fn waiting_is_never_early_and_overdue_is_not_our_lateness() {
        let due = Instant::now() + Duration::from_millis(3);
        assert!(wait_until(due).is_some());
        assert!(Instant::now() >= due);
        assert_eq!(wait_until(due), None);
    }
}
