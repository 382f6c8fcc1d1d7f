//! Where the name ends and begins that a keyword stands in.

use super::{NAME_BYTES_MAX, looks};
use crate::names::{self, Promise};
use crate::text::{Cell, Span};

/// Where a name in ASCII ends, if a particle of a language without blanks stands behind it.
fn particle(name: &[u8]) -> Option<usize> {
    const PARTICLES: [&str; 7] = ["は", "です", "が", "는", "은", "是", "为"];
    let ascii = name.iter().take_while(|b| b.is_ascii()).count();
    let begins = |p: &str| name[ascii..].starts_with(p.as_bytes());
    (ascii > 0 && PARTICLES.iter().any(|p| begins(p))).then_some(ascii)
}

/// How long a name in another script is up to the word that says that its value follows, if ASCII, a quotation mark or a blank is next.
fn to_particle(name: &[u8], from: usize) -> Option<usize> {
    const PARTICLES: [&str; 5] = ["は", "を", "是", "为", "為"];
    let behind = name.get(from..).filter(|rest| !rest.is_ascii())?;
    let found = PARTICLES.iter().filter_map(|p| {
        let at = memchr::memmem::find(behind, p.as_bytes())?;
        let next = &behind[at + p.len()..];
        let ends = next.first().is_none_or(u8::is_ascii) || looks::opening(next).is_some();
        (at > 0 && ends).then_some(from + at)
    });
    found.min()
}

/// Where a word in Korean or Japanese ends without the particle that says that its value follows: `API 키는`.
fn without_particle(text: &[u8], from: usize, end: usize) -> usize {
    const PARTICLES: [&str; 7] = ["는", "은", "이", "가", "は", "が", "を"];
    let word = &text[from..end];
    let particle = PARTICLES.iter().find(|p| word.ends_with(p.as_bytes()));
    end - particle
        .filter(|p| word.len() > p.len() + 1)
        .map_or(0, |p| p.len())
}

/// The identifier that `at` lies in.
pub(super) fn name_around(text: &[u8], at: usize, cell: &Cell) -> Span {
    let part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.') || b >= 0x80;
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let mut start = at;
    while start > floor && at - start < NAME_BYTES_MAX && part(text[start - 1]) {
        start -= 1;
    }
    let mut end = at;
    while end < ceil && end - at < NAME_BYTES_MAX && part(text[end]) {
        end += 1;
    }
    // `api_keyは`: no blank stands before the word that says that the value follows.
    if let Some(particle) = particle(&text[at..end]) {
        end = at + particle;
    }
    // `接口密钥为5f4d...`, `パスワードを「...」`: nor does one stand behind it.
    if let Some(len) = to_particle(&text[start..end], at - start) {
        end = start + len;
    }
    // `api key`, `recovery phrase`: two words that are one name.
    if let Some((b' ', rest)) = text[end..ceil].split_first() {
        let word = ["key", "phrase", "words"].iter().find(|w| {
            let told = rest.get(..w.len());
            told.is_some_and(|told| told.eq_ignore_ascii_case(w.as_bytes()))
        });
        if let Some(word) = word
            && !rest.get(word.len()).is_some_and(u8::is_ascii_alphanumeric)
        {
            end += 1 + word.len();
        }
    }
    // `mật khẩu`, `kata sandi`; `mot de passe`, `clave de acceso`.
    let next = |end: usize| {
        let word = text.get(end + 1..ceil).filter(|_| text[end] == b' ')?;
        let len = word.iter().take(24).take_while(|b| part(**b)).count();
        (len > 0).then_some(end + 1 + len)
    };
    if let Some(second) = next(end).filter(|_| end > start) {
        let second = without_particle(text, end, second);
        let third = next(second).filter(|third| names::is_pair(&text[end + 1..*third]));
        if names::is_pair(&text[start..second]) {
            end = second;
        } else if let Some(third) = third {
            end = third;
        }
    }
    while start < end && matches!(text[start], b'-' | b'.') {
        start += 1;
    }
    while end > start && matches!(text[end - 1], b'-' | b'.') {
        end -= 1;
    }
    // `public key`, `cache key`: the word before says that it is no secret.
    if text[start..end].eq_ignore_ascii_case(b"key") && text[floor..start].ends_with(b" ") {
        let letters = text[floor..start - 1].iter().rev().take(NAME_BYTES_MAX);
        let first = start - 1 - letters.take_while(|b| b.is_ascii_alphabetic()).count();
        if names::promise(&text[first..end]) == Promise::Nothing {
            start = first;
        }
    }
    Span::new(start, end)
}
