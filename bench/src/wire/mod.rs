//! The wire as the instrument sees it: HTTP/1.1 framing and JSON-RPC bodies, both small and blocking.
//!
//! Blocking sockets and one thread per connection are on purpose: a call is one write and a few reads, and the clock
//! stops in the thread that saw the last byte, with no scheduler of ours in between.

pub mod http;
pub mod rpc;
