//! From a text to raw findings. Detectors read one node and report into a [`Sink`]; none looks past its cell.

mod amount;
mod assign;
mod automata;
mod coded;
mod command;
mod context;
mod dump;
mod exact;
mod forbidden;
mod hidden;
mod leet;
mod named;
mod net;
mod number;
mod orders;
mod pem;
mod phone;
mod phrase;
mod postal;
mod prints;
mod token;
mod told;
mod url;

pub(crate) use assign::{may_name_test, told_of_test};
pub(crate) use context::head_over;
pub(crate) use dump::{is_line as is_dump_line, shows as shows_bytes};
pub(crate) use hidden::unseen;
pub(crate) use orders::{
    GLUED_BYTES_MIN, GLUED_WORDS_MIN, glued, humps, is_english, long_runs, mended_parts,
};
pub(crate) use phrase::in_list as is_listed_word;

use smallvec::SmallVec;

use crate::blob::{self, Blob};
use crate::decode::marks::Mark;
use crate::decode::strides::Noted;
use crate::decode::strung;
use crate::finding::{Fingerprint, FingerprintKey};
use crate::gate::Hit;
use crate::rule::RuleId;
use crate::ruleset::{Action, Detector, Kind, RuleSet};
use crate::text::{Cell, Node, Span};
use crate::traces::Traces;
use crate::{Category, LeafKind, OverBudget};

/// A match in a node, not yet led back to its leaf.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw {
    pub node: u32,
    pub span: Span,
    pub rule: RuleId,
    pub confidence: u8,
    pub fingerprint: Fingerprint,
    pub marks: u64,
}

/// What is left of the budget.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub candidates: u32,
    pub findings: u32,
    pub over: Option<OverBudget>,
}

impl Limits {
    /// Takes `cost` from what is left; false when there is not that much.
    pub fn spend(&mut self, cost: u32) -> bool {
        match self.candidates.checked_sub(cost) {
            Some(left) => {
                self.candidates = left;
                true
            }
            None => {
                self.candidates = 0;
                self.over.get_or_insert(OverBudget::Candidates);
                false
            }
        }
    }
}

/// Memory that detectors reuse from node to node.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub hits: Vec<Hit>,
    /// What the text shows at first sight.
    pub traces: Traces,
    /// Where it is noise.
    pub blobs: Vec<Blob>,
    pub compact: Vec<u8>,
    pub done: Done,
    pub near: context::Near,
    pub automata: automata::Automata,
    /// Where patterns are to be looked for.
    pub windows: Vec<token::Window>,
    /// Where a row of equally long pieces may be.
    pub rows: Vec<u32>,
    /// Rows of pieces with the same bytes between each two.
    pub strides: Vec<Noted>,
    /// Where a row of numbers may begin that stand for characters.
    pub code_rows: Vec<u32>,
    /// Where names end that count: `part1=`.
    pub counted: Vec<u32>,
    /// Where something is to be read backwards or rotated.
    pub turned: Vec<(Action, Span)>,
    /// Words that some decoders begin at, in the order of the text.
    pub marks: Vec<(u32, Mark)>,
    /// Cells with words that have digits for letters.
    pub leet: Vec<(u32, Span)>,
    /// Numbers with letters that look like digits.
    pub misread: Vec<Span>,
    /// The words of a list that follow each other.
    pub words: Vec<(usize, usize)>,
    /// Where a token broke off at the end of its cell.
    pub broken: Vec<u32>,
    /// Where words of an order stand at an edge of their cell.
    pub cut: Vec<u32>,
    /// Where words of an order stand among marks that only dress words up.
    pub dressed: Vec<Span>,
    /// Sentences with a misspelt word of an order.
    pub misspelt: Vec<Span>,
    /// Rows of words with one sign between each two, a word of an order among them.
    pub strung: Vec<Span>,
    /// Where the cell begins that was asked last whether it is JSON, and whether it is.
    pub json: Option<(u32, bool)>,
    /// Sentences that were taken apart.
    pub apart: orders::Apart,
}

/// For each rule, the end of what it has already been tried on in this node. There are thousands of rules, and few are
/// tried on a text: what was noted of another text is told by its number, and nothing is wiped.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The text that it was noted of, and the end.
    by_rule: Vec<(u32, u32)>,
    text: u32,
}

impl Done {
    /// Begins a text.
    fn begin(&mut self, rules: usize) {
        self.text = self.text.wrapping_add(1);
        if self.text == 0 {
            self.by_rule.clear();
            self.text = 1;
        }
        self.by_rule.resize(rules, (0, 0));
    }

