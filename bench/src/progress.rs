//! Progress on standard error: one line per window, with the time left.

use std::io::Write;
use std::time::{Duration, Instant};

/// Counts windows.
pub struct Progress {
    total: usize,
    done: usize,
    start: Instant,
}

impl Progress {
    /// Starts the clock.
    pub fn new(total: usize) -> Progress {
        Progress {
            total,
            done: 0,
            start: Instant::now(),
        }
    }

    /// One window is over.
    pub fn step(&mut self, what: &str) {
        self.done += 1;
        let left = left(self.start.elapsed(), self.done, self.total);
        say(&format!(
            "[{:>4}/{}] {what}   ({} left)",
            self.done,
            self.total,
            clock(left)
        ));
    }

    /// All windows are over.
    pub fn done(&self) {
        say(&format!(
            "measured {} windows in {}",
            self.done,
            clock(self.start.elapsed())
        ));
    }
}

/// A line for people. A closed standard error must not end the run.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

fn left(elapsed: Duration, done: usize, total: usize) -> Duration {
    elapsed.mul_f64(total.saturating_sub(done) as f64 / done.max(1) as f64)
}

fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 60 {
        format!("{seconds} s")
    } else {
        format!("{}:{:02} min", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left() {
        assert_eq!(
            left(Duration::from_secs(10), 5, 20),
            Duration::from_secs(30)
        );
        assert_eq!(left(Duration::from_secs(10), 0, 0), Duration::ZERO);
        assert_eq!(
            (
                clock(Duration::from_secs(59)),
                clock(Duration::from_secs(61))
            ),
            ("59 s".into(), "1:01 min".into())
        );
    }
}
