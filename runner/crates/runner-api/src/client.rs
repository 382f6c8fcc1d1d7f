//! The client of the runner's socket.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use domain::{ServerId, TenantId};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use secret_prints::{Print, PrintKey};
use tokio::io::{BufStream, ReadHalf};
use tokio::net::UnixStream;
use tokio::sync::{oneshot, watch};

use crate::frame::{self, CHUNK_BYTES_MAX, FrameError};
use crate::*;

/// Idle connections that are kept; more are closed.
const IDLE_MAX: usize = 32;

/// Speaks to a runner over its unix socket. Cheap to clone; connections are kept and used again.
///
/// A connection that is dropped in the middle of a request is closed, never used again.
#[derive(Clone, Debug)]
pub struct Client {
    path: Arc<Path>,
    caller: CallerId,
    idle: Arc<Mutex<Vec<Connection>>>,
    held: Arc<Mutex<HashMap<LeaseId, Held>>>,
}

/// A lease that this client holds: its connection belongs to a task of its own.
#[derive(Debug)]
struct Held {
    release: oneshot::Sender<Giving>,
    gone: watch::Receiver<Option<GoneReason>>,
}

#[derive(Debug)]
struct Giving {
    timed_out: bool,
    done: oneshot::Sender<Result<(), RunnerError>>,
}

type Connection = BufStream<UnixStream>;

impl Client {
    /// A client of the socket at this path. Connects when something is asked.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into().into(),
            caller: new_caller(),
            idle: Arc::default(),
            held: Arc::default(),
        }
    }

    async fn connect(&self) -> Result<Connection, RunnerError> {
        let mut connection = BufStream::new(UnixStream::connect(&self.path).await?);
        let hello = Hello::of("weir").from(self.caller.clone());
        frame::write(&mut connection, &hello).await?;
        let hello: Hello = frame::read(&mut connection).await?;
        if hello.protocol != PROTOCOL_VERSION {
            let text = format!(
                "{} speaks version {} of the runner's protocol, this program version {PROTOCOL_VERSION}; update the older one",
                hello.program, hello.protocol
            );
            return Err(ApiError::new(ErrorCode::Version, text).into());
        }
        Ok(connection)
    }

    /// Sends a request; a kept connection that turns out to be dead is replaced once, before any answer.
    async fn send(&self, request: &Request) -> Result<(Connection, Reply), RunnerError> {
        let kept = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        if let Some(mut connection) = kept {
            // The runner closes kept connections when it restarts. Only a clean close before the first byte
            // of an answer is tried again: then the request was not read either, as a runner that has read
            // one answers it.
            match exchange(&mut connection, request).await {
                Ok(reply) => return Ok((connection, reply)),
                Err(FrameError::Closed) => {}
                Err(FrameError::Io(e)) if e.kind() == io::ErrorKind::BrokenPipe => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut connection = self.connect().await?;
        let reply = exchange(&mut connection, request).await?;
        Ok((connection, reply))
    }

    async fn one(&self, request: Request) -> Result<Reply, RunnerError> {
        let (connection, reply) = self.send(&request).await?;
        self.keep(connection);
        match reply {
            Reply::Error(error) => Err(error.into()),
            reply => Ok(reply),
        }
    }

    async fn done(&self, request: Request) -> Result<(), RunnerError> {
        match self.one(request).await? {
            Reply::Ok => Ok(()),
            _ => Err(unexpected()),
        }
    }

    fn keep(&self, connection: Connection) {
        let mut idle = lock(&self.idle);
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
    }

    fn hold(&self, lease: &LeaseId, connection: Connection) {
        let (release, giving) = oneshot::channel();
        let (tell, gone) = watch::channel(None);
        lock(&self.held).insert(lease.clone(), Held { release, gone });
        let (client, lease) = (self.clone(), lease.clone());
        tokio::spawn(async move {
            if let Some(connection) = keep_lease(connection, &lease, giving, tell).await {
                client.keep(connection);
            }
        });
    }

    /// Makes a common layer anew; the last item of a good build is `BuildEvent::Done`.
    ///
    /// # Errors
    /// There is no such list, or the runner does not answer.
    pub async fn build_common(
        &self,
        runtime: Runtime,
        list: &str,
    ) -> Result<Items<BuildEvent>, RunnerError> {
        let list = list.to_owned();
        self.stream(Request::BuildCommon { runtime, list }, build_event)
            .await
    }

    async fn stream<T: Send + 'static>(
        &self,
        request: Request,
        item: fn(Reply) -> Option<T>,
    ) -> Result<Items<T>, RunnerError> {
        let (connection, first) = self.send(&request).await?;
        match first {
            Reply::Ok => {}
            Reply::Error(error) => {
                self.keep(connection);
                return Err(error.into());
            }
            _ => return Err(unexpected()),
        }
        Ok(stream::unfold(Some(connection), move |state| async move {
            let mut connection = state?;
            match frame::read(&mut connection).await {
                Ok(Reply::End) => None,
                Ok(Reply::Error(error)) => Some((Err(error.into()), None)),
                Ok(reply) => match item(reply) {
                    Some(item) => Some((Ok(item), Some(connection))),
                    None => Some((Err(unexpected()), None)),
                },
                Err(error) => Some((Err(error.into()), None)),
            }
        })
        .boxed())
    }
}

