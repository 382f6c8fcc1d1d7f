//! What is read piece by piece is what is read whole: on thousands of documents, sound and broken, cut anywhere.

use std::ops::Range;

use bytes::Bytes;
use mcp_codec::stream::{Event, MessageReader, Reader, StreamLimits};
use mcp_codec::{DecodeErrorKind, Document, Kind, LeafKind, Limits, Message, push_string};

/// A small generator of its own, so that a seed names a document for ever.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }
}

const KEYS: &[&str] = &[
    "a",
    "b",
    "name",
    "uri",
    "type",
    "text",
    "content",
    "_meta",
    "tools",
    "messages",
    "resource",
    "result",
    "error",
    "params",
    "task",
    "code",
    "message",
    "action",
    "é",
    "structuredContent",
    "inputRequests",
    "inputResponses",
    "progressToken",
    "ref",
    "arguments",
    "nextCursor",
    "method",
    "id",
    "contents",
];
/// Look-alikes of keys above.
const TWINS: &[&str] = &["naMe", "Text", "iſError", "Name", "Method", "progresstoken"];
const TEXTS: &[&str] = &[
    "",
    "x",
    "plain words",
    "é😀\u{2028}",
    "q\\\"\\\\",
    "\\n\\t\\b\\f\\r",
    "\\u0041\\u00e9",
    "\\ud83d\\ude00",
    "\\/",
    "\\u0000",
    "\\u001f\\u007F",
    "2.0",
    "tools/call",
    "a longer piece of text that goes on for more than thirty-two bytes, so that both loops are taken",
];
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "-12",
    "1.5",
    "1e5",
    "1E+5",
    "-0.0e-1",
    "9007199254740992",
    "9007199254740993",
    "123456789012345678901234567890",
];
const WHITE: &[&str] = &["", "", "", "", " ", "  ", "\n", "\t ", "\r\n"];

fn text(dice: &mut Dice, out: &mut String) {
    out.push('"');
    for _ in 0..dice.roll(3) {
        out.push_str(dice.pick(TEXTS));
    }
    out.push('"');
}

fn value(dice: &mut Dice, depth: usize, out: &mut String) {
    out.push_str(dice.pick(WHITE));
    match dice.roll(if depth == 0 { 6 } else { 10 }) {
        0 | 1 => text(dice, out),
        2 | 3 => out.push_str(dice.pick(NUMBERS)),
        4 => out.push_str(dice.pick(&["true", "false", "null"])),
        5 => out.push_str(dice.pick(&["{}", "[]", "[ ]", "{ }"])),
        6 | 7 => {
            out.push('[');
            for n in 0..dice.roll(5) {
                out.push_str(if n > 0 { "," } else { "" });
                value(dice, depth - 1, out);
            }
            out.push(']');
        }
        _ => object(dice, depth - 1, &[], out),
    }
    out.push_str(dice.pick(WHITE));
}

fn object(dice: &mut Dice, depth: usize, first: &[String], out: &mut String) {
    out.push('{');
    let mut seen: Vec<&str> = Vec::new();
    for (n, member) in first.iter().enumerate() {
        out.push_str(if n > 0 { "," } else { "" });
        out.push_str(member);
    }
    for _ in 0..dice.roll(if first.is_empty() { 24 } else { 3 }) {
        let key = match dice.roll(60) {
            0 => dice.pick(TWINS),
            _ => dice.pick(KEYS),
        };
        // A second key now and then.
        if seen.contains(&key) && dice.roll(100) > 0 {
            continue;
        }
        if !seen.is_empty() || !first.is_empty() {
            out.push(',');
        }
        seen.push(key);
        out.push_str(dice.pick(WHITE));
        out.push_str(&format!("\"{key}\""));
        out.push_str(dice.pick(WHITE));
        out.push(':');
        value(dice, depth, out);
    }
    out.push('}');
}

