//! Connects a prepared sandbox: sockets of its egress first, then its entry in the packet filter, then the wire.

use std::net::SocketAddr;
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

/// Whether anybody on this host has a connection to a sandbox: no caller keeps one beyond its exchange.
pub fn is_used(address: SocketAddr) -> bool {
    const ESTABLISHED: &str = "01";
    let SocketAddr::V4(to) = address else {
        return false;
    };
    let to = format!(
        "{:08X}:{:04X}",
        u32::from_ne_bytes(to.ip().octets()),
        to.port()
    );
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    table.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(2);
        fields.next() == Some(&to) && fields.next() == Some(ESTABLISHED)
    })
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
