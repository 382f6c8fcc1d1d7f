//! From rule files to a rule set: every field checked, keywords collected, patterns refused that cost too much.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use regex_syntax::hir::Hir;
use secret_prints::PrintSet;

use super::boundary;
use super::lead;
use super::load::{Edge, RawKind, RawNeed, RawRule, load};
use super::own::OwnBounds;
use super::pattern;
use super::place;
use super::{
    Action, Compiled, Detector, ExactSet, Kind, Lettered, Need, Pattern, RuleError, RuleSet,
    RuleSource, Shapes, ShortPhrases,
};
use crate::Category;
use crate::check;
use crate::gate::{Engine, Gates, HeadGate, Places};
use crate::names;
use crate::rule::{Rule, RuleId};

/// Shortest shape.
pub(crate) const SHAPE_BYTES_MIN: usize = 5;
/// Longest shape, and so longest number looked at.
pub(crate) const SHAPE_BYTES_MAX: usize = 52;
/// How far a pattern may reach, unless the rule says more.
const AHEAD_DEFAULT: u32 = 512;
const AHEAD_MAX: u32 = 4096;
const RULES_MAX: usize = 4000;
/// Longest context phrase: an offset into one is a byte.
const CONTEXT_BYTES_MAX: usize = 96;
/// Longest id of a rule.
const ID_BYTES_MAX: usize = 64;

/// Whether patterns are compiled now, to be refused, or when first needed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patterns {
    Checked,
    Trusted,
}

/// A pattern, read. What is written in ASCII, or begins with `(?i-u)`, matches bytes, else characters.
pub(super) fn parse(source: &str) -> Result<Hir, String> {
    let source = &*pattern::spelled(source)?;
    let config = syntax::Config::new()
        .utf8(false)
        .unicode(!source.is_ascii())
        .dot_matches_new_line(true);
    let hir = syntax::parse_with(source, &config).map_err(|e| {
        // The message quotes the pattern over several lines; what is wrong stands in the last one.
        let message = e.to_string();
        let line = message.lines().last().unwrap_or_default();
        line.trim_start_matches("error: ").to_owned()
    })?;
    Ok(boundary::in_ascii(&hir))
}

/// A pattern's automaton. Bounded in size; linear in time by construction.
pub(crate) fn regex(source: &str) -> Result<Regex, String> {
    Regex::builder()
        .configure(
            Regex::config()
                .utf8_empty(false)
                // The gate has said where to look.
                .auto_prefilter(false)
                .nfa_size_limit(Some(1 << 20))
                .onepass_size_limit(Some(1 << 16))
                .hybrid_cache_capacity(1 << 20),
        )
        .build_many_from_hir(&[parse(source)?])
        .map_err(|e| {
            let cause = std::error::Error::source(&e).map(ToString::to_string);
            cause.unwrap_or_else(|| e.to_string())
        })
}

