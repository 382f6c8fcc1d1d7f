//! The gate in pure Rust. It looks at every 4 bytes of the text, letters folded by setting one bit, in a bitmap that
//! stays in the first-level cache. The positions do not depend on each other, so this runs at a byte a cycle where an
//! automaton waits for each load; what the bitmap lets pass is then confirmed against the few keywords that hold that
//! gram. Each keyword is filed under the gram of its own that ordinary text holds least often.

use std::collections::BTreeMap;

use super::{Hit, LiteralGate, goes_on_after_three};

const WORD_BITS: u32 = 12;
const TABLE_WORDS: usize = 1 << WORD_BITS;
const FOLD: u32 = 0x2020_2020;
const FOLD64: u64 = 0x2020_2020_2020_2020;
const HEADS: usize = 1 << 14;

/// The pure Rust gate.
#[derive(Debug)]
pub(crate) struct GramGate {
    /// Each gram sets two bits of one word, so that one load answers for both.
    bits: Box<[u64; TABLE_WORDS]>,
    /// Where each bucket's entries begin; one more at the end.
    heads: Box<[u32]>,
    /// By bucket.
    entries: Box<[Entry]>,
    keywords: Vec<Box<[u8]>>,
}

/// A keyword under one of its grams.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Up to eight bytes from the gram on, folded, and which of them the keyword has: tells most texts apart from
    /// the keyword without looking it up.
    bytes: u64,
    mask: u64,
    keyword: u16,
    offset: u8,
}

impl GramGate {
    /// A gate for these keywords.
    pub fn new(keywords: Vec<Box<[u8]>>) -> Self {
        let mut gate = Self {
            bits: Box::new([0; TABLE_WORDS]),
            heads: vec![0; HEADS + 1].into(),
            entries: Box::default(),
            keywords: Vec::new(),
        };
        let mut entries = Vec::new();
        let mut crowd: BTreeMap<u32, u32> = BTreeMap::new();
        for (i, word) in keywords.iter().enumerate() {
            let Ok(id) = u16::try_from(i) else { break };
            if word.len() == 3 {
                // Upper case is folded away.
                for last in
                    (0..=b'z').filter(|b| !b.is_ascii_uppercase() && goes_on_after_three(*b))
                {
                    entries.push(Entry::new(&[word[0], word[1], word[2], last], 0, id));
                }
                continue;
            }
            let grams = word.windows(4).take(24).enumerate();
            let best = grams
                .min_by_key(|(_, g)| commonness(g) + crowd.get(&fold4(g)).copied().unwrap_or(0));
            if let Some((offset, gram)) = best {
                *crowd.entry(fold4(gram)).or_default() += 1;
                entries.push(Entry::new(word, offset, id));
            }
        }
        gate.keywords = keywords;
        gate.file(entries);
        gate
    }

    fn file(&mut self, mut entries: Vec<Entry>) {
        entries.sort_by_key(|e| (bucket(e.gram()), e.keyword));
        for entry in &entries {
            let h = hash(entry.gram());
            self.bits[word_of(h)] |= 1 << (h & 63) | 1 << (h >> 6 & 63);
            self.heads[bucket(entry.gram()) + 1] += 1;
        }
        for i in 0..HEADS {
            self.heads[i + 1] += self.heads[i];
        }
        self.entries = entries.into();
    }

    #[cold]
    #[inline(never)]
    fn confirm(&self, text: &[u8], at: usize, gram: u32, out: &mut Vec<Hit>) {
        let b = bucket(gram);
        let word = folded_word(text, at);
        for entry in &self.entries[self.heads[b] as usize..self.heads[b + 1] as usize] {
            if (word ^ entry.bytes) & entry.mask != 0 {
                continue;
            }
            let Some(start) = at.checked_sub(usize::from(entry.offset)) else {
                continue;
            };
            let word = &self.keywords[usize::from(entry.keyword)];
            if text
                .get(start..start + word.len())
                .is_some_and(|t| t.eq_ignore_ascii_case(word))
                && (word.len() > 3 || text.get(start + 3).is_some_and(|b| goes_on_after_three(*b)))
            {
                out.push(Hit {
                    at: u32::try_from(start).unwrap_or(u32::MAX),
                    keyword: entry.keyword,
                });
            }
        }
    }
}

