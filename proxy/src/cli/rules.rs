//! `weir rules`: what is looked for, and why a text is, or is not, found. For people who read and write rules.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use dlp_scan::{
    Category, Explained, FingerprintKey, Miss, Own, RuleFacts, RuleSet, RuleSource, Scanner,
};

use super::reference;

/// Largest rule file, as in the configuration.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Longest text that is explained.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// What to do with rules.
#[derive(Debug, Subcommand)]
pub enum RulesCommand {
    /// All rules: id, category, severity, title, where the facts come from
    List(ListArgs),
    /// All about one rule
    Show(ShowArgs),
    /// Check rule files: every field, every pattern, every example
    Test(TestArgs),
    /// Say which rules find something in a text, which nearly do, and why
    Explain(ExplainArgs),
    /// Print the fingerprint of a value (read from standard input), for a line of an allowlist
    Hash(HashArgs),
    /// Print the reference page of the built-in rules (docs/rules.md)
    Reference,
}

/// Which rules.
#[derive(Debug, Args)]
pub struct Files {
    /// A rule file beside the built-in rules; may be given several times
    #[arg(long = "rules", value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// `weir rules list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    files: Files,
    /// Only this category
    #[arg(long)]
    category: Option<CategoryWord>,
    /// How to print
    #[arg(long, default_value = "text")]
    format: Format,
}

/// `weir rules show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    #[command(flatten)]
    files: Files,
    /// The rule's id
    id: String,
    /// How to print
    #[arg(long, default_value = "text")]
    format: Format,
}

/// `weir rules test`.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// The files
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

/// `weir rules explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    #[command(flatten)]
    files: Files,
    /// The text; or a file that holds it; or - for standard input
    text: String,
    /// The name over the text (the JSON key it stands under)
    #[arg(long)]
    name: Option<String>,
    /// Show rules that were far from finding something, too
    #[arg(long)]
    all: bool,
}

/// `weir rules hash`.
#[derive(Debug, Args)]
pub struct HashArgs {
    /// Folder of the data, which holds the key [default: that of weir.yaml here, or weir-data here, or else
    /// ~/.local/state/weir]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// A category on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CategoryWord {
    /// Credentials
    Secret,
    /// Personal data
    Pii,
    /// Prompt injection and the like
    Injection,
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// One JSON value
    Json,
}

