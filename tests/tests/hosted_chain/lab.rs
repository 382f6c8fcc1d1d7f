//! A real runner, a real Weir, and what is deployed on them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;
use weir_tests::config::{Config, TENANT};
use weir_tests::runner::Runner;
use weir_tests::weir::{Start, run};
use weir_tests::{Admin, Client, Era, Value, Weir, json};

/// All of it. Fields end in this order: what hosts goes last.
pub struct Lab {
    pub weir: Weir,
    pub admin: Admin,
    pub key: String,
    pub other_key: String,
    document: Value,
    files: TempDir,
    pub runner: Runner,
}

impl Lab {
    /// `None` where sandboxes cannot run; that was said then.
    pub fn start() -> Option<Self> {
        let runner = Runner::start()?;
        let mut config = Config::new("http://127.0.0.1:9/mcp")
            .set("hosting.runner", json!(runner.socket()))
            .set("hosting.listen", json!("127.0.0.1:0"));
        let (key, other_key) = (config.key(TENANT, "mine"), config.key("other", "theirs"));
        let files = TempDir::new().expect("a temporary folder");
        let dir = Arc::new(TempDir::new().expect("a temporary folder"));
        let weir = Start::serve_in(dir, &config).ready();
        let admin = Admin::of(&weir);
        let (status, document) = admin.json("GET", "/api/v1/openapi.json", &Value::Null);
        assert_eq!(status, 200);
        let lab = Self {
            weir,
            admin,
            key,
            other_key,
            document,
            files,
            runner,
        };
        // The smallest plan has two servers.
        let plan = json!({"plan": "power"});
        lab.rest("PATCH", "/api/v1/tenants/{tenant}", TENANT, &plan);
        Some(lab)
    }

    /// `weir server deploy`; gives the URL that it prints.
    pub fn deploy(&self, folder: &Path, id: &str, settings: &[&str]) -> String {
        let folder = folder.display().to_string();
        let words = ["server", "deploy", &folder, "--id", id, "--tenant", TENANT];
        let (ok, url, said) = self.admin.cli(&[&words, settings].concat(), "");
        assert!(ok, "{id}: {said}");
        assert_eq!(url.trim(), self.url(id), "the URL alone is on stdout");
        url.trim().to_owned()
    }

    /// The same by REST, as somebody does it who has read nothing but the OpenAPI document: make it, upload, build.
    pub fn deploy_by_rest(&self, folder: &Path, id: &str) -> String {
        let new = json!({"id": id, "tenant": TENANT});
        self.rest("POST", "/api/v1/servers", "", &new);
        let archive = std::fs::read(self.tarball(folder)).expect("tar has written it");
        let bundle = self.send(
            "PUT",
            "/api/v1/servers/{id}/bundle",
            id,
            "application/gzip",
            &archive,
        );
        assert!(bundle.contains(r#""runtime":"python""#), "{bundle}");
        let events = self.send("POST", "/api/v1/servers/{id}/build", id, "", b"");
        let events: Vec<Value> = events
            .lines()
            .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
            .collect();
        let last = events.last().expect("events of the build");
        assert_eq!(last["event"], "deployed", "{events:#?}");
        last["server"]["url"].as_str().expect("a URL").to_owned()
    }

    /// An archive made by the command that users are told.
    fn tarball(&self, folder: &Path) -> PathBuf {
        let archive = self.files.path().join("my-mcp-server.tar.gz");
        let made = Command::new("tar")
            .arg("-czf")
            .arg(&archive)
            .arg("-C")
            .arg(folder)
            .args(["server.py", "requirements.txt"])
            .status();
        assert!(made.is_ok_and(|s| s.success()), "tar");
        archive
    }

    /// The example of `weir server init`.
    pub fn example(&self, runtime: &str) -> PathBuf {
        let folder = self.files.path().join(runtime);
        let text = folder.display().to_string();
        let made = run(&["server", "init", &text, "--runtime", runtime], "");
        assert!(made.status.success(), "{made:?}");
        folder
    }

    /// A request with JSON that must succeed.
    pub fn rest(&self, method: &str, path: &str, id: &str, body: &Value) -> Value {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let answer = self.send(method, path, id, "application/json", body.as_bytes());
        serde_json::from_str(&answer).unwrap_or_default()
    }

    /// A request that stands in the OpenAPI document, with the kind of body that the document names.
    fn send(&self, method: &str, path: &str, id: &str, kind: &str, body: &[u8]) -> String {
        let operation = &self.document["paths"][path][method.to_lowercase()];
        assert!(operation.is_object(), "{method} {path} is not described");
        if !body.is_empty() {
            let kinds = &operation["requestBody"]["content"];
            assert!(kinds[kind].is_object(), "{method} {path}: {kinds}");
        }
        let path = path.replace("{id}", id).replace("{tenant}", id);
        let answer = self.admin.request(method, &path, kind, body);
        let text = answer.text();
        assert!(
            (200..300).contains(&answer.status()),
            "{method} {path}: {} {text}",
            answer.status()
        );
        text
    }

    /// What happened to a server.
    pub fn events(&self, id: &str) -> Vec<Value> {
        let events = self.rest("GET", "/api/v1/servers/{id}/events", id, &Value::Null);
        events.as_array().cloned().unwrap_or_default()
    }

    /// What a server wrote.
    pub fn logs(&self, id: &str) -> String {
        let (ok, out, said) = self
            .admin
            .cli(&["server", "logs", id, "--tail", "10000"], "");
        assert!(ok, "{said}");
        out
    }

    /// Where clients find a server.
    pub fn url(&self, id: &str) -> String {
        format!("http://{}{}", self.weir.addr, path(id))
    }

    /// A client of a server that sends exactly what the test wants.
    pub fn client(&self, id: &str, era: Era, key: &str) -> Client {
        let mut client = Client::at(self.weir.addr, &path(id), era);
        client.headers.push(("X-API-Key".into(), key.to_owned()));
        client
    }
}

fn path(id: &str) -> String {
    format!("/sandbox/{id}/mcp")
}

/// A server of `fixtures/hosted`.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/hosted")
        .join(name)
}
