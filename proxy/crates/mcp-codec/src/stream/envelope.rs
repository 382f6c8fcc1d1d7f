//! The checks of [`Message`](crate::Message) on a message that is read piece by piece.
//!
//! Each open bracket has a [`Place`]: what the protocol says about the keys right inside it. Two refusals are stricter
//! than those of a whole message, because what would excuse the key comes later or may come later: a look-alike key in
//! the `params` of what turns out to be a response, and one in the `content` of a result whose `action` comes after it.

use std::ops::Range;

use super::{Event, Reader, Sink, StreamLimits};
use crate::fold;
use crate::id::ID_NUMBER_MAX;
use crate::limits::NAME_BYTES_MAX;
use crate::method::has_known_twin;
use crate::{DecodeError, DecodeErrorKind as Bad, Id, Kind, MessageKind};

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// What a message said of itself so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// `jsonrpc` is there, and `"2.0"`.
    pub version_seen: bool,
    /// The id; the inner `None` is `null`.
    pub id: Option<Option<Id>>,
    /// The method.
    pub method: Option<Box<str>>,
    /// `params.name`.
    pub name: Option<Box<str>>,
    /// `params._meta["io.modelcontextprotocol/protocolVersion"]`, where it is a string.
    pub meta_version: Option<Box<str>>,
    /// `params._meta.progressToken`, where it is a string or an integer.
    pub progress: Option<Id>,
    /// `params`, `result` and `error` have begun.
    pub has_params: bool,
    /// The same.
    pub has_result: bool,
    /// The same.
    pub has_error: bool,
    /// There is a member that no JSON-RPC message has.
    pub has_foreign: bool,
    has_code: bool,
    has_message: bool,
}

impl Facts {
    /// What the message is, as far as can be said.
    ///
    /// # Errors
    /// It is no message that is accepted.
    pub fn kind(&self) -> Result<MessageKind, Bad> {
        if !self.version_seen {
            return Err(Bad::BadVersion);
        }
        match (self.method.is_some(), self.has_result, self.has_error) {
            (true, false, false) => match &self.id {
                None => Ok(MessageKind::Notification),
                Some(Some(_)) => Ok(MessageKind::Request),
                Some(None) => Err(Bad::BadId),
            },
            (false, true, false) => match &self.id {
                Some(Some(_)) => Ok(MessageKind::Response),
                _ => Err(Bad::MissingId),
            },
            (false, false, true) if self.has_code && self.has_message => {
                Ok(MessageKind::ErrorResponse)
            }
            (false, false, true) => Err(Bad::BadError),
            _ => Err(Bad::AmbiguousMessage),
        }
    }
}

/// What the protocol says about the keys right inside a bracket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The user's own data.
    Free,
    Root,
    /// An object with these keys and no objects of the protocol inside.
    Meta,
    Error,
    Task,
    BlockKeys,
    /// `ref` and `argument`: what picks something.
    Picks,
    /// `full`: not those of an input request.
    Params {
        full: bool,
    },
    /// `full`: may hold input requests and a task's result. `form`: its content is the user's own.
    Result {
        full: bool,
        form: bool,
    },
    Items,
    Item,
    /// One content block or a list of them.
    Content,
    Blocks,
    Block,
    InnerBlocks,
    InputRequests,
    InputRequest,
    InputResponses,
}

impl Place {
    /// What it turns out to be when a bracket of this kind opens there.
    fn opened(self, kind: Kind) -> Self {
        let is_list = kind == Kind::Array;
        match (self, is_list) {
            (Self::Content, true) => Self::Blocks,
            (Self::Content, false) => Self::Block,
            (Self::Items | Self::InnerBlocks, true) | (Self::Free, _) => self,
            (Self::Items | Self::InnerBlocks, false) | (_, true) => Self::Free,
            (_, false) => self,
        }
    }

    /// What stands in an element of it.
    fn element(self) -> Self {
        match self {
            Self::Items => Self::Item,
            Self::Blocks => Self::Block,
            Self::InnerBlocks => Self::BlockKeys,
            _ => Self::Free,
        }
    }

