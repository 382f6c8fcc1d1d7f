//! What a sentence orders: the words in it fall into classes, and some classes together make an order.
//!
//! ```text
//!  text around a keyword ─▶ plain (small letters, no accents) ─▶ words by class ─▶ relations ─▶ combinations
//! ```
//!
//! Words, relations and combinations are data in `words.txt` and `orders.txt`. It never looks at where a text came from.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::bits::{BITS_MAX, Bits};
use super::plain::{plain, unspaced};

/// Most languages told apart. Words of one do not go with words of another: `die` is not `die`.
const LANGUAGES_MAX: usize = 44;
const _: () = assert!(LANGUAGES_MAX <= u64::BITS as usize);
/// The language of what stands in texts of any.
const ALL: usize = 0;
const ENGLISH: u8 = 1;

/// The classes of a sentence, by language.
pub(super) struct Classes {
    of: [Bits; LANGUAGES_MAX],
    /// A bit for each language that has any. Most sentences have words of two or three.
    languages: u64,
}

pub(super) const NOTHING: Classes = Classes {
    of: [Bits::NONE; LANGUAGES_MAX],
    languages: 0,
};

impl Classes {
    pub fn is_nothing(&self) -> bool {
        self.languages == 0
    }

    fn add(&mut self, language: u8, class: u16) {
        self.of[usize::from(language)].add(class);
        self.languages |= 1 << language;
    }

    /// The languages there are, from the lowest.
    fn languages(&self) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.languages;
        std::iter::from_fn(move || {
            let language = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (language < LANGUAGES_MAX).then_some(language)
        })
    }

    /// Those of a language and those that stand in texts of any.
    fn with_all(&self, language: usize) -> Bits {
        self.of[language] | self.of[ALL]
    }
}

/// Words noted of one sentence; what is longer is no sentence.
const WORDS_MAX: usize = 256;

/// Words and their numbers, by their heads.
type Heads = HashMap<u64, Vec<(Box<[u8]>, usize)>, BuildHasherDefault<HeadHasher>>;

/// The words, relations and combinations.
pub(super) struct Orders {
    /// All words, for texts that are not ASCII.
    words: AhoCorasick,
    /// Those that may begin inside another word, for texts that are.
    inner: AhoCorasick,
    /// For each pattern of `inner`, which of `words` it is.
    inner_words: Vec<usize>,
    /// The others, by their first bytes.
    heads: Heads,
    /// A bit for each of these.
    heads_seen: Box<[u64; HEAD_BITS / 64]>,
    /// For each pattern of `words`, what it stands for.
    meanings: Vec<Vec<Meaning>>,
    relations: Vec<Relation>,
    combinations: Vec<Combination>,
    /// For each class, the combinations that may begin with it.
    by_first: Vec<Vec<usize>>,
    /// The class of negations.
    neg: u16,
    /// The class of names for machines.
    machine: u16,
    /// The class of every sentence that no rule for wordings may know: not in English, or misspelt.
    unread: u16,
}

#[derive(Clone, Copy, Debug)]
struct Meaning {
    class: u16,
    language: u8,
    /// Counts only where a command may begin.
    commands: bool,
    /// More letters may follow.
    stem: bool,
    /// More letters may stand before.
    tail: bool,
    /// Does not count right behind a negation.
    affirmed: bool,
}

/// A class that is there when one stands within so many bytes of another.
#[derive(Debug)]
struct Relation {
    class: u16,
    first: Bits,
    second: Bits,
    gap_max: usize,
    either_order: bool,
}

#[derive(Debug)]
struct Combination {
    /// The first of `here`, which most sentences lack.
    first: Bits,
    /// One of each in the same sentence.
    here: Vec<Bits>,
    not_here: Bits,
    /// One of each here or in a sentence beside it.
    near: Vec<Bits>,
    not_near: Bits,
}

/// A word in a sentence.
#[derive(Clone, Copy)]
struct Seen {
    class: u16,
    language: u8,
    start: usize,
    end: usize,
}

