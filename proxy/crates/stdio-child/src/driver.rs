//! The one task that knows how far a server's life has come.
//!
//! ```text
//!  Open --stop--> StdinClosed --grace--> Terminated --grace + 1 s--> Killed --5 s--> reaper killed
//!    |                 |                    |                          |                 |
//!    '-----------------'--- control socket at its end -----------------'--> sweep unless Done
//!                                                                              |
//!                                                              take the reaper's status, publish Exit
//! ```
//!
//! It sends no signal to the server or its descendants, which is the reaper's work, unless the reaper
//! died before its work was done.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::control::{KILL, REPORT_BYTES, Report, TERMINATE};
use crate::error::Exit;
use crate::sweep::sweep;

/// The reaper kills by itself after the grace; only if it does not, we ask for it.
const TERMINATE_MARGIN: Duration = Duration::from_secs(1);
/// After SIGKILL to all, only a process in disk wait is left, or the reaper itself hangs.
const KILL_MAX: Duration = Duration::from_secs(5);
/// All who could write to stderr are gone by then.
const STDERR_MAX: Duration = Duration::from_secs(1);

pub(crate) struct Driver {
    pub(crate) program: String,
    pub(crate) tag: String,
    pub(crate) grace: Duration,
    pub(crate) reaper: tokio::process::Child,
    pub(crate) control: UnixStream,
    pub(crate) started: Option<oneshot::Sender<Report>>,
    pub(crate) stop: watch::Receiver<bool>,
    pub(crate) writer: JoinHandle<()>,
    pub(crate) stderr: Option<JoinHandle<Vec<String>>>,
    pub(crate) exit: watch::Sender<Option<Exit>>,
}

impl Driver {
    pub(crate) async fn run(mut self) {
        let end = self.supervise().await;
        // Nobody waits for a start any more.
        self.started = None;
        if !end.done {
            self.clean_up_after_reaper().await;
        }
        if let Err(error) = self.reaper.wait().await {
            tracing::warn!(program = self.program, %error, "cannot take the supervisor's status");
        }
        self.writer.abort();
        let exit = Exit {
            program: std::mem::take(&mut self.program),
            code: end.code,
            signal: end.signal,
            stderr_tail: stderr_tail(self.stderr).await,
        };
        tracing::debug!(%exit, "stdio server ended");
        self.exit.send_replace(Some(exit));
    }

    /// Follows the reaper until it is gone or must be given up.
    async fn supervise(&mut self) -> End {
        let mut end = End::default();
        let mut partial = Partial::default();
        let mut phase = Phase::Open;
        let mut deadline = Instant::now();
        loop {
            tokio::select! {
                report = partial.next(&mut self.control) => match report {
                    Some(report) => self.note(report, &mut end),
                    None => return end,
                },
                () = stop_requested(&mut self.stop), if phase == Phase::Open => {
                    // The writer has seen the same and closes stdin.
                    phase = Phase::StdinClosed;
                    deadline = Instant::now() + self.grace;
                }
                () = sleep_until(deadline), if phase != Phase::Open => match phase {
                    Phase::Open | Phase::StdinClosed => {
                        self.tell(TERMINATE).await;
                        phase = Phase::Terminated;
                        deadline = Instant::now() + self.grace + TERMINATE_MARGIN;
                    }
                    Phase::Terminated => {
                        self.tell(KILL).await;
                        phase = Phase::Killed;
                        deadline = Instant::now() + KILL_MAX;
                    }
                    Phase::Killed => return end,
                },
            }
        }
    }

    fn note(&mut self, report: Report, end: &mut End) {
        match report {
            Report::Exited(code) => end.code = Some(code),
            Report::Signaled(signal) => end.signal = Some(signal),
            Report::Done => end.done = true,
            Report::Started(pid) => {
                tracing::debug!(program = self.program, pid, "stdio server started");
                self.answer_start(report);
            }
            Report::CwdFailed(_) | Report::ProgramFailed(_) => {
                // There was no server, so there is nothing to clean up.
                end.done = true;
                self.answer_start(report);
            }
            Report::SetupFailed(_) => self.answer_start(report),
        }
    }

    fn answer_start(&mut self, report: Report) {
        if let Some(started) = self.started.take() {
            // Whoever asked may have gone; then `stop` is closed too, and that is acted on.
            let _ = started.send(report);
        }
    }

    async fn tell(&mut self, word: u8) {
        // One byte into an empty socket buffer does not wait. If the reaper is gone, the read tells.
        let _ = self.control.write_all(&[word]).await;
    }

    /// The reaper was killed or hangs. Its id stays taken until we wait for it, so the sweep cannot hit a
    /// stranger.
    async fn clean_up_after_reaper(&mut self) {
        let Some(reaper) = self.reaper.id() else {
            return;
        };
        tracing::warn!(
            program = self.program,
            reaper,
            "the supervisor of a stdio server was lost"
        );
        // Fails only if it has ended already.
        let _ = self.reaper.start_kill();
        let tag = self.tag.clone();
        let swept = tokio::task::spawn_blocking(move || sweep(reaper as i32, &tag)).await;
        if !matches!(swept, Ok(true)) {
            tracing::error!(
                program = self.program,
                reaper,
                "processes of a stdio server are left"
            );
        }
    }
}

/// Resolves when a stop is asked for, or when nobody is left who could ask.
pub(crate) async fn stop_requested(stop: &mut watch::Receiver<bool>) {
    // An error is the second case.
    let _ = stop.wait_for(|stop| *stop).await;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    StdinClosed,
    Terminated,
    Killed,
}

/// How it ended, as far as the reaper told.
#[derive(Default)]
struct End {
    code: Option<i32>,
    signal: Option<i32>,
    /// The reaper ended by itself and left nothing.
    done: bool,
}

/// A report of which some bytes may have come. Keeps them when the reading is cancelled.
#[derive(Default)]
struct Partial {
    bytes: [u8; REPORT_BYTES],
    filled: usize,
}

impl Partial {
    /// `None` at the end of the socket, or if what came is no report.
    async fn next(&mut self, control: &mut UnixStream) -> Option<Report> {
        while self.filled < REPORT_BYTES {
            match control.read(&mut self.bytes[self.filled..]).await {
                Ok(count @ 1..) => self.filled += count,
                Ok(0) | Err(_) => return None,
            }
        }
        self.filled = 0;
        Report::decode(self.bytes)
    }
}

async fn stderr_tail(reading: Option<JoinHandle<Vec<String>>>) -> Vec<String> {
    let Some(mut reading) = reading else {
        return Vec::new();
    };
    match tokio::time::timeout(STDERR_MAX, &mut reading).await {
        Ok(tail) => tail.unwrap_or_default(),
        Err(_) => {
            reading.abort();
            Vec::new()
        }
    }
}
