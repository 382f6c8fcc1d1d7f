//! Watches a connection while a request head is read. The HTTP parser has a bound of its own, 1 MiB, and looks at no clock;
//! here the configured bounds are held while the bytes arrive, before anybody is asked who he is.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;

/// Nobody counts.
const OFF: usize = usize::MAX;

/// Counts the bytes that came since a head is waited for. One for each connection; who reads from it counts, who waits for
/// the head asks.
#[derive(Debug)]
pub struct HeadWatch {
    read: AtomicUsize,
    max: AtomicUsize,
}

impl Default for HeadWatch {
    fn default() -> Self {
        Self {
            read: AtomicUsize::new(0),
            max: AtomicUsize::new(OFF),
        }
    }
}

/// What a client may take for one head.
#[derive(Debug, Clone, Copy)]
pub struct HeadWait {
    /// Until its first byte.
    pub idle: Duration,
    /// From its first byte to its last.
    pub whole: Duration,
}

impl HeadWatch {
    /// A head is waited for, of which so many bytes are there already.
    pub fn begin(&self, bytes_max: usize, there: usize) {
        self.read.store(there, Ordering::Relaxed);
        self.max.store(bytes_max.min(OFF - 1), Ordering::Relaxed);
    }

    /// The head is there: what follows is not counted.
    pub fn end(&self) {
        self.max.store(OFF, Ordering::Relaxed);
    }

    /// So many more bytes came.
    pub fn count(&self, bytes: usize) {
        if self.max.load(Ordering::Relaxed) != OFF {
            self.read.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Whether as much as a head may have is there, and still more is asked for.
    pub fn is_full(&self) -> bool {
        let max = self.max.load(Ordering::Relaxed);
        max != OFF && self.read.load(Ordering::Relaxed) >= max
    }

    /// How many bytes of the head came.
    pub fn bytes(&self) -> usize {
        self.read.load(Ordering::Relaxed)
    }

    /// What `read` gives, or `None` when it takes too long: it must begin within `idle` and then end within `whole`.
    pub async fn within<T>(&self, wait: HeadWait, read: impl Future<Output = T>) -> Option<T> {
        let mut read = pin!(read);
        let mut has_begun = self.bytes() > 0;
        let first = if has_begun { wait.whole } else { wait.idle };
        let mut patience = pin!(tokio::time::sleep(first));
        poll_fn(|context| {
            if let Poll::Ready(read) = read.as_mut().poll(context) {
                return Poll::Ready(Some(read));
            }
            // Only a head that comes in pieces gets here with a byte of it read.
            if !has_begun && self.bytes() > 0 {
                has_begun = true;
                patience.as_mut().reset(Instant::now() + wait.whole);
            }
            patience.as_mut().poll(context).map(|()| None)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a client that sends a byte every few milliseconds from `first` on is waited for.
    async fn waited(idle_ms: u64, whole_ms: u64, there: usize, first_ms: u64) -> u128 {
        let watch = HeadWatch::default();
        watch.begin(1 << 20, there);
        let begun = Instant::now();
        let dripping = async {
            tokio::time::sleep(Duration::from_millis(first_ms)).await;
            loop {
                watch.count(1);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let wait = HeadWait {
            idle: Duration::from_millis(idle_ms),
            whole: Duration::from_millis(whole_ms),
        };
        let read: Option<()> = watch.within(wait, dripping).await;
        assert!(read.is_none());
        begun.elapsed().as_millis()
    }

    #[tokio::test]
    async fn a_head_has_its_time_from_its_first_byte() {
        const LONG: u64 = 60_000;
        let (never, now) = (LONG, 0);
        let cut = |waited: u128, least| (least..u128::from(LONG)).contains(&waited);
        assert!(cut(waited(LONG, 100, 0, now).await, 100), "it drips");
        assert!(cut(waited(100, LONG, 0, never).await, 100), "it is silent");
        assert!(cut(waited(LONG, 100, 0, 200).await, 300), "silent, then");
        // What came with the request before it is a beginning.
        assert!(cut(waited(LONG, 100, 3, never).await, 100), "pipelined");
        let wait = HeadWait {
            idle: Duration::ZERO,
            whole: Duration::ZERO,
        };
        let watch = HeadWatch::default();
        assert_eq!(watch.within(wait, async { 7 }).await, Some(7));
    }

    #[test]
    fn only_a_head_is_counted() {
        let watch = HeadWatch::default();
        watch.count(1 << 30);
        assert!(!watch.is_full() && watch.bytes() == 0);
        watch.begin(100, 40);
        watch.count(59);
        assert!(!watch.is_full());
        watch.count(1);
        assert!(watch.is_full());
        watch.end();
        watch.count(1 << 30);
        assert!(!watch.is_full(), "a body follows");
        watch.begin(100, 0);
        assert!(!watch.is_full(), "the next head");
    }
}
