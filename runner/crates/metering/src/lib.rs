//! What hosted servers use, by server and hour: nothing lost, nothing counted twice.
//!
//! ```text
//!  kernel counters --readings--> Meter: differences --> open windows --hour over--> closed, numbered windows
//!                                  |                                                   | read by number, acknowledged
//!                                  '--- one file, replaced whole after every round     v
//!                                                                              the control plane's store
//! ```
//!
//! A round of readings changes the last readings and the windows in one step, and both are in the one file. After a
//! crash the file says either that a round was counted, or that it was not; then the next reading of the same kernel
//! counters holds what is missing. The reader keeps the highest number it has stored in the same transaction as the
//! windows, so that windows which it gets again are known.
//!
//! What is counted here is only as good as its source, which has to outlive the runner: processor time is the kernel's
//! (the control group's), requests and bytes are in a [`Tally`]. A sandbox that has ended is remembered until nothing of
//! it is left, so that one which is met again after a crash counts no second time.
#![forbid(unsafe_code)]

mod meter;
mod store;
mod tally;
mod window;

pub use meter::{Counter, Meter, Now, READINGS_MAX, Reading};
pub use store::{MeterStore, StoreError};
pub use tally::{Count, Tally};
pub use window::{CLOSED_MAX, Usage, Window};
