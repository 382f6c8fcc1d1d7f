//! What a plugin costs per message: `cost NAME=COMPONENT...`. Each component takes the configuration of
//! `policies/plugins/yardstick`: `{"work": "nothing" | "read" | "edit" | "scan"}`.
//!
//! Figures are of the processor's time, all of one run; compare them with each other, not with another machine's. `ONLY=WORD` runs
//! the rows that hold the word.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dlp_policy::{About, EvalInput, Evaluator, MessageView, ViewKind};
use dlp_scan::RuleSet;
use domain::{Direction, Era, Grant, Isolation, PluginBinding, TenantId};
use nix::time::{ClockId, clock_gettime};
use plugin_host::{Bound, Cache, Compiler, HostOptions, PluginHost};

/// Each figure is the best of these rounds.
const ROUNDS: u32 = 15;
const ROUND: Duration = Duration::from_millis(10);
/// No figure takes much longer than this.
const ENOUGH: Duration = Duration::from_millis(400);
const SIZES: [(&str, usize); 4] = [
    ("300 B", 300),
    ("1 KiB", 1024),
    ("4 KiB", 4096),
    ("64 KiB", 65_536),
];

#[expect(clippy::print_stdout, reason = "the table is the outcome")]
fn main() {
    let folder = std::env::temp_dir().join(format!("weir-cost-{}", std::process::id()));
    let host = PluginHost::new(HostOptions {
        compiler: Compiler::InThisProcess,
        cache: Some(Cache::new(folder.clone(), [1; 32])),
        hash_key: [0; 32],
    })
    .expect("plugins run here");
    let components: Vec<_> = std::env::args()
        .skip(1)
        .map(|arg| {
            let (name, path) = arg.split_once('=').expect("usage: cost NAME=COMPONENT...");
            let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{path}: {e}"));
            (name.to_owned(), bytes)
        })
        .collect();
    println!(
        "| plugin | component | compile, link, describe | the same from the cache |\n|---|---|---|---|"
    );
    let mut plugins = Vec::new();
    for (name, bytes) in &components {
        let load = || {
            // Compiling uses several threads, so this one is by the wall clock.
            let began = Instant::now();
            let plugin = host.load(bytes).expect("a plugin");
            (plugin, began.elapsed().as_secs_f64() * 1e3)
        };
        let (_, compiled_ms) = load();
        let (plugin, cached_ms) = (0..5)
            .map(|_| load())
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .expect("five");
        println!(
            "| {name} | {} KiB | {compiled_ms:.0} ms | {cached_ms:.2} ms |",
            bytes.len() / 1024
        );
        plugins.push((name.as_str(), plugin));
    }
    // A cache of this run only; what is left is the system's to tidy.
    let _ = std::fs::remove_dir_all(&folder);
    let only = std::env::var("ONLY").unwrap_or_default();
    let heads = SIZES.map(|(head, _)| head).join(" | ");
    println!(
        "\n| plugin, work | instance | chain | {heads} | ratio at 1 KiB |\n|---|---|---|---|---|---|---|---|"
    );
    let mut base = None;
    for (name, plugin) in &plugins {
        for work in ["nothing", "read", "scan", "edit"] {
            for (isolation, life) in [(Isolation::Tenant, "kept"), (Isolation::Message, "fresh")] {
                for chain in [1, 3, 10] {
                    let row = format!("| {name}, {work} | {life} | {chain} |");
                    if !row.contains(&only) {
                        continue;
                    }
                    let bounds: Vec<Bound> = (0..chain)
                        .map(|_| bind(&host, plugin, work, isolation))
                        .collect();
                    let costs = SIZES.map(|(_, bytes)| cost(&bounds, bytes));
                    let base = *base.get_or_insert(costs[1]);
                    let cells = costs.map(|us| format!("{us:.2} us"));
                    println!("{row} {} | {:.1} |", cells.join(" | "), costs[1] / base);
                }
            }
        }
    }
    let views = SIZES.map(|(_, bytes)| format!("{:.2} us", best(|| drop(black_box(view(bytes))))));
    println!(
        "| laying the message out, once for all plugins | - | - | {} | |",
        views.join(" | ")
    );
}

fn bind(
    host: &PluginHost,
    plugin: &Arc<plugin_host::Plugin>,
    work: &str,
    isolation: Isolation,
) -> Bound {
    let mut binding = PluginBinding::new("yardstick");
    binding.isolation = isolation;
    binding.timeout_ms = 1000;
    binding.memory_mb = 64;
    binding.grants.push(Grant::Scan);
    binding.config.insert("work".into(), work.into());
    let tenant = TenantId::parse("tenant").expect("an id");
    host.bind(plugin, &binding, &tenant, "server", RuleSet::builtin())
        .expect("a binding")
}

/// Microseconds for one message through all of them.
fn cost(bounds: &[Bound], bytes: usize) -> f64 {
    let view = view(bytes);
    let input = EvalInput {
        view: &view,
        json: b"",
        findings: &[],
        rules: RuleSet::builtin(),
    };
    best(|| {
        for bound in bounds {
            black_box(bound.evaluate(&input)).expect("a verdict");
        }
    })
}

/// Microseconds of the processor, in the best round: what else runs on the machine is not counted, and
/// what it does to the caches least.
fn best(mut once: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    let all = Instant::now();
    for round in 0.. {
        if round >= ROUNDS || (round >= 3 && all.elapsed() > ENOUGH) {
            break;
        }
        let (began, mut count) = (used(), 0u32);
        let mut took = Duration::ZERO;
        while took < ROUND {
            // The clock is a system call.
            let batch = if round > 0 && best < 50.0 { 64 } else { 1 };
            for _ in 0..batch {
                once();
            }
            count += batch;
            took = used().saturating_sub(began);
        }
        best = best.min(took.as_secs_f64() * 1e6 / f64::from(count));
    }
    best
}

/// What this thread has used of a processor.
fn used() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .expect("Linux has this clock")
        .into()
}

/// A call with leaves of about 40 bytes, as tools have them.
fn view(bytes: usize) -> MessageView {
    let about = About {
        direction: Direction::ToServer,
        era: Era::Handshake,
        method: "tools/call",
        tool: Some("query"),
        server: "server",
        tenant: "tenant",
        session: Some("session"),
        key_id: "key",
        call: None,
    };
    let leaves = bytes / 50 + 1;
    let mut view = MessageView::new(&about, bytes * 3, leaves * 2);
    for n in 0..leaves {
        view.leaf(ViewKind::Key, "$.params.arguments{key}", "argument");
        view.leaf(
            ViewKind::Text,
            "$.params.arguments.argument",
            &format!("{n:>8} some words of a usual argument."),
        );
    }
    view
}
