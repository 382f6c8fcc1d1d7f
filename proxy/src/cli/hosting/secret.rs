//! `weir secret ...`: a value comes from standard input, never from the command line, where others could read it.

use std::io::{IsTerminal as _, Read as _, Write as _, stderr, stdin, stdout};
use std::os::fd::AsFd as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use http::Method;
use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};
use serde_json::Value;

use super::server::One;

/// The longest value, in bytes.
const VALUE_BYTES_MAX: u64 = 64 * 1024;

/// `weir secret ...`
#[derive(Debug, Subcommand)]
pub enum SecretCommand {
    /// Set a secret: asks for the value, or reads it from a pipe; mounted at /run/secrets/NAME
    Set {
        #[command(flatten)]
        one: One,
        /// Its name: A-Z, a-z, 0-9 and _
        name: String,
    },
    /// The names of a server's secrets; their values never come out
    List(One),
    /// Remove a secret
    Rm {
        #[command(flatten)]
        one: One,
        /// Its name
        name: String,
    },
}

/// Runs it.
pub async fn run(command: SecretCommand) -> anyhow::Result<ExitCode> {
    match command {
        SecretCommand::Set { one, name } => {
            let (client, path) = one.open()?;
            let name = checked(&name)?;
            let value = read_value(name)?;
            let looked_for = secret_prints::is_looked_for(&value);
            client
                .json(Method::PUT, &format!("{path}/secrets/{name}"), value.into())
                .await?;
            writeln!(
                stderr(),
                "set {name}; sandboxes that start from now on have it"
            )?;
            if !looked_for {
                writeln!(
                    stderr(),
                    "{name} is too short or too uniform to be looked for in the server's messages: that takes {} bytes and {} different ones",
                    secret_prints::BYTES_MIN,
                    secret_prints::DISTINCT_BYTES_MIN
                )?;
            }
        }
        SecretCommand::List(one) => {
            let (client, path) = one.open()?;
            let names = client.get(&format!("{path}/secrets")).await?;
            for name in names
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
            {
                writeln!(stdout(), "{name}")?;
            }
        }
        SecretCommand::Rm { one, name } => {
            let (client, path) = one.open()?;
            let name = checked(&name)?;
            client
                .send(
                    Method::DELETE,
                    &format!("{path}/secrets/{name}"),
                    &Value::Null,
                )
                .await?;
            writeln!(stderr(), "removed {name}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// It becomes part of a path.
fn checked(name: &str) -> anyhow::Result<&str> {
    let ok = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(ok) {
        bail!("the name of a secret has 1 to 64 characters of A-Z, a-z, 0-9 and '_'");
    }
    Ok(name)
}

/// From a terminal one line, unseen; from a pipe all of it, without one line end at its end.
fn read_value(name: &str) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if stdin().is_terminal() {
        write!(stderr(), "value of {name} (not shown): ")?;
        stderr().flush()?;
        bytes = read_unseen()?.into_bytes();
        writeln!(stderr())?;
    } else {
        stdin()
            .lock()
            .take(VALUE_BYTES_MAX + 2)
            .read_to_end(&mut bytes)?;
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
    if bytes.is_empty() || bytes.len() as u64 > VALUE_BYTES_MAX {
        bail!("a secret has 1 to {VALUE_BYTES_MAX} bytes");
    }
    Ok(bytes)
}

fn read_unseen() -> anyhow::Result<String> {
    let terminal = stdin();
    let before = tcgetattr(terminal.as_fd()).context("the terminal")?;
    let mut unseen = before.clone();
    unseen.local_flags.remove(LocalFlags::ECHO);
    tcsetattr(terminal.as_fd(), SetArg::TCSAFLUSH, &unseen).context("the terminal")?;
    let mut line = String::new();
    let read = terminal.read_line(&mut line);
    tcsetattr(terminal.as_fd(), SetArg::TCSAFLUSH, &before).context("the terminal")?;
    read?;
    Ok(line)
}
