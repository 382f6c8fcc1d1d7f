//! The strict parser.
use bytes::Bytes;

use crate::{DecodeError, Document, Limits};

pub(crate) fn parse(bytes: Bytes, limits: &Limits) -> Result<Document, DecodeError> {
    let _ = (bytes, limits);
    todo!()
}
