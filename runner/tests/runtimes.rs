//! Node, and stdio servers of both runtimes.

mod common;

use std::net::SocketAddr;
use std::time::Instant;

use common::*;
use runner_api::*;
use serde_json::{Value, json};
use weir_tests::wait::PATIENCE;
use weir_tests::{Client as McpClient, Era};

const NODE_SERVER: &str = include_str!("../bench/server.js");
const NODE_PACKAGE: &str = include_str!("../bench/package.json");

const STDIO_PYTHON: &str = r#"
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        r = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "lines", "version": "1"}}
    elif m.get("method") == "tools/call":
        r = {"content": [{"type": "text", "text": "line for: " + m["params"]["arguments"]["query"]}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;
const STDIO_NODE: &str = r#"
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const m = JSON.parse(line);
  const r = m.method === "initialize" ? { protocolVersion: "2025-06-18", capabilities: {}, serverInfo: { name: "lines", version: "1" } }
    : m.method === "tools/call" ? { content: [{ type: "text", text: "line for: " + m.params.arguments.query }] } : null;
  if (r) console.log(JSON.stringify({ jsonrpc: "2.0", id: m.id, result: r }));
});
"#;

/// Tells progress, or asks for a name and uses it.
const STDIO_TALKS_PYTHON: &str = r#"
import json, sys
def say(**words): print(json.dumps({"jsonrpc": "2.0", **words}), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        r = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "talks", "version": "1"}}
    elif m.get("method") == "tools/call":
        text = "nothing said"
        if m["params"]["name"] == "count":
            for n in (1, 2):
                say(method="notifications/progress", params={"progressToken": m["params"]["_meta"]["progressToken"], "progress": n})
            text = "counted"
        elif m["params"]["name"] == "ask":
            say(id=1, method="elicitation/create", params={"message": "who?", "requestedSchema": {"type": "object", "properties": {}}})
            a = json.loads(sys.stdin.readline())
            text = a["result"]["content"]["name"] if "result" in a else str(a["error"]["code"])
        r = {"content": [{"type": "text", "text": text}]}
    elif "id" in m and "method" in m:
        say(id=m["id"], error={"code": -32601, "message": "unknown"})
        continue
    else:
        continue
    say(id=m["id"], result=r)
"#;
const STDIO_TALKS_NODE: &str = r#"
const lines = require("readline").createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (words) => console.log(JSON.stringify({ jsonrpc: "2.0", ...words }));
(async () => {
  for (let line; !(line = await lines.next()).done;) {
    const m = JSON.parse(line.value);
    if (m.method === "initialize") {
      say({ id: m.id, result: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "talks", version: "1" } } });
    } else if (m.method === "tools/call") {
      let text = "nothing said";
      if (m.params.name === "count") {
        for (const progress of [1, 2]) {
          say({ method: "notifications/progress", params: { progressToken: m.params._meta.progressToken, progress } });
        }
        text = "counted";
      } else if (m.params.name === "ask") {
        say({ id: 1, method: "elicitation/create", params: { message: "who?", requestedSchema: { type: "object", properties: {} } } });
        const a = JSON.parse((await lines.next()).value);
        text = a.result ? a.result.content.name : String(a.error.code);
      }
      say({ id: m.id, result: { content: [{ type: "text", text }] } });
    } else if (m.id !== undefined && m.method !== undefined) {
      say({ id: m.id, error: { code: -32601, message: "unknown" } });
    }
  }
})();
"#;

/// What `asyncio` says of the running loop, where Python is spared asking for its process id each time.
const LOOPS: &str = r#"
import asyncio, os, threading
seen = {}
def running():
    try:
        return asyncio.get_running_loop()
    except RuntimeError as error:
        return str(error)
def elsewhere():
    seen["thread"] = running() == "no running event loop" and asyncio._get_running_loop() is None
