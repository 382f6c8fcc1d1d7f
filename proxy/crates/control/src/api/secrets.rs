//! Secrets: names come out, values only go in.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use domain::SECRETS_PER_SERVER_MAX;
use http::StatusCode;
use runner_api::{SECRET_BYTES_MAX, SecretName, SecretValue};

use super::Api;
use super::sent::Path;
use crate::error::{ControlError, ErrorBody};
use crate::ids;
use crate::model::Stored;

/// The names of a server's secrets.
#[utoipa::path(get, path = "/api/v1/servers/{id}/secrets", params(("id" = String, Path)),
    responses((status = 200, body = Vec<String>), (status = "default", body = ErrorBody)))]
pub async fn list(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
) -> Result<Json<Vec<String>>, ControlError> {
    let server = api.store.server(&ids::server(&id)?).await?;
    let names = api.secret_names(&server).await?;
    Ok(Json(names.iter().map(ToString::to_string).collect()))
}

/// Sets a secret: the body is its value, 1 to 65,536 bytes, as they are. Mounted at `/run/secrets/NAME` in sandboxes that
/// start from now on; those that run are drained. From now on, too, no message to or from the server may hold the value;
/// one of fewer than 8 bytes, or of fewer than 5 different ones, is not looked for.
#[utoipa::path(put, path = "/api/v1/servers/{id}/secrets/{name}", params(("id" = String, Path), ("name" = String, Path)),
    request_body(content_type = "application/octet-stream"),
    responses((status = 204), (status = "default", body = ErrorBody)))]
pub async fn set(
    State(api): State<Arc<Api>>,
    Path((id, name)): Path<(String, String)>,
    value: Bytes,
) -> Result<StatusCode, ControlError> {
    let server = api.store.server(&ids::server(&id)?).await?;
    let name = ids::secret_name(&name)?;
    let wrong = || {
        ControlError::BadRequest(format!(
            "a secret has 1 to {SECRET_BYTES_MAX} bytes, this one has {}",
            value.len()
        ))
    };
    let value = SecretValue::new(value.to_vec()).ok_or_else(wrong)?;
    if server.deployed.is_none() {
        let text = format!(
            "deploy {} first, then set its secrets; no sandbox starts before the first call",
            server.id
        );
        return Err(ControlError::Conflict(text));
    }
    let spent = api.changing.lock().await;
    // As it is now: the runner is told all of it, and what was changed meanwhile would be taken back.
    let server = api.store.server(&server.id).await?;
    match check_room(&api, &server, &name).await {
        // It cannot be asked now. The value is looked for all the same, and the vault keeps to the same number.
        Err(ControlError::Runner(error)) if error.code().is_none() => {}
        checked => checked?,
    }
    api.look_for(&server, &name, &value, &spent).await?;
    api.runner
        .set_secret(&server.tenant, &server.id, &name, value)
        .await?;
    renew(&api, &server).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// With one more, the server has to be one that the runner takes: before anything is stored, as what is stored is mounted,
/// and a server that is not taken could not be changed any more.
async fn check_room(api: &Api, server: &Stored, name: &SecretName) -> Result<(), ControlError> {
    let mut names = api.secret_names(server).await?;
    if names.contains(name) {
        return Ok(());
    }
    if names.len() >= SECRETS_PER_SERVER_MAX {
        return Err(ControlError::Conflict(format!(
            "{} has {} secrets, and a server has at most {SECRETS_PER_SERVER_MAX}; remove one first",
            server.id,
            names.len()
        )));
    }
    names.push(name.clone());
    Api::spec_with(server, names).map(drop)
}

/// Removes a secret.
#[utoipa::path(delete, path = "/api/v1/servers/{id}/secrets/{name}", params(("id" = String, Path), ("name" = String, Path)),
    responses((status = 204), (status = "default", body = ErrorBody)))]
pub async fn remove(
    State(api): State<Arc<Api>>,
    Path((id, name)): Path<(String, String)>,
) -> Result<StatusCode, ControlError> {
    let (id, name) = (ids::server(&id)?, ids::secret_name(&name)?);
    let _changing = api.changing.lock().await;
    let server = api.store.server(&id).await?;
    api.runner
        .remove_secret(&server.tenant, &server.id, &name)
        .await?;
    renew(&api, &server).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The runner is told which secrets to mount, and sandboxes with the old ones end.
async fn renew(api: &Api, server: &Stored) -> Result<(), ControlError> {
    if server.deployed.is_none() {
        return Ok(());
    }
    api.runner.put_server(api.spec(server).await?).await?;
    Ok(api
        .runner
        .restart_server(&server.tenant, &server.id)
        .await?)
}
