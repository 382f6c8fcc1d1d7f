//! The rule set that a server's messages are judged by: the built-in rules, the operator's, the tenant's, its own.

use std::sync::Arc;

use dlp_scan::{AllowPattern, Own, RuleError, RuleSet, RuleSource, ValueList};
use domain::{AllowLine, Detection};

use crate::error::Problem;
use crate::lines::category;

/// The built-in rules and the operator's files beside them.
///
/// # Errors
/// A file that does not compile: which, where and why.
pub fn base_rules(files: &[(String, String)]) -> Result<Arc<RuleSet>, RuleError> {
    let builtin = RuleSet::builtin();
    if files.is_empty() {
        return Ok(Arc::clone(builtin));
    }
    let sources = sources(files);
    let own = Own {
        sources: &sources,
        ..Own::default()
    };
    builtin.with(&own).map(Arc::new)
}

/// A rule set with what a tenant or a server adds to it; the same one if that is nothing.
///
/// The patterns of the allowlist become part of the set, because only the scanner sees decoded values. Call it for
/// the tenant, then for each of its servers with the tenant's set: [`Allow`](crate::Allow) counts on that order.
///
/// # Errors
/// The field (`rules`, `values.vault`, `policy.allow[2].pattern`) and what is wrong with it.
pub fn own_rules(
    base: &Arc<RuleSet>,
    detection: &Detection,
    allow: &[AllowLine],
) -> Result<Arc<RuleSet>, OwnError> {
    if detection.is_empty() && allow.is_empty() {
        return Ok(Arc::clone(base));
    }
    let values: Vec<Vec<&str>> = detection
        .values
        .iter()
        .map(|list| list.values.iter().map(|v| v.expose()).collect())
        .collect();
    let mut lists = Vec::with_capacity(values.len());
    for (list, values) in detection.values.iter().zip(&values) {
        let category = category(&list.category).map_err(|problem| OwnError {
            field: format!("values.{}.category", list.id),
            problem: problem.to_string(),
        })?;
        lists.push(ValueList {
            id: &list.id,
            title: &list.title,
            category,
            values,
        });
    }
    let names: Vec<String> = (0..allow.len())
        .map(|i| format!("policy.allow[{i}]"))
        .collect();
    let patterns = allow.iter().zip(&names).filter_map(|(line, name)| {
        let pattern = line.pattern.as_deref()?;
        Some(AllowPattern { name, pattern })
    });
    let sources = sources(&detection.rules);
    let own = Own {
        sources: &sources,
        lists: &lists,
        prints: detection.prints.as_ref(),
        allow_patterns: &patterns.collect::<Vec<_>>(),
        keep_covered: allow.iter().any(|l| l.value.is_none()),
    };
    base.with(&own)
        .map(Arc::new)
        .map_err(|e| located(e, detection))
}

/// What a tenant or a server adds to the rules was refused, whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct OwnError {
    /// The field inside the tenant or the server.
    pub field: String,
    /// What is wrong with it and what to do.
    pub problem: String,
}

impl From<(String, Problem)> for OwnError {
    fn from((field, problem): (String, Problem)) -> Self {
        Self {
            field,
            problem: problem.to_string(),
        }
    }
}

fn sources(files: &[(String, String)]) -> Vec<RuleSource<'_>> {
    files
        .iter()
        .map(|(name, yaml)| RuleSource { name, yaml })
        .collect()
}

fn located(error: RuleError, detection: &Detection) -> OwnError {
    let RuleError {
        file,
        rule,
        field,
        problem,
        ..
    } = &error;
    if file.starts_with("policy.allow[") {
        return OwnError {
            field: format!("{file}.{field}"),
            problem: problem.clone(),
        };
    }
    let list = rule.as_ref().filter(|_| file == "value list");
    if let Some(id) = list {
        return OwnError {
            field: format!("values.{id}"),
            problem: format!("{field}: {problem}"),
        };
    }
    let index = detection.rules.iter().position(|(name, _)| name == file);
    OwnError {
        field: index.map_or_else(|| "rules".into(), |i| format!("rules[{i}]")),
        problem: error.to_string(),
    }
}
