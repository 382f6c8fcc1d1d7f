//! The two servers that are hosted, as folders to deploy.

use std::io;
use std::path::{Path, PathBuf};

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Runtime {
    /// FastMCP on uvicorn, as the Python SDK's own examples are.
    Python,
    /// The TypeScript SDK on express.
    Node,
}

type Files = [(&'static str, &'static str); 2];

const PYTHON: Files = [
    ("server.py", include_str!("../../hosted/python/server.py")),
    (
        "requirements.txt",
        include_str!("../../hosted/python/requirements.txt"),
    ),
];
const NODE: Files = [
    ("server.js", include_str!("../../hosted/node/server.js")),
    (
        "package.json",
        include_str!("../../hosted/node/package.json"),
    ),
];

impl Runtime {
    /// Both.
    pub const ALL: [Runtime; 2] = [Runtime::Python, Runtime::Node];

    /// The id of the hosted server, and how its root file system's name begins.
    pub fn id(self) -> &'static str {
        match self {
            Runtime::Python => "python",
            Runtime::Node => "node",
        }
    }

    /// The name in reports.
    pub fn label(self) -> &'static str {
        match self {
            Runtime::Python => "Python, FastMCP",
            Runtime::Node => "Node, MCP SDK",
        }
    }

    /// Writes its files into a folder of its own.
    pub fn write(self, into: &Path) -> io::Result<PathBuf> {
        let files = match self {
            Runtime::Python => PYTHON,
            Runtime::Node => NODE,
        };
        let folder = into.join(self.id());
        std::fs::create_dir_all(&folder)?;
        for (name, text) in files {
            std::fs::write(folder.join(name), text)?;
        }
        Ok(folder)
    }
}
