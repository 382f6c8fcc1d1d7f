//! How long starts take, against a running daemon: percentiles over many runs of each way to begin.
//!
//! Each figure is from asking for a sandbox to the end of an MCP `initialize` in it, over the runner's socket.

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use domain::{ServerId, TenantId};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{StreamExt as _, stream};
use runner_api::{
    BuildEvent, BuildRequest, BundleInfo, Client, IdleTimes, Isolation, Lease, LeaseRequest,
    Runner as _, Runtime, Scale, SecretName, SecretValue, ServerSpec,
};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const PYTHON: &[(&str, &str)] = &[
    ("server.py", include_str!("../bench/server.py")),
    (
        "requirements.txt",
        include_str!("../bench/requirements.txt"),
    ),
];
const NODE: &[(&str, &str)] = &[
    ("server.js", include_str!("../bench/server.js")),
    ("package.json", include_str!("../bench/package.json")),
];

/// Measures one runtime and says each line as it is known.
///
/// # Errors
/// Whatever failed.
pub async fn run(
    socket: &Path,
    runtime: Runtime,
    runs: u32,
    say: &mut dyn FnMut(&str),
) -> Result<()> {
    let bench = Bench {
        client: Client::new(socket),
        tenant: TenantId::parse("bench")?,
        server: ServerId::parse(&format!("bench-{}", runtime.as_str()))?,
    };
    let began = Instant::now();
    let info = bench.upload(runtime).await?;
    let cached = bench.build(&info).await?;
    say(&format!(
        "{:<7} {:<26} {:>7.0} ms",
        runtime.as_str(),
        if cached {
            "build (was cached)"
        } else {
            "upload and first build"
        },
        ms(began.elapsed())
    ));
    let spec: ServerSpec = serde_json::from_value(
        json!({"id": bench.server, "tenant": bench.tenant, "bundle": info.id, "runtime": runtime}),
    )?;
    let rows: [(&str, Isolation, bool, u32); 4] = [
        ("cold, cached layer", Isolation::Call, true, 0),
        ("restore", Isolation::Call, false, 0),
        ("warm pool", Isolation::Call, false, 1),
        ("thaw", Isolation::Shared, false, 0),
    ];
    for (name, isolation, secret, min) in rows {
        let scale = Scale {
            min,
            ..Scale::default()
        };
        let freeze_after_s = u32::from(name == "thaw");
        let idle = IdleTimes {
            freeze_after_s,
            stop_after_s: 0,
        };
        bench
            .client
            .put_server(ServerSpec {
                isolation,
                scale,
                idle,
                ..spec.clone()
            })
            .await?;
        // A server with secrets has no checkpoint: every start of it is cold.
        bench.secret(secret).await?;
        bench
            .client
            .restart_server(&bench.tenant, &bench.server)
            .await?;
        bench.once().await?;
        let mut times = Vec::new();
        for _ in 0..runs {
            // The pool fills up again, or the sandbox freezes.
            tokio::time::sleep(Duration::from_millis(if min > 0 || freeze_after_s > 0 {
                1800
            } else {
                100
            }))
            .await;
            times.push(bench.once().await?);
        }
        times.sort_unstable();
        let at = |p: usize| ms(times[(times.len() * p / 100).min(times.len() - 1)]);
        say(&format!(
            "{:<7} {name:<26} p50 {:>6.0} ms  p90 {:>6.0} ms  max {:>6.0} ms  ({runs} runs)",
            runtime.as_str(),
            at(50),
            at(90),
            at(100)
        ));
    }
    bench
        .client
        .remove_server(&bench.tenant, &bench.server)
        .await?;
    Ok(())
}

struct Bench {
    client: Client,
    tenant: TenantId,
    server: ServerId,
}

impl Bench {
    async fn upload(&self, runtime: Runtime) -> Result<BundleInfo> {
        let files = match runtime {
            Runtime::Python => PYTHON,
            Runtime::Node => NODE,
        };
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        for (name, content) in files {
            gzip.write_all(&header(name, content.len()))?;
            gzip.write_all(content.as_bytes())?;
            gzip.write_all(&vec![
                0;
                content.len().next_multiple_of(512) - content.len()
            ])?;
        }
        gzip.write_all(&[0; 1024])?;
        let bytes = Bytes::from(gzip.finish()?);
        Ok(self
            .client
            .put_bundle(&self.tenant, stream::iter([Ok(bytes)]).boxed())
            .await?)
    }

    async fn build(&self, info: &BundleInfo) -> Result<bool> {
        let request = BuildRequest {
            tenant: self.tenant.clone(),
            bundle: info.id.clone(),
            allow_sdist: false,
        };
        let mut events = self.client.build(request).await?;
        while let Some(event) = events.next().await {
            if let BuildEvent::Done { layer } = event? {
                return Ok(layer.cached);
            }
        }
        bail!("the build ended without a word")
    }

    async fn secret(&self, wanted: bool) -> Result<()> {
        let name = SecretName::parse("BENCH")?;
        if wanted {
            let value = SecretValue::new(b"x".to_vec()).context("a value")?;
            self.client
                .set_secret(&self.tenant, &self.server, &name, value)
                .await?;
        } else if !self
            .client
            .list_secrets(&self.tenant, &self.server)
            .await?
            .is_empty()
        {
            self.client
                .remove_secret(&self.tenant, &self.server, &name)
                .await?;
        }
        Ok(())
    }

    async fn once(&self) -> Result<Duration> {
        let began = Instant::now();
        let request = LeaseRequest {
            tenant: self.tenant.clone(),
            server: self.server.clone(),
            session: None,
            wait_ms: 60_000,
        };
        let lease = self.client.lease(request).await?;
        let answered = initialize(&lease).await;
        let took = began.elapsed();
        self.client.release(&lease.id, false).await?;
        answered.map(|()| took)
    }
}

async fn initialize(lease: &Lease) -> Result<()> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"}}})
    .to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        lease.address.port(),
        body.len()
    );
    let mut stream = TcpStream::connect(lease.address).await?;
    stream.write_all(request.as_bytes()).await?;
    // Up to the answer, not to the end of the connection: some servers keep it open for a while.
    let mut answer = Vec::new();
    let mut buffer = [0; 8192];
    while !String::from_utf8_lossy(&answer).contains("serverInfo") {
        match stream.read(&mut buffer).await? {
            0 => bail!("no answer to initialize"),
            count if answer.len() < 64 * 1024 => answer.extend(&buffer[..count]),
            _ => bail!("an endless answer to initialize"),
        }
    }
    Ok(())
}

fn header(name: &str, size: usize) -> [u8; 512] {
    let mut header = [0; 512];
    let mut put = |at: usize, text: &[u8]| header[at..at + text.len()].copy_from_slice(text);
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|b| u32::from(*b)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
