//! Bundles in their place, and layers: the dependencies of a bundle, installed once inside a sandbox, read-only after.
//!
//! The build sandbox is like any other (gVisor, no rights, limits); its way out leads to the package index alone, it has
//! no secrets, and all it can write is a bounded file system that is thrown away. What it made is copied out: files,
//! folders and links, nothing else, owned by root.

mod copy;

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use domain::TenantId;
use runner_api::{
    ApiError, BuildEvent, BuildRequest, BuildStage, BundleId, BundleInfo, ErrorCode, LayerId,
    LayerInfo, LogStream, Runtime, SandboxId, ServerSpec,
};
use sandbox::{Bind, GUEST_UID, Launch, Order, Output, Prepared, Program, Size, on_thread};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::copy::Copy;
use crate::bundle::{self, BundleError};
use crate::context::{Context, new_sandbox_id};
use crate::index;
use crate::logs;
use crate::pack;
use crate::paths::hex;
use crate::rootfs;
use crate::stock::{self, settle};
use crate::store;
use crate::wire::{Connected, Owner};

/// A build that takes longer is ended.
const BUILD_MAX: Duration = Duration::from_secs(600);
/// What a build may write.
const BUILD_STORAGE_MB: u32 = 4096;
/// Builds of one tenant that wait, also those that their askers have left.
const BUILDS_WAITING_MAX: usize = 16;
const BUILD_RETRY_MS: u64 = 5000;
const OUTPUT_LINES_MAX: usize = 2000;
const LINE_CHARS_MAX: usize = 1000;

/// What a server is started from.
pub struct Found {
    /// The unpacked bundle.
    pub app: PathBuf,
    /// The layer.
    pub layer: LayerId,
    /// Its packages.
    pub deps: PathBuf,
    /// The root file system.
    pub rootfs: PathBuf,
}

/// Takes an uploaded file in: lists, unpacks, moves into place. The file is the caller's to remove.
///
/// # Errors
/// The reasons of a refusal, or what the disk said.
pub async fn take_in(
    ctx: &Arc<Context>,
    tenant: &TenantId,
    packed: PathBuf,
    sha256: String,
) -> Result<BundleInfo, ApiError> {
    let (ctx, tenant) = (Arc::clone(ctx), tenant.clone());
    on_thread("weir-bundle", move || {
        let id = BundleId::parse(&sha256)
            .map_err(|e| ApiError::new(ErrorCode::Internal, e.to_string()))?;
        let place = ctx.paths.bundle(&tenant, &id);
        if let Some(info) = store::get::<BundleInfo>(&place.join("info.json")) {
            stock::asked_for(&place);
            return Ok(info);
        }
        let making = ctx
            .paths
            .state
            .join("uploads")
            .join(crate::context::random_name());
        let done = unpack(&packed, &making, &tenant, id).and_then(|info| {
            settle(&making, &place).map_err(|source| BundleError::Io {
                what: "keep",
                path: place.clone(),
                source,
            })?;
            Ok(info)
        });
        let _ = fs::remove_dir_all(&making);
        ctx.stocked.notify_one();
        done.map_err(api_error)
    })
    .await
}

fn unpack(
    packed: &Path,
    making: &Path,
    tenant: &TenantId,
    id: BundleId,
) -> Result<BundleInfo, BundleError> {
    let io = |what, source| BundleError::Io {
        what,
        path: making.to_owned(),
        source,
    };
    let bounds = bundle::tar::Bounds::default();
    let listing = bundle::list(packed, bounds)?;
    stock::room(packed, listing.totals.bytes).map_err(BundleError::NoRoom)?;
    fs::DirBuilder::new()
        .mode(0o700)
        .create(making)
        .map_err(|e| io("make", e))?;
    bundle::unpack(packed, &making.join("app"), bounds)?;
    let info = BundleInfo {
        id,
        tenant: tenant.clone(),
        runtime: listing.runtime,
        packed_bytes: fs::metadata(packed).map_err(|e| io("read", e))?.len(),
        unpacked_bytes: listing.totals.bytes,
        files: listing.totals.files,
        root_names: listing.root_names,
        dependencies: listing.dependencies,
    };
    store::put(&making.join("info.json"), &info).map_err(|e| io("write", e))?;
    Ok(info)
}

