//! The runner's events as records of the audit log: lifecycle, access to secrets, egress.
//!
//! Each is in the log before the place up to which events were taken in moves on: none is left out, and after a kill some
//! may be there twice, with the same number in `rpc_id`.

use audit_log::{Action, AuditError, AuditLog, Durability, Record};
use runner_api::{Event, EventKind, GoneReason, SecretName};

/// Appends what belongs into the audit log, and waits until it is safe; first, that so many were lost.
///
/// # Errors
/// The log's. Then the events have to be taken in again.
pub(crate) async fn append(log: &AuditLog, lost: u64, events: &[Event]) -> Result<(), AuditError> {
    let lost = events.first().filter(|_| lost > 0).map(|e| gap(lost, e));
    for record in lost.into_iter().chain(events.iter().filter_map(record)) {
        // One at a time: a burst of a sandbox may not crowd out the records of exchanges.
        log.append(record, Durability::Written)?.await?;
    }
    log.flush()?.await
}

fn record(event: &Event) -> Option<Record> {
    let told = told(&event.kind)?;
    let time_us = event.at_unix_ms.saturating_mul(1000);
    let (tenant, server) = (event.tenant.as_str().into(), event.server.as_str().into());
    let mut record = Record::new(time_us, tenant, server);
    record.method = Some(told.method.into());
    record.tool = told.subject.map(Into::into);
    record.reason = told.reason.map(Into::into);
    record.action = told.action;
    record.sandbox = event.sandbox.as_ref().map(|id| id.as_str().into());
    record.rpc_id = Some(event.seq.to_string().into());
    (record.bytes.request, record.bytes.response) = told.bytes;
    record.latency_us.total = told.took_us;
    Some(record)
}

/// Numbers that were never told of. Nobody knows whose they were, so this is no tenant's record. After a power cut the runner
/// passes over numbers that it may or may not have given.
fn gap(lost: u64, before: &Event) -> Record {
    let time_us = before.at_unix_ms.saturating_mul(1000);
    let mut record = Record::new(time_us, "".into(), "".into());
    record.method = Some("sandbox/events_dropped".into());
    record.reason = Some(format!("up to {lost} events of the runner were lost").into());
    record.action = Action::Error;
    record.rpc_id = Some(before.seq.to_string().into());
    record
}

struct Told {
    method: &'static str,
    subject: Option<String>,
    reason: Option<String>,
    action: Action,
    bytes: (u64, u64),
    took_us: u64,
}

impl Told {
    fn of(method: &'static str) -> Self {
        Self {
            method,
            subject: None,
            reason: None,
            action: Action::Log,
            bytes: (0, 0),
            took_us: 0,
        }
    }

    fn about(method: &'static str, subject: impl Into<String>) -> Self {
        Self {
            subject: Some(subject.into()),
            ..Self::of(method)
        }
    }

    fn because(self, reason: impl Into<String>) -> Self {
        Self {
            reason: Some(reason.into()),
            ..self
        }
    }
}

/// `None`: idle sandboxes freeze and wake all day.
fn told(kind: &EventKind) -> Option<Told> {
    Some(match kind {
        EventKind::Frozen | EventKind::Thawed => return None,
        EventKind::Starting { .. } => Told::of("sandbox/starting"),
        EventKind::Ready { from, took_ms } => Told {
            took_us: took_ms.saturating_mul(1000),
            ..Told::of("sandbox/ready").because(from)
        },
        EventKind::Checkpointed { bytes, of, took_ms } => Told {
            bytes: (0, *bytes),
            took_us: took_ms.saturating_mul(1000),
            ..Told::of("sandbox/checkpointed").because(of.as_str())
        },
        EventKind::Restored { took_ms } => Told {
            took_us: took_ms.saturating_mul(1000),
            ..Told::of("sandbox/restored")
        },
        EventKind::Gone { reason } => Told {
            action: ended_as(reason),
            ..Told::of("sandbox/gone").because(word_of(reason))
        },
        EventKind::EgressConnection {
            host,
            port,
            sent_bytes,
            received_bytes,
            duration_ms,
        } => Told {
            bytes: (*sent_bytes, *received_bytes),
            took_us: duration_ms.saturating_mul(1000),
            ..Told::about("egress/connection", format!("{host}:{port}"))
        },
        EventKind::EgressRefused {
            target,
            port,
            reason,
        } => {
            let target = port.map_or_else(|| target.clone(), |port| format!("{target}:{port}"));
            Told {
                action: Action::Refused,
                ..Told::about("egress/refused", target).because(reason)
            }
        }
        EventKind::SecretsMounted { names } => Told::about("secret/mounted", joined(names)),
        EventKind::SecretsFingerprinted { names } => {
            Told::about("secret/fingerprinted", joined(names))
        }
        EventKind::SecretSet { name } => Told::about("secret/set", name.as_str()),
        EventKind::SecretRemoved { name } => Told::about("secret/removed", name.as_str()),
        EventKind::SecretDenied { name, reason } => Told {
            action: Action::Refused,
            ..Told::about("secret/denied", name).because(reason)
        },
        EventKind::Dropped { count } => Told {
            action: Action::Error,
            ..Told::of("sandbox/events_dropped").because(format!("{count} events were lost"))
        },
        // A newer runner's; its name is all that can be said.
        other => Told::about("sandbox/other", word_of(other)),
    })
}

