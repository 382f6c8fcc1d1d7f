//! Texts to send: varied, clean, and the same for the same seed.
//!
//! A tool call carries prose, JSON records and code, so that is what this makes: sentences from a vocabulary, records
//! with numbers and dates, functions in three languages. It never repeats a block to fill a size (a matcher's caches
//! would look better than they are), has a word in each call that is another one the next time (so would the memory of a
//! firewall that knows what it has seen; [`Content::Again`] is for that) and never contains anything a scanner should find, so a block or a redaction in a
//! run is a fault of the target.

mod day;
#[rustfmt::skip] // One word per line would be 800 lines.
mod words;

use crate::plan::Content;
use crate::random::Random;

/// A bounded set of different texts of one size, with their JSON string form.
pub struct Pool {
    texts: Vec<Payload>,
}

/// One text and what it looks like inside a JSON document.
pub struct Payload {
    /// The text itself.
    pub text: String,
    /// The text as a JSON string, quotes included.
    pub json: Vec<u8>,
    /// What stands in it for a scanner to find.
    pub planted: Option<String>,
    /// What that is to a firewall.
    pub content: Content,
    /// Another tool than the one that the other calls go to.
    pub tool: Option<&'static str>,
    /// Where a word begins that is another one in each call, in the text and in its JSON form.
    pub stamp: Option<(usize, usize)>,
}

/// Letters of the word that is another one in each call.
const STAMP_BYTES: usize = 6;

/// What one pool may hold. 1 MiB texts reach it with 16 of them.
const POOL_BYTES_MAX: usize = 16 << 20;
const POOL_TEXTS_MAX: usize = 512;

