//! Traces by OTLP, as a collector and an upstream see them.

use std::collections::BTreeMap;
use std::time::Duration;

use nix::sys::signal::Signal;
use weir_tests::config::Config;
use weir_tests::upstream::Request;
use weir_tests::wait::{self, PATIENCE};
use weir_tests::{Canary, Client, Era, Reply, Upstream, Value, Weir, json};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

#[test]
fn the_callers_trace_leads_through_weir_to_the_upstream() {
    let (upstream, collector) = (Upstream::mcp(|_| None), collector());
    let weir = serve(&upstream, &collector.url_base());
    let traceparent = format!("00-{TRACE}-{PARENT}-01");
    let mut client = Client::connect_with(&weir, Era::Stateless, &[("traceparent", &traceparent)]);
    assert_eq!(
        client.call("echo", json!({ "message": "hi" })).first_text(),
        "Echo: hi"
    );

    let span = span_of(&collector, "tools/call");
    assert_eq!(span["traceId"], TRACE);
    assert_eq!(span["parentSpanId"], PARENT);
    assert_eq!(span["kind"], 2, "a server's span: {span}");
    assert_ne!(span["status"]["code"], 2, "no error: {span}");
    let up = upstream.calls("tools/call").remove(0);
    let id = span["spanId"].as_str().expect("a span id");
    assert_eq!(
        up.header("traceparent"),
        Some(&*format!("00-{TRACE}-{id}-01"))
    );

    let told = attributes(&span["attributes"]);
    assert_eq!(told["mcp.method.name"], "tools/call");
    assert_eq!(told["gen_ai.tool.name"], "echo");
    assert_eq!(told["weir.tenant"], "acme");
    assert_eq!(told["weir.server"], "files");
    assert_eq!(told["weir.action"], "pass");
    assert_eq!(told["http.response.status_code"], "200");
    assert!(told["weir.audit_id"].starts_with("aud_"), "{told:?}");
    for time in ["weir.scan_us", "weir.policy_us", "weir.upstream_us"] {
        told[time].parse::<u64>().expect("a time in microseconds");
    }
    let nanos = |field: &str| number(&span[field]).expect("a time in nanoseconds");
    assert!(nanos("startTimeUnixNano") < nanos("endTimeUnixNano"));

    let export = &exports(&collector)[0];
    assert_eq!(export.header("content-type"), Some("application/json"));
    assert_eq!(export.header("x-team"), Some("blue"));
    let resource = &export.json()["resourceSpans"][0]["resource"]["attributes"];
    let resource = attributes(resource);
    assert_eq!(resource["service.name"], "weir");
    assert!(resource.contains_key("service.version"));
}

#[test]
fn a_call_nobody_traces_begins_a_trace_and_an_unrecorded_one_stays_so() {
    let (upstream, collector) = (Upstream::mcp(|_| None), collector());
    let mut weir = serve(&upstream, &collector.url_base());
    let mut untraced = Client::connect(&weir, Era::Stateless);
    untraced.call("echo", json!({ "message": "hi" }));
    let unsampled = format!("00-{TRACE}-{PARENT}-00");
    let mut quiet = Client::connect_with(&weir, Era::Stateless, &[("traceparent", &unsampled)]);
    quiet.call("echo", json!({ "message": "hi" }));

    // Spans that wait for others are sent when Weir stops.
    weir.signal(Signal::SIGTERM);
    assert!(weir.wait_exit(PATIENCE).success());
    let spans = spans(&collector);
    assert_eq!(spans.len(), 1, "one of two is recorded: {spans:?}");
    let span = &spans[0];
    let (trace, id) = (span["traceId"].as_str(), span["spanId"].as_str());
    let (trace, id) = (trace.expect("a trace id"), id.expect("a span id"));
    assert_ne!(trace, TRACE);
    assert!(span["parentSpanId"].as_str().unwrap_or_default().is_empty());
    let calls = upstream.calls("tools/call");
    assert_eq!(
        calls[0].header("traceparent"),
        Some(&*format!("00-{trace}-{id}-01"))
    );
    let carried = calls[1].header("traceparent").expect("carried on");
    assert!(carried.starts_with(&format!("00-{TRACE}-")), "{carried}");
    assert!(carried.ends_with("-00"), "{carried}");
    assert!(!carried.contains(PARENT), "{carried}");
}

#[test]
fn no_secret_reaches_the_collector() {
    let canary = Canary::github();
    let planted = canary.value().to_owned();
    let upstream = Upstream::mcp(move |request| {
        (request.rpc_method() == "tools/call").then(|| {
            let text = json!({ "content": [{ "type": "text", "text": planted }] });
            Reply::result(request, text)
        })
    });
    let collector = collector();
    let mut weir = serve(&upstream, &collector.url_base());
    let state = format!("k={}", canary.value());
    let mut client = Client::connect_with(&weir, Era::Stateless, &[("tracestate", &state)]);
    let text = canary.value();
    client.call("echo", json!({ "message": text }));
    client.call("echo", json!({ "message": "tell me" }));
    client.call(text, json!({}));
    client.request(text, json!({}));
    client.request(
        "resources/read",
        json!({ "uri": format!("file:///{text}") }),
    );
    client.request("prompts/get", json!({ "name": text }));
    let broken = format!("{{\"method\": \"{text}\"");
    let _refused = client.post_bytes(broken.as_bytes(), &client.headers_for(&Value::Null));

    weir.signal(Signal::SIGTERM);
    assert!(weir.wait_exit(PATIENCE).success());
    let spans = spans(&collector);
    assert_eq!(spans.len(), 7, "{spans:?}");
    let actions: Vec<String> = spans
        .iter()
        .map(|span| attributes(&span["attributes"])["weir.action"].clone())
        .collect();
    for action in ["block", "redact", "refused"] {
        assert!(actions.iter().any(|a| a == action), "{action}: {actions:?}");
    }
    assert_eq!(canary.found_in(&collector.bytes()), None);
}

