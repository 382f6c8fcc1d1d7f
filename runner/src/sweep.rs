//! What an earlier life of the runner left half made: uploads, builds with their disks, packs.

use std::fs;
use std::path::{Path, PathBuf};

/// Lists it. To be asked before anything new is begun.
pub(crate) fn unfinished(state: &Path) -> Vec<PathBuf> {
    let under = |dir: &str| {
        let entries = fs::read_dir(state.join(dir)).into_iter().flatten();
        entries.flatten().map(|entry| entry.path())
    };
    // What is finished in packs has the name of a root file system, which has parts; what is being made has one.
    let unnamed = |path: &PathBuf| {
        !path
            .to_string_lossy()
            .rsplit('/')
            .next()
            .unwrap_or("")
            .contains('-')
    };
    under("uploads")
        .chain(under("packs").filter(unnamed))
        .collect()
}

/// Takes it away. To be done once the sandboxes of builds have ended.
pub(crate) fn remove(unfinished: &[PathBuf]) {
    for path in unfinished {
        tracing::info!(path = %path.display(), "what was not finished is removed");
        if path.is_dir() {
            // Where nothing is mounted, nothing happens.
            sandbox::drop_storage(&path.with_extension("ext4"), &path.join("out"));
        }
        let removed = if path.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        };
        if let Err(error) = removed
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "it is left");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_half_made_goes() {
        let dir = tempfile::tempdir().expect("a folder");
        let made = ["packs/python-bookworm-x/a", "layers/t/l/deps", "bundles/b"];
        let half = [
            "packs/qwertyuiopasdfgh/a",
            "uploads/abcdefghijklmnop/out/x",
            "uploads/file",
        ];
        for path in made.iter().chain(&half) {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, "x").expect("written");
        }
        let found = unfinished(dir.path());
        assert_eq!(found.len(), 3, "{found:?}");
        remove(&found);
        assert!(made.iter().all(|path| dir.path().join(path).exists()));
        assert!(half.iter().all(|path| !dir.path().join(path).exists()));
        assert_eq!(unfinished(dir.path()), Vec::<PathBuf>::new());
    }
}
