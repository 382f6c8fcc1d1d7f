//! An MCP client of both eras on top of raw HTTP: one connection per message, nothing hidden.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::http::{Conn, EventStream, Head};
use crate::sse::{self, Event};
use crate::weir::Weir;

/// The two ways MCP is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `initialize` first, revision 2025-11-25.
    Handshake,
    /// Each request alone, revision 2026-07-28.
    Stateless,
}

impl Era {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Handshake, Self::Stateless];

    /// Its newest revision.
    pub fn revision(self) -> &'static str {
        match self {
            Self::Handshake => "2025-11-25",
            Self::Stateless => "2026-07-28",
        }
    }
}

/// A client.
#[derive(Debug, Clone)]
pub struct Client {
    /// Where it connects.
    pub addr: SocketAddr,
    /// The request target.
    pub path: String,
    /// How it speaks.
    pub era: Era,
    /// The revision it speaks.
    pub revision: String,
    /// Headers on every request (an API key).
    pub headers: Vec<(String, String)>,
    /// The session that the server gave.
    pub session: Option<String>,
    next_id: i64,
}

/// What came back for one POST.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The response head.
    pub head: Head,
    /// The body as it came, transfer framing taken off.
    pub body: Vec<u8>,
    /// The JSON-RPC messages in it.
    pub messages: Vec<Value>,
    /// The id that was asked with.
    pub id: Value,
}

/// An open event stream.
pub struct Stream {
    /// The response head.
    pub head: Head,
    conn: Conn,
    events: EventStream,
}

impl Client {
    /// A client that has said hello where its era has one.
    pub fn connect(weir: &Weir, era: Era) -> Self {
        Self::connect_with(weir, era, &[])
    }

    /// The same with headers on every request.
    pub fn connect_with(weir: &Weir, era: Era, headers: &[(&str, &str)]) -> Self {
        let mut client = Self::new(weir, era, headers);
        if era == Era::Handshake {
            client.initialize();
        }
        client
    }

    /// A client that has said nothing yet.
    pub fn new(weir: &Weir, era: Era, headers: &[(&str, &str)]) -> Self {
        let headers = headers
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        Self {
            headers: headers.collect(),
            ..Self::at(weir.addr, weir.path(), era)
        }
    }

    /// A client of any endpoint that has said nothing yet.
    pub fn at(addr: SocketAddr, path: &str, era: Era) -> Self {
        Self {
            addr,
            path: path.to_owned(),
            era,
            revision: era.revision().to_owned(),
            headers: Vec::new(),
            session: None,
            next_id: 1,
        }
    }

    /// `initialize` and `notifications/initialized`; panics when it is refused.
    pub fn initialize(&mut self) -> Answer {
        let params = json!({
            "protocolVersion": self.revision,
            "capabilities": { "sampling": {}, "elicitation": {}, "roots": {} },
            "clientInfo": { "name": "tests", "version": "1" },
        });
        let answer = self.request("initialize", params);
        assert_eq!(answer.status(), 200, "initialize: {}", answer.text());
        self.session = answer.head.header("mcp-session-id").map(str::to_owned);
        let done = self.notify("notifications/initialized", json!({}));
        assert_eq!(done.status(), 202, "initialized: {}", done.text());
        answer
    }

    /// Asks and reads the whole answer.
    pub fn request(&mut self, method: &str, params: Value) -> Answer {
        let message = self.message(method, params);
        self.post(&message)
    }

    /// `tools/call`.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Answer {
        self.request(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) -> Answer {
        let mut message = self.message(method, params);
        message
            .as_object_mut()
            .expect("a message is an object")
            .remove("id");
        self.post(&message)
    }

