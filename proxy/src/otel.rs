//! Exchanges as OpenTelemetry spans, sent to a collector by OTLP over HTTP (JSON).
//!
//! ```text
//! gateway -> [bounded queue] -> batches -> POST {endpoint}/v1/traces
//! ```
//!
//! What this never does: make a call wait or fail. When the queue is full, or the collector does not take a batch,
//! spans are dropped and counted. No address of a resource and no text of a message is sent, only names.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use gateway::{ExchangeSpan, SpanSink};
use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::config::Otlp;

/// Spans that may wait to be sent.
const QUEUE_MAX: usize = 2048;
/// Spans sent at once.
const BATCH_MAX: usize = 512;
/// How long a span waits for others.
const GATHER: Duration = Duration::from_secs(1);
/// How long the collector may take for a batch, tries again included.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the last spans may take when Weir stops.
const FLUSH_MAX: Duration = Duration::from_secs(2);
/// A collector that is down is said this often.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// Methods that a span may be named after. A client can make up others without end, and names are an index.
const METHODS: &[&str] = &[
    "completion/complete",
    "elicitation/create",
    "initialize",
    "logging/setLevel",
    "notifications/cancelled",
    "notifications/initialized",
    "notifications/progress",
    "notifications/roots/list_changed",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "roots/list",
    "sampling/createMessage",
    "server/discover",
    "subscriptions/listen",
    "tasks/cancel",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/update",
    "tools/call",
    "tools/list",
];

/// The export of traces, running.
pub struct Traces {
    sink: Arc<Queue>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Traces {
    /// Begins to export. Whether the collector is there shows later; Weir serves without it.
    ///
    /// # Errors
    /// The exporter takes no such endpoint.
    pub fn start(otlp: &Otlp) -> anyhow::Result<Self> {
        metrics::describe_counter!(
            "weir_spans_dropped_total",
            "Spans not exported: the queue was full, or the collector did not take them"
        );
        let dropped = metrics::counter!("weir_spans_dropped_total");
        let (queue, spans) = mpsc::channel(QUEUE_MAX);
        let (stop, stopped) = oneshot::channel();
        let export = Export {
            exporter: exporter(otlp)?,
            scope: InstrumentationScope::builder("weir")
                .with_version(env!("CARGO_PKG_VERSION"))
                .build(),
            spans,
            dropped: dropped.clone(),
            said: None,
        };
        Ok(Self {
            sink: Arc::new(Queue { queue, dropped }),
            stop,
            task: tokio::spawn(export.run(stopped)),
        })
    }

    /// What the gateway gives its spans to.
    pub fn sink(&self) -> Arc<dyn SpanSink> {
        Arc::clone(&self.sink) as Arc<dyn SpanSink>
    }

    /// Sends what is left, within a bound.
    pub async fn stop(mut self) {
        let _ = self.stop.send(());
        if tokio::time::timeout(FLUSH_MAX, &mut self.task)
            .await
            .is_err()
        {
            self.task.abort();
            tracing::warn!("the collector did not take the last spans in time");
        }
    }
}

/// The end of the queue that the data path sees.
struct Queue {
    queue: mpsc::Sender<ExchangeSpan>,
    dropped: metrics::Counter,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue")
            .field("free", &self.queue.capacity())
            .finish_non_exhaustive()
    }
}

impl SpanSink for Queue {
    fn exchange(&self, span: ExchangeSpan) {
        if self.queue.try_send(span).is_err() {
            self.dropped.increment(1);
        }
    }
}

/// The other end: batches on their way to the collector, one at a time.
struct Export {
    exporter: SpanExporter,
    scope: InstrumentationScope,
    spans: mpsc::Receiver<ExchangeSpan>,
    dropped: metrics::Counter,
    said: Option<Instant>,
}

impl Export {
    async fn run(mut self, mut stop: oneshot::Receiver<()>) {
        loop {
            let batch = self.gather(&mut stop).await;
            if batch.is_empty() {
                return;
            }
            self.send(batch).await;
        }
    }

    /// Waits for a span, and then a little for more. Empty when no more will come.
    async fn gather(&mut self, stop: &mut oneshot::Receiver<()>) -> Vec<ExchangeSpan> {
        let mut batch = Vec::new();
        let mut until = None;
        while batch.len() < BATCH_MAX {
            let left = BATCH_MAX - batch.len();
            let late = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // Nothing more is taken then, and what is queued comes without a wait. The receiver is spent
                // by its first answer, so it is only asked while the queue is open.
                _ = &mut *stop, if !self.spans.is_closed() => self.spans.close(),
                got = self.spans.recv_many(&mut batch, left) => {
                    if got == 0 {
                        break;
                    }
                    until.get_or_insert_with(|| Instant::now() + GATHER);
                }
                () = late => break,
            }
        }
        batch
    }

    async fn send(&mut self, batch: Vec<ExchangeSpan>) {
        let count = batch.len();
        let data = batch
            .into_iter()
            .map(|span| span_data(span, &self.scope))
            .collect();
        let Err(error) = self.exporter.export(data).await else {
            return;
        };
        self.dropped.increment(count as u64);
        if self.said.is_none_or(|said| said.elapsed() >= SAY_EVERY) {
            self.said = Some(Instant::now());
            tracing::warn!(%error, spans = count, "spans could not be exported; said once a minute");
        }
    }
}

