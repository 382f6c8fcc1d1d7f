//! What a tenant adds to the built-in rules: rules, lists of values, and the patterns of its allowlist. Bounded more
//! tightly than what is shipped, because it is compiled into a process that serves others too.

use std::sync::Arc;

use regex_automata::meta::Regex;
use regex_automata::nfa::thompson::{self, NFA};
use regex_automata::util::syntax;
use secret_prints::{PrintSet, SecretPrints, codes_of_short};

use super::compile::{Builder, Looked, Patterns, Refusal};
use super::load::{Defaults, RawKind, RawRule};
use super::pattern::spelled;
use super::{Action, Kind, RuleError, RuleSet, RuleSource, exact};
use crate::Category;
use crate::rule::Rule;

/// The rule under which the secrets of a hosted server are reported. No file and no list may have it.
pub const VAULT_RULE: &str = "vault-secret";

/// What is added to a rule set.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own<'a> {
    /// Rule files.
    pub sources: &'a [RuleSource<'a>],
    /// Lists of values.
    pub lists: &'a [ValueList<'a>],
    /// Secrets of the server, of which only prints are known; reported as [`VAULT_RULE`].
    pub prints: Option<&'a SecretPrints>,
    /// Patterns; bit `n` of [`Finding::marks`](crate::Finding::marks) says that the whole value matched the `n`-th.
    pub allow_patterns: &'a [AllowPattern<'a>],
    /// Report a finding also where a wider one of its category covers it: an allowlist that lets a place or a rule
    /// pass may not hide what else is there.
    pub keep_covered: bool,
}

impl Own<'_> {
    fn is_prints_only(&self) -> bool {
        self.sources.is_empty()
            && self.lists.is_empty()
            && self.allow_patterns.is_empty()
            && !self.keep_covered
    }
}

/// Values that are looked for exactly as they are, under every encoding that the scanner undoes.
#[derive(Clone, Copy)]
pub struct ValueList<'a> {
    /// Rule id under which a value is reported.
    pub id: &'a str,
    /// A line for people.
    pub title: &'a str,
    /// The findings' category.
    pub category: Category,
    /// The values; at least [`RuleSet::VALUE_BYTES_MIN`] bytes each.
    pub values: &'a [&'a str],
}

impl std::fmt::Debug for ValueList<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ValueList({}, {} values)", self.id, self.values.len())
    }
}

/// A pattern of an allowlist. The whole value has to match.
#[derive(Clone, Copy, Debug)]
pub struct AllowPattern<'a> {
    /// What error messages call it.
    pub name: &'a str,
    /// Rust `regex` syntax.
    pub pattern: &'a str,
}

impl RuleSet {
    /// Shortest value of a [`ValueList`], in bytes: a shorter one would be found in every text.
    pub const VALUE_BYTES_MIN: usize = 4;
    /// Longest value, in bytes.
    pub const VALUE_BYTES_MAX: usize = 16 << 10;
    /// Most values of all lists of a set.
    pub const VALUES_MAX: usize = 10_000;
    /// Most rules in the files of one [`Own`].
    pub const OWN_RULES_MAX: usize = 500;
    /// Most patterns in one [`Own`].
    pub const ALLOW_PATTERNS_MAX: usize = 64;

    /// This set and what a tenant adds to it. The whole addition is refused if any part of it is.
    ///
    /// What both sets have is shared, compiled patterns included; the new patterns are compiled here, so that
    /// nothing is compiled while a message waits.
    ///
    /// # Errors
    /// Where and what: the first thing that is wrong.
    ///
    /// ```
    /// use dlp_scan::{Own, RuleSet, RuleSource};
    /// let yaml = "rules: [{id: acme-badge, title: Badge, category: pii, keywords: [acme-], pattern: 'ACME-[0-9]{6}',
    ///   examples: [ACME-123456]}]";
    /// let sources = [RuleSource { name: "acme.yml", yaml }];
    /// let own = Own { sources: &sources, ..Own::default() };
    /// let rules = RuleSet::builtin().with(&own)?;
    /// assert_eq!(rules.len(), RuleSet::builtin().len() + 1);
    /// # Ok::<(), dlp_scan::RuleError>(())
    /// ```
    pub fn with(&self, own: &Own<'_>) -> Result<Self, RuleError> {
        let set = match own.is_prints_only() {
            true => None,
            false => Some(self.with_rules(own)?),
        };
        match own.prints {
            Some(secrets) => set.as_ref().unwrap_or(self).with_prints(secrets),
            None => set.map_or_else(|| self.with_rules(own), Ok),
        }
    }

    /// Costs next to nothing, since every hosted server with secrets has a set of its own: gates and patterns are shared.
    fn with_prints(&self, secrets: &SecretPrints) -> Result<Self, RuleError> {
        let mut builder = Builder::from_set(self);
        add_prints(&mut builder, secrets).map_err(|(field, problem)| RuleError {
            file: "secrets".into(),
            line: 0,
            rule: Some(VAULT_RULE.into()),
            field,
            problem,
        })?;
        Ok(builder.made_with(Arc::clone(&self.gates)))
    }

