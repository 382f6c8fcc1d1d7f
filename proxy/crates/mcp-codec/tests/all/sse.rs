//! Event streams: the grammar, cut at every byte, bounded; and written events read again.

use mcp_codec::sse::{Decoder, Event, KEEP_ALIVE, SseError, SseLimits, encode};
use mcp_codec::{Id, Limits, Whose};

const LIMITS: SseLimits = SseLimits {
    event_bytes_max: 64,
    line_bytes_max: 80,
    id_bytes_max: 8,
};

#[derive(Debug, Default, PartialEq)]
struct Seen {
    events: Vec<Event>,
    /// The error that stopped the stream, or what its end said.
    end: Option<SseError>,
    comments: u64,
}

fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Seen {
    let mut decoder = Decoder::new(LIMITS);
    let mut seen = Seen::default();
    for chunk in chunks {
        decoder.push(chunk);
        while let Some(Ok(event)) = decoder.next() {
            seen.events.push(event);
        }
    }
    seen.end = decoder.finish().err();
    seen.comments = decoder.comments();
    seen
}

fn data(text: &str) -> Event {
    Event {
        data: Some(text.to_owned().into()),
        ..Event::default()
    }
}

fn named(name: &str, event: Event) -> Event {
    Event {
        event: Some(name.into()),
        ..event
    }
}

fn with_id(id: &str, event: Event) -> Event {
    Event {
        id: Some(id.into()),
        ..event
    }
}

fn cases() -> Vec<(&'static [u8], Vec<Event>, Option<SseError>)> {
    use SseError::*;
    let retry = |retry_ms| Event {
        retry_ms: Some(retry_ms),
        ..Event::default()
    };
    vec![
        (b"", vec![], None),
        (b"data: x\n\n", vec![data("x")], None),
        (b"data:x\r\n\r\n", vec![data("x")], None),
        (b"data: x\r\r", vec![data("x")], None),
        (
            b"data: x\n\rdata: y\r\n\n",
            vec![data("x"), data("y")],
            None,
        ),
        (b"\xef\xbb\xbfdata: x\n\n", vec![data("x")], None),
        (b"\xef\xbb\xbf\n\xef\xbb\xbfdata: x\n\n", vec![], None),
        (b"\n\xef\xbb\xbfdata: x\n\n", vec![], None),
        (b"data:  x\n\n", vec![data(" x")], None),
        (
            b"data: a\ndata: b\ndata\ndata:\n\n",
            vec![data("a\nb\n\n")],
            None,
        ),
        (b"data\n\n", vec![data("")], None),
        (b"id: 1\ndata:\n\n", vec![with_id("1", data(""))], None),
        (
            b"id: 1\nretry: 500\ndata\n\n",
            vec![Event {
                retry_ms: Some(500),
                ..with_id("1", data(""))
            }],
            None,
        ),
        (b"retry: 500\n\n", vec![retry(500)], None),
        (b"retry: 3600000\n\n", vec![retry(3_600_000)], None),
        (
            b"retry: 500\nretry: 3600001\n\nretry: 4929420573595709\ndata: x\n\n",
            vec![retry(500), data("x")],
            None,
        ),
        (b"id\n\n", vec![with_id("", Event::default())], None),
        (
            b"event: message\ndata: {}\nid: a:b\n\n",
            vec![named("message", with_id("a:b", data("{}")))],
            None,
        ),
        (
            b"event: x\n\ndata: y\n\n",
            vec![named("x", Event::default()), data("y")],
            None,
        ),
        (
            b": one\n:two\n\ndata: x\n: three\ndata: y\n\n",
            vec![data("x\ny")],
            None,
        ),
        (KEEP_ALIVE, vec![], None),
        (b"unknown: x\ndatax: y\nData: z\n data: w\n\n", vec![], None),
        (b"id: a\0b\ndata: x\n\n", vec![data("x")], None),
        (
            b"retry: 5x\nretry:\nretry: -1\nretry: +1\ndata: x\n\n",
            vec![data("x")],
            None,
        ),
        (
            b"retry: 99999999999999999999999\ndata: x\n\n",
            vec![data("x")],
            None,
        ),
        (
            b"data: \xc3\xa9\xf0\x9f\x98\x80\n\n",
            vec![data("é😀")],
            None,
        ),
        (b"data: x\n", vec![], Some(Unterminated)),
        (b"data: x\n\ndata: y", vec![data("x")], Some(Unterminated)),
        (b"id: 1\n", vec![], Some(Unterminated)),
        (b"data: x\n\n: bye", vec![data("x")], None),
        (b"data: x\n\n:\n", vec![data("x")], None),
        (
            b"data: x\n\ndata: \xff\n\ndata: y\n\n",
            vec![data("x")],
            Some(NotUtf8),
        ),
        (b": \xff\n\n", vec![], Some(NotUtf8)),
        (b"id: 123456789\n\n", vec![], Some(IdTooLong)),
        (b"event: 123456789\n\n", vec![], Some(IdTooLong)),
        (
            b"id: 12345678\n\n",
            vec![with_id("12345678", Event::default())],
            None,
        ),
        (
            b"data: 0123456789012345678901234567890123456789012345678901234567890123\n\n",
            vec![data(
                "0123456789012345678901234567890123456789012345678901234567890123",
            )],
            None,
        ),
        (
            b"data: 01234567890123456789012345678901234567890123456789012345678901234\n\n",
            vec![],
            Some(EventTooLarge),
        ),
        (
            b"data: 0123456789012345678901234567890123456789\ndata: 01234567890123456789012\n\n",
            vec![data(
                "0123456789012345678901234567890123456789\n01234567890123456789012",
            )],
            None,
        ),
        (
            b"data: 0123456789012345678901234567890123456789\ndata: 012345678901234567890123\n\n",
            vec![],
            Some(EventTooLarge),
        ),
        (
            b"x: 0123456789012345678901234567890123456789012345678901234567890123456789012345678\n",
            vec![],
            Some(LineTooLong),
        ),
        (
            b":0123456789012345678901234567890123456789012345678901234567890123456789012345678901",
            vec![],
            Some(LineTooLong),
        ),
    ]
}

