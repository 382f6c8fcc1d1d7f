//! A real `weir-runner` in a folder of its own, and what tests do with it.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(
    clippy::print_stderr,
    reason = "the words are for whoever reads the output of a test"
)]

pub mod bombs;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use domain::{ServerId, TenantId};
use futures_util::StreamExt;
use futures_util::stream;
use runner_api::{Runner as _, *};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Root file systems are built once and shared by all tests.
fn rootfs_dir() -> PathBuf {
    // Where the other scripts keep what outlives a checkout.
    std::env::var_os("WEIR_CACHE")
        .map_or_else(|| "/var/cache/weir".into(), PathBuf::from)
        .join("rootfs")
}

/// True if sandboxes can run here; says loudly when not, and fails where that must not be.
pub fn possible() -> bool {
    let missing = [
        (!nix::unistd::geteuid().is_root()).then_some("root"),
        (!Path::new("/usr/bin/runsc").exists() && !Path::new("/usr/local/bin/runsc").exists())
            .then_some("runsc"),
        (!Path::new("/usr/sbin/nft").exists()).then_some("nft"),
    ];
    let missing: Vec<_> = missing.into_iter().flatten().collect();
    if missing.is_empty() {
        return true;
    }
    assert!(
        std::env::var_os("WEIR_KIT_REQUIRED").is_none(),
        "tests in real sandboxes need {missing:?}"
    );
    eprintln!("SKIPPED: tests in real sandboxes need {missing:?}");
    false
}

pub struct Rig {
    child: Child,
    pub dir: tempfile::TempDir,
    pub client: Client,
    args: Vec<String>,
}

impl Rig {
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    pub async fn start_with(args: &[&str]) -> Self {
        let dir = Self::folder();
        Self::start_in(dir, args).await
    }

    /// With so many MiB of disk for its state.
    pub async fn start_on_a_disk_of(mib: u32) -> Self {
        let dir = Self::folder();
        let size = format!("size={mib}m");
        let (state, flags) = (dir.path().join("state"), nix::mount::MsFlags::empty());
        nix::mount::mount(
            Some("disk"),
            &state,
            Some("tmpfs"),
            flags,
            Some(size.as_str()),
        )
        .expect("mounted");
        Self::start_in(dir, &[]).await
    }

    fn folder() -> tempfile::TempDir {
        let program = Path::new(env!("CARGO_BIN_EXE_weir-runner"));
        let dir = weir_tests::runner::folder(program, "weir-runner-test");
        std::fs::create_dir_all(dir.path().join("state")).expect("made");
        dir
    }

    async fn start_in(dir: tempfile::TempDir, args: &[&str]) -> Self {
        build_rootfs();
        std::os::unix::fs::symlink(rootfs_dir(), dir.path().join("state/rootfs")).expect("linked");
        let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
        let child = spawn(dir.path(), &args);
        let client = Client::new(dir.path().join("run/runner.sock"));
        let runner = Self {
            child,
            dir,
            client,
            args,
        };
        runner.wait_ready().await;
        runner
    }

    async fn wait_ready(&self) {
        until("the runner answers", Duration::from_secs(30), || async {
            self.client.doctor().await.is_ok()
        })
        .await;
    }

    /// kill -9, and again from the start.
    pub async fn kill_and_start(&mut self) {
        self.kill();
        self.start_again().await;
    }

