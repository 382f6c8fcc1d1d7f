//! Upstreams: where the servers really are.
//!
//! ```text
//! Link -+- HttpLink   Streamable HTTP: one exchange per request, pooled connections;
//!       |             or, for a hosted server, a sandbox leased for each exchange
//!       '- DuplexLink  a child process or an HTTP+SSE stream: one long-lived pair of pipes
//! ```
//!
//! Only [`Cleared<ToServer>`](crate::pipeline::Cleared) goes in. What comes out is bytes that
//! nobody has judged yet.

mod duplex;
mod events;
mod facade;
mod fault;
mod hosted;
mod http;
mod long;
mod pool;
mod sse_link;
mod stderr;
mod target;

use std::sync::Arc;

use domain::{Limits, ServerId, TenantId, Upstream, UpstreamTransport};
use pingora_core::connectors::TransportConnector;

pub use duplex::{CallError, DuplexLink, DuplexSession, Ended, Silence, Subscription};
pub use events::{EventStream, Said, message_of};
pub use fault::{Fault, Health, Oversize};
pub use hosted::Hosted;
pub use http::{Answer, Head, HttpLink, Purpose, UpstreamHeaders, Verb};
pub use long::{LongBody, Upload};
pub use target::{LinkError, Target};

use crate::turns::Turns;

/// What all links share.
#[derive(Clone)]
pub struct LinkOptions {
    /// Program and leading arguments of the child reaper; this program itself when absent.
    pub reaper: stdio_child::ReaperMode,
    /// Where the sandboxes of hosted servers come from.
    pub runner: Option<Arc<dyn runner_api::Runner>>,
    /// Connects to upstreams without trusted roots of their own.
    connector: Arc<std::sync::OnceLock<Arc<TransportConnector>>>,
    /// Whether writes wait for the end of a turn.
    pub(crate) turns: Arc<Turns>,
}

impl std::fmt::Debug for LinkOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LinkOptions")
            .field("reaper", &self.reaper)
            .finish_non_exhaustive()
    }
}

impl Default for LinkOptions {
    fn default() -> Self {
        Self {
            reaper: stdio_child::ReaperMode::CurrentExe,
            runner: None,
            connector: Arc::default(),
            turns: Arc::default(),
        }
    }
}

impl LinkOptions {
    fn connector(&self) -> Arc<TransportConnector> {
        Arc::clone(
            self.connector
                .get_or_init(|| Arc::new(TransportConnector::new(None))),
        )
    }
}

/// How a server is reached.
#[derive(Debug)]
pub enum Link {
    /// Streamable HTTP.
    Http(HttpLink),
    /// Pipes of a child, or an HTTP+SSE stream.
    Duplex(DuplexLink),
}

impl Link {
    /// Whether the server runs in sandboxes of the runner.
    pub fn is_hosted(&self) -> bool {
        matches!(self, Self::Http(link) if link.is_hosted())
    }

    /// The same under other limits: connections, addresses and counts are shared. What is open already keeps the old ones.
    pub fn with_limits(&self, limits: &Limits) -> Self {
        match self {
            Self::Http(link) => Self::Http(link.with_limits(limits)),
            Self::Duplex(link) => Self::Duplex(link.with_limits(limits)),
        }
    }

    /// Prepares a link. Connects to nothing.
    ///
    /// # Errors
    /// The URL or a credential cannot be used.
    pub fn new(
        id: &ServerId,
        tenant: &TenantId,
        upstream: &Upstream,
        limits: &Limits,
        options: &LinkOptions,
    ) -> Result<Self, LinkError> {
        match &upstream.transport {
            UpstreamTransport::Http { url, ca_file } => {
                let target = Target::parse(url, &upstream.auth)?;
                Ok(Self::Http(HttpLink::new(
                    target,
                    ca_file.as_deref(),
                    limits,
                    options,
                )))
            }
            UpstreamTransport::Sse { url, ca_file } => {
                let target = Target::parse(url, &upstream.auth)?;
                let http = HttpLink::new(target, ca_file.as_deref(), limits, options);
                Ok(Self::Duplex(DuplexLink::sse(id.as_str(), http, limits)))
            }
            UpstreamTransport::Hosted { path, sharing } => {
                let runner = options.runner.clone().ok_or(LinkError::NoRunner)?;
                // The lease names the address. This name is for the server's own check of `Host`: those of the MCP
                // SDKs let in localhost with a port, whatever address they listen on.
                let target =
                    Target::parse(&format!("http://localhost:8000{path}"), &upstream.auth)?;
                let hosted = Hosted::new(runner, tenant.clone(), id.clone(), *sharing);
                let link = HttpLink::new(target, None, limits, options);
                Ok(Self::Http(link.hosted(hosted)))
            }
            UpstreamTransport::Stdio {
                command,
                args,
                env,
                env_clear,
                cwd,
            } => {
                let mut spec = stdio_child::ChildSpec::new(command);
                spec.args = args.iter().map(Into::into).collect();
                spec.env = env
                    .iter()
                    .map(|(k, v)| (k.into(), v.expose().into()))
                    .collect();
                spec.env_clear = *env_clear;
                spec.cwd.clone_from(cwd);
                spec.reaper = options.reaper.clone();
                spec.stderr = stderr::sink(id);
                Ok(Self::Duplex(DuplexLink::stdio(id.as_str(), spec, limits)))
            }
        }
    }
}
