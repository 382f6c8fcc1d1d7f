//! The messages that are counted: fixed, varied, and of the shapes tools really return.
//!
//! The prose lies beside this file and never changes with the load generator; a change of it is a change of every count.

use bytes::Bytes;
use std::fmt::Write;

const PROSE: &str = include_str!("../inputs/prose.txt");

/// A GitHub token down to its check digits that is none. In two parts, so that no scanner stumbles over this file.
pub const TOKEN: &str = concat!("ghp_Q7dR2mXk9LwZtV4c", "NpB1sYhE6uJgA34eUZEa");

/// Clean prose of this many bytes, at most 64 KiB.
pub fn prose(bytes: usize) -> &'static str {
    let mut end = bytes.min(PROSE.len());
    while !PROSE.is_char_boundary(end) {
        end -= 1;
    }
    &PROSE[..end]
}

/// A call of a tool with one text.
pub fn call(text: &str) -> Bytes {
    Bytes::from(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":{{\"text\":{}}}}}}}",
        json(text)
    ))
}

/// The answer to it.
pub fn answer(text: &str) -> Bytes {
    Bytes::from(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":{}}}]}}}}",
        json(text)
    ))
}

/// An answer in which every character is escaped.
pub fn escaped(bytes: usize) -> Bytes {
    let mut text = String::with_capacity(bytes * 6);
    for unit in prose(bytes).encode_utf16() {
        let _ = write!(text, "\\u{unit:04x}");
    }
    Bytes::from(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}"
    ))
}

/// An answer to `tools/list`: many short leaves, keys and nested objects.
pub fn listing(tools: usize) -> Bytes {
    let lines: Vec<&str> = PROSE
        .split(['.', '\n'])
        .map(str::trim)
        .filter(|l| l.len() > 30)
        .collect();
    let tool = |n: usize| {
        let line = |k: usize| json(lines[(n * 7 + k) % lines.len()]);
        format!(
            "{{\"name\":\"tool_{n}\",\"title\":{},\"description\":{},\"inputSchema\":{{\"type\":\"object\",\"properties\":{{\
             \"query\":{{\"type\":\"string\",\"description\":{}}},\"limit\":{{\"type\":\"integer\",\"minimum\":1,\"maximum\":{}}},\
             \"order\":{{\"enum\":[\"newest\",\"oldest\",\"best\"]}}}},\"required\":[\"query\"]}}}}",
            line(0),
            line(1),
            line(2),
            100 + n
        )
    };
    let tools: Vec<String> = (0..tools).map(tool).collect();
    Bytes::from(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"tools\":[{}]}}}}",
        tools.join(",")
    ))
}

/// An answer of records as trackers and shops return them, of about so many bytes: short values, numbers, times and hashes,
/// which cost a scan twice what prose does.
pub fn records(bytes: usize) -> Bytes {
    let words: Vec<&str> = prose(8192)
        .split(|c: char| !c.is_ascii_alphabetic())
        .filter(|w| (3..10).contains(&w.len()))
        .collect();
    let mut x = 0x9E37_79B9_7F4A_7C15_u64;
    let mut below = |n: usize| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 32) as usize % n
    };
    let mut all = String::new();
    while all.len() < bytes {
        let mut word = || words[below(words.len())];
        let (title, file) = ([word(), word(), word()].join(" "), word());
        let (one, other) = (word(), word());
        let body: Vec<&str> = (0..24).map(|_| word()).collect();
        let _ = write!(
            all,
            "{}{{\"id\":{},\"title\":\"{title}\",\"created_at\":\"2026-{:02}-{:02}T{:02}:{:02}:00Z\",\
             \"path\":\"src/{file}.rs\",\"commit\":\"{:08x}{:08x}\",\"amount\":{}.{:02},\
             \"labels\":[\"{one}\",\"{other}\"],\"body\":\"{}\"}}",
            if all.is_empty() { "" } else { "," },
            below(1 << 20),
            1 + below(12),
            1 + below(28),
            below(24),
            below(60),
            below(1 << 32),
            below(1 << 32),
            below(1000),
            below(100),
            body.join(" "),
        );
    }
    Bytes::from(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"structuredContent\":{{\"records\":[{all}]}}}}}}"
    ))
}

/// Prose with personal data strewn in, `count` times.
pub fn personal(bytes: usize, count: usize) -> String {
    let text = prose(bytes);
    let step = text.len() / (count + 1);
    let mut out = String::with_capacity(bytes + count * 64);
    let mut from = 0;
    for n in 1..=count {
        let mut to = n * step;
        while !text.is_char_boundary(to) {
            to += 1;
        }
        out.push_str(&text[from..to]);
        let _ = write!(
            out,
            " her social security number is 219-09-{:04}, ",
            3100 + n * 7
        );
        from = to;
    }
    out + &text[from..]
}

/// Prose with a secret under base64 in it.
pub fn encoded_secret(bytes: usize) -> String {
    let inner = format!("{{\"note\":\"keep this\",\"token\":\"{TOKEN}\"}}");
    let text = prose(bytes);
    let half = text.len() / 2;
    let cut = (half..).find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    format!(
        "{} payload: {} {}",
        &text[..cut],
        base64(inner.as_bytes()),
        &text[cut..]
    )
}

/// An event stream of answers, about `bytes` long.
pub fn stream(bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes + 1024);
    for (n, line) in PROSE
        .split('\n')
        .filter(|line| !line.is_empty())
        .enumerate()
    {
        if out.len() >= bytes {
            break;
        }
        out.extend_from_slice(format!("id: {n}\nevent: message\ndata: ").as_bytes());
        out.extend_from_slice(&answer(line));
        out.extend_from_slice(b"\n\n");
    }
    out
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let n = three.iter().fold(0u32, |n, &b| n << 8 | u32::from(b)) << (8 * (3 - three.len()));
        for at in 0..4 {
            let sign = SIGNS[(n >> (18 - 6 * at)) as usize & 63];
            out.push(if at <= three.len() {
                char::from(sign)
            } else {
                '='
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_json() {
        for message in [
            call(prose(300)),
            answer(&personal(4096, 5)),
            escaped(4096),
            listing(40),
            answer(&encoded_secret(4096)),
        ] {
            serde_json::from_slice::<serde_json::Value>(&message).unwrap();
        }
    }

    #[test]
    fn texts_are_as_long_as_asked() {
        for bytes in [0, 300, 4096, 65_536] {
            assert!(
                prose(bytes).len() <= bytes && prose(bytes).len() + 4 > bytes,
                "{bytes}"
            );
        }
        assert!(stream(32 << 10).len() >= 32 << 10);
    }

    #[test]
    fn base64_of_known_texts() {
        let cases = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ];
        for (text, expected) in cases {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }
}
