//! The line for a message that is too long to be held: it is scanned while it arrives, and passes in steps.
//!
//! ```text
//! bytes -> MessageReader -> leaves -> windows: scan, policy, decide -> Passed<W>  (may be sent, and only the way W)
//!                                                                  \-> Halted    (is cut; it never looks whole)
//! ```
//!
//! What may go on before the rest is known can only be redacted, never blocked: so a message passes this way only where
//! policy can come to nothing stricter than redaction ([`Passing::check`]). Its last byte is let go by [`Passing::finish`]
//! alone, after all of it was found acceptable.

mod intake;
mod splice;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;
use std::time::Instant;

use bytes::Bytes;
use dlp_policy::{Action, Decision, Reason, ToolOf};
use dlp_scan::{Budget, Finding, Outcome, StreamStep};
use domain::{Limits, PolicyAction};
use mcp_codec::DecodeError;
use mcp_codec::stream::{Event, Facts, MessageReader, StreamLimits};

use self::intake::{Intake, Step};
use self::splice::{Changes, Splice};
use super::judge::{Attribution, Judge};
use super::scratch;
use super::stage::{StageTimes, Way};
use super::stop::Stop;

/// Findings of one message that are described; the rest is counted.
const FINDINGS_MAX: usize = 64;
/// Bytes read at a time, so that a window stays about as long as it is meant to be.
const PIECE_BYTES: usize = 32 << 10;
/// Findings in one window, beside one for each 16 bytes of it.
const WINDOW_FINDINGS_MAX: u32 = 1024;

/// Bytes of a message that were decided and may be sent the way `W`.
///
/// ```compile_fail,E0451
/// use gateway::pipeline::{Passed, ToClient};
/// let forged: Passed<ToClient> = Passed {
///     bytes: bytes::Bytes::from_static(b"{}"),
///     way: std::marker::PhantomData,
/// };
/// ```
#[derive(Debug)]
pub struct Passed<W> {
    bytes: Bytes,
    way: PhantomData<W>,
}

impl<W: Way> Passed<W> {
    /// The bytes: our own serialisation of what was scanned.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

/// Why a message may not pass in steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undecidable {
    /// Policy can block it, which has to be known before any of it goes on.
    PolicyBlocks,
    /// A plugin has to see it whole.
    Plugin,
}

/// Why a message goes no further.
#[derive(Debug)]
pub enum Halted {
    /// It is no message that is accepted.
    Malformed(DecodeError),
    /// What was found cannot be taken out, or the scan ran over its budget.
    Stopped(Stop),
}

/// What was found in a message that passed in steps, for the audit record.
#[derive(Debug)]
pub struct PassingReport {
    /// The strictest action of all steps.
    pub action: Action,
    /// What was really done.
    pub enforced: Action,
    /// What made it so.
    pub reason: Reason,
    /// Nothing is enforced.
    pub dry_run: bool,
    /// The first findings.
    pub findings: Vec<PassedFinding>,
    /// Further ones.
    pub findings_dropped: u32,
    /// The time each stage took.
    pub times: StageTimes,
    /// Bytes let go.
    pub forwarded_bytes: u64,
}

/// One finding, with its place.
#[derive(Debug)]
pub struct PassedFinding {
    /// The finding; its offsets count in a window.
    pub finding: Finding,
    /// What policy says about it.
    pub action: PolicyAction,
    /// Where it is.
    pub path: String,
    /// Its first byte in the leaf.
    pub start: u64,
    /// One past its last byte.
    pub end: u64,
    /// The allowlist's line that lets it pass.
    pub allowed_by: Option<String>,
}

/// A message on its way.
#[derive(Debug)]
pub struct Passing<W> {
    reader: MessageReader,
    intake: Intake,
    report: PassingReport,
    keys: usize,
    way: PhantomData<W>,
}

impl<W: Way> Passing<W> {
    /// Whether a message that is judged so may pass in steps.
    ///
    /// # Errors
    /// Why not. A dry run is no reason: it is to show what would be.
    pub fn check(judge: &Judge<'_>) -> Result<(), Undecidable> {
        if judge.actions(W::DIRECTION).strictest() >= PolicyAction::Block {
            return Err(Undecidable::PolicyBlocks);
        }
        let tool = match judge.attribution {
            Attribution::Tool(tool) => ToolOf::Tool(tool),
            Attribution::NoTool => ToolOf::None,
            Attribution::Unknown => ToolOf::Unknown,
        };
        let mut evaluators = judge.evaluators.for_tool(W::DIRECTION, tool);
        match evaluators.any(|evaluator| evaluator.judges()) {
            false => Ok(()),
            true => Err(Undecidable::Plugin),
        }
    }

    /// Before the first byte of a message of at most `limits.streamed_bytes_max`.
    pub fn new(limits: &Limits, dry_run: bool) -> Self {
        Self {
            reader: MessageReader::new(stream_limits(limits)),
            intake: Intake::new(),
            report: PassingReport {
                action: Action::Pass,
                enforced: Action::Pass,
                reason: Reason::Clean,
                dry_run,
                findings: Vec::new(),
                findings_dropped: 0,
                times: StageTimes::default(),
                forwarded_bytes: 0,
            },
            keys: 0,
            way: PhantomData,
        }
    }

    /// Takes the next bytes; gives what may go on, perhaps nothing.
    ///
    /// # Errors
    /// Nothing more of the message may go on.
    pub fn push(&mut self, bytes: &[u8], judge: &Judge<'_>) -> Result<Passed<W>, Halted> {
        let mut out = Vec::new();
        for piece in bytes.chunks(PIECE_BYTES) {
            self.reader
                .push(piece, &mut self.intake)
                .map_err(Halted::Malformed)?;
            while self.intake.leaves.is_full() {
                self.step(judge, false, &mut out).map_err(Halted::Stopped)?;
            }
        }
        Ok(self.passed(out))
    }

