//! How long a plugin may take: so much of a processor, not of the wall clock.
//!
//! The engine's clock ends plugins by the wall. On a busy machine a decent plugin may wait for a
//! processor longer than it runs, and a hostile one of another tenant may see to that; so when the
//! clock strikes, what the thread really used decides.
//!
//! ```text
//! half the time on the wall: look at the thread's clock --> half the time used since then: ended
//!                                                       \-> less: what is left, again
//! ```
//!
//! Looking costs a system call and is done only by what runs that long. On an idle machine a plugin
//! without end is ended when its time is up; nowhere can it use more than a few ticks above it.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use wasmtime::{Trap, UpdateDeadline};

/// However little it got of a processor, nothing waits longer than so many times its time.
const WALL_TIMES: u32 = 20;

/// Until when one call may run.
#[derive(Debug)]
pub(crate) struct Deadline {
    half: Duration,
    until: Instant,
    used: Option<Duration>,
}

impl Default for Deadline {
    fn default() -> Self {
        Self {
            half: Duration::ZERO,
            until: Instant::now(),
            used: None,
        }
    }
}

impl Deadline {
    /// Begins anew; gives the ticks after which [`Deadline::reached`] is to be asked.
    pub(crate) fn set(&mut self, began: Instant, time: Duration) -> u64 {
        self.half = time / 2;
        self.until = began + time * WALL_TIMES;
        self.used = None;
        ticks(self.half)
    }

    /// For work of the host on behalf of the plugin, from now.
    pub(crate) fn watch(&self) -> Watch {
        Watch {
            used: thread_used(),
            time: self.half * 2,
        }
    }

    /// The ticks are over: the plugin is ended, or goes on for some.
    pub(crate) fn reached(&mut self) -> wasmtime::Result<UpdateDeadline> {
        self.judge(thread_used(), Instant::now())
    }

    fn judge(&mut self, used: Duration, now: Instant) -> wasmtime::Result<UpdateDeadline> {
        let since = used.saturating_sub(*self.used.get_or_insert(used));
        // A tick may be cut short by the one before it.
        let left = self.half.saturating_sub(since);
        if now >= self.until || (since > Duration::ZERO && left < TICK) {
            return Err(Trap::Interrupt.into());
        }
        Ok(UpdateDeadline::Continue(ticks(left)))
    }
}

/// How much of a processor one piece of work took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watch {
    used: Duration,
    time: Duration,
}

impl Watch {
    /// Whether it took longer than the plugin has for everything.
    pub(crate) fn is_over(&self) -> bool {
        thread_used().saturating_sub(self.used) > self.time
    }
}

const TICK: Duration = Duration::from_millis(1);

/// Ticks until a deadline; the one under way does not count.
fn ticks(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX - 1) + 1
}

/// What this thread has used of a processor.
fn thread_used() -> Duration {
    // Linux has this clock; without it every plugin would be ended at its first look.
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::MAX, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn ticks_given(judged: wasmtime::Result<UpdateDeadline>) -> Option<u64> {
        match judged {
            Ok(UpdateDeadline::Continue(ticks)) => Some(ticks),
            _ => None,
        }
    }

    #[test]
    fn what_runs_all_the_time_is_ended_and_what_waits_is_not() {
        let began = Instant::now();
        let mut deadline = Deadline::default();
        assert_eq!(deadline.set(began, MS * 10), 6);
        assert_eq!(
            ticks_given(deadline.judge(MS * 100, began + MS * 6)),
            Some(6)
        );
        // It got one millisecond of six.
        assert_eq!(
            ticks_given(deadline.judge(MS * 101, began + MS * 12)),
            Some(5)
        );
        assert_eq!(
            ticks_given(deadline.judge(MS * 103, began + MS * 17)),
            Some(3)
        );
        assert_eq!(ticks_given(deadline.judge(MS * 105, began + MS * 20)), None);
        deadline.set(began, MS * 10);
        assert_eq!(
            ticks_given(deadline.judge(MS * 100, began + MS * 6)),
            Some(6)
        );
        assert_eq!(ticks_given(deadline.judge(MS * 105, began + MS * 12)), None);
    }

    #[test]
    fn nothing_waits_for_ever() {
        let began = Instant::now();
        let mut deadline = Deadline::default();
        deadline.set(began, MS * 10);
        assert!(ticks_given(deadline.judge(MS, began + MS * 6)).is_some());
        assert!(ticks_given(deadline.judge(MS, began + MS * 199)).is_some());
        assert!(ticks_given(deadline.judge(MS, began + MS * 200)).is_none());
    }

    #[test]
    fn the_least_time_is_enough_to_look_once() {
        let began = Instant::now();
        let mut deadline = Deadline::default();
        assert_eq!(deadline.set(began, Duration::ZERO), 1);
        assert!(ticks_given(deadline.judge(MS, began)).is_none());
    }
}
