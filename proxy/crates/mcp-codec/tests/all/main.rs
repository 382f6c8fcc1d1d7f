//! The codec seen from outside, one binary so that it links once.

mod documents;
