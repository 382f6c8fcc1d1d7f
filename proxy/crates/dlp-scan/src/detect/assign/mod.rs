//! `name = value` in its many dresses: JSON members, env files, YAML, code, flags, tables, XML, URL queries.

mod announced;
mod apart;
mod around;
mod beside;
mod between;
mod firms;
mod heads;
mod listed;
mod looks;
mod markup;
mod persons;
mod reader;
mod tables;
mod tuples;
mod typed;
mod verdict;
mod worded;

use announced::announced;
use around::name_around;
use beside::named_beside;
pub(super) use firms::is_firms;
use heads::{is_doubtful, is_of_login};
pub(crate) use listed::lines_behind;
use listed::{believe_listed, believe_members, promise_of_many};
use markup::fields_under;
use reader::{value_after, whose};
use tables::{Column, Tables};
use tuples::tuples_under;
use typed::believe_typed;
pub(crate) use verdict::{may_name_test, told_of_test};
use worded::{believe_read_words, believe_words, drawn_from};

use std::cell::OnceCell;

use super::{Scratch, Sink, is_value, postal};
use regex_automata::Input;

use crate::names::{self, Promise};
use crate::rule::RuleId;
use crate::ruleset::Detector;
use crate::text::{Cell, Span};
use crate::value;
use crate::{Category, LeafKind};

/// So much of a value is judged. One that is longer is taken to its end when that much of it is believed.
const VALUE_BYTES_MAX: usize = 4096;
/// The same for one that is not in quotes.
const BARE_BYTES_MAX: usize = 512;
/// Bytes of a long value that are taken for the price of one look: each name in it may be read to the same end.
const BYTES_A_LOOK: usize = 16;
/// Longest name read.
const NAME_BYTES_MAX: usize = 96;
/// How far before a name the head of its table may begin.
const HEAD_BYTES_MAX: usize = 512;

/// A value and the name it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Assigned {
    pub name: Span,
    pub value: Span,
    pub quoted: bool,
    pub ends: Ends,
}

/// Where a value ends that is longer than what was read of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// All of it was read.
    Here,
    Bare {
        whole_line: bool,
    },
    Quote {
        quote: u8,
        escaped: bool,
    },
    /// At a blank.
    Blank,
}

/// As much of a value as is judged, and what it needs to be taken whole.
#[derive(Clone, Copy, Debug)]
struct Value {
    span: Span,
    quoted: bool,
    ends: Ends,
    /// It ends here at the latest.
    ceil: u32,
}

impl Value {
    /// One with bounds of its own: a cell, a field.
    fn of(span: Span, quoted: bool) -> Self {
        let long = span.len() > VALUE_BYTES_MAX;
        let read = Span::new(
            span.start as usize,
            (span.end as usize).min(span.start as usize + VALUE_BYTES_MAX),
        );
        Self {
            span: read,
            quoted,
            ends: if long { Ends::Blank } else { Ends::Here },
            ceil: span.end,
        }
    }

    /// Where it ends in truth.
    fn whole(self, sink: &mut Sink<'_>) -> Span {
        let after = &sink.text()[self.span.end as usize..self.ceil as usize];
        let len = match self.ends {
            Ends::Here => 0,
            ends => after.iter().take_while(|b| !ends.at(**b)).count(),
        };
        let paid = sink.limits.spend(crate::text::to_u32(len / BYTES_A_LOOK));
        Span::new(
            self.span.start as usize,
            self.span.end as usize + if paid { len } else { 0 },
        )
    }
}

impl Assigned {
    fn taken(self, cell: &Cell) -> Value {
        Value {
            span: self.value,
            quoted: self.quoted,
            ends: self.ends,
            ceil: cell.span.end,
        }
    }
}

/// Who reads a table: what makes the same of it reads it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    Promise(Promise),
    Rule(RuleId),
}

/// `pw = conv2d.weight`, `pass = blur3x3Pass;`: in code the short names are of anything. What is given to one with blanks around
/// the sign and without quotes has to look like a password by itself, or like a word of it that ends its line: `pass = Winter2024`.
fn is_code(text: &[u8], name: Span, value: Span) -> bool {
    let called = &text[name.range()];
    let short = [&b"pass"[..], b"pw"]
        .iter()
        .any(|w| called.eq_ignore_ascii_case(w));
    if !short || !text[name.end as usize..value.start as usize].starts_with(b" =") {
        return false;
    }
    let (told, rest) = (&text[value.range()], &text[value.end as usize..]);
    let ends = matches!(rest.first(), None | Some(b'\n' | b'\r' | 0x1E | 0x1F));
    let word = ends && told[0].is_ascii_uppercase() && told.iter().all(u8::is_ascii_alphanumeric);
    if ends && is_setting(text, name) && value::is_told(told) {
        return false;
    }
    // What ends with such a sign adds nothing up.
    let signs = told.iter().rev().take_while(|b| b"*+-".contains(b));
    let sums = told[..told.len() - signs.count()]
        .iter()
        .any(|b| b"*+-/.".contains(b))
        && !told.iter().any(|b| b"!@#$%^&?~".contains(b));
    !word && (sums || !value::stands_alone(told))
}

