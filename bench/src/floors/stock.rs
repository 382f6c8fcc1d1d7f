//! pingora's own proxy framework, used as its quick start shows: `ProxyHttp` with only a peer selected.

use super::announce;
use async_trait::async_trait;
use pingora_core::server::Server;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_proxy::{ProxyHttp, Session, http_proxy_service};
use std::net::SocketAddr;

/// Serves until the process is killed.
pub fn serve(upstream: SocketAddr, threads: usize) -> anyhow::Result<()> {
    let addr = super::free_port()?;
    let conf = super::pingora_conf(threads);
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let mut service = http_proxy_service(&server.configuration, Stock(upstream));
    service.add_tcp(&addr.to_string());
    server.add_service(service);
    announce(addr)?;
    server.run_forever()
}

struct Stock(SocketAddr);

#[async_trait]
impl ProxyHttp for Stock {
    type CTX = ();

    fn new_ctx(&self) -> Self::CTX {}

    async fn upstream_peer(
        &self,
        _session: &mut Session,
        _ctx: &mut (),
    ) -> pingora_core::Result<Box<HttpPeer>> {
        Ok(Box::new(HttpPeer::new(self.0, false, String::new())))
    }
}
