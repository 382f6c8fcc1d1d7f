//! What ties a message to its call.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, OnceLock};

use mcp_codec::Id;
use parking_lot::Mutex;

/// A call: what later messages are tied to.
#[derive(Debug)]
pub struct Call {
    /// Its JSON-RPC id; absent for a notification.
    pub id: Option<Id>,
    /// Its method.
    pub method: Box<str>,
    /// Its tool, for `tools/call` and for what follows from one.
    pub tool: Option<Arc<str>>,
    /// Whether the tool (or that there is none) is certain; else the strictest policy judges.
    pub certain: bool,
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

    /// Adds an entry, or makes it the newest; the oldest leaves when the map is full.
    pub fn insert(&mut self, key: K, value: V) {
        self.inserted += 1;
        if let Some((age, _)) = self.entries.insert(key.clone(), (self.inserted, value)) {
            self.ages.remove(&age);
        }
        self.ages.insert(self.inserted, key);
        if self.entries.len() > self.max
            && let Some((_, oldest)) = self.ages.pop_first()
        {
            self.entries.remove(&oldest);
        }
    }

    /// Looks an entry up.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(_, value)| value)
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
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
    pending: BoundedMap<Id, Arc<Call>>,
    progress: BoundedMap<Id, Arc<Call>>,
    server_requests: BoundedMap<Id, Arc<Call>>,
}

impl Calls {
    /// Remembers at most `max` of each kind.
    pub fn new(max: usize) -> Self {
        Self {
            maps: Mutex::new(Maps {
                pending: BoundedMap::new(max),
                progress: BoundedMap::new(max),
                server_requests: BoundedMap::new(max),
            }),
            client: OnceLock::new(),
            session: OnceLock::new(),
        }
    }

    /// The hash of the session whose calls these are; absent while there is none.
    pub fn session(&self) -> Option<&str> {
        self.session.get().map(|tag| &**tag)
    }

    /// Says whose they are: the hash of a session.
    pub(super) fn belong_to(&self, session: Arc<str>) {
        let _ = self.session.set(session);
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

    /// A request went up.
    pub fn opened(&self, call: &Arc<Call>, progress_token: Option<Id>) {
        let mut maps = self.maps.lock();
        if let Some(id) = &call.id {
            maps.pending.insert(id.clone(), Arc::clone(call));
        }
        if let Some(token) = progress_token {
            maps.progress.insert(token, Arc::clone(call));
        }
    }

    /// The call that a response answers. Its answer ends it.
    pub fn answered(&self, id: &Id) -> Option<Arc<Call>> {
        self.maps.lock().pending.remove(id)
    }

    /// The call that progress is reported on.
    pub fn by_progress(&self, token: &Id) -> Option<Arc<Call>> {
        self.maps.lock().progress.get(token).cloned()
    }

    /// The server asked something in the course of a call.
    pub fn server_asked(&self, id: Id, call: Arc<Call>) {
        self.maps.lock().server_requests.insert(id, call);
    }

    /// The call in whose course the server asked what the client now answers.
    pub fn client_answers(&self, id: &Id) -> Option<Arc<Call>> {
        self.maps.lock().server_requests.remove(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_apart_by_kind_and_number_is_not_text() {
        let calls = Calls::new(2);
        let call = |id: Id| {
            Arc::new(Call {
                id: Some(id),
                method: "m".into(),
                tool: None,
                certain: true,
            })
        };
        calls.opened(&call(Id::Number(1)), Some(Id::String("p".into())));
        assert!(calls.answered(&Id::String("1".into())).is_none());
        assert!(calls.client_answers(&Id::Number(1)).is_none());
        assert!(calls.by_progress(&Id::String("p".into())).is_some());
        assert!(calls.answered(&Id::Number(1)).is_some());
        assert!(
            calls.answered(&Id::Number(1)).is_none(),
            "a second answer is nobody's"
        );
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
