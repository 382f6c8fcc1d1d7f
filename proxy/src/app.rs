//! The wiring: the one place that knows every room. It starts them, reloads them and stops them.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, bail};
use arc_swap::ArcSwap;
use audit_log::{AuditError, AuditLog, LogConfig};
use domain::{AuditMode, ListenerTls, ServerId};
use gateway::{Gateway, GatewayOptions, LinkOptions, PinSource, StdioEnd, TlsSlot};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::config::store::{self, Applied, Registry};
use crate::config::{self, COMPONENT_BYTES_MAX, ConfigErrors, Loaded, LogFormat, PROXY_SERVER};
use crate::descriptors;
use crate::hosting::{Joint, Plane};
use crate::otel::Traces;
use crate::pins::Keeper;
use crate::plugins::Plugins;

/// How often watched files are looked at. A look costs a few `stat` calls.
const WATCH_EVERY: Duration = Duration::from_millis(500);
/// A file that changed is read once two looks so far apart find the same: whoever writes it may not have ended.
const SETTLED_AFTER: Duration = Duration::from_millis(250);
/// A configuration that was refused is tried again after this, then after twice as long each time, up to the second.
const REFUSED_AGAIN: Duration = Duration::from_secs(3);
const REFUSED_AGAIN_MAX: Duration = Duration::from_secs(300);
/// Largest certificate or key file, in bytes.
const PEM_BYTES_MAX: u64 = 1 << 20;
/// Logs of processes that share a data folder.
const SHARED_LOGS_MAX: usize = 64;

/// What to run.
pub struct Start {
    /// The configuration.
    pub loaded: Loaded,
    /// Reads it again.
    pub reload: Box<dyn Fn() -> Result<Loaded, ConfigErrors> + Send + Sync>,
    /// Serve the one server at `/mcp`.
    pub single: bool,
    /// Several processes may use the same data folder, each with a log of its own.
    pub shared_data_dir: bool,
}

/// Runs a gateway until SIGTERM or SIGINT.
pub fn run(start: Start) -> anyhow::Result<ExitCode> {
    init_log(&start.loaded)?;
    note(&start.loaded);
    let files_max = descriptors::raise_open_files();
    let metrics = install_metrics()?;
    runtime()?.block_on(serve(start, metrics, files_max))
}

/// Runs `weir stdio`.
pub fn run_stdio(loaded: Loaded) -> anyhow::Result<ExitCode> {
    init_log(&loaded)?;
    note(&loaded);
    let runtime = runtime()?;
    let end = runtime.block_on(async {
        let audit = open_audit(&loaded, true)?;
        let traces = loaded.otlp.as_ref().map(Traces::start).transpose()?;
        let options = options(&loaded, audit.clone(), traces.as_ref(), true)?;
        let gateway = make_gateway(&loaded, options)?;
        acknowledge(&loaded.data_dir, Ok(loaded.plugin_generation));
        let stop = Arc::clone(&gateway);
        let mut signals = StopSignals::install()?;
        tokio::spawn(async move {
            signals.recv().await;
            stop.stop();
        });
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        let end = gateway::front_stdio(&gateway, Box::new(input), Box::new(output)).await;
        stop_traces(traces).await;
        close_audit(audit);
        anyhow::Ok(end)
    })?;
    // A read of standard input cannot be cancelled; the runtime must not wait for it.
    runtime.shutdown_background();
    match end {
        StdioEnd::Client => Ok(ExitCode::SUCCESS),
        other => bail!("{other}"),
    }
}

