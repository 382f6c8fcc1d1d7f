//! Keywords that stand where a word begins. The words that give a number its meaning count only as words, so nothing is asked
//! of the places inside of words: a text has one beginning for every five or six bytes.

use super::{Hit, Keywords};

/// Bits of a hash that name a bit of the bitmap, and those that name a bucket.
const BITS: u32 = 16;
const BUCKET_BITS: u32 = 12;
const FACTOR: u32 = 0x9E37_79B1;
const FOLD: u32 = 0x2020_2020;
/// Bytes that a keyword is filed by.
const GRAM: usize = 4;

/// Looks for keywords at the beginnings of words.
#[derive(Debug)]
pub(crate) struct HeadGate {
    /// What keywords are filed by, a bit for each: four bytes from the first letter on, or from the beginning.
    bits: Box<[u64; 1 << (BITS - 6)]>,
    /// Where each bucket's entries begin; one more at the end.
    buckets: Box<[u32]>,
    entries: Box<[Entry]>,
    keywords: Keywords,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    gram: u32,
    /// Its place among the gate's keywords.
    keyword: u16,
    /// How far into the keyword these bytes begin.
    offset: u16,
}

/// A letter, or part of one that is not ASCII.
fn is_letter(b: &u8) -> bool {
    b.is_ascii_alphabetic() || !b.is_ascii()
}

/// How far into a keyword its first word begins, if enough bytes stand from there on.
fn head_of(word: &[u8]) -> Option<usize> {
    let letter = word.iter().position(is_letter)?;
    (word.len() >= letter + GRAM).then_some(letter)
}

impl HeadGate {
    pub fn new(keywords: Keywords) -> Self {
        let mut gate = Self {
            bits: Box::new([0; _]),
            buckets: vec![0; (1 << BUCKET_BITS) + 1].into(),
            entries: Box::default(),
            keywords,
        };
        let mut entries = Vec::new();
        for (keyword, (_, word)) in (0u16..).zip(&gate.keywords) {
            let Some(offset) = head_of(word) else {
                debug_assert!(false, "context phrases are filed by a word");
                continue;
            };
            let Some(head) = word[offset..].first_chunk::<GRAM>() else {
                continue;
            };
            entries.push(Entry {
                gram: u32::from_le_bytes(*head) | FOLD,
                keyword,
                offset: u16::try_from(offset).unwrap_or(u16::MAX),
            });
        }
        entries.sort_by_key(|e| bucket(e.gram));
        for entry in &entries {
            let bit = bit(entry.gram);
            gate.bits[bit / 64] |= 1 << (bit % 64);
            gate.buckets[bucket(entry.gram) + 1] += 1;
        }
        for nth in 0..1 << BUCKET_BITS {
            gate.buckets[nth + 1] += gate.buckets[nth];
        }
        gate.entries = entries.into();
        gate
    }

    /// Can the part of a phrase be looked for by a word in it?
    pub fn takes(part: &[u8]) -> bool {
        part.len() == GRAM - 1 && is_letter(&part[0]) || head_of(part).is_some()
    }

    /// The keywords that a part is looked for by: what is too short, with all that may stand after a word.
    pub fn keywords(part: &[u8]) -> Vec<Vec<u8>> {
        const AFTER: &[u8] = b" _:=\"\x1e\x1f-.,;\n|')#/&<>\t\r(s*`?\\]\xEF";
        if part.len() >= GRAM {
            return vec![part.to_vec()];
        }
        let with = |after: &u8| part.iter().chain([after]).copied().collect();
        AFTER.iter().map(with).collect()
    }

    /// Appends the hits whose first letter stands at one of `starts`, which are bytes of the block at `at` that begin words.
    pub fn hits(&self, text: &[u8], at: usize, mut starts: u64, out: &mut Vec<Hit>) {
        while starts != 0 {
            self.look(text, at + starts.trailing_zeros() as usize, out);
            starts &= starts - 1;
        }
    }

    /// Appends the keywords that are filed under the bytes there, if they stand there.
    #[inline]
    fn look(&self, text: &[u8], place: usize, out: &mut Vec<Hit>) {
        let Some(gram) = text.get(place..).and_then(|t| t.first_chunk::<GRAM>()) else {
            return;
        };
        let gram = u32::from_le_bytes(*gram) | FOLD;
        let bit = bit(gram);
        if self.bits[bit / 64] >> (bit % 64) & 1 == 0 {
            return;
        }
        let bucket = bucket(gram);
        let entries = self.buckets[bucket] as usize..self.buckets[bucket + 1] as usize;
        for entry in self.entries[entries].iter().filter(|e| e.gram == gram) {
            let (number, word) = &self.keywords[usize::from(entry.keyword)];
            let Some(start) = place.checked_sub(usize::from(entry.offset)) else {
                continue;
            };
            let there = text.get(start..start + word.len());
            if there.is_some_and(|t| t.eq_ignore_ascii_case(word)) {
                out.push(Hit {
                    at: crate::text::to_u32(start),
                    keyword: *number,
                });
            }
        }
    }
}

fn hash(gram: u32) -> u32 {
    gram.wrapping_mul(FACTOR)
}

fn bit(gram: u32) -> usize {
    (hash(gram) >> (32 - BITS)) as usize
}

fn bucket(gram: u32) -> usize {
    (hash(gram) >> (32 - BITS - 2)) as usize % (1 << BUCKET_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::Traces;

    #[test]
    fn finds_what_trying_every_beginning_does() {
        let words = [
            "card", "carda", "abc ", "abc-", "(card)", "/card", "été", "наме", "no a", "a n o",
        ];
        let keywords: Keywords = (0u16..)
            .zip(words.iter().map(|w| w.as_bytes().into()))
            .collect();
        let gate = HeadGate::new(keywords);
        let pieces = [
            "card", "Card", "CARD", "a", "abc", "ABC", " ", "-", "/", "(", ")", "797", "été",
            "наме", "x", "no a", "a n o", "9",
        ];
        let mut seed = 5_u64;
        let mut next = |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % n
        };
        for _ in 0..3000 {
            let text: String = (0..next(60)).map(|_| pieces[next(pieces.len())]).collect();
            let text = text.as_bytes();
            let mut traces = Traces::default();
            traces.read(text);
            let (mut got, mut starts) = (Vec::new(), Vec::new());
            traces.word_starts(&mut starts);
            for (block, starts) in starts.iter().enumerate() {
                gate.hits(text, block * crate::traces::BLOCK, *starts, &mut got);
            }
            let mut got: Vec<_> = got.iter().map(|h| (h.at as usize, h.keyword)).collect();
            got.sort_unstable();
            let mut want = Vec::new();
            for at in 0..text.len() {
                let begins = |at: usize| {
                    let (b, before) = (text[at], at.checked_sub(1).map_or(b' ', |i| text[i]));
                    !b.is_ascii_alphabetic()
                        || !before.is_ascii_alphabetic()
                        || before.is_ascii_lowercase() && b.is_ascii_uppercase()
                };
                for (nth, word) in (0u16..).zip(words) {
                    let there = text.get(at..at + word.len());
                    if there.is_some_and(|t| t.eq_ignore_ascii_case(word.as_bytes())) && begins(at)
                    {
                        want.push((at, nth));
                    }
                }
            }
            assert_eq!(got, want, "{:?}", String::from_utf8_lossy(text));
        }
    }
}
