//! The admin REST API, and what its routes have in common.

mod builds;
mod connections;
mod execs;
mod observe;
mod secrets;
mod sent;
mod servers;
mod tenants;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};

use audit_log::AuditLog;
use axum::extract::DefaultBodyLimit;
use axum::routing::get;
use axum::{Json, Router, middleware};
use domain::{Plan, ServerId, TenantId};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Method, Uri};
use runner_api::{ErrorCode, Runner, SecretName, SecretValue, ServerSpec};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, Semaphore};
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::{AdminToken, Door, guard};
use crate::error::{ControlError, ErrorBody};
use crate::exec::ExecKeys;
use crate::hosted::{self, HostedServers, Publisher};
use crate::model::{Live, ServerView, Stored};
use crate::prints::Prints;
use crate::store::Store;
use crate::{follow, ids};

/// The longest bundle, in bytes as packed.
pub const BUNDLE_BYTES_MAX: u64 = 250_000_000;
/// The longest other body.
const BODY_BYTES_MAX: usize = 1 << 20;
/// Requests at once that hold something for long: uploads, builds, followed logs, executions.
const LONG_REQUESTS_MAX: usize = 64;

/// What the API works with.
pub struct ApiOptions {
    /// The database.
    pub store: Store,
    /// The runner.
    pub runner: Arc<dyn Runner>,
    /// The gateway.
    pub publisher: Arc<dyn Publisher>,
    /// A door of the gateway on loopback, for executions.
    pub gateway: SocketAddr,
    /// The keys for it.
    pub exec_keys: ExecKeys,
    /// Where the runner's events are recorded; without one they are in the store only.
    pub audit: Option<Arc<AuditLog>>,
    /// Scheme and authority of the URLs that are shown, such as `https://weir.example.com`.
    pub public_url: String,
}

/// The state of the API.
pub struct Api {
    pub(crate) store: Store,
    pub(crate) runner: Arc<dyn Runner>,
    publisher: Arc<dyn Publisher>,
    gateway: SocketAddr,
    exec_keys: ExecKeys,
    pub(crate) audit: Option<Arc<AuditLog>>,
    public_url: String,
    /// Changes come one after the other: each sees what the one before left, in the store and in the gateway.
    changing: Mutex<BTreeSet<TenantId>>,
    /// Servers that the gateway did not take at the start, and why.
    refused: std::sync::Mutex<BTreeMap<ServerId, String>>,
    prints: Mutex<Prints>,
    long: Arc<Semaphore>,
}

