//! kill -9 of the runner, of the gateway and of single sandboxes, under the calls of many clients. Whoever has a call under
//! way gets an error or the right answer, others go on, nothing is left behind, and every answered message is metered
//! exactly once. Every answer also proves that the server could read its secret.

#![allow(clippy::print_stderr, reason = "says what was measured")]

mod callers;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callers::{Account, Caller, Scene};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use weir_tests::config::{Config, TENANT};
use weir_tests::runner::{Runner, Usage};
use weir_tests::wait::{PATIENCE, until};
use weir_tests::weir::Start;
use weir_tests::{Admin, Era, Value, Weir, json};

/// Until nothing may be left of what was killed.
const ORPHANS_MAX: Duration = Duration::from_secs(10);
/// Servers, each with its isolation and the eras of its callers.
const SERVERS: [(&str, &str, &[Era]); 3] = [
    (
        "common",
        "shared",
        &[Era::Stateless, Era::Stateless, Era::Handshake],
    ),
    (
        "own",
        "session",
        &[Era::Handshake, Era::Handshake, Era::Handshake],
    ),
    ("once", "call", &[Era::Stateless, Era::Stateless]),
];

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    Runner,
    Gateway,
    Sandbox,
}

const VICTIMS: [Victim; 3] = [Victim::Runner, Victim::Gateway, Victim::Sandbox];

#[test]
fn kills_under_traffic_lose_and_double_nothing() {
    kills(2);
}

#[test]
#[ignore = "a quarter of an hour: make runner-loops"]
fn many_kills_under_traffic_lose_and_double_nothing() {
    let rounds = std::env::var("ROUNDS").ok().and_then(|n| n.parse().ok());
    kills(rounds.unwrap_or(100));
}

fn kills(rounds: u32) {
    let Some(mut world) = World::start() else {
        return;
    };
    world.mark();
    world.settle("before the first kill");
    for round in 0..rounds {
        for victim in VICTIMS {
            world.round(victim, round);
        }
        if (round + 1) % 10 == 0 {
            eprintln!(
                "{:4.0} s: {} rounds",
                world.began.elapsed().as_secs_f32(),
                round + 1
            );
        }
    }
    world.end();
}

struct World {
    began: Instant,
    callers: Vec<Caller>,
    scene: Arc<Scene>,
    weir: Option<Weir>,
    config: Config,
    runner: Runner,
    back: BTreeMap<(Victim, &'static str), Vec<Duration>>,
}

impl World {
    fn start() -> Option<Self> {
        let runner = Runner::start()?;
        let mut config = Config::new("http://127.0.0.1:9/mcp")
            .set("hosting.runner", json!(runner.socket()))
            .set("hosting.listen", json!("127.0.0.1:0"))
            .set("log.level", json!("warn"));
        let key = config.key(TENANT, "mine");
        let dir = Arc::new(TempDir::new().expect("a temporary folder"));
        let weir = Start::serve_in(dir, &config).ready();
        let admin = Admin::of(&weir);
        let (status, _) = admin.json(
            "PATCH",
            &format!("/api/v1/tenants/{TENANT}"),
            &json!({"plan": "power"}),
        );
        assert_eq!(status, 200);
        let scene = Scene::new(weir.addr);
        let mut callers = Vec::new();
        for (id, isolation, eras) in SERVERS {
            let proof = deploy(&admin, id, isolation);
            let caller = |era: &Era| Caller::start(&scene, id, *era, &key, &proof);
            callers.extend(eras.iter().map(caller));
        }
        Some(Self {
            began: Instant::now(),
            callers,
            scene,
            weir: Some(weir),
            config,
            runner,
            back: BTreeMap::new(),
        })
    }

    fn round(&mut self, victim: Victim, round: u32) {
        // The kill comes after a different number of answers each time.
        let wanted = self.answers() + u64::from(round * 7 % 23);
        until("traffic", PATIENCE, || {
            (self.answers() >= wanted).then_some(())
        });
        let what = format!("round {round}, {victim:?}");
        let began = Instant::now();
        let before = self.accounts();
        let server = self.kill(victim, round);
        self.settle(&what);
        for (caller, before) in self.callers.iter().zip(before) {
            let after = caller.account();
            let first = after.first.expect("it has settled");
            let back = self.back.entry((victim, caller.server)).or_default();
            back.push(first.duration_since(began));
            let other = victim == Victim::Sandbox && caller.server != server;
            assert!(
                !other || after.failed() == before.failed(),
                "{what}: a caller of {} heard of the end of {server}'s: {:#?}",
                caller.server,
                after.errors
            );
        }
        self.nothing_is_left(&what);
    }

    /// Gives the server whose sandbox it was.
    fn kill(&mut self, victim: Victim, round: u32) -> String {
        match victim {
            Victim::Runner => {
                self.scene.kill(|| self.runner.kill());
                self.mark();
                self.runner.start_again();
            }
            Victim::Gateway => {
                let mut weir = self.weir.take().expect("it runs");
                self.scene.kill(|| {
                    weir.signal(Signal::SIGKILL);
                    weir.wait_exit(PATIENCE);
                });
                self.mark();
                let weir = Start::serve_in(weir.folder(), &self.config).ready();
                self.scene.moved(weir.addr);
                self.weir = Some(weir);
            }
            Victim::Sandbox => {
                // Of each server in turn.
                let (server, ..) = SERVERS[round as usize % SERVERS.len()];
                let sandbox = until("a sandbox", PATIENCE, || {
                    let all = self.runner.sandboxes();
                    all.into_iter().find(|s| s.server == server)
                });
                let pid = Pid::from_raw(sandbox.pid);
                // One of a single call may have ended by itself.
                let _ended = self.scene.kill(|| kill(pid, Signal::SIGKILL));
                self.mark();
                return sandbox.server;
            }
        }
        String::new()
    }