/// Told apart from others of the same machine, and no secret: the keys of the standard library's maps are random enough.
fn new_caller() -> CallerId {
    let half = || RandomState::new().hash_one(0);
    CallerId::parse(&format!("{:016x}{:016x}", half(), half())).expect("32 of the right signs")
}

/// Sits on the connection of a lease until it is given back. Gives the connection back if it can be used again.
async fn keep_lease(
    connection: Connection,
    lease: &LeaseId,
    mut giving: oneshot::Receiver<Giving>,
    tell: watch::Sender<Option<GoneReason>>,
) -> Option<Connection> {
    let (read, mut write) = tokio::io::split(connection);
    // The same future is polled on after the release: a half-read frame is not lost.
    let mut next = Box::pin(next_reply(read));
    let given = tokio::select! {
        given = &mut giving => given.ok()?,
        (read, word) = &mut next => {
            let Ok(Reply::Gone(reason)) = word else {
                // The runner is gone, the sandbox maybe not: who holds the lease finds out by its own request.
                return None;
            };
            tell.send_replace(Some(reason));
            next.set(next_reply(read));
            giving.await.ok()?
        }
    };
    let request = Request::Release {
        lease: lease.clone(),
        timed_out: given.timed_out,
    };
    let answer = async {
        frame::write(&mut write, &request).await?;
        let (mut read, mut word) = next.await;
        if matches!(word, Ok(Reply::Gone(_))) {
            (read, word) = next_reply(read).await;
        }
        match word? {
            Reply::Ok => Ok(read),
            Reply::Error(error) => Err(error.into()),
            _ => Err(unexpected()),
        }
    }
    .await;
    let (read, answer) = match answer {
        Ok(read) => (Some(read), Ok(())),
        Err(error) => (None, Err(error)),
    };
    let _ = given.done.send(answer);
    read.map(|read| read.unsplit(write))
}

type Reading = ReadHalf<Connection>;

async fn next_reply(mut read: Reading) -> (Reading, Result<Reply, FrameError>) {
    let reply = frame::read(&mut read).await;
    (read, reply)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn exchange(connection: &mut Connection, request: &Request) -> Result<Reply, FrameError> {
    frame::write(connection, request).await?;
    frame::read(connection).await
}

/// Which side of an upload broke off.
enum Broken {
    Body(io::Error),
    Wire(FrameError),
}

fn build_event(reply: Reply) -> Option<BuildEvent> {
    match reply {
        Reply::Build(event) => Some(event),
        _ => None,
    }
}

fn unexpected() -> RunnerError {
    RunnerError::Protocol("another kind of reply was expected".into())
}

impl From<FrameError> for RunnerError {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Io(error) => Self::Unavailable(error),
            FrameError::Closed => Self::Unavailable(io::ErrorKind::UnexpectedEof.into()),
            other => Self::Protocol(other.to_string()),
        }
    }
}

#[async_trait]
impl Runner for Client {
    async fn doctor(&self) -> Result<Doctor, RunnerError> {
        match self.one(Request::Doctor).await? {
            Reply::Doctor(doctor) => Ok(doctor),
            _ => Err(unexpected()),
        }
    }

