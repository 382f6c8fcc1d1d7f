//! The packet filter before a sandbox's interface, as nftables text, and the proof that it is in force.
//!
//! One table per runner. Everything that comes from, or goes to, an interface of this runner is dropped unless it is
//! a redirected question or connection, or belongs to a connection that the host made to the guest. The order is:
//! [`Filter::install`] (which verifies), then [`Filter::add`], and only then may the interface come up. Nothing is
//! ever forwarded between interfaces, so `ip_forward` need not be on, and does no harm when it is.
//!
//! Each flow that is let in is an entry in the kernel's table of connections, which the host and all its sandboxes share:
//! full, it takes no new one of anybody. An entry outlives its flow by seconds to minutes, so what bounds a guest's part of
//! the table is how many flows it may begin in a second. One more is dropped, and the guest's own kernel tries again.

use std::fmt::Write as _;
use std::io;
use std::net::Ipv4Addr;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// The tag is part of interface names, which have at most 15 bytes.
const TAG_BYTES: usize = 4;
const NFT_WAIT_MAX: Duration = Duration::from_secs(20);
/// New flows of questions of one guest per second, and at once after quiet: twice what its resolver answers, which is the
/// one to say that they are too many. One without an answer is in the table for 30 seconds, others for up to 120.
const QUESTIONS_PER_SECOND: u32 = 100;
const QUESTIONS_BURST: u32 = 400;
/// New TCP connections of one guest per second, and at once after quiet: twice those that it may have open. One is in the
/// table for 120 seconds after its end at the most. So whatever a guest does, its flows are 16,000 of (by default) 262,144.
const CONNECTIONS_PER_SECOND: u32 = 50;
const CONNECTIONS_BURST: u32 = 512;
/// Guests that are counted at once, and how long one is without any new flow.
const COUNTED_MAX: u32 = 65_536;
const COUNTED_FOR_S: u32 = 60;

/// Why the filter is not in force.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// Tags stand in names of tables and interfaces.
    #[error("a filter's tag has {TAG_BYTES} characters of a-z and 0-9")]
    Tag,
    /// An interface that is not this runner's.
    #[error("the interface of a guest must be named {prefix} and a number")]
    Interface {
        /// What its name must begin with.
        prefix: String,
    },
    /// `nft` cannot be run.
    #[error("nft cannot be run; install it with: apt-get install nftables")]
    Run(#[source] io::Error),
    /// `nft` took too long.
    #[error("nft did not end within {NFT_WAIT_MAX:?}")]
    Timeout,
    /// `nft` refused the rules.
    #[error("nft refused the rules: {said}")]
    Refused {
        /// Its first words.
        said: String,
    },
    /// The rules in force are not those that were loaded.
    #[error("the packet filter in force is not the wanted one: {what}")]
    NotInForce {
        /// What differs.
        what: String,
    },
}

/// One sandbox's end of the wire, and where its packets are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// The host's end of the veth pair, by [`Filter::interface`].
    pub interface: String,
    /// The guest's address: packets with another source are dropped.
    pub address: Ipv4Addr,
    /// Port of the resolver, UDP.
    pub dns_udp_port: u16,
    /// Port of the resolver, TCP.
    pub dns_tcp_port: u16,
    /// Port of the forwarder.
    pub forward_port: u16,
}

/// The table of one runner, in the network namespace of the calling thread.
#[derive(Debug, Clone)]
pub struct Filter {
    tag: String,
}

/// A chain as it must be: its type and hook in nft's words, the hook alone, and its rules by their comments.
struct Chain {
    name: &'static str,
    kind: &'static str,
    hook: &'static str,
    priority: i64,
    /// Name, and whether it drops.
    rules: &'static [(&'static str, bool)],
}

