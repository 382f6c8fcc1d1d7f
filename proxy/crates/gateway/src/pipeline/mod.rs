//! decode -> scan -> policy -> decide: pure, bounded, the same code in both directions.
//!
//! Nothing in here awaits or reads a socket. Between messages nothing is kept but which ones were clean (`remembered.rs`); what
//! a stream said before is lent to the judge.

mod forms;
mod judge;
mod mirrored;
mod passing;
mod plugins;
mod redact;
mod remembered;
mod said;
mod scratch;
mod stage;
mod stop;

pub use judge::{Attribution, Judge, Whose};
pub use passing::{Halted, Passed, PassedFinding, Passing, PassingReport, Undecidable, facts_of};
pub use plugins::lay_out;
pub use said::Said;
pub use scratch::set_fingerprint_key;
pub use stage::{
    Blocked, Cleared, Decided, Decoded, HeaderLeaf, Place, Places, Release, Report, Scanned,
    StageTimes, ToClient, ToServer, Way, leaf_input,
};
pub(crate) use stage::{MASKED, has_findings, written};
pub use stop::Stop;

/// The whole line in one call.
pub fn run<W: Way>(decoded: Decoded<W>, judge: &Judge<'_>) -> Release<W> {
    decoded.scan(judge).decide(judge).release(judge)
}
