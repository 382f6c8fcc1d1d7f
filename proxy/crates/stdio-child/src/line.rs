//! Cuts a byte stream into lines within a bound.
