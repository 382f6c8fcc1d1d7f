//! The installer in its sandbox: like any other (gVisor, no rights, limits), with a way out to the package index alone, no
//! secrets, and one bounded file system to write to.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use domain::TenantId;
use nix::sys::statvfs::statvfs;
use runner_api::{ApiError, BuildEvent, ErrorCode, LogStream, Runtime, SandboxId};
use sandbox::{Bind, GUEST_UID, Launch, Order, Output, Prepared, Program, Size, on_thread};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::boxes::{Told, commands};
use crate::context::Context;
use crate::index;
use crate::logs;
use crate::room::Promise;
use crate::store;
use crate::wire::{Connected, Owner};

/// A build that takes longer is ended.
const BUILD_MAX: Duration = Duration::from_secs(600);
/// What a build may write.
const BUILD_STORAGE_MB: u32 = 4096;
const OUTPUT_LINES_MAX: usize = 2000;
const LINE_CHARS_MAX: usize = 1000;

/// Why a build has no layer.
pub(super) enum BuildFailed {
    /// For the bundle's owner.
    Owner(String),
    /// The disk has no room.
    NoRoom(ApiError),
    /// For the operator.
    Runner(anyhow::Error),
}

impl BuildFailed {
    /// In words for whoever asked.
    pub fn told(self) -> ApiError {
        match self {
            Self::Owner(text) => ApiError::new(ErrorCode::StartFailed, text),
            Self::NoRoom(error) => error,
            Self::Runner(error) => {
                tracing::error!(error = format!("{error:#}"), "a build failed");
                ApiError::new(
                    ErrorCode::Internal,
                    "the build could not be run; the runner's log has the reason",
                )
            }
        }
    }
}

impl<E: Into<anyhow::Error>> From<E> for BuildFailed {
    fn from(error: E) -> Self {
        Self::Runner(error.into())
    }
}

/// One installation, and where it is made: `making/in` is what it reads, `making/out` what it writes.
pub(super) struct Job<'a> {
    pub ctx: &'a Arc<Context>,
    /// Of its sandbox; the last part of `making`.
    pub id: &'a SandboxId,
    pub tenant: &'a TenantId,
    pub runtime: Runtime,
    pub rootfs: &'a Path,
    pub making: &'a Path,
    pub tell: &'a mpsc::Sender<BuildEvent>,
}

