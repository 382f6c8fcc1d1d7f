//! Bytecode of a folder of Python packages in one file, with a list of what is in which folder: what `shim/sitecustomize.py`
//! imports from. A sandbox's folders never change, so nothing need be asked twice.
//!
//! Only what Python itself would take is packed: bytecode of this version that names time and size of its source, or that
//! is not to be checked. The tree may be hostile; nothing in it is followed or understood but names and those 16 bytes.
//!
//! ```text
//! file:  magic number, length of the list (u32), the list, bytecode
//! list:  {folder: {name: (1 for a package, offset, length), or None: Python is to search by itself}}, as Python marshals it
//! ```

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

use crate::context::random_name;
use crate::rootfs::Rootfs;

/// Of the bundle's own packages.
const OWN: &str = ".weir-packed";
/// Of Python's standard library.
const STANDARD: &str = ".weir-standard";
/// What reads them, under the name that Python imports first of all.
const READER: &str = "sitecustomize.py";
const READER_TEXT: &str = include_str!("../shim/sitecustomize.py");

/// Where the standard library is, in a sandbox.
const STANDARD_LIBRARY: &str = "/usr/lib/python3.11";
/// CPython 3.11.
const MAGIC: [u8; 4] = [0xa7, 0x0d, 0x0d, 0x0a];
const TAG: &str = ".cpython-311.pyc";
const HEADER_BYTES: u64 = 16;
/// More bytecode than this is left in its files.
const BYTES_MAX: u64 = 256 * 1024 * 1024;
const DEPTH_MAX: usize = 64;
/// Never imported by a server; searched by Python itself.
const LEFT_OUT: &[&str] = &[
    "test",
    "tests",
    "idlelib",
    "lib2to3",
    "pydoc_data",
    "turtledemo",
    "ensurepip",
];

/// Packs the bytecode of the layer, and of the standard library: that pack is of the root file system, made once and
/// copied, so that one never meets the other of another version. `packs` is the folder of those. A link would do, but its
/// count and change time tell one tenant when another has a layer built.
///
/// # Errors
/// The system's.
pub fn layer(deps: &Path, packs: &Path, rootfs: &Rootfs) -> io::Result<()> {
    let standard = packs.join(&rootfs.id);
    if !standard.exists() {
        let making = packs.join(random_name());
        let library = rootfs.path.join(STANDARD_LIBRARY.trim_start_matches('/'));
        write(&library, STANDARD_LIBRARY, &making)?;
        // Another build may have put its own there meanwhile; it is the same.
        fs::rename(&making, &standard)?;
    }
    write(deps, "/deps", &deps.join(OWN))?;
    // Never what is there: it is of the tenant's making, and may be a link.
    let mut own = create(&deps.join(STANDARD))?;
    io::copy(&mut File::open(&standard)?, &mut own)?;
    put_reader(deps)
}