    fn with_rules(&self, own: &Own<'_>) -> Result<Self, RuleError> {
        let mut builder = Builder::from_set(self);
        builder.own = Some(OwnBounds::default());
        builder.keep_covered |= own.keep_covered;
        for source in own.sources {
            builder.file(source, Patterns::Checked)?;
        }
        for list in own.lists {
            add_list(&mut builder, list).map_err(|(field, problem)| RuleError {
                file: "value list".into(),
                line: 0,
                rule: Some(list.id.into()),
                field,
                problem,
            })?;
        }
        for allowed in own.allow_patterns {
            add_mark(&mut builder, allowed).map_err(|problem| RuleError {
                file: allowed.name.into(),
                line: 0,
                rule: None,
                field: "pattern",
                problem,
            })?;
        }
        let set = builder.finish(self.engine())?;
        for compiled in set.compiled.iter().filter(|c| c.own) {
            compiled.pattern.as_ref().map(super::Pattern::regex);
        }
        Ok(set)
    }

    /// Which of the allowlist's patterns match the whole value, as bits.
    pub(crate) fn marks(&self, value: &[u8]) -> u64 {
        if self.marks.is_empty() || value.len() > Self::VALUE_BYTES_MAX {
            return 0;
        }
        let bits = self.marks.iter().enumerate();
        bits.filter(|(_, regex)| regex.is_match(value))
            .fold(0, |marks, (bit, _)| marks | 1 << bit)
    }
}

/// Bounds of one rule.
const PATTERN_BYTES_MAX: usize = 2048;
const KEYWORDS_MAX: usize = 64;
const SHAPES_MAX: usize = 64;
const CONTEXT_MAX: usize = 64;
const EXAMPLES_MAX: usize = 64;
const TEXT_BYTES_MAX: usize = 4096;
/// Automaton states of one pattern: what each byte can cost at the very worst.
const STATES_MAX: usize = 4096;
/// States times bytes that one try of a pattern may go through at the very worst.
const TRY_STEPS_MAX: usize = 1 << 20;
/// Automaton states of all patterns of one [`Own`] together: bounds their memory.
const ALL_STATES_MAX: usize = 100_000;

/// What is left of the bounds while a tenant's files are read.
#[derive(Debug, Default)]
pub(super) struct OwnBounds {
    rules: usize,
    states: usize,
}

impl OwnBounds {
    /// Counts a rule and checks the lengths of its fields.
    pub fn admit(&mut self, raw: &RawRule, defaults: &Defaults) -> Result<(), Refusal> {
        self.rules += 1;
        if self.rules > RuleSet::OWN_RULES_MAX {
            let max = RuleSet::OWN_RULES_MAX;
            return Err((
                "id",
                format!("at most {max} rules of one's own; take some out"),
            ));
        }
        if raw.detector.is_some() || raw.kind.or(defaults.kind) == Some(RawKind::Detector) {
            return Err((
                "kind",
                "detector is for built-in rules, which are code; use token, text, assign or number"
                    .into(),
            ));
        }
        for (field, count, max) in [
            ("keywords", raw.keywords.len(), KEYWORDS_MAX),
            ("shapes", raw.shapes.len(), SHAPES_MAX),
            ("context", raw.context.len(), CONTEXT_MAX),
            ("within", raw.within.len(), CONTEXT_MAX),
            ("examples", raw.examples.len(), EXAMPLES_MAX),
            ("counter_examples", raw.counter_examples.len(), EXAMPLES_MAX),
        ] {
            if count > max {
                return Err((field, format!("{count} entries, at most {max} are allowed")));
            }
        }
        let pattern = raw.pattern.as_deref().unwrap_or_default();
        for (field, text, max) in [
            ("pattern", pattern, PATTERN_BYTES_MAX),
            ("title", raw.title.as_str(), TEXT_BYTES_MAX),
            ("description", raw.description.as_str(), TEXT_BYTES_MAX),
        ] {
            if text.len() > max {
                return Err((field, format!("is {} bytes, at most {max}", text.len())));
            }
        }
        Ok(())
    }

    /// What one try of the pattern costs, at the very worst; refuses what costs too much.
    pub fn weigh(&mut self, pattern: &str, kind: Kind) -> Result<u32, Refusal> {
        let states = states(pattern).map_err(|e| ("pattern", e))?;
        self.states += states;
        let reach = match kind {
            Kind::Token { ahead, .. } => ahead,
            Kind::Text { back, ahead } => back + ahead,
            _ => 512,
        };
        if states > STATES_MAX || states * reach as usize > TRY_STEPS_MAX {
            return Err((
                "pattern",
                format!(
                    "is too costly: {states} states, over up to {reach} bytes; at most {STATES_MAX} states and \
                     {TRY_STEPS_MAX} steps. Make counted repeats such as {{1,500}} or classes such as \\w smaller, \
                     or lower `ahead` and `back`"
                ),
            ));
        }
        if self.states > ALL_STATES_MAX {
            return Err((
                "pattern",
                format!(
                    "all patterns together have more than {ALL_STATES_MAX} states; take some out"
                ),
            ));
        }
        // A built-in pattern of 60 states over 512 bytes is the measure.
        let weight = states * reach as usize / (64 * 512);
        Ok(u32::try_from(weight).unwrap_or(u32::MAX).max(1))
    }
}