    pub fn end(&self, rule: RuleId) -> u32 {
        let (text, end) = self.by_rule[rule.index()];
        if text == self.text { end } else { 0 }
    }

    pub fn set(&mut self, rule: RuleId, end: u32) {
        self.by_rule[rule.index()] = (self.text, end);
    }
}

/// Places in a list that are kept from one message to the next.
const PLACES_KEPT: usize = 1 << 16;

impl Scratch {
    /// Gives back what only a long text needed.
    pub fn recycle(&mut self) {
        self.traces.recycle();
        for list in [&mut self.rows, &mut self.code_rows, &mut self.counted] {
            if list.capacity() > PLACES_KEPT {
                *list = Vec::new();
            }
        }
        if self.strides.capacity() > PLACES_KEPT {
            self.strides = Vec::new();
        }
    }
}

/// What is reported of the words between the instructions of a program.
const SURE: u8 = 90;

/// What a Sealed Secret holds is encrypted: only its cluster can read it. It begins with the length of its key, and stands under
/// `encryptedData`.
fn is_sealed(text: &[u8], value: Span) -> bool {
    const SEALED_BYTES_MIN: usize = 64;
    const REACH: usize = 8 << 10;
    let told = &text[value.range()];
    if told.len() < SEALED_BYTES_MIN || !told.starts_with(b"Ag") {
        return false;
    }
    let start = value.start as usize;
    let before = &text[start.saturating_sub(REACH)..start];
    memchr::memmem::rfind(before, b"encryptedData").is_some()
}

/// Where detectors report to.
pub(crate) struct Sink<'a> {
    pub rules: &'a RuleSet,
    pub key: &'a FingerprintKey,
    pub node: &'a Node,
    pub index: u32,
    pub raw: &'a mut Vec<Raw>,
    pub limits: &'a mut Limits,
    /// Where the text is noise; see [`crate::blob`].
    pub blobs: SmallVec<[Blob; 2]>,
}

impl<'a> Sink<'a> {
    pub fn text(&self) -> &'a [u8] {
        &self.node.text
    }

    /// Whether it is a piece of noise. What has a right checksum is none, and what a tenant looks for is looked for everywhere.
    fn is_noise(&self, rule: RuleId, span: Span) -> bool {
        if self.node.is_from_noise(span) {
            return true;
        }
        blob::around(&self.blobs, span).is_some_and(|blob| {
            let value = &self.text()[span.range()];
            let compiled = self.rules.compiled(rule);
            let proves = |c: &crate::check::Check| c.proves && c.raw && (c.run)(value);
            // Words are no noise.
            let words = self.rules.rule(rule).category == Category::Injection;
            !words
                && !compiled.own
                && blob.has_by_chance(self.text(), span)
                && !compiled.checks.iter().any(proves)
        })
    }

    pub fn report(&mut self, rule: RuleId, span: Span, confidence: u8) {
        if span.is_empty()
            || is_sealed(self.text(), span)
            || shows_bytes(self.text(), span) && !self.rules.compiled(rule).own
            || self.node.only_sure && confidence < SURE
            || self.is_noise(rule, span)
            || self.node.only_injection && self.rules.rule(rule).category != Category::Injection
        {
            return;
        }
        let same = |r: &Raw| r.rule == rule && r.node == self.index && r.span == span;
        if self.raw.iter().rev().take(8).any(same) {
            return;
        }
        if self.limits.findings == 0 {
            self.limits.over.get_or_insert(OverBudget::Findings);
            return;
        }
        self.limits.findings -= 1;
        let value = &self.node.text[span.range()];
        let fingerprint = self.key.fingerprint(value);
        let marks = self.rules.marks(value);
        self.raw.push(Raw {
            node: self.index,
            span,
            rule,
            confidence,
            fingerprint,
            marks,
        });
    }

    /// The rule for what code finds, if the set has it and a finding of it would be reported here.
    pub fn rule_for(&self, detector: Detector) -> Option<RuleId> {
        let rule = self.rules.detectors[detector as usize]?;
        let is_sure = || self.rules.rule(rule).confidence >= SURE;
        (!self.node.only_sure || is_sure()).then_some(rule)
    }

    /// Reports for a rule that is code, if the set has it.
    pub fn report_for(&mut self, detector: Detector, span: Span, confidence: Option<u8>) {
        if let Some(rule) = self.rules.detectors[detector as usize] {
            let confidence = confidence.unwrap_or(self.rules.rule(rule).confidence);
            self.report(rule, span, confidence);
        }
    }

    /// A value that a rule's pattern matched: entropy, placeholders and checks still have a say.
    pub fn accept(&mut self, rule: RuleId, span: Span, scratch: &mut Vec<u8>) -> bool {
        let compiled = self.rules.compiled(rule);
        let mut span = span;
        let mut value = &self.node.text[span.range()];
        // A right checksum outweighs how the value looks: one random token in thousands holds a word.
        let proven = compiled
            .checks
            .iter()
            .any(|c| c.proves && c.raw && (c.run)(value));
        let dull =
            || compiled.entropy_min > 0.0 && crate::entropy::shannon(value) < compiled.entropy_min;
        if !proven && dull() {
            return false;
        }
        if !proven && compiled.placeholder(value) {
            return false;
        }
        // A word that was hung on a token is none of it.
        if let Some(len) = compiled.bare(value).filter(|_| !proven) {
            span.end = span.start + crate::text::to_u32(len);
            value = &value[..len];
        }
        if compiled.checks.iter().any(|c| !c.raw) {
            crate::check::compact(value, scratch);
        }
        if !compiled
            .checks
            .iter()
            .all(|c| (c.run)(if c.raw { value } else { scratch }))
        {
            return false;
        }
        self.report(rule, span, self.rules.rule(rule).confidence);
        true
    }
}

