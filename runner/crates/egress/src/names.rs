//! Names and the addresses that stand for them in one sandbox.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use parking_lot::Mutex;

use crate::host::HostName;

/// The network of the addresses that the resolver gives out (RFC 2544: benchmarks, never on the internet), as address
/// and prefix length.
pub const SYNTHETIC: (Ipv4Addr, u8) = (Ipv4Addr::new(198, 18, 0, 0), 15);
/// Names that one sandbox may have resolved. Only wildcards can lead to more than ten.
pub const NAMES_MAX: usize = 1024;
/// Addresses in the network; the first and the last are left out.
const ADDRESSES: u32 = 1 << 17;

/// The two-way table. An address once given to a name never comes to mean another one: the guest may keep it for as
/// long as it likes.
#[derive(Default)]
pub struct Names(Mutex<Tables>);

#[derive(Default)]
struct Tables {
    by_name: HashMap<HostName, Ipv4Addr>,
    by_address: HashMap<Ipv4Addr, HostName>,
}

impl Names {
    /// The address of a name, the same every time; `None` when the table is full.
    ///
    /// It follows from the name unless two names meet, so a guest restored from a checkpoint mostly finds the
    /// addresses it remembers.
    pub fn address(&self, name: &HostName) -> Option<Ipv4Addr> {
        let mut tables = self.0.lock();
        if let Some(address) = tables.by_name.get(name) {
            return Some(*address);
        }
        if tables.by_name.len() >= NAMES_MAX {
            return None;
        }
        let first = hash(name.as_str());
        let candidates = (0..ADDRESSES).map(|step| nth(first.wrapping_add(step)));
        let address = candidates
            .into_iter()
            .find(|a| !tables.by_address.contains_key(a))?;
        tables.by_name.insert(name.clone(), address);
        tables.by_address.insert(address, name.clone());
        Some(address)
    }

    /// The name that an address was given to.
    pub fn name(&self, address: Ipv4Addr) -> Option<HostName> {
        self.0.lock().by_address.get(&address).cloned()
    }
}

fn nth(number: u32) -> Ipv4Addr {
    let offset = 1 + number % (ADDRESSES - 2);
    Ipv4Addr::from_bits(SYNTHETIC.0.to_bits() + offset)
}

/// FNV-1a. A guest that makes names meet only makes its own few lookups slower.
fn hash(text: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    text.bytes().fold(0x811c_9dc5, step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Net;

    #[test]
    fn addresses_are_given_once_and_for_all() {
        let names = Names::default();
        let net: Net = "198.18.0.0/15".parse().expect("a net");
        let name = |n: usize| HostName::parse(&format!("h{n}.example.com")).expect("a name");
        for n in 0..NAMES_MAX {
            let address = names.address(&name(n)).expect("an address");
            assert!(net.contains(address.into()));
            assert_eq!(names.name(address), Some(name(n)));
        }
        assert_eq!(names.address(&name(NAMES_MAX)), None, "full");
        assert_eq!(
            names.address(&name(3)),
            Names::default().address(&name(3)),
            "follows from the name"
        );
        assert_eq!(names.name(Ipv4Addr::new(140, 82, 121, 6)), None);
    }
}
