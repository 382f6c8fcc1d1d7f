//! `weir key new`: a fresh API key, shown once.

use std::io::Write;

use anyhow::Context as _;
use domain::{KeyId, TenantId};

use crate::config::keys;

/// `weir key ...`
#[derive(Debug, clap::Subcommand)]
pub enum KeyCommand {
    /// Make an API key: prints the key once, and the lines to put into the configuration
    New {
        /// The key's public name; it stands in logs and audit records
        #[arg(long, value_parser = |s: &str| KeyId::parse(s))]
        id: KeyId,
        /// The tenant it is for
        #[arg(long, value_parser = |s: &str| TenantId::parse(s))]
        tenant: Option<TenantId>,
    },
}

/// Runs it. The key goes to `out` alone, the words for people to `err`.
///
/// # Errors
/// The system gives no random numbers, or the output cannot be written.
pub fn run(command: &KeyCommand, out: &mut dyn Write, err: &mut dyn Write) -> anyhow::Result<()> {
    let KeyCommand::New { id, tenant } = command;
    let key = keys::new_key().context("the system gives no random numbers")?;
    let hash = keys::hash_text(&gateway::hash_key(key.expose()));
    let tenant = tenant.as_ref().map_or("TENANT", TenantId::as_str);
    writeln!(
        err,
        "The key, shown this once (clients send it as X-API-Key or as a Bearer token):"
    )?;
    writeln!(out, "{}", key.expose())?;
    out.flush()?;
    writeln!(
        err,
        "\nPut this into the configuration, under tenants: {tenant}: keys:"
    )?;
    writeln!(err, "      - id: {id}\n        hash: {hash}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_lines_fit_the_printed_key() {
        let command = KeyCommand::New {
            id: KeyId::parse("laptop").unwrap(),
            tenant: Some(TenantId::parse("acme").unwrap()),
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        run(&command, &mut out, &mut err).unwrap();
        let (out, err) = (
            String::from_utf8(out).unwrap(),
            String::from_utf8(err).unwrap(),
        );
        let key = out.strip_suffix('\n').unwrap();
        assert!(key.starts_with(keys::KEY_PREFIX));
        assert!(err.contains("tenants: acme: keys:\n      - id: laptop\n        hash: sha256:"));
        assert!(err.contains(&keys::hash_text(&gateway::hash_key(key))));
        assert!(!err.contains(key));
    }
}
