//! `weir audit`: reads the audit log, also while it is being written.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use audit_log::{Action, Order, Query, Record, Report, Tail, TailStart};
use chrono::{DateTime, NaiveDate, NaiveDateTime, SecondsFormat};
use clap::{Args, Subcommand};
use dlp_scan::RuleSet;

use super::printable::printable;
use crate::config;

/// How often a followed log is looked at.
const POLL_EVERY: Duration = Duration::from_millis(200);
/// The configuration file that is meant where it exists.
const CONFIG_DEFAULT: &str = "weir.yaml";

/// What to read.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// The last records, and new ones as they come
    Tail(TailArgs),
    /// Records that fit, newest first
    Search(SearchArgs),
    /// Check that nothing was changed, removed or put in, as far as checkpoints reach
    Verify(VerifyArgs),
}

/// Where the log is and how a record is shown.
#[derive(Debug, Args)]
pub struct Where {
    /// Folder of the data [default: that of the configuration file; where there is none, weir-data here, or else
    /// ~/.local/state/weir, where `weir proxy` and `weir stdio` write]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The configuration file of the `weir serve` [default: weir.yaml here, if there is one]
    #[arg(long, short, value_name = "FILE", conflicts_with = "data_dir")]
    pub config: Option<PathBuf>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `weir audit tail`.
#[derive(Debug, Args)]
pub struct TailArgs {
    #[command(flatten)]
    at: Where,
    #[command(flatten)]
    filter: Filter,
    /// How many records to begin with
    #[arg(short = 'n', long, default_value_t = 20)]
    lines: usize,
    /// Do not wait for new records
    #[arg(long)]
    no_follow: bool,
}

/// `weir audit search`.
#[derive(Debug, Args)]
pub struct SearchArgs {
    #[command(flatten)]
    at: Where,
    #[command(flatten)]
    filter: Filter,
    /// At most so many records
    #[arg(long, default_value_t = 100)]
    limit: usize,
    /// Oldest first
    #[arg(long)]
    oldest_first: bool,
}

/// `weir audit verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    at: Where,
}

/// Every option that is given must fit.
#[derive(Debug, Args)]
pub struct Filter {
    /// Began at or after: a time such as 2026-11-21T12:34:56Z, a day (UTC), seconds since 1970, or an age such as 15m, 6h, 7d
    #[arg(long, value_parser = parse_time)]
    since: Option<u64>,
    /// Began before: the same forms
    #[arg(long, value_parser = parse_time)]
    until: Option<u64>,
    /// Tenant
    #[arg(long)]
    tenant: Option<String>,
    /// Key id
    #[arg(long)]
    principal: Option<String>,
    /// Server id
    #[arg(long)]
    server: Option<String>,
    /// JSON-RPC method
    #[arg(long)]
    method: Option<String>,
    /// Tool
    #[arg(long)]
    tool: Option<String>,
    /// pass, log, warn, redact, block, refused or error; may be given several times
    #[arg(long)]
    action: Vec<Action>,
    /// Rule id
    #[arg(long)]
    rule: Option<String>,
    /// secret, pii or injection
    #[arg(long)]
    category: Option<String>,
    /// Audit id
    #[arg(long)]
    id: Option<String>,
    /// Characters anywhere in the record
    #[arg(long)]
    text: Option<String>,
}

/// Runs the command.
pub fn run(command: &AuditCommand, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    match command {
        AuditCommand::Tail(args) => tail(args, out),
        AuditCommand::Search(args) => search(args, out),
        AuditCommand::Verify(args) => verify(args, out),
    }
}

