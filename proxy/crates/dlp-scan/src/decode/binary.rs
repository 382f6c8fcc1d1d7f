//! The texts in bytes that are none as a whole: a picture with a comment, a database, an archive without packing, a text
//! with one wrong byte.
//!
//! Most such bytes are pictures of megabytes without any text, so only every eighth byte is looked at until one lies in
//! a text: none that is long enough lies between two of them.

/// Bytes of the shortest text.
pub(super) const TEXT_BYTES_MIN: usize = 8;
/// The same where it is in no Latin script: few of its bytes are ruled out by chance.
const WIDE_TEXT_BYTES_MIN: usize = 16;
/// A piece this long beside a text belongs to it: the name of a field, the beginning of a word.
const PIECE_BYTES_MIN: usize = 4;
/// Bytes between the two: the tag and the length of a field, a letter of an old code page.
const GAP_BYTES_MAX: usize = 2;

/// Bytes that can be looked at one by one.
pub(super) trait Bytes {
    fn len(&self) -> usize;
    /// The byte at a place before [`Self::len`].
    fn at(&self, at: usize) -> u8;
}

impl Bytes for [u8] {
    fn len(&self) -> usize {
        self.len()
    }

    fn at(&self, at: usize) -> u8 {
        self[at]
    }
}

/// Bytes that are a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub start: usize,
    pub end: usize,
    /// From one character to the next: 1, or 2 and 4 where there are zeros between (UTF-16, UTF-32).
    pub step: usize,
}

/// Bytes of a word that may be printable by chance.
const SHORT: usize = 16;

impl Found {
    pub fn is_short(&self) -> bool {
        (self.end - self.start) / self.step < SHORT
    }
}

/// The texts, one after the other.
pub(super) struct Texts<'b, B: ?Sized> {
    bytes: &'b B,
    /// What lies before is done.
    floor: usize,
    /// The text that comes next, if it is known.
    next: Option<Found>,
}

impl<'b, B: Bytes + ?Sized> Texts<'b, B> {
    pub fn new(bytes: &'b B) -> Self {
        Self {
            bytes,
            floor: 0,
            next: None,
        }
    }

    /// The next text that is long enough by itself, or the piece right before it.
    fn search(&mut self) -> Option<Found> {
        let mut places = (self.floor + TEXT_BYTES_MIN - 1..self.bytes.len())
            .step_by(TEXT_BYTES_MIN)
            .enumerate();
        // In no Latin script a text goes over two such places.
        const { assert!(WIDE_TEXT_BYTES_MIN == 2 * TEXT_BYTES_MIN) };
        let found = places.find_map(|(nth, at)| self.around(at, nth % 2 == 0))?;
        let before = self.piece(|gap| {
            let end = found.start.checked_sub(gap)?;
            (end > self.floor).then(|| (self.left(end), end))
        });
        match before.filter(|_| found.step == 1) {
            Some(piece) => {
                self.next = Some(found);
                Some(piece)
            }
            None => Some(found),
        }
    }

    /// The text that a place lies in, of whatever script or of those that have letters of ASCII.
    fn around(&self, at: usize, any_script: bool) -> Option<Found> {
        let b = self.bytes.at(at);
        let (inside, least) = match b {
            0 => return self.spread_any(at),
            0x80.. if !any_script => return None,
            0x80.. => (self.char_start(at)?, WIDE_TEXT_BYTES_MIN),
            _ if plain(b) => (at, TEXT_BYTES_MIN),
            _ => return None,
        };
        let (start, end) = (self.left(inside), self.right(inside));
        if end - start >= least {
            let step = 1;
            return Some(Found { start, end, step });
        }
        // Most have no zero beside them.
        let zero = |at: Option<usize>| {
            at.is_some_and(|at| at < self.bytes.len() && self.bytes.at(at) == 0)
        };
        match zero(at.checked_sub(1)) || zero(Some(at + 1)) {
            true => self.spread_any(at),
            false => None,
        }
    }

