//! The texts of one scan: the message itself, and what was decoded out of it.
//!
//! A [`Node`] is a run of bytes cut into [`Cell`]s. The root holds the leaves one after another; a child holds what
//! one decoding step made of a piece of its parent, with a [`Seg`] list that leads every byte back. Cells are kept
//! apart by control bytes which no rule matches, and no detector looks past the end of its cell.

use crate::blob::Blob;
use smallvec::SmallVec;

use crate::layout::Layout;
use crate::{Layer, LeafKind};

/// Stands between a name and the value under it.
pub(crate) const NAME_END: u8 = 0x1E;
/// Stands after a value.
pub(crate) const CELL_END: u8 = 0x1F;
/// The leaf of a cell that stands in no leaf (a name given without its key).
pub(crate) const NO_LEAF: u32 = u32::MAX;

/// A half-open byte range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, PartialOrd, Ord)]
pub(crate) struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    #[inline]
    pub fn new(start: usize, end: usize) -> Self {
        Self {
            start: to_u32(start),
            end: to_u32(end),
        }
    }

    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    pub fn len(self) -> usize {
        (self.end.saturating_sub(self.start)) as usize
    }

    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Offsets are 32 bit; texts longer than that are cut before they get here (see `scanner`).
#[inline]
pub(crate) fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Shorter runs are words: nothing is encoded in them, and no token's prefix means anything.
pub(crate) const RUN_BYTES_MIN: usize = 16;

/// Letters, digits and what else base64 in all its alphabets, and most tokens, are made of.
pub(crate) fn is_run(b: u8) -> bool {
    RUN[usize::from(b)]
}

static RUN: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < 256 {
        let c = b as u8;
        table[b] = c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/' | b'-' | b'_');
        b += 1;
    }
    table
};

/// A table of which bytes are among these: one look for each, whatever stands there.
pub(crate) const fn table_of(bytes: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut at = 0;
    while at < bytes.len() {
        table[bytes[at] as usize] = true;
        at += 1;
    }
    table
}

/// Is `word` one of `list`: words in the order of their bytes, with one blank or line end between them? Nothing is built for it.
pub(crate) fn has_word(list: &str, word: &str) -> bool {
    let bytes = list.as_bytes();
    let (mut from, mut to) = (0, bytes.len());
    while from < to {
        let middle = from + (to - from) / 2;
        let before = bytes[from..middle]
            .iter()
            .rposition(u8::is_ascii_whitespace);
        let start = before.map_or(from, |at| from + at + 1);
        let rest = bytes[middle..to].iter().position(u8::is_ascii_whitespace);
        let end = rest.map_or(to, |n| middle + n);
        match bytes[start..end].cmp(word.as_bytes()) {
            std::cmp::Ordering::Less => from = end + 1,
            std::cmp::Ordering::Greater => to = start,
            std::cmp::Ordering::Equal => return !word.is_empty(),
        }
    }
    false
}

/// Eight bytes as one number, the first the lowest; nothing at the end of the text.
pub(crate) fn word_at(text: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*text.get(at..)?.first_chunk()?))
}

/// The characters of a text that are not ASCII, and where they begin. Most text has few, so the rest is passed over
/// by the word.
pub(crate) struct Wide<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Wide<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }
}

impl Iterator for Wide<'_> {
    type Item = (usize, char);

    fn next(&mut self) -> Option<(usize, char)> {
        let bytes = self.text.as_bytes();
        while let Some(block) = bytes.get(self.at..self.at + 16) {
            if !block.is_ascii() {
                break;
            }
            self.at += 16;
        }
        let at = self.at + bytes.get(self.at..)?.iter().position(|b| !b.is_ascii())?;
        let c = self.text[at..].chars().next()?;
        self.at = at + c.len_utf8();
        Some((at, c))
    }
}

/// One value, key or number inside a node's text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub span: Span,
    /// Where in the same text the name above this value is written; empty when there is none.
    pub name: Span,
    pub kind: LeafKind,
    /// Only meaningful in the root.
    pub leaf: u32,
}

/// How a run of decoded bytes came out of its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Byte for byte.
    Copy,
    /// All bytes of the run stand for all bytes of the source.
    Atom,
    /// `dst` bytes for every `src` bytes (base64: 3 for 4).
    Blocks { dst: u8, src: u8 },
    /// Byte for byte, the last first.
    Reversed,
}

