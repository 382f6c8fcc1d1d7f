//! Connections to one upstream that wait for their next request.
//!
//! pingora's own pool watches each idle connection with a task, which costs more per call than the
//! call's own writes. Here an idle connection is looked at when it is wanted, and swept when nobody
//! wants it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::gather::Gather;

/// Connections kept for one upstream.
const IDLE_MAX: usize = 128;
/// Node closes idle connections after 5 s; ours are given up before, so that none is used while
/// it is being closed.
const IDLE_FOR: Duration = Duration::from_secs(4);

/// Idle connections, the latest used last.
#[derive(Debug)]
pub(super) struct Pool {
    idle_for: Duration,
    idle: Mutex<VecDeque<Idle>>,
    /// A task closes what stays unused.
    swept: AtomicBool,
}

#[derive(Debug)]
struct Idle {
    stream: Box<Gather>,
    peer: SocketAddr,
    since: Instant,
}

impl Default for Pool {
    fn default() -> Self {
        Self::keeping(IDLE_FOR)
    }
}

impl Pool {
    /// One that keeps a connection for so long.
    pub(super) fn keeping(idle_for: Duration) -> Self {
        Self {
            idle_for,
            idle: Mutex::default(),
            swept: AtomicBool::new(false),
        }
    }

    /// The connection to this address that was used last, if it is still good.
    pub(super) fn take(&self, peer: SocketAddr) -> Option<Box<Gather>> {
        let now = Instant::now();
        loop {
            let mut idle = self.idle.lock().pop_back()?;
            let fresh = now.saturating_duration_since(idle.since) < self.idle_for;
            if !fresh {
                // Those before it are older.
                self.idle.lock().clear();
                return None;
            }
            if idle.peer == peer && idle.stream.is_idle() {
                return Some(idle.stream);
            }
        }
    }

    /// Keeps a connection for the next request; the oldest gives way.
    pub(super) fn put(self: &Arc<Self>, mut stream: Box<Gather>, peer: SocketAddr) {
        if !stream.is_idle() {
            return;
        }
        let since = Instant::now();
        let mut idle = self.idle.lock();
        let oldest = (idle.len() == IDLE_MAX).then(|| idle.pop_front()).flatten();
        idle.push_back(Idle {
            stream,
            peer,
            since,
        });
        let unswept = !self.swept.swap(true, Ordering::AcqRel);
        drop(idle);
        drop(oldest);
        if unswept {
            let pool = Arc::downgrade(self);
            tokio::spawn(sweep(pool, self.idle_for));
        }
    }

    /// Closes what was idle too long; true when nothing is left and the sweep may end.
    fn close_unused(&self, now: Instant) -> bool {
        let mut idle = self.idle.lock();
        let fresh =
            idle.partition_point(|i| now.saturating_duration_since(i.since) >= self.idle_for);
        let old: Vec<Idle> = idle.drain(..fresh).collect();
        let ends = idle.is_empty();
        if ends {
            // Under the lock: who puts the next one in sees it and starts another sweep.
            self.swept.store(false, Ordering::Release);
        }
        drop(idle);
        drop(old);
        ends
    }
}

/// Closes what stays unused, until nothing is left. One at a time for each pool.
async fn sweep(pool: Weak<Pool>, idle_for: Duration) {
    loop {
        tokio::time::sleep(idle_for).await;
        let Some(pool) = pool.upgrade() else { return };
        if pool.close_unused(Instant::now()) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pingora_core::protocols::l4::stream::Stream as L4Stream;
    use tokio::net::{TcpListener, TcpStream};

    async fn connection(listener: &TcpListener) -> (Box<Gather>, TcpStream) {
        let near = TcpStream::connect(listener.local_addr().unwrap());
        let near: L4Stream = near.await.unwrap().into();
        let (far, _) = listener.accept().await.unwrap();
        (Box::new(Gather::new(Box::new(near), Arc::default())), far)
    }

    #[tokio::test]
    async fn a_connection_is_used_again_only_while_it_is_open_silent_and_to_the_same_address() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = listener.local_addr().unwrap();
        let pool = Arc::new(Pool::default());
        assert!(pool.take(here).is_none());
        let (stream, far) = connection(&listener).await;
        pool.put(stream, here);
        let stream = pool.take(here).expect("it is good");
        assert!(pool.take(here).is_none(), "it is taken");
        pool.put(stream, here);
        assert!(pool.take("127.0.0.1:1".parse().unwrap()).is_none());
        assert!(pool.take(here).is_none(), "the other address' was dropped");
        drop(far);
        let (stream, far) = connection(&listener).await;
        pool.put(stream, here);
        drop(far);
        while let Some(stream) = pool.take(here) {
            pool.put(stream, here);
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn it_holds_so_many_and_no_more() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = listener.local_addr().unwrap();
        let pool = Arc::new(Pool::default());
        let mut others = Vec::new();
        for _ in 0..IDLE_MAX + 5 {
            let (stream, far) = connection(&listener).await;
            others.push(far);
            pool.put(stream, here);
        }
        assert_eq!(pool.idle.lock().len(), IDLE_MAX);
    }

    #[tokio::test]
    async fn what_stays_unused_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = listener.local_addr().unwrap();
        let pool = Arc::new(Pool::default());
        let (stream, _far) = connection(&listener).await;
        pool.put(stream, here);
        pool.idle.lock()[0].since -= IDLE_FOR;
        assert!(pool.take(here).is_none(), "too old to be used");
        let (old, mut far) = connection(&listener).await;
        let (young, _far) = connection(&listener).await;
        pool.put(old, here);
        pool.put(young, here);
        pool.idle.lock()[0].since -= IDLE_FOR;
        assert!(!pool.close_unused(Instant::now()), "one is left");
        let mut byte = [0];
        let read = tokio::io::AsyncReadExt::read(&mut far, &mut byte).await;
        assert_eq!(read.unwrap(), 0, "the old one was closed");
        assert!(pool.swept.load(Ordering::Acquire));
        assert!(pool.close_unused(Instant::now() + IDLE_FOR));
        assert!(!pool.swept.load(Ordering::Acquire), "the next put sweeps");
    }
}
