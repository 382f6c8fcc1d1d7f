//! Who gets which sandbox, and which ones are woken or started for those who wait.

use std::time::Instant;

use runner_api::{GoneReason, Isolation, SandboxId, SessionKey};

use super::{Boxed, EVICT_AFTER, Phase, Server};
use crate::boxes::Command;

impl Server {
    /// A sandbox that can take this lease now.
    pub(super) fn place_for(&self, session: Option<&SessionKey>) -> Option<SandboxId> {
        let ready = |b: &Boxed| b.open() && b.phase == Phase::Ready;
        let room = |b: &Boxed| b.leases.len() < self.spec.scale.concurrency as usize;
        match self.spec.isolation {
            Isolation::Shared => {
                if let Some(owner) = session.and_then(|s| self.sessions.get(s)) {
                    let boxed = self.boxes.get(owner)?;
                    return (ready(boxed) && room(boxed)).then(|| owner.clone());
                }
                let free = self.boxes.iter().filter(|(_, b)| ready(b) && room(b));
                free.min_by_key(|(_, b)| b.leases.len())
                    .map(|(id, _)| id.clone())
            }
            Isolation::Session => {
                let own = self.boxes.iter().find(|(_, b)| {
                    b.open() && b.session.is_some() && b.session.as_ref() == session
                });
                match own {
                    Some((id, boxed)) => (ready(boxed) && room(boxed)).then(|| id.clone()),
                    None => self
                        .boxes
                        .iter()
                        .find(|(_, b)| ready(b) && b.unused())
                        .map(|(id, _)| id.clone()),
                }
            }
            Isolation::Call => self
                .boxes
                .iter()
                .find(|(_, b)| ready(b) && b.unused())
                .map(|(id, _)| id.clone()),
        }
    }

    /// Thaws and starts what is missing for those who wait, and for the floor of unused ones.
    pub(super) fn want(&mut self) {
        let mut need = self.boxes_needed();
        let floor = self.spec.scale.min as usize;
        let unused = self
            .boxes
            .values()
            .filter(|b| b.open() && (b.unused() || self.spec.isolation == Isolation::Shared))
            .count();
        need = need.max(floor.saturating_sub(unused));
        let coming = self
            .boxes
            .values()
            .filter(|b| b.open() && matches!(b.phase, Phase::Starting | Phase::Thawing))
            .count();
        let mut missing = need.saturating_sub(coming);
        if missing == 0 {
            return;
        }
        let usable =
            |b: &Boxed| b.open() && (self.spec.isolation == Isolation::Shared || b.unused());
        let frozen: Vec<_> = self
            .boxes
            .iter()
            .filter(|(_, b)| b.phase == Phase::Frozen && usable(b))
            .map(|(id, _)| id.clone())
            .collect();
        if !self.waiting.is_empty() {
            for id in frozen.into_iter().take(missing) {
                self.thaw(&id);
                missing -= 1;
            }
        }
        let now = Instant::now();
        while missing > 0 && self.backoff.over(now) {
            if self
                .boxes
                .values()
                .filter(|b| b.phase != Phase::Ending)
                .count()
                >= self.spec.scale.max as usize
            {
                self.evict(now);
                break;
            }
            missing -= 1;
            if let Err(error) = self.start() {
                self.start_failed(error.message);
                break;
            }
        }
        if !self.backoff.over(now)
            && !self.boxes.values().any(Boxed::open)
            && !self.waiting.is_empty()
        {
            self.refuse_waiting();
        }
    }

    /// How many more sandboxes those who wait could use; those of a frozen sandbox of their own have it thawed.
    fn boxes_needed(&mut self) -> usize {
        let mut thaw = Vec::new();
        let mut fresh = 0usize;
        let mut sessions: Vec<&SessionKey> = Vec::new();
        for waiter in &self.waiting {
            let own = match self.spec.isolation {
                Isolation::Shared => waiter.session.as_ref().and_then(|s| self.sessions.get(s)),
                Isolation::Session => self
                    .boxes
                    .iter()
                    .find(|(_, b)| b.open() && b.session.is_some() && b.session == waiter.session)
                    .map(|(id, _)| id),
                Isolation::Call => None,
            };
            match (own, &waiter.session) {
                (Some(id), _) => thaw.push(id.clone()),
                (None, Some(session)) if self.spec.isolation == Isolation::Session => {
                    if !sessions.contains(&session) {
                        sessions.push(session);
                        fresh += 1;
                    }
                }
                _ => fresh += 1,
            }
        }
        for id in thaw {
            self.thaw(&id);
        }
        match self.spec.isolation {
            Isolation::Shared => fresh.div_ceil(self.spec.scale.concurrency as usize),
            Isolation::Session | Isolation::Call => fresh,
        }
    }

    fn thaw(&mut self, id: &SandboxId) {
        if let Some(boxed) = self.boxes.get_mut(id)
            && matches!(boxed.phase, Phase::Frozen | Phase::Freezing)
        {
            boxed.phase = Phase::Thawing;
            boxed.command(Command::Thaw);
        }
    }

    /// All places are taken: the longest idle one goes.
    fn evict(&mut self, now: Instant) {
        let idle = self
            .boxes
            .iter()
            .filter(|(_, b)| b.open() && b.leases.is_empty() && b.leases_total > 0);
        let oldest = idle
            .min_by_key(|(_, b)| b.last_used)
            .map(|(id, b)| (id.clone(), b.last_used));
        if let Some((id, last_used)) = oldest
            && now.duration_since(last_used) >= EVICT_AFTER
            && self.spec.isolation == Isolation::Session
        {
            self.stop(&id, GoneReason::Idle);
        }
    }
}
