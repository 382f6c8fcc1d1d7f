//! audit-log
