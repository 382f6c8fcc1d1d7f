//! Whose CPU time is a target's: its own tree, and what works for it elsewhere.

use super::cpu;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What is read before and after a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// Root of the target's own process tree.
    pub own: Option<u32>,
    /// What works for it outside of that.
    pub helpers: Helpers,
}

/// Processes that work for a target and are no children of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Helpers {
    /// The daemon that holds the sandboxes, by itself: its children are the sandboxes.
    pub runner: Option<u32>,
    /// The MCP server.
    pub server: Option<Server>,
}

/// Where an MCP server runs that is measured with its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// The root of a process tree.
    Tree(u32),
    /// Any process of a sandbox; its control group counts.
    Sandbox(u32),
}

/// CPU time so far, by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    own: Duration,
    runner: Duration,
    server: Duration,
}

/// CPU time per call in microseconds, by part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// The target's own tree: the gateway, where there is one.
    pub own_us: f64,
    /// The daemon that holds the sandboxes.
    pub runner_us: f64,
    /// The MCP server, its sandbox included.
    pub server_us: f64,
}

impl Meter {
    /// There is something to read.
    pub fn counts(&self) -> bool {
        self.own.is_some() || self.helpers != Helpers::default()
    }

    /// The time so far. `None`: a sandbox is gone, and what it had used with it.
    pub fn read(&self) -> Option<Reading> {
        Some(Reading {
            own: self.own.map_or(Duration::ZERO, cpu::of_tree),
            runner: self.helpers.runner.map_or(Duration::ZERO, cpu::of_process),
            server: match self.helpers.server {
                None => Duration::ZERO,
                Some(Server::Tree(pid)) => cpu::of_tree(pid),
                Some(Server::Sandbox(pid)) => cpu::of_group(pid)?,
            },
        })
    }
}

impl Reading {
    /// What was used since an earlier reading.
    pub fn since(&self, before: &Reading) -> Reading {
        Reading {
            own: self.own.saturating_sub(before.own),
            runner: self.runner.saturating_sub(before.runner),
            server: self.server.saturating_sub(before.server),
        }
    }

    /// All parts.
    pub fn total(&self) -> Duration {
        self.own + self.runner + self.server
    }

    /// Per call.
    pub fn parts(&self, calls: f64) -> Parts {
        let us = |time: Duration| time.as_secs_f64() * 1e6 / calls;
        Parts {
            own_us: us(self.own),
            runner_us: us(self.runner),
            server_us: us(self.server),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_and_a_sandbox_that_is_gone_is_no_zero() {
        let own = std::process::id();
        let mut meter = Meter {
            own: Some(own),
            helpers: Helpers {
                runner: Some(own),
                server: Some(Server::Tree(own)),
            },
        };
        assert!(meter.counts() && !Meter::default().counts());
        let before = meter.read().unwrap();
        let used = meter.read().unwrap().since(&before);
        let parts = used.parts(1.0);
        let sum = parts.own_us + parts.runner_us + parts.server_us;
        assert!((sum - used.total().as_secs_f64() * 1e6).abs() < 1.0);
        meter.helpers.server = Some(Server::Sandbox(u32::MAX));
        assert_eq!(meter.read(), None);
    }
}
