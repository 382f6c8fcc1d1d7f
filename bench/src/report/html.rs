//! The report as one HTML page: no script, no font, no file beside it.

use super::sections::{
    event_section, overload_section, peer_section, size_section, soak_section, stage_section,
};
use super::svg::{Bar, Line, bars, escape, percentiles};
use super::{Report, hosted, markdown, micros};
use crate::machine::Machine;
use crate::soak::Soak;
use crate::stats::{CellFigures, Figures, Spread};
use crate::target::Kind;
use std::fmt::Write;

/// Renders the page.
pub fn render(report: &Report) -> String {
    let mut out = String::with_capacity(128 << 10);
    let _ = write!(
        out,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>MCP proxy benchmark {0}</title><style>{1}</style></head><body><main>",
        report.started,
        include_str!("style.css")
    );
    header(&mut out, report);
    cards(&mut out, report);
    legend(&mut out, report);
    size_section(&mut out, report);
    stage_section(&mut out, report);
    peer_section(&mut out, report);
    event_section(&mut out, report);
    overload_section(&mut out, report);
    if let Some(soak) = &report.soak {
        soak_section(&mut out, soak);
    }
    if let Some(hosted) = &report.hosted {
        hosted::html(&mut out, hosted);
    }
    cpu_section(&mut out, report);
    latency_section(&mut out, report);
    tables(&mut out, report);
    about(&mut out, report);
    out + "</main></body></html>\n"
}

/// A page with one soak and nothing else.
pub fn soak_page(soak: &Soak, machine: &Machine) -> String {
    let mut out = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Soak</title><style>{}</style></head><body><main><header><h1>Soak</h1><p class=\"sub\">commit <code>{}</code> \
         &middot; {}, {} cores &middot; load average {} at the start, {} at the end</p></header>",
        include_str!("style.css"),
        escape(&machine.commit),
        escape(&machine.cpu),
        machine.cores,
        machine.load_at_start,
        machine.load_at_end
    );
    soak_section(&mut out, soak);
    out + "</main></body></html>\n"
}

fn header(out: &mut String, report: &Report) {
    let machine = &report.machine;
    let _ = write!(
        out,
        "<header><h1>MCP proxy benchmark</h1><p class=\"sub\">{} &middot; commit <code>{}</code> &middot; {}, {} cores{}</p>",
        report.started,
        escape(&machine.commit),
        escape(&machine.cpu),
        machine.cores,
        if machine.virtual_machine {
            ", virtual machine"
        } else {
            ""
        }
    );
    if report.is_noisy() {
        let _ = write!(
            out,
            "<p class=\"warn\">The machine was not quiet: other programs used {:.2} of {} cores while this was measured. \
             Trust the ratios, which compare targets within the same minute, and not the latencies.</p>",
            report.noise(),
            machine.cores
        );
    }
    if !report.invalid.is_empty() {
        let lines: String = report
            .invalid
            .iter()
            .take(20)
            .map(|line| format!("<li>{}</li>", escape(line)))
            .collect();
        let _ = write!(
            out,
            "<div class=\"warn\">{} windows are invalid and not in the figures:<ul>{lines}</ul></div>",
            report.invalid.len()
        );
    }
    out.push_str("</header>");
}

/// The goals at a glance, when the proxy was measured.
fn cards(out: &mut String, report: &Report) {
    let with_goal = report.cells.iter().filter_map(|cell| {
        let figures = cell.of(Kind::Weir)?;
        Some((cell, figures.cpu_ratio?, figures.cpu_goal?))
    });
    let mut cards: Vec<String> = with_goal
        .map(|(cell, ratio, goal)| {
            card(
                ratio.median <= goal,
                &format!("{:.2}\u{d7}", ratio.median),
                &cell.label,
                &format!("CPU of bare pingora, goal {goal}\u{d7}"),
            )
        })
        .collect();
    if let Some(idle) = report
        .targets
        .iter()
        .find(|t| t.target == Kind::Weir)
        .and_then(|t| t.pss_idle_mib)
    {
        cards.push(card(
            idle <= 50.0,
            &format!("{idle:.0} MiB"),
            "idle memory",
            "PSS, goal 50 MiB",
        ));
    }
    if let Some(over) = report
        .events
        .iter()
        .find(|figures| figures.target == Kind::Weir)
        .and_then(|figures| figures.over_floor_us)
    {
        cards.push(card(
            over <= 100.0,
            &micros(over),
            "event of a stream",
            "over the pass-through, goal 100 \u{b5}s",
        ));
    }
    if !cards.is_empty() {
        let _ = write!(out, "<section class=\"cards\">{}</section>", cards.concat());
    }
}

