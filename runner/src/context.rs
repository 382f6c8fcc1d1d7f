//! What every part of the daemon shares.

use std::collections::{BTreeSet, HashMap};
use std::net::Ipv4Addr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::{ServerId, TenantId};
use egress::{Filter, Targets};
use runner_api::{LeaseId, SandboxId};
use sandbox::{Backend, Host, Wires};
use tokio::sync::Notify;

use crate::boxes::Ender;
use crate::events::Events;
use crate::gate::Gate;
use crate::images::Images;
use crate::logs::Log;
use crate::meter::Metering;
use crate::paths::Paths;
use crate::room::Room;
use crate::secrets::Secrets;
use crate::shares::Shares;

/// Shared by all tasks; made once.
pub struct Context {
    /// Folders.
    pub paths: Paths,
    /// What runs sandboxes.
    pub backend: Arc<dyn Backend>,
    /// What was found on this machine.
    pub host: Host,
    /// The packet filter; in force before the first wire is up.
    pub filter: Filter,
    /// The host's address on every wire.
    pub gateway: Ipv4Addr,
    /// What each tenant may take of what all share.
    pub shares: Shares,
    /// How fast a sandbox writes its storage in the long run, in MiB per second.
    pub storage_write_mib_s: Option<NonZeroU32>,
    /// Where names may lead that are not public.
    pub targets: Targets,
    /// Places in the address pool.
    pub places: Places,
    /// Starts at once: more only make each other slow (a start is nearly all CPU).
    pub gate: Gate,
    /// Builds at once.
    pub builds: Gate,
    /// Builds at once with nothing to install. Starts that wait are no builds, so they have not the same gate.
    pub short_builds: Gate,
    /// Room on the disk of the state folder.
    pub room: Room,
    /// Told when bundles or layers came.
    pub stocked: Notify,
    /// Ways to end sandboxes.
    pub enders: Enders,
    /// What happened.
    pub events: Events,
    /// Checkpoints.
    pub images: Images,
    /// What is used.
    pub metering: Metering,
    /// The vault.
    pub secrets: Secrets,
    /// Logs of servers.
    pub logs: Logs,
}

/// Logs of all servers, opened when first used.
#[derive(Default)]
pub struct Logs(Mutex<HashMap<(TenantId, ServerId), Log>>);

impl Logs {
    /// The log of a server.
    pub fn of(&self, paths: &Paths, tenant: &TenantId, server: &ServerId) -> Log {
        let mut logs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (tenant.clone(), server.clone());
        logs.entry(key)
            .or_insert_with(|| Log::open(&paths.log(tenant, server)))
            .clone()
    }

    /// Forgets a removed server's log.
    pub fn forget(&self, paths: &Paths, tenant: &TenantId, server: &ServerId) {
        let mut logs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        logs.remove(&(tenant.clone(), server.clone()));
        let path = paths.log(tenant, server);
        let _ = std::fs::remove_file(path.with_extension("old"));
        let _ = std::fs::remove_file(path);
    }
}

/// Ways to end sandboxes from outside their servers.
#[derive(Default)]
pub struct Enders(Mutex<HashMap<SandboxId, (TenantId, Ender)>>);

impl Enders {
    /// Of a sandbox that begins.
    pub fn add(&self, id: &SandboxId, tenant: &TenantId, ender: Ender) {
        self.all().insert(id.clone(), (tenant.clone(), ender));
    }

    /// Whose it is, if its end has not been taken.
    pub fn owner(&self, id: &SandboxId) -> Option<TenantId> {
        self.all().get(id).map(|(tenant, _)| tenant.clone())
    }

    /// That of a sandbox, if it has not been taken.
    pub fn take(&self, id: &SandboxId) -> Option<Ender> {
        self.all().remove(id).map(|(_, ender)| ender)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<SandboxId, (TenantId, Ender)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Numbers of wires in use. A number that was given back comes again last, when no packet of its old owner is left.
pub struct Places(Mutex<(BTreeSet<u32>, u32)>);

impl Places {
    /// All free but these.
    pub fn new(used: impl IntoIterator<Item = u32>) -> Self {
        Self(Mutex::new((used.into_iter().collect(), 0)))
    }

    /// A free number.
    pub fn take(&self) -> Option<u32> {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (used, next) = &mut *guard;
        for _ in 0..Wires::MAX {
            let place = *next;
            *next = (*next + 1) % Wires::MAX;
            if used.insert(place) {
                return Some(place);
            }
        }
        None
    }

    /// Gives a number back.
    pub fn give(&self, place: u32) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .remove(&place);
    }
}

/// 16 random characters of a-z and 0-9: 82 bits.
pub fn random_name() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    bytes
        .iter()
        .map(|b| char::from(LETTERS[usize::from(b % 32)]))
        .collect()
}

/// A new sandbox id.
pub fn new_sandbox_id() -> SandboxId {
    SandboxId::parse(&random_name()).expect("16 characters of the right kind")
}

/// A new lease id.
pub fn new_lease_id() -> LeaseId {
    LeaseId::parse(&random_name()).expect("16 characters of the right kind")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_given_once_and_comes_back_last() {
        let places = Places::new([0, 2]);
        assert_eq!((places.take(), places.take()), (Some(1), Some(3)));
        places.give(1);
        assert_eq!(places.take(), Some(4));
        for _ in 0..Wires::MAX - 4 {
            assert!(places.take().is_some());
        }
        assert_eq!(places.take(), None);
        // What is left of nobody's sandbox is taken away as if it had a place.
        places.give(Wires::NOBODYS);
        assert_eq!(places.take(), None, "it is no place");
    }
}