/// A run of decoded bytes, from `dst` to the next segment's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seg {
    pub dst: u32,
    pub src: Span,
    pub how: How,
}

impl Seg {
    /// Source bytes of the decoded byte `dst`.
    fn source_of(&self, dst: u32) -> Span {
        let off = dst.saturating_sub(self.dst);
        match self.how {
            How::Atom => self.src,
            How::Copy => {
                let at = self
                    .src
                    .start
                    .saturating_add(off)
                    .min(self.src.end.saturating_sub(1));
                Span {
                    start: at,
                    end: at + 1,
                }
            }
            How::Reversed => {
                let at = self.src.end.saturating_sub(off + 1).max(self.src.start);
                Span {
                    start: at,
                    end: at + 1,
                }
            }
            How::Blocks { dst: d, src: s } => {
                let start = self.src.start + off / u32::from(d) * u32::from(s);
                Span {
                    start: start.min(self.src.end),
                    end: (start + u32::from(s)).min(self.src.end),
                }
            }
        }
    }
}

/// What a node was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Parent {
    /// The message.
    #[default]
    Root,
    /// A leaf's text, not copied into the root.
    Leaf(u32),
    /// A piece of another node.
    Node(u32),
}

/// The part of a text that its decoder made: from the first change to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fresh {
    start: u32,
    end: u32,
}

impl Default for Fresh {
    fn default() -> Self {
        Self {
            start: 0,
            end: u32::MAX,
        }
    }
}

impl Fresh {
    /// Does it hold part of the span, or touch it? What two pieces give only together touches where they meet.
    pub fn touches(self, span: Span) -> bool {
        span.start <= self.end && self.start <= span.end
    }

    pub fn overlaps(self, span: Span) -> bool {
        span.start < self.end && self.start < span.end
    }

    /// The part of the span that is in it.
    pub fn within(self, span: Span) -> Span {
        let start = span.start.max(self.start).min(span.end);
        Span {
            start,
            end: span.end.min(self.end).max(start),
        }
    }
}

impl From<Span> for Fresh {
    fn from(Span { start, end }: Span) -> Self {
        Self { start, end }
    }
}

/// One text of the scan.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub text: Vec<u8>,
    pub cells: Vec<Cell>,
    pub segs: Vec<Seg>,
    pub layout: Layout,
    pub parent: Parent,
    pub layer: Option<Layer>,
    /// A step before `layer` that left no text of its own (base64 around gzip).
    pub under: Option<Layer>,
    pub depth: u8,
    /// How many of the layers over it are codes that somebody wrote, and not only another way to read what stands there.
    pub coded: u8,
    /// What may be looked for in it.
    pub only_injection: bool,
    /// What reads sentences for their sense has been over it.
    pub only_patterns: bool,
    /// It lies in bytes that are mostly no text: only what is sure by itself is worth a word.
    pub only_sure: bool,
    /// Was read backwards, rotated, or with digits for letters, here or further up.
    pub turned: bool,
    /// Only what stands beside the ends of lines: whoever reads whole sentences has read them in the parent.
    pub fragments: bool,
    /// What is new in it; the rest is its surroundings, where the parent's decoders have been. All of a root.
    pub fresh: Fresh,
    /// What was taken over from a text's noise (see [`crate::blob`]): it was judged there.
    pub noise: Vec<Span>,
    /// Of a text with several calls replaced: what each became. Between these it is as its parent is.
    pub made: Vec<Span>,
}

impl Node {
    pub fn clear(&mut self) {
        self.text.clear();
        self.cells.clear();
        self.segs.clear();
        self.layout.clear();
        self.parent = Parent::Root;
        self.layer = None;
        self.under = None;
        self.depth = 0;
        self.coded = 0;
        self.only_injection = false;
        self.only_patterns = false;
        self.only_sure = false;
        self.turned = false;
        self.fragments = false;
        self.fresh = Fresh::default();
        self.made.clear();
        self.noise.clear();
    }

