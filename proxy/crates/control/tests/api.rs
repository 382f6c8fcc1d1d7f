//! The admin API over HTTP, its store on disk, and what it tells runner and gateway. The runner is a fake: it says so.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use bytes::Bytes;
use common::{Plane, TOKEN, eventually, fake_door, id};
use domain::{ServerId, TenantId, UpstreamTransport};
use runner_api::{SecretName, UsageWindow};
use secret_prints::PrintSet;
use serde_json::{Value, json};

#[tokio::test]
async fn a_server_is_made_uploaded_built_and_served() {
    let plane = Plane::start().await;
    let (status, made) = plane
        .json(
            "POST",
            "/api/v1/servers",
            json!({"tenant": "acme", "settings": {"egress": ["api.github.com"]}}),
        )
        .await;
    assert_eq!((status, &made["state"]), (201, &json!("empty")));
    let server = made["id"].as_str().unwrap().to_owned();
    assert!(
        server.len() == 12 && made["url"] == format!("http://weir.example/sandbox/{server}/mcp")
    );
    let at = format!("/api/v1/servers/{server}");
    let (status, body) = plane.send("POST", &format!("{at}/build"), "").await;
    assert_eq!((status, &body["error"]["code"]), (409, &json!("conflict")));

    let (status, bundle) = plane
        .send("PUT", &format!("{at}/bundle"), vec![7u8; 100_000])
        .await;
    assert_eq!((status, &bundle["packed_bytes"]), (200, &json!(100_000)));
    assert!(
        plane.gateway.0.lock().unwrap().is_empty(),
        "nothing is served before it is built"
    );
    let events = plane.build(&server).await;
    let names: Vec<_> = events
        .iter()
        .map(|e| e["event"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["stage", "done", "deployed"]);

    let spec = plane.runner.servers.lock().unwrap()[server.as_str()].clone();
    assert_eq!(
        (spec.command, spec.egress[0].host.as_str()),
        (
            vec!["python".to_owned(), "server.py".to_owned()],
            "api.github.com"
        )
    );
    let served = plane.gateway.0.lock().unwrap()[server.as_str()].clone();
    assert!(
        matches!(served.upstream.transport, UpstreamTransport::Hosted { path, .. } if path == "/mcp")
    );
    let (_, shown) = plane.get(&at).await;
    assert_eq!(
        (&shown["state"], &shown["stale"]),
        (&json!("deployed"), &json!(false))
    );

    assert_eq!(plane.send("DELETE", &at, "").await.0, 204);
    assert!(
        plane.gateway.0.lock().unwrap().is_empty()
            && plane.runner.servers.lock().unwrap().is_empty()
    );
    assert_eq!(plane.get(&at).await.0, 404);
}

#[tokio::test]
async fn what_is_wrong_changes_nothing_and_is_said_in_one_form() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    let (new, policy) = ("/api/v1/servers", "/api/v1/servers/one/policy");
    let good = json!({"bindings": [{"category": "secret", "action": "block"}]});
    assert_eq!(plane.json("PUT", policy, good).await.0, 200);
    let (_, before) = plane.get(policy).await;
    let bad = (400, "bad_request");
    for (method, path, body, wanted) in [
        ("POST", new, json!(["two", "acme", {}]), bad),
        ("PUT", policy, json!([]), bad),
        ("PUT", policy, json!([true]), bad),
        ("PUT", policy, json!({"tools": [[], ["echo"]]}), bad),
        (
            "PATCH",
            "/api/v1/servers/one",
            json!({"limits": [512]}),
            bad,
        ),
        ("PATCH", "/api/v1/tenants/acme", json!(["power"]), bad),
        ("GET", "/api/v1/usage?from=x", Value::Null, bad),
        ("GET", "/api/v1/servers/one/logs?tail=-1", Value::Null, bad),
        (
            "PUT",
            "/api/v1/tenants/acme",
            json!({}),
            (405, "method_not_allowed"),
        ),
        ("GET", "/api/v1/nowhere", Value::Null, (404, "not_found")),
    ] {
        let (status, said) = plane.json(method, path, body.clone()).await;
        let code = said["error"]["code"].as_str();
        assert_eq!(
            (status, code),
            (wanted.0, Some(wanted.1)),
            "{method} {path} {body}: {said}"
        );
        let message = said["error"]["message"].as_str().unwrap_or_default();
        assert!(!message.is_empty(), "{method} {path} {body}: {said}");
    }
    assert_eq!(plane.get(policy).await.1, before);
    assert_eq!(plane.get("/api/v1/servers/two").await.0, 404);
    assert_eq!(plane.get("/api/v1/tenants/acme").await.1["plan"], "starter");
}

