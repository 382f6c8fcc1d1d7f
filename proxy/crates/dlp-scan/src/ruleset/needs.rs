//! What every match of a pattern holds, read off the pattern: texts that have to be there, together or one of some.
//!
//! Most windows around a keyword hold nothing that the pattern wants besides. Looking for a few texts in sixteen or
//! more bytes at a time costs a tenth of running the pattern's automaton through the window.

use aho_corasick::packed;
use memchr::memmem::Finder;
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::text::{RUN_BYTES_MIN, is_run};

/// Most texts in a set that are looked for together.
const TEXTS_MAX: usize = 64;
/// Most texts that a piece of a pattern is written out into.
const EXACT_MAX: usize = 32;
/// Most characters of a class that are told apart.
const CLASS_MAX: usize = 6;
/// Most needs that are kept of a piece of a pattern, and asked of the whole or of a branch.
const KEPT: usize = 4;
const ASKED: usize = 3;
/// A need that takes many looks costs more than it saves.
const COST_MAX: f64 = 1.3;
/// A need that so many windows fulfil is not worth a look.
const CHANCE_MAX: f64 = 0.8;
/// What is assumed of a text that stands in a keyword or holds one: it is probably why there is a window.
const CHANCE_OF_KEYWORD: f64 = 0.7;
/// What a look costs against running the pattern.
const COST_OF_LOOK: f64 = 0.07;
/// Few texts are looked for quickly even where they are short.
const FEW: usize = 8;
/// Bytes of most windows.
const WINDOW: f64 = 250.0;
/// However long a text, words are not that rare: as a logarithm, per byte.
const BITS_MAX: f64 = 13.0;

/// What is asked of a text before the pattern runs, the most telling first.
#[derive(Debug, Default)]
pub(super) struct Needs {
    texts: Vec<Asked>,
    /// Every match holds a long run, as [`crate::text::is_run`] says.
    pub run: bool,
    /// A match may be of any length.
    pub endless: bool,
    /// None is shorter.
    pub least: usize,
}

#[derive(Debug)]
enum Asked {
    /// One of some texts.
    One(Look),
    /// All that one of the branches asks.
    Any(Vec<Vec<Asked>>),
}

impl Needs {
    /// Those of a rule's pattern. A match holds one of the keywords, too, which says nothing about it; they are in
    /// lower case.
    pub fn of(pattern: &Hir, keywords: &[Box<[u8]>]) -> Self {
        let needs = held(pattern, keywords).all(keywords);
        let asked = needs.into_iter().take(ASKED).filter_map(Need::asked);
        Self {
            texts: asked.collect(),
            run: holds_run(pattern),
            endless: pattern.properties().maximum_len().is_none(),
            least: pattern.properties().minimum_len().unwrap_or(0),
        }
    }

    /// False for a text that holds no match. `folded` is in lower case, as far as it is ASCII.
    pub fn may_match(&self, folded: &[u8]) -> bool {
        self.texts.iter().all(|need| need.stands(folded))
    }
}

impl Asked {
    fn stands(&self, folded: &[u8]) -> bool {
        match self {
            Self::One(look) => look.finds(folded),
            Self::Any(branches) => {
                let mut branches = branches.iter();
                branches.any(|branch| branch.iter().all(|need| need.stands(folded)))
            }
        }
    }
}

