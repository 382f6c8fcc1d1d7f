//! The report: one data model, written as JSON (for programs), Markdown (for a pull request) and HTML (for a browser).

mod hosted;
mod html;
mod markdown;
mod plots;
mod sections;
mod svg;

#[cfg(test)]
pub use hosted::tests as hosted_tests;
pub use hosted::{Hosted, HostedServer, table as hosted_table};
pub use html::soak_page;

use crate::events::EventFigures;
use crate::machine::Machine;
use crate::overload;
use crate::plan::Plan;
use crate::soak::Soak;
use crate::stats::CellFigures;
use crate::target::Kind;
use crate::wire::rpc::Era;
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A report larger than this is none of ours.
const REPORT_BYTES_MAX: u64 = 64 << 20;

/// Everything a run says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// When it started, UTC.
    pub started: String,
    /// The command line.
    pub command: String,
    /// Machine and versions.
    pub machine: Machine,
    /// How it was measured.
    pub config: Config,
    /// What was measured.
    pub targets: Vec<TargetInfo>,
    /// What was asked for and not there.
    pub absent: Vec<String>,
    /// Windows that do not count, and why.
    pub invalid: Vec<String>,
    /// The figures.
    pub cells: Vec<CellFigures>,
    /// Delays of single events of a stream.
    #[serde(default)]
    pub events: Vec<EventFigures>,
    /// What became of targets under three times their peak rate.
    #[serde(default)]
    pub overload: Vec<overload::Figures>,
    /// A mixed day for a long time.
    #[serde(default)]
    pub soak: Option<Soak>,
    /// A server in a sandbox beside the same one native.
    #[serde(default)]
    pub hosted: Option<Hosted>,
}

/// How a run was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    /// Rounds.
    pub rounds: usize,
    /// Unmeasured start of a window.
    pub warmup_ms: u64,
    /// Measured part.
    pub measure_ms: u64,
    /// Worker threads of floors and peers.
    pub threads: usize,
    /// Which cores ran what.
    pub placement: String,
    /// Seed of texts and orders.
    pub seed: u64,
    /// Protocol revision.
    pub revision: String,
}

impl Config {
    /// Of a plan.
    pub fn of(plan: &Plan, seed: u64, threads: usize, placement: &str) -> Config {
        let spoken = [Era::Handshake, Era::Stateless]
            .into_iter()
            .filter(|era| plan.cells.iter().any(|cell| cell.era == *era));
        Config {
            rounds: plan.rounds,
            warmup_ms: plan.warmup.as_millis() as u64,
            measure_ms: plan.measure.as_millis() as u64,
            threads,
            placement: placement.to_owned(),
            seed,
            revision: spoken.map(Era::revision).collect::<Vec<_>>().join(" and "),
        }
    }
}

/// One target.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TargetInfo {
    /// What it is.
    pub target: Kind,
    /// Its version, if it has its own.
    pub version: String,
    /// How it was started.
    pub command: String,
    /// MiB, after the start.
    pub pss_idle_mib: Option<f64>,
    /// MiB, the highest after any window.
    pub pss_peak_mib: Option<f64>,
    /// MiB, the kernel's own peak of resident memory.
    pub rss_peak_mib: Option<f64>,
}

impl Report {
    /// Of a run that measured hosted servers and nothing else.
    pub fn of_hosted(started: String, command: String, machine: Machine, hosted: Hosted) -> Report {
        Report {
            started,
            command,
            machine,
            config: hosted.config.clone(),
            targets: Vec::new(),
            absent: Vec::new(),
            invalid: Vec::new(),
            cells: Vec::new(),
            events: Vec::new(),
            overload: Vec::new(),
            soak: None,
            hosted: Some(hosted),
        }
    }

    /// Reads a `report.json`.
    pub fn read(file: &Path) -> anyhow::Result<Report> {
        let of_file = || file.display().to_string();
        if fs::metadata(file).with_context(of_file)?.len() > REPORT_BYTES_MAX {
            bail!("{}: too large for a report", file.display());
        }
        let text = fs::read_to_string(file).with_context(of_file)?;
        serde_json::from_str(&text).with_context(|| format!("{} is no report.json", file.display()))
    }

    /// Writes the three files into `out/<time>/` and returns that folder.
    pub fn write(&self, out: &Path) -> anyhow::Result<PathBuf> {
        let folder = out.join(self.started.replace([':', '-'], ""));
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let files = [
            ("report.json", serde_json::to_string_pretty(self)? + "\n"),
            ("report.md", markdown::render(self)),
            ("report.html", html::render(self)),
        ];
        for (name, text) in files {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| path.display().to_string())?;
        }
        Ok(folder)
    }

    /// The tables for the terminal.
    pub fn markdown(&self) -> String {
        markdown::render(self)
    }

    /// Cores others used on average while this was measured: above a tenth of the machine the page says so.
    pub fn noise(&self) -> f64 {
        let all: Vec<f64> = self
            .cells
            .iter()
            .chain(self.hosted.iter().flat_map(Hosted::cells))
            .flat_map(|cell| &cell.results)
            .filter_map(|r| Some(r.foreign_cores?.median))
            .collect();
        all.iter().sum::<f64>() / all.len().max(1) as f64
    }

    /// Others used more than a tenth of the machine.
    pub fn is_noisy(&self) -> bool {
        self.noise() > 0.1 * self.machine.cores.max(1) as f64
    }
}

