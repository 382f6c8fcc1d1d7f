//! Sessions of the handshake era.
//!
//! A session id is Weir's own, never the upstream's, and is good only for the principal and the
//! server it was made for: having one proves nothing. A wrong owner looks like an unknown id.

mod calls;
mod claims;
mod order;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use domain::ProtocolVersion;
use mcp_codec::MessageKind;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::pipeline::{Cleared, ToClient};
use crate::shares::Tally;
use crate::upstream::DuplexSession;

pub use calls::{BoundedMap, Call, Calls, Capabilities};
pub use order::{Order, Turn};

/// When all sessions are full, idle ones are looked for no more often than this.
const LOOK_AGAIN_MS: u64 = 1000;

/// Where the answers of a client go that do not come on the request they answer, and how many of
/// its messages may be under way.
#[derive(Debug, Clone)]
pub struct Channel {
    answers: mpsc::Sender<Cleared<ToClient>>,
    calls: Arc<Semaphore>,
    words: Arc<Semaphore>,
    order: Arc<Order>,
}

impl Channel {
    /// For at most `under_way_max` calls, and as many messages that want no answer.
    pub fn new(answers: mpsc::Sender<Cleared<ToClient>>, under_way_max: usize) -> Self {
        let slots = || Arc::new(Semaphore::new(under_way_max.min(Semaphore::MAX_PERMITS)));
        Self {
            answers,
            calls: slots(),
            words: slots(),
            order: Arc::default(),
        }
    }

    /// Where answers go.
    pub fn answers(&self) -> &mpsc::Sender<Cleared<ToClient>> {
        &self.answers
    }

    /// The turn of a message that was accepted now. What answers a question of the server's waits for nobody: a call before
    /// it may wait for that answer.
    pub fn turn(&self, kind: MessageKind) -> Turn {
        match kind {
            MessageKind::Request | MessageKind::Notification => self.order.turn(),
            MessageKind::Response | MessageKind::ErrorResponse => Turn::default(),
        }
    }

    /// A place for one message, or `None` when all are taken. Calls cannot take the places of
    /// notifications and responses: those may be what the calls wait for.
    pub fn slot(&self, kind: MessageKind) -> Option<OwnedSemaphorePermit> {
        let slots = match kind {
            MessageKind::Request => &self.calls,
            _ => &self.words,
        };
        Arc::clone(slots).try_acquire_owned().ok()
    }
}

/// One session.
#[derive(Debug)]
pub struct Session {
    /// Weir's own id.
    pub id: Arc<str>,
    /// Whose it is: tenant and key.
    pub owner: Arc<str>,
    /// Which server it is for.
    pub server: Arc<str>,
    upstream_id: OnceLock<Box<str>>,
    /// The revision both sides agreed on.
    pub version: ProtocolVersion,
    /// Its calls.
    pub calls: Arc<Calls>,
    /// The child process or event stream that is this session's alone.
    pub duplex: Option<Arc<DuplexSession>>,
    /// Where the answers of a client of 2024-11-05 go.
    pub channel: Option<Channel>,
    /// Short hash of the id, for logs and audit records.
    pub tag: Arc<str>,
    used_ms: AtomicU64,
}

/// Why no session was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// All sessions of this gateway are taken.
    #[error("too many sessions")]
    Full,
    /// All sessions of this principal are taken.
    #[error("too many sessions of this principal")]
    PrincipalFull,
}

/// What a session is made of.
#[derive(Debug)]
pub struct NewSession {
    /// Tenant and key.
    pub owner: Arc<str>,
    /// The server.
    pub server: Arc<str>,
    /// The upstream's own id.
    pub upstream_id: Option<Box<str>>,
    /// The agreed revision.
    pub version: ProtocolVersion,
    /// Its calls.
    pub calls: Arc<Calls>,
    /// Its own duplex upstream.
    pub duplex: Option<Arc<DuplexSession>>,
    /// Where the answers of a client of 2024-11-05 go.
    pub channel: Option<Channel>,
}

/// All sessions of a gateway.
#[derive(Debug)]
pub struct Sessions {
    table: Mutex<Table>,
    epoch: Instant,
}

/// By id, and counted by owner: there may be millions, and all who open one wait for the same lock.
#[derive(Debug, Default)]
struct Table {
    by_id: HashMap<Arc<str>, Arc<Session>>,
    tally: Tally,
    /// When all were last looked at for want of a place.
    looked_ms: Option<u64>,
    /// How often they were.
    #[cfg(test)]
    looks: u64,
}

