//! An immutable set of compiled rules.

mod boundary;
mod compile;
mod exact;
mod facts;
mod lead;
pub(crate) mod load;
mod needs;
mod own;
mod pattern;
mod phrases;
mod place;
mod shapes;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use regex_automata::meta::Regex;
use secret_prints::PrintSet;

use crate::check::Check;
use crate::decode::marks::Mark;
use crate::gate::{Engine, Gates, Places};
use crate::rule::{Rule, RuleId};
use crate::{Budget, Category, FingerprintKey, LeafInput, LeafKind, Scanner};

pub(crate) use compile::{SHAPE_BYTES_MAX, SHAPE_BYTES_MIN};
pub(crate) use exact::{ExactSet, FREE_BYTES as EXACT_FREE_BYTES, Form};
pub use facts::RuleFacts;
use needs::Needs;
pub use own::{AllowPattern, Own, VAULT_RULE, ValueList};
pub(crate) use phrases::HEAD_BYTES;
use phrases::ShortPhrases;
pub(crate) use shapes::{Classes, Lettered, Outline, Shapes};

/// Compiled rules. Immutable, `Send + Sync`, shared in an `Arc`.
pub struct RuleSet {
    pub(crate) rules: Vec<Rule>,
    pub(crate) compiled: Vec<Compiled>,
    by_id: HashMap<Box<str>, RuleId>,
    pub(crate) gates: Arc<Gates>,
    /// What to do about a hit, by keyword.
    pub(crate) actions: Vec<Vec<Action>>,
    /// The context phrases of all rules, as [`crate::names::plain`] writes them.
    pub(crate) phrases: Vec<Box<[u8]>>,
    pub(crate) short: ShortPhrases,
    /// The number of each word that rules have in `within`.
    within_ids: HashMap<Box<[u8]>, u16>,
    pub(crate) shapes: Shapes,
    pub(crate) lettered: Lettered,
    pub(crate) detectors: [Option<RuleId>; Detector::COUNT],
    /// Values that are looked for as they are.
    pub(crate) exact: ExactSet,
    /// Values of which only prints are known, and the rule that they are reported under.
    pub(crate) prints: Option<(RuleId, Arc<PrintSet>)>,
    /// What [`Finding::marks`](crate::Finding::marks) counts: the patterns that a whole value may match.
    pub(crate) marks: Vec<Regex>,
    /// Report a finding also where a wider one of its category covers it.
    pub(crate) keep_covered: bool,
    /// What one look costs at the most, by the rules' weights.
    pub(crate) weight_max: u32,
    /// No two sets of a process have the same.
    serial: u64,
    /// What the gates were made of, to make larger ones.
    keywords: Vec<Box<[u8]>>,
    places: Vec<Places>,
}

impl std::fmt::Debug for RuleSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RuleSet")
            .field("rules", &self.rules.len())
            .finish_non_exhaustive()
    }
}

/// One rule file.
#[derive(Clone, Copy, Debug)]
pub struct RuleSource<'a> {
    /// What error messages call it.
    pub name: &'a str,
    /// Its text.
    pub yaml: &'a str,
}

/// An example that did not do what its rule says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExampleFailure {
    /// The rule's id.
    pub rule: String,
    /// The example.
    pub text: String,
    /// True for one that should have matched.
    pub expected: bool,
}

/// A rule file that was refused: where, which field, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {}{field}: {problem}", rule.as_deref().map(|r| format!("rule {r}: ")).unwrap_or_default())]
pub struct RuleError {
    /// The source's name.
    pub file: String,
    /// 1-based; 0 when the line is not known.
    pub line: usize,
    /// The rule's id, once it was read.
    pub rule: Option<String>,
    /// The field at fault.
    pub field: &'static str,
    /// What is wrong with it and how to put it right.
    pub problem: String,
}

/// What the scanner needs of a rule.
#[derive(Clone, Debug)]
pub(crate) struct Compiled {
    pub kind: Kind,
    pub pattern: Option<Pattern>,
    pub checks: Vec<Check>,
    /// Every match begins with at least this many bytes that are neither blank, quote nor control.
    pub solid: u16,
    /// The keywords as written, when case counts.
    pub cased: Vec<Box<[u8]>>,
    pub entropy_min: f32,
    /// Indices into [`RuleSet::phrases`].
    pub context: Vec<u16>,
    /// Numbers of words, one of which every match holds besides a keyword. Empty when nothing is known.
    pub within: Vec<u16>,
    pub placeholders_pass: bool,
    /// The lines behind a match hold values, too.
    pub lines: bool,
    /// Firms have such numbers as well as persons: beside a firm's name it is the firm's.
    pub firms: bool,
    /// Only a person has it, or writes from it: a name beside it is reported as well.
    pub persons: bool,
    /// For phones: told apart from ids of things by the words around them alone.
    pub phones: bool,
    /// A tenant's own: neither covers a finding of another rule nor is covered by one.
    pub own: bool,
    /// What one try costs of the candidates' budget: 1 for built-in rules, by the size of its automaton for others.
    pub weight: u32,
}

