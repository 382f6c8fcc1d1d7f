//! Policy plugins in the real program: pushed, bound, deciding, taken away.

use std::path::PathBuf;

use weir_tests::config::{Config, SERVER, TENANT};
use weir_tests::{Answer, Client, Era, Upstream, Weir, json};

/// Blocks what says `nightfall`; how it is made is in the plugin host's tests.
fn component() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/plugins/word-guard.wasm")
}

/// Whether an answer is the block of a tool call.
fn is_blocked(answer: &Answer) -> bool {
    answer.blocked_call_fault(Era::Handshake).is_none()
}

fn policy(weir: &Weir, args: &[&str]) -> (bool, String) {
    let config = weir.dir().join("weir.yaml");
    let config = config.to_string_lossy();
    let mut all = vec!["policy"];
    all.extend(args);
    all.extend(["--config", &config]);
    let output = weir_tests::weir::run(&all, "");
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

fn done(weir: &Weir, args: &[&str]) -> String {
    let (ok, text) = policy(weir, args);
    assert!(ok, "{args:?}: {text}");
    text
}

#[test]
fn a_pushed_and_bound_plugin_decides_until_it_is_unbound() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::of(json!({ "url": upstream.url() })));
    let mut client = Client::connect(&weir, Era::Handshake);
    let bad = json!({ "text": "project Nightfall" });
    assert!(!is_blocked(&client.call("echo", bad.clone())));

    let component = component();
    let path = component.to_string_lossy();
    assert!(done(&weir, &["push", &path, "--tenant", TENANT]).contains("in force"));
    assert!(
        !is_blocked(&client.call("echo", bad.clone())),
        "pushed is not bound"
    );
    done(
        &weir,
        &[
            "bind",
            "word-guard",
            "--server",
            SERVER,
            "--tool",
            "ec*",
            "--direction",
            "to_server",
        ],
    );

    upstream.forget();
    let blocked = client.call("echo", bad.clone());
    assert!(is_blocked(&blocked));
    assert!(
        blocked
            .first_text()
            .contains("plugin word-guard: a word of the list"),
        "{}",
        blocked.first_text()
    );
    assert!(
        upstream.calls("tools/call").is_empty(),
        "nothing reached the server"
    );
    assert!(!is_blocked(
        &client.call("echo", json!({ "text": "lunch" }))
    ));
    assert!(
        !is_blocked(&client.call("add", json!({ "text": "nightfall" }))),
        "another tool"
    );

    done(&weir, &["unbind", "word-guard", "--server", SERVER]);
    assert!(!is_blocked(&client.call("echo", bad)));
}
