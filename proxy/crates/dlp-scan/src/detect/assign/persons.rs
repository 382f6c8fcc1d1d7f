//! Names of persons whose parts lie beside each other in an object, or under a key that says whose they are.
//!
//! `{"customer":{"first":"Ola","last":"Brandt"}}`, HumanName of FHIR (R4, datatypes): a family's name alone may be a font's or a
//! plant's; beside a given name it is a person's.

use crate::LeafKind;
use crate::check;
use crate::ruleset::Detector;
use crate::text::{Cell, Span};

use super::super::{Sink, is_value, named};
use super::listed::values_in;

/// Members of an object that are looked at, before a key and behind it.
const MEMBERS_CELLS_MAX: usize = 12;
/// What the member is called that holds the name of the one an object is about.
const NAMES: [&str; 6] = [
    "name",
    // ISO 20022.
    "nm",
    "full_name",
    "fullname",
    "display_name",
    "displayname",
];

/// Given names, by the key for them. The first two are keys of pages and of lists as well.
const GIVEN: [&str; 10] = [
    "first",
    "given",
    "first_name",
    "firstname",
    "given_name",
    "givenname",
    "forename",
    "fname",
    "prenom",
    "vorname",
];
const DOUBTFUL: usize = 2;

/// The names of those whom the objects under a key are about: `{"patients":[{"id":7,"name":"Ola Brandt"}]}`.
pub(super) fn named_in(
    cell: (usize, Cell),
    sink: &mut Sink<'_>,
    take: impl FnMut(Span, &mut Sink<'_>),
) {
    values_in(cell, &NAMES, sink, take);
}

/// A key for the name of a family.
pub(super) fn family(cell: (usize, Cell), sink: &mut Sink<'_>) {
    const COST: u32 = 8;
    let (index, own) = cell;
    let node = sink.node;
    let value = node.cells.get(index + 1);
    let Some(family) = value.filter(|c| c.kind == LeafKind::String && c.name == own.span) else {
        return;
    };
    if is_value(&own) || !sink.limits.spend(COST) {
        return;
    }
    let passes = |check: &str, value: &[u8]| check::find(check).is_some_and(|c| (c.run)(value));
    let text = sink.text();
    let told = &text[family.span.range()];
    let Some((given, sure)) = given_beside(index, sink) else {
        return;
    };
    let mut whole = text[given.range()].to_vec();
    whole.push(b' ');
    whole.extend_from_slice(told);
    // `given` stands beside `family` in no other format.
    let human = text[own.span.range()].eq_ignore_ascii_case(b"family");
    let known = match sure || human {
        true => passes("name-in-a-field", &whole),
        false => passes("given-in-a-field", &whole),
    };
    if known && passes("family-name", told) {
        sink.report_for(Detector::FamilyName, family.span, None);
        sink.report_for(Detector::FamilyName, given, None);
    }
}

/// Reports a name that is a person's.
pub(super) fn take_name(span: Span, sink: &mut Sink<'_>) {
    let told = &sink.text()[span.range()];
    if check::find("unlisted-name").is_some_and(|c| (c.run)(told)) {
        sink.report_for(Detector::NameBeside, span, None);
    }
}

/// The name in an object that has a member which only a person has: `{"name":"Ola Brandt","dob":"1980-02-11"}`.
pub(super) fn beside(cell: (usize, Cell), sink: &mut Sink<'_>) {
    const COST: u32 = 4;
    let (index, own) = cell;
    let node = sink.node;
    let holds = |c: &Cell| is_value(c) && c.name == own.span && c.span.len() > 1;
    if !node.cells.get(index + 1).is_some_and(holds) || !sink.limits.spend(COST) {
        return;
    }
    if let Some(name) = named::in_object(sink, index, false) {
        sink.report_for(Detector::NameBeside, name, None);
    }
}

/// The head of the column of names, where the one at `at` is another in the same line: `name,dob,mrn`.
pub(super) fn head_beside(at: u32, cell: &Cell, sink: &mut Sink<'_>) -> Option<Span> {
    const LINE_BYTES_MAX: usize = 512;
    const COST: u32 = 4;
    let text = sink.text();
    let (at, floor, ceil) = (
        at as usize,
        cell.span.start as usize,
        cell.span.end as usize,
    );
    let delimiter = |b: u8| matches!(b, b',' | b';' | b'\t' | b'|');
    let part = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b' ' | b'"');
    let behind = &text[at..ceil.min(at + LINE_BYTES_MAX)];
    let behind = &behind[behind.iter().take_while(part).count()..];
    let before = &text[floor.max(at.saturating_sub(LINE_BYTES_MAX))..at];
    let before = &before[..before.len() - before.iter().rev().take_while(part).count()];
    let ends = |b: Option<&u8>| b.is_none_or(|b| delimiter(*b) || matches!(b, b'\n' | b'\r'));
    // A head among others, and not a word of a sentence.
    if !ends(behind.first()) || !ends(before.last()) || !sink.limits.spend(COST) {
        return None;
    }
    // No further back than a head is long, however long a line is.
    let near = floor.max(at.saturating_sub(LINE_BYTES_MAX));
    let start = match memchr::memrchr(b'\n', &text[near..at]) {
        Some(end) => near + end + 1,
        None if near == floor => floor,
        None => return None,
    };
    let line = &text[start..ceil.min(start + LINE_BYTES_MAX)];
    let line = &line[..memchr::memchr(b'\n', line)?];
    let mut from = start;
    for field in line.split(|b| delimiter(*b)) {
        let inner = field.trim_ascii();
        let inner = inner.strip_prefix(b"\"").unwrap_or(inner);
        let inner = inner.strip_suffix(b"\"").unwrap_or(inner);
        let named = NAMES
            .iter()
            .any(|name| inner.eq_ignore_ascii_case(name.as_bytes()));
        if named {
            let lead = field.iter().position(|b| inner.first() == Some(b))?;
            return Some(Span::new(from + lead, from + lead + inner.len()));
        }
        from += field.len() + 1;
    }
    None
}

