//! soak [MINUTES]: steady mixed traffic, one call in a hundred hostile. Memory and descriptors must not creep, and no
//! answer may be wrong.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a command for a developer's terminal"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use weir_tests::config::{Config, SERVER};
use weir_tests::{Canary, Client, Era, Upstream, Weir, json};

const CALLERS: usize = 4;
const SAMPLE_EVERY: Duration = Duration::from_secs(10);
/// Growth of memory from the end of the first third to the end that is still no leak.
const GROWTH_MAX: f64 = 0.10;
const GROWTH_MIN_KIB: u64 = 4096;

fn main() {
    let minutes: f64 = std::env::args()
        .nth(1)
        .map_or(10.0, |a| a.parse().expect("MINUTES is a number"));
    let upstream = Arc::new(Upstream::mcp(|_| None));
    let weir = Weir::serve(&Config::new(&upstream.url()).set("log", json!({ "level": "warn" })));
    let stop = Arc::new(AtomicBool::new(false));
    let (calls, wrong) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let callers: Vec<_> = (0..CALLERS)
        .map(|n| caller(&weir, n, &stop, &calls, &wrong))
        .collect();
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let mut samples = Vec::new();
    while Instant::now() < end {
        // This is the measurement's own clock, not a wait for something.
        std::thread::sleep(SAMPLE_EVERY.min(end.saturating_duration_since(Instant::now())));
        let sample = (rss_kib(weir.pid()), descriptors(weir.pid()));
        println!(
            "{} calls, {} wrong, {} KiB resident, {} descriptors",
            calls.load(Ordering::Relaxed),
            wrong.load(Ordering::Relaxed),
            sample.0,
            sample.1
        );
        samples.push(sample);
        upstream.forget();
    }
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.join().unwrap();
    }
    assert_eq!(wrong.load(Ordering::Relaxed), 0, "wrong answers");
    let (start, last) = (samples[samples.len() / 3], *samples.last().unwrap());
    let growth = last.0.saturating_sub(start.0);
    assert!(
        growth < GROWTH_MIN_KIB || (growth as f64) < start.0 as f64 * GROWTH_MAX,
        "memory grew by {growth} KiB"
    );
    assert!(
        last.1 <= start.1 + 16,
        "descriptors grew from {} to {}",
        start.1,
        last.1
    );
    println!(
        "{} calls, memory {} -> {} KiB, descriptors {} -> {}",
        calls.load(Ordering::Relaxed),
        start.0,
        last.0,
        start.1,
        last.1
    );
}

fn caller(
    weir: &Weir,
    n: usize,
    stop: &Arc<AtomicBool>,
    calls: &Arc<AtomicU64>,
    wrong: &Arc<AtomicU64>,
) -> std::thread::JoinHandle<()> {
    let era = Era::ALL[n % 2];
    let mut client = Client::at(weir.addr, &format!("/servers/{SERVER}/mcp"), era);
    let (stop, calls, wrong) = (Arc::clone(stop), Arc::clone(calls), Arc::clone(wrong));
    std::thread::spawn(move || {
        for i in 0_u64.. {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            if era == Era::Handshake && i % 50 == 0 {
                // Sessions are bounded per caller; an orderly client ends its own.
                if client.session.is_some() {
                    client.delete();
                    client.session = None;
                }
                client.initialize();
            }
            let hostile = i % 100 == 7;
            let text = if hostile {
                Canary::github().value().to_owned()
            } else {
                format!("message {i} ").repeat(1 + (i % 200) as usize)
            };
            let answer = client.call("echo", json!({ "message": text }));
            let right = match hostile {
                true => answer.result()["isError"] == json!(true),
                false => answer.first_text() == format!("Echo: {text}"),
            };
            calls.fetch_add(1, Ordering::Relaxed);
            if !right {
                wrong.fetch_add(1, Ordering::Relaxed);
                println!("wrong: {} {:.300}", answer.status(), answer.text());
            }
        }
    })
}

fn rss_kib(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix("VmRSS:"))
        .unwrap_or("0");
    line.split_whitespace()
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .count()
}
