//! Statements as they are asked every day pass, each in its dialect: a file of `tests/everyday` for each, a statement
//! for each line.

use dlp_sdk::Plugin;
use dlp_sdk::serde_json::{from_value, json};
use dlp_sdk::testing::{About, TestHost, message};
use sql_guard::SqlGuard;

#[test]
fn everyday_statements_pass() {
    let mut refused = Vec::new();
    for dialect in ["generic", "mssql", "mysql", "postgres", "sqlite"] {
        let file = format!("tests/everyday/{dialect}.sql");
        let statements = std::fs::read_to_string(&file).expect("the statements");
        assert!(statements.lines().count() >= 40, "{file}");
        let config = from_value(json!({"dialect": dialect})).expect("a configuration");
        let guard = SqlGuard::new(config).expect("the plugin");
        for sql in statements.lines() {
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "query", "arguments": {"sql": sql}}});
            let verdict = guard.evaluate(&message(&call, &About::default()), &TestHost::new());
            if !verdict.is_pass() {
                refused.push(format!("{dialect}: {sql}: {}", verdict.reason()));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
