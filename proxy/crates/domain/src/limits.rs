//! Every bound of the data plane, with its default.

use serde::{Deserialize, Serialize};

/// Bounds of the data plane. Every queue, buffer, body and cache has one here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Largest JSON-RPC message either way, in bytes. Default 4 MiB, at most 64 MiB.
    #[schemars(range(min = 1024, max = 67_108_864))]
    pub message_bytes_max: usize,
    /// Largest JSON-RPC message that is scanned while it arrives, in bytes, where it is larger than
    /// `message_bytes_max`: tool results and calls over HTTP that policy can only redact, never
    /// block. 0 (the default): none is, what is larger is refused. At most 4 GiB.
    #[schemars(range(min = 0, max = 4_294_967_296u64))]
    pub streamed_bytes_max: u64,
    /// Deepest nesting of a message. Default 64.
    #[schemars(range(min = 8, max = 256))]
    pub depth_max: usize,
    /// Most values in one message. Default 500,000.
    #[schemars(range(min = 16, max = 10_000_000))]
    pub tokens_max: usize,
    /// Most messages in one batch (revision 2025-03-26). Default 32.
    #[schemars(range(min = 1, max = 1_024))]
    pub batch_max: usize,
    /// Most request headers. Default 64.
    #[schemars(range(min = 8, max = 1_024))]
    pub headers_max: usize,
    /// Largest request head, in bytes. Default 32 KiB.
    #[schemars(range(min = 1_024, max = 1_048_576))]
    pub header_bytes_max: usize,
    /// Most open client connections. Default 4,096.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections_max: usize,
    /// Most open listen streams. Default 1,024.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub streams_max: usize,
    /// Most open listen streams of one principal; where no key is asked for, all of them. Default 256.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub streams_per_principal_max: usize,
    /// Most processes (over stdio) or connections (over HTTP+SSE) of one server that run for one principal; where no key is
    /// asked for, all of them. There are 256 of a server at most. Default 64.
    #[schemars(range(min = 1, max = 256))]
    pub processes_per_principal_max: usize,
    /// Most bytes of request bodies that are held until they were decided about, over all principals; the first 64 KiB of each
    /// body do not count. Above it: 503 with Retry-After. One message may always be held. Default 512 MiB.
    #[schemars(range(min = 1_048_576, max = 1_099_511_627_776u64))]
    pub bodies_bytes_max: usize,
    /// Most of them of one principal; where no key is asked for, all of them. Above it: 429 with Retry-After. Default 64 MiB.
    #[schemars(range(min = 1_048_576, max = 1_099_511_627_776u64))]
    pub bodies_bytes_per_principal_max: usize,
    /// Most sessions kept, over all servers. Default 10,000.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub sessions_max: usize,
    /// Most sessions of one principal. Default 1,000.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub sessions_per_principal_max: usize,
    /// A session unused for so long is forgotten, in seconds. Default 3,600.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub session_idle_s: u64,
    /// Most calls waiting for their answer in one session. Default 256.
    #[schemars(range(min = 1, max = 100_000))]
    pub pending_calls_max: usize,
    /// Most h2 streams of one connection. Default 100.
    #[schemars(range(min = 1, max = 10_000))]
    pub h2_streams_max: u32,
    /// Time for a whole request head, from its first byte, in milliseconds. Default 10,000.
    #[schemars(range(min = 10, max = 3_600_000))]
    pub header_timeout_ms: u64,
    /// Time for a whole request body, in milliseconds. Default 30,000.
    #[schemars(range(min = 10, max = 3_600_000))]
    pub body_timeout_ms: u64,
    /// An idle kept-alive connection is closed after, in milliseconds. Default 60,000.
    #[schemars(range(min = 10, max = 86_400_000))]
    pub idle_timeout_ms: u64,
    /// A client that takes no byte for so long is cut, in milliseconds. Default 30,000.
    #[schemars(range(min = 10, max = 3_600_000))]
    pub write_timeout_ms: u64,
    /// Time to connect to an upstream, in milliseconds. Default 5,000.
    #[schemars(range(min = 10, max = 3_600_000))]
    pub upstream_connect_timeout_ms: u64,
    /// Longest silence of an upstream that owes an answer, in milliseconds, over every transport:
    /// from the request until something comes of it (the answer, the head of an answer over HTTP,
    /// progress or another message of the call), and again from each such sign until the answer is
    /// whole. Over HTTP the head and a JSON body that is held have it together, however slowly they
    /// drip. `upstream_idle_timeout_ms` takes its place once the answer is an event stream over
    /// HTTP, and once the server asked the client something itself. Default 60,000.
    #[schemars(range(min = 10, max = 86_400_000))]
    pub upstream_response_timeout_ms: u64,
    /// Longest silence of an upstream in the course of a call, in milliseconds, where it may have
    /// reason to be silent: on an event stream that it began, or (over stdio and HTTP+SSE) after it
    /// asked the client something. A subscription may be silent for ever. Default 300,000.
    #[schemars(range(min = 10, max = 86_400_000))]
    pub upstream_idle_timeout_ms: u64,
    /// A comment is sent on an idle event stream every, in milliseconds. Default 15,000.
    #[schemars(range(min = 100, max = 3_600_000))]
    pub keep_alive_ms: u64,
    /// Bytes that may be decoded (base64, hex, gzip ...) for one message. Default 16 MiB.
    #[schemars(range(min = 1_024, max = 1_073_741_824))]
    pub decoded_bytes_max: usize,
    /// How many encodings inside each other are undone. Default 5.
    #[schemars(range(min = 1, max = 8))]
    pub decode_depth_max: usize,
    /// Clean messages that each worker thread remembers, by a hash: the same again is not scanned again. 80 bytes for each
    /// four. 0: none. Default 4,096.
    #[schemars(range(min = 0, max = 1_048_576))]
    pub clean_messages_max: usize,
    /// Longest wait of a running call when Weir stops, in milliseconds. Default 10,000.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub drain_timeout_ms: u64,
}

impl Limits {
    /// The largest message that may be configured, in bytes.
    pub const MESSAGE_BYTES_CEILING: usize = 64 << 20;

    /// Whether messages above `message_bytes_max` may be scanned while they arrive.
    pub fn streams(&self) -> bool {
        self.streamed_bytes_max > self.message_bytes_max as u64
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes_max: 4 << 20,
            streamed_bytes_max: 0,
            depth_max: 64,
            tokens_max: 500_000,
            batch_max: 32,
            headers_max: 64,
            header_bytes_max: 32 << 10,
            connections_max: 4096,
            streams_max: 1024,
            streams_per_principal_max: 256,
            processes_per_principal_max: 64,
            bodies_bytes_max: 512 << 20,
            bodies_bytes_per_principal_max: 64 << 20,
            sessions_max: 10_000,
            sessions_per_principal_max: 1000,
            session_idle_s: 3600,
            pending_calls_max: 256,
            h2_streams_max: 100,
            header_timeout_ms: 10_000,
            body_timeout_ms: 30_000,
            idle_timeout_ms: 60_000,
            write_timeout_ms: 30_000,
            upstream_connect_timeout_ms: 5_000,
            upstream_response_timeout_ms: 60_000,
            upstream_idle_timeout_ms: 300_000,
            keep_alive_ms: 15_000,
            decoded_bytes_max: 16 << 20,
            decode_depth_max: 6,
            clean_messages_max: 4096,
            drain_timeout_ms: 10_000,
        }
    }
}