const CHAINS: &[Chain] = &[
    Chain {
        name: "early",
        kind: "filter",
        hook: "prerouting",
        priority: -300,
        rules: &[("guest-ipv6", true), ("guest-source", true)],
    },
    // After the kernel has looked for the flow in its table, and before it makes an entry of it.
    Chain {
        name: "sparing",
        kind: "filter",
        hook: "prerouting",
        priority: -150,
        rules: &[("many-questions", true), ("many-connections", true)],
    },
    Chain {
        name: "diverting",
        kind: "nat",
        hook: "prerouting",
        priority: -100,
        rules: &[("dns-udp", false), ("dns-tcp", false), ("tcp-rest", false)],
    },
    Chain {
        name: "arriving",
        kind: "filter",
        hook: "input",
        priority: 0,
        rules: &[
            ("answers", false),
            ("redirected", false),
            ("guest-rest", true),
        ],
    },
    Chain {
        name: "passing",
        kind: "filter",
        hook: "forward",
        priority: 0,
        rules: &[("from-guest", true), ("to-guest", true)],
    },
    Chain {
        name: "leaving",
        kind: "filter",
        hook: "output",
        priority: 0,
        rules: &[("host-tcp", false), ("replies", false), ("host-rest", true)],
    },
];

impl Filter {
    /// The filter of the runner with this tag: 4 characters of a-z and 0-9.
    ///
    /// # Errors
    /// [`FilterError::Tag`].
    pub fn new(tag: &str) -> Result<Self, FilterError> {
        let ok = tag.len() == TAG_BYTES
            && tag
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if !ok {
            return Err(FilterError::Tag);
        }
        Ok(Self {
            tag: tag.to_owned(),
        })
    }

    /// The name of the host's end of the `number`th veth pair.
    pub fn interface(&self, number: u32) -> String {
        // 10 digits would be one too many; nobody has a thousand million sandboxes.
        format!("{}{}", self.prefix(), number % 1_000_000_000)
    }

    /// The name of the table.
    pub fn table(&self) -> String {
        format!("weir_{}", self.tag)
    }

    /// Loads the whole filter, with these guests and no others, in one step, and verifies it. An older table of the
    /// same name is replaced without a gap.
    ///
    /// # Errors
    /// When this fails no interface may come up.
    pub async fn install(&self, guests: &[Guest]) -> Result<(), FilterError> {
        run(&["-f", "-"], &self.text(guests)?).await?;
        self.verify().await
    }

    /// Lets a guest's packets reach its resolver and forwarder.
    ///
    /// # Errors
    /// See [`FilterError`].
    pub async fn add(&self, guest: &Guest) -> Result<(), FilterError> {
        let text = self.elements("add", guest)?;
        run(&["-f", "-"], &text).await.map(|_| ())
    }

    /// Takes a guest out: all its packets are dropped from now on.
    ///
    /// # Errors
    /// See [`FilterError`].
    pub async fn remove(&self, guest: &Guest) -> Result<(), FilterError> {
        let text = self.elements("delete", guest)?;
        run(&["-f", "-"], &text).await.map(|_| ())
    }

    /// Removes the table. Only for when no interface is left.
    ///
    /// # Errors
    /// See [`FilterError`].
    pub async fn uninstall(&self) -> Result<(), FilterError> {
        let table = self.table();
        run(
            &["-f", "-"],
            &format!("add table inet {table}\ndelete table inet {table}\n"),
        )
        .await
        .map(|_| ())
    }

    /// Lists what the kernel has and compares it with what was meant.
    ///
    /// # Errors
    /// [`FilterError::NotInForce`] says what is missing.
    pub async fn verify(&self) -> Result<(), FilterError> {
        let table = self.table();
        let listed = run(&["-j", "list", "table", "inet", &table], "").await?;
        let listed: Value = serde_json::from_slice(&listed).unwrap_or(Value::Null);
        self.compare(&listed)
            .map_err(|what| FilterError::NotInForce { what })
    }

    /// How many packets it has dropped because a guest began too many flows: of questions, and of connections.
    ///
    /// # Errors
    /// See [`FilterError`].
    pub async fn spared(&self) -> Result<[u64; 2], FilterError> {
        let table = self.table();
        let listed = run(&["-j", "list", "chain", "inet", &table, "sparing"], "").await?;
        let listed: Value = serde_json::from_slice(&listed).unwrap_or(Value::Null);
        Ok(["many-questions", "many-connections"].map(|rule| packets(&listed, rule)))
    }

