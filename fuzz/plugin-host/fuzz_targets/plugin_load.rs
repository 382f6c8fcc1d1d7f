//! Any bytes as a plugin: refused with words, or loaded, bound and asked; never a panic.
//!
//! What it does when it is asked is its own affair, as long as it ends.
#![no_main]

#[path = "../../../proxy/crates/plugin-host/tests/all/guest.rs"]
#[allow(dead_code)]
mod guest;

use domain::PluginBinding;
use guest::{ask, bind, call, host};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let plugin = match host().load(data) {
        Ok(plugin) => plugin,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let binding = PluginBinding::new("any");
    match bind(&plugin, &binding, "tenant") {
        Err(why) => assert!(!why.is_empty()),
        // A verdict and a failure are both fine.
        Ok(bound) => drop(ask(&bound, &call("tenant", "select 1"))),
    }
});
