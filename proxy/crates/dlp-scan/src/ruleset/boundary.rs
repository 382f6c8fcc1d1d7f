//! Word boundaries that an automaton can follow.
//!
//! Whether a place between two characters of any script is a word's edge cannot be told byte by byte: a lazily built
//! automaton gives up at such a question as soon as the text holds a letter outside ASCII, and the search falls back
//! to one that is a hundred times slower. A pattern's `\b` is therefore asked as in ASCII where the pattern goes on (or
//! ended) with ASCII, and dropped where it goes on with another script: such a rule matches inside longer words, too.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// The same pattern without boundaries that are more than ASCII.
pub(super) fn in_ascii(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Look(look) => edge(*look).map_or_else(|| hir.clone(), |_| Hir::empty()),
        HirKind::Concat(items) => concat(items),
        HirKind::Alternation(items) => Hir::alternation(items.iter().map(in_ascii).collect()),
        HirKind::Repetition(repetition) => {
            Hir::repetition(repetition.with(in_ascii(&repetition.sub)))
        }
        HirKind::Capture(capture) => {
            let mut capture = capture.clone();
            capture.sub = Box::new(in_ascii(&capture.sub));
            Hir::capture(capture)
        }
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) => hir.clone(),
    }
}

/// The look in ASCII that stands for one in Unicode.
fn edge(look: Look) -> Option<Look> {
    Some(match look {
        Look::WordUnicode => Look::WordAscii,
        Look::WordStartUnicode => Look::WordStartAscii,
        Look::WordEndUnicode => Look::WordEndAscii,
        Look::WordStartHalfUnicode => Look::WordStartHalfAscii,
        Look::WordEndHalfUnicode => Look::WordEndHalfAscii,
        _ => return None,
    })
}

fn concat(items: &[Hir]) -> Hir {
    let mut done: Vec<Hir> = Vec::new();
    for (i, item) in items.iter().enumerate() {
        let look = match item.kind() {
            HirKind::Look(look) => edge(*look),
            _ => None,
        };
        let Some(look) = look else {
            done.push(in_ascii(item));
            continue;
        };
        let before = Hir::concat(done);
        if ends_word(&before) {
            done = vec![with_look(&before, look, Side::After)];
            continue;
        }
        // It belongs to what comes next.
        let after = concat(&items[i + 1..]);
        return Hir::concat(vec![before, with_look(&after, look, Side::Before)]);
    }
    Hir::concat(done)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

/// Puts the look at one side of every alternative that has only ASCII there.
fn with_look(hir: &Hir, look: Look, side: Side) -> Hir {
    let put = |hir: &Hir| match side {
        Side::Before => Hir::concat(vec![Hir::look(look), hir.clone()]),
        Side::After => Hir::concat(vec![hir.clone(), Hir::look(look)]),
    };
    if outermost(hir, side)
        == (Reach {
            ascii: true,
            ..Reach::default()
        })
    {
        return put(hir);
    }
    match hir.kind() {
        HirKind::Alternation(items) => {
            Hir::alternation(items.iter().map(|i| with_look(i, look, side)).collect())
        }
        HirKind::Capture(capture) => {
            let mut capture = capture.clone();
            capture.sub = Box::new(with_look(&capture.sub, look, side));
            Hir::capture(capture)
        }
        HirKind::Concat(items) => {
            let mut items = items.clone();
            let at = match side {
                Side::Before => 0,
                Side::After => items.len() - 1,
            };
            // What may be left out does not stand at the side for sure.
            if !outermost(&items[at], side).empty {
                items[at] = with_look(&items[at], look, side);
            }
            Hir::concat(items)
        }
        _ => hir.clone(),
    }
}

/// What a match may begin or end with.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Reach {
    ascii: bool,
    other: bool,
    empty: bool,
}

impl Reach {
    fn or(self, other: Self) -> Self {
        Self {
            ascii: self.ascii | other.ascii,
            other: self.other | other.other,
            empty: self.empty | other.empty,
        }
    }
}

