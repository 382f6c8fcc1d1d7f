//! Small files that survive a crash: each is written beside its place and moved there, so that a reader finds the old
//! or the new one, never a half. How that is done is the vault's, and tried there with the power cut at every step.

use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use vault::{Dir, Disk as _};

/// Writes a value.
///
/// # Errors
/// The system's; the old value is still there then.
pub fn put<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    put_bytes(path, &serde_json::to_vec(value)?)
}

/// Writes bytes.
///
/// # Errors
/// The system's; the old ones are still there then.
pub fn put_bytes(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (mut folder, name) = place(path)?;
    vault::replace(&mut folder, name, bytes).map_err(|error| error.source)
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

/// All values in a folder that can be read.
pub fn all<T: DeserializeOwned>(folder: &Path) -> Vec<T> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|e| e.path()).filter(|path| is_value(path));
    paths.filter_map(|path| get(&path)).collect()
}

/// All values in a folder, for who draws conclusions from what is not among them.
///
/// # Errors
/// One of them, or the folder, cannot be read.
pub fn every<T: DeserializeOwned>(folder: &Path) -> io::Result<Vec<T>> {
    let mut every = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !is_value(&path) {
            continue;
        }
        match fs::read(&path) {
            Ok(bytes) => every.push(serde_json::from_slice(&bytes)?),
            // It went meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(every)
}

fn is_value(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "json")
}

/// Removes a value, so that it does not come back. Fine if there is none.
pub fn remove(path: &Path) {
    let removed = place(path).and_then(|(mut folder, name)| {
        folder.remove(name)?;
        folder.sync_names()
    });
    if let Err(error) = removed
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::error!(path = %path.display(), %error, "a file of the runner's state cannot be removed");
    }
}

fn place(path: &Path) -> io::Result<(Dir, &str)> {
    let name = path.file_name().and_then(|name| name.to_str());
    match (path.parent(), name) {
        (Some(folder), Some(name)) => Ok((Dir::within(folder), name)),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_crash_left_beside_a_value_is_not_one() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("one.json");
        put(&path, &"old").expect("written");
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        // Cut off in the middle of the next one.
        fs::write(dir.path().join("one.json.new"), "\"ne").expect("written");
        assert_eq!(all::<String>(dir.path()), ["old"]);
        put(&path, &"new").expect("written");
        assert_eq!(get::<String>(&path).as_deref(), Some("new"));
        assert_eq!(
            fs::read_dir(dir.path()).expect("read").count(),
            1,
            "nothing is left beside it"
        );
        // What cannot be read is left out, or said.
        assert_eq!(every::<String>(dir.path()).expect("read"), ["new"]);
        fs::write(dir.path().join("two.json"), "{").expect("written");
        assert_eq!(all::<String>(dir.path()), ["new"]);
        assert!(every::<String>(dir.path()).is_err());
        assert!(every::<String>(&dir.path().join("none")).is_err());
        remove(&dir.path().join("two.json"));
        remove(&path);
        remove(&path);
        assert!(all::<String>(dir.path()).is_empty());
    }
}
