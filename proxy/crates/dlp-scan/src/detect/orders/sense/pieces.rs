//! A sentence as pieces of words, by the vocabulary of the model whose meanings they have: small letters, the longest piece
//! that fits, `##` before one that goes on (WordPiece).

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

use super::net::NET;

/// What no piece begins with.
pub(super) const UNKNOWN: u16 = 0;
/// What stands for all addresses of mail, all links, all long names and all numbers.
const ADDRESS: u16 = 1;
const LINK: u16 = 2;
const LONG: u16 = 3;
const NUMBER: u16 = 4;

/// A word of more bytes is a name of something, or data.
const WORD_BYTES_MAX: usize = 24;
/// No piece of the vocabulary is longer.
const PIECE_BYTES_MAX: usize = 18;
/// Signs around a word are none of its bytes.
const SIGNS_AROUND: &[u8; 20] = b".,;:!?()[]{}<>\"'`_#-";
/// More of a sentence is not read; it has 360 bytes.
const PIECES_MAX: usize = 360;

/// The pieces of a sentence that was made [plain](super::plain::plain).
pub(super) fn read(plain: &str) -> Vec<u16> {
    let plain = straight(plain);
    let mut out = Vec::with_capacity(plain.len() / 4);
    for word in plain.split(' ').filter(|w| !w.is_empty()) {
        let bytes = word.as_bytes();
        if bytes.len() <= WORD_BYTES_MAX && bytes.iter().all(u8::is_ascii_lowercase) {
            split(bytes, &mut out);
        } else {
            match named(word) {
                Some(piece) => out.push(piece),
                None => runs(word, &mut out),
            }
        }
        if out.len() >= PIECES_MAX {
            break;
        }
    }
    out.truncate(PIECES_MAX);
    out
}

/// Is it a word of the vocabulary by itself?
pub(super) fn is_word(word: &str) -> bool {
    VOCABULARY.first.contains_key(word.as_bytes())
}

/// Curly quotation marks as the vocabulary has them.
fn straight(plain: &str) -> Cow<'_, str> {
    if plain.is_ascii() {
        return plain.into();
    }
    plain.replace(['“', '”'], "\"").replace('‘', "'").into()
}

/// Words that are not read letter by letter.
fn named(word: &str) -> Option<u16> {
    let bytes = word.as_bytes();
    let (mut digits, mut at, mut dot, mut colon) = (0, false, false, false);
    for byte in bytes {
        digits += usize::from(byte.is_ascii_digit());
        at |= *byte == b'@';
        dot |= *byte == b'.';
        colon |= *byte == b':';
    }
    if at && dot && word.chars().count() > 5 {
        return Some(ADDRESS);
    }
    if colon && word.contains("://") || dot && bytes.starts_with(b"www.") {
        return Some(LINK);
    }
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || !SIGNS_AROUND.contains(byte);
    let first = bytes.iter().position(inner).unwrap_or(bytes.len());
    let last = bytes.iter().rposition(inner).map_or(first, |at| at + 1);
    if last - first > WORD_BYTES_MAX {
        return Some(LONG);
    }
    (digits * 2 > last - first).then_some(NUMBER)
}

/// Letters and digits in a row, each sign by itself, and what is not ASCII as one.
fn runs(word: &str, out: &mut Vec<u16>) {
    let bytes = word.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let kind = kind(bytes[at]);
        let length = match kind {
            Kind::Sign => 1,
            _ => bytes[at..]
                .iter()
                .take_while(|b| self::kind(**b) == kind)
                .count(),
        };
        let run = &bytes[at..at + length];
        match kind {
            Kind::Sign => out.push(VOCABULARY.first.get(run).copied().unwrap_or(UNKNOWN)),
            Kind::Letters => split(run, out),
            Kind::Foreign => out.push(UNKNOWN),
        }
        at += length;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letters,
    Sign,
    Foreign,
}

fn kind(byte: u8) -> Kind {
    match byte {
        b if b.is_ascii_alphanumeric() => Kind::Letters,
        b if b.is_ascii() => Kind::Sign,
        _ => Kind::Foreign,
    }
}

fn split(run: &[u8], out: &mut Vec<u16>) {
    let begun = out.len();
    let mut at = 0;
    while at < run.len() {
        let pieces = match at {
            0 => &VOCABULARY.first,
            _ => &VOCABULARY.further,
        };
        let most = PIECE_BYTES_MAX.min(run.len() - at);
        let piece = |n| Some((*pieces.get(&run[at..at + n])?, n));
        let Some((piece, length)) = (1..=most).rev().find_map(piece) else {
            out.truncate(begun);
            out.push(UNKNOWN);
            return;
        };
        out.push(piece);
        at += length;
    }
}

/// The keys are the program's own, so nobody can choose them to collide.
type Pieces = HashMap<&'static [u8], u16, FixedState>;

struct Vocabulary {
    /// What a word may begin with.
    first: Pieces,
    /// What it may go on with.
    further: Pieces,
}

static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| {
    let mut vocabulary = Vocabulary {
        first: Pieces::with_capacity_and_hasher(1 << 15, FixedState::default()),
        further: Pieces::with_capacity_and_hasher(1 << 13, FixedState::default()),
    };
    for (number, piece) in NET.vocabulary() {
        match piece.strip_prefix(b"##") {
            Some(rest) if !rest.is_empty() => vocabulary.further.insert(rest, number),
            _ => vocabulary.first.insert(piece, number),
        };
    }
    vocabulary
});