#[test]
fn a_fault_of_the_upstream_is_an_error() {
    let (upstream, collector) = (Upstream::mcp(|_| None), collector());
    let weir = serve(&upstream, &collector.url_base());
    upstream.answer(|_| Some(Reply::Reset));
    let mut client = Client::connect(&weir, Era::Stateless);
    assert!(client.call("echo", json!({})).error()["code"].is_number());
    let span = span_of(&collector, "tools/call");
    assert_eq!(span["status"]["code"], 2, "{span}");
    let told = attributes(&span["attributes"]);
    assert_eq!(told["weir.action"], "error");
}

#[test]
fn calls_are_answered_while_the_collector_is_down() {
    let upstream = Upstream::mcp(|_| None);
    let down = {
        let gone = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        format!("http://{}", gone.local_addr().expect("it is bound"))
    };
    let mut weir = serve(&upstream, &down);
    let mut client = Client::connect(&weir, Era::Stateless);
    for _ in 0..20 {
        let answer = client.call("echo", json!({ "message": "hi" }));
        assert_eq!(answer.first_text(), "Echo: hi");
    }
    weir.wait_for_log("spans could not be exported");
    let dropped = wait::until("dropped spans in the metrics", PATIENCE, || {
        let (_, text) = weir.admin_get("/metrics");
        let line = text
            .lines()
            .find(|l| l.starts_with("weir_spans_dropped_total "))?;
        let count: u64 = line.split(' ').nth(1)?.parse().ok()?;
        (count > 0).then_some(count)
    });
    assert!(dropped <= 20, "{dropped}");
    client.call("echo", json!({ "message": "hi" }));
    weir.signal(Signal::SIGTERM);
    assert!(weir.wait_exit(PATIENCE).success());
    assert_eq!(
        weir.log().matches("spans could not be exported").count(),
        1,
        "said once a minute"
    );
}

#[test]
fn a_collector_that_hangs_holds_up_neither_calls_nor_the_end() {
    let upstream = Upstream::mcp(|_| None);
    let hanging = Upstream::start(|_| Reply::Hang);
    let mut weir = serve(&upstream, &hanging.url_base());
    let mut client = Client::connect(&weir, Era::Stateless);
    client.call("echo", json!({ "message": "hi" }));
    hanging.wait_for("an export", |r| r.path == "/v1/traces");
    let answer = client.call("echo", json!({ "message": "hi" }));
    assert_eq!(answer.first_text(), "Echo: hi");
    weir.signal(Signal::SIGTERM);
    assert!(weir.wait_exit(Duration::from_secs(10)).success());
}

/// Takes every export.
fn collector() -> Upstream {
    Upstream::start(|_| Reply::json(&json!({})))
}

fn serve(upstream: &Upstream, collector: &str) -> Weir {
    let otlp = json!({ "endpoint": collector, "headers": { "X-Team": "blue" } });
    Weir::serve(&Config::new(&upstream.url()).set("otlp", otlp))
}

trait UrlBase {
    fn url_base(&self) -> String;
}

impl UrlBase for Upstream {
    fn url_base(&self) -> String {
        format!("http://{}", self.addr())
    }
}

fn exports(collector: &Upstream) -> Vec<Request> {
    let requests = collector.requests();
    for request in &requests {
        assert_eq!((&*request.method, &*request.path), ("POST", "/v1/traces"));
    }
    requests
}

/// Every span that arrived so far.
fn spans(collector: &Upstream) -> Vec<Value> {
    let mut spans = Vec::new();
    for export in exports(collector) {
        for resource in list(&export.json()["resourceSpans"]) {
            for scope in list(&resource["scopeSpans"]) {
                spans.extend(list(&scope["spans"]));
            }
        }
    }
    spans
}

/// Waits for a span of this name.
fn span_of(collector: &Upstream, name: &str) -> Value {
    wait::until(&format!("a span {name:?}"), PATIENCE, || {
        spans(collector).into_iter().find(|s| s["name"] == name)
    })
}

/// Attributes by name; numbers as their text.
fn attributes(value: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    list(value)
        .iter()
        .map(|pair| {
            let (_, one) = pair["value"]
                .as_object()
                .and_then(|v| v.iter().next())
                .expect("one value");
            (text(&pair["key"]), text(one))
        })
        .collect()
}

/// A 64-bit number, which JSON of protobuf writes as a text.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}