/// Runs the command. The exit code is 1 for rules that were refused or whose examples fail.
pub fn run(command: &RulesCommand, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    match command {
        RulesCommand::List(args) => list(args, out)?,
        RulesCommand::Show(args) => show(args, out)?,
        RulesCommand::Test(args) => return test(args, out),
        RulesCommand::Explain(args) => explain(args, out)?,
        RulesCommand::Hash(args) => hash(args, io::stdin().lock(), out)?,
        RulesCommand::Reference => out.write_all(reference::page().as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(args: &ListArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let wanted = args.category.map(|c| match c {
        CategoryWord::Secret => Category::Secret,
        CategoryWord::Pii => Category::Pii,
        CategoryWord::Injection => Category::Injection,
    });
    let mut facts = all_facts(&args.files)?;
    facts.retain(|f| wanted.is_none_or(|c| c == f.category));
    if args.format == Format::Json {
        let rows: Vec<_> = facts.iter().map(json).collect();
        serde_json::to_writer_pretty(&mut *out, &rows)?;
        writeln!(out)?;
        return Ok(());
    }
    let width = facts.iter().map(|f| f.id.len()).max().unwrap_or(0);
    for f in &facts {
        writeln!(
            out,
            "{:<width$}  {:<9}  {:<8} {:>3}  {}{}",
            f.id,
            f.category.as_str(),
            severity(f),
            f.confidence,
            f.title,
            if f.provenance.is_empty() {
                String::new()
            } else {
                format!("  ({})", f.provenance)
            },
        )?;
    }
    writeln!(out, "{} rules", facts.len())?;
    Ok(())
}

/// A word for how sure a plain match is and what is done about it by default.
pub(super) fn severity(facts: &RuleFacts) -> &'static str {
    match (facts.category, facts.confidence) {
        (Category::Secret, 80..) => "critical",
        (Category::Secret, _) | (Category::Injection, 80..) => "high",
        (Category::Pii, 80..) | (Category::Injection, _) => "medium",
        (Category::Pii, _) => "low",
    }
}

fn json(f: &RuleFacts) -> serde_json::Value {
    serde_json::json!({
        "id": f.id, "category": f.category, "severity": severity(f), "confidence": f.confidence,
        "title": f.title, "description": f.description, "kind": f.kind, "keywords": f.keywords,
        "pattern": f.pattern, "shapes": f.shapes, "checks": f.checks, "context": f.context,
        "need": (f.kind == "number").then_some(f.need), "entropy": f.entropy, "before": f.before,
        "provenance": f.provenance, "file": f.file,
        "examples": f.examples.0, "counter_examples": f.examples.1,
    })
}

fn show(args: &ShowArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let all = all_facts(&args.files)?;
    let Some(f) = all.iter().find(|f| f.id == args.id) else {
        let near = domain::nearest(&args.id, all.iter().map(|f| f.id.as_str()));
        let hint = near.map_or_else(String::new, |n| format!("; did you mean {n}?"));
        bail!("there is no rule {:?}{hint}", args.id);
    };
    if args.format == Format::Json {
        serde_json::to_writer_pretty(&mut *out, &json(f))?;
        writeln!(out)?;
        return Ok(());
    }
    writeln!(out, "{}  {}", f.id, f.title)?;
    if !f.description.is_empty() {
        writeln!(out, "\n{}\n", f.description)?;
    }
    let rows = [
        ("category", f.category.as_str().to_owned()),
        (
            "severity",
            format!("{} (confidence {})", severity(f), f.confidence),
        ),
        ("kind", f.kind.to_owned()),
        ("keywords", f.keywords.join(", ")),
        ("pattern", f.pattern.clone().unwrap_or_default()),
        ("shapes", f.shapes.join(", ")),
        ("checks", f.checks.join(", ")),
        ("context", f.context.join(", ")),
        (
            "needs",
            if f.kind == "number" {
                f.need.into()
            } else {
                String::new()
            },
        ),
        (
            "entropy",
            if f.entropy > 0.0 {
                format!("at least {} bits a byte", f.entropy)
            } else {
                String::new()
            },
        ),
        ("provenance", f.provenance.clone()),
        ("file", f.file.clone()),
        (
            "examples",
            format!("{} that match, {} that do not", f.examples.0, f.examples.1),
        ),
    ];
    for (name, value) in rows.iter().filter(|(_, v)| !v.is_empty()) {
        writeln!(out, "  {name:<11} {value}")?;
    }
    Ok(())
}

fn test(args: &TestArgs, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let texts = read_all(&args.files)?;
    let sources = sources(&texts);
    let own = Own {
        sources: &sources,
        ..Own::default()
    };
    let rules = match RuleSet::builtin().with(&own) {
        Ok(rules) => rules,
        Err(error) => {
            writeln!(out, "{error}")?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let mut wrong = 0;
    for failure in rules.failed_examples(&sources)? {
        wrong += 1;
        writeln!(
            out,
            "rule {}: {} {:?}",
            failure.rule,
            if failure.expected {
                "does not match its example"
            } else {
                "matches its counter-example"
            },
            failure.text,
        )?;
        if failure.expected {
            why_not(&rules, &failure.rule, &failure.text, out)?;
        }
    }
    let mut count = 0;
    for source in &sources {
        for f in RuleFacts::of(source)? {
            count += 1;
            for (kind, n) in [("example", f.examples.0), ("counter-example", f.examples.1)] {
                if n == 0 {
                    wrong += 1;
                    writeln!(out, "rule {}: has no {kind}; give at least one", f.id)?;
                }
            }
        }
    }
    if wrong > 0 {
        writeln!(out, "{count} rules, {wrong} complaints")?;
        return Ok(ExitCode::FAILURE);
    }
    writeln!(out, "{count} rules, all good")?;
    Ok(ExitCode::SUCCESS)
}

/// At which step the rule gave up on an example of its own.
fn why_not(rules: &RuleSet, id: &str, text: &str, out: &mut dyn Write) -> io::Result<()> {
    let explained = dlp_scan::explain(rules, &mut scanner(), None, text);
    let rule = rules.find(id);
    match explained.near.iter().find(|n| Some(n.rule) == rule) {
        Some(near) => writeln!(out, "    {}", say(&near.miss)),
        None => writeln!(
            out,
            "    none of its keywords (or shapes) stands in the text"
        ),
    }
}

fn explain(args: &ExplainArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let texts = read_all(&args.files.files)?;
    let sources = sources(&texts);
    let rules = match sources.is_empty() {
        true => Arc::clone(RuleSet::builtin()),
        false => Arc::new(RuleSet::builtin().with(&Own {
            sources: &sources,
            ..Own::default()
        })?),
    };
    let text = text_of(&args.text)?;
    let explained = dlp_scan::explain(&rules, &mut scanner(), args.name.as_deref(), &text);
    tell(&rules, &explained, &text, args.all, out)?;
    Ok(())
}

fn tell(
    rules: &RuleSet,
    explained: &Explained,
    text: &str,
    all: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let undone: Vec<&str> = explained
        .layers
        .iter()
        .filter(|l| !l.is_empty())
        .map(String::as_str)
        .collect();
    if !undone.is_empty() {
        writeln!(out, "encodings undone: {}", undone.join(", "))?;
    }
    if let Some(over) = explained.outcome.over_budget {
        writeln!(
            out,
            "not all of it was looked at: the {over} budget is used up"
        )?;
    }
    writeln!(out, "found: {}", explained.outcome.findings.len())?;
    for f in &explained.outcome.findings {
        let rule = rules.rule(f.rule);
        let value = &text[f.start as usize..f.end as usize];
        writeln!(
            out,
            "  {}  {}  {}\n      bytes {} to {} ({} characters), confidence {}, {}",
            rule.id,
            f.category,
            rule.title,
            f.start,
            f.end,
            value.chars().count(),
            f.confidence,
            if f.layers.is_empty() {
                "as it stands".to_owned()
            } else {
                format!("under {}", f.layers)
            },
        )?;
    }
    let near: Vec<_> = explained
        .near
        .iter()
        .filter(|n| all || !is_far(&n.miss))
        .collect();
    if !near.is_empty() {
        writeln!(out, "nearly:")?;
    }
    for n in near {
        let under = if n.layers.is_empty() {
            String::new()
        } else {
            format!(" of the text under {}", n.layers)
        };
        writeln!(
            out,
            "  {}  at byte {}{under}: {}",
            rules.rule(n.rule).id,
            n.at,
            say(&n.miss),
        )?;
    }
    Ok(())
}

/// Not worth telling unless asked: a keyword that stands in ordinary text.
fn is_far(miss: &Miss) -> bool {
    matches!(miss, Miss::Before | Miss::Case | Miss::Value)
}

fn say(miss: &Miss) -> String {
    match miss {
        Miss::Before => {
            "its keyword is there, but a letter, digit or `_` stands right before it (`before`)"
                .into()
        }
        Miss::Case => "its keyword is there in another case; the pattern has no (?i)".into(),
        Miss::Pattern => "its keyword is there, but `pattern` does not match".into(),
        Miss::Value => {
            "its keyword is part of a name, but no value as `pattern` has it was given to it".into()
        }
        Miss::After => {
            "`pattern` matches, but a letter, digit or `_` follows right after (`after`)".into()
        }
        Miss::Context => "it has the form, but none of the words of `context` stands near".into(),
        Miss::Entropy { found, min } => {
            format!(
                "`pattern` matches, but the value has {found:.2} bits a byte of `entropy`, less than {min}"
            )
        }
        Miss::Placeholder => {
            "`pattern` matches, but the value looks like a placeholder (`placeholders_pass`)".into()
        }
        Miss::Check(name) => format!("it has the form, but the check {name} says no"),
        Miss::Covered => "it has the form; a surer or wider finding stands there instead".into(),
    }
}

fn hash(args: &HashArgs, input: impl Read, out: &mut dyn Write) -> anyhow::Result<()> {
    let dir = super::audit::data_dir(args.data_dir.as_deref(), None)?;
    let mut text = String::new();
    input
        .take(TEXT_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .context("the value is not UTF-8 text")?;
    let value = text.strip_suffix('\n').unwrap_or(&text);
    let value = value.strip_suffix('\r').unwrap_or(value);
    if value.is_empty() || text.len() as u64 > TEXT_BYTES_MAX {
        bail!("give one value of 1 to {TEXT_BYTES_MAX} bytes on standard input");
    }
    // A key of its own in a folder that nobody else uses would make a fingerprint that fits nothing.
    if !dir.is_dir() {
        bail!(
            "there is no data folder {}; give --data-dir (Weir makes it when it first runs)",
            dir.display()
        );
    }
    let key = FingerprintKey::new(crate::app::fingerprint_key(&dir)?);
    writeln!(out, "{}", key.fingerprint(value.as_bytes()))?;
    Ok(())
}

fn all_facts(files: &Files) -> anyhow::Result<Vec<RuleFacts>> {
    let texts = read_all(&files.files)?;
    let own = sources(&texts);
    let mut facts = Vec::new();
    for source in RuleSet::builtin_sources().iter().chain(&own) {
        facts.extend(RuleFacts::of(source)?);
    }
    Ok(facts)
}

fn read_all(files: &[PathBuf]) -> anyhow::Result<Vec<(String, String)>> {
    let read = |path: &PathBuf| {
        let text = read_bounded(path, FILE_BYTES_MAX)?;
        Ok((path.display().to_string(), text))
    };
    files.iter().map(read).collect()
}

fn sources(texts: &[(String, String)]) -> Vec<RuleSource<'_>> {
    texts
        .iter()
        .map(|(name, yaml)| RuleSource { name, yaml })
        .collect()
}

/// The text itself, or that of the file it names.
fn text_of(given: &str) -> anyhow::Result<String> {
    if given == "-" {
        let mut text = String::new();
        io::stdin()
            .lock()
            .take(TEXT_BYTES_MAX)
            .read_to_string(&mut text)?;
        return Ok(text);
    }
    let path = Path::new(given);
    if given.len() < 4096 && path.is_file() {
        return read_bounded(path, TEXT_BYTES_MAX);
    }
    Ok(given.to_owned())
}

fn read_bounded(path: &Path, bytes_max: u64) -> anyhow::Result<String> {
    let file = std::fs::File::open(path).with_context(|| format!("{}", path.display()))?;
    let mut text = String::new();
    file.take(bytes_max + 1)
        .read_to_string(&mut text)
        .with_context(|| format!("{}", path.display()))?;
    if text.len() as u64 > bytes_max {
        bail!("{}: larger than {bytes_max} bytes", path.display());
    }
    Ok(text)
}

fn scanner() -> Scanner {
    let mut key = [0u8; 32];
    // Fingerprints are not shown here.
    let _ = getrandom::fill(&mut key);
    Scanner::new(FingerprintKey::new(key))
}
