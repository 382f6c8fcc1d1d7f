//! Streams of events and lines: chunks do not matter, a plain reading of the standard gives the same, and what we write
//! is read again.
//!
//! Input: one byte that seeds the cuts, then the stream.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use mcp_codec::lines;
use mcp_codec::sse::{Decoder, Event, SseError, SseLimits, encode};

fuzz_target!(|data: &[u8]| {
    let Some((&seed, stream)) = data.split_first() else {
        return;
    };
    for limits in [
        SseLimits::default(),
        SseLimits {
            event_bytes_max: 12,
            line_bytes_max: 20,
            id_bytes_max: 3,
        },
    ] {
        let whole = events([stream], limits);
        assert_eq!(whole, events(stream.chunks(1), limits));
        assert_eq!(whole, events(chunks(stream, seed), limits));
        written_again(&whole.0);
    }
    if let Ok(text) = std::str::from_utf8(stream) {
        let (ours, end, _) = events([stream], SseLimits::default());
        if end.is_none() || end == Some(SseError::Unterminated) {
            assert_eq!(ours, reference(text));
        }
    }
    for line_bytes_max in [4, 1 << 20] {
        let whole = lines_of([stream], line_bytes_max);
        assert_eq!(whole, lines_of(stream.chunks(1), line_bytes_max));
        assert_eq!(whole, lines_of(chunks(stream, seed), line_bytes_max));
    }
    assert_eq!(lines_of([stream], 1 << 20).0, reference_lines(stream));
});

fn chunks(stream: &[u8], seed: u8) -> impl Iterator<Item = &[u8]> {
    let mut state = u32::from(seed);
    let mut rest = stream;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        let (chunk, after) = rest.split_at((state >> 16) as usize % 7 % (rest.len() + 1));
        rest = after;
        Some(chunk)
    })
}

type Read = (Vec<Event>, Option<SseError>, u64);

fn events<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, limits: SseLimits) -> Read {
    let mut decoder = Decoder::new(limits);
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.push(chunk);
        while let Some(Ok(event)) = decoder.next() {
            let data_len = event.data.as_ref().map_or(0, Bytes::len);
            assert!(data_len <= limits.event_bytes_max && event != Event::default());
            events.push(event);
        }
    }
    let end = decoder.finish().err();
    (events, end, decoder.comments())
}

fn written_again(events: &[Event]) {
    let mut out = Vec::new();
    events.iter().for_each(|event| encode(&mut out, event));
    let (again, end, comments) = self::events([out.as_slice()], SseLimits::default());
    assert_eq!((again.as_slice(), end, comments), (events, None, 0));
}

/// The standard, read with no regard for speed or memory.
fn reference(text: &str) -> Vec<Event> {
    let text = text
        .strip_prefix('\u{feff}')
        .unwrap_or(text)
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    let mut events = Vec::new();
    let mut event = Event::default();
    let mut data: Option<String> = None;
    let (whole, _unfinished) = text.rsplit_once('\n').unwrap_or_default();
    for line in whole
        .split('\n')
        .take(if text.contains('\n') { usize::MAX } else { 0 })
    {
        if line.is_empty() {
            let mut done = std::mem::take(&mut event);
            done.data = data.take().map(Bytes::from);
            events.extend(Some(done).filter(|done| *done != Event::default()));
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => data = Some(data.map_or(value.to_owned(), |data| data + "\n" + value)),
            "event" => event.event = Some(value.into()),
            "id" if !value.contains('\0') => event.id = Some(value.into()),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                event.retry_ms = value.parse().ok().or(event.retry_ms);
            }
            _ => {}
        }
    }
    events
}

type Lines = (Vec<Result<Bytes, lines::LineError>>, bool);

fn lines_of<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, line_bytes_max: usize) -> Lines {
    let mut decoder = lines::Decoder::new(line_bytes_max);
    let mut lines = Vec::new();
    for chunk in chunks {
        decoder.push(chunk);
        while let Some(line) = decoder.next() {
            assert!(line.as_ref().is_ok_and(|line| line.len() <= line_bytes_max) || line.is_err());
            lines.push(line);
        }
    }
    (lines, decoder.finish().is_ok())
}

fn reference_lines(stream: &[u8]) -> Vec<Result<Bytes, lines::LineError>> {
    let whole = stream
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(&stream[..0], |at| &stream[..at]);
    let lines = whole
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines
        .filter(|line| !line.is_empty())
        .map(|line| Ok(Bytes::copy_from_slice(line)))
        .collect()
}