/// Looks for one of some texts.
#[derive(Debug)]
enum Look {
    /// One after the other: a search for all of them at once goes by as many bytes as the shortest has.
    ForFew(Box<[Finder<'static>]>),
    ForSome(packed::Searcher),
}

/// Most texts that are looked for one after the other.
const FEW_APART: usize = 3;

impl Look {
    /// Nothing where they are too many, or the processor too plain, to be quicker than an automaton.
    fn of(texts: &[Vec<u8>]) -> Option<Self> {
        if texts.len() <= FEW_APART {
            let finders = texts.iter().map(|text| Finder::new(text).into_owned());
            return Some(Self::ForFew(finders.collect()));
        }
        packed::Searcher::new(texts).map(Self::ForSome)
    }

    fn finds(&self, folded: &[u8]) -> bool {
        match self {
            Self::ForFew(texts) => texts.iter().any(|text| text.find(folded).is_some()),
            Self::ForSome(texts) => texts.find(folded).is_some(),
        }
    }
}

/// What every text holds that a piece of a pattern matches.
#[derive(Clone)]
struct Need {
    what: What,
    /// That a window holds it by chance.
    chance: f64,
    /// How many texts or sets are looked for.
    looks: f64,
}

#[derive(Clone)]
enum What {
    /// One of these texts; letters folded.
    One(Vec<Vec<u8>>),
    /// All that one of the branches needs.
    Any(Vec<Vec<Need>>),
}

impl Need {
    /// Nothing where one of the texts is empty, since any text holds that, where there is none, as of a class that
    /// matches nothing, and where they are too many or too common.
    /// What holds another one of them need not be asked for.
    fn one_of(mut texts: Vec<Vec<u8>>, keywords: &[Box<[u8]>]) -> Option<Self> {
        if texts.is_empty() || texts.len() > 8 * TEXTS_MAX {
            return None;
        }
        texts.sort_unstable_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        let mut set: Vec<Vec<u8>> = Vec::new();
        for text in texts {
            if !set.iter().any(|known| holds(&text, known)) {
                set.push(text);
            }
        }
        if set.len() > TEXTS_MAX || set.iter().any(Vec::is_empty) {
            return None;
        }
        let none = set.iter().map(|text| 1.0 - chance(text, keywords));
        let chance = 1.0 - none.product::<f64>();
        let quick = set[0].len() >= 3 || set.len() <= FEW;
        (chance < CHANCE_MAX).then_some(Self {
            what: What::One(set),
            chance,
            looks: if quick { 1.0 } else { 5.0 },
        })
    }

    /// Nothing where one of the branches has no need.
    fn any_of(branches: Vec<Vec<Self>>) -> Option<Self> {
        let all = |branch: &Vec<Self>| branch.iter().map(|n| n.chance).product::<f64>();
        // Nearly all branches fail at their first need.
        let looks: f64 = branches.iter().filter_map(|b| Some(b.first()?.looks)).sum();
        let chance = 1.0 - branches.iter().map(|b| 1.0 - all(b)).product::<f64>();
        let good = chance < CHANCE_MAX && branches.iter().all(|b| !b.is_empty());
        let any = Self {
            what: What::Any(branches),
            chance,
            looks,
        };
        (good && any.cost() < COST_MAX).then_some(any)
    }

    /// What is spent where it is asked first.
    fn cost(&self) -> f64 {
        self.chance + COST_OF_LOOK * self.looks
    }

    /// Nothing where it cannot be looked for, or one of its branches cannot.
    fn asked(self) -> Option<Asked> {
        match self.what {
            What::One(texts) => Look::of(&texts).map(Asked::One),
            What::Any(branches) => {
                let asked = |branch: Vec<Self>| {
                    let asked: Vec<Asked> = branch.into_iter().filter_map(Self::asked).collect();
                    (!asked.is_empty()).then_some(asked)
                };
                let branches = branches.into_iter().map(asked);
                branches.collect::<Option<_>>().map(Asked::Any)
            }
        }
    }
}

/// What is known of all texts that a piece of a pattern matches.
#[derive(Default)]
struct Held {
    /// All of them, where they are few.
    exact: Option<Vec<Vec<u8>>>,
    /// The most telling first.
    needs: Vec<Need>,
}

impl Held {
    fn exactly(texts: Vec<Vec<u8>>) -> Self {
        Self {
            exact: Some(texts),
            needs: Vec::new(),
        }
    }

    /// Its needs, the most telling first, and with them the texts themselves.
    fn all(self, keywords: &[Box<[u8]>]) -> Vec<Need> {
        let mut needs = self.needs;
        needs.extend(self.exact.and_then(|texts| Need::one_of(texts, keywords)));
        most_telling(needs)
    }
}

fn most_telling(mut needs: Vec<Need>) -> Vec<Need> {
    needs.sort_by(|a, b| a.cost().total_cmp(&b.cost()));
    needs.truncate(KEPT);
    needs
}

fn held(hir: &Hir, keywords: &[Box<[u8]>]) -> Held {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Held::exactly(vec![Vec::new()]),
        HirKind::Literal(literal) => Held::exactly(vec![literal.0.to_ascii_lowercase()]),
        HirKind::Class(class) => Held {
            exact: few(class),
            needs: Vec::new(),
        },
        HirKind::Capture(capture) => held(&capture.sub, keywords),
        HirKind::Repetition(repetition) => {
            let sub = held(&repetition.sub, keywords);
            match (repetition.min, repetition.max) {
                (1, Some(1)) => sub,
                (0, Some(1)) => Held {
                    exact: sub.exact.map(|mut texts| {
                        texts.push(Vec::new());
                        texts
                    }),
                    needs: Vec::new(),
                },
                (0, _) => Held::default(),
                _ => Held {
                    needs: sub.all(keywords),
                    exact: None,
                },
            }
        }
        HirKind::Concat(items) => one_after_another(items, keywords),
        HirKind::Alternation(items) => either(items, keywords),
    }
}

fn one_after_another(items: &[Hir], keywords: &[Box<[u8]>]) -> Held {
    let mut needs = Vec::new();
    // What the last items are, as long as that can be written out; a need by itself where it ends.
    let mut texts = Some(vec![Vec::new()]);
    let mut whole = true;
    for item in items {
        let next = held(item, keywords);
        needs.extend(next.needs);
        texts = match (texts.take(), next.exact) {
            (Some(heads), Some(tails)) if heads.len() * tails.len() <= EXACT_MAX => {
                let with = |head: &Vec<u8>| {
                    let head = head.clone();
                    tails
                        .iter()
                        .map(move |tail| [&*head, tail].concat())
                        .collect::<Vec<_>>()
                };
                Some(heads.iter().flat_map(with).collect())
            }
            (heads, exact) => {
                whole = false;
                needs.extend(heads.and_then(|heads| Need::one_of(heads, keywords)));
                exact
            }
        };
    }
    if whole && texts.is_some() {
        return Held {
            exact: texts,
            needs,
        };
    }
    needs.extend(texts.and_then(|texts| Need::one_of(texts, keywords)));
    Held {
        exact: None,
        needs: most_telling(needs),
    }
}

/// The most telling need of each branch, if it is one of some texts, makes one for all; and so do the branches as
/// they are.
fn either(items: &[Hir], keywords: &[Box<[u8]>]) -> Held {
    let branches: Vec<Held> = items.iter().map(|item| held(item, keywords)).collect();
    let exact = branches.iter().try_fold(Vec::new(), |mut all, branch| {
        all.extend_from_slice(branch.exact.as_ref()?);
        (all.len() <= TEXTS_MAX).then_some(all)
    });
    if exact.is_some() {
        return Held {
            exact,
            needs: Vec::new(),
        };
    }
    let mut branches: Vec<Vec<Need>> = branches.into_iter().map(|b| b.all(keywords)).collect();
    let together = branches.iter().map(|branch| {
        branch.iter().find_map(|need| match &need.what {
            What::One(texts) => Some(texts.clone()),
            What::Any(_) => None,
        })
    });
    let together = together.collect::<Option<Vec<_>>>();
    let together = together.and_then(|texts| Need::one_of(texts.concat(), keywords));
    for branch in &mut branches {
        branch.truncate(ASKED);
    }
    let needs = together.into_iter().chain(Need::any_of(branches));
    Held {
        exact: None,
        needs: most_telling(needs.collect()),
    }
}

/// The characters of a class, where they are few once folded.
fn few(class: &Class) -> Option<Vec<Vec<u8>>> {
    let (most, of_char) = (2 * CLASS_MAX + 1, |c: char| {
        c.to_ascii_lowercase().to_string().into_bytes()
    });
    let mut all: Vec<Vec<u8>> = match class {
        Class::Bytes(class) => {
            let bytes = class.iter().flat_map(|r| r.start()..=r.end()).take(most);
            bytes.map(|b| vec![b.to_ascii_lowercase()]).collect()
        }
        Class::Unicode(class) => {
            let chars = class.iter().flat_map(|r| r.start()..=r.end()).take(most);
            chars.map(of_char).collect()
        }
    };
    if all.len() == most {
        return None;
    }
    all.sort_unstable();
    all.dedup();
    (all.len() <= CLASS_MAX).then_some(all)
}

/// Words, and parts of words, that stand in more windows of prose than their letters say: counted over documentation.
const COMMON: [(&[u8], f64); 24] = [
    (b"the", 0.6),
    (b"and", 0.4),
    (b"for", 0.4),
    (b"all", 0.3),
    (b"his", 0.3),
    (b"this", 0.3),
    (b"not", 0.25),
    (b"with", 0.22),
    (b"her", 0.22),
    (b"are", 0.22),
    (b"use", 0.2),
    (b"that", 0.2),
    (b"but", 0.17),
    (b"any", 0.15),
    (b"out", 0.15),
    (b"type", 0.14),
    (b"end", 0.14),
    (b"from", 0.13),
    (b"cat", 0.12),
    (b"our", 0.12),
    (b"error", 0.11),
    (b"form", 0.11),
    (b"file", 0.11),
    (b"you", 0.11),
];

/// Does every match hold a long run?
fn holds_run(hir: &Hir) -> bool {
    if only_run(hir) {
        return hir.properties().minimum_len() >= Some(RUN_BYTES_MIN);
    }
    match hir.kind() {
        HirKind::Capture(capture) => holds_run(&capture.sub),
        HirKind::Repetition(repetition) => repetition.min > 0 && holds_run(&repetition.sub),
        HirKind::Alternation(items) => items.iter().all(holds_run),
        HirKind::Concat(items) => {
            let mut row = 0;
            items.iter().any(|item| {
                row = match only_run(item) {
                    true => row + item.properties().minimum_len().unwrap_or(0),
                    false => 0,
                };
                row >= RUN_BYTES_MIN || holds_run(item)
            })
        }
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) | HirKind::Class(_) => false,
    }
}