impl Pool {
    /// Makes the texts of a pool: as many as fit in the bound, each exactly `size` bytes long, each with one thing of this
    /// content in its middle. A text too small for it becomes just that thing.
    pub fn generate(seed: u64, size: usize, content: Content) -> Pool {
        let mut random = Random::new(seed ^ (size as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        if content == Content::Day {
            return Pool {
                texts: day::texts(&mut random),
            };
        }
        let count = (POOL_BYTES_MAX / size.max(1)).clamp(1, POOL_TEXTS_MAX);
        let texts = (0..count)
            .map(|nth| one(&mut random, size, content, nth))
            .collect();
        Pool { texts }
    }

    /// The payload for the n-th call; calls go round the pool.
    pub fn nth(&self, n: u64) -> &Payload {
        &self.texts[(n % self.texts.len() as u64) as usize]
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.texts.len()
    }
}

/// A payload of exactly `size` bytes, as long as what is planted fits.
fn one(random: &mut Random, size: usize, content: Content, nth: usize) -> Payload {
    let text = text(random, size);
    let payload = match snippet(content, nth) {
        Some(planted) => plant(&text, label(content), planted),
        None => Payload::new(text),
    };
    let payload = Payload { content, ..payload };
    match content {
        Content::Again => payload,
        _ => payload.varied(),
    }
}

impl Payload {
    /// Wraps a text. Strings always have a JSON form, so this cannot fail.
    pub fn new(text: String) -> Payload {
        let json = serde_json::to_vec(&text).expect("a string always serialises");
        Payload {
            text,
            json,
            planted: None,
            content: Content::Clean,
            tool: None,
            stamp: None,
        }
    }

    /// The same with a word in it that is another one in each call: no two messages are the same, so nothing that somebody
    /// remembers of the one before helps with the next.
    fn varied(self) -> Payload {
        let letters = |at: usize| {
            let word = self.text.as_bytes().get(at..at + STAMP_BYTES);
            word.is_some_and(|word| word.iter().all(u8::is_ascii_lowercase))
        };
        // In prose, if there is some.
        let in_prose = self.text.match_indices(' ').map(|(blank, _)| blank + 1);
        let mut found = in_prose.chain(0..self.text.len());
        let stamp = found.find(|at| letters(*at)).map(|at| {
            let before = serde_json::to_vec(&self.text[..at]).expect("a string always serialises");
            (at, before.len() - 1)
        });
        Payload { stamp, ..self }
    }

    /// Writes the form that this has in the n-th call.
    pub fn write_nth(&self, n: u64, out: &mut Payload) {
        out.text.clone_from(&self.text);
        out.json.clone_from(&self.json);
        out.planted.clone_from(&self.planted);
        (out.content, out.tool, out.stamp) = (self.content, self.tool, self.stamp);
        let Some((in_text, in_json)) = self.stamp else {
            return;
        };
        let word = syllables(n);
        out.text
            .replace_range(in_text..in_text + STAMP_BYTES, &word);
        out.json[in_json..in_json + STAMP_BYTES].copy_from_slice(word.as_bytes());
    }
}

/// A word that can be spoken; the same only after a million.
fn syllables(n: u64) -> String {
    const ONSETS: &[u8; 20] = b"bcdfghjklmnprstvwxyz";
    const VOWELS: &[u8; 5] = b"aeiou";
    let mut rest = n as usize;
    let mut word = String::with_capacity(STAMP_BYTES);
    for _ in 0..STAMP_BYTES / 2 {
        word.push(ONSETS[rest % 20].into());
        word.push(VOWELS[rest / 20 % 5].into());
        rest /= 100;
    }
    word
}

/// What a text of this content holds. No two neighbours in a pool are the same where a form allows more than one.
fn snippet(content: Content, nth: usize) -> Option<String> {
    // A GitHub token down to its check digits that is none. In two parts, so that no scanner stumbles over this file.
    const TOKEN: &str = concat!("ghp_Q7dR2mXk9LwZtV4c", "NpB1sYhE6uJgA34eUZEa");
    match content {
        Content::Clean | Content::Again | Content::Day => None,
        Content::Logged => Some(format!("ana.silva{nth}@mailbox.org")),
        Content::Redacted => Some(format!("219-09-{}", 3100 + nth)),
        Content::Blocked => Some(TOKEN.to_owned()),
    }
}

/// What stands before it: nine digits in the middle of code are a subtraction.
fn label(content: Content) -> &'static str {
    match content {
        Content::Redacted => "SSN ",
        _ => "",
    }
}

/// Puts a value with its label and a space on either side in the place of as much text.
fn plant(text: &str, label: &str, planted: String) -> Payload {
    let spaced = format!(" {label}{planted} ");
    let boundary = |from: usize| (from..=text.len()).find(|&at| text.is_char_boundary(at));
    let from = boundary(text.len().saturating_sub(spaced.len()) / 2).unwrap_or(text.len());
    let to = boundary((from + spaced.len()).min(text.len())).unwrap_or(text.len());
    // A character cut in two gives way to spaces.
    let filler = " ".repeat((to - from).saturating_sub(spaced.len()));
    Payload {
        planted: Some(planted),
        ..Payload::new(format!("{}{spaced}{filler}{}", &text[..from], &text[to..]))
    }
}

/// A text of exactly `size` bytes.
fn text(random: &mut Random, size: usize) -> String {
    let mut out = String::with_capacity(size + 256);
    while out.len() < size {
        match random.below(10) {
            0..=4 => paragraph(random, &mut out),
            5..=7 => record(random, &mut out),
            _ => function(random, &mut out),
        }
    }
    // A character that straddles the end gives way to spaces, so that the length is exact.
    let end = (0..=size)
        .rev()
        .find(|&at| out.is_char_boundary(at))
        .unwrap_or(0);
    out.truncate(end);
    while out.len() < size {
        out.push(' ');
    }
    out
}

fn pick<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
    from[random.below(from.len() as u64) as usize]
}

fn paragraph(random: &mut Random, out: &mut String) {
    for _ in 0..2 + random.below(4) {
        sentence(random, out);
        out.push(' ');
    }
    out.push('\n');
}

