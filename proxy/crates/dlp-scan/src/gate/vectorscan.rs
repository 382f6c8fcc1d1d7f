//! The gate by Vectorscan (or Hyperscan): a database of all keywords, run by the system's `libhs`.
//!
//! The database is compiled whenever a rule set is: that takes a fraction of a second, and a stored one would be a
//! file that somebody could forge. What `libhs` refuses or fails at, the built-in gate does instead.

use hyperscan::prelude::*;
use parking_lot::Mutex;

use super::{GramGate, Hit, Keywords, LiteralGate, goes_on_after_three};

/// Working memory kept for threads that scan at the same time.
const SCRATCHES_KEPT: usize = 64;

/// The gate by `libhs`.
pub(crate) struct VectorscanGate {
    engine: Option<LibHs>,
    /// Finds the same, should the library fail.
    fallback: GramGate,
    /// Each keyword's number and length.
    lens: Box<[(u16, u16)]>,
}

struct LibHs {
    database: BlockDatabase,
    scratches: Mutex<Vec<Scratch>>,
}

impl std::fmt::Debug for VectorscanGate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VectorscanGate({} keywords)", self.lens.len())
    }
}

impl VectorscanGate {
    pub fn new(keywords: Keywords) -> Self {
        let lens = keywords
            .iter()
            .map(|(id, k)| (*id, u16::try_from(k.len()).unwrap_or(u16::MAX)));
        Self {
            lens: lens.collect(),
            engine: LibHs::new(&keywords),
            fallback: GramGate::whole(keywords),
        }
    }

    /// False when the library would not take the keywords.
    pub fn runs(&self) -> bool {
        self.engine.is_some()
    }
}

impl LibHs {
    fn new(keywords: &Keywords) -> Option<Self> {
        if keywords.is_empty() {
            return None;
        }
        let patterns = keywords.iter().enumerate().map(|(id, (_, word))| {
            let expression: String = word.iter().map(|b| format!("\\x{b:02x}")).collect();
            let mut pattern = Pattern::with_flags(expression, CompileFlags::CASELESS)?;
            pattern.id = Some(id);
            Ok(pattern)
        });
        let patterns: Result<Patterns, hyperscan::Error> = patterns.collect();
        Some(Self {
            database: patterns.ok()?.build().ok()?,
            scratches: Mutex::default(),
        })
    }

    /// Every end of every keyword.
    fn ends(&self, text: &[u8], mut found: impl FnMut(u16, usize)) -> Result<(), hyperscan::Error> {
        let kept = self.scratches.lock().pop();
        let scratch = kept.map_or_else(|| self.database.alloc_scratch(), Ok)?;
        self.database
            .scan(text, &scratch, |id: u32, _: u64, to: u64, _: u32| {
                // Ids are indices of keywords, and texts no longer than 32 bits say.
                found(id as u16, to as usize);
                Matching::Continue
            })?;
        let mut kept = self.scratches.lock();
        if kept.len() < SCRATCHES_KEPT {
            kept.push(scratch);
        }
        Ok(())
    }
}

impl LiteralGate for VectorscanGate {
    fn hits(&self, text: &[u8], out: &mut Vec<Hit>) {
        let first = out.len();
        let done = self.engine.as_ref().is_some_and(|engine| {
            let found = engine.ends(text, |nth, end| {
                let (keyword, len) = self.lens[usize::from(nth)];
                let len = usize::from(len);
                if len > 3 || text.get(end).copied().is_some_and(goes_on_after_three) {
                    out.push(Hit {
                        at: crate::text::to_u32(end - len),
                        keyword,
                    });
                }
            });
            found.is_ok()
        });
        if done {
            out[first..].sort_unstable();
        } else {
            out.truncate(first);
            self.fallback.hits(text, out);
        }
    }
}
