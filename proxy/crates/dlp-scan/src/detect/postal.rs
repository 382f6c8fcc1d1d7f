//! Postal addresses behind a word that says "address": the forms of the world's post offices have a street with a number in
//! common, and a town with a postcode (Universal Postal Union, S42). What is no address for a letter (of memory, of a host, of
//! mail, of a wallet) has neither.

mod words;

use smallvec::SmallVec;
use words::{
    IS_AMBIGUOUS, IS_HOUSE_OF_MANY, IS_NO_HOUSE, IS_STREET, IS_TITLE, PREFIXES, ends_as_street,
    has_script_word,
};

use super::{Limits, Sink};
use crate::ruleset::Detector;
use crate::text::Span;
use crate::traces::{Signs, Traces};

/// Longest address, and most lines of it.
const BYTES_MAX: usize = 200;
const LINES_MAX: usize = 5;
/// Shorter ones name no place.
const BYTES_MIN: usize = 8;
/// How far behind the word the address may begin in a sentence, and at how many words of that it is looked for.
const REACH: usize = 72;
const STARTS_MAX: usize = 8;
/// So close to its beginning an address has a number.
const NUMBER_REACH: usize = 56;
/// What it costs to look whether an address begins somewhere.
const LOOK: u32 = 32;

/// The address that follows a label which ends at `at`: right behind the signs that part a label from its value, or a few words on.
pub(super) fn after(
    text: &[u8],
    at: usize,
    ceil: usize,
    begun: &mut Begun,
    limits: &mut Limits,
) -> Option<Span> {
    let near = &text[at..ceil.min(at + REACH)];
    let begins = |nth: usize| {
        let before = nth.checked_sub(1).map_or(b' ', |i| near[i]);
        let parted =
            !before.is_ascii_alphanumeric() && before < 0x80 && !b"_/-.'@".contains(&before);
        let b = near[nth];
        let first = b.is_ascii_digit() || b.is_ascii_uppercase() || b >= 0xC3 || b == b'#';
        parted && (first || lower_street(&near[nth..]))
    };
    let starts = (0..near.len()).filter(|nth| begins(*nth)).take(STARTS_MAX);
    for (tried, nth) in starts.enumerate() {
        // What a line says that ends as a sentence does is not said of the next one.
        if memchr::memmem::find(&near[..nth], b".\n").is_some() {
            return None;
        }
        let direct = tried == 0 && near[..nth].iter().all(|b| !b.is_ascii_alphanumeric());
        // `Yes, it's 9 Mill Lane`
        let word = near[nth..].iter().take_while(|b| b.is_ascii_alphabetic());
        let word = word.count();
        if !direct && word > 0 && near.get(nth + word) == Some(&b',') {
            continue;
        }
        let head = &text[at + nth..ceil.min(at + nth + NUMBER_REACH)];
        let numbered = |b: &u8| b.is_ascii_digit() || *b >= 0x80;
        if !head.iter().any(numbered) {
            continue;
        }
        let here = Begin::new(at + nth, ceil);
        if begun.none_at(here) {
            continue;
        }
        if !limits.spend(LOOK) {
            return None;
        }
        let Some(len) = address(&text[at + nth..ceil]) else {
            begun.note_none(here);
            continue;
        };
        let span = Span::new(at + nth, at + nth + len);
        // In a sentence only what is an address by itself.
        if (direct || is_whole(&text[span.range()])) && !opens(&text[span.end as usize..]) {
            return Some(span);
        }
    }
    None
}

/// Where an address may begin, and where its cell ends.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Begin {
    at: u32,
    ceil: u32,
}

impl Begin {
    fn new(at: usize, ceil: usize) -> Self {
        let Span { start, end } = Span::new(at, ceil);
        Self {
            at: start,
            ceil: end,
        }
    }
}

/// The last places of a text where no address begins. Words that speak of one stand close to each other at times, and
/// what is within the reach of both is looked at once.
#[derive(Debug, Default)]
pub(super) struct Begun {
    none: [Option<Begin>; 2 * STARTS_MAX],
    next: usize,
}

impl Begun {
    fn none_at(&self, begin: Begin) -> bool {
        self.none.contains(&Some(begin))
    }

    fn note_none(&mut self, begin: Begin) {
        self.none[self.next % (2 * STARTS_MAX)] = Some(begin);
        self.next += 1;
    }
}

/// Addresses as letters have them, below a line with somebody's name, and as lists have them, behind one.
pub(super) fn scan(sink: &mut Sink<'_>, traces: &Traces) {
    if sink.rules.detectors[Detector::PostalAddress as usize].is_none() {
        return;
    }
    behind_names(sink);
    if traces.signs.any(Signs::LINE) {
        below_names(sink);
    }
}