    /// What stands under a key of it.
    fn under(self, key: &str) -> Self {
        match (self, key) {
            (Self::Root, "params") => Self::Params { full: true },
            (Self::Root, "result") => Self::Result {
                full: true,
                form: false,
            },
            (Self::Root, "error") | (Self::Result { full: true, .. }, "error") => Self::Error,
            (Self::Params { .. } | Self::Result { .. } | Self::Item | Self::Block, "_meta") => {
                Self::Meta
            }
            (Self::Params { .. }, "messages" | "tools") => Self::Items,
            (Self::Params { full: true }, "ref" | "argument") => Self::Picks,
            (Self::Params { full: true }, "inputResponses") => Self::InputResponses,
            (Self::Params { full: true }, "result") => Self::Result {
                full: true,
                form: false,
            },
            (Self::Params { full: true } | Self::Result { full: true, .. }, "inputRequests") => {
                Self::InputRequests
            }
            (Self::Result { form: true, .. }, "content") => Self::Free,
            (Self::Result { .. }, "content" | "contents") | (Self::Item, "content") => {
                Self::Content
            }
            (
                Self::Result { .. },
                "messages" | "tools" | "resources" | "resourceTemplates" | "prompts" | "tasks"
                | "roots",
            ) => Self::Items,
            (Self::Result { .. }, "task") => Self::Task,
            (Self::Result { full: true, .. }, "result") => Self::Result {
                full: false,
                form: false,
            },
            (Self::Block, "resource") => Self::BlockKeys,
            (Self::Block, "content") => Self::InnerBlocks,
            (Self::InputRequests, _) => Self::InputRequest,
            (Self::InputRequest, "params") => Self::Params { full: false },
            (Self::InputResponses, _) => Self::Result {
                full: false,
                form: false,
            },
            _ => Self::Free,
        }
    }

    fn keys(self) -> Option<&'static fold::Place> {
        match self {
            Self::Root | Self::InputRequest => Some(&fold::ENVELOPE),
            Self::Meta => Some(&fold::META),
            Self::Error => Some(&fold::ERROR),
            Self::Task | Self::Item => Some(&fold::ITEM),
            Self::BlockKeys | Self::Block => Some(&fold::BLOCK),
            Self::Params { .. } => Some(&fold::PARAMS),
            Self::Result { .. } => Some(&fold::RESULT),
            _ => None,
        }
    }

    /// Whether a peer picks something by the string under this key, so that a NUL would end it early for some.
    fn picks_by(self, key: &str) -> bool {
        match self {
            Self::Root => matches!(key, "id" | "method"),
            Self::Params { .. } => matches!(
                key,
                "name"
                    | "uri"
                    | "taskId"
                    | "cursor"
                    | "url"
                    | "elicitationId"
                    | "protocolVersion"
                    | "level"
            ),
            Self::Picks => matches!(key, "name" | "uri"),
            Self::Result { .. } => {
                matches!(
                    key,
                    "nextCursor" | "taskId" | "protocolVersion" | "resultType"
                )
            }
            Self::Item | Self::Block | Self::BlockKeys => {
                matches!(key, "name" | "uri" | "uriTemplate" | "type")
            }
            _ => false,
        }
    }
}

/// A scalar of the envelope that is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Version,
    Id,
    Method,
    Name,
    MetaVersion,
    Progress,
    /// The token that progress is told of: only how long it is.
    Reported,
    Code,
    Message,
}

struct Level {
    place: Place,
    is_object: bool,
    /// What stands under the key that was read last; in a list, what stands in each element.
    next: Place,
    wanted: Option<Wanted>,
    refuses_nul: bool,
}

/// Reads one JSON-RPC message piece by piece.
pub struct MessageReader {
    reader: Reader,
    envelope: Envelope,
}

/// Shows sizes only.
impl std::fmt::Debug for MessageReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MessageReader")
            .field("bytes", &self.reader.position())
            .finish_non_exhaustive()
    }
}

impl MessageReader {
    /// Before the first byte.
    pub fn new(limits: StreamLimits) -> Self {
        MessageReader {
            reader: Reader::new(limits),
            envelope: Envelope {
                limits,
                facts: Facts::default(),
                levels: Vec::new(),
                text: None,
                text_refuses_nul: false,
            },
        }
    }

    /// What the message said of itself so far.
    pub fn facts(&self) -> &Facts {
        &self.envelope.facts
    }

