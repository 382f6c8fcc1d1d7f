//! Every TCP connection of the guest ends here, and a new one to the name begins, or none.

use std::any::Any;
use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nix::sys::socket::{getsockopt, sockopt};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::event::{EgressEvent, Refusal};
use crate::first::{First, HELLO_READS_MAX, HELLO_WIRE_BYTES_MAX, judge};
use crate::hello::{self, HelloError};
use crate::host::HostName;
use crate::relay::{Flow, relay};
use crate::rules::Allowlist;
use crate::serve::{Shared, pause_after_error};

/// Ports on which a connection must begin with a TLS hello: HTTPS, and the mail, directory and message protocols that
/// are TLS from the first byte. On other ports it may, and is then checked in the same way while it is relayed ([`First`]).
const TLS_PORTS: &[u16] = &[
    443, 465, 563, 636, 853, 989, 990, 992, 993, 994, 995, 5061, 5671, 6697, 8443, 8883,
];
/// How long the guest may take for its hello.
const HELLO_WAIT_MAX: Duration = Duration::from_secs(10);
const RESOLVE_WAIT_MAX: Duration = Duration::from_secs(10);
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(5);
/// Addresses of one name that are tried.
const ADDRESSES_TRIED_MAX: usize = 4;

/// Accepts until the rules' sender is gone; then every connection is cut.
pub async fn forward(
    listener: TcpListener,
    shared: Arc<Shared>,
    mut rules: watch::Receiver<Arc<Allowlist>>,
) {
    let room = Arc::new(Semaphore::new(shared.bounds.connections_max));
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((guest, _)) => accept(guest, &room, &shared, &rules, &mut open),
                Err(error) => pause_after_error("a connection of a sandbox cannot be accepted", &error).await,
            },
            _ = open.join_next(), if !open.is_empty() => {}
            changed = rules.changed() => if changed.is_err() { break },
        }
    }
    // Each sees the end of the rules by itself and tells what it moved.
    while open.join_next().await.is_some() {}
}

/// The right to a connection: of its sandbox, and of all who share the way out.
type Admitted = (OwnedSemaphorePermit, Box<dyn Any + Send>);

fn accept(
    guest: TcpStream,
    room: &Arc<Semaphore>,
    shared: &Arc<Shared>,
    rules: &watch::Receiver<Arc<Allowlist>>,
    open: &mut JoinSet<()>,
) {
    let permit = Arc::clone(room).try_acquire_owned().ok();
    let Some(admitted) = permit.and_then(|permit| Some((permit, shared.outside.admit()?))) else {
        let to = original_destination(&guest);
        shared.refused(None, to, Refusal::TooManyConnections);
        return reset(guest);
    };
    open.spawn(serve(guest, Arc::clone(shared), rules.clone(), admitted));
}

async fn serve(
    mut guest: TcpStream,
    shared: Arc<Shared>,
    mut rules: watch::Receiver<Arc<Allowlist>>,
    _admitted: Admitted,
) {
    let to = original_destination(&guest);
    let name = to.and_then(|to| shared.names.name(*to.ip()));
    let (Some(to), Some(name)) = (to, name) else {
        shared.refused(None, to, Refusal::AddressLiteral);
        return reset(guest);
    };
    let port = to.port();
    let list = Arc::clone(&rules.borrow());
    let opened = tokio::select! {
        opened = open(&mut guest, &name, port, &list, &shared) => opened,
        reason = until_refused(&mut rules, &name, port) => Err(reason),
    };
    match opened {
        Err(reason) => {
            shared.refused(Some(&name), Some(to), reason);
            reset(guest);
        }
        Ok(opened) => run(guest, opened, &name, port, &shared, &mut rules).await,
    }
}

/// A connection that may begin: where to, and what the guest said already.
struct Opened {
    remote: TcpStream,
    address: IpAddr,
    first: Vec<u8>,
}

async fn open(
    guest: &mut TcpStream,
    name: &HostName,
    port: u16,
    rules: &Allowlist,
    shared: &Shared,
) -> Result<Opened, Refusal> {
    if !rules.allows(name, port) {
        return Err(not_allowed(rules, name));
    }
    // What must be TLS is checked before anybody outside hears of it.
    let mut first = Vec::new();
    if TLS_PORTS.contains(&port) {
        first = hello_for(guest, name).await?;
    }
    let (remote, address) = connect(name, port, shared).await?;
    Ok(Opened {
        remote,
        address,
        first,
    })
}

fn not_allowed(rules: &Allowlist, name: &HostName) -> Refusal {
    if rules.knows(name) {
        Refusal::PortNotAllowed
    } else {
        Refusal::NameNotAllowed
    }
}

