//! How long starts and calls take, against a running daemon: percentiles over many runs.
//!
//! A start is from asking for a sandbox to the answer to an MCP `initialize` in it, over the runner's socket. Calls are
//! those of one tool, against the same server without a sandbox, in windows that alternate.

mod calls;
mod native;

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use bytes::Bytes;
use domain::{ServerId, TenantId};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{StreamExt as _, stream};
use runner_api::{
    BuildEvent, BuildRequest, BundleInfo, Client, EventKind, IdleTimes, Isolation, LayerInfo,
    Lease, LeaseRequest, Moment, Runner as _, Runtime, SandboxState, Scale, SecretName,
    SecretValue, ServerSpec,
};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use self::calls::Caller;
use self::native::Native;
use crate::paths::{Paths, tenant_key};
use crate::rootfs;

/// A sandbox that ends, or freezes, does so within a few seconds.
const REST_MAX: Duration = Duration::from_secs(30);

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

/// Pairs of windows of calls, and calls in each.
const WINDOWS: usize = 10;
const WINDOW_CALLS: usize = 100;
/// Of fewer runs no percentiles are told.
const RUNS_MIN: usize = 10;

/// What is measured, and how often.
pub struct Plan<'a> {
    /// The daemon's socket.
    pub socket: &'a Path,
    /// Its state folder.
    pub state: &'a Path,
    /// Runs of each start.
    pub runs: u32,
    /// First builds.
    pub builds: u32,
}

/// Measures one runtime and says each line as it is known.
///
/// # Errors
/// Whatever failed.
pub async fn run(plan: &Plan<'_>, runtime: Runtime, say: &mut dyn FnMut(&str)) -> Result<()> {
    let mut say = |what: &str, figures: &str| {
        say(&format!("{:<7} {what:<26} {figures}", runtime.as_str()));
    };
    let mut times = Vec::new();
    for n in 0..plan.builds {
        times.push(first_build(plan, runtime, n).await?);
    }
    if !times.is_empty() {
        say("upload and first build", &percentiles(&times));
    }
    let bench = Bench::new(plan, runtime, "bench")?;
    let began_ms = crate::events::now_ms();
    let info = bench.upload(runtime).await?;
    let layer = bench.build(&info).await?;
    let spec: ServerSpec = serde_json::from_value(
        json!({"id": bench.server, "tenant": bench.tenant, "bundle": info.id, "runtime": runtime}),
    )?;
    // With what is left out filled in.
    let spec = spec
        .check()
        .map_err(|_| anyhow!("the spec is within limits"))?
        .get()
        .clone();
    for (name, way) in WAYS {
        let times = bench.starts(&spec, *way, plan.runs).await?;
        say(name, &percentiles(&times));
    }
    for (name, way) in [
        ("thaw, the next call", Way::Thaw),
        ("checkpointed, the next call", Way::Wake),
    ] {
        let times = bench.wakes(&spec, way, plan.runs).await?;
        say(name, &percentiles(&times));
    }
    say(
        "checkpoint of an idle one",
        &bench.checkpoints(began_ms).await?,
    );
    bench.calls(plan, &spec, &info, &layer, &mut say).await?;
    bench
        .client
        .remove_server(&bench.tenant, &bench.server)
        .await?;
    Ok(())
}

/// A way to begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Cold,
    Restore,
    Warm,
    Thaw,
    Wake,
}

impl Way {
    /// One sandbox that many use, and that is at rest between two of them.
    fn keeps_one(self) -> bool {
        matches!(self, Self::Thaw | Self::Wake)
    }
}

const WAYS: &[(&str, Way)] = &[
    ("cold, cached layer", Way::Cold),
    ("restore", Way::Restore),
    ("warm pool", Way::Warm),
    ("thaw", Way::Thaw),
    ("checkpointed", Way::Wake),
];

/// From the first byte of the upload to the layer, for a tenant who has none.
async fn first_build(plan: &Plan<'_>, runtime: Runtime, n: u32) -> Result<Duration> {
    let tenant = format!("bench-{}-{n}", std::process::id());
    let bench = Bench::new(plan, runtime, &tenant)?;
    let began = Instant::now();
    let info = bench.upload(runtime).await?;
    let layer = bench.build(&info).await?;
    let took = began.elapsed();
    // Nobody else has this tenant's name, and no server of it exists.
    for kind in ["layers", "bundles"] {
        std::fs::remove_dir_all(plan.state.join(kind).join(tenant_key(&bench.tenant)))?;
    }
    ensure!(!layer.cached, "the layer was there already");
    Ok(took)
}

struct Bench {
    client: Client,
    tenant: TenantId,
    server: ServerId,
}

impl Bench {
    fn new(plan: &Plan<'_>, runtime: Runtime, tenant: &str) -> Result<Self> {
        Ok(Self {
            client: Client::new(plan.socket),
            tenant: TenantId::parse(tenant)?,
            server: ServerId::parse(&format!("bench-{}", runtime.as_str()))?,
        })
    }

