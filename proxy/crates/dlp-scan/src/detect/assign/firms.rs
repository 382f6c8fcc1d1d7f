//! Addresses that are no person's: of shops, offices and places, by the members of the object that they lie in and the words beside them.

use super::super::{Sink, is_value};
use crate::LeafKind;
use crate::check;
use crate::text::{Cell, Span};

/// Keys over an object that is about a place or a firm.
const PLACES: [&str; 40] = [
    "store",
    "stores",
    "venue",
    "venues",
    "organization",
    "organisation",
    "organizations",
    "company",
    "companies",
    "restaurant",
    "restaurants",
    "hotel",
    "hotels",
    "shop",
    "shops",
    "branch",
    "branches",
    "office",
    "offices",
    "pharmacy",
    "hospital",
    "clinic",
    "school",
    "university",
    "merchant",
    "vendor",
    "supplier",
    "publisher",
    "museum",
    "place",
    "places",
    "business",
    "businesses",
    "headquarters",
    "warehouse",
    "airport",
    "station",
    "library",
    "dealer",
    "registrar",
];
/// Keys that such an object has, and none about a person.
const OF_PLACE: [&str; 16] = [
    "opening_hours",
    "openinghours",
    "place_id",
    "placeid",
    "rating",
    "user_ratings_total",
    "cuisine",
    "restaurant",
    "hotel",
    "store",
    "venue",
    "company",
    "company_name",
    "companyname",
    "organization",
    "organisation",
];
/// Keys of an object about a person.
const OF_PERSON: [&str; 26] = [
    "first_name",
    "firstname",
    "last_name",
    "lastname",
    "full_name",
    "fullname",
    "surname",
    "given_name",
    "family_name",
    "birth_date",
    "birthdate",
    "date_of_birth",
    "dob",
    "birthday",
    "gender",
    "age",
    "ssn",
    "patient",
    "customer",
    "employee",
    "resident",
    "recipient",
    "user",
    "owner",
    "applicant",
    "home_address",
];
/// Keys of both.
const OF_BOTH: [&str; 6] = [
    "email",
    "phone",
    "mobile",
    "telephone",
    "username",
    "contact",
];
/// How many cells around are asked.
const REACH: usize = 20;

/// Is the object around a key about a firm or a place, and about no person?
pub(super) fn is_of_firm(index: usize, sink: &Sink<'_>) -> bool {
    let node = sink.node;
    let (mut over, mut member, mut person, mut both) = (false, false, false, false);
    for nth in index.saturating_sub(REACH)..(index + REACH).min(node.cells.len()) {
        let cell = &node.cells[nth];
        let called = |span: Span, keys: &[&str]| {
            let key = &node.text[span.range()];
            keys.iter().any(|k| key.eq_ignore_ascii_case(k.as_bytes()))
        };
        if is_value(cell) {
            let told = &node.text[cell.span.range()];
            let given = || check::find("given-in-a-field").is_some_and(|c| (c.run)(told));
            person |= cell.kind == LeafKind::String && called(cell.name, &["name"]) && given();
            continue;
        }
        let opens = node.cells.get(nth + 1).is_some_and(|next| !is_value(next));
        over |= opens && nth < index && called(cell.span, &PLACES);
        member |= !opens && called(cell.span, &OF_PLACE);
        person |= called(cell.span, &OF_PERSON);
        both |= called(cell.span, &OF_BOTH);
    }
    !person && (over || member && !both)
}

/// Is an address in a value that of a firm, by the words before it or by the members around its cell?
pub(in crate::detect) fn is_firms(found: Span, cell: &Cell, sink: &Sink<'_>) -> bool {
    let node = sink.node;
    let before = &node.text[cell.span.start as usize..found.start as usize];
    if names_firm(before, &node.text[found.range()]) {
        return true;
    }
    // Of a longer text the members around say nothing.
    let called = node.text[cell.name.range()].to_ascii_lowercase();
    let part_of = |part: &[u8]| memchr::memmem::find(&called, part).is_some();
    let of_address = part_of(b"addr") || part_of(b"adres");
    let whole = of_address || found.len() * 10 >= cell.span.len() * 7;
    if called.is_empty() || !whole {
        return false;
    }
    let index = node
        .cells
        .partition_point(|c| c.span.start < cell.span.start);
    is_of_firm(index, sink)
}

