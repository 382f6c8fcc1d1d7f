//! One instance of a plugin: memory of its own, bounds of its own, one call at a time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dlp_policy::{EvalError, MessageView, Piece};
use domain::{Direction, Era, PolicyAction};
use wasmtime::{PoolConcurrencyLimitError, Store, Trap};

use crate::contract::exports::weir::policy::policy as out;
use crate::contract::weir::policy::types as wit;
use crate::contract::{Plugin as Exports, PluginPre};
use crate::engine::Clock;
use crate::imports::{Data, Shared};

/// Bytes that one call may hand to the host.
const HOST_BYTES_MAX: usize = 8 << 20;
/// Longest word about why an instance cannot be made.
const WHAT_CHARS_MAX: usize = 400;
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
        began: Instant,
        time: Duration,
    ) -> Result<Self, Failure> {
        let mut store = Store::new(pre.engine(), Data::new(shared));
        store.limiter(|data| &mut data.limits);
        store.epoch_deadline_callback(|mut store| store.data_mut().deadline.reached());
        store.set_hostcall_fuel(HOST_BYTES_MAX);
        let ticks = store.data_mut().deadline.set(began, time);
        store.set_epoch_deadline(ticks);
        let _running = clock.run();
        match pre.instantiate(&mut store) {
            Ok(exports) => Ok(Self { store, exports }),
            Err(error) => {
                let mut failure = Failure::of(&error, &store);
                if error.downcast_ref::<Trap>().is_none() {
                    // Nothing of a message is there yet: this is about the plugin's functions and types.
                    failure.what = format!("{error:#}").chars().take(WHAT_CHARS_MAX).collect();
                }
                Err(failure)
            }
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

    /// Judges one message, which came at `began`, within `time`; `None`: within what starting left.
    pub(crate) fn evaluate(
        &mut self,
        view: &MessageView,
        clock: &Clock,
        began: Instant,
        time: Option<Duration>,
    ) -> Result<out::Verdict, Failure> {
        let session = view.cut(view.session.unwrap_or(view.key_id));
        self.store.data_mut().begin(session, view.words());
        if let Some(time) = time {
            let ticks = self.store.data_mut().deadline.set(began, time);
            self.store.set_epoch_deadline(ticks);
        }
        let _running = clock.run();
        let findings = findings(view);
        let principal = [wit::Attribute {
            name: span(view.key_id_name()),
            value: span(view.key_id),
        }];
        let message = message(view, &findings, &principal);
        let said = self
            .exports
            .weir_policy_policy()
            .call_evaluate(&mut self.store, message);
        self.store.data_mut().end();
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
            // The slots of all plugins are taken: this one has done nothing.
            None if error.downcast_ref::<PoolConcurrencyLimitError>().is_some() => {
                EvalError::NoRoom
            }
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

fn message<'a>(
    view: &'a MessageView,
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
        leaves: view.leaf_numbers(),
        findings,
    }
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