fn card(good: bool, figure: &str, what: &str, detail: &str) -> String {
    let class = if good { "good" } else { "bad" };
    format!(
        "<div class=\"card {class}\"><b>{}</b><span>{}</span><small>{}</small></div>",
        escape(figure),
        escape(what),
        escape(detail)
    )
}

fn legend(out: &mut String, report: &Report) {
    let items: String = report
        .targets
        .iter()
        .map(|target| {
            format!(
                "<span><i class=\"{}\"></i>{}</span>",
                class(target.target),
                target.target.label()
            )
        })
        .collect();
    let _ = write!(out, "<p class=\"legend\">{items}</p>");
}

/// The CSS class of a target's colour.
pub fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Direct => "t-direct",
        Kind::Nginx => "t-nginx",
        Kind::Haproxy => "t-haproxy",
        Kind::Hyper => "t-hyper",
        Kind::Pingora => "t-pingora",
        Kind::PingoraProxy => "t-stock",
        Kind::PingoraTls => "t-pingora-tls",
        Kind::PingoraH2 => "t-pingora-h2",
        Kind::McpProxyPy => "t-mcp-py",
        Kind::McpProxyNpm => "t-mcp-npm",
        Kind::Supergateway => "t-supergateway",
        Kind::Fastmcp => "t-fastmcp",
        Kind::Mitmproxy => "t-mitm",
        Kind::Contextforge => "t-forge",
        Kind::ContextforgePlugins => "t-forge-dlp",
        Kind::Native => "t-direct",
        Kind::Weir => "t-weir",
        Kind::WeirAllow => "t-weir-allow",
        Kind::WeirDryRun => "t-weir-dry",
        Kind::WeirAuditOff => "t-weir-off",
        Kind::WeirAuditAll => "t-weir-all",
        Kind::WeirStdio => "t-weir-stdio",
        Kind::WeirMany => "t-weir-many",
        Kind::WeirReload => "t-weir-reload",
        Kind::WeirPlugin => "t-weir-plugin",
        Kind::WeirPlugins3 => "t-weir-plugins3",
        Kind::WeirTls => "t-weir-tls",
        Kind::WeirH2 => "t-weir-h2",
        Kind::WeirNative => "t-weir",
        Kind::WeirHosted => "t-weir-hosted",
        Kind::Url => "t-url",
    }
}

fn cpu_section(out: &mut String, report: &Report) {
    let plots: String = report.cells.iter().filter_map(cpu_plot).collect();
    if !plots.is_empty() {
        let _ = write!(
            out,
            "<section><h2>CPU per call</h2><p class=\"note\">User and system time of the target's whole process tree, per \
             answered call. Median of the rounds; the thin line spans the lowest and the highest. The dashed line and the \
             factor compare with the bare pingora pass-through.</p><div class=\"grid2\">{plots}</div></section>"
        );
    }
}

fn cpu_plot(cell: &CellFigures) -> Option<String> {
    // Beside other people's MCP proxies all other bars would have no length; those have a table of their own.
    let proxies = cell
        .results
        .iter()
        .filter(|figures| figures.target != Kind::Direct && !figures.target.is_peer());
    let rows: Vec<Bar> = proxies
        .filter_map(|figures| {
            let cpu = figures.cpu_us?;
            Some(Bar {
                label: figures.target.label().to_owned(),
                class: class(figures.target),
                value: cpu.median,
                range: (cpu.min, cpu.max),
                ratio: figures.cpu_ratio.map(|ratio| ratio.median),
            })
        })
        .collect();
    let floor = cell
        .of(Kind::Pingora)
        .and_then(|figures| figures.cpu_us)
        .map(|cpu| cpu.median);
    (!rows.is_empty()).then(|| {
        figure(
            &cell.label,
            &bars(&format!("CPU per call, {}", cell.label), &rows, floor),
        )
    })
}

fn latency_section(out: &mut String, report: &Report) {
    let plots: String = report.cells.iter().filter_map(latency_plot).collect();
    if plots.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "<section><h2>Latency</h2><p class=\"note\">From send to the last byte of a checked answer; in open-loop cells from \
         the moment the call was due, so a stall counts for every call it delayed. All valid windows together, drawn up to \
         the percentile with ten calls above it. Both scales are logarithmic.</p><div class=\"grid2\">{plots}</div></section>"
    );
}

fn latency_plot(cell: &CellFigures) -> Option<String> {
    let drawn = cell
        .results
        .iter()
        .filter(|figures| figures.curve.len() > 1);
    let lines: Vec<Line> = drawn
        .map(|figures| Line {
            class: class(figures.target),
            points: figures.curve.clone(),
        })
        .collect();
    (!lines.is_empty()).then(|| {
        figure(
            &cell.label,
            &percentiles(&format!("latency percentiles, {}", cell.label), &lines),
        )
    })
}

