//! Whose a number, a day of birth or an address of mail is: the name right before it in a sentence, a row or a form, or in the same
//! object. A name alone is in every text; beside a number that only a person has it says whose that is.
//!
//! `Cliente Adaeze Anyanwu, CPF 917.803.245-06`, `Name: Ola Brandt` over `Born: 1954-01-05`,
//! `{"citizen_no": "...", "fullName": "Ola Brandt"}`, `Jörg Brandt <jb@...>`

use crate::LeafKind;
use crate::check::{self, name_within};
use crate::ruleset::Detector;
use crate::text::{Cell, Span};

use super::{Sink, is_value};

/// Bytes before the number that are read.
const BEFORE_BYTES_MAX: usize = 120;
/// Words between the name and the number: `, born on`, `with the social security number`.
const LINK_WORDS_MAX: usize = 5;
/// Bytes between a name and an address of mail: `" <mailto:`
const MAIL_BYTES_MAX: usize = 12;
/// Lines of a form above the number's own.
const LINES_MAX: usize = 4;
const LABEL_BYTES_MAX: usize = 32;
const VALUE_BYTES: std::ops::RangeInclusive<usize> = 5..=60;
/// Longer keys name nobody.
const KEY_BYTES_MAX: usize = 40;
/// Members of an object that are looked at, before the number and behind it.
const MEMBERS_CELLS_MAX: usize = 16;
const COST: u32 = 4;

/// What the member is called that holds a name, without signs, in small letters.
const NAMES: [&str; 44] = [
    "name",
    "fullname",
    "displayname",
    "nm",
    "person",
    "personname",
    "fn",
    "who",
    "holder",
    "owner",
    "customer",
    "client",
    "employee",
    "patient",
    "user",
    "contact",
    "author",
    "nom",
    "nomcomplet",
    "nome",
    "nomecompleto",
    "nombre",
    "nombrecompleto",
    "naam",
    "volledigenaam",
    "vollständigername",
    "inhaber",
    "kunde",
    "cliente",
    "navn",
    "namn",
    "nimi",
    "imię",
    "imie",
    "imięinazwisko",
    "jméno",
    "név",
    "nume",
    "ime",
    "имя",
    "фио",
    "氏名",
    "姓名",
    "성명",
];
/// What the name of such a member may begin or end with: `cust_nm`, `insuredPerson`.
const PARTS: [&str; 4] = ["name", "_nm", "person", "holder"];

/// Reports the names beside what was found since there were `from` findings.
pub(super) fn scan(sink: &mut Sink<'_>, from: usize) {
    let rules = sink.rules;
    let known = [Detector::NameBeside, Detector::ContactName];
    if known.iter().all(|d| rules.detectors[*d as usize].is_none()) {
        return;
    }
    let phone = rules.detectors[Detector::Phone as usize];
    let mail = rules.detectors[Detector::Email as usize];
    let until = sink.raw.len();
    // All that is found in a value is of the same object.
    let mut last = None;
    for nth in from..until {
        let found = &sink.raw[nth];
        let (rule, span) = (found.rule, found.span);
        if found.node != sink.index || !rules.compiled(rule).persons {
            continue;
        }
        if !sink.limits.spend(COST) {
            return;
        }
        let cells = &sink.node.cells;
        let index = cells.partition_point(|c| c.span.start <= span.start);
        let Some((index, cell)) = index.checked_sub(1).map(|i| (i, cells[i])) else {
            continue;
        };
        if !is_value(&cell) || cell.span.end < span.end {
            continue;
        }
        let is_mail = mail == Some(rule);
        let mut object = || match last {
            Some((of, name)) if of == (index, is_mail) => name,
            _ => {
                let name = in_object(sink, index, is_mail);
                last = Some(((index, is_mail), name));
                name
            }
        };
        let beside = before(sink.text(), &cell, span.start as usize, is_mail).or_else(&mut object);
        // Tools are full of addresses of mail and of phones, and of names beside them.
        let everyday = is_mail || phone == Some(rule) || rules.compiled(rule).phones;
        let detector = known[usize::from(everyday)];
        if let Some(name) = beside {
            sink.report_for(detector, name, None);
        }
    }
}

