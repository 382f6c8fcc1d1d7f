//! Which real addresses the forwarder may connect to.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// IPv4 networks that are not public (IANA special-purpose registry, and what is not unicast).
const V4_SPECIAL: &[(Ipv4Addr, u8)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

/// What is not public within 2000::/3. Everything outside of that is refused whole: v4-mapped, NAT64, unique local,
/// link-local, site-local, multicast.
const V6_SPECIAL: &[(Ipv6Addr, u8)] = &[
    // Protocol assignments; Teredo is among them.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    // 6to4: an IPv4 address, maybe a private one, inside.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Whether an address is a public unicast one, to which a sandbox may be connected.
pub fn is_global(address: IpAddr) -> bool {
    let in_v4 = |&(base, len): &(Ipv4Addr, u8)| {
        Net {
            base: base.into(),
            len,
        }
        .contains(address)
    };
    let in_v6 = |&(base, len): &(Ipv6Addr, u8)| {
        Net {
            base: base.into(),
            len,
        }
        .contains(address)
    };
    match address {
        IpAddr::V4(_) => !V4_SPECIAL.iter().any(in_v4),
        IpAddr::V6(v6) => v6.segments()[0] & 0xe000 == 0x2000 && !V6_SPECIAL.iter().any(in_v6),
    }
}

/// A network, such as `10.1.0.0/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Net {
    base: IpAddr,
    len: u8,
}

/// Why a text is no network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a network is written as an address, '/' and the number of leading bits, with no bit set after them: 10.1.0.0/16"
)]
pub struct NetError;

impl Net {
    /// Whether the address lies in it. Never across address families.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (bits(self.base), bits(address)) {
            ((base, 32), (other, 32)) => masked(base, 32, self.len) == masked(other, 32, self.len),
            ((base, 128), (other, 128)) => {
                masked(base, 128, self.len) == masked(other, 128, self.len)
            }
            _ => false,
        }
    }
}

fn bits(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()), 32),
        IpAddr::V6(v6) => (v6.to_bits(), 128),
    }
}

fn masked(value: u128, width: u8, len: u8) -> u128 {
    value
        .checked_shr(u32::from(width.saturating_sub(len)))
        .unwrap_or(0)
}

impl FromStr for Net {
    type Err = NetError;

    fn from_str(text: &str) -> Result<Self, NetError> {
        let (base, len) = text.split_once('/').ok_or(NetError)?;
        let (base, len): (IpAddr, u8) = (
            base.parse().map_err(|_| NetError)?,
            len.parse().map_err(|_| NetError)?,
        );
        let (value, width) = bits(base);
        let host_bits = u32::from(width.checked_sub(len).ok_or(NetError)?);
        let rest = masked(value, width, len)
            .checked_shl(host_bits)
            .unwrap_or(0);
        let net = Self { base, len };
        // One spelling only: "+8" and "008" are numbers to a parser, and a puzzle to a reader.
        if rest != value || net.to_string() != text {
            return Err(NetError);
        }
        Ok(net)
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.len)
    }
}

/// Which addresses names may lead to.
#[derive(Debug, Clone, Default)]
pub struct Targets {
    /// Networks of the operator's own that names may lead to although they are not public. Default none.
    pub private: Vec<Net>,
    /// Refused although public: say the operator's own front door.
    pub refused: Vec<Net>,
}

impl Targets {
    /// Whether a connection may be made there. `own` are the addresses of this host, which are never a target: what
    /// listens on them does not expect a sandbox.
    pub fn allow(&self, address: IpAddr, own: &[IpAddr]) -> bool {
        let in_any = |nets: &[Net]| nets.iter().any(|net| net.contains(address));
        let never = address.is_unspecified()
            || address.is_loopback()
            || address.is_multicast()
            || link_local(address);
        let listed = is_global(address) || in_any(&self.private);
        listed && !never && !in_any(&self.refused) && !own.contains(&address)
    }
}

/// Link-local addresses serve metadata and keys of the machine: not even an operator's list opens them.
fn link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_unicast_link_local() || v6.to_ipv4_mapped().is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn special_addresses_are_not_global() {
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.1.2.3",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:8.8.8.8",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:a9fe:a9fe::1",
            "2002:7f00:1::",
            "3ffe::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
        ] {
            assert!(!is_global(ip(text)), "{text}");
        }
    }

    #[test]
    fn public_addresses_are_global() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "140.82.121.6",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.1",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::1",
            "2606:4700::1111",
            "2a00:1450::1",
            "2003::1",
        ] {
            assert!(is_global(ip(text)), "{text}");
        }
    }

    #[test]
    fn the_operator_opens_networks_of_its_own_but_never_the_host() {
        let targets = Targets {
            private: vec![
                "10.1.0.0/16".parse().expect("a net"),
                "127.0.0.0/8".parse().expect("a net"),
                "169.254.0.0/16".parse().expect("a net"),
            ],
            refused: vec!["8.8.8.0/24".parse().expect("a net")],
        };
        let own = [ip("10.1.0.5"), ip("1.1.1.1")];
        for (address, allowed) in [
            ("10.1.2.3", true),
            ("10.2.0.1", false),
            ("10.1.0.5", false),
            ("8.8.4.4", true),
            ("8.8.8.8", false),
            ("1.1.1.1", false),
            ("127.0.0.1", false),
            ("169.254.169.254", false),
            ("::ffff:10.1.2.3", false),
            ("fe80::1", false),
        ] {
            assert_eq!(targets.allow(ip(address), &own), allowed, "{address}");
        }
    }

    #[test]
    fn networks_are_written_in_one_way() {
        for good in [
            "0.0.0.0/0",
            "10.1.0.0/16",
            "1.2.3.4/32",
            "2001:db8::/32",
            "::/0",
            "::1/128",
        ] {
            assert_eq!(
                good.parse::<Net>().map(|n| n.to_string()),
                Ok(good.to_owned())
            );
        }
        for bad in [
            "",
            "10.0.0.0",
            "10.1.0.1/16",
            "10.0.0.0/33",
            "10.0.0.0/-1",
            "010.0.0.0/8",
            "::/129",
            "a/8",
            "10.0.0.0/8 ",
            "10.0.0.0/+8",
            "10.0.0.0/08",
        ] {
            assert_eq!(bad.parse::<Net>(), Err(NetError), "{bad}");
        }
    }
}
