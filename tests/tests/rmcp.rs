//! The Rust SDK's client through Weir: a good call, one with a secret, a good one again, on one session.

use rmcp::model::CallToolRequestParams;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ServiceExt, serve_client};
use weir_tests::config::{Config, TENANT};
use weir_tests::{Canary, Upstream, Value, Weir, json, kit};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn against_a_server_that_records() {
    let upstream = Upstream::mcp(|_| None);
    check(&upstream.url(), "echo").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn against_server_everything() {
    if !kit::ready() {
        return;
    }
    let server = kit::Server::start("ts");
    check(&server.url, "echo").await;
}

/// This server speaks both eras, which the client's own default finds out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn against_the_python_everything_server() {
    if !kit::ready() {
        return;
    }
    let server = kit::Server::start("py");
    let mut config = Config::new(&server.url);
    let key = config.key(TENANT, "rmcp");
    let weir = Weir::serve(&config);
    let client = serve_client((), transport(&weir, &key))
        .await
        .expect("the session opens");
    assert!(client.list_all_tools().await.expect("the tools").len() > 20);
    let result = client
        .call_tool(CallToolRequestParams::new("test_simple_text"))
        .await
        .expect("an answer");
    assert_ne!(result.is_error, Some(true), "{result:?}");
    client.cancel().await.expect("an orderly end");
}

async fn check(url: &str, tool: &'static str) {
    let mut config = Config::new(url);
    let key = config.key(TENANT, "rmcp");
    let weir = Weir::serve(&config);
    let client = ().serve(transport(&weir, &key)).await.expect("the session opens");
    assert!(!client.list_all_tools().await.expect("the tools").is_empty());
    let canary = Canary::github();
    for (message, blocked) in [("hello", false), (canary.value(), true), ("again", false)] {
        let Value::Object(arguments) = json!({ "message": message }) else {
            unreachable!("it is an object")
        };
        let call = CallToolRequestParams::new(tool).with_arguments(arguments);
        let result = client
            .call_tool(call)
            .await
            .expect("an answer, also to the blocked one");
        assert_eq!(result.is_error == Some(true), blocked, "{result:?}");
        assert_eq!(canary.found_in(format!("{result:?}").as_bytes()), None);
    }
    assert!(
        !client
            .list_all_tools()
            .await
            .expect("the tools, still")
            .is_empty()
    );
    weir.assert_nowhere(&canary, "rmcp");
    client.cancel().await.expect("an orderly end");
}

fn transport(weir: &Weir, key: &str) -> impl rmcp::transport::Transport<rmcp::RoleClient> + use<> {
    let config = StreamableHttpClientTransportConfig::with_uri(weir.url()).auth_header(key);
    StreamableHttpClientTransport::from_config(config)
}
