//! A control plane with a FAKE runner and a FAKE gateway behind it, and a client of its API.

#![allow(clippy::unwrap_used, dead_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use audit_log::{AuditLog, LogConfig};
use bytes::Bytes;
use control::{
    AdminToken, Api, ApiOptions, ControlError, ExecKeys, HostedServers, Publisher, Store,
};
use domain::{Secret, ServerId, TenantId};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use runner_api::*;
use secret_prints::{Print, PrintKey};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub const TOKEN: &str = "test-admin-token-0123456789";

pub fn id(text: &str) -> ServerId {
    ServerId::parse(text).unwrap()
}

/// Waits for it, ten seconds at the most.
pub async fn eventually(what: &str, mut check: impl AsyncFnMut() -> bool) {
    for _ in 0..1000 {
        if check().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} did not happen");
}

/// Remembers what it was told. It is no runner: nothing runs.
#[derive(Default)]
pub struct FakeRunner {
    pub bundles: Mutex<Vec<(TenantId, usize)>>,
    pub servers: Mutex<BTreeMap<ServerId, ServerSpec>>,
    pub secrets: Mutex<BTreeMap<(ServerId, SecretName), Vec<u8>>>,
    pub restarts: Mutex<u32>,
    pub windows: Mutex<Vec<UsageWindow>>,
    pub acknowledged: Mutex<u64>,
    pub events: Mutex<Vec<Event>>,
    pub down: Mutex<bool>,
    pub build_fails: Mutex<bool>,
    /// The server that takes a while to be put.
    pub slow: Mutex<Option<ServerId>>,
    /// Servers are not put while this is set.
    pub held: Mutex<bool>,
    /// Servers are refused as by one that is gone.
    pub refuses: Mutex<bool>,
    /// It cannot be followed.
    pub mum: Mutex<bool>,
    /// How often somebody wanted to follow it.
    pub followed: Mutex<u32>,
    /// The server whose secrets it cannot read.
    pub mute: Mutex<Option<ServerId>>,
    /// Servers that were put, in order of their beginning.
    pub puts: Mutex<Vec<ServerId>>,
}

impl FakeRunner {
    fn up(&self) -> Result<(), RunnerError> {
        if *self.down.lock().unwrap() {
            Err(io::Error::from(io::ErrorKind::ConnectionRefused).into())
        } else {
            Ok(())
        }
    }
}

#[async_trait]
impl Runner for FakeRunner {
    async fn doctor(&self) -> Result<Doctor, RunnerError> {
        self.up()?;
        Ok(Doctor {
            runner: "fake".into(),
            fit: true,
            checks: vec![],
        })
    }

