//! The section on hosted servers: the same server native, behind Weir, and in a sandbox behind Weir.

use super::html::class;
use super::svg::escape;
use super::{Config, TargetInfo, micros};
use crate::stats::{CellFigures, Figures, Spread};
use crate::target::Kind;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Hosted servers beside the same ones native.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hosted {
    /// How they were measured.
    pub config: Config,
    /// Version of runsc.
    pub gvisor: String,
    /// Load average of the last minute before.
    pub load_at_start: String,
    /// The same after.
    pub load_at_end: String,
    /// One for each runtime.
    pub servers: Vec<HostedServer>,
}

/// One server in its three forms.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostedServer {
    /// What it is written with.
    pub label: String,
    /// The three forms.
    pub targets: Vec<TargetInfo>,
    /// Windows that do not count, and why.
    pub invalid: Vec<String>,
    /// The figures.
    pub cells: Vec<CellFigures>,
}

impl Hosted {
    /// The figures of all servers.
    pub fn cells(&self) -> impl Iterator<Item = &CellFigures> {
        self.servers.iter().flat_map(|server| &server.cells)
    }

    /// Windows that do not count.
    pub fn invalid_windows(&self) -> usize {
        self.servers.iter().map(|server| server.invalid.len()).sum()
    }

    /// All windows.
    pub fn windows(&self) -> usize {
        let of = |figures: &Figures| figures.windows + figures.invalid_windows;
        self.cells().flat_map(|cell| &cell.results).map(of).sum()
    }

    /// What a reader of a README wants to know: the plainest cell of each server.
    pub fn sentences(&self) -> Vec<String> {
        let of = |server: &HostedServer| {
            let small = |cell: &&CellFigures| cell.cell.connections == 1 && cell.cell.size <= 4096;
            let cell = server.cells.iter().rfind(small)?;
            let figures = |kind| cell.of(kind).and_then(|f| f.latency_us.zip(f.of_native));
            let (latency, times) = figures(Kind::WeirHosted)?;
            let (_, without) = figures(Kind::WeirNative)?;
            Some(format!(
                "In a gVisor sandbox behind Weir ({}, {}) a call takes {} (p50), {:.2} times as long as of the same server \
                 native; behind Weir without a sandbox {:.2} times.",
                server.label,
                cell.label,
                micros(latency.p50),
                times.p50.median,
                without.p50.median
            ))
        };
        self.servers.iter().filter_map(of).collect()
    }

    fn conditions(&self) -> String {
        let config = &self.config;
        format!(
            "{} rounds, interleaved; windows of {} ms after {} ms of warm-up; gVisor {}; {}; load average {} at the start and \
             {} at the end",
            config.rounds,
            config.measure_ms,
            config.warmup_ms,
            self.gvisor,
            config.placement,
            self.load_at_start,
            self.load_at_end
        )
    }
}

const HEADS: [&str; 10] = [
    "server",
    "call",
    "form",
    "p50",
    "p90",
    "p99",
    "CPU per call",
    "of it gateway, runner, server",
    "x native: p50, p90, p99",
    "CPU x native",
];

const NOTE: &str = "The same interpreter, packages, bundle and command three times: native on loopback, behind Weir, and in a \
    gVisor sandbox behind Weir with the limits that a server has when nothing is said. Full scanning both ways, audit on. Ratios \
    are medians over the rounds. CPU is that of gateway, runner and server together, a sandbox's by its control group. *thin*: \
    under 1000 calls, read no p99.";

/// One form in one cell, as cells of a table.
fn row(server: &HostedServer, cell: &CellFigures, figures: &Figures) -> [String; 10] {
    let none = || "-".to_owned();
    let ratio = |spread: Spread| format!("{:.2}", spread.median);
    let latency = figures.latency_us;
    let time = |of: fn(&crate::stats::Quantiles) -> f64| {
        latency.as_ref().map_or_else(none, |l| micros(of(l)))
    };
    let form = figures.target.label().to_owned();
    [
        server.label.clone(),
        cell.label.clone(),
        if figures.windows == 0 {
            format!("{form}: no valid window")
        } else if figures.thin {
            format!("{form} (thin)")
        } else {
            form
        },
        time(|l| l.p50),
        time(|l| l.p90),
        time(|l| l.p99),
        figures.cpu_us.map_or_else(none, |cpu| micros(cpu.median)),
        figures
            .cpu_parts
            .filter(|_| figures.target != Kind::Native)
            .map_or_else(none, |parts| {
                let parts = [parts.own_us, parts.runner_us, parts.server_us];
                parts.map(micros).join(", ")
            }),
        figures
            .of_native
            .map_or_else(none, |of| [of.p50, of.p90, of.p99].map(ratio).join(", ")),
        figures.cpu_ratio.map_or_else(none, ratio),
    ]
}

