//! Sessions of the handshake era.
//!
//! A session id is Weir's own, never the upstream's, and is good only for the principal and the
//! server it was made for: having one proves nothing. A wrong owner looks like an unknown id.

mod calls;
mod claims;
mod order;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use domain::ProtocolVersion;
use mcp_codec::MessageKind;
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};

use crate::pipeline::{Cleared, ToClient};
use crate::seldom::Seldom;
use crate::upstream::DuplexSession;

pub use calls::{BoundedMap, Call, Calls, Capabilities};
pub use order::{Order, Turn};

/// When all sessions are full, all of them are looked at no more often than this.
const LOOK_AGAIN_MS: u64 = 1000;
/// When who was refused for want of a place should try again: a call may have ended, and all may be looked at again.
pub const TRY_AGAIN_S: u64 = LOOK_AGAIN_MS / 1000;
/// Sessions of one owner that are looked at for one that is not in use. The next who asks goes on behind them.
const IN_USE_MAX: usize = 64;
/// How often it is said that a session gave way, in each so long.
const GAVE_WAY_SAID: u32 = 5;
const GAVE_WAY_SAID_EVERY: Duration = Duration::from_secs(10);

/// Where the answers of a client go that do not come on the request they answer, and how many of
/// its messages may be under way.
#[derive(Debug, Clone)]
pub struct Channel {
    answers: mpsc::Sender<Cleared<ToClient>>,
    calls: Arc<Semaphore>,
    words: Arc<Semaphore>,
    order: Arc<Order>,
    greeting: Arc<Notify>,
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
            greeting: Arc::default(),
        }
    }

    /// The client has said that it is ready (`notifications/initialized`), and the server has heard it.
    pub fn greet(&self) {
        self.greeting.notify_one();
    }

    /// Ends when it has.
    pub async fn greeted(&self) {
        self.greeting.notified().await;
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

/// A session that was made, and what made room for it.
#[derive(Debug)]
pub struct Admitted {
    /// It.
    pub session: Arc<Session>,
    /// The one whose place it has, which is over. Its server does not know that.
    pub gave_way: Option<Arc<Session>>,
}

/// All sessions of a gateway.
#[derive(Debug)]
pub struct Sessions {
    table: Mutex<Table>,
    epoch: Instant,
    /// How often it is said that one gave way.
    said: Seldom,
}

/// By id, and by owner: there may be millions, and all who open one wait for the same lock.
#[derive(Debug, Default)]
struct Table {
    by_id: HashMap<Arc<str>, Listed>,
    /// Of each owner that has any, those that were seen in use the longest ago first. A session that is used is not moved,
    /// since every message would pay for it: it is when a place is looked for.
    of: HashMap<Arc<str>, BTreeMap<Seen, Arc<str>>>,
    /// Of each server, those with a process or stream of their own: as many as a server may have, however many sessions
    /// there are.
    piped: HashMap<Arc<str>, HashSet<Arc<str>>>,
    seen: u64,
    /// When all were last looked at for want of a place, and whose most of them were.
    looked_ms: Option<u64>,
    most: Option<Arc<str>>,
    /// How often they were.
    #[cfg(test)]
    looks: u64,
}

/// When a session was seen in use, and a number that no other has.
type Seen = (u64, u64);

#[derive(Debug)]
struct Listed {
    session: Arc<Session>,
    seen: Seen,
}

impl Listed {
    /// Whoever uses a session holds it, and only the table, which is locked, gives it away.
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.session) > 1
    }
}

impl Table {
    fn insert(&mut self, session: Arc<Session>, now_ms: u64) {
        let seen = self.list(&session, now_ms);
        let id = Arc::clone(&session.id);
        if session.duplex.is_some() {
            let piped = self.piped.entry(Arc::clone(&session.server)).or_default();
            piped.insert(Arc::clone(&id));
        }
        self.by_id.insert(id, Listed { session, seen });
    }

    fn list(&mut self, session: &Session, ms: u64) -> Seen {
        self.seen += 1;
        let seen = (ms, self.seen);
        let of = self.of.entry(Arc::clone(&session.owner)).or_default();
        of.insert(seen, Arc::clone(&session.id));
        seen
    }

    fn remove(&mut self, id: &str) -> Option<Arc<Session>> {
        let listed = self.by_id.remove(id)?;
        unlist(&mut self.of, &listed);
        unpipe(&mut self.piped, &listed.session);
        Some(listed.session)
    }

    fn count_of(&self, owner: &str) -> usize {
        self.of.get(owner).map_or(0, BTreeMap::len)
    }

