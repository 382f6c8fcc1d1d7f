//! Policy plugins for Weir: a struct, a config type and one function.
//!
//! ```
//! use dlp_sdk::{Host, JsonSchema, Message, Plugin, Verdict, serde::Deserialize};
//!
//! /// Blocks calls whose arguments name one of these words.
//! struct Words(Config);
//!
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(crate = "dlp_sdk::serde")]
//! #[schemars(crate = "dlp_sdk::schemars")]
//! struct Config {
//!     /// Words that no argument may hold.
//!     words: Vec<String>,
//! }
//!
//! impl Plugin for Words {
//!     type Config = Config;
//!
//!     fn new(config: Config) -> Result<Self, String> {
//!         Ok(Words(config))
//!     }
//!
//!     fn evaluate(&self, message: &Message, _: &dyn Host) -> Verdict {
//!         for leaf in message.under("$.params.arguments") {
//!             if self.0.words.iter().any(|word| leaf.text.contains(word)) {
//!                 return Verdict::block("an argument holds a word that is not allowed");
//!             }
//!         }
//!         Verdict::pass()
//!     }
//! }
//! dlp_sdk::export!(Words);
//! # fn main() {}
//! ```
//!
//! The same code is tested on the build machine (feature `testing`) and compiled for
//! `wasm32-unknown-unknown`; `weir policy build` wraps the outcome into a component. What a plugin
//! may never do: read the network, files, the environment or a clock that was not granted. There is
//! nothing in the contract (`wit/policy.wit`) by which it could.

#[cfg(target_arch = "wasm32")]
mod alloc;
#[doc(hidden)]
pub mod bindings;
#[doc(hidden)]
pub mod glue;
mod host;
mod message;
#[cfg(all(feature = "testing", not(target_arch = "wasm32")))]
pub mod testing;
mod verdict;

pub use bindings::exports::weir::policy::policy as raw;
pub use host::{Hit, Host, HostError, LogLevel, Scope, Word};
pub use message::{Call, Direction, Era, Finding, Leaf, LeafKind, Message};
pub use schemars::{self, JsonSchema};
pub use serde;
pub use serde_json;
pub use verdict::{Action, Verdict};

/// One policy. Made once per instance from its configuration, then shown messages.
///
/// An instance may be thrown away after every message: what has to be remembered goes through
/// [`Host::state_set`], never into the plugin's own fields.
pub trait Plugin: Sized + 'static {
    /// Its configuration; the schema of this type is published with the plugin. Use
    /// `#[serde(deny_unknown_fields)]`, so that a misspelt field is refused when it is bound.
    type Config: serde::de::DeserializeOwned + JsonSchema;

    /// Takes the configuration of a binding.
    ///
    /// # Errors
    /// What is wrong with it, for the person who wrote it. The binding is refused then.
    fn new(config: Self::Config) -> Result<Self, String>;

    /// Judges one message. Must not panic: a plugin that traps takes its binding's fail mode.
    fn evaluate(&self, message: &Message, host: &dyn Host) -> Verdict;
}

/// Makes a plugin of a type: the crate's name, version and description become the plugin's.
#[macro_export]
macro_rules! export {
    ($plugin:ty) => {
        const _: () = {
            struct Exported;

            ::std::thread_local! {
                static PLUGIN: ::std::cell::OnceCell<$plugin> = const { ::std::cell::OnceCell::new() };
            }

            impl $crate::raw::Guest for Exported {
                fn describe() -> $crate::raw::Description {
                    $crate::glue::describe::<$plugin>(
                        env!("CARGO_PKG_NAME"),
                        env!("CARGO_PKG_VERSION"),
                        env!("CARGO_PKG_DESCRIPTION"),
                    )
                }

                fn configure(config: String) -> Result<(), String> {
                    let plugin = $crate::glue::configure::<$plugin>(&config)?;
                    PLUGIN.with(|slot| {
                        slot.set(plugin)
                            .map_err(|_| "this instance is configured already".to_string())
                    })
                }

                fn evaluate(message: $crate::raw::Message) -> $crate::raw::Verdict {
                    PLUGIN.with(|slot| {
                        let plugin = slot.get().expect("configured before the first message");
                        $crate::glue::evaluate(plugin, message)
                    })
                }
            }

            #[cfg(target_arch = "wasm32")]
            $crate::bindings::export!(Exported with_types_in $crate::bindings);
        };
    };
}
