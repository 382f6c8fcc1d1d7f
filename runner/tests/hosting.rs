//! Real sandboxes, from the upload to the answer.

mod common;

use std::time::{Duration, Instant};

use common::*;
use runner_api::*;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn the_seeds_server_is_uploaded_built_and_called() {
    if !possible() {
        return;
    }
    let runner = Rig::start().await;
    let bundle = tarball(&[
        ("server.py", SEED_SERVER),
        ("requirements.txt", SEED_REQUIREMENTS),
    ]);
    let began = Instant::now();
    let spec = runner.deploy(bundle.clone(), |_| ()).await;
    eprintln!("uploaded and built in {:?}", began.elapsed());
    let began = Instant::now();
    let result = runner
        .call(&spec, "get_data", json!({"query": "weir"}))
        .await
        .expect("an answer");
    eprintln!("cold start to the first answer in {:?}", began.elapsed());
    assert_eq!(text(&result), "Result for: weir");
    // The same bundle again is found, not built.
    let info = runner.put(bundle).await.expect("taken");
    assert!(runner.build(&info).await.expect("found").cached);
    assert_eq!(info.dependencies.len(), 3);
    let events = runner.events().await;
    assert!(
        events
            .iter()
            .any(|e| matches!(&e.kind, EventKind::Ready { from, .. } if from == "cold")),
        "{events:?}"
    );
    let logs = runner.logs(&spec).await;
    assert!(
        logs.iter().any(|l| l.text.contains("Uvicorn running")),
        "{logs:?}"
    );
    let second = Instant::now();
    runner
        .call(&spec, "get_data", json!({"query": "x"}))
        .await
        .expect("an answer");
    assert!(
        second.elapsed() < Duration::from_millis(500),
        "warm: {:?}",
        second.elapsed()
    );
}
