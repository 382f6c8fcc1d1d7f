//! A plugin in one place of one server: what the gateway asks for a verdict.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dlp_policy::{EvalError, EvalInput, Evaluator, MessageView, Verdict};
use domain::{FailureMode, Grant, Isolation};
use parking_lot::Mutex;

use crate::breaker::{Breaker, Tripped};
use crate::engine::Clock;
use crate::host::{BindError, Plugin};
use crate::imports::Shared;
use crate::instance::{Instance, PATIENT};
use crate::measure::Measures;
use crate::turns::{Tenants, Turns};
use crate::verdict;

/// What stands in the place of a label that is kept back.
const KEPT_BACK: &str = "kept-back";
/// Shorter words than this are in every text.
const QUOTE_BYTES_MIN: usize = 8;
/// Different labels of one verdict that are looked at, and text searched for them, in bytes; the rest is kept back.
const LABELS_MAX: usize = 64;
const SEARCHED_BYTES_MAX: usize = 16 << 20;

/// What all bindings of a host share: the clock, whose turn it is, and how many instances they keep.
pub(crate) struct Room {
    pub(crate) clock: Clock,
    tenants: Tenants,
    kept: AtomicUsize,
    kept_max: usize,
}

impl Room {
    /// Half of the slots are for kept instances, the rest for fresh ones.
    pub(crate) fn new(clock: Clock, slots: u32) -> Self {
        Self {
            clock,
            tenants: Tenants::new(slots),
            kept: AtomicUsize::new(0),
            kept_max: slots as usize / 2,
        }
    }
}

/// A plugin bound to a server of a tenant.
pub struct Bound {
    plugin: Arc<Plugin>,
    shared: Arc<Shared>,
    server: Arc<str>,
    config: String,
    room: Arc<Room>,
    turns: Arc<Turns>,
    breaker: Breaker,
    measures: Measures,
    pace: Pace,
    /// Instances of this binding alone, and so of one tenant; one per worker that needed one at the
    /// same time as others.
    kept: Mutex<Vec<Kept>>,
}

/// Counted until it is gone, also while it judges.
struct Kept {
    instance: Instance,
    room: Arc<Room>,
}