    async fn starts(&self, spec: &ServerSpec, way: Way, runs: u32) -> Result<Vec<Duration>> {
        self.prepare(spec, way).await?;
        self.once().await?;
        let mut times = Vec::new();
        for _ in 0..runs {
            self.until_at_rest(way).await?;
            times.push(self.once().await?);
        }
        Ok(times)
    }

    /// The next call of a client that has a session already, in a sandbox that stands still.
    async fn wakes(&self, spec: &ServerSpec, way: Way, runs: u32) -> Result<Vec<Duration>> {
        self.prepare(spec, way).await?;
        let lease = self.client.lease(self.request()).await?;
        let mut caller = Caller::open(lease.address).await?;
        self.client.release(&lease.id, false).await?;
        let mut times = Vec::new();
        for _ in 0..runs {
            // With a connection nothing goes to the disk.
            if way == Way::Wake {
                caller.hang_up().await?;
            }
            self.until_at_rest(way).await?;
            let began = Instant::now();
            let lease = self.client.lease(self.request()).await?;
            if way == Way::Wake {
                caller.again(lease.address).await?;
            }
            caller.call().await?;
            times.push(began.elapsed());
            self.client.release(&lease.id, false).await?;
        }
        Ok(times)
    }

    /// What checkpoints of idle sandboxes have taken since a time.
    async fn checkpoints(&self, since_ms: u64) -> Result<String> {
        let mut events = self.client.events(0).await?;
        let (mut times, mut size) = (Vec::new(), 0);
        // The stream has no end; what happened already comes at once.
        let quiet = Duration::from_millis(500);
        while let Ok(Some(event)) = tokio::time::timeout(quiet, events.next()).await {
            let event = event?;
            if event.server == self.server
                && event.at_unix_ms >= since_ms
                && let EventKind::Checkpointed {
                    bytes,
                    of: Moment::Idle,
                    took_ms,
                } = event.kind
            {
                times.push(Duration::from_millis(took_ms));
                size = bytes;
            }
        }
        ensure!(!times.is_empty(), "no idle sandbox was checkpointed");
        Ok(format!(
            "{}  {:.1} MiB on disk",
            percentiles(&times),
            size as f64 / (1 << 20) as f64
        ))
    }

    /// The server as this way to begin wants it, without a sandbox from before.
    async fn prepare(&self, spec: &ServerSpec, way: Way) -> Result<()> {
        let isolation = if way.keeps_one() {
            Isolation::Shared
        } else {
            Isolation::Call
        };
        let scale = Scale {
            min: u32::from(way == Way::Warm),
            ..Scale::default()
        };
        let idle = IdleTimes {
            freeze_after_s: u32::from(way.keeps_one()),
            checkpoint_after_s: u32::from(way == Way::Wake),
            stop_after_s: 0,
            forget_after_s: 0,
        };
        self.client
            .put_server(ServerSpec {
                isolation,
                scale,
                idle,
                ..spec.clone()
            })
            .await?;
        // A server with secrets has no checkpoint: every start of it is cold.
        self.secret(way == Way::Cold).await?;
        self.client
            .restart_server(&self.tenant, &self.server)
            .await?;
        Ok(())
    }

