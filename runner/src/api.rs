//! The socket: one task per connection, one request at a time, everything bounded.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::{ServerId, TenantId};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use runner_api::frame::{self, FrameError};
use runner_api::{
    ApiError, BuildEvent, BuildRequest, ErrorCode, GoneReason, Hello, LayerInfo, LeaseId,
    LeaseRequest, LogQuery, PROTOCOL_VERSION, Reply, Request, Runtime,
};
use sha2::{Digest, Sha256};
use tokio::io::BufStream;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::callers::{Caller, Present};
use crate::context::random_name;
use crate::daemon::Daemon;
use crate::doctor;
use crate::layers;
use crate::layers::common::{self, List};
use crate::paths::hex;
use crate::servers::{Granted, Message};

/// Between two frames of one request.
const IDLE_MAX: Duration = Duration::from_secs(120);
const WAIT_MS_MAX: u32 = 120_000;
const BUNDLE_BYTES_MAX: u64 = 250 * 1024 * 1024;
/// How often the disk is asked about during one.
const ROOM_EVERY_BYTES: u64 = 8 * 1024 * 1024;

type Connection = BufStream<UnixStream>;

/// Serves until the task is dropped. Boxed, as all that the program polls: so it is compiled here, and not again there.
pub fn serve(daemon: Arc<Daemon>, listener: UnixListener) -> BoxFuture<'static, ()> {
    accept_all(daemon, listener).boxed()
}