/// The built-in ones.
pub(super) static ORDERS: LazyLock<Orders> = LazyLock::new(|| {
    Orders::read(
        concat!(
            include_str!("words.txt"),
            "\n",
            include_str!("wider.txt"),
            "\n",
            include_str!("later.txt"),
            "\n",
            include_str!("tongues.txt"),
            "\n",
            include_str!("plays.txt")
        ),
        include_str!("orders.txt"),
    )
});

impl Orders {
    /// Reads both files. They are part of the program: an error in them is one of the program.
    pub fn read(words: &str, orders: &str) -> Self {
        let mut names = Names::default();
        let mut patterns: Vec<String> = Vec::new();
        let mut meanings: Vec<Vec<Meaning>> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        let (mut class, mut languages) = ((0, false), Names::default());
        languages.number("all");
        languages.number("en");
        for line in lines(words) {
            if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                class = (
                    names.number(name.trim_end_matches('!')),
                    name.ends_with('!'),
                );
                continue;
            }
            let (language, listed) = line.split_once(": ").expect("words have a language");
            let language = languages.number(language);
            assert!(usize::from(language) < LANGUAGES_MAX, "too many languages");
            let language = language as u8;
            for word in listed.split_whitespace() {
                let (meaning, text) = meaning(word, class, language);
                let at = *known.entry(text.clone()).or_insert_with(|| {
                    patterns.push(text);
                    meanings.push(Vec::new());
                    meanings.len() - 1
                });
                meanings[at].push(meaning);
            }
        }
        let (mut relations, mut combinations) = (Vec::new(), Vec::new());
        for line in lines(orders) {
            if let Some((name, rest)) = line.split_once(" = ") {
                relations.push(Relation::read(name, rest, &mut names));
            } else if let Some((_, rest)) = line.split_once(": ") {
                combinations.push(Combination::read(rest, &mut names));
            }
        }
        let (mut inner, mut inner_words) = (Vec::new(), Vec::new());
        let mut heads = Heads::default();
        for (at, word) in patterns.iter().enumerate().filter(|(_, w)| w.is_ascii()) {
            if meanings[at].iter().any(|m| m.tail) || !word.as_bytes()[0].is_ascii_alphanumeric() {
                inner.push(word.clone());
                inner_words.push(at);
            } else {
                let bytes: Box<[u8]> = word.as_bytes().into();
                let known = heads.entry(head(&bytes)).or_insert_with(Vec::new);
                known.push((bytes, at));
            }
        }
        let mut heads_seen = Box::new([0; HEAD_BITS / 64]);
        for bit in heads.keys().map(|head| mixed(*head)) {
            heads_seen[bit / 64] |= 1 << (bit % 64);
        }
        let mut by_first = vec![Vec::new(); BITS_MAX];
        for (at, combination) in combinations.iter().enumerate() {
            combination.first.each().for_each(|c| by_first[c].push(at));
        }
        let words = automaton(&patterns);
        let inner = automaton(&inner);
        Self {
            words,
            inner,
            inner_words,
            heads_seen,
            heads,
            meanings,
            relations,
            combinations,
            by_first,
            neg: names.number("neg"),
            machine: names.number("machine"),
            unread: names.number("unread"),
        }
    }

    /// The classes that a sentence in plain letters has.
    pub fn classes(&self, sentence: &str) -> Classes {
        let mut seen: Vec<Seen> = Vec::new();
        let mut classes = NOTHING;
        self.each_word(sentence, |word, start, end| {
            for meaning in &self.meanings[word] {
                if seen.len() < WORDS_MAX
                    && meaning.holds(sentence, start, end)
                    && !(meaning.affirmed && self.negated(&seen, meaning.language, start))
                {
                    classes.add(meaning.language, meaning.class);
                    seen.push(Seen {
                        class: meaning.class,
                        language: meaning.language,
                        start,
                        end,
                    });
                }
            }
        });
        let of_all = classes.of[ALL];
        for at in classes.languages() {
            let (language, own) = (at as u8, &mut classes.of[at]);
            if !own.several() {
                continue;
            }
            if language > ENGLISH {
                own.add(self.unread);
            }
            let mut all = *own | of_all;
            for relation in &self.relations {
                if !all.meets(relation.first) || !all.meets(relation.second) {
                    continue;
                }
                if let Some(related) = relation.seen(&seen, language) {
                    all.add(relation.class);
                    own.add(relation.class);
                    if seen.len() < WORDS_MAX {
                        seen.push(related);
                    }
                }
            }
        }
        classes
    }

    /// Calls `note` with every word there is, where it begins and where it ends.
    fn each_word(&self, sentence: &str, mut note: impl FnMut(usize, usize, usize)) {
        if !sentence.is_ascii() {
            for found in self.words.find_overlapping_iter(sentence) {
                note(found.pattern().as_usize(), found.start(), found.end());
            }
            return;
        }
        for found in self.inner.find_overlapping_iter(sentence) {
            note(
                self.inner_words[found.pattern().as_usize()],
                found.start(),
                found.end(),
            );
        }
        let (bytes, mut in_word) = (sentence.as_bytes(), false);
        for (at, byte) in bytes.iter().enumerate() {
            let begins = !in_word && byte.is_ascii_alphanumeric();
            in_word = byte.is_ascii_alphanumeric() || *byte == b'_';
            if !begins {
                continue;
            }
            let rest = &bytes[at..];
            let mut head = 0;
            for byte in rest.iter().take(HEAD_BYTES) {
                head = longer(head, *byte);
                if !self.known(head) {
                    continue;
                }
                for (word, number) in self.heads.get(&head).into_iter().flatten() {
                    if rest.starts_with(word) {
                        note(*number, at, at + word.len());
                    }
                }
            }
        }
    }

    /// May words have such a head? Most of a text's have not, and a bit tells it sooner than the table.
    fn known(&self, head: u64) -> bool {
        let bit = mixed(head);
        self.heads_seen[bit / 64] >> (bit % 64) & 1 == 1
    }

    /// Does a negation end right before `at`?
    fn negated(&self, seen: &[Seen], language: u8, at: usize) -> bool {
        let before = |w: &Seen| w.end <= at && at < w.end + 2;
        seen.iter()
            .any(|w| w.class == self.neg && w.language == language && before(w))
    }

    /// Could a sentence be an order, whatever stands beside it?
    pub fn may_order(&self, here: &Classes) -> bool {
        spoken(here).any(|l| {
            let own = here.with_all(l);
            self.begun_by(own).any(|c| c.is_here(own))
        })
    }

    /// The combinations whose first part is among the classes.
    fn begun_by(&self, classes: Bits) -> impl Iterator<Item = &Combination> {
        let begun = classes.each().flat_map(|class| &self.by_first[class]);
        begun.map(|at| &self.combinations[*at])
    }

    /// Says that no other rule reads the sentence.
    pub fn mark_unread(&self, classes: &mut Classes) {
        classes.add(ENGLISH, self.unread);
    }

    /// Does the sentence speak to or of a machine?
    pub fn calls(&self, here: &Classes) -> bool {
        here.languages().any(|l| here.of[l].has(self.machine))
    }

    /// Do a sentence and its neighbours make one of the combinations?
    pub fn order(&self, here: &Classes, near: &Classes) -> bool {
        spoken(here).any(|l| {
            let own = here.with_all(l);
            let around = own | near.with_all(l);
            self.begun_by(own)
                .any(|c| c.is_here(own) && c.is_near(around))
        })
    }
}

