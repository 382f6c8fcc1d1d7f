//! JSON-RPC as the load generator speaks it: request bodies with their own ids, and a check of every answer.
//!
//! An answer is right when it is a result with our id, no error, and exactly the text that was sent. The usual answer
//! has the text in the same JSON form as the request, so the check compares those bytes and parses only the rest;
//! anything else is parsed whole. Both paths refuse the same answers.

use crate::payload::Payload;
use crate::plan::Content;
use serde::Deserialize;
use std::borrow::Cow;
use std::fmt;

/// Which protocol revision the calls speak.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Era {
    /// 2025-11-25: `initialize` first, then calls in its session.
    #[default]
    Handshake,
    /// 2026-07-28: every request stands alone.
    Stateless,
}

impl Era {
    /// The revision's name on the wire.
    pub fn revision(self) -> &'static str {
        match self {
            Era::Handshake => "2025-11-25",
            Era::Stateless => "2026-07-28",
        }
    }
}

/// What is asked, and what a right answer is.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The revision.
    pub era: Era,
    /// The method and its parameters.
    pub kind: AskKind,
}

/// The request's method.
#[derive(Clone, Debug)]
pub enum AskKind {
    /// `tools/call` with the payload as one argument.
    Call {
        /// Tool name.
        tool: String,
        /// Argument that carries the text.
        argument: String,
        /// What the answer has to say.
        expect: Expect,
    },
    /// `tools/list`: any server has it.
    List,
}

/// What the answer's text has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Expect {
    /// The text sent, and nothing else.
    Echo,
    /// The text sent, with other words around it.
    Contains,
    /// Any result that is no error.
    Result,
    /// The text sent, with what was planted in it cut out and nothing before it changed.
    #[value(skip)]
    Redacted,
    /// A tool error by which a firewall says that it blocked the call.
    #[value(skip)]
    Blocked,
    /// What the payload's own content asks of a firewall: each call of a mixed trace.
    #[value(skip)]
    Planted,
}

/// Why an answer is wrong.
#[derive(Debug, PartialEq, Eq)]
pub enum Fault {
    /// The HTTP status was not 200, or the error of an HTTP 200 names another (`data.status`).
    Status(u16),
    /// Neither JSON nor an event stream with one.
    NotJson,
    /// Not our id.
    WrongId,
    /// A JSON-RPC error.
    RpcError(String),
    /// A result marked `isError`.
    ToolError(String),
    /// A result without the text.
    WrongText,
    /// It should have been stopped, and was not.
    NotBlocked,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Status(status) => write!(f, "HTTP status {status}"),
            Fault::NotJson => write!(f, "the answer is not JSON-RPC"),
            Fault::WrongId => write!(f, "the answer has another id"),
            Fault::RpcError(what) => write!(f, "JSON-RPC error: {what}"),
            Fault::ToolError(what) => write!(f, "tool error: {what}"),
            Fault::NotBlocked => write!(f, "the call should have been blocked and was not"),
            Fault::WrongText => write!(f, "the answer does not carry the text that was sent"),
        }
    }
}