/// Now, as `2026-01-31T23-59-58Z`.
pub fn now() -> String {
    utc(SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs()))
}

/// The civil date of a Unix time (Howard Hinnant's algorithm, for years after 1970).
fn utc(seconds: u64) -> String {
    let days = seconds / 86_400 + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 {
        month_index + 3
    } else {
        month_index - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Microseconds with as many digits as mean something.
pub fn micros(value: f64) -> String {
    match value.abs() {
        v if v >= 100_000.0 => format!("{:.0} ms", value / 1000.0),
        v if v >= 10_000.0 => format!("{:.1} ms", value / 1000.0),
        v if v >= 1000.0 => format!("{:.2} ms", value / 1000.0),
        v if v >= 100.0 => format!("{value:.0} \u{b5}s"),
        _ => format!("{value:.1} \u{b5}s"),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::plan::{Cell, Content, Form};
    use crate::stats::{Figures, Round, Spread};

    /// A report with one cell: this CPU per call of weir in each round, beside a pingora that always takes 40 us.
    pub fn report_of(weir_cpu_us: &[f64]) -> Report {
        let figures = |target, cpu: Vec<f64>| {
            let round = |(round, &cpu_us): (usize, &f64)| Round {
                round,
                rate: 1000.0,
                p50_us: 100.0,
                cpu_us: Some(cpu_us),
                cpu_ratio: Some(cpu_us / 40.0),
            };
            Figures {
                target,
                windows: cpu.len(),
                invalid_windows: 0,
                calls: 10_000,
                thin: false,
                rate: Spread::of([1000.0]),
                latency_us: None,
                added_p50_us: None,
                added_p50_ratio: None,
                cpu_us: Spread::of(cpu.clone()),
                cpu_ratio: Spread::of(cpu.iter().map(|cpu| cpu / 40.0)),
                cpu_goal: None,
                client_cpu_us: None,
                in_flight: None,
                lateness_p99_us: None,
                reconnects: 0,
                foreign_cores: None,
                stolen: None,
                stages: None,
                cpu_parts: None,
                of_native: None,
                cpu_of_weir: None,
                curve: Vec::new(),
                rounds: cpu.iter().enumerate().map(round).collect(),
            }
        };
        let cell = Cell {
            size: 300,
            connections: 1,
            rate: None,
            form: Form::Json,
            content: Content::Clean,
            era: crate::wire::rpc::Era::Handshake,
        };
        Report {
            started: "2026-01-31T23-59-58Z".to_owned(),
            command: "weir-bench quick".to_owned(),
            machine: Machine::default(),
            config: Config {
                rounds: weir_cpu_us.len(),
                warmup_ms: 0,
                measure_ms: 100,
                threads: 1,
                placement: String::new(),
                seed: 1,
                revision: String::new(),
            },
            targets: Vec::new(),
            absent: Vec::new(),
            invalid: Vec::new(),
            cells: vec![CellFigures {
                label: cell.label(),
                cell,
                results: vec![
                    figures(Kind::Pingora, vec![40.0; weir_cpu_us.len()]),
                    figures(Kind::Weir, weir_cpu_us.to_vec()),
                ],
            }],
            events: Vec::new(),
            overload: Vec::new(),
            soak: None,
            hosted: None,
        }
    }

    #[test]
    fn a_report_is_read_back_from_its_own_json() {
        let report = report_of(&[50.0, 51.0]);
        let text = serde_json::to_string(&report).unwrap();
        let again: Report = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
    }

    #[test]
    fn dates() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_798_761_600, "2027-01-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        cases
            .iter()
            .for_each(|&(seconds, date)| assert_eq!(utc(seconds), date));
    }

    #[test]
    fn micros_are_rounded_for_people() {
        let cases = [
            (0.04, "0.0 \u{b5}s"),
            (12.34, "12.3 \u{b5}s"),
            (123.4, "123 \u{b5}s"),
            (1234.0, "1.23 ms"),
            (45_600.0, "45.6 ms"),
            (123_456.0, "123 ms"),
            (-12.0, "-12.0 \u{b5}s"),
        ];
        cases
            .iter()
            .for_each(|&(value, text)| assert_eq!(micros(value), text));
    }
}
