//! The contract as Rust types, made from `dlp-sdk/wit`.
#![allow(missing_docs, clippy::all)]

wasmtime::component::bindgen!({
    path: "../../../dlp-sdk/wit",
    world: "plugin",
    ownership: Borrowing { duplicate_if_necessary: true },
    imports: { default: trappable },
});