/// The languages of which there are at least two words.
fn spoken(here: &Classes) -> impl Iterator<Item = usize> {
    here.languages().filter(|l| here.of[*l].several())
}

/// The classes of several sentences.
pub(super) fn merge(of: &[&Classes]) -> Classes {
    let mut all = NOTHING;
    for classes in of {
        for language in classes.languages() {
            all.of[language] |= classes.of[language];
        }
        all.languages |= classes.languages;
    }
    all
}

/// Bytes of a word that name its bucket; a shorter word is its own head. With three, hundreds of words that begin with
/// "you" were compared at every "you".
const HEAD_BYTES: usize = 6;

fn head(word: &[u8]) -> u64 {
    let first = word.iter().take(HEAD_BYTES);
    first.fold(0, |head, byte| longer(head, *byte))
}

fn longer(head: u64, byte: u8) -> u64 {
    head << 8 | u64::from(byte)
}

/// Bits that tell most heads which no word has.
const HEAD_BITS: usize = 1 << 16;

fn mixed(head: u64) -> usize {
    (head.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as usize
}

/// Heads are as good as numbered.
#[derive(Default)]
struct HeadHasher(u64);

impl Hasher for HeadHasher {
    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.0 = self.0 << 8 | u64::from(*b);
        }
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn automaton(words: &[String]) -> AhoCorasick {
    AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .match_kind(MatchKind::Standard)
        .build(words)
        .expect("the built-in words fit an automaton")
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|l| !l.is_empty() && !l.starts_with('#'))
}

