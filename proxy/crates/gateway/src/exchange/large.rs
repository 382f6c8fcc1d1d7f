//! Large messages go through the line in turns, on threads that yield to all others.
//!
//! A scan awaits nothing, so that the thread it runs on serves nobody else meanwhile: a message of megabytes holds up every
//! small call of its worker for tens of milliseconds, and a few such callers hold up all workers. Where there are small ones,
//! such a message waits for its turn, and is then the work of a thread that the system runs where they leave a processor
//! idle. Where there are none it is done at once, which costs less.

use std::num::NonZero;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use mcp_codec::Message;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, SemaphorePermit};

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

/// When a message may go through the line: at once, or as one of few.
pub(super) struct Turn(Option<SemaphorePermit<'static>>);

/// Waits for the turn of a message.
pub(super) async fn turn(message: &Message) -> Turn {
    // From 1 on: 0 is never.
    let now = START.elapsed().as_millis() as u64 + 1;
    let small_at = SMALL_AT_MS.load(Ordering::Relaxed);
    if message.doc().source().len() < LARGE_BYTES {
        if small_at != now {
            SMALL_AT_MS.store(now, Ordering::Relaxed);
        }
        return Turn(None);
    }
    let others = small_at > 0 && now.saturating_sub(small_at) < LATELY_MS;
    if !others || !may_stand_back() {
        return Turn(None);
    }
    // Nobody closes it.
    Turn(Box::pin(TURNS.acquire()).await.ok())
}

impl Turn {
    /// Takes the turn.
    pub fn run<T: Send>(self, work: impl FnOnce() -> T + Send) -> T {
        match self.0 {
            None => work(),
            Some(_) => tokio::task::block_in_place(|| match &*ASIDE {
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
