//! Numbers and codes that are read out: `four seven double one`, `vier sieben eins`, `Alpha Bravo seven`.

mod words;

use words::{DIGITS, LETTERS};

use super::marks::Mark;
use super::{Spawner, child_around};
use crate::Layer;
use crate::text::{Cell, How, NO_LEAF, Node, Span};

/// Longest word. A row has as many as it has: none is read again in the next.
const WORD_BYTES_MAX: usize = 24;
/// Characters of a shorter row are no number of anything.
const CHARS_MIN: usize = 6;

pub(super) fn decode(node: &Node, marks: &[(u32, Mark)], spawn: &mut Spawner<'_>) {
    let (mut index, mut done) = (0, 0);
    for (at, mark) in marks {
        let at = *at as usize;
        if at < done || !matches!(mark, Mark::Spoken | Mark::Morse) {
            continue;
        }
        let Some(cell) = node.cell_from(at, &mut index).filter(|c| c.leaf != NO_LEAF) else {
            continue;
        };
        if *mark == Mark::Morse {
            done = morse(node, cell, (at, done), spawn).max(at + 1);
            continue;
        }
        let (mut words, mut end) = row_around(&node.text, at, done, cell);
        let (run, run_end) = glued(&node.text, at, done, cell);
        if run.len() > words.len() {
            (words, end) = (run, run_end);
        }
        done = end.max(at + 1);
        let (Some(first), Some(last)) = (words.first(), words.last()) else {
            continue;
        };
        let place = (first.1.start as usize, last.1.end as usize);
        let letters = words
            .iter()
            .filter(|(w, _)| matches!(w, Word::Letter(_)))
            .count();
        let plain = plain_of(&words, letters > 1);
        let count = plain
            .iter()
            .filter(|(c, _)| c.is_ascii_alphanumeric())
            .count();
        if count < CHARS_MIN {
            continue;
        }
        let digits: Vec<u8> = plain.iter().map(|(c, _)| *c).collect();
        child_around(node, cell, Layer::Codes, place, spawn, |child| {
            if is_phone(&digits) {
                child.push(b"tel ", Span::new(place.0, place.0 + 1), How::Atom);
            }
            for (c, span) in &plain {
                child.push(&[*c], *span, How::Atom);
            }
            child.push(b" ", Span::new(place.1 - 1, place.1), How::Atom);
        });
    }
}

/// Nobody reads out ten digits with a zero before them but for a phone's number, and in China eleven that begin as mobiles do.
pub(super) fn is_phone(digits: &[u8]) -> bool {
    let seen = |d: &u8| digits.contains(d);
    let kinds = (b'0'..=b'9').filter(seen).count();
    let area = (10..=11).contains(&digits.len()) && digits[0] == b'0' && digits[1] != b'0';
    let mobile = digits.len() == 11 && digits[0] == b'1' && matches!(digits[1], b'3'..=b'9');
    kinds >= 4 && digits.iter().all(u8::is_ascii_digit) && (area || mobile)
}

