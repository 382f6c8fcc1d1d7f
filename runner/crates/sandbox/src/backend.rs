//! The line between who decides about sandboxes and who runs them: local runsc here, a cluster's some day.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::cgroup::Alarms;
use crate::error::SandboxError;
use crate::net::Wire;
use crate::pidfd::Watch;
use crate::secrets::SecretFile;
use crate::spec::{Bind, Program, Size};

/// What a sandbox is to be.
#[derive(Debug, Clone)]
pub struct Order {
    /// Its id: random, 12 to 32 characters of a-z and 0-9.
    pub id: String,
    /// Its place in the address pool.
    pub place: u32,
    /// The root file system, read-only for it.
    pub rootfs: PathBuf,
    /// What runs.
    pub program: Program,
    /// What it sees of the host.
    pub binds: Vec<Bind>,
    /// What it may use.
    pub size: Size,
    /// True if `/run/secrets` is to be there.
    pub with_secrets: bool,
    /// True if it is to be made with a second core where it has only one (see `Cores::at_birth`): good for who answers calls,
    /// bad for who computes.
    pub second_core_at_birth: bool,
}

/// A sandbox whose surroundings are made; its wire is down.
#[derive(Debug)]
pub struct Prepared {
    /// What it is to be.
    pub order: Order,
    /// Its wire.
    pub wire: Wire,
}

/// How it begins.
#[derive(Debug, Clone, Copy)]
pub enum Launch<'a> {
    /// From its first instruction.
    Cold,
    /// From a checkpoint, a folder of files in clear.
    Restore(&'a Path),
}

/// Where its output goes.
#[derive(Debug)]
pub struct Output {
    /// Its stdout.
    pub out: OwnedFd,
    /// Its stderr.
    pub err: OwnedFd,
}

/// What has to be known to find a running sandbox again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// Its id.
    pub id: String,
    /// Its place in the address pool.
    pub place: u32,
    /// Its process.
    pub pid: i32,
    /// When that was started, in clock ticks since boot.
    pub started: u64,
}

/// What it used since its start, and what it holds now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// CPU, in microseconds.
    pub cpu_us: u64,
    /// Memory now, in bytes.
    pub memory_bytes: u64,
    /// Storage now, in bytes.
    pub storage_bytes: u64,
    /// Host tasks now.
    pub tasks: u64,
}

/// Runs sandboxes. Every step may be tried again after it failed; [`Backend::destroy`] ends well whatever was made.
#[async_trait]
pub trait Backend: Send + Sync {
    /// Makes wire (down), storage, secrets and spec.
    async fn prepare(
        &self,
        order: Order,
        secrets: &[SecretFile<'_>],
    ) -> Result<Prepared, SandboxError>;

    /// Starts or restores a prepared sandbox. Its wire may come up meanwhile.
    async fn launch(
        &self,
        prepared: &Prepared,
        launch: Launch<'_>,
        output: Output,
    ) -> Result<(Placed, Watch), SandboxError>;

    /// Finds a sandbox of an earlier life of this program.
    async fn adopt(&self, placed: &Placed) -> Result<Watch, SandboxError>;

    /// Stops all its processes where they are.
    async fn freeze(&self, id: &str) -> Result<(), SandboxError>;

    /// Lets them go on.
    async fn thaw(&self, id: &str) -> Result<(), SandboxError>;

    /// Lets it have so much more memory than its limit: an image that it writes to a tmpfs counts as its own.
    fn lend_memory(&self, id: &str, bytes: u64) -> Result<(), SandboxError>;

    /// Ends that, when the image is no longer there. An error: it has used what it was lent, and has to end.
    fn take_memory_back(&self, id: &str, bytes: u64) -> Result<(), SandboxError>;

    /// Writes an image into a folder; the sandbox goes on.
    async fn checkpoint(&self, id: &str, image: &Path) -> Result<(), SandboxError>;

    /// Writes an image of `bytes` at the most, storage included, of a frozen sandbox into a folder. The sandbox ends with it:
    /// nothing that it does is missing in the image. It has to be destroyed then, whether there is an image or not.
    async fn lay_down(&self, id: &str, image: &Path, bytes: u64) -> Result<(), SandboxError>;

    /// What it uses.
    fn usage(&self, id: &str) -> Usage;

    /// What the kernel did to it.
    fn alarms(&self, id: &str) -> Alarms;

    /// Where it is, whether it runs or not.
    fn wire(&self, id: &str, place: u32) -> Wire;

    /// Takes away everything that was made for it, in the one order that works.
    async fn destroy(&self, id: &str, place: u32);

    /// Ids of all that is left of sandboxes, running or not.
    async fn leftovers(&self) -> Vec<String>;

    /// Takes away what all sandboxes share, when none of them is left.
    fn retire(&self);
}
