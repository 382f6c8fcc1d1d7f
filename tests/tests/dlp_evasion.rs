//! Ways to get a secret past a scanner: encodings, Unicode, padding, splitting. And texts that are none of its business.

use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use weir_tests::config::Config;
use weir_tests::weir::audit;
use weir_tests::{Canary, Client, Era, Reply, Upstream, Value, Weir, json, wait};

/// The ways a value can be written so that a reader (or a decoder on the other side) still gets it.
fn disguises(v: &str) -> Vec<(&'static str, String)> {
    let hex: String = v.bytes().map(|b| format!("{b:02x}")).collect();
    let spaced_hex: Vec<String> = v.bytes().map(|b| format!("{b:02X}")).collect();
    let between = |c: char| v.chars().flat_map(|x| [x, c]).collect::<String>();
    let wide: String = v
        .chars()
        .map(|c| {
            if c.is_ascii_graphic() {
                char::from_u32(c as u32 + 0xFEE0).expect("full width")
            } else {
                c
            }
        })
        .collect();
    let b64 = STANDARD.encode(v);
    let wrapped: Vec<&str> = b64
        .as_bytes()
        .chunks(20)
        .map(|c| std::str::from_utf8(c).expect("ASCII"))
        .collect();
    vec![
        ("plain", v.to_owned()),
        ("in a sentence", format!("please store {v}, thanks")),
        ("in quotes", format!("token = \"{v}\"")),
        ("in a URL", format!("https://x.example/?token={v}&a=b")),
        ("after a line break", format!("one\ntwo\r\n{v}\nthree")),
        ("base64", b64.clone()),
        (
            "base64 in a sentence",
            format!("the data is {b64} as agreed"),
        ),
        (
            "base64 without padding",
            STANDARD_NO_PAD.encode(format!("a{v}")),
        ),
        ("base64url", URL_SAFE_NO_PAD.encode(format!("??>>{v}"))),
        ("base64, second alignment", STANDARD.encode(format!("x{v}"))),
        ("base64, third alignment", STANDARD.encode(format!("xy{v}"))),
        ("base64 in lines", wrapped.join("\n")),
        ("base64 twice", STANDARD.encode(&b64)),
        ("base64 three times", STANDARD.encode(STANDARD.encode(&b64))),
        ("data URL", format!("data:text/plain;base64,{b64}")),
        ("hex", hex.clone()),
        ("hex, upper case", hex.to_uppercase()),
        ("hex with spaces", spaced_hex.join(" ")),
        ("hex with colons", spaced_hex.join(":")),
        (
            "hex of base64",
            b64.bytes().map(|b| format!("{b:02x}")).collect(),
        ),
        ("percent", v.bytes().map(|b| format!("%{b:02X}")).collect()),
        ("percent, in part", v.replacen('_', "%5F", 1)),
        (
            "percent twice",
            v.bytes().map(|b| format!("%25{b:02x}")).collect(),
        ),
        (
            "\\u escapes as text",
            v.bytes().map(|b| format!("\\u{b:04x}")).collect(),
        ),
        (
            "\\x escapes as text",
            v.bytes().map(|b| format!("\\x{b:02x}")).collect(),
        ),
        (
            "HTML entities",
            v.bytes().map(|b| format!("&#{b};")).collect(),
        ),
        (
            "HTML entities, hex",
            v.bytes().map(|b| format!("&#x{b:x};")).collect(),
        ),
        ("JSON in JSON", json!({ "a": { "b": v } }).to_string()),
        (
            "JSON in JSON in JSON",
            json!(json!({ "a": v }).to_string()).to_string(),
        ),
        ("base64 in JSON", json!({ "d": b64 }).to_string()),
        (
            "JSON in base64",
            STANDARD.encode(json!({ "d": v }).to_string()),
        ),
        ("gzip in base64", STANDARD.encode(gzip(v))),
        ("zero-width spaces", between('\u{200b}')),
        ("zero-width joiners", between('\u{200d}')),
        ("soft hyphens", between('\u{ad}')),
        ("word joiners", between('\u{2060}')),
        ("BOMs", between('\u{feff}')),
        ("variation selectors", between('\u{fe0f}')),
        ("full-width letters", wide),
    ]
}

