//! Loading and binding: from a component to something that can judge.

use std::sync::Arc;
use std::time::Instant;

use dlp_scan::RuleSet;
use domain::{PluginBinding, TenantId};
use wasmtime::Engine;
use wasmtime::component::{Component, HasSelf, Linker};

use crate::bound::{Bound, Room};
use crate::cache::Cache;
use crate::compile::Compiler;
use crate::contract::{self, PluginPre};
use crate::engine::{self, Clock};
use crate::imports::{Data, Shared};
use crate::instance::{Description, Instance, PATIENT};
use crate::state::Spaces;

/// Instances at once over all plugins. Each reserves address space, not memory; where there is not so
/// much of it (other machines, limits of a container), fewer have to do.
const SLOTS: [u32; 3] = [512, 128, 32];

/// What a host is made with.
#[derive(Debug)]
pub struct HostOptions {
    /// Who compiles.
    pub compiler: Compiler,
    /// Where compiled code is kept; without one each load compiles.
    pub cache: Option<Cache>,
    /// Key of the hashes that plugins may compare; each tenant's is derived from it.
    pub hash_key: [u8; 32],
}

/// Loads plugins and binds them. One per process.
pub struct PluginHost {
    engine: Engine,
    linker: Linker<Data>,
    room: Arc<Room>,
    options: HostOptions,
    spaces: Spaces,
    kind: u64,
}

impl std::fmt::Debug for PluginHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PluginHost")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// A plugin that is compiled and linked.
pub struct Plugin {
    pub(crate) pre: PluginPre<Data>,
    description: Description,
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin")
            .field("description", &self.description)
            .finish_non_exhaustive()
    }
}

impl Plugin {
    /// What it says about itself.
    pub fn description(&self) -> &Description {
        &self.description
    }
}

/// Why a component is no plugin.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// This machine cannot run plugins.
    #[error("plugins cannot run here: {0}")]
    Engine(String),
    /// It was refused, in words for its author.
    #[error("{0}")]
    Refused(String),
}

/// Why a plugin cannot be bound.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// It does not take its configuration, in its own words.
    #[error("the plugin refuses its configuration: {0}")]
    Config(String),
    /// It failed before the first message.
    #[error("the plugin cannot be started: {0}")]
    Start(String),
}

impl PluginHost {
    /// A host. Reserves address space; memory comes with the first plugin.
    ///
    /// # Errors
    /// The system does not give what running plugins takes.
    pub fn new(options: HostOptions) -> Result<Self, LoadError> {
        let failed = |error: wasmtime::Error| LoadError::Engine(format!("{error:#}"));
        let (engine, slots) = some_engine().map_err(failed)?;
        let mut linker = Linker::new(&engine);
        contract::Plugin::add_to_linker::<_, HasSelf<Data>>(&mut linker, |data| data)
            .map_err(failed)?;
        let clock = Clock::start(&engine).map_err(|error| LoadError::Engine(error.to_string()))?;
        let kind = {
            use std::hash::{DefaultHasher, Hash as _, Hasher as _};
            let mut hasher = DefaultHasher::new();
            engine.precompile_compatibility_hash().hash(&mut hasher);
            hasher.finish()
        };
        Ok(Self {
            engine,
            linker,
            room: Arc::new(Room::new(clock, slots)),
            options,
            spaces: Spaces::default(),
            kind,
        })
    }