/// Is the line before it a head of settings or one of a login: `[mail]`, `user = mia`?
fn is_setting(text: &[u8], name: Span) -> bool {
    const LINE_BYTES_MAX: usize = 120;
    let before = &text[(name.start as usize).saturating_sub(LINE_BYTES_MAX)..name.start as usize];
    let mut lines = before.rsplit(|b| matches!(b, b'\n' | 0x1E | 0x1F));
    let own = lines.next().unwrap_or_default();
    let above = lines.next().unwrap_or_default().trim_ascii();
    let head = matches!(above, [b'[', inner @ .., b']'] if !inner.contains(&b'['));
    let called = above
        .split(|b| b"=: \t".contains(b))
        .next()
        .unwrap_or_default();
    let last = called.rsplit(|b| !b.is_ascii_alphanumeric()).next();
    own.trim_ascii().is_empty() && (head || above.contains(&b'=') && last.is_some_and(is_of_login))
}

/// `the signing key 19882D92DDA4...`: a key of OpenPGP is called by its fingerprint (RFC 4880, 12.2), in forty large digits. The secret
/// one is never written so.
fn is_fingerprint(text: &[u8], name: Span, value: Span) -> bool {
    const DIGITS: usize = 40;
    let told = &text[value.range()];
    let large = |b: &u8| b.is_ascii_digit() || (b'A'..=b'F').contains(b);
    text[name.range()]
        .to_ascii_lowercase()
        .ends_with(b"signing key")
        && text[name.end as usize..value.start as usize]
            .iter()
            .all(|b| *b == b' ')
        && told.len() == DIGITS
        && told.iter().all(large)
}

/// `"session_id": "7c1d0a5294be4e0f8a61d2f35b98c410"`: what is called by hexadecimal digits, as by a UUID without its dashes.
fn is_plain_id(text: &[u8], name: Span, value: Span) -> bool {
    let called = &text[name.range()];
    let bare = called.strip_suffix(b"_id").or(called.strip_suffix(b"-id"));
    let bare = bare.or(called.strip_suffix(b"Id").or(called.strip_suffix(b"ID")));
    let bare = bare.or(called.strip_suffix(b"-Id").or(called.strip_suffix(b"_ID")));
    let told = &text[value.range()];
    let session = |word: &[u8]| {
        let word = word.to_ascii_lowercase();
        word.ends_with(b"session") || word.ends_with(b"sess")
    };
    bare.is_some_and(session) && told.len() >= 32 && told.iter().all(u8::is_ascii_hexdigit)
}

/// Reads each name once, however many keywords lie in it.
#[derive(Debug, Default)]
pub(super) struct Names {
    secret_done: u32,
    postal_done: u32,
    postal_begun: postal::Begun,
    last: Option<(Span, Option<Assigned>)>,
    tables: Tables,
}