/// Puts the reader beside the packs. Packages that have one of their own keep it, and are imported without packs.
///
/// # Errors
/// The system's.
fn put_reader(deps: &Path) -> io::Result<()> {
    match create(&deps.join(READER)) {
        Ok(mut file) => file.write_all(READER_TEXT.as_bytes()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Packs what is in `folder`, which is `guest` in a sandbox, into a new file.
///
/// # Errors
/// The system's. What was written so far is removed.
fn write(folder: &Path, guest: &str, to: &Path) -> io::Result<()> {
    let codes = to.with_extension("codes");
    let done = write_with(folder, guest, to, &codes);
    let _ = fs::remove_file(&codes);
    if done.is_err() {
        let _ = fs::remove_file(to);
    }
    done
}

/// The list is known only after the last bytecode was seen, and stands before it: so that goes into a second file first.
fn write_with(folder: &Path, guest: &str, to: &Path, codes: &Path) -> io::Result<()> {
    let mut pack = Pack {
        folders: BTreeMap::new(),
        codes: BufWriter::new(create(codes)?),
        bytes: 0,
    };
    pack.folder(folder, guest, 0)?;
    pack.codes.flush()?;
    let list = pack.list();
    let length = u32::try_from(list.len()).map_err(io::Error::other)?;
    let mut file = create(to)?;
    file.write_all(&MAGIC)?;
    file.write_all(&length.to_le_bytes())?;
    file.write_all(&list)?;
    io::copy(&mut File::open(codes)?, &mut file)?;
    Ok(())
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(path)
}

struct Pack {
    folders: BTreeMap<String, Names>,
    codes: BufWriter<File>,
    bytes: u64,
}

/// Importable names of one folder; none for what Python is to search by itself.
type Names = BTreeMap<String, Option<Place>>;

/// Bytecode in the pack.
struct Place {
    package: bool,
    at: u64,
    size: u64,
}

impl Pack {
    fn folder(&mut self, folder: &Path, guest: &str, depth: usize) -> io::Result<()> {
        let (mut names, mut sources) = (Names::new(), Vec::new());
        let mut entries: Vec<(String, fs::FileType)> = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            // A name that is no text cannot be imported.
            if let Ok(name) = entry.file_name().into_string() {
                entries.push((name, entry.file_type()?));
            }
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, kind) in entries {
            if kind.is_dir() {
                let inner = folder.join(&name);
                let place = self.package(&inner)?;
                names.insert(name.clone(), place);
                if depth < DEPTH_MAX && worth(&name) {
                    self.folder(&inner, &format!("{guest}/{name}"), depth + 1)?;
                }
                continue;
            }
            match name.strip_suffix(".py") {
                Some(stem) if kind.is_file() => sources.push(stem.to_owned()),
                // Python would find these by their first word, some before a source.
                _ if kind.is_symlink() || name.ends_with(".so") || name.ends_with(".pyc") => {
                    let stem = name.split('.').next().unwrap_or_default();
                    names.insert(stem.to_owned(), None);
                }
                _ => {}
            }
        }
        for stem in sources {
            if let Entry::Vacant(name) = names.entry(stem) {
                let place = self.module(folder, name.key(), false)?;
                name.insert(place);
            }
        }
        self.folders.insert(guest.to_owned(), names);
        Ok(())
    }

    /// A folder with an `__init__.py` and no extension of that name, which would go first.
    fn package(&mut self, folder: &Path) -> io::Result<Option<Place>> {
        let extension = fs::read_dir(folder)?.flatten().any(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("__init__.") && name.ends_with(".so")
        });
        if extension {
            Ok(None)
        } else {
            self.module(folder, "__init__", true)
        }
    }

    fn module(&mut self, folder: &Path, stem: &str, package: bool) -> io::Result<Option<Place>> {
        let source = folder.join(format!("{stem}.py"));
        let cache = folder.join("__pycache__");
        // A link would lead out of the tree, and into whatever the tenant likes of this host.
        if !fs::symlink_metadata(&cache).is_ok_and(|m| m.is_dir()) {
            return Ok(None);
        }
        let compiled = cache.join(format!("{stem}{TAG}"));
        let Some(mut code) = fitting(&source, &compiled) else {
            return Ok(None);
        };
        let size = code.metadata()?.len() - HEADER_BYTES;
        if self.bytes + size > BYTES_MAX {
            return Ok(None);
        }
        let at = self.bytes;
        self.bytes += io::copy(&mut code, &mut self.codes)?;
        Ok((self.bytes == at + size).then_some(Place { package, at, size }))
    }

    fn list(&self) -> Vec<u8> {
        let mut out = vec![b'{'];
        for (folder, names) in &self.folders {
            text(&mut out, folder);
            out.push(b'{');
            for (name, place) in names {
                text(&mut out, name);
                match place {
                    None => out.push(b'N'),
                    Some(place) => {
                        out.extend_from_slice(b")\x03");
                        for number in [u64::from(place.package), place.at, place.size] {
                            let number = i32::try_from(number).expect("under 256 MiB");
                            out.push(b'i');
                            out.extend_from_slice(&number.to_le_bytes());
                        }
                    }
                }
            }
            out.push(b'0');
        }
        out.push(b'0');
        out
    }
}

fn worth(folder: &str) -> bool {
    folder != "__pycache__" && !folder.ends_with(".dist-info") && !LEFT_OUT.contains(&folder)
}

/// A string as Python marshals it.
fn text(out: &mut Vec<u8>, text: &str) {
    out.push(b'u');
    out.extend_from_slice(&u32::try_from(text.len()).unwrap_or(0).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// The bytecode of a source behind its header, if Python would take it.
fn fitting(source: &Path, compiled: &Path) -> Option<File> {
    let (meta, found) = (
        fs::symlink_metadata(source).ok()?,
        fs::symlink_metadata(compiled).ok()?,
    );
    if !meta.is_file() || !found.is_file() || found.len() <= HEADER_BYTES {
        return None;
    }
    let mut file = File::open(compiled).ok()?;
    let mut header = [0; HEADER_BYTES as usize];
    file.read_exact(&mut header).ok()?;
    let word =
        |n: usize| u32::from_le_bytes([header[n], header[n + 1], header[n + 2], header[n + 3]]);
    let modified = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    // Python too compares the lower 32 bits.
    let same = word(8) == modified.as_secs() as u32 && word(12) == meta.len() as u32;
    const UNCHECKED: u32 = 1;
    (header[..4] == MAGIC && (word(4) == UNCHECKED || word(4) == 0 && same)).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, path: &str, bytes: &[u8]) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, bytes).expect("written");
    }

    /// Bytecode of a source that is there already.
    fn compiled(root: &Path, folder: &str, stem: &str, flags: u32, off_by: u32, code: &[u8]) {
        let meta = fs::metadata(root.join(folder).join(format!("{stem}.py"))).expect("a source");
        let modified = meta
            .modified()
            .expect("a time")
            .duration_since(UNIX_EPOCH)
            .expect("after 1970");
        let mut bytes = MAGIC.to_vec();
        for word in [flags, modified.as_secs() as u32, meta.len() as u32 + off_by] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(code);
        put(root, &format!("{folder}/__pycache__/{stem}{TAG}"), &bytes);
    }

    #[test]
    fn only_what_python_would_take_is_packed() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().join("deps");
        for name in [
            "good",
            "stale",
            "checked",
            "unchecked",
            "shadowed",
            "bare",
            "twin",
        ] {
            put(&root, &format!("{name}.py"), b"x = 1\n");
        }
        put(&root, "shadowed.abi3.so", b"");
        put(&root, "good.pyi", b"");
        put(&root, "both/__init__.py", b"");
        put(&root, "both/__init__.abi3.so", b"");
        put(&root, "twin/data.txt", b"");
        put(&root, "package/__init__.py", b"");
        put(&root, "package/inner.py", b"");
        std::os::unix::fs::symlink("/etc/passwd", root.join("link.py")).expect("linked");
        put(&root, "led/away.py", b"");
        compiled(&root, "led", "away", 0, 0, b"AWAY");
        let elsewhere = dir.path().join("elsewhere");
        fs::rename(root.join("led/__pycache__"), &elsewhere).expect("moved");
        std::os::unix::fs::symlink(&elsewhere, root.join("led/__pycache__")).expect("linked");
        std::os::unix::fs::symlink(root.join("package"), root.join("alias")).expect("linked");
        compiled(&root, ".", "good", 0, 0, b"GOOD");
        compiled(&root, ".", "stale", 0, 1, b"STALE");
        compiled(&root, ".", "checked", 3, 1, b"CHECKED");
        compiled(&root, ".", "unchecked", 1, 1, b"UNCHECKED");
        compiled(&root, ".", "shadowed", 0, 0, b"SHADOWED");
        compiled(&root, ".", "twin", 0, 0, b"TWIN");
        compiled(&root, "both", "__init__", 0, 0, b"BOTH");
        compiled(&root, "package", "__init__", 0, 0, b"PACKAGE");
        compiled(&root, "package", "inner", 0, 0, b"INNER");
        let mut pack = Pack {
            folders: BTreeMap::new(),
            codes: BufWriter::new(create(&dir.path().join("codes")).expect("made")),
            bytes: 0,
        };
        pack.folder(&root, "/deps", 0).expect("packed");
        pack.codes.flush().expect("written");
        let codes = fs::read(dir.path().join("codes")).expect("read");
        let code = |folder: &str, name: &str| {
            let place = pack.folders[folder][name].as_ref()?;
            let at = usize::try_from(place.at).expect("small");
            let bytes = &codes[at..at + usize::try_from(place.size).expect("small")];
            Some((place.package, String::from_utf8_lossy(bytes).into_owned()))
        };
        for (folder, name, expected) in [
            ("/deps", "good", Some((false, "GOOD"))),
            ("/deps", "stale", None),
            ("/deps", "checked", None),
            ("/deps", "unchecked", Some((false, "UNCHECKED"))),
            ("/deps", "shadowed", None),
            ("/deps", "bare", None),
            ("/deps", "twin", None),
            ("/deps", "link", None),
            ("/deps", "alias", None),
            ("/deps/led", "away", None),
            ("/deps", "both", None),
            ("/deps", "package", Some((true, "PACKAGE"))),
            ("/deps/package", "inner", Some((false, "INNER"))),
        ] {
            let expected = expected.map(|(package, code)| (package, code.to_owned()));
            assert_eq!(code(folder, name), expected, "{folder}/{name}");
        }
        assert!(!pack.folders["/deps"].contains_key("missing"));
        assert!(
            !pack.folders.contains_key("/deps/alias"),
            "a link was followed"
        );
    }

    #[test]
    fn layers_share_no_file() {
        use std::os::unix::fs::{MetadataExt as _, symlink};
        let dir = tempfile::tempdir().expect("a folder");
        let rootfs = Rootfs {
            id: "one".into(),
            path: dir.path().join("root"),
        };
        put(&rootfs.path, "usr/lib/python3.11/abc.py", b"x = 1\n");
        let packs = dir.path().join("packs");
        fs::create_dir(&packs).expect("made");
        let deps = ["a", "b"].map(|name| dir.path().join(name));
        for deps in &deps {
            fs::create_dir(deps).expect("made");
            layer(deps, &packs, &rootfs).expect("packed");
        }
        let metas = deps.map(|deps| fs::metadata(deps.join(STANDARD)).expect("a pack"));
        assert_ne!(metas[0].ino(), metas[1].ino());
        assert!(metas.iter().all(|meta| meta.nlink() == 1 && meta.len() > 0));
        // A link of the tenant's is not written through.
        let (deps, aim) = (dir.path().join("c"), dir.path().join("aim"));
        fs::create_dir(&deps).expect("made");
        symlink(&aim, deps.join(STANDARD)).expect("linked");
        assert!(layer(&deps, &packs, &rootfs).is_err() && !aim.exists());
    }

    #[test]
    fn a_tenants_own_reader_is_kept() {
        let dir = tempfile::tempdir().expect("a folder");
        put(dir.path(), READER, b"mine = 1\n");
        put_reader(dir.path()).expect("fine");
        let text = fs::read(dir.path().join(READER)).expect("read");
        assert_eq!(text, b"mine = 1\n");
    }

    #[test]
    fn what_cannot_be_packed_leaves_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        let to = dir.path().join("pack");
        assert!(write(&dir.path().join("missing"), "/deps", &to).is_err());
        assert_eq!(fs::read_dir(dir.path()).expect("read").count(), 0);
    }
}
