//! What is strictly one message, and what two parsers could read differently.

use std::time::Duration;

use weir_tests::config::Config;
use weir_tests::upstream::result_message;
use weir_tests::{Canary, Client, Era, Reply, Upstream, Value, Weir, json};

use crate::{is_refusal, post_text};

/// The text of a call; `%` stands where a case puts its trick.
fn call_text(era: Era, id: &str, params: &str) -> String {
    let meta = match era {
        Era::Handshake => String::new(),
        Era::Stateless => ",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
            \"io.modelcontextprotocol/clientCapabilities\":{},\"io.modelcontextprotocol/clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}"
            .to_owned(),
    };
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{{params}{meta}}}}}"
    )
}

const GOOD: &str = "\"name\":\"echo\",\"arguments\":{\"message\":\"hi\"}";

fn refused_texts(era: Era) -> Vec<(&'static str, String)> {
    let good = call_text(era, "1", GOOD);
    let nested = |n: usize| {
        call_text(
            era,
            "1",
            &format!(
                "\"name\":\"echo\",\"arguments\":{{\"a\":{}{}}}",
                "[".repeat(n),
                "]".repeat(n)
            ),
        )
    };
    let argument = |json: &str| {
        call_text(
            era,
            "1",
            &format!("\"name\":\"echo\",\"arguments\":{{\"message\":{json}}}"),
        )
    };
    vec![
        (
            "duplicate name",
            call_text(
                era,
                "1",
                "\"name\":\"other\",\"name\":\"echo\",\"arguments\":{}",
            ),
        ),
        (
            "duplicate name, escaped",
            call_text(
                era,
                "1",
                "\"name\":\"other\",\"n\\u0061me\":\"echo\",\"arguments\":{}",
            ),
        ),
        (
            "duplicate arguments",
            call_text(
                era,
                "1",
                "\"name\":\"echo\",\"arguments\":{},\"arguments\":{\"message\":\"x\"}",
            ),
        ),
        (
            "duplicate deep in arguments",
            call_text(
                era,
                "1",
                "\"name\":\"echo\",\"arguments\":{\"a\":{\"b\":1,\"b\":2}}",
            ),
        ),
        (
            "duplicate method",
            good.replacen("\"method\"", "\"method\":\"ping\",\"method\"", 1),
        ),
        (
            "duplicate id",
            good.replacen("\"id\":1", "\"id\":1,\"id\":2", 1),
        ),
        (
            "duplicate jsonrpc",
            good.replacen(
                "\"jsonrpc\":\"2.0\"",
                "\"jsonrpc\":\"2.0\",\"jsonrpc\":\"2.0\"",
                1,
            ),
        ),
        (
            "duplicate params",
            good.replacen("\"params\"", "\"params\":{},\"params\"", 1),
        ),
        (
            "Method beside method",
            good.replacen("\"method\"", "\"Method\":\"ping\",\"method\"", 1),
        ),
        ("METHOD alone", good.replacen("\"method\"", "\"METHOD\"", 1)),
        ("Params alone", good.replacen("\"params\"", "\"Params\"", 1)),
        (
            "Name beside name",
            call_text(
                era,
                "1",
                "\"Name\":\"other\",\"name\":\"echo\",\"arguments\":{}",
            ),
        ),
        (
            "NAME alone",
            call_text(era, "1", "\"NAME\":\"echo\",\"arguments\":{}"),
        ),
        (
            "Arguments beside arguments",
            call_text(
                era,
                "1",
                "\"name\":\"echo\",\"Arguments\":{\"message\":\"x\"},\"arguments\":{}",
            ),
        ),
        (
            "long s in params",
            good.replacen("\"params\"", "\"param\u{17f}\"", 1),
        ),
        (
            "long s in arguments, beside",
            call_text(
                era,
                "1",
                "\"name\":\"echo\",\"argument\u{17f}\":{},\"arguments\":{}",
            ),
        ),
        (
            "Kelvin sign",
            good.replacen("\"jsonrpc\"", "\"\u{212a}\":1,\"JSONRPC\"", 1),
        ),
        ("depth 65", nested(70)),
        ("depth 100,000", nested(100_000)),
        ("not closed", good[..good.len() - 1].to_owned()),
        ("closed twice", format!("{good}}}")),
        ("two messages", format!("{good}\n{good}")),
        ("trailing text", format!("{good} x")),
        ("trailing NUL", format!("{good}\0")),
        ("trailing comma", good.replacen("}}", ",}}", 1)),
        ("comment", good.replacen("{", "{/* */", 1)),
        ("single quotes", good.replace('"', "'")),
        ("NaN", argument("NaN")),
        ("Infinity", argument("Infinity")),
        ("leading zero", argument("01")),
        ("plus sign", argument("+1")),
        ("bare dot", argument("1.")),
        ("hex number", argument("0x10")),
        ("lone high surrogate", argument("\"\\ud800\"")),
        ("lone low surrogate", argument("\"\\udc00\"")),
        (
            "surrogates the wrong way round",
            argument("\"\\udc00\\ud800\""),
        ),
        (
            "lone surrogate in a key",
            call_text(era, "1", "\"name\":\"echo\",\"arguments\":{\"\\ud800\":1}"),
        ),
        ("unknown escape", argument("\"\\x41\"")),
        ("short escape", argument("\"\\u12\"")),
        ("raw newline in a string", argument("\"a\nb\"")),
        ("True", argument("True")),
        ("empty", String::new()),
        ("blank", "  \n".to_owned()),
        ("a string", "\"tools/call\"".to_owned()),
        ("a number", "1".to_owned()),
        ("null", "null".to_owned()),
        ("empty object", "{}".to_owned()),
        ("empty array", "[]".to_owned()),
        ("no jsonrpc", good.replacen("\"jsonrpc\":\"2.0\",", "", 1)),
        ("jsonrpc 1.0", good.replacen("2.0", "1.0", 1)),
        ("jsonrpc a number", good.replacen("\"2.0\"", "2.0", 1)),
        ("method a number", good.replacen("\"tools/call\"", "1", 1)),
        ("method null", good.replacen("\"tools/call\"", "null", 1)),
        (
            "params an array",
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":[{{{GOOD}}}]}}"
            ),
        ),
        (
            "params a string",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":\"x\"}".to_owned(),
        ),
        ("id true", call_text(era, "true", GOOD)),
        ("id an object", call_text(era, "{}", GOOD)),
        ("id an array", call_text(era, "[1]", GOOD)),
        ("id a fraction", call_text(era, "1.5", GOOD)),
        ("id null", call_text(era, "null", GOOD)),
        (
            "id of 1 MB",
            call_text(era, &format!("\"{}\"", "a".repeat(1 << 20)), GOOD),
        ),
        (
            "method and result",
            good.replacen("\"method\"", "\"result\":{},\"method\"", 1),
        ),
        (
            "method and error",
            good.replacen(
                "\"method\"",
                "\"error\":{\"code\":1,\"message\":\"m\"},\"method\"",
                1,
            ),
        ),
        (
            "name a number",
            call_text(era, "1", "\"name\":1,\"arguments\":{}"),
        ),
        ("no name", call_text(era, "1", "\"arguments\":{}")),
        (
            "method in another case",
            good.replacen("tools/call", "Tools/Call", 1),
        ),
        (
            "method with a NUL",
            good.replacen("tools/call", "tools/call\\u0000", 1),
        ),
        (
            "method with a space",
            good.replacen("tools/call", "tools/call ", 1),
        ),
    ]
}

