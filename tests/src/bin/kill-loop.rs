//! kill-loop [ROUNDS]: kill -9 in mid-traffic, again and again on the same data folder. After each kill nothing that
//! Weir started is left, it is ready again within two seconds, and in the end every call that was answered has its
//! audit record.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a command for a developer's terminal"
)]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use weir_tests::config::{Config, SERVER, TENANT};
use weir_tests::wait::{self, PATIENCE};
use weir_tests::weir::Start;
use weir_tests::{Canary, Client, Era, Upstream, Weir, json};

const READY_MAX: Duration = Duration::from_secs(2);
const CALLERS: usize = 4;

fn main() {
    let rounds: usize = std::env::args()
        .nth(1)
        .map_or(100, |a| a.parse().expect("ROUNDS is a number"));
    let upstream = Upstream::mcp(|_| None);
    let stdio = std::env::current_exe()
        .unwrap()
        .with_file_name("stdio-server");
    assert!(
        stdio.exists(),
        "{} is missing: cargo build --release --workspace --bins",
        stdio.display()
    );
    let config = Config::new(&upstream.url())
        .set("audit", json!({ "mode": "all" }))
        .set("log", json!({ "level": "warn" }))
        .set(
            &format!("tenants.{TENANT}.servers.child"),
            json!({ "upstream": { "command": stdio } }),
        );
    let answered: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let mut weir = Weir::serve(&config);
    let mut slowest = Duration::ZERO;
    for round in 0..rounds {
        let pids = children(&weir);
        let stop = Arc::new(AtomicBool::new(false));
        let callers: Vec<_> = (0..CALLERS)
            .map(|n| caller(&weir, round, n, &stop, &answered))
            .collect();
        let before = answered.lock().unwrap().len();
        // The kill comes after a different number of answers each time.
        wait::until("traffic", PATIENCE, || {
            (answered.lock().unwrap().len() > before + round % 97).then_some(())
        });
        weir.signal(Signal::SIGKILL);
        stop.store(true, Ordering::Relaxed);
        for caller in callers {
            caller.join().unwrap();
        }
        for pid in pids {
            wait::until(&format!("the end of child {pid}"), PATIENCE, || {
                (!std::path::Path::new("/proc").join(&pid).exists()).then_some(())
            });
        }
        let started = Instant::now();
        weir = weir.kill_and_restart(|dir| Start::serve_in(dir, &config));
        let took = started.elapsed();
        slowest = slowest.max(took);
        assert!(
            took < READY_MAX,
            "round {round}: ready again after {took:?}"
        );
        upstream.forget();
        if (round + 1) % 10 == 0 {
            println!(
                "{} rounds, {} answered calls, slowest start {slowest:?}",
                round + 1,
                answered.lock().unwrap().len()
            );
        }
    }
    let recorded = recorded(&weir);
    let answered = answered.lock().unwrap();
    let lost: Vec<&String> = answered.difference(&recorded).collect();
    println!(
        "{rounds} kills, {} answered calls, {} records, {} lost, slowest start {slowest:?}",
        answered.len(),
        recorded.len(),
        lost.len()
    );
    assert!(lost.is_empty(), "lost: {:?}", &lost[..lost.len().min(20)]);
}

/// Starts two processes of the stdio server and names them.
fn children(weir: &Weir) -> Vec<String> {
    let mut client = Client::at(weir.addr, "/servers/child/mcp", Era::Handshake);
    client.initialize();
    vec![
        client.call("pid", json!({})).first_text().to_owned(),
        client.call("spawn", json!({})).first_text().to_owned(),
    ]
}

/// Calls with a tool name of its own each time; every other one carries a secret and is blocked.
fn caller(
    weir: &Weir,
    round: usize,
    n: usize,
    stop: &Arc<AtomicBool>,
    answered: &Arc<Mutex<BTreeSet<String>>>,
) -> std::thread::JoinHandle<()> {
    let mut client = Client::at(weir.addr, &format!("/servers/{SERVER}/mcp"), Era::Stateless);
    let (stop, answered) = (Arc::clone(stop), Arc::clone(answered));
    std::thread::spawn(move || {
        for i in 0.. {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let tool = format!("t-{round}-{n}-{i}");
            let text = if i % 2 == 0 {
                "hi".to_owned()
            } else {
                Canary::github().value().to_owned()
            };
            let message = client.message(
                "tools/call",
                json!({ "name": tool, "arguments": { "message": text } }),
            );
            // Only a whole answer counts as one. No connection means that the kill has come.
            let done = client.try_post(&message);
            match done {
                Ok(answer) if answer.response()["id"] == message["id"] => {
                    answered.lock().unwrap().insert(tool);
                }
                _ => return,
            }
        }
    })
}

/// The tools that the audit log has records of.
fn recorded(weir: &Weir) -> BTreeSet<String> {
    let data = weir.dir().join("data").display().to_string();
    let output = weir_tests::weir::run(
        &[
            "audit",
            "search",
            "--data-dir",
            &data,
            "--json",
            "--limit",
            "10000000",
        ],
        "",
    );
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout);
    text.split('"')
        .filter(|s| s.starts_with("t-"))
        .map(str::to_owned)
        .collect()
}