async fn serve(
    start: Start,
    metrics: PrometheusHandle,
    files_max: Option<u64>,
) -> anyhow::Result<ExitCode> {
    let loaded = &start.loaded;
    // A file may change as soon as it is said that Weir listens.
    let seen = stamps(&loaded.files_watched);
    let audit = open_audit(loaded, start.shared_data_dir)?;
    let traces = loaded.otlp.as_ref().map(Traces::start).transpose()?;
    // Processes that share a folder call their servers by one and the same name: their pins end with them.
    let keeper = (!start.shared_data_dir).then(|| Arc::new(Keeper::new(&loaded.data_dir)));
    let pins = keeper.clone();
    let options = GatewayOptions {
        pins: pins.map(|keeper| -> Arc<dyn PinSource> { keeper }),
        files_max,
        ..options(loaded, audit.clone(), traces.as_ref(), start.single)?
    };
    let gateway = make_gateway(loaded, options)?;
    let joint = Joint::new(&gateway, &loaded.desired)?;
    acknowledge(&loaded.data_dir, Ok(loaded.plugin_generation));
    // Before it is said that Weir listens: until then any of these would end it at once.
    let hangup = signal(SignalKind::hangup())?;
    let mut stop = StopSignals::install()?;
    let listener = bind(loaded.listen, "listen").await?;
    let address = listener.local_addr()?;
    gateway.bound_to(address.ip());
    let tls = loaded.desired.tls.as_ref().map(tls_slot).transpose()?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let admin = match loaded.admin_listen {
        Some(at) => Some(bind_admin(at, start.single && loaded.admin_is_default).await?),
        None => None,
    };
    if let Some(admin) = admin {
        say(&format!("admin on http://{}", admin.local_addr()?));
        let handle = metrics.clone();
        let page: gateway::AdminPage = Arc::new(move || handle.render());
        tokio::spawn(gateway::serve_admin(Arc::clone(&gateway), admin, page));
    }
    let plane = match &loaded.hosting {
        Some(hosting) => {
            let shown = format!("{scheme}://{address}");
            let plane = Plane::start(
                hosting,
                &loaded.data_dir,
                &gateway,
                &joint,
                &shown,
                audit.clone(),
            )
            .await?;
            say(&format!("hosting: admin API on http://{}", plane.address()));
            Some(plane)
        }
        None => None,
    };
    let path = if start.single { "/mcp" } else { "" };
    say(&format!("listening on {scheme}://{address}{path}"));
    tokio::spawn(upkeep(metrics));
    let keeping = keeper.clone().map(|keeper| tokio::spawn(keeper.keep()));
    tokio::spawn(Arc::clone(&gateway).sweep());
    let watcher = tokio::spawn(watch(start, seen, Arc::clone(&joint), tls.clone(), hangup));
    let serving = tokio::spawn(gateway::serve(Arc::clone(&gateway), listener, tls));
    stop.recv().await;
    tracing::info!("stopping: calls under way may end");
    gateway.stop();
    watcher.abort();
    if let Some(plane) = plane {
        plane.stop().await;
    }
    serving.await.context("the listener failed")?;
    if let (Some(keeper), Some(keeping)) = (keeper, keeping) {
        keeping.abort();
        // What was listed since the last look.
        tokio::task::spawn_blocking(move || keeper.look()).await?;
    }
    drop((gateway, joint));
    stop_traces(traces).await;
    close_audit(audit);
    Ok(ExitCode::SUCCESS)
}

fn options(
    loaded: &Loaded,
    audit: Option<Arc<AuditLog>>,
    traces: Option<&Traces>,
    single: bool,
) -> anyhow::Result<GatewayOptions> {
    let single = single.then(|| ServerId::parse(PROXY_SERVER)).transpose()?;
    let mut links = LinkOptions::default();
    links.runner = loaded
        .hosting
        .as_ref()
        .map(|hosting| crate::hosting::runner(hosting));
    Ok(GatewayOptions {
        single,
        audit,
        links,
        spans: traces.map(Traces::sink),
        plugins: Some(Arc::new(Plugins::new(&loaded.data_dir))),
        ..GatewayOptions::default()
    })
}

fn make_gateway(loaded: &Loaded, options: GatewayOptions) -> anyhow::Result<Arc<Gateway>> {
    Gateway::new(&loaded.desired, options).context("the configuration does not compile")
}

