//! One-shot executions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use domain::ToolName;
use futures_util::StreamExt as _;
use runner_api::{Isolation, LogQuery};

use super::Api;
use super::sent::{Path, Sent, body};
use crate::error::{ControlError, ErrorBody};
use crate::exec::call_tool;
use crate::ids;
use crate::model::{ExecReply, ExecRequest, LogView, Stored};

const LOG_LINES_MAX: u32 = 200;
/// How long the log may take when the result is there.
const LOG_WAIT_MAX: Duration = Duration::from_secs(2);

/// Runs one tool once, through the gateway: scanned, judged and audited like any client's call.
#[utoipa::path(post, path = "/api/v1/servers/{id}/exec", params(("id" = String, Path)), request_body = ExecRequest,
    responses((status = 200, body = ExecReply), (status = "default", body = ErrorBody)))]
pub async fn exec(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    wanted: Sent<ExecRequest>,
) -> Result<Json<ExecReply>, ControlError> {
    let wanted = body(wanted)?;
    let tool = ToolName::parse(&wanted.tool)
        .map_err(|error| ControlError::BadRequest(format!("tool {error}")))?;
    if !(1..=900).contains(&wanted.timeout_s) {
        return Err(ControlError::BadRequest(format!(
            "timeout_s has to be 1 to 900, is {}",
            wanted.timeout_s
        )));
    }
    let _long = api.long_request()?;
    let server = api.store.server(&ids::server(&id)?).await?;
    if server.deployed.is_none() {
        return Err(ControlError::Conflict(format!(
            "nothing is deployed as {} yet",
            server.id
        )));
    }
    let (started, began_ms) = (Instant::now(), ids::now_ms());
    let call = call_tool(
        api.gateway,
        &api.exec_keys,
        (&server.tenant, &server.id),
        tool.as_str(),
        &wanted.arguments,
        server.settings.isolation == Isolation::Call,
        Duration::from_secs(wanted.timeout_s.into()),
    );
    let result = call.await?;
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let logs = tokio::time::timeout(LOG_WAIT_MAX, logs_since(&api, &server, began_ms)).await;
    Ok(Json(ExecReply {
        result,
        duration_ms,
        logs: logs.unwrap_or_default(),
    }))
}

async fn logs_since(api: &Api, server: &Stored, from_ms: i64) -> Vec<LogView> {
    let (tenant, id) = (server.tenant.clone(), server.id.clone());
    let query = LogQuery {
        tenant,
        server: id,
        tail: LOG_LINES_MAX,
        follow: false,
    };
    let Ok(lines) = api.runner.logs(query).await else {
        return Vec::new();
    };
    let from_ms = u64::try_from(from_ms).unwrap_or(0);
    let since = lines.filter_map(async |line| {
        line.ok()
            .filter(|line| line.at_unix_ms >= from_ms)
            .map(LogView::from)
    });
    since.take(LOG_LINES_MAX as usize).collect().await
}
