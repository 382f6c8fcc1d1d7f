//! Between the gateway, which runs no plugin's code, and the plugin host, which knows no gateway.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use anyhow::Context as _;
use dlp_policy::{Evaluator, Evaluators};
use dlp_scan::RuleSet;
use domain::{Plugin, PluginBinding, Server, ServerId, TenantId};
use gateway::PluginSource;
use plugin_host::{Cache, CompileLimits, Compiler, HostOptions, PluginHost};
use sha2::{Digest as _, Sha256};

use crate::config::store::{self, Registry, Tap};
use crate::taps::{Watched, left};

/// Compiled plugins that stay in memory; above it those that nothing is bound to go.
const LOADED_MAX: usize = 256;

/// Loads and binds the plugins of all tenants.
pub struct Plugins {
    data_dir: PathBuf,
    /// Whether what was compiled stays in the data folder.
    keeps: bool,
    /// Made with the first plugin: a gateway without any reserves nothing.
    host: OnceLock<PluginHost>,
    loaded: Mutex<HashMap<[u8; 32], Arc<plugin_host::Plugin>>>,
    /// What was read last, for all servers of one reload.
    registry: Mutex<Option<(Stamp, Arc<Registry>)>>,
}

/// Time, size and number of a file.
type Stamp = Option<(SystemTime, u64, u64)>;

impl Plugins {
    /// A source whose cache and keys are in the data folder.
    pub fn new(data_dir: &Path) -> Self {
        Self {
            data_dir: data_dir.to_owned(),
            keeps: true,
            host: OnceLock::new(),
            loaded: Mutex::default(),
            registry: Mutex::default(),
        }
    }

    /// The same for trying things out: nothing is written into the data folder.
    pub fn trying(data_dir: &Path) -> Self {
        Self {
            keeps: false,
            ..Self::new(data_dir)
        }
    }

    /// The host.
    ///
    /// # Errors
    /// Plugins cannot run here.
    pub fn host(&self) -> Result<&PluginHost, String> {
        if let Some(host) = self.host.get() {
            return Ok(host);
        }
        let host = self.make_host().map_err(|error| format!("{error:#}"))?;
        Ok(self.host.get_or_init(|| host))
    }

    /// Loads a component, or finds it loaded.
    ///
    /// # Errors
    /// Why it is no plugin.
    pub fn load(&self, component: &[u8]) -> Result<Arc<plugin_host::Plugin>, String> {
        let hash: [u8; 32] = Sha256::digest(component).into();
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plugin) = loaded.get(&hash) {
            return Ok(Arc::clone(plugin));
        }
        let plugin = self
            .host()?
            .load(component)
            .map_err(|error| error.to_string())?;
        if loaded.len() >= LOADED_MAX {
            loaded.retain(|_, plugin| Arc::strong_count(plugin) > 1);
        }
        loaded.insert(hash, Arc::clone(&plugin));
        Ok(plugin)
    }

    /// Who looks on at a server now.
    fn taps(&self, id: &ServerId) -> Result<Vec<Tap>, String> {
        let registry = self.registry()?;
        let mut taps = registry.taps.get(id.as_str()).cloned().unwrap_or_default();
        taps.retain(|tap| !left(tap).is_zero());
        Ok(taps)
    }

    fn registry(&self) -> Result<Arc<Registry>, String> {
        let stamp = std::fs::metadata(store::registry_path(&self.data_dir)).ok();
        let stamp = stamp.and_then(|meta| Some((meta.modified().ok()?, meta.len(), meta.ino())));
        let mut last = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, registry)) = &*last
            && *of == stamp
        {
            return Ok(Arc::clone(registry));
        }
        let registry = Arc::new(Registry::read(&self.data_dir)?);
        *last = Some((stamp, Arc::clone(&registry)));
        Ok(registry)
    }

    /// What is to be compared with a bound plugin: bound alike, under a name of its own, so that it has
    /// its own state and metrics.
    fn candidate(
        &self,
        tap: &Tap,
        binding: &PluginBinding,
        tenant: &TenantId,
        id: &ServerId,
        rules: &Arc<RuleSet>,
    ) -> Result<Option<Arc<dyn Evaluator>>, String> {
        let Some(sha256) = &tap.candidate else {
            return Ok(None);
        };
        let loaded = self.load(&store::kept(&self.data_dir, sha256)?)?;
        let binding = PluginBinding {
            plugin: format!("{} (shadow)", binding.plugin),
            ..binding.clone()
        };
        let bound = self
            .host()?
            .bind(&loaded, &binding, tenant, id.as_str(), rules)
            .map_err(|error| format!("the candidate: {error}"))?;
        Ok(Some(Arc::new(bound)))
    }

    fn make_host(&self) -> anyhow::Result<PluginHost> {
        if !self.keeps {
            return host_for_trying();
        }
        let folder = store::folder(&self.data_dir);
        let program = std::env::current_exe()?;
        let options = HostOptions {
            compiler: Compiler::Process {
                program,
                limits: CompileLimits::default(),
            },
            cache: Some(Cache::new(
                folder.join("cache"),
                crate::app::secret_key(&folder, "cache.key")?,
            )),
            hash_key: crate::app::secret_key(&folder, "hash.key")?,
        };
        Ok(PluginHost::new(options)?)
    }
}

/// A host for trying things out: nothing is kept.
pub fn host_for_trying() -> anyhow::Result<PluginHost> {
    let mut hash_key = [0u8; 32];
    getrandom::fill(&mut hash_key).context("the system gives no random numbers")?;
    Ok(PluginHost::new(HostOptions {
        compiler: Compiler::Process {
            program: std::env::current_exe()?,
            limits: CompileLimits::default(),
        },
        cache: None,
        hash_key,
    })?)
}

impl PluginSource for Plugins {
    fn evaluators(
        &self,
        tenant: &TenantId,
        plugins: &BTreeMap<String, Plugin>,
        id: &ServerId,
        server: &Server,
        rules: &Arc<RuleSet>,
    ) -> Result<Evaluators, String> {
        let mut evaluators = Evaluators::default();
        let taps = self.taps(id)?;
        for (i, binding) in server.plugins.iter().enumerate() {
            let name = &binding.plugin;
            let said = |problem: String| format!("[{i}]: plugin {name}: {problem}");
            let plugin = plugins
                .get(name)
                .ok_or_else(|| said("there is none".into()))?;
            let loaded = self.load(&plugin.component).map_err(said)?;
            let bound = self
                .host()
                .map_err(said)?
                .bind(&loaded, binding, tenant, id.as_str(), rules)
                .map_err(|error| said(error.to_string()))?;
            let tool = binding.tool.as_deref();
            let mut bound: Arc<dyn Evaluator> = Arc::new(bound);
            for tap in taps.iter().filter(|t| t.plugin.as_ref() == Some(name)) {
                let candidate = self.candidate(tap, binding, tenant, id, rules);
                let candidate = candidate.map_err(said)?;
                let watched = Watched::new(&self.data_dir, tap, rules, Some(bound), candidate);
                bound = Arc::new(watched.map_err(said)?);
            }
            evaluators
                .add(tool, binding.direction, bound)
                .map_err(|problem| said(format!("tool: {problem}")))?;
        }
        for tap in taps.iter().filter(|tap| tap.plugin.is_none()) {
            let watched = Watched::new(&self.data_dir, tap, rules, None, None)?;
            evaluators
                .add(tap.tool.as_deref(), tap.direction, Arc::new(watched))
                .map_err(|problem| format!("tap: tool: {problem}"))?;
        }
        Ok(evaluators)
    }
}
