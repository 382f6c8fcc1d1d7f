//! The report as Markdown.

use super::{Report, micros};
use crate::stats::{CellFigures, Figures, Spread};
use crate::target::Kind;
use std::fmt::Write;

/// Renders the whole report.
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    write_to(&mut out, report).expect("writing to a String cannot fail");
    out
}

fn write_to(out: &mut String, report: &Report) -> std::fmt::Result {
    let (machine, config) = (&report.machine, &report.config);
    writeln!(out, "# MCP proxy benchmark\n")?;
    writeln!(
        out,
        "- {} UTC, commit {}, weir-bench {}, pingora {}",
        report.started, machine.commit, machine.bench_version, machine.pingora_version
    )?;
    writeln!(
        out,
        "- {}, {} cores{}, {} MiB, Linux {}, load average {} at the start and {} at the end, {:.2} cores used by others meanwhile",
        machine.cpu,
        machine.cores,
        if machine.virtual_machine {
            " (virtual)"
        } else {
            ""
        },
        machine.memory_mib,
        machine.kernel,
        machine.load_at_start,
        machine.load_at_end,
        report.noise()
    )?;
    writeln!(
        out,
        "- {} rounds, interleaved; windows of {} ms (twice that from 1 MiB) after {} ms of warm-up; {} worker threads in floors; {}; seed {}; MCP {}",
        config.rounds,
        config.measure_ms,
        config.warmup_ms,
        config.threads,
        config.placement,
        config.seed,
        config.revision
    )?;
    writeln!(out, "- `{}`", report.command)?;
    if report.is_noisy() {
        writeln!(
            out,
            "- **The machine was not quiet: trust the ratios, not the latencies.**"
        )?;
    }
    report
        .absent
        .iter()
        .try_for_each(|absent| writeln!(out, "- not measured: {absent}"))?;
    if !report.invalid.is_empty() {
        writeln!(
            out,
            "\n**{} windows are invalid and not in the figures:**\n",
            report.invalid.len()
        )?;
        report
            .invalid
            .iter()
            .take(20)
            .try_for_each(|line| writeln!(out, "- {line}"))?;
    }
    ratios(out, report)?;
    peers(out, report)?;
    events(out, report)?;
    if !report.overload.is_empty() {
        let table = crate::overload::table(&report.overload);
        writeln!(out, "\n## Three times the peak rate, 4 KiB\n\n{table}")?;
    }
    if let Some(soak) = &report.soak {
        writeln!(out, "\n## Soak\n\n{}.", soak.sentence())?;
    }
    if let Some(hosted) = &report.hosted {
        super::hosted::markdown(out, hosted)?;
    }
    if report.targets.is_empty() {
        return Ok(());
    }
    memory(out, report)?;
    writeln!(
        out,
        "\nLatency is from send to the last byte of a checked answer (open loop: from when the call was due). Median over rounds, [lowest, highest]. `direct` is the instrument with nothing in between; its CPU is the upstream's own. *thin*: under 1000 calls, read no p99."
    )?;
    report
        .cells
        .iter()
        .try_for_each(|cell| cell_table(out, cell))
}

