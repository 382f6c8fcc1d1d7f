//! What a hosted server is: the spec as it comes, and the spec as it was checked.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use domain::{SECRETS_PER_SERVER_MAX, ServerId, TenantId};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::id::{BundleId, SecretName};

/// The language of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runtime {
    /// CPython 3.11 or newer.
    Python,
    /// Node 20 or newer.
    Node,
}

impl Runtime {
    /// The name in specs and paths.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "node",
        }
    }
}

/// How the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostedTransport {
    /// Streamable HTTP on the spec's port.
    #[default]
    Http,
    /// Lines on stdin and stdout; a shim in the sandbox makes Streamable HTTP of it.
    Stdio,
}

/// Who shares a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// One sandbox serves many sessions.
    #[default]
    Shared,
    /// A sandbox per session.
    Session,
    /// A new sandbox per call, destroyed after it.
    Call,
}

/// What a sandbox may use. Ranges are in PRODUCT.md D9.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Share of the CPU against others, 512 to 4096; 1024 is also the right to one core at most, and so on in proportion.
    pub cpu_shares: u32,
    /// Memory in MiB, 256 to 8192.
    pub memory_mb: u32,
    /// Writable storage in GiB, 5 to 100.
    pub storage_gb: u32,
    /// Processes and threads in the guest, 64 to 512.
    pub processes: u32,
    /// The longest call, in seconds, 1 to 900.
    pub call_timeout_s: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cpu_shares: 1024,
            memory_mb: 512,
            storage_gb: 5,
            processes: 128,
            call_timeout_s: 30,
        }
    }
}

/// One line of the egress allowlist. Its host is parsed by the egress room; here only its size is checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressRule {
    /// A name, or `*.` and a name.
    pub host: String,
    /// Ports, 1 to 10 of them; none means 443.
    #[serde(default)]
    pub ports: Vec<u16>,
}

/// How many sandboxes a server may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scale {
    /// Kept ready also when nobody calls, 0 to 16. Not for `call` isolation's used sandboxes: there it is the
    /// number of unused ones held ready.
    pub min: u32,
    /// Never more, 1 to 256.
    pub max: u32,
    /// Leases at once on one shared sandbox, 1 to 1000.
    pub concurrency: u32,
}

impl Default for Scale {
    fn default() -> Self {
        Self {
            min: 0,
            max: 4,
            concurrency: 32,
        }
    }
}

/// What becomes of a sandbox that nobody uses, counted from its last lease, in seconds; 0 means never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IdleTimes {
    /// Stands still after this long.
    pub freeze_after_s: u32,
    /// If it stands still: its memory and storage go to an encrypted image on disk after this long, and it comes back with
    /// them when it is wanted. Never with `call` isolation, and with secrets only if the spec trusts checkpoints with them.
    pub checkpoint_after_s: u32,
    /// If it is in memory still: is ended after this long; the image of its start stays.
    pub stop_after_s: u32,
    /// If it is on disk: is ended after this long, and its image removed.
    pub forget_after_s: u32,
}

impl Default for IdleTimes {
    fn default() -> Self {
        Self {
            freeze_after_s: 5,
            checkpoint_after_s: 300,
            stop_after_s: 900,
            forget_after_s: 24 * 3600,
        }
    }
}

/// A hosted server as an API or a file gives it. [`ServerSpec::check`] makes the type that the runner works with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSpec {
    /// Its id.
    pub id: ServerId,
    /// Its owner.
    pub tenant: TenantId,
    /// Its code.
    pub bundle: BundleId,
    /// Its language.
    pub runtime: Runtime,
    /// The command, run in the bundle's folder; empty means `python server.py` or `node server.js`. At most 64 words.
    #[serde(default)]
    pub command: Vec<String>,
    /// The port on which it listens, on all addresses.
    #[serde(default = "default_port")]
    pub port: u16,
    /// How it speaks.
    #[serde(default)]
    pub transport: HostedTransport,
    /// Plain environment, at most 64 entries.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Secrets that are mounted, at most [`SECRETS_PER_SERVER_MAX`].
    #[serde(default)]
    pub secrets: BTreeSet<SecretName>,
    /// What it may use.
    #[serde(default)]
    pub limits: Limits,
    /// Where it may connect to, at most 10 rules; none means nowhere.
    #[serde(default)]
    pub egress: Vec<EgressRule>,
    /// Who shares a sandbox.
    #[serde(default)]
    pub isolation: Isolation,
    /// How many sandboxes.
    #[serde(default)]
    pub scale: Scale,
    /// What becomes of idle sandboxes.
    #[serde(default)]
    pub idle: IdleTimes,
    /// Lets packages without a wheel be built.
    #[serde(default)]
    pub allow_sdist: bool,
    /// Lets checkpoints be taken of a server with secrets: what it has read of them is then in the (encrypted) image.
    #[serde(default)]
    pub trust_checkpoint_with_secrets: bool,
}

