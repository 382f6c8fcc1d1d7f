//! `weir policy key`, `sign` and `verify`.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use crate::config::{self, signing};

/// The key pair to make.
#[derive(Debug, Args)]
pub struct KeyArgs {
    /// File for the private key; must not exist yet
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

/// What to sign, with what.
#[derive(Debug, Args)]
pub struct SignArgs {
    /// The component
    pub component: PathBuf,
    /// The private key's file
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
}

/// What to check, by what.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The component; its signature lies in COMPONENT.sig
    pub component: PathBuf,
    /// Public keys (ed25519:...); one must have signed
    #[arg(long, required = true)]
    pub key: Vec<String>,
}

/// Makes a key pair. The private key goes into a file only its owner can read.
pub fn key(args: &KeyArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let (private, public) = signing::new_key()?;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&args.out)
        .with_context(|| format!("{} cannot be made", args.out.display()))?;
    file.write_all(private.as_bytes())?;
    file.sync_all()?;
    writeln!(out, "{public}")?;
    Ok(())
}

/// Signs.
pub fn sign(args: &SignArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let private = config::read_given(&args.key, signing::FILE_BYTES_MAX)
        .and_then(config::text_of)
        .map_err(|problem| anyhow::anyhow!("{} {problem}", args.key.display()))?;
    let signature = signing::sign(&private, &super::read(&args.component)?)?;
    let path = signing::beside(&args.component);
    std::fs::write(&path, format!("{signature}\n"))?;
    writeln!(out, "{}", path.display())?;
    Ok(())
}

/// Checks a signature.
pub fn verify(args: &VerifyArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let component = super::read(&args.component)?;
    let signature = signing::beside(&args.component);
    let key = signing::check_file(&signature, &component, &args.key).map_err(anyhow::Error::msg)?;
    writeln!(out, "signed by {key}")?;
    Ok(())
}