    /// kill -9.
    pub fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("waited");
    }

    /// Again from the start, after its end.
    pub async fn start_again(&mut self) {
        self.child = spawn(self.dir.path(), &self.args);
        self.wait_ready().await;
    }

    /// Ends it in order. Its sandboxes go on.
    pub async fn stop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.pid()).expect("a pid"));
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("it runs");
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.child.try_wait().expect("our own child").is_none() {
            assert!(Instant::now() < deadline, "the runner does not end");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The same with other arguments.
    pub async fn kill_and_start_with(&mut self, args: &[&str]) {
        self.args = args.iter().map(|a| (*a).to_owned()).collect();
        self.kill_and_start().await;
    }

    /// Ends the runner and all its sandboxes.
    pub fn purge(&mut self) -> bool {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Sandboxes outlive the daemon on purpose; a test's do not.
        let program = env!("CARGO_BIN_EXE_weir-runner");
        let purge = Command::new(program)
            .args(["--state"])
            .arg(self.dir.path().join("state"))
            .arg("--run")
            .arg(self.dir.path().join("run"))
            .arg("purge")
            .status();
        purge.is_ok_and(|s| s.success())
    }

    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Uploads, builds, and makes a server.
    pub async fn deploy(
        &self,
        bundle: Vec<u8>,
        change: impl FnOnce(&mut ServerSpec),
    ) -> ServerSpec {
        self.deploy_for(&tenant(), bundle, change).await
    }

    /// The same for any tenant.
    pub async fn deploy_for(
        &self,
        tenant: &TenantId,
        bundle: Vec<u8>,
        change: impl FnOnce(&mut ServerSpec),
    ) -> ServerSpec {
        let info = self
            .put_for(tenant, bundle)
            .await
            .expect("the bundle is taken");
        self.build(&info).await.expect("the layer is built");
        let mut spec: ServerSpec = serde_json::from_value(json!({
            "id": "srv", "tenant": info.tenant, "bundle": info.id, "runtime": info.runtime,
        }))
        .expect("a spec");
        change(&mut spec);
        self.client
            .put_server(spec.clone())
            .await
            .expect("the server is taken");
        spec
    }

    pub async fn put(&self, bundle: Vec<u8>) -> Result<BundleInfo, RunnerError> {
        self.put_for(&tenant(), bundle).await
    }

    async fn put_for(&self, tenant: &TenantId, bundle: Vec<u8>) -> Result<BundleInfo, RunnerError> {
        let chunks: Vec<_> = bundle
            .chunks(100_000)
            .map(|c| Ok(Bytes::copy_from_slice(c)))
            .collect();
        self.client
            .put_bundle(tenant, stream::iter(chunks).boxed())
            .await
    }

    pub async fn build(&self, info: &BundleInfo) -> Result<LayerInfo, RunnerError> {
        let request = BuildRequest {
            tenant: info.tenant.clone(),
            bundle: info.id.clone(),
            allow_sdist: false,
        };
        let mut events = self.client.build(request).await?;
        while let Some(event) = events.next().await {
            match event? {
                BuildEvent::Done { layer } => return Ok(layer),
                BuildEvent::Output { line } => eprintln!("  {line}"),
                BuildEvent::Stage { .. } => {}
            }
        }
        panic!("a build ended without a word");
    }

    pub async fn lease(
        &self,
        spec: &ServerSpec,
        session: Option<&str>,
    ) -> Result<Lease, RunnerError> {
        lease_by(&self.client, spec, session).await
    }

    /// One call of a tool over a new lease, as a client without sessions makes it.
    pub async fn call(
        &self,
        spec: &ServerSpec,
        tool: &str,
        arguments: Value,
    ) -> Result<Value, String> {
        call_by(&self.client, spec, tool, arguments).await
    }

    pub async fn sandboxes(&self) -> Vec<SandboxStats> {
        let servers = self.client.servers(None).await.expect("servers");
        servers.into_iter().flat_map(|s| s.sandboxes).collect()
    }

    /// Waits until a sandbox of a server answers, however often it has to begin anew.
    pub async fn settled(&self, spec: &ServerSpec) {
        until("it answers again", Duration::from_secs(60), || async {
            self.call(spec, "run", json!({"code": "result = 1"}))
                .await
                .is_ok()
        })
        .await;
    }

    pub async fn logs(&self, spec: &ServerSpec) -> Vec<LogLine> {
        let query = LogQuery {
            tenant: spec.tenant.clone(),
            server: spec.id.clone(),
            tail: 10_000,
            follow: false,
        };
        let lines = self.client.logs(query).await.expect("logs");
        lines.map(|line| line.expect("a line")).collect().await
    }

    /// Events that are there after a number.
    pub async fn events(&self) -> Vec<Event> {
        let mut events = self.client.events(0).await.expect("events");
        let mut all = Vec::new();
        while let Ok(Some(Ok(event))) =
            tokio::time::timeout(Duration::from_millis(300), events.next()).await
        {
            all.push(event);
        }
        all
    }
}

async fn lease_by(
    client: &Client,
    spec: &ServerSpec,
    session: Option<&str>,
) -> Result<Lease, RunnerError> {
    let session = session.map(|s| SessionKey::parse(s).expect("a key"));
    let request = LeaseRequest {
        tenant: spec.tenant.clone(),
        server: spec.id.clone(),
        session,
        wait_ms: 60_000,
    };
    client.lease(request).await
}

