//! `weir explain`: one exchange of the audit log, finding by finding: what, where, what was done, by which line, and the
//! line that would let just this value pass. Shows no value; the log has none.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use audit_log::{FindingRecord, Order, Query, Record};
use clap::Args;
use dlp_policy::{Level, PolicyTable, ToolFilter};
use dlp_scan::RuleSet;
use domain::{Direction, ToolAccess};

use super::audit;
use super::printable::printable;
use crate::config;

/// What to explain.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The audit id: it stands in the answer to a blocked call, in logs, and in `weir audit`
    id: String,
    /// Folder of the data [default: that of the configuration file, or of weir.yaml here, or weir-data here, or else
    /// ~/.local/state/weir]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The configuration file: names the line of policy that decided (as the file is now)
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Runs it. The exit code is 1 if there is no such record.
pub fn run(args: &ExplainArgs, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let loaded = args.config.as_deref().map(config::to_look_at).transpose()?;
    let of_file = loaded.as_ref().map(|loaded| loaded.data_dir.as_path());
    let named = args.data_dir.as_deref().or(of_file);
    let record = find(args, &audit::data_dir(named, None)?)?;
    let judge = loaded
        .map(|loaded| Judge::of(&loaded, &record))
        .transpose()?;
    tell(&record, judge.as_ref(), out)?;
    Ok(ExitCode::SUCCESS)
}

fn find(args: &ExplainArgs, data_dir: &Path) -> anyhow::Result<Record> {
    let query = Query {
        id: Some(args.id.parse()?),
        limit: Some(1),
        order: Order::NewestFirst,
        ..Query::default()
    };
    let mut found = None;
    for dir in audit::logs(data_dir)? {
        audit_log::search(&dir, &query, |record| {
            found = Some(record.clone());
            ControlFlow::Break(())
        })?;
    }
    found.with_context(|| {
        format!(
            "there is no record {} in the audit log under {}; another one: --data-dir, or -c with the configuration file",
            args.id,
            data_dir.display()
        )
    })
}

/// The rules and the policy of the record's server, as the configuration has them now.
struct Judge {
    rules: Arc<RuleSet>,
    table: PolicyTable,
    /// The lists of tools that are asked, each with its place in the file.
    tools: Vec<(String, domain::ToolAccess)>,
}

impl Judge {
    fn of(loaded: &config::Loaded, record: &Record) -> anyhow::Result<Self> {
        let desired = &loaded.desired;
        let none = (domain::Policy::default(), domain::Detection::default());
        let is_proxy =
            &*record.tenant == config::PROXY_TENANT && &*record.server == config::PROXY_SERVER;
        let (policy, detection) = match desired.servers.get(&*record.server) {
            Some(server) => (&server.policy, &server.detection),
            // Its command line named it.
            None if is_proxy => (&none.0, &none.1),
            None => bail!("the configuration has no server {:?}", record.server),
        };
        let absent = domain::Tenant::default();
        let tenant = desired.tenants.get(&*record.tenant).unwrap_or(&absent);
        let rules = dlp_policy::base_rules(&desired.rules)?;
        let rules = dlp_policy::own_rules(&rules, &tenant.detection, &tenant.policy.allow)?;
        let rules = dlp_policy::own_rules(&rules, detection, &policy.allow)?;
        let table = PolicyTable::compile(&tenant.policy, policy, &rules)?;
        let at = |level| format!("{}.tools", policy_path(record, level));
        let mut tools = vec![
            (at(Level::Tenant), tenant.policy.tools.clone()),
            (at(Level::Server), policy.tools.clone()),
        ];
        let mut keys = desired.keys.iter();
        if let Some(key) = keys.find(|key| Some(key.id.as_str()) == record.principal.as_deref()) {
            let at = format!("tools of the key {:?}", key.id.as_str());
            tools.push((at, key.tools.clone()));
        }
        Ok(Self {
            rules,
            table,
            tools,
        })
    }

    /// Which line does not let a tool be called, in words.
    fn why_denied(&self, tool: &str) -> String {
        for (at, access) in &self.tools {
            let line = |i: usize| ToolAccess {
                allow: Vec::new(),
                deny: vec![access.deny[i].clone()],
            };
            let denies = |access: &ToolAccess| {
                ToolFilter::compile(access).is_ok_and(|filter| !filter.allows(tool))
            };
            if let Some(i) = (0..access.deny.len()).find(|i| denies(&line(*i))) {
                return format!("{at}.deny[{i}]: {:?}", access.deny[i]);
            }
            if denies(access) {
                return format!("{at}.allow: no line of it names this tool");
            }
        }
        "no line of this file denies it; it was another when the call came".into()
    }

