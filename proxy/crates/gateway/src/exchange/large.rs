//! Large messages go through the line in turns, on threads that yield to all others.
//!
//! A scan awaits nothing, so that the thread it runs on serves nobody else meanwhile: a message of megabytes holds up every
//! small call of its worker for tens of milliseconds, and a few such callers hold up all workers. Where there are small ones,
//! such a message waits for its turn, and is then the work of a thread that the system runs where they leave a processor
//! idle. Where there are none it is done at once, which costs less.
//!
//! Small messages take turns as well while calls wait for places: one scan is ready for each worker, and the others come
//! after what else is ready. Calls are read, refused and forwarded meanwhile, instead of waiting for dozens of scans.

use std::num::NonZero;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use mcp_codec::Message;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::gate::calls_wait;
use crate::pipeline::{self, Decoded, Judge, Release, Way};

/// A message of so many bytes is scanned in about a millisecond, which is far more than handing it over takes.
const LARGE_BYTES: usize = 128 << 10;
/// How far a thread stands back: it gets about a tenth of a processor that others want, so that it gets on at any load.
const NICE: i32 = 10;

/// Whoever called so lately will call again.
const LATELY_MS: u64 = 1000;

/// When a small message came last, in milliseconds since the start.
static SMALL_AT_MS: AtomicU64 = AtomicU64::new(0);
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// There is nothing to be gained from more threads than processors.
static TURNS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(processors()));

/// The same for small messages, of which each worker has one at a time anyway.
static SMALL_TURNS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(processors()));

/// When a message may go through the line: at once, or as one of few.
pub(super) struct Turn {
    place: Place,
    permit: Option<SemaphorePermit<'static>>,
}

/// Where a message goes through the line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Where it came.
    Here,
    /// On a thread that stands back.
    Aside,
}

/// Waits for the turn of a message.
pub(super) async fn turn(message: &Message) -> Turn {
    // From 1 on: 0 is never.
    let now = START.elapsed().as_millis() as u64 + 1;
    let small_at = SMALL_AT_MS.load(Ordering::Relaxed);
    if message.doc().source().len() < LARGE_BYTES {
        if small_at != now {
            SMALL_AT_MS.store(now, Ordering::Relaxed);
        }
        return match calls_wait() {
            true => Turn::small().await,
            false => Turn::here(None),
        };
    }
    let others = small_at > 0 && now.saturating_sub(small_at) < LATELY_MS;
    if !others || !may_stand_back() {
        return Turn::here(None);
    }
    Turn::aside().await
}

impl Turn {
    fn here(permit: Option<SemaphorePermit<'static>>) -> Self {
        Self {
            place: Place::Here,
            permit,
        }
    }

    async fn aside() -> Self {
        Self {
            place: Place::Aside,
            // Nobody closes it.
            permit: Box::pin(TURNS.acquire()).await.ok(),
        }
    }

    /// Behind all that is ready now.
    async fn small() -> Self {
        let permit = match SMALL_TURNS.try_acquire() {
            Ok(permit) => {
                tokio::task::yield_now().await;
                Some(permit)
            }
            Err(_) => Box::pin(SMALL_TURNS.acquire()).await.ok(),
        };
        Self::here(permit)
    }

    /// Through the whole line, and what is to be read of what came out.
    pub async fn run<W: Way, T: Send>(
        mut self,
        decoded: Decoded<W>,
        judge: &Judge<'_>,
        after: impl FnOnce(&Release<W>) -> T + Send,
    ) -> (Release<W>, T) {
        let then = |release| {
            let read = after(&release);
            (release, read)
        };
        if judge.evaluators.is_empty() {
            return self.take(|| then(pipeline::run(decoded, judge)));
        }
        // What a plugin takes is its tenant's time: meanwhile it is somebody else's turn.
        if self.place == Place::Here {
            self.permit = None;
            return self.take(|| then(pipeline::run(decoded, judge)));
        }
        let scanned = self.take(|| decoded.scan(judge));
        let decided = scanned.decide(judge);
        let turn = Box::pin(Self::aside()).await;
        turn.take(|| then(decided.release(judge)))
    }

    /// Does it now, where it was waited for on a thread that stands back.
    fn take<T: Send>(self, work: impl FnOnce() -> T + Send) -> T {
        match self.place {
            Place::Here => work(),
            Place::Aside => tokio::task::block_in_place(|| match &*ASIDE {
                Some(threads) => threads.install(work),
                None => work(),
            }),
        }
    }
}

