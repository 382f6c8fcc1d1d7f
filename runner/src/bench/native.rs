//! The same server without gVisor: same interpreter, same packages, same kind of wire, its own user. What is left of the
//! difference is the sandbox.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use runner_api::{Runtime, ServerSpec};
use tokio::net::TcpStream;

/// Of a network for documentation (RFC 5737). Some machines use one of these all the same, so it is looked at first.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
const NAME: &str = "weir-bench";
const START_MAX: Duration = Duration::from_secs(30);

const UP: &str = "ip netns add weir-bench
ip link add weir-bench type veth peer name eth0 netns weir-bench
ip addr add 203.0.113.1/30 dev weir-bench
ip link set weir-bench up
ip -n weir-bench addr add 203.0.113.2/30 dev eth0
ip -n weir-bench link set eth0 up
ip -n weir-bench link set lo up";

/// Arguments: root, app, packages, where these belong, and then the server's command.
const RUN: &str = r#"mount --bind "$2" "$1/app"
mount --bind "$3" "$1$4"
mount --rbind /dev "$1/dev"
mount -t proc proc "$1/proc"
mount -t tmpfs -o mode=1777 tmp "$1/tmp"
root=$1 target=$4
shift 4
exec chroot --userspec=10001:10001 "$root" /usr/bin/env -i HOME=/home/app PATH="$target/bin:/usr/local/bin:/usr/bin:/bin" \
  PYTHONPATH=/deps PYTHONDONTWRITEBYTECODE=1 NODE_ENV=production /bin/sh -c 'cd /app && exec "$@"' sh "$@""#;

/// Ended, and its wire taken away, when dropped.
pub(super) struct Native(Child);

impl Native {
    /// Starts it and waits until it listens.
    pub(super) async fn start(
        rootfs: &Path,
        app: &Path,
        deps: &Path,
        spec: &ServerSpec,
    ) -> Result<Self> {
        take_down();
        ensure!(
            std::net::UdpSocket::bind((ADDRESS, 0)).is_err(),
            "this machine has the address {ADDRESS} itself"
        );
        let up = shell(UP).status().context("run sh")?;
        ensure!(up.success(), "no wire for the native server");
        let target = match spec.runtime {
            Runtime::Python => "/deps",
            Runtime::Node => "/node_modules",
        };
        let child = Command::new("ip")
            .args(["netns", "exec", NAME])
            .args(["unshare", "--mount", "--propagation", "private"])
            .args(["sh", "-euc", RUN, "sh"])
            .args([rootfs, app, deps])
            .arg(target)
            .args(&spec.command)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("start the native server")?;
        let native = Self(child);
        let deadline = Instant::now() + START_MAX;
        while TcpStream::connect(native.address(spec)).await.is_err() {
            ensure!(
                Instant::now() < deadline,
                "the native server does not listen"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(native)
    }

    pub(super) fn address(&self, spec: &ServerSpec) -> SocketAddr {
        (ADDRESS, spec.port).into()
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        take_down();
    }
}

/// Also what an earlier run left. Fine if there is nothing.
fn take_down() {
    let _ = shell("ip link del weir-bench || true; ip netns del weir-bench")
        .stderr(Stdio::null())
        .status();
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-ec", script]).stdin(Stdio::null());
    command
}