    /// A request message with a fresh id and what the era wants in `_meta`.
    pub fn message(&mut self, method: &str, mut params: Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        if self.era == Era::Stateless {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!(self.revision);
            meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "tests", "version": "1" });
            if meta["io.modelcontextprotocol/clientCapabilities"].is_null() {
                meta["io.modelcontextprotocol/clientCapabilities"] =
                    json!({ "sampling": {}, "elicitation": {}, "roots": {} });
            }
        }
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    }

    /// Posts a message with the headers that belong to it.
    pub fn post(&self, message: &Value) -> Answer {
        self.try_post(message)
            .unwrap_or_else(|e| panic!("POST {message}: {e}"))
    }

    /// The same; the error tells why there is no answer.
    pub fn try_post(&self, message: &Value) -> io::Result<Answer> {
        let headers = self.headers_for(message);
        let mut answer = self.post_bytes(message.to_string().as_bytes(), &headers)?;
        answer.id = message["id"].clone();
        Ok(answer)
    }

    /// Posts any bytes with these headers beside `Host`, `Content-Length` and the client's own.
    pub fn post_bytes(&self, body: &[u8], headers: &[(String, String)]) -> io::Result<Answer> {
        let mut conn = Conn::try_open(self.addr)?;
        conn.send(self.request_bytes("POST", headers, body));
        read_answer(&mut conn)
    }

    /// The bytes of a request.
    pub fn request_bytes(
        &self,
        method: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Vec<u8> {
        let mut head = format!("{method} {} HTTP/1.1\r\nHost: {}\r\n", self.path, self.addr);
        for (name, value) in self.headers.iter().chain(headers) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if method == "POST" {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        [head.as_bytes(), body].concat()
    }

    /// The headers that a message of this client travels with.
    pub fn headers_for(&self, message: &Value) -> Vec<(String, String)> {
        let mut headers = vec![
            ("Content-Type".to_owned(), "application/json".to_owned()),
            (
                "Accept".to_owned(),
                "application/json, text/event-stream".to_owned(),
            ),
        ];
        let method = message["method"].as_str().unwrap_or_default();
        if method != "initialize" {
            headers.push(("MCP-Protocol-Version".into(), self.revision.clone()));
        }
        if let Some(session) = &self.session {
            headers.push(("Mcp-Session-Id".into(), session.clone()));
        }
        if self.era == Era::Stateless {
            headers.push(("Mcp-Method".into(), method.to_owned()));
            let field = match method {
                "tools/call" | "prompts/get" => "name",
                "resources/read" => "uri",
                "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
                _ => "",
            };
            if let Some(name) = message["params"][field].as_str() {
                headers.push(("Mcp-Name".into(), header_value(name)));
            }
        }
        headers
    }

    /// Posts a message and leaves the event stream open.
    pub fn open(&self, message: &Value) -> Stream {
        let bytes = self.request_bytes(
            "POST",
            &self.headers_for(message),
            message.to_string().as_bytes(),
        );
        self.stream(&bytes)
    }

    /// The listen stream of the handshake era, resumed after an event when one is given.
    pub fn listen(&self, last_event_id: Option<&str>) -> Stream {
        let mut headers = self.headers_for(&Value::Null);
        headers.retain(|(n, _)| n != "Content-Type" && n != "Mcp-Method");
        if let Some(id) = last_event_id {
            headers.push(("Last-Event-ID".into(), id.to_owned()));
        }
        self.stream(&self.request_bytes("GET", &headers, b""))
    }

    /// DELETE: ends the session.
    pub fn delete(&self) -> u16 {
        let mut conn = Conn::open(self.addr);
        let mut headers = self.headers_for(&Value::Null);
        headers.retain(|(n, _)| n != "Content-Type" && n != "Mcp-Method");
        conn.send(self.request_bytes("DELETE", &headers, b""));
        conn.response().expect("an answer to DELETE").status()
    }

    fn stream(&self, bytes: &[u8]) -> Stream {
        let mut conn = Conn::open(self.addr);
        conn.send(bytes);
        let head = conn.head().expect("a response head");
        let events = EventStream::new(&head);
        Stream { head, conn, events }
    }
}

impl Stream {
    /// The next event that is not just a comment.
    pub fn event(&mut self, timeout: Duration) -> io::Result<Event> {
        loop {
            let event = self.conn.event(&mut self.events, timeout)?;
            if !event.data.is_empty() || event.id.is_some() {
                return Ok(event);
            }
        }
    }

    /// The next event of any kind, comments included.
    pub fn any_event(&mut self, timeout: Duration) -> io::Result<Event> {
        self.conn.event(&mut self.events, timeout)
    }

    /// The next message.
    pub fn message(&mut self, timeout: Duration) -> io::Result<Value> {
        loop {
            let event = self.event(timeout)?;
            if !event.data.is_empty() {
                return Ok(serde_json::from_str(&event.data)?);
            }
        }
    }
}

/// Reads one whole answer off a connection.
pub fn read_answer(conn: &mut Conn) -> io::Result<Answer> {
    let response = conn.response()?;
    let kind = response
        .head
        .header("content-type")
        .unwrap_or_default()
        .to_owned();
    let mut messages = Vec::new();
    if kind.starts_with("text/event-stream") {
        let mut rest = [response.body.as_slice(), b"\n\n"].concat();
        while let Some(event) = sse::take(&mut rest) {
            messages.extend(serde_json::from_str::<Value>(&event.data));
        }
    } else if let Ok(value) = serde_json::from_slice::<Value>(&response.body) {
        match value {
            Value::Array(batch) => messages = batch,
            one => messages.push(one),
        }
    }
    Ok(Answer {
        head: response.head,
        body: response.body,
        messages,
        id: Value::Null,
    })
}

impl Answer {
    /// The status code.
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// The status of what was refused or failed: that of HTTP, or the one in the error where a session of the handshake gets
    /// HTTP 200, so that its client lives on.
    ///
    /// # Panics
    /// Such an answer says it is one status by HTTP and another in its error.
    pub fn told_status(&self) -> u16 {
        let http = self.status();
        let mut told = self.messages.iter().rev();
        let told = told.find_map(|m| m["error"]["data"]["status"].as_u64());
        match told.map(u16::try_from) {
            Some(Ok(told)) => {
                assert_eq!(http, 200, "{}", self.text());
                told
            }
            _ => http,
        }
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Head and body as they came.
    pub fn bytes(&self) -> Vec<u8> {
        [self.head.raw.as_slice(), &self.body].concat()
    }

    /// The response message, the one without a method.
    pub fn response(&self) -> &Value {
        self.messages
            .iter()
            .find(|m| m["method"].is_null() && !m["jsonrpc"].is_null())
            .unwrap_or(&Value::Null)
    }

    /// The result, null when there is none.
    pub fn result(&self) -> &Value {
        &self.response()["result"]
    }

    /// The error, null when there is none.
    pub fn error(&self) -> &Value {
        &self.response()["error"]
    }

    /// The first text of the result's content.
    pub fn first_text(&self) -> &str {
        self.result()["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
    }

    /// What is wrong with this as the answer to a blocked `tools/call`, if anything is.
    pub fn blocked_call_fault(&self, era: Era) -> Option<String> {
        let fault = |what: &str| Some(format!("{what}: {} {}", self.status(), self.text()));
        match () {
            () if self.status() != 200 => fault("status is not 200"),
            () if self.response()["id"] != self.id => fault("id is not the request's"),
            () if self.result()["isError"] != json!(true) => fault("not an isError result"),
            () if self.result()["content"][0]["type"] != json!("text") => {
                fault("no text for the model")
            }
            () if era == Era::Stateless && self.result()["resultType"] != json!("complete") => {
                fault("no resultType")
            }
            () => None,
        }
    }

    /// What is wrong with this as the answer to a blocked request that is not a call, if anything is.
    pub fn blocked_request_fault(&self) -> Option<String> {
        let fault = |what: &str| Some(format!("{what}: {} {}", self.status(), self.text()));
        let code = self.error()["code"].as_i64();
        match () {
            () if self.status() != 200 => fault("status is not 200"),
            () if self.response()["id"] != self.id => fault("id is not the request's"),
            () if code.is_none() => fault("not an error"),
            () if (-32768..=-32000).contains(&code.unwrap_or_default()) => {
                fault("a reserved error code")
            }
            () => None,
        }
    }
}

/// A header value as the protocol wants it: plain when it can be, else the base64 sentinel.
pub fn header_value(text: &str) -> String {
    let plain = text.bytes().all(|b| (0x20..=0x7e).contains(&b))
        && text.trim() == text
        && !text.starts_with("=?");
    match plain {
        true => text.to_owned(),
        false => format!("=?base64?{}?=", STANDARD.encode(text)),
    }
}
