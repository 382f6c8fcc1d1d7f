//! Who is connected: a caller is there as long as one of its connections is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use runner_api::CallerId;

/// All callers. As many as there are connections, at the most. Cheap to clone.
#[derive(Clone, Default)]
pub struct Callers(Arc<Mutex<HashMap<CallerId, Weak<()>>>>);

/// Held by each connection of a caller.
pub struct Present {
    caller: Caller,
    _there: Arc<()>,
}

/// A caller of whom it can be asked whether it is there.
#[derive(Clone)]
pub struct Caller {
    id: CallerId,
    all: Callers,
}

impl Callers {
    /// One more connection of a caller.
    pub fn connected(&self, id: CallerId) -> Present {
        let mut all = self.lock();
        all.retain(|_, caller| caller.strong_count() > 0);
        let there = all.get(&id).and_then(Weak::upgrade).unwrap_or_default();
        all.insert(id.clone(), Arc::downgrade(&there));
        drop(all);
        let caller = Caller {
            id,
            all: self.clone(),
        };
        Present {
            caller,
            _there: there,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallerId, Weak<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Present {
    /// Whose connection it is.
    pub fn caller(&self) -> Caller {
        self.caller.clone()
    }
}

impl Caller {
    /// None of its connections is left now. A program that is started anew is another caller; one that only lost all its
    /// connections for a moment is the same.
    pub fn is_gone(&self) -> bool {
        let all = self.all.lock();
        all.get(&self.id)
            .is_none_or(|caller| caller.strong_count() == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_gone_with_its_last_connection() {
        let (callers, id) = (
            Callers::default(),
            CallerId::parse("abcdefghijkl").expect("an id"),
        );
        let other = CallerId::parse("mnopqrstuvwx").expect("an id");
        let (one, two) = (callers.connected(id.clone()), callers.connected(id.clone()));
        let (caller, _other) = (one.caller(), callers.connected(other));
        drop(one);
        assert!(!caller.is_gone());
        drop(two);
        assert!(caller.is_gone());
        let again = callers.connected(id);
        assert!(
            !caller.is_gone(),
            "its connections broke off, and it did not"
        );
        drop(again);
        assert!(caller.is_gone());
        let _third = callers.connected(CallerId::parse("aaaaaaaaaaaa").expect("an id"));
        assert_eq!(callers.lock().len(), 2, "nothing is kept of the gone");
    }
}
