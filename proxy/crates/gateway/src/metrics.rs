//! Metric handles, held so that the data path never looks one up by name.
//!
//! Labels are tenant, server and words of ours, never text from a message.

use metrics::{
    Counter, Gauge, Histogram, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram,
};

/// Every action that a message can end with.
const ACTIONS: [&str; 7] = ["pass", "log", "warn", "redact", "block", "refused", "error"];

/// Handles of one server.
#[derive(Clone)]
pub struct ServerMetrics {
    messages: [Counter; ACTIONS.len()],
    /// Time to scan, per exchange and both ways.
    pub scan_seconds: Histogram,
    /// Time for policy, decision and rewriting.
    pub policy_seconds: Histogram,
    /// Time until the upstream answered.
    pub upstream_seconds: Histogram,
    /// The whole exchange.
    pub total_seconds: Histogram,
    /// Messages that needed no scan, since the same were clean before.
    pub remembered: Counter,
    /// Findings that an allowlist let pass.
    pub allowed: Counter,
    /// Calls refused by a limit.
    pub throttled: Counter,
    /// Definitions of tools that were not approved, each once: changed ones.
    pub tools_changed: Counter,
    /// Those of tools that were not there before.
    pub tools_added: Counter,
    /// Calls of tools that wait for approval.
    pub calls_held: Counter,
    /// Upstream faults.
    pub upstream_faults: Counter,
    /// Calls running now.
    pub running: Gauge,
}

impl std::fmt::Debug for ServerMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServerMetrics")
    }
}

impl ServerMetrics {
    /// Registers the handles of one server.
    pub fn new(tenant: &str, server: &str) -> Self {
        let labels = || [("tenant", tenant.to_owned()), ("server", server.to_owned())];
        let unapproved = |change: &str| {
            let [t, s] = labels();
            counter!(
                "weir_tools_unapproved_total",
                &[t, s, ("change", change.to_owned())]
            )
        };
        Self {
            messages: ACTIONS.map(|action| {
                let [t, s] = labels();
                counter!(
                    "weir_messages_total",
                    &[t, s, ("action", action.to_owned())]
                )
            }),
            scan_seconds: histogram!("weir_scan_seconds", &labels()),
            policy_seconds: histogram!("weir_policy_seconds", &labels()),
            upstream_seconds: histogram!("weir_upstream_seconds", &labels()),
            total_seconds: histogram!("weir_exchange_seconds", &labels()),
            remembered: counter!("weir_messages_remembered_total", &labels()),
            allowed: counter!("weir_findings_allowed_total", &labels()),
            throttled: counter!("weir_throttled_total", &labels()),
            tools_changed: unapproved("changed"),
            tools_added: unapproved("added"),
            calls_held: counter!("weir_tool_calls_held_total", &labels()),
            upstream_faults: counter!("weir_upstream_faults_total", &labels()),
            running: gauge!("weir_calls_running", &labels()),
        }
    }

    /// Counts one exchange by what was done with it.
    pub fn count(&self, action: audit_log::Action) {
        let index = ACTIONS.iter().position(|a| *a == action.as_str());
        self.messages[index.unwrap_or(ACTIONS.len() - 1)].increment(1);
    }
}

/// Handles of the whole gateway.
pub struct GatewayMetrics {
    /// Open client connections.
    pub connections: Gauge,
    /// Connections refused since the bound was met.
    pub connections_refused: Counter,
    /// Connections without a request that gave their place to others.
    pub connections_displaced: Counter,
    /// Open sessions.
    pub sessions: Gauge,
    /// Open listen streams.
    pub streams: Gauge,
    /// Requests without valid credentials.
    pub unauthenticated: Counter,
    /// Requests refused before they were tied to a server.
    pub refused: Counter,
    /// Reloads that were taken.
    pub reloads: Counter,
    /// Reloads that were refused.
    pub reloads_refused: Counter,
    /// Audit records that could not be kept.
    pub audit_failures: Counter,
}

impl std::fmt::Debug for GatewayMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GatewayMetrics")
    }
}

impl Default for GatewayMetrics {
    fn default() -> Self {
        describe();
        Self {
            connections: gauge!("weir_connections"),
            connections_refused: counter!("weir_connections_refused_total"),
            connections_displaced: counter!("weir_connections_displaced_total"),
            sessions: gauge!("weir_sessions"),
            streams: gauge!("weir_streams"),
            unauthenticated: counter!("weir_unauthenticated_total"),
            refused: counter!("weir_refused_total"),
            reloads: counter!("weir_reloads_total"),
            reloads_refused: counter!("weir_reloads_refused_total"),
            audit_failures: counter!("weir_audit_failures_total"),
        }
    }
}

fn describe() {
    describe_counter!(
        "weir_messages_total",
        "Message exchanges by what was done with them"
    );
    describe_counter!(
        "weir_messages_remembered_total",
        "Messages that needed no scan, since the same were clean before"
    );
    describe_counter!(
        "weir_findings_allowed_total",
        "Findings that an allowlist let pass"
    );
    describe_histogram!("weir_scan_seconds", "Time to scan an exchange, both ways");
    describe_histogram!(
        "weir_policy_seconds",
        "Time to decide about an exchange, both ways"
    );
    describe_histogram!("weir_upstream_seconds", "Time until the upstream answered");
    describe_histogram!(
        "weir_exchange_seconds",
        "From the first byte in to the last byte out"
    );
    describe_counter!(
        "weir_throttled_total",
        "Calls refused by a rate or concurrency limit"
    );
    describe_counter!(
        "weir_upstream_faults_total",
        "Upstream faults: unreachable, late, broken"
    );
    describe_counter!(
        "weir_tools_unapproved_total",
        "Definitions of tools that were listed and not approved, each counted once"
    );
    describe_counter!(
        "weir_tool_calls_held_total",
        "Calls refused since the tool's definition waits for approval"
    );
    describe_gauge!("weir_calls_running", "Calls running now");
    describe_gauge!("weir_connections", "Open client connections");
    describe_counter!(
        "weir_connections_refused_total",
        "Connections over the bound"
    );
    describe_counter!(
        "weir_connections_displaced_total",
        "Connections without a request under way that gave their place to new ones at the bound"
    );
    describe_gauge!("weir_sessions", "Open sessions");
    describe_gauge!("weir_streams", "Open listen streams");
    describe_gauge!(
        "weir_bodies_bytes",
        "Bytes of request bodies that are held until they were decided about, beyond the first 64 KiB of each"
    );
    describe_counter!(
        "weir_bodies_refused_total",
        "Request bodies refused since the bytes of all, or of their principal, were at their bound"
    );
    describe_counter!(
        "weir_unauthenticated_total",
        "Requests without valid credentials"
    );
    describe_counter!(
        "weir_refused_total",
        "Requests refused before a server was known"
    );
    describe_counter!(
        "weir_reloads_total",
        "Configuration reloads that were taken"
    );
    describe_counter!(
        "weir_reloads_refused_total",
        "Configuration reloads that were refused"
    );
    describe_counter!(
        "weir_audit_failures_total",
        "Audit records that could not be kept"
    );
    describe_counter!(
        "weir_audit_retention_held_total",
        "Times that old audit records were left in place because the clock was ahead of what can have passed"
    );
}
