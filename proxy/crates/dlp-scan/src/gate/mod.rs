//! The literal gate: which rules' keywords occur in a text, and where.
//!
//! [`LiteralGate`] is the seam between engines; all report the same hits.

mod gram;
mod heads;
#[cfg(feature = "vectorscan")]
mod vectorscan;
#[cfg(target_arch = "x86_64")]
mod wide;
#[cfg(target_arch = "x86_64")]
mod wide512;

pub(crate) use gram::GramGate;
pub(crate) use heads::HeadGate;

use crate::text::{RUN_BYTES_MIN, is_run};
use crate::traces::Traces;

/// What looks for the keywords. All engines find the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// Pure Rust; always there.
    Rust,
    /// Vectorscan or Hyperscan, from the system's `libhs`.
    #[cfg(feature = "vectorscan")]
    Vectorscan,
}

impl Engine {
    /// Every engine of this build.
    pub const ALL: &'static [Self] = &[
        Self::Rust,
        #[cfg(feature = "vectorscan")]
        Self::Vectorscan,
    ];

    /// The one that rule sets are made with: the last that was built in.
    pub const DEFAULT: Self = *Self::ALL.last().expect("one is always there");

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            #[cfg(feature = "vectorscan")]
            Self::Vectorscan => "vectorscan",
        }
    }
}

/// A keyword and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hit {
    pub at: u32,
    pub keyword: u16,
}

/// Finds every occurrence of every keyword, ASCII letters in either case. Keywords are at least 3 bytes, in lower
/// case. One of 3 bytes is found only before a letter, a digit, `_` or `-`, which is what every rule with so short a
/// prefix goes on with.
pub(crate) trait LiteralGate {
    /// Appends all hits, ordered by position, then keyword.
    fn hits(&self, text: &[u8], out: &mut Vec<Hit>);
}

/// Where the keywords of a set are looked for. Few need the whole text: what a token begins with stands in long runs of
/// letters and digits, and words that give a number its meaning are asked for beside numbers.
#[derive(Debug)]
pub(crate) struct Gates {
    everywhere: Gate,
    runs: GramGate,
    /// The parts of context phrases.
    pub near: HeadGate,
}

/// Where one keyword is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// In the whole text.
    pub everywhere: bool,
    /// In long runs, and at the end of a cell.
    pub runs: bool,
    /// Near numbers.
    pub near: bool,
}

impl Gates {
    pub fn new(engine: Engine, keywords: &[Box<[u8]>], places: &[Places]) -> Self {
        let those = |is: fn(&Places) -> bool| {
            let all = (0u16..).zip(keywords).zip(places);
            all.filter(|(_, p)| is(p))
                .map(|(k, _)| (k.0, k.1.clone()))
                .collect::<Keywords>()
        };
        Self {
            everywhere: Gate::new(engine, those(|p| p.everywhere)),
            runs: GramGate::new(those(|p| p.runs && !p.everywhere)),
            near: HeadGate::new(those(|p| p.near)),
        }
    }

    /// The engine that does the work.
    pub fn engine(&self) -> Engine {
        self.everywhere.engine()
    }

    /// Appends the hits of a text that may mean something there, ordered by position, then keyword. `traces` are what was
    /// seen of it, `ends` the ends of its cells, in order.
    pub fn hits(
        &self,
        text: &[u8],
        traces: &Traces,
        ends: impl Iterator<Item = usize>,
        out: &mut Vec<Hit>,
    ) {
        self.everywhere.hits(text, out);
        let (first, runs) = (out.len(), &traces.runs);
        for run in runs {
            self.runs.hits_in(text, run.range(), out);
        }
        // What goes on in the next cell is not long enough yet.
        let mut long = runs.iter().peekable();
        for end in ends {
            while long.next_if(|r| (r.end as usize) < end).is_some() {}
            if long.peek().is_some_and(|r| r.end as usize == end) {
                continue;
            }
            // Nearly all are words of a sentence.
            let small = traces.small_before(end);
            if small >= RUN_BYTES_MIN || small < end && !is_run(text[end - 1 - small]) {
                continue;
            }
            let (mut start, mut word) = (end, true);
            while start > 0 && end - start < RUN_BYTES_MIN && is_run(text[start - 1]) {
                start -= 1;
                word &= text[start].is_ascii_lowercase();
            }
            if !word && end - start >= KEYWORD_BYTES_MIN {
                self.runs.hits_in(text, start..end, out);
            }
        }
        if out.len() > first {
            out.sort();
        }
    }

    /// The same, wherever the keywords stand.
    pub fn all_hits(&self, text: &[u8], out: &mut Vec<Hit>) {
        self.everywhere.hits(text, out);
        self.runs.hits(text, out);
        out.sort();
    }
}

/// The shortest keyword.
const KEYWORD_BYTES_MIN: usize = 3;

/// Keywords and their numbers.
pub(crate) type Keywords = Vec<(u16, Box<[u8]>)>;

/// The gate of a rule set.
#[derive(Debug)]
pub(crate) enum Gate {
    Gram(GramGate),
    #[cfg(feature = "vectorscan")]
    Vectorscan(vectorscan::VectorscanGate),
}

