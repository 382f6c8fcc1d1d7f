//! How the matches of a pattern begin, read off the pattern: with how many bytes in a row that stand in runs.

use regex_syntax::hir::{Class, Hir, HirKind};

use crate::text::{RUN_BYTES_MIN, is_run};

/// How many bytes at the head of every match are of a run, and whether a match may hold nothing else.
#[derive(Clone, Copy)]
struct Lead {
    bytes: usize,
    all: bool,
}

const NOTHING: Lead = Lead {
    bytes: 0,
    all: true,
};

/// Does every match begin with so many bytes of a run that it can only stand in a long one?
pub(super) fn in_long_run(pattern: &Hir) -> bool {
    lead(pattern).bytes >= RUN_BYTES_MIN
}

fn lead(hir: &Hir) -> Lead {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => NOTHING,
        HirKind::Literal(literal) => {
            let bytes = literal.0.iter().take_while(|b| is_run(**b)).count();
            Lead {
                bytes,
                all: bytes == literal.0.len(),
            }
        }
        HirKind::Class(class) => {
            let all = only_runs(class);
            Lead {
                bytes: usize::from(all),
                all,
            }
        }
        HirKind::Repetition(repetition) => {
            let one = lead(&repetition.sub);
            let times = if one.all {
                repetition.min as usize
            } else {
                repetition.min.min(1) as usize
            };
            Lead {
                bytes: one.bytes.saturating_mul(times),
                all: one.all,
            }
        }
        HirKind::Capture(capture) => lead(&capture.sub),
        HirKind::Concat(items) => {
            let mut sum = NOTHING;
            for item in items {
                let next = lead(item);
                sum.bytes = sum.bytes.saturating_add(next.bytes);
                sum.all = next.all;
                if !sum.all {
                    break;
                }
            }
            sum
        }
        HirKind::Alternation(items) => {
            let each = items.iter().map(lead);
            each.reduce(|a, b| Lead {
                bytes: a.bytes.min(b.bytes),
                all: a.all && b.all,
            })
            .unwrap_or(NOTHING)
        }
    }
}

fn only_runs(class: &Class) -> bool {
    match class {
        Class::Bytes(class) => class.iter().all(|r| (r.start()..=r.end()).all(is_run)),
        Class::Unicode(class) => class
            .iter()
            .all(|r| r.end().is_ascii() && (r.start() as u8..=r.end() as u8).all(is_run)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::compile::parse;
    use super::*;

    #[test]
    fn the_head_of_every_match_counts() {
        let cases = [
            ("ghp_[A-Za-z0-9]{36}", 40),
            ("ghp_[A-Za-z0-9]{36}\\b", 40),
            ("(?:ghp|gho)_[a-z]{3}", 7),
            ("(?:abcd|ab)_", 3),
            ("ab(?:c.|d)efgh", 3),
            ("ab(?:c|d)efgh", 7),
            ("a[^b]cd", 1),
            ("a{3,}b", 4),
            ("(?:ab.){3}cd", 2),
            ("(?:a.)?bcd", 0),
            ("(?:ab)?bcd", 3),
            ("eyJ[\\w-]{10,}\\.", 13),
            ("é{20}", 0),
            ("^abc", 3),
            ("sl\\.[a-z]{20}", 2),
        ];
        for (pattern, bytes) in cases {
            assert_eq!(lead(&parse(pattern).unwrap()).bytes, bytes, "{pattern}");
        }
    }
}
