//! Work that whoever waits on the same thread would notice: the thread lets its other exchanges go on elsewhere meanwhile.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::{Handle, RuntimeFlavor};

/// A message of so many bytes is scanned in about a millisecond.
const LARGE_BYTES: usize = 128 << 10;

/// Large messages that are scanned beside the workers. Each has a scanner's scratch of its own, and there is nothing to be
/// gained from more of them than processors.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
static UNDER_WAY_MAX: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));

/// Costs a few microseconds, so that it is for slow work only.
pub(super) fn the_workers<T>(work: impl FnOnce() -> T) -> T {
    let many_threads = Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if many_threads {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

/// The same for work on so many bytes, where that is slow.
pub(super) fn the_workers_if_large<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes < LARGE_BYTES {
        return work();
    }
    let turn = Turn::new();
    if turn.is_one_too_many() {
        return work();
    }
    the_workers(work)
}

/// One of those under way.
struct Turn(usize);

impl Turn {
    fn new() -> Self {
        Self(UNDER_WAY.fetch_add(1, Ordering::Relaxed))
    }

    fn is_one_too_many(&self) -> bool {
        self.0 >= *UNDER_WAY_MAX
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
    }
}