#[tokio::test]
async fn nobody_gets_in_without_the_token() {
    let plane = Plane::start().await;
    for path in [
        "/api/v1/servers",
        "/api/v1/openapi.json",
        "/api/v1/runner",
        "/nosuch",
        "/",
    ] {
        for token in [None, Some(""), Some("x"), Some(&TOKEN[1..])] {
            assert_eq!(
                plane.raw("GET", path, Bytes::new(), token).await.0,
                401,
                "{path} {token:?}"
            );
        }
    }
    assert_eq!(plane.get("/nosuch").await.0, 404);
    assert_eq!(
        plane.get("/api/v1/openapi.json").await.1["openapi"],
        "3.1.0"
    );
}

#[tokio::test]
async fn a_refused_bundle_and_a_failed_build_change_nothing() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    let before = plane.runner.servers.lock().unwrap().clone();
    let (status, body) = plane.send("PUT", "/api/v1/servers/one/bundle", "bad").await;
    assert_eq!(
        (status, &body["error"]["details"]),
        (422, &json!(["requirements.txt:3: no -e"]))
    );
    *plane.runner.build_fails.lock().unwrap() = true;
    plane
        .send("PUT", "/api/v1/servers/one/bundle", "another")
        .await;
    let events = plane.build("one").await;
    let last = events.last().unwrap();
    assert_eq!(last["event"], "failed");
    assert!(
        last["error"]["message"]
            .as_str()
            .unwrap()
            .contains("nosuch")
    );
    assert_eq!(*plane.runner.servers.lock().unwrap(), before);
    let (_, shown) = plane.get("/api/v1/servers/one").await;
    assert_eq!(
        (&shown["state"], &shown["stale"]),
        (&json!("deployed"), &json!(true))
    );
}

#[tokio::test]
async fn settings_are_patched_checked_and_told() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    let patch = json!({"env": {"A": "1"}, "isolation": "call", "limits": {"call_timeout_s": 60}});
    let (status, body) = plane.json("PATCH", "/api/v1/servers/one", patch).await;
    assert_eq!(status, 200, "{body}");
    let spec = plane.runner.servers.lock().unwrap()["one"].clone();
    assert_eq!(
        (spec.env["A"].as_str(), spec.limits.call_timeout_s),
        ("1", 60)
    );
    let served = plane.gateway.0.lock().unwrap()["one"].clone();
    assert!(matches!(
        served.upstream.transport,
        UpstreamTransport::Hosted {
            sharing: domain::Sharing::Call,
            ..
        }
    ));
    for (patch, status) in [
        (json!({"limits": {"memory_mb": 1}}), 422),
        (json!({"limits": {"memory_mb": 4096}}), 403),
        (json!({"nosuch": 1}), 400),
        (json!({"egress": ["a:b"]}), 422),
        (json!([1]), 400),
    ] {
        let (found, body) = plane
            .json("PATCH", "/api/v1/servers/one", patch.clone())
            .await;
        assert_eq!(found, status, "{patch} {body}");
    }
    assert_eq!(
        plane.runner.servers.lock().unwrap()["one"]
            .limits
            .call_timeout_s,
        60
    );
}

#[tokio::test]
async fn what_the_gateway_refuses_is_not_stored() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    let good = json!({"bindings": [{"category": "pii", "action": "redact"}]});
    assert_eq!(
        plane
            .json("PUT", "/api/v1/servers/one/policy", good.clone())
            .await
            .0,
        200
    );
    let bad = json!({"bindings": [{"tool": "bad[", "action": "block"}]});
    let (status, body) = plane.json("PUT", "/api/v1/servers/one/policy", bad).await;
    assert_eq!(status, 422, "{body}");
    assert_eq!(
        plane
            .json("PUT", "/api/v1/servers/one/policy", json!({"binding": []}))
            .await
            .0,
        400
    );
    let (_, policy) = plane.get("/api/v1/servers/one/policy").await;
    assert_eq!(policy["bindings"][0]["action"], "redact");
    assert_eq!(
        plane.gateway.0.lock().unwrap()["one"].policy.bindings.len(),
        1
    );

    // Before it is deployed, too: it would be in the way then.
    let new = |id: &str| json!({"id": id, "tenant": "other"});
    plane.json("POST", "/api/v1/servers", new("two")).await;
    let bad = json!({"bindings": [{"tool": "bad[", "action": "block"}]});
    let (status, body) = plane.json("PUT", "/api/v1/servers/two/policy", bad).await;
    assert_eq!(status, 422, "{body}");

    plane
        .gateway
        .1
        .lock()
        .unwrap()
        .push(domain::ServerId::parse("clash").unwrap());
    let (status, body) = plane.json("POST", "/api/v1/servers", new("clash")).await;
    assert_eq!(status, 422, "{body}");
    assert!(body["error"]["message"].as_str().unwrap().contains("clash"));
    assert_eq!(plane.get("/api/v1/servers/clash").await.0, 404);
}

