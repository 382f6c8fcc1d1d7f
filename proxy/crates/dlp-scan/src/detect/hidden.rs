//! Text that people do not see and models do.

use super::Sink;
use crate::Layer;
use crate::ruleset::Detector;
use crate::text::{Span, Wide};

/// This many tag characters in a row are no flag: the longest regional flag has six.
const TAGS_MIN: u32 = 8;
/// Emoji carry one variation selector, ideographs one; a message needs a run.
const SELECTORS_MIN: u32 = 6;
/// This many invisible characters between letters are no accident of typesetting.
const ZERO_WIDTH_MIN: u32 = 6;
/// So many in a row, of two kinds that each come so often, are the bits of a message. Mails pad their first line with
/// long rows of one kind, or with blanks between.
const BITS_MIN: u32 = 16;
const BITS_OF_A_KIND_MIN: u32 = 4;

/// What a character is, when it is not to be seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unseen {
    Tag,
    Selector,
    Bidi,
    ZeroWidth,
}

/// Classifies a character that leaves no ink.
pub(crate) fn unseen(c: char) -> Option<Unseen> {
    Some(match u32::from(c) {
        0xE0001 | 0xE0020..=0xE007F => Unseen::Tag,
        0xFE00..=0xFE0E | 0xE0100..=0xE01EF => Unseen::Selector,
        0x202A..=0x202E | 0x2066..=0x2069 => Unseen::Bidi,
        0xAD
        | 0x180E
        | 0x200B..=0x200F
        | 0x2060..=0x2064
        | 0x206A..=0x206F
        | 0xFEFF
        | 0x34F
        | 0x115F
        | 0x1160
        | 0x3164
        | 0xFFA0 => Unseen::ZeroWidth,
        _ => return None,
    })
}

pub(super) fn scan(sink: &mut Sink<'_>) {
    let text = sink.text();
    for cell in &sink.node.cells {
        let bytes = &text[cell.span.range()];
        if !bytes.is_ascii()
            && let Ok(cell_text) = std::str::from_utf8(bytes)
        {
            scan_cell(cell_text, cell.span.start, sink);
        }
    }
}

#[derive(Default)]
struct Run {
    start: u32,
    end: u32,
    count: u32,
}

impl Run {
    fn add(&mut self, start: u32, end: u32) {
        if self.count == 0 {
            self.start = start;
        }
        self.end = end;
        self.count += 1;
    }

    fn take(&mut self) -> Self {
        std::mem::take(self)
    }
}

/// Invisible characters with nothing to be seen between them.
#[derive(Default)]
struct Row {
    run: Run,
    first: char,
    like_first: u32,
}

impl Row {
    fn add(&mut self, c: char, start: u32, end: u32) {
        if self.run.count == 0 {
            (self.first, self.like_first) = (c, 0);
        }
        self.like_first += u32::from(c == self.first);
        self.run.add(start, end);
    }

    /// Reports what may be the bits of a message, and begins anew.
    fn flush(&mut self, sink: &mut Sink<'_>) {
        let rarer = self.like_first.min(self.run.count - self.like_first);
        let min = match rarer >= BITS_OF_A_KIND_MIN {
            true => BITS_MIN,
            false => u32::MAX,
        };
        self.like_first = 0;
        flush(&mut self.run, min, Detector::ZeroWidth, sink);
    }
}

