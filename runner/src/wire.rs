//! Connects a prepared sandbox: sockets of its egress first, then its entry in the packet filter, then the wire.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use domain::{ServerId, TenantId};
use egress::{Allowlist, Bounds, Egress, EgressEvent, Guest, Sockets, Targets, event_channel};
use runner_api::{EventKind, SandboxId};
use sandbox::Wire;
use tokio::sync::mpsc;

use crate::context::Context;
use crate::meter::Bytes;
use crate::shares::{MISSED_EVERY, Share};

/// Events of one sandbox that wait to be written down.
const EVENTS_MAX: usize = 1024;

/// A wire that may come up. Dropped, its way out is cut; [`Connected::close`] also takes its entry out of the filter.
pub struct Connected {
    egress: Egress,
    guest: Guest,
}

/// Whose it is, for events.
#[derive(Clone)]
pub struct Owner {
    /// The tenant.
    pub tenant: TenantId,
    /// The server.
    pub server: ServerId,
    /// The sandbox.
    pub sandbox: SandboxId,
}

impl Connected {
    /// Opens the way out as far as `rules` say; after it the wire may come up (an adopted one is up already).
    ///
    /// # Errors
    /// The wire must stay down then, and the sandbox end.
    pub async fn open(
        ctx: &Arc<Context>,
        wire: &Wire,
        rules: Allowlist,
        targets: Targets,
        owner: Owner,
        tally: Arc<metering::Tally>,
    ) -> Result<Self> {
        let sockets = Sockets::bind(&wire.interface, wire.gateway)
            .context("bind the sockets of a sandbox's egress")?;
        let guest = Guest {
            interface: wire.interface.clone(),
            address: wire.guest,
            dns_udp_port: sockets.dns_udp.local_addr()?.port(),
            dns_tcp_port: sockets.dns_tcp.local_addr()?.port(),
            forward_port: sockets.forward.local_addr()?.port(),
        };
        let (sink, receiver) = event_channel(EVENTS_MAX);
        let share = ctx.shares.of(&owner.tenant);
        let egress = Egress::start(
            sockets,
            rules,
            Arc::new(share.outside.clone()),
            targets,
            Bounds::default(),
            sink,
            Arc::new(Bytes(tally)),
        )?;
        tokio::spawn(tell(Arc::clone(ctx), owner, share, receiver));
        let connected = Self { egress, guest };
        if let Err(error) = ctx.filter.add(&connected.guest).await {
            // It may be there all the same, in the way of who has its place next.
            connected.close(ctx).await;
            return Err(error).context("open the packet filter for a sandbox");
        }
        Ok(connected)
    }

    /// Replaces the rules; what they no longer allow is cut.
    pub fn set_rules(&self, rules: Allowlist) {
        self.egress.set_rules(rules);
    }

    /// Cuts everything and closes the filter again.
    pub async fn close(self, ctx: &Context) {
        if let Err(error) = ctx.filter.remove(&self.guest).await {
            tracing::warn!(interface = self.guest.interface, %error, "an entry of the packet filter is left");
        }
        self.egress.stop().await;
    }
}

/// Rules of a spec in the egress room's own words.
///
/// # Errors
/// The first rule that is wrong, for its owner.
pub fn allowlist(rules: &[runner_api::EgressRule]) -> Result<Allowlist, egress::RuleError> {
    let texts: Vec<String> = rules
        .iter()
        .map(|rule| {
            let ports: Vec<String> = rule.ports.iter().map(u16::to_string).collect();
            if ports.is_empty() {
                rule.host.clone()
            } else {
                format!("{}:{}", rule.host, ports.join(","))
            }
        })
        .collect();
    Allowlist::parse(&texts)
}

/// Whether anybody on this host has a connection to a port of a guest: no caller keeps one beyond its exchange.
pub fn is_used(address: SocketAddr) -> bool {
    const ESTABLISHED: u8 = 0x01;
    let Ok(table) = tcp_table() else {
        return true;
    };
    let mut all = table.lines().filter_map(peer);
    all.any(|(peer, state)| peer == address && state == ESTABLISHED)
}

