//! What plugins may do and what becomes of those that do more.

mod bombs;
mod canary;
mod compiling;
mod crowd;
mod guest;
mod hostile;
mod judging;
mod swap;