fn ratios(out: &mut String, report: &Report) -> std::fmt::Result {
    if !report
        .targets
        .iter()
        .any(|target| target.target == Kind::Pingora)
    {
        return Ok(());
    }
    let proxies: Vec<Kind> = report
        .targets
        .iter()
        .map(|t| t.target)
        .filter(|&kind| kind != Kind::Direct)
        .collect();
    write!(
        out,
        "\n## CPU per call as a multiple of the bare pingora pass-through\n\n| cell |"
    )?;
    proxies
        .iter()
        .try_for_each(|kind| write!(out, " {} |", kind.label()))?;
    write!(out, "\n|---|")?;
    proxies.iter().try_for_each(|_| write!(out, "---|"))?;
    writeln!(out)?;
    for cell in &report.cells {
        write!(out, "| {} |", cell.label)?;
        for &kind in &proxies {
            let figures = cell.of(kind);
            match figures.and_then(|figures| Some((figures, figures.cpu_ratio?))) {
                Some((figures, ratio)) => {
                    write!(out, " {:.2}{} |", ratio.median, goal(figures, ratio))?
                }
                None => write!(out, " - |")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Other people's MCP proxies, as multiples of weir.
fn peers(out: &mut String, report: &Report) -> std::fmt::Result {
    let cells: Vec<&CellFigures> = report
        .cells
        .iter()
        .filter(|cell| cell.results.iter().any(|f| f.target.is_peer()))
        .collect();
    let peers: Vec<Kind> = report
        .targets
        .iter()
        .map(|target| target.target)
        .filter(|kind| kind.is_peer())
        .collect();
    if cells.is_empty() || peers.is_empty() {
        return Ok(());
    }
    write!(
        out,
        "\n## Other MCP proxies: CPU per call as a multiple of weir's\n\n| proxy |"
    )?;
    cells
        .iter()
        .try_for_each(|cell| write!(out, " {} |", cell.label))?;
    writeln!(out, "\n|---|{}", "---|".repeat(cells.len()))?;
    for kind in peers {
        write!(out, "| {} |", kind.label())?;
        for cell in &cells {
            let figures = cell.of(kind);
            match figures.and_then(|figures| figures.cpu_of_weir) {
                Some(ratio) => write!(out, " {:.1} |", ratio.median)?,
                None if figures.is_some_and(|f| f.invalid_windows > 0) => {
                    write!(out, " failed |")?;
                }
                None => write!(out, " - |")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

fn events(out: &mut String, report: &Report) -> std::fmt::Result {
    if report.events.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n## Delay of single events of a stream\n\n| target | events | p50 | p99 | slowest | over the pass-through | faults |\n|---|---|---|---|---|---|---|"
    )?;
    report.events.iter().try_for_each(|figures| {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} |",
            figures.target.label(),
            figures.events,
            micros(figures.p50_us),
            micros(figures.p99_us),
            micros(figures.max_us),
            figures.over_floor_us.map_or("-".to_owned(), micros),
            figures.faults.join("; ")
        )
    })
}

fn goal(figures: &Figures, ratio: Spread) -> String {
    match figures.cpu_goal {
        Some(goal) => format!(
            " (goal {goal}: {})",
            if ratio.median <= goal {
                "met"
            } else {
                "missed"
            }
        ),
        None => String::new(),
    }
}

fn memory(out: &mut String, report: &Report) -> std::fmt::Result {
    writeln!(
        out,
        "\n## Memory and versions\n\n| target | version | PSS idle MiB | PSS peak MiB | RSS peak MiB | started as |\n|---|---|---|---|---|---|"
    )?;
    let mib = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
    for target in &report.targets {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            target.target.label(),
            target.version,
            mib(target.pss_idle_mib),
            mib(target.pss_peak_mib),
            mib(target.rss_peak_mib),
            if target.command.is_empty() {
                String::new()
            } else {
                format!("`{}`", target.command)
            }
        )?;
    }
    Ok(())
}

fn cell_table(out: &mut String, cell: &CellFigures) -> std::fmt::Result {
    writeln!(out, "\n## {}\n", cell.label)?;
    writeln!(
        out,
        "| target | calls/s | p50 | p90 | p99 | p99.9 | added p50 | CPU per call | x pingora | in flight | notes |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|---|---|---|")?;
    for figures in &cell.results {
        let (Some(rate), Some(latency)) = (figures.rate, figures.latency_us) else {
            writeln!(
                out,
                "| {} | - | - | - | - | - | - | - | - | - | no valid window |",
                figures.target.label()
            )?;
            continue;
        };
        writeln!(
            out,
            "| {} | {:.0} | {} | {} | {} | {} | {} | {} | {} | {:.1} | {} |",
            figures.target.label(),
            rate.median,
            micros(latency.p50),
            micros(latency.p90),
            micros(latency.p99),
            micros(latency.p999),
            spread(figures.added_p50_us, micros),
            spread(figures.cpu_us, micros),
            spread(figures.cpu_ratio, |ratio| format!("{ratio:.2}")),
            figures.in_flight.map_or(0.0, |in_flight| in_flight.median),
            notes(figures)
        )?;
    }
    Ok(())
}

fn spread(spread: Option<Spread>, show: impl Fn(f64) -> String) -> String {
    spread.map_or("-".to_owned(), |s| {
        format!("{} [{}, {}]", show(s.median), show(s.min), show(s.max))
    })
}

/// What a reader must know before reading the row.
pub fn notes(figures: &Figures) -> String {
    let mut notes = Vec::new();
    if figures.invalid_windows > 0 {
        notes.push(format!("{} invalid windows", figures.invalid_windows));
    }
    if figures.thin {
        notes.push(format!("thin: {} calls", figures.calls));
    }
    if figures.reconnects > 0 {
        notes.push(format!("{} reconnects", figures.reconnects));
    }
    if let Some(late) = figures.lateness_p99_us {
        notes.push(format!("own timer late by {} at p99", micros(late)));
    }
    notes.join(", ")
}
