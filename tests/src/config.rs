//! Configuration files for `weir serve`, built as JSON (which YAML takes as it is).

use serde_json::{Value, json};

use crate::canary;

/// The tenant of [`Config::new`].
pub const TENANT: &str = "acme";
/// Its server.
pub const SERVER: &str = "files";

/// A configuration under construction.
#[derive(Debug, Clone)]
pub struct Config(pub Value);

impl Config {
    /// One tenant with one server at this URL, open to everyone on loopback, ports chosen by the system.
    pub fn new(upstream_url: &str) -> Self {
        Self::of(json!({ "url": upstream_url }))
    }

    /// The same with any upstream.
    pub fn of(upstream: Value) -> Self {
        Self(json!({
            "listen": "127.0.0.1:0",
            "admin_listen": "127.0.0.1:0",
            "data_dir": "data",
            "log": { "level": "debug" },
            "tenants": { TENANT: { "servers": { SERVER: { "upstream": upstream } } } },
        }))
    }

    /// Sets the value at a path such as `tenants.acme.policy`, making the objects on the way.
    pub fn set(mut self, path: &str, value: Value) -> Self {
        let mut at = &mut self.0;
        for step in path.split('.') {
            if !at.is_object() {
                *at = json!({});
            }
            at = &mut at[step];
        }
        *at = value;
        self
    }

    /// One action for every finding of a category, both directions.
    pub fn category(self, category: &str, action: &str) -> Self {
        self.bind(json!({ "category": category, "action": action }))
    }

    /// Adds a line of policy to the tenant.
    pub fn bind(mut self, binding: Value) -> Self {
        let bindings = &mut self.0["tenants"][TENANT]["policy"]["bindings"];
        if bindings.is_null() {
            *bindings = json!([]);
        }
        bindings.as_array_mut().expect("a list").push(binding);
        self
    }

    /// Gives a tenant an API key and returns it.
    pub fn key(&mut self, tenant: &str, id: &str) -> String {
        self.key_with(tenant, id, json!({}))
    }

    /// The same with further fields (`servers`, `tools`, `limits`).
    pub fn key_with(&mut self, tenant: &str, id: &str, fields: Value) -> String {
        let (key, hash) = canary::api_key();
        let mut entry = json!({ "id": id, "hash": hash });
        for (name, value) in fields.as_object().into_iter().flatten() {
            entry[name] = value.clone();
        }
        let keys = &mut self.0["tenants"][tenant]["keys"];
        if keys.is_null() {
            *keys = json!([]);
        }
        keys.as_array_mut().expect("a list").push(entry);
        key
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(&self.0).expect("JSON values serialise")
    }
}
