//! Values that are looked for as they are: a vault's secrets, a customer list.
//!
//! Kept as a sorted set of their bytes, not as hashes: a value has to be found wherever it stands in a text, glued to
//! anything, and a hash can only be compared with a piece whose ends are known. The clear values are in the memory of
//! the process that holds them anyway (it sends them to upstreams); they are never written, logged or shown, and
//! `Debug` gives their number only.
//!
//! The gate knows the head of every value; here the rest is compared, in `log n` steps for each value that begins so.

use std::fmt;

use crate::rule::RuleId;

/// Bytes of a value that the gate looks for.
pub(crate) const HEAD_BYTES: usize = 8;
/// A value shorter than this has to stand free: no letter, digit or `_` may touch it.
pub(crate) const FREE_BYTES: usize = 12;

/// The values of one rule set, sorted.
#[derive(Clone, Default)]
pub(crate) struct ExactSet {
    values: Vec<(Box<[u8]>, RuleId, Form)>,
}

/// What of a value it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    /// The value itself.
    Plain,
    /// Its digits in an encoding: letters that touch them belong to what stands beside it.
    Coded,
}

impl fmt::Debug for ExactSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExactSet({} values)", self.values.len())
    }
}

impl ExactSet {
    /// Adds values; what stands there twice for one rule is kept once.
    pub fn add(&mut self, rule: RuleId, values: impl Iterator<Item = (Box<[u8]>, Form)>) {
        self.values.extend(values.map(|(v, form)| (v, rule, form)));
        self.values.sort_unstable();
        self.values.dedup();
    }

    /// How many values, each once however it may be written.
    pub fn len(&self) -> usize {
        let plain = |(_, _, form): &&(Box<[u8]>, RuleId, Form)| *form == Form::Plain;
        self.values.iter().filter(plain).count()
    }

    /// The values that `text` begins with, longest first. Each costs one look at most; `look` says whether there is
    /// budget for another.
    pub fn at(
        &self,
        text: &[u8],
        mut look: impl FnMut() -> bool,
        mut found: impl FnMut(RuleId, usize, Form),
    ) {
        let mut rest = text;
        while !rest.is_empty() && look() {
            // The largest value that is not above the text: if the text begins with any value, it shares the most
            // with this one.
            let above = self.values.partition_point(|(v, ..)| &**v <= rest);
            let Some((value, ..)) = above.checked_sub(1).and_then(|i| self.values.get(i)) else {
                return;
            };
            let common = value.iter().zip(rest).take_while(|(a, b)| a == b).count();
            if common < value.len() {
                rest = &rest[..common];
                continue;
            }
            for (same, rule, form) in self.values[..above].iter().rev() {
                if same != value {
                    break;
                }
                found(*rule, common, *form);
            }
            rest = &rest[..common - 1];
        }
    }

    /// Is the whole text the beginning of a longer value? The next cell may have the rest.
    pub fn goes_on(&self, text: &[u8]) -> bool {
        let first = self.values.partition_point(|(v, ..)| &**v < text);
        self.values
            .get(first)
            .is_some_and(|(v, ..)| v.len() > text.len() && v.starts_with(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(values: &[(&str, u16)]) -> ExactSet {
        let mut set = ExactSet::default();
        for (value, rule) in values {
            set.add(
                RuleId(*rule),
                [(value.as_bytes().into(), Form::Plain)].into_iter(),
            );
        }
        set
    }

    #[test]
    fn every_value_that_a_text_begins_with_is_found() {
        let set = set(&[
            ("abc", 1),
            ("abcd", 1),
            ("abcd", 2),
            ("abd", 1),
            ("b", 1),
            ("zz", 3),
            ("abc", 1),
        ]);
        assert_eq!(set.len(), 6);
        let cases: [(&str, &[(u16, usize)]); 9] = [
            ("abcde", &[(2, 4), (1, 4), (1, 3)]),
            ("abc", &[(1, 3)]),
            ("abx", &[]),
            ("abdabc", &[(1, 3)]),
            ("b", &[(1, 1)]),
            ("", &[]),
            ("a", &[]),
            ("zzz", &[(3, 2)]),
            ("\u{ff}", &[]),
        ];
        for (text, expected) in cases {
            let mut found = Vec::new();
            set.at(
                text.as_bytes(),
                || true,
                |rule, len, _| found.push((rule.0, len)),
            );
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn a_cut_value_is_noticed_and_no_budget_means_no_look() {
        let set = set(&[("abcdefgh", 1), ("x", 1)]);
        for (text, expected) in [
            ("abcd", true),
            ("abcdefgh", false),
            ("abd", false),
            ("x", false),
        ] {
            assert_eq!(set.goes_on(text.as_bytes()), expected, "{text}");
        }
        set.at(
            b"abcdefgh",
            || false,
            |_, _, _| panic!("looked without budget"),
        );
    }

    #[test]
    fn values_are_not_shown() {
        assert_eq!(
            format!("{:?}", set(&[("hunter2", 1)])),
            "ExactSet(1 values)"
        );
    }
}
