//! Idle for long: a sandbox goes to the disk with all that it has in memory, and comes back with it when it is wanted.
//!
//! While it rests, nothing of it is left on the host but its image, its place in the address pool and a note; the image can
//! be read by this life of the runner alone. Whatever fails on the way ends the sandbox as any other end does.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use runner_api::{EventKind, GoneReason, Moment};
use sandbox::{Launch, on_thread};

use super::{ADOPT_MAX, Alive, Command, Life, NotStarted, Saved, Word, millis};
use crate::images::idle::{Refusal, Taking, Ticket};
use crate::store;
use crate::wire;

/// What gVisor's own kernel writes beside the guest's memory; measured: under 1 MiB.
pub(super) const OWN_BYTES: u64 = 16 * 1024 * 1024;

/// A sandbox that lies on disk.
struct Resting {
    ticket: Ticket,
    /// What it can be restored with, see [`Life::image_name`].
    name: String,
    saved: Saved,
}

impl Life {
    /// The right to take an image of it. Its server hears why there is none.
    pub(super) async fn may_rest(&self, alive: &Alive) -> Option<Taking> {
        let id = &self.plan.id;
        let images = self.ctx.images.idle();
        let asked = if !alive.frozen || images.busy() || wire::is_used(alive.address) {
            Err(Refusal::Busy)
        } else {
            let usage = self.ctx.backend.usage(id.as_str());
            let bytes = usage.memory_bytes + usage.storage_bytes + OWN_BYTES;
            images.begin(&self.plan.spec.tenant, bytes)
        };
        let refusal = match (self.image_name(), asked) {
            (Some(_), Ok(_)) if wire::has_connections(alive.address.ip()) => {
                Some("it keeps connections open".into())
            }
            (Some(_), Ok(taking)) => return Some(taking),
            (Some(_), Err(Refusal::Busy)) => {
                let word = if alive.frozen {
                    Word::Frozen
                } else {
                    Word::Thawed
                };
                (self.tell)(id.clone(), word).await;
                return None;
            }
            (Some(_), Err(refusal)) => Some(refusal.to_string()),
            // It has secrets, and its owner does not trust an image with them.
            (None, _) => None,
        };
        if let Some(words) = refusal {
            self.log
                .say(id, format!("idle, but not checkpointed: {words}"));
        }
        (self.tell)(id.clone(), Word::Unfit).await;
        None
    }

    /// Takes its image and rests until it is wanted.
    pub(super) async fn rest(&mut self, alive: Alive, taking: Taking) -> Result<Alive, NotStarted> {
        let resting = self.lay_down(alive, taking).await?;
        self.until_wanted(resting).await
    }

    async fn lay_down(&self, alive: Alive, taking: Taking) -> Result<Resting, NotStarted> {
        let began = Instant::now();
        let saved = Saved {
            checkpointed: true,
            ..alive.saved.clone()
        };
        let taken = self.take(&saved, taking).await;
        let (ticket, name, bytes) = match taken {
            Ok(taken) => taken,
            Err(error) => {
                self.let_go(alive).await;
                return Err(self.lost("its checkpoint could not be taken", &error));
            }
        };
        let (ctx, id) = (Arc::clone(&self.ctx), self.plan.id.clone());
        // Before its control group goes away.
        on_thread("weir-meter", move || {
            ctx.metering.lay_down(&id, bytes, &*ctx.backend);
        })
        .await;
        let id = &self.plan.id;
        alive.connected.close(&self.ctx).await;
        self.ctx
            .backend
            .destroy(id.as_str(), saved.placed.place)
            .await;
        // Now, so that its last words are read.
        alive.readers.iter().for_each(|reader| reader.abort());
        let took_ms = millis(began);
        let mib = bytes.div_ceil(1024 * 1024);
        self.log
            .say(id, format!("idle: checkpointed, {mib} MiB on disk"));
        self.event(EventKind::Checkpointed {
            bytes,
            of: Moment::Idle,
            took_ms,
        });
        (self.tell)(id.clone(), Word::Checkpointed(bytes)).await;
        Ok(Resting {
            ticket,
            name,
            saved,
        })
    }

