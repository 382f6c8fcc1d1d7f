//! Starts and builds at once are bounded, as more only make each other slow. Those who wait go in by turns of their tenants, so that
//! one with many starts holds up its own.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::TenantId;
use tokio::sync::oneshot;

/// The gate. Who waits before it is bounded by whoever lets it wait. Cheap to clone.
#[derive(Clone)]
pub struct Gate(Arc<Mutex<State>>);

struct State {
    free: usize,
    waiting: HashMap<TenantId, VecDeque<oneshot::Sender<Pass>>>,
    /// Tenants with somebody waiting, who is next first.
    turns: VecDeque<TenantId>,
}

/// A place; given to the next who waits when it is dropped.
pub struct Pass(Option<Gate>);

impl Gate {
    /// With so many places.
    pub fn new(places: usize) -> Self {
        Self(Arc::new(Mutex::new(State {
            free: places.max(1),
            waiting: HashMap::new(),
            turns: VecDeque::new(),
        })))
    }

    /// Waits for a place.
    pub async fn enter(&self, tenant: &TenantId) -> Pass {
        let turn = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return Pass(Some(self.clone()));
            }
            state.wait(tenant)
        };
        match turn.await {
            Ok(pass) => pass,
            // Its sender waits in the gate until it is given a place.
            Err(_) => std::future::pending().await,
        }
    }

    /// How many of a tenant wait.
    pub fn waiting(&self, tenant: &TenantId) -> usize {
        let state = self.state();
        state.waiting.get(tenant).map_or(0, VecDeque::len)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a place on.
    fn leave(&self) {
        let mut pass = Pass(Some(self.clone()));
        loop {
            let next = {
                let mut state = self.state();
                let next = state.next();
                state.free += usize::from(next.is_none());
                next
            };
            let Some(next) = next else {
                // It is counted as free.
                pass.0 = None;
                return;
            };
            match next.send(pass) {
                Ok(()) => return,
                // Whoever it was does not wait any more.
                Err(back) => pass = back,
            }
        }
    }
}

impl State {
    fn wait(&mut self, tenant: &TenantId) -> oneshot::Receiver<Pass> {
        let (sender, turn) = oneshot::channel();
        let own = self.waiting.entry(tenant.clone()).or_default();
        own.retain(|other| !other.is_closed());
        if own.is_empty() && !self.turns.contains(tenant) {
            self.turns.push_back(tenant.clone());
        }
        own.push_back(sender);
        turn
    }

    fn next(&mut self) -> Option<oneshot::Sender<Pass>> {
        while let Some(tenant) = self.turns.pop_front() {
            let own = self.waiting.entry(tenant.clone()).or_default();
            // Who does not wait any more has no turn.
            own.retain(|waiter| !waiter.is_closed());
            let next = own.pop_front();
            if own.is_empty() {
                self.waiting.remove(&tenant);
            } else {
                self.turns.push_back(tenant);
            }
            if next.is_some() {
                return next;
            }
        }
        None
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(gate) = self.0.take() {
            gate.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn tenant(name: &str) -> TenantId {
        TenantId::parse(name).expect("an id")
    }

    #[test]
    fn tenants_take_turns() {
        let gate = Gate::new(1);
        let many = tenant("many");
        let mut inside = gate.enter(&many).now_or_never();
        assert!(inside.is_some());
        let mut waiting: Vec<_> = ["many", "many", "many", "few", "other", "few"]
            .into_iter()
            .map(|name| {
                let (gate, id) = (gate.clone(), tenant(name));
                let mut enters = Box::pin(async move { gate.enter(&id).await });
                assert!((&mut enters).now_or_never().is_none(), "{name} got in");
                (name, enters)
            })
            .collect();
        // One that does not wait any more is passed over.
        drop(waiting.remove(1));
        let mut order = Vec::new();
        while !waiting.is_empty() {
            drop(inside.take());
            let entered = waiting
                .iter_mut()
                .enumerate()
                .find_map(|(at, (name, enters))| Some((at, *name, enters.now_or_never()?)));
            let (at, name, pass) = entered.expect("a free place is given on");
            order.push(name);
            inside = Some(pass);
            drop(waiting.remove(at));
        }
        assert_eq!(order, ["many", "few", "other", "many", "few"]);
        drop(inside);
        let state = gate.state();
        assert_eq!(
            (state.free, state.waiting.len(), state.turns.len()),
            (1, 0, 0)
        );
    }

    #[test]
    fn a_place_that_nobody_takes_any_more_is_not_lost() {
        let gate = Gate::new(1);
        let id = tenant("a");
        let inside = gate.enter(&id).now_or_never().expect("a place");
        let mut enters = Box::pin(gate.enter(&id));
        assert!((&mut enters).now_or_never().is_none());
        // Given to it, and then it goes.
        drop(inside);
        drop(enters);
        assert!(gate.enter(&id).now_or_never().is_some());
    }
}