    async fn put_bundle(
        &self,
        tenant: &TenantId,
        mut bytes: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<BundleInfo, RunnerError> {
        let request = Request::PutBundle {
            tenant: tenant.clone(),
        };
        // A new connection: an upload that breaks off leaves nothing to go on with.
        let mut connection = self.connect().await?;
        frame::write(&mut connection, &request).await?;
        let sent = async {
            while let Some(part) = bytes.next().await {
                // The runner waits for the rest, and would not answer before it has waited for long.
                let part = part.map_err(Broken::Body)?;
                for chunk in part.chunks(CHUNK_BYTES_MAX).filter(|c| !c.is_empty()) {
                    frame::write_chunk(&mut connection, chunk)
                        .await
                        .map_err(Broken::Wire)?;
                }
            }
            let end = frame::write_chunk(&mut connection, &[]).await;
            end.map_err(Broken::Wire)
        }
        .await;
        let sent = match sent {
            Ok(()) => Ok(()),
            Err(Broken::Wire(error)) => Err(error),
            Err(Broken::Body(error)) => return Err(RunnerError::Unavailable(error)),
        };
        // A runner that refuses early answers and stops reading: its answer is worth more than our broken pipe.
        let reply = frame::read(&mut connection).await;
        match (reply, sent) {
            (Ok(Reply::Bundle(info)), Ok(())) => Ok(info),
            (Ok(Reply::Error(error)), _) => Err(error.into()),
            (_, Err(error)) | (Err(error), Ok(())) => Err(error.into()),
            (Ok(_), Ok(())) => Err(unexpected()),
        }
    }

    async fn build(&self, build: BuildRequest) -> Result<Items<BuildEvent>, RunnerError> {
        self.stream(Request::Build { build }, build_event).await
    }

    async fn put_server(&self, spec: ServerSpec) -> Result<(), RunnerError> {
        let spec = Box::new(spec);
        self.done(Request::PutServer { spec }).await
    }

    async fn remove_server(&self, tenant: &TenantId, server: &ServerId) -> Result<(), RunnerError> {
        let (tenant, server) = (tenant.clone(), server.clone());
        self.done(Request::RemoveServer { tenant, server }).await
    }

    async fn restart_server(
        &self,
        tenant: &TenantId,
        server: &ServerId,
    ) -> Result<(), RunnerError> {
        let (tenant, server) = (tenant.clone(), server.clone());
        self.done(Request::RestartServer { tenant, server }).await
    }

    async fn servers(&self, tenant: Option<&TenantId>) -> Result<Vec<ServerStatus>, RunnerError> {
        let tenant = tenant.cloned();
        match self.one(Request::Servers { tenant }).await? {
            Reply::Servers(servers) => Ok(servers),
            _ => Err(unexpected()),
        }
    }

    async fn set_secret(
        &self,
        tenant: &TenantId,
        server: &ServerId,
        name: &SecretName,
        value: SecretValue,
    ) -> Result<(), RunnerError> {
        let (tenant, server, name) = (tenant.clone(), server.clone(), name.clone());
        self.done(Request::SetSecret {
            tenant,
            server,
            name,
            value,
        })
        .await
    }

    async fn list_secrets(
        &self,
        tenant: &TenantId,
        server: &ServerId,
    ) -> Result<Vec<SecretName>, RunnerError> {
        let (tenant, server) = (tenant.clone(), server.clone());
        match self.one(Request::ListSecrets { tenant, server }).await? {
            Reply::Secrets(names) => Ok(names),
            _ => Err(unexpected()),
        }
    }

    async fn secret_prints(
        &self,
        tenant: &TenantId,
        server: &ServerId,
        key: &PrintKey,
    ) -> Result<BTreeMap<SecretName, Vec<Print>>, RunnerError> {
        let request = Request::SecretPrints {
            tenant: tenant.clone(),
            server: server.clone(),
            key: key.clone(),
        };
        match self.one(request).await? {
            Reply::SecretPrints(prints) => Ok(prints),
            _ => Err(unexpected()),
        }
    }

    async fn remove_secret(
        &self,
        tenant: &TenantId,
        server: &ServerId,
        name: &SecretName,
    ) -> Result<(), RunnerError> {
        let (tenant, server, name) = (tenant.clone(), server.clone(), name.clone());
        self.done(Request::RemoveSecret {
            tenant,
            server,
            name,
        })
        .await
    }

    async fn lease(&self, lease: LeaseRequest) -> Result<Lease, RunnerError> {
        let (connection, reply) = self.send(&Request::Lease { lease }).await?;
        match reply {
            Reply::Lease(lease) => {
                self.hold(&lease.id, connection);
                Ok(lease)
            }
            Reply::Error(error) => {
                self.keep(connection);
                Err(error.into())
            }
            _ => Err(unexpected()),
        }
    }

    async fn release(&self, lease: &LeaseId, timed_out: bool) -> Result<(), RunnerError> {
        let Some(held) = lock(&self.held).remove(lease) else {
            return Err(
                ApiError::new(ErrorCode::NotFound, format!("no lease {lease} is held")).into(),
            );
        };
        let (done, answer) = oneshot::channel();
        // If the task is gone, so is the connection, and with it the lease.
        let _ = held.release.send(Giving { timed_out, done });
        answer.await.unwrap_or(Ok(()))
    }

    async fn gone(&self, lease: &LeaseId) -> GoneReason {
        let gone = lock(&self.held).get(lease).map(|held| held.gone.clone());
        if let Some(mut gone) = gone
            && let Ok(reason) = gone.wait_for(Option::is_some).await
            && let Some(reason) = reason.clone()
        {
            return reason;
        }
        std::future::pending().await
    }

    async fn end_session(
        &self,
        tenant: &TenantId,
        server: &ServerId,
        session: &SessionKey,
    ) -> Result<(), RunnerError> {
        let (tenant, server, session) = (tenant.clone(), server.clone(), session.clone());
        self.done(Request::EndSession {
            tenant,
            server,
            session,
        })
        .await
    }

    async fn logs(&self, query: LogQuery) -> Result<Items<LogLine>, RunnerError> {
        self.stream(Request::Logs { query }, |reply| match reply {
            Reply::Log(line) => Some(line),
            _ => None,
        })
        .await
    }

    async fn usage(&self, after: u64) -> Result<Vec<UsageWindow>, RunnerError> {
        match self.one(Request::Usage { after }).await? {
            Reply::Usage(windows) => Ok(windows),
            _ => Err(unexpected()),
        }
    }

    async fn ack_usage(&self, upto: u64) -> Result<(), RunnerError> {
        self.done(Request::AckUsage { upto }).await
    }

    async fn events(&self, after: u64) -> Result<Items<Event>, RunnerError> {
        self.stream(Request::Events { after }, |reply| match reply {
            Reply::Event(event) => Some(event),
            _ => None,
        })
        .await
    }
}
