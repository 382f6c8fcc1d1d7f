//! What a scan reports. Nothing here holds or shows the matched text.

use std::fmt;

use crate::{Category, OverBudget, RuleId};

/// The result of scanning one message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Sorted by leaf, then start.
    pub findings: Vec<Finding>,
    /// Set when a bound of the budget cut the scan short: "no findings" is then no statement.
    pub over_budget: Option<OverBudget>,
}

/// One match of one rule in one leaf. A value split over leaves gives one finding for each part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: RuleId,
    /// The rule's category.
    pub category: Category,
    /// The leaf's index in the iterator given to the scanner.
    pub leaf: u32,
    /// First byte of the match in the leaf's text; a character boundary.
    pub start: u32,
    /// One past the last byte; a character boundary.
    pub end: u32,
    /// 0 to 100: how sure the rule is of this match.
    pub confidence: u8,
    /// The encodings the value lay under, outermost first.
    pub layers: Layers,
    /// Keyed hash of the matched value (decoded, whole even when split).
    pub fingerprint: Fingerprint,
    /// Bit `n`: the whole value (decoded) matches the `n`-th of the [allowlist's
    /// patterns](crate::Own::allow_patterns).
    pub marks: u64,
}

/// One decoding step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Layer {
    /// JSON text inside a string.
    Json = 1,
    /// `\uXXXX`, `\xNN`, `\n`... written out in text.
    Escapes,
    /// Base64, either alphabet, padded or not.
    Base64,
    /// Base32 (RFC 4648).
    Base32,
    /// Hexadecimal bytes.
    Hex,
    /// `%41`.
    Percent,
    /// `&#65;`, `&amp;`.
    Html,
    /// Gzip.
    Gzip,
    /// Zlib or raw deflate.
    Zlib,
    /// Bzip2.
    Bzip2,
    /// LZMA, in .xz files or alone.
    Xz,
    /// Zstandard (RFC 8878).
    Zstd,
    /// Invisible characters and marks taken out, compatibility forms and look-alike letters folded.
    Fold,
    /// Text hidden in Unicode tag characters or variation selectors.
    Hidden,
    /// `"a" + "b"` joined.
    Concat,
    /// Spaces, line breaks, dots or dashes between single characters taken out.
    Spaced,
    /// Read backwards.
    Reversed,
    /// Letters moved along the alphabet, by 13 as a rule, or mirrored in it.
    Rot13,
    /// Digits and signs standing for letters (`1gn0r3`).
    Leet,
    /// Numbers standing for characters: `103, 104, 112`.
    Codes,
    /// Soft line breaks and `=41` of mail.
    QuotedPrintable,
    /// Adjacent leaves joined.
    Joined,
    /// Base58, without the letters that look alike.
    Base58,
    /// Base85 in the alphabets of Adobe, Git and ZeroMQ.
    Base85,
    /// Uuencoded files.
    Uuencode,
    /// Colours and overstrikes of a terminal, taken out.
    Terminal,
    /// A number as what it means: `4.5395e15`.
    Number,
    /// A table in text, each field under the name of its column.
    Table,
    /// Lines behind the signs of a comment, a quotation or a listing, put together as they are read, and values that a line cut.
    Wrapped,
}

impl Layer {
    /// The word used in logs, audit records and `explain`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Escapes => "escapes",
            Self::Base64 => "base64",
            Self::Base32 => "base32",
            Self::Hex => "hex",
            Self::Percent => "percent",
            Self::Html => "html",
            Self::Gzip => "gzip",
            Self::Zlib => "zlib",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
            Self::Fold => "fold",
            Self::Hidden => "hidden",
            Self::Concat => "concat",
            Self::Spaced => "spaced",
            Self::Reversed => "reversed",
            Self::Rot13 => "rot13",
            Self::Leet => "leet",
            Self::Codes => "codes",
            Self::QuotedPrintable => "quoted-printable",
            Self::Joined => "joined",
            Self::Base58 => "base58",
            Self::Base85 => "base85",
            Self::Uuencode => "uuencode",
            Self::Terminal => "terminal",
            Self::Number => "number",
            Self::Table => "table",
            Self::Wrapped => "wrapped",
        }
    }
}

/// A chain of at most [`Layers::MAX`] decoding steps, outermost first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Layers {
    steps: [Option<Layer>; Self::MAX],
}

impl Layers {
    /// The longest chain that can be written down; the scanner goes no deeper.
    pub const MAX: usize = 8;

    /// The chain with one more step inside, or `None` when it is full.
    pub fn then(mut self, layer: Layer) -> Option<Self> {
        let free = self.steps.iter_mut().find(|s| s.is_none())?;
        *free = Some(layer);
        Some(self)
    }

    /// The steps, outermost first.
    pub fn iter(&self) -> impl Iterator<Item = Layer> + '_ {
        self.steps.iter().map_while(|s| *s)
    }

    /// How many steps.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// True when the value stood in the leaf as it is.
    pub fn is_empty(&self) -> bool {
        self.steps[0].is_none()
    }
}

impl fmt::Display for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, layer) in self.iter().enumerate() {
            if i > 0 {
                f.write_str(">")?;
            }
            f.write_str(layer.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// The key that fingerprints are made with. Shown nowhere.
#[derive(Clone)]
pub struct FingerprintKey([u8; 32]);

impl FingerprintKey {
    /// A key from 32 secret bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The fingerprint of a value.
    pub fn fingerprint(&self, value: &[u8]) -> Fingerprint {
        let hash = blake3::keyed_hash(&self.0, value);
        let mut out = [0; 16];
        out.copy_from_slice(&hash.as_bytes()[..16]);
        Fingerprint(out)
    }
}

impl fmt::Debug for FingerprintKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FingerprintKey(..)")
    }
}

/// Keyed BLAKE3 of a matched value, cut to 128 bits. Same value and key, same fingerprint; the value cannot be
/// had back, nor guessed without the key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 16]);

impl Fingerprint {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_read_outermost_first_and_are_bounded() {
        let chain = Layers::default()
            .then(Layer::Base64)
            .and_then(|l| l.then(Layer::Json))
            .unwrap();
        assert_eq!(chain.to_string(), "base64>json");
        assert_eq!(chain.len(), 2);
        let mut full = Layers::default();
        for _ in 0..Layers::MAX {
            full = full.then(Layer::Hex).unwrap();
        }
        assert!(full.then(Layer::Hex).is_none());
    }

    #[test]
    fn the_key_decides_the_fingerprint_and_is_not_shown() {
        let (a, b) = (FingerprintKey::new([1; 32]), FingerprintKey::new([2; 32]));
        assert_eq!(a.fingerprint(b"v"), a.fingerprint(b"v"));
        assert_ne!(a.fingerprint(b"v"), b.fingerprint(b"v"));
        assert_eq!(format!("{a:?}"), "FingerprintKey(..)");
    }
}
