//! From a plugin's word to a verdict that can be believed to fit the message.

use std::sync::Arc;

use dlp_policy::{EvalError, Mark, MessageView, Verdict, ViewKind};
use domain::PolicyAction;

use crate::contract::exports::weir::policy::policy as out;
use crate::contract::weir::policy::types::Action;

/// Marks and edits of one verdict.
const CHANGES_MAX: usize = 1024;
/// Bytes of all replacements.
const REPLACED_BYTES_MAX: usize = 1 << 20;
/// Letters of a label, bytes of a reason.
const LABEL_BYTES_MAX: usize = 64;
const REASON_BYTES_MAX: usize = 256;

/// Checks every index, range and text of a verdict.
pub(crate) fn checked(said: out::Verdict, view: &MessageView) -> Result<Verdict, EvalError> {
    if said.marks.len() + said.edits.len() > CHANGES_MAX
        || said.rulings.len() > view.findings().len().max(CHANGES_MAX)
    {
        return Err(EvalError::OutOfBounds);
    }
    let replaced: usize = said.edits.iter().map(|edit| edit.replacement.len()).sum();
    if replaced > REPLACED_BYTES_MAX {
        return Err(EvalError::OutOfBounds);
    }
    let mut marks = Vec::with_capacity(said.marks.len() + said.edits.len());
    for mark in said.marks {
        fits(view, mark.leaf, mark.start, mark.end)?;
        if !is_label(&mark.label) {
            return Err(EvalError::BadVerdict);
        }
        marks.push(Mark {
            leaf: mark.leaf,
            start: mark.start,
            end: mark.end,
            label: mark.label.into(),
            action: action(mark.action),
            replacement: None,
        });
    }
    for edit in said.edits {
        let kind = fits(view, edit.leaf, edit.start, edit.end)?;
        if !matches!(kind, ViewKind::Key | ViewKind::Text) {
            return Err(EvalError::BadVerdict);
        }
        marks.push(Mark {
            leaf: edit.leaf,
            start: edit.start,
            end: edit.end,
            label: "edit".into(),
            action: PolicyAction::Redact,
            replacement: Some(edit.replacement.into()),
        });
    }
    let mut findings = Vec::with_capacity(said.rulings.len());
    for ruling in said.rulings {
        if ruling.finding as usize >= view.findings().len() {
            return Err(EvalError::BadVerdict);
        }
        findings.push((ruling.finding, action(ruling.action)));
    }
    Ok(Verdict {
        action: said
            .action
            .map(action)
            .filter(|a| *a != PolicyAction::Ignore),
        reason: reason(&said.reason),
        findings,
        marks,
    })
}

fn fits(view: &MessageView, leaf: u32, start: u32, end: u32) -> Result<ViewKind, EvalError> {
    let leaf = view.leaf_at(leaf).ok_or(EvalError::BadVerdict)?;
    let text = view.cut(leaf.text);
    match text.get(start as usize..end as usize) {
        Some(_) => Ok(leaf.kind),
        None => Err(EvalError::BadVerdict),
    }
}

fn is_label(label: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    !label.is_empty() && label.len() <= LABEL_BYTES_MAX && label.bytes().all(plain)
}

/// One line, cut and without control characters.
fn reason(text: &str) -> Option<Arc<str>> {
    let cut = &text[..text.floor_char_boundary(REASON_BYTES_MAX)];
    let line: String = cut
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    (!line.trim().is_empty()).then(|| line.trim().into())
}

fn action(action: Action) -> PolicyAction {
    match action {
        Action::Ignore => PolicyAction::Ignore,
        Action::Log => PolicyAction::Log,
        Action::Warn => PolicyAction::Warn,
        Action::Redact => PolicyAction::Redact,
        Action::Block => PolicyAction::Block,
    }
}
