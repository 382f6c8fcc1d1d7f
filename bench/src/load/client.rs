//! One connection to an MCP endpoint: sends a call, waits for its answer, checks it.

use super::link::{Link, Prepared, Wire};
use crate::payload::Payload;
use crate::plan::Content;
use crate::wire::http::Head;
use crate::wire::rpc::{Ask, Era, Fault};
use anyhow::{Context, bail};
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Counts the calls of this process. Each has its own id: targets that track ids would otherwise mix calls up and look fast.
static NEXT_CALL: AtomicU64 = AtomicU64::new(1);
/// Where the same message is sent again and again, ids begin anew after so many, as clients count from 0 in each session: a
/// target may know a message by all but a short id. Far more than there are connections, so no two under way are the same.
const IDS_AGAIN: u64 = 9_999;

/// Where to send, with what headers.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The resolved address.
    pub addr: SocketAddr,
    /// The `Host` header.
    pub host: String,
    /// The path.
    pub path: String,
    /// The user's own headers (credentials: never printed).
    pub headers: Vec<(String, String)>,
    /// Set by `open`, when the server keeps sessions.
    pub session: Option<String>,
    /// Further endpoints of the same target; connections take turns over all of them.
    pub siblings: Vec<Endpoint>,
    /// What is spoken there.
    pub wire: Wire,
    /// The names that the target gives to tools, where they are not the upstream's: `{}` stands for that one.
    pub tool_names: Option<String>,
}

impl Endpoint {
    /// Reads a URL. Only plain HTTP; only this machine unless `allow_remote`.
    pub fn parse(url: &str, allow_remote: bool) -> anyhow::Result<Endpoint> {
        let Some(rest) = url.strip_prefix("http://") else {
            bail!("{url}: only http:// URLs can be measured (TLS is not spoken yet)");
        };
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if host.is_empty()
            || host.contains('@')
            || rest.contains(|c: char| c.is_whitespace() || c.is_control())
        {
            bail!("{url}: not a URL with a plain host");
        }
        let with_port = if host.rsplit(']').next().unwrap_or(host).contains(':') {
            host.to_owned()
        } else {
            format!("{host}:80")
        };
        let addr = with_port
            .to_socket_addrs()
            .with_context(|| format!("{host} cannot be resolved"))?;
        let addr = addr
            .min_by_key(SocketAddr::is_ipv6)
            .with_context(|| format!("{host} has no address"))?;
        if !addr.ip().is_loopback() && !allow_remote {
            bail!("{url} is not on this machine; add --allow-remote if you may load that server");
        }
        let path = if path.is_empty() { "/" } else { path };
        Ok(Endpoint {
            addr,
            host: host.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            session: None,
            siblings: Vec::new(),
            wire: Wire::Plain,
            tool_names: None,
        })
    }

    /// The upstream's tool by the name that this endpoint gives it.
    pub fn tool_name(&self, tool: &str) -> String {
        match &self.tool_names {
            Some(form) => form.replace("{}", tool),
            None => tool.to_owned(),
        }
    }

    /// The endpoint of the n-th connection.
    pub fn nth(&self, n: u64) -> &Endpoint {
        let count = self.siblings.len() as u64 + 1;
        match n % count {
            0 => self,
            at => &self.siblings[at as usize - 1],
        }
    }

    /// Does what a client does before its first call, and keeps the session it is given.
    pub fn open(&mut self, era: Era) -> anyhow::Result<()> {
        for sibling in &mut self.siblings {
            sibling.open(era)?;
        }
        self.session = None;
        if era == Era::Stateless {
            return Ok(());
        }
        let initialize = r#"{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"weir-bench","version":"1"}}}"#;
        let (head, body) = self.post(initialize).context("initialize")?;
        if head.status != 200 {
            bail!(
                "initialize was answered with HTTP {}: {}",
                head.status,
                String::from_utf8_lossy(&body[..body.len().min(300)])
            );
        }
        self.session = head.session;
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let (head, _) = self
            .post(initialized)
            .context("notifications/initialized")?;
        if !(200..300).contains(&head.status) {
            bail!(
                "notifications/initialized was answered with HTTP {}",
                head.status
            );
        }
        Ok(())
    }

    /// One request on a connection of its own.
    pub fn post(&self, body: &str) -> anyhow::Result<(Head, Vec<u8>)> {
        let mut link = Link::connect(self.addr, &self.wire)?;
        let prepared = self.prepare(Era::Handshake, "", None)?;
        let (mut request, mut answer) = (Vec::new(), Vec::new());
        let (_, head) = link.exchange(&prepared, body.as_bytes(), &mut request, &mut answer)?;
        Ok((head, answer))
    }

    /// The head of every request with this method and tool.
    fn prepare(&self, era: Era, method: &str, tool: Option<&str>) -> anyhow::Result<Prepared> {
        let mut fields: Vec<(&str, &str)> = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", era.revision()),
        ];
        if let Some(session) = &self.session {
            fields.push(("mcp-session-id", session));
        }
        if era == Era::Stateless {
            fields.push(("mcp-method", method));
            tool.into_iter()
                .for_each(|tool| fields.push(("mcp-name", tool)));
        }
        let own = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        fields.extend(own);
        let mut head = format!("POST {} HTTP/1.1\r\nhost: {}\r\n", self.path, self.host);
        let mut request = http::Request::post(format!("https://{}{}", self.host, self.path));
        for (name, value) in fields {
            head.push_str(&format!("{name}: {value}\r\n"));
            request = request.header(name, value);
        }
        Ok(Prepared {
            head: head.into_bytes(),
            request: request.body(())?,
        })
    }
}

