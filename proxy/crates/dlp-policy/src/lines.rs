//! Lines of policy, compiled for one rule set, and what they make of the actions.

use dlp_scan::{Category, Rule};
use domain::{Direction, Policy, PolicyAction, PolicyBinding, RedactForm, nearest};

use crate::error::{Level, PolicyError, Problem};
use crate::tools::Pattern;

/// Most bindings in one policy.
pub(crate) const BINDINGS_MAX: usize = 1024;

/// What is done with a finding: the action and, where that is a redaction, its form. Ordered by how little passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Treatment {
    pub action: PolicyAction,
    pub form: RedactForm,
    /// No line makes it milder than a redaction, and neither does a dry run, an allowlist or a plugin.
    pub always: bool,
}

impl Treatment {
    /// What a line makes of this one.
    fn by(self, line: Self) -> Self {
        match self.always {
            false => line,
            // A form could show a part of the value.
            true => Self {
                action: match line.action {
                    PolicyAction::Redact => PolicyAction::Redact,
                    _ => PolicyAction::Block,
                },
                form: RedactForm::default(),
                always: true,
            },
        }
    }
}

impl From<PolicyAction> for Treatment {
    fn from(action: PolicyAction) -> Self {
        Self {
            action,
            form: RedactForm::default(),
            always: false,
        }
    }
}

/// Where a line of policy stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineRef {
    /// Whose policy.
    pub level: Level,
    /// Its index in that policy's list, from 0.
    pub index: usize,
}

impl std::fmt::Display for LineRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}[{}]", self.level, self.index)
    }
}

/// The lines of a tenant and of one of its servers, weakest first.
#[derive(Debug)]
pub(crate) struct Lines {
    lines: Vec<Line>,
    /// The distinct tool patterns that `lines` name.
    patterns: Vec<Pattern>,
}

impl Lines {
    pub(crate) fn compile(
        tenant: &Policy,
        server: &Policy,
        rules: &[&Rule],
        problems: &mut Vec<PolicyError>,
    ) -> Self {
        let mut compiler = Compiler {
            rules,
            lines: Vec::new(),
            patterns: Vec::new(),
            texts: Vec::new(),
        };
        problems.extend(compiler.add(Level::Tenant, tenant));
        problems.extend(compiler.add(Level::Server, server));
        let Compiler {
            mut lines,
            patterns,
            ..
        } = compiler;
        // Stable: the tenant's lines come first and later lines after earlier ones (grounds 5 and 6).
        lines.sort_by_key(|line| line.rank);
        Self { lines, patterns }
    }

    /// The distinct tool patterns; the index of one is its number in [`Lines::apply`].
    pub(crate) fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// Applies the lines over the built-in actions. `matched` says which tool patterns count.
    pub(crate) fn apply(
        &self,
        builtin: &[Treatment],
        direction: Direction,
        matched: &dyn Fn(usize) -> bool,
    ) -> Vec<Treatment> {
        let mut treatments = builtin.to_vec();
        for line in self.lines.iter().filter(|l| l.pattern.is_none_or(matched)) {
            for (rule, treatment) in treatments.iter_mut().enumerate() {
                if line.applies(rule, direction) {
                    *treatment = treatment.by(line.treatment);
                }
            }
        }
        treatments
    }

    /// The line that decides about a rule, if any does.
    pub(crate) fn winner(
        &self,
        rule: usize,
        direction: Direction,
        matched: &dyn Fn(usize) -> bool,
    ) -> Option<LineRef> {
        let mut fitting = self.lines.iter().rev();
        fitting
            .find(|l| l.pattern.is_none_or(matched) && l.applies(rule, direction))
            .map(|l| l.at)
    }

    /// Per rule, the strictest action that could win for some tool. A line with a tool pattern can win
    /// as long as no stronger line without one follows; of two with the same pattern the stronger wins.
    pub(crate) fn strictest(&self, builtin: &[Treatment], direction: Direction) -> Vec<Treatment> {
        let mut by_pattern = vec![None; self.patterns.len()];
        let strictest_of = |(rule, builtin): (usize, &Treatment)| {
            by_pattern.fill(None);
            let mut without_tool = *builtin;
            for line in self.lines.iter().filter(|l| l.applies(rule, direction)) {
                match line.pattern {
                    Some(pattern) => by_pattern[pattern] = Some(builtin.by(line.treatment)),
                    None => {
                        by_pattern.fill(None);
                        without_tool = builtin.by(line.treatment);
                    }
                }
            }
            let by_tool = by_pattern.iter().flatten().copied();
            by_tool.fold(without_tool, Treatment::max)
        };
        builtin.iter().enumerate().map(strictest_of).collect()
    }
}

/// One compiled binding.
#[derive(Debug)]
struct Line {
    rank: Rank,
    /// Index of its tool pattern.
    pattern: Option<usize>,
    direction: Option<Direction>,
    /// By rule index.
    rules: Box<[bool]>,
    treatment: Treatment,
    at: LineRef,
}

