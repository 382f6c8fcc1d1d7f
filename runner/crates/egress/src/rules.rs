//! The allowlist of one sandbox.

use std::collections::BTreeSet;
use std::fmt;

use crate::host::{HostError, HostName, HostPattern};

/// Rules that a server may have.
pub const RULES_MAX: usize = 10;
/// Ports that a rule may name.
pub const PORTS_MAX: usize = 16;
/// Without a port a rule means this one, always TLS.
const PORT_DEFAULT: u16 = 443;

/// Why a text is no rule, or rules are no allowlist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The host part.
    #[error("egress rule {number}: {source}")]
    Host {
        /// Which rule, from 1.
        number: usize,
        /// What is wrong with it.
        source: HostError,
    },
    /// The ports.
    #[error(
        "egress rule {number}: after ':' come 1 to {PORTS_MAX} ports between 1 and 65535 with commas between them"
    )]
    Ports {
        /// Which rule, from 1.
        number: usize,
    },
    /// DNS is answered by Weir itself.
    #[error("egress rule {number}: port 53 cannot be allowed, names are resolved by Weir")]
    DnsPort {
        /// Which rule, from 1.
        number: usize,
    },
    /// Too many.
    #[error("{count} egress rules, at most {RULES_MAX} are allowed")]
    TooMany {
        /// How many there were.
        count: usize,
    },
}

/// A host pattern and the ports that may be reached on it.
///
/// Written as `api.github.com` (port 443), `api.github.com:8443` or `*.example.com:443,8080`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressRule {
    host: HostPattern,
    ports: BTreeSet<u16>,
}

impl EgressRule {
    fn parse(number: usize, text: &str) -> Result<Self, RuleError> {
        let (host, ports) = match text.split_once(':') {
            Some((host, ports)) => (host, Some(ports)),
            None => (text, None),
        };
        let host = HostPattern::parse(host).map_err(|source| RuleError::Host { number, source })?;
        let ports = match ports {
            None => BTreeSet::from([PORT_DEFAULT]),
            Some(list) => parse_ports(list).ok_or(RuleError::Ports { number })?,
        };
        if ports.contains(&53) {
            return Err(RuleError::DnsPort { number });
        }
        Ok(Self { host, ports })
    }
}

fn parse_ports(list: &str) -> Option<BTreeSet<u16>> {
    let mut ports = BTreeSet::new();
    for port in list.split(',') {
        // `u16::from_str` also takes "+80" and "0080".
        let canonical = port.bytes().all(|b| b.is_ascii_digit()) && !port.starts_with('0');
        ports.insert(port.parse().ok().filter(|_| canonical)?);
    }
    (ports.len() <= PORTS_MAX).then_some(ports)
}

impl fmt::Display for EgressRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
        write!(f, "{}:{}", self.host, ports.join(","))
    }
}

/// All that one sandbox may reach. The default is nothing.
///
/// ```
/// let list = egress::Allowlist::parse(&["api.github.com", "*.example.com:443,8080"]).unwrap();
/// let name = egress::HostName::parse("api.github.com").unwrap();
/// assert!(list.allows(&name, 443) && !list.allows(&name, 80));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Allowlist {
    rules: Vec<EgressRule>,
}

impl Allowlist {
    /// Checks a list of rules.
    ///
    /// # Errors
    /// Names the first rule that is wrong by its number. A list is taken whole or not at all.
    pub fn parse<T: AsRef<str>>(rules: &[T]) -> Result<Self, RuleError> {
        if rules.len() > RULES_MAX {
            return Err(RuleError::TooMany { count: rules.len() });
        }
        let numbered = rules.iter().enumerate();
        let rules: Result<_, _> = numbered
            .map(|(index, text)| EgressRule::parse(index + 1, text.as_ref()))
            .collect();
        Ok(Self { rules: rules? })
    }

    /// Whether some port of this name may be reached, and so whether the name exists for the sandbox.
    pub fn knows(&self, name: &HostName) -> bool {
        self.rules.iter().any(|rule| rule.host.matches(name))
    }

    /// Whether this port of this name may be reached.
    pub fn allows(&self, name: &HostName, port: u16) -> bool {
        let fits = |rule: &EgressRule| rule.host.matches(name) && rule.ports.contains(&port);
        self.rules.iter().any(fits)
    }

    /// The rules in their canonical spelling.
    pub fn rules(&self) -> impl Iterator<Item = &EgressRule> {
        self.rules.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> HostName {
        HostName::parse(text).expect("a name")
    }

    #[test]
    fn ports_are_those_that_are_named() {
        for (rule, allowed, refused) in [
            ("a.example.com", &[443][..], &[80, 8443, 53][..]),
            ("a.example.com:80", &[80], &[443, 8080]),
            ("a.example.com:443,8080", &[443, 8080], &[80]),
            ("*.example.com:5432", &[5432], &[443]),
        ] {
            let list = Allowlist::parse(&[rule]).expect("a list");
            for port in allowed {
                assert!(list.allows(&name("a.example.com"), *port), "{rule} {port}");
            }
            for port in refused {
                assert!(!list.allows(&name("a.example.com"), *port), "{rule} {port}");
            }
        }
    }

    #[test]
    fn a_port_of_one_rule_does_not_serve_another() {
        let list = Allowlist::parse(&["a.example.com:443", "b.example.com:8080"]).expect("a list");
        assert!(!list.allows(&name("a.example.com"), 8080));
        assert!(!list.allows(&name("b.example.com"), 443));
        assert!(!list.knows(&name("c.example.com")));
    }

    #[test]
    fn rules_read_back_as_they_are_meant() {
        let list = Allowlist::parse(&["API.github.com.", "*.a.com:8080,443"]).expect("a list");
        let texts: Vec<_> = list.rules().map(EgressRule::to_string).collect();
        assert_eq!(texts, ["api.github.com:443", "*.a.com:443,8080"]);
        assert_eq!(Allowlist::parse(&texts), Ok(list));
    }

    #[test]
    fn what_is_no_rule_is_refused_by_number() {
        for bad in [
            "a.com:",
            "a.com:0",
            "a.com:65536",
            "a.com:+80",
            "a.com:080",
            "a.com:80,",
            "a.com:80, 81",
            "a.com:http",
            "a.com:80-90",
            "a.com:*",
            "a.com:80:81",
            "a.com:-1",
        ] {
            assert_eq!(
                Allowlist::parse(&["b.com", bad]),
                Err(RuleError::Ports { number: 2 }),
                "{bad}"
            );
        }
        assert_eq!(
            Allowlist::parse(&["a.com:53"]),
            Err(RuleError::DnsPort { number: 1 })
        );
        for bad in ["", "*", "10.0.0.1", "::1", "http://a.com", "a.com/x"] {
            assert!(
                matches!(
                    Allowlist::parse(&[bad]),
                    Err(RuleError::Host { number: 1, .. })
                ),
                "{bad}"
            );
        }
        let ports: Vec<String> = (1000..1017).map(|p: u16| p.to_string()).collect();
        let rule = format!("a.com:{}", ports.join(","));
        assert_eq!(
            Allowlist::parse(&[rule]),
            Err(RuleError::Ports { number: 1 })
        );
    }

    #[test]
    fn ten_rules_and_no_more() {
        let rules: Vec<String> = (0..11).map(|n| format!("h{n}.example.com")).collect();
        assert!(Allowlist::parse(&rules[..10]).is_ok());
        assert_eq!(
            Allowlist::parse(&rules),
            Err(RuleError::TooMany { count: 11 })
        );
    }
}
