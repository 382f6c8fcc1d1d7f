//! What one line of the audit log says: one record per message exchange, and one per event of a sandbox.
//!
//! It never holds message text. There is no field for a matched value, an argument or a result, and none may be
//! added: a finding is told by rule, place and keyed fingerprint, so that the log can be read by people who may not
//! read the data. Every field has a cap, applied by [`Record::cap`] when the record is appended; a capped text ends
//! in [`CUT_MARK`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::AuditId;

/// Shared text: identifiers are cloned per message from long-lived configuration, which costs a counter, not a copy.
pub type Text = Arc<str>;

/// What a text that was cut to its cap ends in.
pub const CUT_MARK: &str = "\u{2026}";
/// Cap in bytes of tenant, principal, server, session, sandbox, era, trace id, client, rule, category and fingerprint.
pub const NAME_BYTES_MAX: usize = 128;
/// Cap in bytes of a method, tool name, JSON-RPC id or reason.
pub const TEXT_BYTES_MAX: usize = 256;
/// Cap in bytes of the path of a finding.
pub const PATH_BYTES_MAX: usize = 256;
/// Findings kept in one record; the rest is counted in [`Record::findings_dropped`].
pub const FINDINGS_MAX: usize = 32;
/// Decoding layers kept per finding, and the cap in bytes of each one's name.
pub const LAYERS_MAX: usize = 8;
/// Cap in bytes of the name of a decoding layer.
pub const LAYER_BYTES_MAX: usize = 24;

/// One message exchange, from the request (or notification) to whatever ended it.
///
/// ```
/// use audit_log::{Action, Record};
/// let mut record = Record::new(1_790_000_000_000_000, "acme".into(), "github".into());
/// record.action = Action::Block;
/// record.method = Some("tools/call".into());
/// assert!(record.id.as_str().starts_with("aud_"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Place in the log, from 0, without gaps. Assigned by the log: what the caller puts here is overwritten.
    pub sequence: u64,
    /// When the exchange began, by the caller's clock. It is data only: order comes from `sequence`.
    pub time_unix_us: u64,
    /// The name by which clients and people refer to this record.
    pub id: AuditId,
    /// Whose server was called.
    pub tenant: Text,
    /// Key id of the caller; `None` when the caller was not authenticated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Text>,
    /// Server (route) that was called.
    pub server: Text,
    /// Short hash of the session id, never the id itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Text>,
    /// The sandbox that an event is about; none for exchanges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Text>,
    /// Protocol revision the exchange was judged by, for example `2025-06-18`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub era: Option<Text>,
    /// Direction of the message that decided the verdict.
    pub direction: Direction,
    /// JSON-RPC method; for an event of a sandbox its name behind `sandbox/`, `secret/` or `egress/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Text>,
    /// Tool name, or the name or address of the prompt, resource, secret or egress target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Text>,
    /// JSON-RPC id as its JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpc_id: Option<Text>,
    /// What was done with the exchange.
    pub action: Action,
    /// Why, in words of ours: never text from the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text>,
    /// Set when the policy only reported what it would have done.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dry_run: bool,
    /// The findings that led there, strictest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<FindingRecord>,
    /// Findings left out because of [`FINDINGS_MAX`].
    #[serde(default, skip_serializing_if = "is_zero_u32")]
    pub findings_dropped: u32,
    /// Where the time went.
    pub latency_us: LatencyUs,
    /// How much was moved.
    pub bytes: BytesMoved,
    /// HTTP status given to the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What became of the upstream call.
    pub upstream: UpstreamOutcome,
    /// W3C trace id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<Text>,
    /// Client address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Text>,
    /// Records refused just before this one because the queue was full. Assigned by the log.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub lost_before: u64,
}

/// What one rule found: where, never what.
///
/// The matched text has no field here and must not get one, in clear, in part or reversibly encoded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingRecord {
    /// Id of the rule.
    pub rule: Text,
    /// `secret`, `pii`, `injection` or a category of the user's own.
    pub category: Text,
    /// What this finding asked for.
    pub action: Action,
    /// Which way the message went that it was found in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// Path of the leaf, with keys that are themselves data masked by the caller.
    pub path: Text,
    /// Start of the match in the leaf, in bytes.
    pub start: u32,
    /// End of the match in the leaf, in bytes.
    pub end: u32,
    /// Decoders that had to be undone to see it, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Text>,
    /// Keyed hash of the matched value in hexadecimal: equal values can be told, the value cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Text>,
    /// The line of an allowlist that let it pass: `tenant[2]` or `server[0]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_by: Option<Text>,
}

/// What was done, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Nothing found, or nothing that asks for more.
    Pass,
    /// Passed, and recorded.
    Log,
    /// Passed, recorded, alerted.
    Warn,
    /// Passed with the findings replaced.
    Redact,
    /// Stopped by policy.
    Block,
    /// Stopped before policy: malformed, unauthenticated, over a limit.
    Refused,
    /// Ended by a fault of ours or of the upstream.
    Error,
}

/// Which way a message went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From client to server.
    ToServer,
    /// From server to client.
    ToClient,
}

