//! What can be measured, and what each of it is.

use crate::plan::{Cell, Content, Form, GOAL_SIZES};
use crate::wire::rpc::Era;

/// What can be measured.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The upstream itself: the instrument's own floor.
    Direct,
    /// nginx, when installed.
    Nginx,
    /// haproxy, when installed.
    Haproxy,
    /// A bare hyper proxy.
    Hyper,
    /// A bare pass-through on pingora's server and connector: the floor goals are counted from.
    Pingora,
    /// pingora's stock `ProxyHttp`.
    PingoraProxy,
    /// The bare pass-through behind TLS: the floor of `weir-tls`.
    PingoraTls,
    /// The same over HTTP/2: the floor of `weir-h2`.
    PingoraH2,
    /// mcp-proxy of PyPI, in front of a stdio server.
    McpProxyPy,
    /// mcp-proxy of npm, in front of a stdio server.
    McpProxyNpm,
    /// supergateway, in front of a stdio server.
    Supergateway,
    /// The proxy that FastMCP makes of a URL.
    Fastmcp,
    /// mitmproxy with an addon of four regular expressions.
    Mitmproxy,
    /// ContextForge without plugins, its rate limit off.
    Contextforge,
    /// The same with its plugins for personal data and secrets.
    ContextforgePlugins,
    /// The server that `WeirHosted` hosts, with the same interpreter and packages and no sandbox: its floor.
    #[value(skip)]
    Native,
    /// `weir proxy`, scanning and audit on, default policy.
    Weir,
    /// The same under a policy that lets everything pass unrecorded.
    WeirAllow,
    /// The same, deciding and recording everything and enforcing nothing.
    WeirDryRun,
    /// The same without an audit log.
    WeirAuditOff,
    /// The same with every message on disk before its answer.
    WeirAuditAll,
    /// The same in front of a server that speaks on standard input and output; its processes count too.
    WeirStdio,
    /// `weir serve` with 200 servers of 20 tenants, called on 32 of them.
    WeirMany,
    /// `weir serve` while its configuration is written anew every 100 ms.
    WeirReload,
    /// `weir serve` with one policy plugin that reads every byte.
    WeirPlugin,
    /// The same with three.
    WeirPlugins3,
    /// `weir proxy` behind TLS.
    WeirTls,
    /// The same over HTTP/2.
    WeirH2,
    /// `weir serve` in front of `Native`: what of `WeirHosted` is the gateway's part.
    #[value(skip)]
    WeirNative,
    /// `weir serve` and `weir-runner serve` with a server in a sandbox, which has cells of its own.
    WeirHosted,
    /// The user's own endpoint.
    #[value(skip)]
    Url,
}

