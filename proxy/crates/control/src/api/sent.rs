//! What a request holds, or an error in the form of all others.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequestParts, Query};
use http::request::Parts;
use serde::de::DeserializeOwned;

use crate::error::ControlError;
use crate::objects::Objects;

/// A body as it comes.
pub type Sent<T> = Result<Json<Objects<T>>, JsonRejection>;

/// A body, or an error of ours.
pub fn body<T>(body: Sent<T>) -> Result<T, ControlError> {
    body.map(|Json(Objects(body))| body)
        .map_err(|error| ControlError::BadRequest(error.body_text()))
}

/// What a query string asks for, or an error of ours.
pub struct Asked<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = ControlError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ControlError> {
        Query::try_from_uri(&parts.uri)
            .map(|Query(asked)| Self(asked))
            .map_err(|error| ControlError::BadRequest(error.body_text()))
    }
}

/// The parts of a path that a route names, or an error of ours.
pub struct Path<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = ControlError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ControlError> {
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(named)) => Ok(Self(named)),
            Err(error) => Err(ControlError::BadRequest(error.body_text())),
        }
    }
}