impl Compiled {
    /// Is the value only the picture of one?
    pub fn placeholder(&self, value: &[u8]) -> bool {
        !self.placeholders_pass && crate::value::stands_for(value, || self.least())
    }

    /// The value without a word that was hung on it: where that word begins.
    pub fn bare(&self, value: &[u8]) -> Option<usize> {
        let long = |len: &usize| *len >= self.least().max(1);
        let may = !self.placeholders_pass && !self.own && self.pattern.is_some();
        may.then(|| crate::value::without_word(value))?.filter(long)
    }

    /// No match of the pattern is shorter.
    fn least(&self) -> usize {
        self.pattern.as_ref().map_or(0, Pattern::least)
    }

    pub fn needs_context(&self) -> bool {
        !self.context.is_empty()
    }
}

/// How a rule is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The pattern begins at the keyword.
    Token {
        before: load::Edge,
        after_any: bool,
        ahead: u32,
    },
    /// The pattern is somewhere around the keyword.
    Text { back: u32, ahead: u32 },
    /// The keyword is part of a name; the pattern is the whole value assigned to it.
    Assign { any_name: bool },
    /// An identifier of fixed shape, with check digits, context words, or both.
    Number { need: Need },
    /// Code of its own.
    Detector(Detector),
    /// A list of values, each looked for as it is.
    Values,
}

/// What a number needs besides its shape and checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Nothing,
    /// A context word nearby.
    Context,
    /// A context word, or to stand alone in a nameless leaf.
    ContextOrAlone,
}

/// Rules that are code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Detector {
    GenericSecret,
    GenericPassword,
    Mnemonic,
    PrivateKey,
    UrlCredentials,
    AuthHeader,
    Email,
    Ipv4,
    Ipv6,
    Mac,
    Phone,
    PostalAddress,
    PrivateWebKey,
    FamilyName,
    NameBeside,
    ContactName,
    SecretData,
    HomeCoordinates,
    UnicodeTags,
    VariationSelectors,
    Bidi,
    ZeroWidth,
    Orders,
    MisspeltOrders,
    SensedOrders,
    BareCommand,
    CodedSecret,
}

impl Detector {
    /// How many there are.
    pub const COUNT: usize = Self::CodedSecret as usize + 1;
}

/// What a keyword hit leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Try(RuleId),
    /// Part of a name that says its value is a secret.
    SecretName,
    /// Part of a phrase that some rules want to see nearby, so many bytes into it.
    Context {
        phrase: u16,
        offset: u8,
    },
    /// A word that every match of some rules holds one of.
    Within(u16),
    /// A word that some detector begins at.
    Detect(Detector),
    /// Something read backwards.
    Reversed,
    /// Something rotated by 13.
    Rot13,
    /// A word that some decoder begins at.
    Mark(Mark),
    /// The head of one of the values in [`RuleSet::exact`].
    Exact,
}

/// A pattern, compiled when it is first needed: most rules never fire in most processes. Shared by all sets that have it.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(Arc<LazyPattern>);

#[derive(Debug)]
struct LazyPattern {
    /// No two patterns of a process have the same.
    id: u32,
    source: Box<str>,
    compiled: OnceLock<Option<Regex>>,
    /// One of these stands where it is looked for.
    keywords: Box<[Box<[u8]>]>,
    needs: OnceLock<Needs>,
}

impl Pattern {
    /// The pattern of a rule that has these keywords.
    pub fn new(source: &str, keywords: &[String]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let keywords = keywords
            .iter()
            .map(|k| k.to_ascii_lowercase().into_bytes().into());
        Self(Arc::new(LazyPattern {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            source: source.into(),
            compiled: OnceLock::new(),
            keywords: keywords.collect(),
            needs: OnceLock::new(),
        }))
    }

    pub fn id(&self) -> u32 {
        self.0.id
    }

    /// `None` only for a pattern that does not compile, which loading refuses.
    pub fn regex(&self) -> Option<&Regex> {
        self.0
            .compiled
            .get_or_init(|| compile::regex(&self.0.source).ok())
            .as_ref()
    }

