//! Tool pinning: compares what a server lists with the definitions that were approved.
//!
//! ```text
//! tools/list answer -> raw bytes known? -> (canonical form, hash) -> approved | not -> left out, under `hold`
//!                                                     `- learnt once it is decided that the answer goes to a client
//! tools/call ------------------------------------------------------> held?          -> refused, under `hold`
//!                                                     pins --unsaved--> whoever keeps them (PinSource)
//! ```
//!
//! Nothing here awaits, names a file or looks at a policy: it says what is not approved. Under the lock definitions are only
//! looked up; they are hashed before it.

mod canonical;
mod clean;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dlp_scan::RuleSet;
use domain::{Definition, PINS_MAX, ServerId, TenantId, ToolName, ToolPin, ToolPins};
use mcp_codec::{Document, Kind, Node};
use parking_lot::{Mutex, RwLock};

use self::clean::Cleaner;
use crate::seldom::Seldom;

/// A definition that is longer, in bytes of its canonical form, is kept as a hash: there is no diff of it.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// All texts of one server; what comes above it is kept as hashes too.
const TEXTS_BYTES_MAX: usize = 4 << 20;
/// A first listing that has not come to its end after so long is over: a server could go on with it for ever.
const FIRST_LISTING_S_MAX: u64 = 3600;

/// Keeps pins over restarts. Stands outside: the data plane knows no files.
pub trait PinSource: Send + Sync {
    /// The pins of one server, the same ones each time. Asked before a snapshot is swapped in, never while a message waits.
    ///
    /// # Errors
    /// Why they cannot be read. The snapshot is refused then: a `hold` without them would let everything in.
    fn pins(&self, tenant: &TenantId, id: &ServerId) -> Result<Arc<Pins>, String>;
}

/// Lines of the log about definitions of one server, in so long.
const SAID_MAX: u32 = 20;
const SAID_EVERY: Duration = Duration::from_secs(10);

/// The pins of one server.
#[derive(Debug)]
pub struct Pins {
    state: RwLock<State>,
    said: Seldom,
    /// Asked by who saves, and never while a message waits.
    cleaner: Mutex<Cleaner>,
    is_kept: bool,
}

impl Default for Pins {
    fn default() -> Self {
        Self {
            state: RwLock::default(),
            said: Seldom::new(SAID_MAX, SAID_EVERY),
            cleaner: Mutex::default(),
            is_kept: false,
        }
    }
}

#[derive(Debug, Default, Clone)]
struct State {
    pins: ToolPins,
    /// How the definitions were written when they were listed last, by tool.
    written: HashMap<Box<str>, Written>,
    text_bytes: usize,
    /// Tools whose pins changed since they were saved.
    unsaved: BTreeSet<String>,
    /// Something else did.
    is_unsaved: bool,
    /// It was told that there are more tools than are pinned.
    told_over: bool,
}

/// Hashes of raw bytes. A server that writes a definition in another order each time costs its canonical form each time.
#[derive(Debug, Default, Clone)]
struct Written {
    approved: Option<[u8; 32]>,
    other: Option<[u8; 32]>,
}

/// What a listing would come to, with nothing learnt.
#[derive(Debug)]
pub(crate) struct Compared {
    /// Elements of the list that are not approved.
    pub unapproved: Vec<Node>,
    /// There is something to learn.
    pub is_news: bool,
}

/// What a listing holds that was not approved.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    /// Elements of the list.
    pub unapproved: Vec<Node>,
    /// What was not seen before.
    pub news: Vec<News>,
    /// For the first time there are more tools than are pinned.
    pub is_over: bool,
}

/// A definition that was not seen before.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct News {
    pub tool: Box<str>,
    pub change: Change,
}

/// What a definition that is not approved is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Another one than was approved.
    Changed,
    /// Of a tool that was not there.
    Added,
}

impl Change {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Added => "added",
        }
    }
}

/// What is to be saved.
#[derive(Debug)]
pub struct Unsaved {
    /// All pins.
    pub pins: ToolPins,
    changed: BTreeSet<String>,
}

/// One element of a list.
struct Seen<'a> {
    node: Node,
    name: Option<&'a str>,
    raw: [u8; 32],
    definition: Option<Definition>,
}

impl Seen<'_> {
    fn all(doc: &Document, tools: Node) -> Vec<Seen<'_>> {
        let seen = |node| Seen {
            node,
            name: doc
                .member(node, "name")
                .and_then(|name| doc.str(name))
                .filter(|name| ToolName::parse(name).is_ok()),
            raw: *blake3::hash(doc.raw(node)).as_bytes(),
            definition: None,
        };
        match doc.kind(tools) {
            Kind::Array => doc.elements(tools).map(seen).collect(),
            _ => Vec::new(),
        }
    }
}

