//! `weir policy test` and `shadow`: recorded messages against components.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use dlp_policy::{
    About, Action, EvalError, EvalInput, Evaluator, MessageView, PolicyTable, Verdict,
};
use dlp_scan::{Budget, FingerprintKey, RuleSet, Scanner};
use domain::{Direction, Era, Grant, PluginBinding, Policy, PolicyAction, TenantId};
use mcp_codec::Message;
use plugin_host::{Bound, PluginHost};
use serde::Deserialize;
use serde_json::Value;

use super::aloud::aloud;
use crate::config;
use crate::taps;

/// What to test.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// The project's folder: it is built, and `tests/*.yml` are its cases. Absent: this one, or the only
    /// project directly below it
    pub dir: Option<PathBuf>,
    /// Test this component instead of building the project
    #[arg(long, value_name = "FILE")]
    pub component: Option<PathBuf>,
    /// Files with cases instead of the project's
    #[arg(long, value_name = "FILE")]
    pub cases: Vec<PathBuf>,
}

/// What to compare.
#[derive(Debug, Args)]
pub struct ShadowArgs {
    #[command(subcommand)]
    on: ShadowOn,
}

#[derive(Debug, clap::Subcommand)]
enum ShadowOn {
    /// Messages from files
    Recorded {
        /// The component in force
        old: PathBuf,
        /// The component that may come after it
        new: PathBuf,
        /// Files with recorded messages
        #[arg(required = true)]
        cases: Vec<PathBuf>,
    },
    /// The traffic of a running `weir serve`
    Live {
        /// The component that may come after the one in force
        new: PathBuf,
        #[command(flatten)]
        live: super::live::LiveArgs,
    },
}

/// Longest file of cases.
const FILE_BYTES_MAX: u64 = 64 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    config: serde_json::Map<String, Value>,
    /// As a binding has them.
    #[serde(default)]
    grants: Vec<Grant>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    message: Value,
    direction: Option<Direction>,
    call: Option<CallOf>,
    server: Option<String>,
    tenant: Option<String>,
    session: Option<String>,
    #[serde(default)]
    principal: BTreeMap<String, String>,
    /// What the rules would find; here they look themselves.
    #[serde(default, rename = "findings")]
    _findings: Vec<Value>,
    #[serde(default)]
    now_ms: u64,
    expect: Expect,
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
struct Expect {
    action: String,
    reason: Option<String>,
    marks: Option<Vec<String>>,
    #[serde(default)]
    leaves: BTreeMap<String, String>,
}

/// A recorded message with what it does not say itself.
pub struct Recorded {
    json: Vec<u8>,
    pub direction: Direction,
    /// Method, tool and id of the call that it answers.
    pub call: Option<(String, Option<String>, Option<String>)>,
    server: String,
    tenant: String,
    session: String,
    key_id: String,
    now_ms: u64,
}

impl Recorded {
    /// A message to the server.
    pub fn new(json: Vec<u8>) -> Self {
        Self {
            json,
            direction: Direction::ToServer,
            call: None,
            server: "server".into(),
            tenant: "tenant".into(),
            session: "session".into(),
            key_id: "key".into(),
            now_ms: 0,
        }
    }

    fn of(case: &Case) -> Self {
        let plain = Self::new(case.message.to_string().into_bytes());
        Self {
            direction: case.direction.unwrap_or(Direction::ToServer),
            call: case.call.as_ref().map(|call| {
                let id = call.id.as_ref().map(Value::to_string);
                (call.method.clone(), call.tool.clone(), id)
            }),
            server: case.server.clone().unwrap_or(plain.server),
            tenant: case.tenant.clone().unwrap_or(plain.tenant),
            session: case.session.clone().unwrap_or(plain.session),
            key_id: case
                .principal
                .get("key-id")
                .cloned()
                .unwrap_or(plain.key_id),
            now_ms: case.now_ms,
            ..Self::new(plain.json)
        }
    }
}

/// A plugin bound to nothing but a test.
pub struct Tried {
    bound: Bound,
    table: PolicyTable,
}

/// What became of one message.
pub struct Judged {
    view: MessageView,
    pub findings: Vec<(String, String, PolicyAction)>,
    pub rules_alone: Action,
    pub verdict: Result<Verdict, EvalError>,
    /// What the plugin asked for and may not have.
    pub denied: BTreeSet<Grant>,
    pub together: Action,
    pub took: Duration,
}

/// A binding with time and memory enough for a machine that is busy with other things.
pub fn binding(
    plugin: &plugin_host::Plugin,
    config: serde_json::Map<String, Value>,
    grants: &[Grant],
) -> PluginBinding {
    PluginBinding {
        config,
        grants: grants.to_vec(),
        timeout_ms: 1000,
        memory_mb: 64,
        ..PluginBinding::new(&plugin.description().name)
    }
}

