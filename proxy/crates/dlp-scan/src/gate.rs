//! The literal gate: which rules' keywords occur in a text, and where.
//!
//! [`LiteralGate`] is the seam for other engines; all must report the same hits. The built-in [`GramGate`] looks at
//! every 4 bytes of the text, letters folded by setting one bit, in a bitmap that stays in the first-level cache.
//! The positions do not depend on each other, so this runs at a byte a cycle where an automaton waits for each load;
//! a set bit is then confirmed against the few keywords that hold that gram. Each keyword is filed under the gram of
//! its own that ordinary text holds least often.

use std::collections::BTreeMap;

/// A keyword and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hit {
    pub at: u32,
    pub keyword: u16,
}

/// Finds every occurrence of every keyword, ASCII letters in either case.
pub(crate) trait LiteralGate {
    /// Appends all hits, ordered by position, then keyword.
    fn hits(&self, text: &[u8], out: &mut Vec<Hit>);
}

const TABLE_BITS: u32 = 18;
const TABLE_WORDS: usize = 1 << (TABLE_BITS - 6);
const FOLD: u32 = 0x2020_2020;
const HEADS: usize = 1 << 14;
const NONE: u32 = u32::MAX;

/// The pure Rust gate.
#[derive(Debug)]
pub(crate) struct GramGate {
    bits: Box<[u64; TABLE_WORDS]>,
    /// The same grams under another hash: asked only where `bits` says yes, to spare most of the confirming.
    again: Box<[u64; TABLE_WORDS]>,
    heads: Box<[u32]>,
    entries: Vec<Entry>,
    keywords: Vec<Box<[u8]>>,
}

#[derive(Debug)]
struct Entry {
    gram: u32,
    keyword: u16,
    offset: u8,
    next: u32,
}

impl GramGate {
    /// Keywords are at least 3 bytes, in lower case. One of 3 bytes is found only before a letter, a digit, `_`
    /// or `-`, which is what every rule with so short a prefix goes on with.
    pub fn new(keywords: Vec<Box<[u8]>>) -> Self {
        let mut gate = Self {
            bits: Box::new([0; TABLE_WORDS]),
            again: Box::new([0; TABLE_WORDS]),
            heads: vec![NONE; HEADS].into(),
            entries: Vec::new(),
            keywords: Vec::new(),
        };
        let mut crowd: BTreeMap<u32, u32> = BTreeMap::new();
        for (i, word) in keywords.iter().enumerate() {
            let Ok(id) = u16::try_from(i) else { break };
            if word.len() == 3 {
                for last in (b'a'..=b'z').chain(b'0'..=b'9').chain([b'_', b'-']) {
                    gate.file([word[0], word[1], word[2], last], id, 0);
                }
                continue;
            }
            let grams = word.windows(4).take(24).enumerate();
            let best = grams.min_by_key(|(_, g)| {
                commonness(g) + crowd.get(&fold4(g)).copied().unwrap_or(0) * 3
            });
            if let Some((offset, gram)) = best {
                *crowd.entry(fold4(gram)).or_default() += 1;
                gate.file(
                    [gram[0], gram[1], gram[2], gram[3]],
                    id,
                    u8::try_from(offset).unwrap_or(0),
                );
            }
        }
        gate.keywords = keywords;
        gate
    }

    fn file(&mut self, gram: [u8; 4], keyword: u16, offset: u8) {
        let gram = u32::from_le_bytes(gram) | FOLD;
        let h = hash(gram);
        self.bits[(h >> 6) as usize % TABLE_WORDS] |= 1 << (h & 63);
        let h2 = hash2(gram);
        self.again[(h2 >> 6) as usize % TABLE_WORDS] |= 1 << (h2 & 63);
        let head = &mut self.heads[h as usize % HEADS];
        let next = *head;
        *head = u32::try_from(self.entries.len()).unwrap_or(NONE);
        self.entries.push(Entry {
            gram,
            keyword,
            offset,
            next,
        });
    }

    fn passes_again(&self, gram: u32) -> bool {
        let h = hash2(gram);
        (self.again[(h >> 6) as usize % TABLE_WORDS] >> (h & 63)) & 1 == 1
    }