impl Names {
    /// A keyword of a name that promises a secret.
    pub fn secret(&mut self, at: u32, cell: (usize, Cell), sink: &mut Sink<'_>) {
        if at < self.secret_done || !sink.limits.spend(1) {
            return;
        }
        let name = name_around(sink.text(), at as usize, &cell.1);
        self.secret_done = name.end.max(at + 1);
        let promise = names::promise(&sink.text()[name.range()]);
        if promise == Promise::Nothing {
            many(name, cell, sink);
            return;
        }
        if !is_value(&cell.1) {
            if name == cell.1.span {
                believe_members(cell, promise, sink);
            }
            // Only a key that is the name, not one which merely speaks of it.
            let rest = &sink.text()[name.end as usize..cell.1.span.end as usize];
            // `Passwort VPN`: what it is for may be one more word.
            let key = &sink.text()[cell.1.span.range()];
            let told = || {
                let two = rest.len() <= 14 && rest.starts_with(b" ") && !rest[1..].contains(&b' ');
                two && name.start == cell.1.span.start && names::promise(key) == promise
            };
            if name.len() + 2 >= cell.1.span.len()
                || rest.len() > 2 && whose(rest) == rest.len()
                || told()
            {
                under_key(cell, sink, |value, sink| {
                    if is_plain_id(sink.text(), name, value) {
                        return;
                    }
                    if believe(Value::of(value, true), promise, sink).is_none() {
                        believe_words(value, promise, sink);
                    }
                    believe_typed(value, promise, name, &cell.1, sink);
                });
            }
            return;
        }
        if names_cell(name, &cell.1, sink.text()) {
            let doubtful = OnceCell::new();
            let is_head = under_head(&cell.1, sink, |value, sink| {
                let doubtful = *doubtful.get_or_init(|| is_doubtful(name, cell, sink));
                if !doubtful || value::stands_alone(&sink.text()[value.range()]) {
                    believe(Value::of(value, true), promise, sink);
                }
            });
            let beside = named_beside(cell, sink);
            for value in &beside {
                believe(Value::of(*value, true), promise, sink);
            }
            if is_head || !beside.is_empty() {
                return;
            }
        } else if ends_label(name, &cell.1, sink.text())
            && let Some(value) = named_beside(cell, sink).first().copied()
        {
            let told = &sink.text()[value.range()];
            if value::is_told(told) || value::stands_alone(told) {
                believe(Value::of(value, true), promise, sink);
                return;
            }
        }
        let before = &sink.text()[..name.start as usize];
        // `arn:aws:secretsmanager:...:secret:name` names no secret by itself.
        let near = &before[before.len().saturating_sub(NAME_BYTES_MAX)..];
        let word = near.rsplit(u8::is_ascii_whitespace).next();
        let after = sink.text().get(name.end as usize);
        // What a search prints before a line is none: `src/a.env:3:API_KEY=`, `a.yml:api_key: `.
        let assigned = matches!(
            sink.text().get(name.end as usize..),
            Some([b'=', ..] | [b':', b' ' | b'"' | b'\'', ..] | [b' ', b'=', ..])
        );
        let in_urn = before.ends_with(b":")
            && !assigned
            && (after != Some(&b' ') || word.is_some_and(|w| w[..w.len() - 1].contains(&b':')))
            && before
                .iter()
                .rev()
                .nth(1)
                .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b':')
            && !before[before.len().saturating_sub(5)..].eq_ignore_ascii_case(b"$env:");
        let asker = Asker::Promise(promise);
        let doubtful = OnceCell::new();
        self.rows(name, &cell.1, asker, sink, |value, sink| {
            let doubtful = *doubtful.get_or_init(|| is_doubtful(name, cell, sink));
            let told = &sink.text()[value.span.range()];
            // The column may be one of names.
            let named = value::is_listed(told, 3) && !value::is_all_listed(told);
            if !named && (!doubtful || value::stands_alone(told)) {
                believe(value, promise, sink);
            }
        });
        if !in_urn && promise != Promise::Mnemonic {
            believe_listed(name, promise, &cell.1, sink);
        }
        // `...</password> <host>db1`: a tag that ends has its value before it.
        let closes = before.ends_with(b"</");
        let read = self.read(name, &cell.1, sink);
        let read = read.filter(|_| !in_urn && !closes);
        if read.is_none() && !in_urn && sink.limits.spend(2) {
            let told = announced(sink.text(), name, cell.1.span, promise);
            if let Some(value) = told {
                believe(Value::of(value, true), promise, sink);
            }
        }
        if let Some(found) = read {
            if promise == Promise::Mnemonic {
                let words = words_from(sink.text(), found.value, &cell.1);
                believe(Value::of(words, true), promise, sink);
                return;
            }
            if !found.quoted && found.value.len() + 8 >= BARE_BYTES_MAX {
                // Longer than any value without quotes: no use in reading it again from each name inside.
                self.secret_done = found.value.end;
            }
            let rest = &sink.text()[found.value.end as usize..];
            let verdict = verdict::is_verdict(sink.text(), name, found.value, &cell.1);
            let code = !found.quoted && is_code(sink.text(), name, found.value);
            let print = is_fingerprint(sink.text(), name, found.value);
            let id = is_plain_id(sink.text(), name, found.value);
            if !rest.starts_with(b"...") && !verdict && !code && !print && !id {
                let mut value = found.taken(&cell.1);
                if promise == Promise::Passphrase && !found.quoted {
                    value.span = drawn_from(sink.text(), found.value, &cell.1);
                }
                let end = believe(value, promise, sink);
                if end.is_none() {
                    believe_read_words(name, value, promise, sink);
                }
                if let Some(end) = end.filter(|_| value.ends != Ends::Here) {
                    self.secret_done = self.secret_done.max(end);
                }
                believe_typed(value.span, promise, name, &cell.1, sink);
            }
        }
    }

    /// A keyword of a provider's name: the rule knows what the provider's values look like.
    pub fn provider(
        &mut self,
        rule: RuleId,
        any_name: bool,
        at: u32,
        cell: (usize, Cell),
        sink: &mut Sink<'_>,
        scratch: &mut Scratch,
    ) {
        if at < scratch.done.end(rule) || !sink.limits.spend(1) {
            return;
        }
        let name = name_around(sink.text(), at as usize, &cell.1);
        scratch.done.set(rule, name.end);
        if !any_name && names::promise(&sink.text()[name.range()]) == Promise::Nothing {
            return;
        }
        let mut take = |value: Value, sink: &mut Sink<'_>| {
            let Some(pattern) = &sink.rules.compiled(rule).pattern else {
                return;
            };
            let text = &sink.text()[value.span.range()];
            let firms = || {
                let firms = sink.rules.compiled(rule).firms && !is_value(&cell.1);
                firms && firms::is_of_firm(cell.0, sink)
            };
            if scratch.automata.find(pattern, &Input::new(text)).is_some() && !firms() {
                let whole = value.whole(sink);
                sink.accept(rule, whole, &mut scratch.compact);
            }
        };
        if !is_value(&cell.1) {
            // `{"patient":{"name":"Ola Brandt"}}`: the pattern says whether the name is a person's.
            if sink.rules.rule(rule).category == Category::Pii {
                persons::named_in(cell, sink, |named, sink| {
                    take(Value::of(trim(sink.text(), named), true), sink);
                });
            }
            return under_key(cell, sink, |value, sink| take(Value::of(value, true), sink));
        }
        if names_cell(name, &cell.1, sink.text()) {
            let is_head = under_head(&cell.1, sink, |value, sink| {
                take(Value::of(value, true), sink);
            });
            let beside = named_beside(cell, sink);
            for value in &beside {
                take(Value::of(*value, true), sink);
            }
            if is_head || !beside.is_empty() {
                return;
            }
        }
        self.rows(name, &cell.1, Asker::Rule(rule), sink, &mut take);
        if let Some(found) = self.read(name, &cell.1, sink) {
            take(found.taken(&cell.1), sink);
        }
    }

    /// The members of a JSON Web Key that only its owner may know (RFC 7518, 6.2.2, 6.3.2 and 6.4.1; RFC 8037, 2). Of a message
    /// itself the objects may not be known: there a key goes as far as the next one.
    pub fn web_key(cell: (usize, Cell), sink: &mut Sink<'_>) {
        const CELLS_MAX: usize = 48;
        const BYTES_MIN: usize = 16;
        let (index, own) = cell;
        let node = sink.node;
        let called = |span: Span| &node.text[span.range()];
        let kind = node.cells.get(index + 1).filter(|c| c.name == own.span);
        let known = |c: &Cell| matches!(called(c.span), b"RSA" | b"EC" | b"OKP" | b"oct");
        if is_value(&own)
            || called(own.span) != b"kty"
            || !kind.is_some_and(known)
            || !sink.limits.spend(16)
        {
            return;
        }
        let object = node.layout.object_of(index);
        let other = |c: &Cell| c.kind == LeafKind::Key && called(c.span) == b"kty";
        let before = node.cells[index.saturating_sub(CELLS_MAX)..index].iter();
        let behind = node.cells[index + 1..].iter().take(CELLS_MAX);
        let before = before.rev().zip((0..index).rev());
        let behind = behind.zip(index + 1..);
        let in_reach = |c: &(&Cell, usize)| object.is_some() || !other(c.0);
        let near = before
            .take_while(in_reach)
            .chain(behind.take_while(in_reach));
        for (c, nth) in near {
            let value = called(c.span);
            let secret = c.kind == LeafKind::String
                && matches!(
                    called(c.name),
                    b"d" | b"k" | b"p" | b"q" | b"dp" | b"dq" | b"qi"
                )
                && node.layout.object_of(nth) == object;
            let coded = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'=');
            if secret && value.len() >= BYTES_MIN && value.iter().all(coded) {
                sink.report_for(Detector::PrivateWebKey, c.span, None);
            }
        }
    }

    /// A key for the name of a family, beside one for the name that somebody was given.
    pub fn family(cell: (usize, Cell), sink: &mut Sink<'_>) {
        persons::family(cell, sink);
    }

    /// A key, or the head of a column, for what only a person has: the name beside it is somebody's.
    pub fn beside(&mut self, at: u32, cell: (usize, Cell), sink: &mut Sink<'_>) {
        if !is_value(&cell.1) {
            return persons::beside(cell, sink);
        }
        let Some(rule) = sink.rules.detectors[Detector::NameBeside as usize] else {
            return;
        };
        if let Some(head) = persons::head_beside(at, &cell.1, sink) {
            self.rows(head, &cell.1, Asker::Rule(rule), sink, |value, sink| {
                persons::take_name(value.span, sink);
            });
        }
    }

    /// A key for the latitude of a place.
    pub fn home(cell: (usize, Cell), sink: &mut Sink<'_>) {
        persons::home(cell, sink);
    }

    /// A key of a Secret of Kubernetes.
    pub fn secret_data(cell: (usize, Cell), sink: &mut Sink<'_>) {
        listed::secret_data(cell, sink);
    }

    /// A word for where somebody lives, in a name or in a sentence.
    pub fn postal(&mut self, at: u32, cell: (usize, Cell), sink: &mut Sink<'_>) {
        if at < self.postal_done || !sink.limits.spend(1) {
            return;
        }
        let text = sink.text();
        let name = name_around(text, at as usize, &cell.1);
        self.postal_done = name.end.max(at + 1);
        let take = |value: Span, sink: &mut Sink<'_>| {
            let told = &sink.text()[value.range()];
            let before = &sink.text()[cell.1.span.start as usize..];
            let before =
                &before[..(value.start.max(cell.1.span.start) - cell.1.span.start) as usize];
            let known = postal::is_postal(told)
                && !firms::names_firm(before, told)
                && (is_value(&cell.1) || !firms::is_of_firm(cell.0, sink));
            if known && !postal::opens(&sink.text()[value.end as usize..]) {
                sink.report_for(Detector::PostalAddress, value, None);
            }
            known
        };
        if !is_value(&cell.1) {
            return under_key(cell, sink, |value, sink| {
                take(value, sink);
            });
        }
        if names_cell(name, &cell.1, text) {
            let mut found = under_head(&cell.1, sink, |value, sink| {
                take(value, sink);
            });
            for value in named_beside(cell, sink) {
                found |= take(value, sink);
            }
            if found {
                return;
            }
        }
        let asker = Asker::Promise(Promise::Nothing);
        self.rows(name, &cell.1, asker, sink, |value, sink| {
            take(value.span, sink);
        });
        let quoted = self.read(name, &cell.1, sink).filter(|found| found.quoted);
        if quoted.is_some_and(|found| take(found.value, sink)) {
            return;
        }
        let ceil = cell.1.span.end as usize;
        if let Some(span) = postal::after(
            text,
            name.end as usize,
            ceil,
            &mut self.postal_begun,
            sink.limits,
        ) {
            let before = &sink.text()[cell.1.span.start as usize..span.start as usize];
            if !firms::names_firm(before, &sink.text()[span.range()]) {
                sink.report_for(Detector::PostalAddress, span, None);
            }
        }
    }

    /// The values under a name at the head of a table, or among the columns of an `INSERT`: every row, each paid for.
    fn rows(
        &mut self,
        name: Span,
        cell: &Cell,
        asker: Asker,
        sink: &mut Sink<'_>,
        mut take: impl FnMut(Value, &mut Sink<'_>),
    ) {
        let text = sink.text();
        if let Some(mut column) = Column::under(text, name, cell)
            && !self.tables.knows(&column, name, asker)
        {
            for (cost, field) in column.by_ref() {
                if !sink.limits.spend(cost) {
                    break;
                }
                if let Some(field) = field {
                    take(Value::of(trim(text, field), false), sink);
                }
            }
            self.tables.note(&column, name, asker);
        }
        let tuples = tuples_under(text, name, cell).into_iter().flatten();
        let fields = fields_under(text, name, cell).into_iter().flatten();
        for (cost, field) in tuples.chain(fields) {
            if !sink.limits.spend(cost) {
                break;
            }
            if let Some(field) = field {
                take(Value::of(field, true), sink);
            }
        }
    }

    fn read(&mut self, name: Span, cell: &Cell, sink: &Sink<'_>) -> Option<Assigned> {
        if let Some((known, found)) = self.last
            && known == name
        {
            return found;
        }
        let found = value_after(sink.text(), name, cell.span);
        self.last = Some((name, found));
        found
    }
}

