//! The codec seen from outside, one binary so that it links once.
#![allow(clippy::unwrap_used, reason = "a test's helpers may fail it")]

mod documents;
mod edits;
mod lines;
mod messages;
mod properties;
mod refusals;
mod sse;
mod streaming;
