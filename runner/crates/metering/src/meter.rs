//! From readings to windows. Pure: readings and the time come in.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::{ServerId, TenantId};
use serde::{Deserialize, Serialize};

use crate::window::{CLOSED_MAX, Usage, Window};

/// Sandboxes that are remembered; a runner has far fewer.
pub const READINGS_MAX: usize = 10_000;
const HOUR_MS: u64 = 3_600_000;
/// A gap that is longer was no running machine, whatever the clocks say: memory is not charged beyond it.
const GAP_MS_MAX: u64 = 6 * HOUR_MS;

/// The time, twice.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// Milliseconds since 1970. May jump.
    pub unix_ms: u64,
    /// Milliseconds since the machine was started (CLOCK_BOOTTIME). Never jumps, begins again with the machine.
    pub boot_ms: u64,
}

/// A counter that only grows as long as its source lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counter {
    /// The amount since the source began.
    pub value: u64,
    /// Another number whenever the source began again, such as the start time of the process that counts. A counter
    /// of the kernel keeps 0.
    pub epoch: u64,
}

/// What one sandbox has used since it began, and what it holds now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The sandbox's id, never used again for another.
    pub sandbox: String,
    /// The owner.
    pub tenant: TenantId,
    /// The server.
    pub server: ServerId,
    /// Processor time, in microseconds.
    pub cpu_us: Counter,
    /// Bytes to the outside.
    pub egress_bytes: Counter,
    /// Leases given.
    pub requests: Counter,
    /// Memory now, in bytes.
    pub memory_bytes: u64,
    /// Writable storage now, in bytes.
    pub storage_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Last {
    boot_ms: u64,
    reading: Reading,
}

/// All that is remembered. Serialised it is the file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Meter {
    /// Names the start of the machine that `boot_ms` counts from.
    boot_id: String,
    next_seq: u64,
    last: BTreeMap<String, Last>,
    open: Vec<Window>,
    closed: Vec<Window>,
    /// The highest number that is in the file.
    #[serde(skip)]
    saved: Saved,
}

/// Set by who writes the file, which changes nothing about the meter itself.
#[derive(Debug, Default)]
struct Saved(AtomicU64);

impl Clone for Saved {
    fn clone(&self) -> Self {
        Self(self.0.load(Ordering::Relaxed).into())
    }
}

impl PartialEq for Saved {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Meter {
    /// To be called once after loading: with another `boot_id` than before no time has passed for anybody, and no sandbox
    /// is left. True then.
    pub fn begin(&mut self, boot_id: &str) -> bool {
        let another = self.boot_id != boot_id;
        if another {
            self.last.clear();
            self.boot_id = boot_id.to_owned();
        }
        another
    }

    /// Counts a round of readings. The same reading again counts nothing; one that is left out counts later.
    ///
    /// Sandboxes above [`READINGS_MAX`] are left out and their number given back.
    pub fn observe(&mut self, now: Now, readings: &[Reading]) -> usize {
        let hour = now.unix_ms / HOUR_MS;
        self.close_others(hour);
        let mut left_out = 0;
        for reading in readings {
            if self.last.len() >= READINGS_MAX && !self.last.contains_key(&reading.sandbox) {
                left_out += 1;
                continue;
            }
            let before = self.last.get(&reading.sandbox);
            let reading = &read_again(before.map(|last| &last.reading), reading);
            let passed_ms = before
                .map_or(0, |last| now.boot_ms.saturating_sub(last.boot_ms))
                .min(GAP_MS_MAX);
            let used = difference(before.map(|last| &last.reading), reading, passed_ms);
            let boot_ms = before.map_or(now.boot_ms, |last| last.boot_ms.max(now.boot_ms));
            self.last.insert(
                reading.sandbox.clone(),
                Last {
                    boot_ms,
                    reading: reading.clone(),
                },
            );
            self.spread(reading, used, now.unix_ms, passed_ms);
        }
        left_out
    }

