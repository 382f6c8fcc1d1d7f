//! Policy plugins as the operator wants them: which there are, where they are bound, what they may.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Direction, FailureMode};

/// Most bindings of plugins to one server.
pub const PLUGIN_BINDINGS_MAX: usize = 64;
/// Longest name of a plugin.
pub const PLUGIN_NAME_BYTES_MAX: usize = 64;

/// A plugin that bindings can name.
#[derive(Clone, PartialEq, Eq)]
pub struct Plugin {
    /// Its name within the tenant.
    pub name: String,
    /// The component.
    pub component: Arc<[u8]>,
}

/// Says how large the component is, not what is in it.
impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin")
            .field("name", &self.name)
            .field("bytes", &self.component.len())
            .finish()
    }
}

/// One plugin in one place of one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PluginBinding {
    /// Name of one of the tenant's plugins.
    pub plugin: String,
    /// Glob over tool names; absent: every tool and every message without a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Absent: both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// The plugin's own configuration; `weir policy show` prints its schema.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub config: serde_json::Map<String, serde_json::Value>,
    /// How long an instance lives.
    #[serde(default)]
    pub isolation: Isolation,
    /// What becomes of a message when the plugin fails: `closed` blocks it, `open` passes it with a warning.
    #[serde(default)]
    pub fail_mode: FailureMode,
    /// What it may do beyond looking.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// Time for one message, in milliseconds. Default 10.
    #[serde(default = "timeout_default")]
    #[schemars(range(min = 1, max = 1000))]
    pub timeout_ms: u32,
    /// Memory of one instance, in MiB. Default 16.
    #[serde(default = "memory_default")]
    #[schemars(range(min = 1, max = 64))]
    pub memory_mb: u32,
}

impl PluginBinding {
    /// A binding to everything, with every default.
    pub fn new(plugin: &str) -> Self {
        Self {
            plugin: plugin.to_owned(),
            tool: None,
            direction: None,
            config: serde_json::Map::new(),
            isolation: Isolation::default(),
            fail_mode: FailureMode::default(),
            grants: Vec::new(),
            timeout_ms: timeout_default(),
            memory_mb: memory_default(),
        }
    }

    /// Whether the binding grants this.
    pub fn grants(&self, grant: Grant) -> bool {
        self.grants.contains(&grant)
    }
}

fn timeout_default() -> u32 {
    10
}

fn memory_default() -> u32 {
    16
}

/// How long an instance of a plugin lives. It is never shared between tenants.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// For one message: nothing survives but granted state.
    #[default]
    Message,
    /// For many messages of one tenant. Cheaper, and the plugin's memory survives between them.
    Tenant,
}

/// What a binding allows a plugin beyond looking at the message.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Grant {
    /// Run the detection rules over texts of its own.
    Scan,
    /// Keep values per session.
    SessionState,
    /// Keep values per tenant, over all its servers.
    TenantState,
    /// Know the time.
    Clock,
    /// Make policy's word about single findings milder.
    Loosen,
}

impl Grant {
    /// All there are.
    pub const ALL: [Self; 5] = [
        Self::Scan,
        Self::SessionState,
        Self::TenantState,
        Self::Clock,
        Self::Loosen,
    ];

    /// The word used in configuration and errors.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scan => "scan",
            Self::SessionState => "session-state",
            Self::TenantState => "tenant-state",
            Self::Clock => "clock",
            Self::Loosen => "loosen",
        }
    }
}
