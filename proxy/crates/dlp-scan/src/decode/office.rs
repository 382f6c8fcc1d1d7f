//! The text of a page of an office document, as its reader sees it. What stands on one line is kept in runs: one for each change of
//! letters, of language, of editor, and so in the midst of words (`ghp_</w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>Zq7k`).
//!
//! Word and PowerPoint (ECMA-376, part 1, sections 17.3.2 and 21.1.2.3), shared strings of Excel (18.4.8), OpenDocument
//! (part 3, section 6.1.7). Prefixes are as their writers like.

use super::{Spawner, begin_cell, copy};
use crate::text::{Cell, How, Node, Span};
use crate::{Layer, OverBudget};

/// Longest prefix of a name, and longest name.
const PREFIX_BYTES_MAX: usize = 16;
const NAME_BYTES_MAX: usize = 64;
/// Longest tag. The head of a page names some thirty schemas in one.
const TAG_BYTES_MAX: usize = 8192;

/// What is read in the place of a row of tags: what parts more counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    Nothing,
    Blank,
    Tab,
    Line,
    Cell,
    Row,
}

impl Gap {
    fn text(self) -> &'static [u8] {
        match self {
            Self::Nothing => b"",
            Self::Blank => b" ",
            Self::Tab | Self::Cell => b"\t",
            Self::Line | Self::Row => b"\n",
        }
    }
}

/// Elements that stand within a line and part no word.
const INLINE: [&[u8]; 33] = [
    b"r",
    b"t",
    b"a",
    b"b",
    b"i",
    b"em",
    b"strong",
    b"span",
    b"hyperlink",
    b"proofErr",
    b"bookmarkStart",
    b"bookmarkEnd",
    b"bookmark",
    b"bookmark-start",
    b"bookmark-end",
    b"reference-mark",
    b"reference-mark-start",
    b"reference-mark-end",
    b"change",
    b"change-start",
    b"change-end",
    b"commentRangeStart",
    b"commentRangeEnd",
    b"permStart",
    b"permEnd",
    b"smartTag",
    b"sdt",
    b"sdtContent",
    b"ins",
    b"del",
    b"moveTo",
    b"lastRenderedPageBreak",
    b"soft-page-break",
];

/// What an element means for the text around it.
fn gap_of(name: &[u8]) -> Gap {
    match name {
        b"s" => Gap::Blank,
        b"tab" | b"ptab" => Gap::Tab,
        b"tc" | b"table-cell" => Gap::Cell,
        b"tr" | b"table-row" => Gap::Row,
        _ if INLINE.contains(&name) => Gap::Nothing,
        _ => Gap::Line,
    }
}

pub(super) fn decode(node: &Node, spawn: &mut Spawner<'_>) {
    let (mut index, mut done) = (0, 0);
    for at in memchr::memchr_iter(b'<', &node.text) {
        if at >= done
            && ends_run(&node.text[at..])
            && let Some(cell) = node.cell_from(at, &mut index)
        {
            done = cell.span.end as usize;
            page(node, cell, at, spawn);
        }
    }
}

/// Does a text begin with the end of a run, as no page of the web has it?
fn ends_run(text: &[u8]) -> bool {
    let Some(name) = text.strip_prefix(b"</") else {
        return false;
    };
    let prefix = name.iter().take(PREFIX_BYTES_MAX);
    let prefix = prefix.take_while(|b| b.is_ascii_alphanumeric()).count();
    match &name[prefix..] {
        [b':', local @ ..] => local.starts_with(b"t>") || local.starts_with(b"span>"),
        rest => &name[..prefix] == b"t" && rest.starts_with(b"></r>"),
    }
}

/// How much before the first run and behind the last comes along.
const MARGIN: usize = 512;

/// Where a page begins: no further on than with the text of its first run, and with no half of a tag.
fn page_start(text: &[u8], first: usize, floor: usize) -> usize {
    let run = memchr::memrchr(b'>', &text[floor..first]).map_or(floor, |n| floor + n);
    let from = run.saturating_sub(MARGIN);
    if from <= floor {
        return floor;
    }
    memchr::memchr(b'<', &text[from..first]).map_or(run, |n| from + n)
}