impl Table {
    fn insert(&mut self, session: Arc<Session>) {
        self.tally.add(&session.owner, 1);
        self.by_id.insert(Arc::clone(&session.id), session);
    }

    fn remove(&mut self, id: &str) -> Option<Arc<Session>> {
        let session = self.by_id.remove(id)?;
        self.tally.take_off(&session.owner, 1);
        Some(session)
    }

    /// Forgets what was idle too long.
    fn sweep(&mut self, now_ms: u64, idle_ms: u64) {
        #[cfg(test)]
        {
            self.looks += 1;
        }
        let tally = &mut self.tally;
        self.by_id.retain(|_, session| {
            let stays = !session.idle_since(now_ms, idle_ms);
            if !stays {
                tally.take_off(&session.owner, 1);
            }
            stays
        });
    }

    fn refuses(&self, owner: &str, limits: SessionLimits) -> Option<SessionError> {
        if self.by_id.len() >= limits.sessions_max {
            return Some(SessionError::Full);
        }
        let is_taken = self.tally.of(owner) >= limits.per_principal_max;
        is_taken.then_some(SessionError::PrincipalFull)
    }
}

/// Bounds of the table.
#[derive(Debug, Clone, Copy)]
pub struct SessionLimits {
    /// Over all.
    pub sessions_max: usize,
    /// Of one principal.
    pub per_principal_max: usize,
    /// Unused for so long: forgotten.
    pub idle_ms: u64,
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            table: Mutex::default(),
            epoch: Instant::now(),
        }
    }
}

impl Sessions {
    /// Makes a session.
    ///
    /// # Errors
    /// When the table, or the principal's share of it, is full.
    pub fn open(
        &self,
        new: NewSession,
        limits: SessionLimits,
    ) -> Result<Arc<Session>, SessionError> {
        let now_ms = self.now_ms();
        let mut table = self.table.lock();
        let may_look = table
            .looked_ms
            .is_none_or(|at| now_ms.saturating_sub(at) >= LOOK_AGAIN_MS);
        if table.refuses(&new.owner, limits).is_some() && may_look {
            table.looked_ms = Some(now_ms);
            table.sweep(now_ms, limits.idle_ms);
        }
        if let Some(error) = table.refuses(&new.owner, limits) {
            return Err(error);
        }
        let id: Arc<str> = random_id().into();
        let tag = tag(&id);
        // A session's calls belong to no other.
        new.calls.belong_to(Arc::clone(&tag));
        let session = Arc::new(Session {
            tag,
            id,
            owner: new.owner,
            server: new.server,
            upstream_id: new.upstream_id.map_or_else(OnceLock::new, OnceLock::from),
            version: new.version,
            calls: new.calls,
            duplex: new.duplex,
            channel: new.channel,
            used_ms: AtomicU64::new(now_ms),
        });
        table.insert(Arc::clone(&session));
        Ok(session)
    }

    /// Finds a session of this owner on this server. Anybody else's is not there.
    pub fn find(&self, id: &str, owner: &str, server: &str) -> Option<Arc<Session>> {
        let session = self.table.lock().by_id.get(id).cloned()?;
        if &*session.owner != owner || &*session.server != server {
            return None;
        }
        session.used_ms.store(self.now_ms(), Ordering::Relaxed);
        Some(session)
    }

    /// Ends a session.
    pub fn close(&self, session: &Session) {
        self.table.lock().remove(&session.id);
    }

    /// Ends the sessions of servers that are not there any more.
    pub fn keep_those_of(&self, is_there: impl Fn(&str) -> bool) {
        let mut table = self.table.lock();
        let Table { by_id, tally, .. } = &mut *table;
        let gone = by_id.extract_if(|_, session| !is_there(&session.server));
        let gone: Vec<Arc<Session>> = gone.map(|(_, session)| session).collect();
        for session in &gone {
            tally.take_off(&session.owner, 1);
        }
        // What they hold may take a moment to let go of.
        drop(table);
    }