fn api_error(error: BundleError) -> ApiError {
    match error {
        BundleError::Refused(refusals) => {
            let first = refusals.first().map_or_else(String::new, |r| {
                let place = match (&r.path, r.line) {
                    (Some(path), Some(line)) => format!("{path} line {line}: "),
                    (Some(path), None) => format!("{path}: "),
                    _ => String::new(),
                };
                format!(": {place}{}", r.reason)
            });
            ApiError {
                refusals,
                ..ApiError::new(
                    ErrorCode::BundleRefused,
                    format!("the bundle is refused{first}"),
                )
            }
        }
        BundleError::NoRoom(error) => error,
        error => {
            tracing::error!(error = ?error, "a bundle cannot be taken in");
            ApiError::new(
                ErrorCode::Internal,
                "the bundle cannot be stored; the runner's log has the reason",
            )
        }
    }
}

/// A bundle that was taken in.
///
/// # Errors
/// `NotFound`, also for another tenant's.
pub fn bundle_info(
    ctx: &Context,
    tenant: &TenantId,
    id: &BundleId,
) -> Result<BundleInfo, ApiError> {
    store::get(&ctx.paths.bundle(tenant, id).join("info.json")).ok_or_else(|| {
        ApiError::new(
            ErrorCode::NotFound,
            format!("there is no bundle {id}; upload it first"),
        )
    })
}

/// What a server's next sandbox is started from.
///
/// # Errors
/// The bundle or its layer is missing.
pub fn find(ctx: &Context, spec: &ServerSpec) -> Result<Found, ApiError> {
    let info = bundle_info(ctx, &spec.tenant, &spec.bundle)?;
    let rootfs = rootfs_of(ctx, spec.runtime)?;
    let bundle = ctx.paths.bundle(&spec.tenant, &spec.bundle);
    let layer = key(&bundle, &info, &rootfs.id, spec.allow_sdist);
    let place = ctx.paths.layer(&spec.tenant, &layer);
    if !place.join("info.json").exists() {
        return Err(ApiError::new(
            ErrorCode::Conflict,
            "the dependencies of this server are not installed yet; build it first",
        ));
    }
    Ok(Found {
        app: bundle.join("app"),
        layer,
        deps: place.join("deps"),
        rootfs: rootfs.path,
    })
}

/// Where the layer of a server is, or will be.
pub fn place_of(ctx: &Context, spec: &ServerSpec) -> Option<PathBuf> {
    let info = bundle_info(ctx, &spec.tenant, &spec.bundle).ok()?;
    let rootfs = rootfs_of(ctx, spec.runtime).ok()?;
    let bundle = ctx.paths.bundle(&spec.tenant, &spec.bundle);
    let layer = key(&bundle, &info, &rootfs.id, spec.allow_sdist);
    Some(ctx.paths.layer(&spec.tenant, &layer))
}

fn rootfs_of(ctx: &Context, runtime: Runtime) -> Result<rootfs::Rootfs, ApiError> {
    rootfs::find(&ctx.paths.state, runtime)
        .map_err(|e| ApiError::new(ErrorCode::HostUnfit, e.to_string()))
}

/// Everything that decides what is in a layer.
fn key(bundle: &Path, info: &BundleInfo, rootfs: &str, allow_sdist: bool) -> LayerId {
    let mut hasher = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_be_bytes());
        hasher.update(bytes);
    };
    part(b"weir layer 1");
    part(info.tenant.as_str().as_bytes());
    part(rootfs.as_bytes());
    part(&[u8::from(allow_sdist)]);
    match info.runtime {
        Runtime::Python => {
            // Order and comments do not matter to the installer.
            let mut sorted = info.dependencies.clone();
            sorted.sort();
            sorted.iter().for_each(|line| part(line.as_bytes()));
        }
        Runtime::Node => {
            for file in ["package.json", "package-lock.json"] {
                part(&fs::read(bundle.join("app").join(file)).unwrap_or_default());
            }
        }
    }
    LayerId::parse(&hex(&hasher.finalize())).expect("SHA-256 in hexadecimal")
}

#[derive(Serialize, Deserialize)]
struct LayerFile {
    packages: u32,
    bytes: u64,
}

