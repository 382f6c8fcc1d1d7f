//! Long runs of a code's digits that read like noise: pictures, programs, what is packed or encrypted. In so many of them
//! everything stands somewhere by chance, so what is found in the midst of one is worth a word only if noise is not like it, and
//! another way to read one (from behind, every second sign) is none.

use crate::entropy;
use crate::text::Span;

/// Shorter runs are tokens, keys, hashes and certificates.
const BYTES_MIN: usize = 1024;
/// Lines this long may be one wrapped run.
const LINE_BYTES_MIN: usize = 40;
/// CR and LF.
const BREAK_BYTES_MAX: usize = 2;

/// Of a hundred bytes so many are capital letters, small letters, and digits or signs. Of random digits in base64 it is 41, 41 and
/// 19; words without blanks between them have more small letters, hashes lack letters of one kind.
const UPPER_PERCENT: usize = 10;
const LOWER_PERCENT: std::ops::RangeInclusive<usize> = 10..=55;
const OTHER_PERCENT: usize = 5;
/// So much the pieces of a list have in common, and so much stands between them.
const LIST_BYTES: usize = 3;
const GAP_BYTES_MAX: usize = 4;
/// Lines of digits hold whole groups of four.
const GROUP_DIGITS: usize = 4;

/// Values this long in letters of one case, or in digits alone, and as varied as keys are, stand in no noise.
const NARROW_BYTES_MIN: usize = 16;
const NARROW_ENTROPY_MIN: f32 = 3.3;
const DIGITS_MIN: usize = 9;
const DIGITS_ENTROPY_MIN: f32 = 2.5;

/// One such run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blob {
    pub span: Span,
    /// Its signs are `+` and `/` (RFC 4648, section 4), not `-` and `_`.
    is_standard: bool,
}

/// Those among the runs of a text, which come in order.
pub(crate) fn find(text: &[u8], runs: &[Span], out: &mut Vec<Blob>) {
    out.clear();
    let mut runs = runs.iter().peekable();
    while let Some(first) = runs.next() {
        let (mut whole, mut line) = (*first, *first);
        let may_wrap = first.len() >= LINE_BYTES_MIN && first.len().is_multiple_of(GROUP_DIGITS);
        // All lines are of one length, and the last may be shorter.
        while may_wrap
            && line.len() == first.len()
            && let Some(next) = runs.next_if(|next| goes_on(text, line, **next))
        {
            (whole.end, line) = (next.end, *next);
        }
        let run = &text[whole.range()];
        if run.len() >= BYTES_MIN && is_noise(run) {
            let count = |signs: [u8; 2]| memchr::memchr2_iter(signs[0], signs[1], run).count();
            out.push(Blob {
                span: whole,
                is_standard: count([b'+', b'/']) > 8 * count([b'-', b'_']),
            });
        }
    }
}

fn goes_on(text: &[u8], line: Span, next: Span) -> bool {
    let gap = &text[line.end as usize..next.start as usize];
    next.len() <= line.len()
        && gap.len() <= BREAK_BYTES_MAX
        && gap.iter().all(|b| matches!(b, b'\r' | b'\n'))
}

fn is_noise(run: &[u8]) -> bool {
    let (mut upper, mut lower) = (0, 0);
    // So few that a byte counts them: registers hold many of those.
    for some in run.chunks(usize::from(u8::MAX)) {
        let (mut uppers, mut lowers) = (0_u8, 0_u8);
        for b in some {
            uppers += u8::from(b.is_ascii_uppercase());
            lowers += u8::from(b.is_ascii_lowercase());
        }
        upper += usize::from(uppers);
        lower += usize::from(lowers);
    }
    let other = run.len() - upper - lower;
    let percent = |count: usize| count * 100 / run.len();
    percent(upper) >= UPPER_PERCENT
        && LOWER_PERCENT.contains(&percent(lower))
        && percent(other) >= OTHER_PERCENT
}

/// The one that a piece lies in the midst of: not at its front, where what is written begins, nor at its end.
pub(crate) fn around(blobs: &[Blob], piece: Span) -> Option<&Blob> {
    let before = |blob: &Blob| blob.span.end <= piece.end;
    let blob = blobs.get(blobs.partition_point(before));
    blob.filter(|blob| blob.span.start < piece.start)
}

/// Whether a piece lies in one, or is one.
pub(crate) fn covers(blobs: &[Blob], piece: Span) -> bool {
    let before = |blob: &Blob| blob.span.end < piece.end;
    let blob = blobs.get(blobs.partition_point(before));
    blob.is_some_and(|blob| blob.span.start <= piece.start)
}

/// Whether a piece has bytes of one.
pub(crate) fn touches(blobs: &[Blob], piece: Span) -> bool {
    let before = |blob: &Blob| blob.span.end <= piece.start;
    let blob = blobs.get(blobs.partition_point(before));
    blob.is_some_and(|blob| blob.span.start < piece.end)
}

impl Blob {
    /// May a piece of it be there by chance?
    pub fn has_by_chance(&self, text: &[u8], piece: Span) -> bool {
        !is_of_list(text, piece) && self.is_like(&text[piece.range()])
    }

    /// Is noise like it?
    fn is_like(&self, piece: &[u8]) -> bool {
        let has = |is: fn(&u8) -> bool| piece.iter().any(is);
        let foreign = self.is_standard && has(|b| matches!(b, b'-' | b'_'));
        let (bytes, entropy) = match piece.iter().all(u8::is_ascii_digit) {
            true => (DIGITS_MIN, DIGITS_ENTROPY_MIN),
            false => (NARROW_BYTES_MIN, NARROW_ENTROPY_MIN),
        };
        let narrow = piece.len() >= bytes
            && !(has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase))
            && entropy::shannon(piece) >= entropy;
        !foreign && !narrow
    }
}