async def work():
    loop = asyncio.get_running_loop()
    seen["one loop"] = loop is asyncio.get_event_loop() is asyncio._get_running_loop() is asyncio.current_task().get_loop()
    other = threading.Thread(target=elsewhere)
    other.start()
    other.join()
    child = os.fork()
    if child == 0:
        async def anew():
            return running() is asyncio.current_task().get_loop()
        os._exit(0 if running() == "no running event loop" and asyncio.run(anew()) else 1)
    seen["child"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    seen["parent"] = running() is loop
    nested = asyncio.new_event_loop()
    try:
        nested.run_until_complete(asyncio.sleep(0))
    except RuntimeError as error:
        seen["nested"] = str(error) == "Cannot run the event loop while another loop is running"
    seen["awaited"] = await asyncio.wait_for(asyncio.sleep(0, 7), 5) == 7
asyncio.run(work())
seen["after"] = running() == "no running event loop"
seen["spared"] = type(asyncio.get_running_loop).__name__ == "function"
result = " ".join(sorted(name for name, right in seen.items() if right))
"#;

#[tokio::test(flavor = "multi_thread")]
async fn python_knows_its_running_loop() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let spec = rig.deploy(probe_bundle(), |_| ()).await;
    let answer = rig.call(&spec, "run", json!({"code": LOOPS})).await;
    let answer = answer.expect("an answer");
    assert_eq!(
        text(&answer),
        "after awaited child nested one loop parent spared thread"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_server_is_built_and_called() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let began = Instant::now();
    let spec = rig
        .deploy(
            tarball(&[("server.js", NODE_SERVER), ("package.json", NODE_PACKAGE)]),
            |_| (),
        )
        .await;
    eprintln!("uploaded and built in {:?}", began.elapsed());
    let began = Instant::now();
    let answer = rig.call(&spec, "get_data", json!({"query": "node"})).await;
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => panic!("{error}: {:#?}", rig.logs(&spec).await),
    };
    eprintln!("cold start to the first answer in {:?}", began.elapsed());
    assert_eq!(text(&answer), "Result for: node");
}

