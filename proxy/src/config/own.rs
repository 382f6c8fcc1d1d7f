//! What a tenant or a server has looked for: rule files and lists of values, read from where the file says they are.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use dlp_scan::RuleSet;
use domain::{AllowLine, Detection, Secret, ValueList};

use super::error::{FieldError, FieldPath};
use super::load::{FILE_BYTES_MAX, read_bounded};
use super::raw;
use super::resolve::Resolver;

impl Resolver<'_> {
    /// Reads the files that `rules` and `values` name.
    pub(super) fn detection(
        &mut self,
        rules: &[PathBuf],
        values: BTreeMap<String, raw::Values>,
        at: &FieldPath,
    ) -> Option<Detection> {
        let rules = self.rules(rules, &at.key("rules"));
        let count = values.len();
        let mut lists = Vec::with_capacity(count);
        for (id, raw) in values {
            let at = at.key("values").key(&id);
            let list = self.value_list(id, raw, &at);
            lists.extend(self.ok(list).flatten());
        }
        let rules = rules.filter(|_| lists.len() == count)?;
        Some(Detection {
            rules,
            values: lists,
            prints: None,
        })
    }

    /// None if some of its values cannot be read.
    fn value_list(
        &mut self,
        id: String,
        raw: raw::Values,
        at: &FieldPath,
    ) -> Result<Option<ValueList>, FieldError> {
        let mut values = Vec::new();
        for (i, value) in raw.list.iter().enumerate() {
            let value = self.secret(value, &at.key("list").index(i));
            values.extend(self.ok(value));
        }
        let all_read = values.len() == raw.list.len();
        if let Some(file) = &raw.file {
            let path = self.path(file);
            let text = read_bounded(&path, FILE_BYTES_MAX)
                .or_else(|p| at.key("file").error(format!("{} {p}", path.display())))?;
            for (nth, line) in text.lines().enumerate().filter(|(_, l)| !l.is_empty()) {
                let bytes = RuleSet::VALUE_BYTES_MIN..=RuleSet::VALUE_BYTES_MAX;
                if !bytes.contains(&line.len()) {
                    let (line, len) = (nth + 1, line.len());
                    let (min, max) = bytes.into_inner();
                    return at.key("file").error(format!(
                        "{}, line {line}: a value of {len} bytes; {min} to {max} are possible",
                        path.display()
                    ));
                }
                values.push(Secret::new(line));
            }
            self.watch(path);
        }
        if !all_read {
            return Ok(None);
        }
        if values.is_empty() {
            return at.error("holds no value; name some under `list`, or a `file` with one a line");
        }
        Ok(Some(ValueList {
            title: raw
                .title
                .unwrap_or_else(|| format!("Value of the list {id}")),
            category: raw.category.unwrap_or_else(|| "secret".into()),
            id,
            values,
        }))
    }

    /// The rule set of a tenant or a server: what stands above it and what it adds, as far as that is right.
    pub(super) fn rules_with(
        &mut self,
        above: Option<&Arc<RuleSet>>,
        detection: Option<&Detection>,
        allow: &[AllowLine],
        at: &FieldPath,
    ) -> Option<Arc<RuleSet>> {
        let (above, detection) = (above?, detection?);
        let rules = dlp_policy::own_rules(above, detection, allow);
        let rules = self.ok(rules.or_else(|e| at.join(&e.field).error(e.problem)));
        // Policy can be checked without the patterns of its allowlist.
        rules.or_else(|| dlp_policy::own_rules(above, detection, &[]).ok())
    }
}
