//! `weir server init`: examples that deploy as they are.

use std::io::{Write as _, stderr};
use std::path::Path;

use anyhow::{Context as _, bail};

const PYTHON: &[(&str, &str)] = &[
    ("server.py", include_str!("example/server.py")),
    ("requirements.txt", include_str!("example/requirements.txt")),
];
const NODE: &[(&str, &str)] = &[
    ("server.js", include_str!("example/server.js")),
    ("package.json", include_str!("example/package.json")),
];

/// Writes the files; none of them may be there.
pub fn run(folder: &Path, runtime: &str) -> anyhow::Result<()> {
    let files = if runtime == "node" { NODE } else { PYTHON };
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    if let Some((name, _)) = files.iter().find(|(name, _)| folder.join(name).exists()) {
        bail!(
            "{} is there already; nothing was written",
            folder.join(name).display()
        );
    }
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        writeln!(stderr(), "wrote {}", path.display())?;
    }
    writeln!(
        stderr(),
        "next: weir server deploy {} --tenant TENANT",
        folder.display()
    )?;
    Ok(())
}
