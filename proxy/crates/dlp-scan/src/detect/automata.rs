//! The patterns' automata, and the memory that running them takes.
//!
//! An automaton is built while it runs, state by state, and kept. A sender who knows the patterns could make every one
//! of them grow; what a worker keeps is therefore counted over all patterns, and half of it given back when it is too much: those
//! that ran longest ago.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use regex_automata::Input;
use regex_automata::meta::Cache;
use regex_automata::util::captures::Captures;

use crate::ruleset::Pattern;
use crate::text::Span;

/// Most memory that one scanner keeps for automata, give or take one of them.
const BYTES_MAX: usize = 64 << 20;

/// The automata that one scanner has run.
#[derive(Default)]
pub(crate) struct Automata {
    by_pattern: HashMap<u32, Box<Running>, BuildHasherDefault<Identity>>,
    bytes: usize,
    /// How often one has run.
    runs: u64,
}

struct Running {
    cache: Cache,
    captures: Captures,
    bytes: usize,
    /// When it ran last.
    last: u64,
}

impl Automata {
    /// The first match, and the part of it that is the value: the first group that took part, else all.
    pub fn find(&mut self, pattern: &Pattern, input: &Input<'_>) -> Option<(Span, Span)> {
        let regex = pattern.regex()?;
        let running = self.by_pattern.entry(pattern.id()).or_insert_with(|| {
            Box::new(Running {
                cache: regex.create_cache(),
                captures: regex.create_captures(),
                bytes: 0,
                last: 0,
            })
        });
        self.runs += 1;
        running.last = self.runs;
        let found = if regex.captures_len() == 1 {
            let m = regex.search_with(&mut running.cache, input);
            m.map(|m| Span::new(m.start(), m.end())).map(|s| (s, s))
        } else {
            let captures = &mut running.captures;
            regex.search_captures_with(&mut running.cache, input, captures);
            captures.get_match().map(|whole| {
                let whole = Span::new(whole.start(), whole.end());
                let group = (1..captures.group_len()).find_map(|i| captures.get_group(i));
                (whole, group.map_or(whole, |g| Span::new(g.start, g.end)))
            })
        };
        let bytes = running.cache.memory_usage();
        self.bytes = self.bytes - running.bytes + bytes;
        running.bytes = bytes;
        if self.bytes > BYTES_MAX {
            self.give_back();
        }
        found
    }

    fn give_back(&mut self) {
        let running = self.by_pattern.iter();
        let mut all: Vec<_> = running.map(|(id, r)| (r.last, *id, r.bytes)).collect();
        all.sort_unstable();
        for (_, id, bytes) in all {
            if self.bytes <= BYTES_MAX / 2 {
                break;
            }
            self.by_pattern.remove(&id);
            self.bytes -= bytes;
        }
    }
}

impl std::fmt::Debug for Automata {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Automata")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// Patterns are numbered one after another: the number is its own hash.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.0 = self.0 << 8 | u64::from(*b);
        }
    }

    fn write_u32(&mut self, n: u32) {
        // The map takes its tags from the upper bits.
        self.0 = u64::from(n).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Remembers which of the last 12 letters was an `a`: as many states as the text has turns.
    fn pattern(n: usize) -> Pattern {
        Pattern::new(&format!("[ab]*a[ab]{{12}}c{n}"), &[])
    }

    #[test]
    fn what_many_patterns_keep_together_is_bounded() {
        let mut seed = 7_u64;
        let text: Vec<u8> = (0..40_000)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                b"ab"[(seed >> 40) as usize % 2]
            })
            .collect();
        let (mut automata, mut peak) = (Automata::default(), 0);
        for n in 0..150 {
            assert_eq!(automata.find(&pattern(n), &Input::new(&text)), None);
            peak = peak.max(automata.bytes);
        }
        assert!(peak > BYTES_MAX / 2, "the patterns did not grow: {peak}");
        assert!(automata.bytes <= BYTES_MAX, "{}", automata.bytes);
        let at = [text.as_slice(), b"abbbbbbbbbbbbc7"].concat();
        assert!(automata.find(&pattern(7), &Input::new(&at)).is_some());
    }
}
