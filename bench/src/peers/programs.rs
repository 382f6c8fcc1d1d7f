//! Other people's MCP proxies: how each is started in front of our echo server, with nothing on that slows it needlessly.
//!
//! | peer | speaks to | looks at messages |
//! |---|---|---|
//! | mcp-proxy (PyPI), mcp-proxy (npm), supergateway | a stdio child | no |
//! | FastMCP's proxy | our HTTP upstream | no |
//! | mitmproxy with `peers/mitm_addon.py` | our HTTP upstream | four regexes |
//! | ContextForge | our HTTP upstream | with its plugins: personal data and secrets |

use super::contextforge;
use crate::floors::free_port;
use crate::load::Endpoint;
use crate::target::Kind;
use crate::wire::rpc::Era;
use anyhow::{Context, bail};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How to start one.
pub struct Plan {
    /// The command.
    pub command: Command,
    /// Where it will listen.
    pub addr: SocketAddr,
    /// The path of its MCP endpoint.
    pub path: String,
    /// What has to be set up over HTTP once it listens, if anything.
    pub set_up: Option<contextforge::SetUp>,
}

/// What all of them are started from.
pub struct Parts<'a> {
    /// Where `weir-bench peers install` has put them.
    pub folder: &'a Path,
    /// This program, which is also an echo server on standard input and output.
    pub own_program: &'a Path,
    /// A folder for their files.
    pub scratch: &'a Path,
    /// URL of the upstream.
    pub upstream: &'a str,
}

/// Where peers are installed, unless the command line says otherwise.
pub fn default_folder() -> PathBuf {
    cache_folder().join("peers")
}

/// What this project keeps outside of its checkout.
pub fn cache_folder() -> PathBuf {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = variable("WEIR_CACHE").map(PathBuf::from).or_else(|| {
        variable("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".cache")))
            .map(|cache| cache.join("weir"))
    });
    cache.unwrap_or_else(|| PathBuf::from(".cache/weir"))
}

impl Parts<'_> {
    /// The command of a peer; `None` when it is not installed.
    pub fn plan(&self, kind: Kind) -> anyhow::Result<Option<Plan>> {
        let Some(program) = self.program(kind).filter(|program| program.is_file()) else {
            return Ok(None);
        };
        let addr = free_port()?;
        let port = addr.port().to_string();
        let own = self.own_program.to_string_lossy();
        let mut command = Command::new(program);
        let (mut path, mut set_up) = ("/mcp", None);
        match kind {
            Kind::McpProxyPy => {
                command.args(["--host", "127.0.0.1", "--port", &port]);
                command.args(["--log-level", "ERROR", "--", &own, "serve-echo", "--stdio"]);
                path = "/mcp/";
            }
            Kind::McpProxyNpm => {
                command.args(["--host", "127.0.0.1", "--port", &port, "--server", "stream"]);
                command.args(["--", &own, "serve-echo", "--stdio"]);
            }
            Kind::Supergateway => {
                let child = format!("{own} serve-echo --stdio");
                command.args(["--stdio", &child, "--port", &port, "--stateful"]);
                command.args(["--outputTransport", "streamableHttp", "--logLevel", "none"]);
            }
            Kind::Fastmcp => {
                let script = self.file("fastmcp_proxy.py", include_str!("fastmcp_proxy.py"))?;
                command.arg(script).args([self.upstream, &port]);
            }
            Kind::Mitmproxy => {
                let addon = self.file("mitm_addon.py", include_str!("mitm_addon.py"))?;
                let upstream = self.upstream.trim_end_matches("/mcp");
                command.args(["-q", "--listen-host", "127.0.0.1", "--listen-port", &port]);
                command.args(["--mode", &format!("reverse:{upstream}")]);
                let config = format!("confdir={}", self.scratch.join("mitmproxy").display());
                command.args(["--set", &config, "-s"]).arg(addon);
            }
            _ => {
                let plugins = kind == Kind::ContextforgePlugins;
                let folder = self.scratch.join(kind.id());
                std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
                let left = contextforge::configure(&mut command, &folder, addr, plugins)?;
                set_up = Some(left.with_upstream(self.upstream));
            }
        }
        Ok(Some(Plan {
            command,
            addr,
            path: path.to_owned(),
            set_up,
        }))
    }

    fn program(&self, kind: Kind) -> Option<PathBuf> {
        let at = |path: &str| Some(self.folder.join(path));
        match kind {
            Kind::McpProxyPy => at("mcp-proxy/bin/mcp-proxy"),
            Kind::McpProxyNpm => at("npm/node_modules/.bin/mcp-proxy"),
            Kind::Supergateway => at("npm/node_modules/.bin/supergateway"),
            Kind::Fastmcp => at("fastmcp/bin/python"),
            Kind::Mitmproxy => at("mitmproxy/bin/mitmdump"),
            Kind::Contextforge | Kind::ContextforgePlugins => at("contextforge/bin/mcpgateway"),
            _ => None,
        }
    }

    fn file(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let file = self.scratch.join(name);
        std::fs::write(&file, text).with_context(|| file.display().to_string())?;
        Ok(file)
    }
}

/// The version that was installed, as `peers install` noted it.
pub fn version(folder: &Path, kind: Kind) -> String {
    let package = match kind {
        Kind::McpProxyPy => "mcp-proxy",
        Kind::McpProxyNpm => "npm:mcp-proxy",
        Kind::Supergateway => "npm:supergateway",
        Kind::Fastmcp => "fastmcp",
        Kind::Mitmproxy => "mitmproxy",
        Kind::Contextforge | Kind::ContextforgePlugins => "mcp-contextforge-gateway",
        _ => return String::new(),
    };
    let text = std::fs::read_to_string(folder.join("versions.txt")).unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix(package)?.strip_prefix(' '))
        .unwrap_or_default()
        .to_owned()
}

/// A number that every product of this kind cuts out.
const PROBE: &str = "219-09-3100";

/// An error when a peer that is said to look at messages does not: its figures would be those of a pass-through.
pub fn prove_it_looks(endpoint: &mut Endpoint) -> anyhow::Result<()> {
    endpoint.open(Era::Handshake)?;
    let tool = endpoint.tool_name("echo");
    let call = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": {"text": format!("her number is {PROBE} she said")}}});
    let (head, body) = endpoint.post(&call.to_string())?;
    let body = String::from_utf8_lossy(&body);
    if head.status != 200 || body.contains(PROBE) || !body.contains("she said") {
        bail!(
            "it was to cut a social security number out and answered HTTP {}: {body:.300}",
            head.status
        );
    }
    Ok(())
}
