//! What a server said last, so that a value split over successive messages is found when its last part comes.
//!
//! The pipeline keeps nothing between messages: whoever carries a stream keeps a [`Said`], and lends it to the judge of
//! the next message. What has gone is gone; what is found is the part in the message at hand, and that is redacted or
//! blocked.

use std::collections::{HashMap, VecDeque};

use dlp_scan::{Budget, Finding, LeafInput, LeafKind, Outcome};
use domain::Direction;
use mcp_codec::{Document, Leaf};

use super::judge::Judge;
use super::scratch;

/// Kept of each text.
const TAIL_BYTES_MAX: usize = 512;
/// Read of what follows: a value that goes on for longer is widened no further.
const HEAD_BYTES_MAX: usize = 1024;
/// Names whose texts are kept at once.
const TAILS_MAX: usize = 4;
/// Kept of each name, which is the server's.
const NAME_BYTES_MAX: usize = 64;

/// The ends of the texts that were sent on a stream.
#[derive(Clone, Default)]
pub struct Said {
    /// By the name of their leaf, the newest last.
    tails: VecDeque<Tail>,
}

#[derive(Clone)]
struct Tail {
    name: Box<str>,
    text: String,
    /// Whether it does not go on with what was said before under that name.
    begins: bool,
}

/// Hides the texts, which may be secrets.
impl std::fmt::Debug for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Said")
            .field("tails", &self.tails.len())
            .finish_non_exhaustive()
    }
}

/// The end of what was said and the beginning of a leaf, as one text.
struct Seam<'a> {
    leaf: u32,
    name: Option<&'a str>,
    text: String,
    /// Where the leaf begins.
    at: usize,
}

impl Said {
    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.tails.is_empty()
    }

    /// What a message says that goes on its way. What was found in it whole is no half of anything: of such a text only
    /// what stands behind it is kept, so that a value that was taken out is not kept here either.
    pub fn of(doc: &Document, found: &[Finding]) -> Self {
        let mut ends: HashMap<u32, usize> = HashMap::new();
        for finding in found {
            let end = ends.entry(finding.leaf).or_default();
            *end = (*end).max(finding.end as usize);
        }
        let mut said = Self::default();
        for (index, leaf) in texts(doc) {
            let behind = ends.get(&index).and_then(|end| leaf.text.get(*end..));
            said.append(&Tail {
                name: name_of(&leaf).into(),
                text: last(behind.unwrap_or(leaf.text), TAIL_BYTES_MAX).into(),
                begins: behind.is_some(),
            });
        }
        said
    }

    /// Goes on with what was said next.
    pub fn extend(&mut self, next: &Self) {
        next.tails.iter().for_each(|tail| self.append(tail));
    }

    fn append(&mut self, next: &Tail) {
        let known = self.tails.iter().position(|tail| tail.name == next.name);
        let known = known.and_then(|at| self.tails.remove(at));
        let mut tail = match known {
            Some(mut tail) if !next.begins => {
                tail.text.push_str(&next.text);
                tail
            }
            _ => next.clone(),
        };
        let over = tail.text.len() - last(&tail.text, TAIL_BYTES_MAX).len();
        tail.text.drain(..over);
        if self.tails.len() == TAILS_MAX {
            self.tails.pop_front();
        }
        self.tails.push_back(tail);
    }

    /// Each text under its own name, and the last one under the first.
    fn seams<'a>(&self, doc: &'a Document) -> Vec<Seam<'a>> {
        let seam = |tail: &Tail, leaf: u32, after: &Leaf<'a>| Seam {
            leaf,
            name: after.name,
            text: [&*tail.text, first(after.text, HEAD_BYTES_MAX)].concat(),
            at: tail.text.len(),
        };
        let mut seams = Vec::with_capacity(self.tails.len() + 1);
        let first_of_all = texts(doc).next();
        if let (Some(tail), Some((index, leaf))) = (self.tails.back(), &first_of_all)
            && name_of(leaf) != &*tail.name
        {
            seams.push(seam(tail, *index, leaf));
        }
        for tail in &self.tails {
            let same = |leaf: &Leaf<'_>| name_of(leaf) == &*tail.name;
            if let Some((index, leaf)) = texts(doc).find(|(_, leaf)| same(leaf)) {
                seams.push(seam(tail, index, &leaf));
            }
        }
        seams
    }

    /// Adds what is found over the seam between this message and what was said before.
    pub(super) fn scan(
        &self,
        direction: Direction,
        doc: &Document,
        judge: &Judge<'_>,
        budget: &Budget,
        outcome: &mut Outcome,
    ) {
        let seams = self.seams(doc);
        let inputs = seams.iter().map(|seam| LeafInput {
            text: &seam.text,
            kind: LeafKind::String,
            name: seam.name,
        });
        let keeps = judge.keeps(direction);
        // Each by itself: they are no neighbours.
        for (seam, input) in seams.iter().zip(inputs) {
            let over = scratch::with_scanner(|scanner| {
                scanner.scan_for(judge.rules, std::iter::once(input), budget, &keeps)
            });
            outcome.over_budget = outcome.over_budget.or(over.over_budget);
            for finding in over.findings {
                outcome.findings.extend(seam.crossed(finding));
            }
        }
        outcome
            .findings
            .sort_by_key(|f| (f.leaf, f.start, std::cmp::Reverse(f.end)));
        outcome
            .findings
            .dedup_by_key(|f| (f.leaf, f.start, f.end, f.rule));
    }
}

