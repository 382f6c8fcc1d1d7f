//! The scan of one message: flatten, detect, decode what is hidden, again, and lead every finding back to its leaf.

use smallvec::SmallVec;

use crate::decode::{Spawner, decode, is_reading, json, outline};
use crate::detect::{Limits, Raw, Scratch, Sink, detect};
use crate::echoes;
use crate::finding::{Finding, FingerprintKey, Layers, Outcome};
use crate::rest;
use crate::text::{NO_LEAF, Node, Parent, Span, to_u32};
use crate::{Budget, Category, Layer, LeafInput, LeafKind, OverBudget, RuleId, RuleSet, Step};

/// Nodes are reused; more than this many are given back after a message that needed them.
const NODES_KEPT: usize = 64;
/// So is what the nodes hold beyond this, all together: any of them may once have held a long text.
const BYTES_KEPT: usize = 2 << 20;
/// Texts are addressed with 32 bits; what is longer is over budget.
const TEXT_BYTES_MAX: usize = 1 << 30;
/// Most texts made out of one message, by any decoder.
pub(crate) const NODES_MAX: usize = 1 << 16;
/// Of longer names the end is read: what a value is stands last.
const NAME_BYTES_MAX: usize = 128;

/// How much of a message is scanned at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// Nothing is said of where else a value stands: that may be in other parts, and what is found must not depend on where
    /// they are cut.
    Part,
}

/// Reusable scratch of one worker. Holds no state from one message to the next.
///
/// ```
/// use dlp_scan::{Budget, FingerprintKey, LeafInput, LeafKind, RuleSet, Scanner};
///
/// let rules = RuleSet::builtin();
/// let mut scanner = Scanner::new(FingerprintKey::new([7; 32]));
/// let leaf = LeafInput { text: "mail ana@mailbox.org now", kind: LeafKind::String, name: Some("note") };
/// let outcome = scanner.scan(rules, [leaf].into_iter(), &Budget::default());
/// let found = outcome.findings[0];
/// assert_eq!(&leaf.text[found.start as usize..found.end as usize], "ana@mailbox.org");
/// ```
#[derive(Debug)]
pub struct Scanner {
    key: FingerprintKey,
    nodes: Vec<Node>,
    free: Vec<Node>,
    scratch: Scratch,
    raw: Vec<Raw>,
    /// The texts looked at, where somebody wants to know.
    kept: Option<Vec<Kept>>,
    /// Candidates looked at and bytes decoded for the last message.
    #[cfg(test)]
    work: (u32, u32),
}

impl Scanner {
    /// A scanner whose fingerprints are made with `key`.
    pub fn new(key: FingerprintKey) -> Self {
        Self {
            key,
            nodes: Vec::new(),
            free: Vec::new(),
            scratch: Scratch::default(),
            raw: Vec::new(),
            kept: None,
            #[cfg(test)]
            work: (0, 0),
        }
    }

