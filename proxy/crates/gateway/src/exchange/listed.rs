//! Lists of tools on their way down: what is learnt from them, and what is taken out.

use std::collections::HashSet;
use std::time::Instant;

use bytes::Bytes;
use domain::ToolPinning;
use mcp_codec::{Document, Edits, Kind, Message, Node};

use super::Context;
use super::trail::now_unix_us;
use crate::pins::{Change, News};
use crate::pipeline;

/// The definitions in a list of tools that are not known yet. They are learnt once it is decided whether the list goes to the
/// client: what nobody was shown is no definition that anybody could have approved.
pub(super) struct Unlearnt {
    list: Bytes,
    /// What was taken out of it.
    unapproved: Vec<Node>,
}

/// Learns the declared schemas; takes out what this principal may not call, and under `hold` what nobody approved.
pub(super) fn tools(context: &Context, message: &Message) -> (Edits, Option<Unlearnt>) {
    let mut edits = Edits::new();
    let doc = message.doc();
    let Some(tools) = doc.get(&["result", "tools"]) else {
        return (edits, None);
    };
    let server = &context.server;
    if let Some(error) = server.runtime.tools.learn(doc, tools) {
        tracing::warn!(server_id = %server.id, %error, "the server has tools that cannot be listed or called: their names");
    }
    if doc.kind(tools) != Kind::Array {
        return (edits, None);
    }
    let (held, unlearnt) = compared(context, doc, tools);
    // Both are in the order of the list.
    let mut held = held.into_iter().peekable();
    for tool in doc.elements(tools) {
        let name = doc.member(tool, "name").and_then(|n| doc.str(n));
        let is_denied = name.is_some_and(|name| !super::prepare::may_call(context, name));
        if held.next_if_eq(&tool).is_some() || is_denied {
            edits.remove(tool);
        }
    }
    (edits, unlearnt)
}

/// What may be a list of tools, and nobody knows of which call: under `hold` only what was approved stays in it.
pub(super) fn untied(context: &Context, message: &Message) -> Edits {
    let mut edits = Edits::new();
    let doc = message.doc();
    let tools = doc.get(&["result", "tools"]);
    if let Some(tools) = tools.filter(|_| context.server.pinning == ToolPinning::Hold) {
        let pins = &context.server.pins;
        for tool in pins.not_approved_in(doc, tools, now_unix_s()) {
            edits.remove(tool);
        }
    }
    edits
}

/// Whether a tool waits for approval, and counts the call that is refused for it.
pub(super) fn holds(context: &Context, tool: &str) -> bool {
    let server = &context.server;
    let held = server.pinning == ToolPinning::Hold && server.pins.holds(tool, now_unix_s());
    if held {
        server.metrics().calls_held.increment(1);
    }
    held
}

/// Compares a listing with what was approved. Gives what has to be taken out, and what is to be learnt.
fn compared(context: &Context, doc: &Document, tools: Node) -> (Vec<Node>, Option<Unlearnt>) {
    let server = &context.server;
    if server.pinning == ToolPinning::Off {
        return (Vec::new(), None);
    }
    let compared = server.pins.compare(doc, tools, is_last(doc), now_unix_s());
    let held = match server.pinning {
        ToolPinning::Hold => compared.unapproved,
        ToolPinning::Warn | ToolPinning::Off => Vec::new(),
    };
    let unlearnt = compared.is_news.then(|| Unlearnt {
        list: doc.source().clone(),
        unapproved: held.clone(),
    });
    (held, unlearnt)
}

/// No page follows.
fn is_last(doc: &Document) -> bool {
    doc.get(&["result", "nextCursor"])
        .is_none_or(|cursor| doc.kind(cursor) == Kind::Null)
}

impl Unlearnt {
    /// The list goes to the client: what is new in it is learnt and said. False where under `hold` it must not go after all,
    /// because another list came in between that makes more of it unapproved.
    pub(super) fn forwarded(self, context: &Context) -> bool {
        let server = &context.server;
        let Some((doc, tools)) = self.read(context) else {
            return false;
        };
        let listed = server.pins.listed(&doc, tools, is_last(&doc), now_unix_s());
        for news in &listed.news {
            tell(context, news);
        }
        if listed.is_over {
            let most = domain::PINS_MAX;
            tracing::warn!(server_id = %server.id, most, "the server lists more tools than are pinned; the rest counts as not approved");
        }
        let was_taken_out = |node: &Node| self.unapproved.binary_search(node).is_ok();
        server.pinning != ToolPinning::Hold || listed.unapproved.iter().all(was_taken_out)
    }

    /// The same list without entries that are left out of it. Of those it is learnt that they were listed, as of a list that goes
    /// to nobody. `None`: nothing of it is left to be learnt.
    pub(super) fn without(self, entries: &HashSet<Bytes>, context: &Context) -> Option<Self> {
        if entries.is_empty() {
            return Some(self);
        }
        let (doc, tools) = self.read(context)?;
        let (mut kept, mut gone) = (Edits::new(), Edits::new());
        let mut unapproved = Vec::new();
        for tool in doc.elements(tools) {
            match entries.contains(doc.raw(tool)) {
                true => kept.remove(tool),
                false => {
                    gone.remove(tool);
                    unapproved.push(self.unapproved.binary_search(&tool).is_ok());
                }
            }
        }
        let part = |edits: &Edits| Self {
            list: doc.edit(edits).unwrap_or_default(),
            unapproved: Vec::new(),
        };
        part(&gone).stopped(context);
        let mut kept = part(&kept);
        let (doc, tools) = kept.read(context)?;
        let tools = doc.elements(tools).zip(unapproved);
        kept.unapproved = tools.filter_map(|(tool, is)| is.then_some(tool)).collect();
        Some(kept)
    }

    /// The list goes to nobody.
    pub(super) fn stopped(self, context: &Context) {
        if let Some((doc, tools)) = self.read(context) {
            let news = context.server.pins.stopped(&doc, tools, now_unix_s());
            for news in &news {
                tell(context, news);
            }
        }
    }

    /// The list as it came.
    fn read(&self, context: &Context) -> Option<(Document, Node)> {
        let doc = Document::parse(self.list.clone(), &context.snapshot.codec).ok()?;
        let tools = doc.get(&["result", "tools"])?;
        Some((doc, tools))
    }
}

/// Says it once for each definition, and not as often as a server likes.
fn tell(context: &Context, news: &News) {
    let server = &context.server;
    let counter = match news.change {
        Change::Changed => &server.metrics().tools_changed,
        Change::Added => &server.metrics().tools_added,
    };
    counter.increment(1);
    let Some(left_out) = server.pins.admits(Instant::now()) else {
        return;
    };
    // A name is text of the server.
    let tool = pipeline::written(&server.rules, &news.tool);
    let change = news.change.as_str();
    let passes = match server.pinning {
        ToolPinning::Hold => "is held until it is approved",
        ToolPinning::Warn | ToolPinning::Off => "passes",
    };
    match server.pins.is_kept() {
        true => {
            tracing::warn!(server_id = %server.id, tool, change, left_out, "a tool's definition was not approved and {passes}; to see it: weir tools diff {} {tool}", server.id);
        }
        false => {
            tracing::warn!(server_id = %server.id, tool, change, left_out, "a tool's definition was not approved and {passes}; a restart takes it as approved");
        }
    }
}

fn now_unix_s() -> u64 {
    now_unix_us() / 1_000_000
}