/// What became of the upstream call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpstreamOutcome {
    /// The upstream was never asked.
    NotSent,
    /// It gave an answer, a JSON-RPC error included.
    Answered,
    /// The message wants no answer and was taken.
    Accepted,
    /// It could not be reached.
    Unreachable,
    /// It did not answer in time.
    TimedOut,
    /// It broke off or broke the protocol.
    Broken,
    /// The client left or cancelled.
    Cancelled,
}

/// Where the time went, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyUs {
    /// Bytes to messages, both directions.
    pub decode: u64,
    /// Leaves to findings, both directions.
    pub scan: u64,
    /// Findings to a decision, both directions.
    pub policy: u64,
    /// Waiting for the upstream.
    pub upstream: u64,
    /// From the first byte in to the last byte out.
    pub total: u64,
}

/// How much was moved, in bytes of message bodies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BytesMoved {
    /// Received from the client.
    pub request: u64,
    /// Received from the upstream.
    pub response: u64,
    /// Sent on, in both directions together.
    pub forwarded: u64,
}

impl Record {
    /// A record with a fresh id, `Pass`, and nothing else known yet.
    pub fn new(time_unix_us: u64, tenant: Text, server: Text) -> Self {
        Record {
            sequence: 0,
            time_unix_us,
            id: AuditId::new(time_unix_us),
            tenant,
            principal: None,
            server,
            session: None,
            sandbox: None,
            era: None,
            direction: Direction::ToServer,
            method: None,
            tool: None,
            rpc_id: None,
            action: Action::Pass,
            reason: None,
            dry_run: false,
            findings: Vec::new(),
            findings_dropped: 0,
            latency_us: LatencyUs::default(),
            bytes: BytesMoved::default(),
            status: None,
            upstream: UpstreamOutcome::NotSent,
            trace_id: None,
            client: None,
            lost_before: 0,
        }
    }

    /// Cuts every field to its cap. The log does this on append; it changes nothing the second time.
    pub fn cap(&mut self) {
        for text in [&mut self.tenant, &mut self.server] {
            cut(text, NAME_BYTES_MAX);
        }
        let names = [
            &mut self.principal,
            &mut self.session,
            &mut self.sandbox,
            &mut self.era,
            &mut self.trace_id,
            &mut self.client,
        ];
        for text in names.into_iter().flatten() {
            cut(text, NAME_BYTES_MAX);
        }
        let texts = [
            &mut self.method,
            &mut self.tool,
            &mut self.rpc_id,
            &mut self.reason,
        ];
        for text in texts.into_iter().flatten() {
            cut(text, TEXT_BYTES_MAX);
        }
        if self.findings.len() > FINDINGS_MAX {
            let dropped = u32::try_from(self.findings.len() - FINDINGS_MAX).unwrap_or(u32::MAX);
            self.findings_dropped = self.findings_dropped.saturating_add(dropped);
            self.findings.truncate(FINDINGS_MAX);
        }
        self.findings.iter_mut().for_each(FindingRecord::cap);
    }
}

impl FindingRecord {
    fn cap(&mut self) {
        cut(&mut self.rule, NAME_BYTES_MAX);
        cut(&mut self.category, NAME_BYTES_MAX);
        cut(&mut self.path, PATH_BYTES_MAX);
        if let Some(fingerprint) = &mut self.fingerprint {
            cut(fingerprint, NAME_BYTES_MAX);
        }
        if let Some(line) = &mut self.allowed_by {
            cut(line, NAME_BYTES_MAX);
        }
        self.layers.truncate(LAYERS_MAX);
        for layer in &mut self.layers {
            cut(layer, LAYER_BYTES_MAX);
        }
    }
}

impl Action {
    /// All of them, mildest first.
    pub const ALL: [Action; 7] = [
        Action::Pass,
        Action::Log,
        Action::Warn,
        Action::Redact,
        Action::Block,
        Action::Refused,
        Action::Error,
    ];

    /// The word for it in records and queries.
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Pass => "pass",
            Action::Log => "log",
            Action::Warn => "warn",
            Action::Redact => "redact",
            Action::Block => "block",
            Action::Refused => "refused",
            Action::Error => "error",
        }
    }
}

impl std::str::FromStr for Action {
    type Err = UnknownAction;

    fn from_str(word: &str) -> Result<Self, UnknownAction> {
        Action::ALL
            .into_iter()
            .find(|action| action.as_str() == word)
            .ok_or(UnknownAction)
    }
}

/// A word that names no [`Action`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an action: expected pass, log, warn, redact, block, refused or error")]
pub struct UnknownAction;

pub(crate) fn cut(text: &mut Text, bytes_max: usize) {
    if text.len() > bytes_max {
        let keep = text.floor_char_boundary(bytes_max - CUT_MARK.len());
        *text = format!("{}{CUT_MARK}", &text[..keep]).into();
    }
}

// serde's `skip_serializing_if` hands over references.
fn is_false(value: &bool) -> bool {
    !*value
}

fn is_zero_u32(value: &u32) -> bool {
    *value == 0
}

fn is_zero_u64(value: &u64) -> bool {
    *value == 0
}
