//! What servers say, do and use.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use futures_util::StreamExt as _;
use http::header::CONTENT_TYPE;
use runner_api::{Doctor, LogQuery};
use serde::Deserialize;
use serde_json::Value;
use utoipa::IntoParams;

use super::Api;
use super::sent::{Asked, Path};
use crate::error::{ControlError, ErrorBody};
use crate::ids;
use crate::model::{LogView, UsageView};

const ROWS_MAX: i64 = 1000;
const TAIL_MAX: u32 = 10_000;

#[derive(Deserialize, IntoParams)]
pub struct LogsOf {
    /// How many of the last lines; default 100, at most 10,000.
    tail: Option<u32>,
    /// Go on with what comes.
    #[serde(default)]
    follow: bool,
}

/// Log lines, one JSON object each.
#[utoipa::path(get, path = "/api/v1/servers/{id}/logs", params(("id" = String, Path), LogsOf),
    responses((status = 200, content_type = "application/x-ndjson", body = LogView), (status = "default", body = ErrorBody)))]
pub async fn logs(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    Asked(of): Asked<LogsOf>,
) -> Result<Response, ControlError> {
    let long = api.long_request()?;
    let server = api.store.server(&ids::server(&id)?).await?;
    let tail = of.tail.unwrap_or(100).min(TAIL_MAX);
    let query = LogQuery {
        tenant: server.tenant,
        server: server.id,
        tail,
        follow: of.follow,
    };
    let lines = api.runner.logs(query).await?.map(move |line| {
        let _long = &long;
        let line = line.map(LogView::from).map_err(std::io::Error::other)?;
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        std::io::Result::Ok(Bytes::from(text))
    });
    let response = Response::builder()
        .header(CONTENT_TYPE, "application/x-ndjson")
        .body(Body::from_stream(lines));
    response.map_err(|_| ControlError::Damaged("reply"))
}

#[derive(Deserialize, IntoParams)]
pub struct EventsOf {
    /// Only events after this number; default all that are kept.
    #[serde(default)]
    after: i64,
}

/// What happened to a server: starts, ends, connections to the outside, refusals, accesses to secrets. At most 1,000, oldest
/// first.
#[utoipa::path(get, path = "/api/v1/servers/{id}/events", params(("id" = String, Path), EventsOf),
    responses((status = 200, body = Vec<Object>), (status = "default", body = ErrorBody)))]
pub async fn events(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    Asked(of): Asked<EventsOf>,
) -> Result<Json<Vec<Value>>, ControlError> {
    let server = api.store.server(&ids::server(&id)?).await?;
    let events = api
        .store
        .events(&server.tenant, &server.id, of.after, ROWS_MAX);
    Ok(Json(events.await?))
}

#[derive(Deserialize, IntoParams)]
pub struct UsageOf {
    /// Only this tenant's.
    tenant: Option<String>,
    /// Only this server's.
    server: Option<String>,
    /// From this hour on, in seconds since 1970; default the start of this month.
    from: Option<i64>,
    /// Before this hour; default now.
    to: Option<i64>,
}

/// Usage by server and hour, at most 1,000 rows. The hour that is under way is not in it.
#[utoipa::path(get, path = "/api/v1/usage", params(UsageOf),
    responses((status = 200, body = Vec<UsageView>), (status = "default", body = ErrorBody)))]
pub async fn usage(
    State(api): State<Arc<Api>>,
    Asked(of): Asked<UsageOf>,
) -> Result<Json<Vec<UsageView>>, ControlError> {
    let tenant = of.tenant.as_deref().map(ids::tenant).transpose()?;
    let server = of.server.as_deref().map(ids::server).transpose()?;
    let from = of
        .from
        .unwrap_or_else(|| super::month_start_s(ids::now_ms() / 1000));
    let range = (from, of.to.unwrap_or(i64::MAX));
    Ok(Json(
        api.store
            .usage(tenant.as_ref(), server.as_ref(), range, ROWS_MAX)
            .await?,
    ))
}

/// What the runner found on its machine.
#[utoipa::path(get, path = "/api/v1/runner", responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub async fn doctor(State(api): State<Arc<Api>>) -> Result<Json<Doctor>, ControlError> {
    Ok(Json(api.runner.doctor().await?))
}