/// A value that goes on over blanks as long as there are words of lower case.
fn words_from(text: &[u8], value: Span, cell: &Cell) -> Span {
    let ceil = (cell.span.end as usize).min(value.start as usize + 256);
    let rest = &text[value.start as usize..ceil];
    let len = rest
        .iter()
        .take_while(|b| b.is_ascii_lowercase() || **b == b' ')
        .count();
    let len = rest[..len].trim_ascii_end().len().max(value.len());
    Span::new(value.start as usize, value.start as usize + len)
}

/// Reports a value that looks like one, and returns where it ends.
fn believe(value: Value, promise: Promise, sink: &mut Sink<'_>) -> Option<u32> {
    let text = &sink.text()[value.span.range()];
    let judged = |promise| value::judge(text, promise, value.quoted);
    let (detector, confidence) = match promise {
        Promise::Mnemonic => {
            let words = crate::check::find("bip39").is_some_and(|c| (c.run)(text));
            match words && !value::is_placeholder(text) {
                true => (Detector::Mnemonic, None),
                // The seed of a key, as letters and digits.
                false => match judged(Promise::Strong) {
                    Some(sure) => (Detector::GenericSecret, Some(sure)),
                    None => return None,
                },
            }
        }
        promise => match judged(promise) {
            Some(sure) if matches!(promise, Promise::Password | Promise::Passphrase) => {
                (Detector::GenericPassword, Some(sure))
            }
            Some(sure) => (Detector::GenericSecret, Some(sure)),
            None => return None,
        },
    };
    let whole = value.whole(sink);
    sink.report_for(detector, whole, confidence);
    Some(whole.end)
}

