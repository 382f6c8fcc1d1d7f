//! Who is whose child, as `/proc` tells it. Reads only; a process that is gone is no error.

use std::fs;

/// No walk returns more processes than this. The caller walks again until none is left.
const PROCESSES_MAX: usize = 65_536;
/// How much of a process's environment is looked at.
const ENVIRON_BYTES_MAX: u64 = 1024 * 1024;

/// The part of `/proc/PID/stat` that we use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) zombie: bool,
    pub(crate) parent: i32,
    pub(crate) session: i32,
}

/// Every living descendant of `root`, parents before their children. May miss one that is being
/// born or adopted during the walk: the kernel's list is not a snapshot.
pub(crate) fn descendants(root: i32) -> Vec<i32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        next += 1;
        match children(pid) {
            Some(children) => found.extend(children),
            // A kernel without these lists, or the process is gone.
            None if pid == root => return descendants_by_scan(root),
            None => {}
        }
        found.truncate(PROCESSES_MAX);
    }
    found.remove(0);
    found
}

/// Processes of `session`, or with `tag` as a string of their environment; without zombies.
pub(crate) fn members(session: i32, tag: &str) -> Vec<i32> {
    let belongs = |pid: &i32| match stat(*pid) {
        Some(stat) => !stat.zombie && (stat.session == session || has_tag(*pid, tag)),
        None => false,
    };
    pids().filter(belongs).take(PROCESSES_MAX).collect()
}

/// Parses `/proc/PID/stat`; `None` if the process is gone.
pub(crate) fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The children of all threads of `pid`; `None` if the kernel does not tell.
fn children(pid: i32) -> Option<Vec<i32>> {
    let mut all = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let list = fs::read_to_string(task.path().join("children")).ok()?;
        all.extend(
            list.split_ascii_whitespace()
                .filter_map(|pid| pid.parse::<i32>().ok()),
        );
    }
    Some(all)
}

/// As [`descendants`], from every process's parent field.
fn descendants_by_scan(root: i32) -> Vec<i32> {
    let parents: Vec<(i32, i32)> = pids()
        .filter_map(|pid| Some((pid, stat(pid)?.parent)))
        .take(PROCESSES_MAX)
        .collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&above) = found.get(next) {
        next += 1;
        found.extend(
            parents
                .iter()
                .filter(|(_, parent)| *parent == above)
                .map(|(pid, _)| pid),
        );
    }
    found.remove(0);
    found
}

fn pids() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn has_tag(pid: i32, tag: &str) -> bool {
    use std::io::Read;
    let mut environ = Vec::new();
    let read = fs::File::open(format!("/proc/{pid}/environ"))
        .and_then(|file| file.take(ENVIRON_BYTES_MAX).read_to_end(&mut environ));
    read.is_ok()
        && environ
            .split(|byte| *byte == 0)
            .any(|entry| entry == tag.as_bytes())
}

/// The program's name stands in parentheses and may hold anything, parentheses included; the fields
/// start after the last one.
fn parse_stat(text: &str) -> Option<Stat> {
    let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let _group = fields.next()?;
    let session = fields.next()?.parse().ok()?;
    Some(Stat {
        zombie: matches!(state, "Z" | "X"),
        parent,
        session,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines() {
        let stat = |zombie, parent, session| {
            Some(Stat {
                zombie,
                parent,
                session,
            })
        };
        for (text, expected) in [
            ("7 (sh) S 1 7 5 0 -1 4194304", stat(false, 1, 5)),
            ("7 (a) Z 9 (b)) Z 3 7 4 0", stat(true, 3, 4)),
            ("7 (sh) S 1 7", None),
            ("7 (sh) S one 7 5", None),
            ("7 sh S 1 7 5", None),
            ("7 (sh)", None),
            ("", None),
        ] {
            assert_eq!(parse_stat(text), expected, "{text}");
        }
    }

    #[test]
    fn both_walks_find_a_grandchild() {
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "sleep 60 & echo $!; read line; kill $!"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = std::io::BufReader::new(shell.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
        let pids = [shell.id() as i32, line.trim().parse().unwrap()];
        let root = std::process::id() as i32;
        for found in [descendants(root), descendants_by_scan(root)] {
            assert!(
                pids.iter().all(|pid| found.contains(pid)),
                "{pids:?} in {found:?}"
            );
        }
        assert_eq!(descendants(pids[0]), [pids[1]]);
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }
}
