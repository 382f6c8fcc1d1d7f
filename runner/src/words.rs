//! What owners are told when a sandbox ends or does not start.

use runner_api::{GoneReason, Runtime};

/// Words for a reason.
pub fn of(reason: &GoneReason) -> String {
    match reason {
        GoneReason::OutOfMemory => "it used more memory than its limit".into(),
        GoneReason::TooManyProcesses => "it made more processes than its limit".into(),
        GoneReason::HostDiskFull => {
            "the host's disk was nearly full, and its tenant had written the most".into()
        }
        GoneReason::Exited { .. } => "its program ended".into(),
        GoneReason::Killed => "it was killed".into(),
        GoneReason::CallTimeout => "a call took longer than its limit".into(),
        GoneReason::StartTimeout => "it did not answer in time after its start".into(),
        GoneReason::Idle => "nobody used it".into(),
        GoneReason::NoRoom => {
            "nobody used it, and its checkpoint had to make room for others".into()
        }
        GoneReason::Finished => "its call or session is over".into(),
        GoneReason::Stopped => "it was stopped".into(),
        GoneReason::Failed { .. } => "the runner could not go on with it".into(),
        _ => "for another reason".into(),
    }
}

/// A hint for the usual mistakes.
pub fn hint(said: &[String], runtime: Runtime) -> Option<String> {
    let find = |start: &str| {
        said.iter().rev().find_map(|line| {
            line.trim()
                .strip_prefix(start)
                .map(|rest| rest.trim_matches(['\'', '"', ' ']).to_owned())
        })
    };
    match runtime {
        Runtime::Python => {
            if let Some(module) = find("ModuleNotFoundError: No module named") {
                return Some(format!(". Hint: add the package that brings {module} to requirements.txt, then deploy again"));
            }
            find("python: can't open file").or(find("python3: can't open file")).map(|_| ". Hint: the command names a file that is not in the bundle; set the command or add server.py".into())
        }
        Runtime::Node => find("Error: Cannot find module").or(find("Error [ERR_MODULE_NOT_FOUND]:")).map(|module| {
            format!(". Hint: {module} is missing: add it to package.json, or the file to the bundle, then deploy again")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_mistakes_get_a_hint() {
        let lines = |text: &str| vec![text.to_owned()];
        let python = hint(
            &lines("ModuleNotFoundError: No module named 'httpx'"),
            Runtime::Python,
        );
        assert!(python.is_some_and(|h| h.contains("httpx") && h.contains("requirements.txt")));
        let node = hint(&lines("Error: Cannot find module 'express'"), Runtime::Node);
        assert!(node.is_some_and(|h| h.contains("express") && h.contains("package.json")));
        assert_eq!(hint(&lines("all is well"), Runtime::Python), None);
    }
}
