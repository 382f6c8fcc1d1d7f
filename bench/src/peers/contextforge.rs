//! ContextForge: its environment, and the registration of our upstream with it over its own API.

use crate::load::Endpoint;
use crate::wire::http::Reader;
use anyhow::{Context, bail};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The name under which the upstream is registered; it puts it before each tool's name.
const NAME: &str = "up";
const USER: &str = "admin@example.com";
/// Answers of its API are waited for so long; its first ones take seconds.
const PATIENCE: Duration = Duration::from_secs(90);

/// What is left to do once it listens.
pub struct SetUp {
    upstream: String,
    python: PathBuf,
    key: String,
}

/// Its plugins for personal data and secrets, cutting out what they find in both directions.
const PLUGINS: &str = "plugins:
  - name: PIIFilter
    kind: cpex_pii_filter.pii_filter.PIIFilterPlugin
    hooks: [tool_pre_invoke, tool_post_invoke]
    mode: sequential
    priority: 50
    config: {default_mask_strategy: redact}
  - name: SecretsDetection
    kind: cpex_secrets_detection.secrets_detection.SecretsDetectionPlugin
    hooks: [tool_pre_invoke, tool_post_invoke]
    mode: sequential
    priority: 60
    config: {redact: true, block_on_detection: false}
plugin_dirs: []
plugin_settings: {plugin_timeout: 30, fail_on_plugin_error: true}
";

/// The command line and the environment: SQLite, one worker, caches in memory, rate limit off, loopback allowed.
pub fn configure(
    command: &mut Command,
    folder: &Path,
    addr: SocketAddr,
    plugins: bool,
) -> anyhow::Result<SetUp> {
    let (key, password) = (random()?, random()?);
    // It refuses a key of few different characters, which digits that were drawn may be.
    let key = format!("{key}GHJKMNPQRSTUVWXYZghjkmnpqrstuvwxyz");
    // Its rules want all kinds of characters.
    let password = format!("W{password}!9");
    let database = format!("sqlite:///{}", folder.join("gateway.db").display());
    command.args(["--host", "127.0.0.1", "--port", &addr.port().to_string()]);
    command.env("DATABASE_URL", database);
    for name in ["JWT_SECRET_KEY", "AUTH_ENCRYPTION_SECRET"] {
        command.env(name, &key);
    }
    for name in [
        "PLATFORM_ADMIN_PASSWORD",
        "BASIC_AUTH_PASSWORD",
        "DEFAULT_USER_PASSWORD",
    ] {
        command.env(name, &password);
    }
    for (name, value) in [
        ("PLATFORM_ADMIN_EMAIL", USER),
        ("CACHE_TYPE", "memory"),
        ("RATE_LIMITING_ENABLED", "false"),
        ("SSRF_ALLOW_LOCALHOST", "true"),
        ("SSRF_ALLOW_PRIVATE_NETWORKS", "true"),
        ("MCPGATEWAY_UI_ENABLED", "false"),
        ("ENVIRONMENT", "development"),
        ("LOG_LEVEL", "ERROR"),
        ("PLUGINS_ENABLED", if plugins { "true" } else { "false" }),
    ] {
        command.env(name, value);
    }
    if plugins {
        let file = folder.join("plugins.yaml");
        std::fs::write(&file, PLUGINS).with_context(|| file.display().to_string())?;
        for name in ["PLUGINS_CONFIG_FILE", "PLUGIN_CONFIG_FILE"] {
            command.env(name, &file);
        }
    }
    let program = PathBuf::from(command.get_program());
    Ok(SetUp {
        upstream: String::new(),
        python: program.with_file_name("python"),
        key,
    })
}

impl SetUp {
    /// The same for this upstream.
    pub fn with_upstream(self, upstream: &str) -> SetUp {
        SetUp {
            upstream: upstream.to_owned(),
            ..self
        }
    }

    /// Makes a token, registers the upstream, waits until its tool can be called, and fits the endpoint to it.
    pub fn apply(&self, endpoint: &mut Endpoint) -> anyhow::Result<()> {
        let token = self.token()?;
        let body = serde_json::json!({"name": NAME, "url": self.upstream, "transport": "STREAMABLEHTTP", "visibility": "public"});
        let (status, answer) = post(endpoint, "/gateways", &token, &body.to_string())?;
        if !(200..300).contains(&status) {
            bail!("it did not take the upstream: HTTP {status}: {answer:.300}");
        }
        endpoint.path = "/mcp/".to_owned();
        endpoint
            .headers
            .push(("authorization".to_owned(), format!("Bearer {token}")));
        endpoint.tool_names = Some(format!("{NAME}-{{}}"));
        let start = Instant::now();
        let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        loop {
            let (_, answer) = post(endpoint, "/mcp/", &token, list)?;
            if answer.contains(&format!("\"{NAME}-echo\"")) {
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                bail!("it does not list the upstream's tool: {answer:.300}");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn token(&self) -> anyhow::Result<String> {
        let output = Command::new(&self.python)
            .args(["-m", "mcpgateway.utils.create_jwt_token", "--admin"])
            .args(["--username", USER, "--exp", "10080", "--secret", &self.key])
            .env("JWT_SECRET_KEY", &self.key)
            .env("ENVIRONMENT", "development")
            .stdin(Stdio::null())
            .output()
            .context("its token program cannot be run")?;
        let said = String::from_utf8_lossy(&output.stdout);
        let token = said.lines().next_back().unwrap_or_default().trim();
        if !output.status.success() || token.split('.').count() != 3 {
            bail!(
                "it made no token: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(token.to_owned())
    }
}

fn post(endpoint: &Endpoint, path: &str, token: &str, body: &str) -> anyhow::Result<(u16, String)> {
    let stream = TcpStream::connect_timeout(&endpoint.addr, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut reader = Reader::new(stream);
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        endpoint.host,
        body.len()
    );
    reader.source().write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    let head = reader.answer(&mut answer)?.context("no answer")?;
    Ok((head.status, String::from_utf8_lossy(&answer).into_owned()))
}

/// 32 hexadecimal digits that nobody can guess.
fn random() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    }))
}
