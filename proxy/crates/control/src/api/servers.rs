//! Servers and their policy.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use domain::Policy;
use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::Api;
use super::sent::{Asked, Path, Sent, body};
use crate::error::{ControlError, ErrorBody};
use crate::ids;
use crate::model::{NewServer, ServerView, Settings, Stored};

#[derive(Deserialize, IntoParams)]
pub struct OfTenant {
    /// Only this tenant's.
    tenant: Option<String>,
}

/// Makes a server, which has nothing in it yet.
#[utoipa::path(post, path = "/api/v1/servers", request_body = NewServer,
    responses((status = 201, body = ServerView), (status = "default", body = ErrorBody)))]
pub async fn create(
    State(api): State<Arc<Api>>,
    new: Sent<NewServer>,
) -> Result<(StatusCode, Json<ServerView>), ControlError> {
    let new = body(new)?;
    let tenant = ids::tenant(&new.tenant)?;
    if !api.publisher.tenants().contains(&tenant) {
        let text = format!(
            "there is no tenant {tenant:?} in the configuration; add it under `tenants`",
            tenant = tenant.as_str()
        );
        return Err(ControlError::BadRequest(text));
    }
    let id = new
        .id
        .as_deref()
        .map_or_else(ids::random, ids::new_server)?;
    let settings = if new.settings.is_null() {
        Settings::default()
    } else {
        Settings::default().patched(&new.settings)?
    };
    let _changing = api.changing.lock().await;
    api.check_count(&tenant).await?;
    let server = Stored::new(id, tenant, settings, ids::now_ms());
    check(&api, &server).await?;
    api.check_publishable(&server).await?;
    if !api.store.add_server(&server).await? {
        return Err(ControlError::Conflict(format!(
            "there is a server {} already",
            server.id
        )));
    }
    Ok((StatusCode::CREATED, Json(api.view(server, None))))
}

/// All servers.
#[utoipa::path(get, path = "/api/v1/servers", params(OfTenant),
    responses((status = 200, body = Vec<ServerView>), (status = "default", body = ErrorBody)))]
pub async fn list(
    State(api): State<Arc<Api>>,
    Asked(of): Asked<OfTenant>,
) -> Result<Json<Vec<ServerView>>, ControlError> {
    let tenant = of.tenant.as_deref().map(ids::tenant).transpose()?;
    let servers = api.store.servers(tenant.as_ref()).await?;
    Ok(Json(
        servers
            .into_iter()
            .map(|server| api.view(server, None))
            .collect(),
    ))
}

/// One server, with its sandboxes.
#[utoipa::path(get, path = "/api/v1/servers/{id}", params(("id" = String, Path)),
    responses((status = 200, body = ServerView), (status = "default", body = ErrorBody)))]
pub async fn show(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
) -> Result<Json<ServerView>, ControlError> {
    let server = api.store.server(&ids::server(&id)?).await?;
    let live = api.live(&server).await;
    Ok(Json(api.view(server, live)))
}

/// Changes settings: a merge patch (RFC 7396). Sandboxes that run are drained and new ones take the new settings.
#[utoipa::path(patch, path = "/api/v1/servers/{id}", params(("id" = String, Path)), request_body = Settings,
    responses((status = 200, body = ServerView), (status = "default", body = ErrorBody)))]
pub async fn change(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    patch: Sent<Value>,
) -> Result<Json<ServerView>, ControlError> {
    let patch = body(patch)?;
    let server = api.store.server(&ids::server(&id)?).await?;
    let server = api
        .change(server, async |server| {
            server.settings = server.settings.patched(&patch)?;
            check(&api, server).await?;
            if server.deployed.is_some() {
                api.runner.put_server(api.spec(server).await?).await?;
            }
            Ok(())
        })
        .await?;
    Ok(Json(api.view(server, None)))
}

/// Ends a server: its sandboxes, its secrets and its log go. Events and usage stay.
#[utoipa::path(delete, path = "/api/v1/servers/{id}", params(("id" = String, Path)),
    responses((status = 204), (status = "default", body = ErrorBody)))]
pub async fn remove(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
) -> Result<StatusCode, ControlError> {
    let id = ids::server(&id)?;
    let spent = api.changing.lock().await;
    let server = api.store.server(&id).await?;
    match api.runner.remove_server(&server.tenant, &id).await {
        // It may never have got that far.
        Err(error) if error.code() == Some(runner_api::ErrorCode::NotFound) => {}
        other => other?,
    }
    api.store.remove_server(&id).await?;
    api.prints.lock().await.forget(&id);
    api.forget_refused(&id);
    api.publish(&api.store.servers(None).await?, &spent).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Drains all sandboxes of a server; the next call starts a new one.
#[utoipa::path(post, path = "/api/v1/servers/{id}/restart", params(("id" = String, Path)),
    responses((status = 204), (status = "default", body = ErrorBody)))]
pub async fn restart(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
) -> Result<StatusCode, ControlError> {
    let server = api.store.server(&ids::server(&id)?).await?;
    api.runner
        .restart_server(&server.tenant, &server.id)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The shape of a policy is that of the configuration file's `policy`.
#[derive(ToSchema)]
#[schema(as = Policy, value_type = Object)]
#[expect(
    dead_code,
    reason = "stands for a type of another room in the document"
)]
pub struct PolicySchema(Value);

/// The policy of a server.
#[utoipa::path(get, path = "/api/v1/servers/{id}/policy", params(("id" = String, Path)),
    responses((status = 200, body = PolicySchema), (status = "default", body = ErrorBody)))]
pub async fn policy(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
) -> Result<Json<Policy>, ControlError> {
    Ok(Json(api.store.server(&ids::server(&id)?).await?.policy))
}

/// Replaces the policy of a server; in force when this is answered.
#[utoipa::path(put, path = "/api/v1/servers/{id}/policy", params(("id" = String, Path)), request_body = PolicySchema,
    responses((status = 200, body = PolicySchema), (status = "default", body = ErrorBody)))]
pub async fn set_policy(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    policy: Sent<Policy>,
) -> Result<Json<Policy>, ControlError> {
    let policy = body(policy)?;
    let server = api.store.server(&ids::server(&id)?).await?;
    let edit = async |server: &mut Stored| {
        server.policy = policy;
        Ok(())
    };
    Ok(Json(api.change(server, edit).await?.policy))
}

/// Checks settings as far as that goes without a bundle.
async fn check(api: &Api, server: &Stored) -> Result<(), ControlError> {
    api.check_plan(server).await?;
    let any = runner_api::BundleInfo {
        id: runner_api::BundleId::parse(&"0".repeat(64))
            .map_err(|_| ControlError::Damaged("id"))?,
        tenant: server.tenant.clone(),
        runtime: runner_api::Runtime::Python,
        packed_bytes: 0,
        unpacked_bytes: 0,
        files: 0,
        root_names: Vec::new(),
        dependencies: Vec::new(),
    };
    let bundle = server.uploaded.as_ref().unwrap_or(&any);
    server
        .settings
        .spec(&server.tenant, &server.id, bundle, [])
        .map(|_| ())
}
