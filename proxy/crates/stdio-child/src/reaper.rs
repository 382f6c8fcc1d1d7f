//! The process between us and a server: it starts the server, adopts whatever the server leaves behind,
//! and does not end before all of that has ended.
//!
//! ```text
//!             server ended, leaving others | 'T' | our death | SIGTERM
//!   Running ---------------------------------> Terminating --- grace over | 'K' ---> Killing
//!      |                                            |                                   |
//!      '------------------ no child is left: report, end <------------------------------'
//! ```
//!
//! It has one thread and blocks in `poll`. It never reads or copies a byte of the server's input or
//! output, and never ends because of a signal it can block. It is in a session of its own, so a terminal's
//! Ctrl-C does not reach it, and the server is in a process group of its own, so a server that
//! signals its group does not hit it.
//!
//! What it relies on: a child subreaper gets every orphan among its descendants as its own child, also
//! those that called `setsid` or forked twice; so "no child left" means "no descendant left". What
//! escapes: a process that runs as another user (setuid) and may not be signalled.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, dup2_stdin, dup2_stdout, getpid, setsid};

use crate::control::{KILL, Report, TERMINATE};
use crate::{procfs, sys};

/// Exit code when the reaper itself cannot work; the shell's for "found but not executed" is 126.
const EXIT_SETUP: i32 = 125;
const EXIT_NOT_STARTED: i32 = 126;
/// Waits between two rounds of SIGKILL when nothing dies: doubling, for what cannot die at once (disk wait).
const KILL_PAUSE_FIRST: Duration = Duration::from_millis(10);
const KILL_PAUSE_MAX: Duration = Duration::from_millis(500);
/// The name in process lists. Not the program's own: `pkill -9 weir` must leave reapers to do their work.
pub(crate) const PROCESS_NAME: &std::ffi::CStr = c"mcp-reaper";

/// The whole life of a reaper process; its result is the process's exit code: the server's, or 128 plus
/// the signal that ended it. `args` are those after [`crate::REAPER_COMMAND`]. Call it first thing in
/// `main`, before any runtime: it needs a process with one thread.
///
/// ```no_run
/// let mut args = std::env::args_os().skip(1);
/// if args.next().is_some_and(|first| first == stdio_child::REAPER_COMMAND) {
///     std::process::exit(stdio_child::reaper_main(args));
/// }
/// ```
pub fn reaper_main(args: impl IntoIterator<Item = OsString>) -> i32 {
    let Some(job) = Job::parse(args) else {
        return EXIT_SETUP;
    };
    let Ok(control) = io::stdin().as_fd().try_clone_to_owned() else {
        return EXIT_SETUP;
    };
    let mut control = UnixStream::from(control);
    let report = match start(&job, &control) {
        Ok((signals, server)) => {
            return Reaper {
                control: Some(control),
                signals,
                server,
                server_exit: None,
                grace: job.grace,
                phase: Phase::Running,
            }
            .run();
        }
        Err(report) => report,
    };
    // If nobody hears it, nobody asks.
    let _ = control.write_all(&report.encode());
    EXIT_NOT_STARTED
}

/// The command line `--grace-ms N [--cwd DIR] [--files N] -- PROGRAM ARGS`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) grace: Duration,
    pub(crate) cwd: Option<PathBuf>,
    /// The server's soft limit on open files, where it is not ours.
    pub(crate) files: Option<u64>,
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
}

impl Job {
    pub(crate) fn into_args(self) -> Vec<OsString> {
        let mut args = vec![
            "--grace-ms".into(),
            self.grace.as_millis().to_string().into(),
        ];
        if let Some(cwd) = self.cwd {
            args.extend(["--cwd".into(), cwd.into_os_string()]);
        }
        if let Some(files) = self.files {
            args.extend(["--files".into(), files.to_string().into()]);
        }
        args.extend(["--".into(), self.program]);
        args.extend(self.args);
        args
    }

    fn parse(args: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut args = args.into_iter();
        let mut grace = None;
        let (mut cwd, mut files) = (None, None);
        loop {
            match args.next()?.to_str()? {
                "--grace-ms" => grace = Some(args.next()?.to_str()?.parse().ok()?),
                "--cwd" => cwd = Some(PathBuf::from(args.next()?)),
                "--files" => files = Some(args.next()?.to_str()?.parse().ok()?),
                "--" => break,
                _ => return None,
            }
        }
        Some(Self {
            grace: Duration::from_millis(grace?),
            cwd,
            files,
            program: args.next()?,
            args: args.collect(),
        })
    }
}