#[test]
fn what_is_not_strictly_one_message_is_refused() {
    for era in Era::ALL {
        let upstream = Upstream::mcp(|_| None);
        let weir = Weir::serve(&Config::new(&upstream.url()));
        let client = Client::connect(&weir, era);
        let mut faults = Vec::new();
        for (name, text) in refused_texts(era) {
            upstream.forget();
            match post_text(&client, &text) {
                Err(e) => faults.push(format!("{name}: {e}")),
                Ok(answer) if !is_refusal(&answer) => {
                    faults.push(format!(
                        "{name}: {} {:.200}",
                        answer.status(),
                        answer.text()
                    ));
                }
                Ok(answer) if answer.text().len() > 20_000 => {
                    faults.push(format!("{name}: the answer repeats the request"))
                }
                Ok(_) => {}
            }
            // A method that is merely unknown may be asked for upstream; a call may not be made.
            if upstream
                .calls("tools/call")
                .iter()
                .any(|r| r.json()["params"]["name"] == json!("echo"))
            {
                faults.push(format!("{name}: it was called"));
            }
        }
        assert!(
            faults.is_empty(),
            "{era:?} {} faults:\n{}",
            faults.len(),
            faults.join("\n")
        );
    }
}

/// Clients that write the id last wait for an answer with that id, and for no other.
#[test]
fn what_is_refused_has_its_id_wherever_that_stands() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let client = Client::connect(&weir, Era::Handshake);
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    for value in [r#""\ud83d""#, "NaN", &"9".repeat(1000), &deep] {
        let text = format!(
            r#"{{"method":"tools/call","params":{{"name":"echo","arguments":{{"message":{value}}}}},"jsonrpc":"2.0","id":7}}"#
        );
        let answer = post_text(&client, &text).expect("an answer");
        assert_eq!(answer.told_status(), 400, "{value:.20} {}", answer.text());
        assert_eq!(answer.response()["id"], 7, "{value:.20} {}", answer.text());
    }
}