impl Job<'_> {
    pub fn input(&self) -> PathBuf {
        self.making.join("in")
    }

    pub fn out(&self) -> PathBuf {
        self.making.join("out")
    }

    /// Makes its folders; what it may write is bounded by a file system of its own.
    pub async fn prepare(&self) -> Result<()> {
        fs::DirBuilder::new()
            .mode(0o700)
            .create(self.making)
            .context("make a build folder")?;
        let (image, out) = (self.making.with_extension("ext4"), self.out());
        on_thread("weir-storage", move || {
            sandbox::make_storage(&image, &out, BUILD_STORAGE_MB, sandbox::Writes::Fast)
        })
        .await?;
        std::os::unix::fs::chown(self.out(), Some(GUEST_UID), Some(GUEST_UID))
            .context("give the build its folder")?;
        fs::create_dir(self.input()).context("make a build folder")
    }

    /// Room for a copy of all that it has written.
    pub fn room_for_a_copy(&self) -> Result<Promise, BuildFailed> {
        let stat = statvfs(&self.out()).context("ask how much a build has written")?;
        let used = stat.blocks().saturating_sub(stat.blocks_free()) * stat.fragment_size();
        let promise = self
            .ctx
            .room
            .promise(self.tenant, used.min(super::copy::LAYER_BYTES_MAX));
        promise.map_err(BuildFailed::NoRoom)
    }

    /// Takes all of it away.
    pub async fn clean(&self) {
        let (making, image) = (self.making.to_owned(), self.making.with_extension("ext4"));
        on_thread("weir-clean", move || {
            sandbox::drop_storage(&image, &making.join("out"));
            let _ = fs::remove_dir_all(&making);
        })
        .await;
    }

    /// Runs a program of the runner's own in a sandbox. It leaves `/out/done` when all went well.
    pub async fn run(&self, program: Program) -> Result<(), BuildFailed> {
        let ctx = self.ctx;
        let id = self.id;
        let place = ctx
            .places
            .take()
            .context("all places of the address pool are in use")?;
        // As long as it writes, it can be ended for its tenant's flood.
        let (commands, told) = commands();
        ctx.enders.add(id, self.tenant, commands.ender());
        let ran = self.run_as(place, program, &told).await;
        ctx.enders.take(id);
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

    async fn run_as(&self, place: u32, program: Program, told: &Told) -> Result<(), BuildFailed> {
        let (ctx, id) = (self.ctx, self.id);
        let prepared = ctx.backend.prepare(self.order(place, program), &[]).await?;
        let hosts = match self.runtime {
            Runtime::Python => index::python_hosts(),
            Runtime::Node => index::npm_hosts(),
        };
        let (rules, targets) = index::way_out(&hosts, &ctx.targets).await?;
        let owner = Owner {
            tenant: self.tenant.clone(),
            server: build_server(),
            sandbox: id.clone(),
        };
        // Builds are nobody's usage.
        let unpaid = Arc::new(metering::Tally::unkept(0));
        let connected = Connected::open(ctx, &prepared.wire, rules, targets, owner, unpaid).await?;
        let ended = until_it_ends(self, &prepared, told).await;
        connected.close(ctx).await;
        let said = match ended? {
            Ended::Itself(said) => said,
            Ended::Late => {
                return Err(BuildFailed::Owner(format!(
                    "the installation did not end within {} s",
                    BUILD_MAX.as_secs()
                )));
            }
            Ended::ForRoom => {
                return Err(BuildFailed::NoRoom(ApiError::new(
                    ErrorCode::NoCapacity,
                    "the host's disk was nearly full, and this tenant had written the most: the build was ended",
                )));
            }
        };
        if self.out().join("done").is_file() {
            return Ok(());
        }
        let alarms = ctx.backend.alarms(id.as_str());
        if alarms.oom_kills > 0 {
            return Err(BuildFailed::Owner(
                "the installation used more than 2 GiB of memory".into(),
            ));
        }
        Err(BuildFailed::Owner(explain(&said, self.runtime)))
    }

    fn order(&self, place: u32, program: Program) -> Order {
        const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
        let bind = |source: &Path, target: &str, writable| Bind {
            source: source.to_owned(),
            target: target.into(),
            writable,
        };
        let resolver = self.ctx.paths.run.join("resolv.conf");
        Order {
            id: self.id.as_str().to_owned(),
            place,
            rootfs: self.rootfs.to_owned(),
            program,
            binds: vec![
                bind(&self.input(), "/bundle", false),
                bind(&self.out(), "/out", true),
                bind(&resolver, "/etc/resolv.conf", false),
                bind(Path::new(CERTIFICATES), CERTIFICATES, false),
            ],
            size: Size {
                cpu_shares: 1024,
                memory_mb: 2048,
                storage_mb: 512,
                // A build is short, and somebody waits for it.
                storage_write_mib_s: None,
                processes: 256,
            },
            with_secrets: false,
            second_core_at_birth: false,
        }
    }
}

/// How an installation came to its end.
enum Ended {
    /// With what it wrote last.
    Itself(Vec<String>),
    Late,
    /// The guard of the disk ended it.
    ForRoom,
}

async fn until_it_ends(job: &Job<'_>, prepared: &Prepared, told: &Told) -> Result<Ended> {
    let (ctx, id) = (job.ctx, job.id);
    prepared.wire.up().await?;
    let dir = ctx.paths.run.join("pipes");
    let pipe = |stream| logs::make_pipe(&logs::pipe_path(&dir, id.as_str(), stream));
    let output = Output {
        out: pipe(LogStream::Stdout)?,
        err: pipe(LogStream::Stderr)?,
    };
    let (lines, readers) = follow(&dir, id, job.tell, &index::of(job.runtime))?;
    let (_, watch) = ctx.backend.launch(prepared, Launch::Cold, output).await?;
    tokio::select! {
        _ = watch.ended() => {}
        _ = told.stopped() => return Ok(Ended::ForRoom),
        () = tokio::time::sleep(BUILD_MAX) => return Ok(Ended::Late),
    }
    // What it wrote last is often still in the pipe.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let said = lines.lock().await.iter().cloned().collect();
    drop(readers);
    Ok(Ended::Itself(said))
}

/// Events of builds have no server of their own.
fn build_server() -> domain::ServerId {
    domain::ServerId::parse("build").expect("letters")
}

