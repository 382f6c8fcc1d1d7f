//! The harness's own client and upstream, without Weir between them: what they cannot do here would be blamed on Weir.

use std::time::Duration;

use weir_tests::wait::PATIENCE;
use weir_tests::{Client, Era, Reply, Upstream, json};

#[test]
fn both_eras_are_spoken() {
    let upstream = Upstream::mcp(|_| None);
    for era in Era::ALL {
        let mut client = Client::at(upstream.addr(), "/mcp", era);
        if era == Era::Handshake {
            client.initialize();
            assert!(client.session.is_some());
        }
        assert_eq!(
            client.request("tools/list", json!({})).result()["tools"][0]["name"],
            "echo"
        );
        let answer = client.call("echo", json!({ "message": "hi" }));
        assert_eq!(answer.first_text(), "Echo: hi");
        assert_eq!(
            answer.result()["resultType"].is_string(),
            era == Era::Stateless
        );
        assert_eq!(client.request("no/such", json!({})).error()["code"], -32601);
        assert_eq!(
            client.notify("notifications/progress", json!({})).status(),
            202
        );
    }
    assert_eq!(upstream.calls("tools/call").len(), 2);
    let modern = &upstream.calls("tools/call")[1];
    assert_eq!(modern.header("mcp-method"), Some("tools/call"));
    assert_eq!(modern.header("mcp-name"), Some("echo"));
}

#[test]
fn streams_are_read_event_by_event() {
    let upstream = Upstream::mcp(|request| {
        (request.rpc_method() == "tools/call").then(|| {
            let last = weir_tests::upstream::result_message(request, json!({ "content": [] }));
            Reply::wire(move |wire| {
                wire.event_head();
                wire.event(
                    &json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": {} }),
                );
                wire.event(&last);
                wire.hang();
            })
        })
    });
    let mut client = Client::at(upstream.addr(), "/mcp", Era::Stateless);
    let message = client.message("tools/call", json!({ "name": "echo" }));
    let mut stream = client.open(&message);
    assert_eq!(
        stream.message(PATIENCE).expect("first")["method"],
        "notifications/message"
    );
    assert_eq!(
        stream.message(PATIENCE).expect("second")["id"],
        message["id"]
    );
    let late = stream
        .message(Duration::from_millis(50))
        .expect_err("the stream is open and silent");
    assert_eq!(late.kind(), std::io::ErrorKind::TimedOut);
}

#[test]
fn a_reset_is_seen_as_one() {
    let upstream = Upstream::start(|_| Reply::Reset);
    let mut client = Client::at(upstream.addr(), "/mcp", Era::Stateless);
    let message = client.message("ping", json!({}));
    let error = client.try_post(&message).expect_err("no answer");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}
