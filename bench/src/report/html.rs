//! The report as one HTML page: no script, no font, no file beside it.

use super::plots::{Stack, over_size, over_time, stacks};
use super::svg::{Bar, Line, bars, escape, percentiles};
use super::{Report, markdown, micros};
use crate::machine::Machine;
use crate::plan::{Content, Form, size_label};
use crate::soak::Soak;
use crate::stats::{CellFigures, Figures, Spread};
use crate::target::Kind;
use crate::wire::rpc::Era;
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

fn class(kind: Kind) -> &'static str {
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
        Kind::Url => "t-url",
    }
}

/// Plain cells of so many connections, in the order of their sizes.
fn by_size(report: &Report, connections: usize) -> Vec<&CellFigures> {
    let mut cells: Vec<&CellFigures> = report
        .cells
        .iter()
        .filter(|of| {
            let cell = &of.cell;
            cell.connections == connections
                && cell.rate.is_none()
                && cell.form == Form::Json
                && cell.content == Content::Clean
                && cell.era == Era::Handshake
        })
        .collect();
    cells.sort_by_key(|of| of.cell.size);
    cells
}

fn size_section(out: &mut String, report: &Report) {
    let plot = |connections: usize| {
        let cells = by_size(report, connections);
        let line = |kind: Kind| Line {
            class: class(kind),
            points: cells
                .iter()
                .filter_map(|cell| Some((cell.cell.size as f64, cell.of(kind)?.cpu_us?.median)))
                .collect(),
        };
        let lines: Vec<Line> = report
            .targets
            .iter()
            .map(|target| target.target)
            .filter(|&kind| kind != Kind::Direct)
            .map(line)
            .filter(|line| line.points.len() > 1)
            .collect();
        let title = format!(
            "{connections} connection{}",
            if connections == 1 { "" } else { "s" }
        );
        let plot = over_size(&format!("CPU per call by size, {title}"), &lines);
        (!plot.is_empty()).then(|| figure(&title, &plot))
    };
    let plots: String = [1, 16].into_iter().filter_map(plot).collect();
    if !plots.is_empty() {
        let _ = write!(
            out,
            "<section><h2>CPU per call by size</h2><p class=\"note\">The text goes up in the call and comes back in the answer. \
             Both scales are logarithmic.</p><div class=\"grid2\">{plots}</div></section>"
        );
    }
}

fn stage_section(out: &mut String, report: &Report) {
    let stack = |cell: &CellFigures| {
        let weir = cell.of(Kind::Weir)?;
        let (stages, cpu) = (weir.stages?, weir.cpu_us?.median);
        let rest = (cpu - stages.scan_us - stages.policy_us).max(0.0);
        Some(Stack {
            label: size_label(cell.cell.size),
            parts: vec![
                ("s-scan", stages.scan_us),
                ("s-policy", stages.policy_us),
                ("s-rest", rest),
            ],
            mark: cell
                .of(Kind::Pingora)
                .and_then(|floor| floor.cpu_us)
                .map(|cpu| cpu.median),
        })
    };
    let plot = |connections: usize| {
        let rows: Vec<Stack> = by_size(report, connections)
            .into_iter()
            .filter_map(stack)
            .collect();
        let title = format!("{connections} conn");
        (!rows.is_empty())
            .then(|| figure(&title, &stacks(&format!("cost by stage, {title}"), &rows)))
    };
    let plots: String = [1, 16].into_iter().filter_map(plot).collect();
    if plots.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "<section><h2>Cost by stage</h2><p class=\"note\">Where Weir's CPU per call goes. Scan and policy are Weir's own \
         clocks (time passed, so a busy machine inflates them); the rest is what is left of its CPU: network, HTTP, JSON, \
         audit. The dashed mark is all that the bare pingora pass-through takes.</p>\
         <p class=\"legend still\"><span><i class=\"s-scan\"></i>scan</span><span><i class=\"s-policy\"></i>policy and \
         rewriting</span><span><i class=\"s-rest\"></i>the rest</span></p><div class=\"grid2\">{plots}</div></section>"
    );
}