async fn accept_all(daemon: Arc<Daemon>, listener: UnixListener) {
    let places = Arc::new(Semaphore::new(daemon.ctx.shares.callers_max));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let daemon = Arc::clone(&daemon);
                tokio::spawn(async move {
                    let _place = place;
                    if let Err(error) = converse(&daemon, BufStream::new(stream)).await
                        && !matches!(error, FrameError::Closed)
                    {
                        tracing::debug!(%error, "a connection of the runner's socket ended");
                    }
                });
            }
            Err(error) => {
                tracing::error!(%error, "the runner's socket cannot accept");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn converse(daemon: &Arc<Daemon>, mut connection: Connection) -> Result<(), FrameError> {
    let hello: Hello = tokio::time::timeout(IDLE_MAX, frame::read(&mut connection))
        .await
        .map_err(|_| FrameError::Closed)??;
    frame::write(
        &mut connection,
        &Hello::of(concat!("weir-runner ", env!("CARGO_PKG_VERSION"))),
    )
    .await?;
    if hello.protocol != PROTOCOL_VERSION {
        return Ok(());
    }
    let present = hello.caller.map(|id| daemon.callers.connected(id));
    let caller = present.as_ref().map(Present::caller);
    loop {
        let request: Request = frame::read(&mut connection).await?;
        answer(daemon, &mut connection, caller.as_ref(), request).await?;
    }
}

async fn answer(
    daemon: &Arc<Daemon>,
    connection: &mut Connection,
    caller: Option<&Caller>,
    request: Request,
) -> Result<(), FrameError> {
    let reply = match request {
        Request::Lease { lease } => return lease_out(daemon, connection, caller, lease).await,
        Request::Build { build } => return build_out(daemon, connection, build).await,
        Request::BuildCommon { runtime, list } => {
            return build_common_out(daemon, connection, runtime, &list).await;
        }
        Request::Logs { query } => return logs_out(daemon, connection, query).await,
        Request::Events { after } => return events_out(daemon, connection, after).await,
        Request::PutBundle { tenant } => put_bundle(daemon, connection, tenant).await?,
        Request::Doctor => Ok(Reply::Doctor(doctor::report(
            &daemon.ctx.host,
            &daemon.ctx.paths.state,
            &daemon.ctx.paths.run,
        ))),
        Request::PutServer { spec } => daemon.put_server(*spec).await.map(|()| Reply::Ok),
        Request::RemoveServer { tenant, server } => daemon
            .remove_server(&tenant, &server)
            .await
            .map(|()| Reply::Ok),
        Request::RestartServer { tenant, server } => {
            daemon.restart(&tenant, &server).await.map(|()| Reply::Ok)
        }
        Request::Servers { tenant } => Ok(Reply::Servers(daemon.servers(tenant.as_ref()).await)),
        Request::SetSecret {
            tenant,
            server,
            name,
            value,
        } => daemon
            .set_secret(&tenant, &server, &name, value)
            .map(|()| Reply::Ok),
        Request::ListSecrets { tenant, server } => {
            daemon.list_secrets(&tenant, &server).map(Reply::Secrets)
        }
        Request::SecretPrints {
            tenant,
            server,
            key,
        } => daemon
            .secret_prints(&tenant, &server, &key)
            .map(Reply::SecretPrints),
        Request::RemoveSecret {
            tenant,
            server,
            name,
        } => daemon
            .remove_secret(&tenant, &server, &name)
            .map(|()| Reply::Ok),
        Request::EndSession {
            tenant,
            server,
            session,
        } => daemon
            .tell(&tenant, &server, Message::EndSession(session))
            .map(|()| Reply::Ok),
        Request::Release { .. } => Err(ApiError::new(
            ErrorCode::NotFound,
            "this connection holds no lease",
        )),
        Request::Usage { after } => Ok(Reply::Usage(daemon.ctx.metering.closed(after))),
        Request::AckUsage { upto } => {
            daemon.ctx.metering.acknowledge(upto);
            Ok(Reply::Ok)
        }
    };
    match frame::write(connection, &reply.unwrap_or_else(Reply::Error)).await {
        // Nothing of it has gone out.
        Err(FrameError::TooLong { bytes, bytes_max }) => {
            let text = format!(
                "the answer has {bytes} bytes, at most {bytes_max} can be sent; ask for less, such as one tenant's"
            );
            let error = ApiError::new(ErrorCode::NoCapacity, text);
            frame::write(connection, &Reply::Error(error)).await
        }
        done => done,
    }
}

/// Gives a lease out and stays with it until it is given back, its sandbox is gone, or its holder is.
async fn lease_out(
    daemon: &Arc<Daemon>,
    connection: &mut Connection,
    caller: Option<&Caller>,
    request: LeaseRequest,
) -> Result<(), FrameError> {
    let (tenant, server) = (request.tenant, request.server);
    // Each holds a connection, and there are only so many of them.
    let share = daemon.ctx.shares.of(&tenant);
    let Some(_room) = share.lease() else {
        let error = ApiError {
            retry_after_ms: Some(1000),
            ..ApiError::new(ErrorCode::Busy, "too many calls of this tenant wait or run")
        };
        return frame::write(connection, &Reply::Error(error)).await;
    };
    let (reply, answer) = oneshot::channel();
    let wait = Duration::from_millis(request.wait_ms.min(WAIT_MS_MAX).into());
    let asked = daemon.tell(
        &tenant,
        &server,
        Message::Lease {
            session: request.session,
            caller: caller.cloned(),
            deadline: Instant::now() + wait,
            reply,
        },
    );
    let granted = match asked {
        Ok(()) => {
            // Nothing is to be said while waiting, so this is the holder going away.
            let leaves = async { drop(frame::read::<_, Request>(connection).await) };
            match answer_or_leave(answer, leaves).await {
                Some(Waited::Answered(answer)) => answer,
                Some(Waited::Late(Granted { lease, .. })) => {
                    daemon.give_back(&tenant, &server, lease.id, false);
                    return Err(FrameError::Closed);
                }
                None => return Err(FrameError::Closed),
            }
        }
        Err(error) => Err(error),
    };
    let Granted { lease, mut gone } = match granted {
        Ok(granted) => granted,
        Err(error) => return frame::write(connection, &Reply::Error(error)).await,
    };
    let id = lease.id.clone();
    let mut back = Back {
        daemon,
        tenant: &tenant,
        server: &server,
        lease: &id,
        timed_out: false,
    };
    frame::write(connection, &Reply::Lease(lease)).await?;
    let (mut read, mut write) = tokio::io::split(&mut *connection);
    let mut release = Box::pin(frame::read::<_, Request>(&mut read));
    let request = tokio::select! {
        request = &mut release => request?,
        reason = &mut gone => {
            // A dropped sender is a lease that was given back by other means; there is none.
            frame::write(&mut write, &Reply::Gone(reason.unwrap_or(GoneReason::Stopped))).await?;
            release.await?
        }
    };
    match request {
        Request::Release { lease, timed_out } if lease == id => {
            back.timed_out = timed_out;
            drop(back);
            frame::write(&mut write, &Reply::Ok).await
        }
        _ => Err(FrameError::Closed),
    }
}

enum Waited {
    Answered(Result<Granted, ApiError>),
    /// Granted in the moment in which its holder went away: nobody else knows of it.
    Late(Granted),
}

/// Waits for the answer as long as its holder does.
async fn answer_or_leave(
    mut answer: oneshot::Receiver<Result<Granted, ApiError>>,
    leaves: impl Future<Output = ()>,
) -> Option<Waited> {
    tokio::select! {
        answer = &mut answer => {
            let removed = |_| Err(ApiError::new(ErrorCode::NotFound, "the server was removed"));
            return Some(Waited::Answered(answer.unwrap_or_else(removed)));
        }
        () = leaves => {}
    }
    // From here on nothing can be granted; what was before is there now.
    answer.close();
    answer.try_recv().ok()?.ok().map(Waited::Late)
}

/// Gives a lease back when it is dropped, however that comes.
struct Back<'a> {
    daemon: &'a Daemon,
    tenant: &'a TenantId,
    server: &'a ServerId,
    lease: &'a LeaseId,
    timed_out: bool,
}