/// Runs every detector over the node.
pub(crate) fn detect(sink: &mut Sink<'_>, scratch: &mut Scratch) {
    scratch.turned.clear();
    scratch.json = None;
    scratch.apart.begin();
    scratch.marks.clear();
    scratch.broken.clear();
    scratch.cut.clear();
    scratch.dressed.clear();
    scratch.misspelt.clear();
    scratch.strung.clear();
    scratch.leet.clear();
    scratch.misread.clear();
    scratch.rows.clear();
    scratch.strides.clear();
    scratch.code_rows.clear();
    scratch.counted.clear();
    let found = sink.raw.len();
    keyword_hits(sink, scratch);
    if sink.node.layer.is_some() {
        orders::scan_hidden(sink);
    }
    if !sink.node.only_injection {
        coded::scan(sink);
        number::scan(sink, scratch);
        net::scan(sink, &scratch.traces);
        phone::scan(sink, &scratch.traces);
        postal::scan(sink, &scratch.traces);
        phrase::scan(sink, scratch);
        prints::scan(sink, scratch);
        named::scan(sink, found);
    }
    if scratch.traces.strange {
        hidden::scan(sink);
    }
}

/// What the decoders are told by the detectors, without rules: for their tests.
#[cfg(test)]
pub(crate) fn note_traces(node: &Node, scratch: &mut Scratch) {
    let text = &node.text;
    let mut traces = Traces::default();
    traces.read(text);
    for cell in &node.cells {
        let range = cell.span.range();
        let starts = |at: &usize| *at == range.start || !text[*at - 1].is_ascii_alphanumeric();
        for at in range.clone().filter(starts) {
            let word = text[at..range.end]
                .iter()
                .take_while(|b| b.is_ascii_alphanumeric());
            let has = |is: fn(&u8) -> bool| word.clone().any(is);
            if has(u8::is_ascii_digit) {
                let letters = has(u8::is_ascii_alphabetic);
                let word = (at, at + word.count());
                number::note_pieces(text, &traces, word, letters, cell, scratch);
            }
        }
        for at in range.clone().filter(|at| text[*at].is_ascii_digit()) {
            let rest = &text[at..range.end];
            if let Some(len) = rest.iter().position(|b| !b.is_ascii_alphanumeric())
                && matches!(rest[len], b' ' | b'\n')
            {
                number::note_row(text, (at, at + len), cell, scratch);
            }
        }
    }
    blob::find(text, &traces.runs, &mut scratch.blobs);
    scratch.traces = traces;
    scratch.marks = crate::decode::marks::in_text(text);
}