/// The row of Morse code around the place; gives where it ends. Nothing before `floor` is looked at.
fn morse(node: &Node, cell: &Cell, (at, floor): (usize, usize), spawn: &mut Spawner<'_>) -> usize {
    let text = &node.text[..cell.span.end as usize];
    let floor = floor.max(cell.span.start as usize);
    let code = |b: &&u8| matches!(b, b'.' | b'-' | b' ' | b'/');
    let before = text[floor..at].iter().rev().take_while(code).count();
    let after = text[at..].iter().take_while(code).count();
    let row = &text[at - before..at + after];
    let start = at - before + row.len() - row.trim_ascii_start().len();
    let end = start + row.trim_ascii().len();
    let (mut plain, mut from) = (Vec::new(), start);
    for sign in row.trim_ascii().split(|b| *b == b' ') {
        let span = Span::new(from, from + sign.len());
        from += sign.len() + 1;
        match MORSE.iter().position(|m| m.as_bytes() == sign) {
            Some(n) => plain.push((b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"[n], span)),
            // Words are parted by it.
            None if sign == b"/" => plain.push((b' ', span)),
            None if sign.is_empty() => {}
            None => return at + after,
        }
    }
    if plain.len() >= CHARS_MIN && end > start {
        child_around(node, cell, Layer::Codes, (start, end), spawn, |child| {
            for (c, span) in &plain {
                child.push(&[*c], *span, How::Atom);
            }
            child.push(b" ", Span::new(end - 1, end), How::Atom);
        });
    }
    at + after
}

/// ITU-R M.1677: the letters, then the digits.
const MORSE: [&str; 36] = [
    ".-", "-...", "-.-.", "-..", ".", "..-.", "--.", "....", "..", ".---", "-.-", ".-..", "--",
    "-.", "---", ".--.", "--.-", ".-.", "...", "-", "..-", "...-", ".--", "-..-", "-.--", "--..",
    "-----", ".----", "..---", "...--", "....-", ".....", "-....", "--...", "---..", "----.",
];

/// What a word stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Digit(u8),
    Letter(u8),
    /// A digit in one language, a letter in the alphabet of aviators.
    Either(u8, u8),
    Sign(u8),
    /// The next one so many times.
    Times(u8),
    /// `fifty`: with the digit behind it one number of two figures.
    Tens(u8),
    /// `eleven`: as much above ten.
    Teen(u8),
}

/// The row of such words around the place, and where it ends. Nothing before `floor` is looked at. Figures may stand in it
/// (`5393 zero one six`), where most of it is in words.
fn row_around(text: &[u8], at: usize, floor: usize, cell: &Cell) -> (Vec<(Word, Span)>, usize) {
    let (words, end) = row_of(text, at, floor, cell, true);
    let figures = words.iter().filter(|(_, span)| span.end == span.start + 1);
    let (figures, all) = (figures.count(), words.len());
    if figures > 0 && all - figures < SPOKEN_MIN {
        return row_of(text, at, floor, cell, false);
    }
    (words, end)
}

/// Of a row with figures in it, so many are words at least.
const SPOKEN_MIN: usize = 4;
/// Longest group of figures in such a row.
const FIGURES_MAX: usize = 6;

/// The digits that a text ends with or begins with, none of a longer number.
fn figures(digits: impl Iterator<Item = u8>) -> usize {
    let count = digits.take(FIGURES_MAX + 1).take_while(u8::is_ascii_digit);
    match count.count() {
        len if len <= FIGURES_MAX => len,
        _ => 0,
    }
}

fn row_of(
    text: &[u8],
    at: usize,
    floor: usize,
    cell: &Cell,
    figured: bool,
) -> (Vec<(Word, Span)>, usize) {
    let digit = |n: usize| (Word::Digit(text[n] - b'0'), Span::new(n, n + 1));
    let (floor, ceil) = (floor.max(cell.span.start as usize), cell.span.end as usize);
    let mut at = at;
    while at < ceil && !of_word(text[at]) {
        at += 1;
    }
    let mut start = at;
    while start > floor && of_word(text[start - 1]) && at - start < WORD_BYTES_MAX {
        start -= 1;
    }
    let mut words = Vec::new();
    // Backwards, word by word.
    let mut before = start;
    loop {
        let end = before - gap_before(&text[floor..before]);
        let from = end - word_len(&text[floor..end], true);
        let len = figures(text[floor..end].iter().rev().copied());
        if figured && from == end && end < before && len > 0 {
            let head = end - len;
            if head > floor && !of_gap(text[head - 1]) && text[head - 1] != b':' {
                break;
            }
            words.extend((head..end).rev().map(digit));
            before = head;
            continue;
        }
        let Some(word) = word(&text[from..end]).filter(|_| end < before && from < end) else {
            break;
        };
        if parts_words(&text[end..before]) {
            words.push((Word::Sign(b' '), Span::new(end, before)));
        }
        words.push((word, Span::new(from, end)));
        before = from;
    }
    words.reverse();
    let mut next = start;
    loop {
        let len = word_len(&text[next..ceil], false);
        let count = figures(text[next..ceil].iter().copied());
        let apart = |n: usize| text[..ceil].get(n).is_none_or(|b| !of_word(*b));
        let len = if figured && len == 0 && count > 0 && apart(next + count) {
            words.extend((next..next + count).map(digit));
            count
        } else if let Some(word) = word(&text[next..next + len]) {
            words.push((word, Span::new(next, next + len)));
            len
        } else {
            break;
        };
        let gap = text[next + len..ceil]
            .iter()
            .take(3)
            .take_while(|b| of_gap(**b))
            .count();
        let end = next + len;
        next = end + gap;
        if gap == 0 {
            break;
        }
        if parts_words(&text[end..next]) {
            words.push((Word::Sign(b' '), Span::new(end, next)));
        }
    }
    // Signs and counts at the ends belong to the sentence.
    let inner = |w: &(Word, Span)| !matches!(w.0, Word::Sign(_));
    let first = words.iter().position(inner).unwrap_or(words.len());
    let last = words
        .iter()
        .rposition(|w| inner(w) && !matches!(w.0, Word::Times(_)) || w.0 == Word::Sign(b'!'));
    (
        words[first..last.map_or(first, |n| n + 1).max(first)].to_vec(),
        next,
    )
}

/// Words without anything between them, or between figures: `zerosevenTwoeight`, `6one7-threetwo`.
fn glued(text: &[u8], at: usize, floor: usize, cell: &Cell) -> (Vec<(Word, Span)>, usize) {
    let (floor, ceil) = (floor.max(cell.span.start as usize), cell.span.end as usize);
    let of_run = |b: &&u8| b.is_ascii_alphanumeric() || **b == b'-';
    let at = (at..ceil).find(|n| of_run(&&text[*n])).unwrap_or(ceil);
    let before = text[floor..at]
        .iter()
        .rev()
        .take(RUN_BYTES_MAX)
        .take_while(of_run);
    let mut next = at - before.count();
    let end = at
        + text[at..ceil]
            .iter()
            .take(RUN_BYTES_MAX)
            .take_while(of_run)
            .count();
    let (mut words, mut spoken) = (Vec::new(), 0);
    while next < end {
        let len = match text[next] {
            b'-' => 1,
            b @ b'0'..=b'9' => {
                words.push((Word::Digit(b - b'0'), Span::new(next, next + 1)));
                1
            }
            _ => {
                let begins = |word: &&str| {
                    let len = word.len();
                    len <= end - next
                        && text[next..next + len].eq_ignore_ascii_case(word.as_bytes())
                };
                let Some(nth) = GLUED.iter().position(begins) else {
                    return (Vec::new(), end);
                };
                let Ok(digit) = u8::try_from(nth) else {
                    return (Vec::new(), end);
                };
                let len = GLUED[nth].len();
                words.push((Word::Digit(digit), Span::new(next, next + len)));
                spoken += 1;
                len
            }
        };
        next += len;
    }
    if spoken < SPOKEN_MIN - 1 {
        words.clear();
    }
    (words, end)
}

/// Longest run of such words.
const RUN_BYTES_MAX: usize = 128;
/// English digits, zero first.
const GLUED: [&str; 10] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
];