/// Whether it stands in a list: neither a letter nor a digit is on either side, and the piece before it or behind it begins as it
/// does. Rows of zeros and of small numbers begin alike, too, but go on with the same group.
fn is_of_list(text: &[u8], piece: Span) -> bool {
    let value = &text[piece.range()];
    let (before, behind) = (&text[..piece.start as usize], &text[piece.end as usize..]);
    let is_letter = |b: &u8| b.is_ascii_alphanumeric();
    if before.last().is_some_and(is_letter) || behind.first().is_some_and(is_letter) {
        return false;
    }
    let parts = |b: &&u8| !b.is_ascii_alphanumeric();
    let gap =
        |bytes: &mut dyn Iterator<Item = &u8>| bytes.take(GAP_BYTES_MAX).take_while(parts).count();
    let above = &before[..before.len() - gap(&mut before.iter().rev())];
    let beside = [
        &above[above.len().saturating_sub(value.len())..],
        &behind[gap(&mut behind.iter())..],
    ];
    let like = |other: &[u8]| {
        let other = &other[..other.len().min(value.len())];
        other.starts_with(&value[..value.len().min(LIST_BYTES)]) && !repeats(other)
    };
    !repeats(value) && beside.into_iter().any(like)
}

/// Does a group of four digits stand twice in a row?
fn repeats(value: &[u8]) -> bool {
    let is_same = |at: usize| value[at] == value[at + GROUP_DIGITS];
    let mut same = 0;
    for at in 0..value.len().saturating_sub(GROUP_DIGITS) {
        same = if is_same(at) { same + 1 } else { 0 };
        if same == GROUP_DIGITS {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::Traces;

    fn blobs(text: &str) -> Vec<Blob> {
        let (mut traces, mut out) = (Traces::default(), Vec::new());
        traces.read(text.as_bytes());
        find(text.as_bytes(), &traces.runs, &mut out);
        out
    }

    fn noise(len: usize) -> String {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut x = 7_u64;
        let digit = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(DIGITS[(x >> 58) as usize])
        };
        std::iter::repeat_with(digit).take(len).collect()
    }

    #[test]
    fn noise_is_told_from_words_and_hashes() {
        let long = noise(2000);
        let wrapped: String = long
            .as_bytes()
            .chunks(76)
            .map(|line| format!("{}\r\n", std::str::from_utf8(line).unwrap()))
            .collect();
        for (text, want) in [
            (format!("data: {long} end"), 1),
            (format!("{long} {long}"), 2),
            (format!("-\n{wrapped}-"), 1),
            (noise(900), 0),
            ("ignoreAllPreviousInstructions".repeat(60), 0),
            ("0f4a99c2".repeat(300), 0),
            ("some/folder/of/it/".repeat(100), 0),
            ("Ignore+All+Previous+Instructions+2+Times/".repeat(40), 0),
            (
                (0..40)
                    .map(|n| format!("{}{n:03}\n", &noise(60)[..40]))
                    .collect(),
                0,
            ),
        ] {
            assert_eq!(blobs(&text).len(), want, "{text:.40}");
        }
    }

    #[test]
    fn keys_that_noise_is_not_like_are_no_chance() {
        let blob = blobs(&noise(2000))[0];
        for (piece, by_chance) in [
            (["AKI", "AZ7Q2M4N6P3R7T5V2"], false),
            (["gh", "p_4Xk9vQ2mZr7Lp4Ts8Wd3n"], false),
            (["45392", "10488340362"], false),
            (["AKI", "AAAAAAAAAAAAAAAAA"], true),
            (["EAA", "Qz8gAFR7yAAQfAvIk2kQ3n9"], true),
            (["2", "65"], true),
        ] {
            let piece = piece.concat();
            assert_eq!(blob.is_like(piece.as_bytes()), by_chance, "{piece}");
        }
        for (text, from, to, free) in [
            ("bcd1/bcd2", 5, 9, true),
            ("bcd1/bcd2/e", 0, 4, true),
            ("bcd1/bcd2/e", 5, 9, true),
            ("bcd1\r\nbcd2\ne", 6, 10, true),
            ("bcd1bcd2/e", 4, 8, false),
            ("a/bcd1/e", 2, 6, false),
            ("a\nbcd1\ne", 2, 6, false),
            ("bcd1/bcd-bcd-bcd-x/e", 5, 18, false),
        ] {
            assert_eq!(
                is_of_list(text.as_bytes(), Span::new(from, to)),
                free,
                "{text}"
            );
        }
    }

    #[test]
    fn what_stands_at_an_edge_is_not_in_the_midst() {
        let blobs = [(10, 20), (30, 40)].map(|(from, to)| Blob {
            span: Span::new(from, to),
            is_standard: true,
        });
        for (piece, inside, covered, touched) in [
            ((11, 19), true, true, true),
            ((10, 19), false, true, true),
            ((11, 20), false, true, true),
            ((10, 20), false, true, true),
            ((9, 15), false, false, true),
            ((15, 25), false, false, true),
            ((21, 29), false, false, false),
            ((20, 30), false, false, false),
            ((20, 31), false, false, true),
            ((19, 20), false, true, true),
            ((31, 39), true, true, true),
            ((41, 45), false, false, false),
        ] {
            let piece = Span::new(piece.0, piece.1);
            let around = around(&blobs, piece).is_some();
            let (covers, touches) = (covers(&blobs, piece), touches(&blobs, piece));
            let want = (inside, covered, touched);
            assert_eq!((around, covers, touches), want, "{piece:?}");
        }
    }
}
