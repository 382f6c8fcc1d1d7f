//! Rules to a rule set; the text of a message to findings.
//!
//! A [`RuleSet`] is immutable and shared. A [`Scanner`] is the reusable scratch of one worker. [`Scanner::scan`]
//! takes the leaves of one message (keys, strings, numbers, headers) and gives an [`Outcome`]: where each rule
//! matched, in bytes of the leaf as it was passed in, through whatever encodings it lay under.
//!
//! Never here: async, I/O, a clock, logging. The matched text never leaves this crate except as a keyed hash.

mod blob;
mod budget;
mod check;
mod decode;
mod detect;
mod echoes;
mod entropy;
mod explain;
mod finding;
mod gate;
mod layout;
mod leaf;
mod names;
mod plain;
mod rest;
mod rule;
mod ruleset;
mod scanner;
mod stream;
mod text;
mod traces;
mod value;

pub use budget::{Budget, OverBudget};
pub use explain::{Explained, Miss, Near, explain};
pub use finding::{Finding, Fingerprint, FingerprintKey, Layer, Layers, Outcome};
pub use gate::Engine;
pub use leaf::{LeafInput, LeafKind, Step};
pub use rule::{Category, Rule, RuleId};
pub use ruleset::{
    AllowPattern, ExampleFailure, Own, RuleError, RuleFacts, RuleSet, RuleSource, VAULT_RULE,
    ValueList,
};
pub use scanner::{Keeps, Outline, Scanner};
pub use stream::{LeafStream, Place, StreamStep};
