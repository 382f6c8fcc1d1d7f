//! What a run measures: the cells, the targets, how long, and the goals.

use crate::payload::Pool;
use crate::wire::rpc::{Ask, AskKind, Era, Expect};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One combination of size, connections and load that every target goes through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Bytes of the text; request and answer both carry it.
    pub size: usize,
    /// Connections.
    pub connections: usize,
    /// Calls due per second (open loop), or closed loop.
    pub rate: Option<u32>,
    /// How the upstream answers.
    pub form: Form,
}

/// The form of the upstream's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// One JSON document.
    Json,
    /// One event of a stream.
    Sse,
}

/// How much to measure.
pub struct Plan {
    /// The cells.
    pub cells: Vec<Cell>,
    /// How often every target goes through every cell.
    pub rounds: usize,
    /// Unmeasured start of every window.
    pub warmup: Duration,
    /// Measured part of every window.
    pub measure: Duration,
}

impl Plan {
    /// About three minutes.
    pub fn quick() -> Plan {
        let mut cells = closed(&[300, 4 << 10, 64 << 10, 1 << 20], &[1, 16], Form::Json);
        cells.push(open(4 << 10, 16, 500));
        Plan {
            cells,
            rounds: 3,
            warmup: Duration::from_millis(150),
            measure: Duration::from_millis(600),
        }
    }

    /// About an hour with all targets.
    pub fn full() -> Plan {
        let sizes = [
            300,
            1 << 10,
            4 << 10,
            10 << 10,
            64 << 10,
            100 << 10,
            1 << 20,
        ];
        let mut cells = closed(&sizes, &[1, 16], Form::Json);
        cells.extend(closed(&[300, 4 << 10], &[64], Form::Json));
        cells.extend(closed(&[300, 4 << 10, 64 << 10], &[1, 16], Form::Sse));
        cells.extend([
            open(300, 16, 500),
            open(300, 16, 2000),
            open(4 << 10, 16, 500),
            open(64 << 10, 16, 100),
        ]);
        Plan {
            cells,
            rounds: 7,
            warmup: Duration::from_millis(400),
            measure: Duration::from_secs(2),
        }
    }
}

impl Plan {
    /// The measured part of a window of this cell: large texts take longer, and a handful of calls is no figure.
    pub fn measure_for(&self, cell: &Cell) -> Duration {
        if cell.size >= 1 << 20 {
            self.measure * 2
        } else {
            self.measure
        }
    }
}

fn closed(sizes: &[usize], connections: &[usize], form: Form) -> Vec<Cell> {
    let cell = |size, connections| Cell {
        size,
        connections,
        rate: None,
        form,
    };
    sizes
        .iter()
        .flat_map(|&size| connections.iter().map(move |&count| cell(size, count)))
        .collect()
}

fn open(size: usize, connections: usize, rate: u32) -> Cell {
    Cell {
        size,
        connections,
        rate: Some(rate),
        form: Form::Json,
    }
}

impl Cell {
    /// For tables: `4 KiB, 16 conn`.
    pub fn label(&self) -> String {
        let load = self
            .rate
            .map_or_else(String::new, |rate| format!(", {rate}/s open loop"));
        let form = if self.form == Form::Sse { ", SSE" } else { "" };
        format!(
            "{}, {} conn{load}{form}",
            size_label(self.size),
            self.connections
        )
    }

    /// The call of this cell on our own upstream.
    pub fn ask(&self, era: Era) -> Ask {
        let tool = if self.form == Form::Sse {
            "echo_sse"
        } else {
            "echo"
        };
        Ask {
            era,
            kind: AskKind::Call {
                tool: tool.to_owned(),
                argument: "text".to_owned(),
                expect: Expect::Echo,
            },
        }
    }

    /// The texts of this cell.
    pub fn pool(&self, seed: u64) -> Pool {
        Pool::generate(seed, self.size)
    }
}

/// `300 B`, `4 KiB`, `1 MiB`.
pub fn size_label(bytes: usize) -> String {
    match bytes {
        0 => "no text".to_owned(),
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

/// The most CPU per call, as a multiple of the bare pingora pass-through, that the project aims at for this size (with
/// scanning both ways, default policy and audit on; JSON over HTTP/1.1).
pub fn cpu_goal(cell: &Cell) -> Option<f64> {
    if cell.rate.is_some() || cell.form == Form::Sse {
        return None;
    }
    Some(match cell.size {
        0..=4096 => 1.3,
        4097..=65_536 => 1.7,
        65_537..=1_048_576 => 2.2,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels() {
        let sizes = [
            (300, "300 B"),
            (4096, "4 KiB"),
            (1 << 20, "1 MiB"),
            (1025, "1025 B"),
            (0, "no text"),
        ];
        assert!(
            sizes
                .iter()
                .all(|&(bytes, label)| size_label(bytes) == label)
        );
        assert_eq!(
            open(4096, 16, 500).label(),
            "4 KiB, 16 conn, 500/s open loop"
        );
        assert_eq!(
            closed(&[300], &[1], Form::Sse)[0].label(),
            "300 B, 1 conn, SSE"
        );
    }

    #[test]
    fn no_cell_is_measured_twice() {
        for plan in [Plan::quick(), Plan::full()] {
            for (at, cell) in plan.cells.iter().enumerate() {
                assert!(!plan.cells[at + 1..].contains(cell), "{}", cell.label());
            }
        }
    }

    #[test]
    fn goals_by_size() {
        let goal = |size| cpu_goal(&closed(&[size], &[1], Form::Json)[0]);
        assert_eq!(
            [300, 4096, 65_536, 1 << 20, 4 << 20].map(goal),
            [Some(1.3), Some(1.3), Some(1.7), Some(2.2), None]
        );
        assert_eq!(cpu_goal(&open(300, 1, 10)), None);
    }
}
