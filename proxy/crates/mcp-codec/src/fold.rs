//! Keys that only differ in letter case from a protocol key of their place.
//!
//! Some JSON readers match keys without case (`Method` for `method`), some do not: what one of them takes for the tool's
//! name is a stranger's remark to the other. So such a key is refused where the protocol has words of its own. It is not
//! refused in the user's own data: arguments, structured content, schemas, form values.
//!
//! Folding is ASCII case plus the two characters whose simple case folding is an ASCII letter: U+017F (long s) and U+212A
//! (Kelvin sign).

use crate::document::{Document, Kind, Node};
use crate::leaf::LeafId;

/// Longest protocol key, plus one.
const KEY_BYTES_END: usize = 48;

/// The protocol's keys of one kind of object, shortest first.
pub(crate) struct Place {
    keys: &'static [&'static str],
    /// Where the keys of n bytes start; those of n + 1 start where they end.
    starts: [u8; KEY_BYTES_END + 1],
}

impl Place {
    const fn new(keys: &'static [&'static str]) -> Self {
        let mut starts = [0; KEY_BYTES_END + 1];
        let mut at = 0;
        let mut len = 0;
        while len <= KEY_BYTES_END {
            while at < keys.len() && keys[at].len() < len {
                at += 1;
            }
            starts[len] = at as u8;
            len += 1;
        }
        // Sorted by length, short enough, and so all are found.
        let mut key = 0;
        while key < keys.len() {
            assert!(keys[key].len() < KEY_BYTES_END && keys[key].is_ascii());
            assert!(key == 0 || keys[key - 1].len() <= keys[key].len());
            key += 1;
        }
        Place { keys, starts }
    }

    /// Whether `key` folds to a key of this place without being it.
    #[inline]
    pub(crate) fn has_twin_of(&self, key: &str) -> bool {
        if key.is_ascii() {
            self.has_ascii_twin_of(key)
        } else {
            self.has_unicode_twin_of(key)
        }
    }

    #[inline]
    fn has_ascii_twin_of(&self, key: &str) -> bool {
        if key.len() >= KEY_BYTES_END {
            return false;
        }
        let same_len = usize::from(self.starts[key.len()])..usize::from(self.starts[key.len() + 1]);
        self.keys[same_len]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(key) && *known != key)
    }

    #[cold]
    fn has_unicode_twin_of(&self, key: &str) -> bool {
        // Three bytes fold to one at best, so longer keys cannot be twins.
        if key.len() >= 3 * KEY_BYTES_END {
            return false;
        }
        let folded: Option<String> = key
            .chars()
            .map(|c| match c {
                '\u{17F}' => Some('s'),
                '\u{212A}' => Some('k'),
                c => c.is_ascii().then_some(c),
            })
            .collect();
        folded.is_some_and(|folded| {
            self.keys
                .iter()
                .any(|known| known.eq_ignore_ascii_case(&folded))
        })
    }
}

pub(crate) const ENVELOPE: Place =
    Place::new(&["id", "error", "method", "params", "result", "jsonrpc"]);

pub(crate) const ERROR: Place = Place::new(&["code", "data", "message"]);

pub(crate) const META: Place = Place::new(&[
    "progressToken",
    "io.modelcontextprotocol/logLevel",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/serverInfo",
    "io.modelcontextprotocol/related-task",
    "io.modelcontextprotocol/subscriptionId",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientCapabilities",
]);

pub(crate) const PARAMS: Place = Place::new(&[
    "uri",
    "ref",
    "url",
    "name",
    "data",
    "mode",
    "task",
    "_meta",
    "level",
    "total",
    "tools",
    "error",
    "cursor",
    "logger",
    "reason",
    "taskId",
    "status",
    "result",
    "context",
    "message",
    "argument",
    "progress",
    "messages",
    "metadata",
    "arguments",
    "requestId",
    "maxTokens",
    "clientInfo",
    "toolChoice",
    "temperature",
    "capabilities",
    "systemPrompt",
    "requestState",
    "progressToken",
    "stopSequences",
    "elicitationId",
    "statusMessage",
    "notifications",
    "inputRequests",
    "includeContext",
    "inputResponses",
    "protocolVersion",
    "requestedSchema",
    "modelPreferences",
]);

pub(crate) const RESULT: Place = Place::new(&[
    "role",
    "task",
    "_meta",
    "tools",
    "ttlMs",
    "roots",
    "model",
    "tasks",
    "error",
    "action",
    "taskId",
    "status",
    "result",
    "content",
    "isError",
    "prompts",
    "contents",
    "messages",
    "resources",
    "resultType",
    "completion",
    "nextCursor",
    "serverInfo",
    "cacheScope",
    "stopReason",
    "description",
    "capabilities",
    "instructions",
    "requestState",
    "inputRequests",
    "statusMessage",
    "protocolVersion",
    "structuredContent",
    "resourceTemplates",
    "supportedVersions",
]);

/// An element of tools, resources, prompts, messages, tasks or roots.
pub(crate) const ITEM: Place = Place::new(&[
    "uri",
    "ttl",
    "name",
    "size",
    "role",
    "_meta",
    "title",
    "icons",
    "taskId",
    "status",
    "content",
    "mimeType",
    "execution",
    "arguments",
    "description",
    "inputSchema",
    "annotations",
    "uriTemplate",
    "outputSchema",
    "statusMessage",
]);

