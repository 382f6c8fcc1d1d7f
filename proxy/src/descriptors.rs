//! The limit on open files: each connection is one, and each to an upstream.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Lets this process have as many as it may; the soft limit of most systems is 1,024, for programs of old that cannot take more.
/// A server that is started here may be one of them, and has the limit as it was. Gives what is in force; nothing where the
/// kernel does not say.
pub fn raise_open_files() -> Option<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    stdio_child::keep_open_files_of_servers(soft);
    match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
        Ok(()) => Some(hard),
        Err(_) => Some(soft),
    }
}
