//! Plans: what a tenant may have. Data, not code.

use serde::{Deserialize, Serialize};

/// What one plan allows; absent means without bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Hosted servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers_max: Option<u32>,
    /// Processor time in a calendar month (UTC), in hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_hours_per_month: Option<u32>,
    /// Memory of one server, in MiB.
    pub memory_mb_max: u32,
    /// Storage of one server, in GiB.
    pub storage_gb_max: u32,
}

impl Plan {
    /// The plans that Weir comes with, by name; the first is the default of a new tenant.
    pub fn built_in() -> [(&'static str, Plan); 3] {
        let plan = |servers_max, cpu_hours_per_month, memory_mb_max, storage_gb_max| Plan {
            servers_max,
            cpu_hours_per_month,
            memory_mb_max,
            storage_gb_max,
        };
        [
            ("starter", plan(Some(2), Some(10), 512, 5)),
            ("secure-runtime", plan(Some(5), Some(100), 4096, 50)),
            ("power", plan(None, None, 8192, 100)),
        ]
    }

    /// Whether a month's processor time is used up.
    pub fn is_spent(&self, cpu_us: u64) -> bool {
        let us_max = |hours: u32| u64::from(hours) * 3_600_000_000;
        self.cpu_hours_per_month
            .is_some_and(|hours| cpu_us >= us_max(hours))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_is_spent_at_its_last_microsecond() {
        let [(_, starter), _, (_, power)] = Plan::built_in();
        assert!(!starter.is_spent(36_000_000_000 - 1) && starter.is_spent(36_000_000_000));
        assert!(!power.is_spent(u64::MAX));
    }
}