/// `Bodil Skov, Nørregade 39, 8700 Horsens`: no word says "address", but a person is named and all of an address follows.
fn behind_names(sink: &mut Sink<'_>) {
    let node = sink.node;
    let (text, mut done, mut index) = (&node.text, 0, 0);
    for at in memchr::memchr_iter(b',', text) {
        let Some([b' ', first, ..]) = text.get(at + 1..) else {
            continue;
        };
        let begins = first.is_ascii_digit() || first.is_ascii_uppercase() || *first >= 0xC3;
        let letter = at
            .checked_sub(1)
            .is_some_and(|n| text[n].is_ascii_alphabetic() || text[n] >= 0x80);
        if at < done || !letter || !(begins || lower_street(&text[at + 2..])) {
            continue;
        }
        let Some(cell) = node.cell_from(at, &mut index) else {
            continue;
        };
        let behind = &text[at + 2..cell.span.end as usize];
        let head = &behind[..behind.len().min(NUMBER_REACH)];
        if !head.iter().any(u8::is_ascii_digit)
            || !person_before(&text[cell.span.start as usize..at])
        {
            continue;
        }
        if !sink.limits.spend(LOOK) {
            return;
        }
        let Some(len) = address(behind) else {
            continue;
        };
        let own = &behind[..len];
        if judge(own).is_some_and(|seen| seen.is_block() && (seen.named || !has_year(own))) {
            sink.report_for(
                Detector::PostalAddress,
                Span::new(at + 2, at + 2 + len),
                None,
            );
            done = at + 2 + len;
        }
    }
}

/// `Volume 3, 1998 Reprint` has the form of a house and a postcode.
fn has_year(text: &[u8]) -> bool {
    let year = |w: &[u8]| w.len() == 4 && (w.starts_with(b"19") || w.starts_with(b"20"));
    text.split(|b| !b.is_ascii_alphanumeric()).any(year)
}

/// Does the text end with a person's name that somebody speaks of: one behind a title, or two words of one behind a label?
fn person_before(text: &[u8]) -> bool {
    let reach = text.len().saturating_sub(2 * NAME_BYTES_MAX);
    let reach = (reach..text.len()).find(|n| text[*n] & 0xC0 != 0x80);
    let Ok(near) = std::str::from_utf8(&text[reach.unwrap_or(text.len())..]) else {
        return false;
    };
    let ends = |c: char| "\n\r\t:;\"(|>=[{/→–—•·,!?".contains(c);
    let part = near.rsplit(ends).next().unwrap_or_default();
    let (mut named, mut titled) = (0, false);
    for word in part.split(' ').rev().filter(|w| !w.is_empty()) {
        let low = word.to_lowercase();
        // `M. Pelletier`: without its sign it is an initial.
        if word == "M." || IS_TITLE.contains(low.trim_end_matches('.')) {
            titled = true;
            // `Hatice Teyze`: there it stands behind.
            if named > 0 {
                break;
            }
            continue;
        }
        if is_named(word) {
            if is_no_person(word, &low) {
                return false;
            }
            named += 1;
        } else if !PARTICLES.contains(&word) {
            break;
        }
    }
    let label = near[..near.len() - part.len()].strip_suffix(':');
    // A house of many may have two words for a name as well.
    let labelled = || label.is_some_and(|label| !names_house(label));
    titled && named > 0 || (2..5).contains(&named) && labelled()
}

/// Is a label one for where many people go?
fn names_house(label: &str) -> bool {
    const LABELS: [&str; 26] = [
        "venue",
        "location",
        "office",
        "offices",
        "where",
        "visit",
        "address",
        "publisher",
        "supplier",
        "vendor",
        "sede",
        "siège",
        "sitz",
        "firma",
        "ort",
        "lieu",
        "lugar",
        "luogo",
        "place",
        "site",
        "contact",
        "imprint",
        "impressum",
        "landmark",
        "stop",
        "event",
    ];
    let low = label.to_lowercase();
    let last = low.rsplit(|c: char| !c.is_alphanumeric()).next();
    last.is_none_or(|w| LABELS.contains(&w) || is_house_of_many(w))
}