#[test]
fn streams_cut_at_every_byte() {
    for (input, events, end) in cases() {
        let name = String::from_utf8_lossy(input);
        let all_at_once = read([input]);
        assert_eq!(all_at_once.events, events, "{name:?}");
        assert_eq!(all_at_once.end, end, "{name:?}");
        assert_eq!(read(input.chunks(1)), all_at_once, "{name:?} byte by byte");
        for cut in 0..=input.len() {
            let (before, after) = input.split_at(cut);
            assert_eq!(read([before, after]), all_at_once, "{name:?} cut at {cut}");
            assert_eq!(
                read([before, b"".as_slice(), after]),
                all_at_once,
                "{name:?} cut at {cut}, with nothing between"
            );
        }
    }
}

#[test]
fn line_ends_do_not_matter() {
    let text = ": c\nid: 1\nevent: e\ndata: a\ndata: b\n\ndata: c\n\n";
    let expected = read([text.as_bytes()]);
    assert_eq!(expected.events.len(), 2);
    assert_eq!(expected.comments, 1);
    for end in ["\r", "\r\n"] {
        let other = text.replace('\n', end);
        assert_eq!(read(other.as_bytes().chunks(1)), expected);
        assert_eq!(read([other.as_bytes()]), expected);
    }
}

#[test]
fn an_endless_event_is_stopped_without_being_held() {
    for line in [b"data:\n".as_slice(), b"data: 0123456789\n"] {
        let mut decoder = Decoder::new(LIMITS);
        for _ in 0..100 {
            decoder.push(line);
        }
        assert_eq!(decoder.next(), Some(Err(SseError::EventTooLarge)));
        assert_eq!(
            decoder.next(),
            Some(Err(SseError::EventTooLarge)),
            "an error stays"
        );
    }
    let mut decoder = Decoder::new(LIMITS);
    for _ in 0..10_000 {
        decoder.push(b": ping\nother: x\n");
        assert_eq!(decoder.next(), None);
    }
    assert_eq!(decoder.comments(), 10_000);
}

#[test]
fn a_caller_that_never_takes_events_is_stopped() {
    let mut decoder = Decoder::new(LIMITS);
    for _ in 0..1000 {
        decoder.push(b"data: x\n\n");
    }
    let mut taken = 0;
    while let Some(Ok(_)) = decoder.next() {
        taken += 1;
    }
    assert!(taken < 10, "{taken}");
    assert_eq!(decoder.next(), Some(Err(SseError::NotDrained)));
}

