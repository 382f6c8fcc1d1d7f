//! `weir policy record` and `shadow` on the traffic of a running `weir serve`.

use std::io::{BufRead as _, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, bail};
use clap::Args;
use domain::{Direction, Grant, ServerId};
use serde_json::{Value, json};

use super::pushed::{self, Way, Where};
use crate::config::store::{self, Registry, Tap};
use crate::config::{self, Loaded, signing};
use crate::taps::Line;

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Longest line of a tap's file.
const LINE_BYTES_MAX: usize = 8 << 20;

/// Where to look on, and for how long.
#[derive(Debug, Args)]
pub struct Look {
    #[command(flatten)]
    at: Where,
    /// The server; may be left out if there is only one
    #[arg(long)]
    server: Option<String>,
    /// Stop after so many messages
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    messages: u32,
    /// Stop after so many seconds
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
}

/// What to record.
#[derive(Debug, Args)]
pub struct RecordArgs {
    #[command(flatten)]
    look: Look,
    /// File for the cases; - writes to standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
    /// Expect what this bound plugin says now, where it is bound; absent: expect `pass`
    #[arg(long, value_name = "NAME", conflicts_with_all = ["tool", "direction"])]
    plugin: Option<String>,
    /// Glob over tool names
    #[arg(long)]
    tool: Option<String>,
    /// Absent: both
    #[arg(long)]
    direction: Option<Way>,
}

/// What `shadow` needs for live traffic.
#[derive(Debug, Args)]
pub struct LiveArgs {
    /// The bound plugin that the new version is compared with
    #[arg(long, value_name = "NAME")]
    pub plugin: String,
    #[command(flatten)]
    look: Look,
}

/// Records.
pub fn record(args: &RecordArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let session = Session::begin(&args.look, args.plugin.clone(), |tap| {
        tap.tool.clone_from(&args.tool);
        tap.direction = args.direction.map(Direction::from);
    })?;
    let lines = session.lines();
    let (config, grants) = (session.config.clone(), session.grants.clone());
    session.end()?;
    let mut cases = Vec::new();
    let mut withheld = 0;
    for line in lines? {
        match line {
            Line::Case(mut case) => {
                case["name"] = name_of(&case, cases.len() + 1).into();
                cases.push(case);
            }
            Line::Withheld => withheld += 1,
            Line::Alike | Line::Unlike { .. } => {}
        }
    }
    if cases.is_empty() {
        bail!(
            "no message came by in {} s ({withheld} withheld)",
            args.look.seconds
        );
    }
    let mut text = String::from(HEAD);
    // JSON is YAML; a case a line is easy to cut.
    text += &format!("config: {config}\n");
    if !grants.is_empty() {
        text += &format!("grants: {}\n", serde_json::to_string(&grants)?);
    }
    text += "cases:\n";
    for case in &cases {
        text += &format!("  - {case}\n");
    }
    if args.out.as_os_str() == "-" {
        return Ok(out.write_all(text.as_bytes())?);
    }
    std::fs::write(&args.out, text)
        .with_context(|| format!("{} cannot be written", args.out.display()))?;
    writeln!(
        out,
        "{} cases in {}, {withheld} messages withheld",
        cases.len(),
        args.out.display()
    )?;
    Ok(())
}

const HEAD: &str = "# Recorded from live traffic by `weir policy record`. What detection rules found is masked; other\n\
    # values are as they were: look through it before you share it.\n";

fn name_of(case: &Value, nth: usize) -> String {
    let message = &case["message"];
    let method = message["method"].as_str();
    let of = case["call"]["method"].as_str();
    let tool = message["params"]["name"].as_str();
    let tool = tool.or(case["call"]["tool"].as_str()).unwrap_or_default();
    let what = match (method, of) {
        (Some(method), _) => method.to_owned(),
        (None, Some(of)) => format!("answer to {of}"),
        (None, None) => "answer".to_owned(),
    };
    format!("recorded {nth}: {what} {tool}").trim().to_owned()
}