/// Words with a capital that no person has for a name.
fn is_no_person(word: &str, low: &str) -> bool {
    const WORDS: [&str; 40] = [
        "the",
        "our",
        "at",
        "in",
        "on",
        "from",
        "to",
        "for",
        "visit",
        "of",
        "and",
        "see",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "may",
        "city",
        "county",
        "north",
        "south",
        "east",
        "west",
        "new",
        "old",
        "upper",
        "lower",
        "saint",
        "san",
        "los",
        "las",
        "st",
        "st.",
        "fort",
        "mount",
        "port",
        "lake",
    ];
    const ENDINGS: [&str; 14] = [
        "haus", "amt", "schule", "museum", "klinik", "hotel", "zentrum", "kirche", "verein",
        "bank", "theater", "verlag", "werke", "markt",
    ];
    WORDS.contains(&low)
        || is_house_of_many(low)
        || ENDINGS.iter().any(|end| low.ends_with(end))
        || IS_STREET.contains(low)
        || says_street(word, low)
        || no_house(low)
}

/// Addresses as letters have them: below a line with somebody's name.
fn below_names(sink: &mut Sink<'_>) {
    let node = sink.node;
    let (mut at, mut index) = (0, 0);
    while let Some(next) = memchr::memchr(b'\n', &node.text[at..]) {
        let end = at + next;
        let Some(cell) = node.cell_from(end, &mut index) else {
            at = end + 1;
            continue;
        };
        let line = at.max(cell.span.start as usize);
        at = end + 1;
        if end - line > NAME_BYTES_MAX || !is_name(&node.text[line..end]) {
            continue;
        }
        if !sink.limits.spend(LOOK) {
            return;
        }
        let below = &node.text[at..cell.span.end as usize];
        let Some(len) = address(below) else {
            continue;
        };
        if judge(&below[..len]).is_some_and(|seen| seen.is_block()) {
            sink.report_for(Detector::PostalAddress, Span::new(at, at + len), None);
            at += len;
        }
    }
}

/// Longest line with a name.
const NAME_BYTES_MAX: usize = 48;

/// Is a line a person's name, and nothing else? Two to four words with capitals, or the few characters of one in East Asia.
fn is_name(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let first = |b: &u8| b.is_ascii_uppercase() || *b >= 0xC3;
    let signs = |b: &u8| b.is_ascii_digit() || b"@:;,/<>(){}[]=_|#*\"!?&\\+".contains(b);
    if !(4..=NAME_BYTES_MAX).contains(&line.len())
        || !line.first().is_some_and(first)
        || line.iter().any(signs)
    {
        return false;
    }
    let Ok(text) = std::str::from_utf8(line) else {
        return false;
    };
    let eastern = |c: char| ('\u{3400}'..='\u{9FFF}').contains(&c) || ('가'..='힣').contains(&c);
    let letters = text.chars().filter(|c| *c != ' ');
    if letters.clone().all(eastern) {
        return (2..=5).contains(&letters.count());
    }
    let words: SmallVec<[&str; 6]> = text.split(' ').collect();
    (2..=5).contains(&words.len())
        && words.iter().filter(|w| is_named(w)).count() >= 2
        && words.iter().all(|w| is_named(w) || PARTICLES.contains(w))
        && !words.iter().any(|w| is_house_of_many(&w.to_lowercase()))
}

/// Small words in names.
const PARTICLES: [&str; 18] = [
    "de", "la", "del", "da", "do", "dos", "van", "der", "den", "von", "zu", "di", "bin", "al",
    "el", "y", "e", "ten",
];

/// Is a word written as names are?
fn is_named(word: &str) -> bool {
    let mut chars = word.chars();
    let capital = chars
        .next()
        .is_some_and(|c| c.is_uppercase() || c.is_alphabetic() && !c.is_lowercase());
    let rest = |c: char| {
        c.is_alphabetic()
            || matches!(c, '-' | '\'' | '’' | '.')
            || ('\u{900}'..='\u{DFF}').contains(&c)
    };
    capital && chars.all(rest)
}

/// Words in the names of companies and of places that are everybody's.
fn is_house_of_many(word: &str) -> bool {
    IS_HOUSE_OF_MANY.contains(word)
}

/// Words that begin an address in small letters.
fn lower_street(text: &[u8]) -> bool {
    const BEGIN: [&str; 16] = [
        "ul.", "ul ", "al.", "os.", "rue ", "via ", "calle ", "c/", "av. ", "av ", "avda", "rua ",
        "jl. ", "jalan ", "str. ", "nám",
    ];
    BEGIN.iter().any(|word| text.starts_with(word.as_bytes()))
}

