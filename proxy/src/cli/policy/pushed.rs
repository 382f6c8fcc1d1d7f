//! `weir policy push`, `list`, `bind`, `unbind` and `rollback`: what a `weir serve` has in force.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use domain::{Direction, FailureMode, Grant, Isolation, PluginBinding, ServerId, TenantId};
use gateway::PluginSource as _;

use super::project;
use crate::config::store::{self, Registry, Version};
use crate::config::{self, Loaded, signing};
use crate::plugins::Plugins;

/// How long a serving process has to take a change: it looks twice a second, and compiles.
const WAIT: Duration = Duration::from_secs(20);
/// Without a sign of one for so long, none is taken to run.
const SILENCE: Duration = Duration::from_secs(3);

/// Whose `weir serve`.
#[derive(Debug, Args)]
pub struct Where {
    /// The configuration file of the `weir serve`
    #[arg(long, short, value_name = "FILE", default_value = "weir.yaml")]
    pub config: PathBuf,
}

/// What to push.
#[derive(Debug, Args)]
pub struct PushArgs {
    /// The component; a signature beside it in COMPONENT.sig goes with it. Absent: that of the project
    /// here
    pub component: Option<PathBuf>,
    #[command(flatten)]
    at: Where,
    /// The tenant it is for; may be left out if there is only one
    #[arg(long)]
    tenant: Option<String>,
    /// Its name there; its own name if absent
    #[arg(long)]
    name: Option<String>,
}

/// What to list.
#[derive(Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    at: Where,
}

/// What to bind, where, and what it may.
#[derive(Debug, Args)]
pub struct BindArgs {
    /// The plugin's name; absent: that of the project here
    pub plugin: Option<String>,
    #[command(flatten)]
    at: Where,
    /// The server; may be left out if there is only one
    #[arg(long)]
    server: Option<String>,
    /// Glob over tool names; absent: every tool and every message without a tool
    #[arg(long)]
    tool: Option<String>,
    /// Absent: both
    #[arg(long)]
    direction: Option<Way>,
    /// Its configuration, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}")]
    plugin_config: String,
    /// How long an instance lives
    #[arg(long, default_value = "message")]
    isolation: Life,
    /// What becomes of a message when the plugin fails
    #[arg(long, default_value = "closed")]
    fail_mode: Fail,
    /// What it may do beyond looking; may be repeated
    #[arg(long, value_name = "GRANT", value_parser = grant)]
    grant: Vec<Grant>,
    /// Time for one message, in milliseconds
    #[arg(long, default_value_t = 10)]
    timeout_ms: u32,
    /// Memory of one instance, in MiB
    #[arg(long, default_value_t = 16)]
    memory_mb: u32,
    /// Take the place of what binds the plugin to the same messages
    #[arg(long)]
    replace: bool,
}

/// What to take away.
#[derive(Debug, Args)]
pub struct UnbindArgs {
    /// The plugin's name
    pub plugin: String,
    #[command(flatten)]
    at: Where,
    /// The server; may be left out where there is one only
    #[arg(long)]
    server: Option<String>,
    /// Only the bindings with this tool glob
    #[arg(long)]
    tool: Option<String>,
}

