//! Standard output, which whoever reads it may close before the end: `weir rules list | head -1`.

use std::io::{self, ErrorKind, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether the reader went away.
pub fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Standard output that remembers whether its reader went away.
pub struct Out(StdoutLock<'static>);

impl Out {
    /// Over the real one.
    pub fn new(out: StdoutLock<'static>) -> Self {
        Self(out)
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        seen(self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        seen(self.0.flush())
    }
}

fn seen<T>(written: io::Result<T>) -> io::Result<T> {
    if matches!(&written, Err(error) if error.kind() == ErrorKind::BrokenPipe) {
        CLOSED.store(true, Ordering::Relaxed);
    }
    written
}
