//! Whether a component keeps to the contract, said in words for its author.
//!
//! Runs in the compiling process: hostile bytes are not even parsed where messages are.

use wasmparser::{ComponentExternalKind, Encoding, Parser, Payload, Validator, WasmFeatures};

use crate::engine::{MEMORY_BYTES_MAX, TABLE_ELEMENTS_MAX};

/// The contract's package and version.
pub const CONTRACT: &str = "weir:policy@0.1.0";
/// The one interface that may be imported, beside types.
const IMPORTS: [&str; 2] = ["weir:policy/host", "weir:policy/types"];
const EXPORT: &str = "weir:policy/policy";
const VERSION: &str = "0.1";

/// Largest component, in bytes.
pub(crate) const COMPONENT_BYTES_MAX: usize = 16 << 20;
/// Functions over all core modules.
const FUNCTIONS_MAX: u32 = 60_000;
/// Core modules and components within a component. Tools that link an interpreter to stubs make some
/// forty; each module costs time to start.
const MODULES_MAX: usize = 64;

/// Checks a component.
///
/// # Errors
/// What is wrong, and what to do.
pub(crate) fn check(bytes: &[u8]) -> Result<(), String> {
    size(bytes.len())?;
    if !Parser::is_component(bytes) {
        return Err(if Parser::is_core_wasm(bytes) {
            "this is a core module, not a component: wrap it with `weir policy build`".into()
        } else {
            "this is not WebAssembly".into()
        });
    }
    Validator::new_with_features(features())
        .validate_all(bytes)
        .map_err(|error| format!("it is not valid: {error}"))?;
    names(bytes)
}

/// What a plugin's modules may use of WebAssembly: less than the engine, whose own adapters between
/// components need several memories.
fn features() -> WasmFeatures {
    WasmFeatures::default()
        .difference(WasmFeatures::MULTI_MEMORY)
        .difference(WasmFeatures::MEMORY64)
        .difference(WasmFeatures::TAIL_CALL)
        .difference(WasmFeatures::RELAXED_SIMD)
        .difference(WasmFeatures::THREADS)
}

/// Checks the size alone.
pub(crate) fn size(bytes: usize) -> Result<(), String> {
    if bytes > COMPONENT_BYTES_MAX {
        return Err(format!(
            "it has {bytes} bytes; a plugin has at most {COMPONENT_BYTES_MAX}"
        ));
    }
    Ok(())
}

fn names(bytes: &[u8]) -> Result<(), String> {
    let (mut depth, mut modules, mut functions) = (0usize, 0usize, 0u32);
    let mut exported = Vec::new();
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(|error| error.to_string())? {
            Payload::Version { encoding, .. } => {
                depth += 1;
                modules += usize::from(encoding == Encoding::Module || depth > 1);
            }
            Payload::End(_) => depth -= 1,
            Payload::FunctionSection(section) => {
                functions = functions.saturating_add(section.count());
            }
            Payload::MemorySection(section) => {
                for memory in section {
                    memory_fits(memory.map_err(|error| error.to_string())?.initial)?;
                }
            }
            Payload::TableSection(section) => {
                for table in section {
                    table_fits(table.map_err(|error| error.to_string())?.ty.initial)?;
                }
            }
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    let import = import.map_err(|error| error.to_string())?;
                    imported(import.name.name)?;
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    let export = export.map_err(|error| error.to_string())?;
                    if export.kind == ComponentExternalKind::Instance {
                        exported.push(export.name.name.to_owned());
                    }
                }
            }
            _ => {}
        }
    }
    if modules > MODULES_MAX {
        return Err(format!("it holds {modules} modules; at most {MODULES_MAX}"));
    }
    if functions > FUNCTIONS_MAX {
        return Err(format!(
            "it has {functions} functions; at most {FUNCTIONS_MAX}"
        ));
    }
    exports(&exported)
}

fn memory_fits(pages: u64) -> Result<(), String> {
    let (mib, max) = (pages / 16, MEMORY_BYTES_MAX >> 20);
    if mib > max as u64 {
        return Err(format!("its memory begins with {mib} MiB; at most {max}"));
    }
    Ok(())
}

fn table_fits(elements: u64) -> Result<(), String> {
    if elements > TABLE_ELEMENTS_MAX as u64 {
        return Err(format!(
            "it has a table of {elements} elements; at most {TABLE_ELEMENTS_MAX}"
        ));
    }
    Ok(())
}

fn imported(name: &str) -> Result<(), String> {
    let (interface, version) = name.split_once('@').unwrap_or((name, ""));
    if !IMPORTS.contains(&interface) {
        let hint = if interface.starts_with("wasi:") {
            "; plugins have no WASI: build for wasm32-unknown-unknown"
        } else {
            ""
        };
        return Err(format!(
            "it imports {name}, which the contract {CONTRACT} does not have{hint}"
        ));
    }
    if !version_fits(version) {
        return Err(format!(
            "it imports version {version:?} of {interface}; this Weir has {CONTRACT}: build it with this SDK"
        ));
    }
    Ok(())
}

fn exports(exported: &[String]) -> Result<(), String> {
    let mut other = None;
    for name in exported {
        let (interface, version) = name.split_once('@').unwrap_or((name, ""));
        if interface == EXPORT {
            if version_fits(version) {
                return Ok(());
            }
            other = Some(version);
        }
    }
    Err(match other {
        Some(version) => format!(
            "it exports version {version:?} of {EXPORT}; this Weir has {CONTRACT}: build it with this SDK"
        ),
        None => format!("it does not export {EXPORT} ({CONTRACT}): is there an `export!` line?"),
    })
}

fn version_fits(version: &str) -> bool {
    version
        .strip_prefix(VERSION)
        .is_some_and(|rest| rest.starts_with('.'))
}
