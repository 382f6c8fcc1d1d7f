//! A sentence as pieces of words, by the vocabulary of the model whose meanings they have: small letters, the longest piece
//! that fits, `##` before one that goes on (WordPiece).

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

use memchr::memchr;

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

/// The words of small letters in a text of ASCII.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    pub all: usize,
    /// Those of the vocabulary.
    pub known: usize,
}

/// The pieces of a sentence that was made [plain](super::plain::plain), and its words, if it is all ASCII.
pub(super) fn read(plain: &str) -> (Vec<u16>, Words) {
    let plain = straight(plain);
    let text = plain.as_bytes();
    let mut out = Vec::with_capacity(text.len() / 4);
    let (mut at, mut words) = (0, Words::default());
    while at < text.len() && out.len() < PIECES_MAX {
        // Most words are short and of the vocabulary.
        if let Some((piece, letters)) = short_word(&text[at..]) {
            out.push(piece);
            at += letters + 1;
            words.all += 1;
            words.known += 1;
            continue;
        }
        let letters = letters(&text[at..]);
        let rest = &text[at + letters..];
        let word = at..at + letters + memchr(b' ', rest).unwrap_or(rest.len());
        at = word.end + 1;
        if word.len() == letters && letters <= WORD_BYTES_MAX {
            let begun = out.len();
            split(text, word, &mut out);
            words.all += usize::from(letters > 0);
            words.known += usize::from(matches!(out[begun..], [piece] if piece != UNKNOWN));
        } else {
            words.count(&text[word.clone()]);
            match named(&plain[word.clone()]) {
                Some(piece) => out.push(piece),
                None => runs(text, word, &mut out),
            }
        }
    }
    out.truncate(PIECES_MAX);
    words.count(text.get(at..).unwrap_or_default());
    (out, words)
}

impl Words {
    fn count(&mut self, text: &[u8]) {
        let mut at = 0;
        while at < text.len() {
            let letters = letters(&text[at..]);
            if letters > 0 {
                self.all += 1;
                let known = VOCABULARY.first.get(text, at..at + letters);
                self.known += usize::from(known.is_some());
            }
            at += letters + 1;
        }
    }
}

/// Is it a word of the vocabulary by itself?
pub(super) fn is_word(word: &str) -> bool {
    VOCABULARY
        .first
        .get(word.as_bytes(), 0..word.len())
        .is_some()
}

fn letters(text: &[u8]) -> usize {
    let other = text.iter().position(|b| !b.is_ascii_lowercase());
    other.unwrap_or(text.len())
}