#[test]
fn written_events_are_read_again() {
    let events = [
        data("{\"a\":1}"),
        data(""),
        data("a\nb"),
        data("\n"),
        data(" x"),
        named("message", with_id("5", data("x"))),
        Event {
            retry_ms: Some(3000),
            ..with_id("", data(""))
        },
        with_id(" a", Event::default()),
    ];
    let mut out = Vec::new();
    for event in &events {
        encode(&mut out, event);
    }
    let seen = read([out.as_slice()]);
    assert_eq!(seen.events, events);
    assert_eq!(seen.end, None);
}

#[test]
fn nothing_can_be_smuggled_through_a_written_event() {
    let mut out = Vec::new();
    encode(
        &mut out,
        &named(
            "a\ndata: evil\r\n\r\n",
            with_id("1\r\nid: 2", data("x\r\nid: 3\rretry: 1\n\ndata: y")),
        ),
    );
    let text = String::from_utf8(out).unwrap();
    assert_eq!(
        text,
        "id: 1id: 2\nevent: adata: evil\ndata: x\ndata: id: 3\ndata: retry: 1\ndata: \ndata: data: y\n\n"
    );
}

#[test]
fn no_text_in_debug_output() {
    let event = named("hunter2", with_id("hunter2", data("hunter2")));
    assert!(!format!("{event:?}").contains("hunter2"));
}

/// An event that is too long is read on as it would have been whole.
#[test]
fn a_long_event_is_read_piece_by_piece() {
    let long = "x".repeat(300);
    let cases: Vec<(String, Option<String>)> = vec![
        (format!("data: {long}\n\n"), Some(long.clone())),
        (format!("data:{long}\r\n\r\n"), Some(long.clone())),
        (
            format!("id: 7\rdata:  {long}\r\r"),
            Some(format!(" {long}")),
        ),
        (
            format!("data: {long}\ndata: b\ndata\ndata:c\nid: 9\n: note\n\nrest"),
            Some(format!("{long}\nb\n\nc")),
        ),
        (
            format!("data: {long}\ndatab: {long}\n\n"),
            Some(long.clone()),
        ),
        (
            format!("data: {long}\ndata: {long}\n\n"),
            Some(format!("{long}\n{long}")),
        ),
        (format!("data: {long}"), None),
        (format!("data: {long}\n"), None),
    ];
    let limits = SseLimits {
        event_bytes_max: 200,
        line_bytes_max: 220,
        id_bytes_max: 64,
    };
    for (text, expected) in cases {
        for size in [1, 2, 7, 64, 1000] {
            let mut decoder = Decoder::new(limits);
            let mut chunks = text.as_bytes().chunks(size);
            let mut long = loop {
                decoder.push(chunks.next().expect("it is too long"));
                if let Some(Err(_)) = decoder.next() {
                    break decoder.take_long().expect("a long event");
                }
            };
            assert_eq!(long.id.as_deref(), text.starts_with("id").then_some("7"));
            let mut data = long.take_begun();
            for chunk in chunks {
                data.extend_from_slice(&long.push(chunk));
            }
            let read = long.is_over().then(|| String::from_utf8(data).unwrap());
            assert_eq!(read, expected, "{size}: {text:.40}");
            assert!(decoder.take_long().is_none());
        }
    }
    // Where the data did not begin with the long line, it fails as ever.
    for text in [
        format!("data: a\ndata: {long}"),
        format!("id: {long}"),
        format!(": {long}"),
    ] {
        let mut decoder = Decoder::new(limits);
        decoder.push(text.as_bytes());
        assert!(decoder.next().expect("it failed").is_err());
        assert!(decoder.take_long().is_none(), "{text:.20}");
    }
}

/// The name of an event and whose message it had.
type Over = (Option<Box<str>>, Whose);