fn exporter(otlp: &Otlp) -> anyhow::Result<SpanExporter> {
    let headers = otlp.headers.iter();
    let headers = headers.map(|(name, value)| (name.clone(), value.expose().to_owned()));
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpJson)
        .with_endpoint(traces_url(&otlp.endpoint))
        .with_timeout(EXPORT_TIMEOUT)
        .with_headers(headers.collect())
        .build()
        .context("otlp: the exporter cannot be set up")?;
    let resource = Resource::builder_empty()
        .with_service_name("weir")
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    exporter.set_resource(&resource);
    Ok(exporter)
}

/// Where traces are taken below a collector's base URL.
fn traces_url(endpoint: &str) -> String {
    const PATH: &str = "/v1/traces";
    let base = endpoint.trim_end_matches('/');
    match base.ends_with(PATH) {
        true => base.to_owned(),
        false => format!("{base}{PATH}"),
    }
}

fn span_data(span: ExchangeSpan, scope: &InstrumentationScope) -> SpanData {
    let start = SystemTime::UNIX_EPOCH + Duration::from_micros(span.start_unix_us);
    let method = span.method.as_deref();
    let known = method.and_then(|m| METHODS.iter().find(|known| **known == m));
    let name = known.copied().unwrap_or("mcp");
    let target = target(&span);
    let micros = |us: u64| i64::try_from(us).unwrap_or(i64::MAX);
    let mut attributes = vec![
        KeyValue::new("weir.tenant", span.tenant),
        KeyValue::new("weir.server", span.server),
        KeyValue::new("weir.action", span.action),
        KeyValue::new("weir.audit_id", span.audit_id),
        KeyValue::new("weir.scan_us", micros(span.scan_us)),
        KeyValue::new("weir.policy_us", micros(span.policy_us)),
        KeyValue::new("weir.upstream_us", micros(span.upstream_us)),
        KeyValue::new("http.response.status_code", i64::from(span.status)),
    ];
    attributes.extend(span.principal.map(|p| KeyValue::new("weir.principal", p)));
    attributes.extend(target.map(|(key, name)| KeyValue::new(key, name)));
    attributes.extend(span.method.map(|m| KeyValue::new("mcp.method.name", m)));
    SpanData {
        span_context: SpanContext::new(
            TraceId::from_bytes(span.trace_id),
            SpanId::from_bytes(span.span_id),
            TraceFlags::SAMPLED,
            false,
            TraceState::NONE,
        ),
        parent_span_id: span.parent_id.map_or(SpanId::INVALID, SpanId::from_bytes),
        parent_span_is_remote: span.parent_id.is_some(),
        span_kind: SpanKind::Server,
        name: name.into(),
        start_time: start,
        end_time: start + Duration::from_micros(span.total_us),
        attributes,
        dropped_attributes_count: 0,
        events: Default::default(),
        links: Default::default(),
        status: match span.error {
            true => Status::error("a fault of the gateway or of the upstream"),
            false => Status::Unset,
        },
        instrumentation_scope: scope.clone(),
    }
}

/// What the method is about, by the attribute that says so: the name of a tool or a prompt. Addresses of resources
/// are the caller's data and stay out.
fn target(span: &ExchangeSpan) -> Option<(&'static str, Arc<str>)> {
    let key = match span.method.as_deref()? {
        "tools/call" => "gen_ai.tool.name",
        "prompts/get" => "gen_ai.prompt.name",
        _ => return None,
    };
    Some((key, span.tool.clone()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(method: &str, tool: &str) -> ExchangeSpan {
        ExchangeSpan {
            trace_id: [1; 16],
            span_id: [2; 8],
            parent_id: None,
            start_unix_us: 1_000_000,
            total_us: 5,
            scan_us: 1,
            policy_us: 1,
            upstream_us: 1,
            tenant: "acme".into(),
            server: "files".into(),
            principal: None,
            method: Some(method.into()),
            tool: Some(tool.into()),
            action: "pass",
            status: 200,
            audit_id: "aud_0".into(),
            error: false,
        }
    }

    #[test]
    fn a_span_is_named_after_known_methods_only_and_holds_no_address() {
        let scope = InstrumentationScope::builder("weir").build();
        for (method, tool, name, key) in [
            ("tools/call", "echo", "tools/call", Some("gen_ai.tool.name")),
            (
                "prompts/get",
                "hi",
                "prompts/get",
                Some("gen_ai.prompt.name"),
            ),
            ("resources/read", "file:///a", "resources/read", None),
            ("made/up", "echo", "mcp", None),
        ] {
            let data = span_data(span(method, tool), &scope);
            assert_eq!(data.name, name);
            let found = data.attributes.iter().find(|a| a.value.as_str() == tool);
            assert_eq!(found.map(|a| a.key.as_str()), key, "{method}");
        }
    }

    #[test]
    fn a_full_queue_drops_and_never_waits() {
        let (queue, mut spans) = mpsc::channel(1);
        let dropped = metrics::Counter::noop();
        let queue = Queue { queue, dropped };
        queue.exchange(span("ping", "first"));
        queue.exchange(span("ping", "second"));
        assert_eq!(spans.try_recv().unwrap().tool.as_deref(), Some("first"));
        assert!(spans.try_recv().is_err());
    }

    #[test]
    fn traces_are_taken_below_the_base_url() {
        for base in ["http://c:4318", "http://c:4318/", "http://c:4318/v1/traces"] {
            assert_eq!(traces_url(base), "http://c:4318/v1/traces");
        }
    }
}
