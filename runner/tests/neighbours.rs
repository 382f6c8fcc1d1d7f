//! What a bomb in one sandbox does to the calls of another: `make runner-neighbours`.
//!
//! The neighbour is measured in windows that alternate, quiet and with the bomb, so that whatever else the machine does
//! falls on both. A control without any bomb says how much two windows differ by themselves.

mod common;

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::bombs::{BOMBS, Bomb};
use common::*;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use runner_api::{Runner as _, *};
use serde_json::json;

const CONTROL: Bomb = Bomb {
    name: "nothing (control)",
    code: "",
    expected: Some(""),
};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes: make runner-neighbours"]
async fn a_neighbours_calls_beside_each_bomb() {
    if !possible() {
        return;
    }
    let (calls, pairs) = (env_or("CALLS", 1000), env_or("PAIRS", 5));
    let only = std::env::var("ONLY").unwrap_or_default();
    let args = std::env::var("RUNNER_ARGS").unwrap_or_default();
    let rig = Rig::start_with(&args.split_whitespace().collect::<Vec<_>>()).await;
    let hostile = rig.deploy(probe_bundle(), bounded).await;
    let neighbour = ServerSpec {
        id: server_id("neighbour"),
        ..hostile.clone()
    };
    rig.client
        .put_server(neighbour.clone())
        .await
        .expect("taken");
    eprintln!(
        "{pairs} pairs of windows of {calls} calls; p50 and p99 of all quiet windows, of all with the bomb, ratios as medians of the pairs'"
    );
    for bomb in std::iter::once(&CONTROL).chain(BOMBS) {
        if !bomb.name.contains(&only) {
            continue;
        }
        let (mut quiet, mut loud, mut rounds) = (Vec::new(), Vec::new(), 0);
        for _ in 0..pairs {
            quiet.push(window(&rig, &neighbour, calls).await);
            let (times, thrown) = beside(&rig, &hostile, bomb, &neighbour, calls).await;
            loud.push(times);
            rounds += thrown;
        }
        report(bomb.name, &quiet, &loud, rounds);
    }
    assert_eq!(
        rig.sandboxes()
            .await
            .iter()
            .filter(|s| s.server == neighbour.id)
            .count(),
        1,
        "the neighbour lives"
    );
}

fn bounded(spec: &mut ServerSpec) {
    spec.limits.processes = 64;
    spec.limits.memory_mb = 1024;
}

/// A window with the bomb thrown again and again; over when the last round is.
async fn beside(
    rig: &Rig,
    hostile: &ServerSpec,
    bomb: &Bomb,
    neighbour: &ServerSpec,
    calls: u32,
) -> (Vec<Duration>, u32) {
    if bomb.code.is_empty() {
        return (window(rig, neighbour, calls).await, 0);
    }
    rig.settled(hostile).await;
    let sandboxes = rig.sandboxes().await;
    let near = sandboxes.iter().find(|s| s.server == neighbour.id);
    let near = &near.expect("the neighbour lives").sandbox;
    let cores = said(near, "cpuset", ["cpuset.cpus", "cpuset.cpus"]);
    let mut thrower = Thrower::start(rig, hostile, bomb, &cores);
    let times = window(rig, neighbour, calls).await;
    let rounds = tokio::task::spawn_blocking(move || thrower.stop())
        .await
        .expect("waited for");
    rig.settled(hostile).await;
    (times, rounds)
}

/// Throws a bomb again and again. Whoever calls a hostile server does so from a machine of his own, whose work (reading an
/// answer of 16 MiB is some) is not the host's: here a process in a session of its own, which gives way to all others and
/// stays off the neighbour's cores where there are more. A thread would not do: the kernel shares a core between sessions
/// first.
struct Thrower(Child);

const SOCKET: &str = "WEIR_THROW_SOCKET";
const SERVER: &str = "WEIR_THROW_SERVER";
const BOMB: &str = "WEIR_THROW_BOMB";
/// Cores that are not the thrower's, as the kernel writes them.
const NOT_HERE: &str = "WEIR_THROW_NOT_HERE";

