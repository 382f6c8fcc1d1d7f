//! `weir-bench peers install`: puts the peers into a folder of their own, from package registries and nothing else.
//!
//! Python packages each get their own virtual environment, for their dependencies do not agree with each other. What was
//! resolved is written to `versions.txt` and stands in every report.

use super::find_program;
use super::programs::default_folder;
use crate::progress::say;
use anyhow::{Context, bail};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Options of `peers`.
#[derive(clap::Args)]
pub struct Peers {
    /// What to do.
    #[command(subcommand)]
    pub action: Action,
}

/// Subcommands of `peers`.
#[derive(clap::Subcommand)]
pub enum Action {
    /// Install them from PyPI, npm and (as root, with apt) Debian; a few minutes and about 1 GB.
    Install {
        /// Where to; by default the cache folder of this project.
        #[arg(long, value_name = "DIR")]
        folder: Option<PathBuf>,
        /// Only these packages.
        #[arg(long, value_delimiter = ',', value_name = "NAME")]
        only: Vec<String>,
    },
    /// Say which are installed, in which version.
    List {
        /// Where.
        #[arg(long, value_name = "DIR")]
        folder: Option<PathBuf>,
    },
}

/// A virtual environment: its folder and what pip is asked for. The first is the peer itself.
const PYTHON: [(&str, &[&str]); 4] = [
    ("mcp-proxy", &["mcp-proxy==0.13.0"]),
    ("mitmproxy", &["mitmproxy"]),
    ("fastmcp", &["fastmcp"]),
    // Its plugins ask for a newer `mcp` than the gateway takes, unless both are resolved together.
    (
        "contextforge",
        &["mcp-contextforge-gateway[plugins]==1.0.7", "mcp<2"],
    ),
];
const NPM: [&str; 2] = ["mcp-proxy@6.7.19", "supergateway@4.0.0"];
const DEBIAN: [&str; 2] = ["nginx-light", "haproxy"];

/// Runs the subcommand.
pub fn run(peers: &Peers) -> anyhow::Result<ExitCode> {
    match &peers.action {
        Action::Install { folder, only } => {
            let folder = folder.clone().unwrap_or_else(default_folder);
            install(&folder, only)
        }
        Action::List { folder } => {
            let folder = folder.clone().unwrap_or_else(default_folder);
            let versions = std::fs::read_to_string(folder.join("versions.txt"));
            say(&versions.unwrap_or_else(|_| "none are installed".to_owned()));
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// One that fails does not keep the others from being installed.
fn install(folder: &Path, only: &[String]) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let wanted = |name: &str| only.is_empty() || only.iter().any(|only| only == name);
    let mut failed = Vec::new();
    let mut note = |name: &str, outcome: anyhow::Result<()>| {
        if let Err(error) = outcome {
            say(&format!("{name}: {error:#}"));
            failed.push(name.to_owned());
        }
    };
    for (name, packages) in PYTHON.iter().filter(|(name, _)| wanted(name)) {
        note(name, python(folder, name, packages));
    }
    if wanted("npm") {
        note("npm", npm(folder));
    }
    if wanted("debian") {
        note("debian", debian());
    }
    let versions = versions(folder);
    std::fs::write(folder.join("versions.txt"), &versions)?;
    say(&format!("in {}:\n{versions}", folder.display()));
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    say(&format!(
        "weir-bench: not installed: {}; the benchmark leaves them out and says so",
        failed.join(", ")
    ));
    Ok(ExitCode::FAILURE)
}

fn python(folder: &Path, name: &str, packages: &[&str]) -> anyhow::Result<()> {
    let venv = folder.join(name);
    say(&format!("installing {}", packages.join(" ")));
    if !venv.join("bin/pip").is_file() {
        let mut make = Command::new("python3");
        quietly(make.args(["-m", "venv"]).arg(&venv))?;
    }
    let mut pip = Command::new(venv.join("bin/pip"));
    pip.args(["install", "-q", "--disable-pip-version-check"]);
    quietly(pip.args(packages))
}

fn npm(folder: &Path) -> anyhow::Result<()> {
    let folder = folder.join("npm");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(
        folder.join("package.json"),
        "{\"name\": \"peers\", \"private\": true}\n",
    )?;
    say(&format!("installing {}", NPM.join(" ")));
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts"]);
    quietly(npm.args(["--loglevel=error"]).args(NPM).current_dir(folder))
}

fn debian() -> anyhow::Result<()> {
    if find_program("nginx").is_some() && find_program("haproxy").is_some() {
        return Ok(());
    }
    if find_program("apt-get").is_none() || !nix::unistd::geteuid().is_root() {
        bail!("please install {} (needs root)", DEBIAN.join(" and "));
    }
    let mut apt = Command::new("apt-get");
    apt.args(["install", "-y", "-qq", "--no-install-recommends"])
        .args(DEBIAN)
        .env("DEBIAN_FRONTEND", "noninteractive");
    quietly(&mut apt)
}

/// Runs to the end; what it said is shown only when it failed.
fn quietly(command: &mut Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{name} cannot be run"))?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let last: Vec<&str> = said.lines().rev().take(8).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        bail!("{name} failed: {}", last.join("\n"));
    }
    Ok(())
}

/// A line for each package that is there: its name and version.
fn versions(folder: &Path) -> String {
    let mut out = String::new();
    for (name, packages) in PYTHON {
        let package = packages[0].split(['=', '[']).next().unwrap_or(packages[0]);
        let python = folder.join(name).join("bin/python");
        let script = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))";
        if let Some(version) = answer(Command::new(python).args(["-c", script, package])) {
            let _ = writeln!(out, "{package} {version}");
        }
    }
    for package in NPM {
        let package = package.split('@').next().unwrap_or(package);
        let file = folder
            .join("npm/node_modules")
            .join(package)
            .join("package.json");
        let version = std::fs::read(file)
            .ok()
            .and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok())
            .and_then(|json| json["version"].as_str().map(str::to_owned));
        if let Some(version) = version {
            let _ = writeln!(out, "npm:{package} {version}");
        }
    }
    out
}

fn answer(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