    /// False for a text that surely holds no match. `folded` is in lower case, as far as it is ASCII.
    pub fn may_match(&self, folded: &[u8]) -> bool {
        self.needs().may_match(folded)
    }

    /// Every match holds a long run of letters and digits.
    pub fn holds_run(&self) -> bool {
        self.needs().run
    }

    /// A match may be of any length.
    pub fn endless(&self) -> bool {
        self.needs().endless
    }

    /// No match is shorter.
    pub fn least(&self) -> usize {
        self.needs().least
    }

    fn needs(&self) -> &Needs {
        let LazyPattern {
            source,
            needs,
            keywords,
            ..
        } = &*self.0;
        needs.get_or_init(|| {
            // What was read is not kept for when it is compiled: that would be megabytes of patterns that never are.
            let pattern = compile::parse(source);
            pattern.map_or_else(|_| Needs::default(), |p| Needs::of(&p, keywords))
        })
    }
}

impl RuleSet {
    /// The rules shipped with the program. Compiled once.
    pub fn builtin() -> &'static Arc<Self> {
        static BUILTIN: LazyLock<Arc<RuleSet>> = LazyLock::new(|| {
            let set = compile::compile(BUILTIN_SOURCES, compile::Patterns::Trusted);
            Arc::new(set.expect("a test compiles the shipped rules"))
        });
        &BUILTIN
    }

    /// The same rules, with their keywords looked for by that engine.
    pub fn with_engine(&self, engine: Engine) -> Self {
        compile::Builder::from_set(self).made(engine)
    }

    /// A number that no other set of this process has: what was found by this set was found by no other.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// What looks for the keywords.
    pub fn engine(&self) -> Engine {
        self.gates.engine()
    }

    /// The text of the shipped rule files, for documentation and `rules show`.
    pub fn builtin_sources() -> &'static [RuleSource<'static>] {
        BUILTIN_SOURCES
    }

    /// Compiles rule files into one set. The whole set is refused if any rule is.
    pub fn compile(sources: &[RuleSource<'_>]) -> Result<Self, RuleError> {
        compile::compile(sources, compile::Patterns::Checked)
    }

    /// Tries the examples of rule files against this set: the matching ones have to give a finding of the rule's
    /// category (where two built-in rules know a value, the surer one reports it; a tenant's own rule always reports
    /// its own), the others none of the rule's own.
    pub fn failed_examples(
        &self,
        sources: &[RuleSource<'_>],
    ) -> Result<Vec<ExampleFailure>, RuleError> {
        let mut scanner = Scanner::new(FingerprintKey::new([0; 32]));
        let mut failures = Vec::new();
        for source in sources {
            for rule in load::load(source)?.rules {
                let Some(id) = self.find(&rule.id) else {
                    continue;
                };
                for (examples, expected) in
                    [(&rule.examples, true), (&rule.counter_examples, false)]
                {
                    for text in examples.iter().map(load::Example::text) {
                        let leaf = LeafInput {
                            text: &text,
                            kind: LeafKind::String,
                            name: None,
                        };
                        let found = scanner
                            .scan(self, [leaf].into_iter(), &Budget::default())
                            .findings;
                        let own = found.iter().any(|f| f.rule == id);
                        let same = found.iter().any(|f| f.category == self.rule(id).category);
                        let hit = own || same && !self.compiled(id).own;
                        if (expected && !hit) || (!expected && own) {
                            failures.push(ExampleFailure {
                                rule: rule.id.clone(),
                                text,
                                expected,
                            });
                        }
                    }
                }
            }
        }
        Ok(failures)
    }

    /// What a rule says about itself.
    pub fn rule(&self, id: RuleId) -> &Rule {
        &self.rules[id.index()]
    }

    /// The rule of that name.
    pub fn find(&self, id: &str) -> Option<RuleId> {
        self.by_id.get(id).copied()
    }

    /// All rules in order.
    pub fn rules(&self) -> impl Iterator<Item = (RuleId, &Rule)> {
        (0u16..).map(RuleId).zip(&self.rules)
    }

    /// How many rules.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// True when there is no rule.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// May what a keyword leads to end in an order to a model, or in a text of its own?
    pub(crate) fn finds_injection(&self, action: Action) -> bool {
        match action {
            Action::Try(rule) => self.rule(rule).category == Category::Injection,
            Action::Detect(of) => !matches!(
                of,
                Detector::PrivateKey
                    | Detector::UrlCredentials
                    | Detector::AuthHeader
                    | Detector::PostalAddress
                    | Detector::PrivateWebKey
                    | Detector::FamilyName
                    | Detector::NameBeside
                    | Detector::ContactName
                    | Detector::SecretData
                    | Detector::HomeCoordinates
            ),
            Action::SecretName | Action::Context { .. } | Action::Within(_) => false,
            Action::Exact | Action::Reversed | Action::Rot13 | Action::Mark(_) => true,
        }
    }

    pub(crate) fn compiled(&self, id: RuleId) -> &Compiled {
        &self.compiled[id.index()]
    }
}

macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        &[$(RuleSource { name: $name, yaml: include_str!(concat!("../../../../../policies/rules/", $name)) }),*]
    };
}

