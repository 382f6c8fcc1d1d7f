//! The hosted server once more, without gVisor: what its sandbox is made of is read off the sandbox, so that interpreter,
//! packages, bundle, command and environment are the same. It runs as the same user, in a mount namespace, on loopback.

use crate::child::Process;
use anyhow::{Context, bail};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The one variable that it has and its twin in the sandbox has not.
pub const LISTEN: &str = "BENCH_LISTEN";

/// A sandbox that runs, as the runner keeps it.
#[derive(Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// A process of it.
    pub pid: u32,
    /// What it is made of.
    config: PathBuf,
}

impl Sandbox {
    /// That of a server, among those of a runner with these folders.
    pub fn of(server: &str, state: &Path, run: &Path) -> anyhow::Result<Sandbox> {
        #[derive(Deserialize)]
        struct Saved {
            placed: Placed,
            server: String,
        }
        #[derive(Deserialize)]
        struct Placed {
            id: String,
            pid: u32,
        }
        let folder = state.join("boxes");
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let saved: Saved = serde_json::from_slice(&std::fs::read(entry?.path())?)?;
            if saved.server == server {
                return Ok(Sandbox {
                    pid: saved.placed.pid,
                    config: run.join("boxes").join(saved.placed.id).join("config.json"),
                });
            }
        }
        bail!("the runner has no sandbox of the server {server}")
    }

    /// Starts the same without a sandbox and waits until it listens there.
    pub fn twin(&self, listen: SocketAddr) -> anyhow::Result<Process> {
        let text =
            std::fs::read(&self.config).with_context(|| self.config.display().to_string())?;
        let spec: Spec = serde_json::from_slice(&text)?;
        let mut process = Process::start(spec.command(listen)?)?;
        process.wait_for_port(listen)?;
        Ok(process)
    }
}

/// The parts of an OCI spec that say what runs.
#[derive(Deserialize)]
struct Spec {
    root: Root,
    process: Run,
    mounts: Vec<Mount>,
}

#[derive(Deserialize)]
struct Root {
    path: PathBuf,
}

#[derive(Deserialize)]
struct Run {
    user: User,
    cwd: String,
    args: Vec<String>,
    env: Vec<String>,
}

#[derive(Deserialize)]
struct User {
    uid: u32,
    gid: u32,
}

#[derive(Deserialize)]
struct Mount {
    destination: String,
    source: PathBuf,
}

/// Arguments: root, user, working folder, how many pairs of source and destination follow, and then what `env` takes.
const RUN: &str = r#"root=$1 user=$2 folder=$3 pairs=$4
shift 4
while [ "$pairs" -gt 0 ]; do
  mount --bind "$1" "$root$2"
  pairs=$((pairs - 1))
  shift 2
done
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=1777 tmp "$root/tmp"
exec chroot --userspec="$user" "$root" /bin/sh -c 'cd "$1" && shift && exec /usr/bin/env -i "$@"' sh "$folder" "$@""#;

/// What a server is made of; the rest of what a sandbox is given is its walls.
const PARTS: [&str; 3] = ["/app", "/deps", "/node_modules"];

impl Spec {
    fn command(&self, listen: SocketAddr) -> anyhow::Result<Command> {
        let parts: Vec<&Mount> = self
            .mounts
            .iter()
            .filter(|mount| PARTS.contains(&mount.destination.as_str()))
            .collect();
        if !parts.iter().any(|mount| mount.destination == "/app") || parts.len() != 2 {
            bail!("the sandbox has no bundle and packages where they are expected");
        }
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private"]);
        command.args(["sh", "-euc", RUN, "sh"]);
        command.arg(&self.root.path);
        let User { uid, gid } = self.process.user;
        command.arg(format!("{uid}:{gid}")).arg(&self.process.cwd);
        command.arg(parts.len().to_string());
        for mount in parts {
            command.arg(&mount.source).arg(&mount.destination);
        }
        command.args(&self.process.env);
        command.arg(format!("{LISTEN}={listen}"));
        command.args(&self.process.args);
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec(destinations: &[&str]) -> Spec {
        let mounts: Vec<_> = destinations
            .iter()
            .map(|at| json!({"destination": at, "type": "bind", "source": format!("/s{at}")}))
            .collect();
        serde_json::from_value(json!({
            "ociVersion": "1.0.0", "root": {"path": "/roots/python", "readonly": false}, "mounts": mounts,
            "process": {"user": {"uid": 10001, "gid": 10001}, "cwd": "/app", "args": ["python", "server.py"],
                "env": ["PATH=/deps/bin:/bin", "PYTHONPATH=/deps"]}
        }))
        .unwrap()
    }

    #[test]
    fn the_twin_is_what_the_sandbox_is_without_its_walls() {
        let listen = "127.0.0.1:4711".parse().unwrap();
        let spec = spec(&["/proc", "/app", "/deps", "/weir", "/run/secrets"]);
        let command = spec.command(listen).unwrap();
        let words: Vec<String> = command
            .get_args()
            .skip(6)
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let expected = "sh /roots/python 10001:10001 /app 2 /s/app /app /s/deps /deps PATH=/deps/bin:/bin PYTHONPATH=/deps \
             BENCH_LISTEN=127.0.0.1:4711 python server.py";
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn a_sandbox_of_another_make_is_refused() {
        let listen = "127.0.0.1:4711".parse().unwrap();
        for destinations in [&["/app"][..], &["/deps", "/node_modules"], &[]] {
            assert!(
                spec(destinations).command(listen).is_err(),
                "{destinations:?}"
            );
        }
    }

    #[test]
    fn a_server_is_found_among_the_runner_s_sandboxes() {
        let dir = tempfile::tempdir().unwrap();
        let boxes = dir.path().join("boxes");
        std::fs::create_dir(&boxes).unwrap();
        for (id, pid, server) in [("aa", 7, "node"), ("bb", 8, "python")] {
            let saved = json!({"placed": {"id": id, "place": 1, "pid": pid}, "tenant": "t", "server": server});
            std::fs::write(boxes.join(id), saved.to_string()).unwrap();
        }
        let of = |server| Sandbox::of(server, dir.path(), Path::new("/run/r"));
        let found = of("python").unwrap();
        assert_eq!(
            (found.pid, found.config),
            (8, "/run/r/boxes/bb/config.json".into())
        );
        assert!(of("ruby").is_err());
    }
}
