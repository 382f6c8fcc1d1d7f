//! `weir scan`: the same engine and rules as the data path, on files or lines.

use std::borrow::Cow;
use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use dlp_scan::{Budget, Finding, FingerprintKey, LeafInput, LeafKind, Outcome, RuleSet, Scanner};
use serde::{Deserialize, Serialize};

use super::Usage;
use crate::config;

/// Largest file or line, in bytes.
const INPUT_BYTES_MAX: u64 = 64 << 20;

/// What to scan.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit code: 0 when nothing was found, 1 when something was, or when a file could not be looked through to its \
    end, 2 when a file or folder cannot be read (or a file is above 64 MiB). With --jsonl: 0 whatever was found, 1 at a line that is none."
)]
pub struct ScanArgs {
    /// Read lines of {"id", "text"} from standard input and write lines of {"id", "findings"};
    /// offsets count Unicode code points
    #[arg(long, conflicts_with = "files")]
    pub jsonl: bool,
    /// Files to scan, and folders with all that is in them; none, or -, means standard input
    pub files: Vec<PathBuf>,
}

/// Scans. The exit code is 1 when something was found in files, 2 when one cannot be read, 0 otherwise.
pub fn run(args: &ScanArgs, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let mut engine = Engine::new();
    if args.jsonl {
        jsonl(
            &mut engine,
            io::stdin().lock(),
            &mut io::BufWriter::new(out),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let stdin = [PathBuf::from("-")];
    let files = if args.files.is_empty() {
        &stdin[..]
    } else {
        &args.files
    };
    let (mut found, mut unread) = (0, Ok(()));
    for path in files.iter().flat_map(|given| Walk::of(given)) {
        let scanned = match path {
            Ok(path) => file(&mut engine, &path, out),
            Err(problem) => Err(problem.into()),
        };
        match scanned {
            Ok(n) => found += n,
            // The others are scanned all the same; the last problem is told at the end, those before it here.
            Err(error) if error.is::<Usage>() => {
                if let Err(before) = std::mem::replace(&mut unread, Err(error)) {
                    writeln!(io::stderr(), "error: {before:#}")?;
                }
            }
            Err(error) => return Err(error),
        }
    }
    unread?;
    Ok(if found > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// The file that was given, or all files of a folder and of those in it, by name. Links in it are not followed, and what Git
/// keeps for itself is packed history.
struct Walk {
    /// Last is next.
    open: Vec<PathBuf>,
}

impl Walk {
    fn of(given: &Path) -> Self {
        Self {
            open: vec![given.to_owned()],
        }
    }

    fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_file() || kind.is_dir() && entry.file_name() != ".git" {
                paths.push(entry.path());
            }
        }
        paths.sort_unstable_by(|a, b| b.cmp(a));
        Ok(paths)
    }
}

impl Iterator for Walk {
    type Item = Result<PathBuf, Usage>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let path = self.open.pop()?;
            if !path.is_dir() {
                return Some(Ok(path));
            }
            match Self::entries(&path) {
                Ok(entries) => self.open.extend(entries),
                Err(problem) => {
                    return Some(Err(Usage(format!("{}: {problem}", path.display()))));
                }
            }
        }
    }
}

struct Engine {
    rules: Arc<RuleSet>,
    scanner: Scanner,
}

impl Engine {
    fn new() -> Self {
        let mut key = [0u8; 32];
        // Fingerprints are not shown here; without random numbers they only match over runs.
        let _ = getrandom::fill(&mut key);
        let scanner = Scanner::new(FingerprintKey::new(key));
        Self {
            rules: Arc::clone(RuleSet::builtin()),
            scanner,
        }
    }

    fn scan(&mut self, text: &str) -> Outcome {
        let leaf = LeafInput {
            text,
            kind: LeafKind::String,
            name: None,
        };
        self.scanner
            .scan(&self.rules, std::iter::once(leaf), &Budget::default())
    }

    /// What is printed of a finding.
    fn line(&self, at: &str, finding: &Finding, layers: &str, text: &str) -> String {
        let rule = self.rules.rule(finding.rule);
        let category = finding.category.to_string();
        let value = masked(text, finding);
        let layers = match layers.is_empty() {
            true => String::new(),
            false => format!("  in {layers}"),
        };
        format!(
            "{at}  {category:<9}  {}  ({})  {value}{layers}",
            rule.id, rule.title
        )
    }
}