impl Tried {
    pub fn new(
        host: &PluginHost,
        plugin: &Arc<plugin_host::Plugin>,
        binding: PluginBinding,
    ) -> anyhow::Result<Self> {
        let rules = RuleSet::builtin();
        let tenant = TenantId::parse("tenant")?;
        let none = Policy::default();
        Ok(Self {
            bound: host.bind(plugin, &binding, &tenant, "server", rules)?,
            table: PolicyTable::compile(&none, &none, rules)?,
        })
    }

    /// Judges one message: by the rules alone, by the plugin, and by both.
    pub fn judge(&self, recorded: &Recorded) -> anyhow::Result<Judged> {
        let limits = mcp_codec::Limits::default();
        let message = Message::decode(recorded.json.clone().into(), &limits)
            .map_err(|error| anyhow::anyhow!("this is no MCP message: {}", error.client_text()))?;
        let doc = message.doc();
        let rules = RuleSet::builtin();
        let mut scanner = Scanner::new(FingerprintKey::new([0; 32]));
        let outcome = scanner.scan(rules, taps::leaves(doc), &Budget::default());
        let call = recorded.call.as_ref();
        let named = doc.get(&["params", "name"]).and_then(|node| doc.str(node));
        let own_tool = named.filter(|_| message.method() == Some("tools/call"));
        let tool = own_tool.or(call.and_then(|(_, tool, _)| tool.as_deref()));
        let actions = self.table.for_tool(recorded.direction, tool);
        let failure_mode = self.table.failure_mode();
        let mut decision = dlp_policy::decide(
            &outcome.findings,
            outcome.over_budget,
            &actions,
            failure_mode,
            false,
        );
        let rules_alone = decision.action;
        let method = message
            .method()
            .or(call.map(|(method, ..)| method.as_str()));
        let about = About {
            direction: recorded.direction,
            era: Era::Handshake,
            method: method.unwrap_or_default(),
            tool,
            server: &recorded.server,
            tenant: &recorded.tenant,
            session: Some(&recorded.session),
            key_id: &recorded.key_id,
            call: call.map(|(method, _, id)| (method.as_str(), id.as_deref())),
        };
        let mut view = gateway::pipeline::lay_out(doc, &[], &about);
        view.found(&outcome.findings, &decision.hits, rules);
        self.bound.pretend_now_ms(recorded.now_ms);
        let input = EvalInput {
            view: &view,
            json: doc.source(),
            findings: &outcome.findings,
            rules,
        };
        let began = Instant::now();
        let verdict = self.bound.evaluate(&input);
        let took = began.elapsed();
        let hits = decision.hits.clone();
        decision.hear(&outcome.findings, vec![(&self.bound, verdict.clone())]);
        let places: Vec<_> = doc.leaves().map(|leaf| leaf.id).collect();
        let findings = outcome.findings.iter().zip(hits).map(|(finding, action)| {
            let path = places
                .get(finding.leaf as usize)
                .map(|id| doc.path(*id).to_string());
            (
                rules.rule(finding.rule).id.to_string(),
                path.unwrap_or_default(),
                action,
            )
        });
        Ok(Judged {
            findings: findings.collect(),
            view,
            rules_alone,
            verdict,
            denied: self.bound.denied(),
            together: decision.action,
            took,
        })
    }
}

impl Judged {
    /// The plugin's word as one action; a failure counts as a block.
    pub fn plugin_action(&self) -> Action {
        taps::said(&self.verdict)
    }

    /// The path of a leaf.
    pub fn path(&self, leaf: u32) -> &str {
        let leaf = self.view.leaf_at(leaf);
        leaf.map_or("?", |leaf| self.view.cut(leaf.path))
    }

    fn text_at(&self, path: &str) -> Option<String> {
        let (index, leaf) = self
            .view
            .leaves()
            .enumerate()
            .find(|(_, leaf)| self.view.cut(leaf.path) == path)?;
        let mut text = self.view.cut(leaf.text).to_owned();
        let verdict = self.verdict.as_ref().ok()?;
        let here = verdict
            .marks
            .iter()
            .filter(|mark| mark.leaf as usize == index);
        let mut changes: Vec<_> = here.filter(|m| m.action == PolicyAction::Redact).collect();
        changes.sort_by_key(|mark| std::cmp::Reverse(mark.start));
        for mark in changes {
            let with = mark.replacement.as_deref().map(str::to_owned);
            let with = with.unwrap_or_else(|| format!("[REDACTED:{}]", mark.label));
            // Ranges fit their leaves; of two that overlap the later one is left out.
            if text.get(mark.start as usize..mark.end as usize).is_some() {
                text.replace_range(mark.start as usize..mark.end as usize, &with);
            }
        }
        Some(text)
    }

    /// The verdict in one line, for comparing two.
    fn line(&self) -> String {
        taps::verdict_line(&self.view, &self.verdict)
    }
}

