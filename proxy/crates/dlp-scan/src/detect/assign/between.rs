//! What may stand between a name and the sign of its value: bounds of an array, notes of a page's snapshot, accessors, pictures.

use super::reader::Reader;

impl Reader<'_> {
    /// C: `char name[] = `, `name[33] = `. The bounds are skipped.
    pub(super) fn bounds(&mut self) {
        const BOUND_BYTES_MAX: usize = 24;
        let Some(inner) = self.rest().strip_prefix(b"[") else {
            return;
        };
        let part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'+' | b' ');
        let len = inner
            .iter()
            .take(BOUND_BYTES_MAX)
            .take_while(|b| part(b))
            .count();
        let behind = inner.get(len..).unwrap_or_default();
        let Some(behind) = behind.strip_prefix(b"]") else {
            return;
        };
        if matches!(behind.trim_ascii_start(), [b'=', sign, ..] if *sign != b'=') {
            self.at += len + 2;
        }
    }

    /// `textbox "Password" [ref=e48]: `: what a snapshot of a page notes of an element stands between its name and its value.
    pub(super) fn reference(&mut self) {
        const NOTES_MAX: usize = 4;
        const NOTE_BYTES_MAX: usize = 24;
        let mut at = 0;
        let rest = self.rest();
        for _ in 0..NOTES_MAX {
            let Some(note) = rest[at..].strip_prefix(b" [") else {
                break;
            };
            let part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'=' | b'-' | b'_');
            let len = note
                .iter()
                .take(NOTE_BYTES_MAX)
                .take_while(|b| part(b))
                .count();
            if note.get(len) != Some(&b']') {
                return;
            }
            at += 2 + len + 1;
        }
        if rest.get(at) == Some(&b':') {
            self.at += at;
        }
    }

    /// C#: `Name { get; set; } = `. The accessors are skipped.
    pub(super) fn accessors(&mut self) {
        let rest = &self.rest()[..self.rest().len().min(48)];
        if (rest.starts_with(b"{ get") || rest.starts_with(b"{get"))
            && let Some(end) = rest.iter().position(|b| *b == b'}')
        {
            self.at += end + 1;
            self.blanks();
        }
    }

    /// COBOL: `PIC X(14) VALUE '...'`; how far it is to the value.
    pub(super) fn picture(&self) -> Option<usize> {
        let rest = &self.rest()[..self.rest().len().min(40)];
        memchr::memmem::find(rest, b"VALUE ").map(|at| at + 6)
    }
}
