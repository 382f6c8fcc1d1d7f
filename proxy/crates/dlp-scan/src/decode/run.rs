//! A run of digits, on one line or on several.

use std::borrow::Cow;

use smallvec::{SmallVec, smallvec};

use super::digits::Alphabet;
use crate::text::{How, Node, Span, is_run};

/// The digits of a run alone, and where they stand in the text.
pub(super) struct Run<'t> {
    pub digits: Cow<'t, [u8]>,
    /// Of each line the first digit, by its number and by its place.
    lines: SmallVec<[(usize, usize); 1]>,
}

impl<'t> Run<'t> {
    pub fn new(source: &'t [u8], start: usize) -> Self {
        if source.iter().all(|b| is_run(*b)) {
            return Self {
                digits: Cow::Borrowed(source),
                lines: smallvec![(0, start)],
            };
        }
        let (mut digits, mut lines, mut at) =
            (Vec::with_capacity(source.len()), SmallVec::new(), start);
        for line in source.split(|b| !is_run(*b)) {
            if !line.is_empty() {
                lines.push((digits.len(), at));
                digits.extend_from_slice(line);
            }
            at += line.len() + 1;
        }
        Self {
            digits: Cow::Owned(digits),
            lines,
        }
    }

    /// Of digits that stand in these places, of which each is a line.
    pub fn of_lines(digits: &'t [u8], places: &[Span]) -> Self {
        let first = places.iter().scan(0, |next, place| {
            let first = *next;
            *next += place.len();
            Some((first, place.start as usize))
        });
        Self {
            digits: Cow::Borrowed(digits),
            lines: first.collect(),
        }
    }

    /// Where a digit stands, and the number of the first digit of the next line.
    fn place(&self, digit: usize) -> (usize, usize) {
        let next = self.lines.partition_point(|(first, _)| *first <= digit);
        let (first, place) = self.lines[next - 1];
        let end = self
            .lines
            .get(next)
            .map_or(self.digits.len(), |line| line.0);
        (place + digit - first, end)
    }

    /// The digits that decoded bytes come from. So many digits were left out before the first group.
    pub fn source(&self, start: usize, end: usize, skipped: usize, alphabet: Alphabet) -> Span {
        let (bytes, digits) = alphabet.group();
        let first = skipped + start / bytes * digits;
        let last = skipped + end.div_ceil(bytes) * digits;
        let last = last.min(self.digits.len()) - 1;
        Span::new(self.place(first).0, self.place(last).0 + 1)
    }

    /// Appends decoded bytes, of which the first has this number, with the digits that they come from.
    pub fn push(
        &self,
        child: &mut Node,
        text: &[u8],
        (first, skipped): (usize, usize),
        alphabet: Alphabet,
    ) {
        let (bytes, digits) = alphabet.group();
        let (mut at, end) = (first, first + text.len());
        while at < end {
            let from = skipped + at / bytes * digits;
            let (place, line_end) = self.place(from);
            let groups = (line_end - from) / digits;
            // A group that is cut, by the end of a line or of the text, stands by itself.
            let (to, source, how) = if at % bytes == 0 && groups > 0 {
                let to = end.min(at + groups * bytes);
                let source = Span::new(place, place + (to - at).div_ceil(bytes) * digits);
                let (dst, src) = (bytes as u8, digits as u8);
                (to, source, How::Blocks { dst, src })
            } else {
                let to = end.min((at / bytes + 1) * bytes);
                (to, self.source(at, to, skipped, alphabet), How::Atom)
            };
            child.push(&text[at - first..to - first], source, how);
            at = to;
        }
    }
}
