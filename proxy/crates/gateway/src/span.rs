//! One exchange as a span of a trace, for whoever exports it.
//!
//! Weir continues the caller's trace, or begins one when nobody did and there is a sink. What the caller does not
//! record is not recorded here either. A span never holds text of a message beyond method and tool, and those only
//! as the audit record has them: masked when something was found in them.

use std::sync::Arc;

use audit_log::{Action, Record};

use crate::exchange::Trace;

/// An exchange that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeSpan {
    /// The trace it belongs to.
    pub trace_id: [u8; 16],
    /// The span itself; what the upstream does nests under it.
    pub span_id: [u8; 8],
    /// The caller's span, if the caller began the trace.
    pub parent_id: Option<[u8; 8]>,
    /// When it began, in microseconds since 1970.
    pub start_unix_us: u64,
    /// How long it took, in microseconds.
    pub total_us: u64,
    /// Of that: scanning, both ways.
    pub scan_us: u64,
    /// Of that: deciding, both ways.
    pub policy_us: u64,
    /// Of that: waiting for the upstream.
    pub upstream_us: u64,
    /// The tenant.
    pub tenant: Arc<str>,
    /// The server.
    pub server: Arc<str>,
    /// Id of the caller's key.
    pub principal: Option<Arc<str>>,
    /// JSON-RPC method, masked if something was found in it.
    pub method: Option<Arc<str>>,
    /// Name of the tool or prompt, address of the resource; masked if something was found in it.
    pub tool: Option<Arc<str>>,
    /// What was done with the exchange.
    pub action: &'static str,
    /// HTTP status given to the client.
    pub status: u16,
    /// Id of the audit record.
    pub audit_id: String,
    /// Whether it ended by a fault of Weir's or of the upstream. A block is none.
    pub error: bool,
}

/// Takes the spans of exchanges that ended.
pub trait SpanSink: Send + Sync + std::fmt::Debug {
    /// Takes one. Called on the data path: must neither wait nor fail.
    fn exchange(&self, span: ExchangeSpan);
}

/// Where an exchange stands in its trace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpanIds {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    parent_id: Option<[u8; 8]>,
    sampled: bool,
}

impl SpanIds {
    /// A span in the caller's trace, or in a new one if `begin` allows it.
    pub(crate) fn new(trace: &Trace, begin: bool) -> Option<Self> {
        if trace.trace_id.is_none() && !begin {
            return None;
        }
        let mut span_id = [0; 8];
        getrandom::fill(&mut span_id).ok()?;
        if let Some(trace_id) = &trace.trace_id {
            return Some(Self {
                trace_id: u128::from_str_radix(trace_id, 16).ok()?.to_be_bytes(),
                span_id,
                parent_id: trace.parent_id.as_deref().and_then(parent),
                sampled: trace.sampled,
            });
        }
        let mut trace_id = [0; 16];
        getrandom::fill(&mut trace_id).ok()?;
        Some(Self {
            trace_id,
            span_id,
            parent_id: None,
            sampled: true,
        })
    }

    /// The trace's id in hexadecimal.
    pub(crate) fn trace_id(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.trace_id))
    }

    /// The `traceparent` that goes up.
    pub(crate) fn traceparent(&self) -> String {
        let span = u64::from_be_bytes(self.span_id);
        let flags = u8::from(self.sampled);
        format!("00-{}-{span:016x}-{flags:02x}", self.trace_id())
    }

    /// The span of a closed record; `None` when the caller does not record its trace.
    pub(crate) fn close(&self, record: &mut Record, status: u16) -> Option<ExchangeSpan> {
        if !self.sampled {
            return None;
        }
        // The log does this too, but later: a sink that queues must know how big a span can get.
        record.cap();
        let latency = record.latency_us;
        Some(ExchangeSpan {
            trace_id: self.trace_id,
            span_id: self.span_id,
            parent_id: self.parent_id,
            start_unix_us: record.time_unix_us,
            total_us: latency.total,
            scan_us: latency.scan,
            policy_us: latency.policy,
            upstream_us: latency.upstream,
            tenant: Arc::clone(&record.tenant),
            server: Arc::clone(&record.server),
            principal: record.principal.clone(),
            method: record.method.clone(),
            tool: record.tool.clone(),
            action: record.action.as_str(),
            status,
            audit_id: record.id.to_string(),
            error: record.action == Action::Error || status >= 500,
        })
    }
}

fn parent(hex: &str) -> Option<[u8; 8]> {
    u64::from_str_radix(hex, 16).ok().map(u64::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn theirs(sampled: bool) -> Trace {
        Trace {
            trace_id: Some("0af7651916cd43dd8448eb211c80319c".into()),
            parent_id: Some("00f067aa0ba902b7".into()),
            sampled,
        }
    }

    fn record() -> Record {
        Record::new(1_000_000, "acme".into(), "files".into())
    }

    #[test]
    fn the_callers_trace_is_continued_by_a_span_of_ours() {
        for sampled in [true, false] {
            let ids = SpanIds::new(&theirs(sampled), false).expect("a trace to continue");
            let up = ids.traceparent();
            let span = u64::from_be_bytes(ids.span_id);
            let flags = if sampled { "01" } else { "00" };
            assert_eq!(
                up,
                format!("00-0af7651916cd43dd8448eb211c80319c-{span:016x}-{flags}")
            );
            let closed = ids.close(&mut record(), 200);
            assert_eq!(closed.is_some(), sampled, "not recorded there, nor here");
            if let Some(closed) = closed {
                assert_eq!(
                    closed.parent_id,
                    Some(0x00f0_67aa_0ba9_02b7_u64.to_be_bytes())
                );
                assert_eq!(closed.span_id, ids.span_id);
            }
        }
    }

    #[test]
    fn a_trace_is_begun_only_where_it_is_wanted() {
        assert!(SpanIds::new(&Trace::default(), false).is_none());
        let ids = SpanIds::new(&Trace::default(), true).expect("a new trace");
        assert!(ids.traceparent().ends_with("-01"));
        assert!(
            ids.close(&mut record(), 200)
                .expect("sampled")
                .parent_id
                .is_none()
        );
        let other = SpanIds::new(&Trace::default(), true).expect("a new trace");
        assert_ne!(ids.trace_id(), other.trace_id());
    }

    #[test]
    fn faults_are_errors_and_blocks_are_not() {
        let ids = SpanIds::new(&theirs(true), false).expect("a trace to continue");
        for (action, status, error) in [
            (Action::Pass, 200, false),
            (Action::Block, 200, false),
            (Action::Refused, 400, false),
            (Action::Error, 200, true),
            (Action::Pass, 503, true),
        ] {
            let mut record = record();
            record.action = action;
            let span = ids.close(&mut record, status).expect("sampled");
            assert_eq!(span.error, error, "{action:?} {status}");
        }
    }

    #[test]
    fn a_span_is_small_whatever_the_message_says() {
        let ids = SpanIds::new(&theirs(true), false).expect("a trace to continue");
        let mut record = record();
        record.method = Some("m".repeat(1 << 20).into());
        record.tool = Some("t".repeat(1 << 20).into());
        let span = ids.close(&mut record, 200).expect("sampled");
        let len = |text: Option<Arc<str>>| text.map_or(0, |t| t.len());
        assert!(len(span.method) + len(span.tool) < 1024);
    }
}