fn rows(hosted: &Hosted) -> Vec<(Kind, [String; 10])> {
    let of = |server| move |cell| of_cell(server, cell);
    let servers = hosted.servers.iter();
    servers
        .flat_map(|server| server.cells.iter().flat_map(of(server)))
        .collect()
}

fn of_cell(server: &HostedServer, cell: &CellFigures) -> Vec<(Kind, [String; 10])> {
    let results = cell.results.iter();
    results
        .map(|figures| (figures.target, row(server, cell, figures)))
        .collect()
}

/// The section in Markdown.
pub fn markdown(out: &mut String, hosted: &Hosted) -> std::fmt::Result {
    writeln!(out, "\n## Hosted\n\n{NOTE}\n\n{}.\n", hosted.conditions())?;
    for line in hosted.servers.iter().flat_map(|server| &server.invalid) {
        writeln!(out, "- invalid: {line}")?;
    }
    writeln!(
        out,
        "\n| {} |\n|{}",
        HEADS.join(" | "),
        "---|".repeat(HEADS.len())
    )?;
    for (_, cells) in rows(hosted) {
        writeln!(out, "| {} |", cells.join(" | "))?;
    }
    Ok(())
}

/// The section of the page.
pub fn html(out: &mut String, hosted: &Hosted) {
    let heads = HEADS.map(|head| format!("<th>{head}")).concat();
    let rows: String = rows(hosted)
        .into_iter()
        .map(|(kind, cells)| {
            let [server, call, form, rest @ ..] = cells;
            let rest = rest.map(|cell| format!("<td>{}", escape(&cell))).concat();
            format!(
                "<tr><td>{}<td class=\"words\">{}<td class=\"words\"><i class=\"{}\"></i>{}{rest}</tr>",
                escape(&server),
                escape(&call),
                class(kind),
                escape(&form)
            )
        })
        .collect();
    let invalid: String = hosted
        .servers
        .iter()
        .flat_map(|server| &server.invalid)
        .map(|line| format!("<li>{}", escape(line)))
        .collect();
    let _ = write!(
        out,
        "<section><h2>Hosted</h2><p class=\"note\">{}</p><p class=\"note\">{}.</p><ul>{invalid}</ul><div class=\"scroll\">\
         <table><tr>{heads}</tr>{rows}</table></div></section>",
        escape(&NOTE.replace('*', "")),
        escape(&hosted.conditions())
    );
}

