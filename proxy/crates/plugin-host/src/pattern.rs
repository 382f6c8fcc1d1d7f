//! Regular expressions of plugins: neither the expression nor the text is trusted.
//!
//! Linear time is not enough: an engine that follows all threads takes length times size, and looking
//! for a next match may start from one end for each. So the engine that may do so gets only what is
//! small; all else goes through a lazy automaton that gives up when it stops paying, and the deadline
//! is looked at between matches.

use regex_automata::hybrid::{dfa, regex};
use regex_automata::meta;
use regex_automata::nfa::thompson::{self, NFA};
use regex_automata::util::iter::Searcher;
use regex_automata::{Input, Match};

/// Bytes of one expression.
const PATTERN_BYTES_MAX: usize = 2048;
/// Compiled size of one.
const SIZE_MAX: usize = 256 << 10;
/// Bytes times states up to which every engine may be used: some ten milliseconds at the worst.
const STEPS_MAX: usize = 2_000_000;
/// Room for the states of the lazy automaton.
const CACHE_BYTES: usize = 1 << 20;
/// When it was emptied so often and then read fewer bytes per state than this, it has stopped paying.
const CLEARS: usize = 1;
const BYTES_PER_STATE: usize = 10;
/// Matches between two looks at the deadline.
const LOOK_EVERY: usize = 16;

/// One expression, compiled.
#[derive(Debug)]
pub(crate) struct Pattern {
    all: meta::Regex,
    lazy: regex::Regex,
    states: usize,
}

/// A search that was given up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMuch;

impl Pattern {
    /// `None`: it does not compile, or not in the space there is.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let thompson = thompson::Config::new().nfa_size_limit(Some(SIZE_MAX));
        let nfa = NFA::compiler()
            .configure(thompson.clone())
            .build(text)
            .ok()?;
        let lazy = dfa::Config::new()
            .cache_capacity(CACHE_BYTES)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(CLEARS))
            .minimum_bytes_per_state(Some(BYTES_PER_STATE))
            .unicode_word_boundary(true);
        let lazy = regex::Regex::builder()
            .thompson(thompson)
            .dfa(lazy)
            .build(text);
        let config = meta::Regex::config()
            .nfa_size_limit(Some(SIZE_MAX))
            .onepass_size_limit(Some(SIZE_MAX))
            .dfa_size_limit(Some(SIZE_MAX))
            .hybrid_cache_capacity(CACHE_BYTES);
        Some(Self {
            all: meta::Regex::builder().configure(config).build(text).ok()?,
            lazy: lazy.ok()?,
            states: nfa.states().len(),
        })
    }

    /// Whether an expression is longer than any may be.
    pub(crate) fn is_too_long(text: &str) -> bool {
        text.len() > PATTERN_BYTES_MAX
    }

    /// The first matches. `is_over` is asked now and then.
    pub(crate) fn find(
        &self,
        text: &str,
        limit: usize,
        is_over: impl Fn() -> bool,
    ) -> Result<Vec<Match>, TooMuch> {
        let mut cache = self.lazy.create_cache();
        let small = text.len().saturating_mul(self.states) <= STEPS_MAX;
        let mut searcher = Searcher::new(Input::new(text));
        let mut found = Vec::new();
        while found.len() < limit {
            if found.len() % LOOK_EVERY == LOOK_EVERY - 1 && is_over() {
                return Err(TooMuch);
            }
            let next = searcher.try_advance(|input| {
                if small {
                    return Ok(self.all.search(input));
                }
                self.lazy.try_search(&mut cache, input)
            });
            match next {
                Ok(Some(next)) => found.push(next),
                Ok(None) => break,
                // Given up, or a Unicode word boundary in a large text that is not ASCII.
                Err(_) => return Err(TooMuch),
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn ranges(pattern: &str, text: &str) -> Result<Vec<(usize, usize)>, TooMuch> {
        let found = Pattern::new(pattern)
            .expect(pattern)
            .find(text, 64, || false)?;
        Ok(found.iter().map(|m| (m.start(), m.end())).collect())
    }

    #[test]
    fn small_and_large_texts_are_searched_alike() {
        let words = "one two twelve zwölf 2026 ";
        for pattern in [
            "t[wo]+",
            r"(?i)TW\w*",
            "ö",
            "",
            "(?:)|e",
            r"\d{4}",
            r"(?-u:\b)t",
            "^one",
        ] {
            let small = ranges(pattern, words).unwrap();
            let large = words.to_owned() + &" ".repeat(2_000_000);
            let large: Vec<_> = ranges(pattern, &large)
                .unwrap()
                .into_iter()
                .filter(|(_, end)| *end < words.len() - 1)
                .collect();
            let small: Vec<_> = small
                .into_iter()
                .filter(|(_, end)| *end < words.len() - 1)
                .collect();
            assert_eq!(small, large, "{pattern}");
        }
    }

    /// What a fuzzer found: two thousand states over tens of thousands of bytes.
    #[test]
    fn no_expression_over_no_text_takes_long() {
        let (zeros, letters) = ("\0".repeat(1 << 20), "ab".repeat(1 << 19));
        let long = format!("{}{}", "\0".repeat(1700), "a".repeat(300));
        let patterns = [
            &*long,
            "(?:a|b)*c",
            "[ab]*a[ab]{200}c",
            "(?s).*[^A-Z]|[A-Z]",
            "(a?){60}a{60}",
            r"\b\w+\b.*\b\w+\bc",
            "(?:(?:a?b?){20}){20}$",
        ];
        for pattern in patterns {
            let Some(compiled) = Pattern::new(pattern) else {
                continue;
            };
            for text in [&zeros, &letters] {
                let began = Instant::now();
                let over = || began.elapsed() > Duration::from_millis(10);
                let _either = compiled.find(text, 1024, over);
                // Wide: what it must catch took seconds.
                assert!(
                    began.elapsed() < Duration::from_millis(400),
                    "{pattern:.40}: {:?}",
                    began.elapsed()
                );
            }
        }
    }

    #[test]
    fn what_is_over_is_given_up() {
        let pattern = Pattern::new("a").expect("a pattern");
        assert_eq!(pattern.find(&"a".repeat(100), 64, || true), Err(TooMuch));
        assert!(Pattern::new("(").is_none());
        assert!(Pattern::new("(?:[a-z]{1000}){1000}").is_none());
    }
}
