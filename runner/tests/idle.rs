//! Idle sandboxes on disk: what they had comes back with them, and to nobody else; whatever fails is said and is no hang.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::*;
use metering::{MeterStore, Usage};
use runner_api::{Runner as _, *};
use serde_json::{Value, json};

/// Soon to the disk, and there for ever.
const SOON: IdleTimes = IdleTimes {
    freeze_after_s: 1,
    checkpoint_after_s: 2,
    stop_after_s: 0,
    forget_after_s: 0,
};

/// Counts in the server's own memory.
const COUNT: &str =
    "import builtins\nbuiltins.count = getattr(builtins, 'count', 0) + 1\nresult = builtins.count";

const STDIO_COUNTER: &str = r#"
import json, sys
count = 0
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        r = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "lines", "version": "1"}}
    elif m.get("method") == "tools/call":
        count += 1
        r = {"content": [{"type": "text", "text": str(count)}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;

const NODE_COUNTER: &str = r#"
let count = 0;
require("http").createServer((request, response) => {
  let body = "";
  request.on("data", (part) => (body += part)).on("end", () => {
    const m = JSON.parse(body);
    if (m.id === undefined) return response.writeHead(202, { "content-length": 0 }).end();
    const result = m.method === "initialize"
      ? { protocolVersion: "2025-06-18", capabilities: {}, serverInfo: { name: "counter", version: "1" } }
      : m.method === "tools/call" ? { content: [{ type: "text", text: String(++count) }] } : {};
    const text = JSON.stringify({ jsonrpc: "2.0", id: m.id, result });
    response.writeHead(200, { "content-type": "application/json", "content-length": text.length }).end(text);
  });
}).listen(8000, "0.0.0.0");
"#;

fn code(text: &str) -> Value {
    json!({ "code": text })
}

async fn run(rig: &Rig, spec: &ServerSpec, python: &str) -> String {
    match rig.call(spec, "run", code(python)).await {
        Ok(answer) => text(&answer),
        Err(error) => panic!("{error}: {:#?}", rig.logs(spec).await),
    }
}

async fn states(rig: &Rig, spec: &ServerSpec) -> Vec<SandboxState> {
    let servers = rig.client.servers(Some(&spec.tenant)).await;
    let servers = servers.expect("servers").into_iter();
    let own = servers.filter(|s| s.server == spec.id);
    own.flat_map(|s| s.sandboxes).map(|s| s.state).collect()
}

async fn rests(rig: &Rig, spec: &ServerSpec) {
    until("it is checkpointed", Duration::from_secs(30), || async {
        states(rig, spec).await == [SandboxState::Checkpointed]
    })
    .await;
}

/// Checkpoints of idle sandboxes and restores of them, in their order, and why sandboxes ended.
async fn told(rig: &Rig, spec: &ServerSpec) -> Vec<String> {
    let events = rig.events().await.into_iter();
    let own = events.filter(|e| e.server == spec.id && e.tenant == spec.tenant);
    own.filter_map(|e| match e.kind {
        EventKind::Checkpointed {
            of: Moment::Idle, ..
        } => Some("checkpointed".into()),
        EventKind::Restored { .. } => Some("restored".into()),
        EventKind::Gone { reason } => Some(format!("gone: {reason:?}")),
        _ => None,
    })
    .collect()
}

/// How many lines of its log have these words.
async fn says(rig: &Rig, spec: &ServerSpec, words: &str) -> usize {
    let lines = rig.logs(spec).await.into_iter();
    lines.filter(|line| line.text.contains(words)).count()
}

fn https(host: &str) -> EgressRule {
    EgressRule {
        host: host.into(),
        ports: vec![443],
    }
}

fn files(dir: &Path) -> usize {
    std::fs::read_dir(dir).map_or(0, Iterator::count)
}

/// Nothing of any image is left, in clear or encrypted.
async fn no_image_is_left(rig: &Rig) {
    let left =
        || files(&rig.state().join("checkpoints")) + files(&rig.dir.path().join("run/images"));
    until("no image is left", Duration::from_secs(20), || async {
        left() == 0
    })
    .await;
}

fn found_in(dir: &Path, canary: &str) -> bool {
    let grep = std::process::Command::new("grep")
        .args(["-rqF", canary])
        .arg(dir)
        .status();
    grep.expect("grep").success()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_had_comes_back_with_it() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let spec = rig.deploy(probe_bundle(), |s| s.idle = SOON).await;
    // More than half of what it may have: its image does not count against that.
    let fill = "import builtins, os, subprocess, sys, threading, time
builtins.block = os.urandom(300 << 20)
builtins.mark = 'canary-' + 'in-memory-51c7'
open('/home/app/kept', 'w').write('on disk')
open('/tmp/kept', 'w').write('in tmp')
builtins.file = open('/home/app/open', 'w+')
builtins.file.write('half a li'); builtins.file.flush()
builtins.child = subprocess.Popen(['cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
builtins.ticks = 0
def tick():
    while True:
        time.sleep(0.1); builtins.ticks += 1
threading.Thread(target=tick, daemon=True).start()
sys.stdout.write('first half, '); sys.stdout.flush()
result = hash(builtins.block)";
    let hash = run(&rig, &spec, fill).await;
    assert_eq!(run(&rig, &spec, COUNT).await, "1");
    let before = rig.sandboxes().await.remove(0);
    for round in 2..5 {
        let began = Instant::now();
        rests(&rig, &spec).await;
        let resting = rig.sandboxes().await.remove(0);
        assert_eq!(
            (resting.memory_bytes, &resting.sandbox),
            (0, &before.sandbox)
        );
        assert!(resting.storage_bytes > 300 << 20, "{resting:?}");
        assert_eq!(files(&rig.dir.path().join("run/images")), 0, "in clear");
        assert!(
            !found_in(&rig.state(), "canary-in-memory-51c7"),
            "in clear on disk"
        );
        let idle = began.elapsed();
        // Many want it at once; one restore serves them.
        let calls = (0..8).map(|_| {
            rig.call(
                &spec,
                "run",
                code("import builtins; result = hash(builtins.block)"),
            )
        });
        let began = Instant::now();
        for answer in futures_util::future::join_all(calls).await {
            assert_eq!(text(&answer.expect("an answer")), hash);
        }
        eprintln!(
            "checkpointed within {idle:?}, eight answers after {:?}",
            began.elapsed()
        );
        assert_eq!(run(&rig, &spec, COUNT).await, round.to_string());
        assert_eq!(rig.sandboxes().await.len(), 1);
    }
    let look = "import builtins, time
builtins.file.write('ne'); builtins.file.flush()
builtins.child.stdin.write(b'alive'); builtins.child.stdin.flush()
ticks = builtins.ticks; time.sleep(0.5)
print('second half', flush=True)
result = (open('/home/app/kept').read(), open('/tmp/kept').read(), open('/home/app/open').read(), builtins.child.stdout.read1(9), builtins.ticks > ticks)";
    assert_eq!(
        run(&rig, &spec, look).await,
        "('on disk', 'in tmp', 'half a line', b'alive', True)"
    );
    let after = rig.sandboxes().await.remove(0);
    assert_eq!(
        (after.sandbox, after.leases_total),
        (before.sandbox, 2 + 3 * 9 + 1)
    );
    assert_eq!(
        told(&rig, &spec).await,
        ["checkpointed", "restored"].repeat(3)
    );
    let logged = || async {
        let lines = rig.logs(&spec).await;
        ["first half, ", "second half"]
            .iter()
            .all(|half| lines.iter().any(|l| l.text == *half))
    };
    until("its log goes on", Duration::from_secs(5), logged).await;
    // At last it is forgotten.
    rests(&rig, &spec).await;
    let spec = ServerSpec {
        idle: IdleTimes {
            forget_after_s: 3,
            ..SOON
        },
        ..spec
    };
    rig.client.put_server(spec.clone()).await.expect("changed");
    until("it is gone", Duration::from_secs(20), || async {
        rig.sandboxes().await.is_empty()
    })
    .await;
    assert_eq!(
        told(&rig, &spec).await.last().map(String::as_str),
        Some("gone: Idle")
    );
    assert_eq!(run(&rig, &spec, COUNT).await, "1", "a new one");
}

#[tokio::test(flavor = "multi_thread")]
async fn node_and_stdio_servers_go_on_in_their_sessions() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let cases = [
        (
            "js",
            tarball(&[("server.js", NODE_COUNTER), ("package.json", "{}")]),
            HostedTransport::Http,
        ),
        (
            "lines",
            tarball(&[("server.py", STDIO_COUNTER), ("requirements.txt", "")]),
            HostedTransport::Stdio,
        ),
    ];
    for (id, bundle, transport) in cases {
        let spec = rig
            .deploy(bundle, |s| {
                s.id = server_id(id);
                s.transport = transport;
                s.idle = SOON;
            })
            .await;
        let lease = rig.lease(&spec, None).await.expect("a sandbox");
        let session = initialize(&lease).await.expect("a session");
        rig.client
            .release(&lease.id, false)
            .await
            .expect("released");
        for count in 1..4 {
            let lease = rig.lease(&spec, None).await.expect("a sandbox");
            let body = json!({"jsonrpc": "2.0", "id": count, "method": "tools/call", "params": {"name": "count", "arguments": {}}});
            let (status, _, answer) = post(&lease, session.as_deref(), &body)
                .await
                .expect("an answer");
            assert_eq!(
                (status, text(&answer["result"])),
                (200, count.to_string()),
                "{id}"
            );
            rig.client
                .release(&lease.id, false)
                .await
                .expect("released");
            rests(&rig, &spec).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_connections_open_does_not_go_to_the_disk() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let spec = rig
        .deploy(probe_bundle(), |s| {
            s.idle = SOON;
            s.egress = vec![https("first.example")];
        })
        .await;
    let open = "import builtins, socket
builtins.open = socket.create_connection(('first.example', 443), 5); result = 'open'";
    assert_eq!(run(&rig, &spec, open).await, "open");
    let words = "not checkpointed: it keeps connections open";
    until("its owner hears why", Duration::from_secs(30), || async {
        says(&rig, &spec, words).await == 1
    })
    .await;
    assert_eq!(states(&rig, &spec).await, [SandboxState::Frozen]);
    // It lives; and after the next call it may go.
    let close = "import builtins
builtins.open.send(b'x'); builtins.open.close(); result = 'closed'";
    assert_eq!(run(&rig, &spec, close).await, "closed");
    rests(&rig, &spec).await;
    let other = "import builtins; result = builtins.open.fileno()";
    assert_eq!(run(&rig, &spec, other).await, "-1");
    assert_eq!(told(&rig, &spec).await, ["checkpointed", "restored"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_of_a_start_has_no_connections_in_it() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let connects = format!(
        "{NODE_COUNTER}const open = require(\"net\").connect(443, \"first.example\"); open.on(\"error\", () => 0);\n"
    );
    for (id, server, from, said) in [
        ("alone", NODE_COUNTER, "(restored)", 0),
        ("connected", &connects, "(cold)", 1),
    ] {
        let bundle = tarball(&[("server.js", server), ("package.json", "{}")]);
        let spec = rig
            .deploy(bundle, |s| {
                s.id = server_id(id);
                s.isolation = Isolation::Call;
                s.egress = vec![https("first.example")];
            })
            .await;
        for _ in 0..2 {
            let answer = rig.call(&spec, "count", json!({})).await;
            assert_eq!(text(&answer.expect("an answer")), "1", "{id}");
        }
        let no_image = "no checkpoint of its start: it keeps connections open";
        assert_eq!(says(&rig, &spec, no_image).await, said, "{id}");
        assert!(
            says(&rig, &spec, from).await >= 1,
            "{id}: {:#?}",
            rig.logs(&spec).await
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_do_not_end_with_a_rest() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let spec = rig
        .deploy(probe_bundle(), |s| {
            s.idle = SOON;
            s.egress = vec![https("first.example")];
        })
        .await;
    let reach = |name: &str| {
        format!(
            "import socket\ntry:\n socket.create_connection(('{name}', 443), 5).close(); result = 'reached'\nexcept socket.gaierror:\n result = 'no such name'"
        )
    };
    assert_eq!(run(&rig, &spec, &reach("first.example")).await, "reached");
    assert_eq!(
        run(&rig, &spec, &reach("second.example")).await,
        "no such name"
    );
    // Rules that change while it rests are in force when it wakes.
    rests(&rig, &spec).await;
    let spec = ServerSpec {
        egress: vec![https("second.example")],
        ..spec
    };
    rig.client.put_server(spec.clone()).await.expect("changed");
    assert_eq!(
        run(&rig, &spec, &reach("first.example")).await,
        "no such name"
    );
    assert_eq!(run(&rig, &spec, &reach("second.example")).await, "reached");
    assert_eq!(told(&rig, &spec).await, ["checkpointed", "restored"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_wakes_for_its_own_session_and_tenant_alone() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let other = domain::TenantId::parse("other").expect("an id");
    let mut specs = Vec::new();
    for tenant in [tenant(), other] {
        let spec = rig
            .deploy_for(&tenant, probe_bundle(), |s| {
                s.isolation = Isolation::Session;
                s.scale.max = 2;
                s.idle = SOON;
            })
            .await;
        specs.push(spec);
    }
    let count = async |spec: &ServerSpec, session: &str| {
        let lease = rig.lease(spec, Some(session)).await.expect("a sandbox");
        let answer = call_tool(&lease, "run", code(COUNT))
            .await
            .expect("an answer");
        rig.client
            .release(&lease.id, false)
            .await
            .expect("released");
        (text(&answer), lease.sandbox)
    };
    let mut boxes = Vec::new();
    // Three sessions where two sandboxes may run: those on disk keep nobody out.
    for spec in &specs {
        for session in ["one", "two", "three"] {
            let (answer, sandbox) = count(spec, session).await;
            assert_eq!(answer, "1", "a sandbox of its own");
            boxes.push(sandbox);
            until("it rests", Duration::from_secs(30), || async {
                states(&rig, spec)
                    .await
                    .iter()
                    .all(|s| *s == SandboxState::Checkpointed)
            })
            .await;
        }
    }
    for (n, spec) in specs.iter().enumerate() {
        for (m, session) in ["one", "two", "three"].iter().enumerate() {
            let (answer, sandbox) = count(spec, session).await;
            assert_eq!((answer.as_str(), &sandbox), ("2", &boxes[3 * n + m]));
        }
    }
    // Who has no sandbox gets a new one; who is done has none any more, though it rested.
    assert_eq!(count(&specs[0], "four").await.0, "1");
    let all_rest = || async {
        states(&rig, &specs[0])
            .await
            .iter()
            .all(|s| *s == SandboxState::Checkpointed)
    };
    until("all rest", Duration::from_secs(30), all_rest).await;
    let key = SessionKey::parse("one").expect("a key");
    rig.client
        .end_session(&specs[0].tenant, &specs[0].id, &key)
        .await
        .expect("ended");
    until("it is gone", Duration::from_secs(10), || async {
        states(&rig, &specs[0]).await.len() == 3
    })
    .await;
    let (answer, sandbox) = count(&specs[0], "one").await;
    assert!(answer == "1" && sandbox != boxes[0]);
    // A sandbox of one call has nothing to keep.
    let spec = ServerSpec {
        id: server_id("call"),
        isolation: Isolation::Call,
        scale: Scale {
            min: 1,
            ..Scale::default()
        },
        ..specs[0].clone()
    };
    rig.client.put_server(spec.clone()).await.expect("taken");
    assert_eq!(run(&rig, &spec, COUNT).await, "1");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(
        told(&rig, &spec)
            .await
            .iter()
            .all(|t| t.starts_with("gone"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_keep_a_sandbox_from_the_disk_unless_they_are_trusted_to_it() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let spec = rig.deploy(probe_bundle(), |s| s.idle = SOON).await;
    let name = SecretName::parse("API_KEY").expect("a name");
    let set = async |value: &str| {
        let value = SecretValue::new(value.as_bytes().to_vec()).expect("a value");
        rig.client
            .set_secret(&spec.tenant, &spec.id, &name, value)
            .await
            .expect("set");
    };
    set("canary-first-8d1f0b").await;
    let read = "import builtins\nbuiltins.kept = open('/run/secrets/API_KEY').read()\nresult = builtins.kept";
    assert_eq!(run(&rig, &spec, read).await, "canary-first-8d1f0b");
    until("it stands still", Duration::from_secs(10), || async {
        states(&rig, &spec).await == [SandboxState::Frozen]
    })
    .await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(states(&rig, &spec).await, [SandboxState::Frozen]);
    let trusted = ServerSpec {
        trust_checkpoint_with_secrets: true,
        ..spec.clone()
    };
    rig.client
        .put_server(trusted.clone())
        .await
        .expect("changed");
    assert_eq!(run(&rig, &trusted, read).await, "canary-first-8d1f0b");
    rests(&rig, &trusted).await;
    assert!(
        !found_in(&rig.state(), "canary-first-8d1f0b"),
        "in clear on disk"
    );
    assert!(
        !found_in(&rig.dir.path().join("run"), "canary-first-8d1f0b"),
        "in clear in memory"
    );
    let both = "import builtins\nresult = (builtins.kept, open('/run/secrets/API_KEY').read())";
    assert_eq!(
        run(&rig, &trusted, both).await,
        "('canary-first-8d1f0b', 'canary-first-8d1f0b')"
    );
    // With other secrets than those it was checkpointed with it is not gone on with.
    rests(&rig, &trusted).await;
    set("canary-second-77e2").await;
    assert_eq!(run(&rig, &trusted, read).await, "canary-second-77e2");
    let told = told(&rig, &trusted).await;
    assert!(
        told.last().is_some_and(|t| t.contains("secrets")),
        "{told:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_was_changed_is_refused_and_the_caller_served() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let spec = rig.deploy(probe_bundle(), |s| s.idle = SOON).await;
    assert_eq!(run(&rig, &spec, COUNT).await, "1");
    let images = || -> Vec<_> {
        let all = std::fs::read_dir(rig.state().join("checkpoints")).expect("a folder");
        all.map(|e| e.expect("readable").path()).collect()
    };
    let of_start = images();
    rests(&rig, &spec).await;
    let own = images()
        .into_iter()
        .find(|path| !of_start.contains(path))
        .expect("an image");
    let pages = own.join("pages.img");
    let mut bytes = std::fs::read(&pages).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&pages, bytes).expect("written");
    assert_eq!(run(&rig, &spec, COUNT).await, "1", "another one serves");
    let told = told(&rig, &spec).await;
    let refused = told
        .iter()
        .any(|t| t.contains("pages.img") && t.contains("changed"));
    assert!(refused, "{told:?}");
    assert!(!own.exists(), "it is removed");
    // One that cannot be written: the sandbox ends, the next caller gets another, and none is tried again.
    std::fs::remove_dir_all(rig.state().join("checkpoints")).expect("removed");
    std::fs::write(rig.state().join("checkpoints"), "no folder").expect("written");
    until("it ends", Duration::from_secs(20), || async {
        rig.sandboxes().await.is_empty()
    })
    .await;
    let told = self::told(&rig, &spec).await;
    assert!(
        told.last()
            .is_some_and(|t| t.contains("could not be taken")),
        "{told:?}"
    );
    assert_eq!(run(&rig, &spec, COUNT).await, "1");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(states(&rig, &spec).await, [SandboxState::Frozen]);
    assert_eq!(run(&rig, &spec, COUNT).await, "2");
    assert_eq!(files(&rig.dir.path().join("run/images")), 0);
    // Or nobody could end what this test leaves.
    std::fs::remove_file(rig.state().join("checkpoints")).expect("removed");
    std::fs::create_dir(rig.state().join("checkpoints")).expect("made");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_uses_is_counted_once_over_rests_and_a_kill() {
    if !possible() {
        return;
    }
    let mut rig = Rig::start().await;
    let spec = rig.deploy(probe_bundle(), |s| s.idle = SOON).await;
    let mut seen_us = 0;
    for _ in 0..3 {
        run(&rig, &spec, "result = sum(range(60_000_000))").await;
        // The kernel counts anew after each restore.
        let last = std::cell::Cell::new(0);
        until("it is checkpointed", Duration::from_secs(30), || async {
            let now = rig.sandboxes().await.remove(0);
            last.set(last.get().max(now.cpu_us));
            now.state == SandboxState::Checkpointed
        })
        .await;
        seen_us += last.get();
    }
    rig.kill_and_start().await;
    until("nothing is left", Duration::from_secs(20), || async {
        rig.sandboxes().await.is_empty() && files(&rig.dir.path().join("run/boxes")) == 0
    })
    .await;
    rig.stop().await;
    let (_, meter) = MeterStore::open(&rig.state().join("usage")).expect("a whole file");
    let mut sum = Usage::default();
    let windows = meter.open().iter().chain(meter.closed(0, usize::MAX));
    windows.for_each(|window| sum.add(&window.usage));
    eprintln!("{seen_us} us seen, {} us counted", sum.cpu_us);
    assert_eq!(sum.requests, 3);
    // What it used while its image was taken is counted and was not seen.
    assert!(sum.cpu_us >= seen_us, "lost: {} of {seen_us}", sum.cpu_us);
    assert!(
        sum.cpu_us < seen_us + seen_us / 2,
        "{} of {seen_us}",
        sum.cpu_us
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn over_the_bound_the_oldest_ends() {
    if !possible() {
        return;
    }
    let rig = Rig::start_with(&["--idle-checkpoints", "2"]).await;
    let first = rig.deploy(probe_bundle(), |s| s.idle = SOON).await;
    let mut specs = vec![first];
    for name in ["second", "third"] {
        let spec = ServerSpec {
            id: server_id(name),
            ..specs[0].clone()
        };
        rig.client.put_server(spec.clone()).await.expect("taken");
        specs.push(spec);
    }
    for spec in &specs {
        assert_eq!(run(&rig, spec, COUNT).await, "1");
        rests(&rig, spec).await;
    }
    until("the first is gone", Duration::from_secs(10), || async {
        states(&rig, &specs[0]).await.is_empty()
    })
    .await;
    assert_eq!(
        told(&rig, &specs[0]).await,
        ["checkpointed", "gone: NoRoom"]
    );
    for (spec, count) in specs.iter().zip(["1", "2", "2"]).rev() {
        assert_eq!(run(&rig, spec, COUNT).await, count, "{}", spec.id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_of_the_runner_leaves_no_image_and_no_orphan() {
    if !possible() {
        return;
    }
    let mut rig = Rig::start().await;
    let spec = rig.deploy(probe_bundle(), |s| s.idle = SOON).await;
    let boxes = |rig: &Rig| files(&rig.dir.path().join("run/boxes"));
    // While it lies there.
    assert_eq!(run(&rig, &spec, COUNT).await, "1");
    rests(&rig, &spec).await;
    rig.kill_and_start().await;
    no_image_is_left(&rig).await;
    let last = told(&rig, &spec).await.pop();
    assert!(last.is_some_and(|t| t.contains("key of its checkpoint")));
    assert_eq!(run(&rig, &spec, COUNT).await, "1");
    // While it is taken, from the note that it will be to the image on disk; and while it is restored.
    let mut cut_short = 0;
    for round in 0..12u64 {
        let taken = round % 2 == 0;
        if taken {
            let noted = || async {
                let all = std::fs::read_dir(rig.state().join("boxes")).expect("a folder");
                all.flatten().any(|e| {
                    std::fs::read_to_string(e.path())
                        .is_ok_and(|t| t.contains(r#""checkpointed":true"#))
                })
            };
            until("it is about to be taken", Duration::from_secs(30), noted).await;
        } else {
            rests(&rig, &spec).await;
            let client = Client::new(rig.dir.path().join("run/runner.sock"));
            let waking = spec.clone();
            tokio::spawn(async move { call_by(&client, &waking, "run", code(COUNT)).await });
        }
        tokio::time::sleep(Duration::from_millis(round * 45)).await;
        rig.kill();
        let noted = std::fs::read_dir(rig.state().join("boxes")).expect("a folder");
        cut_short += noted
            .flatten()
            .filter(|e| {
                std::fs::read_to_string(e.path())
                    .is_ok_and(|t| t.contains(r#""checkpointed":true"#))
            })
            .count();
        rig.start_again().await;
        // One that ran again is gone on with, any other is gone: never two, and never half of one.
        let count: u32 = run(&rig, &spec, COUNT).await.parse().expect("a number");
        assert!((1..=20).contains(&count));
        // An image in clear is there for a moment again if this one is being taken by now; one that was left would stay.
        until("nothing else is left", Duration::from_secs(20), || async {
            let in_clear = files(&rig.dir.path().join("run/images"));
            boxes(&rig) == 1 && rig.sandboxes().await.len() == 1 && in_clear == 0
        })
        .await;
    }
    assert!(cut_short >= 6, "{cut_short} of 12 kills hit a checkpoint");
}
