//! `weir policy new`: a project that builds and passes its tests at once, in Rust or JavaScript.

use std::io::Write;
use std::path::Path;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};

use crate::config::check_plugin_name;

/// The project to make.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// Its name, and the name of its folder
    pub name: String,
    /// The language it is written in
    #[arg(long, default_value = "rust")]
    lang: Lang,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Lang {
    Rust,
    Javascript,
}

/// The JavaScript half of the SDK.
pub const JS_SDK: &str = include_str!("../../../../dlp-sdk/js/weir.js");
/// The contract.
pub const WIT: &str = include_str!("../../../../dlp-sdk/wit/policy.wit");

/// The SDK goes into the project: it fits this program's contract wherever the project is moved.
const SDK: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("../../../../dlp-sdk/Cargo.toml")),
    ("wit/policy.wit", WIT),
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

const JS_PACKAGE: &str = r#"{
  "name": "@NAME@",
  "version": "0.1.0",
  "private": true,
  "type": "module",
  "main": "src/plugin.js",
  "devDependencies": { "componentize-qjs": "@TOOL@" }
}
"#;

const JS_PLUGIN: &str = r#"// Blocks calls whose arguments hold a word of a list.

import { definePlugin, Verdict } from "../sdk/weir.js";

export const policy = definePlugin({
  name: "@NAME@",
  version: "0.1.0",
  summary: "Blocks calls whose arguments hold a word of a list",
  configSchema: {
    type: "object",
    properties: { words: { type: "array", items: { type: "string" }, description: "Words that no argument may hold" } },
    additionalProperties: false,
  },
  create({ words = [] }) {
    if (!Array.isArray(words)) throw new Error("words: a list of texts is wanted");
    return words;
  },
  evaluate(words, message) {
    const held = message.under("$.params.arguments").some((leaf) => words.some((word) => leaf.text.includes(word)));
    return held ? Verdict.block("an argument holds a word that is not allowed") : Verdict.pass();
  },
});
"#;

/// The version that the test kit has too.
pub const JS_TOOL_VERSION: &str = "0.4.5";

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
            .replace("@TOOL@", JS_TOOL_VERSION)
    };
    let (policy, next) = match args.lang {
        Lang::Rust => ("src/lib.rs", "weir policy test"),
        Lang::Javascript => (
            "src/plugin.js",
            "npm install --prefix @NAME@ && weir policy test",
        ),
    };
    for (path, text) in files(args.lang) {
        write(&dir.join(path), &fill(text))?;
    }
    if matches!(args.lang, Lang::Rust) {
        for (path, text) in SDK {
            write(&dir.join("sdk").join(path), text)?;
        }
    }
    writeln!(
        out,
        "{name}/{policy}: the policy\n{name}/tests/cases.yml: recorded messages and the decisions expected\nnext: {}",
        fill(next)
    )?;
    Ok(())
}

fn files(lang: Lang) -> Vec<(&'static str, &'static str)> {
    let cases = ("tests/cases.yml", CASES);
    match lang {
        Lang::Rust => vec![
            cases,
            ("Cargo.toml", MANIFEST),
            ("src/lib.rs", LIB),
            ("tests/cases.rs", NATIVE),
            (".gitignore", "/target\n/*.wasm\n/*.wasm.sig\n"),
        ],
        Lang::Javascript => vec![
            cases,
            ("package.json", JS_PACKAGE),
            ("src/plugin.js", JS_PLUGIN),
            ("sdk/weir.js", JS_SDK),
            (".gitignore", "/node_modules\n/*.wasm\n/*.wasm.sig\n"),
        ],
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}
