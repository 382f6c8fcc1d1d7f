//! What ties a message to its call.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use domain::ProtocolVersion;
use mcp_codec::Id;
use parking_lot::Mutex;

use super::claims::{Claims, Mixed};
use crate::pipeline::Said;

/// Event ids remembered for each call that may wait: a client comes back for the last one that it got, which need not
/// be the last that was sent.
const EVENTS_PER_CALL: usize = 4;

/// A call: what later messages are tied to.
#[derive(Debug)]
pub struct Call {
    /// Its JSON-RPC id; absent for a notification.
    pub id: Option<Id>,
    /// Its method.
    pub method: Box<str>,
    /// Its tool, for `tools/call` and for what follows from one.
    pub tool: Option<Arc<str>>,
    certain: bool,
    opened: OnceLock<Opened>,
}

/// What is known of a call that went up.
#[derive(Debug)]
struct Opened {
    /// Whether its id is that of a call unlike it, too.
    mixed: Option<Mixed>,
    progress_token: Option<Id>,
    is_over: AtomicBool,
}

impl Call {
    /// A call that did not go up yet. `certain`: whether the tool, or that there is none, is.
    pub fn new(id: Option<Id>, method: &str, tool: Option<Arc<str>>, certain: bool) -> Self {
        Self {
            id,
            method: method.into(),
            tool,
            certain,
            opened: OnceLock::new(),
        }
    }

    /// Whether it is certain what it is, and that what comes for it does; else the strictest policy judges.
    pub fn is_certain(&self) -> bool {
        self.certain && !self.is_mixed()
    }

    fn is_mixed(&self) -> bool {
        let mixed = self.opened.get().and_then(|opened| opened.mixed.as_ref());
        mixed.is_some_and(|mixed| mixed.load(Ordering::Relaxed))
    }

    /// Whether the same policy judges what comes for either.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.method == other.method && self.tool == other.tool && self.certain == other.certain
    }
}

/// A map with a written upper bound: the oldest entry gives way.
///
/// `ages` holds what is in `entries` and nothing else, so a key that comes and goes leaves nothing behind
/// that a later insertion would have to pass over.
#[derive(Debug)]
pub struct BoundedMap<K, V> {
    entries: HashMap<K, (u64, V)>,
    ages: BTreeMap<u64, K>,
    inserted: u64,
    max: usize,
}

impl<K: Eq + Hash + Clone, V> BoundedMap<K, V> {
    /// An empty map for at most `max` entries.
    pub fn new(max: usize) -> Self {
        Self {
            entries: HashMap::new(),
            ages: BTreeMap::new(),
            inserted: 0,
            max: max.max(1),
        }
    }

    /// Adds an entry, or makes it the newest; when the map is full the oldest leaves, and its key is given back.
    pub fn insert(&mut self, key: K, value: V) -> Option<K> {
        self.inserted += 1;
        if let Some((age, _)) = self.entries.insert(key.clone(), (self.inserted, value)) {
            self.ages.remove(&age);
        }
        self.ages.insert(self.inserted, key);
        if self.entries.len() <= self.max {
            return None;
        }
        self.pop_oldest().map(|(oldest, _)| oldest)
    }

    /// Takes the oldest entry out.
    pub fn pop_oldest(&mut self) -> Option<(K, V)> {
        let (_, oldest) = self.ages.pop_first()?;
        let (_, value) = self.entries.remove(&oldest)?;
        Some((oldest, value))
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Looks an entry up.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.entries.get(key).map(|(_, value)| value)
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key).map(|(_, value)| value)
    }

    /// Takes an entry out.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (age, value) = self.entries.remove(key)?;
        self.ages.remove(&age);
        Some(value)
    }
}

/// The calls of one session (or of one stateless request) by every handle a message may name.
#[derive(Debug)]
pub struct Calls {
    maps: Mutex<Maps>,
    client: OnceLock<Capabilities>,
    session: OnceLock<Arc<str>>,
    agreed: OnceLock<ProtocolVersion>,
    said: Mutex<Said>,
}