fn of_word(b: u8) -> bool {
    b.is_ascii_alphabetic() || b >= 0x80
}

/// How many bytes of a word a text begins with, or ends with. A word of Cyrillic may have an apostrophe in it (`дев'ять`).
fn word_len(text: &[u8], backwards: bool) -> usize {
    let at = |n: usize| match backwards {
        true => text.len().checked_sub(n + 1).map(|n| text[n]),
        false => text.get(n).copied(),
    };
    let mut len = 0;
    while len < WORD_BYTES_MAX
        && let Some(b) = at(len)
    {
        let inner = b == b'\'' && len > 0 && at(len - 1) >= Some(0x80) && at(len + 1) >= Some(0x80);
        if !of_word(b) && !inner {
            break;
        }
        len += 1;
    }
    len
}

fn of_gap(b: u8) -> bool {
    matches!(b, b' ' | b',' | b'-' | b'.' | b'\n' | b'/' | b'|')
}

/// Do letters stand on either side that belong to two words?
fn parts_words(gap: &[u8]) -> bool {
    gap.iter().any(|b| matches!(b, b'/' | b'|'))
}

fn gap_before(text: &[u8]) -> usize {
    text.iter()
        .rev()
        .take(3)
        .take_while(|b| of_gap(**b))
        .count()
}

