//! What follows what was said, through the whole line.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use dlp_policy::{EvalError, EvalInput, Evaluator, Evaluators, Mark, PolicyTable, Verdict};
use dlp_scan::RuleSet;
use domain::{Era, Limits, Policy, PolicyAction, PolicyBinding};
use mcp_codec::Message;

use super::*;
use crate::pipeline::{self, Attribution, Decoded, Release, ToClient, Whose};

fn doc(text: String) -> Document {
    Document::parse(text.into(), &mcp_codec::Limits::default()).expect("a document")
}

#[test]
fn what_is_kept_has_a_bound_whatever_a_server_says() {
    let mut said = Said::default();
    for n in 0..20 {
        let (name, text) = ("n".repeat(100_000), "é".repeat(100_000));
        let next = doc(format!("{{\"{n}{name}\":\"a{text}\",\"text\":\"{text}\"}}"));
        said.extend(&Said::of(&next, Vec::new()));
    }
    assert_eq!(said.tails.len(), TAILS_MAX);
    for tail in &said.tails {
        assert!(tail.name.len() <= NAME_BYTES_MAX && tail.text.len() <= TAIL_BYTES_MAX);
    }
    let seams = doc(format!("{{\"text\":\"{}\"}}", "é".repeat(100_000)));
    let seams = said.seams(&seams);
    assert_eq!(seams.len(), 1);
}

#[test]
fn a_text_goes_on_under_its_name_and_the_last_one_in_the_first() {
    // More values than anybody reads stand before it.
    let many = "\"x\",".repeat(1000);
    let first = doc(format!(
        "{{\"rows\":[{many}\"y\"],\"text\":\"one \",\"note\":\"two \"}}"
    ));
    let said = Said::of(&first, Vec::new());
    let next = doc("{\"id\":\"i\",\"data\":\"three\",\"text\":\"four\"}".into());
    let mut texts: Vec<String> = said
        .seams(&next)
        .iter()
        .map(|s| [&*s.tail.text, s.after].concat())
        .collect();
    texts.sort();
    assert_eq!(texts, ["one four", "two three"]);
}

/// A stream of log messages, one after the other, as they come out; none: it was blocked.
struct Stream {
    policy: PolicyTable,
    evaluators: Evaluators,
    said: Said,
}

impl Stream {
    fn under(action: PolicyAction) -> Self {
        let binding = PolicyBinding {
            tool: None,
            direction: None,
            category: Some("secret".into()),
            rule: None,
            action,
            form: None,
        };
        let policy = Policy {
            bindings: vec![binding],
            ..Policy::default()
        };
        let none = Policy::default();
        Self {
            policy: PolicyTable::compile(&none, &policy, RuleSet::builtin()).expect("a policy"),
            evaluators: Evaluators::default(),
            said: Said::default(),
        }
    }

    fn tell(&mut self, text: &str) -> Option<String> {
        let text = serde_json::Value::from(text);
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":{text}}}}}"#
        );
        let limits = Limits::default();
        let message = Message::decode(text.into(), &crate::codec_limits(&limits));
        let judge = Judge {
            rules: RuleSet::builtin(),
            tenant: "acme",
            policy: &self.policy,
            limits: &limits,
            attribution: Attribution::NoTool,
            schemas: None,
            era: Era::Handshake,
            evaluators: &self.evaluators,
            whose: Whose::default(),
            said: Some(&self.said),
        };
        let decoded = Decoded::<ToClient>::new(message.expect("a message"), Vec::new());
        let release = pipeline::run(decoded, &judge);
        let says = release.said();
        self.said.extend(&says);
        assert!(
            self.said
                .tails
                .iter()
                .all(|tail| tail.text.len() <= TAIL_BYTES_MAX)
        );
        match release {
            Release::Cleared(cleared) => {
                let sent = serde_json::from_slice::<serde_json::Value>(cleared.bytes());
                let sent = sent.expect("JSON");
                Some(sent["params"]["data"].as_str().expect("a text").to_owned())
            }
            Release::Blocked(_) => None,
        }
    }
}

/// Bytes that look random, and are the same each time.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