    /// Counts the last reading of a sandbox: from now on it holds nothing. It is remembered until [`Meter::forget`], so
    /// that a second time counts nothing.
    pub fn finish(&mut self, now: Now, reading: &Reading) {
        self.observe(now, std::slice::from_ref(reading));
        if let Some(last) = self.last.get_mut(&reading.sandbox) {
            last.reading.memory_bytes = 0;
            last.reading.storage_bytes = 0;
        }
    }

    /// Nothing is left of a sandbox, so nobody can read its counters once more.
    pub fn forget(&mut self, sandbox: &str) {
        self.last.remove(sandbox);
    }

    /// Forgets all sandboxes but these.
    pub fn keep(&mut self, alive: impl Fn(&str) -> bool) {
        self.last.retain(|sandbox, _| alive(sandbox));
    }

    /// Closed windows after number `after`, oldest first, at most `max`; only those that are in the file. A window that
    /// was read and then lost in a crash would come back under its number with other amounts.
    pub fn closed(&self, after: u64, max: usize) -> &[Window] {
        let saved = self.saved.0.load(Ordering::Relaxed);
        let to = self.closed.partition_point(|window| window.seq <= saved);
        let from = self.closed.partition_point(|window| window.seq <= after);
        let rest = &self.closed[from.min(to)..to];
        &rest[..rest.len().min(max)]
    }

    /// All that there is now is in the file.
    pub(crate) fn is_saved(&self) {
        self.saved.0.store(self.next_seq, Ordering::Relaxed);
    }

    /// Lets go of windows up to number `upto`.
    pub fn acknowledge(&mut self, upto: u64) {
        let count = self.closed.partition_point(|window| window.seq <= upto);
        self.closed.drain(..count);
    }

    /// Closes what is open, though its hour is not over.
    pub fn close(&mut self) {
        self.close_others(u64::MAX);
    }

    /// What the windows that are still open hold, for who wants to see it live.
    pub fn open(&self) -> &[Window] {
        &self.open
    }

    fn close_others(&mut self, hour: u64) {
        let hour_unix_s = hour.saturating_mul(HOUR_MS / 1000);
        let mut open = std::mem::take(&mut self.open);
        open.retain(|window| {
            let over = window.hour_unix_s != hour_unix_s;
            if over && self.closed.len() < CLOSED_MAX {
                self.next_seq += 1;
                self.closed.push(Window {
                    seq: self.next_seq,
                    ..window.clone()
                });
                return false;
            }
            true
        });
        self.open = open;
    }

    /// Gives each hour its part of what was used in the `passed_ms` before `unix_ms`.
    fn spread(&mut self, reading: &Reading, mut used: Usage, unix_ms: u64, passed_ms: u64) {
        let mut end = unix_ms;
        let mut left_ms = passed_ms;
        loop {
            let in_hour_ms = (end % HOUR_MS).min(left_ms);
            if in_hour_ms == left_ms {
                return self.charge(reading, used, end.saturating_sub(in_hour_ms) / HOUR_MS);
            }
            let part = used.split(in_hour_ms, left_ms);
            self.charge(reading, part, end / HOUR_MS);
            left_ms -= in_hour_ms;
            // The last millisecond of the hour before.
            end = (end - end % HOUR_MS).saturating_sub(1);
            left_ms = left_ms.saturating_sub(1);
        }
    }

