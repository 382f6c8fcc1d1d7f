//! What happens when nobody wrote a policy.

use std::sync::LazyLock;

use dlp_scan::{Category, Rule, VAULT_RULE};
use domain::{Direction, PolicyAction};

use crate::lines::Treatment;
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
const EVERYDAY: &[&str] = &["email*", "ip*", "phone*", "*-mobile", "mac-address*"];

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

/// The built-in treatment of one rule in one direction. The secrets of a hosted server are stopped whatever policy says.
pub(crate) fn default_treatment(rule: &Rule, direction: Direction) -> Treatment {
    match &*rule.id {
        VAULT_RULE => Treatment {
            always: true,
            ..PolicyAction::Block.into()
        },
        _ => default_action(rule, direction).into(),
    }
}

/// The built-in action for one rule in one direction.
fn default_action(rule: &Rule, direction: Direction) -> PolicyAction {
    /// Each line's globs, compiled once.
    static GLOBS: LazyLock<Vec<Vec<Pattern>>> = LazyLock::new(|| {
        let compile = |g: &&str| Pattern::parse(g).expect("a test compiles the built-in globs");
        DEFAULTS
            .iter()
            .map(|line| line.rules.iter().map(compile).collect())
            .collect()
    });
    DEFAULTS
        .iter()
        .zip(&*GLOBS)
        .rev()
        .find(|(line, globs)| line.applies(rule, globs, direction))
        .map_or(PolicyAction::Block, |(line, _)| line.action)
}

impl DefaultBinding {
    fn applies(&self, rule: &Rule, globs: &[Pattern], direction: Direction) -> bool {
        self.category == rule.category
            && self.direction.is_none_or(|d| d == direction)
            && rule.confidence >= self.confidence_min
            && (globs.is_empty() || globs.iter().any(|g| g.matches(&rule.id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::rule;
    use domain::PolicyAction::{Block, Log, Redact, Warn};

    #[test]
    fn the_built_in_policy() {
        use Category::{Injection, Pii, Secret};
        // rule id, category, confidence, to the server, to the client
        let cases = [
            ("github-pat", Secret, 99, Block, Redact),
            ("generic-secret", Secret, 40, Block, Redact),
            ("credit-card", Pii, 95, Redact, Redact),
            ("iban", Pii, 95, Redact, Redact),
            ("us-ssn", Pii, 60, Redact, Redact),
            ("email", Pii, 90, Log, Log),
            ("email-address", Pii, 90, Log, Log),
            ("phone", Pii, 70, Log, Log),
            ("phone-us", Pii, 70, Log, Log),
            ("tr-mobile", Pii, 65, Log, Log),
            ("ipv4", Pii, 70, Log, Log),
            ("ip-address", Pii, 70, Log, Log),
            ("email-password", Secret, 70, Block, Redact),
            ("override-en", Injection, SURE, Warn, Block),
            ("hidden-tags", Injection, 100, Warn, Block),
            ("role-talk", Injection, SURE - 1, Warn, Warn),
        ];
        for (id, category, confidence, to_server, to_client) in cases {
            let rule = rule(id, category, confidence);
            let got = [Direction::ToServer, Direction::ToClient].map(|d| default_action(&rule, d));
            assert_eq!(got, [to_server, to_client], "{id}");
        }
    }
}