    /// Notes what of it is a copy of its parent's noise: of what is noise there, and of what that took over; both in order.
    pub fn note_noise(&mut self, blobs: &[Blob], taken: &[Span]) {
        for seg in self.segs.iter().filter(|seg| seg.how == How::Copy) {
            let src = seg.src;
            let from = blobs.partition_point(|blob| blob.span.end <= src.start);
            let blobs = blobs[from..].iter().map(|blob| blob.span);
            let from = taken.partition_point(|piece| piece.end <= src.start);
            let taken = taken[from..].iter().copied();
            let reaches = |piece: &Span| piece.start < src.end;
            for piece in blobs.take_while(reaches).chain(taken.take_while(reaches)) {
                let to = |at: u32| seg.dst + (at - src.start);
                self.noise.push(Span {
                    start: to(piece.start.max(src.start)),
                    end: to(piece.end.min(src.end)),
                });
            }
        }
        self.noise
            .sort_unstable_by_key(|piece| (piece.start, piece.end));
    }

    /// Whether a piece of it was taken over from noise.
    pub fn is_from_noise(&self, piece: Span) -> bool {
        let behind = self
            .noise
            .partition_point(|noise| noise.start <= piece.start);
        self.noise[..behind]
            .last()
            .is_some_and(|noise| piece.end <= noise.end)
    }

    /// How much memory it holds on to.
    pub fn bytes_kept(&self) -> usize {
        self.text.capacity()
            + self.cells.capacity() * size_of::<Cell>()
            + self.segs.capacity() * size_of::<Seg>()
            + (self.made.capacity() + self.noise.capacity()) * size_of::<Span>()
            + self.layout.bytes_kept()
    }

    /// Appends decoded bytes and notes where they came from. Adjoining copies become one segment.
    pub fn push(&mut self, bytes: &[u8], src: Span, how: How) {
        if bytes.is_empty() {
            return;
        }
        let dst = to_u32(self.text.len());
        self.text.extend_from_slice(bytes);
        if how == How::Copy
            && let Some(last) = self.segs.last_mut()
            && last.how == How::Copy
            && last.src.end == src.start
            && last.dst + (last.src.end - last.src.start) == dst
        {
            last.src.end = src.end;
            return;
        }
        self.segs.push(Seg { dst, src, how });
    }

    /// Was most of it a letter each that need not have been written otherwise?
    pub fn hides_letters(&self) -> bool {
        let made = self.segs.iter().filter(|seg| seg.how == How::Atom);
        let letters = made.filter(|seg| {
            self.text
                .get(seg.dst as usize)
                .is_some_and(u8::is_ascii_alphanumeric)
        });
        let fresh = self.fresh.within(Span::new(0, self.text.len()));
        letters.count() * 2 > (fresh.end - fresh.start) as usize
    }

    /// Notes what is new in this text, and returns what it was made of in the parent's.
    pub fn find_fresh(&mut self) -> Span {
        let (Some(first), Some(last)) = (self.segs.first(), self.segs.last()) else {
            return Span::default();
        };
        let whole = matches!(
            self.layer,
            None | Some(
                Layer::Json
                    | Layer::Joined
                    | Layer::Reversed
                    | Layer::Rot13
                    | Layer::Leet
                    | Layer::Number
                    | Layer::Table
            )
        );
        if whole {
            return Span {
                start: first.src.start.min(last.src.start),
                end: first.src.end.max(last.src.end),
            };
        }
        // The first segment and the last, where they are copies, are the surroundings.
        let (start, from) = match (first.how, self.segs.get(1)) {
            (How::Copy, Some(next)) => (next.dst, first.src.end),
            _ => (first.dst, first.src.start),
        };
        let (end, to) = match last.how {
            How::Copy if self.segs.len() > 1 => (last.dst, last.src.start),
            _ => (to_u32(self.text.len()), last.src.end),
        };
        // Nothing goes over the blank that ends a code's bytes, nor over what pads its digits: in a list of values each would be a layer
        // under the one before.
        let is_code = matches!(
            self.layer,
            Some(Layer::Base64 | Layer::Base32 | Layer::Base58 | Layer::Hex)
        );
        let blank = self.segs.iter().rev().find(|seg| seg.dst < end);
        let blank = blank.filter(|seg| {
            is_code && seg.dst > start && seg.dst + 1 == end && self.text[seg.dst as usize] == b' '
        });
        let (end, to) = blank.map_or((end, to), |seg| (seg.dst, seg.src.end));
        self.fresh = Fresh { start, end };
        Span {
            start: from.min(to),
            end: to.max(from),
        }
    }