/// What to put back.
#[derive(Debug, Args)]
pub struct RollbackArgs {
    /// The plugin's name
    pub plugin: String,
    #[command(flatten)]
    at: Where,
    /// The tenant it belongs to; may be left out where there is one only
    #[arg(long)]
    tenant: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Way {
    ToServer,
    ToClient,
}

impl From<Way> for Direction {
    fn from(way: Way) -> Self {
        match way {
            Way::ToServer => Self::ToServer,
            Way::ToClient => Self::ToClient,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Life {
    Message,
    Tenant,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Fail {
    Closed,
    Open,
}

/// The grant of that name.
pub fn grant(word: &str) -> Result<Grant, String> {
    let words = Grant::ALL.map(Grant::as_str);
    let mut all = Grant::ALL.into_iter();
    let found = all.find(|grant| grant.as_str() == word);
    found.ok_or_else(|| format!("use one of {}", words.join(", ")))
}

/// Pushes.
pub fn push(args: &PushArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let loaded = config::to_look_at(&args.at.config)?;
    let tenant_id = match &args.tenant {
        Some(tenant) => TenantId::parse(tenant)?,
        None => only(loaded.desired.tenants.keys(), "--tenant")?,
    };
    let tenant = loaded.desired.tenants.get(&tenant_id);
    let tenant = tenant.with_context(|| format!("the configuration has no tenant {tenant_id}"))?;
    let path = match &args.component {
        Some(path) => path.clone(),
        None => project::built(&project::find(None)?)?,
    };
    let component = super::read(&path)?;
    let signature = config::read_bounded(&signing::beside(&path), signing::FILE_BYTES_MAX).ok();
    let signature = signature.map(|text| text.trim().to_owned());
    if !tenant.plugin_keys.is_empty() {
        let signature = signature
            .as_deref()
            .context("the tenant takes signed plugins only; sign it with `weir policy sign`")?;
        signing::check(signature, &component, &tenant.plugin_keys).map_err(anyhow::Error::msg)?;
    }
    // Compiled here, bounded, and sealed into the cache: the serving process finds it there.
    let plugins = Plugins::new(&loaded.data_dir);
    let plugin = plugins.load(&component).map_err(anyhow::Error::msg);
    let plugin = plugin.with_context(|| path.display().to_string())?;
    let said = plugin.description();
    let name = args.name.as_deref().unwrap_or(&said.name);
    config::check_plugin_name(name).map_err(anyhow::Error::msg)?;
    if !tenant.plugins.contains_key(name) && tenant.plugins.len() >= config::PLUGINS_MAX {
        bail!(
            "the tenant has {} plugins, and may have no more",
            tenant.plugins.len()
        );
    }
    let version = Version {
        version: said.version.clone(),
        sha256: config::sha256_hex(&component),
        pushed_unix_s: SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)?
            .as_secs(),
        signature,
    };
    let shown = format!("{name} {} ({})", version.version, &version.sha256[..12]);
    let (generation, ()) = Registry::change(&loaded.data_dir, |registry| {
        registry.push(
            &loaded.data_dir,
            tenant_id.as_str(),
            name,
            version,
            &component,
        )
    })?;
    writeln!(out, "pushed {shown} for tenant {tenant_id}")?;
    tell(&loaded, generation, out)
}

/// Lists.
pub fn list(args: &ListArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let loaded = config::to_look_at(&args.at.config)?;
    let registry = Registry::read(&loaded.data_dir).map_err(anyhow::Error::msg)?;
    for (tenant, plugins) in &registry.plugins {
        for (name, versions) in plugins {
            for (i, version) in versions.list.iter().enumerate() {
                let mark = if i == versions.current { "*" } else { " " };
                let signed = if version.signature.is_some() {
                    " signed"
                } else {
                    ""
                };
                let short = version.sha256.get(..12).unwrap_or_default();
                writeln!(
                    out,
                    "{mark} {tenant}/{name} {} {short}{signed}",
                    version.version
                )?;
            }
        }
    }
    for (id, server) in &loaded.desired.servers {
        for binding in &server.plugins {
            writeln!(out, "{id}: {}", serde_json::to_string(binding)?)?;
        }
    }
    Ok(())
}

/// Binds.
pub fn bind(args: &BindArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let loaded = config::to_look_at(&args.at.config)?;
    let plugin = match &args.plugin {
        Some(plugin) => plugin.clone(),
        None => own_name()?,
    };
    let id = server_of(&loaded, args.server.as_deref())?;
    let server = &loaded.desired.servers[&id];
    let binding = PluginBinding {
        tool: args.tool.clone(),
        direction: args.direction.map(Direction::from),
        config: serde_json::from_str(&args.plugin_config)
            .context("--plugin-config is no JSON object")?,
        isolation: match args.isolation {
            Life::Message => Isolation::Message,
            Life::Tenant => Isolation::Tenant,
        },
        fail_mode: match args.fail_mode {
            Fail::Closed => FailureMode::Closed,
            Fail::Open => FailureMode::Open,
        },
        grants: args.grant.clone(),
        timeout_ms: args.timeout_ms,
        memory_mb: args.memory_mb,
        ..PluginBinding::new(&plugin)
    };
    // Tried before anything is written: a serving process would refuse the whole configuration.
    let mut tried = server.clone();
    tried.plugins = vec![binding.clone()];
    let tenant = &loaded.desired.tenants[&server.tenant];
    config::check_bindings(&tried.plugins, &tenant.plugins).map_err(anyhow::Error::msg)?;
    Plugins::new(&loaded.data_dir)
        .evaluators(
            &server.tenant,
            &tenant.plugins,
            &id,
            &tried,
            dlp_scan::RuleSet::builtin(),
        )
        .map_err(anyhow::Error::msg)?;
    let all = server.plugins.iter();
    let same_of_all = all.filter(|other| is_same_place(other, &binding)).count();
    let (generation, ()) = Registry::change(&loaded.data_dir, |registry| {
        let bindings = registry.bindings.entry(id.to_string()).or_default();
        let (same, others): (Vec<_>, Vec<_>) = std::mem::take(bindings)
            .into_iter()
            .partition(|other| is_same_place(other, &binding));
        if same_of_all > same.len() {
            bail!(
                "{plugin} is bound to these messages of {id} in the configuration file; change it there"
            );
        }
        if let Some(same) = same.first().filter(|_| !args.replace) {
            let same = serde_json::to_string(same)?;
            bail!(
                "{plugin} is bound to these messages of {id} already: {same}; to change that, bind it with --replace"
            );
        }
        *bindings = others;
        bindings.push(binding);
        Ok(())
    })?;
    let tool = args.tool.as_deref().unwrap_or("every message");
    writeln!(out, "bound {plugin} to {id}, {tool}")?;
    tell(&loaded, generation, out)
}

/// Whether two bindings of one plugin are about the same messages: both would decide about each of them, and of a binding that
/// was meant to be changed the old one would go on.
fn is_same_place(one: &PluginBinding, other: &PluginBinding) -> bool {
    let directions_meet = match (one.direction, other.direction) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    };
    one.plugin == other.plugin && one.tool == other.tool && directions_meet
}

/// The server named, or the only one.
pub fn server_of(loaded: &Loaded, named: Option<&str>) -> anyhow::Result<ServerId> {
    let Some(named) = named else {
        return only(loaded.desired.servers.keys(), "--server");
    };
    let id = ServerId::parse(named)?;
    if !loaded.desired.servers.contains_key(&id) {
        bail!("the configuration has no server {id}");
    }
    Ok(id)
}

/// The one there is; with none or several, `option` must name it.
fn only<'a, T: Clone + 'a>(
    mut ids: impl ExactSizeIterator<Item = &'a T>,
    option: &str,
) -> anyhow::Result<T> {
    match (ids.len(), ids.next()) {
        (1, Some(id)) => Ok(id.clone()),
        (n, _) => bail!("the configuration has {n} to choose from; name one with {option}"),
    }
}

/// The name that the plugin built here gives itself.
fn own_name() -> anyhow::Result<String> {
    let plugin = super::load(&super::host()?, &project::built(&project::find(None)?)?)?;
    Ok(plugin.description().name.clone())
}

/// Takes bindings away.
pub fn unbind(args: &UnbindArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let loaded = config::to_look_at(&args.at.config)?;
    let server = match &args.server {
        // Its bindings may have outlived it.
        Some(server) => server.clone(),
        None => only(loaded.desired.servers.keys(), "--server")?.to_string(),
    };
    let (generation, gone) = Registry::change(&loaded.data_dir, |registry| {
        let bindings = registry.bindings.entry(server.clone()).or_default();
        let before = bindings.len();
        bindings.retain(|binding| {
            binding.plugin != args.plugin || (args.tool.is_some() && binding.tool != args.tool)
        });
        match before - bindings.len() {
            0 => bail!(
                "{server} has no such binding of {} that was made by `bind`",
                args.plugin
            ),
            gone => Ok(gone),
        }
    })?;
    writeln!(
        out,
        "{gone} binding(s) of {} taken from {server}",
        args.plugin
    )?;
    tell(&loaded, generation, out)
}

/// Puts the version before back.
pub fn rollback(args: &RollbackArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let loaded = config::to_look_at(&args.at.config)?;
    let tenant = match &args.tenant {
        Some(tenant) => tenant.clone(),
        None => only(loaded.desired.tenants.keys(), "--tenant")?.to_string(),
    };
    let (generation, version) = Registry::change(&loaded.data_dir, |registry| {
        let plugins = registry.plugins.get_mut(&tenant);
        let versions = plugins.and_then(|plugins| plugins.get_mut(&args.plugin));
        let versions = versions.with_context(|| format!("{} was never pushed", args.plugin))?;
        versions.current = versions
            .current
            .checked_sub(1)
            .context("there is no version before it")?;
        Ok(versions.list[versions.current].version.clone())
    })?;
    writeln!(out, "{} {version} is the version in force", args.plugin)?;
    tell(&loaded, generation, out)
}

/// Waits until a serving process says what became of a change, and says it.
fn tell(loaded: &Loaded, generation: u64, out: &mut dyn Write) -> anyhow::Result<()> {
    match wait_for(loaded, generation)? {
        Became::InForce => writeln!(out, "in force")?,
        Became::Unheard => writeln!(
            out,
            "no `weir serve` answered; it is in force when one starts with this configuration"
        )?,
    }
    Ok(())
}

/// Waits until a serving process took a change.
///
/// # Errors
/// It refuses it, or there is none.
pub fn await_serving(loaded: &Loaded, generation: u64) -> anyhow::Result<()> {
    match wait_for(loaded, generation)? {
        Became::InForce => Ok(()),
        Became::Unheard => {
            bail!("no `weir serve` answered; is one running with this configuration?")
        }
    }
}

enum Became {
    InForce,
    Unheard,
}

fn wait_for(loaded: &Loaded, generation: u64) -> anyhow::Result<Became> {
    let began = Instant::now();
    let before = store::applied(&loaded.data_dir);
    // One that never served from this folder will not speak up.
    let wait = if before.is_some() { WAIT } else { SILENCE };
    while began.elapsed() < wait {
        if let Some(applied) = store::applied(&loaded.data_dir)
            && applied.generation >= generation
        {
            return match applied.error {
                None => Ok(Became::InForce),
                Some(error) => {
                    bail!("the serving process refuses it, and what was in force stays: {error}")
                }
            };
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(Became::Unheard)
}