fn sentence(random: &mut Random, out: &mut String) {
    let start = out.len();
    let opener = pick(random, words::OPENERS);
    out.push_str(opener);
    noun_phrase(random, out);
    out.push(' ');
    out.push_str(pick(random, words::VERBS));
    out.push(' ');
    noun_phrase(random, out);
    if random.below(2) == 0 {
        out.push(' ');
        out.push_str(pick(random, words::PREPOSITIONS));
        out.push(' ');
        noun_phrase(random, out);
    }
    if random.below(4) == 0 {
        out.push_str(&format!(
            ", {} {}",
            pick(random, words::ADVERBS),
            random.below(900) + 12
        ));
        out.push_str(pick(random, words::UNITS));
    }
    if random.below(24) == 0 {
        out.push_str(pick(random, words::ASIDES));
    }
    out.push(if random.below(14) == 0 { '?' } else { '.' });
    if let Some(first) = out[start..].chars().next().filter(char::is_ascii_lowercase) {
        out.replace_range(start..start + 1, &first.to_ascii_uppercase().to_string());
    }
}

fn noun_phrase(random: &mut Random, out: &mut String) {
    out.push_str(pick(random, words::DETERMINERS));
    out.push(' ');
    if random.below(3) != 0 {
        out.push_str(pick(random, words::ADJECTIVES));
        out.push(' ');
    }
    out.push_str(pick(random, words::NOUNS));
}

/// One row of the kind a search or a listing tool returns.
fn record(random: &mut Random, out: &mut String) {
    let path = path(random);
    out.push_str(&format!(
        "{{\"title\": \"{} {}\", \"path\": \"{path}\", \"lines\": {}, \"score\": 0.{:03}, \"updated\": \"{}-{:02}-{:02}\", \
         \"tags\": [\"{}\", \"{}\"], \"draft\": {}}}\n",
        pick(random, words::ADJECTIVES),
        pick(random, words::NOUNS),
        random.below(2_000),
        random.below(1_000),
        2019 + random.below(8),
        1 + random.below(12),
        1 + random.below(28),
        pick(random, words::NOUNS),
        pick(random, words::ADJECTIVES),
        random.below(2) == 0,
    ));
}

fn path(random: &mut Random) -> String {
    format!(
        "{}/{}_{}.{}",
        pick(random, words::FOLDERS),
        pick(random, words::NOUNS),
        pick(random, words::VERB_STEMS),
        pick(random, words::EXTENSIONS)
    )
}