fn outermost(hir: &Hir, side: Side) -> Reach {
    let empty = Reach {
        empty: true,
        ..Reach::default()
    };
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => empty,
        HirKind::Literal(literal) => {
            let byte = match side {
                Side::Before => literal.0.first(),
                Side::After => literal.0.last(),
            };
            let ascii = byte.is_some_and(u8::is_ascii);
            Reach {
                ascii,
                other: !ascii,
                empty: false,
            }
        }
        HirKind::Class(class) => {
            let (low, high) = match class {
                Class::Unicode(c) => (
                    c.ranges().first().is_some_and(|r| r.start().is_ascii()),
                    c.ranges().last().is_some_and(|r| !r.end().is_ascii()),
                ),
                Class::Bytes(c) => (
                    c.ranges().first().is_some_and(|r| r.start().is_ascii()),
                    c.ranges().last().is_some_and(|r| !r.end().is_ascii()),
                ),
            };
            Reach {
                ascii: low,
                other: high,
                empty: false,
            }
        }
        HirKind::Repetition(repetition) => {
            let inner = outermost(&repetition.sub, side);
            Reach {
                empty: inner.empty || repetition.min == 0,
                ..inner
            }
        }
        HirKind::Capture(capture) => outermost(&capture.sub, side),
        HirKind::Alternation(items) => items
            .iter()
            .map(|item| outermost(item, side))
            .fold(Reach::default(), Reach::or),
        HirKind::Concat(items) => {
            let mut reach = empty;
            let mut at = 0;
            while reach.empty && at < items.len() {
                let item = match side {
                    Side::Before => &items[at],
                    Side::After => &items[items.len() - 1 - at],
                };
                reach.empty = false;
                reach = reach.or(outermost(item, side));
                at += 1;
            }
            reach
        }
    }
}

/// Does what stands there end like a word, so that a boundary after it belongs to it?
fn ends_word(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Literal(literal) => literal
            .0
            .last()
            .is_some_and(|b| b.is_ascii_alphanumeric() || *b >= 0x80),
        HirKind::Class(Class::Unicode(c)) => c
            .ranges()
            .iter()
            .all(|r| r.start().is_alphanumeric() && r.end().is_alphanumeric()),
        HirKind::Class(Class::Bytes(_)) | HirKind::Empty | HirKind::Look(_) => false,
        HirKind::Repetition(repetition) => ends_word(&repetition.sub),
        HirKind::Capture(capture) => ends_word(&capture.sub),
        HirKind::Alternation(items) => items.iter().any(ends_word),
        HirKind::Concat(items) => items.last().is_some_and(ends_word),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn boundaries_hold_in_ascii_and_never_make_the_automaton_give_up() {
        let cases: &[(&str, &str, bool)] = &[
            (r"\b(?:ignoriere|übergehe) alles\b", "ignoriere alles", true),
            (
                r"\b(?:ignoriere|übergehe) alles\b",
                "ö ignoriere alles",
                true,
            ),
            (
                r"\b(?:ignoriere|übergehe) alles\b",
                "xignoriere alles",
                false,
            ),
            (
                r"\b(?:ignoriere|übergehe) alles\b",
                "ignoriere allesamt",
                false,
            ),
            (
                r"\b(?:ignoriere|übergehe) alles\b",
                "bitte übergehe alles",
                true,
            ),
            (r"\bне (?:зна|дум)\w+\b", "я не знаю", true),
            (r"(?i)\bn(?:e|ão)\b", "não", true),
            (r"(?i)\bn(?:e|ão)\b", "ne", true),
            (r"(?i)\bn(?:e|ão)\b", "net", false),
            (r"(?:a\b|é)x?", "a é", true),
            (r"é[^\n]{0,9}?\bin\b", "é was in", true),
            (r"é[^\n]{0,9}?\bin\b", "é wasin", false),
        ];
        for (pattern, text, want) in cases {
            let regex = super::super::compile::regex(pattern).unwrap();
            assert_eq!(regex.is_match(text), *want, "{pattern} in {text}");
            let hir = super::super::compile::parse(pattern).unwrap();
            let looks = hir.properties().look_set();
            assert!(!looks.contains_word_unicode(), "{pattern}");
        }
    }
}