/// Lets a new version judge live traffic beside the one in force, and lists where they differ.
pub fn shadow(component: &Path, args: &LiveArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let bytes = super::read(component)?;
    // Refused here in words, before anything is asked of the serving process.
    super::host()?
        .load(&bytes)
        .with_context(|| format!("{} is no plugin", component.display()))?;
    let session = Session::begin_with(
        &args.look,
        Some(args.plugin.clone()),
        |loaded, tap, tenant| {
            let keys = &loaded.desired.tenants[tenant].plugin_keys;
            if !keys.is_empty() {
                signing::check_file(&signing::beside(component), &bytes, keys)
                    .map_err(anyhow::Error::msg)?;
            }
            tap.candidate = Some(store::keep(&loaded.data_dir, &bytes)?);
            Ok(())
        },
    )?;
    let lines = session.lines();
    session.end()?;
    let (mut alike, mut unlike) = (0, 0);
    for line in lines? {
        match line {
            Line::Alike => alike += 1,
            Line::Unlike { old, new, case } => {
                unlike += 1;
                let name = if case.is_null() {
                    "a message that cannot be shown".to_owned()
                } else {
                    format!("{} {}", name_of(&case, unlike), case["message"])
                };
                writeln!(out, "{name}\n  old: {old}\n  new: {new}")?;
            }
            Line::Case(_) | Line::Withheld => {}
        }
    }
    writeln!(
        out,
        "{alike} alike, {unlike} different; nothing was enforced"
    )?;
    Ok(())
}

/// One tap, from its beginning to its end.
struct Session {
    loaded: Loaded,
    server: ServerId,
    tap: Tap,
    seconds: u64,
    /// That of the plugin's binding.
    config: Value,
    grants: Vec<Grant>,
}

impl Session {
    fn begin(
        look: &Look,
        plugin: Option<String>,
        set: impl FnOnce(&mut Tap),
    ) -> anyhow::Result<Self> {
        Self::begin_with(look, plugin, |_, tap, _| {
            set(tap);
            Ok(())
        })
    }

    fn begin_with(
        look: &Look,
        plugin: Option<String>,
        set: impl FnOnce(&Loaded, &mut Tap, &domain::TenantId) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let loaded = config::to_look_at(&look.at.config)?;
        let id = pushed::server_of(&loaded, look.server.as_deref())?;
        let server = &loaded.desired.servers[&id];
        let (mut config, mut grants) = (json!({}), Vec::new());
        if let Some(plugin) = &plugin {
            let mut bindings = server.plugins.iter();
            let binding = bindings
                .find(|binding| binding.plugin == *plugin)
                .with_context(|| format!("{plugin} is not bound to {id}"))?;
            config = Value::Object(binding.config.clone());
            grants.clone_from(&binding.grants);
        }
        let mut random = [0u8; 8];
        getrandom::fill(&mut random).context("the system gives no random numbers")?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let mut tap = Tap {
            id: format!("{:016x}", u64::from_le_bytes(random)),
            tool: None,
            direction: None,
            // Time for the change to be in force comes on top.
            until_unix_s: now.as_secs() + look.seconds + 30,
            messages_max: look.messages,
            plugin,
            candidate: None,
        };
        set(&loaded, &mut tap, &server.tenant)?;
        let session = Self {
            server: id.clone(),
            tap: tap.clone(),
            seconds: look.seconds,
            config,
            grants,
            loaded,
        };
        let (generation, ()) = Registry::change(&session.loaded.data_dir, |registry| {
            registry.taps.entry(id.to_string()).or_default().push(tap);
            Ok(())
        })?;
        if let Err(error) = pushed::await_serving(&session.loaded, generation) {
            // What is wrong was said; the change must not stay behind.
            let _ = session.end();
            return Err(error);
        }
        Ok(session)
    }

    /// What was seen until there was enough, or the time was over.
    fn lines(&self) -> anyhow::Result<Vec<Line>> {
        let path = store::tap_path(&self.loaded.data_dir, &self.tap.id);
        let until = Instant::now() + Duration::from_secs(self.seconds);
        loop {
            let lines = match std::fs::File::open(&path) {
                Ok(file) => whole_lines(file)?,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
                Err(error) => return Err(error).context(path.display().to_string()),
            };
            if lines.len() >= self.tap.messages_max as usize || Instant::now() >= until {
                let lines = lines.iter().take(self.tap.messages_max as usize);
                let lines = lines.map(|line| serde_json::from_slice(line));
                return Ok(lines.collect::<Result<_, _>>()?);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn end(self) -> anyhow::Result<()> {
        let (generation, ()) = Registry::change(&self.loaded.data_dir, |registry| {
            if let Some(taps) = registry.taps.get_mut(self.server.as_str()) {
                taps.retain(|tap| tap.id != self.tap.id);
            }
            Ok(())
        })?;
        let ended = pushed::await_serving(&self.loaded, generation);
        let path = store::tap_path(&self.loaded.data_dir, &self.tap.id);
        // Gone already if nothing was ever seen.
        let _ = std::fs::remove_file(path);
        ended
    }
}

/// A line that is still being written is left for the next look.
fn whole_lines(file: std::fs::File) -> std::io::Result<Vec<Vec<u8>>> {
    let mut reader = BufReader::new(file);
    let mut lines = Vec::new();
    loop {
        let mut line = Vec::new();
        std::io::Read::take(&mut reader, LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            return Ok(lines);
        }
        lines.push(line);
    }
}