impl Api {
    /// Publishes what is stored already.
    ///
    /// # Errors
    /// The store's, or what the gateway does not take.
    pub fn start(options: ApiOptions) -> BoxFuture<'static, Result<Arc<Self>, ControlError>> {
        Self::started(options).boxed()
    }

    // Boxed at the door, as everything else that programs poll: so it is compiled here, and not again in each of them.
    async fn started(options: ApiOptions) -> Result<Arc<Self>, ControlError> {
        let ApiOptions {
            store,
            runner,
            publisher,
            gateway,
            exec_keys,
            audit,
            public_url,
        } = options;
        let api = Arc::new(Self {
            store,
            runner,
            publisher,
            gateway,
            exec_keys,
            audit,
            public_url,
            changing: Mutex::default(),
            refused: std::sync::Mutex::default(),
            prints: Mutex::default(),
            long: Arc::new(Semaphore::new(LONG_REQUESTS_MAX)),
        });
        let mut spent = api.changing.lock().await;
        *spent = api.spent().await?;
        api.publish_stored(&spent).await?;
        drop(spent);
        Ok(api)
    }

    /// Changes one server in the gateway and in the store, or in neither. `None`: it is removed.
    async fn change(
        &self,
        mut stored: Stored,
        edit: impl AsyncFnOnce(&mut Stored) -> Result<(), ControlError>,
    ) -> Result<Stored, ControlError> {
        let spent = self.changing.lock().await;
        stored = self.store.server(&stored.id).await?;
        let before = stored.clone();
        edit(&mut stored).await?;
        if stored.deployed.is_none() {
            self.check_publishable(&stored).await?;
        }
        let mut all = self.store.servers(None).await?;
        for server in all.iter_mut().filter(|server| server.id == stored.id) {
            *server = stored.clone();
        }
        // What could not be published may be by now. It counts as refused until it is stored: the one that is stored
        // cannot be published, and would be in the way of every other.
        let mut refused = self.refused().clone();
        refused.remove(&stored.id);
        self.publish_without(&refused, &all, &spent).await?;
        if let Err(error) = self.store.change_server(&stored).await {
            for server in all.iter_mut().filter(|server| server.id == before.id) {
                *server = before.clone();
            }
            if let Err(undone) = self.publish(&all, &spent).await {
                let undone: &dyn std::error::Error = &undone;
                tracing::error!(server_id = %stored.id, error = undone, "a change that was not stored is served");
            }
            return Err(error);
        }
        self.forget_refused(&stored.id);
        Ok(stored)
    }

    /// What is not deployed is not published, and would be in the way when it is.
    pub(crate) async fn check_publishable(&self, server: &Stored) -> Result<(), ControlError> {
        let view = hosted::of(server, true, None);
        self.check([(server.id.clone(), view)].into()).await
    }

    /// Whether the gateway would take the configuration file and these hosted servers, and no others.
    async fn check(&self, servers: HostedServers) -> Result<(), ControlError> {
        let publisher = Arc::clone(&self.publisher);
        let checked = tokio::task::spawn_blocking(move || publisher.check(servers)).await;
        checked
            .map_err(|_| ControlError::Publish("it failed".to_owned()))?
            .map_err(ControlError::Publish)
    }

    /// Publishes what is stored. A server that the gateway does not take, for a rule that is no longer there or an id that
    /// the configuration has by now, is left out and named: it is the trouble of its owner and of no other.
    async fn publish_stored(&self, spent: &BTreeSet<TenantId>) -> Result<(), ControlError> {
        let all = self.store.servers(None).await?;
        let first = match self.publish(&all, spent).await {
            Err(ControlError::Publish(first)) => first,
            other => return other,
        };
        // What ails the file is no fault of any hosted server.
        if self.check(HostedServers::new()).await.is_err() {
            return Err(ControlError::Publish(first));
        }
        for server in all.iter().filter(|server| server.deployed.is_some()) {
            match self.check_publishable(server).await {
                Ok(()) => {}
                Err(ControlError::Publish(reason)) => {
                    tracing::error!(server_id = %server.id, reason, "a hosted server is refused: it is not served");
                    self.refused().insert(server.id.clone(), reason);
                }
                Err(error) => return Err(error),
            }
        }
        if self.refused().is_empty() {
            return Err(ControlError::Publish(first));
        }
        self.publish(&all, spent).await
    }

    /// Tries those again that the gateway did not take: what they lacked may have come.
    pub fn try_refused(&self) -> BoxFuture<'_, ()> {
        self.tried_refused().boxed()
    }

    async fn tried_refused(&self) {
        let spent = self.changing.lock().await;
        let before = self.refused().clone();
        if before.is_empty() {
            return;
        }
        let tried = async {
            let all = self.store.servers(None).await?;
            let mut refused = before.clone();
            for server in all.iter().filter(|server| before.contains_key(&server.id)) {
                if self.check_publishable(server).await.is_ok() {
                    refused.remove(&server.id);
                }
            }
            if refused.len() < before.len() {
                self.publish_without(&refused, &all, &spent).await?;
            }
            Ok::<_, ControlError>(refused)
        };
        match tried.await {
            Ok(refused) => {
                for id in before.keys().filter(|id| !refused.contains_key(*id)) {
                    tracing::info!(server_id = %id, "a hosted server that was refused is served");
                }
                *self.refused() = refused;
            }
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "refused servers could not be tried again");
            }
        }
    }

    pub(crate) fn forget_refused(&self, id: &ServerId) {
        self.refused().remove(id);
    }

    fn refused(&self) -> std::sync::MutexGuard<'_, BTreeMap<ServerId, String>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A server as it is shown.
    fn view(&self, server: Stored, live: Option<Live>) -> ServerView {
        let refused = self.refused().get(&server.id).cloned();
        server.view(&self.public_url, live, refused)
    }

    /// Makes the gateway serve what is deployed.
    async fn publish(
        &self,
        all: &[Stored],
        spent: &BTreeSet<TenantId>,
    ) -> Result<(), ControlError> {
        let refused = self.refused().clone();
        self.publish_without(&refused, all, spent).await
    }

    async fn publish_without(
        &self,
        refused: &BTreeMap<ServerId, String>,
        all: &[Stored],
        spent: &BTreeSet<TenantId>,
    ) -> Result<(), ControlError> {
        let served =
            |server: &&Stored| server.deployed.is_some() && !refused.contains_key(&server.id);
        let deployed = || all.iter().filter(served);
        for server in deployed() {
            // One that cannot be asked about now is published closed, and opened when the runner is followed again.
            let known = self.prints.lock().await.knows(&server.id);
            if !known && let Err(error) = self.learn_prints(server).await {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(server_id = %server.id, error, "a server is closed until the runner tells of its secrets");
            }
        }
        let prints = self.prints.lock().await;
        let servers: HostedServers = deployed()
            .map(|server| {
                let closed = spent.contains(&server.tenant) || !prints.knows(&server.id);
                let view = hosted::of(server, closed, prints.of(&server.id));
                (server.id.clone(), view)
            })
            .collect();
        drop(prints);
        let publisher = Arc::clone(&self.publisher);
        // Policies are compiled in there.
        let published = tokio::task::spawn_blocking(move || publisher.publish(servers)).await;
        published
            .map_err(|_| ControlError::Publish("it failed".to_owned()))?
            .map_err(ControlError::Publish)
    }

    /// Tenants that have used up their month.
    async fn spent(&self) -> Result<BTreeSet<TenantId>, ControlError> {
        let mut spent = BTreeSet::new();
        for (tenant, cpu_us) in self
            .store
            .cpu_since(month_start_s(ids::now_ms() / 1000))
            .await?
        {
            let (_, plan) = self.store.plan(&tenant).await?;
            if plan.is_spent(cpu_us) {
                spent.insert(tenant);
            }
        }
        Ok(spent)
    }

    pub(crate) async fn publish_if_spent_changed(&self) -> Result<(), ControlError> {
        let mut spent = self.changing.lock().await;
        let now = self.spent().await?;
        if *spent != now {
            self.publish(&self.store.servers(None).await?, &now).await?;
            *spent = now;
        }
        Ok(())
    }

    /// Asks the runner what a server's secrets look like; true if something is new.
    async fn learn_prints(&self, server: &Stored) -> Result<bool, ControlError> {
        let key = self.prints.lock().await.key(&server.id)?;
        let told = self
            .runner
            .secret_prints(&server.tenant, &server.id, &key)
            .await;
        let told = match told {
            // It has no secrets of a server that it has never heard of.
            Err(error) if error.code() == Some(ErrorCode::NotFound) => BTreeMap::new(),
            other => other?,
        };
        Ok(self.prints.lock().await.learn(&server.id, &key, told))
    }

    /// Asks about every deployed server, and has the gateway look for what is new.
    pub(crate) async fn learn_all_prints(&self) -> Result<(), ControlError> {
        let spent = self.changing.lock().await;
        let all = self.store.servers(None).await?;
        let (mut new, mut lost) = (false, None);
        for server in all.iter().filter(|server| server.deployed.is_some()) {
            match self.learn_prints(server).await {
                Ok(more) => new |= more,
                Err(ControlError::Runner(error)) if error.code().is_none() => {
                    lost = Some(error);
                    break;
                }
                // One server's trouble is not the others': it alone stays closed.
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::error!(server_id = %server.id, error, "the runner does not tell of a server's secrets");
                }
            }
        }
        if new {
            self.publish(&all, &spent).await?;
        }
        lost.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Has the gateway look for a value before the runner has it: a sandbox may start, and answer, at any moment.
    pub(crate) async fn look_for(
        &self,
        server: &Stored,
        name: &SecretName,
        value: &SecretValue,
        spent: &BTreeSet<TenantId>,
    ) -> Result<(), ControlError> {
        let known = self.prints.lock().await.knows(&server.id);
        if !known {
            self.learn_prints(server).await?;
        }
        let mut prints = self.prints.lock().await;
        prints.expect(&server.id, name, value.expose());
        drop(prints);
        self.publish(&self.store.servers(None).await?, spent).await
    }

    /// Tells the runner of every deployed server. What it knows already changes nothing there.
    pub(crate) async fn put_all(&self) -> Result<(), ControlError> {
        for server in self.store.servers(None).await? {
            // As it is now, and with nobody changing it: what was read before may be changed or removed since, and would
            // come back.
            let _changing = self.changing.lock().await;
            let server = match self.store.server(&server.id).await {
                Ok(server) if server.deployed.is_some() => server,
                Ok(_) | Err(ControlError::NotFound { .. }) => continue,
                Err(error) => return Err(error),
            };
            let put = async {
                self.runner
                    .put_server(self.spec(&server).await?)
                    .await
                    .map_err(ControlError::from)
            };
            match put.await {
                Err(ControlError::Runner(error)) if error.code().is_none() => {
                    return Err(error.into());
                }
                // One server's trouble is not the others'.
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::error!(server_id = %server.id, error, "the runner does not take a server");
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// What the runner is to be told of a server with a bundle.
    async fn spec(&self, server: &Stored) -> Result<ServerSpec, ControlError> {
        let secrets = self.secret_names(server).await?;
        Self::spec_with(server, secrets)
    }

    /// The same with these secrets.
    fn spec_with(server: &Stored, secrets: Vec<SecretName>) -> Result<ServerSpec, ControlError> {
        let nothing = || ControlError::Conflict("nothing has been deployed yet".to_owned());
        let bundle = server.deployed.as_ref().ok_or_else(nothing)?;
        server
            .settings
            .spec(&server.tenant, &server.id, bundle, secrets)
    }

    /// The names of a server's secrets; a server that the runner has never heard of has none.
    async fn secret_names(&self, server: &Stored) -> Result<Vec<SecretName>, ControlError> {
        let names = self.runner.list_secrets(&server.tenant, &server.id).await;
        match names {
            Err(error) if error.code() == Some(ErrorCode::NotFound) => Ok(Vec::new()),
            other => Ok(other?),
        }
    }

    async fn check_plan(&self, server: &Stored) -> Result<(), ControlError> {
        let (name, plan) = self.store.plan(&server.tenant).await?;
        let limits = server.settings.limits;
        check_amount(
            &name,
            "limits.memory_mb",
            limits.memory_mb,
            plan.memory_mb_max,
        )?;
        check_amount(
            &name,
            "limits.storage_gb",
            limits.storage_gb,
            plan.storage_gb_max,
        )
    }

    async fn check_count(&self, tenant: &TenantId) -> Result<(), ControlError> {
        let (name, Plan { servers_max, .. }) = self.store.plan(tenant).await?;
        let count = self.store.servers(Some(tenant)).await?.len();
        match servers_max {
            Some(max) if count >= max as usize => Err(ControlError::Plan(format!(
                "tenant {tenant} has {count} servers; its plan {name:?} allows {max}. Remove one, or change the plan"
            ))),
            _ => Ok(()),
        }
    }

    /// A server's sandboxes; none when the runner cannot be asked.
    async fn live(&self, server: &Stored) -> Option<Live> {
        let all = self.runner.servers(Some(&server.tenant)).await.ok()?;
        let found = all.into_iter().find(|status| status.server == server.id)?;
        Some(Live {
            sandboxes: found.sandboxes,
            queued: found.queued,
            last_error: found.last_error,
        })
    }

    fn long_request(&self) -> Result<tokio::sync::OwnedSemaphorePermit, ControlError> {
        let full = |_| {
            ControlError::Conflict(format!(
                "{LONG_REQUESTS_MAX} uploads, builds, executions and followed logs run already"
            ))
        };
        Arc::clone(&self.long).try_acquire_owned().map_err(full)
    }
}

fn check_amount(plan: &str, field: &str, wanted: u32, max: u32) -> Result<(), ControlError> {
    if wanted > max {
        return Err(ControlError::Plan(format!(
            "{field} is {wanted}; the plan {plan:?} allows {max}"
        )));
    }
    Ok(())
}

/// The first second of the month (UTC) that a time in seconds since 1970 lies in.
fn month_start_s(now_s: i64) -> i64 {
    let days = now_s.div_euclid(86_400);
    // Howard Hinnant's days-to-civil, as far as the day of the month.
    let z = days + 719_468;
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5;
    (days - day) * 86_400
}

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Weir admin API",
        description = "Hosted MCP servers. Every request carries `Authorization: Bearer` and the admin token."
    ),
    components(schemas(ErrorBody))
)]
struct Document;

