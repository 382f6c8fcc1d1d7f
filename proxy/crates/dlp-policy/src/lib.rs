//! From findings to the one decision about a message.
//!
//! ```text
//! findings ──> actions of (direction, tool) ──> Decision <── verdicts of further evaluators
//!                    PolicyTable                 decide         Decision::hear
//! ```
//!
//! A [`PolicyTable`] is the policy of one server, compiled once per configuration. [`decide`] turns
//! the findings of one message into a [`Decision`]; the same code runs for a dry run, which changes
//! [`Decision::enforced`] and nothing else.
//!
//! Never here: async, I/O, a clock, logging, the matched text.
#![forbid(unsafe_code)]

mod allow;
mod decision;
mod defaults;
mod error;
mod evaluator;
mod lines;
mod own;
mod place;
mod table;
mod tools;
mod view;

pub use allow::{Allow, AllowInput, Allowed};
pub use decision::{Action, Decision, Reason, decide, decide_allowing};
pub use defaults::{DEFAULTS, DefaultBinding};
pub use error::{Level, PolicyError, Problem};
pub use evaluator::{EvalError, EvalInput, Evaluator, Evaluators, Mark, ToolOf, Verdict};
pub use lines::LineRef;
pub use own::{OwnError, base_rules, own_rules};
pub use table::{ActionsRef, PolicyTable};
pub use tools::ToolFilter;
pub use view::{About, MessageView, Piece, ViewFinding, ViewKind, ViewLeaf, Words};
