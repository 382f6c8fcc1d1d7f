//! Between the exported functions and a [`Plugin`].

use schemars::generate::SchemaSettings;

use crate::bindings::exports::weir::policy::policy as raw;
use crate::host::Weir;
use crate::{Message, Plugin};

/// A panic ends the instance, and what it says with it: the log of the host is told before.
#[cfg(target_arch = "wasm32")]
fn tell_panics() {
    use crate::host::{Host as _, LogLevel};
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location();
        let place = place.map_or_else(String::new, |place| format!(" at {place}"));
        Weir.log(LogLevel::Warn, &format!("panicked{place}"));
        // It may show a text of the message, cut off where no rule knows a secret in it any more: that is for the author.
        Weir.log(LogLevel::Debug, &panic.to_string());
    }));
}

/// Tests say it themselves.
#[cfg(not(target_arch = "wasm32"))]
fn tell_panics() {}

pub fn describe<P: Plugin>(name: &str, version: &str, summary: &str) -> raw::Description {
    tell_panics();
    let schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<P::Config>();
    raw::Description {
        name: name.to_owned(),
        version: version.to_owned(),
        summary: summary.to_owned(),
        config_schema: schema.as_value().to_string(),
    }
}

/// Makes a plugin of a configuration in JSON.
///
/// # Errors
/// What is wrong with it.
pub fn configure<P: Plugin>(config: &str) -> Result<P, String> {
    tell_panics();
    let config = serde_json::from_str(config).map_err(|error| error.to_string())?;
    P::new(config)
}

pub fn evaluate<P: Plugin>(plugin: &P, message: raw::Message) -> raw::Verdict {
    plugin
        .evaluate(&Message::from_raw(message), &Weir)
        .into_raw()
}