fn file(engine: &mut Engine, path: &Path, out: &mut dyn Write) -> anyhow::Result<usize> {
    let unreadable = |problem: String| Usage(format!("{}: {problem}", path.display()));
    let (name, bytes) = if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin()
            .lock()
            .take(INPUT_BYTES_MAX + 1)
            .read_to_end(&mut bytes)?;
        if bytes.len() as u64 > INPUT_BYTES_MAX {
            bail!(unreadable(format!(
                "is larger than {INPUT_BYTES_MAX} bytes"
            )));
        }
        ("standard input".to_owned(), bytes)
    } else {
        let bytes = config::read_given(path, INPUT_BYTES_MAX).map_err(unreadable)?;
        (path.display().to_string(), bytes)
    };
    let text = String::from_utf8_lossy(&bytes);
    let outcome = engine.scan(&text);
    let mut over = outcome.over_budget;
    let line_starts = line_starts(&text);
    let mut found = outcome.findings.len();
    for finding in &outcome.findings {
        let (line, column) = place(&text, &line_starts, finding.start as usize);
        let at = format!("{name}:{line}:{column}");
        let line = engine.line(&at, finding, &finding.layers.to_string(), &text);
        writeln!(out, "{line}")?;
    }
    if matches!(text, Cow::Owned(_)) {
        // What is packed in it shows in bytes that are no text. A tool's result would carry them as base64.
        let coded = STANDARD.encode(&bytes);
        let outcome = engine.scan(&coded);
        over = over.or(outcome.over_budget);
        for finding in &outcome.findings {
            let layers = finding.layers.to_string();
            let Some(packed) = layers.strip_prefix("base64>") else {
                continue;
            };
            found += 1;
            let byte = finding.start as usize / 4 * 3;
            let at = format!("{name}: byte {byte}");
            writeln!(out, "{}", engine.line(&at, finding, packed, &coded))?;
        }
    }
    if let Some(over) = over {
        writeln!(
            out,
            "{name}: not all of it was looked at: the {over} budget is used up"
        )?;
    }
    Ok(found + usize::from(over.is_some()))
}

/// The matched value is never printed: its length and, when it is long, its first characters.
fn masked(text: &str, finding: &Finding) -> String {
    let value = &text[finding.start as usize..finding.end as usize];
    let count = value.chars().count();
    let shown: String = value
        .chars()
        .take(if count >= 16 { 4 } else { 0 })
        .collect();
    let shown: String = shown
        .chars()
        .map(|c| if c.is_control() { '.' } else { c })
        .collect();
    format!("{shown}*** ({count} characters)")
}

/// Where each line begins.
fn line_starts(text: &str) -> Vec<usize> {
    let behind = text.match_indices('\n').map(|(at, _)| at + 1);
    std::iter::once(0).chain(behind).collect()
}

/// The line and the column of a byte, from 1 on.
fn place(text: &str, line_starts: &[usize], at: usize) -> (usize, usize) {
    let line = line_starts.partition_point(|start| *start <= at);
    let start = line_starts[line - 1];
    (line, text[start..at].chars().count() + 1)
}

#[derive(Deserialize)]
struct Row {
    id: serde_json::Value,
    text: String,
}

#[derive(Serialize)]
struct Answer<'a> {
    id: serde_json::Value,
    findings: Vec<Shown<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    over_budget: Option<String>,
}

#[derive(Serialize)]
struct Shown<'a> {
    rule: &'a str,
    category: &'static str,
    start: usize,
    end: usize,
}