    /// Which line decides about a finding, in words.
    fn why(&self, record: &Record, finding: &FindingRecord) -> String {
        let Some(rule) = self.rules.find(&finding.rule) else {
            return "the configuration has no such rule any more".into();
        };
        let direction = match finding.direction.unwrap_or(record.direction) {
            audit_log::Direction::ToServer => Direction::ToServer,
            audit_log::Direction::ToClient => Direction::ToClient,
        };
        let tool = record.tool.as_deref();
        let action = self.table.for_tool(direction, tool).action(rule);
        let by = match self.table.line_for(rule, direction, tool) {
            Some(line) => {
                format!(
                    "{}.bindings[{}]",
                    policy_path(record, line.level),
                    line.index
                )
            }
            None => "the built-in policy".into(),
        };
        format!("{by}: {} ({direction})", action.as_str())
    }
}

fn policy_path(record: &Record, level: Level) -> String {
    match level {
        Level::Tenant => format!("tenants.{}.policy", record.tenant),
        Level::Server => format!("tenants.{}.servers.{}.policy", record.tenant, record.server),
    }
}

fn tell(record: &Record, judge: Option<&Judge>, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(
        out,
        "{}  {}  {}{}",
        record.id,
        audit::utc(record.time_unix_us),
        record.action.as_str(),
        if record.dry_run {
            "  (dry run: nothing was enforced)"
        } else {
            ""
        },
    )?;
    let rows = [
        (
            "server",
            Some(format!("{} of tenant {}", record.server, record.tenant)),
        ),
        ("caller", record.principal.as_deref().map(str::to_owned)),
        ("method", record.method.as_deref().map(str::to_owned)),
        ("tool", record.tool.as_deref().map(str::to_owned)),
        ("because", record.reason.as_deref().map(str::to_owned)),
    ];
    for (name, value) in rows.iter().filter_map(|(n, v)| Some((n, v.as_ref()?))) {
        writeln!(out, "  {name:<9} {}", printable(value))?;
    }
    if let Some(bound) = bound_hit(record) {
        writeln!(
            out,
            "\nnot all of it was looked at: the {bound} budget is used up, and the failure mode of policy decided (failure_mode)"
        )?;
    }
    let is_denied = record.reason.as_deref() == Some("tool_denied");
    match (judge, record.tool.as_deref()) {
        (Some(judge), Some(tool)) if is_denied => {
            writeln!(
                out,
                "  {:<9} {}",
                "line",
                printable(&judge.why_denied(tool))
            )?;
        }
        _ => {}
    }
    match record.action {
        _ if !record.findings.is_empty() => {}
        _ if is_denied => writeln!(
            out,
            "\nthis tool may not be called; the call was not read further"
        )?,
        _ if record.reason.as_deref() == Some("tool_held") => writeln!(
            out,
            "\nthe definition of this tool waits for approval (policy.tool_pinning); the call was not read further. To see \
             what changed: weir tools diff {} {}",
            record.server,
            printable(record.tool.as_deref().unwrap_or_default())
        )?,
        audit_log::Action::Refused => writeln!(out, "\nit was refused before it was read further")?,
        _ if bound_hit(record).is_some() => {}
        _ => writeln!(out, "\nnothing was found in it")?,
    }
    for finding in &record.findings {
        writeln!(out)?;
        tell_finding(record, finding, judge, out)?;
    }
    if record.findings_dropped > 0 {
        writeln!(
            out,
            "\nand {} more findings, which the log did not keep",
            record.findings_dropped
        )?;
    }
    if judge.is_none() && (is_denied || !record.findings.is_empty()) {
        writeln!(
            out,
            "\nwith -c weir.yaml, the line of policy that decided is named"
        )?;
    }
    Ok(())
}

/// The bound of a scan that was cut short.
fn bound_hit(record: &Record) -> Option<&str> {
    record.reason.as_deref()?.strip_prefix("over_budget: ")
}

fn tell_finding(
    record: &Record,
    finding: &FindingRecord,
    judge: Option<&Judge>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let rules = match judge {
        Some(judge) => &judge.rules,
        None => RuleSet::builtin(),
    };
    let title = rules
        .find(&finding.rule)
        .map_or("", |id| &*rules.rule(id).title);
    writeln!(out, "{}  {}  {title}", finding.rule, finding.category)?;
    let encodings = match finding.layers.is_empty() {
        true => "none, as it stands".to_owned(),
        false => format!("{}, outermost first", finding.layers.join(" > ")),
    };
    writeln!(
        out,
        "  where     {}, bytes {} to {}",
        printable(&finding.path),
        finding.start,
        finding.end
    )?;
    writeln!(out, "  encodings {encodings}")?;
    let done = match &finding.allowed_by {
        Some(line) => format!("let pass by line {line} of the allowlist, and recorded"),
        None => finding.action.as_str().to_owned(),
    };
    writeln!(out, "  done      {done}")?;
    if let Some(judge) = judge {
        writeln!(out, "  why       {}", judge.why(record, finding))?;
    }
    match allow_line(record, finding) {
        _ if finding.allowed_by.is_some() => Ok(()),
        Some(line) => {
            writeln!(out, "  to let just this value pass, here:\n")?;
            let (tenant, server) = (&record.tenant, &record.server);
            let above = ["tenants", tenant, "servers", server, "policy", "allow"];
            for (depth, key) in above.iter().enumerate() {
                writeln!(out, "    {}{key}:", "  ".repeat(depth))?;
            }
            writeln!(out, "    {}- {line}", "  ".repeat(above.len()))
        }
        None => writeln!(
            out,
            "  the record has no fingerprint, so no line can name the value"
        ),
    }
}

