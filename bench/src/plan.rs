//! What a run measures: the cells, the targets, how long, and the goals.

use crate::load::Endpoint;
use crate::payload::Pool;
use crate::target::Kind;
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
    /// What the text holds.
    #[serde(default)]
    pub content: Content,
    /// The revision the calls speak.
    #[serde(default)]
    pub era: Era,
}

/// What a firewall with its default policy does with the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Nothing to find.
    #[default]
    Clean,
    /// Nothing to find, and the same texts come again and again.
    Again,
    /// A mail address: found, recorded, passed.
    Logged,
    /// A social security number: cut out.
    Redacted,
    /// A secret on its way to the server: the call is blocked.
    Blocked,
    /// All of these among many clean ones, in many sizes, as JSON and as streams.
    Day,
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
    /// The targets, unless the command line names others.
    pub targets: Vec<Kind>,
    /// How often every target goes through every cell.
    pub rounds: usize,
    /// Unmeasured start of every window.
    pub warmup: Duration,
    /// Measured part of every window.
    pub measure: Duration,
}

/// What does nothing but forward.
const FLOORS: [Kind; 6] = [
    Kind::Direct,
    Kind::Nginx,
    Kind::Haproxy,
    Kind::Hyper,
    Kind::Pingora,
    Kind::PingoraProxy,
];

/// The sizes that goals are written for; forms of weir and other people's proxies are measured at these only.
pub const GOAL_SIZES: [usize; 4] = [300, 4 << 10, 64 << 10, 1 << 20];

/// The contents beside clean ones that are new each time.
const CONTENTS: [Content; 4] = [
    Content::Again,
    Content::Logged,
    Content::Redacted,
    Content::Blocked,
];

impl Plan {
    /// About three minutes.
    pub fn quick() -> Plan {
        let mut cells = closed(&[300, 4 << 10, 64 << 10, 1 << 20], &[1, 16], Form::Json);
        cells.push(open(4 << 10, 16, 500));
        Plan {
            cells,
            targets: FLOORS
                .into_iter()
                .chain([Kind::Weir, Kind::WeirHosted])
                .collect(),
            rounds: 3,
            warmup: Duration::from_millis(150),
            measure: Duration::from_millis(600),
        }
    }

    /// About two hours with all targets.
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
        cells.extend(CONTENTS.into_iter().flat_map(|content| {
            closed(&[300, 4 << 10], &[16], Form::Json)
                .into_iter()
                .map(move |cell| Cell { content, ..cell })
        }));
        cells.extend(
            closed(&[300, 4 << 10], &[16], Form::Json)
                .into_iter()
                .map(|cell| Cell {
                    era: Era::Stateless,
                    ..cell
                }),
        );
        cells.push(Cell {
            size: 0,
            content: Content::Day,
            ..open(0, 16, 500)
        });
        let mut targets = FLOORS.to_vec();
        targets.extend([Kind::PingoraTls, Kind::PingoraH2]);
        targets.extend(Kind::PEERS);
        targets.extend(Kind::all().filter(|kind| kind.is_weir()));
        Plan {
            cells,
            targets,
            rounds: 5,
            warmup: Duration::from_millis(400),
            measure: Duration::from_secs(2),
        }
    }
}

impl Plan {
    /// A hosted server beside the same one native: some seven minutes with both runtimes. A call takes milliseconds there,
    /// so windows are long.
    pub fn hosted() -> Plan {
        Plan {
            cells: closed(&[300, 4 << 10, 64 << 10], &[1, 16], Form::Json),
            targets: Kind::HOSTING.to_vec(),
            rounds: 5,
            warmup: Duration::from_millis(300),
            measure: Duration::from_secs(2),
        }
    }

    /// The same in under half a minute.
    pub fn hosted_short() -> Plan {
        Plan {
            cells: closed(&[4 << 10], &[1], Form::Json),
            rounds: 3,
            warmup: Duration::from_millis(200),
            measure: Duration::from_secs(1),
            ..Plan::hosted()
        }
    }