fn scan_cell(text: &str, base: u32, sink: &mut Sink<'_>) {
    let (mut tags, mut selectors, mut zero, mut bidi) = (
        Run::default(),
        Run::default(),
        Run::default(),
        Run::default(),
    );
    let mut row = Row::default();
    // `[\u202A-\u202E]`: in a pattern that looks for them they are written out. As they are they turn what stands behind.
    // What folds letters reads the same once more, and a text that has them as they are was judged before that.
    let written = matches!(sink.node.layer, Some(Layer::Escapes | Layer::Fold));
    let mut overrides = false;
    let mut last_end = base;
    for (i, c) in Wide::new(text) {
        let Some(kind) = unseen(c) else { continue };
        let start = base + i as u32;
        let end = start + c.len_utf8() as u32;
        if start > last_end {
            // Something to be seen stands between: a new row begins.
            flush(&mut tags, TAGS_MIN, Detector::UnicodeTags, sink);
            flush(
                &mut selectors,
                SELECTORS_MIN,
                Detector::VariationSelectors,
                sink,
            );
            row.flush(sink);
        }
        last_end = end;
        match kind {
            Unseen::Tag => tags.add(start, end),
            Unseen::Selector => selectors.add(start, end),
            Unseen::ZeroWidth => {
                row.add(c, start, end);
                zero.add(start, end);
            }
            Unseen::Bidi if written && (of_range(text, i, c) || turns_nothing(text, i, c)) => {}
            Unseen::Bidi => {
                overrides |= matches!(c, '\u{202D}' | '\u{202E}');
                bidi.add(start, end);
            }
        }
    }
    flush(&mut tags, TAGS_MIN, Detector::UnicodeTags, sink);
    flush(
        &mut selectors,
        SELECTORS_MIN,
        Detector::VariationSelectors,
        sink,
    );
    row.flush(sink);
    // Between ASCII letters: scripts that need joiners do not look like this.
    if zero.count >= ZERO_WIDTH_MIN
        && text.bytes().filter(u8::is_ascii_alphanumeric).count() as u32 >= zero.count
        && between_letters(text) >= ZERO_WIDTH_MIN
    {
        flush(&mut zero, ZERO_WIDTH_MIN, Detector::ZeroWidth, sink);
    }
    // An override in a text with no right-to-left letters turns only the reader's eyes.
    let right_to_left = || {
        Wide::new(text)
            .any(|(_, c)| matches!(u32::from(c), 0x590..=0x8FF | 0xFB1D..=0xFDFF | 0xFE70..=0xFEFC))
    };
    if overrides && !right_to_left() {
        flush(&mut bidi, 1, Detector::Bidi, sink);
    }
}

/// Does it stand at an end of a range?
fn of_range(text: &str, at: usize, c: char) -> bool {
    let ends = |c: char| unseen(c) == Some(Unseen::Bidi);
    let behind = text[at + c.len_utf8()..].strip_prefix('-');
    let before = text[..at].strip_suffix('-');
    behind.is_some_and(|rest| rest.starts_with(ends))
        || before.is_some_and(|rest| rest.ends_with(ends))
}

/// `'\u{202D}' | '\u{202E}'`, `U+202E = \u202e RIGHT-TO-LEFT`: no word begins or goes on right behind it, as in tables of characters.
fn turns_nothing(text: &str, at: usize, c: char) -> bool {
    let behind = text[at + c.len_utf8()..].chars();
    let mut seen = behind.skip_while(|c| unseen(*c) == Some(Unseen::Bidi));
    !seen.next().is_some_and(char::is_alphanumeric)
}

fn between_letters(text: &str) -> u32 {
    const SOFT_HYPHEN: char = '\u{AD}';
    let mut count = 0;
    let mut prev = ' ';
    let (mut pending, mut piece) = (false, 0);
    for c in text.chars() {
        if unseen(c) == Some(Unseen::ZeroWidth) {
            // Typesetters put soft hyphens between syllables, not between letters.
            let syllable = c == SOFT_HYPHEN && piece > 1;
            pending = prev.is_ascii_alphanumeric() && !syllable;
            piece = 0;
        } else {
            count += u32::from(pending && c.is_ascii_alphanumeric());
            pending = false;
            piece = if c.is_alphanumeric() { piece + 1 } else { 0 };
            prev = c;
        }
    }
    count
}

fn flush(run: &mut Run, min: u32, detector: Detector, sink: &mut Sink<'_>) {
    let run = run.take();
    if run.count >= min {
        sink.report_for(
            detector,
            Span {
                start: run.start,
                end: run.end,
            },
            None,
        );
    }
}
