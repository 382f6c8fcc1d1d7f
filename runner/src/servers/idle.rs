//! What becomes of sandboxes that nobody uses.

use std::time::{Duration, Instant};

use runner_api::GoneReason;

use super::{CALL_GAP_MAX, Phase, Server};
use crate::boxes::Command;

impl Server {
    /// What becomes of those that nobody uses.
    pub(super) fn idle(&mut self) {
        let times = self.spec.idle;
        let floor = self.spec.scale.min as usize;
        let mut stop = Vec::new();
        let (isolation, fails) = (self.spec.isolation, self.checkpoints_fail);
        let (mut kept, mut in_memory) = (0, 0);
        let mut ids: Vec<_> = self
            .boxes
            .iter()
            .filter(|(_, b)| b.leases.is_empty() && b.phase != Phase::Ending)
            .map(|(id, b)| (b.last_used, id.clone()))
            .collect();
        // The one used last is kept longest.
        ids.sort_by_key(|(last_used, _)| std::cmp::Reverse(*last_used));
        for (last_used, id) in ids {
            let Some(boxed) = self.boxes.get_mut(&id) else {
                continue;
            };
            let idle = last_used.elapsed();
            let after = |seconds: u32| seconds > 0 && idle >= Duration::from_secs(seconds.into());
            let lost = boxed.lost_its_call(self.spec.isolation) && idle >= CALL_GAP_MAX;
            let due = boxed.draining || idle >= CALL_GAP_MAX;
            // No call from before the runner's start lasts longer than its time.
            let young = boxed.began.elapsed().as_secs() < self.spec.limits.call_timeout_s.into();
            if due && boxed.adopted && young && boxed.address.is_some_and(crate::wire::is_used) {
                boxed.last_used = Instant::now();
                continue;
            }
            if lost {
                stop.push(id);
                continue;
            }
            if boxed.phase == Phase::Ready && after(times.freeze_after_s) {
                boxed.phase = Phase::Freezing;
                boxed.command(Command::Freeze);
            }
            if after(times.checkpoint_after_s) && boxed.fit(isolation, fails) {
                if in_memory < floor && boxed.session.is_none() {
                    in_memory += 1;
                } else {
                    boxed.lay_down();
                }
            }
            let over = match boxed.phase {
                // On the way to somewhere.
                Phase::Starting | Phase::Checkpointing | Phase::Restoring => false,
                Phase::Checkpointed => after(times.forget_after_s),
                _ => after(times.stop_after_s),
            };
            let at_rest = matches!(
                boxed.phase,
                Phase::Ready | Phase::Frozen | Phase::Checkpointed
            );
            if boxed.draining && at_rest {
                stop.push(id);
            } else if over {
                if kept < floor && boxed.session.is_none() {
                    kept += 1;
                } else {
                    stop.push(id);
                }
            }
        }
        for id in stop {
            self.stop(&id, GoneReason::Idle);
        }
    }
}