/// What a decoder that passes over gives of a stream in pieces: events, and what was passed over as their name and whose.
fn passed_over(pieces: &[&[u8]], hands_over: bool) -> (Vec<Event>, Vec<Over>) {
    let mut decoder = Decoder::new(LIMITS).passing_over(Limits::default());
    if hands_over {
        decoder.hand_over();
    }
    let (mut events, mut over) = (Vec::new(), Vec::new());
    for piece in pieces {
        decoder.push(piece);
        while let Some(event) = decoder.next() {
            match event {
                Ok(event) => events.push(event),
                Err(error) => panic!("{error}"),
            }
        }
        while let Some(next) = decoder.next_passed_over() {
            over.push((next.event, next.whose));
        }
    }
    (events, over)
}

#[test]
fn what_is_too_long_is_passed_over_wherever_the_stream_is_cut() {
    let long = "x".repeat(100);
    let answer = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"t":"{long}"}}}}"#);
    let late = format!(r#"{{"result":{{"t":"{long}"}},"jsonrpc":"2.0","id":7}}"#);
    let call = format!(r#"{{"jsonrpc":"2.0","id":"q","method":"m","params":{{"t":"{long}"}}}}"#);
    let word = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"t":"{long}"}}}}"#);
    let log = format!(r#"{{"id":7,"level":"info","error":"{long}"}}"#);
    let rows = r#"{"jsonrpc":"2.0","id":8,"#.to_owned()
        + "\ndata:"
        + &format!(r#""result":{{"t":"{}"}}"#, &long[..40])
        + "\ndata: }";
    let empty = format!("x{}", "\ndata".repeat(80));
    let id = Id::Number(7);
    for (message, whose) in [
        (&answer, Whose::Answer(id.clone())),
        (&late, Whose::Answer(id)),
        (&call, Whose::Call(Id::String("q".into()))),
        (&word, Whose::Word),
        (&log, Whose::Nobody),
        (&rows, Whose::Answer(Id::Number(8))),
        (&empty, Whose::Nobody),
    ] {
        for end in ["\n", "\r", "\r\n"] {
            let text = format!(
                "data: before\n\nevent: e\nid: 1\ndata: {message}\nid: 2\n\n: {long}\n{long}: y\nretry: {long}\ndata: after\n\n"
            );
            let text = text.replace('\n', end);
            let name = Some("e".into());
            let expected = (
                vec![data("before"), data("after")],
                vec![(name, whose.clone())],
            );
            for cut in 0..=text.len() {
                let (a, b) = text.as_bytes().split_at(cut);
                assert_eq!(
                    passed_over(&[a, b], false),
                    expected,
                    "{text:?} cut at {cut}"
                );
            }
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(passed_over(&bytes, false), expected, "{text:?}");
        }
    }
}

#[test]
fn an_event_that_may_be_an_answer_is_handed_over_and_no_other() {
    let long = "x".repeat(100);
    let word = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"t":"{long}"}}}}"#);
    let text = format!("data: {word}\n\ndata: after\n\n");
    let (events, over) = passed_over(&[text.as_bytes()], true);
    assert_eq!((events.len(), over.len()), (1, 1));
    let mut decoder = Decoder::new(LIMITS).passing_over(Limits::default());
    decoder.hand_over();
    decoder.push(format!("data: {{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"{long}").as_bytes());
    assert_eq!(decoder.next(), Some(Err(SseError::LineTooLong)));
    let mut event = decoder.take_long().expect("it can be read on");
    assert!(event.take_begun().starts_with(b"{\"jsonrpc\""));
}

#[test]
fn what_has_no_end_is_passed_over_up_to_a_bound() {
    for begun in [": ", "data: "] {
        let mut decoder = Decoder::new(LIMITS).passing_over(Limits::default());
        decoder.push(begun.as_bytes());
        let mut pieces = 0;
        while decoder.next().is_none() {
            decoder.push(&[b'x'; 1000]);
            pieces += 1;
        }
        assert_eq!(decoder.next(), Some(Err(SseError::EventTooLarge)));
        assert!((20..25).contains(&pieces), "{pieces}");
    }
}

#[test]
fn an_id_that_is_too_long_is_a_failure_all_the_same() {
    for field in ["id", "event"] {
        let mut decoder = Decoder::new(LIMITS).passing_over(Limits::default());
        decoder.push(format!("{field}: {}", "x".repeat(100)).as_bytes());
        assert_eq!(decoder.next(), Some(Err(SseError::LineTooLong)));
    }
}