/// A server that trims a method, or reads it without case, would take these for a call that nobody decided about.
#[test]
fn a_method_that_looks_like_another_is_refused() {
    let upstream = Upstream::mcp(|_| None);
    let config = Config::new(&upstream.url());
    let weir = Weir::serve(&config);
    for era in Era::ALL {
        let client = Client::connect(&weir, era);
        upstream.forget();
        for method in [
            "Tools/Call",
            "tools/call ",
            "tools/call\\n",
            "tools/call\\u200b",
            "\u{ff54}ools/call",
            "t\u{43e}ols/call",
        ] {
            let text = call_text(era, "1", GOOD).replacen("tools/call", method, 1);
            let answer = post_text(&client, &text).expect("an answer");
            assert_eq!(answer.told_status(), 400, "{method:?} {}", answer.text());
            assert_eq!(answer.error()["code"], -32600, "{method:?}");
            assert_eq!(answer.response()["id"], 1, "{method:?}");
        }
        assert!(upstream.requests().is_empty(), "one went up");
    }
    // A server's own, to the client.
    upstream.answer(|r| {
        (r.rpc_method() == "tools/call").then(|| {
            Reply::events(&[
                json!({ "jsonrpc": "2.0", "id": 7, "method": "Sampling/createMessage", "params": { "messages": [], "maxTokens": 1 } }),
                result_message(r, json!({ "content": [] })),
            ])
        })
    });
    let mut client = Client::connect(&weir, Era::Handshake);
    let answer = client.call("echo", json!({}));
    assert!(!answer.text().contains("ampling"), "{}", answer.text());
}

#[test]
fn strange_but_sound_messages_are_taken() {
    for era in Era::ALL {
        let upstream = Upstream::mcp(|_| None);
        let weir = Weir::serve(&Config::new(&upstream.url()));
        let client = Client::connect(&weir, era);
        let mut faults = Vec::new();
        for (name, text) in [
            (
                "escaped method",
                call_text(era, "1", GOOD).replacen("tools/call", "tools\\u002fcall", 1),
            ),
            (
                "escaped key",
                call_text(era, "1", GOOD).replacen("\"name\"", "\"n\\u0061me\"", 1),
            ),
            (
                "white space",
                call_text(era, "1", GOOD)
                    .replace(':', " : ")
                    .replace("io.modelcontextprotocol/ : ", "io.modelcontextprotocol/"),
            ),
            ("string id", call_text(era, "\"a b\"", GOOD)),
            ("negative id", call_text(era, "-7", GOOD)),
            ("id 0", call_text(era, "0", GOOD)),
            ("large id", call_text(era, "9007199254740991", GOOD)),
            (
                "depth 30",
                call_text(
                    era,
                    "1",
                    &format!(
                        "\"name\":\"echo\",\"arguments\":{{\"message\":\"hi\",\"a\":{}{}}}",
                        "[".repeat(30),
                        "]".repeat(30)
                    ),
                ),
            ),
            (
                "surrogate pair",
                call_text(
                    era,
                    "1",
                    "\"name\":\"echo\",\"arguments\":{\"message\":\"hi\",\"a\":\"\\ud83d\\ude00\"}",
                ),
            ),
            (
                "same key in two objects",
                call_text(
                    era,
                    "1",
                    "\"name\":\"echo\",\"arguments\":{\"message\":\"hi\",\"a\":{\"name\":1},\"b\":{\"name\":2}}",
                ),
            ),
            (
                "Name among the arguments",
                call_text(
                    era,
                    "1",
                    "\"name\":\"echo\",\"arguments\":{\"message\":\"hi\",\"Name\":1,\"METHOD\":2}",
                ),
            ),
            (
                "empty key",
                call_text(
                    era,
                    "1",
                    "\"name\":\"echo\",\"arguments\":{\"message\":\"hi\",\"\":1}",
                ),
            ),
        ] {
            match post_text(&client, &text) {
                Ok(answer) if answer.first_text() == "Echo: hi" => {}
                Ok(answer) => faults.push(format!(
                    "{name}: {} {:.200}",
                    answer.status(),
                    answer.text()
                )),
                Err(e) => faults.push(format!("{name}: {e}")),
            }
        }
        assert!(faults.is_empty(), "{era:?}\n{}", faults.join("\n"));
    }
}