    /// Closes the text since `start` into a cell.
    pub fn close_cell(&mut self, start: usize, name: Span, kind: LeafKind, leaf: u32) {
        let span = Span::new(start, self.text.len());
        self.cells.push(Cell {
            span,
            name,
            kind,
            leaf,
        });
        self.text.push(end_of(kind));
    }

    /// Appends a cell with this text, and returns where the text stands. Most are short: what a copy of any length has to
    /// find out first takes longer than the copy.
    #[inline(always)]
    pub fn push_cell(&mut self, text: &[u8], name: Span, kind: LeafKind, leaf: u32) -> Span {
        const SHORT: usize = 32;
        let (start, len) = (self.text.len(), text.len());
        if len <= SHORT {
            self.text.extend_from_slice(&[0; SHORT + 1]);
            let room = &mut self.text[start..start + SHORT + 1];
            match (
                text.first_chunk::<16>(),
                text.first_chunk::<8>(),
                text.first_chunk::<4>(),
            ) {
                (Some(first), ..) => ends(room, first, text),
                (_, Some(first), _) => ends(room, first, text),
                (.., Some(first)) => ends(room, first, text),
                _ => room.iter_mut().zip(text).for_each(|(to, b)| *to = *b),
            }
            room[len] = end_of(kind);
            self.text.truncate(start + len + 1);
        } else {
            self.text.reserve(len + 1);
            self.text.extend_from_slice(text);
            self.text.push(end_of(kind));
        }
        let span = Span::new(start, start + len);
        self.cells.push(Cell {
            span,
            name,
            kind,
            leaf,
        });
        span
    }

    /// The cell that a byte lies in.
    pub fn cell_at(&self, at: u32) -> Option<usize> {
        let i = self.cells.partition_point(|c| c.span.end <= at);
        self.cells
            .get(i)
            .is_some_and(|c| c.span.start <= at)
            .then_some(i)
    }

    /// The value or key cell around `at`, for positions that only grow. Made-up cells are passed over.
    pub fn cell_from(&self, at: usize, index: &mut usize) -> Option<&Cell> {
        while self
            .cells
            .get(*index)
            .is_some_and(|c| c.span.end as usize <= at)
        {
            *index += 1;
        }
        let cell = self.cells.get(*index)?;
        (cell.span.start as usize <= at && cell.leaf != NO_LEAF).then_some(cell)
    }

    /// Where a decoded range stood in the parent's text: one range, or one for each part if the node was joined
    /// from several places.
    pub fn to_parent(&self, span: Span) -> SmallVec<[Span; 2]> {
        let mut out: SmallVec<[Span; 2]> = SmallVec::new();
        for part in self.segments_of(span) {
            match out.last_mut() {
                Some(prev) if self.layer != Some(Layer::Joined) => merge(prev, part),
                _ => out.push(part),
            }
        }
        out
    }

    /// The same, each piece of the parent's text by itself.
    pub fn segments_of(&self, span: Span) -> SmallVec<[Span; 2]> {
        let mut out = SmallVec::new();
        if span.is_empty() || self.segs.is_empty() {
            return out;
        }
        let first = self
            .segs
            .partition_point(|s| s.dst <= span.start)
            .saturating_sub(1);
        let last = self
            .segs
            .partition_point(|s| s.dst < span.end)
            .saturating_sub(1);
        for i in first..=last {
            let seg = &self.segs[i];
            let seg_end = self.segs.get(i + 1).map_or(span.end, |n| n.dst);
            let (a, b) = (span.start.max(seg.dst), span.end.min(seg_end));
            if a >= b {
                continue;
            }
            let (x, y) = (seg.source_of(a), seg.source_of(b - 1));
            let part = Span {
                start: x.start.min(y.start),
                end: x.end.max(y.end),
            };
            out.push(part);
        }
        out
    }
}

/// What stands behind a cell.
#[inline(always)]
fn end_of(kind: LeafKind) -> u8 {
    match kind {
        LeafKind::Key => NAME_END,
        _ => CELL_END,
    }
}

/// Writes the first and the last `N` bytes of a text, which overlap where it has less than twice as many, and no more.
#[inline(always)]
fn ends<const N: usize>(room: &mut [u8], first: &[u8; N], text: &[u8]) {
    if let (Some(to), Some(last)) = (room.first_chunk_mut(), text.last_chunk::<N>()) {
        *to = *first;
        room[text.len() - N..][..N].copy_from_slice(last);
    }
}

