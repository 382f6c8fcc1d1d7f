//! One gVisor sandbox, from its spec to the last mount that is taken away.
//!
//! Invariants:
//! - Nothing of a tenant runs without gVisor: there is no other backend for one machine, and no fall-back.
//! - No name that a user chose stands in a path, a cgroup, a namespace or an interface; ids are random.
//! - The host's end of a sandbox's wire is made *down*; who owns the packet filter brings it up ([`Wire::up`]).
//! - What is made is taken away in the one order that works: processes, network, storage, secrets, cgroups.
//!
//! ```text
//!  prepare (wire, storage, secrets, bundle) -> launch (create+start | restore) -> freeze <-> thaw -> checkpoint -> destroy
//!                                          \-> [filter, egress] -> wire up
//! ```
#![deny(unsafe_code)]

mod backend;
mod cgroup;
mod cores;
mod error;
mod host;
mod local;
mod net;
mod pidfd;
mod process;
mod reaper;
mod runsc;
mod secrets;
mod spec;
mod storage;

pub use backend::{Backend, Launch, Order, Output, Placed, Prepared, Usage};
pub use cgroup::Cgroups;
pub use cores::{Cores, NotCores};
pub use error::SandboxError;
pub use host::{Finding, Host, State};
pub use local::{Local, LocalConfig};
pub use net::{Wire, Wires};
pub use pidfd::{End, Watch};
pub use process::on_thread;
pub use reaper::Reaper;
pub use runsc::Runsc;
pub use secrets::SecretFile;
pub use spec::{Bind, GUEST_UID, Program, Size};
pub use storage::{Writes, mount_sized as make_storage, unmount as drop_storage};
