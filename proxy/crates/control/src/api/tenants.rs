//! Tenants and their plans.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use domain::Plan;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::sent::{Path, Sent, body};
use super::{Api, month_start_s};
use crate::error::{ControlError, ErrorBody};
use crate::ids;

/// A tenant's plan and what is used of it.
#[derive(Serialize, ToSchema)]
pub struct TenantView {
    /// The tenant.
    tenant: String,
    /// The plan's name.
    plan: String,
    /// What it allows.
    #[schema(value_type = Object)]
    limits: Plan,
    /// Servers now.
    servers: usize,
    /// Processor time of this month (UTC) in closed hours, in seconds.
    cpu_s: f64,
}

/// Another plan.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantChange {
    /// `starter`, `secure-runtime` or `power`.
    plan: String,
}

/// A tenant's plan.
#[utoipa::path(get, path = "/api/v1/tenants/{tenant}", params(("tenant" = String, Path)),
    responses((status = 200, body = TenantView), (status = "default", body = ErrorBody)))]
pub async fn show(
    State(api): State<Arc<Api>>,
    Path(tenant): Path<String>,
) -> Result<Json<TenantView>, ControlError> {
    view(&api, &tenant).await
}

/// Gives a tenant another plan. Servers that it has keep what they have.
#[utoipa::path(patch, path = "/api/v1/tenants/{tenant}", params(("tenant" = String, Path)), request_body = TenantChange,
    responses((status = 200, body = TenantView), (status = "default", body = ErrorBody)))]
pub async fn set(
    State(api): State<Arc<Api>>,
    Path(tenant): Path<String>,
    change: Sent<TenantChange>,
) -> Result<Json<TenantView>, ControlError> {
    let change = body(change)?;
    let names = Plan::built_in().map(|(name, _)| name);
    if !names.contains(&change.plan.as_str()) {
        return Err(ControlError::BadRequest(format!(
            "there is no such plan; there are {}",
            names.join(", ")
        )));
    }
    let id = known(&api, &tenant)?;
    api.store.set_plan(&id, &change.plan).await?;
    api.publish_if_spent_changed().await?;
    view(&api, &tenant).await
}

async fn view(api: &Api, tenant: &str) -> Result<Json<TenantView>, ControlError> {
    let id = known(api, tenant)?;
    let (plan, limits) = api.store.plan(&id).await?;
    let servers = api.store.servers(Some(&id)).await?.len();
    let cpu = api
        .store
        .cpu_since(month_start_s(ids::now_ms() / 1000))
        .await?;
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let cpu_s = cpu.get(&id).copied().unwrap_or(0) as f64 / 1e6;
    Ok(Json(TenantView {
        tenant: id.to_string(),
        plan,
        limits,
        servers,
        cpu_s,
    }))
}

fn known(api: &Api, tenant: &str) -> Result<domain::TenantId, ControlError> {
    let missing = || ControlError::NotFound {
        what: "tenant",
        id: tenant.chars().take(64).collect(),
    };
    ids::tenant(tenant)
        .ok()
        .filter(|id| api.publisher.tenants().contains(id))
        .ok_or_else(missing)
}
