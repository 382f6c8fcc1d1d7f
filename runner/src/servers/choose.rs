//! Who gets which sandbox, and which ones are woken or started for those who wait.

use std::collections::HashSet;
use std::time::Instant;

use runner_api::{GoneReason, Isolation, SandboxId, SessionKey};

use super::{Boxed, EVICT_AFTER, EVICT_LOST_AFTER, Phase, Server, TICK};
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
            .filter(|b| b.phase != Phase::Checkpointed && self.is_for_anyone(b))
            .count();
        need = need.max(floor.saturating_sub(unused));
        let coming = self
            .boxes
            .values()
            .filter(|b| self.is_for_anyone(b) && b.phase.comes())
            .count();
        let mut missing = need.saturating_sub(coming);
        if missing == 0 {
            return;
        }
        if !self.waiting.is_empty() {
            // What is in memory first.
            for phase in [Phase::Frozen, Phase::Checkpointed] {
                let at_rest = self.boxes.iter();
                let at_rest = at_rest.filter(|(_, b)| b.phase == phase && self.is_for_anyone(b));
                let ids: Vec<_> = at_rest.map(|(id, _)| id.clone()).take(missing).collect();
                missing -= ids.len();
                ids.iter().for_each(|id| self.wake(id));
            }
        }
        let now = Instant::now();
        while missing > 0 && self.backoff.over(now) {
            if self.is_full() {
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

    /// Whoever waits next may get it, once it is ready.
    fn is_for_anyone(&self, boxed: &Boxed) -> bool {
        boxed.open() && (self.spec.isolation == Isolation::Shared || boxed.unused())
    }

    /// There are as many sandboxes as there may be. One on disk counts where anybody may wake it; where only its session may,
    /// it would keep others out and nobody in.
    fn is_full(&self) -> bool {
        let apart = self.spec.isolation == Isolation::Session;
        let counts =
            |b: &&Boxed| b.phase != Phase::Ending && !(apart && b.phase == Phase::Checkpointed);
        self.boxes.values().filter(counts).count() >= self.spec.scale.max as usize
    }

    /// How many more sandboxes those who wait could use; those who have one of their own that is at rest have it woken.
    fn boxes_needed(&mut self) -> usize {
        let mut own_ones = Vec::new();
        let mut fresh = 0usize;
        let mut sessions: HashSet<&SessionKey> = HashSet::new();
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
                (Some(id), _) => own_ones.push(id.clone()),
                (None, Some(session)) if self.spec.isolation == Isolation::Session => {
                    fresh += usize::from(sessions.insert(session));
                }
                _ => fresh += 1,
            }
        }
        for id in own_ones {
            self.wake(&id);
        }
        match self.spec.isolation {
            Isolation::Shared => fresh.div_ceil(self.spec.scale.concurrency as usize),
            Isolation::Session | Isolation::Call => fresh,
        }
    }

    fn wake(&mut self, id: &SandboxId) {
        let full = self.spec.isolation == Isolation::Session && self.is_full();
        let Some(boxed) = self.boxes.get_mut(id) else {
            return;
        };
        match boxed.phase {
            Phase::Frozen | Phase::Freezing => {
                boxed.phase = Phase::Thawing;
                boxed.command(Command::Thaw);
            }
            Phase::Checkpointed if full => self.evict(Instant::now()),
            Phase::Checkpointed => {
                boxed.phase = Phase::Restoring;
                boxed.command(Command::Restore);
            }
            _ => {}
        }
    }

    /// All places are taken: one that nobody comes back for ends, or else the longest idle one goes, to the disk if it can.
    fn evict(&mut self, now: Instant) {
        if self.spec.isolation != Isolation::Session {
            return;
        }
        let idle_for = |b: &Boxed| now.saturating_duration_since(b.last_used);
        let mut lost = self.boxes.iter().filter(|(_, b)| {
            let held =
                !b.leases.is_empty() || matches!(b.phase, Phase::Checkpointed | Phase::Ending);
            !held && b.is_lost() && idle_for(b) >= EVICT_LOST_AFTER
        });
        if let Some(id) = lost.next().map(|(id, _)| id.clone()) {
            return self.stop(&id, GoneReason::Finished);
        }
        if self.boxes.values().any(|b| b.phase == Phase::Checkpointing) {
            return;
        }
        let idle = self.boxes.iter().filter(|(_, b)| {
            let awake = !matches!(b.phase, Phase::Checkpointed | Phase::Restoring);
            b.open() && awake && b.leases.is_empty() && b.leases_total > 0
        });
        let oldest = idle
            .min_by_key(|(_, b)| b.last_used)
            .map(|(id, b)| (id.clone(), b.last_used));
        let Some((id, last_used)) = oldest else {
            return;
        };
        if now.saturating_duration_since(last_used) < EVICT_AFTER {
            return;
        }
        let fails = self.checkpoints_fail || self.spec.idle.checkpoint_after_s == 0;
        match self.boxes.get_mut(&id) {
            // Others may be on their way to the disk: one at a time goes, and this one is told again with the next tick.
            Some(boxed) if boxed.fit(Isolation::Session, fails) => {
                if boxed.asked.elapsed() >= TICK {
                    boxed.lay_down();
                }
            }
            _ => self.stop(&id, GoneReason::Idle),
        }
    }
}