/// Compiles a configuration as a start would, its plugins too, and keeps nothing of it.
///
/// # Errors
/// What a start would say.
pub fn check_compiles(loaded: &Loaded) -> anyhow::Result<()> {
    let options = GatewayOptions {
        plugins: Some(Arc::new(Plugins::trying(&loaded.data_dir))),
        pins: Some(Arc::new(Keeper::new(&loaded.data_dir))),
        ..GatewayOptions::default()
    };
    let gateway = Gateway::new(&loaded.desired, options);
    gateway
        .map(drop)
        .context("the configuration does not compile")
}

/// Reads files again that are not as they were `seen`, once nobody writes into them any more, and everything on SIGHUP: whoever
/// asks has ended. What does not load or compile is refused whole and said; the state in force stays.
async fn watch(
    start: Start,
    mut seen: Vec<Stamp>,
    joint: Arc<Joint>,
    tls: Option<TlsSlot>,
    mut hangup: Signal,
) -> anyhow::Result<()> {
    let start = Arc::new(start);
    let mut files = start.loaded.files_watched.clone();
    let mut refused: Option<Refused> = None;
    let mut changed: Option<Look> = None;
    loop {
        let is_asked = tokio::select! {
            _ = hangup.recv() => true,
            () = tokio::time::sleep(changed.as_ref().map_or(WATCH_EVERY, |_| SETTLED_AFTER)) => false,
        };
        let now = stamps(&files);
        if is_asked {
            // Whoever asks gets an answer, also one that was said before.
            refused = None;
        } else if now != seen {
            refused = None;
            let look = {
                let files = files.clone();
                tokio::task::spawn_blocking(move || Look::at(&files)).await?
            };
            if changed.as_ref() != Some(&look) {
                changed = Some(look);
                continue;
            }
        } else if !refused.as_ref().is_some_and(Refused::is_due) {
            changed = None;
            continue;
        }
        changed = None;
        seen = now;
        // Rules and plugins are compiled on a thread of their own: no call waits for them.
        let reloaded = {
            let (start, joint, tls) = (Arc::clone(&start), Arc::clone(&joint), tls.clone());
            let as_seen = (!is_asked).then(|| (files.clone(), seen.clone()));
            let reload = move || reload(&start, &joint, tls.as_ref(), as_seen);
            tokio::task::spawn_blocking(reload).await?
        };
        let reloaded = match reloaded {
            // It is looked at again, as if it had changed just now.
            Ok(Reloaded::Changing) => {
                seen = Vec::new();
                continue;
            }
            Ok(Reloaded::Done(watched, generation)) => Ok((watched, generation)),
            Err(error) => Err(error),
        };
        let data_dir = &start.loaded.data_dir;
        // What was changed while it was being read is read again.
        let changed_meanwhile = stamps(&files) != seen;
        match reloaded {
            Ok((watched, generation)) => {
                acknowledge(data_dir, Ok(generation));
                refused = None;
                files = watched;
                seen = if changed_meanwhile {
                    Vec::new()
                } else {
                    stamps(&files)
                };
                say("configuration reloaded");
            }
            Err(error) => {
                let before = refused.take();
                let now = refused.insert(Refused::again(&error, before.as_ref()));
                if before.is_some_and(|before| before.text == now.text) {
                    continue;
                }
                joint.count_refused();
                acknowledge(data_dir, Err(&error));
                complain(&format!(
                    "the new configuration is refused, the old one stays: {error:#}"
                ));
            }
        }
    }
}

/// The files at one moment: their stamps, and a hash of what stands in each.
#[derive(Debug, PartialEq, Eq)]
struct Look {
    stamps: Vec<Stamp>,
    contents: Vec<Option<String>>,
}