impl Ask {
    /// Writes the request body for one call.
    pub fn body(&self, id: u64, payload: &Payload, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{}\",\"params\":{{",
                self.method()
            )
            .as_bytes(),
        );
        if self.era == Era::Stateless {
            out.extend_from_slice(STATELESS_META.as_bytes());
        }
        if let AskKind::Call { argument, .. } = &self.kind {
            let tool = self.tool_for(payload).unwrap_or_default();
            let (tool, argument) = (json(tool), json(argument));
            let comma = if self.era == Era::Stateless { "," } else { "" };
            out.extend_from_slice(
                format!("{comma}\"name\":{tool},\"arguments\":{{{argument}:").as_bytes(),
            );
            out.extend_from_slice(&payload.json);
            out.push(b'}');
        }
        out.extend_from_slice(b"}}");
    }

    /// The JSON-RPC method.
    pub fn method(&self) -> &'static str {
        match self.kind {
            AskKind::Call { .. } => "tools/call",
            AskKind::List => "tools/list",
        }
    }

    /// The tool, when there is one (the stateless revision repeats it in a header).
    pub fn tool(&self) -> Option<&str> {
        match &self.kind {
            AskKind::Call { tool, .. } => Some(tool),
            AskKind::List => None,
        }
    }

    /// The tool that this payload goes to: a mixed trace has some for another one.
    pub fn tool_for<'a>(&'a self, payload: &'a Payload) -> Option<&'a str> {
        self.tool().map(|tool| payload.tool.unwrap_or(tool))
    }

    /// A firewall that does what is expected here lets nothing of this call reach the upstream.
    pub fn stops(&self, payload: &Payload) -> bool {
        match &self.kind {
            AskKind::Call { expect, .. } => expect.of(payload) == Expect::Blocked,
            AskKind::List => false,
        }
    }

    /// Checks one answer.
    pub fn check(
        &self,
        id: u64,
        payload: &Payload,
        status: u16,
        media: &str,
        body: &[u8],
    ) -> Result<(), Fault> {
        if status != 200 {
            return Err(Fault::Status(status));
        }
        let events;
        let body = if media == "text/event-stream" {
            events = event_data(body)
                .into_iter()
                .find(|data| has_id(data, id))
                .ok_or(Fault::NotJson)?;
            events.as_slice()
        } else {
            body
        };
        let expect = match &self.kind {
            AskKind::Call { expect, .. } => expect.of(payload),
            AskKind::List => Expect::Result,
        };
        match expect {
            Expect::Echo | Expect::Planted => check_echo(id, payload, body),
            Expect::Contains => check_text(id, body, |text| text.contains(&payload.text)),
            Expect::Result => check_text(id, body, |_| true),
            Expect::Redacted => check_text(id, body, |text| is_redacted(payload, text)),
            Expect::Blocked => match check_text(id, body, |_| true) {
                Err(Fault::ToolError(why)) if why.contains("blocked") => Ok(()),
                Ok(()) => Err(Fault::NotBlocked),
                other => other,
            },
        }
    }
}

impl Expect {
    /// What is expected of the answer to this payload.
    fn of(self, payload: &Payload) -> Expect {
        match (self, payload.content) {
            (Expect::Planted, Content::Redacted) => Expect::Redacted,
            (Expect::Planted, Content::Blocked) => Expect::Blocked,
            (Expect::Planted, _) => Expect::Echo,
            (expect, _) => expect,
        }
    }
}

const STATELESS_META: &str = "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
    \"io.modelcontextprotocol/clientCapabilities\":{},\
    \"io.modelcontextprotocol/clientInfo\":{\"name\":\"weir-bench\",\"version\":\"1\"}}";

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A JSON string that no echo text is, put where the text was.
const PLACEHOLDER: &[u8] = b"\"\\u0000=\"";
const PLACEHOLDER_TEXT: &str = "\u{0}=";

fn check_echo(id: u64, payload: &Payload, body: &[u8]) -> Result<(), Fault> {
    // A short text could also occur elsewhere in the answer; the whole parse costs nothing there.
    if payload.json.len() > 64
        && body.len() < payload.json.len() + 4096
        && let Some(at) = memchr::memmem::find(body, &payload.json[..32])
        && body[at..].starts_with(&payload.json)
    {
        let mut rest = Vec::with_capacity(body.len() - payload.json.len() + PLACEHOLDER.len());
        rest.extend_from_slice(&body[..at]);
        rest.extend_from_slice(PLACEHOLDER);
        rest.extend_from_slice(&body[at + payload.json.len()..]);
        if check_text(id, &rest, |text| text == PLACEHOLDER_TEXT).is_ok() {
            return Ok(());
        }
    }
    check_text(id, body, |text| text == payload.text)
}

fn is_redacted(payload: &Payload, text: &str) -> bool {
    let Some(planted) = payload.planted.as_deref() else {
        return false;
    };
    let before = payload.text.split(planted).next().unwrap_or_default();
    text.starts_with(before) && text.contains("[REDACTED:") && !text.contains(planted)
}

#[derive(Deserialize)]
struct Answer<'a> {
    id: Option<serde_json::Value>,
    #[serde(borrow)]
    result: Option<ResultBody<'a>>,
    error: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct ResultBody<'a> {
    #[serde(default, rename = "isError")]
    is_error: bool,
    #[serde(borrow)]
    content: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Cow<'a, str>,
}