/// Tests.
pub fn test(args: &TestArgs, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let project = || super::project::find(args.dir.as_deref());
    let files = if args.cases.is_empty() {
        case_files(&project()?.join("tests"))?
    } else {
        args.cases.clone()
    };
    let component = match &args.component {
        Some(component) => component.clone(),
        None => super::project::build(&project()?)?,
    };
    let host = super::host()?;
    let plugin = super::load(&host, &component)?;
    let (mut passed, mut wrong) = (0, 0);
    for path in &files {
        let file = read(path)?;
        let binding = binding(&plugin, file.config.clone(), &file.grants);
        let tried = aloud(|| Tried::new(&host, &plugin, binding))?;
        for case in &file.cases {
            let differences = match aloud(|| tried.judge(&Recorded::of(case))) {
                Ok(judged) => differences(&case.expect, &judged),
                Err(error) => vec![error.to_string()],
            };
            if differences.is_empty() {
                passed += 1;
                continue;
            }
            wrong += 1;
            for difference in differences {
                writeln!(out, "{}: {}: {difference}", path.display(), case.name)?;
            }
        }
    }
    writeln!(out, "{passed} passed, {wrong} failed")?;
    if passed + wrong == 0 {
        bail!("there is no case");
    }
    Ok(if wrong == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Compares two versions.
pub fn shadow(args: &ShadowArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    match &args.on {
        ShadowOn::Recorded { old, new, cases } => recorded(old, new, cases, out),
        ShadowOn::Live { new, live } => super::live::shadow(new, live, out),
    }
}

fn recorded(old: &Path, new: &Path, files: &[PathBuf], out: &mut dyn Write) -> anyhow::Result<()> {
    let host = super::host()?;
    let (old, new) = (super::load(&host, old)?, super::load(&host, new)?);
    let (mut same, mut unlike) = (0, 0);
    for path in files {
        let file = read(path)?;
        let tried = |plugin: &Arc<plugin_host::Plugin>| {
            let binding = binding(plugin, file.config.clone(), &file.grants);
            aloud(|| Tried::new(&host, plugin, binding))
        };
        let (old, new) = (tried(&old)?, tried(&new)?);
        let line = |tried: &Tried, recorded: &Recorded| -> anyhow::Result<String> {
            Ok(aloud(|| tried.judge(recorded))?.line())
        };
        for case in &file.cases {
            let recorded = Recorded::of(case);
            let (before, after) = (line(&old, &recorded)?, line(&new, &recorded)?);
            if before == after {
                same += 1;
            } else {
                unlike += 1;
                writeln!(
                    out,
                    "{}: {}\n  old: {before}\n  new: {after}",
                    path.display(),
                    case.name
                )?;
            }
        }
    }
    writeln!(out, "{same} alike, {unlike} different")?;
    Ok(())
}

fn differences(expect: &Expect, judged: &Judged) -> Vec<String> {
    let mut wrong = Vec::new();
    let got = judged.plugin_action();
    let reason = judged
        .verdict
        .as_ref()
        .ok()
        .and_then(|v| v.reason.as_deref())
        .unwrap_or_default();
    if let Err(error) = &judged.verdict {
        wrong.push(error.to_string());
    }
    if got.as_str() != expect.action {
        wrong.push(format!(
            "expected {}, got {} ({reason:?})",
            expect.action,
            got.as_str()
        ));
    }
    if expect
        .reason
        .as_ref()
        .is_some_and(|part| !reason.contains(part.as_str()))
    {
        wrong.push(format!(
            "expected a reason with {:?}, got {reason:?}",
            expect.reason
        ));
    }
    if let (Some(labels), Ok(verdict)) = (&expect.marks, &judged.verdict) {
        let got = verdict
            .marks
            .iter()
            .filter(|mark| mark.replacement.is_none());
        let got: Vec<_> = got.map(|mark| mark.label.to_string()).collect();
        if got != *labels {
            wrong.push(format!("expected marks {labels:?}, got {got:?}"));
        }
    }
    for (path, expected) in &expect.leaves {
        match judged.text_at(path) {
            None => wrong.push(format!("there is nothing at {path}")),
            Some(got) if got != *expected => {
                wrong.push(format!("{path}: expected {expected:?}, got {got:?}"));
            }
            Some(_) => {}
        }
    }
    // What a plugin that was denied something makes of that may be what is expected.
    if !wrong.is_empty() {
        let denied = judged.denied.iter();
        wrong.extend(denied.map(|grant| {
            let grant = grant.as_str();
            format!("the plugin asked for {grant:?}, which is not granted; add it to `grants` at the top of the file")
        }));
    }
    wrong
}

fn read(path: &Path) -> anyhow::Result<File> {
    let text = config::read_given(path, FILE_BYTES_MAX)
        .and_then(config::text_of)
        .map_err(|problem| anyhow::anyhow!("{} {problem}", path.display()))?;
    yaml_text::read(&text).with_context(|| format!("{}", path.display()))
}

fn case_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|ext| ext == "yml" || ext == "yaml")
        })
        .collect();
    files.sort();
    Ok(files)
}
