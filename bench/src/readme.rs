//! `weir-bench readme`: the performance section of a README, and the one on hosted servers of a document, written from a
//! checked-in report and from nothing else.

use crate::progress::say;
use crate::report::{Report, hosted_table, micros};
use crate::stats::CellFigures;
use crate::target::Kind;
use anyhow::{Context, bail};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What stands around a section, and where it comes from and goes to when nothing else is said.
struct Place {
    begin: &'static str,
    end: &'static str,
    report: &'static str,
    document: &'static str,
}

const PERFORMANCE: Place = Place {
    begin: "<!-- performance: written by `weir-bench readme`, do not edit -->",
    end: "<!-- end of performance -->",
    report: "docs/bench/report.json",
    document: "README.md",
};

const HOSTED: Place = Place {
    begin: "<!-- hosted: written by `weir-bench readme --hosted`, do not edit -->",
    end: "<!-- end of hosted -->",
    report: "docs/bench/hosted/report.json",
    document: "docs/benchmark.md",
};

/// Options of `readme`.
#[derive(clap::Args)]
pub struct Readme {
    /// The report.json that the figures come from; by default docs/bench/report.json, or docs/bench/hosted/report.json.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// The file that has the section; by default README.md, or docs/benchmark.md.
    #[arg(value_name = "README")]
    pub readme: Option<PathBuf>,
    /// The section on hosted servers instead.
    #[arg(long)]
    pub hosted: bool,
    /// Write nothing; exit code 1 when the section is not what the report says.
    #[arg(long)]
    pub check: bool,
    /// Take a run although other programs used the machine meanwhile.
    #[arg(long)]
    pub noisy: bool,
}

/// Writes or checks the section.
pub fn run(options: &Readme) -> anyhow::Result<ExitCode> {
    let place = if options.hosted {
        &HOSTED
    } else {
        &PERFORMANCE
    };
    let file = options.report.as_deref().unwrap_or(Path::new(place.report));
    let document = options.readme.as_deref();
    let document = document.unwrap_or(Path::new(place.document));
    let report = Report::read(file)?;
    if report.is_noisy() && !options.noisy {
        bail!(
            "others used {:.2} of {} cores during this run: such figures do not belong into a README (--noisy takes them all the same)",
            report.noise(),
            report.machine.cores
        );
    }
    let of_file = || document.display().to_string();
    let text = std::fs::read_to_string(document).with_context(of_file)?;
    let folder = folder(file, document);
    let section = if options.hosted {
        hosted_section(&report, &folder)
            .with_context(|| format!("{}: no hosted server was measured", file.display()))?
    } else {
        section(&report, &folder)
    };
    let new = replace(&text, &section, place).with_context(|| {
        format!(
            "{}: lacks the lines {} and {}",
            of_file(),
            place.begin,
            place.end
        )
    })?;
    if options.check {
        if text == new {
            return Ok(ExitCode::SUCCESS);
        }
        say(&format!(
            "{}: the section is not that of {}; run `weir-bench readme`",
            of_file(),
            file.display()
        ));
        return Ok(ExitCode::FAILURE);
    }
    std::fs::write(document, new).with_context(of_file)?;
    say(&format!("written: {}", of_file()));
    Ok(ExitCode::SUCCESS)
}

/// The folder of a report, as a document names it in a link.
fn folder(report: &Path, document: &Path) -> String {
    let folder = report.parent().unwrap_or(Path::new(""));
    let beside = document.parent().unwrap_or(Path::new(""));
    let folder = folder.strip_prefix(beside).unwrap_or(folder);
    folder.display().to_string()
}

fn replace(text: &str, section: &str, place: &Place) -> Option<String> {
    let begin = text.find(place.begin)? + place.begin.len();
    let end = begin + text[begin..].find(place.end)?;
    Some(format!("{}\n{section}{}", &text[..begin], &text[end..]))
}

