//! What is measured: a floor, the scanner with each of its engines, and what one would write first.

use std::hint::black_box;

use anyhow::Context;
use dlp_scan::{Budget, FingerprintKey, RuleFacts, RuleSet, Scanner};
use regex_automata::hybrid::dfa::DFA;
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::syntax;
use regex_automata::{Input, MatchKind, PatternSet};
use regex_syntax::hir::Hir;

use crate::texts::Message;

/// Something that reads a message and may count what it finds.
pub struct Engine {
    pub name: String,
    /// Longest text that is worth the wait.
    pub bytes_max: usize,
    /// The floor finds nothing, whatever there is.
    pub finds: bool,
    run: Box<dyn FnMut(&Message) -> usize>,
}

impl Engine {
    pub fn run(&mut self, message: &Message) -> usize {
        (self.run)(message)
    }
}

/// The floor first.
pub fn all() -> anyhow::Result<Vec<Engine>> {
    let mut all = vec![Engine {
        name: "memchr".into(),
        bytes_max: usize::MAX,
        finds: false,
        run: Box::new(|message| {
            let absent = |text: &String| memchr::memchr(0x01, black_box(text.as_bytes())).is_some();
            assert!(
                !message.leaves.iter().any(|l| absent(&l.text)),
                "no text holds this byte"
            );
            0
        }),
    }];
    for &engine in dlp_scan::Engine::ALL {
        let rules = RuleSet::builtin().with_engine(engine);
        anyhow::ensure!(
            rules.engine() == engine,
            "the {} engine does not run here",
            engine.name()
        );
        all.push(scanner(&format!("weir ({})", engine.name()), rules));
    }
    all.push(regex_set()?);
    Ok(all)
}

/// The whole scan: decoding layers, checks, context, and all.
pub fn scanner(name: &str, rules: RuleSet) -> Engine {
    let mut scanner = Scanner::new(FingerprintKey::new([1; 32]));
    let budget = Budget::default();
    Engine {
        name: name.to_owned(),
        bytes_max: usize::MAX,
        finds: true,
        run: Box::new(move |message| {
            scanner
                .scan(&rules, message.inputs(), &budget)
                .findings
                .len()
        }),
    }
}

/// Every shipped pattern in one set, asked which of them match: no keywords, no decoding, no checks.
fn regex_set() -> anyhow::Result<Engine> {
    let hirs = shipped_patterns()?;
    let nfa = thompson::Compiler::new()
        .configure(
            thompson::Config::new()
                .utf8(false)
                .which_captures(WhichCaptures::None),
        )
        .build_many_from_hir(&hirs)?;
    let dfa = DFA::builder()
        .configure(
            DFA::config()
                .match_kind(MatchKind::All)
                .unicode_word_boundary(true)
                .skip_cache_capacity_check(true)
                .cache_capacity(256 << 20),
        )
        .build_from_nfa(nfa)?;
    let mut cache = dfa.create_cache();
    let mut seen = PatternSet::new(hirs.len());
    Ok(Engine {
        name: format!("one set of {} regexes", hirs.len()),
        // It builds states faster than it reuses them.
        bytes_max: 10_000,
        finds: true,
        run: Box::new(move |message| {
            let mut n = 0;
            for leaf in &message.leaves {
                seen.clear();
                // It gives up at a letter outside ASCII beside a word boundary: then it has read less than it should,
                // which only flatters it.
                let _ = dfa.try_which_overlapping_matches(
                    &mut cache,
                    &Input::new(&leaf.text),
                    &mut seen,
                );
                n += seen.len();
            }
            n
        }),
    })
}

fn shipped_patterns() -> anyhow::Result<Vec<Hir>> {
    let mut hirs = Vec::new();
    for source in RuleSet::builtin_sources() {
        for rule in RuleFacts::of(source).context("the shipped rules")? {
            let pattern = rule.portable_pattern().map_err(anyhow::Error::msg)?;
            let Some(pattern) = pattern else { continue };
            let config = syntax::Config::new()
                .utf8(false)
                .unicode(!pattern.is_ascii())
                .dot_matches_new_line(true);
            let hir = syntax::parse_with(&pattern, &config);
            hirs.push(hir.with_context(|| format!("the pattern of {}", rule.id))?);
        }
    }
    Ok(hirs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_pattern_is_one_to_another_engine_too() {
        let patterns = shipped_patterns().unwrap();
        assert!(patterns.len() > 400, "{}", patterns.len());
    }
}
