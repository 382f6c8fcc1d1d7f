//! `weir server ...`

use std::io::{Write as _, stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Map, Value, json};

use super::client::Client;
use super::deploy::{self, DeployArgs};
use super::{ApiArgs, init};
use crate::cli::printable::printable;

/// `weir server ...`
#[derive(Debug, Subcommand)]
pub enum ServerCommand {
    /// Write an example server that deploys as it is
    Init {
        /// The folder to write it into
        #[arg(default_value = ".")]
        path: PathBuf,
        /// Its language
        #[arg(long, value_parser = ["python", "node"], default_value = "python")]
        runtime: String,
    },
    /// Upload a server, install its dependencies, and serve it
    Deploy(Box<DeployArgs>),
    /// All hosted servers
    List {
        #[command(flatten)]
        api: ApiArgs,
    },
    /// One server: its settings, its sandboxes, what they use
    Show(One),
    /// What a server wrote
    Logs {
        #[command(flatten)]
        one: One,
        /// Go on with what comes
        #[arg(long, short)]
        follow: bool,
        /// How many of the last lines
        #[arg(long, default_value_t = 100)]
        tail: u32,
    },
    /// End its sandboxes; the next call starts a new one
    Restart(One),
    /// How many sandboxes it may have
    Scale {
        #[command(flatten)]
        one: One,
        /// Kept ready also when nobody calls, 0 to 16
        #[arg(long)]
        min: Option<u32>,
        /// Never more, 1 to 256
        #[arg(long)]
        max: Option<u32>,
        /// Calls at once in one sandbox, 1 to 1000
        #[arg(long)]
        concurrency: Option<u32>,
    },
    /// End a server: its sandboxes, its secrets and its log go
    Rm(One),
}

/// One server.
#[derive(Debug, Args)]
pub struct One {
    /// Its id
    pub id: String,
    #[command(flatten)]
    pub api: ApiArgs,
}

impl One {
    /// The API, and the server's path in it.
    pub fn open(&self) -> anyhow::Result<(Client, String)> {
        let id = domain::ServerId::parse(&self.id)
            .map_err(|error| anyhow::anyhow!("server id {error}"))?;
        Ok((Client::new(&self.api)?, format!("/api/v1/servers/{id}")))
    }
}

/// Runs it.
pub async fn run(command: ServerCommand) -> anyhow::Result<ExitCode> {
    match command {
        ServerCommand::Init { path, runtime } => init::run(&path, &runtime)?,
        ServerCommand::Deploy(args) => return deploy::run(*args).await,
        ServerCommand::List { api } => list(&Client::new(&api)?).await?,
        ServerCommand::Show(one) => {
            let (client, path) = one.open()?;
            writeln!(stdout(), "{:#}", client.get(&path).await?)?;
        }
        ServerCommand::Logs { one, follow, tail } => logs(&one, follow, tail).await?,
        ServerCommand::Restart(one) => {
            let (client, path) = one.open()?;
            client
                .send(Method::POST, &format!("{path}/restart"), &Value::Null)
                .await?;
            writeln!(stderr(), "restarted {}", one.id)?;
        }
        ServerCommand::Scale {
            one,
            min,
            max,
            concurrency,
        } => {
            let (client, path) = one.open()?;
            let given = [("min", min), ("max", max), ("concurrency", concurrency)];
            let scale: Map<String, Value> = given
                .iter()
                .filter_map(|(n, v)| Some(((*n).to_owned(), json!((*v)?))))
                .collect();
            let server = client
                .send(Method::PATCH, &path, &json!({"scale": scale}))
                .await?;
            writeln!(stdout(), "{}", server["settings"]["scale"])?;
        }
        ServerCommand::Rm(one) => {
            let (client, path) = one.open()?;
            client.send(Method::DELETE, &path, &Value::Null).await?;
            writeln!(stderr(), "removed {}", one.id)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(client: &Client) -> anyhow::Result<()> {
    let all = client.get("/api/v1/servers").await?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for server in all.as_array().into_iter().flatten() {
        let state = if server["refused"].is_string() {
            "refused".to_owned()
        } else if server["stale"] == true {
            "stale".to_owned()
        } else {
            text(&server["state"])
        };
        writeln!(
            stdout(),
            "{:<24} {:<16} {:<10} {}",
            text(&server["id"]),
            text(&server["tenant"]),
            state,
            text(&server["url"])
        )?;
    }
    Ok(())
}

async fn logs(one: &One, follow: bool, tail: u32) -> anyhow::Result<()> {
    let (client, path) = one.open()?;
    let mut lines = client
        .lines(
            Method::GET,
            &format!("{path}/logs?tail={tail}&follow={follow}"),
        )
        .await?;
    while let Some(line) = lines.next().await? {
        let Ok(line) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        if let Some(dropped) = line["dropped"].as_u64().filter(|n| *n > 0) {
            writeln!(stdout(), "... {dropped} lines were lost")?;
        }
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let (sandbox, stream) = (text("sandbox"), text("stream"));
        writeln!(
            stdout(),
            "{sandbox} {stream:<9} {}",
            printable(&text("text"))
        )?;
    }
    Ok(())
}