fn keyword_hits(sink: &mut Sink<'_>, scratch: &mut Scratch) {
    let mut hits = std::mem::take(&mut scratch.hits);
    hits.clear();
    let node = sink.node;
    scratch.traces.read(&node.text);
    blob::find(&node.text, &scratch.traces.runs, &mut scratch.blobs);
    sink.blobs.extend_from_slice(&scratch.blobs);
    // Only a value goes on in the next cell.
    let strings = node.cells.iter().filter(|c| c.kind == LeafKind::String);
    let ends = strings.map(|c| c.span.end as usize);
    sink.rules
        .gates
        .hits(&node.text, &scratch.traces, ends, &mut hits);
    scratch
        .near
        .begin(sink.rules.phrases.len(), &scratch.traces);
    if !hits.is_empty() {
        scratch.done.begin(sink.rules.len());
        let mut names = assign::Names::default();
        let mut unbroken = url::Unbroken::default();
        let mut cell_index = 0;
        for hit in &hits {
            while sink
                .node
                .cells
                .get(cell_index)
                .is_some_and(|c| c.span.end <= hit.at)
            {
                cell_index += 1;
            }
            let Some(cell) = sink
                .node
                .cells
                .get(cell_index)
                .filter(|c| c.span.start <= hit.at)
            else {
                continue;
            };
            for action in &sink.rules.actions[usize::from(hit.keyword)] {
                if sink.node.only_injection && !sink.rules.finds_injection(*action)
                    || sink.node.only_patterns && matches!(action, Action::Detect(_))
                {
                    continue;
                }
                act(
                    *action,
                    hit.at,
                    (cell_index, *cell),
                    sink,
                    scratch,
                    (&mut names, &mut unbroken),
                );
            }
        }
    }
    scratch.hits = hits;
    token::search_windows(sink, scratch);
}

fn act(
    action: Action,
    at: u32,
    cell: (usize, Cell),
    sink: &mut Sink<'_>,
    scratch: &mut Scratch,
    (names, unbroken): (&mut assign::Names, &mut url::Unbroken),
) {
    match action {
        Action::Try(rule) => match sink.rules.compiled(rule).kind {
            Kind::Token {
                before,
                after_any,
                ahead,
            } => {
                let edges = token::Edges {
                    before,
                    after_any,
                    ahead,
                };
                token::anchored(rule, at, &cell.1, edges, sink, scratch);
            }
            Kind::Text { back, ahead } => {
                token::around(rule, at, &cell.1, (back, ahead), sink, scratch)
            }
            Kind::Assign { any_name } => names.provider(rule, any_name, at, cell, sink, scratch),
            Kind::Number { .. } | Kind::Detector(_) | Kind::Values => {}
        },
        Action::SecretName => names.secret(at, cell, sink),
        Action::Exact => exact::values(at, &cell.1, sink, scratch),
        Action::Detect(Detector::PrivateKey) => pem::private_key(at, &cell.1, sink),
        Action::Detect(Detector::UrlCredentials) => url::credentials(at, &cell.1, unbroken, sink),
        Action::Detect(Detector::AuthHeader) => url::auth_header(at, &cell.1, sink),
        Action::Detect(Detector::PrivateWebKey) => assign::Names::web_key(cell, sink),
        Action::Detect(Detector::HomeCoordinates) => assign::Names::home(cell, sink),
        Action::Detect(Detector::SecretData) => assign::Names::secret_data(cell, sink),
        Action::Detect(Detector::FamilyName) => assign::Names::family(cell, sink),
        Action::Detect(Detector::NameBeside) => names.beside(at, cell, sink),
        Action::Detect(Detector::PostalAddress) => names.postal(at, cell, sink),
        Action::Detect(Detector::Orders) => {
            strung::note(sink.text(), &cell.1, at, &mut scratch.strung);
            orders::scan(at, &cell.1, sink, scratch);
        }
        Action::Detect(Detector::MisspeltOrders) => {
            orders::scan_misspelt(at, &cell.1, sink, scratch)
        }
        Action::Detect(Detector::SensedOrders) => {
            strung::note(sink.text(), &cell.1, at, &mut scratch.strung);
            orders::scan_sensed(at, &cell.1, sink, scratch);
        }
        Action::Detect(Detector::BareCommand) => command::scan(&cell.1, sink),
        Action::Mark(mark) => scratch.marks.push((at, mark)),
        Action::Context { .. } | Action::Detect(_) | Action::Within(_) => {}
        Action::Reversed | Action::Rot13 => {
            let span = Span {
                start: at,
                end: at + 1,
            };
            // The gate's order makes neighbours neighbours here, too.
            if scratch
                .turned
                .last()
                .is_none_or(|(a, s)| *a != action || at > s.start + 4)
            {
                scratch.turned.push((action, span));
            }
        }
    }
}

/// True for cells that hold values.
pub(crate) fn is_value(cell: &Cell) -> bool {
    cell.kind != LeafKind::Key
}