/// Stored, not compressed: enough for a decoder, and no dependency for it.
fn gzip(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let len = u16::try_from(bytes.len()).expect("a short text");
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1];
    out.extend(len.to_le_bytes());
    out.extend((!len).to_le_bytes());
    out.write_all(bytes).expect("a vector grows");
    out.extend(crc32fast::hash(bytes).to_le_bytes());
    out.extend(u32::from(len).to_le_bytes());
    out
}

/// Whether anything of the message got to the server.
fn reached(upstream: &Upstream) -> bool {
    !upstream.calls("tools/call").is_empty()
}

#[test]
fn disguised_secrets_do_not_reach_the_server() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()).category("secret", "block"));
    let mut faults = Vec::new();
    for era in Era::ALL {
        let mut client = Client::connect(&weir, era);
        let names: Vec<&str> = disguises("x_y").iter().map(|(n, _)| *n).collect();
        for (i, name) in names.iter().enumerate() {
            let canary = Canary::github();
            let (_, text) = disguises(canary.value()).swap_remove(i);
            upstream.forget();
            let answer = client.call("echo", json!({ "message": text }));
            if reached(&upstream) || answer.result()["isError"] != json!(true) {
                faults.push(format!("{era:?} {name}: {:.160}", answer.text()));
            }
            if let Some(place) = weir.found_anywhere(&canary) {
                faults.push(format!("{era:?} {name}: in {place}"));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "{} got through:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn disguised_secrets_do_not_reach_the_client() {
    for action in ["block", "redact"] {
        let upstream = Upstream::mcp(|_| None);
        let weir = Weir::serve(&Config::new(&upstream.url()).category("secret", action));
        let mut client = Client::connect(&weir, Era::Stateless);
        let mut faults = Vec::new();
        for i in 0..disguises("x_y").len() {
            let canary = Canary::github();
            let (name, text) = disguises(canary.value()).swap_remove(i);
            let sent = text.clone();
            upstream.answer(move |r| {
                (r.rpc_method() == "tools/call").then(|| {
                    Reply::result(r, json!({ "content": [{ "type": "text", "text": sent }] }))
                })
            });
            let answer = client.call("echo", json!({}));
            let came = answer.first_text();
            if came.contains(&text) || canary.found_in(&answer.body).is_some() {
                faults.push(format!("{name}: {came:.160}"));
            }
            if action == "block" && answer.blocked_call_fault(Era::Stateless).is_some() {
                faults.push(format!("{name}: not blocked: {:.160}", answer.text()));
            }
        }
        assert!(
            faults.is_empty(),
            "{action}: {} got through:\n{}",
            faults.len(),
            faults.join("\n")
        );
    }
}

/// Random characters spell words now and then. A token whose check digits are right is a token all the same.
#[test]
fn a_word_inside_does_not_make_a_token_a_placeholder() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()).category("secret", "block"));
    let mut client = Client::connect(&weir, Era::Stateless);
    let words = [
        "fake", "FAKE", "null", "NULL", "none", "test", "TEST", "XXXX", "xxxx", "example",
        "sample", "dummy", "demo", "0000", "1234", "12345678", "abcd", "changeme", "foo", "bar",
        "your", "token", "secret", "password", "aaaa", "todo",
    ];
    let mut passed = Vec::new();
    for word in words {
        let canary = Canary::github_holding(word);
        upstream.forget();
        client.call(
            "echo",
            json!({ "message": format!("it is {}", canary.value()) }),
        );
        if reached(&upstream) {
            passed.push(word);
        }
    }
    assert!(
        passed.is_empty(),
        "tokens with these words inside got through: {passed:?}"
    );
}