/// A name that promises nothing of one value, but may of many (`tokens`, `passwords`): only as a list.
fn many(name: Span, cell: (usize, Cell), sink: &mut Sink<'_>) {
    let promise = promise_of_many(&sink.text()[name.range()]);
    if promise == Promise::Nothing {
        return;
    }
    if is_value(&cell.1) {
        believe_listed(name, promise, &cell.1, sink);
    } else if name == cell.1.span {
        believe_members(cell, promise, sink);
        let list = sink.node.cells.iter().skip(cell.0 + 2);
        let several = list.take(1).any(|c| is_value(c) && c.name == name);
        if several {
            under_key(cell, sink, |value, sink| {
                believe(Value::of(value, true), promise, sink);
            });
        }
    }
}

/// The values under a key: the next cell, and the elements after it if it is an array.
fn under_key(cell: (usize, Cell), sink: &mut Sink<'_>, mut take: impl FnMut(Span, &mut Sink<'_>)) {
    let (index, key) = cell;
    if let Some(value) = inside(cell, sink) {
        let value = trim(sink.text(), value);
        take(value, sink);
        // `{"api_keys":[{"value":"..."},{"value":"..."}]}`
        return listed::values_in(cell, &VALUES, sink, |value, sink| {
            let value = trim(sink.text(), value);
            take(value, sink);
        });
    }
    let node = sink.node;
    let elements = node.cells.iter().skip(index + 1);
    for c in elements.take_while(|c| is_value(c) && c.name == key.span) {
        if !sink.limits.spend(1) {
            break;
        }
        let value = trim(sink.text(), c.span);
        take(value, sink);
    }
}

