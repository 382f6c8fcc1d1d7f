//! Taps: what a serving process shows of its traffic to whoever may write into its data folder.
//!
//! ```text
//! weir policy record/shadow --registry.json--> weir serve: Tap beside the plugins
//!        ^                                       | bounded, never waited for
//!        '--- plugins/taps/ID.jsonl <-- mask <-- a thread of its own <-'
//! ```
//!
//! A tap passes everything: it gives no verdict, and a live plugin's verdict goes through it unchanged.
//! Matched values are masked before anything is written, and what still holds something that rules find
//! is not written at all. A tap ends by itself when its time is over.

use std::fs::File;
use std::io::Write as _;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime};

use dlp_policy::{Action, EvalError, EvalInput, Evaluator, MessageView, Verdict};
use dlp_scan::{Budget, FingerprintKey, LeafInput, RuleSet, Scanner};
use domain::{Direction, FailureMode, PolicyAction};
use mcp_codec::{Document, Edits, Message};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::store::{self, Tap};

/// Messages that wait to be written; more are passed over.
const QUEUE: usize = 64;
/// Largest message written.
const MESSAGE_BYTES_MAX: usize = 256 << 10;
/// Largest file of one tap.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// One line of a tap's file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// A message, as a test case without its name.
    Case(Value),
    /// Both versions say the same.
    Alike,
    /// They differ.
    Unlike {
        /// The verdict in force.
        old: String,
        /// The candidate's.
        new: String,
        /// The message as a test case.
        case: Value,
    },
    /// A message could not be masked so that nothing is left for the rules to find.
    Withheld,
}

/// Watches a place, or a plugin in it.
pub struct Watched {
    name: String,
    live: Option<Arc<dyn Evaluator>>,
    until: Instant,
    send: SyncSender<Seen>,
}

/// What is handed to the writing thread.
struct Seen {
    json: Vec<u8>,
    view: MessageView,
    verdict: Result<Verdict, EvalError>,
}

impl Watched {
    /// Begins to watch. `candidate`: what judges beside the live plugin.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(
        data_dir: &Path,
        tap: &Tap,
        rules: &Arc<RuleSet>,
        live: Option<Arc<dyn Evaluator>>,
        candidate: Option<Arc<dyn Evaluator>>,
    ) -> Result<Self, String> {
        let path = store::tap_path(data_dir, &tap.id);
        let file = open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let (send, receive) = sync_channel(QUEUE);
        let writer = Writer {
            file,
            rules: Arc::clone(rules),
            scanner: Scanner::new(FingerprintKey::new([0; 32])),
            candidate,
            left: tap.messages_max,
        };
        std::thread::Builder::new()
            .name("plugin-tap".into())
            .spawn(move || writer.run(&receive))
            .map_err(|error| error.to_string())?;
        Ok(Self {
            name: live
                .as_ref()
                .map_or_else(|| "tap".to_owned(), |live| live.name().to_owned()),
            live,
            until: Instant::now() + left(tap),
            send,
        })
    }

    fn show(&self, input: &EvalInput<'_>, verdict: &Result<Verdict, EvalError>) {
        if input.json.len() > MESSAGE_BYTES_MAX || Instant::now() > self.until {
            return;
        }
        // Full or over: traffic is never kept waiting for somebody who looks on.
        let _ = self.send.try_send(Seen {
            json: input.json.to_vec(),
            view: input.view.clone(),
            verdict: verdict.clone(),
        });
    }
}

impl Evaluator for Watched {
    fn name(&self) -> &str {
        &self.name
    }

    fn failure_mode(&self) -> FailureMode {
        self.live
            .as_ref()
            .map_or(FailureMode::Open, |live| live.failure_mode())
    }

    fn is_slow(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.is_slow())
    }

    fn may_loosen(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.may_loosen())
    }

    fn judges(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.judges())
    }

    fn evaluate(&self, input: &EvalInput<'_>) -> Result<Verdict, EvalError> {
        let verdict = match &self.live {
            Some(live) => live.evaluate(input),
            None => Ok(Verdict::default()),
        };
        self.show(input, &verdict);
        verdict
    }
}

/// How long a tap lasts from now.
pub fn left(tap: &Tap) -> Duration {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Duration::from_secs(tap.until_unix_s).saturating_sub(now)
}

fn open(path: &PathBuf) -> std::io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = File::options();
    options.append(true).create(true).mode(0o600).open(path)
}

struct Writer {
    file: File,
    rules: Arc<RuleSet>,
    scanner: Scanner,
    candidate: Option<Arc<dyn Evaluator>>,
    left: u32,
}

impl Writer {
    fn run(mut self, receive: &Receiver<Seen>) {
        while self.left > 0 {
            let Ok(seen) = receive.recv() else { return };
            let line = self.line(&seen);
            let Ok(mut line) = serde_json::to_vec(&line) else {
                return;
            };
            line.push(b'\n');
            let size = self.file.metadata().map_or(u64::MAX, |meta| meta.len());
            // Who looks on sees that nothing comes any more; traffic goes on.
            if size + line.len() as u64 > FILE_BYTES_MAX || self.file.write_all(&line).is_err() {
                return;
            }
            self.left -= 1;
        }
    }

