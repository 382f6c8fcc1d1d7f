//! What to run and how: the description of one server process. Nothing here starts anything.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The hidden first argument by which `main` knows that it is to be a reaper.
pub const REAPER_COMMAND: &str = "__reaper";

/// How to run one stdio server.
///
/// ```
/// use stdio_child::ChildSpec;
/// let mut spec = ChildSpec::new("npx");
/// spec.args = vec!["-y".into(), "@modelcontextprotocol/server-everything".into()];
/// ```
#[derive(Clone)]
pub struct ChildSpec {
    /// The program: a path, or a name looked up in the child's `PATH`. A relative path is taken
    /// from `cwd`.
    pub program: OsString,
    /// Its arguments, without the program's name.
    pub args: Vec<OsString>,
    /// Environment variables to set. May hold secrets: `Debug` prints the names only.
    pub env: Vec<(OsString, OsString)>,
    /// Whether the child starts with an empty environment instead of ours.
    pub env_clear: bool,
    /// The working directory; ours when `None`.
    pub cwd: Option<PathBuf>,
    /// The longest line in bytes, both ways, the line end not counted.
    pub line_bytes_max: usize,
    /// The longest line that is written, where that may be longer than one that is read.
    pub written_bytes_max: Option<usize>,
    /// Where the server's stderr goes.
    pub stderr: StderrSink,
    /// How many lines may wait for a server that does not read its stdin.
    pub queue_max: usize,
    /// How long each polite step of [`crate::Child::stop`] may take: once after stdin is closed, once
    /// after SIGTERM. After the death of this process only the second applies.
    pub stop_grace: Duration,
    /// Which program acts as the reaper.
    pub reaper: ReaperMode,
}

impl ChildSpec {
    /// A description with the defaults: 4 MiB lines, 64 waiting lines, 2 s of grace, stderr
    /// inherited, our environment and directory.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            env_clear: false,
            cwd: None,
            line_bytes_max: 4 * 1024 * 1024,
            written_bytes_max: None,
            stderr: StderrSink::Inherit,
            queue_max: 64,
            stop_grace: Duration::from_secs(2),
            reaper: ReaperMode::CurrentExe,
        }
    }
}

impl fmt::Debug for ChildSpec {
    /// Environment values and arguments may be credentials, so they are counted or named, not shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let env_names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("ChildSpec")
            .field("program", &self.program)
            .field("args_count", &self.args.len())
            .field("env_names", &env_names)
            .field("env_clear", &self.env_clear)
            .field("cwd", &self.cwd)
            .field("line_bytes_max", &self.line_bytes_max)
            .field("written_bytes_max", &self.written_bytes_max)
            .field("stderr", &self.stderr)
            .field("queue_max", &self.queue_max)
            .field("stop_grace", &self.stop_grace)
            .field("reaper", &self.reaper)
            .finish()
    }
}

/// Where a server's stderr goes.
#[derive(Clone)]
pub enum StderrSink {
    /// To our own stderr, untouched.
    Inherit,
    /// Line by line to the callback. A line is cut at 4 KiB, bad UTF-8 and control characters are
    /// replaced. The callback must not block: the server's stderr waits for it.
    Log(Arc<dyn Fn(&str) + Send + Sync>),
    /// Thrown away.
    Null,
}

impl fmt::Debug for StderrSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inherit => "Inherit",
            Self::Log(_) => "Log",
            Self::Null => "Null",
        })
    }
}

/// Which program is run as the reaper.
#[derive(Clone, Debug)]
pub enum ReaperMode {
    /// This program again, with [`REAPER_COMMAND`] as its first argument. Its `main` must call
    /// [`crate::reaper_main`] before it starts a thread. (A test program has no such `main`: name the real one.)
    CurrentExe,
    /// Another program, with leading arguments, which calls [`crate::reaper_main`].
    Program(PathBuf, Vec<OsString>),
}
