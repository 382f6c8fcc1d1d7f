//! Which shared sandbox a session began on. So many are remembered; the one that was not heard of for longest goes.

use std::collections::{BTreeMap, HashMap};

use runner_api::{SandboxId, SessionKey};

/// Sessions that are remembered.
const SESSIONS_MAX: usize = 10_000;

#[derive(Default)]
pub(super) struct Sticky {
    by_session: HashMap<SessionKey, (SandboxId, u64)>,
    /// By when they were heard of last.
    by_age: BTreeMap<u64, SessionKey>,
    next: u64,
}

impl Sticky {
    /// The sandbox of a session.
    pub(super) fn get(&self, session: &SessionKey) -> Option<&SandboxId> {
        self.by_session.get(session).map(|(sandbox, _)| sandbox)
    }

    /// A session is on this sandbox now.
    pub(super) fn hear(&mut self, session: SessionKey, sandbox: SandboxId) {
        self.next += 1;
        let known = (sandbox, self.next);
        if let Some((_, age)) = self.by_session.insert(session.clone(), known) {
            self.by_age.remove(&age);
        }
        self.by_age.insert(self.next, session);
        if self.by_age.len() > SESSIONS_MAX
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.by_session.remove(&oldest);
        }
    }

    /// A session is over.
    pub(super) fn end(&mut self, session: &SessionKey) {
        if let Some((_, age)) = self.by_session.remove(session) {
            self.by_age.remove(&age);
        }
    }

    /// A sandbox is gone, and with it what its sessions had there.
    pub(super) fn forget(&mut self, gone: &SandboxId) {
        let by_session = &mut self.by_session;
        by_session.retain(|_, (sandbox, _)| sandbox != gone);
        self.by_age
            .retain(|_, session| by_session.contains_key(session));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: usize) -> SessionKey {
        SessionKey::parse(&format!("s{number}")).expect("a key")
    }

    #[test]
    fn the_one_not_heard_of_for_longest_goes() {
        let [one, two] = ["sandbox00001", "sandbox00002"];
        let sandbox = |id: &str| SandboxId::parse(id).expect("an id");
        let mut sticky = Sticky::default();
        for number in 0..SESSIONS_MAX {
            sticky.hear(session(number), sandbox(one));
        }
        sticky.hear(session(0), sandbox(one));
        for number in SESSIONS_MAX..SESSIONS_MAX + 10 {
            sticky.hear(session(number), sandbox(two));
            assert_eq!(sticky.get(&session(number)), Some(&sandbox(two)));
        }
        assert_eq!(
            sticky.get(&session(0)),
            Some(&sandbox(one)),
            "heard of since"
        );
        assert_eq!(sticky.get(&session(10)), None);
        assert_eq!(sticky.get(&session(11)), Some(&sandbox(one)));
        sticky.end(&session(11));
        sticky.forget(&sandbox(one));
        assert_eq!((sticky.by_session.len(), sticky.by_age.len()), (10, 10));
    }
}
