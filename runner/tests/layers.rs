//! Common layers change how a layer is made, and nothing of what is in it; room that was promised is kept.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use common::*;
use domain::TenantId;
use futures_util::{StreamExt as _, stream};
use runner_api::*;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

const PYTHON: &[(&str, &str)] = &[
    ("server.py", include_str!("../bench/server.py")),
    ("requirements.txt", "mcp>=1,<2\nuvicorn\nflask\n"),
];
const NODE: &[(&str, &str)] = &[
    ("server.js", include_str!("../bench/server.js")),
    (
        "package.json",
        r#"{"name": "x", "version": "1.0.0", "type": "module",
            "dependencies": {"@modelcontextprotocol/sdk": "1.x", "express": "5.x", "zod": "3.x", "nanoid": "5.x"}}"#,
    ),
];

/// Uploads, builds and makes a server for a tenant; gives what the installer said, and the layer's packages.
async fn built(rig: &Rig, tenant: &str, files: &[(&str, &str)]) -> (String, PathBuf) {
    let tenant = TenantId::parse(tenant).expect("an id");
    let bundle = Bytes::from(tarball(files));
    let body = stream::iter([Ok(bundle)]).boxed();
    let info = rig.client.put_bundle(&tenant, body).await.expect("taken");
    let request = BuildRequest {
        tenant: tenant.clone(),
        bundle: info.id,
        allow_sdist: false,
    };
    let mut events = rig.client.build(request).await.expect("it begins");
    let mut said = String::new();
    while let Some(event) = events.next().await {
        if let BuildEvent::Output { line } = event.expect("it goes on") {
            said.push_str(&line);
            said.push('\n');
        }
    }
    rig.deploy_for(&tenant, tarball(files), |_| {}).await;
    let layers = rig.state().join("layers").join(tenant_folder(&tenant));
    let layer = std::fs::read_dir(layers).expect("there").next();
    let deps = layer.expect("one").expect("read").path().join("deps");
    (said, deps)
}

fn tenant_folder(tenant: &TenantId) -> String {
    let hash = Sha256::digest(tenant.as_str().as_bytes());
    hash[..16].iter().map(|b| format!("{b:02x}")).collect()
}

async fn common_layer(rig: &Rig, runtime: Runtime) -> u32 {
    let events = rig.client.build_common(runtime, "mcp").await;
    let mut events = events.expect("it begins");
    while let Some(event) = events.next().await {
        if let BuildEvent::Done { layer } = event.expect("it goes on") {
            return layer.packages;
        }
    }
    panic!("a build ended without a word");
}

/// All files with a hash of what they hold. The time in the head of bytecode is when its source was unpacked.
fn files(at: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![at.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("read") {
            let path = entry.expect("read").path();
            let name = path.strip_prefix(at).expect("in it").display().to_string();
            if path.is_symlink() {
                let to = std::fs::read_link(&path).expect("read");
                all.insert(name, to.display().to_string());
            } else if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = std::fs::read(&path).expect("read");
                let head = if name.ends_with(".pyc") { 16 } else { 0 };
                all.insert(name, format!("{:x?}", Sha256::digest(&bytes[head..])));
            }
        }
    }
    all
}

