//! The connection under a client: HTTP/1.1 over plain TCP or TLS, or HTTP/2 over TLS. One call at a time on each.

use crate::wire::http::{Head, Reader};
use bytes::Bytes;
use h2::client::SendRequest;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// No call may take longer.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Room for what a server may send unasked over HTTP/2: whole bodies, so that flow control is never what is measured.
const H2_WINDOW_BYTES: u32 = 16 << 20;
/// An answer over HTTP/2 that is longer is an error.
const BODY_BYTES_MAX: usize = crate::wire::http::BODY_BYTES_MAX;

/// What is spoken to an endpoint.
#[derive(Clone, Debug, Default)]
pub enum Wire {
    /// HTTP/1.1 in the clear.
    #[default]
    Plain,
    /// HTTP/1.1 over TLS.
    Tls(Arc<ClientConfig>),
    /// HTTP/2 over TLS.
    Http2(Arc<ClientConfig>),
}

impl Wire {
    /// TLS to a server of our own, by its certificate and no other.
    pub fn tls(certificate: &Path, http2: bool) -> anyhow::Result<Wire> {
        let mut roots = RootCertStore::empty();
        for one in CertificateDer::pem_file_iter(certificate)? {
            roots.add(one?)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name: &[u8] = if http2 { b"h2" } else { b"http/1.1" };
        config.alpn_protocols = vec![name.to_vec()];
        let config = Arc::new(config);
        Ok(if http2 {
            Wire::Http2(config)
        } else {
            Wire::Tls(config)
        })
    }
}

/// What stays the same in all requests of a client.
pub struct Prepared {
    /// The HTTP/1.1 head up to `content-length`.
    pub head: Vec<u8>,
    /// The same for HTTP/2.
    pub request: http::Request<()>,
}

/// When a request went out, and the head of its answer. The answer's end is the caller's to note.
pub type Exchanged = (Instant, Head);

/// One open connection.
pub enum Link {
    /// HTTP/1.1.
    Http1(Box<Reader<Stream>>),
    /// HTTP/2.
    Http2(Box<Http2>),
}

impl Link {
    /// Connects.
    pub fn connect(addr: SocketAddr, wire: &Wire) -> io::Result<Link> {
        let tcp = connect(addr)?;
        Ok(match wire {
            Wire::Plain => Link::Http1(Box::new(Reader::new(Stream::Plain(tcp)))),
            Wire::Tls(config) => {
                let connection = ClientConnection::new(Arc::clone(config), server_name())
                    .map_err(io::Error::other)?;
                let mut stream = StreamOwned::new(connection, tcp);
                stream.conn.complete_io(&mut stream.sock)?;
                Link::Http1(Box::new(Reader::new(Stream::Tls(Box::new(stream)))))
            }
            Wire::Http2(config) => Link::Http2(Box::new(Http2::connect(tcp, config)?)),
        })
    }

    /// Sends one request and reads the whole answer. `request` is scratch space.
    pub fn exchange(
        &mut self,
        prepared: &Prepared,
        body: &[u8],
        request: &mut Vec<u8>,
        answer: &mut Vec<u8>,
    ) -> io::Result<Exchanged> {
        match self {
            Link::Http1(reader) => {
                request.clear();
                request.extend_from_slice(&prepared.head);
                request.extend_from_slice(
                    format!("content-length: {}\r\n\r\n", body.len()).as_bytes(),
                );
                request.extend_from_slice(body);
                let sent = Instant::now();
                reader.source().write_all(request)?;
                reader.source().flush()?;
                let head = reader.answer(answer)?.ok_or(io::ErrorKind::UnexpectedEof)?;
                Ok((sent, head))
            }
            Link::Http2(link) => link.exchange(prepared, body, answer),
        }
    }
}

fn connect(addr: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&addr, CONNECT_TIMEOUT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(CALL_TIMEOUT))?;
    stream.set_write_timeout(Some(CALL_TIMEOUT))?;
    Ok(stream)
}

