//! The baseline file and what a count is worth beside it.

use crate::callgrind::Count;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// How much a case may rise, in percent. The same source gives the same count; the width is for what changes nothing of
/// substance and still moves code (a function that is inlined elsewhere).
const TOLERANCE_PERCENT: f64 = 5.0;
/// Rises below this are not looked at: a call more in a case of a thousand instructions is no regression.
const RISE_MIN: u64 = 300;

/// The counts of every case.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// The compiler they are of.
    pub toolchain: String,
    /// Case -> room -> instructions.
    pub cases: BTreeMap<String, Count>,
}

/// Two sets of counts side by side.
#[derive(Debug)]
pub struct Comparison {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    case: String,
    before: Option<Count>,
    after: Option<Count>,
}

impl Baseline {
    /// Of what was counted now.
    pub fn new(cases: Vec<(String, Count)>) -> Baseline {
        Baseline {
            toolchain: toolchain(),
            cases: cases.into_iter().collect(),
        }
    }

    /// Reads the file.
    pub fn read(file: &Path) -> anyhow::Result<Baseline> {
        let text = std::fs::read_to_string(file)?;
        serde_json::from_str(&text).with_context(|| file.display().to_string())
    }

    /// Writes the file, one line per figure, so that a change of it can be read in a diff.
    pub fn write(&self, file: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(file, text).with_context(|| file.display().to_string())
    }

    /// What changed from this one to `now`.
    pub fn compare(&self, now: &Baseline) -> Comparison {
        let names: std::collections::BTreeSet<&String> =
            self.cases.keys().chain(now.cases.keys()).collect();
        let row = |case: &String| Row {
            case: case.clone(),
            before: self.cases.get(case).cloned(),
            after: now.cases.get(case).cloned(),
        };
        Comparison {
            rows: names.into_iter().map(row).collect(),
        }
    }
}

impl Comparison {
    /// Every case in one line.
    pub fn table(&self) -> String {
        let mut out = format!(
            "{:<34}{:>14}{:>14}{:>9}\n",
            "instructions", "baseline", "now", "change"
        );
        for row in &self.rows {
            let number = |count: &Option<Count>| {
                count
                    .as_ref()
                    .map_or("-".to_owned(), |c| total(c).to_string())
            };
            let change = row
                .percent()
                .map_or(String::new(), |percent| format!("{percent:+.1} %"));
            let _ = writeln!(
                out,
                "{:<34}{:>14}{:>14}{change:>9}",
                row.case,
                number(&row.before),
                number(&row.after)
            );
        }
        out
    }

    /// What to say when the gate does not open; `None` when it does.
    pub fn complaint(&self) -> Option<String> {
        let lines: Vec<String> = self.rows.iter().filter_map(Row::complaint).collect();
        if lines.is_empty() {
            return None;
        }
        Some(format!(
            "The data path needs more instructions than its baseline allows (tolerance {TOLERANCE_PERCENT} %):\n{}\n\
             If the rise is worth what it buys, say why in the commit and move the baseline with it: `make baseline`.",
            lines.join("\n")
        ))
    }
}

impl Row {
    fn percent(&self) -> Option<f64> {
        let (before, after) = (total(self.before.as_ref()?), total(self.after.as_ref()?));
        (before > 0).then(|| (after as f64 / before as f64 - 1.0) * 100.0)
    }

    fn complaint(&self) -> Option<String> {
        let case = &self.case;
        let (before, after) = match (&self.before, &self.after) {
            (Some(before), Some(after)) => (before, after),
            (None, _) => return Some(format!("  {case}: is new and has no baseline")),
            (_, None) => return Some(format!("  {case}: is in the baseline and was not counted")),
        };
        let rise = total(after).saturating_sub(total(before));
        let percent = self.percent().unwrap_or(f64::INFINITY);
        // Multiplied and not divided, so that a rise of exactly the tolerance is one.
        let allowed = rise as f64 * 100.0 <= TOLERANCE_PERCENT * total(before) as f64;
        if allowed || rise < RISE_MIN {
            return None;
        }
        let mut parts: Vec<(i128, &String)> = after
            .keys()
            .chain(before.keys())
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .map(|room| {
                let of = |count: &Count| i128::from(count.get(room).copied().unwrap_or(0));
                (of(after) - of(before), room)
            })
            .filter(|(change, _)| *change != 0)
            .collect();
        parts.sort_by_key(|(change, _)| std::cmp::Reverse(change.abs()));
        let parts: Vec<String> = parts
            .iter()
            .map(|(change, room)| format!("{room} {change:+}"))
            .collect();
        Some(format!(
            "  {case}: {} -> {}, {percent:+.1} % ({})",
            total(before),
            total(after),
            parts.join(", ")
        ))
    }
}

fn total(count: &Count) -> u64 {
    count.values().sum()
}

/// The pinned compiler, which the counts are worth nothing without.
fn toolchain() -> String {
    include_str!("../../../rust-toolchain.toml")
        .lines()
        .find_map(|line| line.strip_prefix("channel = "))
        .unwrap_or("\"unknown\"")
        .trim_matches('"')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(cases: &[(&str, &[(&str, u64)])]) -> Baseline {
        let count = |rooms: &[(&str, u64)]| {
            rooms
                .iter()
                .map(|(room, n)| ((*room).to_owned(), *n))
                .collect()
        };
        Baseline::new(
            cases
                .iter()
                .map(|(case, rooms)| ((*case).to_owned(), count(rooms)))
                .collect(),
        )
    }

    fn complaint(before: &Baseline, after: &Baseline) -> Option<String> {
        before.compare(after).complaint()
    }

    #[test]
    fn a_rise_is_named_with_its_place_and_its_cure() {
        let before = counts(&[("scan/x", &[("dlp-scan", 10_000), ("libraries", 5_000)])]);
        let after = counts(&[("scan/x", &[("dlp-scan", 12_000), ("libraries", 4_900)])]);
        let said = complaint(&before, &after).unwrap();
        for part in [
            "scan/x: 15000 -> 16900, +12.7 %",
            "dlp-scan +2000, libraries -100",
            "make baseline",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn what_is_within_the_tolerance_passes() {
        let before = counts(&[("a", &[("x", 100_000)]), ("b", &[("x", 100)])]);
        for (a, b) in [(100_000, 100), (105_000, 100), (50_000, 1), (100_000, 399)] {
            let after = counts(&[("a", &[("x", a)]), ("b", &[("x", b)])]);
            assert_eq!(complaint(&before, &after), None, "{a} {b}");
        }
        for (a, b) in [(105_001, 100), (100_000, 400)] {
            let after = counts(&[("a", &[("x", a)]), ("b", &[("x", b)])]);
            assert!(complaint(&before, &after).is_some(), "{a} {b}");
        }
    }

    #[test]
    fn cases_may_neither_vanish_nor_appear_unseen() {
        let (one, two) = (
            counts(&[("a", &[("x", 1)])]),
            counts(&[("a", &[("x", 1)]), ("b", &[("x", 1)])]),
        );
        assert!(complaint(&one, &two).unwrap().contains("b: is new"));
        assert!(
            complaint(&two, &one)
                .unwrap()
                .contains("b: is in the baseline")
        );
    }

    #[test]
    fn the_file_comes_back_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("baseline.json");
        let baseline = counts(&[("a", &[("x", 1)])]);
        baseline.write(&file).unwrap();
        assert_eq!(Baseline::read(&file).unwrap(), baseline);
        assert!(!baseline.toolchain.contains("unknown"));
    }
}