impl std::fmt::Debug for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bound")
            .field("plugin", &self.shared.plugin)
            .field("tenant", &self.shared.tenant)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl Bound {
    pub(crate) fn new(
        plugin: Arc<Plugin>,
        shared: Arc<Shared>,
        server: &str,
        room: Arc<Room>,
    ) -> Result<Self, BindError> {
        let config = serde_json::Value::Object(shared.binding.config.clone()).to_string();
        let start = |failure: crate::instance::Failure| BindError::Start(failure.what);
        let mut first = Instance::new(
            &plugin.pre,
            Arc::clone(&shared),
            &room.clock,
            Instant::now(),
            PATIENT,
        )
        .map_err(start)?;
        match first.configure(&config, &room.clock).map_err(start)? {
            Ok(()) => {}
            Err(words) => return Err(BindError::Config(words.chars().take(512).collect())),
        }
        Ok(Self {
            measures: Measures::new(&shared.tenant, server, &shared.plugin),
            turns: room.tenants.turns(&shared.tenant),
            plugin,
            shared,
            server: server.into(),
            config,
            room,
            breaker: Breaker::default(),
            pace: Pace::default(),
            kept: Mutex::default(),
        })
    }

    /// What the plugin says about itself.
    pub fn description(&self) -> &crate::Description {
        self.plugin.description()
    }

    /// Sets the plugin's clock, for recorded messages; 0: the real time. What it remembers expires by the same one.
    pub fn pretend_now_ms(&self, now_ms: u64) {
        self.shared.pretended_ms.store(now_ms, Ordering::Relaxed);
        self.shared.space.pretend_now_ms(now_ms);
    }

    /// What the plugin asked for since this was asked last, and its binding does not grant.
    pub fn denied(&self) -> BTreeSet<Grant> {
        std::mem::take(&mut *self.shared.denied.lock())
    }

    fn judge(
        &self,
        input: &EvalInput<'_>,
        began: Instant,
    ) -> Result<(Verdict, usize), (EvalError, String)> {
        let time = Duration::from_millis(u64::from(self.shared.binding.timeout_ms));
        let failed = |failure: crate::instance::Failure| (failure.kind, failure.what);
        // Taken in a statement of its own: the lock is not held while an instance is made.
        let kept = self.kept.lock().pop();
        let (mut held, time) = match kept {
            Some(kept) => (Held::Kept(kept), Some(time)),
            // What starting takes is not given again.
            None => (Held::Fresh(self.fresh(began, time)?), None),
        };
        let instance = held.instance();
        let said = instance
            .evaluate(input.view, &self.room.clock, began, time)
            .map_err(failed)?;
        let memory_bytes = instance.memory_bytes();
        let verdict = verdict::checked(said, input.view)
            .map_err(|error| (error, "its verdict does not fit the message".to_owned()))?;
        // Only an instance that did nothing wrong is kept.
        if self.shared.binding.isolation == Isolation::Tenant
            && let Some(kept) = held.keep(&self.room)
        {
            self.kept.lock().push(kept);
        }
        Ok((self.without_quotes(verdict, input.view), memory_bytes))
    }

    fn fresh(&self, began: Instant, time: Duration) -> Result<Instance, (EvalError, String)> {
        let failed = |failure: crate::instance::Failure| (failure.kind, failure.what);
        let shared = Arc::clone(&self.shared);
        let mut instance = Instance::new(&self.plugin.pre, shared, &self.room.clock, began, time)
            .map_err(failed)?;
        match instance
            .configure(&self.config, &self.room.clock)
            .map_err(failed)?
        {
            Ok(()) => Ok(instance),
            Err(_) => Err((
                EvalError::Trapped,
                "it refuses its configuration now".to_owned(),
            )),
        }
    }

    /// Reasons and labels go into the audit log, and to the caller: one in which the rules find something is kept back,
    /// and so is a label that the message itself has.
    fn without_quotes(&self, mut verdict: Verdict, view: &MessageView) -> Verdict {
        if let Some(reason) = &verdict.reason
            && self.shared.gives_away(reason)
        {
            verdict.reason =
                Some("(the plugin's reason is kept back: rules find something in it)".into());
        }
        let mut quotes: HashMap<Arc<str>, bool> = HashMap::new();
        let mut left = SEARCHED_BYTES_MAX;
        for mark in &mut verdict.marks {
            let is_quote = match quotes.get(&mark.label) {
                Some(known) => *known,
                None if quotes.len() >= LABELS_MAX => true,
                None => {
                    let is_quote = self.is_quote(&mark.label, view, &mut left);
                    quotes.insert(Arc::clone(&mark.label), is_quote);
                    is_quote
                }
            };
            if is_quote {
                mark.label = KEPT_BACK.into();
            }
        }
        verdict
    }

    fn is_quote(&self, label: &str, view: &MessageView, left: &mut usize) -> bool {
        if self.shared.gives_away(label) {
            return true;
        }
        // Who bound the plugin has chosen it, whatever messages say.
        if label.len() < QUOTE_BYTES_MIN || self.config.contains(label) {
            return false;
        }
        if *left < view.text().len() {
            return true;
        }
        *left -= view.text().len();
        view.leaves()
            .any(|leaf| view.cut(leaf.text).contains(label))
    }

    fn failed(&self, error: EvalError, what: &str, took: Duration) {
        self.measures.failure(error, took);
        let (plugin, tenant, server) = (&*self.shared.plugin, &*self.shared.tenant, &*self.server);
        tracing::warn!(
            plugin,
            tenant_id = tenant,
            server_id = server,
            what,
            "a plugin failed"
        );
        if self.breaker.failed(Instant::now()) == Tripped::Opened {
            self.measures.breaker_opened();
            let fail_mode = match self.shared.binding.fail_mode {
                FailureMode::Closed => "closed",
                FailureMode::Open => "open",
            };
            tracing::error!(
                plugin,
                tenant_id = tenant,
                server_id = server,
                fail_mode,
                "a plugin failed three times in a row and is left alone for a while; its fail mode decides"
            );
        }
    }
}

