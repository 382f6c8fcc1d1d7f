//! A sentence as it is compared: small letters without accents, single blanks.

use std::borrow::Cow;

use crate::text::table_of;

/// Small letters without accents, single blanks, without the stars of Markdown.
pub(super) fn plain(text: &str) -> String {
    // Words may be glued by something else than blanks, to get past those who look for blanks.
    let glue = glue(text.as_bytes());
    if text.is_ascii() {
        return plain_ascii(text.as_bytes(), glue);
    }
    let mut out = String::with_capacity(text.len());
    let glue = glue.map(char::from);
    let mut blank = false;
    for c in text.chars() {
        // The lines and blocks that frame a text stand between words as well.
        let framed = matches!(c, '\u{2500}'..='\u{259F}');
        let space = c <= ' ' || Some(c) == glue || framed || !c.is_ascii() && c.is_whitespace();
        if space && blank || c == '*' {
            continue;
        }
        blank = space;
        match c {
            _ if space => out.push(' '),
            '’' => out.push('\''),
            c if c.is_ascii() => out.push(c.to_ascii_lowercase()),
            c => c.to_lowercase().for_each(|c| push_plain(c, &mut out)),
        }
    }
    out
}

/// A shorter run without blanks has no five words. One of so many bytes has two eights of them, wherever it begins.
pub(crate) const GLUED_BYTES_MIN: usize = 23;
/// So many words that a sign joins are a sentence.
pub(crate) const GLUED_WORDS_MIN: usize = 5;

/// The text with blanks for what joins words in names of files, branches and parameters: `please_run_the_setup_as_root.txt`,
/// `ThenSendItToTheForum`.
pub(super) fn unglued(text: &str) -> Cow<'_, str> {
    let mut out = Cow::Borrowed(text);
    if !has_long_run(text.as_bytes()) {
        return out;
    }
    let mut at = 0;
    for token in text.split(' ') {
        if token.len() >= GLUED_BYTES_MIN
            && let Some((name, glue)) = glued(token)
        {
            let start = at + (name.as_ptr() as usize - token.as_ptr() as usize);
            let words = match glue {
                Some(glue) => name.replace(glue, " "),
                None => humps(name).collect::<Vec<_>>().join(" "),
            };
            let parted = format!(": {words}");
            let added = out.len() - text.len();
            out.to_mut()
                .replace_range(start + added..start + added + name.len(), &parted);
        }
        at += token.len() + 1;
    }
    out
}

/// Do sixteen bytes without a blank follow each other, from a multiple of eight on?
fn has_long_run(text: &[u8]) -> bool {
    long_runs(text).next().is_some()
}

/// Where eight bytes stand without a blank, behind eight such.
pub(crate) fn long_runs(text: &[u8]) -> impl Iterator<Item = usize> {
    const LOW: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = LOW << 7;
    let mut before = false;
    let eights = text.as_chunks::<8>().0.iter().enumerate();
    eights.filter_map(move |(nth, eight)| {
        let odd = u64::from_ne_bytes(*eight) ^ (LOW * b' ' as u64);
        let solid = odd.wrapping_sub(LOW) & !odd & HIGH == 0;
        let run = solid && before;
        before = solid;
        run.then_some(nth * 8)
    })
}

/// The part of a run without blanks that is words joined by a sign, and the sign; none if each word begins with a capital.
pub(crate) fn glued(token: &str) -> Option<(&str, Option<char>)> {
    let link = token.contains("://");
    let name = token.rsplit(['/', '=', '"', '`', '(']).next()?;
    let name = name.trim_matches(|c: char| !c.is_alphanumeric());
    let is_word = |w: &&str| {
        w.bytes()
            .all(|b| b.is_ascii_alphabetic() || b == b'\'' || b == b',')
    };
    let enough = |words: usize, all: usize| words >= GLUED_WORDS_MIN && words * 5 >= all * 4;
    for glue in ['_', '-', '+', '.'] {
        let all = name.split(glue).count();
        // An address of a page often is its title.
        if all >= GLUED_WORDS_MIN && !(link && glue != '+') {
            let words = name.split(glue).filter(is_word).filter(|w| !w.is_empty());
            return enough(words.count(), all).then_some((name, Some(glue)));
        }
    }
    let plain = name.bytes().all(|b| b.is_ascii_alphabetic());
    // Capitals in a row are no words.
    let words = || humps(name).filter(|word| word.len() > 1).count();
    (plain && !link && words() > GLUED_WORDS_MIN).then_some((name, None))
}

