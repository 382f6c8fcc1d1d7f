//! `weir policy build`: a project in Rust or JavaScript into a component that keeps to the contract.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use clap::Args;

use super::scaffold::{JS_TOOL_VERSION, WIT};

/// The project to build.
#[derive(Debug, Args)]
pub struct BuildArgs {
    /// Its folder; absent: this one, or the only project directly below it
    pub dir: Option<PathBuf>,
}

/// The target of plugins.
const TARGET: &str = "wasm32-unknown-unknown";
/// A stack that stands below everything else, so that its overflow is a trap; and enough memory from
/// the start that none has to be asked for while a message waits.
const RUSTFLAGS: &str = r#"target.wasm32-unknown-unknown.rustflags=["-Clink-arg=-zstack-size=262144","-Clink-arg=--stack-first","-Clink-arg=--initial-memory=2097152"]"#;
/// What makes components of JavaScript, and the file that says how.
const JS_TOOL: &str = "componentize-qjs";
const JS_MANIFEST: &str = "package.json";
/// Largest manifest read.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// The project's folder: the one named, this one, or the only one directly below it.
///
/// # Errors
/// There is none, or more than one.
pub fn find(dir: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(dir) = dir {
        if !is_project(dir) {
            bail!(
                "{} holds neither a Cargo.toml nor a package.json; make a project with `weir policy new NAME`",
                dir.display()
            );
        }
        return Ok(dir.to_owned());
    }
    let here = PathBuf::from(".");
    if is_project(&here) {
        return Ok(here);
    }
    let entries = std::fs::read_dir(&here).context("this folder cannot be read")?;
    let mut below: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("tests").is_dir() && is_project(path))
        .map(|path| path.strip_prefix(".").map_or(path.clone(), Path::to_owned))
        .collect();
    match below.len() {
        1 => Ok(below.remove(0)),
        0 => bail!("there is no plugin project here; make one with `weir policy new NAME`"),
        n => bail!("there are {n} projects here; name the folder of one"),
    }
}

fn is_project(dir: &Path) -> bool {
    dir.join("Cargo.toml").is_file() || dir.join(JS_MANIFEST).is_file()
}

/// Compiles a project and wraps the outcome; gives the component's path, `DIR/NAME.wasm`.
///
/// # Errors
/// It does not compile, a tool is missing, or the outcome breaks the contract.
pub fn build(dir: &Path) -> anyhow::Result<PathBuf> {
    let (name, built) = if dir.join(JS_MANIFEST).is_file() {
        javascript(dir)?
    } else {
        rust(dir)?
    };
    let path = dir.join(format!("{name}.wasm"));
    std::fs::write(&path, plugin_host::component_of(&built)?)
        .with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(path)
}

/// The component that [`build`] left in a project.
///
/// # Errors
/// It was not built, or holds several.
pub fn built(dir: &Path) -> anyhow::Result<PathBuf> {
    let entries =
        std::fs::read_dir(dir).with_context(|| format!("{} cannot be read", dir.display()))?;
    let mut found: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ext| ext == "wasm"))
        .collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => bail!("{} was not built; run `weir policy build`", dir.display()),
        n => bail!("{} holds {n} components; name one", dir.display()),
    }
}

fn rust(dir: &Path) -> anyhow::Result<(String, Vec<u8>)> {
    let built = Command::new("cargo")
        .args(["build", "--release", "--lib", "--target", TARGET])
        .args(["--config", RUSTFLAGS])
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
        // The project's own comes last.
        .rev()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact")
        .filter_map(|message| {
            let files = message["filenames"].as_array()?.iter();
            let mut files = files.filter_map(|file| file.as_str().map(PathBuf::from));
            files.find(|file| file.extension().is_some_and(|ext| ext == "wasm"))
        })
        .next()
        .context("no .wasm came out: is `crate-type = [\"cdylib\"]` in its Cargo.toml?")?;
    let name = module.file_stem().unwrap_or_default().to_string_lossy();
    Ok((name.replace('_', "-"), std::fs::read(&module)?))
}

/// `package.json` names the source (`main`). `weir.moduleRoot` is the folder that imports may reach,
/// where that is not the project's own.
fn javascript(dir: &Path) -> anyhow::Result<(String, Vec<u8>)> {
    let manifest = dir.join(JS_MANIFEST);
    let text = crate::config::read_bounded(&manifest, MANIFEST_BYTES_MAX)
        .map_err(|problem| anyhow::anyhow!("{} {problem}", manifest.display()))?;
    let package: serde_json::Value = serde_json::from_str(&text)
        .with_context(|| format!("{} is no JSON", manifest.display()))?;
    let field = |name: &str| {
        let value = package[name].as_str();
        value.with_context(|| format!("{} has no {name:?}", manifest.display()))
    };
    let name = field("name")?.to_owned();
    crate::config::check_plugin_name(&name)
        .map_err(|problem| anyhow::anyhow!("{}: name: {problem}", manifest.display()))?;
    let root = package["weir"]["moduleRoot"].as_str().unwrap_or(".");
    // The contract comes from this program, which will run what is built.
    let scratch = Scratch::new()?;
    std::fs::write(scratch.0.join("policy.wit"), WIT)?;
    let out = scratch.0.join("plugin.wasm");
    let status = Command::new(js_tool(dir)?)
        .arg("--wit")
        .arg(&scratch.0)
        .arg("--js")
        .arg(field("main")?)
        .arg("--module-root")
        .arg(root)
        // Stubs instead of WASI: the contract has none. `--sync`: the host calls one function and waits.
        .args(["--stub-wasi", "--sync", "--minify", "--output"])
        .arg(&out)
        .current_dir(dir)
        .stdin(Stdio::null())
        // What it reports there is said by this program itself.
        .stdout(Stdio::null())
        .status()
        .with_context(|| {
            format!("{JS_TOOL} cannot be started; is Node.js 18 or later installed?")
        })?;
    if !status.success() {
        bail!("it cannot be made into a component ({JS_TOOL}: {status})");
    }
    Ok((name, std::fs::read(&out)?))
}

/// In the `node_modules` of the project or of a folder above it, or on the path.
fn js_tool(dir: &Path) -> anyhow::Result<PathBuf> {
    let dir = dir
        .canonicalize()
        .with_context(|| format!("{} cannot be read", dir.display()))?;
    let installed = dir
        .ancestors()
        .map(|above| above.join("node_modules/.bin").join(JS_TOOL));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<_> = std::env::split_paths(&path)
        .map(|folder| folder.join(JS_TOOL))
        .collect();
    installed
        .chain(on_path)
        .find(|tool| tool.is_file())
        .with_context(|| {
            format!(
                "{JS_TOOL} is missing; run `npm install` in {} (version {JS_TOOL_VERSION} is known to work)",
                dir.display()
            )
        })
}

/// A folder of this process that goes away again.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> anyhow::Result<Self> {
        let mut name = [0u8; 8];
        getrandom::fill(&mut name).context("the system gives no random numbers")?;
        let folder = std::env::temp_dir().join(format!("weir-{:016x}", u64::from_le_bytes(name)));
        std::fs::create_dir(&folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is the system's to tidy.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
