//! The allowlist: findings that are let pass and counted.
//!
//! A line names what has to fit, and all of it has to. A line for a value lets that value pass and no other: values are
//! compared by their keyed fingerprint, over the whole (decoded) value. A line that names only a place or a rule lets
//! that rule's finding pass, not what another rule finds in the same text. What lies within a value that may pass is a part
//! of it, unless the line gives a pattern for another rule: the rest of such a value is chosen by whoever wrote it.

use dlp_scan::{Finding, Layers, Rule};
use domain::{AllowLine, Direction, Policy};

use crate::error::{Level, PolicyError, Problem};
use crate::lines::{LineRef, rule_mask};
use crate::place::PlacePattern;
use crate::tools::Pattern;

/// Most lines in one allowlist.
pub(crate) const ALLOW_MAX: usize = 1024;

/// The compiled allowlists of a tenant and of one of its servers.
#[derive(Debug, Default)]
pub struct Allow {
    lines: Vec<Line>,
    needs_places: bool,
}

/// What is asked of a message whose findings may be allowed.
#[derive(Clone, Copy)]
pub struct AllowInput<'a> {
    /// Which way it goes.
    pub direction: Direction,
    /// The tool it belongs to; lines that name a tool fit no message without one.
    pub tool: Option<&'a str>,
    /// Where a finding is, as audit records write it. Asked only if some line names a path.
    pub place: &'a dyn Fn(&Finding) -> String,
}

impl std::fmt::Debug for AllowInput<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AllowInput")
            .field("direction", &self.direction)
            .field("tool", &self.tool)
            .finish_non_exhaustive()
    }
}

/// For each finding of a message, the line that lets it pass.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Allowed(Vec<Option<LineRef>>);

impl Allowed {
    /// The line that lets the finding with this index pass.
    pub fn by(&self, finding: usize) -> Option<LineRef> {
        self.0.get(finding).copied().flatten()
    }

    /// How many findings are let pass.
    pub fn count(&self) -> usize {
        self.0.iter().flatten().count()
    }
}

impl Allow {
    pub(crate) fn compile(
        tenant: &Policy,
        server: &Policy,
        rules: &[&Rule],
        problems: &mut Vec<PolicyError>,
    ) -> Self {
        let mut lines = Vec::new();
        let mut marks = 0;
        for (level, policy) in [(Level::Tenant, tenant), (Level::Server, server)] {
            let count = policy.allow.len();
            if count > ALLOW_MAX {
                problems.push(PolicyError {
                    level,
                    field: "allow".into(),
                    problem: Problem::TooMany {
                        count,
                        max: ALLOW_MAX,
                    },
                });
                continue;
            }
            for (index, raw) in policy.allow.iter().enumerate() {
                let at = LineRef { level, index };
                match Line::compile(raw, at, rules, &mut marks) {
                    Ok(line) => lines.push(line),
                    Err((field, problem)) => problems.push(PolicyError {
                        level,
                        field: format!(
                            "allow[{index}]{}{field}",
                            if field.is_empty() { "" } else { "." }
                        ),
                        problem,
                    }),
                }
            }
        }
        Self {
            needs_places: lines.iter().any(|l| l.place.is_some()),
            lines,
        }
    }

    /// Whether there is no line.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Which of a message's findings are let pass. Costs nothing where there is no line or no finding.
    pub fn of(&self, findings: &[Finding], message: &AllowInput<'_>) -> Allowed {
        if self.lines.is_empty() || findings.is_empty() {
            return Allowed::default();
        }
        let mut allowed = Vec::with_capacity(findings.len());
        let mut whole: Vec<(&Finding, &Line)> = Vec::new();
        for finding in findings {
            let place = self.needs_places.then(|| (message.place)(finding));
            let mut fitting = self.lines.iter();
            let line = fitting.find(|l| l.fits(finding, message, place.as_deref()));
            if let Some(line) = line.filter(|l| l.of_value()) {
                whole.push((finding, line));
            }
            allowed.push(line.map(|l| l.at));
        }
        // What lies inside a value that may pass is a part of it.
        for (finding, slot) in findings.iter().zip(&mut allowed) {
            if slot.is_none() {
                let mut around = whole.iter();
                let inherits = |(outer, line): &&(&Finding, &Line)| {
                    covers(outer, finding) && (line.value.is_some() || line.is_for(finding))
                };
                *slot = around.find(inherits).map(|(_, line)| line.at);
            }
        }
        Allowed(allowed)
    }
}

