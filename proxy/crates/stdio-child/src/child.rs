//! The handle to one running server, and how it comes to run.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::{Buf, Bytes};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::process::{ChildStdout, Command};
use tokio::sync::{mpsc, oneshot, watch};

use crate::control::{self, Report};
use crate::driver::{Driver, stop_requested};
use crate::error::{Exit, SendError, SpawnError};
use crate::line::LineReceiver;
use crate::reaper::{Job, PROCESS_NAME};
use crate::spec::{ChildSpec, REAPER_COMMAND, ReaperMode, StderrSink};
use crate::stderr::read_stderr;

/// Between the start of the reaper and the server's exec lie a few milliseconds of work. On a machine
/// that needs this long, nothing works.
const START_MAX: Duration = Duration::from_secs(30);
/// The environment variable by which a server's descendants can be told from other processes.
const TAG_NAME: &str = "WEIR_CHILD_TAG";

/// The soft limit on open files that servers are started with.
static OPEN_FILES: OnceLock<u64> = OnceLock::new();

/// Servers that are started from now on have this soft limit on open files, whatever this process raises its own to: there are
/// programs that use `select`, which cannot take descriptors above 1,023, or that close each number up to the limit. The
/// first call of a process counts.
pub fn keep_open_files_of_servers(soft: u64) {
    let _ = OPEN_FILES.set(soft);
}

/// One running server. Dropping it stops the server in the background, as [`Child::stop`] does; so
/// does the end of the runtime it was spawned on.
pub struct Child {
    pid: u32,
    program: String,
    written_bytes_max: usize,
    queue: mpsc::Sender<Bytes>,
    stop: watch::Sender<bool>,
    exit: watch::Receiver<Option<Exit>>,
}

impl Child {
    /// Starts the server; returns when its program has been executed. Needs a tokio runtime with I/O
    /// and time. Whatever this call's fate, error or cancellation, no process is left behind.
    pub async fn spawn(spec: &ChildSpec) -> Result<(Child, LineReceiver), SpawnError> {
        let program = spec.program.to_string_lossy().into_owned();
        let (queue, lines) = mpsc::channel(spec.queue_max.max(1));
        let (stop, stop_seen) = watch::channel(false);
        let (exit_sender, exit) = watch::channel(None);
        let (started_sender, started) = oneshot::channel();

        let running = start(spec).map_err(|source| SpawnError::Reaper {
            program: program.clone(),
            source,
        })?;
        let writer = tokio::spawn(write_lines(lines, running.stdin, stop_seen.clone()));
        let driver = Driver {
            program: program.clone(),
            tag: running.tag,
            grace: spec.stop_grace,
            reaper: running.reaper,
            control: running.control,
            started: Some(started_sender),
            stop: stop_seen,
            writer,
            stderr: running.stderr,
            exit: exit_sender,
        };
        tokio::spawn(driver.run());

        let mut child = Child {
            pid: 0,
            program,
            written_bytes_max: spec.written_bytes_max.unwrap_or(spec.line_bytes_max),
            queue,
            stop,
            exit,
        };
        child.pid = child.wait_for_start(started, spec).await?;
        Ok((
            child,
            LineReceiver::new(running.stdout, spec.line_bytes_max),
        ))
    }

    /// Queues `line` and a line feed for the server's stdin; waits while the queue is full. Once this
    /// returns `Ok` the line is written whole or, if the server ends, not at all; never in part because
    /// the caller went away.
    pub async fn send(&self, line: Bytes) -> Result<(), SendError> {
        if line.len() > self.written_bytes_max {
            return Err(SendError::TooLong {
                bytes: line.len(),
                bytes_max: self.written_bytes_max,
            });
        }
        if memchr::memchr(b'\n', &line).is_some() {
            return Err(SendError::LineFeed);
        }
        self.queue.send(line).await.map_err(|_| SendError::Closed)
    }

    /// Whether the server, or anything it started, has not been seen to end yet.
    pub fn is_alive(&self) -> bool {
        self.exit.borrow().is_none()
    }