/// `^word` counts where a command may begin, `stem*` goes on, `*tail` may have letters before, `two_words` are two and
/// `one__name` is one.
fn meaning(word: &str, (class, affirmed): (u16, bool), language: u8) -> (Meaning, String) {
    let (commands, word) = word.strip_prefix('^').map_or((false, word), |w| (true, w));
    let (tail, word) = word.strip_prefix('*').map_or((false, word), |w| (true, w));
    let (stem, word) = word.strip_suffix('*').map_or((false, word), |w| (true, w));
    let text = match word {
        "_" => word.into(),
        _ => {
            let one = word.replace("__", "\u{E000}");
            plain(&one.replace('_', " ")).replace('\u{E000}', "_")
        }
    };
    let unspaced = text.chars().any(unspaced);
    let meaning = Meaning {
        class,
        language,
        commands,
        stem: stem || unspaced,
        tail: tail || unspaced,
        affirmed,
    };
    (meaning, text)
}

impl Meaning {
    fn holds(self, text: &str, start: usize, end: usize) -> bool {
        let before = text[..start].chars().next_back();
        let after = text[end..].chars().next();
        let letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let starts = |c: char| self.tail || !letter(Some(c)) || unspaced(c);
        // An address, or a name of a program's, has letters on both sides.
        if matches!(&text[start..end], "@" | "_") {
            return letter(before) && letter(after);
        }
        // The first part of an address is no word.
        if text[end..].starts_with('@') {
            return false;
        }
        // The public half of a key may go anywhere.
        if text[end..].starts_with(".pub") {
            return false;
        }
        let own_start = text[start..].chars().next();
        let own_end = text[..end].chars().next_back();
        (!letter(own_start) || before.is_none_or(starts))
            && (self.stem || !letter(own_end) || !letter(after) || after.is_some_and(unspaced))
            && (!self.commands || commands(&text[..start]))
    }
}

/// Words that may stand between the beginning of a command and its verb.
const FILLERS: [&str; 65] = [
    "and",
    "then",
    "please",
    "now",
    "you",
    "also",
    "first",
    "always",
    "just",
    "simply",
    "kindly",
    "or",
    "but",
    "must",
    "should",
    "shall",
    "will",
    "can",
    "may",
    "immediately",
    "silently",
    "quietly",
    "instead",
    "next",
    "additionally",
    "otherwise",
    "so",
    "to",
    "has",
    "have",
    "need",
    "needs",
    "required",
    "is",
    "are",
    "be",
    "ought",
    "secretly",
    "again",
    "only",
    "even",
    "afterwards",
    "finally",
    "obliged",
    "let's",
    "lets",
    "it",
    "they",
    "step",
    "ok",
    "okay",
    "yes",
    "ai",
    "assistant",
    "agent",
    "agents",
    "assistants",
    "bot",
    "model",
    "directly",
    "could",
    "would",
    "you'd",
    "better",
    "rather",
];
/// Those that make what follows a command only with one of the others before them.
const INFINITIVE: [&str; 1] = ["to"];
const OBLIGES: [&str; 21] = [
    "has",
    "have",
    "need",
    "needs",
    "required",
    "is",
    "are",
    "ought",
    "obliged",
    "supposed",
    "instructed",
    "expected",
    "you",
    "as",
    "free",
    "welcome",
    "enough",
    "allowed",
    "possible",
    "kind",
    "requested",
];