/// Builds a layer or finds it. Progress goes to `tell`, which may be full: then lines are lost, stages never.
///
/// # Errors
/// For the bundle's owner: what the installer said, and a hint.
pub async fn build(
    ctx: &Arc<Context>,
    request: BuildRequest,
    tell: mpsc::Sender<BuildEvent>,
) -> Result<LayerInfo, ApiError> {
    let began = Instant::now();
    let info = bundle_info(ctx, &request.tenant, &request.bundle)?;
    let rootfs = rootfs_of(ctx, info.runtime)?;
    let bundle = ctx.paths.bundle(&request.tenant, &request.bundle);
    let id = key(&bundle, &info, &rootfs.id, request.allow_sdist);
    let place = ctx.paths.layer(&request.tenant, &id);
    let elapsed_ms = || u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let found = |file: LayerFile, cached| LayerInfo {
        id: id.clone(),
        packages: file.packages,
        bytes: file.bytes,
        cached,
        elapsed_ms: elapsed_ms(),
    };
    if let Some(file) = store::get::<LayerFile>(&place.join("info.json")) {
        stock::asked_for(&place);
        return Ok(found(file, true));
    }
    stock::room(&ctx.paths.state, 0)?;
    let stage = async |stage| {
        // The receiver may have gone; the build goes on for whoever asks next.
        let _ = tell
            .send(BuildEvent::Stage {
                stage,
                elapsed_ms: elapsed_ms(),
            })
            .await;
    };
    if ctx.builds.waiting(&request.tenant) >= BUILDS_WAITING_MAX {
        return Err(ApiError {
            retry_after_ms: Some(BUILD_RETRY_MS),
            ..ApiError::new(
                ErrorCode::Busy,
                format!("{BUILDS_WAITING_MAX} builds wait already; try again when they are done"),
            )
        });
    }
    stage(BuildStage::Queued).await;
    let _slot = ctx.builds.enter(&request.tenant).await;
    if let Some(file) = store::get::<LayerFile>(&place.join("info.json")) {
        return Ok(found(file, true));
    }
    stage(BuildStage::Installing).await;
    let making = ctx
        .paths
        .state
        .join("uploads")
        .join(crate::context::random_name());
    let built = install(
        ctx,
        &info,
        &bundle,
        &rootfs.path,
        request.allow_sdist,
        &making,
        &tell,
    )
    .await;
    let result = match built {
        Ok(()) => {
            stage(BuildStage::Sealing).await;
            seal(ctx, &making, &place, info.runtime, rootfs).await
        }
        Err(error) => Err(error),
    };
    let (gone, id_dir) = (making.clone(), making.with_extension("ext4"));
    on_thread("weir-clean", move || {
        sandbox::drop_storage(&id_dir, &gone.join("out"));
        let _ = fs::remove_dir_all(&gone);
    })
    .await;
    ctx.stocked.notify_one();
    match result {
        Ok(file) => Ok(found(file, false)),
        Err(BuildFailed::Owner(text)) => Err(ApiError::new(ErrorCode::StartFailed, text)),
        Err(BuildFailed::Runner(error)) => {
            tracing::error!(error = format!("{error:#}"), "a build failed");
            Err(ApiError::new(
                ErrorCode::Internal,
                "the build could not be run; the runner's log has the reason",
            ))
        }
    }
}