fn search(args: &SearchArgs, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let mut query = args.filter.query()?;
    query.limit = Some(args.limit);
    query.order = if args.oldest_first {
        Order::OldestFirst
    } else {
        Order::NewestFirst
    };
    let logs = args.at.logs_told()?;
    let [log] = &logs[..] else {
        let (records, damaged) = newest_of(&logs, &query)?;
        if records.is_empty() {
            hint(&args.filter)?;
        }
        for record in records {
            show(&record, &args.at, out)?;
        }
        return whole(damaged);
    };
    let mut shown = Ok(());
    let mut any = false;
    let stats = audit_log::search(log, &query, |record| {
        any = true;
        shown = show(record, &args.at, out);
        match shown {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })?;
    shown?;
    if !any {
        hint(&args.filter)?;
    }
    whole(stats.damaged)
}

/// Nothing fits: perhaps because the rule is called otherwise. It may be a tenant's own, so this is no error.
fn hint(filter: &Filter) -> std::io::Result<()> {
    let rules = RuleSet::builtin();
    let Some(rule) = filter.rule.as_deref().filter(|id| rules.find(id).is_none()) else {
        return Ok(());
    };
    let near = domain::nearest(rule, rules.rules().map(|(_, rule)| &*rule.id));
    let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    let rule = printable(rule);
    writeln!(
        std::io::stderr(),
        "note: no built-in rule is called {rule}{near}"
    )
}

/// Whether all that was searched could be read: what a damaged record held, nobody knows.
fn whole(damaged: u64) -> anyhow::Result<ExitCode> {
    match damaged {
        0 => Ok(ExitCode::SUCCESS),
        n => bail!(
            "{n} of the records looked at are damaged and were passed over; `weir audit verify` names the first"
        ),
    }
}

/// What fits in several logs, in the query's order over all of them: each has an order of its own, and what joins them is
/// the time. No more than the query's limit is held beside those of one log.
fn newest_of(logs: &[PathBuf], query: &Query) -> anyhow::Result<(Vec<Record>, u64)> {
    let mut records: Vec<Record> = Vec::new();
    let mut damaged = 0;
    for log in logs {
        let stats = audit_log::search(log, query, |record| {
            records.push(record.clone());
            ControlFlow::Continue(())
        })?;
        damaged += stats.damaged;
        match query.order {
            Order::NewestFirst => records.sort_by_key(|r| std::cmp::Reverse(r.time_unix_us)),
            Order::OldestFirst => records.sort_by_key(|r| r.time_unix_us),
        }
        records.truncate(query.limit.unwrap_or(usize::MAX));
    }
    Ok((records, damaged))
}

fn tail(args: &TailArgs, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let query = args.filter.query()?;
    let mut tails = Vec::new();
    for dir in args.at.logs_told()? {
        tails.push(Tail::open(
            &dir,
            TailStart::Last(args.lines),
            query.clone(),
        )?);
    }
    let mut lines_max = args.lines;
    loop {
        let mut records: Vec<Record> = Vec::new();
        for tail in &mut tails {
            tail.poll(|record| records.push(record.clone()))?;
        }
        // Several logs are one to whoever reads them; where there is one, its own order stays.
        if tails.len() > 1 {
            records.sort_by_key(|r| r.time_unix_us);
        }
        let from = records.len().saturating_sub(lines_max);
        lines_max = usize::MAX;
        for record in &records[from..] {
            show(record, &args.at, out)?;
        }
        out.flush()?;
        if args.no_follow {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(POLL_EVERY);
    }
}

fn verify(args: &VerifyArgs, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    for dir in args.at.logs()? {
        let report = audit_log::verify(&dir).with_context(|| format!("{}", dir.display()))?;
        if report.segments == 0 {
            bail!(
                "{}: there is no segment in it; a log has one from its first start on, so its files were removed or it was never one",
                dir.display()
            );
        }
        let root: String = report.root.iter().map(|b| format!("{b:02x}")).collect();
        if args.at.json {
            let line = serde_json::json!({
                "log": dir.display().to_string(), "first_sequence": report.first_sequence, "size": report.size,
                "segments": report.segments, "checkpoints": report.checkpoints, "unvouched": report.unvouched, "root": root,
            });
            writeln!(out, "{line}")?;
            continue;
        }
        writeln!(
            out,
            "{}: {} records in {} segments, {} checkpoints, unchanged; root {root}",
            dir.display(),
            report.size - report.first_sequence,
            report.segments,
            report.checkpoints,
        )?;
        for line in limits_of(&report) {
            writeln!(out, "{}: {line}", dir.display())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What the report does not say.
fn limits_of(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    if report.first_sequence > 0 {
        lines.push(format!(
            "it begins with record {}: those before were removed, by `audit.retention_days` or with the folder",
            report.first_sequence
        ));
    }
    if report.unvouched > 0 {
        let what = match report.unvouched {
            1 => "1 record".to_owned(),
            n => format!("{n} records"),
        };
        lines.push(format!(
            "{what} after the last checkpoint: nothing vouches for their end (a log that is written, or whose writer was \
             killed, ends so)"
        ));
    }
    lines
}

impl Where {
    fn logs(&self) -> anyhow::Result<Vec<PathBuf>> {
        logs(&data_dir(self.data_dir.as_deref(), self.config.as_deref())?)
    }

    /// The same, and says which they are: records do not tell whose log they stand in.
    fn logs_told(&self) -> anyhow::Result<Vec<PathBuf>> {
        let logs = self.logs()?;
        for log in &logs {
            // What is shown goes on where nobody can be told.
            let _ = writeln!(std::io::stderr(), "audit log {}", log.display());
        }
        Ok(logs)
    }
}

/// The data folder that is meant: the one that is named, else that of the configuration file, else one that is found. A
/// weir.yaml here that cannot be read is an error: another log would be told about without anybody noticing.
pub(super) fn data_dir(named: Option<&Path>, config: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(named) = named {
        return Ok(named.to_path_buf());
    }
    let here = Path::new(CONFIG_DEFAULT);
    match config.or_else(|| here.exists().then_some(here)) {
        Some(file) => {
            let loaded = config::to_look_at(file).context("to name the folder: --data-dir")?;
            Ok(loaded.data_dir)
        }
        None => Ok(super::found_data_dir()),
    }
}

/// The logs under a data folder: one, or several where processes share it.
pub(super) fn logs(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(dir).with_context(|| {
        format!(
            "there is no data folder {}; give --data-dir, or -c with the configuration file",
            dir.display()
        )
    })?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| {
            let name = p.file_name().and_then(|n| n.to_str()).unwrap_or("");
            name == "audit" || name.starts_with("audit-")
        })
        .filter(|p| p.is_dir())
        .collect();
    found.sort();
    if found.is_empty() {
        bail!("there is no audit log under {}", dir.display());
    }
    Ok(found)
}

impl Filter {
    fn query(&self) -> anyhow::Result<Query> {
        let text = |field: &Option<String>| field.as_deref().map(Into::into);
        let id = self.id.as_deref().map(str::parse).transpose();
        Ok(Query {
            since_unix_us: self.since,
            until_unix_us: self.until,
            tenant: text(&self.tenant),
            principal: text(&self.principal),
            server: text(&self.server),
            method: text(&self.method),
            tool: text(&self.tool),
            actions: self.action.clone(),
            rule: text(&self.rule),
            category: text(&self.category),
            id: id.context("--id")?,
            text: self.text.clone(),
            limit: None,
            order: Order::OldestFirst,
        })
    }
}

fn show(record: &Record, at: &Where, out: &mut dyn Write) -> std::io::Result<()> {
    if at.json {
        serde_json::to_writer(&mut *out, record)?;
        return out.write_all(b"\n");
    }
    // Some of it a client or a server chose: it is not for the terminal to obey, and makes no line of its own.
    let or_dash =
        |text: &Option<audit_log::Text>| printable(text.as_deref().unwrap_or("-")).into_owned();
    let l = &record.latency_us;
    writeln!(
        out,
        "{}  {:<7}  {}/{}  {}  {}  {}{}  scan {} policy {} upstream {} total {} us  {}",
        utc(record.time_unix_us),
        record.action.as_str(),
        record.tenant,
        record.server,
        or_dash(&record.principal),
        or_dash(&record.method),
        or_dash(&record.tool),
        if record.dry_run { "  (dry run)" } else { "" },
        l.scan,
        l.policy,
        l.upstream,
        l.total,
        record.id,
    )?;
    if let Some(reason) = &record.reason {
        writeln!(out, "    because: {}", printable(reason))?;
    }
    for f in &record.findings {
        let layers = match f.layers.is_empty() {
            true => String::new(),
            false => format!("  in {}", f.layers.join(">")),
        };
        writeln!(
            out,
            "    {}  {}  {} at {}{layers}",
            f.action.as_str(),
            f.category,
            printable(&f.rule),
            printable(&f.path)
        )?;
    }
    Ok(())
}

/// How a time may be written in UTC, beside RFC 3339.
const TIMES: [&str; 4] = [
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d %H:%M",
];

/// A time as records show it, a day, seconds since 1970, or an age.
fn parse_time(text: &str) -> Result<u64, String> {
    if let Some(unix_us) = written_time(text) {
        return u64::try_from(unix_us).map_err(|_| "times before 1970 have no records".into());
    }
    let (number, unit_s) = match text.strip_suffix(['s', 'm', 'h', 'd']) {
        None => (text, None),
        Some(number) => {
            let unit_s = match text.as_bytes()[text.len() - 1] {
                b's' => 1,
                b'm' => 60,
                b'h' => 3600,
                _ => 86_400,
            };
            (number, Some(unit_s))
        }
    };
    let number: u64 = number.parse().map_err(|_| {
        "give a time such as 2026-11-21T12:34:56Z, a day (UTC), seconds since 1970, or an age such as 15m, 6h, 7d"
    })?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let at_s = match unit_s {
        None => number,
        Some(unit_s) => now.saturating_sub(number.saturating_mul(unit_s)),
    };
    Ok(at_s.saturating_mul(1_000_000))
}

/// Microseconds since 1970 of a time or a day. Where no zone is named it is UTC, as it is shown.
fn written_time(text: &str) -> Option<i64> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.timestamp_micros());
    }
    let bare = text.strip_suffix('Z').unwrap_or(text);
    let time = TIMES
        .iter()
        .find_map(|form| NaiveDateTime::parse_from_str(bare, form).ok());
    let day = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    let time = time.or_else(|| day()?.and_hms_opt(0, 0, 0))?;
    Some(time.and_utc().timestamp_micros())
}

/// RFC 3339, in UTC.
pub(super) fn utc(unix_us: u64) -> String {
    let time = i64::try_from(unix_us)
        .ok()
        .and_then(DateTime::from_timestamp_micros);
    time.unwrap_or_default()
        .to_rfc3339_opts(SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_checkpoint_vouches_for_is_said() {
        assert!(limits_of(&Report::default()).is_empty());
        let lines = limits_of(&Report {
            first_sequence: 7,
            unvouched: 3,
            ..Report::default()
        });
        assert!(lines[0].contains("begins with record 7"), "{lines:?}");
        let words = "3 records after the last checkpoint: nothing vouches for their end";
        assert!(lines[1].starts_with(words), "{lines:?}");
    }

    #[test]
    fn times_are_read_and_shown() {
        assert_eq!(utc(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(utc(1_709_208_000_123_000), "2024-02-29T12:00:00.123Z");
        assert_eq!(utc(1_795_264_496_000_000), "2026-11-21T12:34:56.000Z");
        assert_eq!(parse_time("100"), Ok(100_000_000));
        assert!(parse_time("1h").unwrap() < parse_time("1m").unwrap());
        let noon = Ok(1_795_262_400_000_000);
        for text in [
            "2026-11-21T12:00:00.000Z",
            "2026-11-21T12:00:00",
            "2026-11-21 12:00",
            "2026-11-21T12:00Z",
            "2026-11-21T13:00:00+01:00",
        ] {
            assert_eq!(parse_time(text), noon, "{text}");
        }
        assert_eq!(parse_time("2026-11-21"), Ok(1_795_219_200_000_000));
        for bad in [
            "",
            "h",
            "x",
            "1y",
            "-1",
            "2026-13-01",
            "2026-11-21T25:00",
            "1969-01-01",
        ] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }
}
