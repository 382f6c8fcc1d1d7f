//! What is scanned.

use anyhow::Context;
use dlp_scan::{LeafInput, LeafKind};
use serde_json::Value;

/// Results of real MCP servers, as they came.
const RESULTS: &str = include_str!("../../../policies/eval/mcp-results.jsonl");

/// Messages that are measured together.
pub struct Text {
    pub name: String,
    pub messages: Vec<Message>,
    /// Of all messages.
    pub bytes: usize,
    /// The figures are for one of so many messages, on average.
    pub among: usize,
}

/// The leaves of one JSON message.
pub struct Message {
    pub leaves: Vec<Leaf>,
}

pub struct Leaf {
    pub name: String,
    pub text: String,
    pub kind: LeafKind,
}

impl Text {
    fn new(name: &str, messages: Vec<Message>) -> Self {
        let leaves = messages.iter().flat_map(|m| &m.leaves);
        Self {
            name: name.to_owned(),
            bytes: leaves.map(|l| l.text.len()).sum(),
            messages,
            among: 1,
        }
    }

    /// The same, with figures for one message.
    fn each(self) -> Self {
        Self {
            among: self.messages.len(),
            ..self
        }
    }

    /// Bytes of what the figures are for.
    pub fn bytes_each(&self) -> usize {
        self.bytes / self.among
    }
}

/// A processor learns a message that comes again and again by heart: measured that way, a scan looks twice as fast as it
/// is. So clean messages are so many that they differ.
const VARIED_BYTES: usize = 2 << 20;

impl Message {
    /// One text without a name.
    pub fn of_text(text: &str) -> Self {
        let leaf = Leaf {
            name: String::new(),
            text: text.to_owned(),
            kind: LeafKind::String,
        };
        Self { leaves: vec![leaf] }
    }

    /// The keys, strings and numbers of a JSON value.
    fn of_json(value: &Value) -> Self {
        let mut message = Self { leaves: Vec::new() };
        message.walk("", value);
        message
    }

    fn walk(&mut self, name: &str, value: &Value) {
        let mut leaf = |text: &str, kind| {
            self.leaves.push(Leaf {
                name: name.to_owned(),
                text: text.to_owned(),
                kind,
            });
        };
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    self.leaves.push(Leaf {
                        name: String::new(),
                        text: key.clone(),
                        kind: LeafKind::Key,
                    });
                    self.walk(key, value);
                }
            }
            Value::Array(items) => items.iter().for_each(|v| self.walk(name, v)),
            Value::String(text) => leaf(text, LeafKind::String),
            Value::Number(n) => leaf(&n.to_string(), LeafKind::Number),
            Value::Bool(_) | Value::Null => {}
        }
    }

    pub fn inputs(&self) -> impl Iterator<Item = LeafInput<'_>> + Clone {
        self.leaves.iter().map(|leaf| LeafInput {
            text: &leaf.text,
            kind: leaf.kind,
            name: (!leaf.name.is_empty()).then_some(leaf.name.as_str()),
        })
    }
}

/// Everything of the table.
pub fn all(rows: Option<&str>) -> anyhow::Result<Vec<Text>> {
    let mut out = Vec::new();
    for (name, size) in [
        ("300 B", 300),
        ("4 KiB", 4 << 10),
        ("10 KB", 10_000),
        ("64 KiB", 64 << 10),
        ("1 MiB", 1 << 20),
    ] {
        let messages = (0..VARIED_BYTES / size).map(|nth| Message::of_json(&clean_json(size, nth)));
        out.push(Text::new(&format!("clean JSON, {name}"), messages.collect()).each());
    }
    let results = jsonl(RESULTS).context("the stored tool results")?;
    let structured = results.iter().map(|text| match serde_json::from_str(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => Message::of_json(&value),
        _ => Message::of_text(text),
    });
    out.push(Text::new(
        "results of real MCP servers, as JSON",
        structured.collect(),
    ));
    out.push(Text::new(
        "the same, each as one text in a leaf",
        results.iter().map(|t| Message::of_text(t)).collect(),
    ));
    if let Some(rows) = rows {
        let rows = jsonl(rows).context("--rows")?;
        out.push(Text::new(
            "the rows given",
            rows.iter().map(|t| Message::of_text(t)).collect(),
        ));
    }
    out.push(Text::new(
        "64 KiB with a card number and a token each KiB",
        vec![with_findings(64 << 10)],
    ));
    for (name, piece) in crate::worst::KNOWN {
        let text = piece.repeat((64 << 10) / piece.len());
        out.push(Text::new(
            &format!("64 KiB of {name}"),
            vec![Message::of_text(&text)],
        ));
    }
    Ok(out)
}