#[tokio::test]
async fn one_secret_too_many_is_refused_before_it_is_stored() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    let at = "/api/v1/servers/one/secrets";
    for n in 0..domain::SECRETS_PER_SERVER_MAX {
        let path = format!("{at}/S{n}");
        assert_eq!(plane.send("PUT", &path, "a value").await.0, 204, "{n}");
    }
    let (status, refused) = plane.send("PUT", &format!("{at}/MORE"), "a value").await;
    assert_eq!(status, 409, "{refused}");
    assert!(refused.to_string().contains("at most 100"), "{refused}");
    let stored = plane.runner.secrets.lock().unwrap().len();
    assert_eq!(stored, domain::SECRETS_PER_SERVER_MAX);
    // It can still be changed, in every way.
    let settings = json!({"egress": ["new.example.com"]});
    let patched = plane.json("PATCH", "/api/v1/servers/one", settings).await;
    assert_eq!(patched.0, 200);
    for (method, path, status) in [
        ("PUT", "S0", 204),
        ("DELETE", "S1", 204),
        ("PUT", "MORE", 204),
    ] {
        let answer = plane.send(method, &format!("{at}/{path}"), "other").await;
        assert_eq!(answer.0, status, "{method} {path}");
    }
}

#[tokio::test]
async fn secrets_only_go_in() {
    let plane = Plane::start().await;
    plane
        .json(
            "POST",
            "/api/v1/servers",
            json!({"id": "two", "tenant": "acme"}),
        )
        .await;
    let at = "/api/v1/servers/two/secrets";
    assert_eq!(plane.get(at).await.1, json!([]));
    assert_eq!(
        plane.send("PUT", &format!("{at}/A"), "x").await.0,
        409,
        "nothing is deployed yet"
    );
    plane.deployed("one").await;
    let canary = "canary-77c1";
    let at = "/api/v1/servers/one/secrets";
    assert_eq!(
        plane.send("PUT", &format!("{at}/API_KEY"), canary).await.0,
        204
    );
    let name = SecretName::parse("API_KEY").unwrap();
    assert_eq!(
        plane.runner.secrets.lock().unwrap()[&(id("one"), name.clone())],
        canary.as_bytes()
    );
    assert!(
        plane.runner.servers.lock().unwrap()["one"]
            .secrets
            .contains(&name),
        "the runner is told to mount it"
    );
    assert_eq!(*plane.runner.restarts.lock().unwrap(), 1);
    assert_eq!(plane.get(at).await.1, json!(["API_KEY"]));
    assert_eq!(
        plane.get(&format!("{at}/API_KEY")).await.0,
        405,
        "there is no way to read one"
    );
    for (bad, value) in [("a-b", "x"), ("..", "x"), ("API_KEY", "")] {
        assert!(
            plane.send("PUT", &format!("{at}/{bad}"), value).await.0 >= 400,
            "{bad}"
        );
    }
    assert_eq!(
        plane
            .send("PUT", &format!("{at}/BIG"), vec![b'x'; 65_537])
            .await
            .0,
        400
    );
    assert_eq!(
        plane.send("DELETE", &format!("{at}/API_KEY"), "").await.0,
        204
    );
    assert_eq!(
        plane.send("DELETE", &format!("{at}/API_KEY"), "").await.0,
        404
    );
    let folders = [plane.dir.path().to_owned(), plane.dir.path().join("audit")];
    let entries = folders.iter().flat_map(|f| std::fs::read_dir(f).unwrap());
    let files = entries.map(|e| e.unwrap().path()).filter(|p| p.is_file());
    for file in files {
        let bytes = std::fs::read(file).unwrap();
        assert!(!bytes.windows(canary.len()).any(|w| w == canary.as_bytes()));
    }
}

