//! Sections of the page that are not of one cell.

use super::html::{class, figure};
use super::plots::{Stack, over_size, over_time, stacks};
use super::svg::{Line, escape};
use super::{Report, micros};
use crate::plan::{Content, Form, size_label};
use crate::soak::Soak;
use crate::stats::CellFigures;
use crate::target::Kind;
use crate::wire::rpc::Era;
use std::fmt::Write;

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

/// CPU over the size of the text.
pub fn size_section(out: &mut String, report: &Report) {
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

/// Where weir's CPU goes.
pub fn stage_section(out: &mut String, report: &Report) {
    let stack = |cell: &CellFigures| {
        let weir = cell.of(Kind::Weir)?;
        let (stages, cpu) = (weir.stages?, weir.cpu_us?.median);
        // Clocks that ran while the processor was someone else's may show more than all of its own.
        let shown = stages.scan_us + stages.policy_us;
        let share = if shown > cpu { cpu / shown } else { 1.0 };
        let (scan, policy) = (stages.scan_us * share, stages.policy_us * share);
        let rest = (cpu - scan - policy).max(0.0);
        Some(Stack {
            label: size_label(cell.cell.size),
            parts: vec![("s-scan", scan), ("s-policy", policy), ("s-rest", rest)],
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
         clocks (time passed, so a busy machine inflates them; never drawn beyond the CPU); the rest is what is left of its CPU: network, HTTP, JSON, \
         audit. The dashed mark is all that the bare pingora pass-through takes.</p>\
         <p class=\"legend still\"><span><i class=\"s-scan\"></i>scan</span><span><i class=\"s-policy\"></i>policy and \
         rewriting</span><span><i class=\"s-rest\"></i>the rest</span></p><div class=\"grid2\">{plots}</div></section>"
    );
}

/// Other people's MCP proxies beside weir.
pub fn peer_section(out: &mut String, report: &Report) {
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

/// Delays of single events.
pub fn event_section(out: &mut String, report: &Report) {
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

/// Under more than the peak rate.
pub fn overload_section(out: &mut String, report: &Report) {
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

/// Memory and descriptors over time.
pub fn soak_section(out: &mut String, soak: &Soak) {
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