    /// Scans the leaves of one message.
    pub fn scan<'a>(
        &mut self,
        rules: &RuleSet,
        leaves: impl Iterator<Item = LeafInput<'a>> + Clone,
        budget: &Budget,
    ) -> Outcome {
        self.scan_for(rules, leaves, budget, &|_, _| false)
    }

    /// The same for somebody who treats rules differently: of two findings at one place the first is reported beside the
    /// second, which is surer or reaches further, where `keeps` says so.
    pub fn scan_for<'a>(
        &mut self,
        rules: &RuleSet,
        leaves: impl Iterator<Item = LeafInput<'a>> + Clone,
        budget: &Budget,
        keeps: Keeps<'_>,
    ) -> Outcome {
        self.scan_laid_out(rules, leaves, None, budget, keeps)
    }

    /// The same where it is known how the leaves lie in objects and arrays: a value in a row of a table is what the head of
    /// its column says. Leaves beyond the outline are in none.
    ///
    /// ```
    /// use dlp_scan::{Budget, FingerprintKey, LeafInput, LeafKind, RuleSet, Scanner, Step};
    /// use Step::{Array, End, Leaf, Object};
    ///
    /// // {"columns": ["id", "password"], "rows": [["ana", "Xk9vQ2mZr7Lp"]]}
    /// let leaf = |text, kind| LeafInput { text, kind, name: None };
    /// let below = |name, text| LeafInput { text, kind: LeafKind::String, name: Some(name) };
    /// let leaves = [
    ///     leaf("columns", LeafKind::Key), below("columns", "id"), below("columns", "password"),
    ///     leaf("rows", LeafKind::Key), below("rows", "ana"), below("rows", "Xk9vQ2mZr7Lp"),
    /// ];
    /// let mut outline =
    ///     [Object, Leaf, Array, Leaf, Leaf, End, Leaf, Array, Array, Leaf, Leaf, End, End, End].into_iter();
    /// let mut scanner = Scanner::new(FingerprintKey::new([7; 32]));
    /// let (rules, budget) = (RuleSet::builtin(), Budget::default());
    /// let outcome =
    ///     scanner.scan_laid_out(rules, leaves.into_iter(), Some(&mut outline), &budget, &|_, _| false);
    /// assert_eq!(outcome.findings[0].leaf, 5);
    /// ```
    pub fn scan_laid_out<'a>(
        &mut self,
        rules: &RuleSet,
        leaves: impl Iterator<Item = LeafInput<'a>> + Clone,
        outline: Option<Outline<'_>>,
        budget: &Budget,
        keeps: Keeps<'_>,
    ) -> Outcome {
        self.look(rules, leaves, outline, budget, keeps, Extent::Whole)
    }

    /// The same where it may be a part of a message only.
    pub(crate) fn look<'a>(
        &mut self,
        rules: &RuleSet,
        leaves: impl Iterator<Item = LeafInput<'a>> + Clone,
        outline: Option<Outline<'_>>,
        budget: &Budget,
        keeps: Keeps<'_>,
        extent: Extent,
    ) -> Outcome {
        if !self.nodes.is_empty() {
            // A panic cut the last message off.
            self.recycle();
        }
        let mut over = None;
        let bytes = self.flatten(leaves.clone(), budget.decoded_bytes_max > 0, &mut over);
        if let Some(steps) = outline {
            outline::lay_out(&mut self.nodes[0], steps);
        }
        let budget = &budget.for_bytes(bytes, rules.weight_max);
        let mut limits = Limits {
            candidates: budget.candidates_max,
            findings: budget.findings_max,
            over: None,
        };
        let mut bytes_left = budget.decoded_bytes_max;
        let mut index = 0;
        while index < self.nodes.len() {
            let node = std::mem::take(&mut self.nodes[index]);
            let mut sink = Sink {
                rules,
                key: &self.key,
                node: &node,
                index: to_u32(index),
                raw: &mut self.raw,
                limits: &mut limits,
                blobs: SmallVec::new(),
            };
            detect(&mut sink, &mut self.scratch);
            if let Some(kept) = &mut self.kept {
                kept.push(Kept::of(&node, &self.nodes));
            }
            // What stands in the fields of a table was decoded where it stands.
            if node.layer == Some(Layer::Table) {
                self.nodes[index] = node;
                index += 1;
                continue;
            }
            if self.nodes.len() < NODES_MAX {
                let above = match node.parent {
                    Parent::Node(at) => self.nodes[at as usize].layer,
                    Parent::Leaf(_) | Parent::Root => None,
                };
                let mut spawn = Spawner {
                    parent: to_u32(index),
                    parent_depth: node.depth,
                    layers_above: [node.layer, above],
                    parent_coded: node.coded,
                    parent_only_injection: node.only_injection,
                    parent_only_sure: node.only_sure,
                    parent_turned: node.turned,
                    parent_fragments: node.fragments,
                    parent_is_reading: node.layer.is_some_and(is_reading),
                    parent_fresh: node.fresh,
                    parent_made: &node.made,
                    parent_blobs: &self.scratch.blobs,
                    parent_noise: &node.noise,
                    shared: Vec::new(),
                    nodes: &mut self.nodes,
                    free: &mut self.free,
                    bytes_left: &mut bytes_left,
                    depth_max: budget.depth_max,
                    over: &mut over,
                };
                decode(&node, &self.scratch, &mut spawn);
            } else {
                over.get_or_insert(OverBudget::DecodedBytes);
            }
            self.nodes[index] = node;
            index += 1;
        }
        let findings = if self.raw.is_empty() {
            Vec::new()
        } else {
            if extent == Extent::Whole {
                echoes::find(&self.nodes, rules, &mut self.raw, &mut limits);
            }
            self.resolve(rules, leaves, keeps)
        };
        #[cfg(test)]
        {
            self.work = (
                budget.candidates_max - limits.candidates,
                budget.decoded_bytes_max - bytes_left,
            );
        }
        self.recycle();
        Outcome {
            findings,
            over_budget: over.or(limits.over),
        }
    }

    /// The same for one leaf, with all the texts that were looked at.
    pub(crate) fn scan_keeping(
        &mut self,
        rules: &RuleSet,
        leaf: LeafInput<'_>,
        budget: &Budget,
    ) -> (Outcome, Vec<Kept>) {
        self.kept = Some(Vec::new());
        let outcome = self.scan(rules, std::iter::once(leaf), budget);
        (outcome, self.kept.take().unwrap_or_default())
    }

    /// All leaves one after another in the root; leaves that are JSON become children of their own, if anything may be
    /// decoded. Returns how many bytes there are.
    fn flatten<'a>(
        &mut self,
        leaves: impl Iterator<Item = LeafInput<'a>>,
        decodes: bool,
        over: &mut Option<OverBudget>,
    ) -> usize {
        let mut root = self.free.pop().unwrap_or_default();
        root.clear();
        // Its place is the first.
        self.nodes.push(Node::default());
        let mut names = LastName::default();
        let mut bytes = 0;
        for (index, leaf) in leaves.enumerate() {
            if root.text.len() + leaf.text.len() > TEXT_BYTES_MAX || index >= NO_LEAF as usize {
                over.get_or_insert(OverBudget::DecodedBytes);
                break;
            }
            let index = to_u32(index);
            bytes += leaf.text.len();
            let text = leaf.text.as_bytes();
            if leaf.kind == LeafKind::Key {
                let span = root.push_cell(text, Span::default(), leaf.kind, index);
                names.set(leaf.text, span);
                continue;
            }
            let begins = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'{' | b'[');
            if text.first().is_some_and(begins)
                && decodes
                && json::looks_like(text)
                && self.json_leaf(&leaf, index)
            {
                continue;
            }
            let name = names.of(&leaf, &mut root);
            root.push_cell(text, name, leaf.kind, index);
        }
        self.nodes[0] = root;
        bytes
    }

    fn json_leaf(&mut self, leaf: &LeafInput<'_>, index: u32) -> bool {
        let mut node = self.free.pop().unwrap_or_default();
        node.clear();
        node.parent = Parent::Leaf(index);
        node.layer = Some(Layer::Json);
        node.depth = 1;
        // A leaf's own JSON costs no budget: it is the message, and no longer than it.
        let ok = json::walk(leaf.text.as_bytes(), 0, &mut node);
        if ok {
            self.nodes.push(node)
        } else {
            self.free.push(node)
        }
        ok
    }

    fn resolve<'a>(
        &mut self,
        rules: &RuleSet,
        leaves: impl Iterator<Item = LeafInput<'a>>,
        keeps: Keeps<'_>,
    ) -> Vec<Finding> {
        let mut found = Vec::with_capacity(self.raw.len());
        for raw in &self.raw {
            self.lead_back(raw, rules, &mut found);
        }
        found.sort_unstable_by_key(|f| {
            (
                f.leaf,
                f.start,
                std::cmp::Reverse(f.end),
                std::cmp::Reverse(f.confidence),
                f.layers.len(),
                f.rule,
                // The same one comes first, whatever was read before it.
                f.layers,
                f.fingerprint,
            )
        });
        on_boundaries(&mut found, leaves);
        without_repeats(&mut found, rules, keeps);
        found
    }

    /// Follows a finding up through its nodes to the leaves.
    fn lead_back(&self, raw: &Raw, rules: &RuleSet, out: &mut Vec<Finding>) {
        let mut parts: SmallVec<[Span; 2]> = SmallVec::from_slice(&[raw.span]);
        let mut at = raw.node as usize;
        let mut steps: SmallVec<[Layer; 8]> = SmallVec::new();
        let finding = |leaf: u32, span: Span, steps: &[Layer]| Finding {
            rule: raw.rule,
            category: rules.rule(raw.rule).category,
            leaf,
            start: span.start,
            end: span.end,
            confidence: raw.confidence,
            layers: steps
                .iter()
                .rev()
                .fold(Layers::default(), |l, s| l.then(*s).unwrap_or(l)),
            fingerprint: raw.fingerprint,
            marks: raw.marks,
        };
        loop {
            let node = &self.nodes[at];
            parts.retain(|p| {
                node.cell_at(p.start)
                    .is_none_or(|c| node.cells[c].leaf != NO_LEAF)
            });
            steps.extend(node.layer);
            steps.extend(node.under);
            if node.parent == Parent::Root {
                for part in &parts {
                    let Some(cell) = node.cell_at(part.start).map(|c| node.cells[c]) else {
                        continue;
                    };
                    let end = part.end.min(cell.span.end);
                    let span = Span {
                        start: part.start - cell.span.start,
                        end: end - cell.span.start,
                    };
                    out.push(finding(cell.leaf, span, &steps));
                }
                return;
            }
            let (below, node_parts) = (parts.clone(), |p: &Span| node.to_parent(*p));
            parts = below.iter().flat_map(node_parts).collect();
            // Another way to read the digits of a dump is no better than theirs.
            if node.layer.is_some_and(is_reading)
                && let Parent::Node(parent) = node.parent
                && !rules.compiled(raw.rule).own
                && parts
                    .iter()
                    .all(|p| crate::detect::shows_bytes(&self.nodes[parent as usize].text, *p))
            {
                return;
            }
            if let Parent::Node(parent) = node.parent {
                let stands = |part: Span| {
                    let same =
                        |r: &Raw| r.node == parent && r.span.end == part.end && r.rule == raw.rule;
                    self.raw.iter().any(same)
                };
                let text = &self.nodes[parent as usize].text;
                match node.layer {
                    Some(Layer::Joined) => rest::end_before_words(&mut parts, text, stands),
                    // Of lines that were put together, all that lies between them was taken as well.
                    Some(Layer::Wrapped | Layer::Spaced) => {
                        let pieces = below.iter().flat_map(|p| node.segments_of(*p));
                        let mut pieces: SmallVec<[Span; 2]> = pieces.collect();
                        let all = pieces.len();
                        rest::end_before_words(&mut pieces, text, stands);
                        if pieces.len() < all {
                            parts = pieces;
                        }
                    }
                    _ => {}
                }
            }
            match node.parent {
                Parent::Leaf(leaf) => {
                    out.extend(parts.iter().map(|p| finding(leaf, *p, &steps)));
                    return;
                }
                Parent::Node(parent) => at = parent as usize,
                Parent::Root => return,
            }
        }
    }

    fn recycle(&mut self) {
        self.raw.clear();
        // The next root takes what this one grew to, and so on down, so that one long message makes no other node long.
        self.free.extend(self.nodes.drain(..).rev());
        let extra = self.free.len().saturating_sub(NODES_KEPT);
        self.free.drain(..extra);
        for list in [&mut self.nodes, &mut self.free] {
            list.shrink_to(2 * NODES_KEPT);
        }
        self.scratch.recycle();
        let mut left = BYTES_KEPT;
        for node in self.free.iter_mut().rev() {
            match left.checked_sub(node.bytes_kept()) {
                Some(rest) => left = rest,
                None => *node = Node::default(),
            }
        }
    }
}