    /// The message has ended: the rest of it, with its last byte.
    ///
    /// # Errors
    /// It is not whole or not acceptable, and what is left of it may not go on.
    pub fn finish(&mut self, judge: &Judge<'_>) -> Result<Passed<W>, Halted> {
        let mut out = Vec::new();
        self.reader
            .finish(&mut self.intake)
            .map_err(Halted::Malformed)?;
        self.step(judge, true, &mut out).map_err(Halted::Stopped)?;
        out.append(&mut self.intake.glue);
        Ok(self.passed(out))
    }

    /// What was found so far.
    pub fn report(&self) -> &PassingReport {
        &self.report
    }

    /// What the message said of itself so far.
    pub fn facts(&self) -> &Facts {
        self.reader.facts()
    }

    /// Bytes read so far.
    pub fn position(&self) -> u64 {
        self.reader.position()
    }

    fn passed(&mut self, out: Vec<u8>) -> Passed<W> {
        self.report.forwarded_bytes += out.len() as u64;
        Passed {
            bytes: out.into(),
            way: PhantomData,
        }
    }

    /// Scans a window, decides about a step of it and writes that.
    fn step(&mut self, judge: &Judge<'_>, last: bool, out: &mut Vec<u8>) -> Result<(), Stop> {
        let started = Instant::now();
        let budget = budget(judge.limits);
        let leaves = &mut self.intake.leaves;
        let keeps = judge.keeps(W::DIRECTION);
        let step = scratch::with_scanner(|scanner| {
            leaves.decide_for(scanner, judge.rules, &budget, last, &keeps)
        });
        let scanned = Instant::now();
        self.report.times.scan_us += us(started, scanned);
        let outcome = self.decided(step, judge, &budget, out);
        self.report.times.policy_us += us(scanned, Instant::now());
        outcome
    }

    fn decided(
        &mut self,
        step: StreamStep,
        judge: &Judge<'_>,
        budget: &Budget,
        out: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        let leaves = &self.intake.leaves;
        let place = |finding: &Finding| {
            let tag = leaves.tag(finding.leaf as usize);
            tag.map_or_else(String::new, |tag| tag.path(false))
        };
        let outcome = Outcome {
            findings: step.findings.clone(),
            over_budget: step.over_budget,
        };
        let decision = judge.decide_about(W::DIRECTION, &outcome, &place);
        self.note(&step, &decision);
        let changes = match decision.enforced {
            Action::Block => return Err(Stop::Policy(decision.reason)),
            Action::Redact => Splice {
                direction: W::DIRECTION,
                leaves: &self.intake.leaves,
                step: &step,
                decision: &decision,
                judge,
                budget,
                keys: self.keys,
            }
            .changes()?,
            _ => Changes::new(),
        };
        self.keys += decision.hits.len();
        splice::write(&mut self.intake.leaves, &step, &changes, out);
        self.intake.leaves.forget();
        Ok(())
    }

    /// Adds a step to the report.
    fn note(&mut self, step: &StreamStep, decision: &Decision) {
        let leaves = &self.intake.leaves;
        let report = &mut self.report;
        report.enforced = report.enforced.max(decision.enforced);
        if decision.action > report.action {
            report.action = decision.action;
            report.reason = decision.reason.clone();
        }
        let tag = |finding: &Finding| leaves.tag(finding.leaf as usize);
        for tag in step.findings.iter().filter_map(tag).filter(|t| t.is_key) {
            if let Some(Step::Key(key)) = &tag.step {
                key.mask();
            }
        }
        for (index, (finding, action)) in step.findings.iter().zip(&decision.hits).enumerate() {
            if *action == PolicyAction::Ignore {
                continue;
            }
            if report.findings.len() == FINDINGS_MAX {
                report.findings_dropped = report.findings_dropped.saturating_add(1);
                continue;
            }
            let offset = leaves.offset(finding.leaf as usize);
            report.findings.push(PassedFinding {
                finding: *finding,
                action: *action,
                path: tag(finding).map_or_else(String::new, |tag| tag.path(true)),
                start: offset + u64::from(finding.start),
                end: offset + u64::from(finding.end),
                allowed_by: decision.allowed.by(index).map(|line| line.to_string()),
            });
        }
    }
}

/// What the beginning of a message says of it. Nothing of it is let go.
///
/// # Errors
/// It is the beginning of no message that is accepted.
pub fn facts_of(head: &[u8], limits: &Limits) -> Result<Facts, DecodeError> {
    let mut reader = MessageReader::new(stream_limits(limits));
    let mut nobody = |_: Event<'_>, _: std::ops::Range<u64>| Ok(());
    reader.push(head, &mut nobody)?;
    Ok(reader.facts().clone())
}

fn stream_limits(limits: &Limits) -> StreamLimits {
    let bytes_max = limits.streamed_bytes_max;
    StreamLimits::of(&crate::codec_limits(limits), bytes_max)
}

fn budget(limits: &Limits) -> Budget {
    Budget {
        decoded_bytes_max: u32::try_from(limits.decoded_bytes_max).unwrap_or(u32::MAX),
        depth_max: u8::try_from(limits.decode_depth_max).unwrap_or(u8::MAX),
        findings_max: WINDOW_FINDINGS_MAX,
        ..Budget::default()
    }
}

fn us(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.duration_since(from).as_micros()).unwrap_or(u64::MAX)
}