    fn line(&mut self, seen: &Seen) -> Line {
        let Some(candidate) = self.candidate.clone() else {
            let case = self.case(seen);
            return case.map_or(Line::Withheld, Line::Case);
        };
        let input = EvalInput {
            view: &seen.view,
            json: &seen.json,
            findings: &[],
            rules: &self.rules,
        };
        let said = candidate.evaluate(&input);
        let old = verdict_line(&seen.view, &seen.verdict);
        let new = verdict_line(&seen.view, &said);
        if old == new {
            return Line::Alike;
        }
        match self.case(seen) {
            Some(case) => Line::Unlike { old, new, case },
            None => Line::Unlike {
                old,
                new,
                case: Value::Null,
            },
        }
    }

    /// A test case of `weir policy test` and of the SDK, but for its name.
    fn case(&mut self, seen: &Seen) -> Option<Value> {
        let view = &seen.view;
        let found: Vec<Found> = view
            .findings()
            .iter()
            .map(|finding| Found {
                leaf: finding.leaf as usize,
                at: finding.start as usize..finding.end as usize,
                mask: format!("[masked:{}]", view.cut(finding.rule)),
            })
            .collect();
        let message = self.masked(&seen.json, &found)?;
        let findings: Vec<Value> = view
            .findings()
            .iter()
            .zip(&found)
            .map(|(finding, found)| {
                json!({
                    "rule": view.cut(finding.rule),
                    "category": view.cut(finding.category),
                    "path": view.leaf_at(finding.leaf).map(|leaf| view.cut(leaf.path)),
                    "text": found.mask,
                    "action": Action::from(finding.action).as_str(),
                })
            })
            .collect();
        let said = said(&seen.verdict);
        let mut expect = json!({ "action": said.as_str() });
        if let Ok(Verdict {
            reason: Some(reason),
            ..
        }) = &seen.verdict
        {
            expect["reason"] = json!(&**reason);
        }
        let mut case = json!({
            "direction": if view.direction == Direction::ToServer { "to_server" } else { "to_client" },
            "server": view.cut(view.server),
            "tenant": view.cut(view.tenant),
            "principal": { "key-id": view.cut(view.key_id) },
            "message": message,
            "findings": findings,
            "expect": expect,
        });
        if let Some(session) = view.session {
            case["session"] = json!(view.cut(session));
        }
        if let Some((method, id)) = view.call {
            let id = id.and_then(|id| serde_json::from_str::<Value>(view.cut(id)).ok());
            case["call"] = json!({
                "method": view.cut(method),
                "tool": view.tool.map(|tool| view.cut(tool)),
                "id": id,
            });
        }
        Some(case)
    }

    /// The message with masks over what was found, if the rules then find nothing.
    fn masked(&mut self, json: &[u8], found: &[Found]) -> Option<Value> {
        let limits = mcp_codec::Limits::default();
        let message = Message::decode(json.to_vec().into(), &limits).ok()?;
        let ids: Vec<_> = message.doc().leaves().map(|leaf| leaf.id).collect();
        let mut edits = Edits::new();
        for found in found {
            // A header's place is behind all leaves; headers are not written.
            if let Some(id) = ids.get(found.leaf) {
                edits.replace(*id, found.at.clone(), &found.mask);
            }
        }
        let masked = message.edited(&edits).ok()?;
        if !self.is_clean(masked.doc()) {
            return None;
        }
        serde_json::from_slice(masked.doc().source()).ok()
    }

    fn is_clean(&mut self, doc: &Document) -> bool {
        let outcome = self
            .scanner
            .scan(&self.rules, leaves(doc), &Budget::default());
        outcome.findings.is_empty() && outcome.over_budget.is_none()
    }
}

struct Found {
    leaf: usize,
    at: Range<usize>,
    mask: String,
}

/// A document's leaves, for the scanner.
pub fn leaves(doc: &Document) -> impl Iterator<Item = LeafInput<'_>> + Clone {
    doc.leaves().map(gateway::pipeline::leaf_input)
}

/// A plugin's word as one action, the strictest of all it said; a failure counts as a block.
pub fn said(verdict: &Result<Verdict, EvalError>) -> Action {
    let Ok(verdict) = verdict else {
        return Action::Block;
    };
    let whole = verdict.action.map(|action| match action {
        // It does not say what to take out.
        PolicyAction::Redact => Action::Block,
        other => other.into(),
    });
    let marks = verdict.marks.iter().map(|mark| mark.action.into());
    let rulings = verdict.findings.iter().map(|(_, action)| (*action).into());
    let all = whole.into_iter().chain(marks).chain(rulings);
    all.max().unwrap_or(Action::Pass)
}

/// A verdict in one line, for comparing two.
pub fn verdict_line(view: &MessageView, verdict: &Result<Verdict, EvalError>) -> String {
    let said = said(verdict);
    match verdict {
        Err(error) => format!("failed: {error}"),
        Ok(verdict) => {
            let marks = verdict.marks.iter().map(|mark| {
                let leaf = view.leaf_at(mark.leaf);
                let path = leaf.map_or("?", |leaf| view.cut(leaf.path));
                format!(" {}@{path}", mark.label)
            });
            let reason = verdict.reason.as_deref().unwrap_or_default();
            format!("{} {reason:?}{}", said.as_str(), marks.collect::<String>())
        }
    }
}