impl Thrower {
    fn start(rig: &Rig, hostile: &ServerSpec, bomb: &Bomb, not_here: &str) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut command = Command::new(program);
        command
            .args(["--exact", "--ignored", "--nocapture", "throw"])
            .env(SOCKET, rig.dir.path().join("run/runner.sock"))
            .env(SERVER, serde_json::to_string(hostile).expect("a text"))
            .env(BOMB, bomb.name)
            .env(NOT_HERE, not_here)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        Self(command.spawn().expect("started"))
    }

    /// Lets the round at hand end; gives the number of rounds.
    fn stop(&mut self) -> u32 {
        drop(self.0.stdin.take());
        let mut said = String::new();
        let mut from = self.0.stdout.take().expect("piped");
        from.read_to_string(&mut said).expect("read");
        assert!(
            self.0.wait().expect("waited for").success(),
            "a round did not meet its limit: {said}"
        );
        let rounds = said.lines().find_map(|line| line.strip_prefix("rounds "));
        rounds.and_then(|n| n.parse().ok()).expect("a number")
    }
}

#[tokio::test]
#[ignore = "the other end of the measurement"]
async fn throw() {
    let Some(server) = std::env::var_os(SERVER) else {
        return;
    };
    let hostile: ServerSpec =
        serde_json::from_str(server.to_str().expect("a text")).expect("a server");
    let name = std::env::var(BOMB).expect("a bomb");
    let bomb = BOMBS.iter().find(|b| b.name == name).expect("one of ours");
    let client = Client::new(std::env::var_os(SOCKET).expect("a socket"));
    nix::unistd::setsid().expect("no leader yet");
    // Where the kernel makes no group of a session the process's own priority counts.
    let _ = std::fs::write("/proc/self/autogroup", "19");
    rustix::process::setpriority_process(None, 19).expect("one may always be nicer");
    keep_off(&cores_in(&std::env::var(NOT_HERE).expect("cores")));
    let stop = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&stop);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        heard.store(true, Ordering::Relaxed);
    });
    let mut rounds = 0;
    while !stop.load(Ordering::Relaxed) {
        let said = call_by(&client, &hostile, "run", json!({"code": bomb.code})).await;
        match (&said, bomb.expected) {
            (Ok(answer), Some(expected)) => assert!(
                text(answer).contains(expected),
                "{}: {:.200}",
                bomb.name,
                text(answer)
            ),
            // One that is refused for its crashes comes back, as a client would.
            (Err(_), None) => tokio::time::sleep(Duration::from_millis(100)).await,
            _ => panic!("{}: {:.200}", bomb.name, format!("{said:?}")),
        }
        rounds += 1;
    }
    #[allow(clippy::print_stdout, reason = "who started this reads it")]
    {
        println!("\nrounds {rounds}");
    }
}

/// Off these cores, if any are left.
fn keep_off(cores: &[usize]) {
    let mut left = sched_getaffinity(Pid::from_raw(0)).expect("the kernel says");
    for core in cores {
        left.unset(*core).expect("a core");
    }
    if (0..CpuSet::count()).any(|core| left.is_set(core).unwrap_or(false)) {
        sched_setaffinity(Pid::from_raw(0), &left).expect("fewer cores");
    }
}

/// Calls one after the other, each with a lease of its own, as the gateway makes them.
async fn window(rig: &Rig, spec: &ServerSpec, calls: u32) -> Vec<Duration> {
    let body = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "run", "arguments": {"code": "result = 1"}}});
    let mut times = Vec::with_capacity(calls as usize);
    for _ in 0..calls {
        let began = Instant::now();
        let lease = rig.lease(spec, None).await.expect("a lease");
        let (_, _, answer) = post(&lease, None, &body).await.expect("an answer");
        rig.client
            .release(&lease.id, false)
            .await
            .expect("released");
        times.push(began.elapsed());
        assert_eq!(text(&answer["result"]), "1");
    }
    times
}

#[allow(clippy::print_stderr, reason = "the figures are what was asked for")]
fn report(name: &str, quiet: &[Vec<Duration>], loud: &[Vec<Duration>], rounds: u32) {
    let of = |windows: &[Vec<Duration>], p| ms(at(&windows.concat(), p));
    let ratio = |p| {
        let pairs = quiet.iter().zip(loud);
        let mut ratios: Vec<f64> = pairs.map(|(q, l)| ms(at(l, p)) / ms(at(q, p))).collect();
        ratios.sort_by(f64::total_cmp);
        ratios[ratios.len() / 2]
    };
    eprintln!(
        "{name:<18} quiet {:>6.2} {:>7.2} ms  bomb {:>6.2} {:>7.2} ms  ratio p50 {:.2} p99 {:.2}  ({rounds} rounds)",
        of(quiet, 50),
        of(quiet, 99),
        of(loud, 50),
        of(loud, 99),
        ratio(50),
        ratio(99),
    );
}