#[test]
fn padding_and_place_do_not_matter() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()).category("secret", "block"));
    let mut client = Client::connect(&weir, Era::Stateless);
    let mut faults = Vec::new();
    // Around the sizes of buffers that a scanner might have.
    let mut offsets = vec![0, 1, 2];
    for size in [4096_usize, 8192, 16_384, 32_768, 65_536, 131_072, 1 << 20] {
        offsets.extend([size - 20, size - 1, size, size + 1]);
    }
    offsets.push(3 << 20);
    for offset in offsets {
        let canary = Canary::github();
        let words = "the quick brown fox jumps over the lazy dog ";
        let mut text: String = words.chars().cycle().take(offset).collect();
        text.push(' ');
        text.push_str(canary.value());
        text.push_str(" and more text");
        upstream.forget();
        let answer = client.call("echo", json!({ "message": text }));
        if reached(&upstream) || answer.result()["isError"] != json!(true) {
            faults.push(format!(
                "at {offset}: {} {:.160}",
                answer.status(),
                answer.text()
            ));
        }
    }
    // Behind many other values.
    for count in [1_000, 50_000] {
        let canary = Canary::github();
        let mut items: Vec<Value> = (0..count).map(|i| json!(i)).collect();
        items.push(json!(canary.value()));
        upstream.forget();
        let answer = client.call("echo", json!({ "items": items }));
        if reached(&upstream) || answer.result()["isError"] != json!(true) {
            faults.push(format!(
                "behind {count} values: {} {:.160}",
                answer.status(),
                answer.text()
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A client puts the pieces together again; so does the scanner.
#[test]
fn a_secret_split_over_content_blocks_is_found() {
    let canary = Canary::github();
    let (a, b) = canary.value().split_at(17);
    let (a, b) = (a.to_owned(), b.to_owned());
    let upstream = Upstream::mcp(move |r| {
        (r.rpc_method() == "tools/call").then(|| Reply::result(r, json!({ "content": [
            { "type": "text", "text": format!("the token is {a}") }, { "type": "text", "text": format!("{b} that was it") }] })))
    });
    for action in ["block", "redact"] {
        let weir = Weir::serve(&Config::new(&upstream.url()).category("secret", action));
        let answer = Client::connect(&weir, Era::Stateless).call("echo", json!({}));
        let joined: String = answer.result()["content"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|c| c["text"].as_str())
            .collect();
        assert_eq!(
            canary.found_in(joined.as_bytes()),
            None,
            "{action}: {joined}"
        );
    }
}

#[test]
fn redaction_takes_all_of_it_and_nothing_else() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()).category("secret", "redact"));
    let mut client = Client::connect(&weir, Era::Stateless);
    let (one, two) = (Canary::github(), Canary::github());
    let (o, t) = (one.value(), two.value());
    for (name, text, kept) in [
        ("two", format!("a {o} b {t} c"), vec!["a ", " b ", " c"]),
        (
            "the same twice",
            format!("a {o} b {o} c"),
            vec!["a ", " b ", " c"],
        ),
        ("side by side", format!("a {o} {t} c"), vec!["a ", " c"]),
        (
            "behind wide characters",
            format!("\u{1f600}\u{e9}\u{4e2d} {o} \u{1f600}"),
            vec!["\u{1f600}\u{e9}\u{4e2d} ", " \u{1f600}"],
        ),
        (
            "behind escapes",
            format!("\"q\" \\ \t{o}\n\"q\""),
            vec!["\"q\" \\ \t", "\n\"q\""],
        ),
        (
            "in JSON",
            format!("{{\"a\":\"{o}\",\"b\":1}}"),
            vec!["{\"a\":\"", "\",\"b\":1}"],
        ),
        (
            "combining marks",
            format!("e\u{301} {o} e\u{301}"),
            vec!["e\u{301} ", " e\u{301}"],
        ),
    ] {
        upstream.forget();
        let answer = client.call("echo", json!({ "message": text }));
        let seen = upstream
            .calls("tools/call")
            .pop()
            .unwrap_or_else(|| panic!("{name}: not passed on: {}", answer.text()));
        let got = seen.json()["params"]["arguments"]["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        for canary in [&one, &two] {
            assert_eq!(canary.found_in(got.as_bytes()), None, "{name}: {got}");
        }
        // Not even half of it.
        assert!(
            !got.contains(&o[..20]) && !got.contains(&o[20..]),
            "{name}: {got}"
        );
        let mut rest = got.as_str();
        for piece in kept {
            let at = rest
                .find(piece)
                .unwrap_or_else(|| panic!("{name}: {piece:?} is gone from {got:?}"));
            rest = &rest[at + piece.len()..];
        }
        assert!(rest.is_empty(), "{name}: {rest:?} was added to {got:?}");
    }
}

#[test]
fn calls_at_once_are_judged_each_for_itself() {
    const THREADS: usize = 16;
    let upstream = Upstream::mcp(|_| None);
    let weir = Arc::new(Weir::serve(
        &Config::new(&upstream.url()).category("secret", "block"),
    ));
    let threads: Vec<_> = (0..THREADS)
        .map(|n| {
            let weir = Arc::clone(&weir);
            std::thread::spawn(move || {
                let mut client = Client::connect(&weir, Era::ALL[n % 2]);
                for i in 0..30 {
                    let bad = (i + n) % 3 == 0;
                    let text = if bad {
                        Canary::github().value().to_owned()
                    } else {
                        format!("clean {n} {i}")
                    };
                    let answer = client.call("echo", json!({ "message": text }));
                    assert_eq!(
                        answer.result()["isError"] == json!(true),
                        bad,
                        "{n} {i}: {}",
                        answer.text()
                    );
                    assert_eq!(
                        answer.first_text() == format!("Echo: {text}"),
                        !bad,
                        "{n} {i}: {}",
                        answer.text()
                    );
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("every verdict was right");
    }
}

/// Texts made to be slow to match or to decode. Each is answered in time, and another caller does not notice.
#[test]
fn no_text_makes_it_slow() {
    const MAX: Duration = Duration::from_secs(5);
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut client = Client::connect(&weir, Era::Stateless);
    let mib = 1 << 20;
    let mut nested = "x".repeat(1000);
    while nested.len() < mib {
        nested = STANDARD.encode(&nested);
    }
    let texts = [
        (
            "keywords",
            "ghp_ AKIA sk_live_ xoxb- eyJ -----BEGIN ".repeat(mib / 40),
        ),
        (
            "nearly tokens",
            format!("ghp_{} ", "a".repeat(35)).repeat(mib / 41),
        ),
        ("digits", "4111 1111 1111 111 ".repeat(mib / 19)),
        ("one long digit run", "1".repeat(mib)),
        ("one long word", "a".repeat(mib)),
        ("one long base64", "QUJD".repeat(mib / 4)),
        ("nested base64", nested),
        ("percent signs", "%".repeat(mib)),
        ("percent escapes of percent", "%25".repeat(mib / 3)),
        ("backslashes", "\\".repeat(mib)),
        ("braces", "{\"a\":".repeat(mib / 5)),
        ("quotes", "\"".repeat(mib)),
        ("at signs", "a@".repeat(mib / 2)),
        ("dots", "a.".repeat(mib / 2)),
        ("spaces", " ".repeat(mib)),
        ("zero-width", "\u{200b}".repeat(mib / 3)),
        ("ignore ignore", "ignore all previous ".repeat(mib / 20)),
        ("ampersands", "&#".repeat(mib / 2)),
    ];
    let mut faults = Vec::new();
    for (name, text) in texts {
        let started = Instant::now();
        let answer = client.call("echo", json!({ "message": text }));
        let took = started.elapsed();
        if answer.status() != 200 {
            faults.push(format!(
                "{name}: {} {:.160}",
                answer.status(),
                answer.text()
            ));
        }
        if took > MAX {
            faults.push(format!("{name}: it took {took:?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// What could not be looked at is not clean.
#[test]
fn over_budget_is_not_clean() {
    let upstream = Upstream::mcp(|_| None);
    let config = Config::new(&upstream.url()).set(
        "limits",
        json!({ "decoded_bytes_max": 65536, "decode_depth_max": 2 }),
    );
    let weir = Weir::serve(&config);
    let mut client = Client::connect(&weir, Era::Stateless);
    let canary = Canary::github();
    let deep = STANDARD.encode(STANDARD.encode(STANDARD.encode(STANDARD.encode(canary.value()))));
    let pad: String = "lorem ipsum dolor sit amet "
        .chars()
        .cycle()
        .take(60_000)
        .collect();
    let wide = format!(
        "{} {}",
        STANDARD.encode(&pad),
        STANDARD.encode(format!("{pad} {}", canary.value()))
    );
    for (name, text) in [("depth", deep), ("decoded_bytes", wide)] {
        upstream.forget();
        let answer = client.call("echo", json!({ "message": text }));
        assert_eq!(answer.blocked_call_fault(Era::Stateless), None, "{name}");
        assert!(!reached(&upstream), "{name}");
        let reason = format!("over_budget: {name}");
        wait::until("a record of the bound", Duration::from_secs(5), || {
            let mut records = audit(&weir, &[]).into_iter();
            records.find(|record| record["reason"] == reason.as_str())
        });
    }
}

/// Ordinary texts arrive as they were sent, both ways, under the default policy.
#[test]
fn ordinary_texts_pass_untouched() {
    let png = STANDARD.encode(
        (0..4000_u32)
            .flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes())
            .collect::<Vec<u8>>(),
    );
    let texts = [
        ("prose", "The meeting is on Tuesday at 14:00 in room 4711; bring the report of 2026-03-31.".to_owned()),
        ("umlauts", "Grüße aus München, señor; 東京は今日も雨です 🌧️".to_owned()),
        ("emoji with joiners", "Family: 👨‍👩‍👧‍👦, flag: 🏴‍☠️, hand: 👍🏽".to_owned()),
        ("Hindi and Arabic", "क्षत्रिय نمی‌خواهم".to_owned()),
        ("uuid", "550e8400-e29b-41d4-a716-446655440000".to_owned()),
        ("git hash", "commit 9fceb02d0ae598e95dc970b74767f19372d61af8".to_owned()),
        ("sha256", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".to_owned()),
        ("subresource integrity", "sha384-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC".to_owned()),
        ("image", png),
        ("time stamps", "1732190400 1732190401 1732190402 2026-11-21T12:00:00Z".to_owned()),
        ("versions", "node 22.23.3, rustc 1.95.0, 10.0.19045.3693".to_owned()),
        ("loopback", "http://127.0.0.1:8080/mcp and 10.0.0.1/8".to_owned()),
        ("code", "fn main() { let token = std::env::var(\"API_TOKEN\").unwrap(); }".to_owned()),
        ("placeholders", "export OPENAI_API_KEY=<your-key> AWS_SECRET_ACCESS_KEY=xxxxxxxxxxxxxxxx password: ********".to_owned()),
        ("diff", "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n-old\n+new\n".to_owned()),
        ("SQL", "SELECT id, name FROM users WHERE created_at > '2026-01-01' AND deleted IS NULL".to_owned()),
        ("JSON", "{\"items\":[{\"id\":1,\"price\":12.50},{\"id\":2,\"price\":7.99}],\"total\":20.49}".to_owned()),
        ("HTML", "<p class=\"a\">Hello &amp; welcome &#8212; <b>you</b></p>".to_owned()),
        ("percent", "https://x.example/search?q=caf%C3%A9+au+lait&page=2".to_owned()),
        ("order number", "Order 100234567, parcel 1Z999AA10123456784, invoice 2026-00042".to_owned()),
        ("talk about instructions", "Please follow the instructions in the README, and ignore the previous build's warnings.".to_owned()),
        ("csv", "id,lat,lon\n1,52.5200,13.4050\n2,48.1351,11.5820\n".to_owned()),
        ("long prose", "It was the best of times, it was the worst of times, ".repeat(2000)),
        ("public key", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Qk1nN6m0cR8n8J4o2dY7m3u9v6b1s5q0w2e4r6t8y user@host".to_owned()),
    ];
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut faults = Vec::new();
    for era in Era::ALL {
        let mut client = Client::connect(&weir, era);
        for (name, text) in &texts {
            let answer = client.call("echo", json!({ "message": text }));
            if answer.first_text() != format!("Echo: {text}") {
                faults.push(format!("{era:?} {name}: {:.300}", answer.text()));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "{} of {}:\n{}",
        faults.len(),
        texts.len() * 2,
        faults.join("\n")
    );
}

/// What a server says piece by piece is read as one text by whoever shows it.
#[test]
fn a_secret_split_over_successive_messages_does_not_get_through_whole() {
    let upstream = Upstream::mcp(|_| None);
    for action in ["block", "redact"] {
        let weir = Weir::serve(&Config::new(&upstream.url()).category("secret", action));
        for (name, cuts, result_has_last) in [
            ("two notifications", vec![20], false),
            ("two, the second with nearly all", vec![3], false),
            ("two, the first with nearly all", vec![38], false),
            ("four notifications", vec![9, 17, 30], false),
            ("a notification and the result", vec![20], true),
            ("two notifications and the result", vec![11, 26], true),
        ] {
            let canary = Canary::github();
            let mut pieces = Vec::new();
            let mut rest = canary.value();
            for at in cuts.iter().rev() {
                let (before, piece) = rest.split_at(*at);
                pieces.insert(0, piece.to_owned());
                rest = before;
            }
            pieces.insert(0, format!("see {rest}"));
            pieces
                .last_mut()
                .expect("there is one")
                .push_str(" and so on");
            let say = |text: &String| {
                json!({ "jsonrpc": "2.0", "method": "notifications/message",
                    "params": { "level": "info", "logger": "app", "data": text } })
            };
            upstream.answer(move |r| {
                (r.rpc_method() == "tools/call").then(|| {
                    let told = if result_has_last {
                        pieces.len() - 1
                    } else {
                        pieces.len()
                    };
                    let mut messages: Vec<Value> = pieces[..told].iter().map(say).collect();
                    let text = pieces[told..].first().map_or("done", String::as_str);
                    messages.push(weir_tests::upstream::result_message(
                        r,
                        json!({ "content": [{ "type": "text", "text": text }] }),
                    ));
                    Reply::events(&messages)
                })
            });
            let mut client = Client::connect(&weir, Era::Handshake);
            let answer = client.call("echo", json!({}));
            let came: String = answer
                .messages
                .iter()
                .flat_map(|m| [&m["params"]["data"], &m["result"]["content"][0]["text"]])
                .filter_map(Value::as_str)
                .collect();
            assert_eq!(
                canary.found_in(came.as_bytes()),
                None,
                "{action}, {name}: {came}"
            );
            assert!(came.starts_with("see "), "{action}, {name}: {came}");
        }
        // Messages that have nothing to do with each other are left alone.
        let told = [
            "step 1 of 3: reading 4539",
            "step 2 of 3: 5787 rows",
            "done",
        ];
        upstream.answer(move |r| {
            (r.rpc_method() == "tools/call").then(|| {
                let mut messages: Vec<Value> = told
                    .iter()
                    .map(|text| json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": text } }))
                    .collect();
                messages.push(weir_tests::upstream::result_message(r, json!({ "content": [{ "type": "text", "text": "6362 rows" }] })));
                Reply::events(&messages)
            })
        });
        let answer = Client::connect(&weir, Era::Handshake).call("echo", json!({}));
        assert_eq!(answer.messages.len(), told.len() + 1, "{}", answer.text());
        assert_eq!(answer.first_text(), "6362 rows");
    }
}

/// What was found whole in one message is half of nothing in the next.
#[test]
fn what_follows_a_value_that_was_taken_out_is_left_alone() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()).category("secret", "redact"));
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let jwt = [
        part(r#"{"alg":"HS256","typ":"JWT"}"#),
        part(r#"{"sub":"8127","name":"Anna Lindqvist","iat":1763850000}"#),
        part("k2Vq9XwL4mTz7RbN1sPd5GyHc8JfA0"),
    ]
    .join(".");
    upstream.answer(move |r| {
        (r.rpc_method() == "tools/call").then(|| {
            let told = json!({ "jsonrpc": "2.0", "method": "notifications/message",
                "params": { "level": "info", "data": format!("Using token {jwt}") } });
            let result = json!({ "content": [{ "type": "text", "text": "Done" }] });
            Reply::events(&[told, weir_tests::upstream::result_message(r, result)])
        })
    });
    let answer = Client::connect(&weir, Era::Handshake).call("echo", json!({}));
    let said = &answer.messages[0]["params"]["data"];
    assert_eq!(said, "Using token [REDACTED:jwt]");
    assert_eq!(answer.first_text(), "Done");
}

/// What is JSON stays JSON, and what is no base64 does not become it.
#[test]
fn redaction_keeps_the_form_of_what_it_is_in() {
    let card = "4539578763621486";
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()).category("pii", "redact"));
    let mut client = Client::connect(&weir, Era::Stateless);
    for (sent, came) in [
        (
            json!({ "text": format!("{{\"card\": {card}, \"n\": 1}}") }),
            json!({ "text": "{\"card\": 0, \"n\": 1}" }),
        ),
        (
            json!({ "text": format!("[ {card} ]") }),
            json!({ "text": "[ 0 ]" }),
        ),
        (
            json!({ "text": format!("{{\"card\": \"{card}\"}}") }),
            json!({ "text": "{\"card\": \"[REDACTED:credit-card]\"}" }),
        ),
        (
            json!({ "text": format!("{{\"note\": \"so: {card}, \\\"he\\\" said\", \"card\": {card}}}") }),
            json!({ "text": "{\"note\": \"so: [REDACTED:credit-card], \\\"he\\\" said\", \"card\": 0}" }),
        ),
        (
            json!({ "text": format!("{{\"card\": {card}}}\n{{\"card\": {card}}}\n") }),
            json!({ "text": "{\"card\": 0}\n{\"card\": 0}\n" }),
        ),
        (
            json!({ "text": format!("see:\n```json\n{{\"card\": {card}}}\n```") }),
            json!({ "text": "see:\n```json\n{\"card\": 0}\n```" }),
        ),
        (
            json!({ "text": json!({ "q": json!({ "card": 0 }).to_string() }).to_string().replace(":0", &format!(":{card}")) }),
            json!({ "text": json!({ "q": json!({ "card": 0 }).to_string() }).to_string() }),
        ),
        (
            json!({ "text": format!("{{\"{card}\": 1, \"4111 1111 1111 1111\": 2}}") }),
            json!({ "text": "{\"[REDACTED:credit-card:1]\": 1, \"[REDACTED:credit-card:2]\": 2}" }),
        ),
        (
            json!({ "data": format!("{{\"rows\":[1,2],\"card\":\"{card}\"}}") }),
            json!({ "data": "{\"rows\":[1,2],\"card\":\"[REDACTED:credit-card]\"}" }),
        ),
        (
            json!({ "data": format!("the card {card} is his") }),
            json!({ "data": "the card [REDACTED:credit-card] is his" }),
        ),
        (
            json!({ "blob": STANDARD.encode(format!("the card {card} is his")) }),
            json!({ "blob": STANDARD.encode("[REDACTED:credit-card]") }),
        ),
    ] {
        upstream.answer(move |r| {
            let sent = sent.clone();
            (r.rpc_method() == "tools/call")
                .then(|| Reply::result(r, json!({ "content": [], "structuredContent": sent })))
        });
        let answer = client.call("echo", json!({}));
        assert_eq!(answer.result()["structuredContent"], came);
    }
}