    /// Where the character begins that a byte of the upper half belongs to.
    fn char_start(&self, at: usize) -> Option<usize> {
        for back in 0..4 {
            let first = at.checked_sub(back).filter(|first| *first >= self.floor)?;
            match self.bytes.at(first) {
                0x80..0xC0 => {}
                0xC2.. => return (char_len(self.bytes, first) > back).then_some(first),
                _ => return None,
            }
        }
        None
    }

    fn spread_any(&self, at: usize) -> Option<Found> {
        [2, 4].into_iter().find_map(|step| self.spread(at, step))
    }

    /// The same where its characters have zeros between them.
    fn spread(&self, at: usize, step: usize) -> Option<Found> {
        let byte = |at: usize| (at < self.bytes.len()).then(|| self.bytes.at(at));
        let is = |at: usize| byte(at).is_some_and(plain);
        let zeros = |from: usize| (from + 1..from + step).all(|at| byte(at) == Some(0));
        let first = (at..at + step).find(|at| byte(*at) != Some(0))?;
        if !is(first) {
            return None;
        }
        let (mut start, mut last) = (first, first);
        while start >= self.floor + step && is(start - step) && zeros(start - step) {
            start -= step;
        }
        while zeros(last) && is(last + step) {
            last += step;
        }
        let long = (last - start) / step + 1 >= TEXT_BYTES_MIN;
        long.then_some(Found {
            start,
            end: last + 1,
            step,
        })
    }

    /// A piece a few bytes away from a text, by where it would begin and end for each such distance.
    fn piece(&self, at: impl Fn(usize) -> Option<(usize, usize)>) -> Option<Found> {
        (1..=GAP_BYTES_MAX).find_map(|gap| {
            let (start, end) = at(gap)?;
            (end >= start + PIECE_BYTES_MIN).then_some(Found {
                start,
                end,
                step: 1,
            })
        })
    }

    /// Where the text that goes on to `at` begins.
    fn left(&self, at: usize) -> usize {
        let mut start = at;
        while start > self.floor {
            let last = self.bytes.at(start - 1);
            start = match last {
                0x80..0xC0 => match self.char_start(start - 1) {
                    Some(first) if first + char_len(self.bytes, first) == start => first,
                    _ => break,
                },
                _ if plain(last) => start - 1,
                _ => break,
            };
        }
        start
    }

    /// Where the text that goes on from `at` ends.
    fn right(&self, at: usize) -> usize {
        let mut end = at;
        loop {
            match char_len(self.bytes, end) {
                0 => return end,
                len => end += len,
            }
        }
    }
}

impl<B: Bytes + ?Sized> Iterator for Texts<'_, B> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        let found = match self.next.take() {
            Some(found) => found,
            None => self.search()?,
        };
        self.floor = found.end;
        if self.next.is_none() && found.step == 1 {
            self.next = self.piece(|gap| Some((found.end + gap, self.right(found.end + gap))));
        }
        Some(found)
    }
}

/// The texts with a line end between each two; what stands in place of a letter of an old code page becomes that letter.
pub(super) fn join(bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut end) = (Vec::new(), 0);
    for found in Texts::new(bytes) {
        separate(bytes, (end, found.start), &mut out);
        out.extend(bytes[found.start..found.end].iter().step_by(found.step));
        end = found.end;
    }
    out
}

/// What is written between two texts that stand so far apart.
pub(super) fn separate<B: Bytes + ?Sized>(
    bytes: &B,
    (end, start): (usize, usize),
    out: &mut Vec<u8>,
) {
    match bytes.at(start.saturating_sub(1)) {
        // Latin-1 has the same numbers as Unicode.
        letter @ 0xC0.. if end > 0 && end + 1 == start => {
            let mut utf8 = [0; 4];
            out.extend_from_slice(char::from(letter).encode_utf8(&mut utf8).as_bytes());
        }
        _ if end > 0 => out.push(b'\n'),
        _ => {}
    }
}

/// Printable, or a blank.
fn plain(b: u8) -> bool {
    matches!(b, 0x20..0x7F | b'\n' | b'\r' | b'\t')
}