/// Our own certificates are for this name.
fn server_name() -> ServerName<'static> {
    ServerName::try_from("localhost").expect("a valid name")
}

/// A byte stream, plain or encrypted.
pub enum Stream {
    /// TCP.
    Plain(TcpStream),
    /// TLS over TCP.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.read(buf),
            Stream::Tls(stream) => stream.read(buf),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.write(buf),
            Stream::Tls(stream) => stream.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(stream) => stream.flush(),
            Stream::Tls(stream) => stream.flush(),
        }
    }
}

/// An HTTP/2 connection with a runtime of its own, driven by the thread that calls.
pub struct Http2 {
    runtime: tokio::runtime::Runtime,
    send: SendRequest<Bytes>,
}

impl Http2 {
    fn connect(tcp: TcpStream, config: &Arc<ClientConfig>) -> io::Result<Http2> {
        tcp.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let handshake = async {
            let tcp = tokio::net::TcpStream::from_std(tcp)?;
            let tls = tokio_rustls::TlsConnector::from(Arc::clone(config))
                .connect(server_name(), tcp)
                .await?;
            if tls.get_ref().1.alpn_protocol() != Some(b"h2") {
                return Err(io::Error::other("the server does not speak HTTP/2"));
            }
            let (send, connection) = h2::client::Builder::new()
                .initial_window_size(H2_WINDOW_BYTES)
                .initial_connection_window_size(H2_WINDOW_BYTES)
                .handshake(tls)
                .await
                .map_err(io::Error::other)?;
            // Its end is seen by the next call.
            tokio::spawn(async move { drop(connection.await) });
            Ok(send)
        };
        let send = runtime.block_on(async {
            tokio::time::timeout(CONNECT_TIMEOUT, handshake)
                .await
                .map_err(|_| io::ErrorKind::TimedOut)?
        })?;
        Ok(Http2 { runtime, send })
    }

    fn exchange(
        &mut self,
        prepared: &Prepared,
        body: &[u8],
        answer: &mut Vec<u8>,
    ) -> io::Result<Exchanged> {
        answer.clear();
        let body = Bytes::copy_from_slice(body);
        let mut request = prepared.request.clone();
        request
            .headers_mut()
            .insert(http::header::CONTENT_LENGTH, body.len().into());
        let send = &mut self.send;
        let exchange = async {
            futures_ready(send).await?;
            let sent = Instant::now();
            let (response, mut stream) = send
                .send_request(request, false)
                .map_err(io::Error::other)?;
            stream.send_data(body, true).map_err(io::Error::other)?;
            let response = response.await.map_err(io::Error::other)?;
            let (parts, mut body) = response.into_parts();
            while let Some(piece) = body.data().await {
                let piece = piece.map_err(io::Error::other)?;
                if answer.len() + piece.len() > BODY_BYTES_MAX {
                    return Err(io::Error::other("body too large"));
                }
                answer.extend_from_slice(&piece);
                body.flow_control()
                    .release_capacity(piece.len())
                    .map_err(io::Error::other)?;
            }
            Ok((sent, head(&parts)))
        };
        self.runtime.block_on(async {
            tokio::time::timeout(CALL_TIMEOUT, exchange)
                .await
                .map_err(|_| io::ErrorKind::TimedOut)?
        })
    }
}

async fn futures_ready(send: &mut SendRequest<Bytes>) -> io::Result<()> {
    std::future::poll_fn(|context| send.poll_ready(context))
        .await
        .map_err(io::Error::other)
}

fn head(parts: &http::response::Parts) -> Head {
    let text = |name: &str| {
        parts
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned)
    };
    let media = text("content-type").unwrap_or_default();
    Head {
        status: parts.status.as_u16(),
        media: media
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase(),
        session: text("mcp-session-id"),
        ..Head::default()
    }
}
