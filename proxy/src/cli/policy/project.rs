//! `weir policy new` and `build`: projects in Rust.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use clap::Args;

use crate::config::check_plugin_name;

/// The project to make.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// Its name, and the name of its folder
    pub name: String,
}

/// The project to build.
#[derive(Debug, Args)]
pub struct BuildArgs {
    /// Its folder
    #[arg(default_value = ".")]
    pub dir: PathBuf,
}

/// The target of plugins.
const TARGET: &str = "wasm32-unknown-unknown";
/// A stack that stands below everything else, so that its overflow is a trap; and enough memory from
/// the start that none has to be asked for while a message waits.
const RUSTFLAGS: &str = r#"target.wasm32-unknown-unknown.rustflags=["-Clink-arg=-zstack-size=262144","-Clink-arg=--stack-first","-Clink-arg=--initial-memory=2097152"]"#;

/// The SDK goes into the project: it fits this program's contract wherever the project is moved.
const SDK: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("../../../../dlp-sdk/Cargo.toml")),
    (
        "wit/policy.wit",
        include_str!("../../../../dlp-sdk/wit/policy.wit"),
    ),
    ("src/lib.rs", include_str!("../../../../dlp-sdk/src/lib.rs")),
    (
        "src/alloc.rs",
        include_str!("../../../../dlp-sdk/src/alloc.rs"),
    ),
    (
        "src/bindings.rs",
        include_str!("../../../../dlp-sdk/src/bindings.rs"),
    ),
    (
        "src/glue.rs",
        include_str!("../../../../dlp-sdk/src/glue.rs"),
    ),
    (
        "src/host.rs",
        include_str!("../../../../dlp-sdk/src/host.rs"),
    ),
    (
        "src/message.rs",
        include_str!("../../../../dlp-sdk/src/message.rs"),
    ),
    (
        "src/verdict.rs",
        include_str!("../../../../dlp-sdk/src/verdict.rs"),
    ),
    (
        "src/testing/mod.rs",
        include_str!("../../../../dlp-sdk/src/testing/mod.rs"),
    ),
    (
        "src/testing/cases.rs",
        include_str!("../../../../dlp-sdk/src/testing/cases.rs"),
    ),
    (
        "src/testing/flatten.rs",
        include_str!("../../../../dlp-sdk/src/testing/flatten.rs"),
    ),
    (
        "src/testing/host.rs",
        include_str!("../../../../dlp-sdk/src/testing/host.rs"),
    ),
];

const MANIFEST: &str = r#"[package]
name = "@NAME@"
description = "Blocks calls whose arguments hold a word of a list"
version = "0.1.0"
edition = "2024"

[lib]
crate-type = ["cdylib", "rlib"]

[dependencies]
dlp-sdk = { path = "sdk" }

[dev-dependencies]
dlp-sdk = { path = "sdk", features = ["testing"] }

[profile.release]
opt-level = "s"
lto = true
codegen-units = 1
panic = "abort"
strip = "debuginfo"

[workspace]
exclude = ["sdk"]
"#;

const LIB: &str = r#"//! Blocks calls whose arguments hold a word of a list.

use dlp_sdk::{Host, JsonSchema, Message, Plugin, Verdict, serde::Deserialize};

/// The plugin.
pub struct Words(Config);

/// Its configuration.
#[derive(Deserialize, JsonSchema)]
#[serde(crate = "dlp_sdk::serde", deny_unknown_fields)]
#[schemars(crate = "dlp_sdk::schemars")]
pub struct Config {
    /// Words that no argument may hold.
    #[serde(default)]
    pub words: Vec<String>,
}

impl Plugin for Words {
    type Config = Config;

    fn new(config: Config) -> Result<Self, String> {
        Ok(Words(config))
    }

    fn evaluate(&self, message: &Message, _: &dyn Host) -> Verdict {
        for leaf in message.under("$.params.arguments") {
            if self.0.words.iter().any(|word| leaf.text.contains(word.as_str())) {
                return Verdict::block("an argument holds a word that is not allowed");
            }
        }
        Verdict::pass()
    }
}

dlp_sdk::export!(Words);
"#;

const CASES: &str = r#"config:
  words: [forbidden]
cases:
  - name: what is not on the list passes
    message: { jsonrpc: "2.0", id: 1, method: tools/call, params: { name: echo, arguments: { text: "hello" } } }
    expect: { action: pass }
  - name: a word of the list is blocked
    message: { jsonrpc: "2.0", id: 1, method: tools/call, params: { name: echo, arguments: { text: "a forbidden word" } } }
    expect: { action: block, reason: not allowed }
"#;

const NATIVE: &str = r#"//! The recorded cases on this machine; `weir policy test` runs them against the component.

#[test]
fn cases_come_out_as_they_say() {
    dlp_sdk::testing::run_case_files::<@CRATE@::Words>("tests");
}
"#;

/// Makes a project.
pub fn new(args: &NewArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let name = &args.name;
    check_plugin_name(name).map_err(anyhow::Error::msg)?;
    let dir = Path::new(name);
    if dir.exists() {
        bail!("{name} is there already; choose another name or remove it");
    }
    let fill = |text: &str| {
        text.replace("@NAME@", name)
            .replace("@CRATE@", &name.replace('-', "_"))
    };
    let own = [
        ("Cargo.toml", fill(MANIFEST)),
        ("src/lib.rs", fill(LIB)),
        ("tests/cases.yml", CASES.to_owned()),
        ("tests/cases.rs", fill(NATIVE)),
        (".gitignore", "/target\n/*.wasm\n/*.wasm.sig\n".to_owned()),
    ];
    for (path, text) in own {
        write(&dir.join(path), &text)?;
    }
    for (path, text) in SDK {
        write(&dir.join("sdk").join(path), text)?;
    }
    writeln!(
        out,
        "{name}/src/lib.rs      the policy\n{name}/tests/cases.yml recorded messages and the decisions expected"
    )?;
    writeln!(out, "Next: weir policy test {name}")?;
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}

/// Compiles a project and wraps the outcome; gives the component's path.
pub fn build(dir: &Path) -> anyhow::Result<PathBuf> {
    if !dir.join("Cargo.toml").is_file() {
        bail!(
            "{} holds no Cargo.toml; make a project with `weir policy new NAME`",
            dir.display()
        );
    }
    let built = Command::new("cargo")
        .args([
            "build",
            "--release",
            "--lib",
            "--target",
            TARGET,
            "--config",
            RUSTFLAGS,
        ])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(dir)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cargo cannot be started; is Rust installed (https://rustup.rs)?")?;
    if !built.status.success() {
        bail!("it does not compile. If the target is missing: rustup target add {TARGET}");
    }
    let messages = String::from_utf8_lossy(&built.stdout);
    let module = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact")
        .filter_map(|message| {
            let files = message["filenames"].as_array()?.iter();
            let mut files = files.filter_map(|file| file.as_str().map(PathBuf::from));
            files.find(|file| file.extension().is_some_and(|ext| ext == "wasm"))
        })
        .last()
        .context("no .wasm came out: is `crate-type = [\"cdylib\"]` in its Cargo.toml?")?;
    let component = plugin_host::component_of(&std::fs::read(&module)?)?;
    let name = module
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .replace('_', "-");
    let path = dir.join(format!("{name}.wasm"));
    std::fs::write(&path, component)
        .with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(path)
}
