//! Which answers of an upstream mean something to the client.

use bytes::Bytes;

use super::call::Origin;
use crate::upstream::{Answer, EventStream, Fault, Head, LongBody, Oversize};

/// An answer that can be read on.
pub(super) enum Usable {
    Json(Head, Bytes),
    Long(Head, Box<LongBody>),
    Events(Head, Box<EventStream>),
    Nothing(Head),
}

impl Usable {
    /// The same to a message that wants no answer: where it was taken, nobody reads what some servers say to it.
    pub(super) fn of_a_word(self) -> Self {
        match self {
            Self::Json(head, _) | Self::Long(head, _) | Self::Events(head, _)
                if (200..300).contains(&head.status) =>
            {
                Self::Nothing(head)
            }
            other => other,
        }
    }
}

/// Sorts an answer by its status; what means nothing to the client is the upstream's fault.
pub(super) fn usable(answer: Answer) -> Result<Usable, Fault> {
    let status = answer.head().status;
    match status {
        200..=299 | 400 | 404..=406 | 409..=413 | 415 | 422 | 429 => {}
        401 | 403 | 407 => return Err(Fault::Credentials(status)),
        _ => return Err(Fault::Status(status)),
    }
    Ok(match answer {
        Answer::Json(head, body) if body.is_empty() => Usable::Nothing(head),
        Answer::Json(head, body) => Usable::Json(head, body),
        Answer::Long(head, body) if head.status == 200 => Usable::Long(head, body),
        Answer::Long(..) => return Err(Fault::TooLarge(Oversize::Kind)),
        Answer::Events(head, events) if head.status == 200 => Usable::Events(head, events),
        Answer::Events(head, _) | Answer::Empty(head) => Usable::Nothing(head),
    })
}

/// What an answer gives to read on (`None` when it has no content), and its head.
pub(super) fn usable_answer(
    answer: Answer,
    wants_answer: bool,
) -> Result<(Option<Origin>, Head), Fault> {
    let answer = match wants_answer {
        true => usable(answer)?,
        false => usable(answer)?.of_a_word(),
    };
    let (Usable::Json(head, _)
    | Usable::Long(head, _)
    | Usable::Events(head, _)
    | Usable::Nothing(head)) = &answer;
    let head = head.clone();
    let origin = match answer {
        Usable::Json(head, body) if head.status == 200 => Some(Origin::Body(Some(body))),
        // Batches and the older transport carry whole messages.
        Usable::Long(..) => return Err(Fault::TooLarge(Oversize::Off)),
        Usable::Events(_, events) => Some(Origin::Events(events)),
        Usable::Nothing(head) if (200..300).contains(&head.status) => None,
        Usable::Json(head, _) | Usable::Nothing(head) => return Err(Fault::Status(head.status)),
    };
    Ok((origin, head))
}