/// Is all that it matches made of what runs are made of?
fn only_run(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(literal) => literal.0.iter().all(|b| is_run(*b)),
        HirKind::Class(Class::Bytes(class)) => {
            let mut ranges = class.iter();
            ranges.all(|r| (r.start()..=r.end()).all(is_run))
        }
        HirKind::Class(Class::Unicode(class)) => {
            let mut ranges = class.iter();
            let in_run = |c: char| u8::try_from(c).is_ok_and(is_run);
            ranges.all(|r| r.end().is_ascii() && (r.start()..=r.end()).all(in_run))
        }
        HirKind::Repetition(repetition) => only_run(&repetition.sub),
        HirKind::Capture(capture) => only_run(&capture.sub),
        HirKind::Concat(items) | HirKind::Alternation(items) => items.iter().all(only_run),
    }
}

/// That a window holds the text.
fn chance(text: &[u8], keywords: &[Box<[u8]>]) -> f64 {
    if keywords.iter().any(|k| holds(k, text) || holds(text, k)) {
        return CHANCE_OF_KEYWORD;
    }
    if let Some((_, chance)) = COMMON.iter().find(|(word, _)| *word == text) {
        return *chance;
    }
    if holds(text, b"http") || holds(text, b"://") {
        return 0.05;
    }
    let rare: f64 = text.iter().map(|b| bits(*b)).sum();
    (WINDOW * (-rare.min(BITS_MAX)).exp2()).min(1.0)
}

