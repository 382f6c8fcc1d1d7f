//! `weir-bench readme`: the performance section of a README, written from a checked-in report and from nothing else.

use crate::progress::say;
use crate::report::{Report, micros};
use crate::stats::CellFigures;
use crate::target::Kind;
use anyhow::{Context, bail};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What stands around the section.
const BEGIN: &str = "<!-- performance: written by `weir-bench readme`, do not edit -->";
const END: &str = "<!-- end of performance -->";

/// Options of `readme`.
#[derive(clap::Args)]
pub struct Readme {
    /// The report.json that the figures come from.
    #[arg(long, default_value = "docs/bench/report.json", value_name = "FILE")]
    pub report: PathBuf,
    /// The file that has the section.
    #[arg(default_value = "README.md", value_name = "README")]
    pub readme: PathBuf,
    /// Write nothing; exit code 1 when the section is not what the report says.
    #[arg(long)]
    pub check: bool,
    /// Take a run although other programs used the machine meanwhile.
    #[arg(long)]
    pub noisy: bool,
}

/// Writes or checks the section.
pub fn run(options: &Readme) -> anyhow::Result<ExitCode> {
    let report = Report::read(&options.report)?;
    if report.is_noisy() && !options.noisy {
        bail!(
            "others used {:.2} of {} cores during this run: such figures do not belong into a README (--noisy takes them all the same)",
            report.noise(),
            report.machine.cores
        );
    }
    let of_file = || options.readme.display().to_string();
    let text = std::fs::read_to_string(&options.readme).with_context(of_file)?;
    let new = replace(&text, &section(&report, &options.report))
        .with_context(|| format!("{}: lacks the lines {BEGIN} and {END}", of_file()))?;
    if options.check {
        if text == new {
            return Ok(ExitCode::SUCCESS);
        }
        say(&format!(
            "{}: the performance section is not that of {}; run `weir-bench readme`",
            of_file(),
            options.report.display()
        ));
        return Ok(ExitCode::FAILURE);
    }
    std::fs::write(&options.readme, new).with_context(of_file)?;
    say(&format!("written: {}", of_file()));
    Ok(ExitCode::SUCCESS)
}

fn replace(text: &str, section: &str) -> Option<String> {
    let begin = text.find(BEGIN)? + BEGIN.len();
    let end = begin + text[begin..].find(END)?;
    Some(format!("{}\n{section}{}", &text[..begin], &text[end..]))
}

fn section(report: &Report, file: &Path) -> String {
    let mut out = String::new();
    let machine = &report.machine;
    let folder = file.parent().unwrap_or(Path::new("")).display();
    let _ = writeln!(
        out,
        "Measured by `{}` at commit {} on {} ({} cores{}, Linux {}), {}: \
         [the whole report]({folder}/report.md), [its page]({folder}/report.html). Full scanning both ways, default policy, \
         audit on; text of so many bytes in the call and in its answer, JSON over HTTP/1.1. Every answer was checked.\n",
        report.command,
        machine.commit,
        machine.cpu,
        machine.cores,
        if machine.virtual_machine {
            ", virtual"
        } else {
            ""
        },
        machine.kernel,
        report.started
    );
    if report.is_noisy() {
        let _ = writeln!(
            out,
            "The machine was not quiet: read the ratios, not the times.\n"
        );
    }
    floor_table(&mut out, report);
    peer_table(&mut out, report);
    for line in sentences(report) {
        let _ = writeln!(out, "- {line}");
    }
    out
}

/// Cells of the goals.
fn goal_cells(report: &Report) -> impl Iterator<Item = &CellFigures> {
    report
        .cells
        .iter()
        .filter(|cell| crate::plan::cpu_goal(&cell.cell).is_some())
}

fn floor_table(out: &mut String, report: &Report) {
    let _ = writeln!(
        out,
        "| text, connections | added p50 | CPU per call | bare pingora's | ratio | goal |\n|---|---|---|---|---|---|"
    );
    for cell in goal_cells(report) {
        let (Some(weir), Some(floor)) = (cell.of(Kind::Weir), cell.of(Kind::Pingora)) else {
            continue;
        };
        let (Some(cpu), Some(floor_cpu), Some(ratio)) = (weir.cpu_us, floor.cpu_us, weir.cpu_ratio)
        else {
            continue;
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {:.2} | {} |",
            cell.label,
            weir.added_p50_us
                .map_or("-".to_owned(), |added| micros(added.median)),
            micros(cpu.median),
            micros(floor_cpu.median),
            ratio.median,
            weir.cpu_goal
                .map_or("-".to_owned(), |goal| goal.to_string()),
        );
    }
}