/// Other people's MCP proxies beside weir.
fn peer_section(out: &mut String, report: &Report) {
    let cells: Vec<&CellFigures> = report
        .cells
        .iter()
        .filter(|cell| {
            cell.results
                .iter()
                .any(|f| f.target.is_peer() && f.windows + f.invalid_windows > 0)
        })
        .collect();
    let peers: Vec<Kind> = report
        .targets
        .iter()
        .map(|target| target.target)
        .filter(|kind| kind.is_peer())
        .collect();
    if cells.is_empty() || peers.is_empty() {
        return;
    }
    let heads: String = cells
        .iter()
        .map(|cell| format!("<th>{}", escape(&cell.label)))
        .collect();
    let rows: String = peers
        .into_iter()
        .map(|kind| {
            let each: String = cells
                .iter()
                .map(|cell| {
                    let figures = cell.of(kind);
                    match figures.and_then(|f| Some((f.cpu_us?, f.cpu_of_weir?))) {
                        Some((cpu, ratio)) => format!(
                            "<td title=\"{}\"><b>{:.0}&times;</b>",
                            micros(cpu.median),
                            ratio.median
                        ),
                        None if figures.is_some_and(|f| f.invalid_windows > 0) => {
                            "<td>failed".to_owned()
                        }
                        None => "<td>&ndash;".to_owned(),
                    }
                })
                .collect();
            format!(
                "<tr><td><i class=\"{}\"></i>{}{each}</tr>",
                class(kind),
                kind.label()
            )
        })
        .collect();
    let _ = write!(
        out,
        "<section><h2>Other MCP proxies</h2><p class=\"note\">CPU per call as a multiple of Weir's with full scanning and \
         audit on, in the same minute. A proxy that is not being measured is stopped meanwhile. Those in front of a stdio \
         server include that server.</p><div class=\"scroll\"><table class=\"numbers\"><tr><th>proxy{heads}</tr>{rows}</table></div></section>"
    );
}

fn event_section(out: &mut String, report: &Report) {
    if report.events.is_empty() {
        return;
    }
    let rows: String = report
        .events
        .iter()
        .map(|figures| {
            format!(
                "<tr><td><i class=\"{}\"></i>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td class=\"words\">{}</tr>",
                class(figures.target),
                figures.target.label(),
                figures.events,
                micros(figures.p50_us),
                micros(figures.p99_us),
                micros(figures.max_us),
                figures.over_floor_us.map_or("&ndash;".to_owned(), micros),
                escape(&figures.faults.join("; "))
            )
        })
        .collect();
    let _ = write!(
        out,
        "<section><h2>Events of a stream</h2><p class=\"note\">From the server's write to the client's read, one event every \
         two milliseconds.</p><div class=\"scroll\"><table><tr><th>target<th>events<th>p50<th>p99<th>slowest<th>over the \
         pass-through<th>faults</tr>{rows}</table></div></section>"
    );
}

fn overload_section(out: &mut String, report: &Report) {
    if report.overload.is_empty() {
        return;
    }
    let time = |us: Option<f64>| us.map_or("&ndash;".to_owned(), micros);
    let rows: String = report
        .overload
        .iter()
        .map(|f| {
            format!(
                "<tr><td>{}<td>{:.0}<td>{:.0} of {:.0}<td>{:.0}<td>{:.0} %<td>{:.0}<td>{}<td>{}<td>{}<td>{}<td class=\"words\">{}</tr>",
                escape(&f.target),
                f.peak,
                f.offered,
                f.due,
                f.good,
                f.good_of_peak * 100.0,
                f.refused,
                time(f.refusal_p50_us),
                time(f.refusal_p99_us),
                f.failures,
                f.recovery_ms
                    .map_or("not within 30 s".to_owned(), |ms| format!("{ms:.0} ms")),
                escape(&f.faults.join("; "))
            )
        })
        .collect();
    let _ = write!(
        out,
        "<section><h2>Overload</h2><p class=\"note\">Three times the peak rate of a closed loop, 4 KiB. Goal: at least 80 % of \
         the peak as right answers, refusals within 50 ms, well again within 5 s.</p><div class=\"scroll\"><table><tr><th>target\
         <th>peak /s<th>offered /s<th>right /s<th>of the peak<th>refused /s<th>refusal p50<th>refusal p99<th>failures<th>well \
         again after<th>faults</tr>{rows}</table></div></section>"
    );
}

fn soak_section(out: &mut String, soak: &Soak) {
    let points = |of: fn(&crate::soak::Sample) -> f64| -> Vec<(f64, f64)> {
        soak.samples.iter().map(|s| (s.seconds, of(s))).collect()
    };
    let plots = [
        ("memory (PSS)", " MiB", points(|s| s.pss_mib)),
        ("open descriptors", "", points(|s| s.descriptors as f64)),
    ];
    let plots: String = plots
        .iter()
        .map(|(title, unit, points)| {
            figure(title, &over_time(title, class(soak.target), unit, points))
        })
        .collect();
    let _ = write!(
        out,
        "<section><h2>Soak</h2><p class=\"note\">{} A mixed day at {} calls a second over {} connections.</p>\
         <div class=\"grid2\">{plots}</div></section>",
        escape(&(soak.sentence() + ".")),
        soak.rate,
        soak.connections
    );
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

fn figure(title: &str, svg: &str) -> String {
    format!(
        "<figure><figcaption>{}</figcaption>{svg}</figure>",
        escape(title)
    )
}

fn tables(out: &mut String, report: &Report) {
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