/// What a client declared that it can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// `sampling/createMessage`.
    pub sampling: bool,
    /// `elicitation/create`.
    pub elicitation: bool,
    /// `roots/list`.
    pub roots: bool,
}

#[derive(Debug)]
struct Maps {
    pending: Claims,
    progress: Claims,
    /// What the server asked and nobody answered yet; nothing where it is not known in the course of which call.
    server_requests: BoundedMap<Id, Option<Arc<Call>>>,
    /// Nothing where calls that are unlike named the same event.
    events: BoundedMap<EventKey, Option<Arc<Call>>>,
}

/// A hash of an event's id: those are the server's, and long if it likes.
type EventKey = [u8; 16];

fn event_key(id: &str) -> EventKey {
    let hash = blake3::hash(id.as_bytes());
    let mut key = EventKey::default();
    key.copy_from_slice(&hash.as_bytes()[..16]);
    key
}

impl Calls {
    /// Remembers at most `max` of each kind.
    pub fn new(max: usize) -> Self {
        Self {
            maps: Mutex::new(Maps {
                pending: Claims::new(max),
                progress: Claims::new(max),
                server_requests: BoundedMap::new(max),
                events: BoundedMap::new(max.saturating_mul(EVENTS_PER_CALL)),
            }),
            client: OnceLock::new(),
            session: OnceLock::new(),
            agreed: OnceLock::new(),
            said: Mutex::default(),
        }
    }

    /// What the server said to the client before the answer at hand: nothing for most calls.
    pub(crate) fn said(&self) -> Option<Said> {
        let said = self.said.lock();
        (!said.is_empty()).then(|| said.clone())
    }

    /// What was said in a message that is no answer and goes to the client.
    pub(crate) fn said_more(&self, next: &Said) {
        self.said.lock().extend(next);
    }

    /// The hash of the session whose calls these are; absent while there is none.
    pub fn session(&self) -> Option<&str> {
        self.session.get().map(|tag| &**tag)
    }

    /// Says whose they are: the hash of a session.
    pub(super) fn belong_to(&self, session: Arc<str>) {
        let _ = self.session.set(session);
    }

    /// The revision that the handshake ended in, once it did. The first one counts.
    pub fn agree(&self, version: ProtocolVersion) {
        let _ = self.agreed.set(version);
    }

    /// The same, to look it up.
    pub fn agreed(&self) -> Option<ProtocolVersion> {
        self.agreed.get().copied()
    }

    /// What the client declared. The first word of a session counts.
    pub fn client_says(&self, capabilities: Capabilities) {
        let _ = self.client.set(capabilities);
    }

    /// Whether the client can be asked this. One that never said may be able to.
    pub fn client_can(&self, method: &str) -> bool {
        let Some(client) = self.client.get() else {
            return true;
        };
        match method {
            "sampling/createMessage" => client.sampling,
            "elicitation/create" => client.elicitation,
            "roots/list" => client.roots,
            _ => true,
        }
    }

    /// A request goes up.
    pub fn opened(&self, call: &Arc<Call>, progress_token: Option<Id>) {
        let mut maps = self.maps.lock();
        let mixed = call.id.clone().map(|id| maps.pending.add(id, call));
        if let Some(token) = &progress_token {
            maps.progress.add(token.clone(), call);
        }
        let _ = call.opened.set(Opened {
            mixed,
            progress_token,
            is_over: AtomicBool::new(false),
        });
    }

    /// The call that waits for an answer with this id.
    pub fn by_id(&self, id: &Id) -> Option<Arc<Call>> {
        self.maps.lock().pending.call(id).cloned()
    }

    /// A call was answered, or cannot be any more. Only the first time counts, and only for one that went up.
    pub fn ended(&self, call: &Call) {
        let Some(opened) = call.opened.get() else {
            return;
        };
        if opened.is_over.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut maps = self.maps.lock();
        if let Some(id) = &call.id {
            maps.pending.release(id);
        }
        // Where the answer may have been another call's, this one may still be reported on.
        if let Some(token) = opened.progress_token.as_ref().filter(|_| !call.is_mixed()) {
            maps.progress.release(token);
        }
    }

