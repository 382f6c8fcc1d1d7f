//! Runs policy plugins: WASM components written by tenants, trusted by nobody.
//!
//! ```text
//! component --compile (another process, bounded)--> code --MAC--> cache
//!                                                     |
//!                                    Plugin (pre-linked) --bind--> Bound: dlp_policy::Evaluator
//! ```
//!
//! A plugin sees one message and gives one verdict (`dlp-sdk/wit/policy.wit`). It has no WASI, no
//! network, no files; memory, tables, time, output and every host call are bounded. What it does
//! wrong ends in its binding's fail mode and never further.
//!
//! Never here: compiling on the data path, sharing an instance between tenants, message text in a
//! log, an error or a metric.

mod bound;
mod breaker;
mod build;
mod cache;
mod check;
mod compile;
mod contract;
mod deadline;
mod engine;
mod host;
mod imports;
mod instance;
mod measure;
mod pattern;
mod state;
mod turns;
mod verdict;

pub use bound::Bound;
pub use build::{BuildError, component_of};
pub use cache::Cache;
pub use check::CONTRACT;
pub use compile::{COMPILE_COMMAND, CompileLimits, Compiler, compile_main};
pub use host::{BindError, HostOptions, LoadError, Plugin, PluginHost};
pub use instance::Description;
pub use state::Spaces;