fn check_text(id: u64, body: &[u8], right: impl Fn(&str) -> bool) -> Result<(), Fault> {
    let answer: Answer<'_> = serde_json::from_slice(body).map_err(|_| Fault::NotJson)?;
    if let Some(error) = answer.error {
        // Where HTTP may not say it: a session's client would end with it.
        let status = error["data"]["status"].as_u64();
        return Err(match status.and_then(|s| u16::try_from(s).ok()) {
            Some(status) if answer.id == Some(id.into()) => Fault::Status(status),
            _ => Fault::RpcError(shorten(&error.to_string())),
        });
    }
    if answer.id != Some(id.into()) {
        return Err(Fault::WrongId);
    }
    let result = answer.result.ok_or(Fault::NotJson)?;
    let text = result
        .content
        .as_deref()
        .and_then(|content| content.first())
        .map_or("", |first| &first.text);
    if result.is_error {
        return Err(Fault::ToolError(shorten(text)));
    }
    if right(text) {
        Ok(())
    } else {
        Err(Fault::WrongText)
    }
}

/// Faults are for people; a megabyte of them is not.
fn shorten(text: &str) -> String {
    text.chars().take(200).collect()
}

fn has_id(data: &[u8], id: u64) -> bool {
    #[derive(Deserialize)]
    struct Id {
        id: Option<serde_json::Value>,
    }
    serde_json::from_slice::<Id>(data).is_ok_and(|found| found.id == Some(id.into()))
}

