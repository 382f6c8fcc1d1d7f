//! What can go wrong, and the one place where it becomes a reply.

use audit_log::AuditError;
use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::RETRY_AFTER;
use runner_api::{ErrorCode, Refusal, RunnerError};
use serde::Serialize;
use utoipa::ToSchema;

/// Why the control plane did not do it. Its text is for operators and owners.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No such thing.
    #[error("there is no {what} {id:?}")]
    NotFound {
        /// What was looked for.
        what: &'static str,
        /// The id.
        id: String,
    },
    /// No such thing can be done there.
    #[error("{0} is not supported here")]
    Method(http::Method),
    /// The request is wrong.
    #[error("{0}")]
    BadRequest(String),
    /// Fields are wrong.
    #[error("{} of the settings are not accepted", .0.len())]
    Fields(Vec<(String, String)>),
    /// It does not fit the state.
    #[error("{0}")]
    Conflict(String),
    /// The plan does not allow it.
    #[error("{0}")]
    Plan(String),
    /// No admin token, or a wrong one.
    #[error("the admin token is missing or wrong: send it as `Authorization: Bearer ...`")]
    Unauthorized,
    /// Another site's page, or a name that is not ours.
    #[error("{0}")]
    Forbidden(&'static str),
    /// Too long.
    #[error("{0}")]
    TooLarge(String),
    /// The gateway does not take what would be served.
    #[error("the gateway refuses it: {0}")]
    Publish(String),
    /// The gateway did not answer an execution.
    #[error("the execution failed: {0}")]
    Exec(String),
    /// The runner.
    #[error(transparent)]
    Runner(#[from] RunnerError),
    /// The audit log does not take what happened.
    #[error("the audit log failed")]
    Audit(#[from] AuditError),
    /// The store.
    #[error("the control plane's store failed")]
    Store(#[from] sqlx::Error),
    /// The store cannot be brought up to date.
    #[error("the control plane's store cannot be migrated")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// What is stored is not what was written.
    #[error("the control plane's store holds a damaged {0}")]
    Damaged(&'static str),
}

/// The body of every error.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorDetail,
}

/// What went wrong.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorDetail {
    /// For programs: `not_found`, `bad_request`, `conflict`, `bundle_refused`, `busy`, and so on.
    pub code: &'static str,
    /// For people: what was wrong, where, and what to do.
    pub message: String,
    /// Each thing that was found wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

impl ControlError {
    /// Status, code for programs, and seconds after which to try again.
    fn kind(&self) -> (StatusCode, &'static str, Option<u64>) {
        let plain = |status, code| (status, code, None);
        match self {
            Self::NotFound { .. } => plain(StatusCode::NOT_FOUND, "not_found"),
            Self::Method(_) => plain(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"),
            Self::BadRequest(_) => plain(StatusCode::BAD_REQUEST, "bad_request"),
            Self::Fields(_) => plain(StatusCode::UNPROCESSABLE_ENTITY, "invalid_settings"),
            Self::Conflict(_) => plain(StatusCode::CONFLICT, "conflict"),
            Self::Plan(_) => plain(StatusCode::FORBIDDEN, "plan"),
            Self::Unauthorized => plain(StatusCode::UNAUTHORIZED, "unauthorized"),
            Self::Forbidden(_) => plain(StatusCode::FORBIDDEN, "forbidden"),
            Self::TooLarge(_) => plain(StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
            Self::Publish(_) => plain(StatusCode::UNPROCESSABLE_ENTITY, "not_served"),
            Self::Exec(_) => plain(StatusCode::BAD_GATEWAY, "exec_failed"),
            Self::Runner(error) => runner_kind(error),
            Self::Store(_) | Self::Audit(_) | Self::Migrate(_) | Self::Damaged(_) => {
                plain(StatusCode::INTERNAL_SERVER_ERROR, "store")
            }
        }
    }

    fn details(&self) -> Vec<String> {
        match self {
            Self::Fields(fields) => fields
                .iter()
                .map(|(field, reason)| format!("{field}: {reason}"))
                .collect(),
            Self::Runner(RunnerError::Refused(error)) => {
                error.refusals.iter().map(refusal).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The reply's body.
    pub fn body(&self) -> ErrorBody {
        let (_, code, _) = self.kind();
        ErrorBody {
            error: ErrorDetail {
                code,
                message: self.to_string(),
                details: self.details(),
            },
        }
    }
}

fn runner_kind(error: &RunnerError) -> (StatusCode, &'static str, Option<u64>) {
    let RunnerError::Refused(refused) = error else {
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            "runner_unavailable",
            Some(5),
        );
    };
    let (status, code) = match refused.code {
        ErrorCode::BadRequest => (StatusCode::BAD_REQUEST, "bad_request"),
        ErrorCode::NotFound => (StatusCode::NOT_FOUND, "not_found"),
        ErrorCode::Conflict => (StatusCode::CONFLICT, "conflict"),
        ErrorCode::BundleRefused => (StatusCode::UNPROCESSABLE_ENTITY, "bundle_refused"),
        ErrorCode::Busy => (StatusCode::TOO_MANY_REQUESTS, "busy"),
        ErrorCode::StartFailed => (StatusCode::BAD_GATEWAY, "start_failed"),
        ErrorCode::SandboxGone => (StatusCode::BAD_GATEWAY, "sandbox_gone"),
        ErrorCode::NoCapacity => (StatusCode::SERVICE_UNAVAILABLE, "no_capacity"),
        ErrorCode::HostUnfit => (StatusCode::SERVICE_UNAVAILABLE, "host_unfit"),
        ErrorCode::Version => (StatusCode::SERVICE_UNAVAILABLE, "runner_version"),
        _ => (StatusCode::BAD_GATEWAY, "runner_failed"),
    };
    (
        status,
        code,
        refused.retry_after_ms.map(|ms| ms.div_ceil(1000)),
    )
}

/// `path:line: reason`.
fn refusal(refusal: &Refusal) -> String {
    let line = refusal
        .line
        .map(|line| format!("{line}:"))
        .unwrap_or_default();
    match &refusal.path {
        Some(path) => format!("{path}:{line} {}", refusal.reason),
        None => refusal.reason.clone(),
    }
}

impl IntoResponse for ControlError {
    fn into_response(self) -> Response {
        let (status, code, retry_s) = self.kind();
        if status.is_server_error() {
            let error: &dyn std::error::Error = &self;
            tracing::error!(code, error, "an admin request failed");
        }
        let mut response = (status, Json(self.body())).into_response();
        if let Some(seconds) = retry_s {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}
