//! Keys that only differ in case from a protocol key.