/// Where it ends behind its last run.
fn page_end(text: &[u8], last: usize, ceil: usize) -> usize {
    let end = super::on_char(text, (last + MARGIN).min(ceil), ceil);
    match memchr::memrchr2(b'<', b'>', &text[last + 1..end]) {
        Some(n) if text[last + 1 + n] == b'<' && end < ceil => last + 1 + n,
        _ => end,
    }
}

/// Puts the text from the first run of a cell to its last, with a little of what stands around, into a child.
fn page(node: &Node, cell: &Cell, first: usize, spawn: &mut Spawner<'_>) {
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let mut ends = memchr::memrchr_iter(b'<', &node.text[first..ceil]);
    let last = ends.find(|n| ends_run(&node.text[first + n..ceil]));
    let last = last.map_or(first, |n| first + n);
    let from = page_start(&node.text, first, floor);
    let to = page_end(&node.text, last, ceil);
    if to - from > spawn.room() {
        spawn.over.get_or_insert(OverBudget::DecodedBytes);
        return;
    }
    let Some(mut child) = spawn.begin(Layer::Concat) else {
        return;
    };
    let name = begin_cell(&mut child, node, super::name_of(node, cell));
    let start = child.text.len();
    Page {
        text: &node.text[..to],
        node,
        child: &mut child,
        at: from,
        gap: Gap::Line,
        gap_start: from,
        within: None,
        last: b"",
    }
    .read();
    // All of it is new: what stands at an edge is there for itself.
    child.push(b"\n", Span::new(to - 1, to), How::Atom);
    child.close_cell(start, name, cell.kind, 0);
    spawn.end(child);
}

/// What is said of a run is no longer.
const SAID_BYTES_MAX: usize = 2048;

/// An element without a text of its own that is not over.
struct Within<'n> {
    name: &'n [u8],
    until: usize,
}

struct Page<'n> {
    text: &'n [u8],
    node: &'n Node,
    child: &'n mut Node,
    at: usize,
    /// What is to be written before the next text, and where the first of its tags begins.
    gap: Gap,
    gap_start: usize,
    within: Option<Within<'n>>,
    /// The name of the last tag.
    last: &'n [u8],
}

impl Page<'_> {
    fn read(mut self) {
        while self.at < self.text.len() {
            match self.text[self.at] {
                b'<' => self.tag(),
                _ => self.letters(),
            }
        }
    }

    /// The text up to the next tag.
    fn letters(&mut self) {
        let end = memchr::memchr(b'<', &self.text[self.at + 1..]);
        let end = end.map_or(self.text.len(), |n| self.at + 1 + n);
        let from = std::mem::replace(&mut self.at, end);
        let inner = &self.text[from..end];
        if inner.trim_ascii().is_empty() && (inner.contains(&b'\n') || self.gap > Gap::Blank) {
            // It lays out the file; in OpenDocument it is a blank as well.
            self.part(if self.last == b"span" {
                Gap::Blank
            } else {
                Gap::Nothing
            });
            return;
        }
        // What was deleted is not there for the reader.
        let within = self.within.take();
        if within.is_some_and(|within| within.name == DELETED) {
            return;
        }
        if self.gap > Gap::Nothing {
            let place = Span::new(self.gap_start, from.max(self.gap_start + 1));
            self.child.push(self.gap.text(), place, How::Atom);
        }
        copy(self.child, self.node, from, end);
        (self.gap, self.gap_start) = (Gap::Nothing, end);
    }

    fn tag(&mut self) {
        let text = self.text;
        let Some(tag) = Tag::of(&text[self.at..]) else {
            // A sign, and no tag.
            self.part(Gap::Blank);
            self.at += 1;
            return;
        };
        let start = self.at;
        self.at += tag.len;
        self.last = tag.name;
        if let Some(Within { name, until }) = self.within {
            let over = tag.closes && tag.name == name;
            if over || tag.name == b"t" || start > until {
                self.within = None;
            }
            if over || self.within.is_some() {
                return;
            }
        }
        if tag.name.ends_with(b"Pr") || tag.name == DELETED {
            // What parts texts stands around such an element, not in it.
            self.within = tag.opens.then_some(Within {
                name: tag.name,
                until: start + SAID_BYTES_MAX,
            });
            return;
        }
        self.part(gap_of(tag.name));
    }

    fn part(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }
}

