//! Tests on the build machine: messages from JSON, a host without Weir, and recorded cases from YAML.
//!
//! `weir policy test` runs the same YAML files against the compiled component. Here the detection
//! rules are absent: a case says what they would have found.
//!
//! ```
//! use dlp_sdk::testing::{About, TestHost, message};
//! use dlp_sdk::serde_json::json;
//!
//! let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
//!     "params": {"name": "query", "arguments": {"sql": "select 1"}}});
//! let message = message(&call, &About::default());
//! assert_eq!(message.tool(), Some("query"));
//! assert_eq!(message.at("$.params.arguments.sql").unwrap().text, "select 1");
//! ```

mod cases;
mod flatten;
mod host;

pub use cases::{check_cases, run_case_files};
pub use flatten::{About, FoundHere, message};
pub use host::{Grant, TestHost};
