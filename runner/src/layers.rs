//! Bundles in their place, and layers: the dependencies of a bundle, installed once inside a sandbox, read-only after.
//!
//! The build sandbox is like any other (gVisor, no rights, limits); its way out leads to the package index alone, it has
//! no secrets, and all it can write is a bounded file system that is thrown away. What it made is copied out: files,
//! folders and links, nothing else, owned by root.

pub mod common;
mod copy;
mod install;

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use domain::TenantId;
use runner_api::{
    ApiError, BuildEvent, BuildRequest, BuildStage, BundleId, BundleInfo, ErrorCode, LayerId,
    LayerInfo, Runtime, ServerSpec,
};
use sandbox::on_thread;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use self::copy::Copy;
use self::install::{BuildFailed, Job};
use crate::bundle::{self, BundleError};
use crate::context::{Context, new_sandbox_id};
use crate::index;
use crate::pack;
use crate::paths::hex;
use crate::room::Room;
use crate::rootfs;
use crate::stock::{self, settle};
use crate::store;

/// Builds of one tenant that wait, also those that their askers have left.
const BUILDS_WAITING_MAX: usize = 16;
const BUILD_RETRY_MS: u64 = 5000;

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
        let done = unpack(&ctx.room, &packed, &making, &tenant, id).and_then(|info| {
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
    room: &Room,
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
    let promise = room.promise(tenant, listing.totals.bytes);
    let mut promise = promise.map_err(BundleError::NoRoom)?;
    fs::DirBuilder::new()
        .mode(0o700)
        .create(making)
        .map_err(|e| io("make", e))?;
    bundle::unpack_telling(packed, &making.join("app"), bounds, &mut |bytes| {
        promise.wrote(bytes);
    })?;
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
    may_run_code(info.runtime, request.allow_sdist, &index::of(info.runtime))?;
    ctx.room.check()?;
    let stage = async |stage| {
        // The receiver may have gone; the build goes on for whoever asks next.
        let _ = tell
            .send(BuildEvent::Stage {
                stage,
                elapsed_ms: elapsed_ms(),
            })
            .await;
    };
    // With nothing to install it takes no time, and does not wait for those that take minutes.
    let is_short = info.dependencies.is_empty();
    let gate = if is_short {
        &ctx.short_builds
    } else {
        &ctx.builds
    };
    if gate.waiting(&request.tenant) >= BUILDS_WAITING_MAX {
        return Err(ApiError {
            retry_after_ms: Some(BUILD_RETRY_MS),
            ..ApiError::new(
                ErrorCode::Busy,
                format!("{BUILDS_WAITING_MAX} builds wait already; try again when they are done"),
            )
        });
    }
    stage(BuildStage::Queued).await;
    let _slot = match is_short {
        true => gate.enter(&request.tenant).await,
        false => gate.enter_leaving_one(&request.tenant).await,
    };
    if let Some(file) = store::get::<LayerFile>(&place.join("info.json")) {
        return Ok(found(file, true));
    }
    stage(BuildStage::Installing).await;
    let sandbox = new_sandbox_id();
    let making = ctx.paths.state.join("uploads").join(sandbox.as_str());
    let job = Job {
        ctx,
        id: &sandbox,
        tenant: &request.tenant,
        runtime: info.runtime,
        rootfs: &rootfs.path,
        making: &making,
        tell: &tell,
    };
    let result = match install(&job, &info, &bundle, &rootfs.id, request.allow_sdist).await {
        Ok(()) => {
            stage(BuildStage::Sealing).await;
            seal(&job, &place, rootfs.clone()).await
        }
        Err(error) => Err(error),
    };
    job.clean().await;
    ctx.stocked.notify_one();
    match result {
        Ok(file) => Ok(found(file, false)),
        Err(failed) => Err(failed.told()),
    }
}

/// The installer has the URL of the index. Where packages run code of their own, that is no place for a password.
fn may_run_code(runtime: Runtime, allow_sdist: bool, index: &str) -> Result<(), ApiError> {
    if runtime == Runtime::Python && allow_sdist && index::has_credentials(index) {
        return Err(ApiError::new(
            ErrorCode::Conflict,
            "allow_sdist is refused: source packages run code of their own while they are built, and the package index of this host has a password in its URL; take wheels, or have the operator give an index without one",
        ));
    }
    Ok(())
}

/// Installs a bundle's dependencies into `making/out/deps`.
async fn install(
    job: &Job<'_>,
    info: &BundleInfo,
    bundle: &Path,
    rootfs: &str,
    allow_sdist: bool,
) -> Result<(), BuildFailed> {
    job.prepare().await?;
    let (input, out) = (job.input(), job.out());
    let mut locked = false;
    match info.runtime {
        Runtime::Python => {
            let lines = info.dependencies.iter().map(|line| format!("{line}\n"));
            let text: String = lines.collect();
            fs::write(input.join("requirements.txt"), text).context("write the requirements")?;
        }
        Runtime::Node => {
            for file in ["package.json", "package-lock.json"] {
                let from = bundle.join("app").join(file);
                if from.exists() {
                    fs::copy(&from, input.join(file)).context("copy package.json")?;
                    locked = file == "package-lock.json";
                }
            }
        }
    }
    if info.dependencies.is_empty() {
        fs::create_dir_all(out.join("deps")).context("make an empty layer")?;
        return Ok(());
    }
    let wanted = common::Wanted {
        rootfs: rootfs.to_owned(),
        runtime: info.runtime,
        dependencies: info.dependencies.clone(),
        locked,
    };
    let state = job.ctx.paths.state.clone();
    on_thread("weir-common", move || common::pour(&state, &wanted, &out)).await;
    job.run(install::installer(info.runtime, allow_sdist)).await
}

/// Copies what was built out of the sandbox's file system and puts it in its place.
async fn seal(
    job: &Job<'_>,
    place: &Path,
    rootfs: rootfs::Rootfs,
) -> Result<LayerFile, BuildFailed> {
    let (ctx, runtime) = (job.ctx, job.runtime);
    let mut copy = Copy::within(job.room_for_a_copy()?);
    let (making, place) = (job.making.to_owned(), place.to_owned());
    let packs = ctx.paths.state.join("packs");
    on_thread("weir-seal", move || {
        let layer = making.join("layer");
        fs::DirBuilder::new().mode(0o755).create(&layer)?;
        // The top too may be a link of the tenant's making.
        let from = making.join("out/deps");
        if !fs::symlink_metadata(&from).is_ok_and(|m| m.is_dir()) {
            return Err(BuildFailed::Owner(
                "the installation left no packages".into(),
            ));
        }
        let deps = layer.join("deps");
        copy.folder(&from, &deps, 0)?;
        copy.no_more();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_packages_never_runs_beside_a_password() {
        let secret = "https://svc-user:hunter2pass@pypi.example/simple";
        let refused = may_run_code(Runtime::Python, true, secret).expect_err("refused");
        assert!(refused.message.contains("allow_sdist") && !refused.message.contains("hunter2"));
        let plain = "https://pypi.org/simple";
        for (runtime, allow_sdist, index) in [
            (Runtime::Python, false, secret),
            (Runtime::Python, true, plain),
            // Install scripts are off.
            (Runtime::Node, true, secret),
        ] {
            assert!(may_run_code(runtime, allow_sdist, index).is_ok());
        }
    }
}