/// The text of a run that an editor took out.
const DELETED: &[u8] = b"delText";

/// A tag that a text begins with.
struct Tag<'t> {
    /// Without its prefix.
    name: &'t [u8],
    len: usize,
    /// Does an element begin or end with it that has something in it?
    opens: bool,
    closes: bool,
}

impl<'t> Tag<'t> {
    fn of(text: &'t [u8]) -> Option<Self> {
        let inner = text.get(1..)?;
        let closes = inner.first() == Some(&b'/');
        let inner = &inner[usize::from(closes)..];
        if !matches!(inner.first(), Some(b'a'..=b'z' | b'A'..=b'Z' | b'!' | b'?')) {
            return None;
        }
        let of_name = |b: &&u8| b.is_ascii_alphanumeric() || b"-_.:".contains(*b);
        let name = &inner[..inner
            .iter()
            .take(NAME_BYTES_MAX)
            .take_while(of_name)
            .count()];
        let local = memchr::memrchr(b':', name).map_or(0, |n| n + 1);
        let tag = &text[..text.len().min(TAG_BYTES_MAX)];
        let end = 1 + memchr::memchr2(b'>', b'<', &tag[1..])?;
        (text[end] == b'>').then(|| Self {
            name: &name[local..],
            len: end + 1,
            opens: !closes && text[end - 1] != b'/',
            closes,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::{assert_bounded, assert_child, children};

    /// What an editor writes between two pieces of a word.
    const WORD: &str = "</w:t></w:r><w:proofErr w:type=\"spellStart\"/><w:r w:rsidR=\"00A\"><w:rPr><w:b/><w:sz w:val=\"24\"/></w:rPr><w:t xml:space=\"preserve\">";

    #[test]
    fn runs_are_one_text() {
        for (open, seam, close) in [
            (
                "<w:p><w:r><w:t>",
                "</w:t></w:r><w:r><w:t>",
                "</w:t></w:r></w:p>",
            ),
            ("<w:p><w:r><w:t>", WORD, "</w:t></w:r></w:p>"),
            (
                "<ns0:p><ns0:r><ns0:t>",
                "</ns0:t></ns0:r>\n  <ns0:r>\n    <ns0:t>",
                "</ns0:t></ns0:r></ns0:p>",
            ),
            (
                "<w:p><w:r><w:t>",
                "</w:t></w:r></w:hyperlink><w:del w:id=\"1\"><w:r><w:delText>old</w:delText></w:r></w:del><w:ins w:id=\"2\"><w:r><w:t>",
                "</w:t></w:r></w:p>",
            ),
            (
                "<a:p><a:r><a:t>",
                "</a:t></a:r><a:r><a:rPr lang=\"en-US\" dirty=\"0\"/><a:t>",
                "</a:t></a:r></a:p>",
            ),
            (
                "<a:p><a:r><a:t>",
                "</a:t></a:r><a:r><a:rPr lang=\"en-US\"><a:solidFill><a:srgbClr val=\"FF0000\"/></a:solidFill></a:rPr><a:t>",
                "</a:t></a:r></a:p>",
            ),
            (
                "<si><r><t>",
                "</t></r><r><rPr><b/><sz val=\"11\"/></rPr><t>",
                "</t></r></si>",
            ),
            (
                "<si><r><t>",
                "</t></r><r><t xml:space=\"preserve\">",
                "</t></r></si>",
            ),
            (
                "<x:si><x:r><x:t>",
                "</x:t></x:r><x:r><x:t>",
                "</x:t></x:r></x:si>",
            ),
            (
                "<text:p>",
                "<text:span text:style-name=\"T1\">",
                "</text:span></text:p>",
            ),
            (
                "<text:p><text:span>",
                "</text:span><text:span text:style-name=\"T1\">",
                "</text:span></text:p>",
            ),
            (
                "<text:p><text:span>",
                "</text:span><text:bookmark text:name=\"x\"/>",
                "</text:p>",
            ),
        ] {
            for (at, label) in [(4, ""), (9, "key: "), (20, "so ")] {
                let (key, rest) = "ghp_Zq7kW2mXv9Lp4TsR8bNc".split_at(at);
                let text = format!("{open}{label}{key}{seam}{rest} ok{close}");
                let want = format!("{label}ghp_Zq7kW2mXv9Lp4TsR8bNc ok\n");
                let found = children(&text);
                let page = found.iter().find(|(layer, child, _)| {
                    *layer == Layer::Concat && child.trim_start() == want
                });
                let Some((_, child, source)) = page else {
                    panic!(
                        "{text}: {:?}",
                        found.iter().map(|c| (c.0, &c.1)).collect::<Vec<_>>()
                    );
                };
                let at = child.find("ghp_").unwrap();
                assert_eq!(text[source(at, at + 24)], format!("{key}{seam}{rest}"));
            }
        }
    }

    #[test]
    fn what_parts_words_is_read_as_such() {
        for (seam, want) in [
            (
                "</w:t></w:r></w:p><w:p><w:pPr><w:jc w:val=\"left\"/><w:rPr><w:b/></w:rPr></w:pPr><w:r><w:t>",
                "ab12\ncd34",
            ),
            ("</w:t></w:r><w:r><w:tab/><w:t>", "ab12\tcd34"),
            ("</w:t></w:r><w:r><w:br/></w:r><w:r><w:t>", "ab12\ncd34"),
            (
                "</w:t></w:r></w:p></w:tc><w:tc><w:tcPr><w:tcW w:w=\"9\"/></w:tcPr><w:p><w:r><w:t>",
                "ab12\tcd34",
            ),
            (
                "</w:t></w:r></w:p></w:tc></w:tr><w:tr><w:tc><w:p><w:r><w:t>",
                "ab12\ncd34",
            ),
            ("</w:t></w:r><w:r><w:t> </w:t></w:r><w:r><w:t>", "ab12 cd34"),
            ("</w:t></w:r><m:oMath/><w:r><w:t>", "ab12\ncd34"),
        ] {
            let text = format!("<w:p><w:r><w:t>ab12{seam}cd34</w:t></w:r></w:p>");
            assert_child(&text, Layer::Concat, Some(want));
        }
        for (seam, want) in [
            ("</text:span><text:s/><text:span>", "ab12 cd34"),
            ("</text:span> <text:span>", "ab12 cd34"),
            ("</text:span>\n <text:span>", "ab12 cd34"),
            ("</text:span><text:tab/><text:span>", "ab12\tcd34"),
            ("</text:span></text:p><text:p><text:span>", "ab12\ncd34"),
        ] {
            let text = format!("<text:p><text:span>ab12{seam}cd34</text:span></text:p>");
            assert_child(&text, Layer::Concat, Some(want));
        }
        let text = "<si><r><t>ab12</t></r></si><si><r><t>cd34</t></r></si>";
        assert_child(text, Layer::Concat, Some("ab12\ncd34"));
    }

    #[test]
    fn other_markup_is_no_page() {
        for text in [
            "<ns:card>4539104883</ns:card><ns:cvv>40362</ns:cvv>",
            "<r>12345678</r><r>90123456</r>",
            "fn f<T: Into<u8:t>>(a: T) -> bool",
            "<c r=\"A1\" t=\"s\"><v>0</v></c>",
        ] {
            assert_child(text, Layer::Concat, None);
        }
    }

    #[test]
    fn what_is_not_closed_hides_nothing() {
        let text = "<w:t>a</w:t><w:rPr><w:b/>ghp_Zq7k<w:rPr>W2mXv9</w:p><w:t>cd</w:t>";
        assert_child(text, Layer::Concat, Some("ghp_Zq7kW2mXv9\ncd"));
        let far = format!(
            "<w:t>ab</w:t><w:rPr>{}<w:p><w:t>cd</w:t>",
            "<w:b/>".repeat(500)
        );
        assert_child(&far, Layer::Concat, Some("ab\ncd"));
    }

    #[test]
    fn many_are_paid_for() {
        assert_bounded("<w:t>ab</w:t>");
    }
}