/// Is all that `inner` is about part of what `outer` is about? Only where both were seen through the same encodings:
/// a decoder may have made of the place something which the outer value does not show.
fn covers(outer: &Finding, inner: &Finding) -> bool {
    outer.leaf == inner.leaf
        && outer.start <= inner.start
        && inner.end <= outer.end
        && outer.layers == inner.layers
        // Of a chain that is full it is not known what else there was.
        && outer.layers.len() < Layers::MAX
}

/// One compiled line.
#[derive(Debug)]
struct Line {
    at: LineRef,
    value: Option<[u8; 16]>,
    /// The bit of [`Finding::marks`] that its pattern sets.
    mark: Option<u32>,
    place: Option<PlacePattern>,
    /// By rule index.
    rules: Box<[bool]>,
    tool: Option<Pattern>,
    direction: Option<Direction>,
}

impl Line {
    fn compile(
        raw: &AllowLine,
        at: LineRef,
        rules: &[&Rule],
        marks: &mut u32,
    ) -> Result<Self, (&'static str, Problem)> {
        let named = raw.value.is_some() || raw.pattern.is_some();
        if !named && raw.path.is_none() && raw.rule.is_none() {
            return Err(("", Problem::AllowsAll));
        }
        let value = raw.value.as_deref().map(fingerprint).transpose();
        let place = raw.path.as_deref().map(PlacePattern::parse).transpose();
        let tool = raw.tool.as_deref().map(Pattern::parse).transpose();
        let (rules, _) = rule_mask(rules, raw.rule.as_deref(), raw.category.as_deref())?;
        let mark = raw.pattern.is_some().then(|| {
            *marks += 1;
            *marks - 1
        });
        Ok(Self {
            at,
            value: value.map_err(|p| ("value", p))?,
            mark,
            place: place.map_err(|p| ("path", p))?,
            rules,
            tool: tool.map_err(|p| ("tool", p))?,
            direction: raw.direction,
        })
    }

    /// Whether it is about a value, and not only about a place or a rule.
    fn of_value(&self) -> bool {
        self.value.is_some() || self.mark.is_some()
    }

    /// Whether the finding is of a rule that the line is for.
    fn is_for(&self, finding: &Finding) -> bool {
        self.rules.get(finding.rule.index()).is_some_and(|r| *r)
    }

    fn fits(&self, finding: &Finding, message: &AllowInput<'_>, place: Option<&str>) -> bool {
        let marked = |bit: u32| finding.marks.checked_shr(bit).is_some_and(|m| m & 1 == 1);
        self.is_for(finding)
            && self.direction.is_none_or(|d| d == message.direction)
            && self
                .value
                .is_none_or(|v| v == *finding.fingerprint.as_bytes())
            && self.mark.is_none_or(marked)
            && self
                .tool
                .as_ref()
                .is_none_or(|t| message.tool.is_some_and(|name| t.matches(name)))
            && self
                .place
                .as_ref()
                .is_none_or(|p| place.is_some_and(|place| p.matches(place)))
    }
}

/// 32 hexadecimal digits.
fn fingerprint(text: &str) -> Result<[u8; 16], Problem> {
    let digits = text.as_bytes();
    let mut out = [0; 16];
    let lower = |b: &u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() != 32 || !digits.iter().all(lower) {
        return Err(Problem::BadFingerprint);
    }
    for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |b: u8| if b <= b'9' { b - b'0' } else { b - b'a' + 10 };
        *byte = digit(pair[0]) << 4 | digit(pair[1]);
    }
    Ok(out)
}
