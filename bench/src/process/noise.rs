//! How much of the machine others used: a figure measured next to a compiler run is worth less, and the report says so.

use super::cpu::ticks;
use std::fs;
use std::time::Duration;

/// Time all cores of the machine have been busy, and time the hypervisor took away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// User, system, interrupts.
    pub busy: Duration,
    /// Wanted to run and was not let.
    pub stolen: Duration,
}

/// Reads the machine's counters (10 ms resolution).
pub fn machine() -> Machine {
    fs::read_to_string("/proc/stat")
        .ok()
        .and_then(|text| parse(&text))
        .unwrap_or_default()
}

fn parse(text: &str) -> Option<Machine> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let field: Vec<u64> = line
        .split_ascii_whitespace()
        .map_while(|n| n.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal guest guest_nice; guest time is within user already.
    let at = |n: usize| field.get(n).copied().unwrap_or(0);
    Some(Machine {
        busy: ticks(at(0) + at(1) + at(2) + at(5) + at(6)),
        stolen: ticks(at(7)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_text() {
        let tick = ticks(1);
        let machine = parse("cpu  10 1 5 900 7 2 3 4 6 0\ncpu0 1 1 1 1\n").unwrap();
        assert_eq!(
            machine,
            Machine {
                busy: tick * 21,
                stolen: tick * 4
            }
        );
        assert_eq!(parse("intr 1 2 3"), None);
    }
}
