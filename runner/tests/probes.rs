//! Attacks from inside real sandboxes, and what they do to a neighbour.

mod common;

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

use common::bombs::BOMBS;
use common::*;
use runner_api::{Runner as _, *};
use serde_json::{Value, json};

fn code(text: &str) -> Value {
    json!({ "code": text })
}

/// A service on all of the host's addresses that answers whoever gets through.
fn listen() -> (u16, std::net::TcpListener) {
    let tcp = std::net::TcpListener::bind("0.0.0.0:0").expect("a listener");
    let port = tcp.local_addr().expect("an address").port();
    let accepting = tcp.try_clone().expect("cloned");
    std::thread::spawn(move || {
        for stream in accepting.incoming().flatten() {
            let _ = (&stream).write_all(b"HOST-CANARY");
        }
    });
    if let Ok(udp) = std::net::UdpSocket::bind(("0.0.0.0", port)) {
        std::thread::spawn(move || {
            let mut buffer = [0; 64];
            while let Ok((_, from)) = udp.recv_from(&mut buffer) {
                let _ = udp.send_to(b"HOST-CANARY", from);
            }
        });
    }
    (port, tcp)
}

fn host_address() -> String {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a socket");
    // Nothing is sent: connecting a datagram socket only asks for the route.
    let found = socket
        .connect("192.0.2.1:9")
        .and_then(|()| socket.local_addr());
    found.map_or_else(|_| "127.0.0.1".into(), |a| a.ip().to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_reached_from_inside() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let canary = rig.dir.path().join("canary");
    std::fs::write(&canary, "HOST-CANARY").expect("written");
    let rules = ["allowed.example", "*.wild.example"].map(|h| EgressRule {
        host: h.into(),
        ports: vec![443],
    });
    let spec = rig
        .deploy(probe_bundle(), |s| s.egress = rules.to_vec())
        .await;
    let neighbour = ServerSpec {
        id: server_id("neighbour"),
        egress: Vec::new(),
        ..spec.clone()
    };
    rig.client
        .put_server(neighbour.clone())
        .await
        .expect("taken");
    let name = SecretName::parse("CANARY").expect("a name");
    for (server, value) in [(&spec, "mine"), (&neighbour, "theirs")] {
        let value = SecretValue::new(value.as_bytes().to_vec()).expect("a value");
        rig.client
            .set_secret(&server.tenant, &server.id, &name, value)
            .await
            .expect("set");
    }
    let other = rig.lease(&neighbour, None).await.expect("a neighbour");
    let (port, _listener) = listen();
    let gateway = std::fs::read_to_string(rig.dir.path().join("run/resolv.conf")).expect("written");
    let gateway = gateway
        .split_whitespace()
        .nth(1)
        .expect("an address")
        .to_owned();
    let given = json!({
        "canary": canary, "state": rig.state(), "hostname": std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim(),
        "gateway": gateway, "host": host_address(), "neighbour": other.address.ip().to_string(), "port": port,
        "socket": rig.dir.path().join("run/runner.sock"), "secret": "mine",
    });
    let script = format!("T = {given}\n{}", include_str!("common/probes.py"));
    let answer = rig
        .call(&spec, "run", code(&script))
        .await
        .expect("an answer");
    let found: BTreeMap<String, BTreeMap<String, (String, String)>> =
        serde_json::from_str(&text(&answer)).unwrap_or_else(|e| panic!("{e}: {}", text(&answer)));
    let (probes, controls) = (&found["probes"], &found["controls"]);
    eprintln!("{} probes, {} controls", probes.len(), controls.len());
    assert!(probes.len() >= 120);
    let reached: Vec<_> = probes
        .iter()
        .filter(|(_, (outcome, _))| outcome == "reached")
        .collect();
    assert!(reached.is_empty(), "{reached:#?}");
    let broken: Vec<_> = controls
        .iter()
        .filter(|(_, (outcome, _))| outcome != "reached")
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
    rig.client
        .release(&other.id, false)
        .await
        .expect("the neighbour is still there");
    // What was tried on the network is on record.
    let events = rig.events().await;
    let refused = |want: &str| {
        events.iter().any(
            |e| matches!(&e.kind, EventKind::EgressRefused { target, .. } if target.contains(want)),
        )
    };
    for target in ["169.254.169.254", "example.com", "1.1.1.1"] {
        assert!(refused(target), "{target} is not on record: {events:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bombs_hurt_their_own_sandbox_only() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let spec = rig
        .deploy(probe_bundle(), |s| {
            s.limits.processes = 64;
            s.limits.memory_mb = 1024;
        })
        .await;
    let neighbour = ServerSpec {
        id: server_id("neighbour"),
        ..spec.clone()
    };
    rig.client
        .put_server(neighbour.clone())
        .await
        .expect("taken");
    for server in [&spec, &neighbour] {
        rig.call(server, "run", code("result = 1"))
            .await
            .expect("it runs");
    }
    // Those that end their sandbox are tried where its end is looked at.
    for bomb in BOMBS {
        let (name, Some(expected)) = (bomb.name, bomb.expected) else {
            continue;
        };
        let answer = rig
            .call(&spec, "run", code(bomb.code))
            .await
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(
            text(&answer).contains(expected),
            "{name}: {}",
            text(&answer)
        );
        let began = Instant::now();
        rig.call(&neighbour, "run", code("result = 1"))
            .await
            .expect("the neighbour answers");
        assert!(
            began.elapsed() < patient(Duration::from_secs(2)),
            "{name}: the neighbour took {:?}",
            began.elapsed()
        );
        rig.call(&spec, "run", code("result = 1"))
            .await
            .unwrap_or_else(|e| panic!("after {name}: {e}"));
    }
    assert_eq!(rig.sandboxes().await.len(), 2, "nobody died of it");
    let counted = || async { rig.logs(&spec).await.iter().any(|l| l.dropped > 0) };
    until(
        "the flood is cut and counted",
        Duration::from_secs(5),
        counted,
    )
    .await;
    assert!(rig.logs(&spec).await.len() <= 10_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tenants_do_not_see_each_other() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let spec = rig.deploy(probe_bundle(), |_| ()).await;
    let other = domain::TenantId::parse("other").expect("an id");
    let not_found =
        |error: RunnerError| assert_eq!(error.code(), Some(ErrorCode::NotFound), "{error}");
    let request = LeaseRequest {
        tenant: other.clone(),
        server: spec.id.clone(),
        session: None,
        wait_ms: 1000,
    };
    not_found(rig.client.lease(request).await.expect_err("no lease"));
    let query = LogQuery {
        tenant: other.clone(),
        server: spec.id.clone(),
        tail: 10,
        follow: false,
    };
    not_found(
        rig.client
            .logs(query)
            .await
            .map(|_| ())
            .expect_err("no logs"),
    );
    let name = SecretName::parse("K").expect("a name");
    not_found(
        rig.client
            .list_secrets(&other, &spec.id)
            .await
            .expect_err("no secrets"),
    );
    not_found(
        rig.client
            .remove_secret(&other, &spec.id, &name)
            .await
            .expect_err("no secrets"),
    );
    not_found(
        rig.client
            .remove_server(&other, &spec.id)
            .await
            .expect_err("no removal"),
    );
    not_found(
        rig.client
            .restart_server(&other, &spec.id)
            .await
            .expect_err("no restart"),
    );
    assert!(
        rig.client
            .servers(Some(&other))
            .await
            .expect("servers")
            .is_empty()
    );
    // The same bundle id is another tenant's bundle: it has to be uploaded.
    let stolen = ServerSpec {
        tenant: other.clone(),
        ..spec.clone()
    };
    not_found(rig.client.put_server(stolen).await.expect_err("no bundle"));
    let build = BuildRequest {
        tenant: other,
        bundle: spec.bundle.clone(),
        allow_sdist: false,
    };
    not_found(
        rig.client
            .build(build)
            .await
            .map(|_| ())
            .expect_err("no build"),
    );
}