    fn prefix(&self) -> String {
        format!("w{}-", self.tag)
    }

    fn text(&self, guests: &[Guest]) -> Result<String, FilterError> {
        let (table, from, to) = (
            self.table(),
            format!("iifname \"{}*\"", self.prefix()),
            format!("oifname \"{}*\"", self.prefix()),
        );
        let more = |set: &str, per_second: u32, burst: u32| {
            format!(
                "update @{set} {{ iifname limit rate over {per_second}/second burst {burst} packets }} counter drop"
            )
        };
        let rule = |name: &str| match name {
            "guest-ipv6" => format!("{from} meta nfproto ipv6 counter drop"),
            "guest-source" => format!("{from} iifname . ip saddr != @guests counter drop"),
            "many-questions" => format!(
                "{from} ct state new udp dport 53 {}",
                more("asking", QUESTIONS_PER_SECOND, QUESTIONS_BURST)
            ),
            "many-connections" => format!(
                "{from} ct state new meta l4proto tcp {}",
                more("connecting", CONNECTIONS_PER_SECOND, CONNECTIONS_BURST)
            ),
            "dns-udp" => format!("{from} udp dport 53 redirect to :iifname map @dns_udp"),
            "dns-tcp" => format!("{from} tcp dport 53 redirect to :iifname map @dns_tcp"),
            "tcp-rest" => format!("{from} meta l4proto tcp redirect to :iifname map @tcp_rest"),
            // Of connections that the host began.
            "answers" => format!("{from} ct direction reply ct state established accept"),
            "redirected" => format!("{from} ct status dnat accept"),
            "guest-rest" | "from-guest" => format!("{from} counter drop"),
            "to-guest" | "host-rest" => format!("{to} counter drop"),
            "host-tcp" => format!("{to} meta l4proto tcp accept"),
            _ => format!("{to} ct direction reply accept"),
        };
        let mut text =
            format!("add table inet {table}\ndelete table inet {table}\ntable inet {table} {{\n");
        text.push_str("  set guests { type ifname . ipv4_addr; }\n");
        for set in ["asking", "connecting"] {
            let _ = writeln!(
                text,
                "  set {set} {{ type ifname; size {COUNTED_MAX}; flags dynamic; timeout {COUNTED_FOR_S}s; }}"
            );
        }
        for map in ["dns_udp", "dns_tcp", "tcp_rest"] {
            let _ = writeln!(text, "  map {map} {{ type ifname : inet_service; }}");
        }
        for Chain {
            name,
            kind,
            hook,
            priority,
            rules,
        } in CHAINS
        {
            let _ = writeln!(text, "  chain {name} {{");
            let _ = writeln!(
                text,
                "    type {kind} hook {hook} priority {priority}; policy accept;"
            );
            for (name, _) in *rules {
                let _ = writeln!(text, "    {} comment \"{name}\"", rule(name));
            }
            text.push_str("  }\n");
        }
        text.push_str("}\n");
        for guest in guests {
            text.push_str(&self.elements("add", guest)?);
        }
        Ok(text)
    }

    fn elements(&self, verb: &str, guest: &Guest) -> Result<String, FilterError> {
        let prefix = self.prefix();
        let Guest {
            interface,
            address,
            dns_udp_port,
            dns_tcp_port,
            forward_port,
        } = guest;
        // The name goes into nft's language, so it is checked and not quoted.
        let number = interface.strip_prefix(&prefix).unwrap_or_default();
        if number.is_empty() || number.len() > 9 || !number.bytes().all(|b| b.is_ascii_digit()) {
            return Err(FilterError::Interface { prefix });
        }
        let table = self.table();
        let mut text =
            format!("{verb} element inet {table} guests {{ \"{interface}\" . {address} }}\n");
        for (map, port) in [
            ("dns_udp", dns_udp_port),
            ("dns_tcp", dns_tcp_port),
            ("tcp_rest", forward_port),
        ] {
            let _ = writeln!(
                text,
                "{verb} element inet {table} {map} {{ \"{interface}\" : {port} }}"
            );
        }
        Ok(text)
    }

