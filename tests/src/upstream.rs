//! An upstream under the test's control: it records every byte that reaches it and answers as it is told, also
//! in ways that no sane server would.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::find;
use crate::wait::{self, PATIENCE};

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    /// Which connection it came on.
    pub conn: u64,
    /// `POST`, `GET` ...
    pub method: String,
    /// The request target.
    pub path: String,
    /// The headers in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The head as it came.
    pub head: Vec<u8>,
    /// The body, chunked framing taken off.
    pub body: Vec<u8>,
}

impl Request {
    /// The first header of this (lower-case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }

    /// The body as JSON; null when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The JSON-RPC method, empty when there is none.
    pub fn rpc_method(&self) -> String {
        self.json()["method"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Whether this is a request of the stateless era.
    pub fn is_stateless(&self) -> bool {
        self.json()["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string()
    }
}

/// What to answer.
pub enum Reply {
    /// A well-framed response.
    Http {
        /// The status code.
        status: u16,
        /// Headers beside the framing.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
    },
    /// These bytes as they are, then the connection is closed.
    Raw(Vec<u8>),
    /// The test writes to the wire itself; the connection is closed after it.
    Wire(Box<dyn FnOnce(&mut Wire) + Send>),
    /// The connection is reset.
    Reset,
    /// No answer until the peer gives up.
    Hang,
}

impl Reply {
    /// A JSON response.
    pub fn json(value: &Value) -> Self {
        Self::status(200, "application/json", value.to_string())
    }

    /// Any response.
    pub fn status(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::Http {
            status,
            headers: vec![("Content-Type".into(), content_type.into())],
            body: body.into(),
        }
    }

    /// 202 without a body.
    pub fn accepted() -> Self {
        Self::Http {
            status: 202,
            headers: vec![],
            body: vec![],
        }
    }

    /// Adds a header to a well-framed response.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if let Self::Http { headers, .. } = &mut self {
            headers.push((name.into(), value.into()));
        }
        self
    }

    /// An event stream with one event per message.
    pub fn events(messages: &[Value]) -> Self {
        let body: String = messages
            .iter()
            .map(|m| format!("event: message\ndata: {m}\n\n"))
            .collect();
        Self::status(200, "text/event-stream", body)
    }

    /// The result of a request.
    pub fn result(request: &Request, result: Value) -> Self {
        Self::json(&result_message(request, result))
    }

    /// An error in answer to a request.
    pub fn error(request: &Request, error: Value) -> Self {
        Self::json(&json!({ "jsonrpc": "2.0", "id": request.json()["id"], "error": error }))
    }

    /// The test writes to the wire itself.
    pub fn wire(f: impl FnOnce(&mut Wire) + Send + 'static) -> Self {
        Self::Wire(Box::new(f))
    }
}

/// The response message for a request, with what its era demands of every result.
pub fn result_message(request: &Request, mut result: Value) -> Value {
    if request.is_stateless() && result.is_object() {
        if result["resultType"].is_null() {
            result["resultType"] = json!("complete");
        }
        let method = request.rpc_method();
        if (method.ends_with("/list")
            || matches!(method.as_str(), "resources/read" | "server/discover"))
            && result["ttlMs"].is_null()
        {
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("private");
        }
    }
    json!({ "jsonrpc": "2.0", "id": request.json()["id"], "result": result })
}

/// One side of a connection, for answers that are written by hand.
pub struct Wire {
    stream: TcpStream,
    stop: Arc<AtomicBool>,
}

impl Wire {
    /// Sends these bytes; false when the peer is gone.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream
            .write_all(bytes.as_ref())
            .and_then(|()| self.stream.flush())
            .is_ok()
    }

    /// Sends the head of a close-delimited event stream.
    pub fn event_head(&mut self) -> bool {
        self.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    }

    /// Sends one message as an event.
    pub fn event(&mut self, message: &Value) -> bool {
        self.send(format!("event: message\ndata: {message}\n\n"))
    }

    /// Waits until the peer closes or resets; false when it did not within `timeout`.
    pub fn peer_closed(&mut self, timeout: Duration) -> bool {
        let _unsupported = self
            .stream
            .set_read_timeout(Some(Duration::from_millis(50)));
        let deadline = std::time::Instant::now() + timeout;
        let mut byte = [0; 64];
        while std::time::Instant::now() < deadline && !self.stop.load(Ordering::Relaxed) {
            match self.stream.read(&mut byte) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(e)
                    if matches!(
                        e.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ) => {}
                Err(_) => return true,
            }
        }
        false
    }

    /// Does nothing until the peer gives up.
    pub fn hang(&mut self) {
        self.peer_closed(Duration::from_secs(300));
    }
}

type Handler = dyn Fn(&Request) -> Reply + Send + Sync;