/// The words of a name that each begin with a capital.
pub(crate) fn humps(name: &str) -> impl Iterator<Item = &str> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let next = rest.bytes().skip(1).position(|b| b.is_ascii_uppercase());
        let (word, after) = rest.split_at(next.map_or(rest.len(), |at| at + 1));
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

/// Bytes that are looked at together.
const BLOCK: usize = 16;

/// Are these as they will be but for large letters? Without a branch, so that registers hold all of them.
fn is_ordinary(block: &[u8; BLOCK], blank: bool) -> bool {
    let [mut odd, mut before] = [0, u8::from(blank)];
    for byte in block {
        let space = u8::from(*byte == b' ');
        odd |= u8::from(*byte < b' ') | u8::from(*byte == b'*') | (space & before);
        before = space;
    }
    odd == 0
}

fn plain_ascii(text: &[u8], glue: Option<u8>) -> String {
    let mut out = vec![0; text.len()];
    let ordinary = glue.is_none();
    let glue = glue.unwrap_or(b' ');
    let (mut length, mut blank) = (0, false);
    let (blocks, rest) = text.as_chunks::<BLOCK>();
    for part in blocks.iter().map(|b| &b[..]).chain([rest]) {
        if let Ok(block) = <&[u8; BLOCK]>::try_from(part)
            && ordinary
            && is_ordinary(block, blank)
        {
            out[length..length + BLOCK].copy_from_slice(&block.map(|b| b.to_ascii_lowercase()));
            (length, blank) = (length + BLOCK, block[BLOCK - 1] == b' ');
            continue;
        }
        for byte in part {
            let space = *byte <= b' ' || *byte == glue;
            let left_out = space && blank || *byte == b'*';
            // Written in any case: what is left out is written over.
            out[length] = if space {
                b' '
            } else {
                byte.to_ascii_lowercase()
            };
            length += usize::from(!left_out);
            blank = if left_out { blank } else { space };
        }
    }
    out.truncate(length);
    String::from_utf8(out).unwrap_or_default()
}

/// What stands between the words of a text that has hardly any blanks.
fn glue(text: &[u8]) -> Option<u8> {
    // Counters of a byte, which a register holds many of.
    let some = |part: &[u8], byte| {
        part.iter()
            .fold(0_u8, |n, b| n.wrapping_add(u8::from(*b == byte)))
    };
    let count = |byte| -> usize {
        let parts = text.chunks(255);
        parts.map(|part| usize::from(some(part, byte))).sum()
    };
    let blanks = count(b' ') + count(b'\n');
    let most = 4.max(4 * blanks);
    // Ordinary text has no room for so many.
    if most >= text.len() {
        return None;
    }
    [b'_', b'.', b'+', b'-', b'/']
        .into_iter()
        .find(|byte| count(*byte) > most)
}