    fn charge(&mut self, reading: &Reading, used: Usage, hour: u64) {
        if used.is_empty() {
            return;
        }
        let hour_unix_s = hour.saturating_mul(HOUR_MS / 1000);
        let ours = |window: &&mut Window| {
            window.server == reading.server && window.tenant == reading.tenant
        };
        // With no room for closed windows there is one open window per server.
        let full = self.closed.len() >= CLOSED_MAX;
        let found = self
            .open
            .iter_mut()
            .filter(ours)
            .find(|w| full || w.hour_unix_s == hour_unix_s);
        match found {
            Some(window) => window.usage.add(&used),
            None => self.open.push(Window {
                seq: 0,
                tenant: reading.tenant.clone(),
                server: reading.server.clone(),
                hour_unix_s,
                usage: used,
            }),
        }
    }
}

/// A sandbox has used some processor time since its first instruction: none at all means that its group could not be read,
/// or is gone. Taken as it stands, the next good reading would count everything a second time.
fn read_again(before: Option<&Reading>, now: &Reading) -> Reading {
    let mut now = now.clone();
    if let Some(before) = before
        && now.cpu_us.value == 0
    {
        now.cpu_us = before.cpu_us;
    }
    now
}

fn difference(before: Option<&Reading>, now: &Reading, passed_ms: u64) -> Usage {
    let grown = |counter: fn(&Reading) -> Counter| {
        let now = counter(now);
        match before.map(counter) {
            Some(old) if old.epoch == now.epoch && old.value <= now.value => now.value - old.value,
            // The source began again: all that it shows is new.
            _ => now.value,
        }
    };
    // What it held until now is what the last look found.
    let over_time =
        |gauge: fn(&Reading) -> u64| u128::from(before.map_or(0, gauge)) * u128::from(passed_ms);
    Usage {
        cpu_us: grown(|r| r.cpu_us),
        egress_bytes: grown(|r| r.egress_bytes),
        requests: grown(|r| r.requests),
        memory_byte_ms: over_time(|r| r.memory_bytes),
        storage_byte_ms: over_time(|r| r.storage_bytes),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn reading(sandbox: &str, cpu_us: u64) -> Reading {
        let counter = |value| Counter { value, epoch: 0 };
        Reading {
            sandbox: sandbox.to_owned(),
            tenant: TenantId::parse("acme").expect("an id"),
            server: ServerId::parse("one").expect("an id"),
            cpu_us: counter(cpu_us),
            egress_bytes: counter(0),
            requests: counter(0),
            memory_bytes: 1000,
            storage_bytes: 0,
        }
    }

    fn at(ms: u64) -> Now {
        Now {
            unix_ms: 10 * HOUR_MS + ms,
            boot_ms: 77 + ms,
        }
    }

    fn total(meter: &Meter) -> Usage {
        let mut sum = Usage::default();
        meter
            .open
            .iter()
            .chain(&meter.closed)
            .for_each(|w| sum.add(&w.usage));
        sum
    }

    #[test]
    fn counters_count_once_also_when_they_begin_again() {
        let mut meter = Meter::default();
        for (ms, cpu_us, sum) in [
            (0, 10, 10),
            (1, 10, 10),
            (2, 25, 25),
            (3, 5, 30),
            (4, 6, 31),
        ] {
            meter.observe(at(ms), &[reading("a", cpu_us)]);
            assert_eq!(total(&meter).cpu_us, sum, "{ms}");
        }
        let mut again = reading("a", 100);
        again.cpu_us.epoch = 9;
        meter.observe(at(5), &[again.clone(), reading("b", 7)]);
        assert_eq!(total(&meter).cpu_us, 138, "another epoch hides no growth");
        // Met again after its end, whole, unreadable or gone, it counts no second time; forgotten, it would.
        for cpu_us in [100, 0, 100] {
            again.cpu_us.value = cpu_us;
            meter.finish(at(6), &again);
            assert_eq!(total(&meter).cpu_us, 138);
        }
        meter.observe(at(7), std::slice::from_ref(&again));
        assert_eq!(total(&meter).cpu_us, 138);
        meter.forget("a");
        meter.observe(at(8), std::slice::from_ref(&again));
        assert_eq!(total(&meter).cpu_us, 238);
    }

    #[test]
    fn memory_is_charged_for_the_time_that_passed() {
        let mut meter = Meter::default();
        meter.observe(at(0), &[reading("a", 0)]);
        meter.observe(at(500), &[reading("a", 0)]);
        assert_eq!(total(&meter).memory_byte_ms, 500_000);
        // The wall clock jumps; the other one does not.
        meter.observe(
            Now {
                unix_ms: 99 * HOUR_MS,
                boot_ms: 77 + 600,
            },
            &[reading("a", 0)],
        );
        assert_eq!(total(&meter).memory_byte_ms, 600_000);
        meter.observe(
            Now {
                unix_ms: 1,
                boot_ms: 77 + 700,
            },
            &[reading("a", 0)],
        );
        assert_eq!(total(&meter).memory_byte_ms, 700_000);
        // After its end it holds nothing, however late it is met again.
        meter.finish(
            Now {
                unix_ms: 1,
                boot_ms: 77 + 700,
            },
            &reading("a", 0),
        );
        meter.finish(at(5000), &reading("a", 0));
        assert_eq!(total(&meter).memory_byte_ms, 700_000);
        // Another start of the machine: nothing can have run in between.
        assert!(meter.begin("another") && !meter.begin("another"));
        meter.observe(
            Now {
                unix_ms: 99 * HOUR_MS,
                boot_ms: 5,
            },
            &[reading("a", 0)],
        );
        assert_eq!(total(&meter).memory_byte_ms, 700_000);
    }

    #[test]
    fn each_hour_gets_its_part() {
        let mut meter = Meter::default();
        let from = HOUR_MS - 1000;
        meter.observe(at(from), &[reading("a", 0)]);
        meter.observe(at(from + 4000 + HOUR_MS), &[reading("a", 3604)]);
        meter.close();
        meter.is_saved();
        let hours: Vec<_> = meter
            .closed(0, 10)
            .iter()
            .map(|w| (w.hour_unix_s / 3600, w.usage.cpu_us))
            .collect();
        assert_eq!(
            hours.iter().map(|(_, cpu)| cpu).sum::<u64>(),
            3604,
            "{hours:?}"
        );
        let by_hour = |hour| {
            hours
                .iter()
                .filter(|(h, _)| *h == hour)
                .map(|(_, cpu)| *cpu)
                .sum::<u64>()
        };
        assert!(
            (0..=2).contains(&by_hour(10))
                && (3598..=3601).contains(&by_hour(11))
                && (2..=4).contains(&by_hour(12)),
            "{hours:?}"
        );
    }

    #[test]
    fn windows_are_numbered_once_and_let_go_when_acknowledged() {
        let mut meter = Meter::default();
        for hour in 0..5 {
            meter.observe(at(hour * HOUR_MS), &[reading("a", 10 * (hour + 1))]);
        }
        meter.is_saved();
        let seqs = |meter: &Meter, after| {
            meter
                .closed(after, 3)
                .iter()
                .map(|w| w.seq)
                .collect::<Vec<_>>()
        };
        assert_eq!((seqs(&meter, 0), seqs(&meter, 3)), (vec![1, 2, 3], vec![4]));
        meter.acknowledge(2);
        assert_eq!(seqs(&meter, 0), [3, 4]);
        meter.acknowledge(100);
        meter.close();
        assert!(seqs(&meter, 0).is_empty(), "not before it is in the file");
        meter.is_saved();
        assert_eq!(seqs(&meter, 0), [5], "numbers go on");
    }

    #[test]
    fn without_room_windows_stay_open() {
        let mut meter = Meter::default();
        meter.observe(at(0), &[reading("a", 1)]);
        meter.close();
        let one = meter.closed[0].clone();
        meter.closed = (1..=CLOSED_MAX as u64)
            .map(|seq| Window { seq, ..one.clone() })
            .collect();
        let before = total(&meter).cpu_us;
        for hour in 1..50 {
            meter.observe(at(hour * HOUR_MS), &[reading("a", 1 + hour)]);
        }
        assert_eq!((meter.closed.len(), meter.open.len()), (CLOSED_MAX, 1));
        assert_eq!(total(&meter).cpu_us - before, 49);
    }

    #[test]
    fn sandboxes_are_bounded() {
        let mut meter = Meter::default();
        let readings: Vec<_> = (0..READINGS_MAX + 3)
            .map(|n| reading(&n.to_string(), 1))
            .collect();
        assert_eq!(meter.observe(at(0), &readings), 3);
        meter.keep(|sandbox| sandbox == "5");
        assert_eq!(meter.last.len(), 1);
    }
}
