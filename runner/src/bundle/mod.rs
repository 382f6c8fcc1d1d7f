//! Bundles: what a tenant uploads, listed strictly, then unpacked where it can hurt nothing.
//!
//! ```text
//!  upload -> temporary file + SHA-256 -> list (nothing written) -> check root files -> unpack -> move into place
//! ```
//! Unpacking makes only new files in a new folder of root's own, by checked names, without following links; modes are
//! 0644 or 0755. The archive's owners, times, links and devices never reach the disk.

pub mod package_json;
pub mod requirements;
pub mod tar;

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use runner_api::{ApiError, Refusal, Runtime};

use tar::{Bounds, Sink, TarError, Totals};

/// What a listing found.
#[derive(Debug)]
pub struct Listing {
    /// Python or Node.
    pub runtime: Runtime,
    /// Files and bytes.
    pub totals: Totals,
    /// Names in the root folder, sorted, at most 50.
    pub root_names: Vec<String>,
    /// Direct dependencies, each in one spelling.
    pub dependencies: Vec<String>,
}

/// Why a bundle was refused.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The reasons, for its owner.
    #[error("the bundle is refused")]
    Refused(Vec<Refusal>),
    /// The runner's own disk has no room for it.
    #[error("{0}")]
    NoRoom(ApiError),
    /// The runner's own disk.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
}

impl From<TarError> for BundleError {
    fn from(error: TarError) -> Self {
        let (path, reason) = match error {
            TarError::Entry { path, reason } => (Some(path), reason),
            TarError::Archive(reason) => (None, reason),
            TarError::Io(source) => {
                return Self::Io {
                    what: "unpack or read",
                    path: "the bundle".into(),
                    source,
                };
            }
        };
        Self::Refused(vec![Refusal {
            path,
            line: None,
            reason,
        }])
    }
}

/// Lists a bundle and checks what stands in its root. Writes nothing.
///
/// # Errors
/// What is refused, or the file cannot be read.
pub fn list(packed: &Path, bounds: Bounds) -> Result<Listing, BundleError> {
    let mut root = Root::default();
    let totals = tar::read(open(packed)?, measured(packed, bounds)?, &mut root)?;
    let refuse = |path: Option<&str>, reason: String| {
        BundleError::Refused(vec![Refusal {
            path: path.map(str::to_owned),
            line: None,
            reason,
        }])
    };
    if root.names.contains(".npmrc") {
        return Err(refuse(
            Some(".npmrc"),
            "the registry is the operator's; leave this file out".into(),
        ));
    }
    let (runtime, dependencies) = match (&root.requirements, &root.package) {
        (Some(text), _) => (
            Runtime::Python,
            requirements::check(text).map_err(BundleError::Refused)?,
        ),
        (None, Some(text)) => {
            let dependencies = package_json::check(text).map_err(BundleError::Refused)?;
            // With nothing to install npm is not run, and nobody reads it.
            if let (false, Some(lock)) = (dependencies.is_empty(), &root.lock) {
                package_json::check_lock(lock).map_err(BundleError::Refused)?;
            }
            (Runtime::Node, dependencies)
        }
        (None, None) => return Err(refuse(None, root.missing())),
    };
    Ok(Listing {
        runtime,
        totals,
        root_names: root.names.into_iter().take(50).collect(),
        dependencies,
    })
}

/// Unpacks a bundle that [`list`] accepted into a folder that is not there yet.
///
/// # Errors
/// As [`list`]; what was unpacked up to then is left for the caller to remove.
pub fn unpack(packed: &Path, into: &Path, bounds: Bounds) -> Result<Totals, BundleError> {
    unpack_telling(packed, into, bounds, &mut |_| {})
}

/// The same, and says of each part how many bytes were written.
///
/// # Errors
/// The first thing that is wrong.
pub fn unpack_telling(
    packed: &Path,
    into: &Path,
    bounds: Bounds,
    wrote: &mut dyn FnMut(u64),
) -> Result<Totals, BundleError> {
    fs::DirBuilder::new()
        .mode(0o755)
        .create(into)
        .map_err(|source| BundleError::Io {
            what: "make",
            path: into.to_owned(),
            source,
        })?;
    let mut sink = Unpack {
        into: into.to_owned(),
        wrote,
    };
    Ok(tar::read(
        open(packed)?,
        measured(packed, bounds)?,
        &mut sink,
    )?)
}