impl Seam<'_> {
    /// The part in the leaf, of a finding that lies on both sides.
    fn crossed(&self, mut finding: Finding) -> Option<Finding> {
        let at = u32::try_from(self.at).ok()?;
        let end = finding.end.checked_sub(at).filter(|end| *end > 0)?;
        (finding.start < at).then(|| {
            (finding.leaf, finding.start, finding.end) = (self.leaf, 0, end);
            finding
        })
    }
}

/// The texts of a message that a model or a user may read on, with their leaves' indexes.
fn texts(doc: &Document) -> impl Iterator<Item = (u32, Leaf<'_>)> {
    let steers = |name: &str| {
        matches!(
            name,
            "jsonrpc"
                | "method"
                | "id"
                | "level"
                | "logger"
                | "progressToken"
                | "requestId"
                | "type"
                | "role"
                | "mimeType"
                | "uri"
        )
    };
    // What a server calls so in its own data steers nothing.
    let data = [["params", "data"], ["result", "structuredContent"]];
    let data = data.map(|keys| doc.get(&keys).map(|node| doc.raw_span(node)));
    let is_data = move |leaf: &Leaf<'_>| {
        let at = doc.raw_span(leaf.node).start;
        data.iter().flatten().any(|span| span.contains(&at))
    };
    let free = move |leaf: &Leaf<'_>| {
        leaf.kind == mcp_codec::LeafKind::String
            && !leaf.text.is_empty()
            && (!leaf.name.is_some_and(steers) || is_data(leaf))
    };
    (0u32..)
        .zip(doc.leaves())
        .filter(move |(_, leaf)| free(leaf))
}

/// Texts belong together that are called the same.
fn name_of<'a>(leaf: &Leaf<'a>) -> &'a str {
    first(leaf.name.unwrap_or_default(), NAME_BYTES_MAX)
}

/// At most so many bytes from the end.
fn last(text: &str, max: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(max))..]
}

fn first(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doc(text: String) -> Document {
        Document::parse(text.into(), &mcp_codec::Limits::default()).expect("a document")
    }

    #[test]
    fn what_is_kept_has_a_bound_whatever_a_server_says() {
        let mut said = Said::default();
        for n in 0..20 {
            let (name, text) = ("n".repeat(100_000), "é".repeat(100_000));
            let next = doc(format!("{{\"{n}{name}\":\"a{text}\",\"text\":\"{text}\"}}"));
            said.extend(&Said::of(&next, &[]));
        }
        assert_eq!(said.tails.len(), TAILS_MAX);
        for tail in &said.tails {
            assert!(tail.name.len() <= NAME_BYTES_MAX && tail.text.len() <= TAIL_BYTES_MAX);
        }
        let seams = doc(format!("{{\"text\":\"{}\"}}", "é".repeat(100_000)));
        let seams = said.seams(&seams);
        assert_eq!(seams.len(), 1);
        assert!(seams[0].text.len() <= TAIL_BYTES_MAX + HEAD_BYTES_MAX);
    }

    #[test]
    fn a_text_goes_on_under_its_name_and_the_last_one_in_the_first() {
        // More values than anybody reads stand before it.
        let many = "\"x\",".repeat(1000);
        let first = doc(format!(
            "{{\"rows\":[{many}\"y\"],\"text\":\"one \",\"note\":\"two \"}}"
        ));
        let said = Said::of(&first, &[]);
        let next = doc("{\"id\":\"i\",\"data\":\"three\",\"text\":\"four\"}".into());
        let mut texts: Vec<String> = said.seams(&next).into_iter().map(|s| s.text).collect();
        texts.sort();
        assert_eq!(texts, ["one four", "two three"]);
    }
}