/// May a command begin after this?
fn commands(before: &str) -> bool {
    let mut rest = before;
    for _ in 0..4 {
        // `self.send` and `x::send` command nothing.
        if rest.ends_with(['.', ':', '-', '/', '>', '$', '=', '&', '_', '+', ';']) {
            return false;
        }
        let trimmed = rest.trim_end_matches([' ', '"', '\'', '`', '*', '“', '‘', '(', '[']);
        let Some(last) = trimmed.chars().next_back() else {
            return true;
        };
        if !last.is_alphanumeric() {
            return true;
        }
        let start = trimmed
            .rfind([' ', ',', '.', ':', ';', '"', '('])
            .map_or(0, |at| at + 1);
        let word = &trimmed[start..];
        if !FILLERS.contains(&word) && !word.bytes().all(|b| b.is_ascii_digit()) {
            return false;
        }
        rest = &trimmed[..start];
        if INFINITIVE.contains(&word) {
            let said = rest.trim_end().rsplit(' ').next().unwrap_or_default();
            return OBLIGES.contains(&said);
        }
        if matches!(
            word,
            "must"
                | "should"
                | "shall"
                | "will"
                | "then"
                | "please"
                | "and"
                | "could"
                | "would"
                | "may"
        ) {
            return true;
        }
    }
    true
}

impl Relation {
    /// `first >40 second`, `first <>40 second`: within 40 bytes after it, or on either side. English keeps the order.
    fn read(name: &str, text: &str, names: &mut Names) -> Self {
        let mut parts = text.split_whitespace();
        let mut next = || parts.next().expect("a relation has three parts");
        let first = names.any(next());
        let sign = next();
        let second = names.any(next());
        let gap = sign.trim_start_matches(['<', '>']);
        Self {
            class: names.number(name),
            first,
            second,
            gap_max: gap.parse().expect("a relation has a distance"),
            either_order: sign.starts_with('<'),
        }
    }

    fn seen(&self, words: &[Seen], language: u8) -> Option<Seen> {
        let of = |classes: Bits| {
            let known = move |w: &&Seen| w.language == language || usize::from(w.language) == ALL;
            words
                .iter()
                .filter(move |w| classes.has(w.class))
                .filter(known)
        };
        for a in of(self.first) {
            for b in of(self.second) {
                let after = b.start >= a.end && b.start - a.end <= self.gap_max;
                let before = a.start >= b.end && a.start - b.end <= self.gap_max;
                if after || self.either_order && language != ENGLISH && before {
                    return Some(Seen {
                        class: self.class,
                        language,
                        start: a.start.min(b.start),
                        end: a.end.max(b.end),
                    });
                }
            }
        }
        None
    }
}

impl Combination {
    fn is_here(&self, classes: Bits) -> bool {
        !classes.meets(self.not_here) && self.here[1..].iter().all(|any| classes.meets(*any))
    }

    fn is_near(&self, classes: Bits) -> bool {
        !classes.meets(self.not_near) && self.near.iter().all(|any| classes.meets(*any))
    }

    /// `a b|c !d ~ e !f`: a, and b or c, without d in the sentence; e but no f in it or beside it.
    fn read(text: &str, names: &mut Names) -> Self {
        let (here, near) = text.split_once('~').unwrap_or((text, ""));
        let mut read = |text: &str| {
            let (mut all, mut none) = (Vec::new(), Bits::NONE);
            for part in text.split_whitespace() {
                match part.strip_prefix('!') {
                    Some(part) => none |= names.any(part),
                    None => all.push(names.any(part)),
                }
            }
            (all, none)
        };
        let (here, not_here) = read(here);
        let (near, not_near) = read(near);
        Self {
            first: here[0],
            here,
            not_here,
            near,
            not_near,
        }
    }
}

/// Numbers for the names of classes.
#[derive(Default)]
struct Names(HashMap<Box<str>, u16>);

impl Names {
    fn number(&mut self, name: &str) -> u16 {
        let next = self.0.len();
        assert!(
            next < BITS_MAX || self.0.contains_key(name),
            "too many classes"
        );
        *self.0.entry(name.into()).or_insert(next as u16)
    }

    fn any(&mut self, names: &str) -> Bits {
        names
            .split('|')
            .fold(Bits::NONE, |all, n| all | Bits::one(self.number(n)))
    }
}
