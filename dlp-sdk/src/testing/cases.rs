//! Recorded messages with the decisions expected, from YAML.
//!
//! The cases of one file run in order and share granted state, so that a file can tell a story.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::{About, FoundHere, Grant, TestHost, message};
use crate::bindings::exports::weir::policy::policy as raw;
use crate::{Action, Direction, Message, Plugin};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default = "no_config")]
    config: Value,
    /// What a binding would grant.
    #[serde(default)]
    grants: Vec<Grant>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    message: Value,
    #[serde(default)]
    direction: Way,
    call: Option<CallOf>,
    server: Option<String>,
    tenant: Option<String>,
    session: Option<String>,
    #[serde(default)]
    principal: BTreeMap<String, String>,
    #[serde(default)]
    findings: Vec<Found>,
    now_ms: Option<u64>,
    expect: Expect,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "snake_case")]
enum Way {
    #[default]
    ToServer,
    ToClient,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallOf {
    method: String,
    tool: Option<String>,
    id: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Found {
    rule: String,
    category: String,
    path: String,
    text: String,
    action: Word,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[serde(rename_all = "snake_case")]
enum Word {
    Pass,
    Log,
    Warn,
    Redact,
    Block,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    action: Word,
    /// A part of the reason.
    reason: Option<String>,
    /// Labels of the marks, in order.
    marks: Option<Vec<String>>,
    /// What leaves say after edits, by path.
    #[serde(default)]
    leaves: BTreeMap<String, String>,
}

fn no_config() -> Value {
    Value::Object(Default::default())
}

/// Runs every `*.yml` of a folder.
///
/// # Panics
/// A case does not come out as it says, or there is no case.
pub fn run_case_files<P: Plugin>(folder: impl AsRef<Path>) {
    let folder = folder.as_ref();
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|ext| ext == "yml" || ext == "yaml")
        })
        .collect();
    files.sort();
    let mut wrong = Vec::new();
    let mut count = 0;
    for file in &files {
        let text =
            std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        match check_cases::<P>(&text) {
            Ok(n) => count += n,
            Err(differences) => {
                let named = differences.into_iter();
                wrong.extend(named.map(|difference| format!("{}: {difference}", file.display())));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 0, "no case in {}", folder.display());
}

/// Runs the cases of one YAML text and counts them.
///
/// # Errors
/// One line for each difference.
pub fn check_cases<P: Plugin>(yaml: &str) -> Result<usize, Vec<String>> {
    let file: File = serde_saphyr::from_str(yaml).map_err(|error| vec![error.to_string()])?;
    let plugin: P = crate::glue::configure(&file.config.to_string())
        .map_err(|error| vec![format!("the configuration is refused: {error}")])?;
    let host = TestHost::granting(&file.grants);
    let mut wrong = Vec::new();
    for case in &file.cases {
        if let Some(now_ms) = case.now_ms {
            host.set_now_ms(now_ms);
        }
        let about = about(case);
        host.set_session(about.session.as_deref().unwrap_or_default());
        host.shows(&case.message);
        let message = message(&case.message, &about);
        let verdict = plugin.evaluate(&message, &host).into_raw();
        let differences = differences(case, &message, &verdict);
        let denied = host.denied();
        // What a plugin that was denied something makes of that may be what is expected.
        if !differences.is_empty() {
            wrong.extend(denied.iter().map(|grant| {
                let (name, grant) = (&case.name, grant.as_str());
                format!("{name}: the plugin asked for {grant:?}, which is not granted; add it to `grants` at the top of the file")
            }));
        }
        wrong.extend(differences);
    }
    if wrong.is_empty() {
        Ok(file.cases.len())
    } else {
        Err(wrong)
    }
}

fn about(case: &Case) -> About {
    let defaults = About::default();
    let call = case.call.as_ref().map(|call| {
        let id = call.id.as_ref().map(Value::to_string);
        (call.method.clone(), call.tool.clone(), id)
    });
    About {
        direction: match case.direction {
            Way::ToServer => Direction::ToServer,
            Way::ToClient => Direction::ToClient,
        },
        server: case.server.clone().unwrap_or(defaults.server),
        tenant: case.tenant.clone().unwrap_or(defaults.tenant),
        session: case.session.clone().or(defaults.session),
        principal: case.principal.clone().into_iter().collect(),
        call,
        findings: case.findings.iter().map(found).collect(),
    }
}

fn found(found: &Found) -> FoundHere {
    FoundHere {
        rule: found.rule.clone(),
        category: found.category.clone(),
        path: found.path.clone(),
        text: found.text.clone(),
        action: match found.action {
            Word::Pass => Action::Ignore,
            Word::Log => Action::Log,
            Word::Warn => Action::Warn,
            Word::Redact => Action::Redact,
            Word::Block => Action::Block,
        },
    }
}

fn word(action: Action) -> Word {
    match action {
        Action::Ignore => Word::Pass,
        Action::Log => Word::Log,
        Action::Warn => Word::Warn,
        Action::Redact => Word::Redact,
        Action::Block => Word::Block,
    }
}

/// The plugin's word as one action: the strictest of all it said.
fn outcome(verdict: &raw::Verdict) -> Word {
    let whole = verdict.action.map(|action| match action {
        // It does not say what to take out.
        Action::Redact => Word::Block,
        other => word(other),
    });
    let marks = verdict.marks.iter().map(|mark| word(mark.action));
    let edits = verdict.edits.iter().map(|_| Word::Redact);
    let rulings = verdict.rulings.iter().map(|ruling| word(ruling.action));
    let all = whole.into_iter().chain(marks).chain(edits).chain(rulings);
    all.max().unwrap_or(Word::Pass)
}

fn differences(case: &Case, message: &Message, verdict: &raw::Verdict) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut differ = |what: String| wrong.push(format!("{}: {what}", case.name));
    let got = outcome(verdict);
    if got != case.expect.action {
        differ(format!(
            "expected {:?}, got {got:?} ({:?})",
            case.expect.action, verdict.reason
        ));
    }
    if let Some(reason) = &case.expect.reason
        && !verdict.reason.contains(reason.as_str())
    {
        differ(format!(
            "expected a reason with {reason:?}, got {:?}",
            verdict.reason
        ));
    }
    if let Some(labels) = &case.expect.marks {
        let got: Vec<_> = verdict
            .marks
            .iter()
            .map(|mark| mark.label.clone())
            .collect();
        if got != *labels {
            differ(format!("expected marks {labels:?}, got {got:?}"));
        }
    }
    for (path, expected) in &case.expect.leaves {
        match message.at(path) {
            None => differ(format!("there is nothing at {path}")),
            Some(leaf) => {
                let got = edited(&leaf, verdict);
                if got != *expected {
                    differ(format!("{path}: expected {expected:?}, got {got:?}"));
                }
            }
        }
    }
    wrong
}

fn edited(leaf: &crate::Leaf<'_>, verdict: &raw::Verdict) -> String {
    let marks = verdict
        .marks
        .iter()
        .filter(|mark| mark.action == Action::Redact);
    let marks = marks.map(|m| (m.leaf, m.start, m.end, format!("[REDACTED:{}]", m.label)));
    let edits = verdict
        .edits
        .iter()
        .map(|e| (e.leaf, e.start, e.end, e.replacement.clone()));
    let mut changes: Vec<_> = marks
        .chain(edits)
        .filter(|change| change.0 == leaf.index)
        .collect();
    changes.sort_by_key(|change| std::cmp::Reverse(change.1));
    let mut text = leaf.text.to_owned();
    for (_, start, end, with) in changes {
        text.replace_range(start as usize..end as usize, &with);
    }
    text
}