fn routes() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(servers::create, servers::list))
        .routes(routes!(servers::show, servers::change, servers::remove))
        .routes(routes!(servers::restart))
        .routes(routes!(servers::policy, servers::set_policy))
        .routes(routes!(builds::upload))
        .routes(routes!(builds::build))
        .routes(routes!(secrets::list))
        .routes(routes!(secrets::set, secrets::remove))
        .routes(routes!(observe::logs))
        .routes(routes!(observe::events))
        .routes(routes!(observe::usage))
        .routes(routes!(observe::doctor))
        .routes(routes!(execs::exec))
        .routes(routes!(tenants::show, tenants::set))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}

/// The OpenAPI document.
pub fn openapi_json() -> String {
    routes().to_openapi().to_pretty_json().unwrap_or_default()
}

/// Serves the API on a listener until `stop` comes, and follows the runner meanwhile.
///
/// # Errors
/// The listener's.
pub fn serve(
    api: Arc<Api>,
    listener: TcpListener,
    token: AdminToken,
    names: Vec<String>,
    stop: BoxFuture<'static, ()>,
) -> BoxFuture<'static, std::io::Result<()>> {
    served(api, listener, token, names, stop).boxed()
}

async fn served(
    api: Arc<Api>,
    listener: TcpListener,
    token: AdminToken,
    names: Vec<String>,
    stop: BoxFuture<'static, ()>,
) -> std::io::Result<()> {
    let door = Door::new(token, listener.local_addr()?, &names);
    let following = [
        tokio::spawn(follow::events(Arc::clone(&api))),
        tokio::spawn(follow::usage(Arc::clone(&api))),
    ];
    let changes = connections::changes();
    let (routes, document) = routes().split_for_parts();
    let router: Router = routes
        .route("/api/v1/openapi.json", get(|| async { Json(document) }))
        .fallback(|uri: Uri| async move {
            ControlError::NotFound {
                what: "route",
                id: uri.path().to_owned(),
            }
        })
        .method_not_allowed_fallback(|method: Method| async move { ControlError::Method(method) })
        .layer(middleware::from_fn_with_state(
            Arc::clone(&changes),
            connections::whole,
        ))
        .layer(middleware::from_fn(connections::timed_body))
        .layer(middleware::from_fn_with_state(door, guard))
        .with_state(api);
    connections::serve(listener, router, stop).await;
    connections::all_done(&changes).await;
    following.iter().for_each(tokio::task::JoinHandle::abort);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_begin_where_they_do() {
        for (now, start) in [
            (0, 0),
            (86_400 * 31 - 1, 0),
            (86_400 * 31, 86_400 * 31),
            (951_782_400, 949_363_200),     // 29 February 2000
            (1_795_219_200, 1_793_491_200), // 21 November 2026
            (4_107_542_400, 4_107_542_400), // 1 March 2100
            (4_107_542_399, 4_105_123_200),
        ] {
            assert_eq!(month_start_s(now), start, "{now}");
        }
    }

    #[test]
    fn every_route_is_in_the_document_and_every_reference_leads_somewhere() {
        let text = openapi_json();
        let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let paths = document["paths"].as_object().expect("paths");
        assert!(
            paths.len() >= 12 && paths.keys().all(|path| path.starts_with("/api/v1/")),
            "{:?}",
            paths.keys()
        );
        for reference in text
            .split("\"$ref\": \"#")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
        {
            assert!(document.pointer(reference).is_some(), "{reference}");
        }
    }
}
