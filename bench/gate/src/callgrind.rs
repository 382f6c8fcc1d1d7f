//! Runs the cases under callgrind and reads its profiles.
//!
//! A profile's lines: `ob=` names the object, `fl=`/`fi=`/`fe=` the source file (inlined code keeps its own), `fn=` the
//! function; `calls=` announces that the next line is what a callee cost, which is counted where it was spent. Other
//! lines that begin with a number are a line number and a cost. Strings and positions are written out by our choice of
//! options. Source: the "Callgrind Format Specification" of the valgrind manual.

use crate::work::MEASURED;
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// Instructions of one case by room (the crate whose source the code is from; everything else is `libraries`).
pub type Count = BTreeMap<String, u64>;

/// A profile larger than this is not ours.
const PROFILE_BYTES_MAX: u64 = 64 << 20;

/// Whether valgrind can be run.
pub fn installed() -> bool {
    let mut command = Command::new("valgrind");
    command
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Counts every case: (name, count) in the order they ran.
pub fn count() -> anyhow::Result<Vec<(String, Count)>> {
    let program = std::env::current_exe()?;
    let folder = tempfile::tempdir()?;
    let out = folder.path().join("profile");
    let output = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--collect-atstart=no",
            "--compress-strings=no",
            "--compress-pos=no",
        ])
        .arg(format!("--toggle-collect={MEASURED}"))
        .arg(format!("--dump-after={MEASURED}"))
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(&program)
        .arg("work")
        .env_remove("RUST_BACKTRACE")
        .stdin(Stdio::null())
        .output()
        .context("valgrind")?;
    if !output.status.success() {
        bail!(
            "valgrind: {}:\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let names = String::from_utf8(output.stdout).context("the cases' names")?;
    names
        .lines()
        .enumerate()
        .map(|(at, name)| {
            let file = folder.path().join(format!("profile.{}", at + 1));
            let count = sum(&read(&file)?, &program.to_string_lossy());
            if count.values().sum::<u64>() == 0 {
                bail!("{name}: callgrind counted nothing; are the program's symbols stripped?");
            }
            Ok((name.to_owned(), count))
        })
        .collect()
}

fn read(file: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::metadata(file)
        .with_context(|| file.display().to_string())?
        .len();
    if bytes > PROFILE_BYTES_MAX {
        bail!("{}: {bytes} bytes", file.display());
    }
    // File names within may be anything.
    Ok(String::from_utf8_lossy(&std::fs::read(file)?).into_owned())
}

/// Adds up what was spent inside `object`, by room.
fn sum(profile: &str, object: &str) -> Count {
    let (mut inside, mut room, mut callee) = (false, LIBRARIES, false);
    let mut count = Count::new();
    for line in profile.lines() {
        if let Some(name) = line.strip_prefix("ob=") {
            inside = name == object;
        } else if let Some(file) = ["fl=", "fi=", "fe="]
            .iter()
            .find_map(|key| line.strip_prefix(key))
        {
            room = room_of(file);
        } else if line.starts_with("calls=") {
            callee = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit())
            && !std::mem::take(&mut callee)
            && inside
        {
            let cost = line
                .split(' ')
                .nth(1)
                .and_then(|cost| cost.parse::<u64>().ok());
            *count.entry(room.to_owned()).or_default() += cost.unwrap_or(0);
        }
    }
    count
}

const LIBRARIES: &str = "libraries";

/// `.../proxy/crates/dlp-scan/src/gate.rs` is `dlp-scan`.
fn room_of(file: &str) -> &str {
    let Some((_, rest)) = file.split_once("proxy/crates/") else {
        return LIBRARIES;
    };
    rest.split('/').next().unwrap_or(LIBRARIES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_code_counts_once_and_the_c_library_never() {
        let profile = "\
version: 1\npositions: line\nevents: Ir\nsummary: 999\n\n\
ob=/x/gate\nfl=proxy/crates/dlp-scan/src/gate.rs\nfn=scan\n10 100\n11 5\n\
fi=/rustc/abc/library/core/src/slice.rs\n99 7\nfe=proxy/crates/dlp-scan/src/gate.rs\n12 1\n\
cob=/lib/libc.so.6\ncfi=string.S\ncfn=memcpy\ncalls=3 0\n12 5000\n13 2\n\
cfn=other\ncalls=1 0\n14 400\n\n\
ob=/lib/libc.so.6\nfl=string.S\nfn=memcpy\n0 5000\n\n\
ob=/x/gate\nfl=somewhere/memchr/src/lib.rs\nfn=other\n1 400\n";
        let expected = [("dlp-scan", 108), ("libraries", 407)];
        let expected: Count = expected.map(|(room, n)| (room.to_owned(), n)).into();
        assert_eq!(sum(profile, "/x/gate"), expected);
        assert!(sum(profile, "/x/other").is_empty());
        for cut in 0..profile.len() {
            sum(&profile[..cut], "/x/gate");
        }
    }

    #[test]
    fn rooms() {
        for (file, room) in [
            ("/a/b/proxy/crates/mcp-codec/src/parse.rs", "mcp-codec"),
            ("proxy/crates/gateway/src/pipeline/stage.rs", "gateway"),
            ("/rustc/1/library/alloc/src/vec/mod.rs", "libraries"),
            ("???", "libraries"),
        ] {
            assert_eq!(room_of(file), room);
        }
    }
}
