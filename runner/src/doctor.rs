//! What was found on this machine, in the API's words and for people.

use std::path::Path;

use runner_api::{Check, CheckState, Doctor, Runtime};
use sandbox::{Host, State};

use crate::layers::common;
use crate::rootfs;

/// Folder of what lasts, where no other is named.
pub const STATE: &str = "/var/lib/weir-runner";
/// Folder of what lasts until the next boot, where no other is named.
pub const RUN: &str = "/run/weir-runner";

/// The report on a machine and these two folders.
pub fn report(host: &Host, state: &Path, run: &Path) -> Doctor {
    let runsc = host.runsc_is_named.then_some(&*host.runsc);
    let options = &*options(state, run, runsc);
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
            mend: f.mend.clone(),
        })
        .collect();
    // Who may not look into a folder does not know what is not there.
    let denied = std::fs::read_dir(state)
        .is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
    if denied {
        checks.push(Check {
            name: "state".into(),
            state: CheckState::Warn,
            found: format!(
                "{} may be read by others only; roots and common layers were not looked for",
                state.display()
            ),
            mend: Some(format!("sudo weir-runner{options} doctor")),
        });
    } else {
        checks.extend(roots(state, options));
        checks.extend(common::checks(state, options));
    }
    Doctor {
        runner: format!("weir-runner {}", env!("CARGO_PKG_VERSION")),
        fit: checks.iter().all(|c| c.state != CheckState::Fail),
        checks,
    }
}

fn roots(state: &Path, options: &str) -> impl Iterator<Item = Check> {
    [Runtime::Python, Runtime::Node]
        .into_iter()
        .map(move |runtime| {
            let name = runtime.as_str();
            let found = rootfs::find(state, runtime).ok();
            Check {
                name: format!("root for {name}"),
                state: match found {
                    Some(_) => CheckState::Ok,
                    None => CheckState::Warn,
                },
                mend: found
                    .is_none()
                    .then(|| format!("weir-runner{options} rootfs build {name}")),
                found: match found {
                    Some(found) => found.id,
                    None => "not built; servers of this runtime cannot run".into(),
                },
            }
        })
}

/// The options that name other places than the usual ones, as they stand in a command, with a blank before each: commands that
/// mend need them too.
fn options(state: &Path, run: &Path, runsc: Option<&Path>) -> String {
    let mut text = String::new();
    let places = [
        ("--state", (state != Path::new(STATE)).then_some(state)),
        ("--run", (run != Path::new(RUN)).then_some(run)),
        ("--runsc", runsc),
    ];
    for (option, place) in places {
        let Some(place) = place else { continue };
        let place = place.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,=".contains(c);
        match place.chars().all(plain) {
            true => text.push_str(&format!(" {option} {place}")),
            false => text.push_str(&format!(" {option} '{}'", place.replace('\'', "'\\''"))),
        }
    }
    text
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_mend_name_the_same_places() {
        for (state, run, runsc, expected) in [
            (STATE, RUN, None, ""),
            ("/srv/s", RUN, None, " --state /srv/s"),
            (
                STATE,
                "/tmp/r",
                Some("/opt/runsc"),
                " --run /tmp/r --runsc /opt/runsc",
            ),
            ("a b", "it's", None, r" --state 'a b' --run 'it'\''s'"),
        ] {
            let options = options(state.as_ref(), run.as_ref(), runsc.map(Path::new));
            assert_eq!(options, expected);
        }
        let folder = tempfile::tempdir().unwrap();
        let mends: Vec<_> = roots(folder.path(), " --state /srv/s")
            .filter_map(|check| check.mend)
            .collect();
        assert_eq!(
            mends,
            ["python", "node"]
                .map(|name| format!("weir-runner --state /srv/s rootfs build {name}"))
        );
    }
}