    /// Forgets what was idle too long.
    fn sweep(&mut self, now_ms: u64, idle_ms: u64) {
        #[cfg(test)]
        {
            self.looks += 1;
        }
        let (of, piped) = (&mut self.of, &mut self.piped);
        self.by_id.retain(|_, listed| {
            let stays = !listed.session.idle_since(now_ms, idle_ms);
            if !stays {
                unlist(of, listed);
                unpipe(piped, &listed.session);
            }
            stays
        });
    }

    fn refuses(&self, owner: &str, limits: SessionLimits) -> Option<SessionError> {
        if self.by_id.len() >= limits.sessions_max {
            return Some(SessionError::Full);
        }
        let is_taken = self.count_of(owner) >= limits.per_principal_max;
        is_taken.then_some(SessionError::PrincipalFull)
    }

    /// Makes a place for one more of this owner, if it can: its own sessions give way first. For its own bound nobody else's
    /// do; where all are taken, one of whoever has the most, and more than it has. What gave way is given back.
    fn make_place(
        &mut self,
        owner: &str,
        limits: SessionLimits,
        now_ms: u64,
    ) -> Option<Arc<Session>> {
        if let Some(own) = self.give_way(owner, now_ms) {
            return Some(own);
        }
        let looked_ms = self.looked_ms;
        if looked_ms.is_none_or(|at| now_ms.saturating_sub(at) >= LOOK_AGAIN_MS) {
            self.looked_ms = Some(now_ms);
            self.sweep(now_ms, limits.idle_ms);
            let most = self.of.iter().max_by_key(|(_, sessions)| sessions.len());
            self.most = most.map(|(owner, _)| Arc::clone(owner));
        }
        if self.refuses(owner, limits) != Some(SessionError::Full) {
            return None;
        }
        let most = self.most.clone()?;
        let has_more = self.count_of(&most) > self.count_of(owner);
        has_more.then(|| self.give_way(&most, now_ms)).flatten()
    }

    fn piped_on(&self, server: &str) -> impl Iterator<Item = &Listed> {
        let ids = self.piped.get(server).into_iter().flatten();
        ids.filter_map(|id| self.by_id.get(id))
    }

    /// The session of this owner with pipes of its own on a server that was idle for longest.
    fn idlest_on(&self, server: &str, owner: &str) -> Option<Arc<str>> {
        let own = self.piped_on(server);
        let own = own.filter(|l| &*l.session.owner == owner && !l.is_in_use());
        let idlest = own.min_by_key(|l| l.session.used_ms());
        idlest.map(|l| Arc::clone(&l.session.id))
    }

    /// Who has the most sessions with pipes there, if those are more than this owner's.
    fn most_on(&self, server: &str, owner: &str) -> Option<Arc<str>> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        let owners = self.piped_on(server).map(|l| &*l.session.owner);
        owners.for_each(|owner| *counts.entry(owner).or_default() += 1);
        let own = counts.get(owner).copied().unwrap_or(0);
        let (most, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        (count > own).then(|| most.into())
    }

    /// Takes out the session of this owner that was idle for longest.
    fn give_way(&mut self, owner: &str, now_ms: u64) -> Option<Arc<Session>> {
        for _ in 0..IN_USE_MAX {
            let (seen, id) = self.of.get(owner)?.first_key_value()?;
            let (seen, id) = (*seen, Arc::clone(id));
            let listed = self.by_id.get(&id)?;
            let used_ms = match listed.is_in_use() {
                true => now_ms,
                false if listed.session.used_ms() <= seen.0 => return self.remove(&id),
                false => listed.session.used_ms(),
            };
            let listed = self.by_id.remove(&id)?;
            unlist(&mut self.of, &listed);
            let seen = self.list(&listed.session, used_ms);
            self.by_id.insert(id, Listed { seen, ..listed });
        }
        None
    }
}

fn unpipe(piped: &mut HashMap<Arc<str>, HashSet<Arc<str>>>, session: &Session) {
    if let Some(there) = piped.get_mut(&session.server) {
        there.remove(&session.id);
        if there.is_empty() {
            piped.remove(&session.server);
        }
    }
}

fn unlist(of: &mut HashMap<Arc<str>, BTreeMap<Seen, Arc<str>>>, listed: &Listed) {
    let owner = &listed.session.owner;
    let Some(sessions) = of.get_mut(owner) else {
        return;
    };
    sessions.remove(&listed.seen);
    if sessions.is_empty() {
        of.remove(owner);
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
            said: Seldom::new(GAVE_WAY_SAID, GAVE_WAY_SAID_EVERY),
        }
    }
}

