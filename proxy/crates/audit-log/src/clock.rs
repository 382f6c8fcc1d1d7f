//! The wall clock, for what is data only: when a segment or a checkpoint was made, and what is old enough to remove.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How far the wall clock may stray from elapsed time before nothing is removed by it.
const STRAY_MAX: Duration = Duration::from_secs(3600);

/// Now, in microseconds since 1970; 0 if the clock stands before that.
pub(crate) fn unix_us() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Tells a wall clock that was set from one that ran: a jump by a year must not empty the log.
#[derive(Debug)]
pub(crate) struct ClockWatch {
    wall_us: u64,
    ran: Instant,
}

impl ClockWatch {
    pub(crate) fn start(wall_us: u64, ran: Instant) -> Self {
        ClockWatch { wall_us, ran }
    }

    /// Whether the wall clock agrees with the time that passed since the last look.
    pub(crate) fn agrees(&mut self, wall_us: u64, ran: Instant) -> bool {
        let expected = self
            .wall_us
            .saturating_add(ran.duration_since(self.ran).as_micros() as u64);
        let stray = Duration::from_micros(expected.abs_diff(wall_us));
        *self = ClockWatch { wall_us, ran };
        stray <= STRAY_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_is_told_once_and_running_on_agrees() {
        let (wall, ran) = (1_790_000_000_000_000, Instant::now());
        let year = 365 * 86_400_000_000;
        let mut watch = ClockWatch::start(wall, ran);
        let hour = Duration::from_secs(3600);
        assert!(watch.agrees(wall + 3_600_000_000, ran + hour));
        assert!(!watch.agrees(wall + year, ran + 2 * hour));
        assert!(watch.agrees(
            wall + year + 60_000_000,
            ran + 2 * hour + Duration::from_secs(60)
        ));
        assert!(!watch.agrees(wall, ran + 3 * hour));
    }
}
