//! The configuration file: from YAML to the plain [`Desired`] state that the gateway compiles.
//!
//! ```text
//! file ──load──> raw (shapes) ──resolve──> Loaded { Desired, listeners, ... }
//!                     └── the published JSON Schema is generated from the same types
//! ```
//!
//! A file is taken whole or refused whole, with all that is wrong with it; an error names file, line, column and field,
//! and says what to do. Nothing here opens a socket, starts a process or keeps state; secrets are never shown.

mod check;
mod error;
mod left_out;
mod load;
mod own;
mod place;
mod plugins;
mod published;
mod raw;
mod resolve;
mod secret_ref;
#[cfg(test)]
mod tests;
mod upstream;

pub mod keys;
pub mod signing;
pub mod store;

use std::net::SocketAddr;
use std::path::PathBuf;

use domain::{Desired, Secret};

pub use check::{socket_address, url as check_url};
pub use error::ConfigErrors;
pub use load::{AdminListen, PROXY_SERVER, PROXY_TENANT, ProxyOptions, ProxyUpstream, Reading};
pub use load::{for_proxy, load, to_check, to_look_at, to_serve};
pub use load::{read_bounded, read_bytes_bounded, read_given, text_of};
pub use plugins::{
    COMPONENT_BYTES_MAX, PLUGINS_MAX, check_bindings_text as check_bindings,
    check_name as check_plugin_name, sha256_hex,
};
pub use published::{EXAMPLE, schema_json};
pub use raw::{Log, LogFormat};
pub use resolve::DATA_DIR_DEFAULT;

/// All that a configuration says.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// What the gateway shall do. The rest of this is read once, at the start.
    pub desired: Desired,
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Where metrics, health and readiness are served; `None`: nowhere.
    pub admin_listen: Option<SocketAddr>,
    /// Folder of the audit log. It need not exist yet.
    pub data_dir: PathBuf,
    /// Audit records older than this are deleted.
    pub audit_retention_days: Option<u32>,
    /// Weir's own log.
    pub log: Log,
    /// Where traces go.
    pub otlp: Option<Otlp>,
    /// Hosted servers.
    pub hosting: Option<Hosting>,
    /// The generation of what was pushed ([`store`]) that is in here.
    pub plugin_generation: u64,
    /// What whoever runs it should know, a sentence each.
    pub notes: Vec<String>,
    /// The admin listener's address is the default, which nobody wrote: it may move.
    pub admin_is_default: bool,
    /// Every file that was read: when one changes, the configuration has to be loaded anew.
    pub files_watched: Vec<PathBuf>,
}

impl Loaded {
    /// Which servers nothing is enforced for, in words, if there are any: easily left so.
    pub fn dry_run(&self) -> Option<String> {
        let servers = self.desired.servers.iter();
        let names: Vec<&str> = servers
            .filter(|(_, server)| server.policy.dry_run)
            .map(|(id, _)| id.as_str())
            .collect();
        let others = match names.len() {
            0 => return None,
            n if n > 5 => format!(" and {} more", n - 5),
            _ => String::new(),
        };
        let named = names[..names.len().min(5)].join(", ");
        Some(format!(
            "dry run: nothing is blocked or redacted for {named}{others} (policy.dry_run)"
        ))
    }
}

/// Where hosted servers run, and where they are managed.
#[derive(Debug, Clone, PartialEq)]
pub struct Hosting {
    /// The runner's socket.
    pub runner: PathBuf,
    /// Where the admin API is served.
    pub listen: SocketAddr,
    /// Scheme and authority of the URLs that are shown.
    pub public_url: Option<String>,
}

/// Where traces go.
#[derive(Debug, Clone, PartialEq)]
pub struct Otlp {
    /// The collector's base URL.
    pub endpoint: String,
    /// Headers sent with every export.
    pub headers: Vec<(String, Secret)>,
}