impl Kind {
    /// The name in reports.
    pub fn label(self) -> &'static str {
        match self {
            Kind::Direct => "direct",
            Kind::Nginx => "nginx",
            Kind::Haproxy => "haproxy",
            Kind::Hyper => "bare hyper",
            Kind::Pingora => "bare pingora",
            Kind::PingoraProxy => "pingora ProxyHttp",
            Kind::PingoraTls => "bare pingora, TLS",
            Kind::PingoraH2 => "bare pingora, h2",
            Kind::McpProxyPy => "mcp-proxy (PyPI)",
            Kind::McpProxyNpm => "mcp-proxy (npm)",
            Kind::Supergateway => "supergateway",
            Kind::Fastmcp => "FastMCP proxy",
            Kind::Mitmproxy => "mitmproxy, regexes",
            Kind::Contextforge => "ContextForge",
            Kind::ContextforgePlugins => "ContextForge, DLP",
            Kind::Native => "native server",
            Kind::Weir => "weir",
            Kind::WeirAllow => "weir, all allowed",
            Kind::WeirDryRun => "weir, dry run",
            Kind::WeirAuditOff => "weir, audit off",
            Kind::WeirAuditAll => "weir, audit all",
            Kind::WeirStdio => "weir, stdio server",
            Kind::WeirMany => "weir, 200 servers",
            Kind::WeirReload => "weir, reloading",
            Kind::WeirPlugin => "weir, 1 plugin",
            Kind::WeirPlugins3 => "weir, 3 plugins",
            Kind::WeirTls => "weir, TLS",
            Kind::WeirH2 => "weir, h2",
            Kind::WeirNative => "weir, native server",
            Kind::WeirHosted => "weir, sandboxed server",
            Kind::Url => "your endpoint",
        }
    }

    /// The name on the command line and of files; those that no command line names have none.
    pub fn id(self) -> String {
        use clap::ValueEnum;
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// A form of the proxy under test.
    pub fn is_weir(self) -> bool {
        self >= Kind::Weir && self < Kind::Url
    }

    /// Redacts and blocks what its policy says.
    pub fn enforces(self) -> bool {
        self.is_weir() && ![Kind::WeirAllow, Kind::WeirDryRun].contains(&self)
    }

    /// Other people's MCP proxies.
    pub const PEERS: [Kind; 7] = [
        Kind::McpProxyPy,
        Kind::McpProxyNpm,
        Kind::Supergateway,
        Kind::Fastmcp,
        Kind::Mitmproxy,
        Kind::Contextforge,
        Kind::ContextforgePlugins,
    ];

    /// A hosted server and what it is compared with: measured beside each other, apart from all others.
    pub const HOSTING: [Kind; 3] = [Kind::Native, Kind::WeirNative, Kind::WeirHosted];

    /// One of those.
    pub fn is_of_hosting(self) -> bool {
        Kind::HOSTING.contains(&self)
    }

    /// One of them: what goes wrong there is told and does not fail the run.
    pub fn is_peer(self) -> bool {
        Kind::PEERS.contains(&self)
    }

    /// All that the command line knows.
    pub fn all() -> impl Iterator<Item = Kind> {
        use clap::ValueEnum;
        Kind::value_variants().iter().copied()
    }

    /// Its calls arrive at the upstream that counts them.
    pub fn calls_our_upstream(self) -> bool {
        let by_stdio = [
            Kind::WeirStdio,
            Kind::McpProxyPy,
            Kind::McpProxyNpm,
            Kind::Supergateway,
        ];
        !by_stdio.contains(&self)
    }

    /// The pass-through that it is compared with: the same wire, and nothing looked at.
    pub fn floor(self) -> Kind {
        match self {
            Kind::PingoraTls | Kind::WeirTls => Kind::PingoraTls,
            Kind::PingoraH2 | Kind::WeirH2 => Kind::PingoraH2,
            kind if kind.is_of_hosting() => Kind::Native,
            _ => Kind::Pingora,
        }
    }

    /// What latency is added to: the upstream with nothing in between.
    pub fn bare(self) -> Kind {
        if self.is_of_hosting() {
            Kind::Native
        } else {
            Kind::Direct
        }
    }

    /// Clients reach it by TLS.
    pub fn is_tls(self) -> bool {
        [Kind::PingoraTls, Kind::PingoraH2].contains(&self.floor())
    }

    /// HTTP/2 is spoken inside.
    pub fn is_http2(self) -> bool {
        self.floor() == Kind::PingoraH2
    }

    /// Whether this cell says anything about this target. Floors and weir go through all; forms of weir through those that
    /// show what their form costs; other people's proxies through plain calls of the revision that they all know.
    pub fn takes(self, cell: &Cell) -> bool {
        let plain = cell.form == Form::Json && cell.rate.is_none();
        let sized = GOAL_SIZES.contains(&cell.size) && cell.connections <= 16;
        match self {
            kind if kind.is_peer() => {
                plain && sized && cell.content == Content::Clean && cell.era == Era::Handshake
            }
            kind if kind.is_of_hosting() => true,
            kind if kind.is_tls() => plain && sized && cell.content == Content::Clean,
            Kind::WeirAllow | Kind::WeirDryRun => {
                plain && (sized || cell.content != Content::Clean)
            }
            kind if kind.is_weir() && kind != Kind::Weir => {
                plain && sized && cell.content == Content::Clean
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_what() {
        let weir: Vec<Kind> = Kind::all().filter(|kind| kind.is_weir()).collect();
        assert_eq!(weir.len(), 13);
        assert!(weir.iter().all(|kind| kind.id().starts_with("weir")));
        assert!(Kind::Weir.enforces() && !Kind::WeirDryRun.enforces() && !Kind::Url.enforces());
        assert!(Kind::WeirNative.is_weir() && !Kind::Native.is_weir());
        assert!(!Kind::PingoraProxy.is_weir() && !Kind::Nginx.enforces());
    }
}
