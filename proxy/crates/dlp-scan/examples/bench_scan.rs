//! Speed of a scan: clean leaves of a varied JSON message at several sizes, and the files given: the rows of a
//! `.jsonl` file of `{"text"}` lines, any other file as one leaf. Prints the best of many rounds, because the machine
//! is shared.
//!
//!     cargo run --release -p dlp-scan --example bench_scan [ROWS.jsonl | TEXT]...

#![expect(clippy::print_stdout, reason = "it is what a benchmark is for")]

use std::time::{Duration, Instant};

use dlp_scan::{Budget, FingerprintKey, LeafInput, LeafKind, RuleSet, Scanner};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let rules = RuleSet::builtin();
    println!(
        "rules {}  compiled in {:.1} ms",
        rules.len(),
        start.elapsed().as_secs_f64() * 1e3
    );
    let mut scanner = Scanner::new(FingerprintKey::new([1; 32]));
    let files: Vec<String> = std::env::args().skip(1).collect();
    let sizes: &[usize] = if files.is_empty() {
        &[300, 4 << 10, 64 << 10, 1 << 20]
    } else {
        &[]
    };
    for &size in sizes {
        let message = Message::clean(size);
        measure(
            &format!("clean {size:>8} B"),
            &[message],
            rules,
            &mut scanner,
        );
    }
    for path in files {
        let rows = std::fs::read_to_string(&path)?;
        if !path.ends_with(".jsonl") {
            let label = format!("one leaf {:>7} B", rows.len());
            measure(&label, &[Message::of_text(&rows)], rules, &mut scanner);
            continue;
        }
        let rows: Result<Vec<_>, _> = rows
            .lines()
            .map(serde_json::from_str::<serde_json::Value>)
            .collect();
        let messages: Vec<_> = rows?
            .iter()
            .filter_map(|r| r["text"].as_str())
            .map(Message::of_text)
            .collect();
        measure("rows", &messages, rules, &mut scanner);
    }
    Ok(())
}

/// Owned leaves: (name, text, is a key).
struct Message {
    leaves: Vec<(String, String, bool)>,
    bytes: usize,
}

impl Message {
    fn of_text(text: &str) -> Self {
        Self {
            bytes: text.len(),
            leaves: vec![(String::new(), text.to_owned(), false)],
        }
    }

    /// Words, ids, dates, numbers and paths of a made-up record, different everywhere.
    fn clean(size: usize) -> Self {
        const WORDS: [&str; 40] = [
            "order", "shipped", "the", "customer", "report", "weather", "in", "station", "returns",
            "value", "for", "each", "window", "update", "server", "north", "garden", "between",
            "library", "paper", "and", "with", "quickly", "morning", "result", "table", "of",
            "page", "count", "large", "signal", "river", "project", "issue", "label", "closed",
            "merge", "branch", "test", "build",
        ];
        const KEYS: [&str; 12] = [
            "title",
            "description",
            "state",
            "created_at",
            "labels",
            "path",
            "size",
            "owner",
            "summary",
            "body",
            "type",
            "url",
        ];
        let mut seed = 0x2545_F491_4F6C_DD1D_u64 ^ size as u64;
        let mut next = move |n: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % n as u64) as usize
        };
        let mut out = Self {
            leaves: Vec::new(),
            bytes: 0,
        };
        while out.bytes < size {
            let key = KEYS[next(KEYS.len())];
            let value = match next(8) {
                0 => format!(
                    "2026-{:02}-{:02}T{:02}:{:02}:00Z",
                    1 + next(12),
                    1 + next(28),
                    next(24),
                    next(60)
                ),
                1 => format!(
                    "src/{}/{}_{}.rs",
                    WORDS[next(40)],
                    WORDS[next(40)],
                    WORDS[next(40)]
                ),
                2 => format!("{:08x}{:08x}", next(1 << 32), next(1 << 32)),
                _ => (0..4 + next(30))
                    .map(|_| WORDS[next(40)])
                    .collect::<Vec<_>>()
                    .join(" "),
            };
            out.bytes += key.len() + value.len() + 6;
            out.leaves.push((key.to_owned(), key.to_owned(), true));
            out.leaves.push((key.to_owned(), value, false));
        }
        out
    }

    fn leaves(&self) -> impl Iterator<Item = LeafInput<'_>> + Clone {
        self.leaves.iter().map(|(name, text, key)| LeafInput {
            text,
            kind: if *key {
                LeafKind::Key
            } else {
                LeafKind::String
            },
            name: (!name.is_empty()).then_some(name.as_str()),
        })
    }
}

/// Time on the processor, which a busy machine does not stretch as it does the clock on the wall.
fn cpu_time() -> Duration {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    let read = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = read.and_then(|s| s.split(' ').next().and_then(|n| n.parse().ok()));
    ns.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

fn measure(label: &str, messages: &[Message], rules: &RuleSet, scanner: &mut Scanner) {
    let budget = Budget::default();
    let bytes: usize = messages.iter().map(|m| m.bytes).sum();
    let per_round = (2_000_000 / bytes.max(1)).clamp(1, 4000);
    let mut best = Duration::MAX;
    let mut findings = 0;
    let deadline = Instant::now() + Duration::from_millis(1500);
    while Instant::now() < deadline {
        let start = cpu_time();
        for _ in 0..per_round {
            findings = messages
                .iter()
                .map(|m| scanner.scan(rules, m.leaves(), &budget).findings.len())
                .sum();
        }
        best = best.min((cpu_time() - start) / per_round as u32);
    }
    let seconds = best.as_secs_f64();
    println!(
        "{label:<18} {:>9.2} us  {:>8.1} MB/s  findings {findings}",
        seconds * 1e6,
        bytes as f64 / seconds / 1e6
    );
}
