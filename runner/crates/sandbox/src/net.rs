//! The wire of one sandbox: a network namespace, a veth pair, one address.
//!
//! gVisor takes address and routes over from the guest's end and runs a network stack of its own on it. The host's end
//! stays *down* until [`Wire::up`]: first the packet filter, then the wire.
//!
//! An address of a runner leads to its sandbox or nowhere: the route of a wire goes with it, and under all of them lies one
//! for the whole range ([`Wires::seal`]). Without that, what is still on its way to a sandbox that ended (a call, with all
//! that is in it) would leave this host in clear by the default route.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

use crate::error::SandboxError;
use crate::process::{Run, on_thread};

const STEP_MAX: Duration = Duration::from_secs(20);
/// Least preferred of all: who sets a route for the same range meant to.
const NOWHERE_METRIC: u32 = u32::MAX;

/// One runner's addresses: a /18 whose first address is the gateway of all its sandboxes.
#[derive(Debug, Clone)]
pub struct Wires {
    base: u32,
    prefix: String,
    dir: PathBuf,
}

/// The wire of one sandbox, made and not yet up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wire {
    /// The host's end.
    pub interface: String,
    /// The guest's address.
    pub guest: Ipv4Addr,
    /// The host's address on every wire.
    pub gateway: Ipv4Addr,
    /// The namespace, as a file.
    pub netns: PathBuf,
}

impl Wires {
    /// How many wires there can be.
    pub const MAX: u32 = (1 << 14) - 4;
    /// A place that no sandbox ever has: for what is left of one whose place nobody knows.
    pub const NOBODYS: u32 = Self::MAX;

    /// Wires with addresses from `base` (whose last 14 bits are not used), interfaces named `prefix` and a number (13
    /// characters in all), and namespaces kept as files in `dir`.
    pub fn new(base: Ipv4Addr, prefix: impl Into<String>, dir: impl Into<PathBuf>) -> Self {
        Self {
            base: u32::from(base) & !0x3fff,
            prefix: prefix.into(),
            dir: dir.into(),
        }
    }

    /// The host's address on every wire.
    pub fn gateway(&self) -> Ipv4Addr {
        (self.base + 1).into()
    }

    /// Makes every address of the range lead nowhere that no wire leads to. Stays when this program ends, as sandboxes do;
    /// fine if it is so already.
    ///
    /// # Errors
    /// What `ip` said: without it nothing may be started.
    pub fn seal(&self) -> Result<(), SandboxError> {
        ip(&format!("route replace {}\n", self.nowhere()))
    }

    /// Undoes [`Wires::seal`], unless there is a wire left. Fine if it was not done.
    pub fn unseal(&self) {
        if self.present().is_empty() {
            // Fails if there is no such route.
            let _ = ip(&format!("route del {}\n", self.nowhere()));
        }
    }

    fn nowhere(&self) -> String {
        let base = Ipv4Addr::from(self.base);
        // Who still sends hears so at once.
        format!("unreachable {base}/18 metric {NOWHERE_METRIC}")
    }

    /// Where the namespaces are kept.
    pub(crate) fn dir(&self) -> &std::path::Path {
        &self.dir
    }

    /// Places whose interface is there, whosever it is.
    pub fn present(&self) -> Vec<u32> {
        let names = fs::read_dir("/sys/class/net").into_iter().flatten();
        names
            .flatten()
            .filter_map(|e| {
                e.file_name()
                    .to_str()?
                    .strip_prefix(&self.prefix)?
                    .parse()
                    .ok()
            })
            .collect()
    }

    /// The wire of this place, whether it is there or not.
    pub fn at(&self, id: &str, place: u32) -> Wire {
        debug_assert!(place <= Self::NOBODYS, "the pool gives no such place");
        Wire {
            interface: format!("{}{place}", self.prefix),
            guest: (self.base + 2 + place).into(),
            gateway: self.gateway(),
            netns: self.dir.join(id),
        }
    }

    /// Makes the wire, its host end down.
    pub(crate) async fn make(&self, id: &str, place: u32) -> Result<Wire, SandboxError> {
        let wire = self.at(id, place);
        fs::create_dir_all(&self.dir).map_err(|e| SandboxError::io("make", &self.dir, e))?;
        let made = wire.clone();
        on_thread("weir-netns", move || made.make()).await?;
        Ok(wire)
    }
}

impl Wire {
    /// On a thread of its own: it moves into the new namespace and ends there.
    fn make(&self) -> Result<(), SandboxError> {
        let path = &self.netns;
        unshare(CloneFlags::CLONE_NEWNET).map_err(|e| SandboxError::io("make", path, e))?;
        File::create(path).map_err(|e| SandboxError::io("make", path, e))?;
        let from = "/proc/thread-self/ns/net";
        mount(
            Some(from),
            path,
            None::<&str>,
            MsFlags::MS_BIND,
            None::<&str>,
        )
        .map_err(|e| SandboxError::io("keep the namespace", path, e))?;
        let Self {
            interface,
            guest,
            gateway,
            ..
        } = self;
        let host = std::process::id();
        ip(&format!(
            "link set lo up\n\
             link add eth0 type veth peer name {interface} netns {host}\n\
             addr add {guest}/32 dev eth0\n\
             link set eth0 up\n\
             route add {gateway} dev eth0 scope link\n\
             route add default via {gateway} dev eth0\n"
        ))
    }