/// Something like a message: its envelope mostly right.
fn message(dice: &mut Dice) -> String {
    let mut members: Vec<String> = Vec::new();
    if dice.roll(40) > 0 {
        members.push(r#""jsonrpc":"2.0""#.into());
    }
    if dice.roll(12) > 0 {
        let id = dice.pick(&["1", "\"a\"", "null", "1.5", "-0", "\"\\u0000\"", "{}", "-7"]);
        members.push(format!("\"id\":{id}"));
    }
    let mut inner = String::new();
    object(dice, 3, &[], &mut inner);
    match dice.roll(5) {
        0 | 1 => {
            members.push(format!(
                "\"method\":\"{}\"",
                dice.pick(&["tools/call", "x", "", "a\\u0000"])
            ));
            members.push(format!("\"params\":{inner}"));
        }
        2 => members.push(format!("\"result\":{inner}")),
        3 => members.push(format!(
            "\"error\":{{\"code\":{},\"message\":\"m\"}}",
            dice.pick(NUMBERS)
        )),
        _ => members.push(format!("\"params\":{inner}")),
    }
    let at = dice.roll(members.len());
    members.rotate_left(at);
    let mut out = String::new();
    object(dice, 1, &members, &mut out);
    out
}

/// Breaks a document somewhere, or nearly so.
fn mutate(dice: &mut Dice, text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=dice.roll(2) {
        let at = dice.roll(bytes.len().max(1));
        let odd: &[&[u8]] = &[
            b"\"",
            b"{",
            b"}",
            b"[",
            b"]",
            b",",
            b":",
            b"\\",
            b"\\u",
            b"\\ud800",
            b"0",
            b"-",
            b"e",
            b".",
            b" ",
            b"\n",
            b"\0",
            b"\xff",
            b"\xc3",
            b"\xed\xa0\x80",
            b"t",
            b"nul",
            b"\xef\xbb\xbf",
        ];
        match dice.roll(4) {
            0 if !bytes.is_empty() => drop(bytes.remove(at)),
            1 if !bytes.is_empty() => bytes[at] = odd[dice.roll(odd.len())][0],
            2 => bytes.truncate(at),
            _ => {
                let piece = odd[dice.roll(odd.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
        }
    }
    bytes
}

fn limits() -> Limits {
    Limits {
        depth_max: 12,
        number_bytes_max: 24,
        ..Limits::default()
    }
}

fn pieces<'a>(dice: &mut Dice, bytes: &'a [u8]) -> Vec<&'a [u8]> {
    let longest = [1, 2, 7, 64, 100_000][dice.roll(5)];
    let (mut rest, mut out) = (bytes, Vec::new());
    while !rest.is_empty() {
        let (piece, after) = rest.split_at((1 + dice.roll(longest)).min(rest.len()));
        out.push(piece);
        rest = after;
    }
    out
}

/// Every leaf as it was read, and the document as we would write it.
#[derive(Default)]
struct Read {
    leaves: Vec<(LeafKind, String)>,
    written: Vec<u8>,
    places: Vec<(String, Range<u64>)>,
}

impl Read {
    fn event(&mut self, event: Event<'_>, raw: Range<u64>) -> Result<(), DecodeErrorKind> {
        match event {
            Event::Spaces(count) => self.written.extend(std::iter::repeat_n(b' ', count)),
            Event::Open(kind) => self
                .written
                .push(if kind == Kind::Object { b'{' } else { b'[' }),
            Event::Close(kind) => self
                .written
                .push(if kind == Kind::Object { b'}' } else { b']' }),
            Event::Comma => self.written.push(b','),
            Event::Colon => self.written.push(b':'),
            Event::Key(key) => {
                self.leaves.push((LeafKind::Key, key.into()));
                push_string(&mut self.written, key);
            }
            Event::TextStart => self.leaves.push((LeafKind::String, String::new())),
            Event::Text(piece) => {
                assert!(!piece.is_empty());
                self.places.push((piece.into(), raw));
                self.leaves.last_mut().expect("it began").1.push_str(piece);
            }
            Event::TextEnd => {
                let text = self.leaves.last().expect("it began").1.clone();
                push_string(&mut self.written, &text);
            }
            Event::Number(text) => {
                self.leaves.push((LeafKind::Number, text.into()));
                self.written.extend_from_slice(text.as_bytes());
            }
            Event::Word(Kind::True) => self.written.extend_from_slice(b"true"),
            Event::Word(Kind::False) => self.written.extend_from_slice(b"false"),
            Event::Word(_) => self.written.extend_from_slice(b"null"),
        }
        Ok(())
    }
}

fn read(pieces: &[&[u8]]) -> Result<Read, DecodeErrorKind> {
    let mut seen = Read::default();
    let mut sink = |event: Event<'_>, raw: Range<u64>| seen.event(event, raw);
    let mut reader = Reader::new(StreamLimits::of(&limits(), 1 << 30));
    for piece in pieces {
        reader.push(piece, &mut sink).map_err(|e| e.kind)?;
    }
    reader.finish(&mut sink).map_err(|e| e.kind)?;
    Ok(seen)
}

#[test]
fn documents_in_pieces_are_accepted_and_read_as_whole_ones() {
    let (mut sound, mut broken) = (0, 0);
    for seed in 0..30_000 {
        let mut dice = Dice(seed);
        let mut text = String::new();
        value(&mut dice, 5, &mut text);
        let bytes = match dice.roll(3) {
            0 => text.into_bytes(),
            _ => mutate(&mut dice, &text),
        };
        let whole = Document::parse(Bytes::from(bytes.clone()), &limits());
        // The whole reader names a NUL in a key later, where it reads messages.
        let whole = whole.map_err(|e| e.kind).and_then(|doc| {
            let nul =
                |leaf: mcp_codec::Leaf<'_>| leaf.kind == LeafKind::Key && leaf.text.contains('\0');
            match doc.leaves().any(nul) {
                true => Err(DecodeErrorKind::NulInProtocolString),
                false => Ok(doc),
            }
        });
        let shown = String::from_utf8_lossy(&bytes);
        match (whole, read(&pieces(&mut dice, &bytes))) {
            (Err(_), Err(_)) => broken += 1,
            (Ok(doc), Ok(read)) => {
                sound += 1;
                let leaves: Vec<_> = doc.leaves().map(|l| (l.kind, l.text.to_owned())).collect();
                assert_eq!(read.leaves, leaves, "seed {seed}: {shown}");
                if doc.is_canonical() {
                    assert_eq!(read.written, bytes, "seed {seed}: {shown}");
                }
                let again = Document::parse(read.written.into(), &limits()).expect("our own words");
                assert!(again.is_canonical(), "seed {seed}: {shown}");
                assert!(
                    again
                        .leaves()
                        .map(|l| l.text)
                        .eq(doc.leaves().map(|l| l.text))
                );
                for (piece, raw) in read.places {
                    let raw = &bytes[raw.start as usize..raw.end as usize];
                    // One character alone may be the end of an escape that was cut.
                    let plain = piece.len() > 1 && piece.is_ascii();
                    assert!(
                        !plain || raw.starts_with(piece.as_bytes()),
                        "seed {seed}: {shown}"
                    );
                }
            }
            (whole, read) => panic!(
                "seed {seed}: whole {:?}, in pieces {:?}: {shown}",
                whole.map(|_| ()),
                read.map(|_| ())
            ),
        }
    }
    assert!(
        sound > 8_000 && broken > 8_000,
        "{sound} sound, {broken} broken"
    );
}

fn message_in(pieces: &[&[u8]]) -> Result<mcp_codec::stream::Facts, DecodeErrorKind> {
    let mut sink = |_: Event<'_>, _: Range<u64>| Ok(());
    let mut reader = MessageReader::new(StreamLimits::of(&limits(), 1 << 30));
    for piece in pieces {
        reader.push(piece, &mut sink).map_err(|e| e.kind)?;
    }
    reader.finish(&mut sink).map_err(|e| e.kind)?;
    Ok(reader.facts().clone())
}

#[test]
fn messages_in_pieces_are_accepted_as_whole_ones() {
    let (mut sound, mut broken, mut stricter) = (0, 0, 0);
    for seed in 0..60_000 {
        let mut dice = Dice(seed ^ 0x5eed_0000);
        let text = message(&mut dice);
        let bytes = match dice.roll(4) {
            0 => mutate(&mut dice, &text),
            _ => text.into_bytes(),
        };
        let whole = Message::decode(Bytes::from(bytes.clone()), &limits());
        let shown = String::from_utf8_lossy(&bytes);
        match (whole, message_in(&pieces(&mut dice, &bytes))) {
            (Err(_), Err(_)) => broken += 1,
            (Ok(whole), Ok(facts)) => {
                sound += 1;
                assert_eq!(facts.kind(), Ok(whole.kind()), "seed {seed}: {shown}");
                assert_eq!(
                    facts.id.flatten().as_ref(),
                    whole.id(),
                    "seed {seed}: {shown}"
                );
                assert_eq!(
                    facts.method.as_deref(),
                    whole.method(),
                    "seed {seed}: {shown}"
                );
                let name = whole.params().and_then(|p| whole.doc().member(p, "name"));
                let name = name.and_then(|n| whole.doc().str(n));
                if whole.method().is_some() {
                    assert_eq!(facts.name.as_deref(), name, "seed {seed}: {shown}");
                }
            }
            // What would excuse the key stands elsewhere or comes later: documented with the reader.
            (Ok(_), Err(DecodeErrorKind::FoldedKey | DecodeErrorKind::NulInProtocolString)) => {
                stricter += 1;
            }
            (Ok(whole), Err(DecodeErrorKind::BadParams | DecodeErrorKind::NameTooLong)) => {
                assert!(whole.method().is_none(), "seed {seed}: {shown}");
                stricter += 1;
            }
            (whole, read) => panic!(
                "seed {seed}: whole {:?}, in pieces {:?}: {shown}",
                whole.map(|_| ()),
                read.map(|_| ())
            ),
        }
    }
    assert!(
        sound > 3_000 && broken > 5_000,
        "{sound} sound, {broken} broken"
    );
    assert!(
        stricter < sound / 20,
        "{stricter} of {sound} refused without need"
    );
}

#[test]
fn what_only_pieces_refuse_is_refused_by_name() {
    let tight = StreamLimits {
        bytes_max: 4096,
        key_bytes_max: 16,
        open_keys_max: 24,
        ..StreamLimits::of(&limits(), 0)
    };
    let keys = |n: usize| {
        let keys: Vec<String> = (0..n).map(|n| format!("\"k{n}\":{n}")).collect();
        format!("{{{}}}", keys.join(","))
    };
    let cases = [
        (format!("{{\"{}\":1}}", "k".repeat(16)), None),
        (
            format!("{{\"{}\":1}}", "k".repeat(17)),
            Some(DecodeErrorKind::KeyTooLong),
        ),
        (keys(24), None),
        (keys(25), Some(DecodeErrorKind::TooManyKeys)),
        (format!("[{},{}]", keys(24), keys(24)), None),
        (format!("{{\"a\":{},\"b\":{}}}", keys(23), keys(22)), None),
        (
            format!("{{\"a\":{}}}", keys(24)),
            Some(DecodeErrorKind::TooManyKeys),
        ),
        (
            format!("{{\"a\":1,{}", &keys(18)[1..]).replace("k17", "a"),
            Some(DecodeErrorKind::DuplicateKey),
        ),
        (
            keys(20).replace("k19", "k18"),
            Some(DecodeErrorKind::DuplicateKey),
        ),
        (format!("\"{}\"", "x".repeat(4094)), None),
        (
            format!("\"{}\"", "x".repeat(4095)),
            Some(DecodeErrorKind::TooLarge),
        ),
    ];
    for (text, expected) in cases {
        for size in [1, 5, 10_000] {
            let mut sink = |_: Event<'_>, _: Range<u64>| Ok(());
            let mut reader = Reader::new(tight);
            let pushed = text
                .as_bytes()
                .chunks(size)
                .try_for_each(|piece| reader.push(piece, &mut sink));
            let outcome = pushed.and_then(|()| reader.finish(&mut sink));
            assert_eq!(outcome.err().map(|e| e.kind), expected, "{text:.60}");
        }
    }
}

#[test]
fn after_a_refusal_nothing_is_read() {
    let mut events = 0;
    let mut sink = |_: Event<'_>, _: Range<u64>| {
        events += 1;
        Ok(())
    };
    let mut reader = Reader::new(StreamLimits::of(&limits(), 1 << 20));
    let first = reader
        .push(b"[1,}", &mut sink)
        .expect_err("a trailing comma");
    assert_eq!(first.kind, DecodeErrorKind::TrailingComma);
    assert_eq!(reader.push(b"2]", &mut sink), Err(first.clone()));
    assert_eq!(reader.finish(&mut sink), Err(first));
    assert_eq!(events, 3);
}
