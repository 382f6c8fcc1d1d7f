//! Who may use which session, and whose answer is whose.

use std::sync::Arc;
use std::sync::Barrier;

use weir_tests::config::{Config, SERVER, TENANT};
use weir_tests::upstream::result_message;
use weir_tests::wait::{self, PATIENCE};
use weir_tests::{Canary, Client, Era, Reply, Upstream, Value, Weir, json};

#[test]
fn a_session_belongs_to_who_opened_it_and_where() {
    let upstream = Upstream::mcp(|_| None);
    let mut config = Config::new(&upstream.url());
    config.0["tenants"][TENANT]["servers"]["second"] =
        json!({ "upstream": { "url": upstream.url() } });
    config.0["tenants"]["other"] =
        json!({ "servers": { "theirs": { "upstream": { "url": upstream.url() } } } });
    let (mine, colleague, stranger) = (
        config.key(TENANT, "mine"),
        config.key(TENANT, "colleague"),
        config.key("other", "stranger"),
    );
    let weir = Weir::serve(&config);
    let mut victim = Client::connect_with(&weir, Era::Handshake, &[("X-API-Key", &mine)]);
    upstream.forget();
    let thief = |key: &str, path: &str| {
        let mut thief = Client::new(&weir, Era::Handshake, &[("X-API-Key", key)]);
        thief.session = victim.session.clone();
        thief.path = path.to_owned();
        thief
    };
    let here = format!("/servers/{SERVER}/mcp");
    for (name, mut thief) in [
        ("colleague", thief(&colleague, &here)),
        ("stranger at the victim's server", thief(&stranger, &here)),
        (
            "stranger at his own server",
            thief(&stranger, "/servers/theirs/mcp"),
        ),
        (
            "the owner at another server",
            thief(&mine, "/servers/second/mcp"),
        ),
    ] {
        assert_eq!(
            thief.request("tools/list", json!({})).status(),
            404,
            "{name}: POST"
        );
        assert_eq!(thief.listen(None).head.status, 404, "{name}: GET");
        assert_eq!(thief.listen(Some("1")).head.status, 404, "{name}: resume");
        assert_eq!(thief.delete(), 404, "{name}: DELETE");
    }
    assert!(upstream.requests().is_empty(), "the upstream was touched");
    assert_eq!(
        victim.request("tools/list", json!({})).status(),
        200,
        "the victim's session is gone"
    );
}

#[test]
fn session_ids_are_weirs_own_and_cannot_be_chosen() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut client = Client::connect(&weir, Era::Handshake);
    let good = client.session.clone().expect("a session");
    assert!(
        !good.starts_with("up-"),
        "the upstream's own session id came through"
    );
    assert!(good.len() >= 22, "{good} can be guessed");
    let seen = upstream
        .calls("notifications/initialized")
        .pop()
        .expect("the notification");
    assert!(
        seen.header("mcp-session-id")
            .is_some_and(|s| s.starts_with("up-")),
        "{seen:?}"
    );
    let other = Client::connect(&weir, Era::Handshake).session;
    assert_ne!(other, client.session);
    upstream.forget();
    for (name, session, status) in [
        ("of the upstream", Some("up-0".to_owned()), 404),
        (
            "made up",
            Some("0123456789abcdef0123456789abcdef".to_owned()),
            404,
        ),
        ("cut", Some(good[..good.len() - 1].to_owned()), 404),
        ("longer", Some(format!("{good}a")), 404),
    ] {
        client.session = session;
        let answer = client.request("tools/list", json!({}));
        assert_eq!(answer.status(), status, "{name}: {}", answer.text());
    }
    client.session = Some(good.clone());
    let message = client.message("tools/list", json!({}));
    let mut headers = client.headers_for(&message);
    headers.push(("Mcp-Session-Id".into(), "x".into()));
    let status = client
        .post_bytes(message.to_string().as_bytes(), &headers)
        .expect("an answer")
        .status();
    assert!(matches!(status, 400 | 404), "two session headers: {status}");
    assert!(upstream.requests().is_empty());
    // Without one the request is the upstream's to judge, which wants one here.
    client.session = None;
    assert_eq!(client.request("tools/list", json!({})).status(), 400);
    // A session cannot be asked for in initialize.
    let mut fixed = Client::new(&weir, Era::Handshake, &[]);
    fixed.session = Some("fixed-by-the-attacker-0123456789".into());
    let message = fixed.message(
        "initialize",
        json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "c", "version": "1" } }),
    );
    let answer = fixed.try_post(&message).expect("an answer");
    assert_ne!(
        answer.head.header("mcp-session-id"),
        Some("fixed-by-the-attacker-0123456789")
    );
}