impl Drop for Back<'_> {
    fn drop(&mut self) {
        self.daemon
            .give_back(self.tenant, self.server, self.lease.clone(), self.timed_out);
    }
}

async fn put_bundle(
    daemon: &Arc<Daemon>,
    connection: &mut Connection,
    tenant: TenantId,
) -> Result<Result<Reply, ApiError>, FrameError> {
    let internal = |error: std::io::Error| {
        tracing::error!(%error, "an upload cannot be stored");
        ApiError::new(
            ErrorCode::Internal,
            "the upload cannot be stored; the runner's log has the reason",
        )
    };
    let room = &daemon.ctx.room;
    let mut promise = match room.promise(&tenant, BUNDLE_BYTES_MAX) {
        Ok(promise) => promise,
        Err(error) => return refuse_upload(connection, error).await,
    };
    let path = daemon.ctx.paths.state.join("uploads").join(random_name());
    let mut upload = match std::fs::File::create(&path) {
        Ok(file) => Upload {
            path,
            file,
            hasher: Sha256::new(),
            bytes: 0,
        },
        Err(error) => return refuse_upload(connection, internal(error)).await,
    };
    loop {
        let chunk = tokio::time::timeout(IDLE_MAX, frame::read_chunk(connection))
            .await
            .map_err(|_| FrameError::Closed)??;
        if chunk.is_empty() {
            break;
        }
        // Sandboxes write, too, and nothing of that was promised.
        let before = upload.bytes / ROOM_EVERY_BYTES;
        upload.bytes += chunk.len() as u64;
        if upload.bytes / ROOM_EVERY_BYTES > before
            && let Err(error) = room.check()
        {
            return refuse_upload(connection, error).await;
        }
        if upload.bytes > BUNDLE_BYTES_MAX {
            let text = format!("the bundle is larger than {} MB", BUNDLE_BYTES_MAX >> 20);
            let error = ApiError::new(ErrorCode::BundleRefused, text);
            return refuse_upload(connection, error).await;
        }
        upload.hasher.update(&chunk);
        // A page cache write; the disk is waited for when it is full, and then so should the sender.
        if let Err(error) = upload.file.write_all(&chunk) {
            return refuse_upload(connection, internal(error)).await;
        }
        promise.wrote(chunk.len() as u64);
    }
    promise.no_more();
    let sha256 = hex(&std::mem::take(&mut upload.hasher).finalize());
    let result = layers::take_in(&daemon.ctx, &tenant, upload.path.clone(), sha256).await;
    Ok(result.map(Reply::Bundle))
}

/// Says why, and breaks off: what else the sender has under way is no request.
async fn refuse_upload<T>(connection: &mut Connection, error: ApiError) -> Result<T, FrameError> {
    frame::write(connection, &Reply::Error(error)).await?;
    Err(FrameError::Closed)
}

/// An upload on disk; removed when dropped.
struct Upload {
    path: PathBuf,
    file: std::fs::File,
    hasher: Sha256,
    bytes: u64,
}

