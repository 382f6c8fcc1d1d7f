//! Plugins' turn: the message is laid out flat for them, and their words are merged.

use dlp_policy::{About, Decision, EvalInput, MessageView, ToolOf, ViewKind};
use dlp_scan::Outcome;
use domain::Direction;
use mcp_codec::{Document, Kind, LeafKind, Message, Node};
use tokio::runtime::{Handle, RuntimeFlavor};

use super::judge::{Attribution, Judge};
use super::stage::HeaderLeaf;

/// Lets every plugin that is bound to this message judge it. Costs nothing where none is.
pub(super) fn ask(
    direction: Direction,
    message: &Message,
    headers: &[HeaderLeaf],
    outcome: &Outcome,
    decision: &mut Decision,
    judge: &Judge<'_>,
) {
    if judge.evaluators.is_empty() {
        return;
    }
    let tool = match judge.attribution {
        Attribution::Tool(tool) => ToolOf::Tool(tool),
        Attribution::NoTool => ToolOf::None,
        Attribution::Unknown => ToolOf::Unknown,
    };
    let evaluators = judge.evaluators.for_tool(direction, tool);
    if evaluators.clone().next().is_none() {
        return;
    }
    let mut view = view(direction, message, headers, judge);
    view.found(&outcome.findings, &decision.hits, judge.rules);
    let input = EvalInput {
        view: &view,
        json: message.doc().source(),
        findings: &outcome.findings,
        rules: judge.rules,
    };
    let words = || {
        let evaluators = evaluators.clone();
        let words = evaluators.map(|evaluator| (&**evaluator, evaluator.evaluate(&input)));
        words.collect()
    };
    let words = if evaluators.clone().any(|evaluator| evaluator.is_slow()) {
        beside_the_workers(words)
    } else {
        words()
    };
    decision.hear(&outcome.findings, words);
}

/// Lets other exchanges of this thread go on elsewhere meanwhile: a slow plugin is its tenant's matter.
/// Costs a few microseconds, so that it is for slow ones only.
fn beside_the_workers<T>(work: impl FnOnce() -> T) -> T {
    let many_threads = Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if many_threads {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

fn view(
    direction: Direction,
    message: &Message,
    headers: &[HeaderLeaf],
    judge: &Judge<'_>,
) -> MessageView {
    let whose = &judge.whose;
    let call_id = whose
        .call
        .and_then(|(_, id)| id)
        .map(mcp_codec::Id::to_json);
    let call_method = whose.call.map(|(method, _)| method);
    let from_server = direction == Direction::ToClient;
    let about = About {
        direction,
        era: judge.era,
        method: message.method().or(call_method).unwrap_or_default(),
        tool: match judge.attribution {
            Attribution::Tool(tool) => Some(tool),
            _ => None,
        },
        server: whose.server,
        tenant: whose.tenant,
        session: whose.session,
        key_id: whose.key_id,
        call: call_method
            .filter(|_| from_server)
            .map(|method| (method, call_id.as_deref())),
    };
    lay_out(message.doc(), headers, &about)
}

/// Lays a message out flat, as plugins are shown it.
pub fn lay_out(doc: &Document, headers: &[HeaderLeaf], about: &About<'_>) -> MessageView {
    let leaves = doc.leaves().len() + headers.len();
    let bytes = doc.source().len() + leaves * 48 + 256;
    let mut walk = Walk {
        doc,
        view: MessageView::new(about, bytes, leaves),
        path: String::from("$"),
    };
    walk.node(doc.root());
    let mut view = walk.view;
    for (index, header) in headers.iter().enumerate() {
        view.leaf(ViewKind::Header, &format!("header[{index}]"), &header.value);
    }
    view
}

/// Goes through a document in the order of its leaves. Paths are made on the way, which costs a tenth
/// of asking for each leaf's. As deep as the decoder allows.
struct Walk<'a> {
    doc: &'a Document,
    view: MessageView,
    path: String,
}

/// Longer paths are the document's business: it shortens them.
const PATH_BYTES_MAX: usize = mcp_codec::PATH_CHARS_MAX;

impl Walk<'_> {
    fn node(&mut self, node: Node) {
        let doc = self.doc;
        let here = self.path.len();
        match doc.kind(node) {
            Kind::Object if doc.members(node).next().is_none() => self.word("{}"),
            Kind::Array if doc.elements(node).next().is_none() => self.word("[]"),
            Kind::True => self.word("true"),
            Kind::False => self.word("false"),
            Kind::Null => self.word("null"),
            Kind::Object => {
                for (key, name, value) in doc.members(node) {
                    self.path.push_str("{key}");
                    self.put(ViewKind::Key, key, name);
                    self.path.truncate(here);
                    mcp_codec::push_path_key(&mut self.path, name);
                    self.node(value);
                    self.path.truncate(here);
                }
            }
            Kind::Array => {
                for (index, value) in doc.elements(node).enumerate() {
                    use std::fmt::Write as _;
                    // Writing to a String cannot fail.
                    let _ = write!(self.path, "[{index}]");
                    self.node(value);
                    self.path.truncate(here);
                }
            }
            _ => {
                if let Some(id) = doc.leaf_of(node) {
                    let leaf = doc.leaf(id);
                    let kind = match leaf.kind {
                        LeafKind::Number => ViewKind::Number,
                        _ => ViewKind::Text,
                    };
                    self.put(kind, id, leaf.text);
                }
            }
        }
    }

    fn word(&mut self, word: &str) {
        if self.path.len() <= PATH_BYTES_MAX {
            self.view.word(&self.path, word);
        } else {
            self.view.word(&shortened(&self.path), word);
        }
    }

    fn put(&mut self, kind: ViewKind, id: mcp_codec::LeafId, text: &str) {
        if self.path.len() <= PATH_BYTES_MAX {
            self.view.leaf(kind, &self.path, text);
        } else {
            self.view.leaf(kind, &self.doc.path(id).to_string(), text);
        }
    }
}