/// How long the address is that a text begins with, if it does.
fn address(text: &[u8]) -> Option<usize> {
    let whole = &text[..extent(text)];
    let mut len = whole.len();
    // What follows may belong to the sentence: the longest that is an address counts.
    for _ in 0..3 {
        let piece = &whole[..len];
        let piece = &piece[..piece.len()
            - piece
                .iter()
                .rev()
                .take_while(|b| b" ,.-/(\n:".contains(b))
                .count()];
        if is_postal(piece) {
            return Some(piece.len());
        }
        len = memchr::memrchr(b'\n', piece)?;
    }
    None
}

/// How far a text goes that could be an address.
fn extent(text: &[u8]) -> usize {
    let (mut at, mut lines, mut line) = (0, 1, 0);
    while at < text.len().min(BYTES_MAX) {
        let b = text[at];
        let part = b.is_ascii_alphanumeric() || b >= 0x80 || b" ,.-/#'&()".contains(&b);
        match b {
            b'\n' => {
                let next = &text[at + 1..];
                let end = memchr::memchr(b'\n', next).unwrap_or(next.len()).min(80);
                let next = next[..end].trim_ascii();
                lines += 1;
                if lines > LINES_MAX || next.is_empty() || end == 80 || next.contains(&b':') {
                    return at;
                }
                line = at + 1;
            }
            b'\r' => {}
            b':' if at > line && text[..at].to_ascii_lowercase().ends_with(b"no") => {}
            b':' if text[..at].ends_with(b"D") || text[..at].ends_with(b"Kat") => {}
            b';' | b':' => return at,
            // The end of a sentence is none behind an abbreviation.
            b'.' if text[at + 1..].starts_with(b" ") => {
                let word = text[..at]
                    .iter()
                    .rev()
                    .take_while(|b| b.is_ascii_alphanumeric() || **b >= 0x80);
                let word = &text[at - word.count()..at];
                let digits = word.iter().any(u8::is_ascii_digit);
                let next = text.get(at + 2).is_some_and(u8::is_ascii_uppercase);
                let goes_on = text.get(at + 3).is_some_and(u8::is_ascii_lowercase);
                let small = word.len() > 3 && word.iter().all(u8::is_ascii_lowercase);
                if next && (word.len() > 6 || digits || small && goes_on) {
                    return at;
                }
            }
            b' ' if text[at..].starts_with(b"  ") => return at,
            b')' if !text[..at].contains(&b'(') => return at,
            _ if !part => return at,
            _ => {}
        }
        at += 1;
    }
    let mut end = at;
    while end > 0 && end < text.len() && text[end] & 0xC0 == 0x80 {
        end -= 1;
    }
    end
}

/// May all of a value be an address?
pub(crate) fn is_postal(value: &[u8]) -> bool {
    judge(value).is_some_and(|seen| seen.is_address())
}

/// Is it one that no word before has to explain: a street and a town with a postcode?
fn is_whole(value: &[u8]) -> bool {
    judge(value)
        .is_some_and(|seen| seen.east || seen.named && seen.house || seen.house && seen.post)
}

/// Longest word of an address; runs of base64 are longer.
const WORD_BYTES_MAX: usize = 44;

/// Lines of a log may be in many languages; an address in Cyrillic has no word in Japanese.
fn mixes_scripts(text: &str) -> bool {
    let cyrillic = |c: char| ('\u{400}'..='\u{52F}').contains(&c);
    let eastern = |c: char| ('\u{3040}'..='\u{9FFF}').contains(&c) || ('가'..='힣').contains(&c);
    !text.is_ascii() && text.contains(cyrillic) && text.contains(eastern)
}

/// Does the next word say when a shop is open? There nobody lives.
pub(super) fn opens(behind: &[u8]) -> bool {
    const WORDS: [&str; 9] = [
        "hours",
        "open ",
        "opening",
        "öffnungs",
        "geöffnet",
        "mo–",
        "mo-",
        "mon-",
        "horario",
    ];
    let near = &behind[..behind.len().min(40)];
    let near = String::from_utf8_lossy(near).to_lowercase();
    let next = near.trim_start_matches(|c: char| !c.is_alphabetic());
    WORDS.iter().any(|word| next.starts_with(word))
}

#[derive(Default)]
struct Seen {
    /// A word for streets, and a number beside a name.
    named: bool,
    house: bool,
    /// A postcode beside a town, elsewhere than the house.
    post: bool,
    /// Two of the words that order an address in East Asia, and a number.
    east: bool,
    parts: usize,
}

impl Seen {
    /// May it stand below a name without a word that says what it is?
    fn is_block(&self) -> bool {
        self.east || self.house && self.post || self.named && self.house && self.parts > 1
    }