/// Both are short: nothing is prepared for the search.
fn holds(text: &[u8], part: &[u8]) -> bool {
    let Some(first) = part.first() else {
        return true;
    };
    let mut windows = text.windows(part.len());
    windows.any(|there| there[0] == *first && there == part)
}

/// How rare a byte is in prose and JSON, as a logarithm.
fn bits(b: u8) -> f64 {
    match b {
        b' ' => 2.7,
        b'e' | b't' | b'a' | b'o' | b'i' | b'n' | b's' | b'r' => 3.7,
        b'h' | b'l' | b'd' | b'c' | b'u' | b'm' | b'p' | b'f' | b'g' => 4.8,
        b'a'..=b'z' => 6.0,
        b'0'..=b'9' | b'.' | b',' | b'-' | b'"' | b'\n' | b':' => 5.5,
        b'@' => 12.0,
        _ => 7.5,
    }
}

#[cfg(test)]
mod tests {
    use super::super::compile::parse;
    use super::*;

    fn shown(need: Need) -> String {
        match need.what {
            What::One(texts) => {
                let texts = texts
                    .iter()
                    .map(|t| String::from_utf8_lossy(t).into_owned());
                texts.collect::<Vec<_>>().join("|")
            }
            What::Any(branches) => {
                let all = |b: Vec<Need>| b.into_iter().map(shown).collect::<Vec<_>>().join("&");
                let branches = branches.into_iter().map(|b| format!("({})", all(b)));
                branches.collect::<Vec<_>>().join(" ")
            }
        }
    }

