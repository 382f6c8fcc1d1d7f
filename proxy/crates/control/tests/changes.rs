//! Changes that meet each other, an asker who leaves, or a runner that fails at one server.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Plane, eventually, fake_door, id};
use domain::{ServerId, TenantId};
use runner_api::{Event, EventKind};
use serde_json::json;

/// Waits until the runner has begun to take a server again.
async fn put_again(plane: &Plane, server: &ServerId, before: usize) {
    let begun = async || plane.runner.puts.lock().unwrap()[before..].contains(server);
    eventually("the runner is told", begun).await;
}

#[tokio::test]
async fn a_secret_takes_no_change_of_settings_back() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    let at = "/api/v1/servers/one";
    let open = json!({"egress": ["old.example.com"]});
    assert_eq!(plane.json("PATCH", at, open).await.0, 200);
    *plane.runner.slow.lock().unwrap() = Some(id("one"));
    for (method, status) in [("PUT", 204), ("DELETE", 204)] {
        let before = plane.runner.puts.lock().unwrap().len();
        let host = format!("{}.example.com", method.to_lowercase());
        let patch = plane.json("PATCH", at, json!({"egress": [host]}));
        let secret = async {
            put_again(&plane, &id("one"), before).await;
            let path = format!("{at}/secrets/API_KEY");
            plane.send(method, &path, "a-value-of-its-own").await.0
        };
        let (patched, set) = tokio::join!(patch, secret);
        assert_eq!((patched.0, set), (200, status), "{method}");
        let told = plane.runner.servers.lock().unwrap()[&id("one")].clone();
        assert_eq!(told.egress[0].host, host, "{method}");
    }
}

#[tokio::test]
async fn a_change_is_carried_through_although_its_asker_left() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    *plane.runner.slow.lock().unwrap() = Some(id("one"));
    let before = plane.runner.puts.lock().unwrap().len();
    let at = "/api/v1/servers/one";
    let one = id("one");
    let patch = plane.json("PATCH", at, json!({"egress": ["new.example.com"]}));
    tokio::select! {
        answer = patch => panic!("it was answered: {answer:?}"),
        () = put_again(&plane, &one, before) => {}
    }
    eventually("it is stored", async || {
        let (_, shown) = plane.get(at).await;
        shown["settings"]["egress"] == json!(["new.example.com"])
    })
    .await;
    let told = plane.runner.servers.lock().unwrap()[&id("one")].clone();
    assert_eq!(told.egress[0].host, "new.example.com");
}

#[tokio::test]
async fn one_servers_unreadable_secret_is_not_the_others_trouble() {
    let plane = Plane::start().await;
    let plan = json!({"plan": "power"});
    assert_eq!(
        plane.json("PATCH", "/api/v1/tenants/acme", plan).await.0,
        200
    );
    for id in ["bad", "good"] {
        plane.deployed(id).await;
        let at = format!("/api/v1/servers/{id}/secrets/API_KEY");
        assert_eq!(plane.send("PUT", &at, "value-of-monday").await.0, 204);
    }
    *plane.runner.mute.lock().unwrap() = Some(id("bad"));
    plane.runner.events.lock().unwrap().push(Event {
        seq: 1,
        at_unix_ms: 7,
        tenant: TenantId::parse("acme").unwrap(),
        server: id("good"),
        sandbox: None,
        kind: EventKind::Frozen,
    });
    *plane.runner.down.lock().unwrap() = true;
    let plane = plane.again().await;
    let is_open = |server: &str| {
        let served = plane.gateway.0.lock().unwrap();
        served[server].limits.concurrent_calls_max.is_none()
    };
    assert!(!is_open("good") && !is_open("bad"));
    *plane.runner.down.lock().unwrap() = false;
    eventually("the good one opens", async || is_open("good")).await;
    eventually("events come", async || {
        let (_, events) = plane.get("/api/v1/servers/good/events").await;
        events.as_array().is_some_and(|all| all.len() == 1)
    })
    .await;
    assert!(!is_open("bad"), "nobody knows what its secret looks like");
}

#[tokio::test]
async fn events_of_an_earlier_owner_are_not_shown() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    let event = |seq, tenant: &str| Event {
        seq,
        at_unix_ms: 7,
        tenant: TenantId::parse(tenant).unwrap(),
        server: id("one"),
        sandbox: None,
        kind: EventKind::Frozen,
    };
    let told = [event(1, "other"), event(2, "acme")];
    plane.runner.events.lock().unwrap().extend(told);
    let plane = plane.again().await;
    let shown = async || plane.get("/api/v1/servers/one/events").await.1;
    eventually("events come", async || {
        shown().await.as_array().is_some_and(|all| !all.is_empty())
    })
    .await;
    let shown = shown().await;
    assert_eq!(shown.as_array().unwrap().len(), 1, "{shown}");
    assert_eq!(shown[0]["tenant"], "acme");
}

#[tokio::test]
async fn an_execution_that_took_too_long_is_cancelled_and_leaves_its_session() {
    let (door, seen) = fake_door(json!("never")).await;
    let plane = Plane::with_gateway(door).await;
    plane.deployed("one").await;
    let wanted = json!({"tool": "slow", "timeout_s": 1});
    let (status, body) = plane.json("POST", "/api/v1/servers/one/exec", wanted).await;
    assert_eq!(status, 502, "{body}");
    // When it is said, it is done.
    let parts = [
        "mcp-session-id: s1",
        "notifications/cancelled",
        "\"requestId\":2",
    ];
    let all: Vec<String> = seen.lock().unwrap().clone();
    assert!(
        all.iter()
            .any(|word| parts.iter().all(|part| word.contains(part))),
        "{all:?}"
    );
    eventually("it leaves", async || {
        let seen = seen.lock().unwrap();
        let left = |r: &String| r.starts_with("DELETE ") && r.contains("mcp-session-id: s1");
        seen.iter().any(left)
    })
    .await;
}
