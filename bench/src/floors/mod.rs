//! Floors: forwarders that look at nothing, to compare a proxy that looks at everything with.
//!
//! Each runs as its own process with the same number of worker threads as the proxy under test, prints the URL it
//! serves in the same way, and is killed by the parent. They stream bodies through untouched in both directions.

mod hyper;
mod pingora;
mod stock;

use pingora_core::server::configuration::ServerConf;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Which forwarder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Floor {
    /// An own `HttpServerApp` with pingora's `http::Connector`: what the gateway is built on.
    Pingora,
    /// Stock `ProxyHttp` of pingora-proxy.
    PingoraProxy,
    /// hyper's server and client connections with a small pool.
    Hyper,
}

/// Where the pass-through listens by TLS, with what.
pub struct Tls {
    /// The address.
    pub listen: SocketAddr,
    /// The certificate, PEM.
    pub certificate: String,
    /// Its key, PEM.
    pub key: String,
}

/// Serves until the process is killed.
pub fn serve(
    floor: Floor,
    upstream: SocketAddr,
    threads: usize,
    tls: Option<Tls>,
) -> anyhow::Result<()> {
    match floor {
        Floor::Pingora => pingora::serve(upstream, threads, tls),
        Floor::PingoraProxy => stock::serve(upstream, threads),
        Floor::Hyper => hyper::serve(upstream, threads),
    }
}

/// A port nobody has at this moment. pingora and the peers bind by number and cannot say which they got; between this
/// and their bind another process could take it, and the start then fails with a clear message.
pub fn free_port() -> std::io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// Tells the parent where this process listens.
pub fn announce(addr: SocketAddr) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "listening on http://{addr}/mcp")?;
    out.flush()
}

/// pingora's defaults, except that it ends at once when told to (it would drain connections for five minutes).
fn pingora_conf(threads: usize) -> ServerConf {
    ServerConf {
        threads,
        grace_period_seconds: Some(0),
        graceful_shutdown_timeout_seconds: Some(0),
        ..ServerConf::default()
    }
}
