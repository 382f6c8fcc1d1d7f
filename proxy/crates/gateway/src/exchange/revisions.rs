//! What a server says of revisions, on its way down: none is offered that is not inspected, and an older server's result has what
//! a newer one's must have.

use domain::{Era, ProtocolVersion};
use mcp_codec::{Edits, Message};

use super::Context;
use crate::reply;

/// A revision that Weir does not inspect is not offered, nor one that this server's clients shall not be told of.
pub(super) fn versions_narrowed(context: &Context, message: &Message) -> Edits {
    let tells_stateless = context.server.runtime.made_from.tells_stateless;
    let mut edits = Edits::new();
    let doc = message.doc();
    let Some(versions) = doc.get(&["result", "supportedVersions"]) else {
        return edits;
    };
    if doc.kind(versions) == mcp_codec::Kind::Array {
        for version in doc.elements(versions) {
            let known = doc.str(version).and_then(ProtocolVersion::parse);
            let is_told = |v: ProtocolVersion| tells_stateless || v.era() == Era::Handshake;
            if !known.is_some_and(is_told) {
                edits.remove(version);
            }
        }
    }
    edits
}

/// The revision that the answer to an `initialize` names, if it is one that is inspected.
pub(super) fn version_of(message: &Message) -> Option<ProtocolVersion> {
    let doc = message.doc();
    let node = doc.get(&["result", "protocolVersion"])?;
    doc.str(node).and_then(ProtocolVersion::parse)
}

/// A handshake never ends in a revision that has none: the client would go on in an era that this
/// session is not in.
pub(super) fn version_clamped(message: &Message) -> Edits {
    let mut edits = Edits::new();
    let doc = message.doc();
    let Some(node) = doc.get(&["result", "protocolVersion"]) else {
        return edits;
    };
    let version = version_of(message);
    if version.is_none_or(|v| v.era() == Era::Stateless) {
        let newest = reply::json_string(ProtocolVersion::V2025_11_25.as_str());
        edits.replace_value(node, &newest);
    }
    edits
}

/// What revision 2026-07-28 requires of a result that an older server gave.
pub(super) fn adapted(message: &Message, method: &str, edits: &mut Edits) {
    let doc = message.doc();
    let Some(result) = message.result() else {
        return;
    };
    let mut lacks = |name: &str, value: &str| {
        if doc.member(result, name).is_none() {
            edits.insert_member(result, name, value);
        }
    };
    lacks("resultType", "\"complete\"");
    if method.ends_with("/list") || matches!(method, "resources/read" | "server/discover") {
        lacks("ttlMs", "0");
        lacks("cacheScope", "\"private\"");
    }
}