/// The installer of a tenant's dependencies, as a shell script without any word of the tenant's. What common layers have
/// was put where it looks first.
pub(super) fn installer(runtime: Runtime, allow_sdist: bool) -> Program {
    let only_wheels = if allow_sdist { "" } else { ONLY_WHEELS };
    program(match runtime {
        Runtime::Python => format!(
            "cd /out && {UV} {only_wheels} --target /out/deps -r /bundle/requirements.txt && touch /out/done"
        ),
        Runtime::Node => format!(
            "mkdir -p /out/build && cd /out/build && cp /bundle/* . && \
             if [ -f package-lock.json ]; then npm ci --prefer-offline {NPM_FLAGS}; else npm install {NPM_FLAGS}; fi && \
             mkdir -p node_modules && mv node_modules /out/deps && touch /out/done"
        ),
    })
}

/// The installer of a common layer: the same, and it keeps what the other one looks for.
pub(super) fn common_installer(runtime: Runtime) -> Program {
    // The bytecode is what uv would have made of a package in its place; it links whatever lies in a package's folder.
    const COMPILE: &str = "import compileall, os\n\
        base = '/out/cache/archive-v0/'\n\
        for d in (base + name for name in os.listdir(base)):\n    \
            compileall.compile_dir(d, maxlevels=64, quiet=2, stripdir=d, prependdir='/out/deps')\n";
    let script = match runtime {
        Runtime::Python => format!(
            "cd /out && {UV} {ONLY_WHEELS} --target /out/target -r /bundle/requirements.txt && \
             rm -rf cache/simple-* cache/interpreter-* cache/sdists-* && /usr/bin/python3 -I -c \"$COMPILE\" && \
             mkdir deps && mv cache deps && touch done"
        ),
        Runtime::Node => format!(
            "mkdir -p /out/build && cd /out/build && cp /bundle/package.json . && npm install {NPM_FLAGS} && \
             cd /out && rm -rf cache/_logs && mkdir deps && mv cache build/node_modules deps && touch done"
        ),
    };
    let mut program = program(script);
    program.env.push(("COMPILE".to_owned(), COMPILE.to_owned()));
    program
}

// Links into uv's cache are no harm here: it is in /out too, and thrown away with it.
const UV: &str = "uv pip install --no-config --no-progress --color never --cache-dir /out/cache --python /usr/bin/python3 \
    --link-mode hardlink --compile-bytecode --index-url \"$INDEX\"";
const ONLY_WHEELS: &str = "--only-binary :all:";
const NPM_FLAGS: &str =
    "--ignore-scripts --omit=dev --no-audit --no-fund --loglevel=http --progress=false";

fn program(script: String) -> Program {
    const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
    let (index, registry) = (index::python_index(), index::npm_registry());
    let env = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", "/out"),
        ("TMPDIR", "/out"),
        ("SSL_CERT_FILE", CERTIFICATES),
        ("INDEX", &index),
        ("UV_NO_WRAP", "1"),
        ("NODE_EXTRA_CA_CERTS", CERTIFICATES),
        ("npm_config_registry", &registry),
        ("npm_config_update_notifier", "false"),
        ("npm_config_cache", "/out/cache"),
    ];
    Program {
        args: ["/bin/sh", "-c", &script].map(str::to_owned).to_vec(),
        env: env
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        cwd: "/out".into(),
    }
}

type Lines = Arc<tokio::sync::Mutex<std::collections::VecDeque<String>>>;

/// Reads what the installer prints, tells it, and keeps the end of it.
fn follow(
    dir: &Path,
    id: &SandboxId,
    tell: &mpsc::Sender<BuildEvent>,
    index: &str,
) -> Result<(Lines, JoinSet<()>)> {
    let kept: Lines = Arc::default();
    // The pipes have no end, as their reader holds both; dropping the set is what ends the reading.
    let mut readers = JoinSet::new();
    for stream in [LogStream::Stdout, LogStream::Stderr] {
        let path = logs::pipe_path(dir, id.as_str(), stream);
        let receiver = tokio::net::unix::pipe::OpenOptions::new()
            .read_write(true)
            .open_receiver(&path)?;
        let (kept, tell, index) = (Arc::clone(&kept), tell.clone(), index.to_owned());
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
                    .collect();
                // Before it is cut: half a password is one too.
                let text: String = index::hide_credentials(text, &index)
                    .chars()
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