/// What belongs into a document: one line for each server and call.
pub fn table(hosted: &Hosted) -> String {
    let mut out = String::from(
        "| server, call | native, p50 (p99) | behind Weir | in a sandbox behind Weir | x native, p50 (p99) | CPU per call: native, \
         behind Weir, in a sandbox |\n|---|---|---|---|---|---|\n",
    );
    for server in &hosted.servers {
        for cell in &server.cells {
            let of = |kind| cell.of(kind);
            let time = |kind| {
                of(kind)
                    .and_then(|f| f.latency_us)
                    .map_or("-".to_owned(), |l| {
                        format!("{} ({})", micros(l.p50), micros(l.p99))
                    })
            };
            let cpu = |kind| {
                let cpu = of(kind).and_then(|f| f.cpu_us);
                cpu.map_or("-".to_owned(), |cpu| micros(cpu.median))
            };
            let ratio = of(Kind::WeirHosted).and_then(|f| f.of_native);
            let ratio = ratio.map_or("-".to_owned(), |of| {
                format!("{:.2} ({:.2})", of.p50.median, of.p99.median)
            });
            let _ = writeln!(
                out,
                "| {}, {} | {} | {ratio} | {} |",
                server.label,
                cell.label,
                Kind::HOSTING.map(time).join(" | "),
                Kind::HOSTING.map(cpu).join(", ")
            );
        }
    }
    out
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::process::meter::Parts;
    use crate::report::tests::report_of;
    use crate::stats::{OfNative, Quantiles};

    /// One server in one cell: 1 ms native, twice that behind Weir, six times in a sandbox.
    pub fn hosted() -> Hosted {
        let base = report_of(&[50.0, 50.0]);
        let figures = |(kind, times): (Kind, f64)| {
            let of = Spread::of([times]).unwrap();
            Figures {
                target: kind,
                latency_us: Some(Quantiles {
                    p50: 1000.0 * times,
                    p90: 1200.0 * times,
                    p99: 2000.0 * times,
                    p999: 3000.0 * times,
                    max: 4000.0 * times,
                }),
                cpu_us: Spread::of([800.0 * times]),
                cpu_ratio: (kind != Kind::Native).then_some(of),
                cpu_parts: Some(Parts {
                    own_us: 10.0,
                    runner_us: 20.0,
                    server_us: 800.0 * times - 30.0,
                }),
                of_native: (kind != Kind::Native).then_some(OfNative {
                    p50: of,
                    p90: of,
                    p99: of,
                }),
                ..base.cells[0].results[1].clone()
            }
        };
        let forms = Kind::HOSTING.into_iter().zip([1.0, 2.0, 6.0]);
        Hosted {
            config: base.config.clone(),
            gvisor: "20240729.0".to_owned(),
            load_at_start: "0.10".to_owned(),
            load_at_end: "1.20".to_owned(),
            servers: vec![HostedServer {
                label: "Python, FastMCP".to_owned(),
                targets: Vec::new(),
                invalid: Vec::new(),
                cells: vec![CellFigures {
                    results: forms.map(figures).collect(),
                    ..base.cells[0].clone()
                }],
            }],
        }
    }

    #[test]
    fn each_form_has_a_row_with_its_ratio_to_the_native_server() {
        let mut hosted = hosted();
        let mut text = String::new();
        markdown(&mut text, &hosted).unwrap();
        for part in [
            "## Hosted",
            "gVisor 20240729.0",
            "load average 0.10 at the start and 1.20 at the end",
            "| Python, FastMCP | 300 B, 1 conn | native server | 1.00 ms | 1.20 ms | 2.00 ms | 800 \u{b5}s |",
            "| weir, sandboxed server | 6.00 ms | 7.20 ms | 12.0 ms | 4.80 ms | 10.0 \u{b5}s, 20.0 \u{b5}s, 4.77 ms | \
             6.00, 6.00, 6.00 | 6.00 |",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        hosted.servers[0].cells[0].results[2].thin = true;
        hosted.servers[0].invalid.push("<why>".to_owned());
        let mut page = String::new();
        html(&mut page, &hosted);
        assert!(page.contains("sandboxed server (thin)") && page.contains("&lt;why&gt;"));
        assert_eq!((hosted.windows(), hosted.invalid_windows()), (6, 1));
    }

    #[test]
    fn a_document_gets_a_line_for_each_call() {
        let table = table(&hosted());
        let line = "| Python, FastMCP, 300 B, 1 conn | 1.00 ms (2.00 ms) | 2.00 ms (4.00 ms) | 6.00 ms (12.0 ms) | 6.00 (6.00) | \
             800 \u{b5}s, 1.60 ms, 4.80 ms |";
        assert!(table.lines().nth(2) == Some(line), "{table}");
    }

    #[test]
    fn a_report_of_hosted_servers_alone_has_their_section_and_no_empty_ones() {
        let machine = crate::machine::Machine::default();
        let report = super::super::Report::of_hosted(
            "2026-01-31T23-59-58Z".to_owned(),
            "weir-bench hosted".to_owned(),
            machine,
            hosted(),
        );
        let text = report.markdown();
        assert!(
            text.contains("## Hosted") && !text.contains("## Memory"),
            "{text}"
        );
        let page = super::super::html::render(&report);
        assert!(page.contains("<h2>Hosted</h2>") && !page.contains("<h2>Latency</h2>"));
        let json = serde_json::to_string(&report).unwrap();
        let again: super::super::Report = serde_json::from_str(&json).unwrap();
        assert_eq!(again.hosted.unwrap().windows(), 6);
    }
}