    /// Compiles a component (or finds it compiled), links it and asks it what it is. Takes seconds
    /// for large ones: never to be called where a message waits.
    ///
    /// # Errors
    /// Why it is no plugin.
    pub fn load(&self, component: &[u8]) -> Result<Arc<Plugin>, LoadError> {
        let cached = self
            .options
            .cache
            .as_ref()
            .and_then(|c| c.get(component, self.kind));
        let component = match cached.and_then(|code| self.revive(&code).ok()) {
            Some(component) => component,
            None => {
                let code = self
                    .options
                    .compiler
                    .compile(component)
                    .map_err(LoadError::Refused)?;
                if let Some(cache) = &self.options.cache {
                    cache.put(component, self.kind, &code);
                }
                self.revive(&code)
                    .map_err(|error| LoadError::Refused(format!("it cannot run here: {error:#}")))?
            }
        };
        let refused =
            |error: wasmtime::Error| LoadError::Refused(format!("it cannot be linked: {error:#}"));
        let pre = self.linker.instantiate_pre(&component).map_err(refused)?;
        let pre = PluginPre::new(pre).map_err(refused)?;
        let description = self.describe(&pre)?;
        Ok(Arc::new(Plugin { pre, description }))
    }

    /// Binds a plugin for a server of a tenant: starts it once and gives it its configuration.
    ///
    /// # Errors
    /// It cannot be started, or does not take its configuration.
    pub fn bind(
        &self,
        plugin: &Arc<Plugin>,
        binding: &PluginBinding,
        tenant: &TenantId,
        server: &str,
        rules: &Arc<RuleSet>,
    ) -> Result<Bound, BindError> {
        let tenant: Arc<str> = tenant.as_str().into();
        let space = self.spaces.space(&tenant, &binding.plugin.as_str().into());
        let hash_key = self.tenant_key(&tenant);
        let shared = Shared::new(binding.clone(), tenant, Arc::clone(rules), space, hash_key);
        Bound::new(
            Arc::clone(plugin),
            Arc::new(shared),
            server,
            Arc::clone(&self.room),
        )
    }

    /// Two tenants' hashes of one value have nothing in common.
    fn tenant_key(&self, tenant: &str) -> [u8; 32] {
        *blake3::keyed_hash(&self.options.hash_key, tenant.as_bytes()).as_bytes()
    }

    fn describe(&self, pre: &PluginPre<Data>) -> Result<Description, LoadError> {
        let nobody = TenantId::parse("nobody").expect("a valid id");
        let mut binding = PluginBinding::new("unbound");
        binding.memory_mb = 64;
        let space = Arc::default();
        let rules = Arc::clone(RuleSet::builtin());
        let shared = Shared::new(binding, nobody.as_str().into(), rules, space, [0; 32]);
        let described = Instance::new(
            pre,
            Arc::new(shared),
            &self.room.clock,
            Instant::now(),
            PATIENT,
        )
        .and_then(|mut instance| instance.describe(&self.room.clock));
        let failed = |what| LoadError::Refused(format!("it fails when asked what it is: {what}"));
        let description = described.map_err(|failure| failed(failure.what))?;
        let sizes = [
            ("name", description.name.len(), 64),
            ("version", description.version.len(), 64),
            ("summary", description.summary.len(), 1024),
            ("config-schema", description.config_schema.len(), 64 << 10),
        ];
        for (field, bytes, max) in sizes {
            if bytes > max {
                return Err(failed(format!(
                    "its {field} has {bytes} bytes; at most {max}"
                )));
            }
        }
        Ok(description)
    }

    fn revive(&self, code: &[u8]) -> wasmtime::Result<Component> {
        #[expect(unsafe_code, reason = "the one place where compiled code is believed")]
        // SAFETY: the code comes from our own compiling process or from a file under our seal; the
        // engine itself checks that it was made for this very kind of engine.
        unsafe {
            Component::deserialize(&self.engine, code)
        }
    }
}

/// An engine with as many slots as this machine gives.
fn some_engine() -> wasmtime::Result<(Engine, u32)> {
    let [most, fewer @ ..] = SLOTS;
    let mut outcome = engine::running(most).map(|engine| (engine, most));
    for slots in fewer {
        if let Err(error) = &outcome {
            tracing::warn!(
                slots,
                error = format!("{error:#}"),
                "plugins get fewer slots"
            );
            outcome = engine::running(slots).map(|engine| (engine, slots));
        }
    }
    outcome
}
