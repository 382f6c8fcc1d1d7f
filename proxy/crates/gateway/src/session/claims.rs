//! Which call goes by which handle: an id, or a progress token.
//!
//! The protocol lets no client give two calls one handle, and clients do it all the same; and a server may answer long
//! after its client left. So a handle is a call's until that was answered. Where calls that policy can tell apart had
//! the same one, it names none of them with certainty.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcp_codec::Id;

use super::calls::{BoundedMap, Call};

/// Shared by all calls that have a handle at the same time: whether they are unlike.
pub(super) type Mixed = Arc<AtomicBool>;

/// The calls that wait, by one kind of handle.
#[derive(Debug)]
pub(super) struct Claims {
    by_handle: BoundedMap<Id, Claim>,
    forgotten: Forgotten,
}

#[derive(Debug)]
struct Claim {
    /// The latest of them.
    call: Arc<Call>,
    /// How many there are.
    waiting: usize,
    mixed: Mixed,
}

impl Claims {
    /// Remembers at most `max` handles.
    pub(super) fn new(max: usize) -> Self {
        Self {
            by_handle: BoundedMap::new(max),
            forgotten: Forgotten::default(),
        }
    }

    /// One more call goes by this handle.
    pub(super) fn add(&mut self, handle: Id, call: &Arc<Call>) -> Mixed {
        let (waiting, mixed) = match self.by_handle.remove(&handle) {
            Some(before) => {
                if !before.call.is_like(call) {
                    before.mixed.store(true, Ordering::Relaxed);
                }
                (before.waiting, before.mixed)
            }
            None => (0, Arc::new(self.forgotten.may_hold(&handle).into())),
        };
        let claim = Claim {
            call: Arc::clone(call),
            waiting: waiting.saturating_add(1),
            mixed: Arc::clone(&mixed),
        };
        if let Some(gone) = self.by_handle.insert(handle, claim) {
            self.forgotten.add(&gone);
        }
        mixed
    }

    /// The call that goes by this handle.
    pub(super) fn call(&self, handle: &Id) -> Option<&Arc<Call>> {
        self.by_handle.get(handle).map(|claim| &claim.call)
    }

    /// The same, if no other that is unlike it does so too.
    pub(super) fn only(&self, handle: &Id) -> Option<&Arc<Call>> {
        let claim = self.by_handle.get(handle)?;
        (!claim.mixed.load(Ordering::Relaxed)).then_some(&claim.call)
    }

    /// One call less goes by this handle.
    pub(super) fn release(&mut self, handle: &Id) {
        let Some(claim) = self.by_handle.get_mut(handle) else {
            return;
        };
        claim.waiting -= 1;
        if claim.waiting == 0 {
            self.by_handle.remove(handle);
        }
    }
}

/// The handles of calls that were never answered and had to give way. It takes some for them that are not, never the
/// other way round; a client that counts has numbers above all of them.
#[derive(Debug, Default)]
struct Forgotten {
    number_max: Option<i64>,
    text: bool,
}

impl Forgotten {
    fn add(&mut self, handle: &Id) {
        match handle {
            Id::Number(number) => self.number_max = self.number_max.max(Some(*number)),
            Id::String(_) => self.text = true,
        }
    }

    fn may_hold(&self, handle: &Id) -> bool {
        match handle {
            Id::Number(number) => self.number_max >= Some(*number),
            Id::String(_) => self.text,
        }
    }
}
