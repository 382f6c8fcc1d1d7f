//! One instance of a plugin: memory of its own, bounds of its own, one call at a time.

use std::sync::Arc;
use std::time::Duration;

use dlp_policy::{EvalError, MessageView, Piece, ViewKind};
use domain::{Direction, Era, PolicyAction};
use wasmtime::{Store, Trap};

use crate::contract::exports::weir::policy::policy as out;
use crate::contract::weir::policy::types as wit;
use crate::contract::{Plugin as Exports, PluginPre};
use crate::engine::Clock;
use crate::imports::{Data, Shared};

/// Bytes that one call may hand to the host.
const HOST_BYTES_MAX: usize = 8 << 20;
/// Time for starting, describing and configuring where no message waits.
pub(crate) const PATIENT: Duration = Duration::from_millis(500);

/// What a plugin says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// One sentence.
    pub summary: String,
    /// JSON Schema of its configuration.
    pub config_schema: String,
}

pub(crate) struct Instance {
    store: Store<Data>,
    exports: Exports,
}

impl Instance {
    /// A fresh instance. Starting, describing and configuring it take at most `time` together.
    pub(crate) fn new(
        pre: &PluginPre<Data>,
        shared: Arc<Shared>,
        clock: &Clock,
        time: Duration,
    ) -> Result<Self, Failure> {
        let mut store = Store::new(pre.engine(), Data::new(shared));
        store.limiter(|data| &mut data.limits);
        store.set_hostcall_fuel(HOST_BYTES_MAX);
        store.set_epoch_deadline(ticks(time));
        store.data_mut().allow(time);
        let _running = clock.run();
        match pre.instantiate(&mut store) {
            Ok(exports) => Ok(Self { store, exports }),
            Err(error) => Err(Failure::of(&error, &store)),
        }
    }

    pub(crate) fn describe(&mut self, clock: &Clock) -> Result<Description, Failure> {
        let _running = clock.run();
        let said = self
            .exports
            .weir_policy_policy()
            .call_describe(&mut self.store);
        let said = said.map_err(|error| Failure::of(&error, &self.store))?;
        Ok(Description {
            name: said.name,
            version: said.version,
            summary: said.summary,
            config_schema: said.config_schema,
        })
    }

    /// Gives the plugin its configuration; the inner error is the plugin's own words.
    pub(crate) fn configure(
        &mut self,
        config: &str,
        clock: &Clock,
    ) -> Result<Result<(), String>, Failure> {
        let _running = clock.run();
        let said = self
            .exports
            .weir_policy_policy()
            .call_configure(&mut self.store, config);
        said.map_err(|error| Failure::of(&error, &self.store))
    }

    /// Judges one message within `time`.
    pub(crate) fn evaluate(
        &mut self,
        view: &MessageView,
        clock: &Clock,
        time: Duration,
    ) -> Result<out::Verdict, Failure> {
        let session = view.cut(view.session.unwrap_or(view.key_id));
        self.store.data_mut().begin(session);
        self.store.data_mut().allow(time);
        self.store.set_epoch_deadline(ticks(time));
        let _running = clock.run();
        let (leaves, findings) = (leaves(view), findings(view));
        let principal = [wit::Attribute {
            name: span(view.key_id_name()),
            value: span(view.key_id),
        }];
        let message = message(view, &leaves, &findings, &principal);
        let said = self
            .exports
            .weir_policy_policy()
            .call_evaluate(&mut self.store, message);
        said.map_err(|error| Failure::of(&error, &self.store))
    }

    /// The most memory it had.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.store.data().limits.memory_bytes
    }
}

/// How an instance failed. It is thrown away then.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: EvalError,
    /// For the operator: names of traps, never text of a message.
    pub(crate) what: String,
}

impl Failure {
    fn of(error: &wasmtime::Error, store: &Store<Data>) -> Self {
        let trap = error.downcast_ref::<Trap>();
        let kind = match trap {
            Some(Trap::Interrupt) => EvalError::TimedOut,
            _ if store.data().limits.refused => EvalError::OutOfBounds,
            _ => EvalError::Trapped,
        };
        // Other errors may quote what the plugin handed over.
        let what = trap.map_or_else(
            || "a call between plugin and host failed".to_owned(),
            Trap::to_string,
        );
        Self { kind, what }
    }
}

/// Ticks until a deadline; the one under way does not count.
fn ticks(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX - 1) + 1
}

fn message<'a>(
    view: &'a MessageView,
    leaves: &'a [wit::Leaf],
    findings: &'a [wit::Finding],
    principal: &'a [wit::Attribute],
) -> out::Message<'a> {
    out::Message {
        text: view.text(),
        direction: match view.direction {
            Direction::ToServer => wit::Direction::ToServer,
            Direction::ToClient => wit::Direction::ToClient,
        },
        era: match view.era {
            Era::Handshake => wit::Era::Handshake,
            Era::Stateless => wit::Era::Stateless,
        },
        method: span(view.method),
        tool: view.tool.map(span),
        server: span(view.server),
        tenant: span(view.tenant),
        session: view.session.map(span),
        principal,
        call: view.call.map(|(method, id)| wit::Call {
            method: span(method),
            id: id.map(span),
        }),
        leaves,
        findings,
    }
}

fn leaves(view: &MessageView) -> Vec<wit::Leaf> {
    let leaves = view.leaves().iter().map(|leaf| wit::Leaf {
        kind: match leaf.kind {
            ViewKind::Key => wit::LeafKind::Key,
            ViewKind::Text => wit::LeafKind::Text,
            ViewKind::Number => wit::LeafKind::Number,
            ViewKind::Header => wit::LeafKind::Header,
        },
        path: span(leaf.path),
        text: span(leaf.text),
    });
    leaves.collect()
}

fn findings(view: &MessageView) -> Vec<wit::Finding> {
    let findings = view.findings().iter().map(|finding| wit::Finding {
        rule: span(finding.rule),
        category: span(finding.category),
        leaf: finding.leaf,
        start: finding.start,
        end: finding.end,
        confidence: finding.confidence,
        action: match finding.action {
            PolicyAction::Ignore => wit::Action::Ignore,
            PolicyAction::Log => wit::Action::Log,
            PolicyAction::Warn => wit::Action::Warn,
            PolicyAction::Redact => wit::Action::Redact,
            PolicyAction::Block => wit::Action::Block,
        },
    });
    findings.collect()
}

fn span(piece: Piece) -> wit::Span {
    wit::Span {
        start: piece.start,
        len: piece.len,
    }
}
