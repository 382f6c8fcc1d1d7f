//! Where in the file something is wrong, and what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};

/// A configuration that was refused, whole: all that is wrong with it, a line each, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(Vec<ConfigError>);

/// More than this are counted only.
const SHOWN_MAX: usize = 20;

impl ConfigErrors {
    /// Of several about one field the first is kept; the others follow from it.
    pub(super) fn new(mut errors: Vec<ConfigError>) -> Self {
        errors.sort_by(|a, b| (a.at, &a.field).cmp(&(b.at, &b.field)));
        errors.dedup_by(|a, b| a.field == b.field);
        Self(errors)
    }

    /// The first in the file.
    #[cfg(test)]
    pub(super) fn first(&self) -> &ConfigError {
        &self.0[0]
    }
}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().take(SHOWN_MAX).enumerate() {
            let line_break = if i == 0 { "" } else { "\n" };
            write!(f, "{line_break}{error}")?;
        }
        match self.0.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for ConfigErrors {}

/// One thing that is wrong with a configuration. Shows no secret.
///
/// `weir.yaml:12:9: tenants.acme.servers.git.upstream.url: "ftp" is no scheme; use http or https`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, or `command line`.
    pub file: PathBuf,
    /// Line and column, from 1, where they are known.
    pub at: Option<(u64, u64)>,
    /// The field's path from the top; empty for the file as a whole.
    pub field: FieldPath,
    /// What is wrong and what to do.
    pub problem: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some((line, column)) = self.at {
            write!(f, ":{line}:{column}")?;
        }
        if !self.field.is_top() {
            write!(f, ": {}", self.field)?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl ConfigError {
    /// An error about the file as a whole.
    pub(super) fn file(file: &Path, problem: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            at: None,
            field: FieldPath::default(),
            problem: problem.into(),
        }
    }
}

/// An error whose place in the file is still to be looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldError {
    pub field: FieldPath,
    pub problem: String,
}

/// Path of a field from the top of the file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FieldPath(Vec<Step>);

/// One step down.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// To the entry of that name.
    Key(String),
    /// To the element with that index, from 0.
    Index(usize),
}

impl FieldPath {
    /// The path one entry further down.
    #[must_use]
    pub fn key(&self, name: &str) -> Self {
        self.with(Step::Key(name.into()))
    }

    /// The path one element further down.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(Step::Index(index))
    }

    /// The path with one more step.
    #[must_use]
    pub fn with(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// The path without its last step.
    #[must_use]
    pub fn parent(&self) -> Self {
        Self(self.0[..self.0.len().saturating_sub(1)].to_vec())
    }

    /// The path with `bindings[3].rule` further down.
    #[must_use]
    pub fn join(&self, text: &str) -> Self {
        let mut path = self.clone();
        for part in text.split(['.', '[']) {
            let index = part.strip_suffix(']').and_then(|i| i.parse().ok());
            path = match index {
                Some(index) => path.index(index),
                None => path.key(part),
            };
        }
        path
    }

    /// The steps from the top.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// True for the file as a whole.
    pub fn is_top(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn error<T>(&self, problem: impl Into<String>) -> Result<T, FieldError> {
        Err(FieldError {
            field: self.clone(),
            problem: problem.into(),
        })
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(name) if i == 0 => f.write_str(name)?,
                Step::Key(name) => write!(f, ".{name}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_like_the_file() {
        let path = FieldPath::default()
            .key("tenants")
            .key("a")
            .key("keys")
            .index(2);
        assert_eq!(
            path.join("tools.deny[0]").to_string(),
            "tenants.a.keys[2].tools.deny[0]"
        );
        assert!(FieldPath::default().is_top());
    }
}
