//! A disk whose power can be cut, and what the tests share.

#![allow(clippy::unwrap_used, dead_code)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use domain::{ServerId, TenantId};
use vault::{Access, AccessLog, Disk, RootKey, Roots, Scope, SecretName, SecretValue, Vault};

/// What a disk does at its nth operation that changes something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// Never.
    None,
    /// The power goes before the operation is done.
    Cut(usize),
    /// This one operation fails.
    Error(usize),
}

#[derive(Clone, Default)]
struct Inode {
    now: Vec<u8>,
    durable: Vec<u8>,
    synced: bool,
}

#[derive(Clone)]
enum NameChange {
    Put(String, usize),
    Gone(String),
}

/// A folder in memory that tells apart what was written and what is durable, as file systems do: bytes may be lost
/// until they are synced, names until the folder is.
#[derive(Clone)]
pub struct Memory(Rc<RefCell<State>>);

struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    pending: Vec<NameChange>,
    operations: usize,
    fault: Fault,
    off: bool,
}

impl Memory {
    pub fn new() -> Self {
        Self::with(BTreeMap::new())
    }

    fn with(files: BTreeMap<String, Vec<u8>>) -> Self {
        let names: BTreeMap<_, _> = files.keys().cloned().zip(0..).collect();
        let inode = |bytes: Vec<u8>| Inode {
            now: bytes.clone(),
            durable: bytes,
            synced: true,
        };
        let state = State {
            inodes: files.into_values().map(inode).collect(),
            durable_names: names.clone(),
            names,
            pending: Vec::new(),
            operations: 0,
            fault: Fault::None,
            off: false,
        };
        Self(Rc::new(RefCell::new(state)))
    }

    pub fn fail(&self, fault: Fault) {
        let mut state = self.0.borrow_mut();
        state.operations = 0;
        state.fault = fault;
    }

    pub fn operations(&self) -> usize {
        self.0.borrow().operations
    }

    /// Everything that is on it now.
    pub fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.0.borrow();
        state
            .names
            .iter()
            .map(|(n, i)| (n.clone(), state.inodes[*i].now.clone()))
            .collect()
    }

    pub fn change(&self, name: &str, to: &[u8]) {
        let mut state = self.0.borrow_mut();
        let inode = state.names[name];
        state.inodes[inode] = Inode {
            now: to.to_vec(),
            durable: to.to_vec(),
            synced: true,
        };
    }

    /// What a machine finds after the power came back. `luck` decides about what was not durable.
    pub fn after_power_cut(&self, mut luck: u64) -> Self {
        let mut roll = |sides: usize| {
            luck = luck
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (luck >> 33) as usize % sides
        };
        let state = self.0.borrow();
        let mut names = state.durable_names.clone();
        let kept = roll(state.pending.len() + 1);
        for change in &state.pending[..kept] {
            match change {
                NameChange::Put(name, inode) => {
                    names.retain(|_, i| i != inode);
                    names.insert(name.clone(), *inode);
                }
                NameChange::Gone(name) => drop(names.remove(name)),
            }
        }
        let mut bytes_of = |inode: &Inode| match (inode.synced, roll(4)) {
            (true, _) => inode.now.clone(),
            (false, 0) => inode.durable.clone(),
            (false, 1) => Vec::new(),
            (false, 2) => inode.now[..roll(inode.now.len() + 1)].to_vec(),
            (false, _) => inode.now.clone(),
        };
        Self::with(
            names
                .into_iter()
                .map(|(n, i)| (n, bytes_of(&state.inodes[i])))
                .collect(),
        )
    }

    fn operation(&self) -> io::Result<std::cell::RefMut<'_, State>> {
        let mut state = self.0.borrow_mut();
        state.operations += 1;
        match state.fault {
            Fault::Cut(at) if state.operations == at => state.off = true,
            Fault::Error(at) if state.operations == at => {
                return Err(io::ErrorKind::StorageFull.into());
            }
            _ => {}
        }
        if state.off {
            Err(io::Error::other("the power is off"))
        } else {
            Ok(state)
        }
    }
}

impl Disk for Memory {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.borrow().names.keys().cloned().collect())
    }

    fn read(&self, name: &str, _: u64) -> io::Result<Vec<u8>> {
        let state = self.0.borrow();
        let inode = state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(state.inodes[*inode].now.clone())
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        // Half of it may be there when the write fails.
        let half = |state: &mut State, bytes: &[u8]| {
            let inode = state.inodes.len();
            state.inodes.push(Inode {
                now: bytes.to_vec(),
                ..Inode::default()
            });
            state.names.insert(name.to_owned(), inode);
            state.pending.push(NameChange::Put(name.to_owned(), inode));
        };
        match self.operation() {
            Ok(mut state) => half(&mut state, bytes),
            Err(error) => {
                half(&mut self.0.borrow_mut(), &bytes[..bytes.len() / 2]);
                return Err(error);
            }
        }
        Ok(())
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        let mut state = self.operation()?;
        let inode = state.names[name];
        let inode = &mut state.inodes[inode];
        inode.durable = inode.now.clone();
        inode.synced = true;
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.operation()?;
        let inode = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), inode);
        state.pending.push(NameChange::Put(to.to_owned(), inode));
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        let mut state = self.operation()?;
        state.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        state.pending.push(NameChange::Gone(name.to_owned()));
        Ok(())
    }

    fn sync_names(&mut self) -> io::Result<()> {
        let mut state = self.operation()?;
        state.durable_names = state.names.clone();
        state.pending.clear();
        Ok(())
    }
}

/// Remembers accesses; can be told to fail.
#[derive(Clone, Default)]
pub struct Log(pub Rc<RefCell<Vec<Access>>>, pub Rc<RefCell<bool>>);

impl AccessLog for Log {
    fn record(&mut self, accesses: &[Access]) -> io::Result<()> {
        if *self.1.borrow() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.borrow_mut().extend_from_slice(accesses);
        Ok(())
    }
}

pub type TestVault = Vault<Memory, Log>;

pub fn roots(current: u8, previous: Option<u8>) -> Roots {
    let key = |n: u8| RootKey::from_bytes(&[n; 32]);
    Roots {
        current: key(current),
        previous: previous.map(key),
    }
}

pub fn open(disk: &Memory) -> TestVault {
    Vault::open(disk.clone(), roots(1, None), Log::default()).unwrap()
}

pub fn scope(tenant: &str, server: &str) -> Scope {
    Scope {
        tenant: TenantId::parse(tenant).unwrap(),
        server: ServerId::parse(server).unwrap(),
    }
}

pub fn name(text: &str) -> SecretName {
    SecretName::parse(text).unwrap()
}

pub fn value(text: &str) -> SecretValue {
    SecretValue::new(text.as_bytes().to_vec()).unwrap()
}

/// All values of a scope, in clear.
pub fn values(vault: &mut TestVault, scope: &Scope) -> Vec<(String, String)> {
    let names: Vec<SecretName> = vault
        .list(scope)
        .into_iter()
        .map(|info| info.name)
        .collect();
    let mounted = vault.mount(scope, &names, "test").unwrap();
    let clear = |v: &SecretValue| String::from_utf8(v.expose().to_vec()).unwrap();
    mounted
        .iter()
        .map(|(n, v)| (n.to_string(), clear(v)))
        .collect()
}