#[test]
fn an_ended_session_is_gone() {
    let upstream =
        Upstream::mcp(|r| (r.method == "DELETE").then(|| Reply::status(200, "text/plain", "")));
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut client = Client::connect(&weir, Era::Handshake);
    assert!((200..300).contains(&client.delete()));
    upstream.wait_for("the DELETE", |r| {
        r.method == "DELETE"
            && r.header("mcp-session-id")
                .is_some_and(|s| s.starts_with("up-"))
    });
    assert_eq!(client.request("tools/list", json!({})).status(), 404);
    assert_eq!(client.delete(), 404);
}

#[test]
fn a_session_that_the_upstream_forgot_is_a_404() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut client = Client::connect(&weir, Era::Handshake);
    upstream.answer(|r| {
        (r.rpc_method() != "initialize").then(|| Reply::status(404, "application/json",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#))
    });
    // The client has to see it, or it never opens a new one.
    assert_eq!(client.request("tools/list", json!({})).status(), 404);
}

#[test]
fn sessions_that_nobody_uses_give_way_and_one_too_many_is_refused() {
    let upstream = Upstream::mcp(|r| match r.method.as_str() {
        "GET" => Some(Reply::wire(|wire| {
            wire.event_head();
            wire.hang();
        })),
        "DELETE" => Some(Reply::status(200, "text/plain", "")),
        _ => None,
    });
    let config =
        Config::new(&upstream.url()).set("limits", json!({ "sessions_per_principal_max": 3 }));
    let weir = Weir::serve(&config);
    // Those that leave without a word keep nobody out, and their server hears of it.
    let clients: Vec<Client> = (0..8)
        .map(|_| Client::connect(&weir, Era::Handshake))
        .collect();
    upstream.wait_for("the end of one that gave way", |r| r.method == "DELETE");
    let is_open = |client: &mut Client| match client.request("tools/list", json!({})).status() {
        200 => true,
        404 => false,
        other => panic!("{other}"),
    };
    let mut open: Vec<Client> = Vec::new();
    for mut client in clients {
        if is_open(&mut client) {
            open.push(client);
        }
    }
    assert_eq!(open.len(), 3);
    // Those that listen stay.
    let _listening: Vec<_> = open.iter().map(|client| client.listen(None)).collect();
    wait::until("all to listen", PATIENCE, || {
        let listening = upstream.requests();
        (listening.iter().filter(|r| r.method == "GET").count() == 3).then_some(())
    });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "c", "version": "1" } });
    let refused = Client::new(&weir, Era::Handshake, &[]).request("initialize", hello);
    assert_eq!(refused.told_status(), 429, "{}", refused.text());
    assert_eq!(refused.head.header("retry-after"), Some("1"));
    assert!(open.iter_mut().all(is_open));
}