    /// Whether somebody asked for its end.
    pub fn is_told_to_stop(&self) -> bool {
        *self.stop.borrow()
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Ends the server and all it started: the queue is written and stdin closed; after the grace
    /// SIGTERM to all; after another grace SIGKILL to all. Returns when all are gone. May be called
    /// again, and from many tasks; cancelling it does not cancel the stop.
    pub async fn stop(&self) -> Exit {
        self.stop.send_replace(true);
        self.exited().await
    }

    /// Resolves when the server and everything it started are gone. Does not borrow the child, and does
    /// not stop it.
    pub fn exited(&self) -> impl Future<Output = Exit> + Send + use<> {
        let mut exit = self.exit.clone();
        let program = self.program.clone();
        async move {
            let exit = exit.wait_for(Option::is_some).await;
            // An error means that the runtime which ran the driver is gone, and the reaper knows it.
            exit.ok().and_then(|exit| exit.clone()).unwrap_or(Exit {
                program,
                code: None,
                signal: None,
                stderr_tail: Vec::new(),
            })
        }
    }

    async fn wait_for_start(
        &self,
        started: oneshot::Receiver<Report>,
        spec: &ChildSpec,
    ) -> Result<u32, SpawnError> {
        let program = self.program.clone();
        let Ok(report) = tokio::time::timeout(START_MAX, started).await else {
            return Err(SpawnError::Timeout {
                program,
                waited: START_MAX,
            });
        };
        let error = match report {
            Ok(Report::Started(pid)) => return Ok(pid.unsigned_abs()),
            Ok(Report::ProgramFailed(errno)) => SpawnError::Program {
                program,
                source: io::Error::from_raw_os_error(errno),
            },
            Ok(Report::CwdFailed(errno)) => SpawnError::Cwd {
                path: spec.cwd.clone().unwrap_or_default(),
                source: io::Error::from_raw_os_error(errno),
            },
            Ok(Report::SetupFailed(errno)) => SpawnError::Reaper {
                program,
                source: io::Error::from_raw_os_error(errno),
            },
            Ok(_) | Err(_) => SpawnError::ReaperEnded { program },
        };
        // It is ending by itself; only its status is still to be taken.
        self.exited().await;
        Err(error)
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child")
            .field("program", &self.program)
            .field("pid", &self.pid)
            .field("is_alive", &self.is_alive())
            .finish_non_exhaustive()
    }
}

/// The processes' ends that we hold.
struct Running {
    tag: String,
    reaper: tokio::process::Child,
    control: tokio::net::UnixStream,
    stdin: pipe::Sender,
    stdout: ChildStdout,
    stderr: Option<tokio::task::JoinHandle<Vec<String>>>,
}

/// Starts the reaper. The server's stdin travels in the control socket, so that nothing but the three
/// standard descriptors is inherited, and the control socket is the reaper's own stdin.
fn start(spec: &ChildSpec) -> io::Result<Running> {
    let (ours, theirs) = UnixStream::pair()?;
    let (stdin_reader, stdin_writer) = io::pipe()?;
    control::send_fd(&ours, stdin_reader.as_fd())?;
    ours.set_nonblocking(true)?;
    let control = tokio::net::UnixStream::from_std(ours)?;
    let stdin = pipe::Sender::from_owned_fd(OwnedFd::from(stdin_writer))?;

    let tag = format!("{TAG_NAME}={}", new_tag());
    let mut command = reaper_command(spec, &tag);
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::piped());
    command.stderr(match spec.stderr {
        StderrSink::Inherit => Stdio::inherit(),
        StderrSink::Log(_) => Stdio::piped(),
        StderrSink::Null => Stdio::null(),
    });
    let mut reaper = command.spawn()?;
    let stdout = reaper.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let stderr = match (&spec.stderr, reaper.stderr.take()) {
        (StderrSink::Log(sink), Some(stderr)) => {
            Some(tokio::spawn(read_stderr(stderr, sink.clone())))
        }
        _ => None,
    };
    Ok(Running {
        tag,
        reaper,
        control,
        stdin,
        stdout,
        stderr,
    })
}

/// No closure runs between fork and exec, so that the standard library may use `posix_spawn`: the cost
/// of a fork would grow with our memory. There is no parent-death signal from us to the reaper
/// either: it would come when the *thread* that spawned ends, and worker threads may. The end of file
/// on the control socket comes when the process ends.
fn reaper_command(spec: &ChildSpec, tag: &str) -> Command {
    let (path, leading) = match &spec.reaper {
        // The link, not the path behind it: that file may have been replaced since we started.
        ReaperMode::CurrentExe => (
            "/proc/self/exe".into(),
            vec![OsString::from(REAPER_COMMAND)],
        ),
        ReaperMode::Program(path, leading) => (path.clone(), leading.clone()),
    };
    let job = Job {
        grace: spec.stop_grace,
        cwd: spec.cwd.clone(),
        files: OPEN_FILES.get().copied(),
        program: spec.program.clone(),
        args: spec.args.clone(),
    };
    let mut command = Command::new(path);
    command.arg0(PROCESS_NAME.to_string_lossy().as_ref());
    command.args(leading).args(job.into_args());
    if spec.env_clear {
        command.env_clear();
    }
    command.envs(spec.env.iter().map(|(name, value)| (name, value)));
    if let Some((name, value)) = tag.split_once('=') {
        command.env(name, value);
    }
    command
}

/// A value no other child of any process on this machine has.
fn new_tag() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanos = since_epoch.map_or(0, |time| time.as_nanos());
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{nanos:x}-{next}", std::process::id())
}

/// Writes the queue to the server's stdin, one line after the other, and closes it when no line can
/// come any more. A task of its own, so that a caller who goes away never leaves half a line.
async fn write_lines(
    mut lines: mpsc::Receiver<Bytes>,
    mut stdin: pipe::Sender,
    mut stop: watch::Receiver<bool>,
) {
    let mut closing = false;
    loop {
        let line = tokio::select! {
            biased;
            () = stop_requested(&mut stop), if !closing => {
                // What is queued was promised and is still written.
                lines.close();
                closing = true;
                continue;
            }
            line = lines.recv() => line,
        };
        let Some(line) = line else {
            return;
        };
        if stdin
            .write_all_buf(&mut line.chain(&b"\n"[..]))
            .await
            .is_err()
        {
            return;
        }
    }
}