    #[cold]
    #[inline(never)]
    fn confirm(&self, text: &[u8], at: usize, gram: u32, out: &mut Vec<Hit>) {
        let mut next = self.heads[hash(gram) as usize % HEADS];
        while let Some(entry) = self.entries.get(next as usize) {
            next = entry.next;
            if entry.gram != gram {
                continue;
            }
            let Some(start) = at.checked_sub(usize::from(entry.offset)) else {
                continue;
            };
            let word = &self.keywords[usize::from(entry.keyword)];
            if text
                .get(start..start + word.len())
                .is_some_and(|t| t.eq_ignore_ascii_case(word))
            {
                out.push(Hit {
                    at: u32::try_from(start).unwrap_or(NONE),
                    keyword: entry.keyword,
                });
            }
        }
    }
}

impl LiteralGate for GramGate {
    fn hits(&self, text: &[u8], out: &mut Vec<Hit>) {
        let first = out.len();
        let bits = &*self.bits;
        let test = |gram: u32| {
            let h = hash(gram);
            (bits[(h >> 6) as usize % TABLE_WORDS] >> (h & 63)) & 1
        };
        let mut at = 0;
        // Four grams a turn, out of one 8-byte load and one test.
        while let Some(chunk) = text.get(at..at + 8) {
            let word = u64::from_le_bytes([
                chunk[0], chunk[1], chunk[2], chunk[3], chunk[4], chunk[5], chunk[6], chunk[7],
            ]) | 0x2020_2020_2020_2020;
            let grams = [
                word as u32,
                (word >> 8) as u32,
                (word >> 16) as u32,
                (word >> 24) as u32,
            ];
            let set = [
                test(grams[0]),
                test(grams[1]),
                test(grams[2]),
                test(grams[3]),
            ];
            if (set[0] | set[1] | set[2] | set[3]) != 0 {
                for i in 0..4 {
                    if set[i] != 0 && self.passes_again(grams[i]) {
                        self.confirm(text, at + i, grams[i], out);
                    }
                }
            }
            at += 4;
        }
        while let Some(g) = text.get(at..at + 4) {
            let gram = fold4(g);
            if test(gram) != 0 && self.passes_again(gram) {
                self.confirm(text, at, gram, out);
            }
            at += 1;
        }
        out[first..].sort_unstable();
    }
}

fn hash(gram: u32) -> u32 {
    gram.wrapping_mul(0x9E37_79B1) >> (32 - TABLE_BITS)
}

fn hash2(gram: u32) -> u32 {
    (gram ^ (gram >> 15)).wrapping_mul(0x85EB_CA6B) >> (32 - TABLE_BITS)
}

fn fold4(g: &[u8]) -> u32 {
    u32::from_le_bytes([g[0], g[1], g[2], g[3]]) | FOLD
}

/// A guess at how often a gram occurs in prose, code and JSON: the sum of its letters' ranks.
fn commonness(gram: &[u8]) -> u32 {
    const RANKS: &[u8] = b"etaoinsrhldcumfpgwybvkxjqz";
    let mut sum = 0;
    for b in gram {
        let rank = RANKS.iter().position(|r| *r == b.to_ascii_lowercase());
        sum += match rank {
            Some(r) => 30 - u32::try_from(r).unwrap_or(26),
            None if *b == b' ' => 30,
            None if b.is_ascii_digit() => 8,
            None if *b >= 0x80 => 4,
            None => 10,
        };
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(words: &[&str], text: &str) -> Vec<(usize, u32)> {
        let gate = GramGate::new(words.iter().map(|w| w.as_bytes().into()).collect());
        let mut out = Vec::new();
        gate.hits(text.as_bytes(), &mut out);
        out.iter().map(|h| (usize::from(h.keyword), h.at)).collect()
    }

    /// What the gate must agree with: try every keyword at every position.
    fn naive(words: &[&str], text: &str) -> Vec<(usize, u32)> {
        let t = text.as_bytes();
        let mut out = Vec::new();
        for at in 0..t.len() {
            for (k, w) in words.iter().enumerate() {
                let tail_ok = w.len() > 3
                    || t.get(at + 3)
                        .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_' || *b == b'-');
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
        ];
        for text in texts {
            assert_eq!(hits(&words, text), naive(&words, text), "{text:?}");
        }
    }

    #[test]
    fn every_alignment_is_looked_at() {
        for pad in 0..20 {
            let text = format!("{}ghp_{}", "x".repeat(pad), "y".repeat(pad % 7));
            assert_eq!(
                hits(&["ghp_"], &text),
                vec![(0, u32::try_from(pad).unwrap())],
                "{pad}"
            );
        }
    }
}