fn merge(into: &mut Span, other: Span) {
    into.start = into.start.min(other.start);
    into.end = into.end.max(other.end);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(layer: Layer) -> Node {
        Node {
            layer: Some(layer),
            ..Node::default()
        }
    }

    #[test]
    fn each_word_of_a_list_is_found_and_nothing_else() {
        for list in [
            "",
            "a",
            "a b",
            "ab abc\nabd\nb\n",
            "aa\nab ac ad\nþóra\nʻ ünal",
        ] {
            let mut words: Vec<&str> = list.split_ascii_whitespace().collect();
            words.sort_unstable();
            let sorted = words.join("\n") + "\n";
            for word in &words {
                assert!(has_word(&sorted, word), "{word} in {sorted:?}");
            }
            for other in [
                "",
                " ",
                "\n",
                "A",
                "abb",
                "a b",
                "zz",
                "ac\nad",
                "\u{10ffff}",
            ] {
                assert!(
                    words.contains(&other) || !has_word(&sorted, other),
                    "{other:?} in {sorted:?}"
                );
            }
        }
    }

    #[test]
    fn wide_characters_are_found_at_every_place() {
        for pad in 0..40 {
            let text = format!("{}é{}—日x\u{e0041}", "a".repeat(pad), "b".repeat(pad / 3));
            let want: Vec<_> = text.char_indices().filter(|(_, c)| !c.is_ascii()).collect();
            assert_eq!(Wide::new(&text).collect::<Vec<_>>(), want, "{pad}");
        }
        assert_eq!(Wide::new("").next(), None);
    }

    #[test]
    fn a_cell_of_any_length_is_what_it_was_made_of() {
        let letters: Vec<u8> = (b'!'..b'z').collect();
        let (mut whole, mut copied) = (Node::default(), Node::default());
        for len in 0..letters.len() {
            let text = &letters[letters.len() - len..];
            let kind = [LeafKind::Key, LeafKind::String][len % 2];
            let span = whole.push_cell(text, Span::new(len, 2 * len), kind, to_u32(len));
            let start = copied.text.len();
            copied.text.extend_from_slice(text);
            copied.close_cell(start, Span::new(len, 2 * len), kind, to_u32(len));
            assert_eq!(&whole.text[span.range()], text);
        }
        assert_eq!(whole.text, copied.text);
        let cells = |node: &Node| format!("{:?}", node.cells);
        assert_eq!(cells(&whole), cells(&copied));
    }

    #[test]
    fn every_kind_of_segment_leads_back() {
        let cases: &[(How, &[u8], Span, Span, Span)] = &[
            (
                How::Copy,
                b"abcdef",
                Span::new(10, 16),
                Span::new(1, 3),
                Span::new(11, 13),
            ),
            (
                How::Atom,
                b"ab",
                Span::new(10, 30),
                Span::new(1, 2),
                Span::new(10, 30),
            ),
            (
                How::Blocks { dst: 3, src: 4 },
                b"abcdef",
                Span::new(8, 16),
                Span::new(2, 4),
                Span::new(8, 16),
            ),
            (
                How::Blocks { dst: 1, src: 2 },
                b"abcd",
                Span::new(0, 8),
                Span::new(1, 3),
                Span::new(2, 6),
            ),
            (
                How::Reversed,
                b"abcdef",
                Span::new(0, 6),
                Span::new(0, 2),
                Span::new(4, 6),
            ),
        ];
        for (how, bytes, src, ask, want) in cases {
            let mut n = node(Layer::Base64);
            n.push(bytes, *src, *how);
            assert_eq!(n.to_parent(*ask).as_slice(), &[*want], "{how:?}");
        }
    }

    #[test]
    fn only_joined_nodes_give_several_parts() {
        for (layer, want) in [(Layer::Joined, 2), (Layer::Escapes, 1)] {
            let mut n = node(layer);
            n.push(b"abc", Span::new(5, 8), How::Copy);
            n.push(b"def", Span::new(20, 23), How::Copy);
            let parts = n.to_parent(Span::new(1, 5));
            assert_eq!(parts.len(), want);
            assert_eq!((parts[0].start, parts[want - 1].end), (6, 22));
        }
    }
}
