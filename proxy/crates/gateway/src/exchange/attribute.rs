//! Ties a message to its call, and so to its tool.
//!
//! What cannot be tied is judged by the strictest policy, never by none.

use std::sync::Arc;

use domain::{Era, ProtocolVersion};
use mcp_codec::{Document, Id, Kind, Message, MessageKind, Node};

use super::Context;
use super::head::Refusal;
use crate::decimal::same_number;
use crate::pipeline::{Attribution, HeaderLeaf, Judge, Whose};
use crate::reply::code;
use crate::session::{Call, Calls, Capabilities};
use crate::tools::{Mirror, ToolSchemas};

/// The `_meta` member that makes a request one of the stateless era.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const META_RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// What a message is tied to, with what its judge needs.
#[derive(Debug, Clone)]
pub(super) struct Tie {
    /// The call, where there is one.
    pub call: Option<Arc<Call>>,
    /// Whether the call (or its absence) is certain.
    pub certain: bool,
    schemas: Option<Arc<ToolSchemas>>,
}

impl Tie {
    pub(super) fn to(context: &Context, call: Arc<Call>) -> Self {
        let schemas = call
            .tool
            .as_deref()
            .and_then(|tool| context.server.runtime.tools.get(tool));
        let certain = call.is_certain();
        Self {
            call: Some(call),
            certain,
            schemas,
        }
    }

    pub(super) fn unknown() -> Self {
        Self {
            call: None,
            certain: false,
            schemas: None,
        }
    }

    /// What judges the message. `session` is its hash.
    pub(super) fn judge<'a>(
        &'a self,
        context: &'a Context,
        era: Era,
        session: Option<&'a str>,
    ) -> Judge<'a> {
        let attribution = match (&self.call, self.certain) {
            (_, false) => Attribution::Unknown,
            (Some(call), true) => call
                .tool
                .as_deref()
                .map_or(Attribution::NoTool, Attribution::Tool),
            (None, true) => Attribution::NoTool,
        };
        Judge {
            rules: &context.server.rules,
            tenant: &context.server.tenant,
            policy: &context.server.policy,
            limits: &context.snapshot.limits,
            attribution,
            schemas: self.schemas.as_deref(),
            era,
            evaluators: &context.server.evaluators,
            whose: Whose {
                server: &context.server.id,
                tenant: &context.server.tenant,
                key_id: &context.principal.key_id,
                session,
                call: self
                    .call
                    .as_ref()
                    .map(|call| (&*call.method, call.id.as_ref())),
            },
            said: None,
        }
    }
}

/// The era and revision a request is spoken in.
pub(super) fn meta_version(message: &Message) -> Option<&str> {
    let doc = message.doc();
    doc.str(doc.get(&["params", "_meta", META_VERSION])?)
}

/// The era of a message: what it says of itself, else what its header says.
pub(super) fn era_of(message: &Message, header: Option<ProtocolVersion>) -> Era {
    if meta_version(message).is_some() || message.method() == Some("server/discover") {
        return Era::Stateless;
    }
    header.map_or(Era::Handshake, ProtocolVersion::era)
}

/// What a request or notification from the client is: its call.
pub(super) fn call_of(context: &Context, message: &Message) -> Call {
    let doc = message.doc();
    let method = message.method().unwrap_or("");
    let text = |path: &[&str]| doc.get(path).and_then(|n| doc.str(n));
    let (tool, certain) = match method {
        "tools/call" => (text(&["params", "name"]).map(Arc::from), true),
        // `tasks/list` names no task: its answer has texts of whatever tools there are.
        _ if method.starts_with("tasks/") => {
            let tool = text(&["params", "taskId"]).and_then(|id| task_tool(context, id));
            let known = tool.is_some();
            (tool, known)
        }
        // What comes on it is what came on a listen stream before: of no call that could be told.
        "subscriptions/listen" => (None, false),
        _ => (None, true),
    };
    Call::new(message.id().cloned(), method, tool, certain)
}

/// The handle by which progress on a request will be reported.
pub(super) fn progress_token(message: &Message) -> Option<Id> {
    let doc = message.doc();
    handle(doc, doc.get(&["params", "_meta", "progressToken"])?)
}