#[tokio::test]
async fn ids_plans_and_tenants_are_kept_to() {
    let plane = Plane::start().await;
    let make = async |id: &str, tenant: &str| {
        plane
            .json(
                "POST",
                "/api/v1/servers",
                json!({"id": id, "tenant": tenant}),
            )
            .await
            .0
    };
    assert_eq!(make("one", "nosuch").await, 400);
    assert_eq!(make("../x", "acme").await, 400);
    assert_eq!(
        [
            make("one", "acme").await,
            make("one", "acme").await,
            make("one", "other").await
        ],
        [201, 409, 409]
    );
    assert_eq!(
        [make("two", "acme").await, make("three", "acme").await],
        [201, 403],
        "two servers on the smallest plan"
    );
    assert_eq!(
        plane
            .json("PATCH", "/api/v1/tenants/acme", json!({"plan": "gold"}))
            .await
            .0,
        400
    );
    assert_eq!(
        plane
            .json("PATCH", "/api/v1/tenants/nosuch", json!({"plan": "power"}))
            .await
            .0,
        404
    );
    assert_eq!(
        plane
            .json("PATCH", "/api/v1/tenants/acme", json!({"plan": "power"}))
            .await
            .0,
        200
    );
    assert_eq!(make("three", "acme").await, 201);
    for path in [
        "/api/v1/servers/NOSUCH",
        "/api/v1/servers/%2e%2e",
        "/api/v1/servers/nosuch/logs",
        "/api/v1/servers/nosuch/secrets",
    ] {
        assert_eq!(plane.get(path).await.0, 404, "{path}");
    }
    // Bytes that are no text are refused in the form of all errors.
    let (status, said) = plane.get("/api/v1/servers/%ff").await;
    assert_eq!(status, 400);
    assert_eq!(said["error"]["code"], "bad_request", "{said}");
}

#[tokio::test]
async fn everything_is_there_again_after_a_restart() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    plane
        .json("PATCH", "/api/v1/servers/one", json!({"env": {"A": "1"}}))
        .await;
    plane.runner.servers.lock().unwrap().clear();
    let plane = plane.again().await;
    assert!(
        plane.gateway.0.lock().unwrap().contains_key("one"),
        "it is served before anybody asks"
    );
    assert_eq!(
        plane.get("/api/v1/servers/one").await.1["settings"]["env"],
        json!({"A": "1"})
    );
    eventually("a runner that lost everything is told again", async || {
        plane.runner.servers.lock().unwrap().contains_key("one")
    })
    .await;
}

#[tokio::test]
async fn what_is_changed_while_the_runner_is_told_of_all_stays_changed() {
    let plane = Plane::start().await;
    let plan = json!({"plan": "power"});
    let (status, body) = plane.json("PATCH", "/api/v1/tenants/acme", plan).await;
    assert_eq!(status, 200, "{body}");
    for id in ["a", "b", "c"] {
        plane.deployed(id).await;
    }
    let [a, b, c] = ["a", "b", "c"].map(|id| ServerId::parse(id).unwrap());
    *plane.runner.slow.lock().unwrap() = Some(a.clone());
    let before = plane.runner.puts.lock().unwrap().len();
    let plane = plane.again().await;
    let puts = || plane.runner.puts.lock().unwrap()[before..].to_vec();
    eventually("it begins with the first", async || puts().contains(&a)).await;
    let patch = json!({"egress": ["only.example.com"]});
    let (status, body) = plane.json("PATCH", "/api/v1/servers/b", patch).await;
    assert_eq!(status, 200, "{body}");
    let (status, body) = plane.send("DELETE", "/api/v1/servers/c", "").await;
    assert_eq!(status, 204, "{body}");
    let twice = || puts().iter().filter(|id| **id == b).count() == 2;
    eventually("it is told by both", async || twice()).await;
    // Long enough for one more to be told of what it has just been told to remove.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let servers = plane.runner.servers.lock().unwrap();
    assert_eq!(servers[&b].egress[0].host, "only.example.com");
    assert!(!servers.contains_key(&c), "it came back");
}

