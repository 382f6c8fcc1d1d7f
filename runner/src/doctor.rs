//! What was found on this machine, in the API's words and for people.

use std::path::Path;

use runner_api::{Check, CheckState, Doctor, Runtime};
use sandbox::{Host, State};

use crate::layers::common;
use crate::rootfs;

/// The report.
pub fn report(host: &Host, state: &Path) -> Doctor {
    let mut checks: Vec<Check> = host
        .findings
        .iter()
        .map(|f| Check {
            name: f.name.into(),
            state: match f.state {
                State::Ok => CheckState::Ok,
                State::Warn => CheckState::Warn,
                State::Fail => CheckState::Fail,
            },
            found: f.found.clone(),
            mend: f.mend.map(str::to_owned),
        })
        .collect();
    for runtime in [Runtime::Python, Runtime::Node] {
        checks.push(match rootfs::find(state, runtime) {
            Ok(found) => Check {
                name: format!("root for {}", runtime.as_str()),
                state: CheckState::Ok,
                found: found.id,
                mend: None,
            },
            Err(_) => Check {
                name: format!("root for {}", runtime.as_str()),
                state: CheckState::Warn,
                found: "not built; servers of this runtime cannot run".into(),
                mend: Some(format!("weir-runner rootfs build {}", runtime.as_str())),
            },
        });
    }
    checks.extend(common::checks(state));
    Doctor {
        runner: format!("weir-runner {}", env!("CARGO_PKG_VERSION")),
        fit: checks.iter().all(|c| c.state != CheckState::Fail),
        checks,
    }
}

/// The report for a terminal.
pub fn text(doctor: &Doctor) -> String {
    let mut out = format!("{}\n", doctor.runner);
    for check in &doctor.checks {
        let mark = match check.state {
            CheckState::Ok => "ok  ",
            CheckState::Warn => "warn",
            CheckState::Fail => "FAIL",
        };
        out.push_str(&format!("{mark}  {:<20} {}\n", check.name, check.found));
        if let (Some(mend), true) = (&check.mend, check.state != CheckState::Ok) {
            out.push_str(&format!("      {:<20} {mend}\n", "to mend it:"));
        }
    }
    out.push_str(if doctor.fit {
        "sandboxes can run\n"
    } else {
        "sandboxes cannot run here\n"
    });
    out
}
