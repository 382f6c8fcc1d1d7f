//! Prints, compiled: where in a text one of their values stands.

use std::cmp::Reverse;
use std::fmt;

use crate::{DIGEST_BYTES, Print, PrintKey, SecretPrints, WINDOW};

/// A value shorter than this has to stand free: no letter, digit or `_` may touch it.
const FREE_BYTES: usize = 12;
const TAGS: usize = 1 << 16;

/// Prints that can be looked up. `Debug` gives their number only.
#[derive(Clone)]
pub struct PrintSet {
    key: PrintKey,
    /// One bit for each tag that some print has.
    tags: Box<[u64]>,
    /// By tag, of one tag the longest first, and of one length those that letters may touch.
    prints: Vec<Print>,
}

/// What begins at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct At {
    /// Bytes of the longest value that stands there.
    pub len: Option<usize>,
    /// The text ends before a value that might stand there would.
    pub cut: bool,
}

impl PrintSet {
    /// Compiles prints.
    pub fn new(secrets: &SecretPrints) -> Self {
        let mut prints = secrets.prints.clone();
        prints.sort_unstable_by_key(|p| (p.tag, Reverse(p.len), Reverse(p.glued), p.digest));
        prints.dedup();
        let mut tags = vec![0; TAGS / 64].into_boxed_slice();
        for print in &prints {
            tags[usize::from(print.tag) / 64] |= 1 << (print.tag % 64);
        }
        Self {
            key: secrets.key.clone(),
            tags,
            prints,
        }
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.prints.is_empty()
    }

    /// Places where a value may begin: all where one does, and by chance one in 65,536 for each print.
    pub fn candidates<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
        let windows = text.array_windows::<WINDOW>().enumerate();
        windows
            .filter(|(_, window)| self.has(self.key.tag(window)))
            .map(|(at, _)| at)
    }

    fn has(&self, tag: u16) -> bool {
        self.tags[usize::from(tag) / 64] >> (tag % 64) & 1 == 1
    }

    /// What stands at the candidate `at`. `look` is asked before each hash, with the bytes that it is computed of, and
    /// says whether there is budget for it. Nothing costs more than that: however many values begin alike, there is one
    /// hash for each length of theirs.
    pub fn at(&self, text: &[u8], at: usize, mut look: impl FnMut(usize) -> bool) -> At {
        let mut found = At::default();
        let rest = text.get(at..).unwrap_or_default();
        let Some(window) = rest.first_chunk() else {
            return found;
        };
        let mut left = self.of_tag(self.key.tag(window));
        let longer = left.partition_point(|p| p.len as usize > rest.len());
        found.cut = longer > 0;
        left = &left[longer..];
        while let [first, ..] = left {
            let len = first.len as usize;
            let (alike, shorter) = left.split_at(left.partition_point(|p| p.len == first.len));
            left = shorter;
            let (glued, mut others) = alike.split_at(alike.partition_point(|p| p.glued));
            if len < FREE_BYTES && !stands_free(text, at, len) {
                others = &[];
            }
            if glued.is_empty() && others.is_empty() {
                continue;
            }
            if !look(len) {
                return found;
            }
            let digest = self.key.digest(&rest[..len]);
            if is_among(glued, &digest) || is_among(others, &digest) {
                found.len = Some(len);
                return found;
            }
        }
        found
    }

    fn of_tag(&self, tag: u16) -> &[Print] {
        let from = &self.prints[self.prints.partition_point(|p| p.tag < tag)..];
        &from[..from.partition_point(|p| p.tag == tag)]
    }
}

/// Of prints of one length, sorted.
fn is_among(prints: &[Print], digest: &[u8; DIGEST_BYTES]) -> bool {
    prints.binary_search_by_key(digest, |p| p.digest).is_ok()
}

impl fmt::Debug for PrintSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrintSet({} prints)", self.prints.len())
    }
}

