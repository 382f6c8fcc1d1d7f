//! Plugins and their bindings: from the file and from what was pushed.

use std::collections::BTreeMap;
use std::path::Path;

use domain::{
    PLUGIN_BINDINGS_MAX, PLUGIN_NAME_BYTES_MAX, Plugin, PluginBinding, Server, ServerId, Tenant,
    TenantId,
};
use sha2::{Digest as _, Sha256};

use super::error::{FieldError, FieldPath};
use super::load::read_bytes_bounded;
use super::resolve::Resolver;
use super::store::{self, Registry};
use super::{check, raw, signing};

/// Largest component read.
pub const COMPONENT_BYTES_MAX: u64 = 16 << 20;
/// Plugins of one tenant.
pub const PLUGINS_MAX: usize = 64;

impl Resolver<'_> {
    /// The plugins that a tenant's part of the file names, without those that something is wrong with.
    pub(super) fn plugins(
        &mut self,
        raw: BTreeMap<String, raw::PluginFile>,
        keys: &[String],
        at: &FieldPath,
    ) -> BTreeMap<String, Plugin> {
        for (i, key) in keys.iter().enumerate() {
            if let Err(problem) = signing::PublicKey::parse(key) {
                self.wrong(&at.key("plugin_keys").index(i), problem);
            }
        }
        let at = at.key("plugins");
        if raw.len() > PLUGINS_MAX {
            self.wrong(
                &at,
                format!("there are {}; at most {PLUGINS_MAX}", raw.len()),
            );
            return BTreeMap::new();
        }
        let mut plugins = BTreeMap::new();
        for (name, raw) in raw {
            let plugin = self.plugin(&name, &raw, keys, &at.key(&name));
            plugins.extend(self.ok(plugin).map(|plugin| (name, plugin)));
        }
        plugins
    }

    fn plugin(
        &mut self,
        name: &str,
        raw: &raw::PluginFile,
        keys: &[String],
        at: &FieldPath,
    ) -> Result<Plugin, FieldError> {
        check_name(name).or_else(|problem| at.error(problem))?;
        let path = self.path(&raw.file);
        self.watch(path.clone());
        let bytes = read_bytes_bounded(&path, COMPONENT_BYTES_MAX).or_else(|problem| {
            at.key("file")
                .error(format!("{} {problem}", path.display()))
        })?;
        let sha256 = sha256_hex(&bytes);
        if raw
            .sha256
            .as_ref()
            .is_some_and(|expected| *expected != sha256)
        {
            return at.key("sha256").error(format!("the file's is {sha256}"));
        }
        if !keys.is_empty() {
            let signature = signing::beside(&path);
            self.watch(signature.clone());
            signing::check_file(&signature, &bytes, keys)
                .map(drop)
                .or_else(|problem| at.key("file").error(problem))?;
        }
        Ok(plugin(name.to_owned(), bytes))
    }

    /// Adds what `weir policy push` and `bind` left in the data folder. What belongs to tenants and
    /// servers that the file does not have (any more) is passed over.
    pub(super) fn pushed(
        &mut self,
        data_dir: &Path,
        tenants: &mut BTreeMap<TenantId, Tenant>,
        servers: &mut BTreeMap<ServerId, Server>,
    ) -> Result<u64, FieldError> {
        let at = FieldPath::default().key("data_dir");
        self.watch(store::registry_path(data_dir));
        let registry = Registry::read(data_dir).or_else(|problem| at.error(problem))?;
        for (id, tenant) in tenants.iter_mut() {
            for (name, versions) in registry.plugins.get(id.as_str()).into_iter().flatten() {
                let bytes = registry
                    .component(data_dir, versions, &tenant.plugin_keys)
                    .or_else(|problem| at.error(format!("plugin {name} of {id}: {problem}")))?;
                tenant
                    .plugins
                    .insert(name.clone(), plugin(name.clone(), bytes));
            }
        }
        for (id, server) in servers.iter_mut() {
            let Some(bindings) = registry.bindings.get(id.as_str()) else {
                continue;
            };
            let none = BTreeMap::new();
            let plugins = tenants
                .get(&server.tenant)
                .map_or(&none, |tenant| &tenant.plugins);
            server.plugins.extend(bindings.iter().cloned());
            let names = plugins.keys().map(String::as_str);
            let wrong = check_bindings(&server.plugins, names, &at.key(id.as_str()));
            if let Some(first) = wrong.into_iter().next() {
                return Err(first);
            }
        }
        Ok(registry.generation)
    }
}

/// What is wrong with bindings, by the names of the plugins there are.
pub(super) fn check_bindings<'a>(
    bindings: &[PluginBinding],
    names: impl Iterator<Item = &'a str> + Clone,
    at: &FieldPath,
) -> Vec<FieldError> {
    let wrong = |field, problem| FieldError { field, problem };
    if bindings.len() > PLUGIN_BINDINGS_MAX {
        let count = bindings.len();
        let problem = format!("there are {count}; at most {PLUGIN_BINDINGS_MAX}");
        return vec![wrong(at.clone(), problem)];
    }
    let mut all = Vec::new();
    for (i, binding) in bindings.iter().enumerate() {
        let at = at.index(i);
        let ranges = check::ranges(binding).into_iter();
        all.extend(ranges.map(|(field, problem)| wrong(at.key(&field), problem)));
        let name = &binding.plugin;
        if !names.clone().any(|known| known == name) {
            let near = domain::nearest(name, names.clone());
            let hint = near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
            let problem = format!("the tenant has no plugin {name:?}{hint}");
            all.push(wrong(at.key("plugin"), problem));
        }
    }
    all
}

/// As for a file, with the place and the problem in one line.
///
/// # Errors
/// What is wrong.
pub fn check_bindings_text(
    bindings: &[PluginBinding],
    plugins: &BTreeMap<String, Plugin>,
) -> Result<(), String> {
    let at = FieldPath::default().key("plugins");
    let wrong = check_bindings(bindings, plugins.keys().map(String::as_str), &at);
    match wrong.first() {
        Some(first) => Err(format!("{}: {}", first.field, first.problem)),
        None => Ok(()),
    }
}

/// Whether a plugin can be called so.
///
/// # Errors
/// What is wrong with the name.
pub fn check_name(name: &str) -> Result<(), String> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if name.is_empty()
        || name.len() > PLUGIN_NAME_BYTES_MAX
        || !name.bytes().all(plain)
        || !name.starts_with(|c: char| c.is_ascii_lowercase())
    {
        return Err(format!(
            "{name:?} is no name for a plugin; use at most {PLUGIN_NAME_BYTES_MAX} small letters, digits and -, a letter first"
        ));
    }
    Ok(())
}

/// SHA-256 in hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn plugin(name: String, bytes: Vec<u8>) -> Plugin {
    Plugin {
        name,
        component: bytes.into(),
    }
}