/// How many states the pattern's automaton has.
fn states(pattern: &str) -> Result<usize, String> {
    let pattern = &*spelled(pattern)?;
    NFA::compiler()
        .configure(
            thompson::Config::new()
                .utf8(false)
                .nfa_size_limit(Some(1 << 20)),
        )
        .syntax(
            syntax::Config::new()
                .utf8(false)
                .unicode(!pattern.is_ascii())
                .dot_matches_new_line(true),
        )
        .build(pattern)
        .map(|nfa| nfa.states().len())
        .map_err(|e| format!("{e}; make it smaller"))
}

fn add_list(builder: &mut Builder, list: &ValueList<'_>) -> Result<(), Refusal> {
    let (min, max) = (RuleSet::VALUE_BYTES_MIN, RuleSet::VALUE_BYTES_MAX);
    for (nth, value) in list.values.iter().enumerate() {
        if !(min..=max).contains(&value.len()) {
            return Err((
                "values",
                format!(
                    "the {}. value is {} bytes long; {min} to {max} are possible",
                    nth + 1,
                    value.len()
                ),
            ));
        }
    }
    let count = builder.exact.len() + list.values.len();
    if count > RuleSet::VALUES_MAX {
        let max = RuleSet::VALUES_MAX;
        return Err((
            "values",
            format!("{count} values, at most {max} are possible"),
        ));
    }
    not_reserved(list.id)?;
    let id = builder.list(Rule {
        id: list.id.into(),
        category: list.category,
        title: list.title.into(),
        description: "One of the values of a list, exactly as it is.".into(),
        confidence: 100,
    })?;
    for value in list.values {
        let head = exact_head(value.as_bytes());
        builder.keyword(&head, Action::Exact, Looked::Everywhere);
        if head.is_ascii() && head.len() >= exact::HEAD_BYTES {
            builder.turned(&head, Looked::Everywhere);
        }
        let coded = codes_of_short(value.as_bytes());
        for code in &coded {
            builder.keyword(&exact_head(code), Action::Exact, Looked::Everywhere);
        }
        let plain = (value.as_bytes().into(), exact::Form::Plain);
        let coded = coded
            .into_iter()
            .map(|code| (code.into(), exact::Form::Coded));
        builder.exact.add(id, coded.chain([plain]));
    }
    Ok(())
}

/// What the gate looks for.
fn exact_head(value: &[u8]) -> Vec<u8> {
    value[..value.len().min(exact::HEAD_BYTES)].to_ascii_lowercase()
}

fn add_prints(builder: &mut Builder, secrets: &SecretPrints) -> Result<(), Refusal> {
    let set = PrintSet::new(secrets);
    if set.is_empty() {
        return Ok(());
    }
    let id = builder.list(Rule {
        id: VAULT_RULE.into(),
        category: Category::Secret,
        title: "Secret of this server".into(),
        description: "A value of the server's vault, exactly as it is.".into(),
        confidence: 100,
    })?;
    builder.prints = Some((id, Arc::new(set)));
    Ok(())
}

/// What this rule finds is stopped whatever policy says, so nobody may make another of its name.
pub(super) fn not_reserved(id: &str) -> Result<(), Refusal> {
    match id {
        VAULT_RULE => Err((
            "id",
            "is kept for the secrets of hosted servers; take another".into(),
        )),
        _ => Ok(()),
    }
}

fn add_mark(builder: &mut Builder, allowed: &AllowPattern<'_>) -> Result<(), String> {
    if builder.marks.len() >= RuleSet::ALLOW_PATTERNS_MAX {
        let max = RuleSet::ALLOW_PATTERNS_MAX;
        return Err(format!("at most {max} patterns are possible"));
    }
    if allowed.pattern.len() > PATTERN_BYTES_MAX {
        return Err(format!("is longer than {PATTERN_BYTES_MAX} bytes"));
    }
    // First by itself, so that no bracket of it can close ours.
    let regex: Regex = super::compile::regex(allowed.pattern)?;
    if regex.is_match("") {
        return Err("matches the empty text; make part of it required".into());
    }
    let whole = format!("^(?:{})$", allowed.pattern);
    if states(&whole)? > STATES_MAX {
        return Err(format!(
            "has more than {STATES_MAX} states; make counted repeats smaller"
        ));
    }
    builder.marks.push(super::compile::regex(&whole)?);
    Ok(())
}