fn joined(names: &[SecretName]) -> String {
    let names: Vec<&str> = names.iter().map(SecretName::as_str).collect();
    names.join(" ")
}

/// What the server or its owner did is a matter of course; the rest is not.
fn ended_as(reason: &GoneReason) -> Action {
    match reason {
        GoneReason::Idle | GoneReason::NoRoom | GoneReason::Finished | GoneReason::Stopped => {
            Action::Log
        }
        _ => Action::Error,
    }
}

/// The word that stands for it on the wire.
fn word_of(value: &impl serde::Serialize) -> String {
    let json = serde_json::to_value(value).unwrap_or_default();
    let word = json.get("reason").or_else(|| json.get("event"));
    word.and_then(|w| w.as_str())
        .unwrap_or("unknown")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_become_records_that_say_who_what_and_how_it_went() {
        let cases = [
            (
                r#"{"event":"starting","env":[["A","a value"]]}"#,
                "sandbox/starting",
                None,
                None,
                Action::Log,
            ),
            (
                r#"{"event":"gone","reason":{"reason":"out_of_memory"}}"#,
                "sandbox/gone",
                None,
                Some("out_of_memory"),
                Action::Error,
            ),
            (
                r#"{"event":"gone","reason":{"reason":"idle"}}"#,
                "sandbox/gone",
                None,
                Some("idle"),
                Action::Log,
            ),
            (
                r#"{"event":"checkpointed","bytes":5}"#,
                "sandbox/checkpointed",
                None,
                Some("start"),
                Action::Log,
            ),
            (
                r#"{"event":"checkpointed","bytes":5,"of":"idle","took_ms":200}"#,
                "sandbox/checkpointed",
                None,
                Some("idle"),
                Action::Log,
            ),
            (
                r#"{"event":"restored","took_ms":300}"#,
                "sandbox/restored",
                None,
                None,
                Action::Log,
            ),
            (
                r#"{"event":"gone","reason":{"reason":"no_room"}}"#,
                "sandbox/gone",
                None,
                Some("no_room"),
                Action::Log,
            ),
            (
                r#"{"event":"egress_connection","host":"api.example","port":443,"sent_bytes":5,"received_bytes":7,"duration_ms":3}"#,
                "egress/connection",
                Some("api.example:443"),
                None,
                Action::Log,
            ),
            (
                r#"{"event":"egress_refused","target":"evil.example","port":80,"reason":"not on the list"}"#,
                "egress/refused",
                Some("evil.example:80"),
                Some("not on the list"),
                Action::Refused,
            ),
            (
                r#"{"event":"secrets_mounted","names":["A","B"]}"#,
                "secret/mounted",
                Some("A B"),
                None,
                Action::Log,
            ),
        ];
        for (kind, method, subject, reason, action) in cases {
            let mut json: serde_json::Value = serde_json::from_str(kind).expect("JSON");
            for (name, value) in [
                ("tenant", "acme"),
                ("server", "one"),
                ("sandbox", "sandbox00001"),
            ] {
                json[name] = value.into();
            }
            (json["seq"], json["at_unix_ms"]) = (9.into(), 1_790_000_000_000u64.into());
            let event: Event = serde_json::from_value(json).expect("an event");
            let record = record(&event).expect("a record");
            assert_eq!(record.method.as_deref(), Some(method));
            assert_eq!(record.tool.as_deref(), subject, "{method}");
            assert_eq!(record.reason.as_deref(), reason, "{method}");
            assert_eq!(record.action, action, "{method}");
            assert_eq!((&*record.tenant, &*record.server), ("acme", "one"));
            assert_eq!(record.sandbox.as_deref(), Some("sandbox00001"));
            assert_eq!(
                (record.rpc_id.as_deref(), record.time_unix_us),
                (Some("9"), 1_790_000_000_000_000)
            );
            let text = serde_json::to_string(&record).expect("JSON");
            assert!(!text.contains("a value"), "no environment: {text}");
        }
    }
}