#[test]
fn numbers_arrive_digit_for_digit() {
    const NUMBERS: &str = "[0,-0,1.0,1.10,1e2,1E+2,1e-7,0.1,12345678901234567890,-9223372036854775809,3.141592653589793238462643]";
    let upstream = Upstream::mcp(|r| {
        (r.rpc_method() == "tools/call").then(|| {
            let id = &r.json()["id"];
            weir_tests::Reply::status(200, "application/json",
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"resultType\":\"complete\",\"content\":[],\"structuredContent\":{{\"n\":{NUMBERS}}}}}}}"))
        })
    });
    let weir = Weir::serve(&Config::new(&upstream.url()));
    for era in Era::ALL {
        let client = Client::connect(&weir, era);
        upstream.forget();
        let text = call_text(
            era,
            "1",
            &format!("\"name\":\"echo\",\"arguments\":{{\"n\":{NUMBERS}}}"),
        );
        let answer = post_text(&client, &text).expect("an answer");
        assert!(
            answer.text().contains(NUMBERS),
            "to the client: {}",
            answer.text()
        );
        let seen = upstream.calls("tools/call").pop().expect("the call");
        let body = String::from_utf8_lossy(&seen.body).into_owned();
        assert!(body.contains(NUMBERS), "to the server: {body}");
    }
}