    fn is_address(&self) -> bool {
        self.east || self.named && self.house || self.house && self.post && self.parts > 1
    }
}

fn judge(value: &[u8]) -> Option<Seen> {
    if !(BYTES_MIN..=BYTES_MAX).contains(&value.len())
        || !value.iter().any(|b| b.is_ascii_digit() || *b >= 0x80)
    {
        return None;
    }
    let text = std::str::from_utf8(value).ok()?;
    // Every address has a number, whoever writes it.
    let numeral = |c: char| c.is_numeric() || "一二三四五六七八九十".contains(c);
    if !text.contains(numeral) {
        return None;
    }
    let strange =
        |c: char| c.is_ascii_control() && c != '\n' && c != '\r' || "@=<>{}[]\\|_*?!\"".contains(c);
    if text.contains(strange)
        || text.contains("//")
        || text.contains("0x")
        || mixes_scripts(text)
        || text
            .split([' ', '\n'])
            .any(|word| word.is_ascii() && word.len() > WORD_BYTES_MAX)
    {
        return None;
    }
    let lower = text.to_lowercase();
    // Years behind the word have the form of houses and postcodes.
    if lower.contains("copyright") || is_of_manual(text) || has_negatives(text) {
        return None;
    }
    let mut seen = Seen {
        east: !text.is_ascii() && is_eastern(text),
        ..Seen::default()
    };
    let cut = [',', '\n', '，', '、', '،', ';'];
    let own: Vec<&str> = text
        .split(cut)
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect();
    let low: Vec<&str> = lower
        .split(cut)
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect();
    seen.parts = own.len();
    let (mut house, mut street) = (None, None);
    for (nth, (own, low)) in own.iter().zip(&low).enumerate() {
        let named = says_street(own, low);
        if named {
            street = street.or(Some(nth));
        }
        if house.is_none() && has_house(own, low, named) {
            house = Some(nth);
        }
    }
    // `Rua Augusta\nn.º 228`: the number stands by itself, behind the street.
    if house.is_none()
        && let Some(street) = street
    {
        house = low
            .iter()
            .skip(street + 1)
            .position(|part| is_number(part))
            .map(|n| n + street + 1);
    }
    seen.named = street.is_some();
    seen.house = house.is_some();
    seen.post = own
        .iter()
        .enumerate()
        .any(|(nth, part)| Some(nth) != house && has_postcode(part, own.get(nth + 1)));
    Some(seen)
}

/// `.PP`, `.SH NAME`: lines of a manual in troff begin so.
fn is_of_manual(text: &str) -> bool {
    let request = |line: &str| {
        let mut chars = line.bytes();
        chars.next() == Some(b'.') && chars.next().is_some_and(|b| b.is_ascii_uppercase())
    };
    text.split('\n').any(request)
}

/// `FontBBox -241 -261 1250 899`: no house has a number below nought.
fn has_negatives(text: &str) -> bool {
    let below = |w: &&[u8]| w[0] == b' ' && w[1] == b'-' && w[2].is_ascii_digit();
    text.as_bytes().windows(3).filter(below).count() >= 2
}

/// Words of a part, without what stands around them.
fn words(part: &str) -> impl Iterator<Item = &str> {
    part.split([' ', '(', ')', '\r', ':'])
        .map(|w| w.trim_matches(['.', '-', '\'']))
        .filter(|w| !w.is_empty())
}

fn says_street(own: &str, low: &str) -> bool {
    // A name stands beside the word, or in it.
    let name = |word: &str| {
        word.chars().next().is_some_and(|c| {
            c.is_uppercase() || c.is_alphabetic() && !c.is_ascii() && !c.is_lowercase()
        })
    };
    let named = words(own).filter(|w| name(w)).count();
    if has_script_word(low)
        || ["p.o. box", "po box", "postfach"]
            .iter()
            .any(|lead| low.starts_with(lead))
    {
        return true;
    }
    if named == 0 || is_sentence(own) {
        return false;
    }
    let glued = |w: &str| {
        PREFIXES
            .iter()
            .any(|p| w.len() > p.len() + 2 && w.starts_with(p))
    };
    let street = |w: &&str| IS_STREET.contains(w);
    // `offering` and `during` end in no ring.
    let english = |w: &str| {
        ["ering", "uring", "oring", "iring", "aring"]
            .iter()
            .any(|end| w.ends_with(end))
    };
    let ending = |w: &str| ends_as_street(w) && !english(w);
    if low.split(' ').any(glued)
        || words(low).any(|w| street(&w) && !IS_AMBIGUOUS.contains(w))
        || words(low).any(ending)
    {
        return true;
    }
    let ends = |w: &str| ["st", "nd", "rd", "th"].iter().any(|end| w.ends_with(end));
    // `PR #15`
    let ordinal = || words(low).any(|w| ends(w) || is_short_number(w) && !w.starts_with('#'));
    words(low).any(|w| street(&w)) && (named > 1 || ordinal())
}