/// Grounds 2 to 4, in this order; grounds 5 and 6 are the order of the lines.
type Rank = (u8, bool, u8, bool);

impl Line {
    fn applies(&self, rule: usize, direction: Direction) -> bool {
        self.rules[rule] && self.direction.is_none_or(|d| d == direction)
    }
}

struct Compiler<'a> {
    rules: &'a [&'a Rule],
    lines: Vec<Line>,
    patterns: Vec<Pattern>,
    texts: Vec<String>,
}

impl Compiler<'_> {
    /// Adds the lines of a policy; what is wrong with the others.
    fn add(&mut self, level: Level, policy: &Policy) -> Vec<PolicyError> {
        let count = policy.bindings.len();
        if count > BINDINGS_MAX {
            let problem = Problem::TooMany {
                count,
                max: BINDINGS_MAX,
            };
            return vec![PolicyError {
                level,
                field: "bindings".into(),
                problem,
            }];
        }
        let mut problems = Vec::new();
        for (index, binding) in policy.bindings.iter().enumerate() {
            match self.line(binding, LineRef { level, index }) {
                Ok(line) => self.lines.push(line),
                Err((field, problem)) => problems.push(PolicyError {
                    level,
                    field: format!("bindings[{index}].{field}"),
                    problem,
                }),
            }
        }
        problems
    }

    fn line(
        &mut self,
        binding: &PolicyBinding,
        at: LineRef,
    ) -> Result<Line, (&'static str, Problem)> {
        if binding.form.is_some() && binding.action != PolicyAction::Redact {
            return Err(("form", Problem::FormWithoutRedact));
        }
        let (rules, rule_rank) = rule_mask(
            self.rules,
            binding.rule.as_deref(),
            binding.category.as_deref(),
        )?;
        let pattern = match &binding.tool {
            Some(text) => Some(self.pattern(text).map_err(|p| ("tool", p))?),
            None => None,
        };
        let tool_rank = pattern.map_or(0, |p| 1 + u8::from(self.patterns[p].is_exact()));
        Ok(Line {
            rank: (
                rule_rank,
                binding.category.is_some(),
                tool_rank,
                binding.direction.is_some(),
            ),
            pattern,
            direction: binding.direction,
            rules,
            treatment: Treatment {
                action: binding.action,
                form: binding.form.unwrap_or_default(),
                always: false,
            },
            at,
        })
    }

    fn pattern(&mut self, text: &str) -> Result<usize, Problem> {
        if let Some(at) = self.texts.iter().position(|t| t == text) {
            return Ok(at);
        }
        self.patterns.push(Pattern::parse(text)?);
        self.texts.push(text.into());
        Ok(self.patterns.len() - 1)
    }
}

/// Which rules a line names, by index, and how closely: 0 without `rule`, 1 by a glob, 2 by an id.
type RuleMask = (Box<[bool]>, u8);

/// The mask of a line, or the field at fault and what is wrong with it.
pub(crate) fn rule_mask(
    rules: &[&Rule],
    rule: Option<&str>,
    category: Option<&str>,
) -> Result<RuleMask, (&'static str, Problem)> {
    let (mut mask, rank) = by_id(rules, rule).map_err(|p| ("rule", p))?;
    if let Some(word) = category {
        narrow(rules, &mut mask, word, rule.is_some()).map_err(|p| ("category", p))?;
    }
    Ok((mask, rank))
}

fn by_id(rules: &[&Rule], rule: Option<&str>) -> Result<RuleMask, Problem> {
    let Some(text) = rule else {
        return Ok((vec![true; rules.len()].into(), 0));
    };
    let pattern = Pattern::parse(text)?;
    let mask: Box<[bool]> = rules.iter().map(|r| pattern.matches(&r.id)).collect();
    match (mask.contains(&true), pattern.is_exact()) {
        (true, exact) => Ok((mask, 1 + u8::from(exact))),
        (false, true) => Err(Problem::UnknownRule {
            rule: text.into(),
            near: nearest(text, rules.iter().map(|r| &*r.id)).map(str::to_owned),
        }),
        (false, false) => Err(Problem::NoRuleMatches { glob: text.into() }),
    }
}

fn narrow(rules: &[&Rule], mask: &mut [bool], word: &str, has_rule: bool) -> Result<(), Problem> {
    let category = category(word)?;
    for (applies, rule) in mask.iter_mut().zip(rules) {
        *applies &= rule.category == category;
    }
    if mask.contains(&true) || !has_rule {
        Ok(())
    } else {
        Err(Problem::CategoryMismatch {
            category: word.into(),
        })
    }
}

/// The category of that name.
pub(crate) fn category(word: &str) -> Result<Category, Problem> {
    [Category::Secret, Category::Pii, Category::Injection]
        .into_iter()
        .find(|c| c.as_str() == word)
        .ok_or_else(|| Problem::UnknownCategory {
            category: word.into(),
        })
}
