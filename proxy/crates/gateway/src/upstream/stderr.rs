//! What a stdio server writes to its standard error: lines of the log, for whoever asks for `debug`.
//!
//! It is text of the server's choice. Lines are cut, no more than a few a second are written, control characters were replaced
//! where they were read, and a line in which the built-in rules find something is left out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dlp_scan::RuleSet;
use domain::ServerId;
use stdio_child::StderrSink;

use crate::pipeline;
use crate::seldom::Seldom;

/// The longest line, in bytes.
const LINE_BYTES_MAX: usize = 512;
/// Lines of one server in a second.
const LINES_MAX: u32 = 20;

/// Where lines of this server go.
pub(super) fn sink(id: &ServerId) -> StderrSink {
    let server = id.to_string();
    let seldom = Seldom::new(LINES_MAX, Duration::from_secs(1));
    StderrSink::Log(Arc::new(move |line: &str| {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        if let Some(left_out) = seldom.admits(Instant::now()) {
            let text = shown(line);
            tracing::debug!(server_id = %server, left_out, stderr = %text, "the server wrote to stderr");
        }
    }))
}

fn shown(line: &str) -> &str {
    // Before it is cut: half a token is found by nobody.
    if pipeline::has_findings(RuleSet::builtin(), line) {
        return "[left out: a rule finds something in it]";
    }
    &line[..line.floor_char_boundary(LINE_BYTES_MAX)]
}