/// Waits until the rules change so that this is no longer allowed, or are gone.
async fn until_refused(
    rules: &mut watch::Receiver<Arc<Allowlist>>,
    name: &HostName,
    port: u16,
) -> Refusal {
    loop {
        if rules.changed().await.is_err() {
            return Refusal::NameNotAllowed;
        }
        let list = Arc::clone(&rules.borrow_and_update());
        if !list.allows(name, port) {
            return not_allowed(&list, name);
        }
    }
}

/// Reads the guest's hello, whose server name must be `name`.
async fn hello_for(guest: &mut TcpStream, name: &HostName) -> Result<Vec<u8>, Refusal> {
    let read = timeout(HELLO_WAIT_MAX, read_hello(guest)).await;
    let (found, bytes) = read.map_err(|_| Refusal::NoServerName)?;
    judge(found, name).map(|()| bytes)
}

/// The server name in what the guest says, and all that it said.
async fn read_hello(guest: &mut TcpStream) -> (Result<HostName, HelloError>, Vec<u8>) {
    let mut bytes = Vec::with_capacity(2048);
    for _ in 0..HELLO_READS_MAX {
        let room = HELLO_WIRE_BYTES_MAX.saturating_sub(bytes.len()) as u64;
        let read = (&mut *guest).take(room).read_buf(&mut bytes).await;
        if !matches!(read, Ok(1..)) {
            break;
        }
        match hello::server_name(&bytes) {
            Err(HelloError::Incomplete) => {}
            found => return (found, bytes),
        }
    }
    (Err(HelloError::NotTls), bytes)
}

/// Resolves here and now, and connects to an address that was checked: what the name leads to a moment later does not
/// matter.
async fn connect(
    name: &HostName,
    port: u16,
    shared: &Shared,
) -> Result<(TcpStream, IpAddr), Refusal> {
    let resolved = timeout(RESOLVE_WAIT_MAX, shared.outside.resolve(name)).await;
    let resolved = resolved
        .ok()
        .and_then(Result::ok)
        .filter(|found| !found.is_empty());
    let own = shared
        .outside
        .own_addresses()
        .map_err(|_| Refusal::NotPublic)?;
    let mut allowed: Vec<IpAddr> = resolved.ok_or(Refusal::Unresolved)?;
    allowed.retain(|address| shared.targets.allow(*address, &own));
    if allowed.is_empty() {
        return Err(Refusal::NotPublic);
    }
    for address in allowed.into_iter().take(ADDRESSES_TRIED_MAX) {
        let to = SocketAddr::new(address, port);
        if let Ok(Ok(remote)) = timeout(CONNECT_WAIT_MAX, shared.outside.connect(to)).await {
            let _ = remote.set_nodelay(true);
            return Ok((remote, address));
        }
    }
    Err(Refusal::Unreachable)
}

async fn run(
    mut guest: TcpStream,
    opened: Opened,
    name: &HostName,
    port: u16,
    shared: &Shared,
    rules: &mut watch::Receiver<Arc<Allowlist>>,
) {
    let Opened {
        mut remote,
        address,
        first,
    } = opened;
    let started = Instant::now();
    let flow = Flow::default();
    shared.traffic.connections.fetch_add(1, Ordering::Relaxed);
    let _ = guest.set_nodelay(true);
    let to = original_destination(&guest);
    let mut speaking = First::new(&mut guest, name, TLS_PORTS.contains(&port));
    let moved = async {
        // Before they go: what somebody outside has got is counted, whenever this program ends.
        let sent = first.len() as u64;
        flow.up.fetch_add(sent, Ordering::Relaxed);
        shared.traffic.add_up(sent);
        remote.write_all(&first).await?;
        relay(
            &mut speaking,
            &mut remote,
            &flow,
            &shared.traffic,
            shared.bounds.idle_max,
        )
        .await
    };
    let (failed, cut) = tokio::select! {
        done = moved => (done.is_err(), false),
        _ = until_refused(rules, name, port) => (true, true),
    };
    let refused = speaking.refused;
    if let Some(reason) = refused {
        shared.refused(Some(name), to, reason);
    }
    if failed {
        reset(guest);
        reset(remote);
    }
    shared.events.send(EgressEvent::Connection {
        domain: name.clone(),
        port,
        address,
        bytes_up: flow.up.load(Ordering::Relaxed),
        bytes_down: flow.down.load(Ordering::Relaxed),
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        cut: cut || refused.is_some(),
    });
}

/// Where the guest wanted to go, before the packet filter sent it here. `None` when it came here by itself.
fn original_destination(guest: &TcpStream) -> Option<SocketAddrV4> {
    let to = getsockopt(guest, sockopt::OriginalDst).ok()?;
    let to = SocketAddrV4::new(
        u32::from_be(to.sin_addr.s_addr).into(),
        u16::from_be(to.sin_port),
    );
    let here = guest.local_addr().ok()?;
    (SocketAddr::V4(to) != here).then_some(to)
}

/// Ends a connection so that the peer sees an error and not an orderly end.
fn reset(stream: TcpStream) {
    let _ = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
}