fn jwt() -> String {
    let part = |text: &[u8]| URL_SAFE_NO_PAD.encode(text);
    [
        part(br#"{"alg":"HS256","typ":"JWT"}"#),
        part(br#"{"sub":"8127","name":"Anna Lindqvist","iat":1763850000}"#),
        part(&noise(32)),
    ]
    .join(".")
}

/// The lines of a key of a few thousand bytes.
fn key() -> Vec<String> {
    let body = STANDARD.encode(noise(2349));
    let lines = body.as_bytes().chunks(64);
    let lines = lines.map(|line| String::from_utf8_lossy(line).into_owned());
    let dashes = |word: &str| format!("-----{word} RSA PRIVATE KEY-----");
    let mut all = vec![dashes("BEGIN")];
    all.extend(lines);
    all.push(dashes("END"));
    all
}

#[test]
fn what_goes_on_in_the_next_message_is_taken_out_there_as_well() {
    let jwt = jwt();
    let key = key();
    let (body, end) = (&key[1..key.len() - 1], &key[key.len() - 1]);
    let cut = |at: usize| vec![jwt[..at].to_owned(), jwt[at..].to_owned()];
    // From where it is known for what it is.
    let in_parts = |text: &str, from: usize, bytes: usize| {
        let (first, rest) = text.split_at(from);
        let rest = rest.as_bytes().chunks(bytes);
        let rest = rest.map(|part| String::from_utf8_lossy(part).into_owned());
        std::iter::once(first.to_owned()).chain(rest).collect()
    };
    let first_line = key[..2].join("\n");
    let given = |pieces: &[&str]| pieces.iter().map(|piece| (*piece).to_owned()).collect();
    let (head, _) = jwt.rsplit_once('.').expect("a signature");
    let long = format!("{head}.{}", URL_SAFE_NO_PAD.encode(noise(512)));
    let cases = [
        (
            "a password",
            vec!["password=Xk9vQ2mZ".into(), "r7Lp4Ts8Wd3".into()],
        ),
        ("a token, late in its signature", cut(jwt.len() - 9)),
        ("a token, early in its signature", cut(jwt.len() - 30)),
        (
            "a token, five bytes at a time",
            in_parts(&jwt, jwt.len() - 30, 5),
        ),
        (
            "a password, word by word",
            in_parts("password=Xk9vQ2mZr7Lp4Ts8Wd3nB5yH1cJ6gF0", 17, 4),
        ),
        ("a key, line for line", key.clone()),
        (
            "a key, with the line breaks",
            key.iter().map(|line| format!("{line}\n")).collect(),
        ),
        (
            "a key in two",
            vec![
                first_line.clone(),
                format!("\n{}\n{end}", body[1..].join("\n")),
            ],
        ),
        (
            "a key in two, nowhere a line break",
            vec![first_line, body[1..].concat()],
        ),
        ("a key without an end", [&key[..1], body].concat()),
        (
            "a key whose lines look like paths",
            key.iter()
                .map(|line| match line.starts_with('-') {
                    true => line.clone(),
                    false => format!("/{}", &line[1..]),
                })
                .collect(),
        ),
        (
            "a password, at a slash",
            given(&["password=Xk9vQ2mZ", "/r7Lp4Ts8"]),
        ),
        (
            "a key of letters, at a slash",
            given(&[
                "aws_secret_access_key = wJalrXUtnFEMIaK7MD",
                "/ENGabPxRfiCYzJq8WnTEs",
            ]),
        ),
        (
            "a token, around a slash",
            given(&[
                "Authorization: Bearer q8Zr4Lw2Xk9vT6nB1mYc7Hd3pQ",
                "Zk3/Lw9mYc7",
                "Xq8Wn3TEs5",
            ]),
        ),
        (
            "a password, consonants",
            given(&["password=Xk9vQ2mZ", "rlptswdbnyh", "7Lp4Ts8W"]),
        ),
        (
            "a password, capitals",
            given(&["password=Xk9vQ2mZ", "RLPTSWDBN", "7Lp4Ts8W"]),
        ),
        (
            "a password, byte by byte",
            in_parts("password=Xk9vQ2mZr7Lp4Ts8q8Wn3TEs", 17, 1),
        ),
        (
            "a password, two by two",
            in_parts("password=Xk9vQ2mZr7Lp4Ts8q8Wn3TEs", 17, 2),
        ),
        (
            "a password, in parts that begin alike",
            given(&["password=Xk9vQ2mZ", "aaaK7q", "aaaW2y", "zz9K3q", "qq8L4p"]),
        ),
        (
            "a long token, four bytes at a time",
            in_parts(&long, long.len() - 600, 4),
        ),
        (
            "a long token, three bytes at a time",
            in_parts(&long, long.len() - 600, 3),
        ),
    ];
    let mut faults = Vec::new();
    for action in [PolicyAction::Redact, PolicyAction::Block] {
        for (name, pieces) in &cases {
            let mut stream = Stream::under(action);
            stream.tell("before it");
            for (nth, piece) in pieces.iter().enumerate() {
                let came = stream.tell(piece).unwrap_or_default();
                // The first line of a key says nothing.
                let line = piece.trim_matches(|c: char| c == '-' || c.is_whitespace());
                // What stands in the place of a value holds letters, too.
                let shown = came
                    .split("[REDACTED")
                    .map(|text| text.split_once(']').map_or(text, |(_, rest)| rest))
                    .collect::<String>();
                let shows = shown.contains(&line[line.len().saturating_sub(9)..]);
                if shows && !line.ends_with("PRIVATE KEY") {
                    faults.push(format!("{action:?}, {name}, {nth}: {came}"));
                }
            }
            let after = "and that is all, said the server";
            let kept = |stream: &Stream| stream.said.tails[0].text.clone();
            if stream.tell(after).as_deref() != Some(after) || kept(&stream).trim() != after {
                faults.push(format!("{action:?}, {name}: {}", kept(&stream)));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// More is read where something is found up to the end of what was read.
#[test]
fn of_what_follows_no_more_is_read_than_may_be() {
    let long = |bytes: usize| STANDARD.encode(noise(bytes));
    for bytes in [100, 1000, 24_000, 90_000] {
        let mut stream = Stream::under(PolicyAction::Redact);
        stream.tell(&key()[..2].join("\n"));
        let came = stream.tell(&long(bytes)).expect("redacted");
        assert_eq!(came, "[REDACTED:private-key]", "{bytes}");
    }
}

#[test]
fn what_was_said_before_hides_no_half() {
    for before in ["step one", "a", "file 3 of 12", "step one.", "ok ok ok"] {
        for (one, other) in [
            ("AKIAQX7ZP3", "M5N2VJ4LTB"),
            ("ghp_Ky9Pf34qY6Nb3wWD25", "RQ4F5ZR3qa7y3gm1IL"),
            ("see ghp", "_Ky9Pf34qY6Nb3wWD25RQ4F5ZR3qa7y3gm1IL and so on"),
            ("see ghp_Ky9Pf34qY6Nb3wWD25RQ4F5ZR3qa7y3gm1", "IL and so on"),
            ("xoxb-739205816437-58264", "IL and so on"),
        ] {
            let mut stream = Stream::under(PolicyAction::Block);
            for text in [before, one] {
                assert_eq!(stream.tell(text).as_deref(), Some(text));
            }
            assert_eq!(stream.tell(other), None, "{before}, {one}");
        }
    }
}

#[test]
fn every_cut_of_a_token_over_two_messages() {
    let token = "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";
    for at in 1..token.len() {
        let mut stream = Stream::under(PolicyAction::Block);
        let (head, rest) = token.split_at(at);
        assert_eq!(stream.tell(head).as_deref(), Some(head));
        assert_eq!(stream.tell(rest), None, "cut at {at}");
    }
}

#[test]
fn what_is_whole_is_no_half() {
    for before in [
        "session_id=554ff985-6caa-4197-ac43-9971359c3446",
        "Info-level message - SessionId 554ff985-6caa-4197-ac43-9971359c3446",
        "password changed",
        "secret loaded from vault",
    ] {
        for text in [
            "Done, 3 files.",
            "Hello world",
            "Echo: x",
            "file-2024-01-05.tar.gz",
            "id 7",
        ] {
            let mut stream = Stream::under(PolicyAction::Redact);
            for text in [before, text, text] {
                assert_eq!(stream.tell(text).as_deref(), Some(text), "{before}");
            }
        }
    }
}

#[test]
fn what_begins_anew_is_left_alone() {
    for action in [PolicyAction::Redact, PolicyAction::Block] {
        for first in [format!("Using token {}", jwt()), "password=Xk9vQ2mZ".into()] {
            for next in [
                "Done",
                "Done.",
                "Connected to db1",
                "connected to the database",
                "INFO started",
                "[INFO] started",
                "2026-11-23T07:56:00Z started",
                "{\"ok\":true}",
                " and so on",
                "\nok",
                "Größe geändert",
                "10:32:01 INFO started",
                "GET /index.html",
                "/usr/bin/foo is there",
                "src/module1.rs",
                "3 rows",
                "12/100",
                "worker-1: started",
                "ok",
                "50%",
                "a1b2c3d4e5f6: Pulling fs layer",
                "/opt/MyApp2/bin/run.sh",
                "C:/Users/Anna/AppData/x1.log",
                "node18, npm 9",
                "https",
                "30215",
            ] {
                let mut stream = Stream::under(action);
                let came = stream.tell(&first);
                assert_ne!(came.as_deref(), Some(&*first));
                assert_eq!(stream.tell(next).as_deref(), Some(next), "{first}");
                assert!(!format!("{:?}", stream.said).contains("Xk9"));
            }
        }
    }
}

#[test]
fn what_stands_behind_a_rest_stays() {
    for (next, expected) in [
        ("r7Lp4Ts8,", "[REDACTED:generic-password],"),
        ("r7Lp4Ts8, and on", "[REDACTED:generic-password], and on"),
    ] {
        let mut stream = Stream::under(PolicyAction::Redact);
        stream.tell("password=Xk9vQ2mZ");
        assert_eq!(stream.tell(next).as_deref(), Some(expected));
    }
    // A number may be a part, and is none by itself.
    let mut stream = Stream::under(PolicyAction::Redact);
    for (text, expected) in [
        ("password=Xk9vQ2mZ", "password=[REDACTED:password-in-prose]"),
        ("48151623", "48151623"),
        ("7Lp4Ts8W", "[REDACTED:generic-password]"),
        ("481516", "481516"),
        ("done", "done"),
        ("7Lp4Ts8W", "7Lp4Ts8W"),
    ] {
        assert_eq!(stream.tell(text).as_deref(), Some(expected));
    }
}

/// Words with numbers look like parts of a value, and may come without end.
#[test]
fn a_value_has_an_end_whatever_looks_like_its_parts() {
    let mut stream = Stream::under(PolicyAction::Redact);
    stream.tell("password=Xk9vQ2mZ");
    let names = (1..=40).map(|n| format!("worker-{n}"));
    let whole = names.filter(|name| stream.tell(name).as_ref() == Some(name));
    assert!(whole.count() >= 35);
}

#[test]
fn what_is_only_logged_is_kept_as_any_text() {
    let mut stream = Stream::under(PolicyAction::Log);
    let first = format!("Using token {}", jwt());
    assert_eq!(stream.tell(&first).as_deref(), Some(&*first));
    assert_eq!(stream.said.tails[0].text, first);
}

#[test]
fn what_was_taken_out_and_is_over_is_not_kept() {
    let jwt = jwt();
    for (text, kept) in [
        (format!("Using {jwt} for it"), " for it"),
        (
            format!("Using {jwt}. And password=Xk9vQ2mZ"),
            ". And password=Xk9vQ2mZ",
        ),
    ] {
        let mut stream = Stream::under(PolicyAction::Redact);
        stream.tell(&text);
        assert_eq!(stream.said.tails[0].text, kept);
    }
}

#[test]
fn a_blocked_message_leaves_but_the_half_it_was_blocked_for() {
    let mut stream = Stream::under(PolicyAction::Block);
    let texts = |stream: &Stream| {
        let texts = stream.said.tails.iter().map(|tail| tail.text.clone());
        texts.collect::<String>()
    };
    stream.tell("before it");
    assert_eq!(stream.tell(&format!("{} is it", jwt())), None);
    assert_eq!(texts(&stream), "before it");
    assert_eq!(stream.tell("password=Xk9vQ2mZ"), None);
    assert_eq!(stream.tell("r7Lp4Ts8Wd3 is it"), None);
    assert_eq!(texts(&stream), "");
    assert_eq!(stream.tell("r7Lp4Ts8Wd3").as_deref(), Some("r7Lp4Ts8Wd3"));
}

/// Takes `badge` and what follows it out.
struct Badges;

impl Evaluator for Badges {
    fn name(&self) -> &str {
        "badges"
    }

    fn evaluate(&self, input: &EvalInput<'_>) -> Result<Verdict, EvalError> {
        let doc: serde_json::Value = serde_json::from_slice(input.json).expect("JSON");
        let at = doc["params"]["data"]
            .as_str()
            .and_then(|text| text.find("badge "));
        let mark = |at: usize| Mark {
            // Behind five names and three values.
            leaf: 8,
            start: at as u32,
            end: at as u32 + 11,
            label: "badge".into(),
            action: PolicyAction::Redact,
            replacement: None,
        };
        Ok(Verdict {
            marks: at.map(mark).into_iter().collect(),
            ..Verdict::default()
        })
    }
}

#[test]
fn what_a_plugin_takes_out_is_not_kept_either() {
    let mut stream = Stream::under(PolicyAction::Redact);
    let badges = Arc::new(Badges);
    stream.evaluators.add(None, None, badges).expect("no glob");
    let came = stream.tell("his badge 48151 opens it");
    assert_eq!(came.as_deref(), Some("his [REDACTED:badge] opens it"));
    assert_eq!(stream.said.tails[0].text, " opens it");
}