/// A plot in its frame.
pub fn figure(title: &str, svg: &str) -> String {
    format!(
        "<figure><figcaption>{}</figcaption>{svg}</figure>",
        escape(title)
    )
}

fn tables(out: &mut String, report: &Report) {
    if report.cells.is_empty() {
        return;
    }
    out.push_str("<section><h2>Figures</h2>");
    for cell in &report.cells {
        let rows: String = cell.results.iter().map(row).collect();
        let _ = write!(
            out,
            "<details open><summary>{}</summary><div class=\"scroll\"><table><tr><th>target<th>calls/s<th>p50<th>p90<th>p99<th>p99.9\
             <th>added p50<th>CPU per call<th>&times; pingora<th>in flight<th>notes</tr>{rows}</table></div></details>",
            escape(&cell.label)
        );
    }
    out.push_str("</section>");
}

fn row(figures: &Figures) -> String {
    let name = format!(
        "<td><i class=\"{}\"></i>{}",
        class(figures.target),
        figures.target.label()
    );
    let (Some(rate), Some(latency)) = (figures.rate, figures.latency_us) else {
        return format!("<tr>{name}<td colspan=\"10\">no valid window</tr>");
    };
    let spread = |spread: Option<Spread>, show: &dyn Fn(f64) -> String| match spread {
        Some(s) => format!(
            "<td title=\"{} to {}\">{}",
            show(s.min),
            show(s.max),
            show(s.median)
        ),
        None => "<td>&ndash;".to_owned(),
    };
    format!(
        "<tr>{name}<td>{:.0}<td>{}<td>{}<td>{}<td>{}{}{}{}<td>{:.1}<td class=\"words\">{}</tr>",
        rate.median,
        micros(latency.p50),
        micros(latency.p90),
        micros(latency.p99),
        micros(latency.p999),
        spread(figures.added_p50_us, &micros),
        spread(figures.cpu_us, &micros),
        spread(figures.cpu_ratio, &|ratio| format!("{ratio:.2}")),
        figures.in_flight.map_or(0.0, |in_flight| in_flight.median),
        escape(&markdown::notes(figures))
    )
}

fn about(out: &mut String, report: &Report) {
    let (machine, config) = (&report.machine, &report.config);
    let mib =
        |value: Option<f64>| value.map_or("&ndash;".to_owned(), |value| format!("{value:.1}"));
    let targets: String = report
        .targets
        .iter()
        .map(|t| {
            format!(
                "<tr><td><i class=\"{}\"></i>{}<td>{}<td>{}<td>{}<td>{}<td class=\"words\"><code>{}</code></tr>",
                class(t.target),
                t.target.label(),
                mib(t.pss_idle_mib),
                mib(t.pss_peak_mib),
                mib(t.rss_peak_mib),
                escape(&t.version),
                escape(&t.command)
            )
        })
        .collect();
    let facts = [
        ("command", report.command.clone()),
        (
            "rounds",
            format!(
                "{}, targets interleaved in shuffled order, seed {}",
                config.rounds, config.seed
            ),
        ),
        (
            "windows",
            format!(
                "{} ms (twice that from 1 MiB) after {} ms of warm-up; one failed or wrong answer makes a window invalid",
                config.measure_ms, config.warmup_ms
            ),
        ),
        (
            "protocol",
            format!(
                "MCP {}, Streamable HTTP over HTTP/1.1 on loopback",
                config.revision
            ),
        ),
        (
            "threads",
            format!(
                "{} workers in floors and peers; {}",
                config.threads, config.placement
            ),
        ),
        (
            "versions",
            format!(
                "weir-bench {}, pingora {}",
                machine.bench_version, machine.pingora_version
            ),
        ),
        (
            "machine",
            format!(
                "{}, {} cores, {} MiB, Linux {}",
                machine.cpu, machine.cores, machine.memory_mib, machine.kernel
            ),
        ),
        (
            "load average",
            format!(
                "{} at the start, {} at the end; {:.2} cores used by others while measuring",
                machine.load_at_start,
                machine.load_at_end,
                report.noise()
            ),
        ),
        ("not measured", report.absent.join("; ")),
    ];
    let facts: String = facts
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("<dt>{name}<dd>{}", escape(value)))
        .collect();
    let _ = write!(
        out,
        "<section><h2>Memory and set-up</h2><div class=\"scroll\"><table><tr><th>target<th>PSS idle MiB<th>PSS peak MiB\
         <th>RSS peak MiB<th>version<th>started as</tr>{targets}</table></div><dl>{facts}</dl></section>"
    );
}
