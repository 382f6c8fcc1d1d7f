//! What a sandbox needs around it, and how it is launched and connected, or found again.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use runner_api::{EventKind, GoneReason, LogStream};
use sandbox::{Launch, Output, Prepared, SecretFile, Watch};
use secret_prints::PrintSet;
use tokio::task::JoinHandle;

use super::{ADOPT_MAX, Alive, LAST_WORDS, Life, NotStarted, Saved, Surroundings};
use crate::logs;
use crate::order::order;
use crate::secrets::Versions;
use crate::store;
use crate::wire::{Connected, allowlist};

impl Life {
    pub(super) fn missing_secret(&self) -> Option<runner_api::SecretName> {
        let spec = &self.plan.spec;
        let there = self.ctx.secrets.list(&spec.tenant, &spec.id);
        spec.secrets
            .iter()
            .find(|name| !there.contains(name))
            .cloned()
    }

    /// Storage, secrets, wire; the wire is down.
    pub(super) async fn surround(&self, place: u32) -> Result<Surroundings> {
        let ctx = &self.ctx;
        let spec = &self.plan.spec;
        // Unsealed as late and dropped (and wiped) as early as can be.
        let (versions, values) = ctx
            .secrets
            .mount(&spec.tenant, &spec.id, &self.plan.id)
            .context("open the secrets of a server")?;
        let files: Vec<SecretFile<'_>> = values
            .iter()
            .map(|(name, value)| SecretFile {
                name: name.as_str(),
                value: value.expose(),
            })
            .collect();
        let prepared = ctx
            .backend
            .prepare(order(ctx, &self.plan, place), &files)
            .await?;
        let secrets = Arc::new(ctx.secrets.cover(&values));
        Ok(Surroundings {
            prepared,
            versions,
            secrets,
        })
    }

    /// Starts it and connects it, side by side: until its wire is up, it sits at the end of a dead one. Whoever gets an
    /// error has to have the sandbox destroyed; it may run.
    pub(super) async fn launch(&self, around: Surroundings, launch: Launch<'_>) -> Result<Alive> {
        let Surroundings {
            prepared,
            versions,
            secrets,
        } = around;
        let address = SocketAddr::from((prepared.wire.guest, self.plan.spec.port));
        let (connected, launched) = tokio::join!(
            self.connect(&prepared),
            self.launch_apart(&prepared, launch, versions, secrets)
        );
        match (connected, launched) {
            (Ok(connected), Ok((saved, watch, readers))) => Ok(Alive {
                watch,
                connected,
                readers,
                address,
                frozen: false,
                saved,
            }),
            (Ok(connected), Err(error)) => {
                connected.close(&self.ctx).await;
                Err(error)
            }
            (Err(error), launched) => {
                let readers = launched.map(|(_, _, readers)| readers).unwrap_or_default();
                readers.iter().for_each(JoinHandle::abort);
                Err(error)
            }
        }
    }

    /// The way out, open as far as the rules say; then, and not before, the wire.
    async fn connect(&self, prepared: &Prepared) -> Result<Connected> {
        let ctx = &self.ctx;
        let rules = match &self.rules {
            Some(rules) => rules.clone(),
            None => allowlist(&self.plan.spec.egress)?,
        };
        let connected = Connected::open(
            ctx,
            &prepared.wire,
            rules,
            ctx.targets.clone(),
            self.owner(),
            Arc::clone(&self.tally),
        )
        .await?;
        match prepared.wire.up().await {
            Ok(()) => Ok(connected),
            Err(error) => {
                connected.close(ctx).await;
                Err(error.into())
            }
        }
    }

    async fn launch_apart(
        &self,
        prepared: &Prepared,
        launch: Launch<'_>,
        versions: Versions,
        secrets: Arc<PrintSet>,
    ) -> Result<(Saved, Watch, Vec<JoinHandle<()>>)> {
        let ctx = &self.ctx;
        let spec = &self.plan.spec;
        let (output, readers) = self.output(secrets)?;
        let launched = ctx.backend.launch(prepared, launch, output).await;
        if launched.is_err() {
            tokio::time::sleep(LAST_WORDS).await;
            readers.iter().for_each(JoinHandle::abort);
        }
        let (placed, watch) = launched?;
        let saved = Saved {
            placed,
            tenant: spec.tenant.clone(),
            server: spec.id.clone(),
            key: self.plan.key.clone(),
            app: self.plan.app.clone(),
            deps: self.plan.deps.clone(),
            secrets: Some(versions),
            session: self.plan.session.clone(),
            restores: self.restores,
            checkpointed: false,
        };
        store::put(&ctx.paths.boxed(self.plan.id.as_str()), &saved)
            .context("write down a sandbox")?;
        Ok((saved, watch, readers))
    }