/// A text that was looked at.
#[derive(Debug)]
pub(crate) struct Kept {
    /// The encodings it lay under, outermost first, `>` between them.
    pub layers: String,
    pub text: Vec<u8>,
    pub cells: Vec<crate::text::Cell>,
}

impl Kept {
    fn of(node: &Node, nodes: &[Node]) -> Self {
        let mut steps = Vec::new();
        let mut at = Some(node);
        while let Some(node) = at {
            steps.extend(node.layer);
            steps.extend(node.under);
            at = match node.parent {
                Parent::Node(parent) => nodes.get(parent as usize),
                Parent::Root | Parent::Leaf(_) => None,
            };
        }
        let names: Vec<&str> = steps.iter().rev().map(|s| s.name()).collect();
        Self {
            layers: names.join(">"),
            text: node.text.clone(),
            cells: node.cells.clone(),
        }
    }
}

/// The name over the leaves that come next: written into the root once, however many leaves stand under it.
#[derive(Default)]
struct LastName<'a> {
    name: &'a str,
    span: Span,
}

impl<'a> LastName<'a> {
    fn set(&mut self, name: &'a str, span: Span) {
        (self.name, self.span) = (name, span);
    }

    fn of(&mut self, leaf: &LeafInput<'a>, root: &mut Node) -> Span {
        let Some(name) = leaf.name.filter(|n| !n.is_empty()) else {
            return Span::default();
        };
        let name = &name[name.ceil_char_boundary(name.len().saturating_sub(NAME_BYTES_MAX))..];
        let same =
            self.name.len() == name.len() && (std::ptr::eq(self.name, name) || self.name == name);
        if !same || self.span.is_empty() {
            let span = root.push_cell(name.as_bytes(), Span::default(), LeafKind::Key, NO_LEAF);
            self.set(name, span);
        }
        self.span
    }
}