#[test]
fn batches_exist_only_where_the_revision_has_them() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let canary = Canary::github();
    for (revision, era) in [
        ("2025-06-18", Era::Handshake),
        ("2025-11-25", Era::Handshake),
        ("2026-07-28", Era::Stateless),
    ] {
        let mut client = Client::new(&weir, era, &[]);
        client.revision = revision.to_owned();
        if era == Era::Handshake {
            client.initialize();
        }
        upstream.forget();
        let text = format!("[{}]", call_text(era, "1", GOOD));
        let answer = post_text(&client, &text).expect("an answer");
        assert!(
            is_refusal(&answer),
            "{revision}: {} {}",
            answer.status(),
            answer.text()
        );
        assert!(
            upstream.calls("tools/call").is_empty() && upstream.requests().is_empty(),
            "{revision}"
        );
    }
    // 2025-03-26: each is judged for itself.
    let mut client = Client::new(&weir, Era::Handshake, &[]);
    client.revision = "2025-03-26".to_owned();
    client.initialize();
    upstream.forget();
    let bad = call_text(
        Era::Handshake,
        "2",
        &format!(
            "\"name\":\"echo\",\"arguments\":{{\"message\":\"{}\"}}",
            canary.value()
        ),
    );
    let text = format!(
        "[{},{bad},{}]",
        call_text(Era::Handshake, "1", GOOD),
        call_text(Era::Handshake, "3", GOOD)
    );
    let answer = post_text(&client, &text).expect("an answer");
    assert_eq!(canary.found_in(&upstream.bytes()), None);
    let by_id = |id: i64| {
        answer
            .messages
            .iter()
            .find(|m| m["id"] == json!(id))
            .cloned()
            .unwrap_or(Value::Null)
    };
    assert_eq!(
        by_id(1)["result"]["content"][0]["text"],
        json!("Echo: hi"),
        "{}",
        answer.text()
    );
    assert_eq!(
        by_id(2)["result"]["isError"],
        json!(true),
        "{}",
        answer.text()
    );
    assert_eq!(
        by_id(3)["result"]["content"][0]["text"],
        json!("Echo: hi"),
        "{}",
        answer.text()
    );
    for (name, text) in [
        (
            "nested",
            format!("[[{}]]", call_text(Era::Handshake, "1", GOOD)),
        ),
        ("empty", "[]".to_owned()),
        (
            "initialize",
            format!(
                "[{{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"initialize\",\"params\":{{\"protocolVersion\":\"2025-03-26\",\"capabilities\":{{}},\"clientInfo\":{{\"name\":\"c\",\"version\":\"1\"}}}}}},{}]",
                call_text(Era::Handshake, "1", GOOD)
            ),
        ),
        (
            "20,000",
            format!(
                "[{}]",
                vec!["{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"; 20_000].join(",")
            ),
        ),
        (
            "one bad",
            format!("[{},1]", call_text(Era::Handshake, "1", GOOD)),
        ),
        (
            "the same id twice",
            format!(
                "[{},{}]",
                call_text(Era::Handshake, "1", GOOD),
                call_text(Era::Handshake, "1", GOOD)
            ),
        ),
    ] {
        upstream.forget();
        let answer = post_text(&client, &text).expect(name);
        let each_refused = answer.messages.iter().any(|m| m["error"].is_object());
        assert!(
            is_refusal(&answer) || each_refused,
            "{name}: {} {:.200}",
            answer.status(),
            answer.text()
        );
        assert!(
            upstream.requests().len() <= 32,
            "{name}: {} requests went on",
            upstream.requests().len()
        );
    }
}