/// By what, of what, on what and when; then where the whole of it is.
fn measured(report: &Report, folder: &str) -> String {
    let machine = &report.machine;
    format!(
        "Measured by `{}` at commit {} on {} ({} cores{}, Linux {}), {}: \
         [the whole report]({folder}/report.md), [its page]({folder}/report.html).",
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
    )
}

fn warning(report: &Report) -> String {
    if !report.is_noisy() {
        return String::new();
    }
    format!(
        "The machine was not quiet (others used {:.2} of {} cores): read the ratios, not the times.\n\n",
        report.noise(),
        report.machine.cores
    )
}

fn hosted_section(report: &Report, folder: &str) -> Option<String> {
    let hosted = report.hosted.as_ref()?;
    Some(format!(
        "{} Every answer was checked.\n\n{}{}",
        measured(report, folder),
        warning(report),
        hosted_table(hosted)
    ))
}

fn section(report: &Report, folder: &str) -> String {
    let mut out = format!(
        "{} Full scanning both ways, default policy, \
         audit on; text of so many bytes in the call and in its answer, JSON over HTTP/1.1. Every answer was checked.\n\n{}",
        measured(report, folder),
        warning(report)
    );
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
    if let Some(hosted) = &report.hosted {
        lines.extend(hosted.sentences());
    }
    if let Some(soak) = &report.soak {
        lines.push(soak.sentence() + ".");
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::hosted_tests::hosted;
    use crate::report::tests::report_of;

    #[test]
    fn only_the_section_is_written() {
        for place in [&PERFORMANCE, &HOSTED] {
            let (begin, end) = (place.begin, place.end);
            let text = format!("# A\n\n{begin}\nold\n{end}\n\nrest\n");
            let new = replace(&text, "new\n", place).unwrap();
            assert_eq!(new, format!("# A\n\n{begin}\nnew\n{end}\n\nrest\n"));
            assert_eq!(replace(&new, "new\n", place).unwrap(), new);
            assert_eq!(replace("# A\n", "new", place), None);
        }
    }

    #[test]
    fn figures_stand_with_command_machine_and_commit() {
        let mut report = report_of(&[50.0, 52.0]);
        report.machine.commit = "abc123".to_owned();
        report.machine.cpu = "Some CPU".to_owned();
        let section = section(&report, "docs/bench");
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

    #[test]
    fn links_lead_from_the_document_to_the_report() {
        for place in [&PERFORMANCE, &HOSTED] {
            let folder = folder(Path::new(place.report), Path::new(place.document));
            let document = Path::new(place.document).with_file_name(folder);
            assert_eq!(document.join("report.json"), Path::new(place.report));
        }
    }

    #[test]
    fn the_section_on_hosted_servers_has_their_table_and_conditions() {
        let mut report = report_of(&[50.0]);
        assert_eq!(hosted_section(&report, "bench/hosted"), None);
        report.hosted = Some(hosted());
        let text = hosted_section(&report, "bench/hosted").unwrap();
        for part in ["weir-bench quick", "bench/hosted/report.md", "6.00 (6.00)"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let sentences = sentences(&report).join("\n");
        assert!(sentences.contains("6.00 times"), "{sentences}");
    }

    /// The documents of this repository say what their checked-in runs say, once there are some.
    #[test]
    fn the_documents_are_those_of_their_runs() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for place in [&PERFORMANCE, &HOSTED] {
            let text = std::fs::read_to_string(root.join(place.document)).unwrap();
            assert!(text.contains(place.begin) && text.contains(place.end));
            let file = root.join(place.report);
            if !file.is_file() {
                continue;
            }
            let report = Report::read(&file).unwrap();
            let folder = folder(Path::new(place.report), Path::new(place.document));
            let section = if place.document == HOSTED.document {
                hosted_section(&report, &folder).unwrap()
            } else {
                section(&report, &folder)
            };
            assert!(
                replace(&text, &section, place).as_deref() == Some(text.as_str()),
                "run `weir-bench readme` (--hosted) for {}",
                place.document
            );
        }
    }
}