fn default_port() -> u16 {
    8000
}

/// One thing that is wrong with a spec.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("{field}: {reason}")]
pub struct FieldError {
    /// The field, as in JSON, dots between levels.
    pub field: String,
    /// What is wrong and what would be right.
    pub reason: String,
}

/// A spec within all limits; only [`ServerSpec::check`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedSpec(ServerSpec);

impl CheckedSpec {
    /// The spec, command filled in.
    pub fn get(&self) -> &ServerSpec {
        &self.0
    }
}

/// The port on which the shim for stdio servers listens. The server itself has no port then.
const PORTS_LOW: u16 = 1024;
/// An environment of this many bytes is a file in disguise.
const ENV_BYTES_MAX: usize = 32 * 1024;
const WORD_BYTES_MAX: usize = 4096;

impl ServerSpec {
    /// Checks every field against its limits and fills the command in.
    ///
    /// # Errors
    /// All that is wrong, in the order of the fields.
    pub fn check(mut self) -> Result<CheckedSpec, Vec<FieldError>> {
        let mut wrong = Wrong(Vec::new());
        if self.command.is_empty() {
            let (program, file) = match self.runtime {
                Runtime::Python => ("python", "server.py"),
                Runtime::Node => ("node", "server.js"),
            };
            self.command = vec![program.into(), file.into()];
        }
        self.check_command(&mut wrong);
        self.check_env(&mut wrong);
        if self.port < PORTS_LOW {
            wrong.add("port", "has to be 1024 or more: the server is not root");
        }
        wrong.at_most("secrets", self.secrets.len(), SECRETS_PER_SERVER_MAX);
        self.check_limits(&mut wrong);
        self.check_egress(&mut wrong);
        self.check_scale(&mut wrong);
        if wrong.0.is_empty() {
            Ok(CheckedSpec(self))
        } else {
            Err(wrong.0)
        }
    }

    fn check_command(&self, wrong: &mut Wrong) {
        wrong.at_most("command", self.command.len(), 64);
        for word in &self.command {
            if word.is_empty() || word.len() > WORD_BYTES_MAX || word.contains('\0') {
                wrong.add("command", "each word has 1 to 4096 bytes and no NUL");
            }
        }
    }

    fn check_env(&self, wrong: &mut Wrong) {
        wrong.at_most("env", self.env.len(), 64);
        let bytes: usize = self.env.iter().map(|(k, v)| k.len() + v.len()).sum();
        wrong.at_most("env (bytes)", bytes, ENV_BYTES_MAX);
        for (name, value) in &self.env {
            let mut chars = name.chars();
            let first = chars
                .next()
                .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
            if !first || name.len() > 128 || !chars.all(|c| c.is_ascii_alphanumeric() || c == '_') {
                wrong.add(
                    "env",
                    format!("{name:?} is no name: A-Z, a-z, 0-9 and '_', no digit first"),
                );
            } else if value.contains('\0') {
                wrong.add("env", format!("{name} holds a NUL"));
            } else if RESERVED_ENV.contains(&name.as_str()) || name.starts_with("LD_") {
                wrong.add(
                    "env",
                    format!("{name} is set by the runner; take another name"),
                );
            }
        }
    }

    fn check_limits(&self, wrong: &mut Wrong) {
        let l = &self.limits;
        wrong.within("limits.cpu_shares", l.cpu_shares, 512..=4096);
        wrong.within("limits.memory_mb", l.memory_mb, 256..=8192);
        wrong.within("limits.storage_gb", l.storage_gb, 5..=100);
        wrong.within("limits.processes", l.processes, 64..=512);
        wrong.within("limits.call_timeout_s", l.call_timeout_s, 1..=900);
    }

    fn check_egress(&self, wrong: &mut Wrong) {
        wrong.at_most("egress", self.egress.len(), 10);
        for rule in &self.egress {
            if rule.host.is_empty() || rule.host.len() > 253 {
                wrong.add("egress", "a host has 1 to 253 characters");
            }
            wrong.at_most("egress.ports", rule.ports.len(), 10);
            if rule.ports.contains(&0) {
                wrong.add("egress.ports", "0 is no port");
            }
        }
    }

