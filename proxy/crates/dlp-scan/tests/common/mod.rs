//! Messages to try the scanner with: the rules' own examples, real tool results, and what a seeded generator makes of
//! both.

use std::collections::HashMap;

use base64::Engine as _;
use dlp_scan::{LeafInput, LeafKind, RuleSet};
use serde_json::Value;

/// Every example and counter-example of the shipped rules.
pub fn examples() -> Vec<String> {
    let mut out = Vec::new();
    for source in RuleSet::builtin_sources() {
        let file: HashMap<String, Value> =
            serde_saphyr::from_str(source.yaml).expect("a rule file");
        for rule in file["rules"].as_array().expect("a list of rules") {
            for field in ["examples", "counter_examples"] {
                let texts = rule[field].as_array().into_iter().flatten();
                out.extend(texts.map(|text| match text {
                    Value::Array(parts) => parts.iter().filter_map(Value::as_str).collect(),
                    text => text.as_str().unwrap_or_default().to_owned(),
                }));
            }
        }
    }
    assert!(out.len() > 1500, "{} examples", out.len());
    out
}

/// Results of real MCP servers.
pub fn results() -> Vec<String> {
    let rows = include_str!("../../../../../policies/eval/mcp-results.jsonl").lines();
    let text = |row: &str| -> Option<String> {
        let row: Value = serde_json::from_str(row).ok()?;
        row["text"].as_str().map(str::to_owned)
    };
    rows.filter_map(text).collect()
}

/// A message: names (empty for none) and texts.
pub type Leaves = Vec<(String, String)>;

/// What the scanner takes.
pub fn inputs(leaves: &Leaves) -> impl Iterator<Item = LeafInput<'_>> + Clone {
    leaves.iter().map(|(name, text)| LeafInput {
        text,
        kind: LeafKind::String,
        name: (!name.is_empty()).then_some(name.as_str()),
    })
}

/// Makes messages out of pieces, the same for a seed.
pub struct Generator {
    seed: u64,
    pieces: Vec<String>,
}

const NAMES: [&str; 12] = [
    "", "text", "password", "token", "data", "note", "api_key", "content", "ssn", "url", "card",
    "value",
];
const FILLER: [&str; 16] = [
    "please use ",
    "the file ",
    "123-45-6789 ",
    "\n",
    "{\"a\":\"",
    "\"}",
    " = ",
    "id,name\n1,x\n",
    "passport number ",
    "tel. ",
    "\u{200b}",
    "%41%42",
    "\\u0041",
    "&#65;",
    "ignore all ",
    "p4ssw0rd ",
];

impl Generator {
    pub fn new(seed: u64) -> Self {
        let mut pieces = examples();
        pieces.extend(results().iter().map(|r| r.chars().take(400).collect()));
        Self { seed, pieces }
    }

    /// xorshift64.
    pub fn below(&mut self, n: usize) -> usize {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        usize::try_from(self.seed % n as u64).expect("below a usize")
    }

    pub fn message(&mut self) -> Leaves {
        let n = 1 + self.below(4);
        let leaf = |g: &mut Self| {
            let name = NAMES[g.below(NAMES.len())].to_owned();
            let n = 1 + g.below(4);
            (name, (0..n).map(|_| g.piece()).collect())
        };
        (0..n).map(|_| leaf(self)).collect()
    }

    fn piece(&mut self) -> String {
        if self.below(3) == 0 {
            return FILLER[self.below(FILLER.len())].to_owned();
        }
        let at = self.below(self.pieces.len());
        let text = self.pieces[at].clone();
        let chars: Vec<char> = text.chars().collect();
        let cut = self.below(chars.len() + 1);
        match self.below(12) {
            0 => chars[cut..].iter().collect(),
            1 => chars[..cut].iter().collect(),
            2 => text.to_uppercase(),
            3 => text.to_lowercase(),
            4 => chars.iter().rev().collect(),
            5 => base64::engine::general_purpose::STANDARD.encode(&text),
            6 => text.bytes().map(|b| format!("{b:02x}")).collect(),
            7 => text.bytes().map(|b| format!("%{b:02X}")).collect(),
            8 => chars.iter().map(|c| format!("{c} ")).collect(),
            9 => format!("{text}\n"),
            10 => serde_json::json!({ "a": [text] }).to_string(),
            _ => text,
        }
    }
}
