//! The shape of the repository: which room may name which, how big a file may get, what may not be written down.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_tests::Value;

/// Which rooms of the workspace a room may name. `tests` and `bench` see public faces only, and nobody names them.
const ARROWS: &[(&str, &[&str])] = &[
    ("secret-prints", &[]),
    ("domain", &["secret-prints"]),
    ("mcp-codec", &[]),
    ("yaml-text", &["domain"]),
    ("dlp-scan", &["secret-prints", "yaml-text"]),
    ("stdio-child", &[]),
    ("dlp-policy", &["domain", "dlp-scan"]),
    ("audit-log", &["domain"]),
    ("runner-api", &["domain", "secret-prints"]),
    ("sandbox", &["domain"]),
    ("egress", &["domain"]),
    ("vault", &["domain"]),
    ("metering", &["domain"]),
    (
        "weir-runner",
        &[
            "domain",
            "audit-log",
            "runner-api",
            "sandbox",
            "egress",
            "vault",
            "metering",
            "secret-prints",
        ],
    ),
    (
        "control",
        &[
            "domain",
            "dlp-scan",
            "dlp-policy",
            "audit-log",
            "runner-api",
            "secret-prints",
        ],
    ),
    ("plugin-host", &["domain", "dlp-scan", "dlp-policy"]),
    (
        "gateway",
        &[
            "domain",
            "mcp-codec",
            "dlp-scan",
            "dlp-policy",
            "audit-log",
            "stdio-child",
            "runner-api",
        ],
    ),
    (
        "weir",
        &[
            "domain",
            "mcp-codec",
            "dlp-scan",
            "dlp-policy",
            "audit-log",
            "stdio-child",
            "gateway",
            "plugin-host",
            "control",
            "runner-api",
            "secret-prints",
            "yaml-text",
        ],
    ),
    ("weir-bench", &[]),
    ("scan-bench", &["dlp-scan"]),
    (
        "weir-gate",
        &["domain", "mcp-codec", "dlp-scan", "dlp-policy", "gateway"],
    ),
    ("weir-tests", &[]),
];

/// Rooms without async, I/O, clock and logging, and what would bring them in.
const PURE: &[&str] = &[
    "secret-prints",
    "domain",
    "mcp-codec",
    "yaml-text",
    "dlp-scan",
    "dlp-policy",
];
const IMPURE_CRATES: &[&str] = &[
    "tokio",
    "pingora-core",
    "hyper",
    "reqwest",
    "tracing",
    "log",
    "wasmtime",
    "mio",
    "async-trait",
];
const IMPURE_WORDS: &[&str] = &[
    "std::fs",
    "std::net::Tcp",
    "std::net::Udp",
    "ToSocketAddrs",
    "std::process",
    "std::thread",
    "Instant::now",
    "SystemTime::now",
    "std::env",
    "println!",
    "eprintln!",
];

/// Lines of a source file, its tests not counted.
const LINES_WARN: usize = 500;
const LINES_MAX: usize = 800;

