//! Resolver and forwarder of one sandbox, started and stopped as one.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::address::Targets;
use crate::event::{EventSink, Refusal};
use crate::forwarder::forward;
use crate::host::HostName;
use crate::names::Names;
use crate::outside::Outside;
use crate::resolver::{Bucket, answer_tcp, answer_udp};
use crate::rules::Allowlist;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
const ERROR_PAUSE: Duration = Duration::from_millis(50);

/// The three sockets of one sandbox, bound already, in whatever network namespace its interface ends.
#[derive(Debug)]
pub struct Sockets {
    /// Questions over UDP.
    pub dns_udp: UdpSocket,
    /// Questions over TCP.
    pub dns_tcp: TcpListener,
    /// All other TCP connections.
    pub forward: TcpListener,
}

impl Sockets {
    /// Binds all three to free ports of `address` in the calling thread's network namespace, and to `interface` only:
    /// many sandboxes may share a gateway address, and nobody else can come in.
    ///
    /// # Errors
    /// The system's, for instance that the interface is not there or has not got the address.
    pub fn bind(interface: &str, address: Ipv4Addr) -> io::Result<Self> {
        let bind = |kind, protocol| {
            let socket = Socket::new(Domain::IPV4, kind, Some(protocol))?;
            socket.bind_device(Some(interface.as_bytes()))?;
            socket.bind(&SocketAddrV4::new(address, 0).into())?;
            io::Result::Ok(socket)
        };
        let listen = || {
            let socket = bind(Type::STREAM, Protocol::TCP)?;
            socket.listen(BACKLOG)?;
            io::Result::Ok(TcpListener::from(socket))
        };
        Ok(Self {
            dns_udp: bind(Type::DGRAM, Protocol::UDP)?.into(),
            dns_tcp: listen()?,
            forward: listen()?,
        })
    }
}

/// Bounds of one sandbox's egress.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// TCP connections at once; above it they are reset.
    pub connections_max: usize,
    /// A connection on which nothing moves for about this long is reset.
    pub idle_max: Duration,
    /// Questions per second; above it there is no answer.
    pub questions_per_second: u32,
    /// Questions that may come at once.
    pub questions_burst: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        let idle_max = Duration::from_secs(15 * 60);
        Self {
            connections_max: 256,
            idle_max,
            questions_per_second: 50,
            questions_burst: 200,
        }
    }
}

/// Who else adds up bytes while they move, such as a counter that outlives this program.
pub trait Tally: Send + Sync {
    /// Bytes from the sandbox outwards.
    fn up(&self, bytes: u64);
    /// Bytes from outside into the sandbox.
    fn down(&self, bytes: u64);
}

/// Nobody.
impl Tally for () {
    fn up(&self, _: u64) {}
    fn down(&self, _: u64) {}
}

/// What a sandbox moved since [`Egress::start`]; only ever grows.
pub struct Traffic {
    bytes_up: AtomicU64,
    bytes_down: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) refusals: AtomicU64,
    tally: Arc<dyn Tally>,
}

impl Traffic {
    fn new(tally: Arc<dyn Tally>) -> Self {
        Self {
            bytes_up: AtomicU64::new(0),
            bytes_down: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
            tally,
        }
    }

    pub(crate) fn add_up(&self, bytes: u64) {
        self.bytes_up.fetch_add(bytes, Ordering::Relaxed);
        self.tally.up(bytes);
    }

    pub(crate) fn add_down(&self, bytes: u64) {
        self.bytes_down.fetch_add(bytes, Ordering::Relaxed);
        self.tally.down(bytes);
    }

    /// Bytes from the sandbox outwards.
    pub fn bytes_up(&self) -> u64 {
        self.bytes_up.load(Ordering::Relaxed)
    }

    /// Bytes from outside into the sandbox.
    pub fn bytes_down(&self) -> u64 {
        self.bytes_down.load(Ordering::Relaxed)
    }

    /// Connections that were let through.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Connections and questions that were not.
    pub fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }
}

/// What the parts of one sandbox's egress have in common.
pub struct Shared {
    pub names: Names,
    pub outside: Arc<dyn Outside>,
    pub targets: Targets,
    pub bounds: Bounds,
    pub events: EventSink,
    pub traffic: Arc<Traffic>,
    pub questions: Bucket,
    pub question_alarms: Bucket,
}

impl Shared {
    pub fn refused(&self, name: Option<&HostName>, to: Option<SocketAddrV4>, reason: Refusal) {
        self.traffic.refusals.fetch_add(1, Ordering::Relaxed);
        let (address, port) = (to.map(|t| *t.ip()), to.map_or(0, |t| t.port()));
        self.events.refused(name, address, port, reason);
    }

    pub fn refused_question(&self, name: Option<&HostName>, reason: Refusal) {
        self.traffic.refusals.fetch_add(1, Ordering::Relaxed);
        self.events.refused(name, None, 53, reason);
    }
}

/// The running egress of one sandbox. Dropped, it cuts every connection and stops to answer.
pub struct Egress {
    rules: watch::Sender<Arc<Allowlist>>,
    traffic: Arc<Traffic>,
    tasks: [JoinHandle<()>; 3],
}

impl Egress {
    /// Starts to answer and to forward. Needs a tokio runtime; outgoing connections are made where `outside` makes
    /// them. `tally` gets every byte as it is read.
    ///
    /// # Errors
    /// The system's, if the sockets cannot be made non-blocking or registered.
    pub fn start(
        sockets: Sockets,
        rules: Allowlist,
        outside: Arc<dyn Outside>,
        targets: Targets,
        bounds: Bounds,
        events: EventSink,
        tally: Arc<dyn Tally>,
    ) -> io::Result<Self> {
        sockets.dns_udp.set_nonblocking(true)?;
        sockets.dns_tcp.set_nonblocking(true)?;
        sockets.forward.set_nonblocking(true)?;
        let dns_udp = tokio::net::UdpSocket::from_std(sockets.dns_udp)?;
        let dns_tcp = tokio::net::TcpListener::from_std(sockets.dns_tcp)?;
        let listener = tokio::net::TcpListener::from_std(sockets.forward)?;

        let (sender, receiver) = watch::channel(Arc::new(rules));
        let traffic = Arc::new(Traffic::new(tally));
        let shared = Arc::new(Shared {
            names: Names::default(),
            outside,
            targets,
            questions: Bucket::new(bounds.questions_per_second, bounds.questions_burst),
            question_alarms: Bucket::new(1, 1),
            bounds,
            events,
            traffic: Arc::clone(&traffic),
        });
        let tasks = [
            tokio::spawn(answer_udp(dns_udp, Arc::clone(&shared), receiver.clone())),
            tokio::spawn(answer_tcp(dns_tcp, Arc::clone(&shared), receiver.clone())),
            tokio::spawn(forward(listener, shared, receiver)),
        ];
        Ok(Self {
            rules: sender,
            traffic,
            tasks,
        })
    }

    /// Replaces the rules. Connections that they no longer allow are cut.
    pub fn set_rules(&self, rules: Allowlist) {
        self.rules.send_replace(Arc::new(rules));
    }

    /// The counters.
    pub fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// Cuts every connection and waits until each has told what it moved.
    pub async fn stop(self) {
        drop(self.rules);
        for task in self.tasks {
            let _ = task.await;
        }
    }
}

/// Accepting fails when the process has no descriptors left; to try again at once would only burn the processor.
pub async fn pause_after_error(what: &str, error: &io::Error) {
    tracing::warn!(%error, "{what}");
    tokio::time::sleep(ERROR_PAUSE).await;
}
