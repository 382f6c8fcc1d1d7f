//! A component out of what a compiler gives.

use wit_component::ComponentEncoder;

use crate::check;

/// Why no component could be made.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// It could not be wrapped.
    #[error("the module cannot be wrapped into a component: {0}")]
    Wrap(String),
    /// The outcome does not keep to the contract.
    #[error("the plugin does not keep to the contract: {0}")]
    Contract(String),
}

/// Wraps a core module that was built with the SDK into a component, or takes a component as it is;
/// either way the outcome keeps to the contract.
///
/// # Errors
/// What is wrong with the module, in words for its author.
pub fn component_of(bytes: &[u8]) -> Result<Vec<u8>, BuildError> {
    let component = if wasmparser::Parser::is_component(bytes) {
        bytes.to_vec()
    } else {
        ComponentEncoder::default()
            .module(bytes)
            .and_then(|encoder| encoder.validate(true).encode())
            .map_err(|error| BuildError::Wrap(format!("{error:#}")))?
    };
    check::check(&component).map_err(BuildError::Contract)?;
    Ok(component)
}
