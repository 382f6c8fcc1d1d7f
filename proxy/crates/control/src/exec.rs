//! One tool call through the gateway's own door: the same authentication, scan, policy and audit as any client's.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use domain::{ApiKey, CallLimits, KeyHash, KeyId, Secret, ServerId, TenantId, ToolAccess};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpStream;

use crate::error::ControlError;

/// The principal of executions, in audit records.
pub const GATEWAY_KEY_ID: &str = "weir-exec";
/// The handshake's revision: hosted servers of every age speak it.
const VERSION: &str = "2025-06-18";
/// The longest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// The keys with which executions come to the gateway: one per tenant, made anew at every start and written nowhere.
#[derive(Clone)]
pub struct ExecKeys([u8; 32]);

impl ExecKeys {
    /// New random keys.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn random() -> Result<Self, ControlError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)
            .map_err(|_| ControlError::Conflict("the system gives no random numbers".into()))?;
        Ok(Self(seed))
    }

    /// What the gateway must know of the key of a tenant.
    pub fn for_gateway(&self, tenant: &TenantId) -> Option<ApiKey> {
        let hash = Sha256::digest(self.of(tenant).expose().as_bytes());
        Some(ApiKey {
            id: KeyId::parse(GATEWAY_KEY_ID).ok()?,
            hash: KeyHash(hash.into()),
            tenant: tenant.clone(),
            servers: Vec::new(),
            tools: ToolAccess::default(),
            limits: CallLimits::default(),
        })
    }

    fn of(&self, tenant: &TenantId) -> Secret {
        let inner = Sha256::new()
            .chain_update(self.0)
            .chain_update(tenant.as_str())
            .finalize();
        let outer = Sha256::new()
            .chain_update(self.0)
            .chain_update(inner)
            .finalize();
        let hex: String = outer.iter().map(|b| format!("{b:02x}")).collect();
        Secret::new(hex)
    }
}

impl fmt::Debug for ExecKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExecKeys(***)")
    }
}

/// How long the end of a session may take.
const LEAVE_MAX: Duration = Duration::from_secs(10);
/// How long a call may take to be cancelled.
const CANCEL_MAX: Duration = Duration::from_secs(2);
/// The call's, within its session.
const CALL_ID: u32 = 2;

/// Opens a session, calls the tool, ends the session, whatever became of the call; gives its `result`, for which it waits
/// `max`. A call that takes longer is cancelled, since others may wait behind it. With `alone` the call goes without a session: where each call has a sandbox of its own, the gateway opens one in
/// it.
pub async fn call_tool(
    gateway: SocketAddr,
    keys: &ExecKeys,
    (tenant, server): (&TenantId, &ServerId),
    tool: &str,
    arguments: &serde_json::Map<String, Value>,
    alone: bool,
    max: Duration,
) -> Result<Value, ControlError> {
    let door = Door {
        gateway,
        key: keys.of(tenant),
        path: format!("/sandbox/{server}/mcp"),
    };
    let (mut session, mut is_called) = (None, false);
    let call = async {
        if !alone {
            door.open(&mut session).await?;
        }
        let params = json!({"name": tool, "arguments": arguments});
        let call = request(CALL_ID, "tools/call", params);
        is_called = true;
        door.post(&call, session.as_deref()).await
    };
    let called = tokio::time::timeout(max, call).await;
    let cancelled = match (&called, &session) {
        (Err(_), Some(session)) if is_called => door.cancel(session).await,
        _ => false,
    };
    if session.is_some() {
        // What is kept of the session may go; nobody waits for it.
        tokio::spawn(async move {
            let left = door.send(Method::DELETE, Bytes::new(), session.as_deref());
            let _ = tokio::time::timeout(LEAVE_MAX, left).await;
        });
    }
    let too_long = |_| {
        let fate = match (is_called, cancelled) {
            (false, _) => "the server had not answered the handshake yet, and nothing was called",
            // Its sandbox serves nobody else.
            (true, _) if alone => "its request was closed",
            (true, true) => "the call was cancelled",
            (true, false) => "the call could not be cancelled and may go on in the server",
        };
        ControlError::Exec(format!("no result within {} s; {fate}", max.as_secs()))
    };
    result_of(called.map_err(too_long)??.1)
}

