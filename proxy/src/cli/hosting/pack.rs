//! A folder as a bundle.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Folders that are never part of a server.
const LEFT_OUT: &[&str] = &[
    ".git",
    ".venv",
    "venv",
    "__pycache__",
    "node_modules",
    ".DS_Store",
    ".mypy_cache",
    ".pytest_cache",
];
/// Files whose name says that they hold secrets: those are set with `weir secret set`.
const SECRET: &[&str] = &[".env", "id_rsa", "id_ed25519"];
/// As many as the runner takes.
const PACKED_BYTES_MAX: usize = 250_000_000;
const DEPTH_MAX: usize = 32;

/// Reads an archive, or packs a folder.
pub fn bundle(path: &Path) -> anyhow::Result<Vec<u8>> {
    let meta = std::fs::metadata(path).with_context(|| path.display().to_string())?;
    let bytes = if meta.is_dir() {
        folder(path)?
    } else {
        std::fs::read(path).with_context(|| path.display().to_string())?
    };
    if bytes.len() > PACKED_BYTES_MAX {
        bail!(
            "{} is {} MB when packed, at most {} MB are taken",
            path.display(),
            bytes.len() / 1_000_000,
            PACKED_BYTES_MAX / 1_000_000
        );
    }
    Ok(bytes)
}

fn folder(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    add(&mut archive, path, Path::new(""), 0)?;
    let mut packed = archive.into_inner()?;
    packed.flush()?;
    Ok(packed.finish()?)
}

fn add(
    archive: &mut tar::Builder<GzEncoder<Vec<u8>>>,
    from: &Path,
    within: &Path,
    depth: usize,
) -> anyhow::Result<()> {
    if depth > DEPTH_MAX {
        bail!("{} lies deeper than {DEPTH_MAX} folders", from.display());
    }
    let mut entries: Vec<_> = std::fs::read_dir(from)
        .with_context(|| from.display().to_string())?
        .collect::<Result<_, _>>()?;
    // The same folder is the same bundle, whatever order the file system has.
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let text = name.to_string_lossy();
        if LEFT_OUT.contains(&text.as_ref()) || text.ends_with(".pyc") {
            continue;
        }
        let (path, inside) = (entry.path(), within.join(&name));
        if SECRET.contains(&text.as_ref()) {
            bail!(
                "{} looks like secrets; they do not belong into a bundle. Move it away, and use `weir secret set`",
                path.display()
            );
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            add(archive, &path, &inside, depth + 1)?;
        } else if kind.is_file() {
            let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            header.set_entry_type(tar::EntryType::Regular);
            archive.append_data(&mut header, &inside, bytes.as_slice())?;
        } else {
            bail!(
                "{} is neither a file nor a folder, and cannot be part of a bundle",
                path.display()
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn a_folder_is_packed_in_one_way_without_what_does_not_belong() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, name).unwrap();
        };
        for name in [
            "server.py",
            "requirements.txt",
            "lib/a.py",
            ".git/config",
            "__pycache__/x.pyc",
            "lib/b.pyc",
            "node_modules/x/y.js",
        ] {
            write(name);
        }
        let one = bundle(dir.path()).unwrap();
        assert!(one == bundle(dir.path()).unwrap());
        let mut tar = Vec::new();
        flate2::read::GzDecoder::new(one.as_slice())
            .read_to_end(&mut tar)
            .unwrap();
        let mut archive = tar::Archive::new(tar.as_slice());
        let names: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|e| e.unwrap().path().unwrap().display().to_string())
            .collect();
        assert_eq!(names, ["lib/a.py", "requirements.txt", "server.py"]);
        write("lib/.env");
        assert!(
            bundle(dir.path())
                .unwrap_err()
                .to_string()
                .contains("weir secret set")
        );
        std::fs::remove_file(dir.path().join("lib/.env")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
        assert!(bundle(dir.path()).is_err());
    }
}
