//! Servers that the gateway takes no more: of its tenant's trouble, nobody else's. The runner is a fake: it says so.

#![allow(clippy::unwrap_used)]

mod common;

use common::{FakeGateway, Plane, eventually, id};
use serde_json::json;

#[tokio::test]
async fn a_server_that_the_gateway_takes_no_more_is_not_the_others_trouble() {
    let plane = Plane::start().await;
    for id in ["one", "two"] {
        plane.deployed(id).await;
    }
    // The configuration has a server of that name by now.
    plane
        .gateway
        .1
        .lock()
        .unwrap()
        .push(domain::ServerId::parse("two").unwrap());
    let plane = plane.again().await;
    let served = |plane: &Plane| {
        let servers = plane.gateway.0.lock().unwrap();
        servers.keys().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(served(&plane), ["one"]);
    let (_, shown) = plane.get("/api/v1/servers/two").await;
    let reason = shown["refused"].as_str().unwrap();
    assert!(reason.contains("stands in the configuration"), "{shown}");
    let (_, all) = plane.get("/api/v1/servers").await;
    assert!(all[0]["refused"].is_null() && all[1]["refused"].is_string());
    // Others can be changed; it cannot, until the name is free again.
    let good = json!({"bindings": [{"category": "pii", "action": "redact"}]});
    let change = async |plane: &Plane, id: &str| {
        let at = format!("/api/v1/servers/{id}/policy");
        plane.json("PUT", &at, good.clone()).await.0
    };
    assert_eq!(change(&plane, "one").await, 200);
    assert_eq!(change(&plane, "two").await, 422);
    assert_eq!(served(&plane), ["one"]);
    plane.gateway.1.lock().unwrap().clear();
    assert_eq!(change(&plane, "two").await, 200);
    assert_eq!(served(&plane), ["one", "two"]);
    let (_, shown) = plane.get("/api/v1/servers/two").await;
    assert!(shown["refused"].is_null(), "{shown}");
}

#[tokio::test]
async fn a_refused_server_is_tried_again_when_the_runner_is_back() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    plane.gateway.1.lock().unwrap().push(id("one"));
    *plane.runner.down.lock().unwrap() = true;
    let plane = plane.again().await;
    let gateway = std::sync::Arc::clone(&plane.gateway);
    assert!(gateway.0.lock().unwrap().is_empty());
    gateway.1.lock().unwrap().clear();
    *plane.runner.down.lock().unwrap() = false;
    eventually("it is served", async || {
        gateway.0.lock().unwrap().contains_key("one")
    })
    .await;
}

#[tokio::test]
async fn what_ails_the_file_marks_no_hosted_server() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    let gateway = FakeGateway::default();
    *gateway.2.lock().unwrap() = Some("a plugin of another tenant cannot be read");
    let refused = plane.again_with(gateway).await.err().unwrap();
    assert!(refused.to_string().contains("cannot be read"), "{refused}");
}

/// Says something to the database behind the control plane's back.
async fn in_database(plane: &Plane, text: &'static str) {
    let path = plane.dir.path().join("control.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    sqlx::raw_sql(text).execute(&pool).await.unwrap();
    pool.close().await;
}

#[tokio::test]
async fn a_refused_server_whose_change_cannot_be_stored_is_not_the_others_trouble() {
    let plane = Plane::start().await;
    for id in ["one", "two"] {
        plane.deployed(id).await;
    }
    // A rule that it names is no longer there.
    let bad = r#"UPDATE servers SET policy = '{"bindings":[{"tool":"bad[","action":"block"}]}' WHERE id = 'two'"#;
    in_database(&plane, bad).await;
    let plane = plane.again().await;
    let good = json!({"bindings": [{"category": "pii", "action": "redact"}]});
    let change = async |id: &str| {
        let at = format!("/api/v1/servers/{id}/policy");
        plane.json("PUT", &at, good.clone()).await
    };
    let full = "CREATE TRIGGER full BEFORE UPDATE ON servers WHEN NEW.id = 'two' BEGIN SELECT RAISE(ABORT, 'full'); END";
    in_database(&plane, full).await;
    let (status, body) = change("two").await;
    assert_eq!(
        (status, body["error"]["code"].as_str()),
        (500, Some("store"))
    );
    let served = || -> Vec<_> {
        let servers = plane.gateway.0.lock().unwrap();
        servers.keys().map(ToString::to_string).collect()
    };
    assert_eq!(served(), ["one"]);
    assert_eq!(change("one").await.0, 200);
    in_database(&plane, "DROP TRIGGER full").await;
    assert_eq!(change("two").await.0, 200);
    assert_eq!(served(), ["one", "two"]);
}
