//! Every message of the protocol, in each direction and era, with a secret planted at each path that can hold text.
//!
//! The rows are written from the specification. For each, a policy of `block` and one of `redact` is tried: the
//! other side must never see the value, the answer must have the shape that clients live on with, and the value
//! may stand nowhere else either: not in the log, the audit folder, the metrics or an error, plain or encoded.

mod client_answers;
mod streams;
mod to_client;
mod to_server;

use weir_tests::config::Config;
use weir_tests::{Canary, Client, Era, Upstream, Value, Weir};

/// What the policy says about secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    Block,
    Redact,
}

/// An upstream, and Weir in front of it with one policy.
struct Bench {
    upstream: Upstream,
    weir: Weir,
    era: Era,
    policy: Policy,
}

impl Bench {
    fn new(era: Era, policy: Policy) -> Self {
        let upstream = Upstream::mcp(|_| None);
        let action = match policy {
            Policy::Block => "block",
            Policy::Redact => "redact",
        };
        let weir = Weir::serve(&Config::new(&upstream.url()).category("secret", action));
        Self {
            upstream,
            weir,
            era,
            policy,
        }
    }

    fn client(&self) -> Client {
        Client::connect(&self.weir, self.era)
    }

    /// Where the value got to though it must not, if it did.
    fn leak(&self, canary: &Canary) -> Option<String> {
        self.weir
            .found_anywhere(canary)
            .map(|place| format!("the secret stands in {place}"))
    }

    /// The same for what the upstream saw.
    fn upstream_leak(&self, canary: &Canary) -> Option<String> {
        let wire = canary.found_in(&self.upstream.bytes());
        let parsed = self
            .upstream
            .requests()
            .iter()
            .find_map(|r| canary.found_in(&r.body));
        wire.or(parsed)
            .map(|form| format!("the upstream got the secret ({form})"))
    }
}

/// Fills a row's template: `$S` is a sentence with the secret in it, `$T` the secret alone, `$B` and `$H` the
/// sentence in base64 and in hex.
fn plant(template: &Value, canary: &Canary) -> Value {
    let text = |t: &str| {
        let sentence = format!("before {} after", canary.value());
        let hex: String = sentence.bytes().map(|b| format!("{b:02x}")).collect();
        use base64::Engine;
        let coded = base64::engine::general_purpose::STANDARD.encode(&sentence);
        t.replace("$S", &sentence)
            .replace("$T", canary.value())
            .replace("$B", &coded)
            .replace("$H", &hex)
    };
    match template {
        Value::String(s) => Value::String(text(s)),
        Value::Array(items) => items.iter().map(|v| plant(v, canary)).collect(),
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(k, v)| (text(k), plant(v, canary)))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// Panics with every fault, not only the first.
fn report(era: Era, policy: Policy, rows: usize, faults: &[String]) {
    assert!(
        faults.is_empty(),
        "{era:?} {policy:?}: {} faults in {rows} rows:\n{}",
        faults.len(),
        faults.join("\n")
    );
    assert!(rows > 0, "no row was tried");
}

/// A text cut short, for fault lines.
fn short(text: &str) -> String {
    text.chars().take(300).collect()
}