/// The values of a table's column, if the cell is its name. Each is paid for; how far off they stand costs nothing.
fn under_head(cell: &Cell, sink: &mut Sink<'_>, mut take: impl FnMut(Span, &mut Sink<'_>)) -> bool {
    let node = sink.node;
    let mut any = false;
    for index in node.layout.column(cell.span) {
        any = true;
        if !sink.limits.spend(1) {
            break;
        }
        let value = trim(sink.text(), node.cells[index].span);
        take(value, sink);
    }
    any
}

/// What a member is called that holds the value of an object.
const VALUES: [&str; 9] = [
    "value",
    "content",
    "text",
    "plain_text",
    "plaintext",
    "stringvalue",
    "string_value",
    "s",
    "default",
];

/// `{"password": {"value": "..."}}`: the value in an object that has one member of such a name and at most a few.
fn inside(cell: (usize, Cell), sink: &Sink<'_>) -> Option<Span> {
    const MEMBERS_CELLS_MAX: usize = 8;
    let from = cell.0 + 1;
    let near = &sink.node.cells[from..(from + MEMBERS_CELLS_MAX).min(sink.node.cells.len())];
    // The next cell is a key again: what the key holds is an object, or nothing that has a cell.
    if near.first().is_none_or(is_value) {
        return None;
    }
    let layout = &sink.node.layout;
    let outer = layout.object_of(cell.0);
    let leaves = |nth: usize| outer.is_some() && layout.object_of(from + nth) == outer;
    let near = &near[..(0..near.len())
        .find(|nth| leaves(*nth))
        .unwrap_or(near.len())];
    let named = |c: &&Cell| {
        let name = &sink.text()[c.name.range()];
        let known = VALUES
            .iter()
            .any(|n| name.eq_ignore_ascii_case(n.as_bytes()));
        is_value(c) && (known || c.name == cell.1.span)
    };
    near.iter().find(named).map(|c| c.span)
}

/// Is the name all of the cell, or the last part of a path in it, as in a store of parameters (`/prod/shop/api_key`)?
fn names_cell(name: Span, cell: &Cell, text: &[u8]) -> bool {
    let before = &text[cell.span.start as usize..name.start as usize];
    let path = || {
        let part =
            |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'-' | b'.' | b':');
        // Files that are hidden begin with a dot.
        let folders = before.strip_suffix(b".").unwrap_or(before);
        folders.ends_with(b"/") && before.iter().all(part)
    };
    name.end == cell.span.end && (before.is_empty() || path())
}

