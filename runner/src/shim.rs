//! The shim for stdio servers: a small program in the sandbox, in the server's own language, that speaks Streamable HTTP
//! to the gateway and lines to the server.

use std::fs;
use std::io;
use std::path::Path;

use runner_api::Runtime;

const PYTHON: &str = include_str!("../shim/stdio.py");
const NODE: &str = include_str!("../shim/stdio.mjs");

/// Writes the shims where sandboxes find them.
///
/// # Errors
/// The system's.
pub fn install(run: &Path) -> io::Result<()> {
    let dir = run.join("weir");
    fs::create_dir_all(&dir)?;
    fs::write(dir.join("stdio.py"), PYTHON)?;
    fs::write(dir.join("stdio.mjs"), NODE)
}

/// The words that go before a stdio server's own command.
pub fn command(runtime: Runtime, port: u16) -> Vec<String> {
    let words: [&str; 3] = match runtime {
        Runtime::Python => ["/usr/bin/python3", "-I", "/weir/stdio.py"],
        Runtime::Node => ["/usr/local/bin/node", "--", "/weir/stdio.mjs"],
    };
    words
        .iter()
        .map(|w| (*w).to_owned())
        .chain([port.to_string(), "--".to_owned()])
        .collect()
}