    /// Bytes read so far.
    pub fn position(&self) -> u64 {
        self.reader.position()
    }

    /// Reads the next piece.
    ///
    /// # Errors
    /// It is no message that is accepted.
    pub fn push(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<(), DecodeError> {
        let envelope = &mut self.envelope;
        let mut both = |event: Event<'_>, raw: Range<u64>| {
            envelope.event(event)?;
            sink.event(event, raw)
        };
        self.reader.push(bytes, &mut both)
    }

    /// The message has ended.
    ///
    /// # Errors
    /// It is not whole, or no message that is accepted.
    pub fn finish(&mut self, sink: &mut impl Sink) -> Result<MessageKind, DecodeError> {
        let envelope = &mut self.envelope;
        let mut both = |event: Event<'_>, raw: Range<u64>| {
            envelope.event(event)?;
            sink.event(event, raw)
        };
        self.reader.finish(&mut both)?;
        let end = usize::try_from(self.reader.position()).unwrap_or(usize::MAX);
        self.envelope
            .facts
            .kind()
            .map_err(|kind| DecodeError::new(kind, end))
    }
}

struct Envelope {
    limits: StreamLimits,
    facts: Facts,
    levels: Vec<Level>,
    /// A remembered string on its way.
    text: Option<(Wanted, String)>,
    text_refuses_nul: bool,
}

impl Envelope {
    fn event(&mut self, event: Event<'_>) -> Result<(), Bad> {
        match event {
            Event::Spaces(_) | Event::Comma | Event::Colon => Ok(()),
            Event::Open(kind) => self.open(kind),
            Event::Close(_) => {
                self.levels.pop();
                Ok(())
            }
            Event::Key(key) => self.key(key),
            Event::TextStart => self.text_start(),
            Event::Text(piece) => self.text(piece),
            Event::TextEnd => self.text_end(),
            Event::Number(text) => self.number(text),
            Event::Word(kind) => self.scalar(kind).map(|wanted| {
                if wanted == Some(Wanted::Id) {
                    self.facts.id = Some(None);
                }
            }),
        }
    }

    fn open(&mut self, kind: Kind) -> Result<(), Bad> {
        let place = match self.levels.last() {
            None if kind == Kind::Object => Place::Root,
            None => return Err(Bad::NotAnObject),
            Some(level) => level.next.opened(kind),
        };
        self.scalar(kind)?;
        self.levels.push(Level {
            place,
            is_object: kind == Kind::Object,
            next: place.element(),
            wanted: None,
            refuses_nul: false,
        });
        Ok(())
    }

    fn key(&mut self, key: &str) -> Result<(), Bad> {
        let depth = self.levels.len();
        let Some(level) = self.levels.last_mut() else {
            return Ok(());
        };
        let place = level.place;
        if place.keys().is_some_and(|keys| keys.has_twin_of(key)) {
            return Err(Bad::FoldedKey);
        }
        if let Place::Result { form, .. } = &mut level.place
            && key == "action"
        {
            *form = true;
        }
        level.next = place.under(key);
        level.refuses_nul = place.picks_by(key);
        level.wanted = match (place, key) {
            (Place::Root, "jsonrpc") => Some(Wanted::Version),
            (Place::Root, "id") => Some(Wanted::Id),
            (Place::Root, "method") => Some(Wanted::Method),
            (Place::Params { full: true }, "name") if depth == 2 => Some(Wanted::Name),
            (Place::Params { full: true }, "progressToken") if depth == 2 => Some(Wanted::Reported),
            (Place::Error, "code") if depth == 2 => Some(Wanted::Code),
            (Place::Error, "message") if depth == 2 => Some(Wanted::Message),
            (Place::Meta, META_VERSION) if depth == 3 => Some(Wanted::MetaVersion),
            (Place::Meta, "progressToken") if depth == 3 => Some(Wanted::Progress),
            _ => None,
        };
        // Of a result's `_meta` nothing is asked.
        if matches!(level.wanted, Some(Wanted::MetaVersion | Wanted::Progress))
            && !matches!(self.levels[1].place, Place::Params { .. })
        {
            self.levels[2].wanted = None;
        }
        if depth == 1 {
            self.facts.has_params |= key == "params";
            self.facts.has_result |= key == "result";
            self.facts.has_error |= key == "error";
            const KNOWN: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
            self.facts.has_foreign |= !KNOWN.contains(&key);
        }
        Ok(())
    }