fn request(id: u32, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn result_of(answer: Option<Value>) -> Result<Value, ControlError> {
    let mut answer =
        answer.ok_or_else(|| ControlError::Exec("the answer holds no message".to_owned()))?;
    if let Some(error) = answer.get("error") {
        let text = error["message"].as_str().unwrap_or("without words");
        return Err(ControlError::Exec(format!(
            "the server answered with an error: {}",
            text.chars().take(500).collect::<String>()
        )));
    }
    Ok(answer["result"].take())
}

struct Door {
    gateway: SocketAddr,
    key: Secret,
    path: String,
}

impl Door {
    /// Opens a session, and says its id as soon as it is there, if the server has sessions.
    async fn open(&self, session: &mut Option<String>) -> Result<(), ControlError> {
        let info = json!({"name": "weir exec", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": info});
        let (headers, answer) = self.post(&request(1, "initialize", params), None).await?;
        let id = headers
            .get("mcp-session-id")
            .and_then(|id| id.to_str().ok());
        *session = id.map(str::to_owned);
        result_of(answer)?;
        let word = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.post(&word, session.as_deref()).await.map(drop)
    }

    /// Says that nobody waits for the call any more; whether the gateway took the word.
    async fn cancel(&self, session: &str) -> bool {
        let params = json!({"requestId": CALL_ID, "reason": "it took longer than it may"});
        let word = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        let sent = tokio::time::timeout(CANCEL_MAX, self.post(&word, Some(session)));
        matches!(sent.await, Ok(Ok(_)))
    }

    async fn post(
        &self,
        message: &Value,
        session: Option<&str>,
    ) -> Result<(HeaderMap, Option<Value>), ControlError> {
        let (status, headers, body) = self
            .send(Method::POST, message.to_string().into(), session)
            .await?;
        let answer = message_in(&headers, &body, message.get("id"));
        // A refusal with a message says more than its status.
        if !status.is_success() && answer.as_ref().and_then(|a| a.get("error")).is_none() {
            return Err(ControlError::Exec(format!(
                "the gateway answered with status {status}"
            )));
        }
        Ok((headers, answer))
    }

    async fn send(
        &self,
        method: Method,
        body: Bytes,
        session: Option<&str>,
    ) -> Result<(http::StatusCode, HeaderMap, Bytes), ControlError> {
        let failed = |what: &'static str| move |_| ControlError::Exec(what.to_owned());
        let stream = TcpStream::connect(self.gateway)
            .await
            .map_err(|_| ControlError::Exec("the gateway cannot be reached".to_owned()))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(failed("no HTTP"))?;
        let connection = tokio::spawn(connection);
        let mut request = Request::builder()
            .method(method)
            .uri(&self.path)
            .header(HOST, self.gateway.to_string())
            .header(AUTHORIZATION, format!("Bearer {}", self.key.expose()))
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        // Before there is a session it may stand there too (2025-06-18, transports).
        request = request.header("mcp-protocol-version", VERSION);
        let request = request
            .body(Full::new(body))
            .map_err(|_| ControlError::Exec("a header cannot be sent".to_owned()))?;
        let response = sender
            .send_request(request)
            .await
            .map_err(failed("the gateway broke off"))?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|_| {
            ControlError::Exec("the answer broke off, or is above 16 MiB".to_owned())
        })?;
        connection.abort();
        Ok((head.status, head.headers, body.to_bytes()))
    }
}

/// The answer to `id` in a body of JSON or of events.
fn message_in(headers: &HeaderMap, body: &[u8], id: Option<&Value>) -> Option<Value> {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default();
    if !kind.starts_with("text/event-stream") {
        return serde_json::from_slice(body).ok();
    }
    let text = std::str::from_utf8(body).ok()?;
    let events = text.split("\n\n").map(|event| {
        let data = event.lines().filter_map(|line| line.strip_prefix("data:"));
        data.map(|d| d.strip_prefix(' ').unwrap_or(d))
            .collect::<Vec<_>>()
            .join("\n")
    });
    let mut messages = events.filter_map(|data| serde_json::from_str::<Value>(&data).ok());
    messages.find(|message| message.get("id") == id && message.get("method").is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tenant_has_a_key_of_its_own() {
        let keys = ExecKeys::random().expect("random");
        let [a, b] = ["a", "b"].map(|t| TenantId::parse(t).expect("an id"));
        let hash = |keys: &ExecKeys, t| keys.for_gateway(t).expect("a key").hash;
        assert!(hash(&keys, &a) == hash(&keys, &a) && hash(&keys, &a) != hash(&keys, &b));
        assert!(hash(&keys, &a) != hash(&ExecKeys::random().expect("random"), &a));
    }

    #[test]
    fn the_answer_is_found_among_events() {
        let mut headers = HeaderMap::new();
        headers.insert(
            CONTENT_TYPE,
            http::HeaderValue::from_static("text/event-stream"),
        );
        let events = "id: 1\ndata: {\"method\":\"notifications/message\"}\n\ndata: {\"id\":2,\ndata: \"result\":{}}\n\ndata: {\"id\":3}\n\n";
        let found = message_in(&headers, events.as_bytes(), Some(&json!(2)));
        assert_eq!(found, Some(json!({"id": 2, "result": {}})));
        assert_eq!(
            message_in(&headers, b"data: {\"id\":1}\n\n", Some(&json!(2))),
            None
        );
    }
}