/// Many clients with the same ids at once, over a shared upstream: each gets its own answer.
#[test]
fn equal_ids_do_not_collide() {
    const CLIENTS: usize = 16;
    const CALLS: usize = 20;
    let upstream = Upstream::mcp(|_| None);
    let mut config = Config::new(&upstream.url());
    let keys: Vec<String> = (0..CLIENTS)
        .map(|i| config.key(TENANT, &format!("k{i}")))
        .collect();
    let weir = Arc::new(Weir::serve(&config));
    let start = Arc::new(Barrier::new(CLIENTS));
    let threads: Vec<_> = keys
        .into_iter()
        .enumerate()
        .map(|(n, key)| {
            let (weir, start) = (Arc::clone(&weir), Arc::clone(&start));
            std::thread::spawn(move || {
                let era = Era::ALL[n % 2];
                let mut client = Client::connect_with(&weir, era, &[("X-API-Key", &key)]);
                start.wait();
                for i in 0..CALLS {
                    let text = format!("client {n} call {i}");
                    let answer = client.call("echo", json!({ "message": text }));
                    assert_eq!(
                        answer.first_text(),
                        format!("Echo: {text}"),
                        "{}",
                        answer.text()
                    );
                    assert_eq!(answer.response()["id"], answer.id);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no client got a wrong answer");
    }
}

#[test]
fn what_answers_no_question_does_not_come_through() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut faults = Vec::new();
    for era in Era::ALL {
        for events in [false, true] {
            for (name, id, extra) in [
                ("wrong id", json!(4711), json!({})),
                ("id as a string", json!("same"), json!({})),
                ("no id", json!(null), json!({})),
                (
                    "result and error",
                    json!("right"),
                    json!({ "error": { "code": 1, "message": "forged" } }),
                ),
            ] {
                upstream.answer(move |r| {
                    (r.rpc_method() == "tools/call").then(|| {
                        let mut message = result_message(
                            r,
                            json!({ "content": [{ "type": "text", "text": "forged" }] }),
                        );
                        match id.as_str() {
                            Some("right") => {}
                            Some("same") => message["id"] = json!(r.json()["id"].to_string()),
                            _ => message["id"] = id.clone(),
                        }
                        for (k, v) in extra.as_object().into_iter().flatten() {
                            message[k] = v.clone();
                        }
                        if events {
                            Reply::events(&[message])
                        } else {
                            Reply::json(&message)
                        }
                    })
                });
                let mut client = Client::connect(&weir, era);
                let message =
                    client.message("tools/call", json!({ "name": "echo", "arguments": {} }));
                match client.try_post(&message) {
                    Ok(a) if a.text().contains("forged") => {
                        faults.push(format!("{era:?} {name} events={events}: {}", a.text()))
                    }
                    _ => {}
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_second_answer_to_one_question_is_dropped() {
    let upstream = Upstream::mcp(|r| {
        (r.rpc_method() == "tools/call").then(|| {
            let of = |text: &str| {
                result_message(r, json!({ "content": [{ "type": "text", "text": text }] }))
            };
            Reply::events(&[of("first"), of("second")])
        })
    });
    let weir = Weir::serve(&Config::new(&upstream.url()));
    for era in Era::ALL {
        let answer = Client::connect(&weir, era).call("echo", json!({}));
        assert_eq!(answer.first_text(), "first");
        assert!(!answer.text().contains("second"), "{}", answer.text());
    }
}

/// A listen stream has answers only where it goes on with one that broke off, and then that one.
#[test]
fn what_answers_on_a_listen_stream_unasked_is_dropped() {
    let answer = |id: Value, text: &str| json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [{ "type": "text", "text": text }] } });
    let upstream = Upstream::mcp(
        move |r| match (r.method.as_str(), r.rpc_method().as_str()) {
            ("GET", _) => {
                let texts = ["right", "right again", "another", "made up"];
                let ids = [json!(3), json!(3), json!(4), json!("never asked")];
                let mut messages: Vec<Value> = ids
                    .into_iter()
                    .zip(texts)
                    .map(|(id, text)| answer(id, text))
                    .collect();
                let fault = json!({ "code": 1, "message": "made up" });
                messages.push(json!({ "jsonrpc": "2.0", "id": null, "error": fault }));
                messages.push(json!({ "jsonrpc": "2.0", "method": "notifications/message",
                "params": { "level": "info", "data": "the end" } }));
                Some(Reply::events(&messages))
            }
            // A priming event, and the connection breaks off.
            (_, "tools/call") => Some(Reply::wire(|wire| {
                wire.event_head();
                wire.send("id: e1\ndata:\n\n");
            })),
            _ => None,
        },
    );
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut client = Client::connect(&weir, Era::Handshake);
    let mut message = client.message("tools/call", json!({ "name": "echo", "arguments": {} }));
    message["id"] = json!(3);
    let primed = client.open(&message).event(PATIENCE);
    assert!(primed.is_ok_and(|event| event.id.is_some()));
    for (last, expected) in [
        (None, &[][..]),
        // Whose it was is not known, but that a call waits which has that id.
        (Some("e-other"), &["right"]),
        (Some("e1"), &["right"]),
        // Nobody waits any more.
        (Some("e-other"), &[]),
        (Some("e1"), &["right"]),
    ] {
        let mut stream = client.listen(last);
        let mut seen = Vec::new();
        loop {
            let message = stream.message(PATIENCE).expect("the last message comes");
            if message["method"] == "notifications/message" {
                break;
            }
            seen.push(
                message["result"]["content"][0]["text"]
                    .as_str()
                    .unwrap_or("an error")
                    .to_owned(),
            );
        }
        assert_eq!(seen, expected, "{last:?}");
    }
}

#[test]
fn string_and_number_ids_are_different_ids() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    for era in Era::ALL {
        let mut client = Client::connect(&weir, era);
        for id in [
            json!(1),
            json!("1"),
            json!("01"),
            json!("a\"b\\c\u{e9}"),
            json!(9_007_199_254_740_991_i64),
        ] {
            let mut message = client.message(
                "tools/call",
                json!({ "name": "echo", "arguments": { "message": "hi" } }),
            );
            message["id"] = id.clone();
            assert_eq!(client.post(&message).response()["id"], id);
        }
    }
}

#[test]
fn the_stateless_era_has_no_sessions_no_listen_stream_and_no_client_responses() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut client = Client::connect(&weir, Era::Stateless);
    let answer = client.request("tools/list", json!({}));
    assert_eq!(
        answer.head.header("mcp-session-id"),
        None,
        "a session was minted"
    );
    assert_eq!(client.listen(None).head.status, 405);
    assert_eq!(client.delete(), 405);
    upstream.forget();
    let response = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    // Refused, or taken and thrown away: the revision names no answer for it.
    let status = client.try_post(&response).expect("an answer").status();
    assert!(matches!(status, 202 | 400..500), "{status}");
    assert!(
        upstream.requests().is_empty(),
        "a client's response was passed on"
    );
}

#[test]
fn the_id_of_a_blocked_answer_goes_to_nobody() {
    let canary = Canary::github();
    let id = canary.value().to_owned();
    let upstream = Upstream::mcp(move |r| {
        let error = json!({ "code": -32600, "message": "no" });
        let bad = json!({ "jsonrpc": "2.0", "id": id, "error": error });
        match (r.method.as_str(), r.rpc_method().as_str()) {
            ("POST", "tools/call") => Some(Reply::status(400, "application/json", bad.to_string())),
            ("GET", _) => Some(Reply::wire(move |wire| {
                wire.event_head();
                wire.event(&bad);
                wire.event(
                    &json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }),
                );
                wire.hang();
            })),
            _ => None,
        }
    });
    let weir = Weir::serve(&Config::new(&upstream.url()).category("secret", "block"));
    for era in Era::ALL {
        let mut client = Client::connect(&weir, era);
        let answer = client.call("echo", json!({ "message": "hi" }));
        assert_eq!(answer.response()["id"], answer.id, "{}", answer.text());
        let shown = canary.found_in(&answer.bytes());
        assert!(shown.is_none(), "{era:?}: {}", answer.text());
    }
    let client = Client::connect(&weir, Era::Handshake);
    // Nobody asked, so nothing at all is heard of it.
    let heard = client.listen(None).message(PATIENCE).expect("a message");
    assert_eq!(heard["method"], "notifications/tools/list_changed");
    assert!(canary.found_in(heard.to_string().as_bytes()).is_none());
}
