//! Lists of tools on their way down: what is learnt from them, and what is taken out.

use std::time::Instant;

use domain::ToolPinning;
use mcp_codec::{Document, Edits, Kind, Message, Node};

use super::Context;
use super::trail::now_unix_us;
use crate::pins::{Change, News};
use crate::pipeline;

/// Learns the declared schemas; takes out what this principal may not call, and under `hold` what nobody approved.
pub(super) fn tools(context: &Context, message: &Message) -> Edits {
    let mut edits = Edits::new();
    let doc = message.doc();
    let Some(tools) = doc.get(&["result", "tools"]) else {
        return edits;
    };
    let server = &context.server;
    if let Some(error) = server.runtime.tools.learn(doc, tools) {
        tracing::warn!(server_id = %server.id, %error, "the server has tools that cannot be listed or called: their names");
    }
    if doc.kind(tools) != Kind::Array {
        return edits;
    }
    let held = compared(context, doc, tools);
    // Both are in the order of the list.
    let mut held = held.into_iter().peekable();
    for tool in doc.elements(tools) {
        let name = doc.member(tool, "name").and_then(|n| doc.str(n));
        let is_denied = name.is_some_and(|name| !super::prepare::may_call(context, name));
        if held.next_if_eq(&tool).is_some() || is_denied {
            edits.remove(tool);
        }
    }
    edits
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

/// Compares a listing with what was approved, and says what is new. Gives what has to be taken out.
fn compared(context: &Context, doc: &Document, tools: Node) -> Vec<Node> {
    let server = &context.server;
    if server.pinning == ToolPinning::Off {
        return Vec::new();
    }
    let is_last = doc
        .get(&["result", "nextCursor"])
        .is_none_or(|cursor| doc.kind(cursor) == Kind::Null);
    let listed = server.pins.listed(doc, tools, is_last, now_unix_s());
    for news in &listed.news {
        tell(context, news);
    }
    if listed.is_over {
        let most = domain::PINS_MAX;
        tracing::warn!(server_id = %server.id, most, "the server lists more tools than are pinned; the rest counts as not approved");
    }
    match server.pinning {
        ToolPinning::Hold => listed.unapproved,
        ToolPinning::Warn | ToolPinning::Off => Vec::new(),
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
