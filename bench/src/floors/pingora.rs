//! The bare pass-through: pingora's server and connector with nothing between them.
//!
//! This is the floor the goals are counted from. It is written as a careful user of pingora would: connection reuse on
//! both sides, the head sent on as it came, bodies in pieces as they arrive, request body and answer one after the
//! other (JSON-RPC over POST has no use for both at once).

use super::{Tls, announce};
use async_trait::async_trait;
use pingora_core::apps::{HttpPersistentSettings, HttpServerApp, ReusedHttpStream};
use pingora_core::connectors::http::Connector;
use pingora_core::listeners::tls::TlsSettings;
use pingora_core::protocols::http::ServerSession;
use pingora_core::server::{Server, ShutdownWatch};
use pingora_core::services::listening::Service;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_http::RequestHeader;
use std::net::SocketAddr;
use std::sync::Arc;

/// Serves until the process is killed.
pub fn serve(upstream: SocketAddr, threads: usize, tls: Option<Tls>) -> anyhow::Result<()> {
    let addr = match &tls {
        Some(tls) => tls.listen,
        None => super::free_port()?,
    };
    let conf = super::pingora_conf(threads);
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let app = PassThrough {
        connector: Connector::new(None),
        peer: HttpPeer::new(upstream, false, String::new()),
    };
    let mut service = Service::new("pass-through".to_owned(), app);
    match tls {
        None => service.add_tcp(&addr.to_string()),
        Some(tls) => {
            let mut settings = TlsSettings::intermediate(&tls.certificate, &tls.key)?;
            settings.enable_h2();
            service.add_tls_with_settings(&addr.to_string(), None, settings);
        }
    }
    server.add_service(service);
    announce(addr)?;
    server.run_forever()
}

struct PassThrough {
    connector: Connector,
    peer: HttpPeer,
}

#[async_trait]
impl HttpServerApp for PassThrough {
    async fn process_new_http(
        self: &Arc<Self>,
        mut downstream: ServerSession,
        shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        if !downstream.read_request().await.ok()? {
            return None;
        }
        downstream.set_keepalive(if *shutdown.borrow() { None } else { Some(60) });
        if let Err(error) = self.forward(&mut downstream).await {
            if downstream.response_written().is_none() {
                downstream.respond_error(502).await.ok()?;
            }
            drop(error);
            return None;
        }
        let settings = HttpPersistentSettings::for_session(&downstream);
        let stream = downstream.finish().await.ok()??;
        Some(ReusedHttpStream::from_reusable_stream(stream, settings))
    }
}

impl PassThrough {
    async fn forward(&self, downstream: &mut ServerSession) -> pingora_core::Result<()> {
        let (mut upstream, _reused) = self.connector.get_http_session(&self.peer).await?;
        upstream
            .write_request_header(Box::new(http1(downstream.req_header())?))
            .await?;
        while let Some(piece) = downstream.read_request_body().await? {
            upstream.write_request_body(piece, false).await?;
        }
        upstream.finish_request_body().await?;
        upstream.read_response_header().await?;
        let head = upstream.response_header().cloned();
        if let Some(head) = head {
            downstream.write_response_header(Box::new(head)).await?;
        }
        while let Some(piece) = upstream.read_response_body().await? {
            downstream.write_response_body(piece, false).await?;
        }
        downstream
            .write_response_body(bytes::Bytes::new(), true)
            .await?;
        self.connector
            .release_http_session(upstream, &self.peer, None)
            .await;
        Ok(())
    }
}

/// The head for the upstream, which speaks HTTP/1.1 whatever the client speaks.
fn http1(head: &RequestHeader) -> pingora_core::Result<RequestHeader> {
    let mut head = head.clone();
    if head.version == http::Version::HTTP_2 {
        head.set_version(http::Version::HTTP_11);
        if let Some(host) = head.uri.authority().map(ToString::to_string) {
            head.insert_header(http::header::HOST, host)?;
        }
    }
    Ok(head)
}
