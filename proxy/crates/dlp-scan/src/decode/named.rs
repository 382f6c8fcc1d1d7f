//! Values whose names say that they are parts of one: digits under names that begin alike, the sides of a mail address, the three
//! parts of a signed token.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use smallvec::SmallVec;

use super::Spawner;
use super::joined::{DIGITS, names_number};
use crate::detect::is_value;
use crate::text::{Cell, How, NO_LEAF, Node, Span};
use crate::{Layer, LeafKind};

pub(super) fn decode(node: &Node, spawn: &mut Spawner<'_>) {
    named_digits(node, spawn);
    mail_sides(node, spawn);
    signed(node, spawn);
}

/// `"ssn1": "617", "ssn2": "29", "ssn3": "6842"`, `"ssn_area": "332", "ssn_group": "06"`: digits under names that begin alike,
/// which say what the whole is.
fn named_digits(node: &Node, spawn: &mut Spawner<'_>) {
    let digits = |c: &Cell| {
        c.kind == LeafKind::String
            && (1..=8).contains(&c.span.len())
            && node.text[c.span.range()].iter().all(u8::is_ascii_digit)
            && !c.name.is_empty()
    };
    let stem = |c: &Cell| {
        let name = &node.text[c.name.range()];
        let len = name.iter().take_while(|b| b.is_ascii_alphabetic()).count();
        Span::new(c.name.start as usize, c.name.start as usize + len)
    };
    if !node.cells.iter().any(&digits) {
        return;
    }
    let values: Vec<&Cell> = node.cells.iter().filter(|c| is_value(c)).collect();
    let mut at = 0;
    while at < values.len() {
        let first = values[at];
        if !digits(first) || first.leaf == NO_LEAF {
            at += 1;
            continue;
        }
        let head = &node.text[stem(first).range()];
        let same = |c: &&&Cell| {
            digits(c) && node.text[stem(c).range()] == *head && c.name.len() > stem(c).len()
        };
        let row: Vec<Span> = values[at..]
            .iter()
            .take_while(same)
            .map(|c| c.span)
            .collect();
        let total: usize = row.iter().map(|span| span.len()).sum();
        if row.len() > 1 && DIGITS.contains(&total) && names_number(head) {
            join_named(node, stem(first), &row, b"", spawn);
        }
        at += row.len().max(1);
    }
}

/// What names of the second side have in them; the first letter may be a capital.
static SIDES: LazyLock<[Finder<'static>; 2]> =
    LazyLock::new(|| [Finder::new(b"omain"), Finder::new(b"host")]);

/// `"localpart": "w.staub", "domain": "mail.de"`: an address of mail on its two sides.
fn mail_sides(node: &Node, spawn: &mut Spawner<'_>) {
    // Most texts have no word for either side.
    if SIDES.iter().all(|word| word.find(&node.text).is_none()) {
        return;
    }
    let values: Vec<&Cell> = node.cells.iter().filter(|c| is_value(c)).collect();
    let names = |c: &Cell, words: &[&[u8]]| {
        let name = node.text[c.name.range()].to_ascii_lowercase();
        words
            .iter()
            .any(|w| memchr::memmem::find(&name, w).is_some())
    };
    let part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'+');
    for pair in values.windows(2) {
        let (left, right) = (
            &node.text[pair[0].span.range()],
            &node.text[pair[1].span.range()],
        );
        let sides = pair
            .iter()
            .all(|c| c.kind == LeafKind::String && c.leaf != NO_LEAF)
            && (3..=64).contains(&left.len())
            && (4..=64).contains(&right.len())
            && left.iter().chain(right).all(part)
            && right.contains(&b'.');
        if sides
            && names(pair[0], &[b"local", b"mail_user", b"mailbox"])
            && !names(pair[0], &[b"localhost"])
            && names(pair[1], &[b"domain", b"host"])
        {
            join_named(
                node,
                pair[0].name,
                &[pair[0].span, pair[1].span],
                b"@",
                spawn,
            );
        }
    }
}

/// One value of the parts, with `sign` between them, under a name.
fn join_named(node: &Node, name: Span, parts: &[Span], sign: &[u8], spawn: &mut Spawner<'_>) {
    let Some(mut child) = spawn.begin(Layer::Joined) else {
        return;
    };
    let name = super::begin_cell(&mut child, node, name);
    let start = child.text.len();
    for (nth, part) in parts.iter().enumerate() {
        if nth > 0 && !sign.is_empty() {
            child.push(
                sign,
                Span::new(part.start as usize, part.start as usize + 1),
                How::Atom,
            );
        }
        child.push(&node.text[part.range()], *part, How::Copy);
    }
    child.close_cell(start, name, LeafKind::String, 0);
    spawn.end(child);
}

/// What the first part of a signed token begins with.
static TOKEN: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"eyJ"));

/// `{"header": "eyJ...", "payload": "eyJ...", "signature": "..."}`: the three parts of a signed token (RFC 7515, 7.2), each by itself.
fn signed(node: &Node, spawn: &mut Spawner<'_>) {
    const NAMES: [&[&str]; 3] = [
        &["h", "header", "head", "protected", "jwt_header"],
        &["p", "payload", "body", "claims", "jwt_payload"],
        &["s", "sig", "signature", "jwt_signature"],
    ];
    if TOKEN.find(&node.text).is_none() {
        return;
    }
    let begins = |c: &Cell| node.text[c.span.range()].starts_with(b"eyJ") && is_value(c);
    for (at, first) in node.cells.iter().enumerate().filter(|(_, c)| begins(c)) {
        let rest = node.cells[at..].iter().filter(|c| is_value(c));
        let three: SmallVec<[&Cell; 3]> = rest.take(3).collect();
        let named = three.len() == 3
            && three.iter().zip(NAMES).all(|(c, names)| {
                let called = &node.text[c.name.range()];
                let part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
                names
                    .iter()
                    .any(|n| called.eq_ignore_ascii_case(n.as_bytes()))
                    && node.text[c.span.range()].iter().all(part)
            });
        if !named || first.span.is_empty() {
            continue;
        }
        let Some(mut child) = spawn.begin(Layer::Joined) else {
            return;
        };
        for c in three {
            if c.span != first.span {
                let before = Span::new(c.span.start as usize, c.span.start as usize + 1);
                child.push(b".", before, How::Atom);
            }
            child.push(&node.text[c.span.range()], c.span, How::Copy);
        }
        child.close_cell(0, Span::default(), LeafKind::String, 0);
        spawn.end(child);
    }
}