/// A short function in one of three languages.
fn function(random: &mut Random, out: &mut String) {
    let (verb, noun) = (pick(random, words::VERB_STEMS), pick(random, words::NOUNS));
    let (other, third) = (pick(random, words::NOUNS), pick(random, words::NOUNS));
    let (limit, step) = (random.below(500) + 2, random.below(30) + 1);
    let code = match random.below(3) {
        0 => format!(
            "fn {verb}_{noun}({other}: &[{noun}_{third}]) -> usize {{\n    // {step} at a time, the {third} is small\n    \
             let mut count = 0;\n    for chunk in {other}.chunks({step}) {{\n        if chunk.len() > {limit} {{ break; }}\n\
             \x20       count += chunk.iter().filter(|x| x.{third} != {limit}).count();\n    }}\n    count\n}}\n"
        ),
        1 => format!(
            "def {verb}_{noun}({other}, limit={limit}):\n    \"\"\"Return the {third} of every {noun}.\"\"\"\n    found = []\n\
             \x20   for index, row in enumerate({other}):\n        if row[\"{third}\"] >= limit and index % {step} == 0:\n\
             \x20           found.append({verb}(row[\"{noun}\"]))\n    return found[:limit]\n"
        ),
        _ => format!(
            "export async function {verb}({other}) {{\n  const {noun} = await load('{}', {{ pages: {limit} }});\n  \
             return {noun}.map((item) => item.{third} ?? {step}).filter(Boolean);\n}}\n",
            path(random)
        ),
    };
    out.push_str(&code);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn sizes_are_exact_and_texts_differ() {
        for size in [1, 2, 17, 300, 4096, 65_536] {
            let pool = Pool::generate(7, size, Content::Clean);
            let distinct: HashSet<_> = pool.texts.iter().map(|p| &p.text).collect();
            assert!(
                pool.texts.iter().all(|p| p.text.len() == size),
                "size {size}"
            );
            if size >= 300 {
                assert_eq!(distinct.len(), pool.len(), "size {size}");
            }
        }
    }

    #[test]
    fn a_pool_is_bounded() {
        assert_eq!(Pool::generate(1, 300, Content::Clean).len(), POOL_TEXTS_MAX);
        assert_eq!(Pool::generate(1, 1 << 20, Content::Clean).len(), 16);
    }

    #[test]
    fn the_seed_decides() {
        let text = |seed| {
            Pool::generate(seed, 4096, Content::Clean)
                .nth(3)
                .text
                .clone()
        };
        assert_eq!(text(5), text(5));
        assert_ne!(text(5), text(6));
    }

    #[test]
    fn the_json_form_is_the_text() {
        for n in 0..64 {
            let pool = Pool::generate(n, 777, Content::Clean);
            let payload = pool.nth(n);
            assert_eq!(
                serde_json::from_slice::<String>(&payload.json).unwrap(),
                payload.text
            );
        }
    }

    #[test]
    fn no_call_is_like_another_unless_that_is_asked_for() {
        let mut sent = Payload::new(String::new());
        for (content, size) in [
            (Content::Clean, 300),
            (Content::Clean, 4096),
            (Content::Redacted, 4096),
            (Content::Again, 300),
        ] {
            let pool = Pool::generate(5, size, content);
            for nth in 0..pool.len() as u64 {
                let forms: HashSet<_> = (0..1000)
                    .map(|n| {
                        pool.nth(nth).write_nth(n * 991, &mut sent);
                        assert_eq!(sent.text.len(), size);
                        let json = serde_json::from_slice::<String>(&sent.json).unwrap();
                        assert_eq!(json, sent.text);
                        json
                    })
                    .collect();
                let wanted = if content == Content::Again { 1 } else { 1000 };
                assert_eq!(forms.len(), wanted, "{content:?}, {size}, text {nth}");
            }
        }
    }

    /// Text made of few blocks compresses into few windows; real text does not.
    #[test]
    fn text_is_varied() {
        let pool = Pool::generate(11, 65_536, Content::Clean);
        let bytes = pool.nth(0).text.as_bytes();
        let windows: HashSet<&[u8]> = bytes.chunks(24).collect();
        assert!(
            windows.len() as f64 > 0.97 * (bytes.len() / 24) as f64,
            "{} of {}",
            windows.len(),
            bytes.len() / 24
        );
    }

    #[test]
    fn text_is_clean() {
        let pool = Pool::generate(3, 65_536, Content::Clean);
        for n in 0..pool.len() as u64 {
            let text = &pool.nth(n).text;
            assert!(!text.contains('@'), "an address");
            let longest = text
                .split(|c: char| !c.is_ascii_digit())
                .map(str::len)
                .max();
            assert!(
                longest < Some(6),
                "a number that could be taken for an identifier"
            );
        }
    }

    #[test]
    fn planted_values_stand_whole_in_texts_of_the_same_size() {
        for content in [Content::Logged, Content::Redacted, Content::Blocked] {
            for size in [300, 4096, 65_536] {
                let pool = Pool::generate(1, size, content);
                for n in 0..pool.len() as u64 {
                    let payload = pool.nth(n);
                    let planted = payload.planted.as_ref().unwrap();
                    assert_eq!(payload.text.matches(planted.as_str()).count(), 1);
                    assert_eq!(payload.text.len(), size);
                }
            }
        }
        let tiny = Pool::generate(1, 3, Content::Redacted);
        assert!(tiny.nth(0).text.contains("219-09-"));
    }
}
