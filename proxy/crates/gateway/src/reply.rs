//! Weir's own words: the one place where a fault or a block becomes an answer.
//!
//! Texts for the client are fixed; what it cannot fix itself it is not told about.

use bytes::Bytes;
use domain::Era;
use mcp_codec::Id;

/// JSON-RPC error codes. Ours lie outside -32768..-32000, as the specification asks of new codes.
pub mod code {
    /// Not JSON.
    pub const PARSE: i32 = -32700;
    /// JSON, but no message that is accepted.
    pub const INVALID_REQUEST: i32 = -32600;
    /// A method that does not exist here.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// A request without what its method needs.
    pub const INVALID_PARAMS: i32 = -32602;
    /// A header says something else than the body (2026-07-28).
    pub const HEADER_MISMATCH: i32 = -32020;
    /// A protocol revision that is not inspected, hence not passed (2026-07-28).
    pub const UNSUPPORTED_VERSION: i32 = -32022;
    /// Stopped by policy.
    pub const BLOCKED: i32 = -31001;
    /// Over a rate or concurrency limit.
    pub const LIMITED: i32 = -31002;
    /// The upstream failed.
    pub const UPSTREAM: i32 = -31003;
    /// No valid credentials.
    pub const UNAUTHENTICATED: i32 = -31004;
    /// No such server or session.
    pub const NOT_FOUND: i32 = -31005;
    /// Weir itself cannot do what it must (for instance keep its audit log).
    pub const UNAVAILABLE: i32 = -31006;
}

/// Words of our own: built here and nowhere else, so that nothing unscanned can pass for them.
#[derive(Debug, Clone)]
pub struct Own(Bytes);

impl Own {
    /// The JSON text.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

/// A JSON-RPC error response. Without an id it carries `null`, as JSON-RPC 2.0 section 5 asks.
pub fn error(id: Option<&Id>, code: i32, message: &str) -> Own {
    error_with(id, code, message, "")
}

/// What would be said with another status than 200: it stands in the error, as when to try again does.
pub(crate) fn error_of_status(
    id: Option<&Id>,
    code: i32,
    message: &str,
    status: u16,
    retry_after_s: Option<u64>,
) -> Own {
    let data = match retry_after_s {
        Some(after_s) => format!(r#"{{"status":{status},"retry_after_s":{after_s}}}"#),
        None => format!(r#"{{"status":{status}}}"#),
    };
    error_with(id, code, message, &data)
}

/// The same with `data`, which must be JSON text of ours.
pub(crate) fn error_with(id: Option<&Id>, code: i32, message: &str, data: &str) -> Own {
    let id = id.map_or_else(|| "null".to_owned(), Id::to_json);
    let message = json_string(message);
    let data = if data.is_empty() {
        String::new()
    } else {
        format!(r#","data":{data}"#)
    };
    Own(Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}{data}}}}}"#
    )))
}

/// The answer to a request that policy stopped (in either direction).
///
/// A `tools/call` gets a result with `isError`: every SDK measured keeps its session then, and
/// the model reads the reason. Other methods have no such member and get an error, with HTTP 200.
pub fn block(id: &Id, method: &str, era: Era, text: &str) -> Own {
    if method != "tools/call" {
        return error(Some(id), code::BLOCKED, text);
    }
    let kind = match era {
        Era::Stateless => r#""resultType":"complete","#,
        Era::Handshake => "",
    };
    let (id, text) = (id.to_json(), json_string(text));
    Own(Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{{kind}"content":[{{"type":"text","text":{text}}}],"isError":true}}}}"#
    )))
}

/// A notification to the server that a call of ours is over.
pub(crate) fn cancelled(id: &Id, reason: &'static str) -> Own {
    let id = id.to_json();
    Own(Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"{reason}"}}}}"#
    )))
}

/// Asks a server whether it speaks the stateless era.
pub(crate) fn probe(id: &Id) -> Own {
    let (id, version) = (id.to_json(), env!("CARGO_PKG_VERSION"));
    Own(Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"server/discover","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"weir","version":"{version}"}}}}}}}}"#
    )))
}

/// Begins a handshake of our own.
pub(crate) fn hello(id: &Id) -> Own {
    let (id, version) = (id.to_json(), env!("CARGO_PKG_VERSION"));
    Own(Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"weir","version":"{version}"}}}}}}"#
    )))
}

/// Ends a handshake of our own.
pub(crate) fn initialized() -> Own {
    Own(Bytes::from_static(
        br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    ))
}

/// Text as a JSON string.
pub fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_a_result_for_tools_and_an_error_for_the_rest() {
        let id = Id::Number(7);
        let tool = block(&id, "tools/call", Era::Stateless, "no \"x\"");
        let v: serde_json::Value = serde_json::from_slice(&tool.into_bytes()).unwrap();
        assert_eq!(v["id"], 7);
        assert_eq!(v["result"]["isError"], true);
        assert_eq!(v["result"]["resultType"], "complete");
        assert_eq!(v["result"]["content"][0]["text"], "no \"x\"");
        let old = block(&id, "tools/call", Era::Handshake, "no");
        let v: serde_json::Value = serde_json::from_slice(&old.into_bytes()).unwrap();
        assert!(v["result"].get("resultType").is_none());
        let read = block(
            &Id::String("a".into()),
            "resources/read",
            Era::Handshake,
            "no",
        );
        let v: serde_json::Value = serde_json::from_slice(&read.into_bytes()).unwrap();
        assert_eq!(
            (v["id"].as_str(), v["error"]["code"].as_i64()),
            (Some("a"), Some(-31001))
        );
    }

    #[test]
    fn an_error_without_an_id_says_null() {
        let v: serde_json::Value =
            serde_json::from_slice(&error(None, code::PARSE, "m").into_bytes()).unwrap();
        assert!(v["id"].is_null());
        assert_eq!(v["error"]["code"], -32700);
    }
}
