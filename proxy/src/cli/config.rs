//! `weir config`: validate a file, print the schema, print the example.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use domain::UpstreamTransport;

use crate::app;
use crate::config::{self, Loaded};

/// `weir config ...`
#[derive(Debug, clap::Subcommand)]
pub enum ConfigCommand {
    /// Check a configuration file, with everything it refers to
    Validate {
        /// The file
        file: PathBuf,
        /// Refuse what a start here would refuse: environment variables of secrets that are not set
        #[arg(long)]
        strict: bool,
    },
    /// Print the JSON Schema (2020-12) of the configuration file
    Schema,
    /// Print a commented example that loads as it stands
    Example,
}

/// Runs it. A file that is refused gives exit code 1 and the reason on `err`.
///
/// # Errors
/// Only if `out` or `err` cannot be written.
pub fn run(
    command: &ConfigCommand,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> std::io::Result<ExitCode> {
    match command {
        ConfigCommand::Validate { file, strict } => validate(file, *strict, out, err),
        ConfigCommand::Schema => {
            out.write_all(config::schema_json().as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
        ConfigCommand::Example => {
            out.write_all(config::EXAMPLE.as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn validate(
    file: &Path,
    strict: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> std::io::Result<ExitCode> {
    let loaded = match strict {
        true => config::load(file),
        false => config::to_check(file),
    };
    match loaded {
        Ok(loaded) => {
            let nothing = loaded.desired.tenants.is_empty() && loaded.hosting.is_none();
            if nothing {
                let file = file.display();
                writeln!(
                    err,
                    "{file}: there is no tenant in it, so nothing would be served"
                )?;
                return Ok(ExitCode::FAILURE);
            }
            let wrong = found_by_a_start(&loaded);
            if !wrong.is_empty() {
                for problem in wrong {
                    writeln!(err, "{}: {problem}", file.display())?;
                }
                return Ok(ExitCode::FAILURE);
            }
            let dry_run = loaded.dry_run().map(|note| format!("note: {note}"));
            for unset in &loaded.notes {
                writeln!(
                    err,
                    "{}: warning: {unset}; without it Weir does not start",
                    file.display()
                )?;
            }
            for note in programs(&loaded).iter().chain(&dry_run) {
                writeln!(err, "{}: {note}", file.display())?;
            }
            writeln!(out, "{}: {}", file.display(), summary(&loaded))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            writeln!(err, "{error}")?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// What only a start would find.
fn found_by_a_start(loaded: &Loaded) -> Vec<String> {
    let mut wrong = Vec::new();
    let tls = loaded.desired.tls.as_ref();
    if let Some(Err(error)) = tls.map(app::tls_config) {
        wrong.push(format!("{error:#}"));
    }
    if loaded.data_dir.exists() && !loaded.data_dir.is_dir() {
        let dir = loaded.data_dir.display();
        wrong.push(format!("data_dir: {dir} is no folder"));
    } else if let Err(error) = app::check_compiles(loaded) {
        wrong.push(format!("{error:#}"));
    }
    wrong
}

/// Programs of stdio servers that cannot be started as things are here. Where Weir will run they may be there, so the file is
/// valid all the same.
fn programs(loaded: &Loaded) -> Vec<String> {
    let mut notes = Vec::new();
    for (id, server) in &loaded.desired.servers {
        let UpstreamTransport::Stdio { command, env, .. } = &server.upstream.transport else {
            continue;
        };
        // With a PATH of its own, or a working directory, it is looked for elsewhere.
        let problem = match command.contains('/') {
            true if !Path::new(command).is_file() => "there is no such file",
            true if !may_be_executed(Path::new(command)) => "this file may not be executed",
            false if !env.contains_key("PATH") && !in_path(command) => {
                "it is not found in PATH here"
            }
            _ => continue,
        };
        let args = match command.contains(' ') {
            true => "; what follows the program's name belongs under `args`",
            false => "",
        };
        notes.push(format!(
            "note: tenants.{}.servers.{}.upstream.command: {command:?}: {problem}{args}",
            server.tenant.as_str(),
            id.as_str(),
        ));
    }
    notes
}

fn in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| may_be_executed(&folder.join(program)))
}

fn may_be_executed(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

fn summary(loaded: &Loaded) -> String {
    let desired = &loaded.desired;
    let access = if desired.open_access {
        ", open to every caller on this machine"
    } else {
        ""
    };
    let only_proxy = if desired.servers.is_empty() && loaded.hosting.is_none() {
        "; `weir proxy` takes it, `weir serve` needs a server"
    } else {
        ""
    };
    format!(
        "valid: {}, {}, {}{access}{only_proxy}",
        count(desired.tenants.len(), "tenant"),
        count(desired.servers.len(), "server"),
        count(desired.keys.len(), "key"),
    )
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &ConfigCommand) -> (ExitCode, String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = run(command, &mut out, &mut err).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (code, text(out), text(err))
    }

    #[test]
    fn a_file_is_valid_or_says_why_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("weir.yaml");
        std::fs::write(
            &file,
            "tenants: {a: {servers: {s: {upstream: {command: sh}}}}}\n",
        )
        .unwrap();
        let validate = ConfigCommand::Validate {
            file: file.clone(),
            strict: false,
        };
        let (code, out, err) = check(&validate);
        assert_eq!(code, ExitCode::SUCCESS);
        let valid = "valid: 1 tenant, 1 server, 0 keys, open to every caller on this machine\n";
        assert!(out.ends_with(valid), "{out}");
        assert_eq!(err, "");

        // It may be there where Weir runs.
        for (command, note) in [
            (
                "no-such-program",
                "\"no-such-program\": it is not found in PATH here\n",
            ),
            (
                "sh -c x",
                "here; what follows the program's name belongs under `args`\n",
            ),
            ("/dev/null/x", "there is no such file\n"),
            ("./weir.yaml", "this file may not be executed\n"),
        ] {
            let text = format!(
                "tenants: {{a: {{servers: {{s: {{upstream: {{command: {command}}}}}}}}}}}\n"
            );
            std::fs::write(&file, text).unwrap();
            let (code, _, err) = check(&validate);
            assert_eq!(code, ExitCode::SUCCESS, "{command}");
            assert!(
                err.contains("note: tenants.a.servers.s.upstream.command: "),
                "{err}"
            );
            assert!(err.ends_with(note), "{err}");
        }

        // What only a start would find otherwise.
        let servers = "tenants: {a: {servers: {s: {upstream: {command: x}}}}}\n";
        std::fs::write(folder.path().join("no.pem"), "none\n").unwrap();
        for (text, problem) in [
            ("tls: {cert_file: no.pem, key_file: no.pem}\n", "tls."),
            ("data_dir: no.pem\n", "is no folder"),
            (
                "listen: 127.0.0.1:9000\nadmin_listen: 0.0.0.0:9000\n",
                "take another port",
            ),
        ] {
            std::fs::write(&file, format!("{text}{servers}")).unwrap();
            let (code, out, err) = check(&validate);
            assert_eq!((code, out.as_str()), (ExitCode::FAILURE, ""), "{text}");
            assert!(err.contains(problem), "{text}{err}");
        }

        for text in ["", "# nothing\n", "---\n", "{}\n", "listen: 127.0.0.1:0\n"] {
            std::fs::write(&file, text).unwrap();
            let (code, out, err) = check(&validate);
            assert_eq!((code, out.as_str()), (ExitCode::FAILURE, ""), "{text}");
            assert!(
                err.contains("nothing") || err.contains("no tenant"),
                "{err}"
            );
        }
        std::fs::write(&file, "tenants: {local: {policy: {dry_run: true}}}\n").unwrap();
        let (code, out, _) = check(&validate);
        assert_eq!(code, ExitCode::SUCCESS);
        assert!(out.contains("`weir serve` needs a server"), "{out}");

        std::fs::write(&file, "listn: 1\n").unwrap();
        let (code, out, err) = check(&validate);
        assert_eq!((code, out.as_str()), (ExitCode::FAILURE, ""));
        assert!(err.ends_with("did you mean \"listen\"?\n"), "{err}");
    }

    #[test]
    fn the_schema_is_json_and_the_example_is_whole() {
        let (_, schema, _) = check(&ConfigCommand::Schema);
        let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
        assert_eq!(
            schema["$schema"],
            "https://json-schema.org/draft/2020-12/schema"
        );
        let (_, example, _) = check(&ConfigCommand::Example);
        assert_eq!(example, config::EXAMPLE);
    }
}
