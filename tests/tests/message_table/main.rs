//! Every message of the protocol, in each direction and era, with a secret planted at each path that can hold text.
//!
//! The rows are written from the specification. For each, a policy of `block` and one of `redact` is tried: the
//! other side must never see the value, the answer must have the shape that clients live on with, and the value
//! may stand nowhere else either: not in the log, the audit folder, the metrics or an error, plain or encoded.

/// The four tests of a table: both eras, both policies.
macro_rules! in_both_eras_and_policies {
    ($check:ident) => {
        #[test]
        fn handshake_block() {
            $check(crate::Era::Handshake, crate::Policy::Block);
        }

        #[test]
        fn handshake_redact() {
            $check(crate::Era::Handshake, crate::Policy::Redact);
        }

        #[test]
        fn stateless_block() {
            $check(crate::Era::Stateless, crate::Policy::Block);
        }

        #[test]
        fn stateless_redact() {
            $check(crate::Era::Stateless, crate::Policy::Redact);
        }
    };
}

mod client_answers;
mod streams;
mod to_client;
mod to_server;

use weir_tests::config::Config;
use weir_tests::upstream::result_message;
use weir_tests::{Answer, Canary, Client, Era, Request, Upstream, Value, Weir, json};

/// Eras that have a message.
const H: &[Era] = &[Era::Handshake];
const S: &[Era] = &[Era::Stateless];
const B: &[Era] = &Era::ALL;

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

    /// Where either side or anything that is written has the value though it must not.
    fn any_leak(&self, canary: &Canary) -> Option<String> {
        self.upstream_leak(canary).or_else(|| self.leak(canary))
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

/// A table that is being gone through.
struct Table {
    bench: Bench,
    rows: usize,
    faults: Vec<String>,
}

impl Table {
    fn new(era: Era, policy: Policy) -> Self {
        Self {
            bench: Bench::new(era, policy),
            rows: 0,
            faults: Vec::new(),
        }
    }

    /// Tries a row; what it gives is what is wrong.
    fn row(&mut self, name: &str, one: impl FnOnce(&Bench) -> Option<String>) {
        self.rows += 1;
        let fault = one(&self.bench);
        self.faults.extend(fault.map(|f| format!("{name}: {f}")));
    }

    /// Panics with every fault, not only the first.
    fn end(self) {
        let Self {
            bench,
            rows,
            faults,
        } = self;
        assert!(
            faults.is_empty(),
            "{:?} {:?}: {} faults in {rows} rows:\n{}",
            bench.era,
            bench.policy,
            faults.len(),
            faults.join("\n")
        );
        assert!(rows > 0, "no row was tried");
    }
}

/// A call without anything in it.
fn echo(client: &mut Client) -> Value {
    let arguments = json!({ "message": "hi" });
    client.message(
        "tools/call",
        json!({ "name": "echo", "arguments": arguments }),
    )
}

/// The answer to a call without anything in it.
fn clean(request: &Request) -> Value {
    let content = json!([{ "type": "text", "text": "clean" }]);
    result_message(request, json!({ "content": content }))
}

/// Posts a message; the error is a fault.
fn post(client: &Client, message: &Value) -> Result<Answer, String> {
    client
        .try_post(message)
        .map_err(|e| format!("no answer: {e}"))
}

/// The fault of a client that was shown the value, if it was.
fn shown(canary: &Canary, bytes: &[u8]) -> Option<String> {
    let form = canary.found_in(bytes)?;
    let text = short(&String::from_utf8_lossy(bytes));
    Some(format!("the client got the secret ({form}): {text}"))
}

/// An answer in a fault line.
fn told(answer: &Answer) -> String {
    format!("{} {}", answer.status(), short(&answer.text()))
}

/// A text cut short, for fault lines.
fn short(text: &str) -> String {
    text.chars().take(300).collect()
}
