//! The way out: resolving and connecting with the runner's own rights.

use std::io;
use std::net::{IpAddr, SocketAddr};

use async_trait::async_trait;
use tokio::net::TcpStream;

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