enum BuildFailed {
    /// For the bundle's owner.
    Owner(String),
    /// For the operator.
    Runner(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for BuildFailed {
    fn from(error: E) -> Self {
        Self::Runner(error.into())
    }
}

/// Runs the installer in a sandbox; afterwards `making/out` holds what it made.
async fn install(
    ctx: &Arc<Context>,
    info: &BundleInfo,
    bundle: &Path,
    rootfs: &Path,
    allow_sdist: bool,
    making: &Path,
    tell: &mpsc::Sender<BuildEvent>,
) -> Result<(), BuildFailed> {
    fs::DirBuilder::new()
        .mode(0o700)
        .create(making)
        .context("make a build folder")?;
    let (image, out) = (making.with_extension("ext4"), making.join("out"));
    {
        let (image, out) = (image.clone(), out.clone());
        on_thread("weir-storage", move || {
            sandbox::make_storage(&image, &out, BUILD_STORAGE_MB)
        })
        .await?;
    }
    std::os::unix::fs::chown(&out, Some(GUEST_UID), Some(GUEST_UID))
        .context("give the build its folder")?;
    let input = making.join("in");
    fs::create_dir(&input).context("make a build folder")?;
    match info.runtime {
        Runtime::Python => {
            let text = info
                .dependencies
                .iter()
                .map(|line| format!("{line}\n"))
                .collect::<String>();
            fs::write(input.join("requirements.txt"), text).context("write the requirements")?;
        }
        Runtime::Node => {
            for file in ["package.json", "package-lock.json"] {
                let from = bundle.join("app").join(file);
                if from.exists() {
                    fs::copy(from, input.join(file)).context("copy package.json")?;
                }
            }
        }
    }
    if info.dependencies.is_empty() {
        fs::create_dir_all(out.join("deps")).context("make an empty layer")?;
        return Ok(());
    }
    let id = new_sandbox_id();
    let place = ctx
        .places
        .take()
        .context("all places of the address pool are in use")?;
    let ran = run(
        ctx,
        info,
        rootfs,
        allow_sdist,
        &input,
        &out,
        &id,
        place,
        tell,
    )
    .await;
    ctx.backend.destroy(id.as_str(), place).await;
    ctx.places.give(place);
    for stream in [LogStream::Stdout, LogStream::Stderr] {
        store::remove(&logs::pipe_path(
            &ctx.paths.run.join("pipes"),
            id.as_str(),
            stream,
        ));
    }
    ran
}

#[allow(
    clippy::too_many_arguments,
    reason = "the parts of one build, used once"
)]
async fn run(
    ctx: &Arc<Context>,
    info: &BundleInfo,
    rootfs: &Path,
    allow_sdist: bool,
    input: &Path,
    out: &Path,
    id: &SandboxId,
    place: u32,
    tell: &mpsc::Sender<BuildEvent>,
) -> Result<(), BuildFailed> {
    let bind = |source: &Path, target: &str, writable| Bind {
        source: source.to_owned(),
        target: target.into(),
        writable,
    };
    let order = Order {
        id: id.as_str().to_owned(),
        place,
        rootfs: rootfs.to_owned(),
        program: installer(info.runtime, allow_sdist),
        binds: vec![
            bind(input, "/bundle", false),
            bind(out, "/out", true),
            bind(
                &ctx.paths.run.join("resolv.conf"),
                "/etc/resolv.conf",
                false,
            ),
            bind(
                Path::new("/etc/ssl/certs/ca-certificates.crt"),
                "/etc/ssl/certs/ca-certificates.crt",
                false,
            ),
        ],
        size: Size {
            cpu_shares: 1024,
            memory_mb: 2048,
            storage_mb: 512,
            processes: 256,
        },
        with_secrets: false,
        second_core_at_birth: false,
    };
    let prepared = ctx.backend.prepare(order, &[]).await?;
    let hosts = match info.runtime {
        Runtime::Python => index::python_hosts(),
        Runtime::Node => index::npm_hosts(),
    };
    let (rules, targets) = index::way_out(&hosts, &ctx.targets).await?;
    let owner = Owner {
        tenant: info.tenant.clone(),
        server: build_server(),
        sandbox: id.clone(),
    };
    // Builds are nobody's usage.
    let unpaid = Arc::new(metering::Tally::unkept(0));
    let connected = Connected::open(ctx, &prepared.wire, rules, targets, owner, unpaid).await?;
    let ended = until_it_ends(ctx, &prepared, id, tell).await;
    connected.close(ctx).await;
    let (in_time, said) = ended?;
    if !in_time {
        return Err(BuildFailed::Owner(format!(
            "the installation did not end within {} s",
            BUILD_MAX.as_secs()
        )));
    }
    if out.join("done").is_file() {
        return Ok(());
    }
    let alarms = ctx.backend.alarms(id.as_str());
    if alarms.oom_kills > 0 {
        return Err(BuildFailed::Owner(
            "the installation used more than 2 GiB of memory".into(),
        ));
    }
    Err(BuildFailed::Owner(explain(&said, info.runtime)))
}

