//! Passwords that are words of small letters, which only the plain name of a password makes one.

use super::{Sink, Value};
use crate::names::Promise;
use crate::ruleset::Detector;
use crate::text::{Cell, Span};
use crate::value;

/// How sure.
const CONFIDENCE: u8 = 55;

/// What taking words apart costs: each of its parts is looked up.
const COST: u32 = 32;

fn is_of_words(told: &[u8], quoted: bool, sink: &mut Sink<'_>) -> bool {
    let letters = told
        .iter()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b" -_.".contains(b));
    letters && sink.limits.spend(COST) && value::is_of_words(told, quoted)
}

/// Reports such a value under the key of an object.
pub(super) fn believe_words(found: Span, promise: Promise, sink: &mut Sink<'_>) {
    let person = matches!(promise, Promise::Password | Promise::Passphrase);
    if person && is_of_words(&sink.text()[found.range()], true, sink) {
        sink.report_for(Detector::GenericPassword, found, Some(CONFIDENCE));
    }
}

/// The same of one that was read behind its name: in quotes, or up to the end of its line right behind the sign.
pub(super) fn believe_read_words(name: Span, found: Value, promise: Promise, sink: &mut Sink<'_>) {
    let person = matches!(promise, Promise::Password | Promise::Passphrase);
    let text = sink.text();
    let between = &text[name.end as usize..found.span.start as usize];
    let next = text.get(found.span.end as usize);
    let placed = match found.quoted {
        // Code, settings and members; not a word that a sentence puts in quotes.
        true => between.iter().any(|b| b":=".contains(b)),
        false => {
            matches!(between, b"=" | b": ")
                && matches!(next, None | Some(b'\n' | b'\r' | 0x1E | 0x1F))
        }
    };
    if person && placed && is_of_words(&text[found.span.range()], found.quoted, sink) {
        sink.report_for(Detector::GenericPassword, found.span, Some(CONFIDENCE));
    }
}

/// A passphrase that goes on over blanks: words of lower case and a number (`ribbon meadow zipper lantern 96`), or words alone up to the
/// end of what they stand in.
pub(super) fn drawn_from(text: &[u8], value: Span, cell: &Cell) -> Span {
    const PHRASE_BYTES_MAX: usize = 96;
    let start = value.start as usize;
    let rest = &text[start..(cell.span.end as usize).min(start + PHRASE_BYTES_MAX)];
    let upto = |part: fn(&&u8) -> bool| {
        let len = rest.iter().take_while(part).count();
        rest[..len].trim_ascii_end().len()
    };
    let small = |b: &&u8| b.is_ascii_lowercase() || b.is_ascii_digit() || **b == b' ';
    let len = upto(small);
    let drawn = |phrase: &[u8]| value::is_drawn(phrase) || value::is_listed(phrase, 4);
    if len > value.len() && drawn(&rest[..len]) {
        return Span::new(start, start + len);
    }
    let len = upto(|b| b.is_ascii_alphanumeric() || **b == b' ');
    let end = rest[len..].trim_ascii_start();
    let behind = &rest[len..];
    let line = behind.is_empty()
        || end.is_empty() && len < PHRASE_BYTES_MAX
        || behind[0] == b'\n'
        || behind[0] == b'\r'
        || matches!(
            behind,
            [b'.' | b',' | b')' | b';'] | [b'.' | b',' | b')' | b';', b' ' | b'\n', ..]
        );
    match len > value.len() && line && value::is_passphrase(&rest[..len], false) {
        true => Span::new(start, start + len),
        false => value,
    }
}