/// Makes this process a reaper and starts the server, or says why not. The order matters: the
/// subreaper mark before the first child, the signal mask before the first SIGCHLD.
fn start(job: &Job, control: &UnixStream) -> Result<(SignalFd, Pid), Report> {
    let errno = |error: io::Error| error.raw_os_error().unwrap_or(Errno::EIO as i32);
    let setup = |error: io::Error| Report::SetupFailed(errno(error));
    let signals = become_reaper().map_err(setup)?;
    let stdin = sys::receive_fd(control).map_err(setup)?;
    control.set_nonblocking(true).map_err(setup)?;
    if let Some(cwd) = &job.cwd {
        std::env::set_current_dir(cwd).map_err(|error| Report::CwdFailed(errno(error)))?;
    }
    if let Some(files) = job.files {
        lower_open_files(files).map_err(setup)?;
    }
    let server = start_server(job, stdin).map_err(|error| Report::ProgramFailed(errno(error)))?;
    // From here on the pipes are the server's alone: when it goes, both sides see the end of file.
    if let Err(error) = let_go() {
        let _ = kill(server, Signal::SIGKILL);
        return Err(setup(error));
    }
    // Should we have died meanwhile, the first read tells.
    let _ = (&mut &*control).write_all(&Report::Started(server.as_raw()).encode());
    Ok((signals, server))
}

fn become_reaper() -> io::Result<SignalFd> {
    // Fails only for a group leader, which then is out of the terminal's group already.
    let _ = setsid();
    prctl::set_name(PROCESS_NAME)?;
    prctl::set_child_subreaper(true)?;
    sys::close_others_on_exec()?;
    sys::default_sigchld()?;
    let all = SigSet::all();
    all.thread_block()?;
    Ok(SignalFd::with_flags(
        &all,
        SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC,
    )?)
}

/// What a server inherits. The hard limit stays as it is: a server that can take more may raise its own.
fn lower_open_files(soft: u64) -> io::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, soft.min(hard), hard)?)
}

fn start_server(job: &Job, stdin: OwnedFd) -> io::Result<Pid> {
    let mut command = Command::new(&job.program);
    command.args(&job.args).stdin(stdin).process_group(0);
    sys::die_with_parent(&mut command, getpid());
    // The handle has no destructor; `Reaper::reap` waits for it like for any other child.
    let server = command.spawn()?;
    Ok(Pid::from_raw(server.id() as i32))
}

/// Drops our copies of the server's stdout and of the control socket on stdin, and the directory.
fn let_go() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    std::env::set_current_dir("/")
}

/// How far the ending has come.
#[derive(Clone, Copy, Debug)]
enum Phase {
    Running,
    Terminating { kill_at: Instant },
    Killing { again_at: Instant, pause: Duration },
}

/// What [`Reaper::reap`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaped {
    None,
    Some,
    /// No child is left.
    Last,
}

struct Reaper {
    /// `None` once the other end is closed.
    control: Option<UnixStream>,
    signals: SignalFd,
    server: Pid,
    server_exit: Option<ExitStatus>,
    grace: Duration,
    phase: Phase,
}

impl Reaper {
    fn run(mut self) -> i32 {
        loop {
            let reaped = self.reap();
            if reaped == Reaped::Last {
                self.report(Report::Done);
                return exit_code(self.server_exit);
            }
            self.advance(reaped, Instant::now());
            self.wait();
            self.read_signals();
            self.read_control();
        }
    }

    /// Takes the status of every child that has ended.
    fn reap(&mut self) -> Reaped {
        let mut reaped = Reaped::None;
        loop {
            let (pid, status) = match sys::wait_any() {
                Ok(Some(ended)) => ended,
                Ok(None) => return reaped,
                // ECHILD. Nothing else can be: the arguments are right and no handler interrupts.
                Err(_) => return Reaped::Last,
            };
            reaped = Reaped::Some;
            if pid == self.server {
                self.server_exit = Some(status);
                self.report(match status.signal() {
                    Some(signal) => Report::Signaled(signal),
                    None => Report::Exited(status.code().unwrap_or(-1)),
                });
            }
        }
    }

    /// Goes on to the next phase when its time has come, and signals what is left.
    fn advance(&mut self, reaped: Reaped, now: Instant) {
        match self.phase {
            Phase::Running if self.server_exit.is_some() => self.terminate(now),
            Phase::Terminating { kill_at } if kill_at <= now => {
                self.kill_round(now, KILL_PAUSE_FIRST);
            }
            // A death may have made a child of ours that was not seen before. At once, since a process
            // that forks and exits over and over is caught only while it is young.
            Phase::Killing { .. } if reaped == Reaped::Some => {
                self.kill_round(now, KILL_PAUSE_FIRST);
            }
            Phase::Killing { again_at, pause } if again_at <= now => {
                self.kill_round(now, (pause * 2).min(KILL_PAUSE_MAX));
            }
            _ => {}
        }
    }