    async fn take(&self, saved: &Saved, taking: Taking) -> Result<(Ticket, String, u64)> {
        let id = self.plan.id.as_str();
        let name = self
            .image_name()
            .context("it has secrets that no checkpoint may hold")?;
        store::put(&self.ctx.paths.boxed(id), saved).context("write down a sandbox")?;
        let backend = &self.ctx.backend;
        backend
            .lay_down(id, &taking.clear.dir, taking.bytes)
            .await?;
        let (ticket, bytes) = taking.keep().await?;
        Ok((ticket, name, bytes))
    }

    async fn until_wanted(&mut self, mut resting: Resting) -> Result<Alive, NotStarted> {
        loop {
            let reason = tokio::select! {
                biased;
                command = self.commands.next() => match command {
                    Command::Restore => return self.restore(resting).await,
                    Command::Rules(rules) => {
                        self.rules = Some(rules);
                        continue;
                    }
                    Command::Stop(reason) => reason,
                    // It stands as still as can be, and whose it is was settled when it ran.
                    Command::Freeze | Command::Thaw | Command::Checkpoint | Command::Session(_) => continue,
                },
                () = resting.ticket.made_room() => GoneReason::NoRoom,
            };
            let words = format!("the sandbox ended: {}", crate::words::of(&reason));
            return Err(NotStarted { reason, words });
        }
    }

    async fn restore(&mut self, resting: Resting) -> Result<Alive, NotStarted> {
        let began = Instant::now();
        // Restores are starts: more at once only make each other slow.
        let pass = self.pass_the_gate().await?;
        let alive = self
            .go_on(resting)
            .await
            .map_err(|error| self.lost("its checkpoint could not be restored", &error))?;
        let answers = self.wait_with_pass(&alive, ADOPT_MAX, pass).await;
        if let Err(reason) = answers {
            self.let_go(alive).await;
            let words = self.explain(&reason);
            return Err(NotStarted { reason, words });
        }
        let took_ms = millis(began);
        self.log.say(
            &self.plan.id,
            format!("restored after {took_ms} ms from its checkpoint"),
        );
        self.event(EventKind::Restored { took_ms });
        Ok(alive)
    }

    /// The image is read while the surroundings are made, as at a start.
    async fn go_on(&mut self, resting: Resting) -> Result<Alive> {
        let Resting {
            ticket,
            name,
            mut saved,
        } = resting;
        self.has_its_secrets(&name)?;
        // Before the kernel counts anything of it: whoever reads those counters next has to know that they are new.
        self.restores += 1;
        saved.restores = self.restores;
        let id = &self.plan.id;
        store::put(&self.ctx.paths.boxed(id.as_str()), &saved).context("write down a sandbox")?;
        self.ctx.metering.wake(id, self.restores);
        let (clear, around) = tokio::join!(ticket.open(), self.surround(saved.placed.place));
        let (clear, around) = (clear?, around?);
        // Others may have come before they were mounted: its memory has those of before, and its log were searched for these.
        self.has_its_secrets(&name)?;
        self.launch(around, Launch::Restore(&clear.dir)).await
    }

    fn has_its_secrets(&self, image: &str) -> Result<()> {
        anyhow::ensure!(
            self.image_name().as_deref() == Some(image),
            "its secrets are not those that it was checkpointed with"
        );
        Ok(())
    }

    fn lost(&self, what: &str, error: &anyhow::Error) -> NotStarted {
        tracing::warn!(sandbox = %self.plan.id, error = format!("{error:#}"), "{what}");
        // The kernel's word says more: it may have ended the sandbox meanwhile.
        let alarms = self.ctx.backend.alarms(self.plan.id.as_str());
        let reason = if alarms.oom_kills > 0 {
            GoneReason::OutOfMemory
        } else {
            GoneReason::Failed {
                detail: format!("{what}: {error:#}").chars().take(300).collect(),
            }
        };
        NotStarted {
            words: format!("the sandbox ended: {what}"),
            reason,
        }
    }
}