/// One call of a tool over a new lease of this client's.
pub async fn call_by(
    client: &Client,
    spec: &ServerSpec,
    tool: &str,
    arguments: Value,
) -> Result<Value, String> {
    let lease = lease_by(client, spec, None)
        .await
        .map_err(|e| e.to_string())?;
    let result = tokio::select! {
        result = call_tool(&lease, tool, arguments) => result,
        gone = client.gone(&lease.id) => Err(format!("gone: {gone:?}")),
    };
    client
        .release(&lease.id, false)
        .await
        .map_err(|e| e.to_string())?;
    result
}

impl Drop for Rig {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log =
                std::fs::read_to_string(self.dir.path().join("runner.log")).unwrap_or_default();
            eprintln!("--- the runner's log\n{log}");
        }
        if !self.purge() {
            eprintln!("sandboxes of a test are left");
        }
        // Where none is mounted, nothing happens.
        let _ = nix::mount::umount2(&self.state(), nix::mount::MntFlags::MNT_DETACH);
    }
}

fn spawn(dir: &Path, args: &[String]) -> Child {
    let log = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(dir.join("runner.log"))
        .expect("a log");
    Command::new(env!("CARGO_BIN_EXE_weir-runner"))
        .arg("--state")
        .arg(dir.join("state"))
        .arg("--run")
        .arg(dir.join("run"))
        .arg("serve")
        .args(args)
        .env("RUST_LOG", "info")
        .stdin(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("the runner starts")
}

/// Takes a minute or two each on a new machine, and nothing afterwards.
fn build_rootfs() {
    let dir = rootfs_dir();
    let state = dir.parent().expect("a parent");
    let built = Command::new(env!("CARGO_BIN_EXE_weir-runner"))
        .arg("--state")
        .arg(state)
        .args(["rootfs", "build"])
        .stderr(Stdio::null())
        .status();
    assert!(
        built.is_ok_and(|s| s.success()),
        "the root file systems cannot be built; try: weir-runner --state {} rootfs build",
        state.display()
    );
}

pub fn tenant() -> TenantId {
    TenantId::parse("acme").expect("an id")
}

pub fn server_id(text: &str) -> ServerId {
    ServerId::parse(text).expect("an id")
}

/// A deadline, longer where the processor is emulated (`WEIR_PATIENCE` times).
pub fn patient(max: Duration) -> Duration {
    max * env_or("WEIR_PATIENCE", 1)
}

/// Polls a condition with a deadline.
pub async fn until<F: Future<Output = bool>>(
    what: &str,
    max: Duration,
    mut condition: impl FnMut() -> F,
) {
    let max = patient(max);
    let deadline = Instant::now() + max;
    while !condition().await {
        assert!(Instant::now() < deadline, "not within {max:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A number from the environment.
pub fn env_or(name: &str, default: u32) -> u32 {
    let given = std::env::var(name).ok();
    given.and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// The `p`-th of a hundred of these times.
pub fn at(times: &[Duration], p: usize) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[(times.len() * p / 100).min(times.len() - 1)]
}

pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// A gzipped tar of these files.
pub fn tarball(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (path, content) in files {
        tar.extend(tar_header(path, content.len() as u64, b'0', ""));
        tar.extend(content.as_bytes());
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    gzip(&tar)
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("compressed");
    encoder.finish().expect("compressed")
}

/// One POSIX header.
pub fn tar_header(path: &str, size: u64, kind: u8, link: &str) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..path.len().min(100)].copy_from_slice(&path.as_bytes()[..path.len().min(100)]);
    header[100..108].copy_from_slice(b"0000644\0");
    header[108..116].copy_from_slice(b"0000000\0");
    header[116..124].copy_from_slice(b"0000000\0");
    header[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    header[136..148].copy_from_slice(b"00000000000\0");
    header[156] = kind;
    header[157..157 + link.len()].copy_from_slice(link.as_bytes());
    header[257..265].copy_from_slice(b"ustar\x0000");
    checksum(&mut header);
    header
}

pub fn checksum(header: &mut [u8]) {
    header[148..156].fill(b' ');
    let sum: u32 = header[..512].iter().map(|b| u32::from(*b)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

/// A request as any HTTP client makes it; gives status, the session id, and the body's JSON (also out of SSE).
pub async fn post(
    lease: &Lease,
    session: Option<&str>,
    body: &Value,
) -> Result<(u16, Option<String>, Value), String> {
    let text = body.to_string();
    let session = session
        .map(|s| format!("Mcp-Session-Id: {s}\r\n"))
        .unwrap_or_default();
    // The MCP SDK's own guard takes only local names in Host.
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2025-06-18\r\nConnection: close\r\n{session}Content-Length: {}\r\n\r\n{text}",
        lease.address.port(),
        text.len()
    );
    let exchange = async {
        let mut stream = TcpStream::connect(lease.address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        // Node keeps a connection for 5 s after the end of a chunked body, whatever it was asked.
        let mut buffer = [0; 8192];
        while !answer.ends_with(b"\r\n0\r\n\r\n") {
            match stream.read(&mut buffer).await? {
                0 => break,
                count => answer.extend(&buffer[..count]),
            }
        }
        std::io::Result::Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = tokio::time::timeout(patient(Duration::from_secs(60)), exchange)
        .await
        .map_err(|_| "no answer")?
        .map_err(|e| e.to_string())?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no head")?;
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|s| s.parse().ok())
        .ok_or("no status")?;
    let find = |name: &str| {
        head.lines().find_map(|l| {
            l.to_ascii_lowercase()
                .strip_prefix(name)
                .map(|v| v.trim().to_owned())
        })
    };
    let json = body
        .lines()
        .map(|l| l.strip_prefix("data: ").unwrap_or(l))
        .find_map(|l| {
            serde_json::from_str::<Value>(l)
                .ok()
                .filter(Value::is_object)
        });
    Ok((status, find("mcp-session-id:"), json.unwrap_or(Value::Null)))
}

/// Opens a session.
pub async fn initialize(lease: &Lease) -> Result<Option<String>, String> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}});
    let (status, session, answer) = post(lease, None, &body).await?;
    if status != 200 || answer["result"]["serverInfo"].is_null() {
        return Err(format!("initialize: {status} {answer}"));
    }
    let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    post(lease, session.as_deref(), &done).await?;
    Ok(session)
}

/// Opens a session, calls a tool, gives its result.
pub async fn call_tool(lease: &Lease, tool: &str, arguments: Value) -> Result<Value, String> {
    let session = initialize(lease).await?;
    let body = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
    let (status, _, answer) = post(lease, session.as_deref(), &body).await?;
    if status != 200 || answer["result"].is_null() {
        return Err(format!("tools/call: {status} {answer}"));
    }
    Ok(answer["result"].clone())
}

/// The text of a tool's result.
pub fn text(result: &Value) -> String {
    result["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// The seed's server.
pub const SEED_SERVER: &str = include_str!("../../../tests/fixtures/hosted/seed/server.py");

/// The seed's requirements.
pub const SEED_REQUIREMENTS: &str =
    include_str!("../../../tests/fixtures/hosted/seed/requirements.txt");

/// A server in plain Python without dependencies: starts in a fraction of the time, and runs what it is told.
/// `run` executes Python in the server's process and gives back `result`.
pub const PROBE_SERVER: &str = include_str!("probe.py");

pub fn probe_bundle() -> Vec<u8> {
    tarball(&[
        ("server.py", PROBE_SERVER),
        ("requirements.txt", "# nothing\n"),
    ])
}

/// The folder of a sandbox's control group; of one controller, where each has a tree of its own (version 1).
pub fn group_of(sandbox: &SandboxId, controller: &str) -> PathBuf {
    let root = Path::new("/sys/fs/cgroup");
    let own = root.join(controller);
    let tree = if root.join("cgroup.controllers").exists() {
        root
    } else {
        own.as_path()
    };
    let parents = std::fs::read_dir(tree).expect("a tree of groups").flatten();
    parents
        .map(|parent| parent.path().join(sandbox.as_str()))
        .find(|group| group.is_dir())
        .unwrap_or_else(|| panic!("no group of {controller} for {sandbox}"))
}

/// What one of these files says: the names differ between the versions.
pub fn said(sandbox: &SandboxId, controller: &str, names: [&str; 2]) -> String {
    let group = group_of(sandbox, controller);
    let file = names.iter().map(|name| group.join(name));
    let file = file.clone().find(|file| file.exists());
    let file = file.unwrap_or_else(|| panic!("none of {names:?} in {}", group.display()));
    std::fs::read_to_string(file)
        .expect("readable")
        .trim()
        .to_owned()
}

/// The cores of a list as the kernel writes it: `0-1,3`.
pub fn cores_in(list: &str) -> Vec<usize> {
    let ranges = list.split(',').map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.parse::<usize>().expect("a core");
        number(first)..=number(last)
    });
    ranges.flatten().collect()
}