fn stands_free(text: &[u8], at: usize, len: usize) -> bool {
    let touches = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let before = at.checked_sub(1).and_then(|n| text.get(n));
    !before.is_some_and(touches) && !text.get(at + len).is_some_and(touches)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    fn set(values: &[&str]) -> PrintSet {
        let key = PrintKey::new([5; 32]);
        let prints = values
            .iter()
            .flat_map(|v| key.prints(v.as_bytes()))
            .collect();
        PrintSet::new(&SecretPrints { key, prints })
    }

    fn found(set: &PrintSet, text: &str) -> Vec<(usize, usize)> {
        let bytes = text.as_bytes();
        let hits = set
            .candidates(bytes)
            .filter_map(|at| Some((at, set.at(bytes, at, |_| true).len?)));
        hits.collect()
    }

    #[test]
    fn a_value_is_found_wherever_it_stands() {
        let set = set(&["s3cr3t-v4lue", "s3cr3t-v4lue-longer", "tiny-one"]);
        let cases: [(&str, &[(usize, usize)]); 9] = [
            ("s3cr3t-v4lue", &[(0, 12)]),
            ("xs3cr3t-v4luey", &[(1, 12)]),
            ("s3cr3t-v4lue-longe", &[(0, 12)]),
            ("s3cr3t-v4lue-longer", &[(0, 19)]),
            ("eul4v-t3rc3s", &[(0, 12)]),
            ("f3pe3g-i4yhr", &[(0, 12)]),
            ("a tiny-one b", &[(2, 8)]),
            ("a tiny-one_b", &[]),
            ("S3CR3T-V4LUE s3cr3t-v4lu", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(found(&set, text), expected, "{text}");
        }
        assert!(found(&self::set(&[]), "s3cr3t-v4lue").is_empty());
    }

    #[test]
    fn a_short_value_is_found_in_its_codes() {
        let set = set(&["s3cr3tPw9"]);
        let base64 = |text: &str| STANDARD.encode(text);
        for text in [
            "s3cr3tPw9",
            "s3cr3tPw9\n",
            "=s3cr3tPw9",
            "a s3cr3tPw9",
            "x:s3cr3tPw9",
        ] {
            let code = base64(text);
            assert_eq!(found(&set, &code).len(), 1, "{text}: {code}");
            assert_eq!(found(&set, &format!("v={code}x")).len(), 1, "{text}");
        }
        assert!(found(&set, &base64("s3cr3tPw8")).is_empty());
    }

    #[test]
    fn a_cut_value_is_noticed_and_no_budget_means_no_hash() {
        let set = set(&["s3cr3t-v4lue"]);
        let cut = |text: &str| set.at(text.as_bytes(), 0, |_| true).cut;
        assert!(cut("s3cr3t-v4lu") && cut("s3cr3t-v"));
        assert!(!cut("s3cr3t-") && !cut("s3cr3t-v4lue") && !cut("another text"));
        assert_eq!(set.at(b"s3cr3t-v4lue", 0, |_| false), At::default());
    }

    #[test]
    fn values_that_begin_alike_cost_a_hash_for_each_length() {
        let values: Vec<String> = (0..5000)
            .map(|n| format!("begins-alike-{n:04}{}", "x".repeat(n % 3)))
            .collect();
        let set = set(&values.iter().map(String::as_str).collect::<Vec<_>>());
        let mut hashed = Vec::new();
        let found = set.at(b"begins-alike-none of all these", 0, |bytes| {
            hashed.push(bytes);
            true
        });
        assert_eq!((found, hashed), (At::default(), vec![19, 18, 17]));
        for value in &values {
            let found = set.at(value.as_bytes(), 0, |_| true);
            assert_eq!(found.len, Some(value.len()), "{value}");
        }
    }

    #[test]
    fn chance_hits_are_as_rare_as_said() {
        let values: Vec<String> = (0..100)
            .map(|n| format!("value-number-{n}-of-many"))
            .collect();
        let set = set(&values.iter().map(String::as_str).collect::<Vec<_>>());
        let mut x = 1u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (x >> 56) as u8
        })
        .take(1 << 20)
        .collect();
        // All begin alike, so there are few tags; the ends, backwards, differ.
        let expected = (1 << 20)
            * set
                .tags
                .iter()
                .map(|t| t.count_ones() as usize)
                .sum::<usize>()
            / TAGS;
        let hits = set.candidates(&noise).count();
        assert!(
            (expected / 2..expected * 2).contains(&hits),
            "{hits}, not about {expected}"
        );
    }
}
