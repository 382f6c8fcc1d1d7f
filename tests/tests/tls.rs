//! TLS on the client listener and to upstreams, with certificates made by the `openssl` program and calls by `curl`.

use std::path::{Path, PathBuf};
use std::process::Command;

use weir_tests::config::{Config, SERVER, TENANT};
use weir_tests::http::Conn;
use weir_tests::wait::{self, PATIENCE};
use weir_tests::{Canary, Client, Era, Upstream, Value, Weir, json, kit};

/// A folder with a certificate authority and certificates of it.
struct Certificates(tempfile::TempDir);

impl Certificates {
    fn new() -> Self {
        let this = Self(tempfile::TempDir::new().expect("a temporary folder"));
        this.openssl("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca");
        this
    }

    /// Makes (or replaces) `server.pem` and `server.key` for localhost, valid so many days.
    fn issue(&self, days: u32) {
        std::fs::write(
            self.path("ext"),
            "subjectAltName=DNS:localhost,IP:127.0.0.1\n",
        )
        .expect("the folder is writable");
        self.openssl("req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout new.key -out new.csr -subj /CN=localhost");
        self.openssl(&format!("x509 -req -in new.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days {days} -extfile ext -out new.pem"));
        for (from, to) in [("new.key", "server.key"), ("new.pem", "server.pem")] {
            std::fs::rename(self.path(from), self.path(to)).expect("the same folder");
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn tls(&self) -> Value {
        json!({ "cert_file": self.path("server.pem"), "key_file": self.path("server.key") })
    }

    fn openssl(&self, args: &str) {
        let output = Command::new("openssl")
            .args(args.split(' '))
            .current_dir(self.0.path())
            .output()
            .expect("openssl can be run");
        assert!(
            output.status.success(),
            "openssl {args}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// A call by curl: exit code and output.
fn curl(weir: &Weir, ca: &Path, message: &str, options: &[&str]) -> (i32, String) {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "echo",
        "arguments": { "message": message }, "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "c", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {} } } })
    .to_string();
    let output = Command::new("curl")
        .args(["-sS", "--max-time", "20", "--cacert"])
        .arg(ca)
        .args([
            "-H",
            "Content-Type: application/json",
            "-H",
            "Accept: application/json, text/event-stream",
        ])
        .args([
            "-H",
            "MCP-Protocol-Version: 2026-07-28",
            "-H",
            "Mcp-Method: tools/call",
            "-H",
            "Mcp-Name: echo",
        ])
        .args(["-d", &body])
        .args(options)
        .arg(format!(
            "https://localhost:{}{}",
            weir.addr.port(),
            weir.path()
        ))
        .output()
        .expect("curl can be run");
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (output.status.code().unwrap_or(-1), text)
}

#[test]
fn calls_over_tls_are_judged_and_old_versions_refused() {
    if !kit::ready() {
        return;
    }
    let certificates = Certificates::new();
    certificates.issue(1);
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()).set("tls", certificates.tls()));
    let ca = certificates.path("ca.pem");
    let canary = Canary::github();
    for version in ["--http1.1", "--http2"] {
        let (code, text) = curl(&weir, &ca, "hi", &[version]);
        assert!(
            code == 0 && text.contains("Echo: hi"),
            "{version}: {code} {text}"
        );
        let (_, text) = curl(&weir, &ca, canary.value(), &[version]);
        assert!(text.contains("\"isError\":true"), "{version}: {text}");
    }
    let (code, text) = curl(&weir, &ca, "hi", &["--tls-max", "1.2"]);
    assert!(
        code == 0 && text.contains("Echo: hi"),
        "TLS 1.2: {code} {text}"
    );
    for old in ["1.0", "1.1"] {
        let (code, text) = curl(
            &weir,
            &ca,
            "hi",
            &[
                "--tlsv1.0",
                "--tls-max",
                old,
                "--ciphers",
                "DEFAULT@SECLEVEL=0",
            ],
        );
        assert_ne!(code, 0, "TLS {old}: {text}");
    }
    let records = weir_tests::weir::audit(&weir, &[]);
    let named = |r: &Value| {
        r["client"]
            .as_str()
            .is_some_and(|c| c.starts_with("127.0.0.1:"))
    };
    assert!(
        !records.is_empty() && records.iter().all(named),
        "{records:?}"
    );
    // Plain HTTP to the TLS port is no way in.
    let mut conn = Conn::open(weir.addr);
    conn.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(!conn.rest(PATIENCE).bytes.starts_with(b"HTTP/1.1 2"));
    weir.assert_nowhere(&canary, "tls");
}

#[test]
fn who_agrees_on_http_2_and_then_says_nothing_is_cut() {
    if !kit::ready() {
        return;
    }
    let certificates = Certificates::new();
    certificates.issue(1);
    let upstream = Upstream::mcp(|_| None);
    let config = Config::new(&upstream.url())
        .set("tls", certificates.tls())
        .set("limits", json!({ "header_timeout_ms": 700 }));
    let weir = Weir::serve(&config);
    let mut silent = Command::new("openssl")
        .args(["s_client", "-quiet", "-alpn", "h2", "-connect"])
        .arg(weir.addr.to_string())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("openssl can be run");
    wait::until("the cut", PATIENCE, || {
        silent.try_wait().expect("our own child")
    });
}

#[test]
fn a_new_certificate_is_taken_while_it_runs_and_a_broken_one_is_not() {
    if !kit::ready() {
        return;
    }
    let certificates = Certificates::new();
    certificates.issue(1);
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()).set("tls", certificates.tls()));
    let ca = certificates.path("ca.pem");
    let serial = || {
        let (code, text) = curl(&weir, &ca, "hi", &["--verbose"]);
        assert!(code == 0 && text.contains("Echo: hi"), "{code} {text}");
        // The authority is the same, so the end of the validity tells them apart.
        text.lines()
            .find(|l| l.contains("expire date"))
            .unwrap_or_default()
            .to_owned()
    };
    let before = serial();
    certificates.issue(2);
    wait::until("the new certificate", PATIENCE, || {
        (serial() != before).then_some(())
    });
    let now = serial();
    std::fs::write(certificates.path("server.pem"), "broken").expect("the folder is writable");
    weir.wait_for_log("server.pem");
    assert_eq!(serial(), now, "the old one stays");
}

#[test]
fn an_upstream_over_https_is_checked() {
    if !kit::ready() {
        return;
    }
    let (ours, foreign) = (Certificates::new(), Certificates::new());
    ours.issue(1);
    let upstream = Upstream::mcp(|_| None);
    // A Weir with TLS is as good an https server as any.
    let server = Weir::serve(
        &Config::new(&upstream.url())
            .set("tls", ours.tls())
            .set("hosts", json!(["localhost"])),
    );
    let url = |host: &str| format!("https://{host}:{}{}", server.addr.port(), server.path());
    let call = |url: &str, ca: Option<PathBuf>| {
        let mut config = Config::new(url);
        if let Some(ca) = ca {
            config = config.set(
                &format!("tenants.{TENANT}.servers.{SERVER}.upstream.ca_file"),
                json!(ca),
            );
        }
        Client::connect(&Weir::serve(&config), Era::Stateless)
            .call("echo", json!({ "message": "hi" }))
    };
    let good = call(&url("localhost"), Some(ours.path("ca.pem")));
    assert_eq!(good.first_text(), "Echo: hi", "{}", good.text());
    for (name, answer) in [
        ("an unknown authority", call(&url("localhost"), None)),
        (
            "a foreign authority",
            call(&url("localhost"), Some(foreign.path("ca.pem"))),
        ),
        (
            "another name",
            call(&url("127.0.0.2"), Some(ours.path("ca.pem"))),
        ),
    ] {
        assert_eq!(answer.told_status(), 502, "{name}: {}", answer.text());
    }
}
