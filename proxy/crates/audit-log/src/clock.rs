//! The wall clock, for what is data only: when a segment or a checkpoint was made, and what is old enough to remove.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How far the wall clock may be ahead of what can have passed before nothing is removed by it.
const AHEAD_MAX: Duration = Duration::from_secs(86_400);
/// How much later than the last record a time may have been believed: for so long a log that is open may have nothing to write.
const IDLE_MAX: Duration = Duration::from_secs(30 * 86_400);

/// Now, in microseconds since 1970; 0 if the clock stands before that.
pub(crate) fn unix_us() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// The time that a log begins with which is opened: the one it kept, `kept_us`, or what its last checkpoint says.
///
/// A clock that was years ahead once leaves a time to come; were that believed for ever, the next jump up to it would be as
/// well. So it counts for no more than the last checkpoint where the wall clock is behind it, or where it is later than any
/// log is idle for. What is wrong about this keeps records for longer: the earlier time lets less go.
pub(crate) fn known_at_opening(kept_us: Option<u64>, checkpoint_us: u64, wall_us: u64) -> u64 {
    let after = |us: u64, gap: Duration| us.saturating_add(gap.as_micros() as u64);
    let newest = after(wall_us, AHEAD_MAX).min(after(checkpoint_us, IDLE_MAX));
    match kept_us {
        Some(kept_us) if kept_us <= newest => kept_us,
        Some(kept_us) => kept_us.min(checkpoint_us),
        None => checkpoint_us,
    }
}

/// Tells a wall clock that was set from one that ran: a jump by a year must not empty the log.
///
/// What counts is the newest time that the log believed when it was last open, kept in a file of its own, and the time
/// that has run since: what checkpoints say was told by the clock that is doubted. So a machine whose clock is years
/// ahead removes nothing, however often it starts; one that was off for a week waits some days; and one that was off
/// for years keeps everything until somebody removes the file, who thereby says that the clock is right.
#[derive(Debug)]
pub(crate) struct ClockWatch {
    known_us: u64,
    ran: Instant,
}

impl ClockWatch {
    /// Begins with the newest time of the log.
    pub(crate) fn start(known_us: u64, ran: Instant) -> Self {
        ClockWatch { known_us, ran }
    }

    /// The newest time that is believed.
    pub(crate) fn known_us(&mut self, wall_us: u64, ran: Instant) -> u64 {
        // What it says about removing is no matter here.
        let _ = self.believed(wall_us, ran);
        self.known_us
    }

    /// The time that records may be removed by, or how far the wall clock is ahead of any time that can be believed.
    /// A clock that is behind removes less, and is taken at its word.
    pub(crate) fn believed(&mut self, wall_us: u64, ran: Instant) -> Result<u64, Duration> {
        let passed = ran.saturating_duration_since(self.ran).as_micros();
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        let expected_us = self.known_us.saturating_add(passed);
        let ahead = Duration::from_micros(wall_us.saturating_sub(expected_us));
        let believed = ahead <= AHEAD_MAX;
        *self = ClockWatch {
            known_us: if believed {
                wall_us.max(expected_us)
            } else {
                expected_us
            },
            ran,
        };
        if believed { Ok(wall_us) } else { Err(ahead) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const HOUR_US: u64 = 3_600_000_000;
    const WALL: u64 = 1_790_000_000_000_000;

    #[test]
    fn a_clock_that_is_ahead_is_believed_when_that_time_has_run() {
        let began = Instant::now();
        let mut watch = ClockWatch::start(WALL, began);
        let wall = WALL + 72 * HOUR_US;
        // Three days off, or three days too far: for two of them nobody can tell.
        for hours in [0, 1, 2, 24, 47] {
            let ran = began + hours * HOUR;
            let told = watch.believed(wall, ran);
            assert_eq!(told, Err((72 - hours) * HOUR), "after {hours} hours");
        }
        assert_eq!(watch.believed(wall, began + 48 * HOUR), Ok(wall));
    }

    #[test]
    fn a_jump_is_not_believed_the_second_time_either() {
        let began = Instant::now();
        let mut watch = ClockWatch::start(WALL, began);
        assert_eq!(
            watch.believed(WALL + HOUR_US, began + HOUR),
            Ok(WALL + HOUR_US)
        );
        let year = 365 * 24 * HOUR_US;
        for hours in 2..10 {
            let wall = WALL + year + u64::from(hours) * HOUR_US;
            assert_eq!(
                watch.believed(wall, began + hours * HOUR),
                Err(365 * 24 * HOUR)
            );
        }
        let right = WALL + 10 * HOUR_US;
        assert_eq!(watch.believed(right, began + 10 * HOUR), Ok(right));
    }

    #[test]
    fn a_time_to_come_that_was_kept_is_not_believed() {
        let (day, year) = (24 * HOUR_US, 365 * 24 * HOUR_US);
        let check = |kept, checkpoint, wall, known| {
            assert_eq!(known_at_opening(kept, checkpoint, wall), known);
        };
        check(None, WALL, WALL, WALL);
        // Ten years ahead once, and now right; or damaged.
        check(Some(WALL + 10 * year), WALL, WALL + HOUR_US, WALL);
        check(Some(u64::MAX), WALL, WALL + HOUR_US, WALL);
        check(Some(u64::MAX), WALL, u64::MAX, WALL);
        check(Some(WALL + 20 * day), WALL, WALL + HOUR_US, WALL);
        // The same, and the clock is ahead again after every start.
        check(Some(WALL + 10 * year), WALL, WALL + 10 * year, WALL);
        // Nothing was written for a while, and the log was open.
        let kept = WALL + 3 * day;
        check(Some(kept), WALL, kept + HOUR_US, kept);
        // The clock jumped, and the checkpoints with it.
        check(Some(WALL), WALL + 10 * year, WALL + 10 * year, WALL);
        // It is behind, as where nothing keeps the time.
        check(Some(WALL), WALL - HOUR_US, 5, WALL - HOUR_US);
    }

    #[test]
    fn a_clock_that_was_behind_for_a_while_is_right_again() {
        let began = Instant::now();
        let mut watch = ClockWatch::start(WALL, began);
        assert_eq!(watch.believed(5, began + HOUR), Ok(5));
        let right = WALL + 2 * HOUR_US;
        assert_eq!(watch.believed(right, began + 2 * HOUR), Ok(right));
    }
}
