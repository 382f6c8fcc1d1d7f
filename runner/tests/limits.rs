//! What a plan limits, as the host's kernel has it, and what a server pays that ends itself again and again.

mod common;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use common::*;
use runner_api::{Runner as _, *};
use serde_json::json;

/// A sandbox is made with more cores than it keeps, but one of the machine's is never its.
fn assert_confined(list: &str) {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let (own, most) = (cores_in(list).len(), all.saturating_sub(1).max(1));
    assert!(own <= most, "{list} of {all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hosts_kernel_holds_the_plan() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let spec = rig
        .deploy(probe_bundle(), |s| {
            s.limits.cpu_shares = 1024;
            s.limits.memory_mb = 512;
            s.limits.processes = 100;
        })
        .await;
    rig.call(&spec, "run", json!({"code": "result = 1"}))
        .await
        .expect("it runs");
    let sandbox = rig.sandboxes().await[0].sandbox.clone();
    let memory = said(&sandbox, "memory", ["memory.max", "memory.limit_in_bytes"]);
    assert_eq!(memory, (544 << 20).to_string(), "with gVisor's own 32 MiB");
    let pids = said(&sandbox, "pids", ["pids.max", "pids.max"]);
    assert_eq!(pids, "428", "the backstop behind 100");
    let weight = said(&sandbox, "cpu", ["cpu.weight", "cpu.shares"]);
    // The kernel's own conversion of 1024 shares.
    assert!(["1024", "39"].contains(&weight.as_str()), "{weight}");
    let cores = said(&sandbox, "cpuset", ["cpuset.cpus", "cpuset.cpus"]);
    assert!(!cores.is_empty(), "it has cores of its own");
    assert_confined(&cores);
    let tasks = said(&sandbox, "pids", ["pids.current", "pids.current"]);
    assert!(tasks.parse::<u32>().expect("a number") > 3, "{tasks}");
    // Before anything of the host's own.
    let scores = said(&sandbox, "memory", ["cgroup.procs", "cgroup.procs"]);
    let scores = scores.lines().map(|pid| {
        let score = fs::read_to_string(format!("/proc/{pid}/oom_score_adj"));
        score.unwrap_or_default().trim().parse().unwrap_or(0)
    });
    assert_eq!(scores.max(), Some(800), "who ends first without memory");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_sandbox_has_the_same_limits() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let spec = rig
        .deploy(probe_bundle(), |s| {
            s.isolation = Isolation::Call;
            s.limits.memory_mb = 256;
        })
        .await;
    rig.call(&spec, "run", json!({"code": "result = 1"}))
        .await
        .expect("it runs");
    let lease = rig.lease(&spec, None).await.expect("another one");
    let started = rig.events().await.into_iter().rev();
    let from = started.filter_map(|event| match event.kind {
        EventKind::Ready { from, .. } => Some(from),
        _ => None,
    });
    assert_eq!(from.take(1).collect::<Vec<_>>(), ["restored"]);
    let names = ["memory.max", "memory.limit_in_bytes"];
    let memory = said(&lease.sandbox, "memory", names);
    assert_eq!(memory, (288 << 20).to_string(), "with gVisor's own 32 MiB");
    let cores = ["cpuset.cpus", "cpuset.cpus"];
    assert_confined(&said(&lease.sandbox, "cpuset", cores));
    // More than that, and no more than that, is killed.
    let hostile = json!({"code": "x = b'x' * (400 << 20)"});
    let result = tokio::select! {
        result = call_tool(&lease, "run", hostile) => format!("{result:?}"),
        gone = rig.client.gone(&lease.id) => format!("{gone:?}"),
    };
    assert!(!result.starts_with("Ok(Object"), "{result}");
    let ended = || async {
        let events = rig.events().await;
        events.iter().any(|e| {
            matches!(
                e.kind,
                EventKind::Gone {
                    reason: GoneReason::OutOfMemory
                }
            )
        })
    };
    until("it is out of memory", Duration::from_secs(20), ended).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fills_its_memory_at_its_start_lives_on() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let server = format!("import os\nballast = os.urandom(170 << 20)\n{PROBE_SERVER}");
    let files = [
        ("server.py", server.as_str()),
        ("requirements.txt", "# nothing\n"),
    ];
    let spec = rig
        .deploy(tarball(&files), |s| s.limits.memory_mb = 256)
        .await;
    // Its image is written meanwhile, which counts as its own memory.
    for _ in 0..3 {
        rig.call(&spec, "run", json!({"code": "result = 1"}))
            .await
            .expect("an answer");
    }
    let all = rig.sandboxes().await;
    assert_eq!(all.len(), 1, "{all:?}");
    let events = rig.events().await;
    let gone = events
        .iter()
        .filter(|e| matches!(e.kind, EventKind::Gone { .. }));
    assert_eq!(gone.count(), 0, "{events:?}");
    let taken = |e: &Event| matches!(e.kind, EventKind::Checkpointed { .. });
    assert!(events.iter().any(taken), "{events:?}");
    let names = ["memory.max", "memory.limit_in_bytes"];
    let limit = said(&all[0].sandbox, "memory", names);
    let own = (256u64 + 32) << 20;
    assert_eq!(limit, own.to_string(), "what it was lent is taken back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_itself_again_and_again_has_to_wait() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let spec = rig.deploy(probe_bundle(), |_| ()).await;
    let run = |code: &str| json!({ "code": code });
    // On a slow machine the first waits, of half a second and more, may be over before they are asked for.
    let mut crashes = 0;
    let refused = loop {
        match rig.lease(&spec, None).await {
            Ok(lease) => rig
                .client
                .release(&lease.id, false)
                .await
                .expect("released"),
            Err(RunnerError::Refused(refused)) => break refused,
            Err(other) => panic!("{other}"),
        }
        assert!(
            crashes < 12,
            "started at once after {crashes} crashes in a row"
        );
        // What it hears depends on what closes first: the program's connections or its sandbox.
        // With the code of one that is killed from outside, which would be forgiven.
        rig.call(&spec, "run", run("import os; os._exit(137)"))
            .await
            .expect_err("nobody is left to answer");
        crashes += 1;
        until("it is gone", Duration::from_secs(20), || async {
            rig.sandboxes().await.is_empty()
        })
        .await;
    };
    assert!(crashes > 3, "a few crashes are forgiven");
    assert_eq!(refused.code, ErrorCode::StartFailed);
    assert!(refused.message.contains("again and again"), "{refused:?}");
    assert!(refused.retry_after_ms.is_some(), "{refused:?}");
    // And then it serves again.
    rig.settled(&spec).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_that_come_to_nothing_hold_up_no_other_tenant() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let never = [
        ("server.py", "import time; time.sleep(600)"),
        ("requirements.txt", "# nothing\n"),
    ];
    let slow = rig
        .deploy(tarball(&never), |s| {
            s.isolation = Isolation::Call;
            s.scale.max = 24;
        })
        .await;
    let other = domain::TenantId::parse("other").expect("an id");
    let spec = rig.deploy_for(&other, probe_bundle(), |_| ()).await;
    let wanted = LeaseRequest {
        tenant: slow.tenant.clone(),
        server: slow.id.clone(),
        session: None,
        wait_ms: 60_000,
    };
    let waiting: Vec<_> = (0..24)
        .map(|_| {
            let (client, wanted) = (rig.client.clone(), wanted.clone());
            tokio::spawn(async move { client.lease(wanted).await })
        })
        .collect();
    until("all of them start", Duration::from_secs(10), || async {
        rig.sandboxes().await.len() >= 24
    })
    .await;
    let asked = Instant::now();
    let lease = rig.lease(&spec, None).await.expect("a sandbox");
    assert!(
        asked.elapsed() < patient(Duration::from_secs(20)),
        "waited {:?}",
        asked.elapsed()
    );
    rig.client
        .release(&lease.id, false)
        .await
        .expect("released");
    // And those that wait to start end at once when they are to.
    let began = Instant::now();
    rig.client
        .remove_server(&slow.tenant, &slow.id)
        .await
        .expect("removed");
    assert!(
        began.elapsed() < patient(Duration::from_secs(40)),
        "removed after {:?}",
        began.elapsed()
    );
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Writes to its own storage until it is told, and says how much it has written.
const WRITES: &str = r"
import os, time
end = time.monotonic() + 60
with open('/home/app/x', 'wb') as f:
    while time.monotonic() < end:
        f.write(b'x' * (4 << 20))
        f.flush()
        os.fsync(f.fileno())
        time.sleep(0.02)
result = 'it wrote on'
";

#[tokio::test(flavor = "multi_thread")]
async fn who_fills_the_hosts_disk_ends_and_its_neighbour_does_not() {
    if !possible() {
        return;
    }
    let rig = Rig::start_on_a_disk_of(2500).await;
    let limits = Limits {
        call_timeout_s: 120,
        ..Limits::default()
    };
    let neighbour = rig
        .deploy(probe_bundle(), |s| {
            s.id = server_id("neighbour");
            s.limits = limits;
        })
        .await;
    let bomb = rig
        .deploy(probe_bundle(), |s| {
            s.id = server_id("bomb");
            s.limits = limits;
        })
        .await;
    // What the neighbour keeps is on the disk, too.
    let keeps = json!({ "code": "
import os
with open('/home/app/kept', 'wb') as f:
    f.write(b'k' * (32 << 20)); f.flush(); os.fsync(f.fileno())
result = 'kept'
" });
    let kept = rig.call(&neighbour, "run", keeps).await.expect("an answer");
    assert_eq!(text(&kept), "kept");
    let filled = rig.call(&bomb, "run", json!({ "code": WRITES })).await;
    let error = filled.expect_err("its disk is not the host's");
    eprintln!("the bomb's caller hears: {error}");
    let ended = async || {
        let full = |event: &Event| {
            let gone = EventKind::Gone {
                reason: GoneReason::HostDiskFull,
            };
            event.server == bomb.id && event.kind == gone
        };
        rig.events().await.iter().any(full)
    };
    until("its owner hears why", Duration::from_secs(10), ended).await;
    let says = rig.logs(&bomb).await;
    let words = "the host's disk was nearly full";
    assert!(
        says.iter().any(|line| line.text.contains(words)),
        "{says:?}"
    );
    let reads =
        json!({ "code": "result = str(len(open('/home/app/kept','rb').read().strip(b'k')))" });
    let read = rig.call(&neighbour, "run", reads).await.expect("an answer");
    assert_eq!(text(&read), "0", "what the neighbour kept is whole");
    // There is room again, for the one that filled it as well.
    let again = async || {
        let code = json!({ "code": "result = 'here'" });
        let answer = rig.call(&bomb, "run", code).await;
        answer.is_ok_and(|answer| text(&answer) == "here")
    };
    until("a new one starts", Duration::from_secs(20), again).await;
}

/// Writes so many MiB to a file of its own, or until it may not; gives how many there were, the error, and the seconds it took.
fn filling(mib: u32) -> serde_json::Value {
    json!({ "code": format!("
import errno, os, time
began, done, said = time.monotonic(), 0, ''
with open('/home/app/x', 'wb', buffering=0) as f:
    try:
        while done < {mib}:
            f.write(b'x' * (1 << 20)); done += 1
    except OSError as e:
        said = errno.errorcode[e.errno]
result = f'{{done}} {{said}} {{time.monotonic() - began:.1f}}'
") })
}

/// In a call of its own: MiB, the error, seconds.
async fn fill(rig: &Rig, spec: &ServerSpec, mib: u32) -> (u32, String, f32) {
    let answer = rig.call(spec, "run", filling(mib)).await;
    let answer = text(&answer.expect("an answer")).to_owned();
    let mut words = answer.split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    let (done, said, took) = (word(), word(), word());
    let done = done.parse().expect("a number");
    (done, said, took.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn storage_is_written_at_its_speed() {
    if !possible() {
        return;
    }
    let version_1 = Path::new("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device").exists();
    if !(version_1 && Path::new("/sys/class/bdi/7:0/max_bytes").exists()) {
        // Version 2 bounds the group, which a virtual machine without devices of its own may not let us.
        eprintln!("LEFT OUT: this kernel bounds no writes of a loop device");
        return;
    }
    let rig = Rig::start_with(&["--storage-write-mib-s", "64"]).await;
    let spec = rig
        .deploy(probe_bundle(), |s| {
            // As little memory as it can have: what waits for the disk counts there.
            s.limits.memory_mb = 256;
            s.limits.call_timeout_s = 120;
        })
        .await;
    for round in 0..2 {
        let (done, said, took) = fill(&rig, &spec, 640).await;
        assert_eq!((done, said.as_str()), (640, ""), "round {round}");
        // 512 MiB are more than may be unwritten; some of them at the speed of memory.
        assert!(took > 6.0, "640 MiB in {took} s");
    }
    let sandbox = rig.sandboxes().await;
    assert_eq!(sandbox.len(), 1, "{sandbox:?}");
    let gone = rig.events().await;
    let gone = gone
        .iter()
        .filter(|e| matches!(e.kind, EventKind::Gone { .. }));
    assert_eq!(gone.count(), 0, "it lived on");
    // Whoever has the device next is not bounded by it.
    rig.client
        .remove_server(&spec.tenant, &spec.id)
        .await
        .expect("removed");
    let bounds = || fs::read_to_string("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device");
    let mine = (64_u64 << 20).to_string();
    until("its bound is gone", Duration::from_secs(10), || async {
        !bounds().is_ok_and(|all| all.lines().any(|line| line.ends_with(&mine)))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn storage_ends_at_the_sold_size() {
    if !possible() {
        return;
    }
    let rig = Rig::start_with(&["--storage-write-mib-s", "0"]).await;
    if weir_runner::room::free_bytes(&rig.state()) < Some(8 << 30) {
        eprintln!("LEFT OUT: filling 5 GiB of storage, as the disk has less than 8 GiB free");
        return;
    }
    let limits = Limits {
        call_timeout_s: 120,
        ..Limits::default()
    };
    let spec = rig.deploy(probe_bundle(), |s| s.limits = limits).await;
    let (done, said, _) = fill(&rig, &spec, 6 * 1024).await;
    assert_eq!(said, "ENOSPC", "after {done} MiB");
    assert!((4 * 1024 + 512..=5 * 1024).contains(&done), "{done} MiB");
    // It goes on, and has the room again that it gives back.
    let (done, said, _) = fill(&rig, &spec, 64).await;
    assert_eq!((done, said.as_str()), (64, ""));
}
