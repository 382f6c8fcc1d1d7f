//! Metric handles of one binding. Labels are names from the configuration, never from messages.

use std::time::Duration;

use dlp_policy::{EvalError, Verdict};
use domain::PolicyAction;
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

pub(crate) struct Measures {
    seconds: Histogram,
    memory: Gauge,
    pass: Counter,
    object: Counter,
    block: Counter,
    trapped: Counter,
    timed_out: Counter,
    out_of_bounds: Counter,
    bad_verdict: Counter,
    open: Counter,
    no_room: Counter,
    opened: Counter,
}

impl Measures {
    pub(crate) fn new(tenant: &str, server: &str, plugin: &str) -> Self {
        let labels = [
            ("tenant", tenant.to_owned()),
            ("server", server.to_owned()),
            ("plugin", plugin.to_owned()),
        ];
        let with = |name: &'static str, value: &'static str| {
            let mut all: Vec<_> = labels.to_vec();
            all.push((name, value.to_owned()));
            all
        };
        let verdicts = |word| counter!("weir_plugin_calls_total", &with("verdict", word));
        let failures = |word| counter!("weir_plugin_failures_total", &with("kind", word));
        Self {
            seconds: histogram!("weir_plugin_seconds", &labels),
            memory: gauge!("weir_plugin_memory_bytes", &labels),
            pass: verdicts("pass"),
            object: verdicts("object"),
            block: verdicts("block"),
            trapped: failures("trap"),
            timed_out: failures("timeout"),
            out_of_bounds: failures("bounds"),
            bad_verdict: failures("bad_verdict"),
            open: failures("open"),
            no_room: failures("no_room"),
            opened: counter!("weir_plugin_breaker_opened_total", &labels),
        }
    }

    pub(crate) fn verdict(&self, verdict: &Verdict, took: Duration, memory_bytes: usize) {
        self.seconds.record(took.as_secs_f64());
        self.memory.set(memory_bytes as f64);
        let blocks = verdict.action >= Some(PolicyAction::Redact)
            || verdict
                .marks
                .iter()
                .any(|mark| mark.action == PolicyAction::Block);
        let silent =
            verdict.action.is_none() && verdict.marks.is_empty() && verdict.findings.is_empty();
        let counter = match (blocks, silent) {
            (true, _) => &self.block,
            (false, true) => &self.pass,
            (false, false) => &self.object,
        };
        counter.increment(1);
    }

    pub(crate) fn failure(&self, error: EvalError, took: Duration) {
        let counter = match error {
            EvalError::Trapped => &self.trapped,
            EvalError::TimedOut => &self.timed_out,
            EvalError::OutOfBounds => &self.out_of_bounds,
            EvalError::BadVerdict => &self.bad_verdict,
            EvalError::Open => &self.open,
            EvalError::NoRoom => &self.no_room,
        };
        counter.increment(1);
        if !matches!(error, EvalError::Open | EvalError::NoRoom) {
            self.seconds.record(took.as_secs_f64());
        }
    }

    pub(crate) fn breaker_opened(&self) {
        self.opened.increment(1);
    }
}