#[test]
fn headers_must_say_what_the_body_says() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut client = Client::connect(&weir, Era::Stateless);
    client.request("tools/list", json!({}));
    upstream.forget();
    let message = client.message(
        "tools/call",
        json!({ "name": "typed", "arguments": { "region": "north" } }),
    );
    let mut good = client.headers_for(&message);
    good.push(("Mcp-Param-Region".into(), "north".into()));
    let with = |name: &str, value: Option<&str>| {
        let mut headers = good.clone();
        headers.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        headers.extend(value.map(|v| (name.to_owned(), v.to_owned())));
        headers
    };
    let twice = |name: &str, value: &str| {
        let mut headers = good.clone();
        headers.push((name.to_owned(), value.to_owned()));
        headers
    };
    let text = message.to_string();
    let mut faults = Vec::new();
    for (name, headers) in [
        ("other method", with("Mcp-Method", Some("ping"))),
        (
            "method in another case",
            with("Mcp-Method", Some("Tools/Call")),
        ),
        ("no method", with("Mcp-Method", None)),
        ("two methods", twice("Mcp-Method", "ping")),
        ("other name", with("Mcp-Name", Some("echo"))),
        ("name in another case", with("Mcp-Name", Some("Typed"))),
        ("no name", with("Mcp-Name", None)),
        ("two names", twice("Mcp-Name", "echo")),
        (
            "other name, encoded",
            with("Mcp-Name", Some("=?base64?ZWNobw==?=")),
        ),
        (
            "encoding that is none",
            with("Mcp-Name", Some("=?base64?!!!?=")),
        ),
        (
            "other version",
            with("MCP-Protocol-Version", Some("2025-11-25")),
        ),
        ("no version", with("MCP-Protocol-Version", None)),
        ("other parameter", with("Mcp-Param-Region", Some("south"))),
        ("no parameter", with("Mcp-Param-Region", None)),
        ("two parameters", twice("Mcp-Param-Region", "south")),
    ] {
        match client.post_bytes(text.as_bytes(), &headers) {
            // The revision names no code for a header that is there twice.
            Ok(a) if a.told_status() == 400 && name.starts_with("two ") => {}
            Ok(a) if a.told_status() == 400 && a.error()["code"] == json!(-32020) => {}
            Ok(a) => faults.push(format!("{name}: {} {:.200}", a.status(), a.text())),
            Err(e) => faults.push(format!("{name}: {e}")),
        }
    }
    // What the header says of the version counts where the body says nothing.
    let mut bare = message.clone();
    let params = bare["params"].as_object_mut().expect("params");
    params.remove("_meta").expect("a version");
    for (name, headers) in [
        ("other parameter", with("Mcp-Param-Region", Some("south"))),
        ("no parameter", with("Mcp-Param-Region", None)),
        ("no method", with("Mcp-Method", None)),
        ("no name", with("Mcp-Name", None)),
    ] {
        let answer = client.post_bytes(bare.to_string().as_bytes(), &headers);
        let answer = answer.expect("an answer");
        if answer.told_status() != 400 || answer.error()["code"] != json!(-32020) {
            faults.push(format!("{name}, said by the header: {}", answer.status()));
        }
    }
    // A session of the oldest revision has a pipe of its own. Who names it elsewhere is compared as all others are.
    let mut oldest = Client::new(&weir, Era::Handshake, &[]);
    oldest.path = weir.path().replace("/mcp", "/sse");
    let mut stream = oldest.listen(None);
    let endpoint = stream.event(Duration::from_secs(20)).expect("the endpoint");
    let (_, session) = endpoint.data.split_once("sessionId=").expect("a session");
    let mut piped = with("Mcp-Param-Region", Some("south"));
    piped.retain(|(name, _)| name != "MCP-Protocol-Version");
    piped.push(("MCP-Protocol-Version".into(), "2025-06-18".into()));
    piped.push(("Mcp-Session-Id".into(), session.to_owned()));
    let answer = client.post_bytes(text.as_bytes(), &piped).expect("one");
    if answer.told_status() != 400 || answer.error()["code"] != json!(-32020) {
        faults.push(format!("a pipe's session: {}", answer.status()));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(upstream.calls("tools/call").is_empty());
    for (name, headers) in [
        ("as it is", good.clone()),
        (
            "name encoded",
            with("Mcp-Name", Some("=?base64?dHlwZWQ=?=")),
        ),
        (
            "parameter encoded",
            with("Mcp-Param-Region", Some("=?base64?bm9ydGg=?=")),
        ),
    ] {
        let answer = client.post_bytes(text.as_bytes(), &headers).expect(name);
        assert_eq!(answer.status(), 200, "{name}: {}", answer.text());
    }
}

#[test]
fn versions_that_are_not_spoken_are_refused_with_those_that_are() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut client = Client::new(&weir, Era::Stateless, &[]);
    client.revision = "2027-01-01".to_owned();
    let answer = client.request("tools/list", json!({}));
    assert_eq!(
        (answer.status(), &answer.error()["code"]),
        (400, &json!(-32022)),
        "{}",
        answer.text()
    );
    let supported = answer.error()["data"]["supported"].to_string();
    assert!(supported.contains("2026-07-28"), "{supported}");
    let mut client = Client::connect(&weir, Era::Handshake);
    client.revision = "1999-01-01".to_owned();
    assert_eq!(client.request("tools/list", json!({})).status(), 400);
    assert!(upstream.calls("tools/list").is_empty());
}

#[test]
fn initialize_never_ends_in_a_version_that_weir_does_not_inspect_so() {
    // A real server that echoes whatever it is asked for.
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    for asked in ["2026-07-28", "2027-01-01", "2025-11-25", "2025-03-26"] {
        let mut client = Client::new(&weir, Era::Handshake, &[]);
        let answer = client.request(
            "initialize",
            json!({ "protocolVersion": asked, "capabilities": {},
            "clientInfo": { "name": "c", "version": "1" } }),
        );
        let version = answer.result()["protocolVersion"]
            .as_str()
            .unwrap_or_default();
        assert!(
            matches!(
                version,
                "2025-11-25" | "2025-06-18" | "2025-03-26" | "2024-11-05"
            ),
            "{asked}: {}",
            answer.text()
        );
    }
}
