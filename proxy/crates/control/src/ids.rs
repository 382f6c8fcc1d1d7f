//! Ids from outside become types, or an error.

use domain::{IdError, ServerId, TenantId};
use runner_api::SecretName;

use crate::error::ControlError;

/// A server's id as it stands in a path. What cannot be one names no server.
pub fn server(text: &str) -> Result<ServerId, ControlError> {
    let missing = |_| ControlError::NotFound {
        what: "server",
        id: text.chars().take(64).collect(),
    };
    ServerId::parse(text).map_err(missing)
}

/// An id that somebody chooses.
pub fn new_server(text: &str) -> Result<ServerId, ControlError> {
    ServerId::parse(text).map_err(wrong("id"))
}

pub fn tenant(text: &str) -> Result<TenantId, ControlError> {
    TenantId::parse(text).map_err(wrong("tenant"))
}

pub fn secret_name(text: &str) -> Result<SecretName, ControlError> {
    SecretName::parse(text).map_err(wrong("the name of a secret"))
}

/// A random id: 12 characters of a-z and 0-9.
pub fn random() -> Result<ServerId, ControlError> {
    const SIGNS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut text = String::new();
    while text.len() < 12 {
        let mut bytes = [0u8; 32];
        getrandom::fill(&mut bytes)
            .map_err(|_| ControlError::Conflict("the system gives no random numbers".into()))?;
        // 252 is the largest multiple of 36 in a byte: each sign comes as often as any other.
        let fair = bytes.into_iter().filter(|b| *b < 252);
        text.extend(
            fair.map(|b| char::from(SIGNS[usize::from(b % 36)]))
                .take(12 - text.len()),
        );
    }
    new_server(&text)
}

fn wrong(what: &'static str) -> impl FnOnce(IdError) -> ControlError {
    move |error| ControlError::BadRequest(format!("{what} {error}"))
}

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.ok()
        .and_then(|d| i64::try_from(d.as_millis()).ok())
        .unwrap_or(0)
}
