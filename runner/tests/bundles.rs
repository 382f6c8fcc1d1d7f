//! Hostile archives and hostile requirements: each is refused with a reason, and nothing is written outside.

mod common;

use std::io::Write;
use std::path::Path;

use common::{checksum, gzip, tar_header, tarball};
use weir_runner::bundle::tar::Bounds;
use weir_runner::bundle::{BundleError, list, package_json, requirements, unpack};

const REQ: (&str, &str) = ("requirements.txt", "httpx==0.28.1\n");

/// Small bounds, so that tests reach them.
fn bounds() -> Bounds {
    Bounds {
        packed_bytes: 1 << 20,
        unpacked_bytes: 1 << 20,
        entries: 200,
        depth: 8,
        ratio: 100,
    }
}

fn reason(bundle: &[u8]) -> Result<(), String> {
    let dir = tempfile::tempdir().expect("a folder");
    let packed = dir.path().join("b.tar.gz");
    std::fs::write(&packed, bundle).expect("written");
    let listed = list(&packed, bounds());
    let into = dir.path().join("into");
    // Also what the listing refuses must not hurt when it is unpacked.
    let unpacked = unpack(&packed, &into, bounds());
    let outside: Vec<_> = std::fs::read_dir(dir.path())
        .expect("listed")
        .flatten()
        .map(|e| e.file_name())
        .collect();
    assert!(
        outside.iter().all(|n| n == "b.tar.gz" || n == "into"),
        "written outside: {outside:?}"
    );
    only_plain_files(&into);
    match listed {
        Ok(_) => {
            unpacked.expect("what is listed can be unpacked");
            Ok(())
        }
        Err(BundleError::Refused(reasons)) => Err(reasons
            .iter()
            .map(|r| format!("{:?} {}", r.path, r.reason))
            .collect::<Vec<_>>()
            .join("; ")),
        Err(other) => panic!("{other:?}"),
    }
}

fn only_plain_files(dir: &Path) {
    use std::os::unix::fs::PermissionsExt;
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let kind = entry.file_type().expect("a kind");
        assert!(
            kind.is_dir() || kind.is_file(),
            "{:?} was made",
            entry.path()
        );
        let mode = entry.metadata().expect("metadata").permissions().mode() & 0o7777;
        assert!(
            mode == 0o755 || mode == 0o644,
            "{:?} has mode {mode:o}",
            entry.path()
        );
        if kind.is_dir() {
            only_plain_files(&entry.path());
        }
    }
}

/// An archive of a good requirements.txt and these raw blocks.
fn with(raw: Vec<u8>) -> Vec<u8> {
    let mut tar = entry(REQ.0, REQ.1.as_bytes(), b'0', "");
    tar.extend(raw);
    tar.resize(tar.len() + 1024, 0);
    gzip(&tar)
}

fn entry(path: &str, content: &[u8], kind: u8, link: &str) -> Vec<u8> {
    let mut raw = tar_header(path, content.len() as u64, kind, link);
    raw.extend(content);
    raw.resize(raw.len().next_multiple_of(512), 0);
    raw
}

fn changed(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut raw = entry("x", b"content", b'0', "");
    change(&mut raw);
    checksum(&mut raw);
    raw
}

fn pax(records: &[(&str, &str)], kind: u8) -> Vec<u8> {
    let text: String = records
        .iter()
        .map(|(key, value)| {
            let rest = format!(" {key}={value}\n");
            let mut len = rest.len() + 1;
            while format!("{len}{rest}").len() != len {
                len += 1;
            }
            format!("{len}{rest}")
        })
        .collect();
    entry("pax", text.as_bytes(), kind, "")
}

fn joined(parts: &[Vec<u8>]) -> Vec<u8> {
    parts.concat()
}