/// Gives whether it ended in time, and what it wrote last.
async fn until_it_ends(
    ctx: &Arc<Context>,
    prepared: &Prepared,
    id: &SandboxId,
    tell: &mpsc::Sender<BuildEvent>,
) -> Result<(bool, Vec<String>)> {
    prepared.wire.up().await?;
    let dir = ctx.paths.run.join("pipes");
    let pipe = |stream| logs::make_pipe(&logs::pipe_path(&dir, id.as_str(), stream));
    let output = Output {
        out: pipe(LogStream::Stdout)?,
        err: pipe(LogStream::Stderr)?,
    };
    let (lines, readers) = follow(&dir, id, tell)?;
    let (_, watch) = ctx.backend.launch(prepared, Launch::Cold, output).await?;
    let in_time = tokio::time::timeout(BUILD_MAX, watch.ended()).await.is_ok();
    // What it wrote last is often still in the pipe.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let said = lines.lock().await.iter().cloned().collect();
    drop(readers);
    Ok((in_time, said))
}

/// Events of builds have no server of their own.
fn build_server() -> domain::ServerId {
    domain::ServerId::parse("build").expect("letters")
}

/// The installer, as a shell script without any word of the tenant's. It leaves `/out/done` when all went well.
fn installer(runtime: Runtime, allow_sdist: bool) -> Program {
    let only_wheels = if allow_sdist {
        ""
    } else {
        "--only-binary :all: "
    };
    let (script, mut env) = match runtime {
        Runtime::Python => (
            // Links into uv's cache are no harm here: it is in /out too, and thrown away with it.
            format!(
                "cd /out && uv pip install --no-config --no-progress --color never --no-cache --python /usr/bin/python3 --target /out/deps \
                 {only_wheels}--link-mode hardlink --compile-bytecode --index-url \"$INDEX\" -r /bundle/requirements.txt && touch /out/done"
            ),
            vec![("INDEX".to_owned(), index::python_index())],
        ),
        Runtime::Node => (
            "mkdir -p /out/build && cd /out/build && cp /bundle/* . && \
             if [ -f package-lock.json ]; then npm ci $FLAGS; else npm install $FLAGS; fi && \
             mkdir -p node_modules && mv node_modules /out/deps && touch /out/done"
                .to_owned(),
            vec![
                ("npm_config_registry".to_owned(), index::npm_registry()),
                ("npm_config_update_notifier".to_owned(), "false".to_owned()),
                ("npm_config_cache".to_owned(), "/out/cache".to_owned()),
                ("NODE_EXTRA_CA_CERTS".to_owned(), "/etc/ssl/certs/ca-certificates.crt".to_owned()),
                ("FLAGS".to_owned(), "--ignore-scripts --omit=dev --no-audit --no-fund --loglevel=http --progress=false".to_owned()),
            ],
        ),
    };
    env.extend(
        [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("HOME", "/out"),
            ("TMPDIR", "/out"),
            ("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt"),
            ("UV_NO_WRAP", "1"),
        ]
        .map(|(k, v)| (k.to_owned(), v.to_owned())),
    );
    Program {
        args: ["/bin/sh", "-c", &script].map(str::to_owned).to_vec(),
        env,
        cwd: "/out".into(),
    }
}

type Lines = Arc<tokio::sync::Mutex<std::collections::VecDeque<String>>>;

/// Reads what the installer prints, tells it, and keeps the end of it.
fn follow(
    dir: &Path,
    id: &SandboxId,
    tell: &mpsc::Sender<BuildEvent>,
) -> Result<(Lines, JoinSet<()>)> {
    let kept: Lines = Arc::default();
    // The pipes have no end, as their reader holds both; dropping the set is what ends the reading.
    let mut readers = JoinSet::new();
    for stream in [LogStream::Stdout, LogStream::Stderr] {
        let path = logs::pipe_path(dir, id.as_str(), stream);
        let receiver = tokio::net::unix::pipe::OpenOptions::new()
            .read_write(true)
            .open_receiver(&path)?;
        let (kept, tell) = (Arc::clone(&kept), tell.clone());
        readers.spawn(async move {
            let mut lines =
                BufReader::new(tokio::io::AsyncReadExt::take(receiver, 4 * 1024 * 1024))
                    .split(b'\n');
            let mut count = 0;
            while let Ok(Some(line)) = tokio::time::timeout(BUILD_MAX, lines.next_segment())
                .await
                .unwrap_or(Ok(None))
            {
                let text = String::from_utf8_lossy(&line);
                let text: String = text
                    .trim_end()
                    .chars()
                    .filter(|c| !c.is_control())
                    .take(LINE_CHARS_MAX)
                    .collect();
                count += 1;
                if text.is_empty() || count > OUTPUT_LINES_MAX {
                    continue;
                }
                let _ = tell.try_send(BuildEvent::Output { line: text.clone() });
                let mut kept = kept.lock().await;
                if kept.len() == 40 {
                    kept.pop_front();
                }
                kept.push_back(text);
            }
        });
    }
    Ok((kept, readers))
}