impl Sessions {
    /// Makes a session. Where the table, or the principal's share of it, is full, one gives way that nobody uses.
    ///
    /// # Errors
    /// It is full, and none that could give way is idle.
    pub fn open(&self, new: NewSession, limits: SessionLimits) -> Result<Admitted, SessionError> {
        let now_ms = self.now_ms();
        let mut gave_way = None;
        let mut table = self.table.lock();
        if table.refuses(&new.owner, limits).is_some() {
            gave_way = table.make_place(&new.owner, limits, now_ms);
        }
        let refused = table.refuses(&new.owner, limits);
        let opened = match refused {
            None => {
                let session = Arc::new(Session::new(new, now_ms));
                table.insert(Arc::clone(&session), now_ms);
                Some(session)
            }
            Some(_) => None,
        };
        // What one holds that gave way may take a moment to let go of.
        drop(table);
        if let Some(gone) = &gave_way {
            self.say_gone(gone, now_ms);
        }
        match (opened, refused) {
            (Some(session), _) => Ok(Admitted { session, gave_way }),
            (None, refused) => Err(refused.unwrap_or(SessionError::Full)),
        }
    }

    /// Takes out the session with a process or stream of its own on this server that was idle for longest, so that another
    /// can have its place: of this owner first, and for the owner's own bound of no other; else of whoever has the most there,
    /// and more than this owner.
    pub fn give_way_on(&self, server: &str, owner: &str, own_only: bool) -> Option<Arc<Session>> {
        let now_ms = self.now_ms();
        let mut table = self.table.lock();
        let found = table.idlest_on(server, owner).or_else(|| {
            let most = (!own_only).then(|| table.most_on(server, owner)).flatten();
            most.and_then(|most| table.idlest_on(server, &most))
        });
        let gone = found.and_then(|id| table.remove(&id));
        drop(table);
        if let Some(gone) = &gone {
            self.say_gone(gone, now_ms);
        }
        gone
    }

    fn say_gone(&self, gone: &Session, now_ms: u64) {
        if let Some(left_out) = self.said.admits(Instant::now()) {
            let idle_ms = now_ms.saturating_sub(gone.used_ms());
            tracing::warn!(
                server_id = %gone.server, session = %gone.tag, idle_ms, left_out,
                "as many sessions are open as may be: the one that was idle for longest gave way"
            );
        }
    }

