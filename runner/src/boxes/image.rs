//! The image of a server's start: taken of the first sandbox that is ready, restored for each later one.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::Result;
use runner_api::{EventKind, GoneReason, Moment};
use sandbox::Launch;

use super::rest::OWN_BYTES;
use super::{Alive, Life, REHEARSAL_MAX, millis};
use crate::mcp;
use crate::paths::{hex, server_key};
use crate::wire;

/// A server that keeps connections open for longer after its start has no image of it.
const CLOSING_MAX: Duration = Duration::from_secs(1);
const CLOSED_LOOK_EVERY: Duration = Duration::from_millis(10);

impl Life {
    /// From an image if there is one; if that fails, from the first instruction. The image is read while the sandbox's
    /// surroundings are made: each takes about 60 ms.
    pub(super) async fn bring_up(&self, place: u32, image: Option<&str>) -> Result<(Alive, bool)> {
        let open = async {
            match image {
                Some(name) => self.ctx.images.open(name).await,
                None => None,
            }
        };
        let (open, surroundings) = tokio::join!(open, self.surround(place));
        let surroundings = surroundings?;
        // Other secrets came meanwhile: the image has read those of before.
        let open = open.filter(|_| self.image_name().as_deref() == image);
        let Some(open) = open else {
            return Ok((self.launch(surroundings, Launch::Cold).await?, false));
        };
        match self.launch(surroundings, Launch::Restore(&open.dir)).await {
            Ok(alive) => Ok((alive, true)),
            Err(error) => {
                tracing::warn!(sandbox = %self.plan.id, error = format!("{error:#}"), "a checkpoint cannot be restored; starting anew");
                image
                    .into_iter()
                    .for_each(|name| self.ctx.images.forget(name));
                self.ctx.backend.destroy(self.plan.id.as_str(), place).await;
                let surroundings = self.surround(place).await?;
                Ok((self.launch(surroundings, Launch::Cold).await?, false))
            }
        }
    }

    /// What the image of this start is kept under, its server's key first. None for a server with secrets, unless its owner
    /// trusts the image with what it has read of them.
    pub(super) fn image_name(&self) -> Option<String> {
        use sha2::{Digest, Sha256};
        let spec = &self.plan.spec;
        let secrets = self.ctx.secrets.versions(&spec.tenant, &spec.id);
        if !secrets.is_empty() && !spec.trust_checkpoint_with_secrets {
            return None;
        }
        let parts = format!(
            "{}\n{}\n{}\n{}\n{}\n{secrets:?}",
            self.plan.key,
            self.plan.deps.display(),
            self.plan.rootfs.display(),
            self.ctx.host.version,
            self.ctx.host.processor
        );
        let server = server_key(&spec.tenant, &spec.id);
        Some(format!(
            "{server}-{}",
            hex(&Sha256::digest(parts.as_bytes()))
        ))
    }

    /// Takes an image of a server that has just started and has served nobody but us.
    ///
    /// # Errors
    /// Its memory grew beyond its limit meanwhile, so it has to end.
    pub(super) async fn checkpoint(
        &self,
        name: &str,
        address: SocketAddr,
    ) -> Result<(), GoneReason> {
        let (backend, id) = (&self.ctx.backend, self.plan.id.as_str());
        let bytes = || {
            let usage = backend.usage(id);
            usage.memory_bytes + usage.storage_bytes + OWN_BYTES
        };
        if let Err(error) = self.ctx.images.fits(bytes()) {
            tracing::debug!(sandbox = id, %error, "no checkpoint is taken");
            return Ok(());
        }
        let Some(claim) = self.ctx.images.claim(name, &self.plan.spec.tenant) else {
            return Ok(());
        };
        match tokio::time::timeout(REHEARSAL_MAX, mcp::rehearse(address)).await {
            Ok(Ok(())) => {}
            // Its image is as it is after the start alone.
            Ok(Err(error)) => tracing::debug!(sandbox = %self.plan.id, %error, "no rehearsal"),
            Err(_) => tracing::debug!(sandbox = %self.plan.id, "no rehearsal in time"),
        }
        if !self.until_without_connections(address.ip()).await {
            self.log.say(
                &self.plan.id,
                "no checkpoint of its start: it keeps connections open",
            );
            return Ok(());
        }
        let (began, bytes) = (Instant::now(), bytes());
        // An image counts as its own memory: within its limit one that uses half of it would end half written.
        if let Err(error) = backend.lend_memory(id, bytes) {
            tracing::warn!(sandbox = id, %error, "no checkpoint is taken; starts stay cold");
            return Ok(());
        }
        let taken = backend.checkpoint(id, &claim.clear.dir).await;
        let kept = match taken {
            Ok(()) => claim.keep().await,
            Err(error) => {
                drop(claim);
                Err(error.into())
            }
        };
        match kept {
            Ok(bytes) => self.event(EventKind::Checkpointed {
                bytes,
                of: Moment::Start,
                took_ms: millis(began),
            }),
            Err(error) => {
                tracing::warn!(
                    sandbox = id,
                    error = format!("{error:#}"),
                    "no checkpoint was taken; starts stay cold"
                )
            }
        }
        backend
            .take_memory_back(id, bytes)
            .map_err(|_| GoneReason::OutOfMemory)
    }

    /// Our own connections may not be closed in the guest yet.
    async fn until_without_connections(&self, guest: IpAddr) -> bool {
        let deadline = Instant::now() + CLOSING_MAX;
        loop {
            if !wire::has_connections(guest) {
                return true;
            }
            if Instant::now() > deadline {
                return false;
            }
            tokio::time::sleep(CLOSED_LOOK_EVERY).await;
        }
    }
}