    fn accounts(&self) -> Vec<Account> {
        self.callers.iter().map(Caller::account).collect()
    }

    fn answers(&self) -> u64 {
        self.accounts().iter().map(|a| a.calls).sum()
    }

    fn mark(&self) {
        self.callers.iter().for_each(Caller::mark);
    }

    /// Waits until every caller has made a new call and has its answer.
    fn settle(&self, what: &str) {
        let deadline = Instant::now() + PATIENCE;
        for caller in &self.callers {
            loop {
                let account = caller.account();
                assert!(account.faults.is_empty(), "{what}: {account:#?}");
                if account.first.is_some() {
                    break;
                }
                assert!(
                    Instant::now() < deadline,
                    "{what}: no answer of {} for {PATIENCE:?}: {account:#?}\n{:?}",
                    caller.server,
                    self.runner.sandboxes()
                );
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// What is there of sandboxes that the runner does not know goes away. While calls come in, some always begin or end.
    fn nothing_is_left(&self, what: &str) {
        let mut left = self.unknown();
        let deadline = Instant::now() + ORPHANS_MAX;
        while !left.is_empty() {
            assert!(
                Instant::now() < deadline,
                "{what}: left are {left:?}\n{}",
                self.runner.log()
            );
            std::thread::sleep(Duration::from_millis(20));
            left = left.intersection(&self.unknown()).cloned().collect();
        }
    }

    fn unknown(&self) -> BTreeSet<String> {
        let traces = self.runner.traces();
        // In this order: one that begins meanwhile is known by then.
        let known: BTreeSet<String> = self.runner.sandboxes().into_iter().map(|s| s.id).collect();
        traces.difference(&known).cloned().collect()
    }

    fn end(mut self) {
        self.scene.stop();
        let mut sums: BTreeMap<&str, Account> = BTreeMap::new();
        for caller in std::mem::take(&mut self.callers) {
            let server = caller.server;
            let account = caller.end();
            assert!(account.faults.is_empty(), "{server}: {:#?}", account.faults);
            let sum = sums.entry(server).or_default();
            sum.calls += account.calls;
            sum.answered += account.answered;
            sum.open += account.open;
            sum.slowest = sum.slowest.max(account.slowest);
            for (words, count) in account.errors {
                *sum.errors.entry(words).or_default() += count;
            }
        }
        let metered = self.metered();
        for (server, sum) in &sums {
            let requests = metered.get(*server).copied().unwrap_or_default().requests;
            eprintln!(
                "{server}: {} right answers; {} messages answered, {} may have got a sandbox before they failed; metered {requests}; slowest {:?}; {:#?}",
                sum.calls, sum.answered, sum.open, sum.slowest, sum.errors
            );
            assert!(
                (sum.answered..=sum.answered + sum.open).contains(&requests),
                "{server}: {requests} metered, {} answered, {} open",
                sum.answered,
                sum.open
            );
        }
        for ((victim, server), mut times) in std::mem::take(&mut self.back) {
            times.sort_unstable();
            let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
            eprintln!(
                "{victim:?} killed: the next call of a caller of {server} is answered after p50 {:?}, p90 {:?}, max {:?}",
                at(50),
                at(90),
                at(100)
            );
        }
    }

    /// All that was metered: what the gateway has fetched, and what the runner still holds.
    fn metered(&mut self) -> BTreeMap<String, Usage> {
        until(
            "closed windows to be fetched",
            Duration::from_secs(60),
            || self.runner.usage().0.is_empty().then_some(()),
        );
        let admin = Admin::of(self.weir.as_ref().expect("it runs"));
        let (status, fetched) = admin.json("GET", "/api/v1/usage", &Value::Null);
        assert_eq!(status, 200);
        self.runner.stop();
        let (closed, mut sums) = self.runner.usage();
        for (server, usage) in closed {
            sums.entry(server).or_default().requests += usage.requests;
        }
        for row in fetched.as_array().expect("rows") {
            let server = row["server"].as_str().expect("a server").to_owned();
            let requests = row["requests"].as_u64().expect("a number");
            sums.entry(server).or_default().requests += requests;
        }
        sums
    }
}

/// Deploys the server and gives it a secret; gives what it proves itself with.
fn deploy(admin: &Admin, id: &str, isolation: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/hosted/working");
    let folder = folder.display().to_string();
    let words = [
        "server",
        "deploy",
        &folder,
        "--id",
        id,
        "--tenant",
        TENANT,
        "--isolation",
        isolation,
        "--call-timeout-s",
        "10",
    ];
    let (ok, _, said) = admin.cli(&words, "");
    assert!(ok, "{id}: {said}");
    let secret = format!("the secret of {id} and of nobody else");
    let (ok, _, said) = admin.cli(&["secret", "set", id, "TOKEN"], &format!("{secret}\n"));
    assert!(ok, "{id}: {said}");
    let (ok, _, said) = admin.cli(&["server", "scale", id, "--max", "16"], "");
    assert!(ok, "{id}: {said}");
    // So that images are taken and restored under kills as well.
    let trust = json!({"trust_checkpoint_with_secrets": true});
    let (status, said) = admin.json("PATCH", &format!("/api/v1/servers/{id}"), &trust);
    assert_eq!(status, 200, "{said}");
    let digest = Sha256::digest(secret.as_bytes());
    digest[..8].iter().map(|b| format!("{b:02x}")).collect()
}
