//! The cache believes only what it sealed itself.

use plugin_host::{Cache, Compiler, HostOptions, PluginHost};

use crate::guest::Guest;

fn host(folder: &std::path::Path, key: u8) -> PluginHost {
    PluginHost::new(HostOptions {
        compiler: Compiler::InThisProcess,
        cache: Some(Cache::new(folder.to_owned(), [key; 32])),
        hash_key: [1; 32],
    })
    .expect("plugins run here")
}

fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path());
    entries.collect()
}

#[test]
fn a_forged_changed_or_swapped_entry_is_compiled_anew() {
    let folder = tempfile::tempdir().unwrap();
    let component = Guest::default().component().unwrap();
    host(folder.path(), 1).load(&component).unwrap();
    let [path] = &files(folder.path())[..] else {
        panic!("one file")
    };
    let sealed = std::fs::read(path).unwrap();
    let flipped = |at: usize| {
        let mut bytes = sealed.clone();
        bytes[at] ^= 1;
        bytes
    };
    let other = Guest {
        evaluate: "(i32.const 8)".into(),
        ..Guest::default()
    }
    .component()
    .unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    host(elsewhere.path(), 1).load(&other).unwrap();
    let swapped = std::fs::read(&files(elsewhere.path())[0]).unwrap();
    let cases = [
        ("a changed seal", flipped(0)),
        ("changed code", flipped(sealed.len() / 2)),
        ("a changed end", flipped(sealed.len() - 1)),
        ("another plugin's entry", swapped),
        ("code without a seal", sealed[32..].to_vec()),
        ("a short file", sealed[..16].to_vec()),
        ("an empty file", Vec::new()),
        ("a broken-off file", sealed[..sealed.len() - 9].to_vec()),
    ];
    for (name, bytes) in cases {
        std::fs::write(path, bytes).unwrap();
        host(folder.path(), 1)
            .load(&component)
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(
            std::fs::read(path).unwrap().len(),
            sealed.len(),
            "{name} is replaced"
        );
    }
    // Another key is another seal.
    let before = std::fs::read(path).unwrap();
    host(folder.path(), 2).load(&component).unwrap();
    assert_ne!(std::fs::read(path).unwrap()[..32], before[..32]);
}