fn jsonl(engine: &mut Engine, input: impl BufRead, out: &mut impl Write) -> anyhow::Result<()> {
    let mut input = input;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = (&mut input)
            .take(INPUT_BYTES_MAX + 1)
            .read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        if read as u64 > INPUT_BYTES_MAX {
            bail!("line {number}: longer than {INPUT_BYTES_MAX} bytes");
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let row: Row = serde_json::from_slice(&line)
            .with_context(|| format!("line {number}: expected {{\"id\", \"text\"}}"))?;
        let outcome = engine.scan(&row.text);
        let points = CodePoints::of(&row.text);
        let findings = outcome
            .findings
            .iter()
            .map(|f| Shown {
                rule: &engine.rules.rule(f.rule).id,
                category: f.category.as_str(),
                start: points.at(f.start as usize),
                end: points.at(f.end as usize),
            })
            .collect();
        let over_budget = outcome.over_budget.map(|o| o.to_string());
        serde_json::to_writer(
            &mut *out,
            &Answer {
                id: row.id,
                findings,
                over_budget,
            },
        )?;
        out.write_all(b"\n")?;
        // Whoever feeds the lines may wait for each answer before the next.
        out.flush()?;
    }
    Ok(())
}

/// Byte offsets to code point offsets; free for ASCII.
struct CodePoints<'a>(Option<&'a str>);

impl<'a> CodePoints<'a> {
    fn of(text: &'a str) -> Self {
        Self((!text.is_ascii()).then_some(text))
    }

    fn at(&self, byte: usize) -> usize {
        self.0.map_or(byte, |text| text[..byte].chars().count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_in_order_with_code_point_offsets() {
        let secret = ["AKIA", "Z7Q2M4N6P3R7T5V2"].concat();
        let text = format!("é key={secret}");
        let rows = [
            serde_json::json!({"id": 1, "text": "nothing"}),
            serde_json::json!({"id": "b", "text": text}),
        ];
        let input: String = rows.iter().map(|r| format!("{r}\n")).collect();
        let mut out = Vec::new();
        jsonl(&mut Engine::new(), input.as_bytes(), &mut out).unwrap();
        let lines: Vec<serde_json::Value> = String::from_utf8(out)
            .unwrap()
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        assert_eq!(lines[0], serde_json::json!({"id": 1, "findings": []}));
        assert_eq!(lines[1]["id"], "b");
        let finding = &lines[1]["findings"][0];
        assert_eq!(finding["category"], "secret");
        let (start, end) = (
            finding["start"].as_u64().unwrap(),
            finding["end"].as_u64().unwrap(),
        );
        let chars: Vec<char> = text.chars().collect();
        let hit: String = chars[start as usize..end as usize].iter().collect();
        assert_eq!(hit, secret);
    }

    #[test]
    fn a_folder_is_gone_through() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("b/.git")).unwrap();
        std::fs::create_dir_all(at("a")).unwrap();
        for name in ["c", "b/2", "b/1", "a/x", "b/.git/packed"] {
            std::fs::write(at(name), "text").unwrap();
        }
        std::os::unix::fs::symlink(dir.path(), at("a/up")).unwrap();
        let paths: Vec<PathBuf> = Walk::of(dir.path()).map(|path| path.unwrap()).collect();
        assert_eq!(paths, ["a/x", "b/1", "b/2", "c"].map(at));
        assert_eq!(Walk::of(Path::new("-")).count(), 1);
    }

    #[test]
    fn what_is_packed_in_a_file_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.gz");
        let secret = ["AKIA", "Z7Q2M4N6P3R7T5V2"].concat();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        write!(gz, "one\naws_access_key_id={secret}\n").unwrap();
        std::fs::write(&path, gz.finish().unwrap()).unwrap();
        let mut out = Vec::new();
        let found = file(&mut Engine::new(), &path, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(found >= 1 && text.contains("f.gz: byte 0"), "{text}");
        assert!(
            text.contains("in gzip") && !text.contains(&secret[4..]),
            "{text}"
        );
    }

    #[test]
    fn a_bad_line_is_named() {
        let error = jsonl(
            &mut Engine::new(),
            &b"{\"id\":1,\"text\":\"a\"}\nno\n"[..],
            &mut Vec::new(),
        );
        assert!(error.unwrap_err().to_string().contains("line 2"));
    }

    #[test]
    fn a_value_is_not_printed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let secret = ["AKIA", "Z7Q2M4N6P3R7T5V2"].concat();
        std::fs::write(&path, format!("one\naws_access_key_id={secret}\n")).unwrap();
        let mut out = Vec::new();
        let found = file(&mut Engine::new(), &path, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(found >= 1 && text.contains(":2:"), "{text}");
        assert!(!text.contains(&secret[4..]), "{text}");
    }
}