/// When a call went out and when its last byte was back.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Right before the write.
    pub sent: Instant,
    /// Right after the last read, before the answer is checked.
    pub answered: Instant,
}

/// Why a call gave no right answer.
#[derive(Debug)]
pub enum Failure {
    /// No answer at all.
    Connection(io::Error),
    /// "Not now": 429 or 503.
    Refused(u16, Times),
    /// A wrong answer.
    Fault(Fault),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Connection(error) => write!(f, "connection: {error}"),
            Failure::Refused(status, _) => Fault::Status(*status).fmt(f),
            Failure::Fault(fault) => fault.fmt(f),
        }
    }
}

/// One keep-alive connection.
pub struct Client<'a> {
    endpoint: &'a Endpoint,
    ask: &'a Ask,
    /// By tool: a mixed trace calls more than one.
    prepared: Vec<(Option<String>, Prepared)>,
    link: Option<Link>,
    connects: u64,
    /// The payload under way.
    payload: Payload,
    body: Vec<u8>,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl<'a> Client<'a> {
    /// Prepares a client; it connects with its first call.
    pub fn new(endpoint: &'a Endpoint, ask: &'a Ask) -> Client<'a> {
        Client {
            endpoint,
            ask,
            prepared: Vec::new(),
            link: None,
            connects: 0,
            payload: Payload::new(String::new()),
            body: Vec::new(),
            request: Vec::new(),
            answer: Vec::new(),
        }
    }

    /// Makes one call and checks its answer; the error says in words what was wrong.
    pub fn call(&mut self, payload: &Payload) -> Result<Times, String> {
        self.attempt(payload).map_err(|failure| failure.to_string())
    }

    /// The same, for those who tell a refusal from a failure.
    pub fn attempt(&mut self, payload: &Payload) -> Result<Times, Failure> {
        let nth = NEXT_CALL.fetch_add(1, Ordering::Relaxed);
        let id = match payload.content {
            Content::Again => 1 + nth % IDS_AGAIN,
            _ => nth,
        };
        payload.write_nth(nth, &mut self.payload);
        self.ask.body(id, &self.payload, &mut self.body);
        let (times, head) = self.exchange(self.ask.tool_for(payload)).map_err(|error| {
            self.link = None;
            Failure::Connection(error)
        })?;
        if head.close {
            self.link = None;
        }
        self.ask
            .check(id, &self.payload, head.status, &head.media, &self.answer)
            .map_err(|fault| match fault {
                Fault::Status(status @ (429 | 503)) => Failure::Refused(status, times),
                fault => Failure::Fault(fault),
            })?;
        Ok(times)
    }

    /// Connections made beyond the first.
    pub fn reconnects(&self) -> u64 {
        self.connects.saturating_sub(1)
    }

    fn exchange(&mut self, tool: Option<&str>) -> io::Result<(Times, Head)> {
        let at = self.prepared_for(tool)?;
        let link = match &mut self.link {
            Some(link) => link,
            none => {
                self.connects += 1;
                none.insert(Link::connect(self.endpoint.addr, &self.endpoint.wire)?)
            }
        };
        let prepared = &self.prepared[at].1;
        let (sent, head) =
            link.exchange(prepared, &self.body, &mut self.request, &mut self.answer)?;
        Ok((
            Times {
                sent,
                answered: Instant::now(),
            },
            head,
        ))
    }

    fn prepared_for(&mut self, tool: Option<&str>) -> io::Result<usize> {
        if let Some(at) = self
            .prepared
            .iter()
            .position(|(of, _)| of.as_deref() == tool)
        {
            return Ok(at);
        }
        let prepared = self
            .endpoint
            .prepare(self.ask.era, self.ask.method(), tool)
            .map_err(io::Error::other)?;
        self.prepared.push((tool.map(str::to_owned), prepared));
        Ok(self.prepared.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let ok = |url| {
            Endpoint::parse(url, false)
                .map(|e| (e.addr.to_string(), e.path))
                .unwrap()
        };
        assert_eq!(
            ok("http://127.0.0.1:9000/mcp"),
            ("127.0.0.1:9000".into(), "/mcp".into())
        );
        assert_eq!(ok("http://127.0.0.1"), ("127.0.0.1:80".into(), "/".into()));
        assert_eq!(
            ok("http://[::1]:81/a?b=c"),
            ("[::1]:81".into(), "/a?b=c".into())
        );
        assert_eq!(ok("http://localhost:5/x").0, "127.0.0.1:5");
        for bad in [
            "https://127.0.0.1/",
            "127.0.0.1:80",
            "http://",
            "http://u@127.0.0.1/",
            "http://127.0.0.1/a b",
            "http://127.0.0.1/\r\nX: y",
        ] {
            assert!(Endpoint::parse(bad, true).is_err(), "{bad}");
        }
    }

    #[test]
    fn other_machines_are_refused_unless_allowed() {
        for url in [
            "http://192.0.2.1/mcp",
            "http://[2001:db8::1]/mcp",
            "http://0.0.0.0:80/",
        ] {
            assert!(Endpoint::parse(url, false).is_err(), "{url}");
            assert!(Endpoint::parse(url, true).is_ok(), "{url}");
        }
    }
}
