//! What the runner found on its machine.

use serde::{Deserialize, Serialize};

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// As it should be.
    Ok,
    /// Works, with something to know.
    Warn,
    /// Sandboxes cannot run before this is mended.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What, in a word or two.
    pub name: String,
    /// How it came out.
    pub state: CheckState,
    /// What was found.
    pub found: String,
    /// The exact command that mends it, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
}

/// The whole report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doctor {
    /// Version of the runner.
    pub runner: String,
    /// True if sandboxes can run.
    pub fit: bool,
    /// All checks, in the order they were made.
    pub checks: Vec<Check>,
}