/// True if a guest has a TCP connection to anything but itself, until either side has said its last word: all of them end at
/// this host, where callers, resolver and forwarder are. An image of a guest with one is no good: after the restore gVisor
/// tells its program of the connection's end again and again, and of the ends of those that come after it, too (measured
/// with runsc of July 2024). It does not of one that the host has closed and the guest has not yet (`FIN_WAIT2` here).
pub fn has_connections(guest: IpAddr) -> bool {
    // ESTABLISHED, SYN_SENT, SYN_RECV, FIN_WAIT1 and CLOSE_WAIT, as Linux numbers them in include/net/tcp_states.h.
    const OPEN: [u8; 5] = [0x01, 0x02, 0x03, 0x04, 0x08];
    let Ok(table) = tcp_table() else {
        return true;
    };
    let mut all = table.lines().filter_map(peer);
    all.any(|(peer, state)| peer.ip() == guest && OPEN.contains(&state))
}

/// All TCP sockets of this network namespace over IPv4, which is all that guests speak. Who cannot read it takes it that
/// there are connections: nothing is lost then but a checkpoint or a place.
fn tcp_table() -> std::io::Result<String> {
    std::fs::read_to_string("/proc/net/tcp")
}

/// The other end of a socket, and its state: the third and fourth word of a line of that table.
fn peer(line: &str) -> Option<(SocketAddr, u8)> {
    let mut words = line.split_whitespace().skip(2);
    let (ip, port) = words.next()?.split_once(':')?;
    // In the order of bytes that the processor has.
    let ip = u32::from_str_radix(ip, 16).ok()?.to_ne_bytes();
    let port = u16::from_str_radix(port, 16).ok()?;
    let state = u8::from_str_radix(words.next()?, 16).ok()?;
    Some((SocketAddr::from((ip, port)), state))
}

async fn tell(
    ctx: Arc<Context>,
    owner: Owner,
    share: Arc<Share>,
    mut events: mpsc::Receiver<EgressEvent>,
) {
    let told = |kind| {
        ctx.events
            .tell(&owner.tenant, &owner.server, Some(&owner.sandbox), kind);
    };
    loop {
        // What was missed is said when the flood is over, though nothing comes after it.
        let wait = if share.has_missed() {
            MISSED_EVERY
        } else {
            Duration::MAX
        };
        let event = match tokio::time::timeout(wait, events.recv()).await {
            Ok(Some(event)) => Some(event),
            Ok(None) => break,
            Err(_) => None,
        };
        let now = Instant::now();
        match share.missed(now) {
            0 => {}
            count => told(EventKind::Dropped { count }),
        }
        let Some(event) = event.filter(|_| share.may_tell(now)) else {
            continue;
        };
        let kind = match event {
            EgressEvent::Connection {
                domain,
                port,
                bytes_up,
                bytes_down,
                duration_ms,
                ..
            } => EventKind::EgressConnection {
                host: domain.to_string(),
                port,
                sent_bytes: bytes_up,
                received_bytes: bytes_down,
                duration_ms,
            },
            EgressEvent::Refused {
                domain,
                address,
                port,
                reason,
            } => EventKind::EgressRefused {
                target: domain
                    .map(|d| d.to_string())
                    .or(address.map(|a| a.to_string()))
                    .unwrap_or_default(),
                port: Some(port),
                reason: reason.as_str().to_owned(),
            },
            EgressEvent::Dropped { count } => EventKind::Dropped { count },
        };
        told(kind);
    }
    match share.missed(Instant::now() + MISSED_EVERY) {
        0 => {}
        count => told(EventKind::Dropped { count }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_counts_until_both_sides_are_done() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let here = listener.local_addr().expect("an address");
        // An address that nothing else of this machine talks to.
        let guest: IpAddr = [127, 91, 17, 3].into();
        assert!(!has_connections(guest));
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind((guest, 0).into()).expect("bound");
        let socket = socket.connect(here).await.expect("connected");
        let (accepted, _) = listener.accept().expect("accepted");
        assert!(has_connections(guest));
        drop(socket);
        // The guest has closed it, and this host has not: it may still be told something.
        assert!(has_connections(guest));
        drop(accepted);
        let deadline = Instant::now() + Duration::from_secs(5);
        while has_connections(guest) {
            assert!(Instant::now() < deadline, "both sides have closed it");
            std::thread::yield_now();
        }
    }

    #[test]
    fn lines_of_the_table_are_read() {
        let line = "   3: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100";
        let expected = SocketAddr::from(([127, 0, 0, 1], 0xd431));
        assert_eq!(peer(line), Some((expected, 1)));
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
        for bad in [head, "", "1: a", "1: 0100007F:1F90 0100007F:D431"] {
            assert_eq!(peer(bad), None, "{bad}");
        }
    }
}