    async fn put_bundle(
        &self,
        tenant: &TenantId,
        mut bytes: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<BundleInfo, RunnerError> {
        self.up()?;
        let mut all = Vec::new();
        while let Some(part) = bytes.next().await {
            all.extend(part?);
        }
        if all == b"bad" {
            let mut error = ApiError::new(ErrorCode::BundleRefused, "the bundle is refused");
            error.refusals.push(Refusal {
                path: Some("requirements.txt".into()),
                line: Some(3),
                reason: "no -e".into(),
            });
            return Err(error.into());
        }
        self.bundles
            .lock()
            .unwrap()
            .push((tenant.clone(), all.len()));
        let id = format!("{:064x}", all.len());
        Ok(serde_json::from_value(json!({
            "id": id, "tenant": tenant, "runtime": "python", "packed_bytes": all.len(), "unpacked_bytes": 1, "files": 1,
            "root_names": ["server.py"], "dependencies": ["mcp"],
        }))
        .unwrap())
    }

    async fn build(&self, build: BuildRequest) -> Result<Items<BuildEvent>, RunnerError> {
        self.up()?;
        let stage = BuildEvent::Stage {
            stage: BuildStage::Installing,
            elapsed_ms: 1,
        };
        let last = if *self.build_fails.lock().unwrap() {
            Err(ApiError::new(
                ErrorCode::BadRequest,
                "there is no package nosuch; is its name right?",
            )
            .into())
        } else {
            let id = LayerId::parse(build.bundle.as_str()).unwrap();
            Ok(BuildEvent::Done {
                layer: LayerInfo {
                    id,
                    packages: 1,
                    bytes: 1,
                    cached: false,
                    elapsed_ms: 2,
                },
            })
        };
        Ok(stream::iter([Ok(stage), last]).boxed())
    }

    async fn put_server(&self, spec: ServerSpec) -> Result<(), RunnerError> {
        self.up()?;
        self.puts.lock().unwrap().push(spec.id.clone());
        if *self.refuses.lock().unwrap() {
            return Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
        }
        let slow = self.slow.lock().unwrap().as_ref() == Some(&spec.id);
        if slow {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        while *self.held.lock().unwrap() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.servers.lock().unwrap().insert(spec.id.clone(), spec);
        Ok(())
    }

    async fn remove_server(&self, _: &TenantId, server: &ServerId) -> Result<(), RunnerError> {
        self.up()?;
        let gone = self.servers.lock().unwrap().remove(server);
        gone.map(drop)
            .ok_or_else(|| ApiError::new(ErrorCode::NotFound, "no such server").into())
    }

    async fn restart_server(&self, _: &TenantId, _: &ServerId) -> Result<(), RunnerError> {
        self.up()?;
        *self.restarts.lock().unwrap() += 1;
        Ok(())
    }

    async fn servers(&self, _: Option<&TenantId>) -> Result<Vec<ServerStatus>, RunnerError> {
        self.up()?;
        Ok(vec![])
    }

    async fn set_secret(
        &self,
        _: &TenantId,
        server: &ServerId,
        name: &SecretName,
        value: SecretValue,
    ) -> Result<(), RunnerError> {
        self.up()?;
        self.secrets
            .lock()
            .unwrap()
            .insert((server.clone(), name.clone()), value.expose().to_vec());
        Ok(())
    }

    async fn list_secrets(
        &self,
        _: &TenantId,
        server: &ServerId,
    ) -> Result<Vec<SecretName>, RunnerError> {
        self.up()?;
        // As the real one: it knows the secrets of servers only.
        if !self.servers.lock().unwrap().contains_key(server) {
            return Err(
                ApiError::new(ErrorCode::NotFound, "there is no server of this name").into(),
            );
        }
        let all = self.secrets.lock().unwrap();
        Ok(all
            .keys()
            .filter(|(s, _)| s == server)
            .map(|(_, n)| n.clone())
            .collect())
    }

    async fn secret_prints(
        &self,
        _: &TenantId,
        server: &ServerId,
        key: &PrintKey,
    ) -> Result<BTreeMap<SecretName, Vec<Print>>, RunnerError> {
        self.up()?;
        if self.mute.lock().unwrap().as_ref() == Some(server) {
            return Err(ApiError::new(ErrorCode::Internal, "the vault's entry is damaged").into());
        }
        let all = self.secrets.lock().unwrap();
        let own = all.iter().filter(|((s, _), _)| s == server);
        Ok(own
            .map(|((_, name), value)| (name.clone(), key.prints(value)))
            .collect())
    }

    async fn remove_secret(
        &self,
        _: &TenantId,
        server: &ServerId,
        name: &SecretName,
    ) -> Result<(), RunnerError> {
        self.up()?;
        let gone = self
            .secrets
            .lock()
            .unwrap()
            .remove(&(server.clone(), name.clone()));
        gone.map(drop)
            .ok_or_else(|| ApiError::new(ErrorCode::NotFound, "no such secret").into())
    }

    async fn lease(&self, _: LeaseRequest) -> Result<Lease, RunnerError> {
        unreachable!("the control plane leases nothing")
    }

    async fn release(&self, _: &LeaseId, _: bool) -> Result<(), RunnerError> {
        unreachable!("the control plane leases nothing")
    }

    async fn gone(&self, _: &LeaseId) -> GoneReason {
        unreachable!("the control plane leases nothing")
    }

    async fn end_session(
        &self,
        _: &TenantId,
        _: &ServerId,
        _: &SessionKey,
    ) -> Result<(), RunnerError> {
        unreachable!("the control plane leases nothing")
    }

    async fn logs(&self, query: LogQuery) -> Result<Items<LogLine>, RunnerError> {
        self.up()?;
        let line = |text: &str, at_unix_ms| {
            let sandbox = SandboxId::parse("sandbox00001").unwrap();
            Ok(LogLine {
                at_unix_ms,
                sandbox,
                stream: LogStream::Stderr,
                text: text.into(),
                dropped: 0,
            })
        };
        let lines = stream::iter([line("old", 1), line("Traceback: boom", u64::MAX)]);
        // A followed log does not end by itself.
        Ok(if query.follow {
            lines.chain(stream::pending()).boxed()
        } else {
            lines.boxed()
        })
    }

    async fn usage(&self, after: u64) -> Result<Vec<UsageWindow>, RunnerError> {
        self.up()?;
        Ok(self
            .windows
            .lock()
            .unwrap()
            .iter()
            .filter(|w| w.seq > after)
            .cloned()
            .collect())
    }

    async fn ack_usage(&self, upto: u64) -> Result<(), RunnerError> {
        *self.acknowledged.lock().unwrap() = upto;
        Ok(())
    }

    async fn events(&self, after: u64) -> Result<Items<Event>, RunnerError> {
        self.up()?;
        *self.followed.lock().unwrap() += 1;
        if *self.mum.lock().unwrap() {
            return Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
        }
        let all: Vec<_> = self
            .events
            .lock()
            .unwrap()
            .iter()
            .filter(|e| e.seq > after)
            .cloned()
            .map(Ok)
            .collect();
        Ok(stream::iter(all).chain(stream::pending()).boxed())
    }
}

/// What was published last; refuses policies that name a tool "bad", servers of these names, and everything while something
/// ails the configuration file.
#[derive(Default)]
pub struct FakeGateway(
    pub Mutex<HostedServers>,
    pub Mutex<Vec<ServerId>>,
    pub Mutex<Option<&'static str>>,
);

impl Publisher for FakeGateway {
    fn check(&self, servers: HostedServers) -> Result<(), String> {
        self.take(&servers)
    }

    fn publish(&self, servers: HostedServers) -> Result<(), String> {
        self.take(&servers)?;
        *self.0.lock().unwrap() = servers;
        Ok(())
    }

    fn tenants(&self) -> BTreeSet<TenantId> {
        ["acme", "other"]
            .map(|t| TenantId::parse(t).unwrap())
            .into()
    }
}

impl FakeGateway {
    fn take(&self, servers: &HostedServers) -> Result<(), String> {
        if let Some(ailing) = *self.2.lock().unwrap() {
            return Err(ailing.to_owned());
        }
        let taken = self.1.lock().unwrap();
        if let Some(id) = taken.iter().find(|id| servers.contains_key(*id)) {
            return Err(format!("server {id} stands in the configuration file too"));
        }
        let bad = |server: &domain::Server| {
            server
                .policy
                .bindings
                .iter()
                .any(|b| b.tool.as_deref() == Some("bad["))
        };
        if servers.values().any(bad) {
            return Err("a glob that is not closed".to_owned());
        }
        Ok(())
    }
}

pub struct Plane {
    pub runner: Arc<FakeRunner>,
    pub gateway: Arc<FakeGateway>,
    pub address: SocketAddr,
    pub dir: Arc<tempfile::TempDir>,
    pub audit: Arc<AuditLog>,
    task: tokio::task::JoinHandle<io::Result<()>>,
}

impl Plane {
    pub async fn start() -> Self {
        Self::at(
            Arc::new(tempfile::tempdir().unwrap()),
            Arc::default(),
            "127.0.0.1:1".parse().unwrap(),
        )
        .await
    }

    /// On the database in this folder.
    pub async fn on(dir: Arc<tempfile::TempDir>) -> Self {
        Self::at(dir, Arc::default(), "127.0.0.1:1".parse().unwrap()).await
    }

    pub async fn with_gateway(door: SocketAddr) -> Self {
        Self::at(Arc::new(tempfile::tempdir().unwrap()), Arc::default(), door).await
    }

    /// The same, on the same database, after an end without warning.
    pub async fn again(self) -> Self {
        let gateway = FakeGateway::default();
        gateway
            .1
            .lock()
            .unwrap()
            .extend(self.gateway.1.lock().unwrap().iter().cloned());
        self.again_with(gateway).await.unwrap()
    }

    /// The same before this gateway.
    pub async fn again_with(self, gateway: FakeGateway) -> Result<Self, ControlError> {
        self.task.abort();
        let door = "127.0.0.1:1".parse().unwrap();
        Self::with_audit(self.dir, self.runner, door, self.audit, gateway).await
    }

    async fn at(dir: Arc<tempfile::TempDir>, runner: Arc<FakeRunner>, door: SocketAddr) -> Self {
        let audit = AuditLog::open(LogConfig::new(dir.path().join("audit"))).unwrap();
        let gateway = FakeGateway::default();
        let made = Self::with_audit(dir, runner, door, Arc::new(audit), gateway).await;
        made.unwrap()
    }

    async fn with_audit(
        dir: Arc<tempfile::TempDir>,
        runner: Arc<FakeRunner>,
        door: SocketAddr,
        audit: Arc<AuditLog>,
        gateway: FakeGateway,
    ) -> Result<Self, ControlError> {
        let gateway = Arc::new(gateway);
        let api = Api::start(ApiOptions {
            store: Store::open(&dir.path().join("control.db")).await.unwrap(),
            runner: Arc::clone(&runner) as Arc<dyn Runner>,
            publisher: Arc::clone(&gateway) as Arc<dyn Publisher>,
            gateway: door,
            exec_keys: ExecKeys::random().unwrap(),
            audit: Some(Arc::clone(&audit)),
            public_url: "http://weir.example".to_owned(),
        })
        .await?;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let token = AdminToken::new(&Secret::new(TOKEN));
        let task = tokio::spawn(async move {
            control::serve(
                api,
                listener,
                token,
                vec![],
                Box::pin(std::future::pending()),
            )
            .await
        });
        Ok(Self {
            runner,
            gateway,
            address,
            dir,
            audit,
            task,
        })
    }

    pub async fn send(&self, method: &str, path: &str, body: impl Into<Bytes>) -> (u16, Value) {
        let (status, bytes) = self.raw(method, path, body.into(), Some(TOKEN)).await;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        (
            status,
            serde_json::from_slice(&bytes).unwrap_or(Value::String(text)),
        )
    }

    pub async fn json(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        self.send(method, path, body.to_string()).await
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        self.send("GET", path, "").await
    }

    pub async fn raw(
        &self,
        method: &str,
        path: &str,
        body: Bytes,
        token: Option<&str>,
    ) -> (u16, Bytes) {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        let mut request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("host", self.address.to_string());
        request = request.header("content-type", "application/json");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let response = sender
            .send_request(request.body(Full::new(body)).unwrap())
            .await
            .unwrap();
        let status = response.status().as_u16();
        (
            status,
            response.into_body().collect().await.unwrap().to_bytes(),
        )
    }

    /// Makes a server of tenant `acme` and deploys something in it.
    pub async fn deployed(&self, id: &str) {
        let (status, body) = self
            .json(
                "POST",
                "/api/v1/servers",
                json!({"id": id, "tenant": "acme"}),
            )
            .await;
        assert_eq!(status, 201, "{body}");
        let (status, body) = self
            .send("PUT", &format!("/api/v1/servers/{id}/bundle"), "bytes")
            .await;
        assert_eq!(status, 200, "{body}");
        let events = self.build(id).await;
        assert_eq!(events.last().unwrap()["event"], "deployed", "{events:?}");
    }

    pub async fn build(&self, id: &str) -> Vec<Value> {
        let (status, body) = self
            .send("POST", &format!("/api/v1/servers/{id}/build"), "")
            .await;
        assert_eq!(status, 200, "{body}");
        let text = body.as_str().unwrap();
        text.lines()
            .filter_map(|l| l.strip_prefix("data: "))
            .map(|d| serde_json::from_str(d).unwrap())
            .collect()
    }
}

/// Answers MCP messages as a FAKE gateway would, and remembers the requests' heads.
pub async fn fake_door(result: Value) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let remembered = Arc::clone(&seen);
    tokio::spawn(async move {
        let mut unanswered = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = vec![0; 16384];
            let mut n = 0;
            let text = loop {
                n += stream.read(&mut bytes[n..]).await.unwrap();
                let text = String::from_utf8_lossy(&bytes[..n]).into_owned();
                let length = text
                    .to_lowercase()
                    .split("content-length: ")
                    .nth(1)
                    .and_then(|r| r.split('\r').next()?.parse().ok())
                    .unwrap_or(0);
                if text
                    .split_once("\r\n\r\n")
                    .is_some_and(|(_, body)| body.len() >= length)
                {
                    break text;
                }
            };
            let reply = match text.as_str() {
                t if t.contains("\"initialize\"") => {
                    json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18"}})
                }
                t if t.contains("tools/call") => {
                    json!({"jsonrpc": "2.0", "id": 2, "result": result})
                }
                _ => Value::Null,
            };
            remembered.lock().unwrap().push(text);
            if reply == json!({"jsonrpc": "2.0", "id": 2, "result": "never"}) {
                unanswered.push(stream);
                continue;
            }
            let body = reply.to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: s1\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            stream
                .write_all(format!("{head}{body}").as_bytes())
                .await
                .unwrap();
        }
    });
    (address, seen)
}
