//! What becomes of sandboxes: frozen, killed, found again, isolated.

mod common;

use std::time::{Duration, Instant};

use common::*;
use runner_api::{Runner as _, *};
use serde_json::json;

fn code(text: &str) -> serde_json::Value {
    json!({ "code": text })
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_sandboxes_freeze_and_wake_and_end() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let times = IdleTimes {
        freeze_after_s: 1,
        stop_after_s: 0,
        ..IdleTimes::default()
    };
    let spec = rig.deploy(probe_bundle(), |s| s.idle = times).await;
    assert_eq!(
        text(
            &rig.call(&spec, "run", code("result = 6 * 7"))
                .await
                .expect("an answer")
        ),
        "42"
    );
    let frozen = || async {
        rig.sandboxes()
            .await
            .iter()
            .any(|s| s.state == SandboxState::Frozen)
    };
    until("it is frozen", Duration::from_secs(10), frozen).await;
    let before = rig.sandboxes().await[0].cpu_us;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = rig.sandboxes().await[0].cpu_us;
    assert!(
        after - before < 2_000,
        "a frozen sandbox used {} us",
        after - before
    );
    let began = Instant::now();
    rig.call(&spec, "run", code("result = 1"))
        .await
        .expect("it wakes");
    eprintln!("thaw to the third answer in {:?}", began.elapsed());
    assert_eq!(rig.sandboxes().await.len(), 1, "it is the same sandbox");
    let spec = ServerSpec {
        idle: IdleTimes {
            stop_after_s: 2,
            ..times
        },
        ..spec
    };
    rig.client.put_server(spec.clone()).await.expect("changed");
    until("it is gone", Duration::from_secs(20), || async {
        rig.sandboxes().await.is_empty()
    })
    .await;
    rig.call(&spec, "run", code("result = 1"))
        .await
        .expect("a new one");
}

