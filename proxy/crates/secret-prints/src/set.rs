//! Prints, compiled: where in a text one of their values stands.

use std::fmt;

use crate::{Print, PrintKey, SecretPrints, WINDOW};

/// A value shorter than this has to stand free: no letter, digit or `_` may touch it.
const FREE_BYTES: usize = 12;
const TAGS: usize = 1 << 16;

/// Prints that can be looked up. `Debug` gives their number only.
#[derive(Clone)]
pub struct PrintSet {
    key: PrintKey,
    /// One bit for each tag that some print has.
    tags: Box<[u64]>,
    /// By tag, and of one tag the longest first.
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
        prints.sort_unstable_by_key(|p| (p.tag, std::cmp::Reverse(p.len), p.digest));
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
    /// says whether there is budget for it.
    pub fn at(&self, text: &[u8], at: usize, mut look: impl FnMut(usize) -> bool) -> At {
        let mut found = At::default();
        let rest = text.get(at..).unwrap_or_default();
        let Some(window) = rest.first_chunk() else {
            return found;
        };
        let tag = self.key.tag(window);
        let first = self.prints.partition_point(|p| p.tag < tag);
        let mut known = (0, [0; 16]);
        for print in self.prints[first..].iter().take_while(|p| p.tag == tag) {
            let len = print.len as usize;
            let Some(piece) = rest.get(..len) else {
                found.cut = true;
                continue;
            };
            if len < FREE_BYTES && !print.glued && !stands_free(text, at, len) {
                continue;
            }
            if known.0 != len {
                if !look(len) {
                    return found;
                }
                known = (len, self.key.digest(piece));
            }
            if known.1 == print.digest {
                found.len = Some(len);
                return found;
            }
        }
        found
    }

    /// The text with a word in place of each value; `None` if there is none in it.
    pub fn cover(&self, text: &str, word: &str) -> Option<String> {
        let bytes = text.as_bytes();
        let (mut covered, mut end) = (String::new(), 0);
        for at in self.candidates(bytes) {
            if at < end || !text.is_char_boundary(at) {
                continue;
            }
            if let Some(len) = self.at(bytes, at, |_| true).len {
                covered.push_str(&text[end..at]);
                covered.push_str(word);
                // A value is text as a whole, or its codes are ASCII; a part of a long one may end inside a character.
                end = (at + len..=text.len()).find(|e| text.is_char_boundary(*e))?;
            }
        }
        (end > 0).then(|| covered + &text[end..])
    }
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
    fn values_are_covered() {
        let set = set(&["s3cr3t-v4lue", "pässwörter"]);
        let cases = [
            ("nothing", None),
            ("s3cr3t-v4lue", Some("[x]")),
            (
                "a s3cr3t-v4lue, s3cr3t-v4lues3cr3t-v4lue.",
                Some("a [x], [x][x]."),
            ),
            ("ä pässwörter ö", Some("ä [x] ö")),
            ("ä retröwssäp ö", Some("ä [x] ö")),
        ];
        for (text, expected) in cases {
            assert_eq!(set.cover(text, "[x]").as_deref(), expected, "{text}");
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
