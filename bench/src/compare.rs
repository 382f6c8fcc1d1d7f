//! `weir-bench compare A B`: is B worse than A, and how sure is that?
//!
//! Every figure becomes a ratio B / A with a 95 % interval, got by drawing rounds again and again (bootstrap). A figure is
//! worse when the ratio is above the tolerance and the interval leaves 1 out; when it does not, the two runs cannot say.

use crate::progress::say;
use crate::random::Random;
use crate::report::Report;
use crate::stats::{Figures, Round, Spread};
use crate::target::Kind;
use anyhow::bail;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// With fewer rounds in one of the runs nothing is judged.
const ROUNDS_MIN: usize = 3;
/// Draws for one interval.
const DRAWS: usize = 2000;
/// Options of `compare`.
#[derive(clap::Args)]
pub struct Compare {
    /// The report.json of the run to compare with.
    pub before: PathBuf,
    /// The report.json of the run to judge.
    pub after: PathBuf,
    /// How much worse a figure may be, in percent.
    #[arg(long, default_value_t = 10.0, value_parser = percent)]
    pub tolerance: f64,
    /// Only these targets; by default all that both runs have, except the upstream itself.
    #[arg(long, value_delimiter = ',', value_enum)]
    pub targets: Vec<Kind>,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1000.0).contains(&value) => Ok(value),
        _ => Err("a number of percent from 0 to 1000".to_owned()),
    }
}

/// Prints the table. Exit code 1: something is worse.
pub fn run(options: &Compare) -> anyhow::Result<ExitCode> {
    let (before, after) = (
        Report::read(&options.before)?,
        Report::read(&options.after)?,
    );
    let comparison = Comparison::of(&before, &after, &options.targets, options.tolerance / 100.0);
    if comparison.rows.is_empty() {
        bail!("the two runs have no cell with the same target in common");
    }
    say(&comparison.table());
    let code = if comparison.is_worse() { 1 } else { 0 };
    Ok(ExitCode::from(code))
}

/// All figures of two runs side by side.
struct Comparison {
    rows: Vec<Row>,
    notes: Vec<String>,
    tolerance: f64,
}

/// One figure of one target in one cell.
struct Row {
    cell: String,
    target: Kind,
    figure: &'static str,
    before: f64,
    after: f64,
    /// Above 1 is worse, whatever the figure.
    ratio: Spread,
    verdict: Verdict,
}

/// What the two runs say about one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Same,
    Better,
    Worse,
    /// Above the tolerance, and yet the interval holds 1.
    Unsure,
    /// Shown, but not judged: the machines differ and the figure is absolute.
    Shown,
}

/// A figure: its name, where it stands, whether more of it is better, whether it is relative to a floor of its own run.
struct Figure {
    name: &'static str,
    of: fn(&Round) -> Option<f64>,
    median: fn(&Figures) -> Option<Spread>,
    more_is_better: bool,
    relative: bool,
}

const FIGURES: [Figure; 4] = [
    Figure {
        name: "CPU x pingora",
        of: |round| round.cpu_ratio,
        median: |figures| figures.cpu_ratio,
        more_is_better: false,
        relative: true,
    },
    Figure {
        name: "CPU us/call",
        of: |round| round.cpu_us,
        median: |figures| figures.cpu_us,
        more_is_better: false,
        relative: false,
    },
    Figure {
        name: "p50 us",
        of: |round| Some(round.p50_us),
        median: |_| None,
        more_is_better: false,
        relative: false,
    },
    Figure {
        name: "calls/s",
        of: |round| Some(round.rate),
        median: |figures| figures.rate,
        more_is_better: true,
        relative: false,
    },
];