impl Look {
    fn at(files: &[PathBuf]) -> Self {
        let content = |path: &PathBuf| config::read_bytes_bounded(path, COMPONENT_BYTES_MAX).ok();
        Self {
            stamps: stamps(files),
            contents: files
                .iter()
                .map(|path| content(path).map(|bytes| config::sha256_hex(&bytes)))
                .collect(),
        }
    }
}

/// What became of files that were read again.
enum Reloaded {
    /// The files to watch from now on, and the generation of plugins in force.
    Done(Vec<PathBuf>, u64),
    /// One of them changed meanwhile: perhaps only half of it was read, and nothing is taken.
    Changing,
}

/// A configuration that is refused. What it lacks may come without a change of any file that is known.
struct Refused {
    text: String,
    tried: Instant,
    wait: Duration,
    until_restart: bool,
}

impl Refused {
    /// Refused once more, or for the first time.
    fn again(error: &anyhow::Error, before: Option<&Self>) -> Self {
        let longer = |before: &Self| (before.wait * 2).min(REFUSED_AGAIN_MAX);
        Self {
            text: format!("{error:#}"),
            tried: Instant::now(),
            wait: before.map_or(REFUSED_AGAIN, longer),
            until_restart: error.is::<OnlyByRestart>(),
        }
    }

    fn is_due(&self) -> bool {
        !self.until_restart && self.tried.elapsed() >= self.wait
    }
}

/// What no other try of the same file changes.
#[derive(Debug)]
struct OnlyByRestart(String);

impl std::fmt::Display for OnlyByRestart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OnlyByRestart {}

fn only_by_restart<T>(text: impl Into<String>) -> anyhow::Result<T> {
    Err(OnlyByRestart(text.into()).into())
}

/// Says what became of what was pushed.
fn acknowledge(data_dir: &Path, outcome: Result<u64, &anyhow::Error>) {
    let applied = match outcome {
        Ok(generation) => Applied {
            generation,
            error: None,
        },
        Err(error) => Applied {
            generation: Registry::read(data_dir).map_or(0, |registry| registry.generation),
            error: Some(format!("{error:#}")),
        },
    };
    if applied.generation > 0 {
        store::acknowledge(data_dir, &applied);
    }
}

/// Puts into force what the files say now, if they are still `as_seen`.
fn reload(
    start: &Start,
    joint: &Joint,
    tls: Option<&TlsSlot>,
    as_seen: Option<(Vec<PathBuf>, Vec<Stamp>)>,
) -> anyhow::Result<Reloaded> {
    let loaded = (start.reload)();
    if as_seen.is_some_and(|(files, seen)| stamps(&files) != seen) {
        return Ok(Reloaded::Changing);
    }
    let loaded = loaded?;
    // Everything that can fail comes before anything is swapped.
    let config = match (&loaded.desired.tls, tls) {
        (Some(files), Some(_)) => Some(tls_config(files)?),
        (None, None) => None,
        _ => return only_by_restart("tls can only be switched on or off by a restart"),
    };
    if start.loaded.desired.audit == AuditMode::Off && loaded.desired.audit != AuditMode::Off {
        let text = "audit.mode: the audit log can only be switched on by a restart, which opens it";
        return only_by_restart(text);
    }
    if loaded.data_dir != start.loaded.data_dir {
        return only_by_restart("data_dir can only be changed by a restart");
    }
    may_be_open(start.loaded.listen, loaded.desired.open_access)?;
    joint.reload(&loaded.desired)?;
    if let (Some(slot), Some(config)) = (tls, config) {
        slot.store(config);
    }
    if loaded.listen != start.loaded.listen || loaded.admin_listen != start.loaded.admin_listen {
        tracing::warn!("listen addresses only change by a restart");
    }
    if loaded.otlp != start.loaded.otlp {
        tracing::warn!("otlp only changes by a restart");
    }
    if loaded.hosting != start.loaded.hosting {
        tracing::warn!("hosting only changes by a restart");
    }
    if loaded.log != start.loaded.log {
        tracing::warn!("log only changes by a restart");
    }
    note(&loaded);
    Ok(Reloaded::Done(
        loaded.files_watched,
        loaded.plugin_generation,
    ))
}

