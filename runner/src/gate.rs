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
    places: usize,
    free: usize,
    /// Places that each tenant has.
    inside: HashMap<TenantId, usize>,
    waiting: HashMap<TenantId, VecDeque<Waiter>>,
    /// Tenants with somebody waiting, who is next first.
    turns: VecDeque<TenantId>,
}

struct Waiter {
    turn: oneshot::Sender<Pass>,
    share: Share,
}

/// How much of the gate a tenant may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Share {
    All,
    /// All but one, where there are two or more.
    ButOne,
}

/// A place of a tenant; given to the next who waits when it is dropped.
pub struct Pass(Option<(Gate, TenantId)>);

impl Gate {
    /// With so many places.
    pub fn new(places: usize) -> Self {
        Self(Arc::new(Mutex::new(State {
            places: places.max(1),
            free: places.max(1),
            inside: HashMap::new(),
            waiting: HashMap::new(),
            turns: VecDeque::new(),
        })))
    }

    /// Waits for a place.
    pub async fn enter(&self, tenant: &TenantId) -> Pass {
        self.enter_as(tenant, Share::All).await
    }

    /// Waits for a place, and leaves one to other tenants where there are two or more: for what may take minutes.
    pub async fn enter_leaving_one(&self, tenant: &TenantId) -> Pass {
        self.enter_as(tenant, Share::ButOne).await
    }

    async fn enter_as(&self, tenant: &TenantId, share: Share) -> Pass {
        let turn = {
            let mut state = self.state();
            if state.may_enter(tenant, share) {
                state.take(tenant);
                return Pass(Some((self.clone(), tenant.clone())));
            }
            state.wait(tenant, share)
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

    /// Gives a tenant's place on.
    fn leave(&self, tenant: TenantId) {
        let mut leaving = tenant;
        loop {
            let next = {
                let mut state = self.state();
                state.give(&leaving);
                state.next()
            };
            let Some((tenant, turn)) = next else { return };
            match turn.send(Pass(Some((self.clone(), tenant.clone())))) {
                Ok(()) => return,
                // Whoever it was does not wait any more.
                Err(mut back) => {
                    back.0 = None;
                    leaving = tenant;
                }
            }
        }
    }
}

impl State {
    fn may_enter(&self, tenant: &TenantId, share: Share) -> bool {
        let inside = self.inside.get(tenant).copied().unwrap_or_default();
        self.free > 0 && (share == Share::All || self.places < 2 || inside + 1 < self.places)
    }

    fn take(&mut self, tenant: &TenantId) {
        self.free -= 1;
        *self.inside.entry(tenant.clone()).or_default() += 1;
    }

    fn give(&mut self, tenant: &TenantId) {
        self.free += 1;
        if let Some(inside) = self.inside.get_mut(tenant) {
            *inside -= 1;
            if *inside == 0 {
                self.inside.remove(tenant);
            }
        }
    }

    fn wait(&mut self, tenant: &TenantId, share: Share) -> oneshot::Receiver<Pass> {
        let (sender, turn) = oneshot::channel();
        let own = self.waiting.entry(tenant.clone()).or_default();
        own.retain(|other| !other.turn.is_closed());
        if own.is_empty() && !self.turns.contains(tenant) {
            self.turns.push_back(tenant.clone());
        }
        own.push_back(Waiter {
            turn: sender,
            share,
        });
        turn
    }

    /// Takes a place for whoever is next and may have one. Tenants that have all they may have keep their turns.
    fn next(&mut self) -> Option<(TenantId, oneshot::Sender<Pass>)> {
        let mut passed_over = Vec::new();
        let mut next = None;
        while let Some(tenant) = self.turns.pop_front() {
            let own = self.waiting.entry(tenant.clone()).or_default();
            // Who does not wait any more has no turn.
            own.retain(|waiter| !waiter.turn.is_closed());
            let Some(share) = own.front().map(|waiter| waiter.share) else {
                self.waiting.remove(&tenant);
                continue;
            };
            if !self.may_enter(&tenant, share) {
                passed_over.push(tenant);
                continue;
            }
            next = self.first_of(tenant);
            break;
        }
        for tenant in passed_over.into_iter().rev() {
            self.turns.push_front(tenant);
        }
        next
    }

    fn first_of(&mut self, tenant: TenantId) -> Option<(TenantId, oneshot::Sender<Pass>)> {
        let own = self.waiting.get_mut(&tenant)?;
        let turn = own.pop_front()?.turn;
        if own.is_empty() {
            self.waiting.remove(&tenant);
        } else {
            self.turns.push_back(tenant.clone());
        }
        self.take(&tenant);
        Some((tenant, turn))
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some((gate, tenant)) = self.0.take() {
            gate.leave(tenant);
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
        assert!(state.inside.is_empty());
    }

    #[test]
    fn one_place_is_left_to_other_tenants() {
        for places in [1, 2, 3, 8] {
            let gate = Gate::new(places);
            let (many, few) = (tenant("many"), tenant("few"));
            let own = (places - 1).max(1);
            let mut inside: Vec<_> = (0..own)
                .map(|_| gate.enter_leaving_one(&many).now_or_never())
                .collect();
            assert!(inside.iter().all(Option::is_some), "{places}");
            let mut one_more = Box::pin(gate.enter_leaving_one(&many));
            let mut another = Box::pin(gate.enter_leaving_one(&many));
            assert!((&mut one_more).now_or_never().is_none(), "{places}");
            assert!((&mut another).now_or_never().is_none(), "{places}");
            if places > 1 {
                let other = gate.enter_leaving_one(&few).now_or_never();
                assert!(other.is_some(), "{places}");
                drop(other);
                assert!((&mut one_more).now_or_never().is_none(), "{places}");
            }
            // Its own place is given on to its own, the others' stays free.
            inside.pop();
            let second = (&mut one_more).now_or_never();
            assert!(second.is_some() && (&mut another).now_or_never().is_none());
            drop((another, second, inside));
            let state = gate.state();
            assert_eq!(state.free, places);
            assert!(state.inside.is_empty());
        }
    }

    #[test]
    fn who_has_enough_keeps_its_turn() {
        let gate = Gate::new(2);
        let (many, few) = (tenant("many"), tenant("few"));
        let first = gate.enter_leaving_one(&many).now_or_never();
        let other = gate.enter_leaving_one(&few).now_or_never();
        let mut waits = Box::pin(gate.enter_leaving_one(&many));
        assert!((&mut waits).now_or_never().is_none());
        let mut behind = Box::pin(gate.enter_leaving_one(&few));
        assert!((&mut behind).now_or_never().is_none());
        // The first in the queue may not have this one.
        drop(other);
        assert!((&mut waits).now_or_never().is_none());
        let behind = (&mut behind).now_or_never();
        assert!(behind.is_some());
        drop(first);
        assert!((&mut waits).now_or_never().is_some());
        drop(behind);
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