    /// Gives the host's end its address, still down, so that sockets can be bound to it.
    pub(crate) async fn address(&self) -> Result<(), SandboxError> {
        let wire = self.clone();
        on_thread("weir-ip", move || {
            // Nothing speaks IPv6 on this wire, the kernel's own greetings included.
            let knob = format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", wire.interface);
            if Path::new(&knob).exists() {
                fs::write(&knob, "1").map_err(|e| SandboxError::io("write", knob, e))?;
            }
            ip(&format!(
                "addr add {}/32 dev {}\n",
                wire.gateway, wire.interface
            ))
        })
        .await
    }

    /// Brings the host's end up. Only after the packet filter is in force.
    ///
    /// # Errors
    /// What `ip` said.
    pub async fn up(&self) -> Result<(), SandboxError> {
        let Self {
            interface, guest, ..
        } = self.clone();
        on_thread("weir-ip", move || {
            ip(&format!(
                "link set {interface} up\nroute add {guest}/32 dev {interface}\n"
            ))
        })
        .await
    }

    /// Takes interface and namespace away. Fine if they are not there.
    pub(crate) async fn remove(&self) {
        let wire = self.clone();
        on_thread("weir-ip", move || {
            if Path::new("/sys/class/net").join(&wire.interface).exists() {
                // Fails if the namespace took its end with it in this moment.
                let _ = ip(&format!("link del {}\n", wire.interface));
            }
            let _ = umount2(&wire.netns, MntFlags::MNT_DETACH);
            let _ = fs::remove_file(&wire.netns);
        })
        .await;
    }
}

fn ip(batch: &str) -> Result<(), SandboxError> {
    let args = vec!["-batch".to_owned(), "-".to_owned()];
    Run {
        program: "ip",
        args,
        input: batch,
        wait_max: STEP_MAX,
    }
    .output()
    .map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_addresses_of_their_own() {
        let wires = Wires::new(Ipv4Addr::new(10, 200, 65, 7), "wab12-", "/run/x");
        assert_eq!(wires.gateway(), Ipv4Addr::new(10, 200, 64, 1));
        assert_eq!(wires.at("a", 0).guest, Ipv4Addr::new(10, 200, 64, 2));
        let last = wires.at("a", Wires::MAX - 1);
        assert_eq!(last.guest, Ipv4Addr::new(10, 200, 127, 253));
        let nobodys = wires.at("a", Wires::NOBODYS);
        assert_ne!(nobodys.interface, last.interface);
        assert!(last.interface.len() <= 15, "{}", last.interface);
    }

    /// Where packets for this address go: through which interface, if any.
    fn leads(address: &str) -> Option<String> {
        let asked = std::process::Command::new("ip")
            .args(["route", "get", address])
            .output()
            .expect("ip runs");
        let text = String::from_utf8_lossy(&asked.stdout);
        let mut words = text.split_whitespace().skip_while(|word| *word != "dev");
        words.nth(1).map(str::to_owned)
    }

    #[test]
    fn an_address_leads_to_its_sandbox_or_nowhere() {
        if !nix::unistd::geteuid().is_root() {
            assert!(
                std::env::var_os("WEIR_KIT_REQUIRED").is_none(),
                "needs root"
            );
            return;
        }
        // A host of its own, with a way out for all that nobody else takes.
        let of_its_own = std::thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).expect("a namespace");
            ip("link add out type veth peer name far\n\
                addr add 192.0.2.2/24 dev out\n\
                link set far up\n\
                link set out up\n\
                route add default via 192.0.2.1\n")
            .expect("a way out");
            let wires = |base| Wires::new(base, "wnone-", "/nowhere");
            let one = wires(Ipv4Addr::new(10, 200, 64, 0));
            let other = wires(Ipv4Addr::new(10, 200, 128, 0));
            let (guest, last) = ("10.200.64.2", "10.200.127.255");
            assert_eq!(leads(guest).as_deref(), Some("out"), "as any other");
            for _ in 0..2 {
                one.seal().expect("sealed");
                other.seal().expect("sealed");
            }
            assert_eq!([guest, last, "10.200.128.2"].map(leads), [None, None, None]);
            // What is not of their ranges goes on as before.
            for near in ["10.200.63.255", "10.200.192.0"] {
                assert_eq!(leads(near).as_deref(), Some("out"), "{near}");
            }
            ip("link add w type veth peer name guest\n\
                link set w up\n\
                route add 10.200.64.2/32 dev w\n")
            .expect("a wire");
            assert_eq!([guest, last].map(leads), [Some("w".to_owned()), None]);
            ip("link del w\n").expect("gone");
            assert_eq!(leads(guest), None, "as its sandbox is gone");
            for _ in 0..2 {
                one.unseal();
            }
            assert_eq!(leads(guest).as_deref(), Some("out"));
            assert_eq!(leads("10.200.128.2"), None, "the other's stays");
        });
        of_its_own.join().expect("as it should be");
    }
}