    /// Until the last sandbox is gone, or the pool is full again, or the one sandbox stands still.
    async fn until_at_rest(&self, way: Way) -> Result<()> {
        let deadline = Instant::now() + REST_MAX;
        loop {
            let servers = self.client.servers(Some(&self.tenant)).await?;
            let states: Vec<_> = servers
                .iter()
                .filter(|s| s.server == self.server)
                .flat_map(|s| s.sandboxes.iter().map(|b| b.state))
                .collect();
            let rests = match way {
                Way::Cold | Way::Restore => states.is_empty(),
                Way::Warm => states == [SandboxState::Ready],
                Way::Thaw => states == [SandboxState::Frozen],
                Way::Wake => states == [SandboxState::Checkpointed],
            };
            if rests {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "the sandboxes do not come to rest"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Windows of calls: native, in a sandbox over one connection, and with a lease for each call as the gateway makes it.
    async fn calls(
        &self,
        plan: &Plan<'_>,
        spec: &ServerSpec,
        info: &BundleInfo,
        layer: &LayerInfo,
        say: &mut dyn FnMut(&str, &str),
    ) -> Result<()> {
        self.secret(false).await?;
        self.client.put_server(spec.clone()).await?;
        let paths = Paths {
            state: plan.state.to_owned(),
            run: plan.state.to_owned(),
        };
        let rootfs = rootfs::find(plan.state, spec.runtime)?.path;
        let app = paths.bundle(&self.tenant, &info.id).join("app");
        let deps = paths.layer(&self.tenant, &layer.id).join("deps");
        let native = Native::start(&rootfs, &app, &deps, spec).await?;
        let lease = self.client.lease(self.request()).await?;
        let mut outside = Caller::open(native.address(spec)).await?;
        let mut inside = Caller::open(lease.address).await?;
        let mut windows = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..=WINDOWS {
            let mut times = [Vec::new(), Vec::new(), Vec::new()];
            for _ in 0..WINDOW_CALLS {
                times[0].push(outside.call().await?);
            }
            for _ in 0..WINDOW_CALLS {
                times[1].push(inside.call().await?);
            }
            for _ in 0..WINDOW_CALLS {
                let began = Instant::now();
                let lease = self.client.lease(self.request()).await?;
                inside.call().await?;
                self.client.release(&lease.id, false).await?;
                times[2].push(began.elapsed());
            }
            for (all, window) in windows.iter_mut().zip(times) {
                all.push(window);
            }
        }
        self.client.release(&lease.id, false).await?;
        let names = [
            "call, native",
            "call, in a sandbox",
            "call, leased each time",
        ];
        // The first windows are for warming up.
        let native = windows[0].split_off(1);
        for (n, name) in names.iter().enumerate() {
            let own = if n == 0 {
                native.clone()
            } else {
                windows[n].split_off(1)
            };
            let ratio = |p| {
                let pairs = own.iter().zip(&native);
                let mut all: Vec<f64> = pairs.map(|(a, b)| at(a, p) / at(b, p)).collect();
                all.sort_by(f64::total_cmp);
                all[all.len() / 2]
            };
            let all = own.concat();
            let ratios = format!("x{:.2} x{:.2} of native", ratio(50), ratio(99));
            say(
                name,
                &format!(
                    "p50 {:>7.2} ms  p99 {:>7.2} ms  {ratios}  ({} calls)",
                    at(&all, 50),
                    at(&all, 99),
                    all.len()
                ),
            );
        }
        Ok(())
    }

    fn request(&self) -> LeaseRequest {
        LeaseRequest {
            tenant: self.tenant.clone(),
            server: self.server.clone(),
            session: None,
            wait_ms: 60_000,
        }
    }

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

    async fn build(&self, info: &BundleInfo) -> Result<LayerInfo> {
        let request = BuildRequest {
            tenant: self.tenant.clone(),
            bundle: info.id.clone(),
            allow_sdist: false,
        };
        let mut events = self.client.build(request).await?;
        while let Some(event) = events.next().await {
            if let BuildEvent::Done { layer } = event? {
                return Ok(layer);
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
        let lease = self.client.lease(self.request()).await?;
        let answered = initialize(&lease).await;
        let took = began.elapsed();
        self.client.release(&lease.id, false).await?;
        answered.map(|()| took)
    }
}

async fn initialize(lease: &Lease) -> Result<()> {
    let body = crate::mcp::initialize().to_string();
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

/// Each time by itself where there are too few for percentiles to say anything.
fn percentiles(times: &[Duration]) -> String {
    if times.len() < RUNS_MIN {
        let each: Vec<String> = times
            .iter()
            .map(|t| format!("{:.0}", t.as_secs_f64() * 1000.0))
            .collect();
        return format!("{} ms  (each run)", each.join(", "));
    }
    format!(
        "p50 {:>6.0} ms  p90 {:>6.0} ms  max {:>6.0} ms  ({} runs)",
        at(times, 50),
        at(times, 90),
        at(times, 100),
        times.len()
    )
}

/// The `p`-th percentile in milliseconds, by nearest rank: the smallest time that `p` of a hundred do not exceed.
fn at(times: &[Duration], p: usize) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    let rank = (times.len() * p).div_ceil(100).max(1);
    times
        .get(rank - 1)
        .map_or(0.0, |t| t.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(count: u64, p: usize, expected: f64) {
        let times: Vec<Duration> = (1..=count).rev().map(Duration::from_millis).collect();
        assert_eq!(at(&times, p), expected, "p{p} of {count}");
    }

    #[test]
    fn a_percentile_is_a_time_that_so_many_do_not_exceed() {
        for (count, p, expected) in [
            (0, 50, 0.0),
            (1, 50, 1.0),
            (1, 99, 1.0),
            (2, 50, 1.0),
            (2, 90, 2.0),
            (3, 50, 2.0),
            (20, 50, 10.0),
            (20, 90, 18.0),
            (20, 100, 20.0),
            (1000, 99, 990.0),
        ] {
            check(count, p, expected);
        }
    }

    #[test]
    fn few_runs_are_told_one_by_one() {
        let times = [11, 9].map(Duration::from_secs);
        assert_eq!(percentiles(&times), "11000, 9000 ms  (each run)");
        assert!(percentiles(&[Duration::from_secs(1); RUNS_MIN]).starts_with("p50"));
    }
}
