//! The scanner's scratch: one per worker thread, reused by every message.

use std::cell::RefCell;
use std::sync::OnceLock;

use dlp_scan::{FingerprintKey, Scanner};

static KEY: OnceLock<FingerprintKey> = OnceLock::new();

thread_local! {
    static SCANNER: RefCell<Option<Scanner>> = const { RefCell::new(None) };
}

/// Sets the key of the fingerprints in audit records. The first call of a process wins, so that
/// equal values stay equal over reloads. Returns false when a key was set already.
pub fn set_fingerprint_key(key: [u8; 32]) -> bool {
    KEY.set(FingerprintKey::new(key)).is_ok()
}

/// Runs `work` with this thread's scanner. Never awaits, so no two messages share it.
pub(super) fn with_scanner<T>(work: impl FnOnce(&mut Scanner) -> T) -> T {
    SCANNER.with_borrow_mut(|slot| {
        let scanner = slot.get_or_insert_with(|| Scanner::new(KEY.get_or_init(random_key).clone()));
        work(scanner)
    })
}

fn random_key() -> FingerprintKey {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).expect("the kernel has random bytes after boot");
    FingerprintKey::new(bytes)
}
