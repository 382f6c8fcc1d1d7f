//! What the runner tells, and what it is given again meanwhile. The runner is a fake: it says so.

#![allow(clippy::unwrap_used)]

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;

use audit_log::{Action, Query};
use common::{Plane, eventually, id};
use domain::TenantId;
use runner_api::{Event, EventKind, SandboxId};
use serde_json::{Value, json};

/// Server `one` has another sandbox.
fn ready(seq: u64) -> Event {
    Event {
        seq,
        at_unix_ms: 7,
        tenant: TenantId::parse("acme").unwrap(),
        server: id("one"),
        sandbox: None,
        kind: EventKind::Ready {
            from: "cold".into(),
            took_ms: 1,
        },
    }
}

#[tokio::test]
async fn events_are_stored_and_shown_from_a_number_on() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    let event = |seq| Event {
        seq,
        at_unix_ms: 7,
        tenant: TenantId::parse("acme").unwrap(),
        server: id("one"),
        sandbox: SandboxId::parse("sandbox00001").ok(),
        kind: EventKind::EgressRefused {
            target: "evil.example".into(),
            port: Some(443),
            reason: "not allowed".into(),
        },
    };
    plane
        .runner
        .events
        .lock()
        .unwrap()
        .extend((1..=3).map(event));
    let plane = plane.again().await;
    let events = async |after: u32| {
        plane
            .get(&format!("/api/v1/servers/one/events?after={after}"))
            .await
            .1
    };
    eventually("events", async || {
        events(0).await.as_array().is_some_and(|e| e.len() == 3)
    })
    .await;
    assert_eq!(events(2).await[0]["target"], "evil.example");
    // And they are in the audit log, each once.
    let query = Query {
        method: Some("egress/refused".into()),
        ..Query::default()
    };
    let mut found = Vec::new();
    audit_log::search(&plane.dir.path().join("audit"), &query, |record| {
        assert_eq!(
            (&*record.server, record.tool.as_deref()),
            ("one", Some("evil.example:443"))
        );
        assert_eq!(
            (record.action, record.sandbox.as_deref()),
            (Action::Refused, Some("sandbox00001"))
        );
        found.push(record.rpc_id.clone().unwrap().to_string());
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(found, ["1", "2", "3"]);
}

#[tokio::test]
async fn events_that_were_lost_are_said_and_none_waits_for_the_servers() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    let told = async |plane: Plane, seqs: [u64; 2]| {
        let all = &plane.runner.events;
        all.lock().unwrap().extend(seqs.map(ready));
        // The runner is back, and busy with the servers that it is given again.
        *plane.runner.held.lock().unwrap() = true;
        let plane = plane.again().await;
        eventually("events", async || {
            let (_, events) = plane.get("/api/v1/servers/one/events?after=0").await;
            let seen = |e: &Value| e["seq"] == seqs[1];
            events.as_array().is_some_and(|all| all.iter().any(seen))
        })
        .await;
        plane
    };
    let plane = told(plane, [4, 5]).await;
    let plane = told(plane, [6, 10]).await;
    let plane = told(plane, [13, 14]).await;
    let query = Query {
        method: Some("sandbox/events_dropped".into()),
        ..Query::default()
    };
    let mut found = Vec::new();
    audit_log::search(&plane.dir.path().join("audit"), &query, |record| {
        let reason = record.reason.as_deref().unwrap_or_default();
        assert_eq!(record.action, Action::Error);
        found.push(reason.to_owned());
        ControlFlow::Continue(())
    })
    .unwrap();
    let said = |lost: u64| format!("up to {lost} events of the runner were lost");
    assert_eq!(found, [said(3), said(2)]);
}

#[tokio::test]
async fn following_is_tried_again_while_servers_are_given() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    let runner = Arc::clone(&plane.runner);
    runner.events.lock().unwrap().push(ready(1));
    *runner.held.lock().unwrap() = true;
    *runner.mum.lock().unwrap() = true;
    let before = *runner.followed.lock().unwrap();
    let plane = plane.again().await;
    let tried = async || *runner.followed.lock().unwrap() > before;
    eventually("following", tried).await;
    *runner.mum.lock().unwrap() = false;
    eventually("the event", async || {
        let (_, events) = plane.get("/api/v1/servers/one/events?after=0").await;
        events.as_array().is_some_and(|all| all.len() == 1)
    })
    .await;
    // And not all the time.
    assert!(*runner.followed.lock().unwrap() <= before + 3);
}

#[tokio::test]
async fn a_runner_that_cannot_be_followed_is_given_every_server_all_the_same() {
    let plane = Plane::start().await;
    let plan = json!({"plan": "power"});
    plane.json("PATCH", "/api/v1/tenants/acme", plan).await;
    let ids = ["one", "two", "three"];
    for id in ids {
        plane.deployed(id).await;
    }
    let runner = Arc::clone(&plane.runner);
    runner.servers.lock().unwrap().clear();
    *runner.mute.lock().unwrap() = Some(id("three"));
    *runner.mum.lock().unwrap() = true;
    // That has failed long before this one is put.
    *runner.slow.lock().unwrap() = Some(id("one"));
    let plane = plane.again().await;
    let closed = |id: &str| {
        let served = plane.gateway.0.lock().unwrap();
        served[id].limits.concurrent_calls_max.is_some()
    };
    assert!(closed("three"), "nobody has told of its secrets");
    *runner.mute.lock().unwrap() = None;
    let given = async || runner.servers.lock().unwrap().len() == ids.len();
    eventually("all servers", given).await;
    eventually("the opening", async || !closed("three")).await;
}

#[tokio::test]
async fn events_are_taken_in_once_while_servers_are_refused() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    let runner = Arc::clone(&plane.runner);
    *runner.refuses.lock().unwrap() = true;
    runner.events.lock().unwrap().extend((1..=250).map(ready));
    let plane = plane.again().await;
    eventually("all events", async || {
        let (_, events) = plane.get("/api/v1/servers/one/events?after=249").await;
        events.as_array().is_some_and(|all| all.len() == 1)
    })
    .await;
    let before = *runner.followed.lock().unwrap();
    let followed = async || *runner.followed.lock().unwrap() > before;
    eventually("following, once more", followed).await;
    let query = Query {
        method: Some("sandbox/ready".into()),
        ..Query::default()
    };
    let mut found: Vec<u64> = Vec::new();
    audit_log::search(&plane.dir.path().join("audit"), &query, |record| {
        found.push(record.rpc_id.as_deref().unwrap().parse().unwrap());
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(found, Vec::from_iter(1..=250));
}
