//! What a kill of the runner must not lose: usage to the microsecond, whose a sandbox is, and its place.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::*;
use metering::{MeterStore, Usage};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use runner_api::{Runner as _, *};
use sandbox::Cgroups;
use serde_json::json;

fn code(text: &str) -> serde_json::Value {
    json!({ "code": text })
}

/// Everything that is metered, as it is on disk.
fn usage(rig: &Rig) -> Usage {
    let (_, meter) = MeterStore::open(&rig.state().join("usage")).expect("a whole file");
    let mut sum = Usage::default();
    let windows = meter.open().iter().chain(meter.closed(0, usize::MAX));
    windows.for_each(|window| sum.add(&window.usage));
    sum
}

/// The control group of a sandbox.
fn group_of(rig: &Rig, sandbox: &SandboxId) -> String {
    let instance = std::fs::read(rig.state().join("instance.json")).expect("an instance");
    let instance: serde_json::Value = serde_json::from_slice(&instance).expect("JSON");
    let tag = instance["tag"].as_str().expect("a tag");
    format!("/weir-{tag}/{sandbox}")
}

fn pid_of(rig: &Rig, sandbox: &SandboxId) -> Pid {
    let path = rig.state().join("boxes").join(format!("{sandbox}.json"));
    let saved = std::fs::read(path).expect("written down");
    let saved: serde_json::Value = serde_json::from_slice(&saved).expect("JSON");
    let pid = saved["placed"]["pid"].as_i64().expect("a pid");
    Pid::from_raw(i32::try_from(pid).expect("a pid"))
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_counted_once_over_kills_of_runner_and_sandbox() {
    if !possible() {
        return;
    }
    let mut rig = Rig::start().await;
    let spec = rig.deploy(probe_bundle(), |_| ()).await;
    let mut calls = 0;
    for _ in 0..4 {
        for _ in 0..3 {
            rig.call(&spec, "run", code("result = sum(range(300000))"))
                .await
                .expect("an answer");
            calls += 1;
        }
        rig.kill_and_start().await;
    }
    // It ends while nobody looks: what the kernel says now does not change any more.
    let sandbox = rig.sandboxes().await[0].sandbox.clone();
    let pid = pid_of(&rig, &sandbox);
    rig.kill();
    kill(pid, Signal::SIGKILL).expect("it runs");
    let groups = Cgroups::find("/sys/fs/cgroup").expect("control groups");
    let group = group_of(&rig, &sandbox);
    let empty = || async { groups.processes(&group).is_empty() };
    until("the sandbox has ended", Duration::from_secs(5), empty).await;
    let used_us = groups.cpu_us(&group);
    assert!(used_us > 0, "the kernel still has it");
    rig.start_again().await;
    until("nothing is left", Duration::from_secs(10), || async {
        rig.sandboxes().await.is_empty()
    })
    .await;
    rig.stop().await;
    let usage = usage(&rig);
    assert_eq!((usage.requests, usage.cpu_us), (calls, used_us));
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_charged_also_for_what_ends_between_two_rounds() {
    if !possible() {
        return;
    }
    let mut rig = Rig::start().await;
    let spec = rig
        .deploy(probe_bundle(), |s| s.isolation = Isolation::Call)
        .await;
    for _ in 0..3 {
        rig.call(&spec, "run", code("import time; time.sleep(2); result = 1"))
            .await
            .expect("an answer");
    }
    until("nothing is left", Duration::from_secs(10), || async {
        rig.sandboxes().await.is_empty()
    })
    .await;
    rig.stop().await;
    // No sandbox holds less than 25 MiB, and a round meets one of the three at the most.
    let least = 3 * 2 * 25 * 1024;
    let charged = usage(&rig).memory_byte_ms / 1000 / 1024;
    assert!(charged >= least, "{charged} KiB-seconds of {least}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_ended_while_the_runner_was_away_fails_nobody() {
    if !possible() {
        return;
    }
    let mut rig = Rig::start().await;
    let spec = rig.deploy(probe_bundle(), |_| ()).await;
    for round in 0..5 {
        rig.call(&spec, "run", code("result = 1"))
            .await
            .unwrap_or_else(|e| panic!("round {round}: {e}"));
        // The one before may not be gone from the list yet.
        let all = rig.sandboxes().await.into_iter();
        let mut ready = all.filter(|s| s.state == SandboxState::Ready);
        let sandbox = ready.next().expect("one that answered").sandbox;
        let (pid, group) = (pid_of(&rig, &sandbox), group_of(&rig, &sandbox));
        rig.kill();
        kill(pid, Signal::SIGKILL).expect("it runs");
        let groups = Cgroups::find("/sys/fs/cgroup").expect("control groups");
        let empty = || async { groups.processes(&group).is_empty() };
        until("the sandbox has ended", Duration::from_secs(5), empty).await;
        // What answers next is asked before the runner knows that its sandbox is gone.
        rig.start_again().await;
    }
    let events = rig.events().await;
    let starts = events
        .iter()
        .filter(|e| matches!(e.kind, EventKind::Ready { .. }));
    assert!(starts.count() > 4, "each was replaced: {events:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_that_a_kill_cut_short_leaves_nothing() {
    if !possible() {
        return;
    }
    let mut rig = Rig::start().await;
    let files = [
        ("server.py", SEED_SERVER),
        ("requirements.txt", SEED_REQUIREMENTS),
    ];
    let info = rig.put(tarball(&files)).await.expect("taken");
    let request = BuildRequest {
        tenant: info.tenant.clone(),
        bundle: info.id.clone(),
        allow_sdist: false,
    };
    let _events = rig.client.build(request).await.expect("begun");
    let uploads = rig.state().join("uploads");
    let mounts = || {
        let all = std::fs::read_to_string("/proc/self/mountinfo").expect("readable");
        all.contains(uploads.to_str().expect("text"))
    };
    let entries = || std::fs::read_dir(&uploads).expect("a folder").count();
    until("its disk is mounted", Duration::from_secs(30), || async {
        mounts()
    })
    .await;
    rig.kill_and_start().await;
    let clean = || async { !mounts() && entries() == 0 };
    until("nothing is left", Duration::from_secs(15), clean).await;
    // And it can be built again.
    rig.build(&info).await.expect("built");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_finds_its_sandbox_again() {
    if !possible() {
        return;
    }
    let mut rig = Rig::start().await;
    let spec = rig
        .deploy(probe_bundle(), |s| s.isolation = Isolation::Session)
        .await;
    let mut before = Vec::new();
    for session in ["one", "two"] {
        let lease = rig.lease(&spec, Some(session)).await.expect("a sandbox");
        before.push(lease.sandbox.clone());
        rig.client
            .release(&lease.id, false)
            .await
            .expect("released");
    }
    let named = || async {
        let saved = before.iter().map(|id| {
            let path = rig.state().join("boxes").join(format!("{id}.json"));
            std::fs::read_to_string(path).unwrap_or_default()
        });
        let names = [r#""session":"one""#, r#""session":"two""#];
        saved.zip(names).all(|(text, name)| text.contains(name))
    };
    until("it is written down", Duration::from_secs(5), named).await;
    rig.kill_and_start().await;
    for (session, sandbox) in ["one", "two"].into_iter().zip(&before) {
        let lease = rig.lease(&spec, Some(session)).await.expect("a sandbox");
        assert_eq!(lease.sandbox, *sandbox, "{session}");
        rig.client
            .release(&lease.id, false)
            .await
            .expect("released");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_under_way_is_not_frozen() {
    if !possible() {
        return;
    }
    let mut rig = Rig::start().await;
    let spec = rig
        .deploy(probe_bundle(), |s| s.idle.freeze_after_s = 1)
        .await;
    let lease = rig.lease(&spec, None).await.expect("a sandbox");
    let call = tokio::spawn(async move {
        call_tool(
            &lease,
            "run",
            code("import time; time.sleep(5); result = 1"),
        )
        .await
    });
    rig.kill_and_start().await;
    let answer = tokio::time::timeout(Duration::from_secs(15), call).await;
    let answer = answer.expect("in time").expect("no panic");
    assert_eq!(text(&answer.expect("an answer")), "1");
    let frozen = || async { rig.sandboxes().await[0].state == SandboxState::Frozen };
    until("it is frozen afterwards", Duration::from_secs(10), frozen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_the_runner_lost_keeps_no_place() {
    if !possible() {
        return;
    }
    let mut rig = Rig::start().await;
    let spec = rig
        .deploy(probe_bundle(), |s| {
            s.isolation = Isolation::Call;
            s.scale.max = 1;
        })
        .await;
    let lost = rig.lease(&spec, None).await.expect("a sandbox");
    // A call that is under way is not disturbed.
    let calling = lost.clone();
    let call = tokio::spawn(async move {
        call_tool(
            &calling,
            "run",
            code("import time; time.sleep(4); result = 1"),
        )
        .await
    });
    rig.kill_and_start().await;
    let next = rig.lease(&spec, None).await.expect("another sandbox");
    assert_ne!(next.sandbox, lost.sandbox);
    assert!(
        call.is_finished(),
        "the only place was taken away from a call"
    );
    assert_eq!(
        text(&call.await.expect("no panic").expect("an answer")),
        "1"
    );
    rig.client.release(&next.id, false).await.expect("released");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_that_was_cut_short_is_done_again_and_leaves_no_secret() {
    if !possible() {
        return;
    }
    let mut rig = Rig::start().await;
    let spec = rig.deploy(probe_bundle(), |_| ()).await;
    let (tenant, server) = (spec.tenant.clone(), spec.id.clone());
    let name = SecretName::parse("API_KEY").expect("a name");
    let value = SecretValue::new(b"of the one before".to_vec()).expect("a value");
    rig.client
        .set_secret(&tenant, &server, &name, value)
        .await
        .expect("set");
    let vault = rig.state().join("vault");
    let chattr = |how: &str| {
        let done = std::process::Command::new("chattr")
            .args(["-R", how])
            .arg(&vault)
            .status();
        done.is_ok_and(|status| status.success())
    };
    assert!(chattr("+i"), "the vault cannot be made to fail here");
    let failed = rig.client.remove_server(&tenant, &server).await;
    assert!(chattr("-i"));
    assert!(failed.is_err(), "its secrets are still there");
    rig.kill_and_start().await;
    rig.client
        .remove_server(&tenant, &server)
        .await
        .expect("removed");
    // One that is made anew under its name has nothing of it.
    rig.client.put_server(spec).await.expect("taken");
    let names = rig.client.list_secrets(&tenant, &server).await;
    assert!(names.expect("names").is_empty(), "they came back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_was_out_of_threads_serves_on() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let spec = rig.deploy(probe_bundle(), |_| ()).await;
    let root = Path::new("/sys/fs/cgroup");
    let parent = if root.join("cgroup.controllers").exists() {
        root.to_owned()
    } else {
        root.join("pids")
    };
    let group = parent.join(format!("weir-test-{}", rig.pid()));
    let write = |path: PathBuf, text: String| fs::write(path, text).expect("written");
    fs::create_dir(&group).expect("a group");
    write(group.join("cgroup.procs"), rig.pid().to_string());
    let tasks = fs::read_to_string(group.join("pids.current")).expect("counted");
    let tasks: u32 = tasks.trim().parse().expect("a number");
    write(group.join("pids.max"), (tasks - 2).to_string());
    let client = rig.client.clone();
    let wanted = LeaseRequest {
        tenant: spec.tenant.clone(),
        server: spec.id.clone(),
        session: None,
        wait_ms: 60_000,
    };
    let waits = tokio::spawn(async move { client.lease(wanted).await });
    let log = rig.dir.path().join("runner.log");
    let short = || async {
        fs::read_to_string(&log).is_ok_and(|log| log.contains("no thread can be started"))
    };
    until("it is short of threads", Duration::from_secs(20), short).await;
    write(group.join("pids.max"), "max".to_owned());
    let lease = waits.await.expect("no panic").expect("a sandbox");
    rig.client
        .release(&lease.id, false)
        .await
        .expect("released");
    write(parent.join("cgroup.procs"), rig.pid().to_string());
    let removed = || async { fs::remove_dir(&group).is_ok() };
    until("its group is gone", Duration::from_secs(10), removed).await;
}