/// Is it more words of a sentence than an address has?
fn is_sentence(part: &str) -> bool {
    const SMALL_MAX: usize = 2;
    let small = |w: &&str| {
        w.len() > 3 && w.bytes().all(|b| b.is_ascii_lowercase()) && !IS_STREET.contains(w)
    };
    words(part).filter(small).nth(SMALL_MAX).is_some()
}

/// `12`, `12B`, `12/4`, `12-14`, `n.º 228`, `#71-21`.
fn is_short_number(word: &str) -> bool {
    let word = word.trim_start_matches(['#', '№']);
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &word[digits..];
    (1..=5).contains(&digits)
        && rest.len() <= 6
        && rest
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'-'))
        && rest.bytes().filter(u8::is_ascii_alphabetic).count() <= 3
}

fn is_number(part: &str) -> bool {
    let lead = part.len() - part.trim_start_matches(|c: char| !c.is_ascii_digit()).len();
    let (lead, part) = part.split_at(lead);
    // `x509`
    if lead.ends_with(|c: char| c.is_ascii_alphabetic()) && !lead.ends_with("no") {
        return false;
    }
    // `12 more miles`
    let told = |w: &str| w.len() > 3 && w.bytes().all(|b| b.is_ascii_lowercase());
    !words(part).any(told) && is_short_number(part.split(' ').next().unwrap_or_default())
}

/// A number beside a name, as houses have one. Where no street is named the name begins with a capital, as names do.
fn has_house(own: &str, low: &str, named: bool) -> bool {
    let number = words(own).any(is_short_number)
        || has_script_word(low) && low.contains(|c: char| c.is_ascii_digit());
    let first = words(own).find(|w| w.chars().next().is_some_and(char::is_alphabetic));
    // `U Lesa 44`, `V Zahradách 3`
    let small = ["u ", "v ", "k "].iter().any(|lead| low.starts_with(lead));
    let letters = first.is_some_and(|w| w.chars().count() > 1) || small && words(own).count() > 2;
    let capital = first.is_some_and(|w| w.chars().next().is_some_and(|c| !c.is_lowercase()));
    number
        && letters
        && !is_sentence(own)
        && (named || capital && words(own).count() <= 6 && !no_house(low))
}

/// Words with a number behind them that are no street.
fn no_house(low: &str) -> bool {
    words(low).any(|w| IS_NO_HOUSE.contains(w))
}

/// A postcode with a town beside it: in the same part, or the next.
fn has_postcode(part: &str, next: Option<&&str>) -> bool {
    let all: Vec<&str> = part.split([' ', '\r']).filter(|w| !w.is_empty()).collect();
    let town = |w: &&str| {
        w.chars()
            .next()
            .is_some_and(|c| c.is_alphabetic() && !c.is_lowercase())
            && w.chars().filter(|c| c.is_alphabetic()).count() > 2
    };
    let code = all
        .iter()
        .enumerate()
        .any(|(nth, word)| is_postcode(word, all.get(nth + 1).copied()));
    let region = all.len() <= 3
        && all
            .iter()
            .any(|w| (2..=3).contains(&w.len()) && w.bytes().all(|b| b.is_ascii_uppercase()));
    code && (all.iter().any(town)
        || region
        || all.len() <= 2
            && next.is_some_and(|next| town(&next.split(' ').next().unwrap_or_default())))
}