/// The `data` of every event of a finished stream.
fn event_data(stream: &[u8]) -> Vec<Vec<u8>> {
    let (mut events, mut data) = (Vec::new(), None::<Vec<u8>>);
    for line in stream.split(|&b| b == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            events.extend(data.take());
        } else if let Some(value) = line.strip_prefix(b"data:") {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match &mut data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => data = Some(value.to_vec()),
            }
        }
    }
    events.extend(data);
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo(era: Era, expect: Expect) -> Ask {
        Ask {
            era,
            kind: AskKind::Call {
                tool: "echo".into(),
                argument: "text".into(),
                expect,
            },
        }
    }

    #[test]
    fn bodies_are_json_with_everything_the_revision_wants() {
        let payload = Payload::new("a \"b\"\n".into());
        let mut body = Vec::new();
        echo(Era::Stateless, Expect::Echo).body(7, &payload, &mut body);
        let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(value["id"], 7);
        assert_eq!(value["params"]["arguments"]["text"], "a \"b\"\n");
        assert_eq!(
            value["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
            "2026-07-28"
        );
        for era in [Era::Handshake, Era::Stateless] {
            let list = Ask {
                era,
                kind: AskKind::List,
            };
            list.body(1, &payload, &mut body);
            let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(value["method"], "tools/list");
            assert_eq!(
                value["params"].as_object().unwrap().len(),
                usize::from(era == Era::Stateless)
            );
        }
    }

    #[test]
    fn answers_are_judged() {
        let long = "word \"quoted\" ".repeat(12);
        let same = serde_json::to_string(&long).unwrap();
        let escaped = same.replace("word", "\\u0077ord");
        let answer = |id: &str, text: &str| {
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}]}}}}"
            )
        };
        let error =
            "{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":-1,\"message\":\"no\"}}".to_owned();
        let refused =
            |id: &str| format!("{{\"id\":{id},\"error\":{{\"data\":{{\"status\":429}}}}}}");
        let tool_error =
            answer("5", "\"blocked\"").replace("\"content\"", "\"isError\":true,\"content\"");
        let sneaky = format!(
            "{{\"id\":5,\"extra\":{same},\"result\":{{\"content\":[{{\"text\":\"other\"}}]}}}}"
        );
        let marked = answer("5", &same).replace("\"content\"", "\"isError\":true,\"content\"");
        let both =
            format!("{{\"id\":5,\"error\":{{}},\"result\":{{\"content\":[{{\"text\":{same}}}]}}}}");
        let cases: Vec<(String, Result<(), Fault>)> = vec![
            (answer("5", &same), Ok(())),
            (answer("5", &escaped), Ok(())),
            (answer("6", &same), Err(Fault::WrongId)),
            (answer("\"5\"", &same), Err(Fault::WrongId)),
            (answer("null", &same), Err(Fault::WrongId)),
            (
                answer("5", &same.replace("quoted", "quotes")),
                Err(Fault::WrongText),
            ),
            (answer("5", "\"\""), Err(Fault::WrongText)),
            (answer("5", "\"\\u0000=\""), Err(Fault::WrongText)),
            (sneaky, Err(Fault::WrongText)),
            (
                error,
                Err(Fault::RpcError("{\"code\":-1,\"message\":\"no\"}".into())),
            ),
            (refused("5"), Err(Fault::Status(429))),
            (
                refused("6"),
                Err(Fault::RpcError("{\"data\":{\"status\":429}}".into())),
            ),
            (both, Err(Fault::RpcError("{}".into()))),
            (tool_error, Err(Fault::ToolError("blocked".into()))),
            (
                marked,
                Err(Fault::ToolError(long.chars().take(200).collect())),
            ),
            ("{\"id\":5}".into(), Err(Fault::NotJson)),
            ("<html>".into(), Err(Fault::NotJson)),
            (String::new(), Err(Fault::NotJson)),
        ];
        let payload = Payload::new(long.clone());
        let ask = echo(Era::Handshake, Expect::Echo);
        for (body, expected) in &cases {
            assert_eq!(
                &ask.check(5, &payload, 200, "application/json", body.as_bytes()),
                expected,
                "{body}"
            );
            let stream = format!(
                ": hi\r\n\r\nevent: message\r\ndata: {{\"method\":\"x\"}}\r\n\r\ndata: {body}\r\n\r\n"
            );
            if body.contains("\"id\":5") {
                assert_eq!(
                    &ask.check(5, &payload, 200, "text/event-stream", stream.as_bytes()),
                    expected,
                    "{stream}"
                );
            } else {
                assert!(
                    ask.check(5, &payload, 200, "text/event-stream", stream.as_bytes())
                        .is_err()
                );
            }
            assert_eq!(
                ask.check(5, &payload, 429, "application/json", body.as_bytes()),
                Err(Fault::Status(429))
            );
        }
    }

    #[test]
    fn looser_expectations() {
        let payload = Payload::new("hello".into());
        let body = br#"{"id":1,"result":{"content":[{"text":"Echo: hello"}]}}"#;
        let judge =
            |expect| echo(Era::Handshake, expect).check(1, &payload, 200, "application/json", body);
        assert_eq!(judge(Expect::Echo), Err(Fault::WrongText));
        assert_eq!(judge(Expect::Contains), Ok(()));
        assert_eq!(judge(Expect::Result), Ok(()));
    }

    #[test]
    fn enforcement_is_checked_and_not_only_endured() {
        let payload = Payload {
            planted: Some("219-09-3100".into()),
            ..Payload::new("her number is 219-09-3100 she said".into())
        };
        let answer = |error: bool, text: &str| {
            serde_json::json!({"id": 1, "result": {"isError": error, "content": [{"text": text}]}})
                .to_string()
        };
        let judge = |expect, error, text: &str| {
            let body = answer(error, text);
            echo(Era::Handshake, expect).check(
                1,
                &payload,
                200,
                "application/json",
                body.as_bytes(),
            )
        };
        let cut = "her number is [REDACTED:us-ssn] she said";
        assert_eq!(judge(Expect::Redacted, false, cut), Ok(()));
        for wrong in [
            payload.text.as_str(),
            "[REDACTED:us-ssn]",
            "her number is  she said",
        ] {
            assert_eq!(
                judge(Expect::Redacted, false, wrong),
                Err(Fault::WrongText),
                "{wrong}"
            );
        }
        let refusal = "Weir blocked this request: rule x (secret) found something in it.";
        assert_eq!(judge(Expect::Blocked, true, refusal), Ok(()));
        assert_eq!(
            judge(Expect::Blocked, false, &payload.text),
            Err(Fault::NotBlocked)
        );
        assert!(matches!(
            judge(Expect::Blocked, true, "out of order"),
            Err(Fault::ToolError(_))
        ));
    }

    #[test]
    fn an_event_may_have_many_data_lines() {
        assert_eq!(
            event_data(b"data: {\ndata: }\n\ndata:x"),
            [b"{\n}".to_vec(), b"x".to_vec()]
        );
        assert!(event_data(b": only a comment\n\n").is_empty());
    }
}
