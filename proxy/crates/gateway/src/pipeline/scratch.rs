//! The scanner's scratch: one per worker thread, reused by every message.

use std::cell::RefCell;
use std::sync::OnceLock;

use dlp_scan::{FingerprintKey, Scanner};

use super::forms::FormKey;

static KEY: OnceLock<[u8; 32]> = OnceLock::new();

thread_local! {
    static SCANNER: RefCell<Option<Scanner>> = const { RefCell::new(None) };
}

/// Sets the key of the fingerprints in audit records. The first call of a process wins, so that
/// equal values stay equal over reloads. Returns false when a key was set already.
pub fn set_fingerprint_key(key: [u8; 32]) -> bool {
    KEY.set(key).is_ok()
}

/// The key of one tenant's redaction forms.
pub(super) fn form_key(tenant: &str) -> FormKey {
    FormKey::of_tenant(KEY.get_or_init(random_key), tenant)
}

/// Runs `work` with this thread's scanner. Never awaits, so no two messages share it.
pub(super) fn with_scanner<T>(work: impl FnOnce(&mut Scanner) -> T) -> T {
    SCANNER.with_borrow_mut(|slot| {
        let scanner = slot
            .get_or_insert_with(|| Scanner::new(FingerprintKey::new(*KEY.get_or_init(random_key))));
        work(scanner)
    })
}

pub(super) fn random_key<const BYTES: usize>() -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).expect("the kernel has random bytes after boot");
    bytes
}