/// Whether 2026-07-28 requires `Mcp-Name` with this method. The tasks extension asks for it as well,
/// but its methods differ between drafts, so there it is only compared.
pub(super) fn must_be_named(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

/// What the 2026-07-28 `Mcp-Name` header repeats of this method's params.
pub(super) fn named_thing(message: &Message) -> Option<&str> {
    let doc = message.doc();
    let key = match message.method()? {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        m if m.starts_with("tasks/") => "taskId",
        _ => return None,
    };
    doc.str(doc.get(&["params", key])?)
}

/// Ties a message that the client sends in answer to, or about, something.
pub(super) fn tie_from_client(context: &Context, message: &Message, calls: &Calls) -> Tie {
    match message.kind() {
        MessageKind::Response | MessageKind::ErrorResponse => {
            let call = message.id().and_then(|id| calls.client_answers(id));
            call.map_or_else(Tie::unknown, |call| Tie::to(context, call))
        }
        MessageKind::Notification => {
            let call = told_of_call(message, calls).unwrap_or_else(|| call_of(context, message));
            Tie::to(context, Arc::new(call))
        }
        MessageKind::Request => Tie::to(context, Arc::new(call_of(context, message))),
    }
}

/// What a notification of the client is that belongs to a call: its text is that tool's.
fn told_of_call(message: &Message, calls: &Calls) -> Option<Call> {
    let method = message.method()?;
    let (tool, certain) = match method {
        "notifications/cancelled" => {
            let doc = message.doc();
            let id = doc.get(&["params", "requestId"]);
            let id = id.and_then(|node| handle(doc, node));
            let call = id.and_then(|id| calls.by_id(&id));
            call.map_or((None, false), |call| (call.tool.clone(), call.is_certain()))
        }
        // It reports on what the server asked, by a token that nobody remembers.
        "notifications/progress" => (None, false),
        _ => return None,
    };
    Some(Call::new(None, method, tool, certain))
}

/// Which stream a message of the server came on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Came<'a> {
    /// The answer to this call.
    Answering(&'a Arc<Call>),
    /// One that answers nothing: a listen stream.
    Unasked,
    /// A listen stream that goes on with the answer to this call.
    Resuming(&'a Arc<Call>),
    /// A listen stream that goes on with what nobody here remembers.
    Astray,
}

impl<'a> Came<'a> {
    /// Whether an answer with this id may come on it at all. No server may answer on a listen stream but where that goes on
    /// with one that broke off (2025-11-25, transports). Where it is forgotten whose that was, an answer must be to a call
    /// that waits; without a session nobody knows which do.
    pub(super) fn may_bring(self, id: Option<&Id>, calls: &Calls) -> bool {
        match self {
            Self::Answering(_) => true,
            Self::Unasked => false,
            Self::Resuming(call) => call.id.as_ref() == id,
            Self::Astray => {
                calls.session().is_none() || id.is_some_and(|id| calls.by_id(id).is_some())
            }
        }
    }

    /// The call that an answer on it answers. One that goes on with an old answer gives that again, and nothing else:
    /// its id may be another call's by now.
    fn answers(self, id: Option<&Id>) -> Option<Arc<Call>> {
        match self {
            Self::Answering(call) => Some(Arc::clone(call)),
            Self::Resuming(call) => (call.id.as_ref() == id).then(|| Arc::clone(call)),
            Self::Unasked | Self::Astray => None,
        }
    }

    /// The call that progress on it is reported on. A token that names another call than the stream does names neither.
    fn reports_on(self, token: &Id, calls: &Calls) -> Option<Arc<Call>> {
        let named = calls.by_progress(token)?;
        match self {
            Self::Answering(call) | Self::Resuming(call) => {
                named.is_like(call).then(|| Arc::clone(call))
            }
            Self::Unasked => Some(named),
            Self::Astray => None,
        }
    }

    /// The call that a message on it belongs to which names a task of this tool. A task of another tool than the stream's
    /// belongs to neither, and one that nobody knows could be any tool's.
    fn tells_of(self, tool: Option<Arc<str>>) -> Option<Arc<Call>> {
        let tool = tool?;
        let (Self::Answering(call) | Self::Resuming(call)) = self else {
            return Some(task_call(tool));
        };
        match &call.tool {
            Some(own) => (*own == tool).then(|| Arc::clone(call)),
            None => Some(task_call(tool)),
        }
    }

    /// The call that belongs to everything on it.
    fn call(self) -> Option<&'a Arc<Call>> {
        match self {
            Self::Answering(call) => Some(call),
            Self::Unasked | Self::Resuming(_) | Self::Astray => None,
        }
    }
}

/// Ties a message that the server sends.
pub(super) fn tie_from_server(
    context: &Context,
    message: &Message,
    calls: &Calls,
    came: Came<'_>,
) -> Tie {
    let call = match message.kind() {
        MessageKind::Response | MessageKind::ErrorResponse => {
            let answered = came.answers(message.id());
            if let Some(call) = &answered {
                calls.ended(call);
            }
            answered
        }
        MessageKind::Request | MessageKind::Notification => {
            match (reported_token(message), named_task(message)) {
                (Some(token), _) => came.reports_on(&token, calls),
                (None, Some(task)) => came.tells_of(task.and_then(|id| task_tool(context, id))),
                (None, None) => came.call().cloned(),
            }
        }
    };
    call.map_or_else(Tie::unknown, |call| Tie::to(context, call))
}

/// The same for what came on the channel of this call alone, in a pipe that calls share.
pub(super) fn tie_on_channel(context: &Context, message: &Message, call: &Arc<Call>) -> Tie {
    let asks_or_tells = message.method().is_some();
    let tied = match named_task(message).filter(|_| asks_or_tells) {
        Some(task) => Came::Answering(call).tells_of(task.and_then(|id| task_tool(context, id))),
        None => Some(Arc::clone(call)),
    };
    tied.map_or_else(Tie::unknown, |call| Tie::to(context, call))
}

/// What names the call that a notification reports on.
fn reported_token(message: &Message) -> Option<Id> {
    if message.method() != Some("notifications/progress") {
        return None;
    }
    let doc = message.doc();
    handle(doc, doc.get(&["params", "progressToken"])?)
}

/// The task that a request or notification names, if it names one. Nothing inside where that is no text.
fn named_task(message: &Message) -> Option<Option<&str>> {
    let doc = message.doc();
    let task = doc
        .get(&["params", "taskId"])
        .or_else(|| doc.get(&["params", "_meta", META_RELATED_TASK, "taskId"]))?;
    Some(doc.str(task))
}

fn task_call(tool: Arc<str>) -> Arc<Call> {
    Arc::new(Call::new(None, "tools/call", Some(tool), true))
}

/// Remembers the task that a result announces, for the results that will come under its own id.
pub(super) fn learn_task(context: &Context, call: &Call, message: &Message) {
    let Some(tool) = call.tool.as_ref().filter(|_| call.is_certain()) else {
        return;
    };
    let doc = message.doc();
    let task = doc
        .get(&["result", "task", "taskId"])
        .or_else(|| doc.get(&["result", "taskId"]));
    if let Some(id) = task
        .and_then(|node| doc.str(node))
        .filter(|id| id.len() <= 256)
    {
        let key = task_key(context, id);
        let mut tasks = context.gateway.tasks.lock();
        let is_anothers = matches!(tasks.get(&key), Some(before) if before.as_ref() != Some(tool));
        tasks.insert(key, (!is_anothers).then(|| Arc::clone(tool)));
    }
}

fn task_tool(context: &Context, id: &str) -> Option<Arc<str>> {
    context
        .gateway
        .tasks
        .lock()
        .get(&task_key(context, id))
        .cloned()?
}

fn task_key(context: &Context, id: &str) -> crate::gateway::TaskKey {
    (
        Arc::clone(&context.principal.owner),
        Arc::clone(&context.server.id),
        id.into(),
    )
}

/// A handle: a string or an integer, as ids and progress tokens are.
pub(crate) fn handle(doc: &Document, node: Node) -> Option<Id> {
    match doc.kind(node) {
        Kind::String => Some(Id::String(doc.str(node)?.into())),
        Kind::Number => doc.number(node)?.parse().ok().map(Id::Number),
        _ => None,
    }
}

/// The request whose subscription a notification belongs to.
pub(crate) fn subscription(message: &Message) -> Option<Id> {
    let doc = message.doc();
    handle(doc, doc.get(&["params", "_meta", META_SUBSCRIPTION])?)
}

/// What a client declares in `initialize` that servers may ask it for.
pub(super) fn capabilities(message: &Message) -> Capabilities {
    let doc = message.doc();
    let has = |name| doc.get(&["params", "capabilities", name]).is_some();
    Capabilities {
        sampling: has("sampling"),
        elicitation: has("elicitation"),
        roots: has("roots"),
    }
}

/// Compares `Mcp-Param-*` headers with the arguments they repeat, where the tool was listed. Gives what it declared.
///
/// # Errors
/// A header says something else than its argument, or one of the two is missing.
pub(super) fn params_agree(
    context: &Context,
    message: &Message,
    headers: &[HeaderLeaf],
) -> Result<Option<Arc<ToolSchemas>>, Refusal> {
    let doc = message.doc();
    let name = doc.get(&["params", "name"]).and_then(|n| doc.str(n));
    let Some(tool) = name.and_then(|n| context.server.runtime.tools.get(n)) else {
        return Ok(None);
    };
    if !tool.mirrors().iter().all(|m| agrees(doc, m, headers)) {
        let text = "An Mcp-Param header and the argument it repeats differ.";
        return Err(Refusal::new(400, code::HEADER_MISMATCH, text));
    }
    Ok(Some(tool))
}

fn agrees(doc: &Document, mirror: &Mirror, headers: &[HeaderLeaf]) -> bool {
    let mut argument = doc.get(&["params", "arguments"]);
    for key in &mirror.path {
        argument = argument.and_then(|node| doc.member(node, key));
    }
    let header = headers.iter().find(|h| h.name == mirror.header);
    let header = header.map(|h| &*h.value);
    match (argument.map(|node| (node, doc.kind(node))), header) {
        (None | Some((_, Kind::Null)), None) => true,
        (Some((node, Kind::String)), Some(header)) => doc.str(node) == Some(header),
        (Some((_, Kind::True)), Some(header)) => header == "true",
        (Some((_, Kind::False)), Some(header)) => header == "false",
        (Some((node, Kind::Number)), Some(header)) => same_number(doc.number(node), header),
        _ => false,
    }
}

/// Of the `Mcp-Param-*` headers that came with a message and were scanned with it, those that go up: the ones which the
/// tool declares that they were compared for. Where none were compared, none go: neither a value that the body does not
/// have, nor a name that is text of the client.
pub(super) fn repeated<'a>(
    compared: Option<&'a ToolSchemas>,
    headers: &'a [HeaderLeaf],
) -> impl Iterator<Item = &'a HeaderLeaf> + use<'a> {
    let mirrors = compared.map_or(&[][..], ToolSchemas::mirrors);
    let declared = |h: &&HeaderLeaf| mirrors.iter().any(|m| m.header == h.name);
    headers.iter().filter(declared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_belongs_to_its_tool_and_not_to_the_stream_of_another() {
        let call = |tool: Option<&str>| Arc::new(Call::new(None, "m", tool.map(Arc::from), true));
        let (lax, strict, none) = (call(Some("lax")), call(Some("strict")), call(None));
        for (came, task, expected) in [
            (Came::Answering(&strict), Some("strict"), Some("strict")),
            (Came::Answering(&lax), Some("strict"), None),
            (Came::Resuming(&lax), Some("strict"), None),
            (Came::Answering(&none), Some("strict"), Some("strict")),
            (Came::Unasked, Some("strict"), Some("strict")),
            (Came::Astray, Some("strict"), Some("strict")),
            (Came::Answering(&lax), None, None),
            (Came::Answering(&none), None, None),
            (Came::Unasked, None, None),
        ] {
            let told = came.tells_of(task.map(Arc::from));
            let tool = told.as_ref().and_then(|call| call.tool.as_deref());
            assert_eq!(tool, expected, "{task:?} on {came:?}");
        }
    }

    #[test]
    fn what_a_client_says_of_a_call_is_its_tools() {
        let calls = Calls::new(4);
        let strict = Call::new(
            Some(Id::Number(1)),
            "tools/call",
            Some("strict".into()),
            true,
        );
        calls.opened(&Arc::new(strict), None);
        for (method, params, expected) in [
            (
                "cancelled",
                r#"{"requestId":1}"#,
                Some((Some("strict"), true)),
            ),
            ("cancelled", r#"{"requestId":2}"#, Some((None, false))),
            ("cancelled", "{}", Some((None, false))),
            ("progress", r#"{"progressToken":1}"#, Some((None, false))),
            ("initialized", "{}", None),
        ] {
            let text = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{params}}}"#
            );
            let message = Message::decode(text.into(), &mcp_codec::Limits::default()).unwrap();
            let call = told_of_call(&message, &calls);
            let told = call.as_ref().map(|c| (c.tool.as_deref(), c.is_certain()));
            assert_eq!(told, expected, "{method} {params}");
        }
    }

    #[test]
    fn only_what_was_compared_goes_up() {
        let listed =
            r#"[{"name":"t","inputSchema":{"properties":{"r":{"x-mcp-header":"Region"}}}}]"#;
        let doc = Document::parse(listed.into(), &mcp_codec::Limits::default()).unwrap();
        let cache = crate::tools::ToolCache::default();
        cache.learn(&doc, doc.root());
        let tool = cache.get("t");
        let leaf = |name: &str, value: &str| HeaderLeaf {
            name: name.into(),
            value: value.into(),
        };
        let headers = [
            leaf("mcp-param-region", "eu"),
            HeaderLeaf::fixed("region"),
            leaf("mcp-param-note", "eu"),
            HeaderLeaf::fixed("note"),
        ];
        let up = |tool: Option<&ToolSchemas>| -> Vec<String> {
            repeated(tool, &headers)
                .map(|h| h.name.to_string())
                .collect()
        };
        assert_eq!(up(tool.as_deref()), ["mcp-param-region"]);
        assert!(up(None).is_empty());
    }
}