/// A runtime of one thread has no other that could take over.
fn may_stand_back() -> bool {
    Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// Threads that stand back. (What has done so may not step forward again without a privilege, so they serve nobody else.)
/// Each keeps a scanner. None without threads to be had: then it is done where it came.
static ASIDE: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    let threads = ThreadPoolBuilder::new()
        .num_threads(processors())
        .thread_name(|_| "weir-large".into())
        .start_handler(|_| {
            // Where that is refused they compete with the others as equals.
            let _ = rustix::process::nice(NICE);
        });
    let threads = threads.build();
    if let Err(error) = &threads {
        tracing::warn!(%error, "large messages are scanned between small ones: no threads for them");
    }
    threads.ok()
});

fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use dlp_policy::{EvalError, EvalInput, Evaluator, Evaluators, PolicyTable, Verdict};
    use dlp_scan::RuleSet;
    use domain::{Era, Limits, Policy};
    use parking_lot::Mutex;

    use super::*;
    use crate::pipeline::{Attribution, ToServer, Whose};

    /// A plugin that says when it was asked, and answers when it is told to.
    struct Slow {
        asked: Sender<()>,
        answers: Mutex<Receiver<()>>,
    }

    impl Evaluator for Slow {
        fn name(&self) -> &str {
            "slow"
        }

        fn is_slow(&self) -> bool {
            true
        }

        fn evaluate(&self, _: &EvalInput<'_>) -> Result<Verdict, EvalError> {
            let _ = self.asked.send(());
            let told = self.answers.lock().recv_timeout(Duration::from_secs(20));
            told.map(|()| Verdict::default())
                .map_err(|_| EvalError::TimedOut)
        }
    }

    fn message(bytes: usize) -> Message {
        let text = "a word and another one, ".repeat(bytes / 24 + 1);
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{{"text":"{text}"}}}}}}"#
        );
        Message::decode(text.into(), &crate::codec_limits(&Limits::default())).expect("a message")
    }

    async fn judged(message: Message, evaluators: &Evaluators) -> bool {
        let limits = Limits::default();
        let policy = Policy::default();
        let policy = PolicyTable::compile(&policy, &policy, RuleSet::builtin()).expect("a policy");
        let judge = Judge {
            rules: RuleSet::builtin(),
            tenant: "acme",
            policy: &policy,
            limits: &limits,
            attribution: Attribution::Tool("t"),
            schemas: None,
            era: Era::Handshake,
            evaluators,
            whose: Whose::default(),
            said: None,
        };
        let turn = turn(&message).await;
        assert_eq!(
            turn.place == Place::Aside,
            message.doc().source().len() >= LARGE_BYTES
        );
        let decoded = Decoded::<ToServer>::new(message, Vec::new());
        let cleared = |release: &Release<ToServer>| matches!(release, Release::Cleared(_));
        turn.run(decoded, &judge, cleared).await.1
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_slow_plugin_holds_up_nobody_elses_large_message() {
        let (asked, was_asked) = channel();
        let waiting = processors() + 1;
        let mut tells = Vec::new();
        let mut slow = Vec::new();
        // There are small ones all the time.
        let none = Evaluators::default();
        assert!(judged(message(100), &none).await);
        for _ in 0..waiting {
            let (tell, answers) = channel();
            tells.push(tell);
            let plugin = Slow {
                asked: asked.clone(),
                answers: Mutex::new(answers),
            };
            let mut evaluators = Evaluators::default();
            evaluators
                .add(None, None, Arc::new(plugin))
                .expect("no glob");
            slow.push(tokio::spawn(async move {
                judged(message(LARGE_BYTES), &evaluators).await
            }));
        }
        let all = tokio::task::spawn_blocking(move || {
            let deadline = Duration::from_secs(10);
            (0..waiting).all(|_| was_asked.recv_timeout(deadline).is_ok())
        });
        assert!(
            all.await.expect("no panic"),
            "more plugins than turns are at work"
        );
        assert!(judged(message(100), &none).await);
        let other = judged(message(LARGE_BYTES), &none);
        let other = tokio::time::timeout(Duration::from_secs(10), other).await;
        assert!(other.expect("nobody's turn is taken"));
        for (tell, slow) in tells.iter().zip(slow) {
            tell.send(()).expect("somebody waits");
            assert!(slow.await.expect("no panic"));
        }
    }
}