#[tokio::test(flavor = "multi_thread")]
async fn stdio_servers_are_served_over_http() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let cases = [
        (
            "py",
            tarball(&[("server.py", STDIO_PYTHON), ("requirements.txt", "")]),
        ),
        (
            "js",
            tarball(&[("server.js", STDIO_NODE), ("package.json", "{}")]),
        ),
    ];
    for (id, bundle) in cases {
        let spec = rig
            .deploy(bundle, |s| {
                s.id = server_id(id);
                s.transport = HostedTransport::Stdio;
            })
            .await;
        for _ in 0..2 {
            let answer = rig.call(&spec, "get_data", json!({"query": "stdio"})).await;
            let answer = match answer {
                Ok(answer) => answer,
                Err(error) => panic!("{id}: {error}: {:#?}", rig.logs(&spec).await),
            };
            assert_eq!(text(&answer), "line for: stdio");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_stdio_server_says_during_a_call_reaches_its_caller() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let cases = [
        (
            "py",
            tarball(&[("server.py", STDIO_TALKS_PYTHON), ("requirements.txt", "")]),
        ),
        (
            "js",
            tarball(&[("server.js", STDIO_TALKS_NODE), ("package.json", "{}")]),
        ),
    ];
    for (id, bundle) in cases {
        let spec = rig
            .deploy(bundle, |s| {
                s.id = server_id(id);
                s.transport = HostedTransport::Stdio;
            })
            .await;
        let lease = rig.lease(&spec, None).await.expect("a sandbox");
        let address = lease.address;
        let talk = tokio::task::spawn_blocking(move || talk_with(address)).await;
        if let Err(error) = talk {
            panic!("{id}: {error}: {:#?}", rig.logs(&spec).await);
        }
        rig.client
            .release(&lease.id, false)
            .await
            .expect("released");
    }
}

/// Two sessions and a client without one, of the same sandbox.
fn talk_with(address: SocketAddr) {
    let [mut one, mut other] = [0, 1].map(|_| {
        let mut client = McpClient::at(address, "/mcp", Era::Handshake);
        client.initialize();
        client
    });
    let plain = one.call("plain", json!({}));
    assert_eq!(plain.head.header("content-type"), Some("application/json"));
    assert_eq!(plain.first_text(), "nothing said");

    let mut stateless = McpClient::at(address, "/mcp", Era::Stateless);
    for client in [&mut one, &mut stateless] {
        let params = json!({"name": "count", "arguments": {}, "_meta": {"progressToken": "mine"}});
        let counted = client.request("tools/call", params);
        let said: Vec<_> = counted.messages.iter().map(|m| &m["params"]).collect();
        assert_eq!(said.len(), 3, "{}", counted.text());
        assert_eq!(said[0], &json!({"progressToken": "mine", "progress": 1}));
        assert_eq!(said[1], &json!({"progressToken": "mine", "progress": 2}));
        assert_eq!(counted.first_text(), "counted");
    }
    // Nobody could answer it.
    assert_eq!(stateless.call("ask", json!({})).first_text(), "-32601");

    let ask = |client: &mut McpClient| {
        let call = client.message("tools/call", json!({"name": "ask", "arguments": {}}));
        let mut stream = client.open(&call);
        let asked = stream.message(PATIENCE).expect("a request");
        assert_eq!(asked["method"], "elicitation/create");
        (stream, asked["id"].clone())
    };
    let answer = |client: &McpClient, id: &Value, name: &str| {
        let result = json!({"action": "accept", "content": {"name": name}});
        client.post(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    };
    let (mut of_one, id) = ask(&mut one);
    let unknown = answer(&one, &json!(7), "nobody");
    assert_eq!(unknown.status(), 400, "{}", unknown.text());
    // The other session has asked nothing yet, whatever the first one has.
    assert_eq!(answer(&other, &id, "another's").status(), 400);
    let (mut of_other, same_id) = ask(&mut other);
    assert_eq!(id, same_id);
    assert_eq!(answer(&other, &id, "other").status(), 202);
    assert_eq!(answer(&one, &id, "one").status(), 202);
    for (stream, name) in [(&mut of_one, "one"), (&mut of_other, "other")] {
        let last = stream.message(PATIENCE).expect("an answer");
        assert_eq!(last["result"]["content"][0]["text"], name, "{last}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_start_or_build_is_explained() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let missing = rig
        .deploy(
            tarball(&[("server.py", "import httpx\n"), ("requirements.txt", "")]),
            |s| s.id = server_id("missing"),
        )
        .await;
    let error = rig
        .call(&missing, "x", json!({}))
        .await
        .expect_err("it cannot start");
    assert!(
        error.contains("httpx") && error.contains("requirements.txt"),
        "{error}"
    );
    let no_file = rig
        .deploy(
            tarball(&[("main.py", ""), ("requirements.txt", "# another\n")]),
            |s| s.id = server_id("nofile"),
        )
        .await;
    let error = rig
        .call(&no_file, "x", json!({}))
        .await
        .expect_err("it cannot start");
    assert!(error.contains("not in the bundle"), "{error}");
    let unknown = rig
        .put(tarball(&[
            ("server.py", ""),
            ("requirements.txt", "no-such-package-weir-7f3a9c==9.9\n"),
        ]))
        .await
        .expect("taken");
    let error = rig
        .build(&unknown)
        .await
        .expect_err("no such package")
        .to_string();
    assert!(error.contains("Hint"), "{error}");
    let refused = rig
        .put(tarball(&[("requirements.txt", "httpx\n-e .\n")]))
        .await
        .expect_err("refused");
    let RunnerError::Refused(error) = refused else {
        panic!("{refused}")
    };
    assert_eq!(
        (error.code, error.refusals[0].line),
        (ErrorCode::BundleRefused, Some(2))
    );
}