/// A line of an allowlist for this value at this place, as YAML.
fn allow_line(record: &Record, finding: &FindingRecord) -> Option<String> {
    // JSON texts are YAML texts.
    let text = |t: &str| serde_json::Value::from(t).to_string();
    let mut fields = vec![
        format!("value: {}", text(finding.fingerprint.as_deref()?)),
        format!("rule: {}", finding.rule),
    ];
    // A path that was cut or masked names no place.
    if !finding.path.contains('…') && !finding.path.contains("{masked}") {
        fields.push(format!("path: {}", text(&finding.path)));
    }
    let is_call = record.method.as_deref() == Some("tools/call");
    if let Some(tool) = record.tool.as_deref().filter(|_| is_call) {
        fields.push(format!("tool: {}", text(&glob_escape(tool))));
    }
    Some(format!("{{{}}}", fields.join(", ")))
}

/// The tool's name and no other: characters that mean something in a glob lose it.
fn glob_escape(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let mut record = Record::new(1_790_000_000_000_000, "acme".into(), "files".into());
        record.action = audit_log::Action::Block;
        record.method = Some("tools/call".into());
        record.tool = Some("send[1]".into());
        record.reason = Some("rule email".into());
        record.findings = vec![FindingRecord {
            rule: "email".into(),
            category: "pii".into(),
            action: audit_log::Action::Block,
            direction: None,
            path: "$.params.arguments[\"to: \\\"x\\\"\"]".into(),
            start: 4,
            end: 20,
            layers: vec!["base64".into(), "gzip".into()],
            fingerprint: Some("0123456789abcdef0123456789abcdef".into()),
            allowed_by: None,
        }];
        record
    }

    fn told(record: &Record) -> String {
        let mut out = Vec::new();
        tell(record, None, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_record_is_told_finding_by_finding() {
        let text = told(&record());
        for part in [
            "block",
            "rule email",
            "bytes 4 to 20",
            "base64 > gzip",
            "server    files of tenant acme",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_scan_that_was_cut_short_names_its_bound() {
        let mut record = record();
        record.findings.clear();
        record.reason = Some("over_budget: depth".into());
        let text = told(&record);
        assert!(text.contains("the depth budget is used up"), "{text}");
        assert!(!text.contains("nothing was found"), "{text}");
    }

    /// What is printed is what the configuration takes.
    #[test]
    fn the_printed_lines_are_configuration() {
        let text = told(&record());
        let (_, yaml) = text.split_once("here:\n\n").unwrap();
        let yaml = yaml.split("\n\n").next().unwrap();
        let yaml: String = yaml
            .lines()
            .map(|l| format!("{}\n", l.strip_prefix("    ").unwrap()))
            .collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        let upstream = "tenants:\n  acme:\n    servers:\n      files:\n        upstream: {command: x}\n        policy:";
        let yaml = yaml.replace(
            "tenants:\n  acme:\n    servers:\n      files:\n        policy:",
            upstream,
        );
        std::fs::write(file.path(), &yaml).unwrap();
        let loaded = config::load(file.path()).unwrap_or_else(|e| panic!("{e}\n{yaml}"));
        let allow = &loaded.desired.servers["files"].policy.allow[0];
        let finding = &record().findings[0];
        assert_eq!(allow.value.as_deref(), finding.fingerprint.as_deref());
        assert_eq!(allow.path.as_deref(), Some(&*finding.path));
        assert_eq!(allow.tool.as_deref(), Some("send\\[1\\]"));
    }

    #[test]
    fn a_place_that_is_not_known_is_not_named() {
        let mut record = record();
        record.findings[0].path = "$.a.{masked}".into();
        assert!(!told(&record).contains("path:"));
        record.findings[0].fingerprint = None;
        assert!(told(&record).contains("no fingerprint"));
        record.findings[0].allowed_by = Some("tenant[0]".into());
        let text = told(&record);
        assert!(text.contains("let pass by line tenant[0]") && !text.contains("to let just"));
    }
}
