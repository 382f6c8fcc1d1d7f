//! A canary in every secret of several tenants and servers, the whole life of their sandboxes, and then a search for each
//! in everything that the runner, its sandboxes and their processes left behind: in no form but sealed.

mod common;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::*;
use domain::TenantId;
use runner_api::{Runner as _, *};
use serde_json::json;
use weir_tests::Canary;
use weir_tests::search::{Found, Search};

/// A server whose secrets are its own canaries.
struct Kept {
    spec: ServerSpec,
    /// The one that is set now, by its place in the list of all; the others were replaced.
    now: BTreeMap<&'static str, usize>,
}

struct Lab {
    rig: Rig,
    canaries: Vec<Canary>,
    servers: Vec<Kept>,
}

const SECRETS: [&str; 2] = ["API_KEY", "DB_PASSWORD"];

impl Lab {
    async fn set(&mut self, server: usize, secret: &'static str) {
        self.canaries.push(Canary::github());
        let canary = self.canaries.last().expect("pushed").value();
        let name = SecretName::parse(secret).expect("a name");
        let value = SecretValue::new(canary.as_bytes().to_vec()).expect("a value");
        let Kept { spec, now } = &mut self.servers[server];
        let client = &self.rig.client;
        client
            .set_secret(&spec.tenant, &spec.id, &name, value)
            .await
            .expect("set");
        now.insert(secret, self.canaries.len() - 1);
        client
            .restart_server(&spec.tenant, &spec.id)
            .await
            .expect("restarted");
    }

    async fn deploy(
        &mut self,
        tenant: &str,
        id: &str,
        change: impl FnOnce(&mut ServerSpec),
    ) -> usize {
        let tenant = TenantId::parse(tenant).expect("an id");
        let change = |spec: &mut ServerSpec| {
            spec.id = server_id(id);
            change(spec);
        };
        let spec = self.rig.deploy_for(&tenant, probe_bundle(), change).await;
        self.servers.push(Kept {
            spec,
            now: BTreeMap::new(),
        });
        let server = self.servers.len() - 1;
        for secret in SECRETS {
            self.set(server, secret).await;
        }
        server
    }

    /// Has the server read its secrets, and compares: a search for what was never there says nothing.
    async fn reads_its_secrets(&self, server: usize) {
        let Kept { spec, now } = &self.servers[server];
        for (name, canary) in now {
            let code = format!("result = open('/run/secrets/{name}').read()");
            let answer = self.rig.call(spec, "run", json!({ "code": code })).await;
            assert_eq!(
                text(&answer.expect("an answer")),
                self.canaries[*canary].value(),
                "{}",
                spec.id
            );
        }
    }

    /// Everything that the runner says, in one text.
    async fn said(&self) -> String {
        let client = &self.rig.client;
        let mut said = format!(
            "{:?} {:?} {:?} {:?}",
            client.doctor().await.expect("doctor"),
            client.servers(None).await.expect("servers"),
            client.usage(0).await.expect("usage"),
            self.rig.events().await,
        );
        for Kept { spec, .. } in &self.servers {
            if let Ok(names) = client.list_secrets(&spec.tenant, &spec.id).await {
                said += &format!("{names:?} {:?}", self.rig.logs(spec).await);
            }
        }
        said
    }