/// The name before the number, in its line or in the lines of a form above it.
fn before(text: &[u8], cell: &Cell, at: usize, is_mail: bool) -> Option<Span> {
    let mut from = (cell.span.start as usize).max(at.saturating_sub(BEFORE_BYTES_MAX));
    while from < at && text[from] & 0xC0 == 0x80 {
        from += 1;
    }
    let read = std::str::from_utf8(&text[from..at]).ok()?;
    let mut lines = read.rsplit('\n');
    let own = lines.next()?;
    let start = at - own.len();
    if let Some(name) = in_line(own, is_mail) {
        return Some(Span::new(start + name.start, start + name.end));
    }
    if is_mail {
        return None;
    }
    let mut end = start;
    for line in lines.take(LINES_MAX) {
        end -= 1;
        let start = end - line.len();
        // The first line may have begun before what is read.
        if start == from && from > cell.span.start as usize && text[from - 1] != b'\n' {
            break;
        }
        if let Some(name) = in_form(line) {
            return Some(Span::new(start + name.start, start + name.end));
        }
        end = start;
    }
    None
}

/// The last name of a line, with no more words behind it than link a name to a number.
fn in_line(line: &str, is_mail: bool) -> Option<std::ops::Range<usize>> {
    let part = |c: char| c.is_alphabetic() || matches!(c, '\'' | '’' | '-' | '.') || is_mark(c);
    let mut end = line.len();
    let mut links = 0;
    // Runs of words with one blank between them, the last one first.
    loop {
        let rest = &line[..end];
        let run_end = rest.trim_end_matches(|c| !part(c)).len();
        if run_end == 0 || is_mail && line.len() - run_end > MAIL_BYTES_MAX {
            return None;
        }
        let begin = |upto: &str| {
            let last = upto.char_indices().rev().find(|(_, c)| !part(*c));
            last.map_or(0, |(i, c)| i + c.len_utf8())
        };
        let mut run_start = begin(&rest[..run_end]);
        let mut words = 1;
        while rest[..run_start].ends_with(' ') {
            let earlier = begin(&rest[..run_start - 1]);
            if earlier + 1 == run_start {
                break;
            }
            run_start = earlier;
            words += 1;
        }
        if let Some(name) = name_within(&rest[run_start..run_end]) {
            let behind = rest[run_start + name.end..run_end].split(' ');
            let behind = behind.filter(|w| !w.is_empty()).count();
            let links = links + behind;
            let near = if is_mail {
                links == 0
            } else {
                links <= LINK_WORDS_MAX
            };
            return near.then_some(run_start + name.start..run_start + name.end);
        }
        // `"Ola Brandt" <mailto:ola@...>`
        let is_scheme = is_mail && rest[run_start..run_end].eq_ignore_ascii_case("mailto");
        links += if is_scheme { 0 } else { words };
        if links > LINK_WORDS_MAX {
            return None;
        }
        end = run_start;
    }
}

/// Vowels and the like of scripts that write them as marks.
fn is_mark(c: char) -> bool {
    ('\u{900}'..='\u{DFF}').contains(&c)
}

/// `Name: Ola Brandt`, where nothing but a name stands behind the label.
fn in_form(line: &str) -> Option<std::ops::Range<usize>> {
    let sign = line.find([':', '=', '：'])?;
    let told = &line[sign..];
    let told = told.trim_start_matches([':', '=', '：', ' ', '\t', '*', '"', '\'']);
    let start = line.len() - told.len();
    let told = told.trim_end_matches([' ', '\t', '\r', ',', ';', '*', '"', '\'', '|']);
    let name = name_within(told)?;
    let whole = name.start == 0 && name.end == told.len();
    (sign <= LABEL_BYTES_MAX && whole && VALUE_BYTES.contains(&told.len()))
        .then_some(start..start + told.len())
}

/// The value of a member that is called as names are, in the object that the number stands in.
///
/// Firms write from addresses of mail as well.
pub(super) fn in_object(sink: &Sink<'_>, index: usize, is_mail: bool) -> Option<Span> {
    let check = match is_mail {
        true => "unlisted-name-of-no-firm",
        false => "unlisted-name",
    };
    let node = sink.node;
    let object = node.layout.object_of(index)?;
    let from = index.saturating_sub(MEMBERS_CELLS_MAX);
    let until = (index + MEMBERS_CELLS_MAX).min(node.cells.len());
    (from..until).find_map(|nth| {
        let c = &node.cells[nth];
        if nth == index
            || c.kind != LeafKind::String
            || !(1..=KEY_BYTES_MAX).contains(&c.name.len())
            || !VALUE_BYTES.contains(&c.span.len())
            || node.layout.object_of(nth) != Some(object)
        {
            return None;
        }
        let called = std::str::from_utf8(&node.text[c.name.range()]).ok()?;
        let called = called.to_lowercase();
        let plain: String = called.chars().filter(|c| c.is_alphabetic()).collect();
        let is_name =
            NAMES.contains(&plain.as_str()) || PARTS.iter().any(|part| called.ends_with(part));
        let told = &node.text[c.span.range()];
        let passes = || check::find(check).is_some_and(|c| (c.run)(told));
        (is_name && passes()).then_some(c.span)
    })
}