/// A server that listens until it goes out of scope.
pub struct Upstream {
    addr: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    handler: Mutex<Arc<Handler>>,
    requests: Mutex<Vec<Request>>,
    bytes: Mutex<Vec<u8>>,
    conns: AtomicU64,
    stop: Arc<AtomicBool>,
}

impl Upstream {
    /// Answers every request by `handler`.
    pub fn start(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared {
            handler: Mutex::new(Arc::new(handler)),
            requests: Mutex::default(),
            bytes: Mutex::default(),
            conns: AtomicU64::new(0),
            stop: Arc::default(),
        });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if accepting.stop.load(Ordering::Relaxed) {
                    return;
                }
                let shared = Arc::clone(&accepting);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { addr, shared }
    }

    /// A small MCP server of both eras with the tools `echo` and `typed`. `f` is asked first; `None` leaves
    /// the request to the server.
    pub fn mcp(f: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static) -> Self {
        Self::start(move |request| f(request).unwrap_or_else(|| plain_server(request)))
    }

    /// Replaces what it answers.
    pub fn answer(&self, f: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static) {
        *self.shared.handler.lock().expect("no panic inside") =
            Arc::new(move |request| f(request).unwrap_or_else(|| plain_server(request)));
    }

    /// Its address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URL of its MCP endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.addr)
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared
            .requests
            .lock()
            .expect("no panic inside")
            .clone()
    }

    /// The requests of one JSON-RPC method so far.
    pub fn calls(&self, method: &str) -> Vec<Request> {
        self.requests()
            .into_iter()
            .filter(|r| r.rpc_method() == method)
            .collect()
    }

    /// Waits for the next request that fits.
    pub fn wait_for(&self, what: &str, fits: impl Fn(&Request) -> bool) -> Request {
        wait::until(&format!("{what} at the upstream"), PATIENCE, || {
            self.requests().into_iter().find(|r| fits(r))
        })
    }

    /// Every byte that ever reached it.
    pub fn bytes(&self) -> Vec<u8> {
        self.shared.bytes.lock().expect("no panic inside").clone()
    }

    /// Forgets what it saw.
    pub fn forget(&self) {
        self.shared
            .requests
            .lock()
            .expect("no panic inside")
            .clear();
        self.shared.bytes.lock().expect("no panic inside").clear();
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let _wakes_the_accept_loop = TcpStream::connect(self.addr);
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) {
    let conn = shared.conns.fetch_add(1, Ordering::Relaxed);
    let _best_effort = stream.set_nodelay(true);
    let mut buf = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buf, conn, shared) {
        let handler = Arc::clone(&shared.handler.lock().expect("no panic inside"));
        shared
            .requests
            .lock()
            .expect("no panic inside")
            .push(request.clone());
        match handler(&request) {
            Reply::Http {
                status,
                headers,
                body,
            } => {
                let mut head = format!("HTTP/1.1 {status} X\r\n");
                for (name, value) in headers {
                    head.push_str(&format!("{name}: {value}\r\n"));
                }
                head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
                let whole = [head.as_bytes(), &body].concat();
                if stream.write_all(&whole).is_err() {
                    return;
                }
            }
            Reply::Raw(bytes) => {
                let _closed = stream.write_all(&bytes);
                return drain(&mut stream);
            }
            Reply::Wire(f) => {
                let Ok(own) = stream.try_clone() else { return };
                f(&mut Wire {
                    stream: own,
                    stop: Arc::clone(&shared.stop),
                });
                return drain(&mut stream);
            }
            Reply::Reset => {
                let _unsupported = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
                return;
            }
            Reply::Hang => {
                return Wire {
                    stream,
                    stop: Arc::clone(&shared.stop),
                }
                .hang();
            }
        }
    }
}

/// Closes in order, so that the peer sees an end and not a reset.
fn drain(stream: &mut TcpStream) {
    let _closed = stream.shutdown(Shutdown::Write);
    let _unsupported = stream.set_read_timeout(Some(Duration::from_millis(500)));
    let mut piece = [0; 4096];
    while stream.read(&mut piece).is_ok_and(|n| n > 0) {}
}

fn read_request(
    stream: &mut TcpStream,
    buf: &mut Vec<u8>,
    conn: u64,
    shared: &Shared,
) -> Option<Request> {
    let end = loop {
        if let Some(end) = find(buf, b"\r\n\r\n") {
            break end + 4;
        }
        fill(stream, buf, shared)?;
    };
    let head: Vec<u8> = buf.drain(..end).collect();
    let text = String::from_utf8_lossy(&head).into_owned();
    let mut lines = text.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|l| l.split_once(':'))
        .map(|(n, v)| (n.to_ascii_lowercase(), v.trim().to_owned()))
        .collect();
    let header = |name: &str| {
        headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    };
    let body = if header("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked")) {
        read_chunks(stream, buf, shared)?
    } else {
        let len = header("content-length")
            .and_then(|v| v.parse().ok())
            .unwrap_or(0);
        while buf.len() < len {
            fill(stream, buf, shared)?;
        }
        buf.drain(..len).collect()
    };
    Some(Request {
        conn,
        method,
        path,
        headers,
        head,
        body,
    })
}