    fn output(&self, secrets: Arc<PrintSet>) -> Result<(Output, Vec<JoinHandle<()>>)> {
        let dir = self.ctx.paths.run.join("pipes");
        let id = self.plan.id.as_str();
        let pipe = |stream| {
            logs::make_pipe(&logs::pipe_path(&dir, id, stream))
                .context("make the pipes of a sandbox")
        };
        let output = Output {
            out: pipe(LogStream::Stdout)?,
            err: pipe(LogStream::Stderr)?,
        };
        Ok((output, self.follow(&dir, Some(secrets))?))
    }

    fn follow(&self, dir: &Path, secrets: Option<Arc<PrintSet>>) -> Result<Vec<JoinHandle<()>>> {
        let follow = |stream| {
            let secrets = secrets.clone();
            let path = logs::pipe_path(dir, self.plan.id.as_str(), stream);
            logs::follow(
                &path,
                self.log.clone(),
                self.plan.id.clone(),
                stream,
                secrets,
            )
            .context("read the pipes of a sandbox")
        };
        Ok(vec![follow(LogStream::Stdout)?, follow(LogStream::Stderr)?])
    }

    /// One that had just been launched when the runner ended may not listen yet.
    pub(super) async fn adopt_answering(&mut self, saved: Saved) -> Result<Alive, NotStarted> {
        let alive = self.adopt(saved).await?;
        if let Err(reason) = self.wait_until_it_answers(&alive, ADOPT_MAX).await {
            self.let_go(alive).await;
            return Err(NotStarted {
                words: self.explain(&reason),
                reason,
            });
        }
        self.log
            .say(&self.plan.id, "found again after a restart of the runner");
        self.event(EventKind::Ready {
            from: "adopted".into(),
            took_ms: 0,
        });
        Ok(alive)
    }

    async fn adopt(&self, saved: Saved) -> Result<Alive, NotStarted> {
        let lost = |words: String| NotStarted {
            reason: GoneReason::Failed {
                detail: words.clone(),
            },
            words,
        };
        let ctx = &self.ctx;
        let watch = ctx
            .backend
            .adopt(&saved.placed)
            .await
            .map_err(|e| lost(format!("it ended while the runner was away: {e}")))?;
        let wire = ctx.backend.wire(&saved.placed.id, saved.placed.place);
        let rules = allowlist(&self.plan.spec.egress).map_err(|e| lost(e.to_string()))?;
        let connected = Connected::open(
            ctx,
            &wire,
            rules,
            ctx.targets.clone(),
            self.owner(),
            Arc::clone(&self.tally),
        )
        .await;
        let connected =
            connected.map_err(|e| lost(format!("its network cannot be taken over: {e:#}")))?;
        let readers = match self.go_on_as_found(&saved).await {
            Ok(readers) => readers,
            Err(error) => {
                // Its place is another's next, whose entry in the filter this one would be in the way of.
                connected.close(ctx).await;
                return Err(lost(format!("{error:#}")));
            }
        };
        let address = SocketAddr::from((wire.guest, self.plan.spec.port));
        Ok(Alive {
            watch,
            connected,
            readers,
            address,
            frozen: false,
            saved,
        })
    }

    async fn go_on_as_found(&self, saved: &Saved) -> Result<Vec<JoinHandle<()>>> {
        let ctx = &self.ctx;
        // It may have been frozen.
        ctx.backend.thaw(&saved.placed.id).await?;
        let secrets = ctx
            .secrets
            .cover_again(&saved.tenant, &saved.server, saved.secrets.as_ref())
            .context("open its secrets")?;
        if secrets.is_none() {
            let why = match saved.secrets {
                Some(_) => "it has secrets of before, which cannot be covered any more",
                None => "an older runner started it, and did not write down with which secrets",
            };
            let words = format!("what it writes is withheld until it ends: {why}");
            self.log.say(&self.plan.id, words);
        }
        self.follow(&ctx.paths.run.join("pipes"), secrets.map(Arc::new))
    }
}