impl Pins {
    /// Goes on with what was kept, for somebody who keeps it on.
    pub fn kept(pins: ToolPins) -> Self {
        Self {
            state: RwLock::new(State::of(pins)),
            is_kept: true,
            ..Self::default()
        }
    }

    /// These rules say what may be written down.
    pub(crate) fn judges_by(&self, rules: &Arc<RuleSet>) {
        self.cleaner.lock().judges_by(rules);
    }

    /// Whether they outlive the gateway.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Whether one more line may be said about them, and how many were left out before it.
    pub(crate) fn admits(&self, now: Instant) -> Option<u64> {
        self.said.admits(now)
    }

    /// Compares a listing with what was approved. `is_last`: no page follows.
    pub(crate) fn compare(
        &self,
        doc: &Document,
        tools: Node,
        is_last: bool,
        now_unix_s: u64,
    ) -> Compared {
        let mut seen = Seen::all(doc, tools);
        let mut trial = {
            let state = self.state.read();
            if let Some(listed) = state.nothing_new(&seen, is_last) {
                return Compared {
                    unapproved: listed.unapproved,
                    is_news: false,
                };
            }
            state.clone()
        };
        trial.mark(&mut seen);
        work_out(doc, &mut seen);
        Compared {
            unapproved: trial.learn(doc, &seen, is_last, now_unix_s).unapproved,
            is_news: true,
        }
    }

    /// The same of a listing that goes to a client: what is new in it is learnt.
    pub(crate) fn listed(
        &self,
        doc: &Document,
        tools: Node,
        is_last: bool,
        now_unix_s: u64,
    ) -> Listed {
        let mut seen = Seen::all(doc, tools);
        self.state.read().mark(&mut seen);
        work_out(doc, &mut seen);
        self.state.write().learn(doc, &seen, is_last, now_unix_s)
    }

    /// A listing went to nobody. No tool is approved by it; of one that is pinned it is learnt that its server gives it another
    /// definition now.
    pub(crate) fn stopped(&self, doc: &Document, tools: Node, now_unix_s: u64) -> Vec<News> {
        let mut seen = Seen::all(doc, tools);
        self.state.read().mark(&mut seen);
        work_out(doc, &mut seen);
        self.state.write().learn_changes(doc, &seen, now_unix_s)
    }

    /// The same for a list that nobody knows the question of: nothing is learnt from it.
    pub(crate) fn not_approved_in(
        &self,
        doc: &Document,
        tools: Node,
        now_unix_s: u64,
    ) -> Vec<Node> {
        let seen = Seen::all(doc, tools);
        let state = self.state.read();
        let is_approved = |one: &Seen<'_>| {
            let Some(name) = one.name else { return false };
            match state.pins.tools.get(name) {
                Some(pin) => pin
                    .approved
                    .as_ref()
                    .is_some_and(|approved| approved.sha256 == definition_of(doc, one.node).sha256),
                None => state.takes_new(name, now_unix_s),
            }
        };
        let unapproved = seen.iter().filter(|one| !is_approved(one));
        unapproved.map(|one| one.node).collect()
    }

    /// Whether the definition of a tool waits for approval.
    pub(crate) fn holds(&self, tool: &str, now_unix_s: u64) -> bool {
        let state = self.state.read();
        match state.pins.tools.get(tool) {
            Some(pin) => !pin.is_approved(),
            None => !state.takes_new(tool, now_unix_s),
        }
    }

    /// Whether there is something to save.
    pub fn is_unsaved(&self) -> bool {
        let state = self.state.read();
        state.is_unsaved || !state.unsaved.is_empty()
    }

    /// What is to be saved, as if it were saved now; secrets and personal data are left out of it. Where people decided since (`kept` counts other decisions), that is
    /// taken over first, and what the server listed meanwhile stays.
    pub fn to_save(&self, kept: Option<&ToolPins>) -> Option<Unsaved> {
        let mut unsaved = self.taken(kept)?;
        self.cleaner.lock().clean(&mut unsaved.pins);
        Some(unsaved)
    }

    fn taken(&self, kept: Option<&ToolPins>) -> Option<Unsaved> {
        let mut state = self.state.write();
        if let Some(kept) = kept.filter(|kept| kept.decisions != state.pins.decisions) {
            state.take_decisions(kept);
        }
        let is_lost = kept.is_none() && !state.pins.tools.is_empty();
        let is_unsaved = std::mem::take(&mut state.is_unsaved);
        let changed = std::mem::take(&mut state.unsaved);
        (is_lost || is_unsaved || !changed.is_empty()).then(|| Unsaved {
            pins: state.pins.clone(),
            changed,
        })
    }

    /// It could not be saved.
    pub fn not_saved(&self, unsaved: Unsaved) {
        let mut state = self.state.write();
        state.is_unsaved = true;
        state.unsaved.extend(unsaved.changed);
    }
}