fn hostile_archives() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let file = |path: &str| entry(path, b"x", b'0', "");
    let good = || with(Vec::new());
    let mut cases = vec![
        ("parent folder", with(file("../evil")), "'.' or '..'"),
        (
            "parent folder inside",
            with(file("a/../../evil")),
            "'.' or '..'",
        ),
        (
            "parent folder at the end",
            with(file("a/..")),
            "'.' or '..'",
        ),
        ("dot inside", with(file("a/./b")), "'.' or '..'"),
        ("absolute", with(file("/etc/cron.d/evil")), "absolute"),
        ("absolute after dot", with(file(".//etc/evil")), "absolute"),
        ("empty part", with(file("a//b")), "empty part"),
        ("backslash", with(file("a\\..\\b")), "backslash"),
        (
            "drive letter and backslash",
            with(file("C:\\evil")),
            "backslash",
        ),
        (
            "symlink",
            with(entry("l", b"", b'2', "/etc/passwd")),
            "symbolic link",
        ),
        (
            "symlink inside",
            with(entry("l", b"", b'2', "requirements.txt")),
            "symbolic link",
        ),
        (
            "hard link",
            with(entry("l", b"", b'1', "/etc/shadow")),
            "hard link",
        ),
        (
            "hard link inside",
            with(entry("l", b"", b'1', "requirements.txt")),
            "hard link",
        ),
        (
            "link then write through it",
            with(joined(&[entry("d", b"", b'2', "/tmp"), file("d/evil")])),
            "symbolic link",
        ),
        (
            "character device",
            with(entry("null", b"", b'3', "")),
            "device",
        ),
        ("block device", with(entry("sda", b"", b'4', "")), "device"),
        ("fifo", with(entry("pipe", b"", b'6', "")), "fifo"),
        (
            "contiguous file",
            with(entry("c", b"x", b'7', "")),
            "neither",
        ),
        ("GNU sparse", with(entry("s", b"x", b'S', "")), "sparse"),
        (
            "GNU multi-volume",
            with(entry("m", b"x", b'M', "")),
            "neither",
        ),
        (
            "GNU volume label",
            with(entry("v", b"", b'V', "")),
            "neither",
        ),
        (
            "GNU dump folder",
            with(entry("d", b"", b'D', "")),
            "neither",
        ),
        (
            "GNU long link",
            with(entry("././@LongLink", b"/etc\0", b'K', "")),
            "neither",
        ),
        ("Solaris ACL", with(entry("a", b"x", b'A', "")), "neither"),
        ("unknown kind", with(entry("z", b"x", b'z', "")), "neither"),
        ("kind 255", with(entry("z", b"x", 0xff, "")), "neither"),
        (
            "set-uid",
            with(changed(|h| h[100..108].copy_from_slice(b"0004755\0"))),
            "set-uid",
        ),
        (
            "set-gid file",
            with(changed(|h| h[100..108].copy_from_slice(b"0002755\0"))),
            "set-uid",
        ),
        (
            "sticky file",
            with(changed(|h| h[100..108].copy_from_slice(b"0001755\0"))),
            "set-uid",
        ),
        (
            "mode is no number",
            with(changed(|h| h[100..108].copy_from_slice(b"rwxrwxr\0"))),
            "mode",
        ),
        ("size in base 256", with(changed(|h| h[124] = 0x80)), "size"),
        (
            "negative size",
            with(changed(|h| h[124..136].copy_from_slice(b"-0000000007\0"))),
            "size",
        ),
        (
            "size of eight exabytes",
            with(changed(|h| h[124..136].copy_from_slice(b"777777777777"))),
            "unpacks to more",
        ),
        ("size empty", with(changed(|h| h[124..136].fill(0))), "size"),
        (
            "size with garbage behind",
            with(changed(|h| {
                h[124..136].copy_from_slice(b"7\0\0\0\0\0\0\0\0\0\09")
            })),
            "size",
        ),
        (
            "size larger than the content",
            with(changed(|h| h[124..136].copy_from_slice(b"00000100000\0"))),
            "middle",
        ),
        (
            "content in a folder",
            with(entry("d", b"x", b'5', "")),
            "folder with content",
        ),
        (
            "wrong checksum",
            with({
                let mut raw = file("x");
                raw[0] = b'y';
                raw
            }),
            "wrong checksum",
        ),
        (
            "no checksum",
            with({
                let mut raw = file("x");
                raw[148..156].fill(0);
                raw
            }),
            "checksum",
        ),
        (
            "old format",
            with(changed(|h| h[257..265].fill(0))),
            "older than POSIX",
        ),
        ("twice", with(joined(&[file("a"), file("a")])), "twice"),
        (
            "requirements twice",
            with(file("requirements.txt")),
            "twice",
        ),
        (
            "twice by dot",
            with(joined(&[file("a"), file("./a")])),
            "twice",
        ),
        (
            "case twins",
            with(joined(&[
                file("Read.me"),
                file("README.ME"),
                file("read.me"),
            ])),
            "upper and lower case",
        ),
        (
            "case twins of folders",
            with(joined(&[file("Lib/a"), file("lib/b")])),
            "upper and lower case",
        ),
        (
            "file, then a folder of it",
            with(joined(&[file("a"), file("a/b")])),
            "folder should be",
        ),
        (
            "folder, then a file of it",
            with(joined(&[entry("a", b"", b'5', ""), file("a")])),
            "twice",
        ),
        ("invalid UTF-8", with(changed(|h| h[0] = 0xff)), "UTF-8"),
        ("decomposed letter", with(file("e\u{301}.py")), "combining"),
        ("zero width", with(file("a\u{200b}b")), "invisible"),
        ("right to left", with(file("a\u{202e}yp.x")), "direction"),
        ("line feed", with(file("a\nb")), "control"),
        ("escape", with(file("a\x1b[2Jb")), "control"),
        ("trailing dot", with(file("a.")), "ends with a space or dot"),
        ("leading space", with(file(" a")), "begins with a space"),
        ("too deep", with(file(&"d/".repeat(9).add("f"))), "deep"),
        (
            "name too long",
            with(joined(&[
                pax(&[("path", &"n".repeat(201))], b'x'),
                file("a"),
            ])),
            "longer than 200",
        ),
        (
            "path too long",
            with(joined(&[
                pax(&[("path", &"nnn/".repeat(200).add("f"))], b'x'),
                file("a"),
            ])),
            "longer than 512",
        ),
        (
            "PAX size",
            with(joined(&[pax(&[("size", "1")], b'x'), file("a")])),
            "sets size",
        ),
        (
            "PAX link path",
            with(joined(&[
                pax(&[("linkpath", "/etc/passwd")], b'x'),
                file("a"),
            ])),
            "sets linkpath",
        ),
        (
            "PAX sparse",
            with(joined(&[
                pax(&[("GNU.sparse.major", "1")], b'x'),
                file("a"),
            ])),
            "GNU.sparse",
        ),
        (
            "PAX charset",
            with(joined(&[pax(&[("hdrcharset", "BINARY")], b'x'), file("a")])),
            "hdrcharset",
        ),
        (
            "PAX path out",
            with(joined(&[pax(&[("path", "../evil")], b'x'), file("a")])),
            "'.' or '..'",
        ),
        (
            "PAX path with NUL",
            with(joined(&[pax(&[("path", "a\0b")], b'x'), file("a")])),
            "control",
        ),
        (
            "PAX global path",
            with(joined(&[pax(&[("path", "b")], b'g'), file("a")])),
            "sets path",
        ),
        (
            "PAX path twice",
            with(joined(&[
                pax(&[("path", "b"), ("path", "c")], b'x'),
                file("a"),
            ])),
            "sets path",
        ),
        (
            "PAX without length",
            with(joined(&[entry("p", b"path=x\n", b'x', ""), file("a")])),
            "malformed",
        ),
        (
            "PAX length too long",
            with(joined(&[entry("p", b"99 path=x\n", b'x', ""), file("a")])),
            "malformed",
        ),
        (
            "PAX length zero",
            with(joined(&[entry("p", b"0 path=x\n", b'x', ""), file("a")])),
            "malformed",
        ),
        (
            "PAX at the end",
            with(pax(&[("path", "b")], b'x')),
            "belongs to no file",
        ),
        (
            "PAX of a megabyte",
            with({
                let mut h = tar_header("p", 1 << 20, b'x', "");
                h.resize(512 + (1 << 20), b'x');
                h
            }),
            "too long",
        ),
        (
            "GNU long name without NUL",
            with(joined(&[
                entry("././@LongLink", b"abc", b'L', ""),
                file("a"),
            ])),
            "does not end",
        ),
        (
            "GNU long name out",
            with(joined(&[
                entry("././@LongLink", b"../evil\0", b'L', ""),
                file("a"),
            ])),
            "'.' or '..'",
        ),
        (
            "prefix out",
            with(changed(|h| h[345..353].copy_from_slice(b"../../ev"))),
            "'.' or '..'",
        ),
        (
            "too many files",
            with((0..300).flat_map(|n| file(&format!("f{n}"))).collect()),
            "more than 200",
        ),
        (
            "too large",
            with(entry("big", &vec![b'x'; 2 << 20], b'0', "")),
            "more",
        ),
        ("no gzip", b"requirements.txt".to_vec(), "not gzip"),
        (
            "a bare tar",
            entry(REQ.0, REQ.1.as_bytes(), b'0', ""),
            "not gzip",
        ),
        ("empty", Vec::new(), "middle"),
        ("gzip of nothing", gzip(b""), "middle"),
        (
            "cut off",
            {
                let mut b = good();
                b.truncate(b.len() / 2);
                b
            },
            "middle",
        ),
        (
            "cut trailer",
            {
                let mut b = good();
                b.truncate(b.len() - 4);
                b
            },
            "middle",
        ),
        (
            "wrong gzip sum",
            {
                let mut b = good();
                let at = b.len() - 8;
                b[at] ^= 1;
                b
            },
            "damaged",
        ),
        (
            "second gzip member",
            [good(), good()].concat(),
            "behind the end",
        ),
        (
            "garbage behind gzip",
            [good(), b"#!/bin/sh".to_vec()].concat(),
            "behind the end",
        ),
        (
            "zip",
            b"PK\x03\x04aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".to_vec(),
            "not gzip",
        ),
        (
            "data behind the end",
            gzip(&joined(&[
                entry(REQ.0, b"", b'0', ""),
                vec![0; 1024],
                file("late"),
            ])),
            "behind the end",
        ),
        (
            "one block of zeros",
            gzip(&joined(&[vec![0; 512], file("a"), vec![0; 1024]])),
            "zeros stands before",
        ),
        ("no end mark", gzip(&entry(REQ.0, b"", b'0', "")), "middle"),
        (
            "no requirements",
            tarball(&[("server.py", "x")]),
            "there is no requirements.txt",
        ),
        (
            "in a folder",
            tarball(&[("my/server.py", "x"), ("my/requirements.txt", "")]),
            "pack the content",
        ),
        (
            ".npmrc",
            tarball(&[("package.json", "{}"), (".npmrc", "registry=http://evil")]),
            "leave this file out",
        ),
    ];
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    bomb.write_all(&entry(REQ.0, b"", b'0', ""))
        .expect("written");
    bomb.write_all(&tar_header("zeros", 7 << 30, b'0', ""))
        .expect("written");
    for _ in 0..40 {
        bomb.write_all(&vec![0; 1 << 20]).expect("written");
    }
    cases.push(("7 GiB of zeros", bomb.finish().expect("compressed"), "more"));
    let mut headers = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    headers
        .write_all(&entry(REQ.0, b"", b'0', ""))
        .expect("written");
    for _ in 0..1000 {
        headers
            .write_all(&pax(&[("comment", "x")], b'g'))
            .expect("written");
    }
    cases.push((
        "a thousand headers of nothing",
        headers.finish().expect("compressed"),
        "too many",
    ));
    cases
}