fn jsonl(text: &str) -> anyhow::Result<Vec<String>> {
    let row = |line: &str| -> anyhow::Result<String> {
        let row: Value = serde_json::from_str(line)?;
        Ok(row["text"]
            .as_str()
            .context("a row without text")?
            .to_owned())
    };
    text.lines()
        .filter(|l| !l.trim().is_empty())
        .map(row)
        .collect()
}

/// xorshift64.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

const WORDS: [&str; 64] = [
    "order", "shipped", "the", "customer", "report", "weather", "in", "station", "returns",
    "value", "for", "each", "window", "update", "server", "north", "garden", "between", "library",
    "paper", "and", "with", "quickly", "morning", "result", "table", "of", "page", "count",
    "large", "signal", "river", "project", "issue", "label", "closed", "merge", "branch", "test",
    "build", "a", "to", "is", "not", "it", "on", "before", "small", "record", "list", "question",
    "answer", "because", "kitchen", "summer", "detail", "reader", "harbour", "twelve", "orange",
    "method", "listen", "under", "often",
];

/// Two of five words of a sentence.
const SMALL: [&str; 12] = [
    "the", "of", "and", "to", "in", "is", "was", "for", "on", "with", "at", "by",
];

/// Records as an issue tracker, a shop or a weather service returns them; all different, nothing to find in them.
fn clean_json(size: usize, nth: usize) -> Value {
    let mut dice = Dice::new((size + nth) as u64);
    let mut records = Vec::new();
    let mut bytes = 0;
    while bytes < size {
        let words = |dice: &mut Dice, n: usize| {
            let word = |dice: &mut Dice| match dice.below(5) {
                0 | 1 => SMALL[dice.below(SMALL.len())],
                _ => WORDS[dice.below(WORDS.len())],
            };
            let words: Vec<_> = (0..n).map(|_| word(dice)).collect();
            words.join(" ")
        };
        let n = 3 + dice.below(6);
        let title = words(&mut dice, n);
        let n = 10 + dice.below(40);
        let body = words(&mut dice, n);
        let record = serde_json::json!({
            "id": dice.below(1 << 20),
            "title": title,
            "created_at": format!("2026-{:02}-{:02}T{:02}:{:02}:00Z", 1 + dice.below(12), 1 + dice.below(28),
                dice.below(24), dice.below(60)),
            "path": format!("src/{}/{}.rs", WORDS[dice.below(64)], WORDS[dice.below(64)]),
            "commit": format!("{:08x}{:08x}", dice.below(1 << 32), dice.below(1 << 32)),
            "amount": dice.below(100_000) as f64 / 100.0,
            "labels": [WORDS[dice.below(64)], WORDS[dice.below(64)]],
            "body": body,
        });
        bytes += Text::new("", vec![Message::of_json(&record)]).bytes;
        records.push(record);
    }
    Value::Array(records)
}

/// Prose with a card number and a token every KiB; both put together here, for nobody.
fn with_findings(size: usize) -> Message {
    let mut dice = Dice::new(5);
    let mut text = String::new();
    while text.len() < size {
        let next = text.len() + 1024;
        while text.len() + 120 < next {
            text.push_str(WORDS[dice.below(WORDS.len())]);
            text.push(' ');
        }
        let hex: String = (0..32).map(|_| format!("{:x}", dice.below(16))).collect();
        text.push_str(&format!("card 4111 1111 1111 1111, sk_live_{hex} "));
    }
    Message::of_text(&text)
}