impl Comparison {
    fn of(before: &Report, after: &Report, targets: &[Kind], tolerance: f64) -> Comparison {
        let same_machine = (&before.machine.cpu, before.machine.cores)
            == (&after.machine.cpu, after.machine.cores);
        let mut comparison = Comparison {
            rows: Vec::new(),
            notes: notes(before, after, same_machine),
            tolerance,
        };
        for cell in &after.cells {
            let Some(old) = before.cells.iter().find(|old| old.cell == cell.cell) else {
                comparison
                    .notes
                    .push(format!("{}: only in the second run", cell.label));
                continue;
            };
            let wanted = |kind: Kind| match targets {
                [] => kind != Kind::Direct,
                some => some.contains(&kind),
            };
            for new in cell.results.iter().filter(|figures| wanted(figures.target)) {
                if let Some(old) = old.of(new.target) {
                    let judge = |figure: &Figure| {
                        // Under a fixed rate the calls per second are the load's, not the target's.
                        (!(figure.more_is_better && cell.cell.rate.is_some()))
                            .then(|| row(&cell.label, figure, old, new, same_machine, tolerance))
                            .flatten()
                    };
                    comparison.rows.extend(FIGURES.iter().filter_map(judge));
                }
            }
        }
        comparison
    }

    fn is_worse(&self) -> bool {
        self.rows.iter().any(|row| row.verdict == Verdict::Worse)
    }

    fn table(&self) -> String {
        let mut out = String::new();
        for note in &self.notes {
            let _ = writeln!(out, "- {note}");
        }
        let _ = writeln!(
            out,
            "\n| cell | target | figure | before | after | ratio (above 1 is worse) | 95 % | |\n|---|---|---|---|---|---|---|---|"
        );
        for row in &self.rows {
            let verdict = match row.verdict {
                Verdict::Same => "",
                Verdict::Better => "better",
                Verdict::Worse => "**worse**",
                Verdict::Unsure => "cannot say",
                Verdict::Shown => "not judged",
            };
            let _ = writeln!(
                out,
                "| {} | {} | {} | {:.2} | {:.2} | {:.3} | {:.3} - {:.3} | {verdict} |",
                row.cell,
                row.target.label(),
                row.figure,
                row.before,
                row.after,
                row.ratio.median,
                row.ratio.min,
                row.ratio.max
            );
        }
        let count = |verdict| {
            self.rows
                .iter()
                .filter(|row| row.verdict == verdict)
                .count()
        };
        let _ = writeln!(
            out,
            "\n{} figures: {} worse by more than {:.0} %, {} better, {} that cannot be told",
            self.rows.len(),
            count(Verdict::Worse),
            self.tolerance * 100.0,
            count(Verdict::Better),
            count(Verdict::Unsure)
        );
        out
    }
}

fn notes(before: &Report, after: &Report, same_machine: bool) -> Vec<String> {
    let mut notes = vec![format!(
        "before: {} commit {}; after: {} commit {}",
        before.started, before.machine.commit, after.started, after.machine.commit
    )];
    if !same_machine {
        notes.push(format!(
            "the machines differ ({}, {} cores; {}, {} cores): only figures relative to the same run's floor are judged",
            before.machine.cpu, before.machine.cores, after.machine.cpu, after.machine.cores
        ));
    }
    for (name, run) in [("first", before), ("second", after)] {
        if run.is_noisy() {
            notes.push(format!(
                "others used {:.2} of {} cores during the {name} run: its absolute figures are worth little",
                run.noise(),
                run.machine.cores
            ));
        }
        if !run.invalid.is_empty() {
            notes.push(format!(
                "{} windows of the {name} run are invalid and left out",
                run.invalid.len()
            ));
        }
    }
    notes
}

fn row(
    cell: &str,
    figure: &Figure,
    old: &Figures,
    new: &Figures,
    same_machine: bool,
    tolerance: f64,
) -> Option<Row> {
    let (before, after) = (values(figure, old), values(figure, new));
    let ratio = ratio(&before, &after, figure.more_is_better)?;
    // One window each would give an interval without width, and with it a certainty that nobody has.
    let enough = before.len().min(after.len()) >= ROUNDS_MIN;
    let verdict = if !same_machine && !figure.relative {
        Verdict::Shown
    } else if ratio.median > 1.0 + tolerance {
        if ratio.min > 1.0 && enough {
            Verdict::Worse
        } else {
            Verdict::Unsure
        }
    } else if ratio.median < 1.0 / (1.0 + tolerance) && ratio.max < 1.0 && enough {
        Verdict::Better
    } else {
        Verdict::Same
    };
    Some(Row {
        cell: cell.to_owned(),
        target: new.target,
        figure: figure.name,
        before: Spread::of(before)?.median,
        after: Spread::of(after)?.median,
        ratio,
        verdict,
    })
}