/// `Registered office: ...`, `address: Apache Software Foundation, 1000 N West Street`: what stands before an address in its line, or
/// begins it.
pub(super) fn names_firm(before: &[u8], value: &[u8]) -> bool {
    const BEFORE_BYTES: usize = 64;
    const SAYING: [&str; 14] = [
        "registered office",
        "headquarter",
        "head office",
        "our office is",
        "our offices",
        "university's address",
        "company's address",
        "business address",
        "corporate address",
        "registered address",
        "company address",
        "office address",
        "inc., ",
        "ltd, ",
    ];
    const FORMS: [&str; 29] = [
        "inc",
        "ltd",
        "llc",
        "gmbh",
        "plc",
        "corp",
        "corporation",
        "foundation",
        "university",
        "institute",
        "college",
        "hospital",
        "association",
        "company",
        "stadtwerke",
        "museum",
        "hotel",
        "restaurant",
        "ministry",
        "department",
        "s.a",
        "srl",
        "s.r.l",
        "b.v",
        "limited",
        "e.v",
        "society",
        "consortium",
        "library",
    ];
    let near = &before[before.len().saturating_sub(BEFORE_BYTES)..];
    let line = memchr::memrchr(b'\n', near).map_or(near, |at| &near[at + 1..]);
    let line = String::from_utf8_lossy(line).to_lowercase();
    let first = value
        .split(|b| matches!(b, b',' | b'\n'))
        .next()
        .unwrap_or_default();
    let numbered = first.iter().any(u8::is_ascii_digit);
    let lower = String::from_utf8_lossy(first).to_lowercase();
    let form = |word: &str| FORMS.contains(&word.trim_end_matches('.'));
    // `Oracle, 500 Oracle Parkway`
    let street = || {
        let name = line
            .trim_end_matches([',', ' ', ':'])
            .rsplit(' ')
            .next()
            .unwrap_or_default();
        name.len() >= 4
            && name.chars().all(char::is_alphabetic)
            && line.ends_with(", ")
            && lower.split(' ').any(|word| word == name)
    };
    // `Apache Software Foundation, 1000 N West Street`: the part before the street.
    let named = || {
        let parts = line
            .strip_suffix(", ")
            .map(|l| l.rsplit([',', ':', ';', '(']));
        let part = parts.and_then(|mut parts| parts.next()).unwrap_or_default();
        part.split(' ').any(form)
    };
    SAYING.iter().any(|words| line.contains(words))
        || named()
        || street()
        || !numbered && lower.split(' ').any(form)
}

#[cfg(test)]
mod tests {
    use super::names_firm;

    #[test]
    fn words_of_firms() {
        for (before, value, is) in [
            (
                "Registered office address: ",
                "1 Mill Lane, London EC1A 1BB",
                true,
            ),
            (
                "The university's address is ",
                "5 College Road, Oxford OX1 2JD",
                true,
            ),
            (
                "address: ",
                "Apache Software Foundation, 1000 N West Street",
                true,
            ),
            (
                "Adresse: ",
                "Stadtwerke Neustadt, Hauptstr. 5, 10115 Berlin",
                true,
            ),
            (
                "please contact Oracle, ",
                "500 Oracle Parkway, Redwood Shores",
                true,
            ),
            ("address: ", "5 College Road, Oxford OX1 2JD", false),
            ("my address is ", "12 Bank Street, Leeds LS1 4AP", false),
            ("address: ", "Margaret Holloway, 12 Mill Lane, Leeds", false),
        ] {
            assert_eq!(
                names_firm(before.as_bytes(), value.as_bytes()),
                is,
                "{before}{value}"
            );
        }
    }
}