/// The address that it listens on stays, whatever the file says now: without keys, it has to be one of this machine alone.
fn may_be_open(listen: std::net::SocketAddr, open_access: bool) -> anyhow::Result<()> {
    if open_access && !listen.ip().is_loopback() {
        return only_by_restart(format!(
            "no tenant has a key any more, and {listen}, which changes by a restart only, can be reached from other \
             machines: anyone could call; make a key with `weir key new` and add it under `keys`, or restart"
        ));
    }
    Ok(())
}

/// Time, size and number of a file. Clocks of file systems are coarse; a file put in another's place has
/// another number.
type Stamp = Option<(SystemTime, u64, u64)>;

fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    let stamp = |path: &PathBuf| {
        let meta = std::fs::metadata(path).ok()?;
        Some((meta.modified().ok()?, meta.len(), meta.ino()))
    };
    files.iter().map(stamp).collect()
}

fn open_audit(loaded: &Loaded, shared: bool) -> anyhow::Result<Option<Arc<AuditLog>>> {
    gateway::pipeline::set_fingerprint_key(fingerprint_key(&loaded.data_dir)?);
    if loaded.desired.audit == AuditMode::Off {
        return Ok(None);
    }
    for nth in 0..SHARED_LOGS_MAX {
        let name = if nth == 0 {
            "audit".to_owned()
        } else {
            format!("audit-{nth}")
        };
        let mut config = LogConfig::new(loaded.data_dir.join(name));
        config.retention_days = loaded.audit_retention_days;
        match AuditLog::open(config) {
            Ok(log) => {
                let torn_bytes = log.recovery().torn_bytes;
                if torn_bytes > 0 {
                    tracing::warn!(torn_bytes, "an unfinished audit record was dropped");
                }
                return Ok(Some(Arc::new(log)));
            }
            Err(AuditError::InUse { .. }) if shared => {}
            Err(error) => return Err(error).context("the audit log cannot be opened"),
        }
    }
    bail!(
        "{SHARED_LOGS_MAX} processes already write into {}",
        loaded.data_dir.display()
    )
}

async fn stop_traces(traces: Option<Traces>) {
    if let Some(traces) = traces {
        traces.stop().await;
    }
}

fn close_audit(audit: Option<Arc<AuditLog>>) {
    if let Some(log) = audit
        && let Err(error) = log.close()
    {
        tracing::error!(%error, "the audit log could not be closed in order");
    }
}

/// The key of the fingerprints in audit records, kept beside the log so that equal values stay
/// equal over restarts.
pub fn fingerprint_key(data_dir: &Path) -> anyhow::Result<[u8; 32]> {
    secret_key(data_dir, "fingerprint.key")
}

/// A key in a file of its own, made when it is first wanted.
pub fn secret_key(folder: &Path, name: &str) -> anyhow::Result<[u8; 32]> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let path = folder.join(name);
    std::fs::create_dir_all(folder)
        .with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    if let Some(key) = read_key(&path)? {
        return Ok(key);
    }
    let (mut key, mut own) = ([0u8; 32], [0u8; 8]);
    getrandom::fill(&mut key).context("the system gives no random numbers")?;
    getrandom::fill(&mut own).context("the system gives no random numbers")?;
    // Beside it first, so that nobody reads half a key; several programs may begin at once, and one of them wins.
    let making = folder.join(format!("{name}.{:016x}", u64::from_ne_bytes(own)));
    let written = || -> std::io::Result<()> {
        let mut file = std::fs::OpenOptions::new();
        let mut file = file
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&making)?;
        file.write_all(&key)?;
        file.sync_all()?;
        match std::fs::hard_link(&making, &path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            // A file system without links, such as a folder that is shared into a container.
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::Unsupported
                ) =>
            {
                std::fs::rename(&making, &path)
            }
            other => other,
        }
    };
    let written = written();
    let _ = std::fs::remove_file(&making);
    written.with_context(|| format!("{} cannot be written", path.display()))?;
    read_key(&path)?.with_context(|| format!("{} is gone again", path.display()))
}