impl Drop for Upload {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn build_out(
    daemon: &Arc<Daemon>,
    connection: &mut Connection,
    request: BuildRequest,
) -> Result<(), FrameError> {
    if let Err(error) = layers::bundle_info(&daemon.ctx, &request.tenant, &request.bundle) {
        return frame::write(connection, &Reply::Error(error)).await;
    }
    let ctx = Arc::clone(&daemon.ctx);
    told_out(connection, move |tell| async move {
        layers::build(&ctx, request, tell).await
    })
    .await
}

async fn build_common_out(
    daemon: &Arc<Daemon>,
    connection: &mut Connection,
    runtime: Runtime,
    name: &str,
) -> Result<(), FrameError> {
    let Some(list) = List::all(runtime).find(|list| list.name == name) else {
        let error = ApiError::new(ErrorCode::NotFound, "there is no list of this name");
        return frame::write(connection, &Reply::Error(error)).await;
    };
    let ctx = Arc::clone(&daemon.ctx);
    told_out(connection, move |tell| async move {
        common::build(&ctx, list, tell).await
    })
    .await
}

/// Runs a build and tells how it goes.
async fn told_out<F, B>(connection: &mut Connection, build: F) -> Result<(), FrameError>
where
    F: FnOnce(mpsc::Sender<BuildEvent>) -> B,
    B: Future<Output = Result<LayerInfo, ApiError>> + Send + 'static,
{
    frame::write(connection, &Reply::Ok).await?;
    let (tell, mut told) = mpsc::channel(256);
    // On a task of its own: when the asker goes away the build goes on, and its layer is there the next time.
    let build = tokio::spawn(build(tell));
    while let Some(event) = told.recv().await {
        frame::write(connection, &Reply::Build(event)).await?;
    }
    match build.await {
        Ok(Ok(layer)) => {
            frame::write(connection, &Reply::Build(BuildEvent::Done { layer })).await?;
            frame::write(connection, &Reply::End).await
        }
        Ok(Err(error)) => frame::write(connection, &Reply::Error(error)).await,
        Err(_) => {
            frame::write(
                connection,
                &Reply::Error(ApiError::new(ErrorCode::Internal, "the build broke off")),
            )
            .await
        }
    }
}

async fn logs_out(
    daemon: &Arc<Daemon>,
    connection: &mut Connection,
    query: LogQuery,
) -> Result<(), FrameError> {
    let log = match daemon.log(&query.tenant, &query.server) {
        Ok(log) => log,
        Err(error) => return frame::write(connection, &Reply::Error(error)).await,
    };
    frame::write(connection, &Reply::Ok).await?;
    let (mut lines, mut next) = log.tail(query.tail.min(10_000) as usize);
    loop {
        for line in lines {
            frame::write(connection, &Reply::Log(line)).await?;
        }
        if !query.follow {
            return frame::write(connection, &Reply::End).await;
        }
        (lines, next) = tokio::select! {
            more = log.from(next) => more,
            _ = frame::read::<_, Request>(connection) => return Err(FrameError::Closed),
        };
    }
}

async fn events_out(
    daemon: &Arc<Daemon>,
    connection: &mut Connection,
    mut after: u64,
) -> Result<(), FrameError> {
    frame::write(connection, &Reply::Ok).await?;
    loop {
        let events = tokio::select! {
            events = daemon.ctx.events.after(after) => events,
            _ = frame::read::<_, Request>(connection) => return Err(FrameError::Closed),
        };
        for event in events {
            after = event.seq;
            frame::write(connection, &Reply::Event(event)).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_api::{Lease, SandboxId};

    fn granted() -> Granted {
        let lease = Lease {
            id: LeaseId::parse("abcdefghijkl").expect("an id"),
            sandbox: SandboxId::parse("abcdefghijkl").expect("an id"),
            address: ([127, 0, 0, 1], 1).into(),
            fresh: true,
            waited_ms: 0,
            call_timeout_s: 1,
        };
        let (_, gone) = oneshot::channel();
        Granted { lease, gone }
    }

    #[tokio::test]
    async fn a_lease_that_is_granted_as_its_holder_leaves_is_not_lost() {
        // Which of two that are ready is seen first is drawn each time.
        for _ in 0..64 {
            let (reply, answer) = oneshot::channel();
            assert!(reply.send(Ok(granted())).is_ok());
            let waited = answer_or_leave(answer, std::future::ready(())).await;
            assert!(waited.is_some(), "nobody gives it back");
        }
        let (reply, answer) = oneshot::channel();
        assert!(
            answer_or_leave(answer, std::future::ready(()))
                .await
                .is_none()
        );
        assert!(reply.send(Ok(granted())).is_err(), "it would be lost");
    }
}