fn open(packed: &Path) -> Result<BufReader<File>, BundleError> {
    let file = File::open(packed);
    file.map(|f| BufReader::with_capacity(64 * 1024, f))
        .map_err(|source| BundleError::Io {
            what: "read",
            path: packed.to_owned(),
            source,
        })
}

/// The ratio is measured against what was really sent.
fn measured(packed: &Path, bounds: Bounds) -> Result<Bounds, BundleError> {
    let len = fs::metadata(packed).map(|m| m.len());
    let len = len.map_err(|source| BundleError::Io {
        what: "read",
        path: packed.to_owned(),
        source,
    })?;
    if len > bounds.packed_bytes {
        let reason = format!("it is larger than {} MB", bounds.packed_bytes >> 20);
        return Err(BundleError::Refused(vec![Refusal {
            path: None,
            line: None,
            reason,
        }]));
    }
    Ok(Bounds {
        packed_bytes: len,
        ..bounds
    })
}

/// Keeps the root's names and its few files that are read.
#[derive(Default)]
struct Root {
    names: BTreeSet<String>,
    requirements: Option<Vec<u8>>,
    package: Option<Vec<u8>>,
    lock: Option<Vec<u8>>,
    /// A folder in which the file lies that is missing in the root.
    nested: Option<String>,
}

impl Root {
    fn missing(&self) -> String {
        let base = "there is no requirements.txt (Python) and no package.json (Node) in the root of the archive";
        match &self.nested {
            Some(folder) => format!(
                "{base}, but in {folder}; pack the content of that folder: tar -czf bundle.tar.gz -C {folder} ."
            ),
            None => base.into(),
        }
    }
}

impl Sink for Root {
    fn folder(&mut self, path: &str) -> io::Result<()> {
        if !path.contains('/') {
            self.names.insert(path.to_owned());
        }
        Ok(())
    }

    fn file(&mut self, path: &str, _: bool, content: &mut dyn Read) -> io::Result<()> {
        let slot = match path {
            "requirements.txt" => Some((&mut self.requirements, requirements::FILE_BYTES_MAX)),
            "package.json" => Some((&mut self.package, package_json::FILE_BYTES_MAX)),
            "package-lock.json" => Some((&mut self.lock, package_json::LOCK_BYTES_MAX)),
            _ => None,
        };
        if let Some((slot, max)) = slot {
            let mut bytes = Vec::new();
            // One byte more than is allowed: the checker says that it is too long.
            content.take(max as u64 + 1).read_to_end(&mut bytes)?;
            *slot = Some(bytes);
        }
        match path.rsplit_once('/') {
            None => {
                self.names.insert(path.to_owned());
            }
            Some((folder, "requirements.txt" | "package.json")) if self.nested.is_none() => {
                self.nested = Some(folder.to_owned());
            }
            Some(_) => {}
        }
        io::copy(content, &mut io::sink()).map(|_| ())
    }
}

struct Unpack<'a> {
    into: PathBuf,
    wrote: &'a mut dyn FnMut(u64),
}

impl Sink for Unpack<'_> {
    fn folder(&mut self, path: &str) -> io::Result<()> {
        fs::DirBuilder::new()
            .mode(0o755)
            .create(self.into.join(path))
    }

    fn file(&mut self, path: &str, executable: bool, content: &mut dyn Read) -> io::Result<()> {
        let mode = if executable { 0o755 } else { 0o644 };
        // A new file or none: nothing that is there is ever opened, so no link can be followed.
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits())
            .open(self.into.join(path))?;
        let mut file = Telling {
            file,
            wrote: &mut *self.wrote,
        };
        io::copy(content, &mut file).map(|_| ())
    }
}

/// A file that says what was written to it.
struct Telling<'a> {
    file: fs::File,
    wrote: &'a mut dyn FnMut(u64),
}

impl io::Write for Telling<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        (self.wrote)(count as u64);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