fn read_chunks(stream: &mut TcpStream, buf: &mut Vec<u8>, shared: &Shared) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line_end = loop {
            if let Some(end) = find(buf, b"\r\n") {
                break end;
            }
            fill(stream, buf, shared)?;
        };
        let size =
            usize::from_str_radix(String::from_utf8_lossy(&buf[..line_end]).trim(), 16).ok()?;
        while buf.len() < line_end + 2 + size + 2 {
            fill(stream, buf, shared)?;
        }
        body.extend_from_slice(&buf[line_end + 2..line_end + 2 + size]);
        buf.drain(..line_end + 2 + size + 2);
        if size == 0 {
            return Some(body);
        }
    }
}

fn fill(stream: &mut TcpStream, buf: &mut Vec<u8>, shared: &Shared) -> Option<()> {
    let mut piece = [0; 65536];
    match stream.read(&mut piece) {
        Ok(0) | Err(_) => None,
        Ok(n) => {
            shared
                .bytes
                .lock()
                .expect("no panic inside")
                .extend_from_slice(&piece[..n]);
            buf.extend_from_slice(&piece[..n]);
            Some(())
        }
    }
}

/// A server that does what the protocol asks, in both eras.
fn plain_server(request: &Request) -> Reply {
    if request.method != "POST" {
        return Reply::status(405, "text/plain", "");
    }
    let message = request.json();
    if message["id"].is_null() || message["method"].is_null() {
        return Reply::accepted();
    }
    let method = message["method"].as_str().unwrap_or_default();
    let has_session = request.header("mcp-session-id").is_some();
    if !has_session && !request.is_stateless() && method != "initialize" {
        let body = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32600, "message": "No session" } });
        return Reply::status(400, "application/json", body.to_string());
    }
    let params = &message["params"];
    let capabilities = json!({
        "tools": { "listChanged": true }, "resources": { "subscribe": true }, "prompts": {}, "completions": {},
        "logging": {},
    });
    let result = match method {
        "initialize" => {
            let result = json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": capabilities,
                "serverInfo": { "name": "recorder", "version": "1" },
            });
            return Reply::result(request, result)
                .with("Mcp-Session-Id", &format!("up-{}", request.conn));
        }
        "server/discover" if request.is_stateless() => {
            json!({ "supportedVersions": ["2026-07-28"], "capabilities": capabilities })
        }
        "tools/list" => json!({ "tools": tools() }),
        "tools/call" => match params["name"].as_str() {
            Some("echo") => {
                let text = params["arguments"]["message"].as_str().unwrap_or_default();
                json!({ "content": [{ "type": "text", "text": format!("Echo: {text}") }] })
            }
            Some("typed") => json!({
                "content": [{ "type": "text", "text": "{\"count\":1,\"note\":\"fine\"}" }],
                "structuredContent": { "count": 1, "note": "fine" },
            }),
            name => {
                return Reply::error(
                    request,
                    json!({ "code": -32602, "message": format!("Unknown tool: {}", name.unwrap_or("?")) }),
                );
            }
        },
        "resources/list" => json!({ "resources": [] }),
        "resources/templates/list" => json!({ "resourceTemplates": [] }),
        "resources/read" => json!({ "contents": [{ "uri": params["uri"], "text": "text" }] }),
        "prompts/list" => json!({ "prompts": [] }),
        "prompts/get" => {
            json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "hi" } }] })
        }
        "completion/complete" => json!({ "completion": { "values": ["one"] } }),
        "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => json!({}),
        _ => {
            return Reply::error(
                request,
                json!({ "code": -32601, "message": "Method not found" }),
            );
        }
    };
    Reply::result(request, result)
}

/// The tools of [`Upstream::mcp`].
pub fn tools() -> Value {
    json!([
        {
            "name": "echo", "description": "Says it back",
            "inputSchema": { "type": "object", "properties": { "message": { "type": "string" } } },
        },
        {
            "name": "typed", "description": "Answers in a fixed form",
            "inputSchema": { "type": "object", "properties": {
                "region": { "type": "string", "x-mcp-header": "Region" } } },
            "outputSchema": { "type": "object", "required": ["count", "note"], "properties": {
                "count": { "type": "integer" }, "note": { "type": "string" } } },
        },
    ])
}