#[tokio::test]
async fn a_runner_that_is_down_is_a_clear_error() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    *plane.runner.down.lock().unwrap() = true;
    for (method, path) in [
        ("POST", "restart"),
        ("GET", "logs"),
        ("GET", "secrets"),
        ("POST", "build"),
        ("DELETE", ""),
    ] {
        let path = format!("/api/v1/servers/one/{path}");
        let (status, body) = plane.send(method, path.trim_end_matches('/'), "").await;
        assert_eq!(
            (status, &body["error"]["code"]),
            (503, &json!("runner_unavailable")),
            "{method} {path}"
        );
    }
    let (status, shown) = plane.get("/api/v1/servers/one").await;
    assert_eq!((status, &shown["live"]), (200, &Value::Null));
}

fn window(seq: u64, cpu_us: u64) -> UsageWindow {
    UsageWindow {
        seq,
        tenant: TenantId::parse("acme").unwrap(),
        server: id("one"),
        hour_unix_s: 4_102_444_800,
        cpu_us,
        memory_byte_s: 1 << 40,
        storage_byte_s: 0,
        egress_bytes: 5,
        requests: 1,
    }
}

#[tokio::test]
async fn usage_is_taken_in_once_however_often_it_comes() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    plane
        .runner
        .windows
        .lock()
        .unwrap()
        .extend([window(1, 1_000_000), window(2, 500_000)]);
    // Each start asks at once. The runner never forgets in this test: it gives everything again.
    let mut plane = plane.again().await;
    for _ in 0..3 {
        eventually("usage", async || {
            *plane.runner.acknowledged.lock().unwrap() == 2
        })
        .await;
        let (_, rows) = plane.get("/api/v1/usage?tenant=acme").await;
        assert_eq!(
            (
                &rows[0]["cpu_s"],
                &rows[0]["memory_gb_s"],
                &rows[0]["requests"]
            ),
            (&json!(1.5), &json!(2048.0), &json!(2)),
            "{rows}"
        );
        assert_eq!(rows.as_array().unwrap().len(), 1);
        plane = plane.again().await;
    }
    assert_eq!(plane.get("/api/v1/usage?tenant=other").await.1, json!([]));
}

#[tokio::test]
async fn a_spent_month_stops_calls() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    plane
        .runner
        .windows
        .lock()
        .unwrap()
        .push(window(1, 10 * 3_600_000_000));
    let plane = plane.again().await;
    let bound = |plane: &Plane| {
        plane.gateway.0.lock().unwrap()["one"]
            .limits
            .concurrent_calls_max
    };
    eventually("the stop", async || bound(&plane) == Some(0)).await;
    plane
        .json("PATCH", "/api/v1/tenants/acme", json!({"plan": "power"}))
        .await;
    assert_eq!(bound(&plane), None);
}

/// Whether the gateway was told to look for this value in a server's messages.
fn is_looked_for(plane: &Plane, server: &str, value: &str) -> bool {
    let published = plane.gateway.0.lock().unwrap();
    let prints = published[server].detection.prints.as_ref();
    let found = prints.map(|p| PrintSet::new(p).at(value.as_bytes(), 0, |_| true));
    found.is_some_and(|at| at.len == Some(value.len()))
}

#[tokio::test]
async fn the_gateway_looks_for_old_and_new_values_and_never_has_them() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    plane.deployed("two").await;
    let at = "/api/v1/servers/one/secrets/API_KEY";
    for value in ["value-of-monday", "value-of-tuesday"] {
        assert!(!is_looked_for(&plane, "one", value));
        assert_eq!(plane.send("PUT", at, value).await.0, 204);
        assert!(is_looked_for(&plane, "one", value));
    }
    assert!(
        is_looked_for(&plane, "one", "value-of-monday"),
        "sandboxes may still have it"
    );
    assert!(!is_looked_for(&plane, "two", "value-of-tuesday"));
    // Before the runner has it, so also when the runner does not take it.
    *plane.runner.down.lock().unwrap() = true;
    assert_eq!(plane.send("PUT", at, "value-of-wednesday").await.0, 503);
    assert!(is_looked_for(&plane, "one", "value-of-wednesday"));
    let told = format!("{:?}", plane.gateway.0.lock().unwrap());
    assert!(!told.contains("value-of"), "{told}");
    // Too short to be looked for is no mistake.
    *plane.runner.down.lock().unwrap() = false;
    assert_eq!(plane.send("PUT", at, "short").await.0, 204);
    assert!(!is_looked_for(&plane, "one", "short"));
}