/// A content block, and what a resource block holds.
pub(crate) const BLOCK: Place = Place::new(&[
    "id",
    "uri",
    "type",
    "text",
    "data",
    "name",
    "blob",
    "size",
    "_meta",
    "title",
    "input",
    "icons",
    "content",
    "isError",
    "mimeType",
    "resource",
    "toolUseId",
    "description",
    "annotations",
    "structuredContent",
]);

type Found = Result<(), LeafId>;

/// The first twin in a params object; the envelope is the caller's.
pub(crate) fn check_params(doc: &Document, params: Node) -> Found {
    params_keys(doc, params)?;
    for (_, name, value) in doc.members(params) {
        match name {
            "inputResponses" => doc
                .members(value)
                .try_for_each(|(_, _, each)| result_keys(doc, each))?,
            // A task notification carries the whole result of the call.
            "result" => check_result(doc, value)?,
            "inputRequests" => input_requests(doc, value)?,
            _ => {}
        }
    }
    Ok(())
}

/// The first twin in a result object.
pub(crate) fn check_result(doc: &Document, result: Node) -> Found {
    result_keys(doc, result)?;
    for (_, name, value) in doc.members(result) {
        match name {
            "inputRequests" => input_requests(doc, value)?,
            // `tasks/get` carries the whole result of the call.
            "result" => result_keys(doc, value)?,
            "error" => keys(doc, value, &ERROR)?,
            _ => {}
        }
    }
    Ok(())
}

/// The first twin in an error object.
pub(crate) fn check_error(doc: &Document, error: Node) -> Found {
    keys(doc, error, &ERROR)
}

fn input_requests(doc: &Document, requests: Node) -> Found {
    doc.members(requests).try_for_each(|(_, _, request)| {
        keys(doc, request, &ENVELOPE)?;
        doc.member(request, "params")
            .map_or(Ok(()), |params| params_keys(doc, params))
    })
}

fn params_keys(doc: &Document, params: Node) -> Found {
    for (key, name, value) in doc.members(params) {
        match name {
            "_meta" => keys(doc, value, &META)?,
            "messages" | "tools" => items(doc, value)?,
            _ => twin(&PARAMS, key, name)?,
        }
    }
    Ok(())
}

fn result_keys(doc: &Document, result: Node) -> Found {
    // With an action it is an answer to a form, whose content is the user's own fields.
    let is_form = doc.member(result, "action").is_some();
    for (key, name, value) in doc.members(result) {
        match name {
            "_meta" => keys(doc, value, &META)?,
            "content" if is_form => {}
            "content" | "contents" => blocks(doc, value)?,
            "messages" | "tools" | "resources" | "resourceTemplates" | "prompts" | "tasks"
            | "roots" => {
                items(doc, value)?;
            }
            "task" => keys(doc, value, &ITEM)?,
            _ => twin(&RESULT, key, name)?,
        }
    }
    Ok(())
}

fn items(doc: &Document, list: Node) -> Found {
    doc.elements(list).try_for_each(|item| {
        for (key, name, value) in doc.members(item) {
            match name {
                "_meta" => keys(doc, value, &META)?,
                "content" => blocks(doc, value)?,
                _ => twin(&ITEM, key, name)?,
            }
        }
        Ok(())
    })
}

/// One block, or a list of them.
fn blocks(doc: &Document, content: Node) -> Found {
    match doc.kind(content) {
        Kind::Array => doc.elements(content).try_for_each(|each| block(doc, each)),
        _ => block(doc, content),
    }
}

fn block(doc: &Document, block: Node) -> Found {
    for (key, name, value) in doc.members(block) {
        match name {
            "_meta" => keys(doc, value, &META)?,
            "resource" => keys(doc, value, &BLOCK)?,
            // A tool result inside a sampling message; its blocks hold no further ones.
            "content" => doc
                .elements(value)
                .try_for_each(|inner| keys(doc, inner, &BLOCK))?,
            _ => twin(&BLOCK, key, name)?,
        }
    }
    Ok(())
}

fn keys(doc: &Document, object: Node, place: &Place) -> Found {
    doc.members(object)
        .try_for_each(|(key, name, _)| twin(place, key, name))
}

#[inline]
fn twin(place: &Place, key: LeafId, name: &str) -> Found {
    if place.has_twin_of(name) {
        Err(key)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twins() {
        let check = |place: &Place, key: &str, expected: bool| {
            assert_eq!(place.has_twin_of(key), expected, "{key}");
        };
        for key in [
            "jsonrpc", "id", "method", "params", "result", "error", "", "methods", "métHod", "x",
        ] {
            check(&ENVELOPE, key, false);
        }
        for key in [
            "Method", "METHOD", "ID", "iD", "paramſ", "PARAMſ", "reſult", "JSONRPC",
        ] {
            check(&ENVELOPE, key, true);
        }
        for key in ["argumentſ", "nAme", "toKen"] {
            check(&PARAMS, key, key != "toKen");
        }
        check(&META, "progressTo\u{212A}en", true);
        check(&META, "io.modelcontextprotocol/protocolversion", true);
        check(&META, "io.modelcontextprotocol/related-task", false);
        check(&RESULT, "iserror", true);
        check(&RESULT, &"a".repeat(64), false);
        check(&RESULT, &"ſ".repeat(200), false);
    }
}