impl Evaluator for Bound {
    fn name(&self) -> &str {
        &self.shared.plugin
    }

    fn failure_mode(&self) -> FailureMode {
        self.shared.binding.fail_mode
    }

    fn is_slow(&self) -> bool {
        self.pace.is_slow() || self.turns.are_scarce()
    }

    fn may_loosen(&self) -> bool {
        self.shared.binding.grants(Grant::Loosen)
    }

    fn evaluate(&self, input: &EvalInput<'_>) -> Result<Verdict, EvalError> {
        let began = Instant::now();
        if !self.breaker.admits(began) {
            self.measures.failure(EvalError::Open, Duration::ZERO);
            return Err(EvalError::Open);
        }
        let wait = Duration::from_millis(u64::from(self.shared.binding.timeout_ms));
        let Some(_turn) = self.turns.take(began + wait) else {
            self.measures.failure(EvalError::NoRoom, Duration::ZERO);
            return Err(EvalError::NoRoom);
        };
        // Waiting is not the plugin's time.
        let began = Instant::now();
        let judged = self.judge(input, began);
        let took = began.elapsed();
        self.pace.took(took);
        match judged {
            Ok((verdict, memory_bytes)) => {
                self.breaker.succeeded();
                self.measures.verdict(&verdict, took, memory_bytes);
                Ok(verdict)
            }
            Err((EvalError::NoRoom, _)) => {
                self.measures.failure(EvalError::NoRoom, took);
                Err(EvalError::NoRoom)
            }
            Err((error, what)) => {
                self.failed(error, &what, took);
                Err(error)
            }
        }
    }
}

/// How long the plugin takes of late.
#[derive(Debug, Default)]
struct Pace(AtomicU32);

impl Pace {
    /// From here on others would notice.
    const SLOW_US: u32 = 500;

    /// A long call counts at once and is forgotten by and by. Two threads may overwrite each other's
    /// word; the next call says it again.
    fn took(&self, took: Duration) {
        let us = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        let before = self.0.load(Ordering::Relaxed);
        let after = us.max(before - before / 16);
        if after != before {
            self.0.store(after, Ordering::Relaxed);
        }
    }

    fn is_slow(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= Self::SLOW_US
    }
}

/// What judges a message.
enum Held {
    Fresh(Instance),
    Kept(Kept),
}

impl Held {
    fn instance(&mut self) -> &mut Instance {
        match self {
            Self::Fresh(instance) => instance,
            Self::Kept(kept) => &mut kept.instance,
        }
    }

    /// For the next message, if there is room.
    fn keep(self, room: &Arc<Room>) -> Option<Kept> {
        let instance = match self {
            Self::Kept(kept) => return Some(kept),
            Self::Fresh(instance) => instance,
        };
        let max = room.kept_max;
        let more = |kept: usize| (kept < max).then_some(kept + 1);
        room.kept
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more)
            .ok()?;
        Some(Kept {
            instance,
            room: Arc::clone(room),
        })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.room.kept.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_call_makes_a_plugin_slow_until_it_was_quick_for_a_while() {
        let pace = Pace::default();
        let quick = Duration::from_micros(20);
        pace.took(quick);
        assert!(!pace.is_slow());
        pace.took(Duration::from_millis(10));
        assert!(pace.is_slow());
        let calls = (1..1000).find(|_| {
            pace.took(quick);
            !pace.is_slow()
        });
        assert!(calls.is_some_and(|calls| calls > 8), "{calls:?}");
    }
}