    /// A value of this kind begins: is it one that may stand here, and one to remember?
    fn scalar(&mut self, kind: Kind) -> Result<Option<Wanted>, Bad> {
        let at_root = self.levels.len() == 1;
        let Some(level) = self.levels.last_mut() else {
            return match kind {
                Kind::Object => Ok(None),
                _ => Err(Bad::NotAnObject),
            };
        };
        let wanted = if level.is_object {
            level.wanted.take()
        } else {
            None
        };
        if at_root && kind != Kind::Object {
            match level.next {
                Place::Params { .. } => return Err(Bad::BadParams),
                Place::Result { .. } => return Err(Bad::BadResult),
                Place::Error => return Err(Bad::BadError),
                _ => {}
            }
        }
        match (wanted, kind) {
            (Some(Wanted::Version), kind) if kind != Kind::String => Err(Bad::BadVersion),
            (Some(Wanted::Method), kind) if kind != Kind::String => Err(Bad::BadMethod),
            (Some(Wanted::Id), Kind::Object | Kind::Array | Kind::True | Kind::False) => {
                Err(Bad::BadId)
            }
            _ => Ok(wanted),
        }
    }

    fn text_start(&mut self) -> Result<(), Bad> {
        let wanted = self.scalar(Kind::String)?;
        self.text_refuses_nul = self
            .levels
            .last()
            .is_some_and(|level| level.is_object && level.refuses_nul);
        self.text = wanted.map(|wanted| (wanted, String::new()));
        if let Some((Wanted::Message, _)) = self.text {
            self.facts.has_message = true;
            self.text = None;
        }
        Ok(())
    }

    fn text(&mut self, piece: &str) -> Result<(), Bad> {
        if self.text_refuses_nul && piece.contains('\0') {
            return Err(Bad::NulInProtocolString);
        }
        let Some((wanted, text)) = &mut self.text else {
            return Ok(());
        };
        let (max, too_long) = match wanted {
            Wanted::Id => (self.limits.id_bytes_max, Bad::IdTooLong),
            Wanted::Progress | Wanted::Reported => (self.limits.id_bytes_max, Bad::TokenTooLong),
            _ => (NAME_BYTES_MAX, Bad::NameTooLong),
        };
        if text.len() + piece.len() > max {
            return Err(too_long);
        }
        text.push_str(piece);
        Ok(())
    }

    fn text_end(&mut self) -> Result<(), Bad> {
        let Some((wanted, text)) = self.text.take() else {
            return Ok(());
        };
        let facts = &mut self.facts;
        match wanted {
            Wanted::Version if text != "2.0" => return Err(Bad::BadVersion),
            Wanted::Version => facts.version_seen = true,
            Wanted::Id => facts.id = Some(Some(Id::String(text.into()))),
            Wanted::Method if text.is_empty() => return Err(Bad::BadMethod),
            Wanted::Method if has_known_twin(&text) => return Err(Bad::FoldedMethod),
            Wanted::Method => facts.method = Some(text.into()),
            Wanted::Name => facts.name = Some(text.into()),
            Wanted::MetaVersion => facts.meta_version = Some(text.into()),
            Wanted::Progress => facts.progress = Some(Id::String(text.into())),
            Wanted::Code | Wanted::Message | Wanted::Reported => {}
        }
        Ok(())
    }

    fn number(&mut self, text: &str) -> Result<(), Bad> {
        let integer = || text.parse::<i64>().ok();
        match self.scalar(Kind::Number)? {
            Some(Wanted::Id) => {
                let id = integer().filter(|n| n.unsigned_abs() <= ID_NUMBER_MAX as u64);
                let id = id.filter(|_| text != "-0").ok_or(Bad::BadId)?;
                self.facts.id = Some(Some(Id::Number(id)));
            }
            Some(Wanted::Code) => self.facts.has_code = integer().is_some(),
            Some(Wanted::Progress) => self.facts.progress = integer().map(Id::Number),
            Some(Wanted::Version) => return Err(Bad::BadVersion),
            _ => {}
        }
        Ok(())
    }
}
