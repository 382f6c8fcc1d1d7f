//! What is told about the traffic of a sandbox.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use crate::host::HostName;

/// One thing that happened. Names are host names by type; nothing else that a guest wrote is in here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EgressEvent {
    /// A connection to an allowed name ended.
    Connection {
        /// The name.
        domain: HostName,
        /// The port.
        port: u16,
        /// The real address.
        address: IpAddr,
        /// Bytes from the sandbox to the name.
        bytes_up: u64,
        /// Bytes from the name to the sandbox.
        bytes_down: u64,
        /// How long it was open, in milliseconds.
        duration_ms: u64,
        /// It was cut, because the rules do not allow it (any more) or the sandbox went away.
        cut: bool,
    },
    /// Something was not let through.
    Refused {
        /// The name, where there is one.
        domain: Option<HostName>,
        /// The address that the guest tried, where it tried one.
        address: Option<Ipv4Addr>,
        /// The port; 53 for questions.
        port: u16,
        /// Why.
        reason: Refusal,
    },
    /// So many events found the queue full and are missing here.
    Dropped {
        /// How many.
        count: u64,
    },
}

/// Why something was not let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The name is not on the allowlist.
    #[error("the name is not on the allowlist")]
    NameNotAllowed,
    /// A question for something that is no host name.
    #[error("what was asked for is not a host name")]
    NotAHostName,
    /// The port of an allowed name is not on the allowlist.
    #[error("the port is not on the allowlist")]
    PortNotAllowed,
    /// An address that the resolver did not give out.
    #[error("connections by address are not allowed, only by an allowed name")]
    AddressLiteral,
    /// The TLS server name is another one.
    #[error("the TLS server name is not the name that was resolved")]
    ServerNameDiffers,
    /// TLS without a readable server name, or no TLS at all where it must be.
    #[error("the connection did not begin with a TLS hello that shows its server name")]
    NoServerName,
    /// TLS that hides the server name.
    #[error("the TLS server name is encrypted, which cannot be checked")]
    EncryptedHello,
    /// The name leads nowhere that is public.
    #[error("the name leads to an address that is not public")]
    NotPublic,
    /// The name cannot be resolved.
    #[error("the name cannot be resolved")]
    Unresolved,
    /// Nobody answers there.
    #[error("the server cannot be reached")]
    Unreachable,
    /// Too many connections at once.
    #[error("too many connections at once")]
    TooManyConnections,
    /// Too many questions, or too many different names.
    #[error("too many names were asked for")]
    TooManyNames,
}

impl Refusal {
    /// The word for metrics and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NameNotAllowed => "name_not_allowed",
            Self::NotAHostName => "not_a_host_name",
            Self::PortNotAllowed => "port_not_allowed",
            Self::AddressLiteral => "address_literal",
            Self::ServerNameDiffers => "server_name_differs",
            Self::NoServerName => "no_server_name",
            Self::EncryptedHello => "encrypted_hello",
            Self::NotPublic => "not_public",
            Self::Unresolved => "unresolved",
            Self::Unreachable => "unreachable",
            Self::TooManyConnections => "too_many_connections",
            Self::TooManyNames => "too_many_names",
        }
    }
}

/// Where events go. Never waits: what a guest causes must not be able to hold up the forwarder, so a full queue counts
/// what it loses and says the number as soon as there is room.
#[derive(Clone)]
pub struct EventSink {
    queue: mpsc::Sender<EgressEvent>,
    dropped: Arc<AtomicU64>,
}

impl EventSink {
    pub(crate) fn send(&self, event: EgressEvent) {
        let count = self.dropped.swap(0, Ordering::Relaxed);
        if count > 0 && self.queue.try_send(EgressEvent::Dropped { count }).is_err() {
            self.dropped.fetch_add(count + 1, Ordering::Relaxed);
            return;
        }
        if self.queue.try_send(event).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn refused(
        &self,
        domain: Option<&HostName>,
        address: Option<Ipv4Addr>,
        port: u16,
        reason: Refusal,
    ) {
        let domain = domain.cloned();
        self.send(EgressEvent::Refused {
            domain,
            address,
            port,
            reason,
        });
    }
}

/// A queue of at most `events_max` events. One queue may serve one sandbox or many.
pub fn event_channel(events_max: usize) -> (EventSink, mpsc::Receiver<EgressEvent>) {
    let (queue, receiver) = mpsc::channel(events_max.max(1));
    let dropped = Arc::default();
    (EventSink { queue, dropped }, receiver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_counts_what_it_loses() {
        let (sink, mut events) = event_channel(2);
        let refuse = |port| sink.refused(None, None, port, Refusal::AddressLiteral);
        for port in 1..=5 {
            refuse(port);
        }
        let port = |event: Option<EgressEvent>| match event {
            Some(EgressEvent::Refused { port, .. }) => port,
            other => panic!("{other:?}"),
        };
        assert_eq!(port(events.blocking_recv()), 1);
        assert_eq!(port(events.blocking_recv()), 2);
        refuse(6);
        assert_eq!(
            events.blocking_recv(),
            Some(EgressEvent::Dropped { count: 3 })
        );
        assert_eq!(port(events.blocking_recv()), 6);
    }
}