impl Entry {
    /// `word` under its gram at `offset`. A word made longer by what may follow it counts as far as it goes.
    fn new(word: &[u8], offset: usize, keyword: u16) -> Self {
        let len = (word.len() - offset).min(8);
        let mut mask = [0; 8];
        mask[..len].fill(0xFF);
        Self {
            bytes: folded_word(word, offset),
            mask: u64::from_le_bytes(mask),
            keyword,
            offset: u8::try_from(offset).unwrap_or(0),
        }
    }

    fn gram(&self) -> u32 {
        self.bytes as u32
    }
}

/// Eight bytes from `at` on with letters folded; past the end, blanks.
fn folded_word(text: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    let rest = text.get(at..).unwrap_or_default();
    let len = rest.len().min(8);
    bytes[..len].copy_from_slice(&rest[..len]);
    u64::from_le_bytes(bytes) | FOLD64
}

impl LiteralGate for GramGate {
    fn hits(&self, text: &[u8], out: &mut Vec<Hit>) {
        let first = out.len();
        let bits = &*self.bits;
        let test = |gram: u32| {
            let h = hash(gram);
            let word = bits[word_of(h)];
            (word >> (h & 63)) & (word >> (h >> 6 & 63)) & 1
        };
        let mut at = 0;
        // Four grams a turn, out of one 8-byte load and one test.
        while let Some(chunk) = text.get(at..at + 8) {
            let word = u64::from_le_bytes([
                chunk[0], chunk[1], chunk[2], chunk[3], chunk[4], chunk[5], chunk[6], chunk[7],
            ]) | FOLD64;
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
                    if set[i] != 0 {
                        self.confirm(text, at + i, grams[i], out);
                    }
                }
            }
            at += 4;
        }
        while let Some(g) = text.get(at..at + 4) {
            let gram = fold4(g);
            if test(gram) != 0 {
                self.confirm(text, at, gram, out);
            }
            at += 1;
        }
        out[first..].sort_unstable();
    }
}

/// Of the product, the upper bits name the word and the 12 below them two bits in it.
fn hash(gram: u32) -> u32 {
    gram.wrapping_mul(0x9E37_79B1) >> (32 - WORD_BITS - 12)
}

fn word_of(hash: u32) -> usize {
    (hash >> 12) as usize % TABLE_WORDS
}

fn bucket(gram: u32) -> usize {
    hash(gram) as usize % HEADS
}

fn fold4(g: &[u8]) -> u32 {
    u32::from_le_bytes([g[0], g[1], g[2], g[3]]) | FOLD
}

/// How often a gram occurs in prose, code and JSON, as a logarithm: the sum over its pairs of bytes.
fn commonness(gram: &[u8]) -> u32 {
    let class = |b: u8| match b {
        b'a'..=b'z' => Some(usize::from(b - b'a')),
        b' ' => Some(26),
        _ => None,
    };
    let pair = |w: &[u8]| match (class(w[0]), class(w[1])) {
        (Some(a), Some(b)) => u32::from(PAIRS[a][b] - b'0'),
        _ => 3,
    };
    gram.windows(2).map(pair).sum()
}

/// How often one letter or blank follows another, in steps of 2^(4/3), counted over 8 MB of documentation, source
/// code and tool results.
const PAIRS: [&[u8; 27]; 27] = [
    b"467634626157772617785544526",
    b"524362225516225314426001524",
    b"724373265166427325475321315",
    b"633583227114236315545222417",
    b"747767534148684658873557528",
    b"623455317005347316445110308",
    b"423261345104354205645210126",
    b"612281016013326104344011216",
    b"556657513137687526771515054",
    b"300050001011004101303010103",
    b"412361214113132312423140115",
    b"743587217126246413666230526",
    b"753472115124526602545110206",
    b"736775726155357413675531418",
    b"466746415256685608676554226",
    b"724473235026226516465331505",
    b"100100000002011002115000002",
    b"735584627144577406665431607",
    b"525383457145446624786342518",
    b"735484287125437517667242628",
    b"454465405016663607661102004",
    b"611071115000223102111111003",
    b"521352056103145115410131014",
    b"425242114003202401261004214",
    b"222242114003344602551230116",
    b"200050014002212001111000112",
    b"877777668457777747886674449",
];