/// Widens findings to character boundaries, and drops what does not lie in its leaf.
fn on_boundaries<'a>(found: &mut Vec<Finding>, leaves: impl Iterator<Item = LeafInput<'a>>) {
    let mut leaves = leaves.enumerate();
    let mut current: Option<(usize, &str)> = None;
    found.retain_mut(|f| {
        while current.is_none_or(|(i, _)| i < f.leaf as usize) {
            match leaves.next() {
                Some((i, leaf)) => current = Some((i, leaf.text)),
                None => return false,
            }
        }
        let Some((_, text)) = current else {
            return false;
        };
        let (mut start, mut end) = (f.start as usize, (f.end as usize).min(text.len()));
        if start >= end {
            return false;
        }
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        while !text.is_char_boundary(end) {
            end += 1;
        }
        (f.start, f.end) = (to_u32(start), to_u32(end));
        true
    });
}

/// How the leaves of a message lie in its objects and arrays ([`Scanner::scan_laid_out`]).
pub type Outline<'a> = &'a mut dyn Iterator<Item = Step>;

/// Whether a finding is kept beside another one that covers it ([`Scanner::scan_for`]).
pub type Keeps<'a> = &'a dyn Fn(RuleId, RuleId) -> bool;

/// One finding for each place and category, unless a less sure one reaches further. An order to a model that lies inside
/// another stays beside it if it is the surer one: sure ones are blocked, the rest is not. What the caller treats more
/// strictly than what covers it stays as well. A tenant's own rules speak for themselves, beside whatever else is found
/// there.
fn without_repeats(found: &mut Vec<Finding>, rules: &RuleSet, keeps: Keeps<'_>) {
    let own = |f: &Finding| rules.compiled(f.rule).own;
    let surer = |over: &Finding, f: &Finding| {
        f.category == Category::Injection && f.confidence > over.confidence
    };
    let same = |k: &Finding, f: &Finding| k.start == f.start && k.end == f.end;
    let mut kept: Vec<Finding> = Vec::with_capacity(found.len());
    for f in found.drain(..) {
        let inside = |k: &Finding| {
            k.leaf == f.leaf
                && k.category == f.category
                && k.start <= f.start
                && f.end <= k.end
                && (k.rule == f.rule || !own(k) && !own(&f))
                && (same(k, &f) || !rules.keep_covered && !surer(k, &f))
        };
        // Sorted by start: only the latest can reach over this one.
        let from = kept.len().saturating_sub(8);
        let mut latest = kept[from..].iter_mut();
        if let Some(less_sure) = latest.find(|k| {
            inside(k) && same(k, &f) && f.confidence > k.confidence && !keeps(k.rule, f.rule)
        }) {
            *less_sure = f;
            continue;
        }
        let covers = |k: &Finding| inside(k) && !keeps(f.rule, k.rule);
        let surer_here = |k: &Finding| same(k, &f) && f.confidence > k.confidence;
        if !kept[from..].iter().any(|k| covers(k) && !surer_here(k)) {
            kept.push(f);
        }
    }
    *found = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule, leaf, matched text, layers.
    type Shown = (String, u32, String, String);

    fn scan(
        leaves: &[(&str, &str)],
        budget: &Budget,
    ) -> (Vec<Shown>, Option<OverBudget>, (u32, u32)) {
        let rules = RuleSet::builtin();
        let mut scanner = Scanner::new(FingerprintKey::new([3; 32]));
        let inputs = leaves.iter().map(|(name, text)| LeafInput {
            text,
            kind: LeafKind::String,
            name: (!name.is_empty()).then_some(*name),
        });
        let outcome = scanner.scan(rules, inputs, budget);
        let shown = outcome.findings.iter().map(|f| {
            let text = &leaves[f.leaf as usize].1[f.start as usize..f.end as usize];
            (
                rules.rule(f.rule).id.to_string(),
                f.leaf,
                text.to_owned(),
                f.layers.to_string(),
            )
        });
        (shown.collect(), outcome.over_budget, scanner.work)
    }

    fn one(text: &str) -> Vec<(String, String, String)> {
        scan(&[("", text)], &Budget::default())
            .0
            .into_iter()
            .map(|(r, _, t, l)| (r, t, l))
            .collect()
    }

    /// Most long texts have a few short ones in them; which node held which must not go round until all are long.
    #[test]
    fn what_a_scanner_keeps_is_bounded_and_does_not_grow_with_use() {
        let mut scanner = Scanner::new(FingerprintKey::new([3; 32]));
        let mut kept = |text: &str| {
            let leaf = LeafInput {
                text,
                kind: LeafKind::String,
                name: Some("note"),
            };
            let rules = RuleSet::builtin();
            scanner.scan(rules, [leaf].into_iter(), &Budget::default());
            scanner.free.iter().map(Node::bytes_kept).sum::<usize>()
        };
        let hidden = [
            "aGVsbG8gdGhlcmUgYWxs",
            "d2hhdCBpcyB0aGlzIG5vdw",
            "%68%65%6c%6c%6f",
        ];
        let text = format!(
            "{} {}",
            hidden.join(" and "),
            "some more words ".repeat(5_000)
        );
        let first = kept(&text);
        assert!(first > text.len(), "nothing is kept to be used again");
        let later = (0..80).map(|_| kept(&text)).max().unwrap_or_default();
        assert!(later < first + first / 4, "{later} after {first} bytes");
        let after = kept(&text.repeat(40));
        assert!(after <= BYTES_KEPT, "{after} bytes");
    }

    /// A token whose checksum holds, put together here so that none stands in the repository.
    fn github_token() -> String {
        let body = "Zq7kW2mXv9Lp4TsR8bNc3YdF6hJg1K";
        let mut crc = crc32fast::hash(body.as_bytes());
        let mut tail = [0u8; 6];
        for b in tail.iter_mut().rev() {
            *b = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                [(crc % 62) as usize];
            crc /= 62;
        }
        format!("ghp_{body}{}", String::from_utf8_lossy(&tail))
    }

    #[test]
    fn a_token_is_found_under_layers_and_led_back() {
        let token = github_token();
        let hex: String = token.bytes().map(|b| format!("{b:02x}")).collect();
        let percent: String = token.bytes().map(|b| format!("%{b:02X}")).collect();
        let escapes: String = token
            .chars()
            .map(|c| format!("\\u{:04x}", c as u32))
            .collect();
        let reversed: String = token.chars().rev().collect();
        let cases = [
            (format!("use {token} now"), token.clone(), ""),
            (format!("d {hex} e"), hex.clone(), "hex"),
            (format!("d={percent} e"), percent.clone(), "percent"),
            (format!("d {escapes} e"), escapes.clone(), "escapes"),
            (format!("d {reversed} e"), reversed.clone(), "reversed"),
            (format!("{{\"a\":\"x {token} y\"}}"), token.clone(), "json"),
            (
                format!("{{\"a\":\"{{\\\"b\\\":\\\"{token}\\\"}}\"}}"),
                token.clone(),
                "json",
            ),
            (
                format!("{{\"a\":\"x {percent} y\"}}"),
                percent.clone(),
                "json>percent",
            ),
        ];
        for (text, want, layers) in cases {
            let found = one(&text);
            assert!(
                found.contains(&("github-pat".to_owned(), want.clone(), layers.to_owned())),
                "{text}: {found:?}"
            );
        }
    }

    #[test]
    fn a_value_split_over_leaves_gives_a_finding_for_each_part() {
        let token = github_token();
        let (a, b) = token.split_at(19);
        let left = format!("token {a}");
        let right = format!("{b} ok");
        let (found, ..) = scan(
            &[("text", &left), ("type", "text"), ("text", &right)],
            &Budget::default(),
        );
        let parts: Vec<_> = found
            .iter()
            .filter(|f| f.0 == "github-pat")
            .map(|f| (f.1, f.2.as_str(), f.3.as_str()))
            .collect();
        assert_eq!(parts, vec![(0, a, "joined"), (2, b, "joined")]);
    }

    #[test]
    fn any_cut_of_a_token_over_two_parts_is_found() {
        let token = github_token();
        for cut in 2..token.len() - 2 {
            let (a, b) = token.split_at(cut);
            let (found, ..) = scan(&[("text", a), ("text", b)], &Budget::default());
            assert!(
                found.iter().any(|f| f.0 == "github-pat"),
                "cut at {cut}: {found:?}"
            );
        }
    }

    #[test]
    fn names_give_values_away_wherever_they_stand() {
        let value = "Iqvldm982*cfBKh";
        let cases: [&[(&str, &str)]; 4] = [
            &[("db_password", value)],
            &[("cfg", "DB_PASSWORD=Iqvldm982*cfBKh")],
            &[("name", "DB_PASSWORD"), ("value", value)],
            &[("x", "{\"db\":{\"password\":\"Iqvldm982*cfBKh\"}}")],
        ];
        for leaves in cases {
            let (found, ..) = scan(leaves, &Budget::default());
            assert!(
                found
                    .iter()
                    .any(|f| f.0 == "generic-password" && f.2 == value),
                "{leaves:?}: {found:?}"
            );
        }
    }

    #[test]
    fn a_sentence_may_end_anywhere() {
        for text in [
            "The signing key for staging is Xk9vQ2mZr7Lp4Ts8Wd3n",
            "password for x is Xk9vQ2mZ!",
            "la contraseña para el correo es Xk9vQ2mZ!",
            "due 2024-01-15 minus (see note)",
            "TX1234567890 Dash cam",
            "token: >-\r\n  Xk9vQ2mZ\r\n  r7Lp4Ts8",
        ] {
            for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
                let (_, over, _) = scan(&[("", &text[..end])], &Budget::default());
                assert_eq!(over, None, "{}", &text[..end]);
            }
        }
    }

    #[test]
    fn running_out_is_said() {
        let token = github_token();
        let hex: String = token.bytes().map(|b| format!("{b:02x}")).collect();
        let cases = [
            (
                Budget {
                    decoded_bytes_max: 10,
                    ..Budget::default()
                },
                hex.clone(),
                OverBudget::DecodedBytes,
            ),
            (
                Budget {
                    depth_max: 0,
                    ..Budget::default()
                },
                hex,
                OverBudget::Depth,
            ),
            (
                Budget {
                    findings_max: 0,
                    ..Budget::default()
                },
                "a@fi.de ".repeat(9),
                OverBudget::Findings,
            ),
            (
                Budget {
                    candidates_max: 2,
                    ..Budget::default()
                },
                "password=a token=b secret=c".repeat(9),
                OverBudget::Candidates,
            ),
        ];
        for (budget, text, want) in cases {
            assert_eq!(scan(&[("", &text)], &budget).1, Some(want), "{text}");
        }
    }

    #[test]
    fn ordinary_text_is_read_in_many_ways_and_no_code() {
        let budget = Budget {
            depth_max: 5,
            ..Budget::default()
        };
        let environment = r#"{"npm_config_userconfig": ".npmrc", "npm_config_npm_version": "9.1", "TERM": "m",
            "PATH": "/_", "LANG": "8", "CONTAINER_NAME": "m"}"#;
        assert_eq!(scan(&[("", environment)], &budget).1, None);
        let split = |text: &str| text.replace('p', "p\u{200b}");
        let coded = (0..4).fold(split("ghp_ and so on"), |text, _| {
            text.bytes().map(|b| format!("{b:02x}")).collect()
        });
        assert_eq!(scan(&[("", &coded)], &budget).1, None);
        let deeper: String = coded.bytes().map(|b| format!("{b:02x}")).collect();
        assert_eq!(scan(&[("", &deeper)], &budget).1, Some(OverBudget::Depth));
    }

    #[test]
    fn hostile_repetition_costs_no_more_than_linear_work() {
        let pieces = [
            "token ",
            "secret=",
            "api_key=",
            "ghp_a",
            "eyJa.",
            "a://b:c@",
            "1 ",
            "12-",
            "a1 ",
            "a@b.",
            "a:",
            "%41",
            "\\u0041",
            "&#65;",
            "QUFB",
            "41",
            "\" + \"",
            "a ",
            "-----BEGIN PRIVATE KEY-----",
            "ignore all ",
            "you are now ",
            "act as ",
            "(415) 555-0132 ",
            "GB62 NXZW ",
            "aа",
            "\u{200b}",
            "abcd1234\n",
            "\"a\",",
            "$1$",
            "erongi ",
            "{\"a\":",
            "[",
            // Found by fuzzing and by `scan-bench worst`: encodings side by side, many rules at one place.
            "fd %73%6b%5f cGFzc3dvcmQ9SXF2bGRtOTgyK;&#97;",
            "g h p _ a b c d\n\"abc\" + \"def\"\n1gn0r3 4ll ",
            "curl ignoruj\\u0041basic edrpou AA77 KKKK KKKK KKKK KKKK KK αγνόησε",
            "passport number ssn tax id iban national id 123456789 12-3456789 ",
            "a**b**",
            "Mr Mr Mr éééééééé",
        ];
        let budget = Budget {
            decoded_bytes_max: u32::MAX,
            candidates_max: u32::MAX,
            ..Budget::default()
        };
        for piece in pieces {
            let work = |n: usize| {
                let text = piece.repeat(n / piece.len());
                let (_, over, (candidates, decoded)) = scan(&[("", &text)], &budget);
                (u64::from(candidates) + u64::from(decoded), over)
            };
            let ((small, _), (large, over)) = (work(8_000), work(32_000));
            assert!(
                large <= small * 5 + 4_000,
                "{piece:?}: {small} then {large}"
            );
            // What costs more than any real message is not looked at to its end, and the caller is told.
            assert!(
                large <= 32_000 * 24 || over.is_some() && large <= 32_000 * 60,
                "{piece:?}: {large} for 32000 bytes"
            );
        }
    }

    #[test]
    fn scratch_is_reused_and_leaves_nothing_behind() {
        let rules = RuleSet::builtin();
        let mut scanner = Scanner::new(FingerprintKey::new([3; 32]));
        let token = github_token();
        let leaf = |text| {
            [LeafInput {
                text,
                kind: LeafKind::String,
                name: None,
            }]
            .into_iter()
        };
        let first = scanner.scan(rules, leaf(&token), &Budget::default());
        assert!(
            scanner
                .scan(rules, leaf("nothing here"), &Budget::default())
                .findings
                .is_empty()
        );
        assert_eq!(scanner.scan(rules, leaf(&token), &Budget::default()), first);
    }
}