    /// Forgets sessions that were idle too long; returns how many.
    pub fn sweep(&self, idle_ms: u64) -> usize {
        let now_ms = self.now_ms();
        let mut table = self.table.lock();
        let before = table.by_id.len();
        table.sweep(now_ms, idle_ms);
        before - table.by_id.len()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.table.lock().by_id.len()
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Session {
    /// The upstream's own id; absent for a duplex upstream and before an upstream minted one.
    pub fn upstream_id(&self) -> Option<Box<str>> {
        self.upstream_id.get().cloned()
    }

    /// The upstream minted its id after this session was made. The first one counts.
    pub fn upstream_says(&self, id: Box<str>) {
        let _ = self.upstream_id.set(id);
    }

    fn idle_since(&self, now_ms: u64, idle_ms: u64) -> bool {
        now_ms.saturating_sub(self.used_ms.load(Ordering::Relaxed)) > idle_ms
    }
}

/// 128 random bits as 32 hexadecimal digits.
fn random_id() -> String {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).expect("the kernel has random bytes after boot");
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn tag(id: &str) -> Arc<str> {
    let hash = blake3::hash(id.as_bytes());
    hash.to_hex()[..12].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: SessionLimits = SessionLimits {
        sessions_max: 3,
        per_principal_max: 2,
        idle_ms: 60_000,
    };

    fn new(owner: &str) -> NewSession {
        NewSession {
            owner: owner.into(),
            server: "s".into(),
            upstream_id: None,
            version: ProtocolVersion::V2025_11_25,
            calls: Arc::new(Calls::new(4)),
            duplex: None,
            channel: None,
        }
    }

    #[test]
    fn a_session_is_good_for_its_owner_and_server_only() {
        let sessions = Sessions::default();
        let s = sessions.open(new("a"), LIMITS).unwrap();
        assert!(sessions.find(&s.id, "a", "s").is_some());
        assert!(sessions.find(&s.id, "b", "s").is_none());
        assert!(sessions.find(&s.id, "a", "t").is_none());
        assert!(sessions.find("0", "a", "s").is_none());
        sessions.close(&s);
        assert!(sessions.find(&s.id, "a", "s").is_none());
    }

    #[test]
    fn both_bounds_are_reached_and_idle_sessions_give_way() {
        let sessions = Sessions::default();
        sessions.open(new("a"), LIMITS).unwrap();
        sessions.open(new("a"), LIMITS).unwrap();
        assert_eq!(
            sessions.open(new("a"), LIMITS).unwrap_err(),
            SessionError::PrincipalFull
        );
        sessions.open(new("b"), LIMITS).unwrap();
        assert_eq!(
            sessions.open(new("c"), LIMITS).unwrap_err(),
            SessionError::Full
        );
        for s in sessions.table.lock().by_id.values() {
            s.used_ms.store(0, Ordering::Relaxed);
        }
        let late = Sessions {
            epoch: Instant::now() - std::time::Duration::from_secs(120),
            ..sessions
        };
        let s = late.open(new("c"), LIMITS).unwrap();
        assert_eq!(late.count(), 1);
        late.close(&s);
        late.close(&s);
        let table = late.table.lock();
        assert_eq!(table.tally.of("a") + table.tally.of("c"), 0);
    }

    #[test]
    fn opening_costs_the_same_however_many_there_are() {
        let sessions = Sessions::default();
        let limits = SessionLimits {
            sessions_max: 100_000,
            per_principal_max: 2_000,
            idle_ms: 60_000,
        };
        let begun = Instant::now();
        for _ in 0..limits.per_principal_max {
            sessions.open(new("a"), limits).unwrap();
        }
        // Who is refused, and asks again and again, has all of them looked at once in a while only.
        for _ in 0..limits.per_principal_max {
            let refused = sessions.open(new("a"), limits).unwrap_err();
            assert_eq!(refused, SessionError::PrincipalFull);
        }
        assert!(sessions.open(new("b"), limits).is_ok());
        let table = sessions.table.lock();
        assert_eq!(table.tally.of("a"), limits.per_principal_max);
        // One look for each second that passed, and not one for each who asked.
        let looks_max = 2 + begun.elapsed().as_millis() as u64 / LOOK_AGAIN_MS;
        assert!((1..=looks_max).contains(&table.looks), "{}", table.looks);
    }

    #[test]
    fn calls_under_way_are_bounded_and_leave_room_for_answers() {
        let (answers, _kept) = mpsc::channel(1);
        let channel = Channel::new(answers, 2);
        let held: Vec<_> = (0..2)
            .map(|_| channel.slot(MessageKind::Request).unwrap())
            .collect();
        assert!(channel.slot(MessageKind::Request).is_none());
        assert!(channel.slot(MessageKind::Response).is_some());
        assert!(channel.slot(MessageKind::Notification).is_some());
        drop(held);
        assert!(channel.slot(MessageKind::Request).is_some());
    }
}
