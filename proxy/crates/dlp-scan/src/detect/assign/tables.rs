//! Tables of lines: the values under a name that stands in the head.

use super::{Asker, HEAD_BYTES_MAX};
use crate::decode::is_measured;
use crate::text::{Cell, Span, to_u32};

/// Longest head of a table.
const HEAD_LINE_BYTES_MAX: usize = 16 * 1024;
/// Lines in a row that are too short for the table and yet read: what a field broken over lines leaves, notes between.
const MISFITS_MAX: usize = 16;
/// Bytes of a line that are read for the price of one look.
const BYTES_A_LOOK: usize = 64;
/// How far behind a head its delimiter may stand.
const BLANKS_MAX: usize = 64;
/// Most tables that are remembered.
const TABLES_MAX: usize = 64;

/// Heads of numbers that say how often the other column's value occurs.
const COUNTS: [&[u8]; 14] = [
    b"count",
    b"counts",
    b"cnt",
    b"n",
    b"total",
    b"cases",
    b"frequency",
    b"freq",
    b"percent",
    b"share",
    b"anzahl",
    b"anteil",
    b"nombre",
    b"prevalence",
];

/// The fields under a name, row by row.
#[derive(Debug)]
pub(super) struct Column<'t> {
    text: &'t [u8],
    /// Where the next row begins, and where the text ends.
    at: usize,
    ceil: usize,
    delimiter: u8,
    /// Which field of a row it is, and how many delimiters the head has.
    nth: usize,
    columns: usize,
    /// The head is the first line of its cell; above others stands text.
    first: bool,
    misfits: usize,
}

impl<'t> Column<'t> {
    /// In a table of lines: the values under a name that stands in its first line. Above a table whose head has three
    /// columns and more, other text may stand.
    pub fn under(text: &'t [u8], name: Span, cell: &Cell) -> Option<Self> {
        let (top, ceil) = (cell.span.start as usize, cell.span.end as usize);
        let reach = (name.start as usize)
            .saturating_sub(HEAD_BYTES_MAX)
            .max(top);
        let line = memchr::memrchr(b'\n', &text[reach..name.start as usize]);
        let floor = line.map_or(reach, |at| reach + at + 1);
        let before = &text[floor..name.start as usize];
        let after = &text[name.end as usize..ceil];
        // The heads may be in quotes, with blanks around them.
        let (before, after) = match (before.strip_suffix(b"\""), after.strip_prefix(b"\"")) {
            (Some(before), Some(after)) => (before, after),
            _ => (before, after),
        };
        let last = before.iter().rev().find(|b| **b != b' ');
        let after = after.iter().take(BLANKS_MAX).find(|b| **b != b' ');
        let delimiter = [b',', b';', b'\t', b'|']
            .into_iter()
            .find(|d| last == Some(d) || after == Some(d))?;
        // Without a second line there is nothing under the heads.
        let head = &text[floor..ceil.min(floor + HEAD_LINE_BYTES_MAX)];
        let head = &head[..memchr::memchr(b'\n', head)?];
        let columns = memchr::memchr_iter(delimiter, head).count();
        // Dots lead from a word to its page: a list of contents.
        if memchr::memmem::find(head, b"....").is_some() {
            return None;
        }
        if floor > top && (columns < 2 || floor == reach && line.is_none()) {
            return None;
        }
        // `base-passwd<tab>3.6.1<tab>Ann`: a row of a table without heads, one of whose fields only sounds like a name.
        let fields = |line: &'t [u8]| line.split(move |b| *b == delimiter);
        if fields(head).any(|field| is_measured(field.trim_ascii())) {
            return None;
        }
        // `icd10,count`: how often each occurs is told of nobody.
        let counts = |head: &[u8]| {
            let head = head.trim_ascii().to_ascii_lowercase();
            COUNTS.contains(&head.trim_ascii())
        };
        if columns == 1 && head.split(|b| *b == delimiter).any(counts) {
            return None;
        }
        Some(Self {
            text,
            at: floor + head.len() + 1,
            ceil,
            delimiter,
            nth: before.iter().filter(|b| **b == delimiter).count(),
            columns,
            first: floor == top,
            misfits: 0,
        })
    }
}

impl Iterator for Column<'_> {
    /// What the row costs, and the field.
    type Item = (u32, Option<Span>);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self
            .text
            .get(self.at..self.ceil)
            .filter(|r| !r.is_empty())?;
        let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = &rest[..len];
        let fits = memchr::memchr_iter(self.delimiter, line).count() >= self.columns;
        self.misfits = match fits {
            true => 0,
            false => self.misfits + usize::from(!line.is_empty()),
        };
        let cost = to_u32(1 + len / BYTES_A_LOOK);
        if !fits && !self.first || self.misfits > MISFITS_MAX {
            // The end of the table. It was read as well.
            self.ceil = self.at;
            return Some((cost, None));
        }
        self.at += len + 1;
        let field = line.split(|b| *b == self.delimiter).nth(self.nth);
        let field = field.map(|part| {
            let part = part.trim_ascii();
            let quote = |q: u8| part.len() > 2 && part[0] == q && part[part.len() - 1] == q;
            let quoted = quote(b'"') || quote(b'`');
            let part = &part[usize::from(quoted)..part.len() - usize::from(quoted)];
            let start = part.as_ptr().addr() - self.text.as_ptr().addr();
            Span::new(start, start + part.len())
        });
        Some((cost, field))
    }
}

/// The tables that were read. A row may hold a name, too (`3,password,...`), and would be the head of all rows below:
/// what the same asker has read in that column is not read again.
#[derive(Debug, Default)]
pub(super) struct Tables {
    read: Vec<Read>,
    next: usize,
}

#[derive(Debug)]
struct Read {
    delimiter: u8,
    nth: usize,
    asker: Asker,
    rows: std::ops::Range<usize>,
}

impl Tables {
    pub fn knows(&self, column: &Column<'_>, name: Span, asker: Asker) -> bool {
        self.read.iter().any(|r| {
            (r.delimiter, r.nth, r.asker) == (column.delimiter, column.nth, asker)
                && r.rows.contains(&(name.start as usize))
        })
    }

    /// The column was read from the name on as far as it goes.
    pub fn note(&mut self, column: &Column<'_>, name: Span, asker: Asker) {
        let read = Read {
            delimiter: column.delimiter,
            nth: column.nth,
            asker,
            rows: name.start as usize..column.at,
        };
        match self.read.get_mut(self.next) {
            Some(old) => *old = read,
            None => self.read.push(read),
        }
        self.next = (self.next + 1) % TABLES_MAX;
    }
}