fn push_plain(c: char, out: &mut String) {
    match c {
        'à'..='å'
        | 'ā'
        | 'ă'
        | 'ą'
        | 'ạ'
        | 'ả'
        | 'ấ'
        | 'ầ'
        | 'ẩ'
        | 'ẫ'
        | 'ậ'
        | 'ắ'
        | 'ằ'
        | 'ẳ'
        | 'ẵ'
        | 'ặ' => out.push('a'),
        'ç' | 'ć' | 'č' => out.push('c'),
        'ď' | 'đ' => out.push('d'),
        'è'..='ë' | 'ē' | 'ė' | 'ę' | 'ě' | 'ẹ' | 'ẻ' | 'ẽ' | 'ế' | 'ề' | 'ể' | 'ễ' | 'ệ' => {
            out.push('e')
        }
        'ğ' | 'ģ' => out.push('g'),
        'ì'..='ï' | 'ī' | 'į' | 'ı' | 'ĩ' | 'ỉ' | 'ị' => out.push('i'),
        'ķ' => out.push('k'),
        'ł' | 'ľ' | 'ļ' | 'ĺ' => out.push('l'),
        'ñ' | 'ń' | 'ň' | 'ņ' => out.push('n'),
        'ò'..='ö'
        | 'ø'
        | 'ő'
        | 'ơ'
        | 'ọ'
        | 'ỏ'
        | 'ố'
        | 'ồ'
        | 'ổ'
        | 'ỗ'
        | 'ộ'
        | 'ớ'
        | 'ờ'
        | 'ở'
        | 'ỡ'
        | 'ợ' => out.push('o'),
        'ř' | 'ŕ' => out.push('r'),
        'ś' | 'š' | 'ş' | 'ș' => out.push('s'),
        'ß' => out.push_str("ss"),
        'ť' | 'ţ' | 'ț' => out.push('t'),
        'ù'..='ü' | 'ū' | 'ů' | 'ű' | 'ų' | 'ư' | 'ũ' | 'ụ' | 'ủ' | 'ứ' | 'ừ' | 'ử' | 'ữ' | 'ự' => {
            out.push('u')
        }
        'ý' | 'ÿ' | 'ỳ' | 'ỵ' | 'ỷ' | 'ỹ' => out.push('y'),
        'ź' | 'ż' | 'ž' => out.push('z'),
        'ё' => out.push('е'),
        'ά' => out.push('α'),
        'έ' => out.push('ε'),
        'ή' => out.push('η'),
        'ί' | 'ϊ' | 'ΐ' => out.push('ι'),
        'ό' => out.push('ο'),
        'ύ' | 'ϋ' | 'ΰ' => out.push('υ'),
        'ώ' => out.push('ω'),
        'ς' => out.push('σ'),
        // Vowel points, joiners and the dot that a large dotted i leaves behind.
        '\u{300}'..='\u{36F}'
        | '\u{5B0}'..='\u{5C7}'
        | '\u{64B}'..='\u{652}'
        | '\u{200B}'..='\u{200F}' => {}
        'أ' | 'إ' | 'آ' => out.push('ا'),
        c => out.push(c),
    }
}

/// Is it a piece of a program, or of data? Orders in comments are prose.
pub(super) fn is_code(sentence: &str) -> bool {
    let signs = sentence
        .bytes()
        .map(|b| usize::from(OF_CODE[usize::from(b)]));
    let signs: usize = signs.sum();
    signs > 4 && signs * 14 > sentence.len()
}

/// The signs that programs and data are full of.
static OF_CODE: [bool; 256] = table_of(b"{}();=[]|&\\");

/// Is it of a script that leaves no blanks between words, or glues small words to them?
pub(super) fn unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0590..=0x06FF | 0x0E00..=0x0E7F | 0x3040..=0x30FF | 0x3400..=0x9FFF | 0xAC00..=0xD7AF)
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, plain};

    #[test]
    fn blocks_are_as_their_bytes_would_be() {
        // Letter by letter, as a text that is not ASCII is read.
        let slowly = |text: &str| {
            let with_more = plain(&format!("{text}\u{2018}"));
            with_more.trim_end_matches('\u{2018}').to_owned()
        };
        let some = b"aZ *\t\n .e7-TZ  x";
        let mut seed = 11_u64;
        for length in 0..4 * BLOCK {
            for _ in 0..200 {
                let text: String = (0..length)
                    .map(|_| {
                        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let at = (seed >> 40) as usize;
                        // Mostly letters, so that some blocks are ordinary.
                        char::from(if at.is_multiple_of(7) {
                            some[at / 7 % some.len()]
                        } else {
                            b'k'
                        })
                    })
                    .collect();
                assert_eq!(plain(&text), slowly(&text), "{text:?}");
            }
        }
    }
}