/// What the words stand for, character by character.
fn plain_of(words: &[(Word, Span)], lettered: bool) -> Vec<(u8, Span)> {
    let (mut out, mut times) = (Vec::new(), 1);
    for (nth, (word, span)) in words.iter().enumerate() {
        let c = match *word {
            Word::Times(n) => {
                times = n;
                continue;
            }
            Word::Tens(tens) => {
                out.push((b'0' + tens, *span));
                let next = words.get(nth + 1).map(|(word, _)| *word);
                if !matches!(next, Some(Word::Digit(1..) | Word::Either(1.., _))) {
                    out.push((b'0', *span));
                }
                continue;
            }
            Word::Teen(above) => {
                out.extend([(b'1', *span), (b'0' + above, *span)]);
                continue;
            }
            Word::Digit(d) => b'0' + d,
            Word::Either(d, _) if !lettered => b'0' + d,
            Word::Letter(c) | Word::Either(_, c) | Word::Sign(c) => c,
        };
        for _ in 0..times {
            out.push((c, *span));
        }
        times = 1;
    }
    out
}

fn word(bytes: &[u8]) -> Option<Word> {
    let text = std::str::from_utf8(bytes).ok().filter(|t| !t.is_empty())?;
    let mut lower = [0; WORD_BYTES_MAX];
    let known: String;
    let lower = if text.is_ascii() {
        let lower = lower.get_mut(..text.len())?;
        lower.copy_from_slice(bytes);
        lower.make_ascii_lowercase();
        std::str::from_utf8(lower).ok()?
    } else {
        known = text.to_lowercase();
        &known
    };
    let digit = DIGITS.iter().position(|words| words.contains(&lower));
    let letter = LETTERS.iter().position(|word| *word == lower);
    let letter = letter.and_then(|n| u8::try_from(n).ok()).map(|n| {
        // Small letters are spelled in small letters, where there are capital ones beside them.
        let base = if bytes[0].is_ascii_uppercase() {
            b'A'
        } else {
            b'a'
        };
        base + n
    });
    let digit = digit.and_then(|n| u8::try_from(n).ok());
    match (digit, letter) {
        (Some(d), Some(c)) => Some(Word::Either(d, c)),
        (Some(d), None) => Some(Word::Digit(d)),
        (None, Some(c)) => Some(Word::Letter(c)),
        _ if TENS.contains(&lower) => tens(lower).map(Word::Tens),
        _ if TEENS.contains(&lower) => teen(lower).map(Word::Teen),
        _ => SIGNS
            .iter()
            .find(|(words, _)| words.contains(&lower))
            .map(|(_, word)| *word),
    }
}

/// Numbers of two figures, as callers read out cards (`fifty-two ninety-three`).
const TENS: [&str; 8] = [
    "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
];
const TEENS: [&str; 10] = [
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];

fn tens(word: &str) -> Option<u8> {
    let nth = TENS.iter().position(|tens| *tens == word)?;
    u8::try_from(nth + 2).ok()
}

fn teen(word: &str) -> Option<u8> {
    let nth = TEENS.iter().position(|teen| *teen == word)?;
    u8::try_from(nth).ok()
}