static BUILTIN_SOURCES: &[RuleSource<'static>] = sources![
    "secrets-cloud.yml",
    "secrets-code.yml",
    "secrets-ai.yml",
    "secrets-saas.yml",
    "secrets-formats.yml",
    "secrets-services.yml",
    "secrets-observability.yml",
    "secrets-services-more.yml",
    "secrets-forms.yml",
    "secrets-keys.yml",
    "secrets-wallets.yml",
    "secrets-hashes.yml",
    "secrets-codes.yml",
    "secrets-locks.yml",
    "secrets-http.yml",
    "secrets-servers.yml",
    "secrets-commands.yml",
    "secrets-tools.yml",
    "secrets-handed.yml",
    "secrets-calls.yml",
    "secrets-passwords.yml",
    "secrets-told.yml",
    "secrets-prompts.yml",
    "secrets-generic.yml",
    "pii.yml",
    "pii-registers.yml",
    "pii-places.yml",
    "pii-labels.yml",
    "pii-addresses.yml",
    "pii-countries.yml",
    "pii-forms.yml",
    "pii-people.yml",
    "pii-carriers.yml",
    "pii-names.yml",
    "pii-told.yml",
    "injection.yml",
    "injection-intl.yml",
    "injection-frames.yml",
    "injection-roles.yml",
    "injection-roles-intl.yml",
    "injection-tongues.yml",
    "injection-agents.yml",
    "injection-errands.yml",
    "injection-handover.yml",
    "injection-readers.yml",
    "injection-commands.yml",
    "injection-code.yml",
    "injection-payloads.yml",
    "injection-links.yml",
    "injection-places.yml",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_rules_pass_their_own_examples() {
        let set = RuleSet::compile(BUILTIN_SOURCES).unwrap();
        let failures = set.failed_examples(BUILTIN_SOURCES).unwrap();
        assert!(failures.is_empty(), "{failures:#?}");
    }

    #[test]
    fn every_shipped_rule_has_examples_of_both_kinds() {
        for source in BUILTIN_SOURCES {
            for rule in load::load(source).unwrap().rules {
                assert!(
                    !rule.examples.is_empty() && !rule.counter_examples.is_empty(),
                    "{}",
                    rule.id
                );
            }
        }
    }

    #[test]
    fn refusals_say_where_and_what() {
        let check = |yaml: &str, field: &str, word: &str| {
            let error = RuleSet::compile(&[RuleSource {
                name: "t.yml",
                yaml,
            }])
            .unwrap_err();
            assert_eq!(error.field, field, "{error}");
            assert!(error.to_string().contains(word), "{error}");
        };
        let rule = |more: &str| format!("rules:\n- id: a\n  title: t\n  category: secret\n{more}");
        check(
            &rule("  keywords: [abc]\n  pattern: 'abc('\n"),
            "pattern",
            "t.yml:6: rule a",
        );
        check(&rule("  keywords: [abc]\n"), "pattern", "missing");
        check(&rule("  pattern: abc\n"), "keywords", "missing");
        check(
            &rule("  keywords: [ab]\n  pattern: abc\n"),
            "keywords",
            "3 to 64",
        );
        check(
            &rule("  keywords: [abc]\n  pattern: abc\n  checks: [nope]\n"),
            "checks",
            "nope",
        );
        check(
            &rule("  keywords: [abc]\n  pattern: 'a*'\n"),
            "pattern",
            "empty",
        );
        check(
            &rule("  keywords: [abc]\n  pattern: '(?:a{1000}){1000}'\n"),
            "pattern",
            "exceeded limit",
        );
        check(
            &rule("  keywords: [abc]\n  pattern: abc\n  colour: red\n"),
            "file",
            "colour",
        );
        check(
            "rules:\n- id: A b\n  title: t\n  category: pii\n  keywords: [abc]\n  pattern: abc\n",
            "id",
            "lower-case",
        );
        check("rules: [", "file", "t.yml");
    }
}