    /// What is found where it may not be. The one place where a value may stand is the memory file system of a running
    /// sandbox of its own server.
    fn misplaced(&self, search: &Search) -> Vec<Found> {
        let seen = search.tree(self.rig.dir.path());
        assert!(seen.files > 50 && seen.bytes > 1 << 20, "{seen:?}");
        // A namespace is a file that nobody can read.
        let namespaces = self.rig.dir.path().join("run/netns");
        assert!(
            seen.unread.iter().all(|path| path.starts_with(&namespaces)),
            "{:?}",
            seen.unread
        );
        let mounts = std::fs::read_to_string("/proc/self/mounts").expect("mounts");
        let own = |found: &Found| {
            let (Some(folder), Some(name)) = (found.place.parent(), found.place.file_name()) else {
                return false;
            };
            let on_tmpfs = format!("weir-secrets {} tmpfs ", folder.display());
            let saved = |id: &Path| {
                std::fs::read_to_string(
                    self.rig
                        .state()
                        .join("boxes")
                        .join(id)
                        .with_extension("json"),
                )
            };
            let Some(Ok(saved)) = folder
                .parent()
                .and_then(Path::file_name)
                .map(|id| saved(id.as_ref()))
            else {
                return false;
            };
            mounts.contains(&on_tmpfs)
                && self.servers.iter().any(|Kept { spec, now }| {
                    saved.contains(&format!(
                        "\"tenant\":\"{}\",\"server\":\"{}\"",
                        spec.tenant, spec.id
                    )) && now.get(name.to_str().unwrap_or_default()) == Some(&found.canary)
                })
        };
        let (own, mut wrong): (Vec<_>, Vec<_>) = seen.found.into_iter().partition(own);
        assert!(!own.is_empty(), "sandboxes run, so their secrets are seen");
        wrong.extend(search.processes().found);
        wrong
    }
}

fn key_file(dir: &Path, name: &str, byte: u8) -> String {
    let path = dir.join(name);
    std::fs::write(&path, [byte; 32]).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
        .expect("for its owner only");
    path.display().to_string()
}

/// Processes of this runner: itself and those that run its sandboxes.
fn processes(rig: &Rig) -> Vec<PathBuf> {
    let run = rig.dir.path().join("run").display().to_string();
    let all = std::fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .map(|e| e.path());
    let ours = all.filter(|p| {
        let line = std::fs::read(p.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&run)
    });
    ours.collect()
}

/// With 0 a program named in `core_pattern` is still given the dump; with 1 nobody is.
fn no_process_leaves_a_core(rig: &Rig) {
    let processes = processes(rig);
    assert!(
        processes.len() > 3,
        "the runner and sandboxes: {processes:?}"
    );
    for process in processes {
        let Ok(limits) = std::fs::read_to_string(process.join("limits")) else {
            continue;
        };
        let core = limits
            .lines()
            .find(|l| l.starts_with("Max core file size"))
            .expect("a line");
        let words: Vec<_> = core.split_whitespace().collect();
        assert_eq!(words[4..6], ["1", "1"], "{}: {core}", process.display());
    }
}

