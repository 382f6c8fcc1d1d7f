//! `weir server deploy`: from a folder to a URL.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use http::Method;
use serde_json::{Map, Value, json};

use super::client::{Client, error_text};
use super::{ApiArgs, pack};

/// Whose a new server is if nobody says.
const TENANT_DEFAULT: &str = "default";

/// What to deploy, and how it shall run. What is not named keeps its value.
#[derive(Debug, Args)]
pub struct DeployArgs {
    /// The folder of the server, or a .tar.gz of it
    #[arg(default_value = ".")]
    pub path: PathBuf,
    /// Its id, which stands in its URL; default the folder's name
    #[arg(long)]
    pub id: Option<String>,
    /// The tenant that owns it; that of a server which is there is not changed [default for a new one: default]
    #[arg(long)]
    pub tenant: Option<String>,
    /// The command, in words: --command python --command app.py
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    pub command: Vec<String>,
    /// The port on which it listens
    #[arg(long)]
    pub port: Option<u16>,
    /// Path of its MCP endpoint
    #[arg(long, value_name = "PATH")]
    pub endpoint: Option<String>,
    /// It speaks on standard input and output
    #[arg(long)]
    pub stdio: bool,
    /// Plain environment variable; secrets are set with `weir secret set`
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// Where it may connect to, such as api.github.com or '*.example.com:443,8080'; replaces the whole list
    #[arg(long, value_name = "HOST[:PORTS]")]
    pub egress: Vec<String>,
    /// shared, session or call
    #[arg(long, value_parser = ["shared", "session", "call"])]
    pub isolation: Option<String>,
    /// Memory in MiB, 256 to 8192
    #[arg(long, value_name = "MIB")]
    pub memory_mb: Option<u32>,
    /// CPU shares, 512 to 4096
    #[arg(long, value_name = "SHARES")]
    pub cpu_shares: Option<u32>,
    /// The longest call in seconds, 1 to 900
    #[arg(long, value_name = "SECONDS")]
    pub call_timeout_s: Option<u32>,
    /// Let packages without a wheel be built, which runs their code in the build sandbox
    #[arg(long)]
    pub allow_sdist: bool,
    #[command(flatten)]
    pub api: ApiArgs,
}

/// Makes or changes the server, uploads, builds, and prints the URL.
pub async fn run(args: DeployArgs) -> anyhow::Result<ExitCode> {
    let client = Client::new(&args.api)?;
    let id = match &args.id {
        Some(id) => id.clone(),
        None => default_id(&args.path)?,
    };
    let id = domain::ServerId::parse(&id).with_context(|| format!("--id {id}"))?;
    let bytes = pack::bundle(&args.path)?;
    let settings = settings(&args)?;
    put(&client, id.as_str(), args.tenant.as_deref(), settings).await?;
    let total = bytes.len();
    let progress = stderr().is_terminal();
    let told = move |sent: usize| {
        if progress {
            let _ = write!(
                stderr(),
                "\ruploading {} of {} KB",
                sent.div_ceil(1000),
                total.div_ceil(1000)
            );
        }
    };
    let info = client
        .upload(&format!("/api/v1/servers/{id}/bundle"), bytes.into(), told)
        .await?;
    if progress {
        let _ = writeln!(stderr());
    }
    let text = |name: &str| info[name].as_str().unwrap_or_default().to_owned();
    let digest: String = text("id").chars().take(12).collect();
    say(&format!(
        "uploaded {} ({} files, bundle {digest})",
        text("runtime"),
        info["files"]
    ));
    build(&client, id.as_str()).await
}

fn default_id(path: &Path) -> anyhow::Result<String> {
    let path = std::fs::canonicalize(path).with_context(|| path.display().to_string())?;
    let name = path
        .file_name()
        .map(|n| n.to_string_lossy().to_lowercase())
        .unwrap_or_default();
    Ok(name
        .trim_end_matches(".tar.gz")
        .trim_end_matches(".tgz")
        .replace([' ', '.'], "-"))
}

