//! A certificate for targets that speak TLS, made anew for each run by the `openssl` program.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A self-signed certificate for `localhost` and its key.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate, PEM.
    pub chain: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
}

impl Certificate {
    /// Makes one in a folder. `None`: there is no `openssl`.
    pub fn make(folder: &Path) -> anyhow::Result<Option<Certificate>> {
        if crate::peers::find_program("openssl").is_none() {
            return Ok(None);
        }
        let made = Certificate {
            chain: folder.join("server.pem"),
            key: folder.join("server.key"),
        };
        let output = Command::new("openssl")
            .args(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
                    .split(' '),
            )
            .args("-subj /CN=localhost -addext basicConstraints=critical,CA:FALSE".split(' '))
            .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
            .arg("-keyout")
            .arg(&made.key)
            .arg("-out")
            .arg(&made.chain)
            .stdin(Stdio::null())
            .output()
            .context("openssl cannot be run")?;
        if !output.status.success() {
            bail!("openssl: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(Some(made))
    }
}
