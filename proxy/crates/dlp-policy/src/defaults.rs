//! What happens when nobody wrote a policy.

use dlp_scan::{Category, Rule};
use domain::{Direction, PolicyAction};

use crate::tools::Pattern;

/// One line of the built-in policy. A later line wins over an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefaultBinding {
    /// Which category.
    pub category: Category,
    /// Globs over rule ids; empty: every rule of the category.
    pub rules: &'static [&'static str],
    /// `None`: both directions.
    pub direction: Option<Direction>,
    /// Only rules at least this sure of a plain match.
    pub confidence_min: u8,
    /// What to do.
    pub action: PolicyAction,
}

/// The built-in policy, below everything an operator writes.
///
/// - A secret never reaches a server: the call is blocked, so that the agent learns of it. One that a
///   server sends is redacted, because the rest of the result is what the agent asked for.
/// - Personal data is redacted both ways, save what is the everyday content of tools and harmless by
///   itself (mail and network addresses, phone numbers): that is recorded, and can be raised by a line.
/// - Injection is a danger where a model will read it: what is sure is blocked on the way to the client,
///   the rest warns. On the way to the server it can only be quoted, so it warns.
pub const DEFAULTS: &[DefaultBinding] = &[
    line(
        Category::Secret,
        &[],
        Some(Direction::ToServer),
        0,
        PolicyAction::Block,
    ),
    line(
        Category::Secret,
        &[],
        Some(Direction::ToClient),
        0,
        PolicyAction::Redact,
    ),
    line(Category::Pii, &[], None, 0, PolicyAction::Redact),
    line(Category::Pii, EVERYDAY, None, 0, PolicyAction::Log),
    line(Category::Injection, &[], None, 0, PolicyAction::Warn),
    line(
        Category::Injection,
        &[],
        Some(Direction::ToClient),
        SURE,
        PolicyAction::Block,
    ),
];

/// Injection rules at least this sure block.
const SURE: u8 = 80;

/// Personal data that tools are full of.
const EVERYDAY: &[&str] = &["email*", "ip*", "phone*", "mac-address*", "url*"];

const fn line(
    category: Category,
    rules: &'static [&'static str],
    direction: Option<Direction>,
    confidence_min: u8,
    action: PolicyAction,
) -> DefaultBinding {
    DefaultBinding {
        category,
        rules,
        direction,
        confidence_min,
        action,
    }
}

/// The built-in action for one rule in one direction.
pub(crate) fn default_action(rule: &Rule, direction: Direction) -> PolicyAction {
    DEFAULTS
        .iter()
        .rev()
        .find(|line| line.applies(rule, direction))
        .map_or(PolicyAction::Block, |line| line.action)
}

impl DefaultBinding {
    fn applies(&self, rule: &Rule, direction: Direction) -> bool {
        self.category == rule.category
            && self.direction.is_none_or(|d| d == direction)
            && rule.confidence >= self.confidence_min
            && (self.rules.is_empty() || self.rules.iter().any(|g| glob(g, &rule.id)))
    }
}

fn glob(glob: &str, id: &str) -> bool {
    Pattern::parse(glob).is_ok_and(|p| p.matches(id))
}