/// The word of up to seven small letters that a text begins with, if a blank follows and it is one piece, and its length.
#[inline]
fn short_word(text: &[u8]) -> Option<(u16, usize)> {
    const EACH: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = EACH << 7;
    let eight = u64::from_le_bytes(*text.first_chunk()?);
    // The high bit of each byte: from `a` on, and beyond `z`.
    let low = eight & !HIGH;
    let from_a = low + EACH * u64::from(0x80 - b'a');
    let beyond_z = low + EACH * u64::from(0x7F - b'z');
    let other = !(from_a & !beyond_z & !eight) & HIGH;
    let letters = other.trailing_zeros() as usize / 8;
    if letters == 0 || letters == 8 || text[letters] != b' ' {
        return None;
    }
    let piece = VOCABULARY
        .first
        .numbered(eight & (u64::MAX >> (64 - 8 * letters)))?;
    (piece != UNKNOWN).then_some((piece, letters))
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
fn runs(text: &[u8], word: Range<usize>, out: &mut Vec<u16>) {
    let mut at = word.start;
    while at < word.end {
        let kind = kind(text[at]);
        let length = match kind {
            Kind::Sign => 1,
            _ => text[at..word.end]
                .iter()
                .take_while(|b| self::kind(**b) == kind)
                .count(),
        };
        let run = at..at + length;
        at = run.end;
        match kind {
            Kind::Sign => out.push(VOCABULARY.first.get(text, run).unwrap_or(UNKNOWN)),
            Kind::Letters => split(text, run, out),
            Kind::Foreign => out.push(UNKNOWN),
        }
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

fn split(text: &[u8], run: Range<usize>, out: &mut Vec<u16>) {
    let begun = out.len();
    let mut at = run.start;
    while at < run.end {
        let pieces = match at == run.start {
            true => &VOCABULARY.first,
            false => &VOCABULARY.further,
        };
        let most = PIECE_BYTES_MAX.min(run.end - at);
        let piece = |n| Some((pieces.get(text, at..at + n)?, n));
        let Some((piece, length)) = (1..=most).rev().find_map(piece) else {
            out.truncate(begun);
            out.push(UNKNOWN);
            return;
        };
        out.push(piece);
        at += length;
    }
}

/// Pieces by their bytes, which are the program's own, so that nobody can choose them to collide.
struct Pieces {
    /// Those of up to eight bytes, as a number, each at the first free place from its own on; 0 is none.
    short: Box<[u64]>,
    /// Theirs.
    numbers: Box<[u16]>,
    long: HashMap<&'static [u8], u16, FixedState>,
}

impl Pieces {
    const SHORT_BYTES: usize = 8;

    fn new(pieces: &[(&'static [u8], u16)]) -> Self {
        let (short, long): (Vec<_>, Vec<_>) = pieces
            .iter()
            .partition(|(piece, _)| piece.len() <= Self::SHORT_BYTES);
        let places = (short.len() * 3 / 2).next_power_of_two();
        let mut all = Self {
            short: vec![0; places].into(),
            numbers: vec![0; places].into(),
            long: long.into_iter().collect(),
        };
        for (piece, number) in short {
            let key = Self::key(piece, 0..piece.len());
            let at = all.place(key);
            (all.short[at], all.numbers[at]) = (key, number);
        }
        all
    }

    #[inline]
    fn get(&self, text: &[u8], piece: Range<usize>) -> Option<u16> {
        if piece.len() > Self::SHORT_BYTES {
            return self.long.get(&text[piece]).copied();
        }
        self.numbered(Self::key(text, piece))
    }

    #[inline]
    fn numbered(&self, key: u64) -> Option<u16> {
        let at = self.place(key);
        (self.short[at] != 0).then(|| self.numbers[at])
    }

    /// Where it stands, or would.
    #[inline]
    fn place(&self, key: u64) -> usize {
        let last = self.short.len() - 1;
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & last;
        while self.short[at] != key && self.short[at] != 0 {
            at = (at + 1) & last;
        }
        at
    }

    /// One to eight bytes as a number.
    #[inline]
    fn key(text: &[u8], piece: Range<usize>) -> u64 {
        if let Some(eight) = text[piece.start..].first_chunk() {
            return u64::from_le_bytes(*eight) & (u64::MAX >> (64 - 8 * piece.len()));
        }
        let mut eight = [0; 8];
        eight[..piece.len()].copy_from_slice(&text[piece]);
        u64::from_le_bytes(eight)
    }
}

struct Vocabulary {
    /// What a word may begin with.
    first: Pieces,
    /// What it may go on with.
    further: Pieces,
}

static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| {
    let (mut first, mut further) = (Vec::new(), Vec::new());
    // What stands for all words of a kind has no letters.
    for (number, piece) in NET.vocabulary().filter(|(_, piece)| !piece.is_empty()) {
        match piece.strip_prefix(b"##") {
            Some(rest) if !rest.is_empty() => further.push((rest, number)),
            _ => first.push((piece, number)),
        };
    }
    Vocabulary {
        first: Pieces::new(&first),
        further: Pieces::new(&further),
    }
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_is_found_wherever_it_stands() {
        let pieces = |further: bool| {
            let pieces = NET.vocabulary().filter(|(_, piece)| !piece.is_empty());
            pieces.filter_map(move |(number, piece)| {
                let rest = piece.strip_prefix(b"##").filter(|rest| !rest.is_empty());
                match further {
                    true => Some((number, rest?)),
                    false => rest.is_none().then_some((number, piece)),
                }
            })
        };
        for (table, further) in [(&VOCABULARY.first, false), (&VOCABULARY.further, true)] {
            let known: HashMap<&[u8], u16> = pieces(further).map(|(n, p)| (p, n)).collect();
            assert!(known.len() > 4000);
            for (piece, number) in &known {
                for around in ["", "x", " and more text"] {
                    let text = [around.as_bytes(), piece, around.as_bytes()].concat();
                    let at = around.len()..around.len() + piece.len();
                    assert_eq!(table.get(&text, at), Some(*number));
                }
                // One letter less or more is another piece, or none.
                for other in [&piece[1..], &[piece, b"q".as_slice()].concat()] {
                    if !other.is_empty() {
                        let found = table.get(other, 0..other.len());
                        assert_eq!(found, known.get(other).copied());
                    }
                }
            }
        }
    }

    #[test]
    fn words_of_a_text_are_counted() {
        for (text, want) in [
            ("", (0, 0)),
            ("  ", (0, 0)),
            ("send it", (2, 2)),
            (" send,it-now! ", (3, 3)),
            ("zqxv send 12 mail", (3, 2)),
            ("don't", (2, 2)),
            ("mail sendmailnowplease", (2, 1)),
            ("a wordthatislongerthananyotherword", (2, 1)),
        ] {
            let (all, known) = want;
            assert_eq!(read(text).1, Words { all, known }, "{text}");
            // What stands behind all that is read counts as well.
            let long = format!("{}{text}", "it ".repeat(PIECES_MAX + 1));
            let (all, known) = (all + PIECES_MAX + 1, known + PIECES_MAX + 1);
            assert_eq!(read(&long).1, Words { all, known }, "{text}");
        }
    }
}
