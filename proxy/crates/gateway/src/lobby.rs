//! Connections on which no request is under way. Where there are as many connections as may be, one of them gives its place to
//! one that comes: silent sockets, and heads that drip, keep nobody out. The one that has waited longest goes, of those first
//! that had time for a whole head and never sent one. A connection with a request under way is never closed for another.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Whether it sent a whole head once, and when its turn came.
type Rank = (bool, u64);

/// What a connection has for its first head before it goes in front of those that had one: a flood of new ones shall not
/// wash out who just came.
const FIRST_HEAD: Duration = Duration::from_secs(1);

/// All connections that wait.
#[derive(Debug, Default)]
pub(crate) struct Lobby(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    came: u64,
    by_rank: BTreeMap<Rank, Entry>,
}

#[derive(Debug)]
struct Entry {
    since: Instant,
    leave: Arc<Notify>,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Seat {
    lobby: Arc<Lobby>,
    leave: Arc<Notify>,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// Where it waits.
    rank: Option<Rank>,
    /// Requests that are under way; with HTTP/2 there may be some.
    requests: usize,
    /// It sent a whole head once.
    has_asked: bool,
    /// It gave its place away.
    is_gone: bool,
}

impl Lobby {
    /// A connection that begins to wait.
    pub(crate) fn seat(self: &Arc<Self>) -> Seat {
        let seat = Seat {
            lobby: Arc::clone(self),
            leave: Arc::default(),
            held: Mutex::default(),
        };
        seat.wait(&mut seat.held.lock());
        seat
    }

    /// Tells one that waits to leave; false when none does.
    pub(crate) fn tell_one_to_leave(&self) -> bool {
        let mut waiting = self.0.lock();
        let Some(rank) = waiting.first_to_leave(Instant::now()) else {
            return false;
        };
        let entry = waiting.by_rank.remove(&rank);
        entry.is_some_and(|entry| {
            entry.leave.notify_one();
            true
        })
    }
}

impl Waiting {
    fn first_to_leave(&self, now: Instant) -> Option<Rank> {
        let (new, entry) = self.by_rank.first_key_value()?;
        let had_time = now.saturating_duration_since(entry.since) >= FIRST_HEAD;
        if had_time {
            return Some(*new);
        }
        let asked = self.by_rank.range((true, 0)..).next();
        Some(asked.map_or(*new, |(rank, _)| *rank))
    }
}

impl Seat {
    /// A request begins. False where the connection was told to leave before: then it must not be served.
    pub(crate) fn begin(&self) -> bool {
        let mut held = self.held.lock();
        if let Some(rank) = held.rank.take() {
            held.is_gone = self.lobby.0.lock().by_rank.remove(&rank).is_none();
        }
        if held.is_gone {
            return false;
        }
        held.requests += 1;
        held.has_asked = true;
        true
    }

    /// A request is over.
    pub(crate) fn end(&self) {
        let mut held = self.held.lock();
        held.requests = held.requests.saturating_sub(1);
        if held.requests == 0 && !held.is_gone {
            self.wait(&mut held);
        }
    }

    /// Resolves when the connection was told to leave.
    pub(crate) async fn told_to_leave(&self) {
        self.leave.notified().await;
    }

    fn wait(&self, held: &mut Held) {
        let mut waiting = self.lobby.0.lock();
        waiting.came += 1;
        let rank = (held.has_asked, waiting.came);
        let entry = Entry {
            since: Instant::now(),
            leave: Arc::clone(&self.leave),
        };
        waiting.by_rank.insert(rank, entry);
        held.rank = Some(rank);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(rank) = self.held.get_mut().rank {
            self.lobby.0.lock().by_rank.remove(&rank);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn was_told(seat: &Seat) -> bool {
        let mut told = Box::pin(seat.told_to_leave());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        told.as_mut().poll(&mut context).is_ready()
    }

    /// As if all had waited for so long.
    fn age(lobby: &Lobby, by: Duration) {
        for entry in lobby.0.lock().by_rank.values_mut() {
            entry.since = entry.since.checked_sub(by).unwrap();
        }
    }

    #[test]
    fn who_never_asked_goes_before_who_did_and_who_is_served_stays() {
        let lobby = Arc::new(Lobby::default());
        let seats: Vec<Seat> = (0..4).map(|_| lobby.seat()).collect();
        // The first is between two requests, the second in one.
        assert!(seats[0].begin() && seats[1].begin());
        seats[0].end();
        age(&lobby, FIRST_HEAD);
        for (nth, last) in [(2, false), (3, false), (0, true)] {
            assert!(lobby.tell_one_to_leave());
            assert!(was_told(&seats[nth]), "{nth}");
            assert!(!seats[nth].begin(), "{nth} comes too late");
            seats[nth].end();
            assert_eq!(lobby.0.lock().by_rank.is_empty(), last);
        }
        assert!(!lobby.tell_one_to_leave(), "one is served");
        assert!(!was_told(&seats[1]));
        seats[1].end();
        assert!(lobby.tell_one_to_leave());
    }

    #[test]
    fn who_just_came_has_time_for_its_head() {
        let lobby = Arc::new(Lobby::default());
        let idle = lobby.seat();
        assert!(idle.begin());
        idle.end();
        let new = [lobby.seat(), lobby.seat()];
        for seat in [&idle, &new[0], &new[1]] {
            assert!(lobby.tell_one_to_leave() && was_told(seat));
        }
    }

    #[test]
    fn a_connection_with_one_request_left_does_not_wait() {
        let lobby = Arc::new(Lobby::default());
        let seat = lobby.seat();
        assert!(seat.begin() && seat.begin());
        seat.end();
        assert!(!lobby.tell_one_to_leave());
        seat.end();
        assert_eq!(lobby.0.lock().by_rank.len(), 1);
        drop(seat);
        assert!(
            lobby.0.lock().by_rank.is_empty(),
            "it leaves nothing behind"
        );
    }
}