/// By the shapes that the post offices publish; of codes in two words both are given.
fn is_postcode(word: &str, next: Option<&str>) -> bool {
    if !word.bytes().any(|b| b.is_ascii_digit()) {
        return false;
    }
    let shape = |word: &str| -> String {
        let of = |c: char| match c {
            c if c.is_ascii_digit() => '9',
            c if c.is_ascii_uppercase() => 'A',
            c => c,
        };
        word.chars().map(of).collect()
    };
    let own = shape(word.trim_start_matches('〒').trim_end_matches(['.', ',']));
    let two = next.map(|next| shape(next.trim_end_matches(['.', ','])));
    let country = own
        .split_once('-')
        .filter(|(land, _)| matches!(land.len(), 1 | 2) && land.bytes().all(|b| b == b'A'));
    let bare = country.map_or(own.as_str(), |(_, code)| code);
    matches!(
        bare,
        "9999"
            | "99999"
            | "999999"
            | "99999-9999"
            | "99999-999"
            | "9999-999"
            | "99-999"
            | "999-9999"
            | "9999AA"
            | "9999999"
            | "A9999AAA"
            | "A9999"
    ) || matches!(
        (bare, two.as_deref()),
        ("999", Some("99"))
            | ("9999", Some("AA"))
            | ("A9A", Some("9A9"))
            | (
                "A99" | "A9A",
                Some("A9A9" | "AA99" | "99A9" | "9999" | "A999")
            )
            | ("A9" | "A99" | "AA9" | "AA99" | "A9A" | "AA9A", Some("9AA"))
    )
}

/// Provinces, towns, wards, streets and numbers, the largest first: `东区xx路12号`, `서울 ... 로 12`, `千代田区1-2-3`.
fn is_eastern(text: &str) -> bool {
    const CHINESE: [char; 24] = [
        '省', '市', '区', '區', '县', '縣', '乡', '鄉', '镇', '鎮', '村', '路', '街', '巷', '弄',
        '号', '號', '栋', '棟', '楼', '樓', '室', '段', '里',
    ];
    const JAPANESE: [char; 9] = ['都', '道', '府', '県', '町', '丁', '番', '郡', '〒'];
    let digit = text.contains(|c: char| c.is_ascii_digit() || ('０'..='９').contains(&c))
        || text.contains(['一', '二', '三', '四', '五', '六', '七', '八', '九', '十']);
    let of = |c: &char| text.contains(*c);
    let marks =
        CHINESE.iter().filter(|c| of(c)).count() + JAPANESE.iter().filter(|c| of(c)).count();
    let letters = text
        .chars()
        .filter(|c| ('\u{3040}'..='\u{9FFF}').contains(c))
        .count();
    if digit && letters >= 5 && marks >= 2 {
        return true;
    }
    let korean = words(text).filter(|w| {
        let mut chars = w.chars().rev();
        let last = chars.find(|c| !c.is_ascii_digit() && *c != '-');
        let hangul = |c: char| ('가'..='힣').contains(&c);
        w.chars().filter(|c| hangul(*c)).count() >= 2
            && last.is_some_and(|c| "시도군구읍면동리로길".contains(c))
            || w.ends_with("번길")
    });
    digit && korean.count() >= 2
}

#[cfg(test)]
mod tests {
    use super::{Begun, after, is_postal, person_before};
    use crate::detect::Limits;