    fn compare(&self, listed: &Value) -> Result<(), String> {
        let items = listed["nftables"].as_array().ok_or("it cannot be listed")?;
        for Chain {
            name: chain,
            kind,
            hook,
            priority,
            rules,
        } in CHAINS
        {
            let found = items
                .iter()
                .map(|item| &item["chain"])
                .find(|c| c["name"] == *chain);
            let found = found.ok_or_else(|| format!("chain {chain} is missing"))?;
            if found["hook"] != *hook
                || found["type"] != *kind
                || found["prio"].as_i64() != Some(*priority)
            {
                return Err(format!("chain {chain} does not hook where it must"));
            }
            let in_chain: Vec<&Value> = items
                .iter()
                .map(|item| &item["rule"])
                .filter(|r| r["chain"] == *chain)
                .collect();
            let names: Vec<_> = in_chain
                .iter()
                .map(|r| r["comment"].as_str().unwrap_or_default())
                .collect();
            if !names.iter().eq(rules.iter().map(|(name, _)| name)) {
                return Err(format!("chain {chain} has the rules {names:?}"));
            }
            for (rule, (name, drops)) in in_chain.iter().zip(*rules) {
                self.compare_rule(rule, *drops)
                    .map_err(|what| format!("rule {name} {what}"))?;
            }
        }
        Ok(())
    }

    fn compare_rule(&self, rule: &Value, drops: bool) -> Result<(), &'static str> {
        let parts = rule["expr"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let ours = parts.first().map(|first| &first["match"]["right"]);
        if ours.and_then(Value::as_str) != Some(&format!("{}*", self.prefix())) {
            return Err("does not begin with this runner's interfaces");
        }
        let last = parts.last().and_then(Value::as_object);
        if last.is_some_and(|last| last.contains_key("drop")) != drops {
            return Err("does not end as it must");
        }
        Ok(())
    }
}

/// What the counter of a rule says.
fn packets(listed: &Value, rule: &str) -> u64 {
    let items = listed["nftables"].as_array().into_iter().flatten();
    let mut own = items.filter(|item| item["rule"]["comment"] == rule);
    let parts = own.next().and_then(|item| item["rule"]["expr"].as_array());
    let mut counters = parts
        .into_iter()
        .flatten()
        .filter_map(|part| part["counter"]["packets"].as_u64());
    counters.next().unwrap_or(0)
}

/// Runs `nft`; gives what it wrote.
async fn run(args: &[&str], input: &str) -> Result<Vec<u8>, FilterError> {
    let mut command = Command::new("nft");
    command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let work = async {
        let mut child = command.spawn().map_err(FilterError::Run)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A closed pipe shows in the exit status.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        child.wait_with_output().await.map_err(FilterError::Run)
    };
    let output = tokio::time::timeout(NFT_WAIT_MAX, work)
        .await
        .map_err(|_| FilterError::Timeout)??;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(FilterError::Refused {
        said: said.chars().take(300).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_own_names_gets_into_the_text() {
        let filter = Filter::new("ab12").expect("a tag");
        assert_eq!(filter.interface(7), "wab12-7");
        for tag in ["", "abc", "abcde", "AB12", "a\"b1", "ab-1"] {
            assert!(Filter::new(tag).is_err(), "{tag}");
        }
        let address = Ipv4Addr::new(10, 0, 0, 2);
        for interface in [
            "",
            "eth0",
            "wab12-",
            "wab13-1",
            "wab12-1\" . 1.1.1.1 }; flush ruleset",
            "wab12-1234567890",
        ] {
            let guest = Guest {
                interface: interface.to_owned(),
                address,
                dns_udp_port: 1,
                dns_tcp_port: 2,
                forward_port: 3,
            };
            assert!(filter.elements("add", &guest).is_err(), "{interface}");
        }
    }

    #[test]
    fn a_listing_without_a_rule_is_not_in_force() {
        let filter = Filter::new("ab12").expect("a tag");
        for listed in [
            Value::Null,
            serde_json::json!({"nftables": []}),
            serde_json::json!({"nftables": [{"chain": {"name": "early"}}]}),
        ] {
            assert!(filter.compare(&listed).is_err(), "{listed}");
        }
    }
}