/// What an owner is told, with a hint for the usual mistakes.
fn explain(said: &[String], runtime: Runtime) -> String {
    let all = said.join("\n");
    let hint = if all.contains("no wheels")
        || all.contains("no usable wheels")
        || all.contains("Building source distributions is disabled")
    {
        "a package has no wheel for Python 3.11 on Linux; take another version, or allow source packages (allow_sdist)"
    } else if all.contains("not found in the package registry") || all.contains("E404") {
        "there is no package of this name in the index; is it spelled right?"
    } else if all.contains("no version of")
        || all.contains("unsatisfiable")
        || all.contains("ETARGET")
        || all.contains("ERESOLVE")
    {
        "no set of versions fits; loosen the version conditions"
    } else if all.contains("dns error")
        || all.contains("EAI_AGAIN")
        || all.contains("ENOTFOUND")
        || all.contains("Failed to fetch")
    {
        "the package index could not be reached from the build sandbox; only the index itself is reachable, not other hosts"
    } else if all.contains("npm ci") && all.contains("in sync") {
        "package-lock.json does not fit package.json; run npm install and upload both"
    } else if all.contains("No space left") || all.contains("ENOSPC") {
        "the dependencies take more than 4 GiB"
    } else {
        match runtime {
            Runtime::Python => {
                "try the same requirements with: uv pip install --only-binary :all: --python-version 3.11 -r requirements.txt"
            }
            Runtime::Node => "try the same with: npm install --ignore-scripts",
        }
    };
    let end: Vec<&str> = said
        .iter()
        .rev()
        .take(6)
        .rev()
        .map(String::as_str)
        .collect();
    format!(
        "the dependencies cannot be installed: {}. Hint: {hint}",
        end.join(" | ").chars().take(1500).collect::<String>()
    )
}

/// Copies what was built out of the sandbox's file system and puts it in its place.
async fn seal(
    ctx: &Arc<Context>,
    making: &Path,
    place: &Path,
    runtime: Runtime,
    rootfs: rootfs::Rootfs,
) -> Result<LayerFile, BuildFailed> {
    let (making, place) = (making.to_owned(), place.to_owned());
    let packs = ctx.paths.state.join("packs");
    on_thread("weir-seal", move || {
        let layer = making.join("layer");
        fs::DirBuilder::new().mode(0o755).create(&layer)?;
        let mut copy = Copy::default();
        // The top too may be a link of the tenant's making.
        let from = making.join("out/deps");
        if !fs::symlink_metadata(&from).is_ok_and(|m| m.is_dir()) {
            return Err(BuildFailed::Owner(
                "the installation left no packages".into(),
            ));
        }
        let deps = layer.join("deps");
        copy.folder(&from, &deps, 0)?;
        if runtime == Runtime::Python
            && let Err(error) = pack::layer(&deps, &packs, &rootfs)
        {
            tracing::warn!(%error, "the bytecode of a layer cannot be packed; servers with it start more slowly");
        }
        let packages = packages(&deps, runtime);
        let file = LayerFile {
            packages,
            bytes: copy.bytes,
        };
        store::put(&layer.join("info.json"), &file)?;
        settle(&layer, &place).context("put a layer in its place")?;
        Ok(file)
    })
    .await
}

fn packages(deps: &Path, runtime: Runtime) -> u32 {
    let names = fs::read_dir(deps)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned());
    let counts = |name: &String| match runtime {
        Runtime::Python => name.ends_with(".dist-info"),
        Runtime::Node => !name.starts_with('.'),
    };
    u32::try_from(names.filter(counts).count()).unwrap_or(u32::MAX)
}
