//! Long runs, each asked for by name: `make runner-loops`.

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::*;
use runner_api::{Runner as _, *};
use serde_json::json;

fn code(text: &str) -> serde_json::Value {
    json!({ "code": text })
}

fn percentiles(times: &[Duration]) -> String {
    format!(
        "p50 {:?} p90 {:?} p99 {:?} max {:?}",
        at(times, 50),
        at(times, 90),
        at(times, 99),
        at(times, 100)
    )
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes: make runner-loops"]
async fn a_thousand_executions_at_once() {
    if !possible() {
        return;
    }
    let (executions, servers) = (env_or("EXECUTIONS", 1000), env_or("SERVERS", 20));
    let rig = Arc::new(Rig::start().await);
    let first = rig.deploy(probe_bundle(), |_| ()).await;
    let specs: Vec<_> = (0..servers)
        .map(|n| ServerSpec {
            id: server_id(&format!("s{n}")),
            scale: Scale {
                max: 2,
                ..Scale::default()
            },
            ..first.clone()
        })
        .collect();
    for spec in &specs {
        rig.client.put_server(spec.clone()).await.expect("taken");
    }
    let began = Instant::now();
    let calls: Vec<_> = (0..executions)
        .map(|n| {
            let (rig, spec) = (Arc::clone(&rig), specs[(n % servers) as usize].clone());
            tokio::spawn(async move {
                let asked = Instant::now();
                let deadline = Instant::now() + Duration::from_secs(300);
                loop {
                    match rig
                        .call(&spec, "run", code(&format!("result = {n} * {n}")))
                        .await
                    {
                        Ok(answer) => {
                            assert_eq!(text(&answer), (u64::from(n) * u64::from(n)).to_string());
                            return asked.elapsed();
                        }
                        // Told to come back: a client does.
                        Err(error) => assert!(Instant::now() < deadline, "{error}"),
                    }
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
            })
        })
        .collect();
    let mut times = Vec::new();
    for call in calls {
        times.push(call.await.expect("answered"));
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", rig.pid())).unwrap_or_default();
    let peak = status
        .lines()
        .find(|l| l.starts_with("VmHWM"))
        .unwrap_or_default()
        .to_owned();
    eprintln!(
        "{executions} executions on {servers} servers in {:?}: {}; the runner's {peak}",
        began.elapsed(),
        percentiles(&times)
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes: make runner-loops"]
async fn the_runner_is_killed_again_and_again() {
    if !possible() {
        return;
    }
    let mut rig = Rig::start().await;
    let spec = rig.deploy(probe_bundle(), |_| ()).await;
    rig.call(&spec, "run", code("import builtins; builtins.kept = 1"))
        .await
        .expect("an answer");
    let mut times = Vec::new();
    for round in 0..env_or("ROUNDS", 100) {
        let began = Instant::now();
        rig.kill_and_start().await;
        let answer = rig
            .call(
                &spec,
                "run",
                code("import builtins; result = builtins.kept"),
            )
            .await
            .unwrap_or_else(|e| panic!("round {round}: {e}"));
        assert_eq!(text(&answer), "1", "round {round}");
        times.push(began.elapsed());
        assert_eq!(rig.sandboxes().await.len(), 1, "round {round}: an orphan");
    }
    eprintln!("from the kill to the next answer: {}", percentiles(&times));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes: make runner-loops"]
async fn sandboxes_are_killed_again_and_again() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let spec = rig.deploy(probe_bundle(), |_| ()).await;
    let mut times = Vec::new();
    for round in 0..env_or("ROUNDS", 100) {
        let lease = rig
            .lease(&spec, None)
            .await
            .unwrap_or_else(|e| panic!("round {round}: {e}"));
        let saved = std::fs::read_to_string(
            rig.state()
                .join("boxes")
                .join(format!("{}.json", lease.sandbox)),
        )
        .expect("written down");
        let pid = serde_json::from_str::<serde_json::Value>(&saved).expect("JSON")["placed"]["pid"]
            .as_i64()
            .expect("a pid");
        nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(pid as i32),
            nix::sys::signal::Signal::SIGKILL,
        )
        .expect("killed");
        let began = Instant::now();
        let gone = tokio::time::timeout(Duration::from_secs(5), rig.client.gone(&lease.id)).await;
        times.push(began.elapsed());
        assert!(gone.is_ok(), "round {round}: nobody said so");
        rig.client
            .release(&lease.id, false)
            .await
            .expect("released");
    }
    eprintln!("from the kill to the word: {}", percentiles(&times));
    until("nothing is left", Duration::from_secs(10), || async {
        rig.sandboxes().await.len() <= 1
    })
    .await;
    let zombies = || async {
        let list = std::fs::read_dir("/proc").expect("processes").flatten();
        let stats = list.filter_map(|p| std::fs::read_to_string(p.path().join("stat")).ok());
        let own = format!(" Z {} ", rig.pid());
        stats.filter(|s| s.contains(&own)).count() == 0
    };
    until("no zombie is left", Duration::from_secs(10), zombies).await;
    let mounts = std::fs::read_to_string("/proc/mounts").expect("mounts");
    let own = mounts
        .lines()
        .filter(|l| l.contains(&*rig.dir.path().join("run/boxes").to_string_lossy()))
        .count();
    assert!(own <= 2, "{own} mounts are left");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes: make runner-loops"]
async fn many_sandboxes_live_side_by_side() {
    if !possible() {
        return;
    }
    let many = env_or("SANDBOXES", 100);
    let rig = Rig::start().await;
    let spec = rig
        .deploy(probe_bundle(), |s| {
            s.isolation = Isolation::Session;
            s.scale.max = 256;
            s.idle = IdleTimes {
                freeze_after_s: 2,
                checkpoint_after_s: 0,
                stop_after_s: 0,
                ..IdleTimes::default()
            };
        })
        .await;
    let began = Instant::now();
    for n in 0..many {
        let lease = rig
            .lease(&spec, Some(&format!("s{n}")))
            .await
            .expect("a sandbox");
        rig.client
            .release(&lease.id, false)
            .await
            .expect("released");
    }
    eprintln!("{many} sandboxes in {:?}", began.elapsed());
    let frozen = || async {
        rig.sandboxes()
            .await
            .iter()
            .all(|s| s.state == SandboxState::Frozen)
    };
    until("all are frozen", Duration::from_secs(30), frozen).await;
    let before = rig.sandboxes().await;
    assert_eq!(before.len(), many as usize);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let after = rig.sandboxes().await;
    let cpu = |all: &[SandboxStats]| all.iter().map(|s| s.cpu_us).sum::<u64>();
    let memory = after.iter().map(|s| s.memory_bytes).sum::<u64>() / after.len() as u64;
    eprintln!(
        "frozen: {} us of processor in 2 s all together; {} MiB each",
        cpu(&after) - cpu(&before),
        memory >> 20
    );
    assert!(cpu(&after) - cpu(&before) < 20_000);
    let began = Instant::now();
    let lease = rig.lease(&spec, Some("s0")).await.expect("it wakes");
    eprintln!("one of them wakes in {:?}", began.elapsed());
    rig.client
        .release(&lease.id, false)
        .await
        .expect("released");
}
