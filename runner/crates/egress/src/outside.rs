//! The way out: resolving and connecting with the runner's own rights.

use std::any::Any;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::host::HostName;

/// What the forwarder needs of the world. A trait, so that the daemon can send it through a namespace of its own.
#[async_trait]
pub trait Outside: Send + Sync {
    /// The real addresses of a name, asked for anew for every connection.
    async fn resolve(&self, name: &HostName) -> io::Result<Vec<IpAddr>>;

    /// Connects to exactly this address.
    async fn connect(&self, to: SocketAddr) -> io::Result<TcpStream>;

    /// The addresses of this host, which are never a target.
    fn own_addresses(&self) -> io::Result<Vec<IpAddr>>;

    /// The right to one connection more, for as long as it is kept; none if there are too many.
    fn admit(&self) -> Option<Box<dyn Any + Send>> {
        Some(Box::new(()))
    }
}

/// Another way out with bounds, for all who use the same one together. Cheap to clone.
#[derive(Clone)]
pub struct Sparing<O> {
    way: O,
    names: Arc<Semaphore>,
    connections: Arc<Semaphore>,
}

impl<O> Sparing<O> {
    /// So many names at once, and so many connections.
    pub fn new(way: O, names: usize, connections: usize) -> Self {
        let room = |max: usize| Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS)));
        Self {
            way,
            names: room(names),
            connections: room(connections),
        }
    }

    /// Whether nothing of it is held: there is no other clone, no name is being resolved, no connection is open.
    pub fn at_rest(&self) -> bool {
        // What is under way holds its bound by a handle of its own.
        [&self.names, &self.connections].map(Arc::strong_count) == [1, 1]
    }
}

#[async_trait]
impl<O: Outside + Clone + 'static> Outside for Sparing<O> {
    async fn resolve(&self, name: &HostName) -> io::Result<Vec<IpAddr>> {
        let room = Arc::clone(&self.names).acquire_owned().await;
        let room = room.map_err(io::Error::other)?;
        let (way, name) = (self.way.clone(), name.clone());
        // On a task of its own: who asked may give up, and the system's resolver goes on, with all that it holds.
        let asked = tokio::spawn(async move {
            let _room = room;
            way.resolve(&name).await
        });
        asked.await.map_err(io::Error::other)?
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<TcpStream> {
        self.way.connect(to).await
    }

    fn own_addresses(&self) -> io::Result<Vec<IpAddr>> {
        self.way.own_addresses()
    }

    fn admit(&self) -> Option<Box<dyn Any + Send>> {
        let room = Arc::clone(&self.connections).try_acquire_owned().ok()?;
        Some(Box::new(room))
    }
}

/// The system's resolver and the network namespace of the calling thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

#[async_trait]
impl Outside for System {
    async fn resolve(&self, name: &HostName) -> io::Result<Vec<IpAddr>> {
        // The dot at the end keeps search domains of this host out.
        let found = tokio::net::lookup_host((format!("{name}."), 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect(to).await
    }

    fn own_addresses(&self) -> io::Result<Vec<IpAddr>> {
        let interfaces = nix::ifaddrs::getifaddrs()?;
        let addresses = interfaces.filter_map(|interface| {
            let address = interface.address?;
            let v4 = address.as_sockaddr_in().map(|a| IpAddr::from(a.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|a| IpAddr::from(a.ip())))
        });
        Ok(addresses.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    /// Answers nobody.
    #[derive(Clone, Default)]
    struct Silent(Arc<AtomicUsize>);

    #[async_trait]
    impl Outside for Silent {
        async fn resolve(&self, _: &HostName) -> io::Result<Vec<IpAddr>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            std::future::pending().await
        }

        async fn connect(&self, _: SocketAddr) -> io::Result<TcpStream> {
            Err(io::ErrorKind::ConnectionRefused.into())
        }

        fn own_addresses(&self) -> io::Result<Vec<IpAddr>> {
            Ok(Vec::new())
        }
    }

    #[tokio::test]
    async fn who_gives_up_on_a_name_does_not_make_room_for_another() {
        let silent = Silent::default();
        let way = Sparing::new(silent.clone(), 2, 1);
        let name = HostName::parse("never.example.com").expect("a name");
        for _ in 0..5 {
            let asked = tokio::time::timeout(Duration::from_millis(20), way.resolve(&name));
            assert!(asked.await.is_err(), "nobody answers");
        }
        assert_eq!(silent.0.load(Ordering::Relaxed), 2, "resolved at once");
        let first = way.admit();
        assert!(first.is_some() && way.clone().admit().is_none());
        drop(first);
        assert!(way.admit().is_some());
    }

    #[tokio::test]
    async fn a_name_that_nobody_waits_for_any_more_is_under_way_still() {
        let way = Sparing::new(Silent::default(), 2, 1);
        assert!(way.at_rest());
        let other = way.clone();
        assert!(!way.at_rest());
        let name = HostName::parse("never.example.com").expect("a name");
        let asked = tokio::time::timeout(Duration::from_millis(20), other.resolve(&name));
        assert!(asked.await.is_err(), "nobody answers");
        drop(other);
        assert!(!way.at_rest());
        let way = Sparing::new(Silent::default(), 2, 1);
        let open = way.admit();
        assert!(!way.at_rest());
        drop(open);
        assert!(way.at_rest());
    }
}