trait Add {
    fn add(self, end: &str) -> String;
}

impl Add for String {
    fn add(mut self, end: &str) -> String {
        self.push_str(end);
        self
    }
}

#[test]
fn hostile_archives_are_refused_with_their_reason() {
    let cases = hostile_archives();
    assert!(cases.len() >= 60, "{}", cases.len());
    let mut wrong = Vec::new();
    for (name, bundle, expected) in cases {
        match reason(&bundle) {
            Ok(()) => wrong.push(format!("{name}: taken")),
            Err(reason) if !reason.contains(expected) => wrong.push(format!("{name}: {reason}")),
            Err(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_real_programs_write_is_taken() {
    let dir = tempfile::tempdir().expect("a folder");
    let root = dir.path().join("src");
    let deep = root.join("pkg").join("a".repeat(90)).join("b".repeat(90));
    std::fs::create_dir_all(&deep).expect("made");
    std::fs::write(root.join("requirements.txt"), "mcp>=1\n").expect("written");
    std::fs::write(root.join("naïve café.py"), "x = 1\n").expect("written");
    std::fs::write(deep.join("module.py"), "x = 1\n").expect("written");
    std::fs::write(deep.join("empty"), "").expect("written");
    for format in ["gnu", "posix", "ustar"] {
        for from in [&["."][..], &["requirements.txt", "naïve café.py", "pkg"]] {
            let packed = dir.path().join("b.tar.gz");
            let status = std::process::Command::new("tar")
                .arg(format!("--format={format}"))
                .arg("-czf")
                .arg(&packed)
                .arg("-C")
                .arg(&root)
                .args(from)
                .status();
            assert!(status.is_ok_and(|s| s.success()));
            let listing = list(&packed, bounds()).unwrap_or_else(|e| panic!("{format}: {e:?}"));
            assert_eq!(
                (listing.totals.files, listing.dependencies.as_slice()),
                (4, &["mcp>=1".to_owned()][..]),
                "{format}"
            );
            let into = dir.path().join(format!("{format}{}", from.len()));
            unpack(&packed, &into, bounds()).expect("unpacked");
            let same = std::process::Command::new("diff")
                .arg("-r")
                .arg(&root)
                .arg(&into)
                .status();
            assert!(same.is_ok_and(|s| s.success()), "{format}");
        }
    }
}

/// A second reader sees the same names in everything that is accepted.
#[test]
fn pythons_tarfile_lists_the_same() {
    let script = "import tarfile,sys\nprint('\\n'.join(sorted(m.name.removeprefix('./') for m in tarfile.open(sys.argv[1]) if m.isfile())))";
    let dir = tempfile::tempdir().expect("a folder");
    let accepted = [
        tarball(&[REQ, ("a/b/c.py", "x"), ("./d.py", "y")]),
        with(joined(&[
            pax(&[("path", "long/name.py"), ("mtime", "1.5")], b'x'),
            entry("short", b"x", b'0', ""),
        ])),
        with(joined(&[
            pax(&[("comment", "a commit")], b'g'),
            entry("x", b"x", b'0', ""),
        ])),
        with(joined(&[
            entry("././@LongLink", b"gnu/long/name.py\0", b'L', ""),
            entry("short", b"x", b'0', ""),
        ])),
        with(changed(|h| h[345..350].copy_from_slice(b"under"))),
        with(entry("old", b"x", 0, "")),
    ];
    for (number, bundle) in accepted.iter().enumerate() {
        let packed = dir.path().join(format!("{number}.tar.gz"));
        std::fs::write(&packed, bundle).expect("written");
        let into = dir.path().join(number.to_string());
        unpack(&packed, &into, bounds()).unwrap_or_else(|e| panic!("{number}: {e:?}"));
        let found = std::process::Command::new("find")
            .arg(&into)
            .args(["-type", "f", "-printf", "%P\\n"])
            .output()
            .expect("find");
        let mut ours: Vec<_> = String::from_utf8_lossy(&found.stdout)
            .lines()
            .map(str::to_owned)
            .collect();
        ours.sort();
        let Ok(theirs) = std::process::Command::new("python3")
            .args(["-c", script])
            .arg(&packed)
            .output()
        else {
            eprintln!("SKIPPED: no python3");
            return;
        };
        let theirs: Vec<_> = String::from_utf8_lossy(&theirs.stdout)
            .lines()
            .map(str::to_owned)
            .collect();
        assert_eq!(ours, theirs, "{number}");
    }
}

#[test]
fn hostile_requirements_are_refused_with_their_line() {
    let hash = "a".repeat(64);
    let long = format!("a=={}", "1".repeat(65));
    let very_long = "a".repeat(3000);
    let bad_hash = format!("a==1 --hash=md5:{hash}");
    let upper_hash = format!("a==1 --hash=sha256:{}", "A".repeat(64));
    let many_extras = format!("a[{}]", ["x"; 17].join(","));
    let many_versions = format!("a{}", [">1"; 17].join(","));
    let cases: &[(&str, &str)] = &[
        ("-e .", "editable"),
        ("--editable=git+https://e/x", "editable"),
        ("-r other.txt", "other files"),
        ("--requirement=other.txt", "other files"),
        ("-c constraints.txt", "other files"),
        ("--constraint constraints.txt", "other files"),
        ("-i https://evil/simple", "index"),
        ("--index-url https://evil/simple", "index"),
        ("--index-url=https://evil/simple", "index"),
        ("--extra-index-url https://evil/simple", "index"),
        ("--find-links https://evil/", "index"),
        ("-f /tmp/wheels", "index"),
        ("--trusted-host evil", "index"),
        ("--no-index", "index"),
        ("--pre", "options"),
        ("--no-binary :all:", "options"),
        ("--global-option=x", "options"),
        ("--use-feature=x", "options"),
        ("--require-hashes", "options"),
        ("--config-settings x=y", "options"),
        ("https://evil/x.whl", "URL"),
        ("http://evil/x.tar.gz", "URL"),
        ("ftp://evil/x.tar.gz", "URL"),
        ("file:///etc/passwd", "URL"),
        ("git+https://github.com/a/b", "URL"),
        ("git+ssh://git@github.com/a/b", "URL"),
        ("hg+http://evil/x", "URL"),
        ("a @ https://evil/a.whl", "URL"),
        ("a@https://evil/a.whl", "URL"),
        ("a @ file:///tmp/a", "URL"),
        ("a @ git+https://e/x#egg=a", "URL"),
        ("./local", "local paths"),
        ("../local", "local paths"),
        ("/abs/local", "local paths"),
        ("~/local", "local paths"),
        ("local/", "local paths"),
        ("wheels/a.whl", "local paths"),
        ("a==1; python_version<'3.12'", "markers"),
        ("a;os_name=='posix'", "markers"),
        ("a==1 \\", "not joined"),
        ("a==${VERSION}", "variables"),
        ("$HOME", "variables"),
        ("a==1\0", "control"),
        ("a\x1b[2J==1", "control"),
        ("a==1\x0b-e .", "control"),
        ("а==1", "ASCII"),
        ("a==1\u{2028}-e .", "ASCII"),
        ("a==\u{ff11}", "ASCII"),
        ("==1.0", "name"),
        (".a", "name"),
        ("a.==1", "name"),
        ("_a", "name"),
        ("a b", "version"),
        ("a 1.0", "version"),
        ("a=1", "version"),
        ("a===1", "not a version"),
        ("a==", "not a version"),
        ("a==1,", "version"),
        ("a>=1 <2", "not a version"),
        ("a==*", "not a version"),
        ("a==1.*.2", "not a version"),
        ("a>=1.*", "not a version"),
        ("a(>=1)", "version"),
        ("a[x", "without"),
        ("a[]", "extra"),
        ("a[x y]", "extra"),
        ("a[../x]", "local paths"),
        ("a[x]]", "version"),
        ("a==`id`", "not a version"),
        ("a==$(id)", "variables"),
        ("a==1|id", "not a version"),
        ("a==1&&id", "not a version"),
        ("a==1 --hash=sha256:abc", "hash"),
        ("a==1 --install-option=x", "not a version"),
        (&bad_hash, "hash"),
        (&upper_hash, "hash"),
        (&long, "not a version"),
        (&very_long, "longer"),
        (&many_extras, "16 extras"),
        (&many_versions, "16 version"),
    ];
    assert!(cases.len() >= 60, "{}", cases.len());
    for (line, expected) in cases {
        let text = format!("# a comment\nhttpx\n{line}\n");
        let refusals = requirements::check(text.as_bytes()).expect_err(line);
        assert_eq!(
            (refusals.len(), refusals[0].line),
            (1, Some(3)),
            "{line:?}: {refusals:?}"
        );
        assert!(
            refusals[0].reason.contains(expected),
            "{line:?}: {}",
            refusals[0].reason
        );
    }
    for (whole, expected) in [
        (b"\xef\xbb\xbfhttpx\n".to_vec(), "byte order mark"),
        (b"\xff\xfeh\0t\0".to_vec(), "UTF-8"),
        (vec![b'#'; requirements::FILE_BYTES_MAX + 1], "longer"),
        ("a\n".repeat(501).into_bytes(), "more than 500"),
    ] {
        let refusals = requirements::check(&whole).expect_err(expected);
        assert!(refusals[0].reason.contains(expected), "{refusals:?}");
    }
}

#[test]
fn plain_requirements_are_taken_in_one_spelling() {
    let hash = "0f".repeat(32);
    let text = format!(
        "# comment\r\n\r\nmcp[cli]>=1.0.0,<2.0.0\nHTTPX == 0.28.1  # pinned\n\tFlask_SQL.Alchemy~=3.0\nx!=1.*\ny==1!2.0+local.1\nz==1 --hash=sha256:{hash}\nlast"
    );
    let got = requirements::check(text.as_bytes()).expect("all good");
    let hashed = format!("z==1 --hash=sha256:{hash}");
    assert_eq!(
        got,
        [
            "mcp[cli]>=1.0.0,<2.0.0",
            "httpx==0.28.1",
            "flask-sql-alchemy~=3.0",
            "x!=1.*",
            "y==1!2.0+local.1",
            &hashed,
            "last"
        ]
    );
    assert_eq!(requirements::check(b"").expect("empty is fine"), [""; 0]);
}

#[test]
fn hostile_package_files_are_refused() {
    let deps =
        |name: &str, range: &str| serde_json::json!({"dependencies": {name: range}}).to_string();
    for (name, range) in [
        ("a", "git+https://e/x.git"),
        ("a", "https://evil/a.tgz"),
        ("a", "http://evil/a.tgz"),
        ("a", "file:../a"),
        ("a", "link:../a"),
        ("a", "workspace:*"),
        ("a", "npm:evil@1"),
        ("a", "user/repo"),
        ("a", "github:user/repo"),
        ("a", "git@github.com:a/b"),
        ("a", "../a"),
        ("a", "1.0.0;id"),
        ("a", "$(id)"),
        ("a", "1\n2"),
        ("../a", "1"),
        ("a/b", "1"),
        ("@a", "1"),
        ("@/a", "1"),
        ("", "1"),
        (".a", "1"),
        ("a b", "1"),
        ("node_modules/../a", "1"),
    ] {
        assert!(
            package_json::check(deps(name, range).as_bytes()).is_err(),
            "{name} {range}"
        );
    }
    for text in [
        "[]",
        "{",
        "{\"dependencies\": []}",
        "{\"dependencies\": {\"a\": 1}}",
        "{\"overrides\": {}}",
        "{\"workspaces\": [\"x\"]}",
    ] {
        assert!(package_json::check(text.as_bytes()).is_err(), "{text}");
    }
    let good = serde_json::json!({"name": "x", "scripts": {"install": "evil"}, "dependencies": {"@modelcontextprotocol/sdk": "^1.2.0", "express": ">=4 <6 || 7.x", "z": "latest"}});
    assert_eq!(
        package_json::check(good.to_string().as_bytes()).expect("plain"),
        [
            "@modelcontextprotocol/sdk@^1.2.0",
            "express@>=4 <6 || 7.x",
            "z@latest"
        ]
    );
    let lock = |resolved: &str| {
        serde_json::json!({"packages": {"": {}, "node_modules/a": {"resolved": resolved, "integrity": "sha512-x"}}}).to_string()
    };
    for bad in [
        "http://r/a.tgz",
        "git+ssh://git@r/a",
        "file:a.tgz",
        "https://u:p@r/a.tgz",
        "https://r/a.zip",
        "https://r/a.tgz?x",
        "https://r/a.tgz#x",
    ] {
        assert!(
            package_json::check_lock(lock(bad).as_bytes()).is_err(),
            "{bad}"
        );
    }
    for good in [
        "https://registry.npmjs.org/a/-/a-1.0.0.tgz",
        "https://registry.npmjs.org/@a/b/-/b-1.0.0.tgz",
    ] {
        assert!(
            package_json::check_lock(lock(good).as_bytes()).is_ok(),
            "{good}"
        );
    }
}
