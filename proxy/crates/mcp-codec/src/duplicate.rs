//! Equal keys in one object, found without giving an attacker anything quadratic to aim at.
//!
//! Small objects compare the first eight bytes of every pair. Larger ones sort a hash of each key; the hash has no secret,
//! and needs none: keys made to collide end up in one run which is sorted by text, so the worst case stays n log n.

use std::ops::Range;

use crate::document::{Tag, Token};

const PAIRWISE_MAX: usize = 16;

struct Keys<'a> {
    text: &'a str,
    side: &'a [u8],
    decoded: &'a [Range<u32>],
    tape: &'a [Token],
}

/// The later one of two equal keys of the object at `object`, which has `count` members and is closed.
#[inline]
pub(crate) fn find(
    text: &str,
    side: &[u8],
    decoded: &[Range<u32>],
    tape: &[Token],
    object: u32,
    count: u32,
) -> Option<u32> {
    let keys = Keys {
        text,
        side,
        decoded,
        tape,
    };
    if count as usize <= PAIRWISE_MAX {
        keys.find_pairwise(object)
    } else {
        keys.find_sorted(object, count)
    }
}

impl<'a> Keys<'a> {
    fn of(&self, object: u32) -> impl Iterator<Item = u32> {
        let end = self.tape[object as usize].link;
        let mut at = object + 1;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let key = at;
            let value = &self.tape[key as usize + 1];
            at = if matches!(value.tag(), Tag::Object | Tag::Array) {
                value.link
            } else {
                key + 2
            };
            Some(key)
        })
    }

    fn bytes(&self, key: u32) -> &'a [u8] {
        let token = &self.tape[key as usize];
        if token.is_escaped() {
            let range = &self.decoded[token.link as usize];
            &self.side[range.start as usize..range.end as usize]
        } else {
            &self.text.as_bytes()[token.start as usize + 1..token.end as usize - 1]
        }
    }

    #[inline]
    fn find_pairwise(&self, object: u32) -> Option<u32> {
        let mut heads = [(0u64, 0u32); PAIRWISE_MAX];
        for (len, key) in self.of(object).enumerate() {
            let head = self.head(key);
            for &(other_head, other) in &heads[..len] {
                if head == other_head && self.bytes(key) == self.bytes(other) {
                    return Some(key);
                }
            }
            heads[len] = (head, key);
        }
        None
    }

    /// The first eight bytes, with the length mixed in. Read from the document in one load where that is possible; a key
    /// is followed by at least a quote, a colon, a value and a brace.
    #[inline]
    fn head(&self, key: u32) -> u64 {
        let token = &self.tape[key as usize];
        let len = (token.end - token.start - 2) as usize;
        let at = token.start as usize + 1;
        let word = match self
            .text
            .as_bytes()
            .get(at..)
            .and_then(|rest| rest.first_chunk::<8>())
        {
            Some(chunk) if !token.is_escaped() => {
                let word = u64::from_le_bytes(*chunk);
                if len < 8 {
                    word & ((1 << (8 * len)) - 1)
                } else {
                    word
                }
            }
            _ => return padded_head(self.bytes(key)),
        };
        mix_len(word, len)
    }

    #[cold]
    fn find_sorted(&self, object: u32, count: u32) -> Option<u32> {
        let mut hashed = Vec::with_capacity(count as usize);
        hashed.extend(self.of(object).map(|key| (hash(self.bytes(key)), key)));
        hashed.sort_unstable();
        hashed
            .chunk_by_mut(|a, b| a.0 == b.0)
            .filter(|run| run.len() > 1)
            .find_map(|run| {
                run.sort_unstable_by(|a, b| {
                    self.bytes(a.1).cmp(self.bytes(b.1)).then(a.1.cmp(&b.1))
                });
                run.windows(2)
                    .find(|pair| self.bytes(pair[0].1) == self.bytes(pair[1].1))
                    .map(|pair| pair[1].1)
            })
    }
}

fn padded_head(bytes: &[u8]) -> u64 {
    let mut head = [0; 8];
    let len = bytes.len().min(8);
    head[..len].copy_from_slice(&bytes[..len]);
    mix_len(u64::from_le_bytes(head), bytes.len())
}

fn mix_len(word: u64, len: usize) -> u64 {
    word ^ (len as u64).rotate_right(8)
}

/// Spreads ordinary keys well; nothing depends on it being hard to collide.
fn hash(bytes: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |state: u64, word: u64| {
        let product = (state ^ word) as u128 * MULTIPLIER as u128;
        (product >> 64) as u64 ^ product as u64
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let state = words.iter().fold(MULTIPLIER, |state, word| {
        mix(state, u64::from_le_bytes(*word))
    });
    mix(mix(state, padded_head(rest)), bytes.len() as u64)
}