    /// Finds a session of this owner on this server. Anybody else's is not there.
    pub fn find(&self, id: &str, owner: &str, server: &str) -> Option<Arc<Session>> {
        let table = self.table.lock();
        let session = Arc::clone(&table.by_id.get(id)?.session);
        drop(table);
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
        let Table {
            by_id, of, piped, ..
        } = &mut *table;
        let gone = by_id.extract_if(|_, listed| !is_there(&listed.session.server));
        let gone: Vec<Listed> = gone.map(|(_, listed)| listed).collect();
        for listed in &gone {
            unlist(of, listed);
            unpipe(piped, &listed.session);
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
    fn new(new: NewSession, now_ms: u64) -> Self {
        let id: Arc<str> = random_id().into();
        let tag = tag(&id);
        // A session's calls belong to no other.
        new.calls.belong_to(Arc::clone(&tag));
        Self {
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
        }
    }

    fn used_ms(&self) -> u64 {
        self.used_ms.load(Ordering::Relaxed)
    }

    /// The upstream's own id; absent for a duplex upstream and before an upstream minted one.
    pub fn upstream_id(&self) -> Option<Box<str>> {
        self.upstream_id.get().cloned()
    }

    /// The upstream minted its id after this session was made. The first one counts.
    pub fn upstream_says(&self, id: Box<str>) {
        let _ = self.upstream_id.set(id);
    }

    fn idle_since(&self, now_ms: u64, idle_ms: u64) -> bool {
        now_ms.saturating_sub(self.used_ms()) > idle_ms
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

    /// Whoever keeps what it gives uses it.
    fn open(sessions: &Sessions, owner: &str) -> Result<Arc<Session>, SessionError> {
        let opened = sessions.open(new(owner), LIMITS);
        opened.map(|opened| opened.session)
    }

    fn is_open(sessions: &Sessions, id: &str, owner: &str) -> bool {
        sessions.find(id, owner, "s").is_some()
    }

    /// The same ones, when so long has passed.
    fn later(sessions: Sessions, ms: u64) -> Sessions {
        Sessions {
            epoch: sessions.epoch - Duration::from_millis(ms),
            ..sessions
        }
    }

    #[test]
    fn a_session_is_good_for_its_owner_and_server_only() {
        let sessions = Sessions::default();
        let s = open(&sessions, "a").unwrap();
        assert!(sessions.find(&s.id, "a", "s").is_some());
        assert!(sessions.find(&s.id, "b", "s").is_none());
        assert!(sessions.find(&s.id, "a", "t").is_none());
        assert!(sessions.find("0", "a", "s").is_none());
        sessions.close(&s);
        assert!(sessions.find(&s.id, "a", "s").is_none());
    }

    #[test]
    fn both_bounds_are_reached_where_all_are_in_use_and_forgotten_ones_give_way() {
        let sessions = Sessions::default();
        let used: Vec<_> = ["a", "a", "b"]
            .map(|owner| open(&sessions, owner).unwrap())
            .into();
        assert_eq!(open(&sessions, "c").unwrap_err(), SessionError::Full);
        sessions.close(&used[2]);
        assert_eq!(
            open(&sessions, "a").unwrap_err(),
            SessionError::PrincipalFull
        );
        open(&sessions, "b").unwrap();
        let late = later(sessions, 120_000);
        let s = open(&late, "c").unwrap();
        assert_eq!(late.count(), 1);
        late.close(&s);
        late.close(&s);
        let table = late.table.lock();
        assert!(table.by_id.is_empty() && table.of.is_empty());
    }

    #[test]
    fn the_own_session_that_was_idle_for_longest_gives_way_and_none_that_is_in_use() {
        let sessions = Sessions::default();
        let in_use = open(&sessions, "a").unwrap();
        let first = Arc::clone(&open(&sessions, "a").unwrap().id);
        let other = Arc::clone(&open(&sessions, "b").unwrap().id);
        let sessions = later(sessions, 1000);
        // The first gives way, though the one of `b` was idle for as long and the one that is held was opened before.
        let opened = sessions.open(new("a"), LIMITS).unwrap();
        let gone = opened.gave_way.map(|gone| Arc::clone(&gone.id));
        assert_eq!(gone, Some(first));
        assert!(is_open(&sessions, &in_use.id, "a") && is_open(&sessions, &other, "b"));
        // One that was opened before, but used since, stays.
        let (held, second) = (Arc::clone(&in_use.id), Arc::clone(&opened.session.id));
        drop((in_use, opened.session));
        let sessions = later(sessions, 1000);
        assert!(is_open(&sessions, &held, "a"));
        let third = open(&sessions, "a").unwrap();
        assert!(is_open(&sessions, &held, "a") && !is_open(&sessions, &second, "a"));
        assert!(is_open(&sessions, &third.id, "a") && is_open(&sessions, &other, "b"));
    }

    #[test]
    fn where_all_are_taken_who_has_more_makes_room_and_nobody_who_has_not() {
        let sessions = Sessions::default();
        let idle: Vec<Arc<str>> = ["a", "a", "b"]
            .map(|owner| Arc::clone(&open(&sessions, owner).unwrap().id))
            .into();
        let sessions = later(sessions, 1000);
        let held = open(&sessions, "c").unwrap();
        assert!(!is_open(&sessions, &idle[0], "a") && is_open(&sessions, &idle[1], "a"));
        // Now each has one: none of another gives way for a second one of `c`.
        assert_eq!(open(&sessions, "c").unwrap_err(), SessionError::Full);
        let sessions = later(sessions, 1000);
        assert_eq!(open(&sessions, "c").unwrap_err(), SessionError::Full);
        assert!(is_open(&sessions, &idle[1], "a") && is_open(&sessions, &idle[2], "b"));
        // What it does not use any more does.
        drop(held);
        assert!(open(&sessions, "c").is_ok());
        assert_eq!(sessions.count(), LIMITS.sessions_max);
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
        let open = |owner| sessions.open(new(owner), limits);
        let used: Vec<_> = (0..limits.per_principal_max)
            .map(|_| open("a").unwrap().session)
            .collect();
        // Who is refused, and asks again and again, has all of them looked at once in a while only.
        for _ in 0..limits.per_principal_max {
            let refused = open("a").unwrap_err();
            assert_eq!(refused, SessionError::PrincipalFull);
        }
        assert!(open("b").is_ok());
        // One look for each second that passed, and not one for each who asked.
        let looks = sessions.table.lock().looks;
        let looks_max = 2 + begun.elapsed().as_millis() as u64 / LOOK_AGAIN_MS;
        assert!((1..=looks_max).contains(&looks), "{looks}");
        assert_eq!(sessions.table.lock().count_of("a"), used.len());
        // Of those that nobody uses one gives way for each that comes, without a look at all.
        drop(used);
        for _ in 0..2 * limits.per_principal_max {
            assert!(open("a").is_ok_and(|opened| opened.gave_way.is_some()));
        }
        assert_eq!(sessions.table.lock().looks, looks);
        assert_eq!(sessions.count(), limits.per_principal_max + 1);
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