    #[test]
    fn what_every_match_holds_is_read_off_the_pattern() {
        let cases: [(&str, &str, &[&str]); 16] = [
            ("abcd", "", &["abcd"]),
            ("(?i)ABcd", "", &["abcd"]),
            ("abw(?:c|de)f", "", &["abwcf|abwdef"]),
            ("abcw(?:de)?", "", &["abcw"]),
            ("abcw(?:de)*", "", &["abcw"]),
            ("abcw(?:@e)+", "", &["@e", "abcw"]),
            ("abw[0-9]+@x", "", &["abw", "@x"]),
            ("\\bsend\\s+all\\b", "send", &["all", "send"]),
            ("(?:zq\\d+xj|@)\\d+", "", &["@|zq", "(zq&xj) (@)"]),
            ("(?:@\\d|[a-z]+)", "", &[]),
            ("a[^\\x00-\\xff]b", "", &[]),
            ("[a-z]+", "", &[]),
            ("(?:abcw)?", "", &[]),
            ("(?:abcw)?\\d", "", &[]),
            ("(?:abvw|\\d)+qx", "", &["qx"]),
            ("пароль\\d", "", &["пароль"]),
        ];
        for (pattern, keyword, expected) in cases {
            let keyword: Box<[u8]> = keyword.as_bytes().into();
            let keywords = if keyword.is_empty() {
                vec![]
            } else {
                vec![keyword]
            };
            let needs = held(&parse(pattern).unwrap(), &keywords).all(&keywords);
            let needs: Vec<String> = needs.into_iter().map(shown).collect();
            assert_eq!(needs, expected, "{pattern}");
        }
    }

    #[test]
    fn long_runs_that_every_match_holds() {
        let cases = [
            ("[a-f0-9]{16}", true),
            ("[a-f0-9]{15}", false),
            ("key=[A-Za-z0-9_-]{6}\\.([A-Za-z0-9_-]{43})\\b", true),
            ("ab_(?:[0-9]{6}|[a-z]{7})-(?:x|yz){6}", true),
            ("ab_(?:[0-9]{6}|[a-z]{7})-(?:x|yz){5}", false),
            ("(?:[a-z]{20}|[0-9]{8})", false),
            ("(?:[a-z]{20})?x", false),
            ("(?:[a-z]{20} )+", true),
            ("[a-z.]{20}", false),
            ("[^ ]{20}", false),
        ];
        for (pattern, want) in cases {
            assert_eq!(holds_run(&parse(pattern).unwrap()), want, "{pattern}");
        }
    }

    #[test]
    fn a_text_without_it_is_told_from_one_with_it() {
        let needs = Needs::of(
            &parse("(?i)send\\s+all\\s+\\w+\\s+to\\s+(?:\\S+@\\S+|https?://)").unwrap(),
            &[b"send".as_slice().into()],
        );
        assert!(!needs.may_match(b"we send all of them to the shop"));
        assert!(needs.may_match(b"send all mails to a@b.example"));
        assert!(needs.may_match(b"send all mails to https://b.example"));
    }
}