/// Bytes of the character that stands at a place, in UTF-8; none if there is no text.
fn char_len<B: Bytes + ?Sized>(bytes: &B, at: usize) -> usize {
    if at >= bytes.len() {
        return 0;
    }
    let first = bytes.at(at);
    // RFC 3629, section 4; control characters of the upper half are no text.
    let (len, second) = match first {
        b if b < 0x80 => return usize::from(plain(b)),
        0xC2 => (2, 0xA0..=0xBF),
        0xC3..0xE0 => (2, 0x80..=0xBF),
        0xE0 => (3, 0xA0..=0xBF),
        0xED => (3, 0x80..=0x9F),
        0xE1..0xF0 => (3, 0x80..=0xBF),
        0xF0 => (4, 0x90..=0xBF),
        0xF1..0xF4 => (4, 0x80..=0xBF),
        0xF4 => (4, 0x80..=0x8F),
        _ => return 0,
    };
    let goes_on = |n: usize| bytes.at(at + n) & 0xC0 == 0x80;
    match at + len <= bytes.len() && second.contains(&bytes.at(at + 1)) && (2..len).all(goes_on) {
        true => len,
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(bytes: &[u8]) -> String {
        String::from_utf8(join(bytes)).expect("texts are UTF-8")
    }

    #[test]
    fn characters_are_those_of_the_standard_library() {
        // All of two bytes, and every second byte behind each first with some that go on.
        for (first, second) in (0..=0xFFu8).flat_map(|f| (0..=0xFFu8).map(move |s| (f, s))) {
            for rest in [[0x80, 0x80], [0xBF, 0xBF], [0x80, 0x7F], [0x41, 0x80]] {
                let bytes = [first, second, rest[0], rest[1]];
                let known = (1..=4).find_map(|len| std::str::from_utf8(&bytes[..len]).ok());
                let char = known.and_then(|text| text.chars().next());
                let is_text = |c: &char| !c.is_control() || "\n\r\t".contains(*c);
                let want = char.filter(is_text).map_or(0, char::len_utf8);
                assert_eq!(char_len(&bytes[..], 0), want, "{bytes:x?}");
            }
        }
    }

    #[test]
    fn texts_are_found_at_every_place() {
        for before in 0..20 {
            for len in 0..20 {
                let text = &b"abcdefghijklmnopqrst"[..len];
                let bytes = [&vec![0xFF; before][..], text, &[0xFE; 9]].concat();
                let want = if len >= TEXT_BYTES_MIN { text } else { b"" };
                assert_eq!(texts(&bytes).as_bytes(), want, "{before} {len}");
                let wide: Vec<u8> = text.iter().flat_map(|b| [*b, 0]).collect();
                let bytes = [&vec![1; before][..], &wide, &[1; 9]].concat();
                assert_eq!(texts(&bytes).as_bytes(), want, "{before} {len} UTF-16");
                let wide: Vec<u8> = text.iter().flat_map(|b| [0, 0, 0, *b]).collect();
                let bytes = [&vec![1; before][..], &wide, &[1; 9]].concat();
                assert_eq!(texts(&bytes).as_bytes(), want, "{before} {len} UTF-32");
            }
        }
    }

    #[test]
    fn what_stands_beside_a_text_comes_along() {
        let cases: [(&[u8], &str); 7] = [
            (
                b"\x0a\x05token\x12\x10longer-than-eight",
                "token\n\u{10}longer-than-eight",
            ),
            (b"\xff\xfeSchl\xfcssel: 12345", "Schl\u{fc}ssel: 12345"),
            (
                b"one text here\0\0\0and another",
                "one text here\nand another",
            ),
            (b"good text\xffgood text", "good text\u{ff}good text"),
            ("\0ключ от дома".as_bytes(), "ключ от дома"),
            (
                b"\xd0\xd0\xd0\xd0\xd0\xd0\xd0\xd0\xd0\xd0\xd0\xd0\xd0\xd0",
                "",
            ),
            (b"", ""),
        ];
        for (bytes, want) in cases {
            let want: String = want.chars().filter(|c| *c != '\u{10}').collect();
            assert_eq!(texts(bytes), want, "{}", bytes.escape_ascii());
        }
    }
}