/// Works out the definitions that were marked, without the lock.
fn work_out(doc: &Document, seen: &mut [Seen<'_>]) {
    for one in seen.iter_mut().filter(|one| one.definition.is_some()) {
        one.definition = Some(definition_of(doc, one.node));
    }
}

/// Stands for a definition that is still to be worked out.
fn unknown() -> Definition {
    Definition {
        sha256: String::new(),
        text: None,
    }
}

fn definition_of(doc: &Document, node: Node) -> Definition {
    let text = canonical::text(doc, node);
    let sha256 = canonical::sha256_hex(text.as_bytes());
    let text = (text.len() <= TEXT_BYTES_MAX).then_some(text);
    Definition { sha256, text }
}

impl State {
    fn of(pins: ToolPins) -> Self {
        Self {
            text_bytes: pins.tools.values().map(ToolPin::text_bytes).sum(),
            pins,
            ..Self::default()
        }
    }

    /// Whether a tool without a pin is approved as it comes.
    fn takes_new(&self, tool: &str, now_unix_s: u64) -> bool {
        let is_place = self.pins.tools.len() < PINS_MAX;
        is_place && (self.is_first_listing(now_unix_s) || self.pins.first_use.contains(tool))
    }

    fn is_first_listing(&self, now_unix_s: u64) -> bool {
        let ends = self.pins.begun_unix_s.saturating_add(FIRST_LISTING_S_MAX);
        self.pins.tools.is_empty() || (!self.pins.settled && now_unix_s < ends)
    }

    /// Whether these bytes were seen before, as one definition or the other.
    fn knows(&self, one: &Seen<'_>) -> bool {
        let written = one.name.and_then(|name| self.written.get(name));
        written.is_some_and(|w| w.approved == Some(one.raw) || w.other == Some(one.raw))
    }

    /// Marks what has a definition to be worked out.
    fn mark(&self, seen: &mut [Seen<'_>]) {
        for one in seen {
            one.definition = (!self.knows(one)).then(unknown);
        }
    }

    /// What every listing but few comes to: each definition is the one that was listed last.
    fn nothing_new(&self, seen: &[Seen<'_>], is_last: bool) -> Option<Listed> {
        if is_last && !self.pins.settled {
            return None;
        }
        let mut listed = Listed::default();
        for one in seen {
            let name = one.name?;
            let (pin, written) = (self.pins.tools.get(name)?, self.written.get(name)?);
            match pin.is_approved() {
                true if written.approved == Some(one.raw) => {}
                false if written.other == Some(one.raw) => listed.unapproved.push(one.node),
                _ => return None,
            }
        }
        Some(listed)
    }

    fn learn(&mut self, doc: &Document, seen: &[Seen<'_>], is_last: bool, now: u64) -> Listed {
        let mut listed = Listed::default();
        // A name that stands in one list twice is not free while one of the two is not approved.
        let mut held = HashSet::new();
        for one in seen {
            let is_approved = match one.name {
                Some(name) => self.judge(doc, one, name, now, &mut held, &mut listed),
                // It cannot be called, and has nothing to be pinned by.
                None => false,
            };
            if !is_approved {
                listed.unapproved.push(one.node);
                held.extend(one.name);
            }
        }
        let is_first = self.is_first_listing(now) && !is_last;
        if !self.pins.settled && !self.pins.tools.is_empty() && !is_first {
            self.pins.settled = true;
            self.is_unsaved = true;
        }
        listed
    }

    /// Learns of pinned tools that they are listed as something else, and approves none.
    fn learn_changes(&mut self, doc: &Document, seen: &[Seen<'_>], now: u64) -> Vec<News> {
        let mut listed = Listed::default();
        for one in seen {
            let Some(name) = one.name.filter(|name| self.pins.tools.contains_key(*name)) else {
                continue;
            };
            // As if it stood there twice: what was held before stays held.
            let mut held = HashSet::from([name]);
            self.judge(doc, one, name, now, &mut held, &mut listed);
        }
        listed.news
    }

    /// Whether one definition is approved.
    fn judge<'a>(
        &mut self,
        doc: &Document,
        one: &Seen<'a>,
        name: &'a str,
        now: u64,
        held: &mut HashSet<&'a str>,
        listed: &mut Listed,
    ) -> bool {
        // What is known by its bytes has no definition worked out, unless it was forgotten in between.
        let known = self.knows(one);
        let definition = match &one.definition {
            _ if known => None,
            Some(definition) => Some(definition.clone()),
            None => Some(definition_of(doc, one.node)),
        };
        if !self.pins.tools.contains_key(name) {
            let definition = definition.unwrap_or_else(|| definition_of(doc, one.node));
            return self.first_seen(name, one.raw, definition, now, listed);
        }
        let Some(pin) = self.pins.tools.get_mut(name) else {
            return false;
        };
        let written = self.written.entry(name.into()).or_default();
        let is = |of: Option<&Definition>| match (&definition, of) {
            (Some(this), Some(of)) => this.sha256 == of.sha256,
            _ => false,
        };
        let is_written = |of: Option<[u8; 32]>| known && of == Some(one.raw);
        if is_written(written.approved) || is(pin.approved.as_ref()) {
            written.approved = Some(one.raw);
            if pin.lists_other && !held.contains(name) {
                pin.lists_other = false;
                self.unsaved.insert(name.to_owned());
            }
            return true;
        }
        if !is_written(written.other) && !is(pin.other.as_ref()) {
            let before = pin.text_bytes();
            let room = TEXTS_BYTES_MAX.saturating_sub(self.text_bytes - other_bytes(pin));
            let definition = definition.unwrap_or_else(|| definition_of(doc, one.node));
            pin.other = Some(within(definition, room));
            self.text_bytes = self.text_bytes - before + pin.text_bytes();
            let change = match pin.approved {
                Some(_) => Change::Changed,
                None => Change::Added,
            };
            listed.news.push(News {
                tool: name.into(),
                change,
            });
            self.unsaved.insert(name.to_owned());
        }
        written.other = Some(one.raw);
        if !pin.lists_other {
            pin.lists_other = true;
            self.unsaved.insert(name.to_owned());
        }
        false
    }

    /// A tool without a pin.
    fn first_seen(
        &mut self,
        name: &str,
        raw: [u8; 32],
        definition: Definition,
        now: u64,
        listed: &mut Listed,
    ) -> bool {
        if self.pins.tools.len() >= PINS_MAX {
            listed.is_over |= !std::mem::replace(&mut self.told_over, true);
            return false;
        }
        let is_approved = self.takes_new(name, now);
        if self.pins.tools.is_empty() {
            self.pins.begun_unix_s = now;
        }
        self.pins.first_use.remove(name);
        let room = TEXTS_BYTES_MAX.saturating_sub(self.text_bytes);
        let definition = within(definition, room);
        self.text_bytes += definition.text.as_ref().map_or(0, String::len);
        let (approved, other) = match is_approved {
            true => (Some(definition), None),
            false => (None, Some(definition)),
        };
        let written = Written {
            approved: is_approved.then_some(raw),
            other: (!is_approved).then_some(raw),
        };
        let pin = ToolPin {
            first_seen_unix_s: now,
            approved,
            other,
            lists_other: !is_approved,
        };
        self.written.insert(name.into(), written);
        self.pins.tools.insert(name.to_owned(), pin);
        self.unsaved.insert(name.to_owned());
        if !is_approved {
            listed.news.push(News {
                tool: name.into(),
                change: Change::Added,
            });
        }
        is_approved
    }

    /// Takes what people decided, and puts over it what was listed since it was saved.
    fn take_decisions(&mut self, kept: &ToolPins) {
        let before = std::mem::replace(self, Self::of(kept.clone()));
        self.told_over = before.told_over;
        let is_forgotten = kept.tools.is_empty();
        for name in before.unsaved.into_iter().filter(|_| !is_forgotten) {
            let Some(listed) = before.pins.tools.get(&name) else {
                continue;
            };
            if self.pins.first_use.contains(&name) {
                continue;
            }
            let is_place = self.pins.tools.len() < PINS_MAX;
            match self.pins.tools.get_mut(&name) {
                Some(pin) => put_over(pin, listed),
                None if is_place => {
                    self.pins.tools.insert(name.clone(), listed.clone());
                }
                None => continue,
            }
            self.unsaved.insert(name);
        }
        // The first listing may have come to its end meanwhile.
        if before.is_unsaved && before.pins.settled && !self.pins.tools.is_empty() {
            self.pins.settled = true;
            self.is_unsaved = true;
        }
        self.text_bytes = self.pins.tools.values().map(ToolPin::text_bytes).sum();
    }
}

/// What was listed last, on a pin that was decided about.
fn put_over(pin: &mut ToolPin, listed: &ToolPin) {
    let latest = match listed.lists_other {
        true => listed.other.as_ref(),
        false => listed.approved.as_ref(),
    };
    let Some(latest) = latest else { return };
    pin.lists_other = pin.approved.as_ref().map(|d| &d.sha256) != Some(&latest.sha256);
    if pin.lists_other {
        pin.other = Some(latest.clone());
    }
}

fn other_bytes(pin: &ToolPin) -> usize {
    let text = pin.other.as_ref().and_then(|other| other.text.as_ref());
    text.map_or(0, String::len)
}

/// The definition, with its text if there is room for it.
fn within(mut definition: Definition, room: usize) -> Definition {
    definition.text = definition.text.filter(|text| text.len() <= room);
    definition
}