/// `Password input`, `Prod DB password`: a few words that end in the name, or in it and what a form calls its fields.
fn ends_label(name: Span, cell: &Cell, text: &[u8]) -> bool {
    const WORDS_BYTES_MAX: usize = 40;
    const FIELDS: [&[u8]; 10] = [
        b"",
        b":",
        // `input[type=password]`, `#login-password`: how a page's field is picked.
        b"]",
        b"\"]",
        b"']",
        b" input",
        b" field",
        b" box",
        b" textbox",
        b" entry",
    ];
    let before = &text[cell.span.start as usize..name.start as usize];
    let behind = &text[name.end as usize..cell.span.end as usize];
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b >= 0x80 || b" -_'/().#[=\">".contains(b);
    let spoken = before.len() <= WORDS_BYTES_MAX && before.iter().all(word);
    spoken && (FIELDS.iter()).any(|field| behind.eq_ignore_ascii_case(field))
}

fn trim(text: &[u8], span: Span) -> Span {
    let value = &text[span.range()];
    let lead = value.len() - value.trim_ascii_start().len();
    let mut start = span.start as usize + lead;
    let end = start + value.trim_ascii().len();
    for scheme in ["Bearer ", "Basic ", "Token ", "token ", "bearer ", "basic "] {
        if text[start..end].starts_with(scheme.as_bytes()) {
            start += scheme.len();
        }
    }
    Span::new(start, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LeafKind;

    fn read(text: &str, key: &str) -> Option<String> {
        let at = text.find(key).unwrap();
        let span = Span::new(0, text.len());
        let cell = Cell {
            span,
            name: Span::default(),
            kind: LeafKind::String,
            leaf: 0,
        };
        let name = name_around(text.as_bytes(), at, &cell);
        let found = value_after(text.as_bytes(), name, span)?;
        Some(text[found.value.range()].to_owned())
    }

    #[test]
    fn short_names_are_of_anything_in_code() {
        for (text, code) in [
            ("pw = conv2d.weight", true),
            ("pass = frame1.pass2Run", true),
            ("pass = depth2Color;", true),
            ("pw = x1*w2+b3+c4", true),
            ("pw = 1.25e-10", true),
            ("pass = Winter2024", false),
            ("pass = Xk9vQ2mZ!", false),
            ("pass=hunter2x", false),
            ("password = conv2d.weight", false),
        ] {
            let name = text.find([' ', '=']).unwrap();
            let value = text.find("= ").map_or(name + 1, |at| at + 2);
            let (name, value) = (
                Span::new(0, name),
                Span::new(value, text.trim_end_matches(';').len()),
            );
            assert_eq!(is_code(text.as_bytes(), name, value), code, "{text}");
        }
    }

    #[test]
    fn values_in_many_dresses() {
        let cases = [
            ("password=s3cr3t!x", Some("s3cr3t!x")),
            ("var password = []byte(\"abc\")", Some("abc")),
            ("password = SecretStr('abc')", Some("abc")),
            ("password = Some(String::from(\"abc\"));", Some("abc")),
            ("val password: String by lazy { \"abc\" }", Some("abc")),
            ("val password by lazy { \"abc\" }", Some("abc")),
            ("ENV.fetch('password') { 'abc' }", Some("abc")),
            ("constant password : string := \"abc\";", Some("abc")),
            ("password <- \"abc\"", Some("abc")),
            ("password = ENV[\"X\"] || \"abc\"", Some("abc")),
            ("password = os.getenv('X') or 'abc'", Some("abc")),
            ("password = System.getenv(\"X\") ?: \"abc\"", Some("abc")),
            ("val password = lazy { \"abc\" }", Some("abc")),
            ("password = new SecureString(\"abc\");", Some("abc")),
            ("my $password = q{abc};", Some("abc")),
            ("password: () => \"abc\"", Some("abc")),
            ("password: !!binary abc", Some("abc")),
            ("password = \"\"\"\\\n  abc\"\"\"", Some("abc")),
            ("password → abc", Some("abc")),
            ("password — aB3!xyz9q", Some("aB3!xyz9q")),
            ("password — see the wiki", None),
            ("<password>\n    <value>abc</value>", Some("abc")),
            (
                "password=\n5f4dcc3b5aa765d61d8327deb882cf99\n",
                Some("5f4dcc3b5aa765d61d8327deb882cf99"),
            ),
            ("password=\nbucket_name_2=5f4dcc3b5aa765d61d83\n", None),
            ("export DB_PASSWORD=a;b&c)d", Some("a;b&c)d")),
            ("password: \"ab cd\"", Some("ab cd")),
            ("\"password\" : \"abc\"", Some("abc")),
            ("\\\"password\\\":\\\"abc\\\"", Some("abc")),
            ("'password' => 'abc'", Some("abc")),
            ("const password: string = \"abc\";", Some("abc")),
            ("password := `abc`", Some("abc")),
            ("--password abc next", Some("abc")),
            ("| password | abc |", Some("abc")),
            ("<password>abc</password>", Some("abc")),
            ("<password>ab c d</password>", Some("ab c d")),
            ("<password>aB3!x9 <b>", Some("aB3!x9")),
            ("<key>password</key><string>abc</string>", Some("abc")),
            ("<password><![CDATA[abc]]></password>", Some("abc")),
            ("<td>password</td> <td><code>abc</code></td>", Some("abc")),
            ("the password (aB3xyz9q) expires", Some("aB3xyz9q")),
            ("the password (at least 9) expires", None),
            ("Label: password\nValue: abc", Some("abc")),
            (
                "x=[{\"name\": \"password\", \"value\": \"abc\"}]",
                Some("abc"),
            ),
            ("?password=abc&x=1", Some("abc")),
            ("- name: password\n  value: abc", Some("abc")),
            ("  7\t- name: password\n  8\t  value: abc", Some("abc")),
            ("+- name: password\n+  value: abc", Some("abc")),
            ("- name: password\\n  value: abc\\nx", Some("abc")),
            ("password == x", None),
            ("root@db password Winter2024! ok", Some("Winter2024!")),
            ("the password user1@example.com has", None),
            ("password::new()", None),
            ("the password is aB3xyz9 now", Some("aB3xyz9")),
            ("the password is wrong", None),
            ("the password is: aB3xyz9 now", Some("aB3xyz9")),
            ("set `password` to:\n\n```\naB3xyz9\n```\n", Some("aB3xyz9")),
            (
                "public string password { get; set; } = \"abc\";",
                Some("abc"),
            ),
            ("ENV['password'] ||= 'abc'", Some("abc")),
            ("password+=abc", Some("abc")),
            ("password += 'abc'", Some("abc")),
            ("password ??= 'abc'", Some("abc")),
            ("01 WS-password PIC X(14) VALUE 'abc'.", Some("abc")),
            ("password\taB3xyz9\nnext", Some("aB3xyz9")),
            ("password\tnotes\nnext", None),
            ("go to password to change it", None),
            ("name=\"password\" value=\"abc\"", Some("abc")),
            ("define('password', 'abc')", Some("abc")),
            ("**password**: abc", Some("abc")),
            ("*password:* abc", Some("abc")),
            ("_password:_ abc", Some("abc")),
            ("password:<br>abc\nnext", Some("abc")),
            ("password:<br />\nabc", Some("abc")),
            ("password: «ab cd»", Some("ab cd")),
            ("password: “aB3xyz9", Some("aB3xyz9")),
            ("{{ .x.password | quote }}", None),
            ("{{ password | aB3xyz9 |", Some("aB3xyz9")),
            ("password for the shop: aB3xyz9q", Some("aB3xyz9q")),
            ("password for the new shop is aB3!xyz9q", Some("aB3!xyz9q")),
            ("password for the shop is old2", None),
            ("password for the shop is old: see wiki", None),
            ("password ........ aB3!xyz9q\n", Some("aB3!xyz9q")),
            ("password   aB3!xyz9q\nnext", Some("aB3!xyz9q")),
            ("password\n  Harbor@2002zz\n", Some("Harbor@2002zz")),
            ("password\nuser1@example.com\n", None),
            ("password ... and more", None),
            ("* password\n  aB3!xyz9q\n* next", Some("aB3!xyz9q")),
            (
                "password\n5f4dcc3b5aa765d61d8327deb882cf99\n",
                Some("5f4dcc3b5aa765d61d8327deb882cf99"),
            ),
            ("password\nwas lost on 2026-01-02T03:04:05", None),
            ("what is the password?\nA: aB3!xyz9q\n", Some("aB3!xyz9q")),
            ("what is the password?\nA: no idea", None),
            ("password:\n  abc", Some("abc")),
            ("password:\n  next: abc", None),
            ("name,value\npassword,aB3xyz9q,2025", Some("aB3xyz9q")),
            ("f(a, password, other1)", None),
            ("set *password* to {{aB3xyz9q}}\n", Some("aB3xyz9q")),
            (
                "variable \"password\" {\n  default = \"abc\"\n}",
                Some("abc"),
            ),
        ];
        for (text, want) in cases {
            let name = if text.contains("DB_PASSWORD") {
                "DB_PASSWORD"
            } else {
                "password"
            };
            assert_eq!(read(text, name).as_deref(), want, "{text}");
        }
    }
}