    #[test]
    fn addresses_of_the_world() {
        for text in [
            "Kerkstraat 45 bus 6, 2018 Antwerpen",
            "ul. Mickiewicza 14/40, 00-676 Warszawa",
            "Wiener Gasse 31/5, 1060 Linz",
            "11 Ashfield Park, Dublin 6W, D6W 6UR7",
            "191025, г. Санкт-Петербург, ул. Гагарина, д. 110, кв. 176",
            "Caferağa Mah. Çınar Sok. No:15 D:11, 06490 Çankaya/Ankara",
            "Lipová 1170/17\n301 00 Plzeň",
            "서울특별시 마포구 양화로 61\n112동 1784호",
            "Na Příkopě 108/33, 301 00 Plzeň",
            "Rua Augusta\nn.º 228\n3º Dto.\n1100-404 Lisboa",
            "Calle Insurgentes 108\nCol. Centro\nC.P. 03100\nGuadalajara\nJal.",
            "88 Mill Lane\nSheffield S10 5GY",
            "1767 Queen St W, Toronto, ON M5V 9R9",
            "Unit 4/177 Wattle Grove, Fitzroy VIC 3065",
            "Via San Martino 87, 20131 Milano MI",
            "Solbakken 52, 7030 Trondheim",
            "Flat 341, Lotus Apartments, MG Road, Bengaluru 560072",
            "高雄市左營區自由二路5號7樓",
            "浙江省杭州市西湖区文三路433号5栋1225室",
            "شقة 905، برج المرجان، الخالدية، أبوظبي",
            "4024 Budapest, Kossuth utca 70. 5/8.",
            "Egevej 166\n3. tv\n2200 København N",
            "〒566-7465 福岡県福岡市中央区大名3-7-11",
            "Blk 574 Ang Mo Kio Ave 3 #04-75, Singapore 178274",
            "Avenida de la Constitución 51, 8º A, 28012 Madrid",
            "Av. Rivadavia 2143\npiso 1\ndepto. C\nC1406 CABA",
            "40 Protea Street\nRandburg\n2194",
            "Dorpsstraat 132\n3554 UJ Utrecht",
            "12 bis rue des Lilas, 31000 Toulouse",
            "742 Evergreen Terrace",
            "4521 N 3rd Ave, Phoenix, AZ 85013",
            "P.O. Box 4417, Nairobi 00100",
        ] {
            assert!(is_postal(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn other_addresses_are_none() {
        for text in [
            "10.0.0.1",
            "0x52908400098527886E0F7030069857D2E4169EE7",
            "localhost, 8080",
            "host 12, 8080 Port",
            "siehe Seite 12, 2026 Auflage",
            "Version 2 of 2024, Release 7",
            "see Main Street, next to the Station",
            "12 bytes, Little Endian",
            "fe80::1ff:fe23:4567:890a",
            "info@firma.de",
            "https://host/12 Main Street",
            "0.0.0.0:8080",
            "Register 4, Bank 2",
            "required, 1 to 200 characters",
            "the first 64 bytes of the header",
            "Tuesday, 14 March 2026",
            "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
            "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAA (row 33)\nKantine heute geschlossen",
            "Copyright (c) 2015, 2019 Elan Shanker",
            "Copyright 2006, 2007, Oracle and/or its affiliates",
            "UnderlineThickness 50\nFontBBox -241 -261 1250 899\nStartCharMetrics 190",
            "PR #15, Thanks",
            "Street Address\nx509",
            "SH Endereços\n.I /proc/net/dev 8\n.SH BUGS",
            "ダッシュボード\nпроверка связи\nHandelsregister Mannheim HRB 789056",
        ] {
            assert!(!is_postal(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_person_stands_before() {
        for text in [
            "Privat: Bodil Skov",
            "Παραλαβή από τον κ. Μπάμπη",
            "fyi: Jan van der Berg",
            "נמענת: שושנה אברג'יל",
            "Shri Manoj Pattanaik",
            "Hatice Teyze",
            "chez M. Gaël Pelletier",
        ] {
            assert!(person_before(text.as_bytes()), "{text}");
        }
        for text in [
            "Robert Bosch GmbH",
            "Berliner Philharmonie",
            "Venue: Palazzo Vecchio",
            "Office: Siemens Energy",
            "the Van Gogh Museum",
            "Kings Place",
            "Royal Albert Hall",
            "on Monday",
            "see Figure",
            "Finanzamt Charlottenburg",
            "",
            ":",
        ] {
            assert!(!person_before(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn an_address_ends_where_it_ends() {
        for (text, want) in [
            (
                "address: 12 High Street, Leeds LS1 4AB. Please call.",
                Some("12 High Street, Leeds LS1 4AB"),
            ),
            (
                "address\": \"Ilica 12, 10000 Zagreb\", \"x\": 1",
                Some("Ilica 12, 10000 Zagreb"),
            ),
            (
                "address (Solbakken 9, 7030 Trondheim) har",
                Some("Solbakken 9, 7030 Trondheim"),
            ),
            (
                "address on your file?\nCaller: Yes, it's 9 Mill Lane, Oxford OX1 2AB.",
                Some("9 Mill Lane, Oxford OX1 2AB"),
            ),
            (
                "address\n40 Banksia Street\nNewtown NSW 2042\n\nPhone: 1",
                Some("40 Banksia Street\nNewtown NSW 2042"),
            ),
            (
                "address she gave is 5 Rue Foch, 69006 Lyon.",
                Some("5 Rue Foch, 69006 Lyon"),
            ),
            ("address of the host is 10.0.0.1, port 8080", None),
            (
                "address: 326 Market St, San Francisco, CA\n hours: 7-22",
                None,
            ),
            ("address is open to all.\nHauptstraße 5, 10115 Berlin", None),
            ("address the 3 open issues in Milestone 12 first", None),
            (
                "address, often 328 files. However, the square opens no street, nearly 65 lines.",
                None,
            ),
            (
                "address. The street filters the common gallery, rarely 162 days.",
                None,
            ),
            (
                "address – 12 °C at noon. Our turbine waits for its museum. Their queue is brief",
                None,
            ),
        ] {
            let mut limits = Limits {
                candidates: 1000,
                ..Limits::default()
            };
            let found = after(
                text.as_bytes(),
                7,
                text.len(),
                &mut Begun::default(),
                &mut limits,
            );
            assert_eq!(found.map(|s| &text[s.range()]), want, "{text}");
        }
    }
}