    fn check_scale(&self, wrong: &mut Wrong) {
        let s = &self.scale;
        wrong.within("scale.max", s.max, 1..=256);
        wrong.within("scale.min", s.min, 0..=16);
        wrong.within("scale.concurrency", s.concurrency, 1..=1000);
        if s.min > s.max {
            wrong.add("scale.min", "is greater than scale.max");
        }
        let (idle, day) = (&self.idle, 24 * 3600);
        for (field, seconds, max) in [
            ("idle.freeze_after_s", idle.freeze_after_s, day),
            ("idle.checkpoint_after_s", idle.checkpoint_after_s, day),
            ("idle.stop_after_s", idle.stop_after_s, day),
            ("idle.forget_after_s", idle.forget_after_s, 7 * day),
        ] {
            wrong.within(field, seconds, 0..=max);
        }
    }
}

/// What the sandbox's own set-up sets; a tenant's value would break it without a word.
const RESERVED_ENV: &[&str] = &[
    "PATH",
    "HOME",
    "PYTHONPATH",
    "PYTHONHOME",
    "NODE_PATH",
    "NODE_OPTIONS",
];

struct Wrong(Vec<FieldError>);

impl Wrong {
    fn add(&mut self, field: &str, reason: impl Into<String>) {
        self.0.push(FieldError {
            field: field.into(),
            reason: reason.into(),
        });
    }

    fn within(&mut self, field: &str, value: u32, range: RangeInclusive<u32>) {
        if !range.contains(&value) {
            let (low, high) = range.into_inner();
            self.add(field, format!("has to be {low} to {high}, is {value}"));
        }
    }

    fn at_most(&mut self, field: &str, count: usize, max: usize) {
        if count > max {
            self.add(field, format!("has {count}, at most {max} are allowed"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(change: impl FnOnce(&mut ServerSpec)) -> Result<CheckedSpec, Vec<FieldError>> {
        let mut spec: ServerSpec = serde_json::from_value(serde_json::json!({
            "id": "s1", "tenant": "t1", "bundle": "ab".repeat(32), "runtime": "python",
        }))
        .expect("a minimal spec");
        change(&mut spec);
        spec.check()
    }

    #[test]
    fn a_minimal_spec_has_the_published_defaults() {
        let checked = spec(|_| ()).expect("within limits");
        let s = checked.get();
        assert_eq!(s.command, ["python", "server.py"]);
        assert_eq!((s.port, s.limits.call_timeout_s), (8000, 30));
        let node = spec(|s| s.runtime = Runtime::Node).expect("within limits");
        assert_eq!(node.get().command, ["node", "server.js"]);
    }

    #[test]
    fn each_limit_has_two_edges() {
        type Set = fn(&mut ServerSpec, u32);
        let cases: &[(&str, Set, u32, u32)] = &[
            (
                "limits.cpu_shares",
                |s, v| s.limits.cpu_shares = v,
                512,
                4096,
            ),
            ("limits.memory_mb", |s, v| s.limits.memory_mb = v, 256, 8192),
            ("limits.storage_gb", |s, v| s.limits.storage_gb = v, 5, 100),
            ("limits.processes", |s, v| s.limits.processes = v, 64, 512),
            (
                "limits.call_timeout_s",
                |s, v| s.limits.call_timeout_s = v,
                1,
                900,
            ),
            ("scale.concurrency", |s, v| s.scale.concurrency = v, 1, 1000),
        ];
        for &(field, set, low, high) in cases {
            for (value, good) in [
                (low - 1, false),
                (low, true),
                (high, true),
                (high + 1, false),
            ] {
                let result = spec(|s| set(s, value));
                match result {
                    Ok(_) => assert!(good, "{field} = {value} was taken"),
                    Err(errors) => {
                        assert!(!good, "{field} = {value} was refused: {errors:?}");
                        assert_eq!(errors[0].field, field);
                    }
                }
            }
        }
    }

    #[test]
    fn an_environment_cannot_take_over_the_start() {
        for bad in [
            "LD_PRELOAD",
            "PATH",
            "PYTHONPATH",
            "NODE_OPTIONS",
            "",
            "1A",
            "A=B",
            "A B",
            "A\0",
        ] {
            let result = spec(|s| {
                s.env.insert(bad.into(), "x".into());
            });
            assert!(result.is_err(), "{bad:?}");
        }
        assert!(
            spec(|s| {
                s.env.insert("SERVICE_URL".into(), "x".into());
            })
            .is_ok()
        );
    }

    #[test]
    fn eleven_egress_rules_are_one_too_many() {
        let rule = EgressRule {
            host: "a.example".into(),
            ports: vec![443],
        };
        assert!(spec(|s| s.egress = vec![rule.clone(); 10]).is_ok());
        assert!(spec(|s| s.egress = vec![rule.clone(); 11]).is_err());
    }
}