#[test]
fn rooms_name_only_the_rooms_they_may() {
    let metadata = metadata();
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let packages = metadata["packages"].as_array().expect("packages");
    let members = members(&metadata);
    let mut wrong = Vec::new();
    for package in packages
        .iter()
        .filter(|p| members.contains(p["name"].as_str().unwrap_or_default()))
    {
        let name = package["name"].as_str().expect("a name");
        let Some(may) = allowed.get(name) else {
            wrong.push(format!("{name} has no line in the table"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = dependency["name"].as_str().expect("a name");
            if members.contains(to)
                && dependency["kind"].as_str() != Some("dev")
                && !may.contains(&to)
            {
                wrong.push(format!("{name} names {to}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn pure_rooms_stay_pure() {
    let metadata = metadata();
    let mut wrong = Vec::new();
    for room in PURE {
        for found in reachable(&metadata, room)
            .intersection(&IMPURE_CRATES.iter().map(|c| (*c).to_owned()).collect())
        {
            wrong.push(format!("{room} reaches {found}"));
        }
        for path in tracked(&format!("proxy/crates/{room}/src")) {
            let text = without_tests(&read(&path));
            for word in IMPURE_WORDS.iter().filter(|w| {
                text.lines()
                    .any(|l| !l.trim_start().starts_with("//") && l.contains(**w))
            }) {
                wrong.push(format!("{} says {word}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_server_framework_stays_in_the_gateway() {
    let metadata = metadata();
    for room in [
        "audit-log",
        "stdio-child",
        "dlp-policy",
        "control",
        "weir-runner",
    ] {
        assert!(
            !reachable(&metadata, room).contains("pingora-core"),
            "{room} reaches pingora"
        );
    }
}

#[test]
#[allow(
    clippy::print_stdout,
    reason = "the warning is for whoever reads the test's output"
)]
fn files_have_a_size_to_read() {
    let mut wrong = Vec::new();
    for path in tracked("")
        .into_iter()
        .filter(|p| p.extension().is_some_and(|e| e == "rs"))
    {
        let file = path
            .file_name()
            .and_then(|f| f.to_str())
            .unwrap_or_default();
        if file == "tests.rs" || path.components().any(|c| c.as_os_str() == "tests") {
            continue;
        }
        let text = without_tests(&read(&path));
        let lines = text.lines().filter(|l| !is_table_row(l)).count();
        if lines > LINES_MAX {
            wrong.push(format!("{}: {lines} lines", path.display()));
        } else if lines > LINES_WARN {
            println!("large: {} has {lines} lines", path.display());
        }
    }
    assert!(wrong.is_empty(), "split these: {wrong:#?}");
}

#[test]
fn nothing_of_a_machine_is_written_down() {
    // Put together here, so that this file does not find itself.
    let needles = [
        ["/wo", "rk/"],
        ["/ro", "ot/"],
        ["artif", "actory"],
        ["/tmp/", "brief"],
        ["/tmp/", "target"],
    ]
    .map(|p| p.concat());
    let mut wrong = Vec::new();
    for path in tracked("") {
        let Ok(text) = std::fs::read_to_string(root().join(&path)) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            // The root folder of a process, as probes within a sandbox ask for it, is nobody's home.
            let line = line.replace("/proc/1/root", "/proc/1/");
            if needles.iter().any(|n| line.contains(n)) {
                wrong.push(format!(
                    "{}:{}: {}",
                    path.display(),
                    number + 1,
                    line.trim()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What is counted has a line in the documentation, and nothing else has one.
#[test]
fn every_metric_is_described() {
    let named = |text: &str, quote: char| -> BTreeSet<String> {
        let words = text
            .split(quote)
            .filter_map(|word| word.strip_prefix("weir_"));
        let is_name =
            |w: &&str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        words.filter(is_name).map(|w| format!("weir_{w}")).collect()
    };
    let mut counted = BTreeSet::new();
    for path in tracked("proxy") {
        let is_source = path.extension().is_some_and(|e| e == "rs")
            && path.components().any(|c| c.as_os_str() == "src");
        if !is_source {
            continue;
        }
        let text = without_tests(&read(&path));
        for kind in ["counter!(", "gauge!(", "histogram!("] {
            for (at, _) in text.match_indices(kind) {
                let rest = &text[at..];
                let end = rest.find([',', ')']).unwrap_or(rest.len());
                counted.extend(named(&rest[..end], '"'));
            }
        }
    }
    assert!(counted.len() > 20, "{counted:?}");
    assert_eq!(named(&read(Path::new("docs/metrics.md")), '`'), counted);
}

/// A long table of texts is no long file.
fn is_table_row(line: &str) -> bool {
    let line = line.trim();
    (line.starts_with('"') || line.starts_with("(\"")) && line.ends_with(',')
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace")
        .to_owned()
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--offline",
            "--format-version",
            "1",
            "--filter-platform",
            "x86_64-unknown-linux-gnu",
        ])
        .current_dir(root())
        .output()
        .expect("cargo can be run");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON")
}

fn members(metadata: &Value) -> BTreeSet<String> {
    let ids: BTreeSet<&str> = metadata["workspace_members"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .filter(|p| ids.contains(p["id"].as_str().unwrap_or_default()))
        .filter_map(|p| p["name"].as_str())
        .map(str::to_owned)
        .collect()
}

/// The names of everything that a room's code is linked with (no dev-dependencies, no proc macros' own dependencies
/// are told apart: a build tool that needs tokio would be found too, and looked at).
fn reachable(metadata: &Value, room: &str) -> BTreeSet<String> {
    let name_of: BTreeMap<&str, &str> = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|p| Some((p["id"].as_str()?, p["name"].as_str()?)))
        .collect();
    let nodes: BTreeMap<&str, &Value> = metadata["resolve"]["nodes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|n| Some((n["id"].as_str()?, n)))
        .collect();
    let mut todo: Vec<&str> = name_of
        .iter()
        .filter(|(_, n)| **n == room)
        .map(|(id, _)| *id)
        .collect();
    assert!(!todo.is_empty(), "{room} is no package");
    let mut seen = BTreeSet::new();
    while let Some(id) = todo.pop() {
        if !seen.insert(id) {
            continue;
        }
        for dependency in nodes[id]["deps"].as_array().into_iter().flatten() {
            let kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
            if kinds.into_iter().any(|k| k["kind"].is_null()) {
                todo.extend(dependency["pkg"].as_str());
            }
        }
    }
    seen.into_iter()
        .map(|id| name_of[id].to_owned())
        .filter(|n| n != room)
        .collect()
}

/// Files that git knows under a folder.
fn tracked(under: &str) -> Vec<PathBuf> {
    let mut command = Command::new("git");
    command.arg("ls-files").current_dir(root());
    if !under.is_empty() {
        command.arg(under);
    }
    let output = command.output().expect("git can be run");
    let paths: Vec<PathBuf> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(PathBuf::from)
        .filter(|p| root().join(p).exists())
        .collect();
    assert!(!paths.is_empty(), "git knows no file under {under:?}");
    paths
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The text before the test module, which stands last. A file that is all tests has none.
fn without_tests(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
    text[..end].to_owned()
}