#[tokio::test]
async fn a_server_is_closed_while_nobody_knows_what_its_secrets_look_like() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    let at = "/api/v1/servers/one/secrets/API_KEY";
    assert_eq!(plane.send("PUT", at, "value-of-monday").await.0, 204);
    *plane.runner.down.lock().unwrap() = true;
    let plane = plane.again().await;
    let calls_max = |plane: &Plane| {
        plane.gateway.0.lock().unwrap()["one"]
            .limits
            .concurrent_calls_max
    };
    assert_eq!(calls_max(&plane), Some(0));
    *plane.runner.down.lock().unwrap() = false;
    eventually("it opens", async || calls_max(&plane).is_none()).await;
    assert!(is_looked_for(&plane, "one", "value-of-monday"));
}

#[tokio::test]
async fn logs_come_as_lines() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    let (status, text) = plane.get("/api/v1/servers/one/logs?tail=5").await;
    let lines: Vec<Value> = text
        .as_str()
        .unwrap()
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(
        (status, lines.len(), &lines[1]["text"]),
        (200, 2, &json!("Traceback: boom"))
    );
}

#[tokio::test]
async fn an_execution_goes_through_the_gateways_door() {
    let (door, seen) = fake_door(json!({"content": [{"type": "text", "text": "hi"}]})).await;
    let plane = Plane::with_gateway(door).await;
    plane.deployed("one").await;
    let (status, reply) = plane
        .json(
            "POST",
            "/api/v1/servers/one/exec",
            json!({"tool": "greet", "arguments": {"who": "you"}}),
        )
        .await;
    assert_eq!(
        (status, &reply["result"]["content"][0]["text"]),
        (200, &json!("hi")),
        "{reply}"
    );
    assert!(reply["duration_ms"].is_u64());
    let logs: Vec<_> = reply["logs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l["text"].clone())
        .collect();
    assert_eq!(
        logs,
        ["Traceback: boom"],
        "only what came since the call began"
    );
    let all = || seen.lock().unwrap().clone();
    eventually("its session ends", async || all().len() == 4).await;
    let seen = all();
    let heads: Vec<_> = seen
        .iter()
        .map(|r| r.lines().next().unwrap().to_owned())
        .collect();
    assert_eq!(heads.len(), 4, "{heads:?}");
    assert!(
        heads[..3]
            .iter()
            .all(|h| h == "POST /sandbox/one/mcp HTTP/1.1")
            && heads[3].starts_with("DELETE ")
    );
    assert!(
        seen.iter().all(|r| r.contains("authorization: Bearer "))
            && seen[2].contains("mcp-session-id: s1")
    );
    for bad in [
        json!({"tool": ""}),
        json!({"tool": "a b"}),
        json!({"tool": "a", "timeout_s": 0}),
        json!({"tool": "a", "timeout_s": 901}),
        json!({}),
    ] {
        assert_eq!(
            plane
                .json("POST", "/api/v1/servers/one/exec", bad.clone())
                .await
                .0,
            400,
            "{bad}"
        );
    }
}

#[tokio::test]
async fn an_execution_ends_in_time() {
    let (door, _) = fake_door(json!("never")).await;
    let plane = Plane::with_gateway(door).await;
    plane.deployed("one").await;
    let (status, body) = plane
        .json(
            "POST",
            "/api/v1/servers/one/exec",
            json!({"tool": "slow", "timeout_s": 1}),
        )
        .await;
    assert_eq!(
        (status, body["error"]["message"].as_str()),
        (
            502,
            Some("the execution failed: no result within 1 s; the call was cancelled")
        )
    );
}

#[tokio::test]
async fn followed_logs_are_bounded_in_number() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    let mut open = Vec::new();
    for _ in 0..64 {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut stream = tokio::net::TcpStream::connect(plane.address).await.unwrap();
        let head = format!(
            "GET /api/v1/servers/one/logs?follow=true HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\n\r\n",
            plane.address
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        assert!(stream.read(&mut [0; 64]).await.unwrap() > 0);
        open.push(stream);
    }
    assert_eq!(plane.get("/api/v1/servers/one/logs").await.0, 409);
    drop(open);
    eventually("a place", async || {
        plane.get("/api/v1/servers/one/logs").await.0 == 200
    })
    .await;
}
