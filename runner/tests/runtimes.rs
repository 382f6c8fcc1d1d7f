//! Node, and stdio servers of both runtimes.

mod common;

use std::time::Instant;

use common::*;
use runner_api::*;
use serde_json::json;

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