fn one_name_each(at: &Path) {
    use std::os::unix::fs::MetadataExt as _;
    for name in files(at).into_keys().filter(|n| n != ".weir-standard") {
        let meta = std::fs::symlink_metadata(at.join(&name)).expect("there");
        assert_eq!(meta.nlink(), 1, "{name}: its link count tells of others");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_is_the_same_with_a_common_one_and_without() {
    if !possible() {
        return;
    }
    let rig = Rig::start().await;
    let (fetched, without) = built(&rig, "without", PYTHON).await;
    let (node_fetched, node_without) = built(&rig, "node-without", NODE).await;
    assert!(common_layer(&rig, Runtime::Python).await > 20);
    assert!(common_layer(&rig, Runtime::Node).await > 50);
    let unknown = rig.client.build_common(Runtime::Node, "../x").await;
    assert!(unknown.is_err());
    let (poured, with) = built(&rig, "with", PYTHON).await;
    let (without, with) = (files(&without), (files(&with), with));
    let differ: Vec<_> = without
        .iter()
        .filter(|(name, hash)| with.0.get(*name) != Some(hash))
        .map(|(name, _)| name)
        .collect();
    assert!(differ.is_empty(), "{differ:?}");
    let more: Vec<_> = with
        .0
        .keys()
        .filter(|n| !without.contains_key(*n))
        .collect();
    assert!(more.is_empty(), "{more:?}");
    assert!(with.0.len() > 1000 && with.0.keys().any(|n| n.starts_with("flask/")));
    one_name_each(&with.1);

    let (node_poured, node_with) = built(&rig, "node-with", NODE).await;
    let versions = |deps: &Path| -> BTreeMap<String, String> {
        let listing = std::fs::read(deps.join(".package-lock.json")).expect("npm's list");
        let listing: Value = serde_json::from_slice(&listing).expect("JSON");
        let packages = listing["packages"].as_object().expect("packages");
        let each = packages.iter().map(|(place, one)| {
            let word = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
            (
                place.clone(),
                format!("{} {}", word("version"), word("integrity")),
            )
        });
        each.collect()
    };
    assert_eq!(versions(&node_with), versions(&node_without));
    assert_eq!(
        files(&node_with).into_keys().collect::<Vec<_>>(),
        files(&node_without).into_keys().collect::<Vec<_>>()
    );
    assert!(node_with.join("nanoid").is_dir() && !node_with.join("axios").exists());
    one_name_each(&node_with);

    // What the common layers have was not fetched again; what they have not, was.
    let (large, express, nanoid) = ("pydantic-core", "/express/-/", "/nanoid/-/");
    assert!(
        fetched.contains(&format!("Downloading {large}")),
        "{fetched}"
    );
    assert!(
        !poured.contains(&format!("Downloading {large}")),
        "{poured}"
    );
    assert!(node_fetched.contains(express) && node_fetched.contains(nanoid));
    assert!(
        !node_poured.contains(express) && node_poured.contains(nanoid),
        "{node_poured}"
    );

    // Both are servers.
    for tenant in ["with", "node-with"] {
        let tenant = TenantId::parse(tenant).expect("an id");
        let servers = rig.client.servers(Some(&tenant)).await.expect("servers");
        let request = LeaseRequest {
            tenant,
            server: servers[0].server.clone(),
            session: None,
            wait_ms: 60_000,
        };
        let lease = rig.client.lease(request).await.expect("it starts");
        initialize(&lease).await.expect("it answers");
        rig.client
            .release(&lease.id, false)
            .await
            .expect("given back");
    }
    let checks = rig.client.doctor().await.expect("a report").checks;
    let told = |name: &str| {
        checks
            .iter()
            .any(|c| c.name == name && c.found.contains("packages"))
    };
    assert!(told("mcp for python") && told("mcp for node"), "{checks:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn room_that_one_upload_was_promised_is_not_promised_to_another() {
    if !possible() {
        return;
    }
    // For one of 250 MB beside what has to stay free, and not for two.
    let rig = Rig::start_on_a_disk_of(1024 + 400).await;
    let bundle = tarball(&[("server.py", "pass"), ("requirements.txt", "")]);
    let client = rig.client.clone();
    let first = tokio::spawn(async move {
        // One byte, and then nothing.
        let byte = stream::iter([Ok(Bytes::from_static(b"x"))]);
        let body = byte.chain(stream::pending()).boxed();
        client.put_bundle(&tenant(), body).await
    });
    until(
        "the first upload has begun",
        Duration::from_secs(10),
        || async {
            std::fs::read_dir(rig.state().join("uploads")).is_ok_and(|mut all| all.next().is_some())
        },
    )
    .await;
    let refused = rig.put(bundle.clone()).await;
    let refused = refused.expect_err("it is promised to the first");
    assert_eq!(refused.code(), Some(ErrorCode::NoCapacity), "{refused}");
    first.abort();
    until("the first is given up", Duration::from_secs(10), || async {
        rig.put(bundle.clone()).await.is_ok()
    })
    .await;
}