/// A path without its middle, which no document can be asked for: there is no leaf here.
fn shortened(path: &str) -> String {
    let half = PATH_BYTES_MAX / 2 - 1;
    let head = path.floor_char_boundary(half);
    let tail = path.ceil_char_boundary(path.len() - half);
    format!("{}…{}", &path[..head], &path[tail..])
}

#[cfg(test)]
mod tests {
    use domain::Era;

    use super::*;

    #[test]
    fn what_is_no_leaf_is_laid_out_apart() {
        let deep = "a".repeat(60);
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"n","params":{{"a":true,"b":[null,{{}},[false]],"c":"x","d":[],"{deep}":
            {{"{deep}":{{"{deep}":{{"{deep}":{{"{deep}":{{"e":true}}}}}}}}}}}}}}"#
        );
        let message =
            Message::decode(text.into(), &mcp_codec::Limits::default()).expect("a message");
        let about = About {
            direction: Direction::ToClient,
            era: Era::Handshake,
            method: "n",
            tool: None,
            server: "server",
            tenant: "tenant",
            session: None,
            key_id: "key",
            call: None,
        };
        let view = lay_out(message.doc(), &[], &about);
        let words = view.words();
        let cut = |start: u32, len: u32| &words.text[start as usize..(start + len) as usize];
        let shown: Vec<_> = words
            .places
            .iter()
            .map(|&[path, path_len, word, word_len]| (cut(path, path_len), cut(word, word_len)))
            .collect();
        let (last, first) = shown.split_last().expect("words");
        assert_eq!(
            first,
            [
                ("$.params.a", "true"),
                ("$.params.b[0]", "null"),
                ("$.params.b[1]", "{}"),
                ("$.params.b[2][0]", "false"),
                ("$.params.d", "[]"),
            ]
        );
        assert!(
            last.0.len() <= PATH_BYTES_MAX + 2 && last.0.ends_with(".e"),
            "{last:?}"
        );
        assert_eq!(view.leaves().len(), message.doc().leaves().len());
    }
}
