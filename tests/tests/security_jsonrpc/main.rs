//! Attacks at the level of JSON-RPC and MCP.

mod bindings;
mod handles;
mod parsing;
mod policies;
mod streaming;
mod unfit;

use weir_tests::{Answer, Client, Value};

/// Posts this text as it is, with the headers that belong to a `tools/call` of `echo`.
fn post_text(client: &Client, text: &str) -> std::io::Result<Answer> {
    let like = weir_tests::json!({ "method": "tools/call", "params": { "name": "echo" } });
    client.post_bytes(text.as_bytes(), &client.headers_for(&like))
}

/// Whether an answer refuses: a 4xx, or a JSON-RPC error, or an isError result.
fn is_refusal(answer: &Answer) -> bool {
    (400..500).contains(&answer.told_status())
        || (answer.status() == 200
            && (answer.error().is_object() || answer.result()["isError"] == Value::Bool(true)))
}
