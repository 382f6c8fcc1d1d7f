//! Small files that survive a crash: each is written beside its place and moved there, so that a reader finds the old
//! or the new one, never a half.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Writes a value.
///
/// # Errors
/// The system's; the old value is still there then.
pub fn put<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)?;
    file.write_all(&serde_json::to_vec(value)?)?;
    file.sync_data()?;
    fs::rename(&beside, path)?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// Reads a value; none if there is none, or none that can be understood (which is logged).
pub fn get<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let bytes = fs::read(path).ok()?;
    match serde_json::from_slice(&bytes) {
        Ok(value) => Some(value),
        Err(error) => {
            tracing::error!(path = %path.display(), line = error.line(), "a file of the runner's state is not understood");
            None
        }
    }
}

/// All values in a folder.
pub fn all<T: DeserializeOwned>(folder: &Path) -> Vec<T> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "json"));
    paths.filter_map(|path| get(&path)).collect()
}

/// Removes a value. Fine if there is none.
pub fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}