/// Other people's MCP proxies: how many times weir's CPU per call they take.
fn peer_table(out: &mut String, report: &Report) {
    let peers: Vec<Kind> = report
        .targets
        .iter()
        .map(|target| target.target)
        .filter(|kind| kind.is_peer())
        .collect();
    let cells: Vec<&CellFigures> = goal_cells(report)
        .filter(|cell| {
            cell.results
                .iter()
                .any(|f| f.target.is_peer() && f.windows > 0)
        })
        .collect();
    if peers.is_empty() || cells.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "\nCPU per call as a multiple of Weir's in the same minute:\n\n| proxy |"
    );
    cells
        .iter()
        .for_each(|cell| out.push_str(&format!(" {} |", cell.label)));
    let _ = writeln!(out, "\n|---|{}", "---|".repeat(cells.len()));
    for kind in peers {
        let version = report
            .targets
            .iter()
            .find(|target| target.target == kind)
            .map_or("", |target| target.version.as_str());
        let _ = write!(out, "| {} {version} |", kind.label());
        for cell in &cells {
            let figures = cell.of(kind);
            let _ = match figures.and_then(|figures| figures.cpu_of_weir) {
                Some(ratio) => write!(out, " {:.0} |", ratio.median),
                None if figures.is_some_and(|f| f.invalid_windows > 0) => write!(out, " failed |"),
                None => write!(out, " - |"),
            };
        }
        let _ = writeln!(out);
    }
    let _ = writeln!(out);
}

fn sentences(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    let weir = report
        .targets
        .iter()
        .find(|target| target.target == Kind::Weir);
    if let Some((idle, peak)) = weir.and_then(|t| Some((t.pss_idle_mib?, t.pss_peak_mib?))) {
        lines.push(format!(
            "Memory (PSS): {idle:.0} MiB idle, {peak:.0} MiB at the most."
        ));
    }
    if let Some(over) = report
        .events
        .iter()
        .find(|figures| figures.target == Kind::Weir)
        .and_then(|figures| figures.over_floor_us)
    {
        lines.push(format!(
            "An event of a stream arrives {} later than through the bare pass-through (median).",
            micros(over)
        ));
    }
    if let Some(figures) = report
        .overload
        .iter()
        .find(|figures| figures.target == Kind::Weir.label())
    {
        lines.push(format!(
            "Offered three times its peak: {:.0} % of the peak as right answers, the rest refused within {} (p99), well again {}.",
            figures.good_of_peak * 100.0,
            figures.refusal_p99_us.map_or("-".to_owned(), micros),
            figures
                .recovery_ms
                .map_or("not within 30 s".to_owned(), |ms| format!("after {ms:.0} ms")),
        ));
    }
    if let Some(soak) = &report.soak {
        lines.push(soak.sentence() + ".");
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::report_of;

    #[test]
    fn only_the_section_is_written() {
        let text = format!("# A\n\n{BEGIN}\nold\n{END}\n\nrest\n");
        let new = replace(&text, "new\n").unwrap();
        assert_eq!(new, format!("# A\n\n{BEGIN}\nnew\n{END}\n\nrest\n"));
        assert_eq!(replace(&new, "new\n").unwrap(), new);
        assert_eq!(replace("# A\n", "new"), None);
    }

    #[test]
    fn figures_stand_with_command_machine_and_commit() {
        let mut report = report_of(&[50.0, 52.0]);
        report.machine.commit = "abc123".to_owned();
        report.machine.cpu = "Some CPU".to_owned();
        let section = section(&report, Path::new("docs/bench/report.json"));
        for part in [
            "weir-bench quick",
            "abc123",
            "Some CPU",
            "docs/bench/report.html",
            "51.0 \u{b5}s",
        ] {
            assert!(section.contains(part), "{part}: {section}");
        }
    }

    /// The README of this repository says what its checked-in run says, once there is one.
    #[test]
    fn the_readme_is_that_of_its_run() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let file = root.join("docs/bench/report.json");
        let text = std::fs::read_to_string(root.join("README.md")).unwrap();
        assert!(text.contains(BEGIN) && text.contains(END));
        if file.is_file() {
            let report = Report::read(&file).unwrap();
            let section = section(&report, Path::new("docs/bench/report.json"));
            assert!(
                replace(&text, &section).as_deref() == Some(text.as_str()),
                "run `weir-bench readme`"
            );
        }
    }
}
