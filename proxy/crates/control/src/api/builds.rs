//! Uploads and builds.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, StreamExt as _, stream};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use runner_api::{BuildEvent, BuildRequest, BundleInfo, RunnerError};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::sent::Path;
use super::{Api, BUNDLE_BYTES_MAX};
use crate::error::{ControlError, ErrorBody};
use crate::ids;
use crate::model::Stored;

/// Progress that waits for a slow reader; the build goes on without it above this.
const PROGRESS_MAX: usize = 256;

/// Uploads a bundle: the body is a `.tar.gz` of at most 250 MB. It takes effect with the next build.
#[utoipa::path(put, path = "/api/v1/servers/{id}/bundle", params(("id" = String, Path)),
    request_body(content_type = "application/gzip"),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub async fn upload(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<BundleInfo>, ControlError> {
    let _long = api.long_request()?;
    let server = api.store.server(&ids::server(&id)?).await?;
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|bytes| bytes > BUNDLE_BYTES_MAX) {
        return Err(too_large());
    }
    let mut total = 0u64;
    let bytes = body.into_data_stream().map(move |part| {
        let part = part.map_err(io::Error::other)?;
        total += part.len() as u64;
        if total > BUNDLE_BYTES_MAX {
            Err(io::ErrorKind::FileTooLarge.into())
        } else {
            Ok(part)
        }
    });
    let info = match api.runner.put_bundle(&server.tenant, bytes.boxed()).await {
        Err(RunnerError::Unavailable(error)) if error.kind() == io::ErrorKind::FileTooLarge => {
            return Err(too_large());
        }
        other => other?,
    };
    let edit = async |server: &mut Stored| {
        server.uploaded = Some(info.clone());
        Ok(())
    };
    api.change(server, edit).await?;
    Ok(Json(info))
}

fn too_large() -> ControlError {
    ControlError::TooLarge("a bundle has at most 250 MB".to_owned())
}

/// Installs the dependencies of the newest upload and deploys it. Answers with events: `stage`, `output`, `done`, and at
/// the end `deployed` or `failed`. The build goes on if the reader goes away.
#[utoipa::path(post, path = "/api/v1/servers/{id}/build", params(("id" = String, Path)),
    responses((status = 200, content_type = "text/event-stream", body = Object), (status = "default", body = ErrorBody)))]
pub async fn build(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ControlError> {
    let long = api.long_request()?;
    let server = api.store.server(&ids::server(&id)?).await?;
    let Some(bundle) = server.uploaded.clone() else {
        return Err(ControlError::Conflict(format!(
            "nothing has been uploaded for {}; upload a bundle first",
            server.id
        )));
    };
    let wanted = BuildRequest {
        tenant: server.tenant.clone(),
        bundle: bundle.id.clone(),
        allow_sdist: server.settings.allow_sdist,
    };
    let progress = api.runner.build(wanted).await?;
    let (tell, told) = mpsc::channel(PROGRESS_MAX);
    tokio::spawn(async move {
        let _long = long;
        let deployed = run(&api, server, bundle, progress, &tell).await;
        let last = match deployed {
            Ok(server) => {
                json!({"event": "deployed", "server": api.view(server, None)})
            }
            Err(error) => json!({"event": "failed", "error": error.body().error}),
        };
        // The end is not lost to a full queue.
        let _ = tell.send(last).await;
    });
    let events = stream::unfold(told, async |mut told| {
        told.recv().await.map(|event| (event, told))
    });
    let events = events.map(|event: Value| Ok(Event::default().data(event.to_string())));
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

async fn run(
    api: &Api,
    server: Stored,
    bundle: BundleInfo,
    mut progress: runner_api::Items<BuildEvent>,
    tell: &mpsc::Sender<Value>,
) -> Result<Stored, ControlError> {
    let mut built = false;
    while let Some(event) = progress.next().await {
        let event = event?;
        built |= matches!(event, BuildEvent::Done { .. });
        if let Ok(event) = serde_json::to_value(&event) {
            let _ = tell.try_send(event);
        }
    }
    if !built {
        return Err(RunnerError::Protocol("a build ended without a word".to_owned()).into());
    }
    let edit = async |server: &mut Stored| {
        server.deployed = Some(bundle);
        api.check_plan(server).await?;
        Ok(api.runner.put_server(api.spec(server).await?).await?)
    };
    api.change(server, edit).await
}