    /// Leaves only cells of these contents (all, when there are none), and adds small ones for those it does not have.
    pub fn only(&mut self, contents: &[Content]) {
        if contents.is_empty() {
            return;
        }
        for &content in contents {
            if content == Content::Day {
                self.cells.push(Cell {
                    content,
                    ..open(0, 16, 500)
                });
            } else if !self.cells.iter().any(|cell| cell.content == content) {
                let cells = closed(&[4 << 10], &[1, 16], Form::Json);
                self.cells
                    .extend(cells.into_iter().map(|cell| Cell { content, ..cell }));
            }
        }
        self.cells.retain(|cell| contents.contains(&cell.content));
    }

    /// Makes all calls speak one revision.
    pub fn speak(&mut self, era: Era) {
        self.cells.iter_mut().for_each(|cell| cell.era = era);
        let mut seen = Vec::new();
        self.cells.retain(|cell| {
            let new = !seen.contains(cell);
            seen.push(cell.clone());
            new
        });
    }

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
        content: Content::Clean,
        era: Era::Handshake,
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
        content: Content::Clean,
        era: Era::Handshake,
    }
}

impl Cell {
    /// For tables: `4 KiB, 16 conn`.
    pub fn label(&self) -> String {
        let load = self
            .rate
            .map_or_else(String::new, |rate| format!(", {rate}/s open loop"));
        let form = if self.form == Form::Sse { ", SSE" } else { "" };
        let content = match self.content {
            Content::Clean => "",
            Content::Again => ", seen before",
            Content::Logged => ", one finding",
            Content::Redacted => ", redaction",
            Content::Blocked => ", block",
            Content::Day => "",
        };
        let what = match self.content {
            Content::Day => "mixed day".to_owned(),
            _ => size_label(self.size),
        };
        let era = match self.era {
            Era::Handshake => "",
            Era::Stateless => ", stateless",
        };
        format!(
            "{what}, {} conn{load}{form}{content}{era}",
            self.connections
        )
    }

    /// What a right answer of this target is: whoever enforces must have enforced, and whoever does not must not.
    pub fn expect(&self, kind: Kind) -> Expect {
        match self.content {
            Content::Redacted if kind.enforces() => Expect::Redacted,
            Content::Blocked if kind.enforces() => Expect::Blocked,
            Content::Day if kind.enforces() => Expect::Planted,
            _ => Expect::Echo,
        }
    }

    /// The call of this cell on our own upstream.
    pub fn ask(&self, kind: Kind, endpoint: &Endpoint) -> Ask {
        let tool = if self.form == Form::Sse {
            "echo_sse"
        } else {
            "echo"
        };
        Ask {
            era: self.era,
            kind: AskKind::Call {
                tool: endpoint.tool_name(tool),
                argument: "text".to_owned(),
                expect: self.expect(kind),
            },
        }
    }

    /// The texts of this cell.
    pub fn pool(&self, seed: u64) -> Pool {
        Pool::generate(seed, self.size, self.content)
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
    let plain = cell.form == Form::Json && cell.content == Content::Clean;
    if cell.rate.is_some() || !plain || cell.era != Era::Handshake {
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
        let mut one_era = Plan::full();
        one_era.speak(Era::Stateless);
        let hosted = [Plan::hosted(), Plan::hosted_short()];
        for plan in [Plan::quick(), Plan::full(), one_era]
            .into_iter()
            .chain(hosted)
        {
            for (at, cell) in plan.cells.iter().enumerate() {
                assert!(!plan.cells[at + 1..].contains(cell), "{}", cell.label());
            }
        }
    }

    #[test]
    fn contents_can_be_chosen() {
        let mut plan = Plan::quick();
        plan.only(&[Content::Blocked]);
        assert!(
            plan.cells.len() == 2
                && plan
                    .cells
                    .iter()
                    .all(|cell| cell.content == Content::Blocked)
        );
        assert!(
            plan.cells[0].label().ends_with(", block"),
            "{}",
            plan.cells[0].label()
        );
        let expect = |kind| plan.cells[0].expect(kind);
        assert_eq!(
            [Kind::Weir, Kind::WeirDryRun, Kind::Nginx].map(expect),
            [Expect::Blocked, Expect::Echo, Expect::Echo]
        );
        assert_eq!(cpu_goal(&plan.cells[0]), None);
        let all = Plan::full().cells.len();
        let mut plan = Plan::full();
        plan.only(&[]);
        assert_eq!(plan.cells.len(), all);
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