const SIGNS: [(&[&str], Word); 19] = [
    (&["double", "doppel"], Word::Times(2)),
    (&["triple"], Word::Times(3)),
    // `exclamation mark`, `X-ray`: said by the word before.
    (&["mark", "ray"], Word::Times(1)),
    (&["alfa"], Word::Letter(b'A')),
    (&["juliett"], Word::Letter(b'J')),
    (&["x", "ex"], Word::Letter(b'X')),
    (
        &[
            "dash",
            "hyphen",
            "minus",
            "tiret",
            "bindestrich",
            "guion",
            "traço",
        ],
        Word::Sign(b'-'),
    ),
    (
        &["dot", "point", "punkt", "punto", "ponto"],
        Word::Sign(b'.'),
    ),
    (&["slash"], Word::Sign(b'/')),
    (&["underscore"], Word::Sign(b'_')),
    (&["at"], Word::Sign(b'@')),
    (&["hash"], Word::Sign(b'#')),
    (&["dollar"], Word::Sign(b'$')),
    (&["percent"], Word::Sign(b'%')),
    (&["star", "asterisk"], Word::Sign(b'*')),
    (&["exclamation"], Word::Sign(b'!')),
    (&["equals"], Word::Sign(b'=')),
    (&["plus"], Word::Sign(b'+')),
    (&["colon"], Word::Sign(b':')),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::tests::children;

    #[test]
    fn numbers_are_read() {
        for (text, want) in [
            (
                "SSN: four seven one two three eight oh nine nine, thanks",
                "471238099",
            ),
            ("it is three nine double two seven six. Bye", "392276"),
            (
                "Steuer-ID: vier sieben eins neun acht null sechs neun fünf",
                "471980695",
            ),
            ("numéro: quatre, sept, un, neuf, huit, zéro, six", "4719806"),
            ("DNI: uno dos siete cinco ocho cero nueve seis", "12758096"),
            ("СНИЛС: семь восемь девять ноль один два три", "7890123"),
            ("passport: Alpha Bravo seven one two three eight", "AB71238"),
            ("key: Lima five lima Oscar november nine two", "L5lOn92"),
            ("nomor: lima tujuh satu dua delapan nol", "571280"),
            (
                "kimlik: beş altı bir bir beş bir altı dokuz üç üç sıfır.",
                "56115169330",
            ),
            (
                "मेरा आधार सात तीन आठ नौ नौ सात छह तीन दो सात दो पाँच",
                "738997632725",
            ),
            (
                "simu sifuri saba sita saba sita mbili nane sita saba nane",
                "0767628678",
            ),
            (
                "card: 5393 zero one six eight 0357 eight eight four eight",
                "5393016803578848",
            ),
            (
                "phone zerosevenTwoeightzerofourzeroseveneightnine",
                "07280407",
            ),
            ("line 6one7-threetwoeight-60nine0, ask", "6173286090"),
            (
                "іпн: три три вісім два сім чотири дев'ять нуль нуль вісім",
                "3382749008",
            ),
            (
                "VIN: Juliett Tango X-ray two Lima five nine seven",
                "JTX2L597",
            ),
            (
                "BSN: ....- --... .---- ----. ---.. ----- -.... ----. ----.",
                "471980699",
            ),
            (
                "phone: five five five dash one two one two seven",
                "555-12127",
            ),
        ] {
            let got = children(text);
            assert!(
                got.iter()
                    .any(|(l, t, _)| *l == Layer::Codes && t.contains(want)),
                "{text}: {:?}",
                got.iter()
                    .map(|(l, t, _)| (*l, t.clone()))
                    .collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn sentences_are_not() {
        for text in [
            "one of three or four people, seven at most",
            "Hotel Tango is at the India gate",
            "twenty-three and seventy-eight",
            "three 500 and seven 300 people",
            "five 6 seven 8 nine 10",
            "someoneseven of the three-tone kind",
        ] {
            assert!(
                !children(text).iter().any(|(l, ..)| *l == Layer::Codes),
                "{text}"
            );
        }
    }

    #[test]
    fn no_word_stands_for_two_digits() {
        let all: Vec<_> = DIGITS.iter().flat_map(|words| words.iter()).collect();
        for (n, word) in all.iter().enumerate() {
            assert!(!all[..n].contains(word), "{word}");
        }
    }
}