fn settings(args: &DeployArgs) -> anyhow::Result<Map<String, Value>> {
    let mut out = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            out.insert(name.to_owned(), value);
        }
    };
    put(
        "command",
        (!args.command.is_empty()).then(|| json!(args.command)),
    );
    put("port", args.port.map(|p| json!(p)));
    put("path", args.endpoint.as_ref().map(|p| json!(p)));
    put("transport", args.stdio.then(|| json!("stdio")));
    put(
        "egress",
        (!args.egress.is_empty()).then(|| json!(args.egress)),
    );
    put("isolation", args.isolation.as_ref().map(|i| json!(i)));
    put("allow_sdist", args.allow_sdist.then(|| json!(true)));
    let mut env = BTreeMap::new();
    for pair in &args.env {
        let Some((name, value)) = pair.split_once('=') else {
            bail!("--env {pair}: write it as NAME=VALUE");
        };
        env.insert(name, value);
    }
    put("env", (!env.is_empty()).then(|| json!(env)));
    let limits = [
        ("memory_mb", args.memory_mb),
        ("cpu_shares", args.cpu_shares),
        ("call_timeout_s", args.call_timeout_s),
    ];
    let limits: Map<String, Value> = limits
        .iter()
        .filter_map(|(n, v)| Some(((*n).to_owned(), json!((*v)?))))
        .collect();
    put(
        "limits",
        (!limits.is_empty()).then_some(Value::Object(limits)),
    );
    Ok(out)
}

/// Makes the server, or changes the one there is.
async fn put(
    client: &Client,
    id: &str,
    tenant: Option<&str>,
    settings: Map<String, Value>,
) -> anyhow::Result<()> {
    let all = client.get("/api/v1/servers").await?;
    let known = all
        .as_array()
        .into_iter()
        .flatten()
        .find(|server| server["id"] == id);
    if let (Some(known), Some(tenant)) = (known, tenant)
        && known["tenant"] != tenant
    {
        bail!(
            "server {id} is of tenant {}, not of {tenant}; nothing was changed. Give the new one another --id",
            known["tenant"].as_str().unwrap_or_default()
        );
    }
    match known {
        None => {
            let tenant = tenant.unwrap_or(TENANT_DEFAULT);
            let new = json!({"id": id, "tenant": tenant, "settings": settings});
            client.send(Method::POST, "/api/v1/servers", &new).await?;
            say(&format!("made server {id} of tenant {tenant}"));
        }
        Some(_) if settings.is_empty() => {}
        Some(_) => {
            client
                .send(
                    Method::PATCH,
                    &format!("/api/v1/servers/{id}"),
                    &Value::Object(settings),
                )
                .await?;
            say(&format!("changed server {id}"));
        }
    }
    Ok(())
}

async fn build(client: &Client, id: &str) -> anyhow::Result<ExitCode> {
    let mut lines = client
        .lines(Method::POST, &format!("/api/v1/servers/{id}/build"))
        .await?;
    while let Some(line) = lines.next().await? {
        let Some(event) = line
            .strip_prefix("data: ")
            .and_then(|data| serde_json::from_str::<Value>(data).ok())
        else {
            continue;
        };
        match event["event"].as_str().unwrap_or_default() {
            "stage" => say(&format!(
                "{} ({} ms)",
                event["stage"].as_str().unwrap_or_default(),
                event["elapsed_ms"]
            )),
            "output" => say(&format!("  {}", event["line"].as_str().unwrap_or_default())),
            "done" => {
                let layer = &event["layer"];
                let how = if layer["cached"] == true {
                    "cached"
                } else {
                    "built"
                };
                say(&format!(
                    "dependencies {how}: {} packages, {} KB",
                    layer["packages"],
                    layer["bytes"].as_u64().unwrap_or(0) / 1000
                ));
            }
            "deployed" => {
                let url = event["server"]["url"].as_str().unwrap_or_default();
                say("deployed:");
                writeln!(stdout(), "{url}")?;
                return Ok(ExitCode::SUCCESS);
            }
            "failed" => bail!(
                "the build failed: {}",
                error_text(&event["error"]).unwrap_or_default()
            ),
            _ => {}
        }
    }
    bail!(
        "the admin API broke off in the middle of the build; `weir server show {id}` says what became of it"
    )
}

/// A line for the person who waits; the URL alone goes to standard output.
fn say(text: &str) {
    let _ = writeln!(stderr(), "{text}");
}
