//! Who is connected: a caller is there as long as one of its connections is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use runner_api::CallerId;

/// All callers. As many as there are connections, at the most.
#[derive(Default)]
pub struct Callers(Mutex<HashMap<CallerId, Weak<()>>>);

/// Held by each connection of a caller.
#[derive(Clone)]
pub struct Present(Arc<()>);

/// A caller of whom it can be asked whether it is there still.
#[derive(Clone)]
pub struct Caller(Weak<()>);

impl Callers {
    /// One more connection of a caller.
    pub fn connected(&self, id: CallerId) -> Present {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, caller| caller.strong_count() > 0);
        if let Some(known) = all.get(&id).and_then(Weak::upgrade) {
            return Present(known);
        }
        let present = Arc::new(());
        all.insert(id, Arc::downgrade(&present));
        Present(present)
    }
}

impl Present {
    /// Whose connection it is.
    pub fn caller(&self) -> Caller {
        Caller(Arc::downgrade(&self.0))
    }
}

impl Caller {
    /// None of its connections is left. It does not come back: one that is started anew is another.
    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
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
        let _again = callers.connected(id);
        assert!(caller.is_gone(), "another life of it");
        assert_eq!(
            callers.0.lock().expect("whole").len(),
            2,
            "nothing is kept of the gone"
        );
    }
}