pub(crate) fn compile(
    sources: &[RuleSource<'_>],
    patterns: Patterns,
) -> Result<RuleSet, RuleError> {
    let mut builder = Builder::default();
    for source in sources {
        builder.file(source, patterns)?;
    }
    builder.finish(Engine::DEFAULT)
}

pub(super) type Refusal = (&'static str, String);

/// A phrase of several words, and the same in one, as names with humps write it: `taxId`.
fn in_one(phrase: String) -> impl Iterator<Item = String> {
    let joined = (phrase.is_ascii() && phrase.len() >= 6 && phrase.contains([' ', '-']))
        .then(|| phrase.replace([' ', '-'], ""))
        .filter(|joined| joined.len() >= 5 && joined.bytes().all(|b| b.is_ascii_alphanumeric()));
    std::iter::once(phrase).chain(joined)
}

/// Where a keyword is looked for, for one of the things it stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Looked {
    Everywhere,
    InRuns,
    Near,
}

/// A set in the making.
#[derive(Default)]
pub(super) struct Builder {
    rules: Vec<Rule>,
    compiled: Vec<Compiled>,
    by_id: HashMap<Box<str>, RuleId>,
    keywords: Vec<Box<[u8]>>,
    keyword_ids: HashMap<Box<[u8]>, usize>,
    /// By keyword.
    places: Vec<Places>,
    actions: Vec<Vec<Action>>,
    phrases: Vec<Box<[u8]>>,
    phrase_ids: HashMap<Box<[u8]>, u16>,
    short: ShortPhrases,
    within_ids: HashMap<Box<[u8]>, u16>,
    shapes: BTreeMap<Box<[u8]>, Vec<RuleId>>,
    lettered: Lettered,
    detectors: [Option<RuleId>; Detector::COUNT],
    pub(super) exact: ExactSet,
    pub(super) prints: Option<(RuleId, Arc<PrintSet>)>,
    pub(super) marks: Vec<Regex>,
    pub(super) keep_covered: bool,
    /// Set while a tenant's own rules are read: they are bound more tightly.
    pub(super) own: Option<OwnBounds>,
}

impl Builder {
    /// Begins with the rules of another set; what both have is shared.
    pub(super) fn from_set(set: &RuleSet) -> Self {
        let ids = set.keywords.iter().cloned().enumerate();
        Self {
            rules: set.rules.clone(),
            compiled: set.compiled.clone(),
            by_id: set.by_id.clone(),
            keyword_ids: ids.map(|(i, word)| (word, i)).collect(),
            keywords: set.keywords.clone(),
            places: set.places.clone(),
            actions: set.actions.clone(),
            phrase_ids: (0u16..)
                .zip(&set.phrases)
                .map(|(i, p)| (p.clone(), i))
                .collect(),
            phrases: set.phrases.clone(),
            short: set.short.clone(),
            within_ids: set.within_ids.clone(),
            shapes: set.shapes.each().collect(),
            lettered: set.lettered,
            detectors: set.detectors,
            exact: set.exact.clone(),
            prints: set.prints.clone(),
            marks: set.marks.clone(),
            keep_covered: set.keep_covered,
            own: None,
        }
    }

    /// Adds the rules of one file.
    pub(super) fn file(
        &mut self,
        source: &RuleSource<'_>,
        patterns: Patterns,
    ) -> Result<(), RuleError> {
        let file = load(source)?;
        for (nth, raw) in file.rules.iter().enumerate() {
            self.rule(raw, &file.defaults, patterns)
                .map_err(|(field, problem)| RuleError {
                    file: source.name.to_owned(),
                    line: place::line_of(source.yaml, nth, field),
                    rule: Some(raw.id.clone()),
                    field,
                    problem,
                })?;
        }
        Ok(())
    }

    /// Adds what is known about a rule that has no pattern: a list of values.
    pub(super) fn list(&mut self, rule: Rule) -> Result<RuleId, Refusal> {
        let id = self.next_id(&rule.id)?;
        self.by_id.insert(rule.id.clone(), id);
        self.rules.push(rule);
        self.compiled.push(Compiled {
            kind: Kind::Values,
            pattern: None,
            checks: Vec::new(),
            solid: 0,
            cased: Vec::new(),
            entropy_min: 0.0,
            context: Vec::new(),
            within: Vec::new(),
            placeholders_pass: true,
            lines: false,
            firms: false,
            persons: false,
            phones: false,
            own: true,
            weight: 1,
        });
        Ok(id)
    }

    fn next_id(&self, id: &str) -> Result<RuleId, Refusal> {
        if self.rules.len() >= RULES_MAX {
            return Err((
                "id",
                format!("a set holds at most {RULES_MAX} rules; split it"),
            ));
        }
        let good = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if id.is_empty() || id.len() > ID_BYTES_MAX || !id.bytes().all(good) {
            return Err((
                "id",
                format!("use 1 to {ID_BYTES_MAX} lower-case letters, digits and dashes"),
            ));
        }
        if self.by_id.contains_key(id) {
            let problem = match self.own {
                Some(_) => "is taken; the built-in rules and one's own share one space of ids",
                None => "is used twice; ids are unique in a set",
            };
            return Err(("id", problem.into()));
        }
        Ok(RuleId(u16::try_from(self.rules.len()).unwrap_or(u16::MAX)))
    }

    fn rule(
        &mut self,
        raw: &RawRule,
        defaults: &super::load::Defaults,
        patterns: Patterns,
    ) -> Result<(), Refusal> {
        super::own::not_reserved(&raw.id)?;
        let id = self.next_id(&raw.id)?;
        if let Some(own) = &mut self.own {
            own.admit(raw, defaults)?;
        }
        let category = raw.category.or(defaults.category).ok_or((
            "category",
            "is missing; give secret, pii or injection".to_owned(),
        ))?;
        let confidence = raw.confidence.or(defaults.confidence).unwrap_or(90);
        if confidence > 100 {
            return Err(("confidence", "is 0 to 100".into()));
        }
        let kind = kind_of(raw, defaults)?;
        let (pattern, weight) = self.pattern(raw, kind, patterns)?;
        let mut checks = Vec::new();
        for name in &raw.checks {
            checks.push(check::find(name).ok_or_else(|| {
                (
                    "checks",
                    format!("there is no check named {name}; see docs/detection.md"),
                )
            })?);
        }
        self.keywords_of(raw, kind, id, category)?;
        self.shapes_of(raw, kind, id)?;
        let context = self.context_of(raw)?;
        let within = self.within_of(raw, kind)?;
        if let Kind::Detector(d) = kind {
            self.detectors[d as usize] = Some(id);
        }
        self.by_id.insert(raw.id.as_str().into(), id);
        self.rules.push(Rule {
            id: raw.id.as_str().into(),
            category,
            title: raw.title.as_str().into(),
            description: raw.description.as_str().into(),
            confidence,
        });
        self.compiled.push(Compiled {
            kind,
            pattern,
            checks,
            solid: raw.solid,
            cased: cased(raw, kind),
            entropy_min: raw.entropy,
            context,
            within,
            placeholders_pass: raw.placeholders_pass || category != Category::Secret,
            lines: raw.lines,
            firms: raw.firms,
            persons: raw.persons,
            phones: (raw.checks.iter()).any(|c| c.starts_with("phone-") || c.ends_with("-phone")),
            own: self.own.is_some(),
            weight,
        });
        Ok(())
    }

    fn pattern(
        &mut self,
        raw: &RawRule,
        kind: Kind,
        patterns: Patterns,
    ) -> Result<(Option<Pattern>, u32), Refusal> {
        let Some(source) = &raw.pattern else {
            return match kind {
                Kind::Token { .. } | Kind::Text { .. } | Kind::Assign { .. } => {
                    Err(("pattern", "is missing; this kind of rule needs one".into()))
                }
                _ => Ok((None, 1)),
            };
        };
        let source = match kind {
            Kind::Assign { .. } => format!("^(?:{source})$"),
            _ => source.clone(),
        };
        if patterns == Patterns::Checked {
            let regex = regex(&source).map_err(|e| {
                (
                    "pattern",
                    format!("{e}; look-around and back-references are not supported"),
                )
            })?;
            if regex.is_match("") {
                return Err((
                    "pattern",
                    "matches the empty text; make part of it required".into(),
                ));
            }
            let least = parse(&source)
                .ok()
                .and_then(|p| p.properties().minimum_len());
            if let Some(least) = least.filter(|least| *least < usize::from(raw.solid)) {
                return Err((
                    "solid",
                    format!("is more than the {least} bytes that the pattern needs"),
                ));
            }
        }
        let weight = match &mut self.own {
            Some(own) => own.weigh(&source, kind)?,
            None => 1,
        };
        Ok((Some(Pattern::new(&source, &raw.keywords)), weight))
    }

    fn keywords_of(
        &mut self,
        raw: &RawRule,
        kind: Kind,
        id: RuleId,
        category: Category,
    ) -> Result<(), Refusal> {
        let needs = matches!(
            kind,
            Kind::Token { .. } | Kind::Text { .. } | Kind::Assign { .. }
        );
        if needs && raw.keywords.is_empty() {
            return Err((
                "keywords",
                "are missing; name a text of at least 3 bytes that every match holds".into(),
            ));
        }
        let long = matches!(kind, Kind::Token { .. })
            && raw
                .pattern
                .as_deref()
                .and_then(|p| parse(p).ok())
                .is_some_and(|p| lead::in_long_run(&p));
        for word in raw.keywords.iter().flat_map(|w| names::cases(w)) {
            let long = long && word.bytes().all(crate::text::is_run);
            if word.len() < 3 || word.len() > 64 {
                return Err(("keywords", format!("{word:?} has to be 3 to 64 bytes long")));
            }
            let action = match kind {
                Kind::Detector(d) => Action::Detect(d),
                _ => Action::Try(id),
            };
            let at = match long {
                true => Looked::InRuns,
                false => Looked::Everywhere,
            };
            self.keyword(word.as_bytes(), action, at);
            let turned = matches!(kind, Kind::Token { .. }) && category == Category::Secret
                || matches!(kind, Kind::Text { .. }) && category == Category::Injection;
            // Four bytes are too common once the case is folded away; five and more are not.
            if turned && (word.len() >= 4 || word.contains('.')) && word.is_ascii() {
                self.turned(word.as_bytes(), at);
            }
        }
        Ok(())
    }

    /// Files the context phrases with the gate, each by its longest part, or with those too short for it; returns their
    /// numbers.
    fn context_of(&mut self, raw: &RawRule) -> Result<Vec<u16>, Refusal> {
        let mut phrases = Vec::new();
        for word in raw
            .context
            .iter()
            .flat_map(|w| names::cases(w).into_iter().chain(names::unmarked(w)))
            .flat_map(in_one)
        {
            let phrase: Box<[u8]> = names::plain(word.as_bytes()).trim_ascii().into();
            if phrase.is_empty() || phrase.len() > CONTEXT_BYTES_MAX {
                return Err((
                    "context",
                    format!("{word:?} has to be 1 to {CONTEXT_BYTES_MAX} bytes long"),
                ));
            }
            let known = self.phrase_ids.get(&phrase).copied();
            phrases.push(known.map_or_else(|| self.phrase(&phrase), Ok)?);
        }
        // Looked for one by one among hundreds.
        phrases.sort_unstable();
        phrases.dedup();
        Ok(phrases)
    }

    /// Files the words of `within` with the gate; returns their numbers.
    fn within_of(&mut self, raw: &RawRule, kind: Kind) -> Result<Vec<u16>, Refusal> {
        if !raw.within.is_empty() && !matches!(kind, Kind::Text { .. }) {
            return Err(("within", "belongs to rules of kind text".into()));
        }
        let mut ids = Vec::new();
        for word in raw.within.iter().flat_map(|w| names::cases(w)) {
            if !(4..=64).contains(&word.len()) {
                return Err(("within", format!("{word:?} has to be 4 to 64 bytes long")));
            }
            let next = u16::try_from(self.within_ids.len())
                .map_err(|_| ("within", "are too many words in one set".to_owned()))?;
            let id = *self
                .within_ids
                .entry(word.as_bytes().into())
                .or_insert(next);
            self.keyword(word.as_bytes(), Action::Within(id), Looked::Everywhere);
            ids.push(id);
        }
        Ok(ids)
    }

    /// A phrase not filed before.
    fn phrase(&mut self, phrase: &[u8]) -> Result<u16, Refusal> {
        let id = u16::try_from(self.phrases.len()).map_err(|_| {
            (
                "context",
                "are too many in one set; take some out".to_owned(),
            )
        })?;
        let (mut from, mut longest) = (0, None);
        for part in phrase.split(|b| *b == b' ') {
            let filed = HeadGate::takes(part);
            if filed && longest.is_none_or(|(_, known): (usize, &[u8])| part.len() >= known.len()) {
                longest = Some((from, part));
            }
            from += part.len() + 1;
        }
        let action = |offset: usize| Action::Context {
            phrase: id,
            offset: u8::try_from(offset).unwrap_or(u8::MAX),
        };
        match longest {
            None => self.short.add(phrase, id),
            Some((at, part)) => {
                for word in HeadGate::keywords(part) {
                    self.keyword(&word, action(at), Looked::Near);
                }
            }
        }
        self.phrases.push(phrase.into());
        self.phrase_ids.insert(phrase.into(), id);
        Ok(id)
    }

    /// The keyword backwards and rotated, so that turned-around values are noticed by the same gate.
    pub(super) fn turned(&mut self, word: &[u8], at: Looked) {
        let letters = word.iter().filter(|b| b.is_ascii_alphabetic()).count();
        if letters < 2 || letters < 3 && word.len() > 3 {
            return;
        }
        let mut back = word.to_vec();
        back.reverse();
        if back != word {
            self.keyword(&back, Action::Reversed, at);
        }
        let rot: Vec<u8> = word.iter().map(|b| crate::decode::rot13(*b)).collect();
        self.keyword(&rot, Action::Rot13, at);
    }

    pub(super) fn keyword(&mut self, word: &[u8], action: Action, looked: Looked) {
        let next = self.keywords.len();
        let at = *self.keyword_ids.entry(word.into()).or_insert(next);
        if at == next {
            self.keywords.push(word.into());
            self.actions.push(Vec::new());
            self.places.push(Places::default());
        }
        let places = &mut self.places[at];
        match looked {
            Looked::Everywhere => places.everywhere = true,
            Looked::InRuns => places.runs = true,
            Looked::Near => places.near = true,
        }
        if !self.actions[at].contains(&action) {
            self.actions[at].push(action);
        }
    }

    fn shapes_of(&mut self, raw: &RawRule, kind: Kind, rule: RuleId) -> Result<(), Refusal> {
        if matches!(kind, Kind::Number { .. }) == raw.shapes.is_empty() {
            return Err((
                "shapes",
                "belong to rules of kind number, which need at least one".into(),
            ));
        }
        for shape in &raw.shapes {
            let len = shape.len();
            if !(SHAPE_BYTES_MIN..=SHAPE_BYTES_MAX).contains(&len) || !shape.is_ascii() {
                return Err((
                    "shapes",
                    format!("{shape:?} has to be 5 to {SHAPE_BYTES_MAX} characters of ASCII"),
                ));
            }
            self.lettered = self.lettered.with(shape.as_bytes());
            self.shapes
                .entry(shape.as_bytes().into())
                .or_default()
                .push(rule);
        }
        Ok(())
    }

    pub(super) fn finish(mut self, engine: Engine) -> Result<RuleSet, RuleError> {
        let names = [
            Detector::GenericSecret,
            Detector::GenericPassword,
            Detector::Mnemonic,
        ];
        if names.iter().any(|d| self.detectors[*d as usize].is_some()) {
            for word in names::keywords().flat_map(|w| names::cases(&w)) {
                self.keyword(word.as_bytes(), Action::SecretName, Looked::Everywhere);
            }
            for word in names::KEYWORDS_TURNED {
                self.turned(word.as_bytes(), Looked::Everywhere);
            }
        }
        for (mark, words) in crate::decode::marks::WORDS {
            for word in words.iter().flat_map(|w| names::cases(w)) {
                self.keyword(word.as_bytes(), Action::Mark(*mark), Looked::Everywhere);
            }
        }
        // The gate numbers its words with 16 bits.
        if self.keywords.len() > usize::from(u16::MAX) {
            return Err(RuleError {
                file: "all rules".into(),
                line: 0,
                rule: None,
                field: "keywords",
                problem: format!(
                    "{} keywords and values together, at most {} are possible; take some out",
                    self.keywords.len(),
                    u16::MAX
                ),
            });
        }
        Ok(self.made(engine))
    }

    /// The set, as it was put together.
    pub(super) fn made(self, engine: Engine) -> RuleSet {
        let gates = Gates::new(engine, &self.keywords, &self.places);
        self.made_with(Arc::new(gates))
    }

    /// The same with gates that fit already: nothing was added that they have to know.
    pub(super) fn made_with(self, gates: Arc<Gates>) -> RuleSet {
        let weights = self.compiled.iter().map(|c| c.weight);
        RuleSet {
            weight_max: weights.max().unwrap_or(1),
            shapes: Shapes::new(self.shapes, &self.compiled),
            rules: self.rules,
            compiled: self.compiled,
            by_id: self.by_id,
            gates,
            actions: self.actions,
            phrases: self.phrases,
            short: self.short,
            within_ids: self.within_ids,
            lettered: self.lettered,
            detectors: self.detectors,
            exact: self.exact,
            prints: self.prints,
            marks: self.marks,
            keep_covered: self.keep_covered,
            serial: MADE.fetch_add(1, Ordering::Relaxed),
            keywords: self.keywords,
            places: self.places,
        }
    }
}

/// How many sets were made so far.
static MADE: AtomicU64 = AtomicU64::new(0);

/// The keywords as they are written, for patterns in which case counts.
fn cased(raw: &RawRule, kind: Kind) -> Vec<Box<[u8]>> {
    let folds = raw.pattern.as_deref().is_none_or(|p| p.contains("(?i"));
    if folds || !matches!(kind, Kind::Token { .. }) {
        return Vec::new();
    }
    raw.keywords.iter().map(|k| k.as_bytes().into()).collect()
}

fn kind_of(raw: &RawRule, defaults: &super::load::Defaults) -> Result<Kind, Refusal> {
    let kind = raw.kind.or(defaults.kind).unwrap_or(RawKind::Token);
    let ahead = raw.ahead.unwrap_or(AHEAD_DEFAULT);
    if ahead > AHEAD_MAX || raw.back > AHEAD_MAX {
        return Err((
            "ahead",
            format!("a pattern reaches at most {AHEAD_MAX} bytes from its keyword"),
        ));
    }
    Ok(match kind {
        RawKind::Token => Kind::Token {
            before: raw.before,
            after_any: raw.after == Edge::Any,
            ahead,
        },
        RawKind::Text => Kind::Text {
            back: raw.back,
            ahead,
        },
        RawKind::Assign => Kind::Assign {
            any_name: raw.any_name,
        },
        RawKind::Number => Kind::Number {
            need: match raw.need {
                RawNeed::Nothing => Need::Nothing,
                RawNeed::Context => Need::Context,
                RawNeed::ContextOrAlone => Need::ContextOrAlone,
            },
        },
        RawKind::Detector => Kind::Detector(raw.detector.ok_or((
            "detector",
            "is missing; name the code this rule stands for".to_owned(),
        ))?),
    })
}