    /// The call that progress is reported on, where its token names but one.
    pub fn by_progress(&self, token: &Id) -> Option<Arc<Call>> {
        self.maps.lock().progress.only(token).cloned()
    }

    /// The client was told of an event in the answer to a call, and may come back for what follows it.
    pub fn told_event(&self, id: &str, call: &Arc<Call>) {
        let events = &mut self.maps.lock().events;
        let key = event_key(id);
        let named = match events.get(&key) {
            Some(Some(before)) if before.is_like(call) => Some(Arc::clone(call)),
            Some(_) => None,
            None => Some(Arc::clone(call)),
        };
        events.insert(key, named);
    }

    /// The call in whose answer this event came.
    pub fn by_event(&self, id: &str) -> Option<Arc<Call>> {
        self.maps.lock().events.get(&event_key(id)).cloned()?
    }

    /// The server asked something, in the course of this call if of any that is known.
    pub fn server_asked(&self, id: Id, call: Option<Arc<Call>>) {
        self.maps.lock().server_requests.insert(id, call);
    }

    /// The call in whose course the server asked what the client now answers.
    pub fn client_answers(&self, id: &Id) -> Option<Arc<Call>> {
        self.maps.lock().server_requests.remove(id)?
    }

    /// What the server asked by this id is answered in place of the client. False where it asked no such thing, or was
    /// answered before: then the id is text that somebody else chose.
    pub fn answered_for_client(&self, id: &Id) -> bool {
        self.maps.lock().server_requests.remove(id).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Id {
        Id::String(text.into())
    }

    fn opened(calls: &Calls, id: Id, tool: &str, token: Option<&str>) -> Arc<Call> {
        let call = Arc::new(Call::new(Some(id), "tools/call", Some(tool.into()), true));
        calls.opened(&call, token.map(text));
        call
    }

    #[test]
    fn calls_are_told_apart_by_kind_and_number_is_not_text() {
        let calls = Calls::new(2);
        let call = opened(&calls, Id::Number(1), "a", Some("p"));
        assert!(calls.by_id(&text("1")).is_none());
        assert!(calls.client_answers(&Id::Number(1)).is_none());
        assert!(calls.by_progress(&text("p")).is_some());
        assert!(calls.by_id(&Id::Number(1)).is_some());
        calls.ended(&call);
        assert!(calls.by_progress(&text("p")).is_none());
        assert!(
            calls.by_id(&Id::Number(1)).is_none(),
            "a second answer is nobody's"
        );
    }

    #[test]
    fn calls_that_have_the_same_id_are_certain_only_while_they_are_alike() {
        let calls = Calls::new(4);
        let first = opened(&calls, Id::Number(5), "strict", None);
        let again = opened(&calls, Id::Number(5), "strict", None);
        assert!(first.is_certain() && again.is_certain());
        let other = opened(&calls, Id::Number(5), "lax", None);
        let mixed = [&first, &again, &other];
        assert!(mixed.iter().all(|call| !call.is_certain()));
        // One answer is one call's, and the rest are still mixed.
        calls.ended(&other);
        calls.ended(&other);
        assert!(!opened(&calls, Id::Number(5), "lax", None).is_certain());
        assert!(opened(&calls, Id::Number(6), "lax", None).is_certain());
    }

    #[test]
    fn only_what_the_server_asked_is_answered_in_place_of_the_client_and_once() {
        let calls = Calls::new(2);
        let call = opened(&calls, Id::Number(1), "a", None);
        calls.server_asked(text("tied"), Some(call));
        calls.server_asked(text("unasked for"), None);
        for (id, is_asked) in [("tied", true), ("unasked for", true), ("other", false)] {
            assert_eq!(calls.answered_for_client(&text(id)), is_asked, "{id}");
            assert!(!calls.answered_for_client(&text(id)), "{id}, again");
        }
        calls.server_asked(text("a"), None);
        assert!(calls.client_answers(&text("a")).is_none());
        assert!(!calls.answered_for_client(&text("a")), "the client did");
    }

    #[test]
    fn an_id_is_free_when_its_call_was_answered() {
        let calls = Calls::new(4);
        for tool in ["strict", "lax", "strict"] {
            let call = opened(&calls, Id::Number(1), tool, Some("p"));
            assert!(call.is_certain(), "{tool}");
            let named = calls.by_progress(&text("p"));
            assert!(named.is_some_and(|named| Arc::ptr_eq(&named, &call)));
            calls.ended(&call);
        }
        // What never went up ends nothing.
        let waits = opened(&calls, Id::Number(1), "strict", None);
        calls.ended(&Call::new(Some(Id::Number(1)), "m", None, true));
        assert!(calls.by_id(&Id::Number(1)).is_some());
        assert!(waits.is_certain());
    }

    #[test]
    fn a_token_of_two_calls_names_neither() {
        let calls = Calls::new(4);
        let strict = opened(&calls, Id::Number(1), "strict", Some("p"));
        let lax = opened(&calls, Id::Number(2), "lax", Some("p"));
        assert!(calls.by_progress(&text("p")).is_none());
        assert!(strict.is_certain() && lax.is_certain(), "their ids differ");
        calls.ended(&lax);
        assert!(calls.by_progress(&text("p")).is_none());
        calls.ended(&strict);
        opened(&calls, Id::Number(3), "lax", Some("p"));
        assert!(calls.by_progress(&text("p")).is_some());
    }

    #[test]
    fn calls_that_had_to_give_way_are_not_forgotten_altogether() {
        let calls = Calls::new(2);
        for n in 0..4 {
            opened(&calls, Id::Number(n), "strict", None);
        }
        opened(&calls, text("a"), "strict", None);
        // 0, 1 and 2 gave way, and a text did not yet.
        assert!(!opened(&calls, Id::Number(2), "lax", None).is_certain());
        assert!(opened(&calls, text("b"), "lax", None).is_certain());
        assert!(opened(&calls, Id::Number(9), "lax", None).is_certain());
        assert!(!opened(&calls, text("c"), "lax", None).is_certain());
    }

    #[test]
    fn an_event_names_its_call_and_no_more_than_so_many_are_remembered() {
        let calls = Calls::new(1);
        let strict = opened(&calls, Id::Number(1), "strict", None);
        let lax = opened(&calls, Id::Number(2), "lax", None);
        calls.told_event("e", &strict);
        assert!(
            calls
                .by_event("e")
                .is_some_and(|c| Arc::ptr_eq(&c, &strict))
        );
        assert!(calls.by_event("f").is_none());
        calls.told_event("e", &lax);
        calls.told_event("e", &lax);
        assert!(calls.by_event("e").is_none(), "it named two");
        for n in 0..EVENTS_PER_CALL {
            calls.told_event(&n.to_string(), &lax);
        }
        calls.told_event("last", &lax);
        assert!(calls.by_event("0").is_none() && calls.by_event("1").is_some());
    }

    #[test]
    fn a_bounded_map_drops_the_oldest_and_stays_bounded() {
        let mut map = BoundedMap::new(2);
        for n in 0..100 {
            map.insert(n, n);
            map.remove(&n);
        }
        assert!(map.entries.is_empty() && map.ages.is_empty());
        map.insert(1, 1);
        map.insert(2, 2);
        map.insert(3, 3);
        assert_eq!(
            (map.entries.len(), map.get(&1), map.get(&3)),
            (2, None, Some(&3))
        );
        map.insert(2, 20);
        map.insert(4, 4);
        assert_eq!((map.get(&2), map.get(&3)), (Some(&20), None));
    }

    #[test]
    fn one_key_that_comes_and_goes_leaves_nothing_behind() {
        for keep in [false, true] {
            let mut map = BoundedMap::new(4);
            for n in 0..40 {
                map.insert("id", n);
                assert_eq!((map.entries.len(), map.ages.len()), (1, 1), "{n}");
                if !keep {
                    assert_eq!(map.remove(&"id"), Some(n));
                }
            }
            assert_eq!(map.get(&"id"), keep.then_some(&39));
        }
    }
}