    fn terminate(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Running) {
            // SIGCONT, since a stopped process does not see SIGTERM.
            self.signal_all(&[Signal::SIGTERM, Signal::SIGCONT]);
            self.phase = Phase::Terminating {
                kill_at: now + self.grace,
            };
        }
    }

    fn kill_round(&mut self, now: Instant, pause: Duration) {
        self.signal_all(&[Signal::SIGKILL]);
        self.phase = Phase::Killing {
            again_at: now + pause,
            pause,
        };
    }

    /// Signals every descendant. Our own children cannot be mixed up with others: their ids are not given
    /// out again before we wait for them. For deeper ones there is a gap of microseconds between
    /// reading and signalling in which an id would have to be freed and the whole range go round.
    fn signal_all(&self, signals: &[Signal]) {
        let mut pids = procfs::descendants(getpid().as_raw());
        if pids.is_empty() && self.server_exit.is_none() {
            // Without /proc: at least the server and its group.
            pids = vec![self.server.as_raw(), -self.server.as_raw()];
        }
        for pid in pids {
            for signal in signals {
                // Gone is what we want; not permitted is beyond us (see the module's words).
                let _ = kill(Pid::from_raw(pid), *signal);
            }
        }
    }

    /// Blocks until something happens or the phase's time is over.
    fn wait(&self) {
        let until = match self.phase {
            Phase::Running => None,
            Phase::Terminating { kill_at } => Some(kill_at),
            Phase::Killing { again_at, .. } => Some(again_at),
        };
        let timeout = until.map_or(PollTimeout::NONE, |until| {
            // One millisecond up, so that the time is over when we wake and we do not spin to it.
            let left = until.saturating_duration_since(Instant::now()).as_millis() + 1;
            PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
        });
        let mut fds = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        if let Some(control) = &self.control {
            fds.push(PollFd::new(control.as_fd(), PollFlags::POLLIN));
        }
        // EINTR cannot be, all signals are blocked; and any other error leads to another round.
        let _ = poll(&mut fds, timeout);
    }

    fn read_signals(&mut self) {
        const POLITE: [Signal; 4] = [
            Signal::SIGTERM,
            Signal::SIGINT,
            Signal::SIGHUP,
            Signal::SIGQUIT,
        ];
        // A standard signal is pending at most once, real-time ones are bounded by the kernel.
        while let Ok(Some(info)) = self.signals.read_signal() {
            if POLITE.iter().any(|signal| *signal as u32 == info.ssi_signo) {
                self.terminate(Instant::now());
            }
        }
    }

    fn read_control(&mut self) {
        let Some(control) = &mut self.control else {
            return;
        };
        let mut words = [0u8; 16];
        match control.read(&mut words) {
            Ok(count @ 1..) => {
                let words = &words[..count];
                if words.contains(&KILL) {
                    self.kill_round(Instant::now(), KILL_PAUSE_FIRST);
                } else if words.contains(&TERMINATE) {
                    self.terminate(Instant::now());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The other end is gone, and with it the one who wanted the server.
            Ok(0) | Err(_) => {
                self.control = None;
                self.terminate(Instant::now());
            }
        }
    }

    fn report(&mut self, report: Report) {
        if let Some(control) = &mut self.control {
            // A dozen bytes always fit into the socket's buffer; a closed one shows at the next read.
            let _ = control.write_all(&report.encode());
        }
    }
}

fn exit_code(exit: Option<ExitStatus>) -> i32 {
    exit.map_or(EXIT_SETUP, |status| {
        status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn os(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn job_round_trip() {
        for (cwd, args) in [
            (None, os(&[])),
            (Some(PathBuf::from("/a b")), os(&["--", "--cwd", "x", ""])),
        ] {
            let job = || Job {
                grace: Duration::from_millis(1500),
                cwd: cwd.clone(),
                files: cwd.as_ref().map(|_| 1024),
                program: "prog".into(),
                args: args.clone(),
            };
            assert_eq!(Job::parse(job().into_args()), Some(job()));
        }
    }

    #[test]
    fn other_command_lines_are_refused() {
        for words in [
            &[][..],
            &["--grace-ms", "5"],
            &["--grace-ms", "5", "--"],
            &["--grace-ms", "x", "--", "prog"],
            &["--grace-ms", "-1", "--", "prog"],
            &["--", "prog"],
            &["--other", "--", "prog"],
        ] {
            assert_eq!(Job::parse(os(words)), None, "{words:?}");
        }
    }
}