impl Gate {
    pub fn new(engine: Engine, keywords: Keywords) -> Self {
        match engine {
            Engine::Rust => Self::Gram(GramGate::whole(keywords)),
            #[cfg(feature = "vectorscan")]
            Engine::Vectorscan => Self::Vectorscan(vectorscan::VectorscanGate::new(keywords)),
        }
    }

    /// The engine that does the work.
    pub fn engine(&self) -> Engine {
        match self {
            Self::Gram(_) => Engine::Rust,
            #[cfg(feature = "vectorscan")]
            Self::Vectorscan(gate) if gate.runs() => Engine::Vectorscan,
            #[cfg(feature = "vectorscan")]
            Self::Vectorscan(_) => Engine::Rust,
        }
    }
}

impl LiteralGate for Gate {
    fn hits(&self, text: &[u8], out: &mut Vec<Hit>) {
        match self {
            Self::Gram(gate) => gate.hits(text, out),
            #[cfg(feature = "vectorscan")]
            Self::Vectorscan(gate) => gate.hits(text, out),
        }
    }
}

/// What may stand after a keyword of 3 bytes.
fn goes_on_after_three(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(engine: Engine, words: &[&str], text: &str) -> Vec<(usize, u32)> {
        let words = (0u16..).zip(words.iter().map(|w| w.as_bytes().into()));
        let gate = Gate::new(engine, words.collect());
        assert_eq!(gate.engine(), engine);
        let mut out = Vec::new();
        gate.hits(text.as_bytes(), &mut out);
        out.iter().map(|h| (usize::from(h.keyword), h.at)).collect()
    }

    /// What every gate must agree with: try every keyword at every position.
    fn naive(words: &[&str], text: &str) -> Vec<(usize, u32)> {
        let t = text.as_bytes();
        let mut out = Vec::new();
        for at in 0..t.len() {
            for (k, w) in words.iter().enumerate() {
                let tail_ok =
                    w.len() > 3 || t.get(at + 3).copied().is_some_and(goes_on_after_three);
                if t[at..].len() >= w.len()
                    && t[at..at + w.len()].eq_ignore_ascii_case(w.as_bytes())
                    && tail_ok
                {
                    out.push((k, u32::try_from(at).unwrap()));
                }
            }
        }
        out
    }

    #[test]
    fn agrees_with_trying_everything() {
        let words = [
            "password",
            "ghp_",
            "hf_",
            "token",
            "secret",
            "client_secret",
            "sk_live_",
            "-----begin",
            "önceki",
        ];
        let texts = [
            "",
            "ghp",
            "ghp_",
            "xghp_y",
            "hf_",
            "hf_a",
            "PassWord=TOKEN secret",
            "client_secretclient_secret",
            "----------BEGIN",
            "aÖnceki önceki",
            "tokentokentoken",
            "a sk_live_ b SK_LIVE_",
            "hf_hf_hf_-",
            // Folded, these would be letters and digits.
            "hf_\u{17}hf_\u{1}hf_@hf_[hf_\u{7f}",
        ];
        for &engine in Engine::ALL {
            for text in texts {
                assert_eq!(
                    hits(engine, &words, text),
                    naive(&words, text),
                    "{engine:?} {text:?}"
                );
            }
        }
    }

    #[test]
    fn every_alignment_is_looked_at() {
        for &engine in Engine::ALL {
            for pad in 0..20 {
                let text = format!("{}ghp_{}", "x".repeat(pad), "y".repeat(pad % 7));
                assert_eq!(
                    hits(engine, &["ghp_"], &text),
                    vec![(0, u32::try_from(pad).unwrap())],
                    "{engine:?} {pad}"
                );
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn every_width_finds_what_trying_everything_does() {
        let words = [
            "abc",
            "bcd-",
            "cabc",
            "abcab",
            "bcabca",
            "abcabca",
            "cbacbacb",
            "a bc a cb",
            "bcabcabcab cab",
        ];
        let keywords: Keywords = (0u16..)
            .zip(words.iter().map(|w| w.as_bytes().into()))
            .collect();
        let mut gates = [GramGate::new(keywords.clone()), GramGate::whole(keywords)];
        let mut seed = 5_u64;
        let mut next = |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % n
        };
        for _ in 0..2000 {
            let text: String = (0..next(300))
                .map(|_| char::from(b"abcABC -"[next(8)]))
                .collect();
            let want = naive(&words, &text);
            for gate in &mut gates {
                let (avx2, avx512) = (gate.avx2, gate.avx512);
                for (avx2, avx512) in [(avx2, avx512), (avx2, None), (None, None)] {
                    (gate.avx2, gate.avx512) = (avx2, avx512);
                    let mut out = Vec::new();
                    gate.hits(text.as_bytes(), &mut out);
                    let got: Vec<_> = out.iter().map(|h| (usize::from(h.keyword), h.at)).collect();
                    assert_eq!(got, want, "{avx2:?} {avx512:?} {text:?}");
                }
                (gate.avx2, gate.avx512) = (avx2, avx512);
            }
        }
    }
}