async fn lab() -> Lab {
    let rig = Rig::start().await;
    let mut lab = Lab {
        rig,
        canaries: Vec::new(),
        servers: Vec::new(),
    };
    lab.deploy("acme", "one", |_| ()).await;
    lab.deploy("acme", "frozen", |s| s.idle.freeze_after_s = 1)
        .await;
    lab.deploy("other", "one", |s| s.isolation = Isolation::Session)
        .await;
    lab.deploy("other", "restored", |s| {
        s.isolation = Isolation::Call;
        s.trust_checkpoint_with_secrets = true;
    })
    .await;
    lab
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_nowhere_but_sealed_and_in_its_own_sandbox() {
    if !possible() {
        return;
    }
    let mut lab = lab().await;
    // Read, and written out by the server itself, as a traceback would.
    for server in [0, 1, 3] {
        lab.reads_its_secrets(server).await;
    }
    let lease = lab
        .rig
        .lease(&lab.servers[2].spec, Some("one"))
        .await
        .expect("a sandbox");
    let loud = "import sys\nfor n in ('API_KEY', 'DB_PASSWORD'):\n v = open('/run/secrets/' + n).read()\n print('my key is', v, flush=True)\n print(v[::-1], file=sys.stderr, flush=True)";
    call_tool(&lease, "run", json!({ "code": loud }))
        .await
        .expect("an answer");
    let spec = lab.servers[2].spec.clone();
    until(
        "four lines are in the log",
        Duration::from_secs(10),
        || async {
            lab.rig
                .logs(&spec)
                .await
                .iter()
                .filter(|l| l.text.contains("[secret]"))
                .count()
                == 4
        },
    )
    .await;
    // Restored from an image that holds what the server had read.
    lab.reads_its_secrets(3).await;
    let restored =
        |e: &Event| matches!(&e.kind, EventKind::Ready { from, .. } if from == "restored");
    assert!(
        lab.rig.events().await.iter().any(restored),
        "no sandbox was restored"
    );
    failed_start(&mut lab).await;
    // Every key is replaced: a value by another, the root key by another file, in a new life of the runner.
    lab.set(0, "API_KEY").await;
    lab.set(3, "DB_PASSWORD").await;
    lab.reads_its_secrets(0).await;
    let old = lab.rig.state().join("vault.key").display().to_string();
    let new = key_file(lab.rig.dir.path(), "new.key", 9);
    lab.rig
        .kill_and_start_with(&["--vault-key", &new, "--vault-key-before", &old])
        .await;
    std::fs::remove_file(&old).expect("the old key is not needed");
    lab.rig.kill_and_start_with(&["--vault-key", &new]).await;
    for server in [0, 1, 3] {
        lab.reads_its_secrets(server).await;
    }
    // A server that goes leaves nothing of its secrets.
    let gone = lab.servers.remove(1);
    lab.rig
        .client
        .remove_server(&gone.spec.tenant, &gone.spec.id)
        .await
        .expect("removed");
    lab.deploy("acme", "frozen", |s| s.idle.freeze_after_s = 1)
        .await;
    let last = lab.servers.len() - 1;
    lab.reads_its_secrets(last).await;
    until("one is frozen", Duration::from_secs(20), || async {
        lab.rig
            .sandboxes()
            .await
            .iter()
            .any(|s| s.state == SandboxState::Frozen)
    })
    .await;
    nothing_is_found(&mut lab).await;
}

/// One that writes a secret out and ends: its last words go to its owner.
async fn failed_start(lab: &mut Lab) {
    let dying = "import sys, time\nprint('about to', flush=True)\ntime.sleep(1)\nsys.exit('cannot log in with ' + open('/run/secrets/API_KEY').read())\n";
    let bundle = tarball(&[("server.py", dying), ("requirements.txt", "# nothing\n")]);
    let tenant = lab.servers[0].spec.tenant.clone();
    let spec = lab
        .rig
        .deploy_for(&tenant, bundle, |s| s.id = server_id("dying"))
        .await;
    lab.servers.push(Kept {
        spec: spec.clone(),
        now: BTreeMap::new(),
    });
    lab.set(lab.servers.len() - 1, "API_KEY").await;
    let error = lab
        .rig
        .call(&spec, "run", json!({"code": ""}))
        .await
        .expect_err("it cannot start");
    assert!(error.contains("cannot log in with [secret]"), "{error}");
}

async fn nothing_is_found(lab: &mut Lab) {
    let search = Search::new(&lab.canaries);
    no_process_leaves_a_core(&lab.rig);
    assert_eq!(lab.misplaced(&search), []);
    let said = lab.said().await;
    assert!(
        said.contains("API_KEY") && said.contains("[secret]"),
        "{said}"
    );
    assert_eq!(search.bytes("what the runner says", said.as_bytes()), []);
    // The same search finds what is planted: one in each kind of place.
    let place = lab.rig.state().join("logs/planted");
    std::fs::write(
        &place,
        format!("{{\"x\":\"{}\"}}", lab.canaries[0].base64()),
    )
    .expect("planted");
    let image = lab.rig.state().join("checkpoints/planted");
    std::fs::write(&image, lab.canaries[5].value()).expect("planted");
    let found = lab.misplaced(&search);
    let told: Vec<_> = found
        .iter()
        .map(|f| (f.canary, f.form, f.place.as_path()))
        .collect();
    assert!(
        told.contains(&(0, "base64", &place)) && told.contains(&(5, "plain", &image)),
        "{told:?}"
    );
    assert_eq!(told.len(), 2, "{told:?}");
    for planted in [place, image] {
        std::fs::remove_file(planted).expect("removed");
    }
    // And when all is over, not even the sandboxes' own are left.
    assert!(lab.rig.purge());
    let seen = search.tree(lab.rig.dir.path());
    assert!(seen.found.is_empty() && seen.files > 20, "{seen:?}");
}