/// Keys that tell that an object is about a person, and keys of an address.
const OF_PERSON: [&str; 19] = [
    "first_name",
    "firstname",
    "last_name",
    "lastname",
    "full_name",
    "fullname",
    "surname",
    "birth_date",
    "birthdate",
    "date_of_birth",
    "dateofbirth",
    "dob",
    "patient",
    "customer",
    "employee",
    "resident",
    "home_address",
    "homeaddress",
    "person",
];
const OF_ADDRESS: [&str; 11] = [
    "address",
    "street",
    "street_address",
    "streetaddress",
    "line1",
    "address1",
    "home_address",
    "homeaddress",
    "postal_code",
    "postalcode",
    "zip",
];

/// A latitude beside a longitude, where the keys around them say that somebody lives there: both are reported.
pub(super) fn home(cell: (usize, Cell), sink: &mut Sink<'_>) {
    const REACH: usize = 32;
    const COST: u32 = 8;
    let (index, own) = cell;
    let node = sink.node;
    let next = node.cells.get(index + 1);
    let degrees = next.is_some_and(|c| is_value(c) && is_degrees(&node.text[c.span.range()]));
    if is_value(&own) || !degrees || !sink.limits.spend(COST) {
        return;
    }
    let called = |span: Span, keys: &[&str]| {
        let key = &node.text[span.range()];
        keys.iter().any(|k| key.eq_ignore_ascii_case(k.as_bytes()))
    };
    let near = || index.saturating_sub(REACH)..(index + REACH).min(node.cells.len());
    let says = |keys: &[&str]| {
        near().any(|nth| !is_value(&node.cells[nth]) && called(node.cells[nth].span, keys))
    };
    let object = node.layout.object_of(index);
    let value = |keys: &[&str]| {
        let mut all = near().filter(|nth| node.layout.object_of(*nth) == object);
        let found = all.find(|nth| {
            let c = &node.cells[*nth];
            is_value(c) && called(c.name, keys) && is_degrees(&node.text[c.span.range()])
        });
        found.map(|nth| node.cells[nth].span)
    };
    let (Some(north), Some(east)) = (
        value(&["lat", "latitude"]),
        value(&["lon", "lng", "long", "longitude"]),
    ) else {
        return;
    };
    if says(&OF_PERSON) && says(&OF_ADDRESS) {
        for part in [north, east] {
            sink.report_for(Detector::HomeCoordinates, part, None);
        }
    }
}

/// `59.913912`: near enough to be a house.
fn is_degrees(value: &[u8]) -> bool {
    const DECIMALS: std::ops::RangeInclusive<usize> = 4..=16;
    let value = value.strip_prefix(b"-").unwrap_or(value);
    let dot = value.iter().position(|b| *b == b'.');
    dot.is_some_and(|dot| {
        let (whole, decimals) = (&value[..dot], &value[dot + 1..]);
        (1..=3).contains(&whole.len())
            && DECIMALS.contains(&decimals.len())
            && whole.iter().chain(decimals).all(u8::is_ascii_digit)
    })
}

/// The given name in the same object, and whether its key says that it is one.
fn given_beside(index: usize, sink: &Sink<'_>) -> Option<(Span, bool)> {
    let node = sink.node;
    let object = node.layout.object_of(index);
    let from = index.saturating_sub(MEMBERS_CELLS_MAX);
    let until = (index + MEMBERS_CELLS_MAX).min(node.cells.len());
    (from..until).find_map(|nth| {
        let c = &node.cells[nth];
        let name = &node.text[c.name.range()];
        let key = GIVEN
            .iter()
            .position(|key| name.eq_ignore_ascii_case(key.as_bytes()))?;
        let own = c.kind == LeafKind::String && node.layout.object_of(nth) == object;
        own.then_some((c.span, key >= DOUBTFUL))
    })
}