#[tokio::test(flavor = "multi_thread")]
async fn sandboxes_outlive_the_runner_and_are_found_again() {
    if !possible() {
        return;
    }
    let mut rig = Rig::start().await;
    let spec = rig.deploy(probe_bundle(), |_| ()).await;
    rig.call(&spec, "run", code("import builtins; builtins.kept = 'yes'"))
        .await
        .expect("an answer");
    let before = rig.sandboxes().await[0].sandbox.clone();
    for _ in 0..3 {
        rig.kill_and_start().await;
        let found = || async {
            rig.sandboxes()
                .await
                .iter()
                .any(|s| s.state == SandboxState::Ready)
        };
        until("it is found again", Duration::from_secs(10), found).await;
        let answer = rig
            .call(
                &spec,
                "run",
                code("import builtins; result = builtins.kept"),
            )
            .await
            .expect("an answer");
        assert_eq!(text(&answer), "yes");
    }
    assert_eq!(rig.sandboxes().await[0].sandbox, before);
    // One that is drained stays so: nobody gets it again, nor what it reads of a secret that is another by now.
    let set = async |value: &str| {
        let name = SecretName::parse("TOKEN").expect("a name");
        let value = SecretValue::new(value.as_bytes().to_vec()).expect("a value");
        rig.client
            .set_secret(&spec.tenant, &spec.id, &name, value)
            .await
            .expect("set");
        rig.client
            .restart_server(&spec.tenant, &spec.id)
            .await
            .expect("drained");
    };
    set("first-canary-5f3a9c77e1").await;
    let say = |word, seconds| {
        code(&format!(
            "import time; time.sleep({seconds}); s = open('/run/secrets/TOKEN').read(); print('{word}', s, flush=True); result = s"
        ))
    };
    let held = rig.lease(&spec, None).await.expect("a sandbox");
    let said = call_tool(&held, "run", say("before", 0)).await;
    assert_eq!(text(&said.expect("an answer")), "first-canary-5f3a9c77e1");
    let (lease, asked) = (held.clone(), say("late", 5));
    let under_way = tokio::spawn(async move { call_tool(&lease, "run", asked).await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    set("second-canary-0d9e8f7a6b").await;
    rig.kill_and_start().await;
    let said = rig.call(&spec, "run", say("new", 0)).await;
    assert_eq!(text(&said.expect("an answer")), "second-canary-0d9e8f7a6b");
    let said = under_way.await.expect("no panic").expect("an answer");
    assert_eq!(
        text(&said),
        "first-canary-5f3a9c77e1",
        "it ends after its call"
    );
    let logged: Vec<_> = rig.logs(&spec).await.into_iter().map(|l| l.text).collect();
    assert!(logged.iter().all(|l| !l.contains("canary")), "{logged:?}");
    let has = |words: &str| logged.iter().any(|l| l.contains(words));
    assert!(has("before [secret]") && has("new [secret]"), "{logged:?}");
    assert!(
        has("is withheld until it ends") && !has("late"),
        "{logged:?}"
    );
    let old = || async {
        rig.sandboxes()
            .await
            .iter()
            .all(|s| s.sandbox != held.sandbox)
    };
    until("it ends", Duration::from_secs(15), old).await;
    let before = rig.sandboxes().await[0].sandbox.clone();
    // It has been idle for as long as the other was used; what is frozen dies only when it is thawed.
    rig.call(&spec, "run", code("result = 1"))
        .await
        .expect("an answer");
    // One that died while nobody looked is noticed, and replaced.
    let saved = std::fs::read_to_string(rig.state().join("boxes").join(format!("{before}.json")))
        .expect("written down");
    let pid = serde_json::from_str::<serde_json::Value>(&saved).expect("JSON")["placed"]["pid"]
        .as_i64()
        .expect("a pid");
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(pid as i32),
        nix::sys::signal::Signal::SIGKILL,
    )
    .expect("killed");
    let gone = || async { rig.sandboxes().await.iter().all(|s| s.sandbox != before) };
    until(
        "the dead one is cleared away",
        Duration::from_secs(15),
        gone,
    )
    .await;
    rig.call(&spec, "run", code("result = 1"))
        .await
        .expect("a new one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_flight_hears_at_once_that_its_sandbox_is_gone() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let spec = rig
        .deploy(probe_bundle(), |s| s.limits.memory_mb = 256)
        .await;
    rig.call(&spec, "run", code("result = 1"))
        .await
        .expect("it runs");
    let cases = [
        ("out of memory", "x = b'x' * (600 << 20)", "OutOfMemory"),
        ("its program ends", "import os; os._exit(3)", "Exited"),
    ];
    for (what, hostile, reason) in cases {
        let began = Instant::now();
        let error = rig.call(&spec, "run", code(hostile)).await.expect_err(what);
        // A program that ends by itself may still close its connections.
        assert!(
            error.contains("gone") || error == "no head",
            "{what}: {error}"
        );
        let gone = rig
            .events()
            .await
            .into_iter()
            .rev()
            .find_map(|e| match e.kind {
                EventKind::Gone { reason } => Some(reason),
                _ => None,
            });
        assert!(format!("{gone:?}").contains(reason), "{what}: {gone:?}");
        assert!(
            began.elapsed() < patient(Duration::from_secs(8)),
            "{what}: heard after {:?}",
            began.elapsed()
        );
        rig.call(&spec, "run", code("result = 1"))
            .await
            .expect("and another one serves");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn isolation_is_per_call_or_per_session() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let spec = rig
        .deploy(probe_bundle(), |s| s.isolation = Isolation::Call)
        .await;
    let write = "import builtins; old = getattr(builtins, 'mark', None); builtins.mark = 1; open('/home/app/x', 'a').write('x'); result = (old, len(open('/home/app/x').read()))";
    for _ in 0..2 {
        let answer = rig
            .call(&spec, "run", code(write))
            .await
            .expect("an answer");
        assert_eq!(text(&answer), "(None, 1)", "a call sees nothing of another");
    }
    let spec = ServerSpec {
        isolation: Isolation::Session,
        ..spec
    };
    rig.client.put_server(spec.clone()).await.expect("changed");
    let mut boxes = Vec::new();
    for session in ["one", "two", "one"] {
        let lease = rig.lease(&spec, Some(session)).await.expect("a sandbox");
        boxes.push(lease.sandbox.clone());
        rig.client
            .release(&lease.id, false)
            .await
            .expect("released");
    }
    assert_eq!(boxes[0], boxes[2]);
    assert_ne!(boxes[0], boxes[1]);
    let key = SessionKey::parse("one").expect("a key");
    rig.client
        .end_session(&spec.tenant, &spec.id, &key)
        .await
        .expect("ended");
    let gone = || async { rig.sandboxes().await.iter().all(|s| s.sandbox != boxes[0]) };
    until(
        "the session's sandbox is gone",
        Duration::from_secs(15),
        gone,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_a_caller_that_is_gone_keep_no_place() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let spec = rig
        .deploy(probe_bundle(), |s| {
            s.isolation = Isolation::Session;
            s.scale.max = 1;
        })
        .await;
    let wanted = |session: &str, wait_ms| LeaseRequest {
        tenant: spec.tenant.clone(),
        server: spec.id.clone(),
        session: SessionKey::parse(session).ok(),
        wait_ms,
    };
    let other = Client::new(rig.dir.path().join("run/runner.sock"));
    let theirs = other
        .lease(wanted("theirs", 60_000))
        .await
        .expect("a sandbox");
    other.release(&theirs.id, false).await.expect("released");
    // Its session is idle for a moment only, and it may come back.
    let early = rig.client.lease(wanted("ours", 4_000)).await;
    assert_eq!(early.expect_err("no place").code(), Some(ErrorCode::Busy));
    drop(other);
    let asked = Instant::now();
    let ours = rig
        .client
        .lease(wanted("ours", 60_000))
        .await
        .expect("a sandbox");
    assert!(
        asked.elapsed() < patient(Duration::from_millis(4_500)),
        "{:?}",
        asked.elapsed()
    );
    assert_ne!(ours.sandbox, theirs.sandbox);
    rig.client.release(&ours.id, false).await.expect("released");
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_files_in_the_guest_and_nowhere_in_clear_on_the_host() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let spec = rig.deploy(probe_bundle(), |_| ()).await;
    let canary = "canary-7f3a9c1e55b2";
    let name = SecretName::parse("API_KEY").expect("a name");
    let value = SecretValue::new(canary.as_bytes().to_vec()).expect("a value");
    rig.client
        .set_secret(&spec.tenant, &spec.id, &name, value)
        .await
        .expect("set");
    assert_eq!(
        rig.client
            .list_secrets(&spec.tenant, &spec.id)
            .await
            .expect("names"),
        std::slice::from_ref(&name)
    );
    let read = "import os, stat; p='/run/secrets/API_KEY'; result = (open(p).read(), oct(os.stat(p).st_mode & 0o777), 'canary' in str(os.environ))";
    let answer = rig.call(&spec, "run", code(read)).await.expect("an answer");
    assert_eq!(text(&answer), format!("('{canary}', '0o400', False)"));
    let write = rig
        .call(&spec, "run", code("open('/run/secrets/API_KEY', 'w')"))
        .await
        .expect("an answer");
    assert!(text(&write).contains("Error"), "{write}");
    for event in rig.events().await {
        assert!(
            !serde_json::to_string(&event)
                .expect("JSON")
                .contains(canary)
        );
    }
    let events = rig.events().await;
    assert!(
        events
            .iter()
            .any(|e| matches!(&e.kind, EventKind::SecretsMounted { names } if names[0] == name))
    );
    let grep = std::process::Command::new("grep")
        .args(["-rlF", canary])
        .arg(rig.state())
        .arg(rig.dir.path().join("runner.log"))
        .output()
        .expect("grep");
    assert!(
        grep.stdout.is_empty(),
        "in clear in {}",
        String::from_utf8_lossy(&grep.stdout)
    );
    // A secret that is required and missing is said, not waited for.
    let spec = ServerSpec {
        id: server_id("other"),
        secrets: [SecretName::parse("NOT_SET").expect("a name")].into(),
        ..spec
    };
    rig.client.put_server(spec.clone()).await.expect("taken");
    let error = rig
        .call(&spec, "run", code("result = 1"))
        .await
        .expect_err("it is missing");
    assert!(error.contains("NOT_SET"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_sandbox_uses_is_counted_once_over_a_kill() {
    if !possible() {
        return;
    }
    let mut rig = Rig::start().await;
    let spec = rig.deploy(probe_bundle(), |_| ()).await;
    for _ in 0..3 {
        rig.call(&spec, "run", code("sum(range(3_000_000))"))
            .await
            .expect("an answer");
    }
    let state = rig.state();
    let usage = move || -> serde_json::Value {
        let text = std::fs::read_to_string(state.join("usage")).unwrap_or_default();
        let json = text
            .split_once('\n')
            .and_then(|(_, json)| serde_json::from_str::<serde_json::Value>(json).ok());
        json.map_or(serde_json::Value::Null, |all| {
            all["open"][0]["usage"].clone()
        })
    };
    until(
        "three calls are counted",
        Duration::from_secs(25),
        || async { usage()["requests"] == 3 },
    )
    .await;
    let before = usage();
    assert!(before["cpu_us"].as_u64() > Some(100_000), "{before}");
    // The host's disk is larger by a thousand times.
    assert!(
        before["storage_byte_ms"].as_u64() < Some(60_000 * (64 << 20)),
        "{before}"
    );
    rig.kill_and_start().await;
    rig.call(&spec, "run", code("result = 1"))
        .await
        .expect("an answer");
    until(
        "the fourth is counted, and none twice",
        Duration::from_secs(25),
        || async { usage()["requests"].as_u64() >= Some(4) },
    )
    .await;
    assert_eq!(usage()["requests"], 4);
    assert!(
        usage()["cpu_us"].as_u64() < before["cpu_us"].as_u64().map(|us| us * 2 + 500_000),
        "{}",
        usage()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_start_is_a_restore() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let spec = rig
        .deploy(
            tarball(&[
                ("server.py", SEED_SERVER),
                ("requirements.txt", SEED_REQUIREMENTS),
            ]),
            |s| s.isolation = Isolation::Call,
        )
        .await;
    for _ in 0..4 {
        let began = Instant::now();
        let answer = rig
            .call(&spec, "get_data", json!({"query": "x"}))
            .await
            .expect("an answer");
        assert_eq!(text(&answer), "Result for: x");
        eprintln!("start to the end of the call in {:?}", began.elapsed());
    }
    let ready: Vec<_> = rig
        .events()
        .await
        .into_iter()
        .filter_map(|e| match e.kind {
            EventKind::Ready { from, took_ms } => Some((from, took_ms)),
            _ => None,
        })
        .collect();
    eprintln!("{ready:?}");
    assert_eq!(ready[0].0, "cold");
    assert!(
        ready[1..].iter().all(|(from, _)| from == "restored"),
        "{ready:?}"
    );
    // Who restarts it wants its program to begin anew.
    rig.client
        .restart_server(&spec.tenant, &spec.id)
        .await
        .expect("drained");
    let images = || std::fs::read_dir(rig.state().join("checkpoints")).map_or(0, Iterator::count);
    assert_eq!(images(), 0, "none of before is left");
    for from in ["cold", "restored"] {
        rig.call(&spec, "get_data", json!({"query": "x"}))
            .await
            .expect("an answer");
        let ready = rig.events().await.into_iter().rev();
        let mut ready = ready.filter_map(|e| match e.kind {
            EventKind::Ready { from, .. } => Some(from),
            _ => None,
        });
        assert_eq!(ready.next().as_deref(), Some(from));
    }
    // On disk there is nothing in clear: not even the server's own name.
    let grep = std::process::Command::new("grep")
        .args(["-rlF", "my-server"])
        .arg(rig.state().join("checkpoints"))
        .output()
        .expect("grep");
    assert!(
        grep.stdout.is_empty(),
        "in clear in {}",
        String::from_utf8_lossy(&grep.stdout)
    );
    // A server with secrets has no images, unless its owner says so.
    let name = SecretName::parse("K").expect("a name");
    let value = SecretValue::new(b"v".to_vec()).expect("a value");
    rig.client
        .set_secret(&spec.tenant, &spec.id, &name, value)
        .await
        .expect("set");
    rig.call(&spec, "get_data", json!({"query": "x"}))
        .await
        .expect("an answer");
    let last = rig
        .events()
        .await
        .into_iter()
        .rev()
        .find_map(|e| match e.kind {
            EventKind::Ready { from, .. } => Some(from),
            _ => None,
        });
    assert_eq!(last.as_deref(), Some("cold"));
}

#[tokio::test(flavor = "multi_thread")]
async fn old_bundles_that_no_server_uses_go_but_for_the_newest() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let numbered = |n: usize| {
        let text = n.to_string();
        tarball(&[
            ("server.py", PROBE_SERVER),
            ("requirements.txt", "# nothing\n"),
            ("number", &text),
        ])
    };
    let used = rig.deploy(numbered(0), |_| ()).await;
    rig.call(&used, "run", code("result = 1"))
        .await
        .expect("an answer");
    // As many new ones as are kept where the disk is short, too: what else lies on it decides nothing here.
    let mut unused = Vec::new();
    for n in 1..=10 {
        unused.push(rig.put(numbered(n)).await.expect("the bundle is taken"));
    }
    let places = || {
        let tenants = std::fs::read_dir(rig.state().join("bundles")).expect("a folder");
        let bundles = tenants.flatten().flat_map(|t| std::fs::read_dir(t.path()));
        bundles.flatten().flatten().map(|bundle| bundle.path())
    };
    // Some lie there for longer than a deployment takes.
    let old: Vec<&str> = unused[..3].iter().map(|info| info.id.as_str()).collect();
    let hours = std::time::SystemTime::now() - Duration::from_secs(2 * 3600);
    for place in places().filter(|place| old.iter().any(|id| place.ends_with(id))) {
        std::fs::File::open(place.join("info.json"))
            .and_then(|info| info.set_modified(hours))
            .expect("older");
    }
    unused.push(rig.put(numbered(11)).await.expect("the bundle is taken"));
    let kept = || async { places().count() == 9 };
    until("the old are gone", Duration::from_secs(20), kept).await;
    for (n, info) in unused.iter().enumerate() {
        let built = rig.build(info).await;
        assert_eq!(built.is_ok(), n >= 3, "bundle {}: {built:?}", n + 1);
    }
    // The server goes on, and can be started again.
    let restarted = ServerSpec {
        env: [("A".to_owned(), "b".to_owned())].into(),
        ..used
    };
    rig.client
        .put_server(restarted.clone())
        .await
        .expect("changed");
    let answer = rig
        .call(
            &restarted,
            "run",
            code("import os; result = os.environ['A']"),
        )
        .await
        .expect("an answer");
    assert_eq!(text(&answer), "b");
    // What was taken away can be uploaded again.
    let again = rig.put(numbered(1)).await.expect("the bundle is taken");
    rig.build(&again).await.expect("its layer is there");
}