/// A key that is there. One that cannot be read, or is none, is not replaced: what it was used for would be lost.
fn read_key(path: &Path) -> anyhow::Result<Option<[u8; 32]>> {
    match std::fs::read(path) {
        Ok(bytes) => match <[u8; 32]>::try_from(bytes) {
            Ok(key) => Ok(Some(key)),
            Err(bytes) => bail!(
                "{} has {} bytes and a key has 32; restore it, or remove it to have a new one made",
                path.display(),
                bytes.len()
            ),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

fn tls_slot(files: &ListenerTls) -> anyhow::Result<TlsSlot> {
    Ok(Arc::new(ArcSwap::new(tls_config(files)?)))
}

/// Reads the certificate and its key.
pub fn tls_config(files: &ListenerTls) -> anyhow::Result<Arc<rustls::ServerConfig>> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cert = &files.cert_file;
    let read = |path: &Path, field: &str| {
        config::read_bytes_bounded(path, PEM_BYTES_MAX)
            .map_err(|problem| anyhow::anyhow!("{field} {} {problem}", path.display()))
    };
    let pem = read(cert, "tls.cert_file")?;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .with_context(|| format!("tls.cert_file {}", cert.display()))?;
    let pem = read(&files.key_file, "tls.key_file")?;
    let key = PrivateKeyDer::from_pem_slice(&pem).with_context(|| {
        format!(
            "tls.key_file {}: no private key in PEM without a passphrase can be read from it",
            files.key_file.display()
        )
    })?;
    let mut config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("tls: the certificate and the key cannot be used together")?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

async fn bind(at: std::net::SocketAddr, field: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(at)
        .await
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                anyhow::anyhow!(
                    "{field}: {at} is in use; take another port, or end what listens there"
                )
            }
            _ => anyhow::Error::new(error).context(format!("{field}: {at} cannot be bound")),
        })
}

/// A second `weir proxy` on the machine takes a free admin port rather than fail, where nobody asked for one.
async fn bind_admin(at: std::net::SocketAddr, or_free: bool) -> anyhow::Result<TcpListener> {
    match bind(at, "admin_listen").await {
        Err(_) if or_free => bind((at.ip(), 0).into(), "admin_listen").await,
        other => other,
    }
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .enable_all()
        // A poll here may scan a message; the default of 61 between two looks at sockets and timers makes all others wait
        // for milliseconds when every connection has work.
        .event_interval(16)
        .build()
        .context("the runtime cannot be started")
}

/// The signals that ask for an orderly end.
struct StopSignals {
    term: Signal,
    int: Signal,
}

impl StopSignals {
    /// From here on neither ends the program by itself.
    fn install() -> std::io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
        })
    }

    async fn recv(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}

fn install_metrics() -> anyhow::Result<PrometheusHandle> {
    const SECONDS: [f64; 16] = [
        5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 5e-2, 0.25, 1.0,
        5.0, 30.0,
    ];
    PrometheusBuilder::new()
        .set_buckets(&SECONDS)?
        .install_recorder()
        .context("the metrics recorder cannot be installed")
}

/// Keeps the histograms' memory bounded between scrapes.
async fn upkeep(metrics: PrometheusHandle) {
    loop {
        tokio::time::sleep(Duration::from_secs(5)).await;
        metrics.run_upkeep();
    }
}

/// Whether lines of `info` are written at all.
fn says_info(filter: &tracing_subscriber::EnvFilter) -> bool {
    use tracing_subscriber::filter::LevelFilter;
    filter
        .max_level_hint()
        .is_none_or(|level| level >= LevelFilter::INFO)
}

