//! What `wit/policy.wit` says, as Rust. Plugins use the types of the crate's root instead.
#![allow(missing_docs, clippy::all)]

wit_bindgen::generate!({
    path: "wit",
    world: "plugin",
    pub_export_macro: true,
    export_macro_name: "export",
    default_bindings_module: "dlp_sdk::bindings",
});