/// The rounds' values, or what an older report kept of them.
fn values(figure: &Figure, of: &Figures) -> Vec<f64> {
    let rounds: Vec<f64> = of.rounds.iter().filter_map(figure.of).collect();
    match (figure.median)(of) {
        Some(spread) if rounds.is_empty() => vec![spread.min, spread.median, spread.max],
        _ => rounds,
    }
}

/// The ratio of medians, and the interval that 95 % of the redrawn ratios lie in. The same rounds give the same interval.
fn ratio(before: &[f64], after: &[f64], more_is_better: bool) -> Option<Spread> {
    let (over, under) = if more_is_better {
        (before, after)
    } else {
        (after, before)
    };
    let of = |over: f64, under: f64| (under > 0.0 && over > 0.0).then(|| over / under);
    let middle = of(median(over)?, median(under)?)?;
    let mut random = Random::new(1);
    let mut drawn: Vec<f64> = (0..DRAWS)
        .filter_map(|_| {
            of(
                median(&redraw(over, &mut random))?,
                median(&redraw(under, &mut random))?,
            )
        })
        .collect();
    drawn.sort_by(f64::total_cmp);
    let at = |share: f64| drawn.get((drawn.len() as f64 * share) as usize).copied();
    Some(Spread {
        median: middle,
        min: at(0.025)?,
        max: at(0.975)?,
    })
}

fn redraw(values: &[f64], random: &mut Random) -> Vec<f64> {
    values
        .iter()
        .map(|_| values[random.below(values.len() as u64) as usize])
        .collect()
}

fn median(values: &[f64]) -> Option<f64> {
    Spread::of(values.iter().copied()).map(|spread| spread.median)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::report_of;

    fn compare(before: &[f64], after: &[f64], other_machine: bool) -> Comparison {
        let (before, mut after) = (report_of(before), report_of(after));
        if other_machine {
            after.machine.cpu = "another".to_owned();
        }
        Comparison::of(&before, &after, &[Kind::Weir], 0.10)
    }

    fn verdict(comparison: &Comparison, figure: &str) -> Verdict {
        comparison
            .rows
            .iter()
            .find(|row| row.figure == figure)
            .unwrap()
            .verdict
    }

    /// The CPU of weir in every round; a floor that does not change is beside it.
    #[test]
    fn verdicts() {
        let steady = [50.0, 51.0, 49.0, 50.0, 50.5];
        let cases: [(&[f64], Verdict); 5] = [
            (&[50.0, 50.0, 49.5, 51.0, 50.0], Verdict::Same),
            (&[60.0, 61.0, 59.0, 60.0, 60.5], Verdict::Worse),
            (&[40.0, 41.0, 39.0, 40.0, 40.5], Verdict::Better),
            (&[53.0, 54.0, 53.0, 53.0, 53.5], Verdict::Same),
            (&[30.0, 90.0, 57.0, 20.0, 95.0], Verdict::Unsure),
        ];
        for (after, expected) in cases {
            let comparison = compare(&steady, after, false);
            assert_eq!(verdict(&comparison, "CPU us/call"), expected, "{after:?}");
            assert_eq!(
                comparison.is_worse(),
                expected == Verdict::Worse,
                "{after:?}"
            );
        }
    }

    #[test]
    fn one_window_each_is_no_verdict() {
        let comparison = compare(&[50.0], &[100.0], false);
        assert_eq!(verdict(&comparison, "CPU us/call"), Verdict::Unsure);
        assert!(!comparison.is_worse());
    }

    #[test]
    fn another_machine_is_judged_by_relative_figures_only() {
        let comparison = compare(&[50.0, 51.0, 49.0], &[100.0, 101.0, 99.0], true);
        assert_eq!(verdict(&comparison, "CPU us/call"), Verdict::Shown);
        assert_eq!(verdict(&comparison, "CPU x pingora"), Verdict::Worse);
        assert!(comparison.table().contains("the machines differ"));
    }

    #[test]
    fn fewer_calls_per_second_are_worse() {
        let spread = ratio(&[1000.0, 1000.0, 1000.0], &[500.0, 500.0, 500.0], true).unwrap();
        assert_eq!((spread.min, spread.median, spread.max), (2.0, 2.0, 2.0));
        assert!(ratio(&[], &[1.0], false).is_none() && ratio(&[0.0], &[1.0], false).is_none());
    }
}