fn init_log(loaded: &Loaded) -> anyhow::Result<()> {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env("WEIR_LOG").unwrap_or_else(|_| {
        // Errors of the HTTP stack may repeat what a peer sent, so they stay out of the log.
        let level = loaded.log.level.as_str();
        EnvFilter::new(format!(
            "{level},pingora_core=off,h2=off,hyper=off,rustls=error,sqlx=warn"
        ))
    });
    let is_json = loaded.log.format == LogFormat::Json;
    let filter = match (is_json, "weir=info".parse()) {
        (true, Ok(said)) if !says_info(&filter) => filter.add_directive(said),
        _ => filter,
    };
    SAYS_JSON.store(is_json, Ordering::Relaxed);
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // It would be said on standard error, where nothing can be said then, and whoever logs would panic.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    let done = match loaded.log.format {
        LogFormat::Text => builder.with_ansi(false).try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    done.map_err(|error| anyhow::anyhow!("the log cannot be set up: {error}"))
}

/// Whether what is said is a line of JSON, as the log is then.
static SAYS_JSON: AtomicBool = AtomicBool::new(false);

/// A line for the person (or script) that started this, whatever the log's level.
fn say(text: &str) {
    match SAYS_JSON.load(Ordering::Relaxed) {
        true => tracing::info!(target: "weir", "{text}"),
        false => say_plainly(text),
    }
}

/// The same, of what went wrong.
pub fn complain(text: &str) {
    match SAYS_JSON.load(Ordering::Relaxed) {
        true => tracing::error!(target: "weir", "{text}"),
        false => say_plainly(text),
    }
}

fn say_plainly(text: &str) {
    use std::io::Write as _;
    // It may go to a disk that is full: whoever says it goes on.
    let _ = writeln!(std::io::stderr(), "weir: {text}");
}

/// Says what whoever runs this configuration should know.
fn note(loaded: &Loaded) {
    for note in loaded.notes.iter().chain(&loaded.dry_run()) {
        tracing::warn!("{note}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_reload_opens_an_address_of_other_machines() {
        for (listen, open, may) in [
            ("0.0.0.0:8080", true, false),
            ("192.0.2.7:8080", true, false),
            ("[::]:8080", true, false),
            ("0.0.0.0:8080", false, true),
            ("127.0.0.1:8080", true, true),
            ("[::1]:8080", true, true),
        ] {
            let may_be = may_be_open(listen.parse().unwrap(), open);
            assert_eq!(may_be.is_ok(), may, "{listen} {open}: {may_be:?}");
        }
    }

    #[test]
    fn a_refused_file_is_tried_ever_less_often_and_not_for_what_takes_a_restart() {
        let error = anyhow::anyhow!("no such file");
        let mut refused = Refused::again(&error, None);
        let mut waits = vec![refused.wait.as_secs()];
        for _ in 0..8 {
            refused = Refused::again(&error, Some(&refused));
            waits.push(refused.wait.as_secs());
        }
        assert_eq!(waits, [3, 6, 12, 24, 48, 96, 192, 300, 300]);
        refused.wait = Duration::ZERO;
        assert!(refused.is_due());
        let open = may_be_open("192.0.2.7:8080".parse().unwrap(), true).unwrap_err();
        refused = Refused::again(&open, None);
        refused.wait = Duration::ZERO;
        assert!(!refused.is_due());
    }

    #[test]
    fn a_key_is_made_once_and_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("new");
        // Programs that begin at the same moment have the same one.
        let keys: Vec<[u8; 32]> = std::thread::scope(|scope| {
            let begin = |_| scope.spawn(|| secret_key(&folder, "a.key").unwrap());
            let all: Vec<_> = (0..8).map(begin).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| key == &keys[0]));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::write(folder.join("a.key"), "cut off").unwrap();
        let refused = secret_key(&folder, "a.key").unwrap_err().to_string();
        assert!(refused.contains("7 bytes"), "{refused}");
        assert_eq!(std::fs::read(folder.join("a.key")).unwrap(), b"cut off");
    }
}
