//! What a plugin costs per message: `cost COMPONENT`, where the component is the yardstick plugin of
//! `policies/plugins` or one in another language that takes the same configuration.
//!
//! All figures are of one run; compare them with each other, not with another machine's.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dlp_policy::{About, EvalInput, Evaluator, MessageView, ViewKind};
use dlp_scan::RuleSet;
use domain::{Direction, Era, Isolation, PluginBinding, TenantId};
use plugin_host::{Bound, Compiler, HostOptions, PluginHost};

/// Each figure is the best of these rounds: what others do on the machine only adds.
const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(60);

#[expect(clippy::print_stdout, reason = "the table is the outcome")]
fn main() {
    let path = std::env::args().nth(1).expect("usage: cost COMPONENT");
    let component = std::fs::read(path).expect("the component can be read");
    let host = PluginHost::new(HostOptions {
        compiler: Compiler::InThisProcess,
        cache: None,
        hash_key: [0; 32],
    })
    .expect("plugins run here");
    let began = Instant::now();
    let plugin = host.load(&component).expect("a plugin");
    println!(
        "component {} bytes, compiled and loaded in {:?}\n",
        component.len(),
        began.elapsed()
    );
    println!(
        "| work | isolation | chain | 300 B | 1 KiB | 4 KiB | 64 KiB |\n|---|---|---|---|---|---|---|"
    );
    for work in ["nothing", "read", "edit"] {
        for isolation in [Isolation::Tenant, Isolation::Message] {
            for chain in [1, 3, 10] {
                let bounds: Vec<Bound> = (0..chain)
                    .map(|_| bind(&host, &plugin, work, isolation))
                    .collect();
                let cells = [300, 1024, 4096, 65_536]
                    .map(|bytes| format!("{:.2} us", cost(&bounds, bytes)));
                println!(
                    "| {work} | {isolation:?} | {chain} | {} |",
                    cells.join(" | ")
                );
            }
        }
    }
    let views = [300, 1024, 4096, 65_536]
        .map(|bytes| format!("{:.2} us", best(|| drop(black_box(view(bytes))))));
    println!("| laying the message out | - | - | {} |", views.join(" | "));
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

fn best(mut once: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let (began, mut count) = (Instant::now(), 0u32);
        while began.elapsed() < ROUND {
            for _ in 0..16 {
                once();
            }
            count += 16;
        }
        best = best.min(began.elapsed().as_secs_f64() * 1e6 / f64::from(count));
    }
    best
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
