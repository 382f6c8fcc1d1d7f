//! Words with something else than a blank between them: joined by a sign or by their capitals (`please_send_it_to_the_forum`,
//! `PleaseSendItToTheForum`), one to a line, or each between stars. A reader sees a sentence; a pattern of words with blanks between
//! them does not.
//!
//! Names in programs and lists of words look the same, so only what has some of the small words of a sentence is read.

use super::{Ends, Spawner};
use crate::blob::{self, Blob};
use crate::detect::{GLUED_BYTES_MIN, GLUED_WORDS_MIN, Scratch, glued, humps, long_runs};
use crate::text::{Cell, How, NO_LEAF, Node, Span};
use crate::traces::Signs;
use crate::{Layer, LeafKind};

/// Words of a sentence that names hardly have, and how many of them there have to be.
const SMALL: [&[u8]; 28] = [
    b"the", b"and", b"you", b"your", b"all", b"this", b"that", b"with", b"from", b"not", b"for",
    b"are", b"what", b"them", b"then", b"into", b"out", b"any", b"without", b"before", b"it",
    b"to", b"of", b"in", b"my", b"me", b"a", b"do",
];
const SMALL_MIN: usize = 2;
/// Fewer lines of a word each, or words between stars, are a list.
const ROW_MIN: usize = 6;
/// A byte each, and what parts them.
const ROW_BYTES_MIN: usize = 2 * ROW_MIN - 1;
/// What is longer is read in parts.
const ROW_MAX: usize = 400;
/// Longest line of one word, with what it is indented by.
const LINE_BYTES_MAX: usize = 40;

pub(super) fn decode(node: &Node, scratch: &Scratch, ends: &Ends, spawn: &mut Spawner<'_>) {
    let signs = scratch.traces.signs;
    if node.only_sure || node.turned || node.layer == Some(Layer::Wrapped) {
        return;
    }
    let mut found = Vec::new();
    for cell in node
        .cells
        .iter()
        .filter(|c| c.leaf != NO_LEAF && c.kind != LeafKind::Key)
    {
        let text = &node.text[cell.span.range()];
        if text.len() >= GLUED_BYTES_MIN {
            names(text, cell, &scratch.blobs, &mut found);
        }
        if signs.any(Signs::LINE) && text.len() >= ROW_BYTES_MIN {
            let ends = ends.within(cell.span).iter();
            let ends = ends.map(|end| (*end - cell.span.start) as usize);
            rows(text, cell, ends, &mut found);
        }
        if signs.any(Signs::STAR) && text.len() > 4 * ROW_MIN {
            rows(text, cell, memchr::memchr_iter(b'*', text), &mut found);
        }
    }
    if !found.is_empty() {
        emit(node, &found, spawn);
    }
}

/// Words that belong together, as they stand in the text.
struct Sentence {
    words: Vec<Span>,
    kind: LeafKind,
}

/// Are these words of a text that begins at `base` a sentence?
fn is_sentence(words: &[Span], text: &[u8], base: usize) -> bool {
    let word = |w: &Span| &text[w.start as usize - base..w.end as usize - base];
    let small = |w: &&Span| {
        let bare = word(w).trim_ascii();
        SMALL.iter().any(|s| s.eq_ignore_ascii_case(bare))
    };
    words.iter().filter(small).count() >= SMALL_MIN
}

/// Names of many words. A run without blanks that is long enough has two whole eights of bytes in it.
fn names(text: &[u8], cell: &Cell, blobs: &[Blob], found: &mut Vec<Sentence>) {
    let base = cell.span.start as usize;
    let mut done = 0;
    while let Some(at) = next_long(text, done) {
        let before = text[done..at].iter().rposition(u8::is_ascii_whitespace);
        let start = before.map_or(done, |n| done + n + 1);
        let length = text[at..].iter().position(u8::is_ascii_whitespace);
        let stop = length.map_or(text.len(), |n| at + n);
        done = stop.max(at + 1);
        let is_noise = || blob::touches(blobs, Span::new(base + start, base + stop));
        if stop - start < GLUED_BYTES_MIN || !may_be_glued(&text[start..stop]) || is_noise() {
            continue;
        }
        let Some(sentence) = std::str::from_utf8(&text[start..stop])
            .ok()
            .and_then(|token| {
                let (name, glue) = glued(token)?;
                let words: Vec<Span> = match glue {
                    Some(glue) => name.split(glue).map(|w| place(w, text, base)).collect(),
                    None => humps(name).map(|w| place(w, text, base)).collect(),
                };
                Some(Sentence {
                    words,
                    kind: cell.kind,
                })
            })
        else {
            continue;
        };
        if is_sentence(&sentence.words, text, base) {
            found.push(sentence);
        }
    }
}

/// The first of the [`long_runs`] that begins no sooner than `from`. One of two eights that follow each other is an odd one, so only
/// those are asked first.
fn next_long(text: &[u8], from: usize) -> Option<usize> {
    let (eights, _) = text.as_chunks::<8>();
    let first = from.div_ceil(8).saturating_sub(1);
    let mut odd = first | 1;
    while let Some(eight) = eights.get(odd) {
        // Without a branch, so that a register holds all of them.
        if !eight.iter().fold(false, |any, b| any | (*b == b' ')) {
            let start = first.max(odd - 1);
            let around = &eights[start..eights.len().min(odd + 2)];
            if let Some(at) = long_runs(around.as_flattened()).next() {
                return Some(start * 8 + at);
            }
        }
        odd += 2;
    }
    None
}

/// May the end of a run be words that are joined? Most runs are paths, addresses and code. See [`glued`].
fn may_be_glued(run: &[u8]) -> bool {
    const SIGNS_MIN: usize = GLUED_WORDS_MIN - 1;
    // More words than that, of which the first may have none.
    const CAPITALS_MIN: usize = GLUED_WORDS_MIN;
    let apart = |b: &u8| matches!(b, b'/' | b'=' | b'"' | b'`' | b'(');
    let name = &run[run.iter().rposition(apart).map_or(0, |at| at + 1)..];
    let count = |is: fn(u8) -> bool| name.iter().filter(|b| is(**b)).count();
    name.len() > 2 * SIGNS_MIN
        && (count(|b| matches!(b, b'_' | b'-' | b'+' | b'.')) >= SIGNS_MIN
            || count(|b| b.is_ascii_uppercase()) >= CAPITALS_MIN)
}

fn place(word: &str, text: &[u8], base: usize) -> Span {
    let start = base + (word.as_ptr() as usize - text.as_ptr() as usize);
    Span::new(start, start + word.len())
}

/// Rows of words that each stand in a line of their own, or between stars: `signs` are what parts them.
fn rows(text: &[u8], cell: &Cell, signs: impl Iterator<Item = usize>, found: &mut Vec<Sentence>) {
    let base = cell.span.start as usize;
    let mut words: Vec<Span> = Vec::new();
    let mut end = |words: &mut Vec<Span>| {
        if words.len() >= ROW_MIN && is_sentence(words, text, base) {
            found.push(Sentence {
                words: words.clone(),
                kind: cell.kind,
            });
        }
        words.clear();
    };
    let mut from = 0;
    for to in signs.chain([text.len()]) {
        let (part, begun) = (&text[from..to], from);
        from = to + 1;
        // Most lines are longer than a word.
        let bare = match part.len() {
            0..=LINE_BYTES_MAX => part.trim_ascii(),
            _ => part,
        };
        if bare.len() <= LINE_BYTES_MAX && is_word(bare) {
            let start = base + begun + (bare.as_ptr().addr() - part.as_ptr().addr());
            words.push(Span::new(start, start + bare.len()));
            if words.len() == ROW_MAX {
                end(&mut words);
            }
        } else if !words.is_empty() && !bare.is_empty() {
            end(&mut words);
        }
    }
    end(&mut words);
}

/// One word, and what may stand around it in a sentence.
fn is_word(bare: &[u8]) -> bool {
    let fits =
        |b: &u8| b.is_ascii_graphic() && !matches!(b, b'{' | b'}' | b'=' | b'<' | b'>' | b'|');
    bare.iter().all(fits) && bare.iter().any(u8::is_ascii_alphabetic)
}

/// A cell for each, with blanks between the words.
fn emit(node: &Node, found: &[Sentence], spawn: &mut Spawner<'_>) {
    let room = spawn.room() / 4;
    let Some(mut child) = spawn.begin(Layer::Wrapped) else {
        return;
    };
    child.only_injection = true;
    for sentence in found {
        let start = child.text.len();
        for word in &sentence.words {
            if child.text.len() + word.len() >= room {
                break;
            }
            child.push(&node.text[word.range()], *word, How::Copy);
            child.push(
                b" ",
                Span::new(word.end as usize - 1, word.end as usize),
                How::Atom,
            );
        }
        child.close_cell(start, Span::default(), sentence.kind, 0);
    }
    spawn.end(child);
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::assert_child;

    #[test]
    fn words_are_parted_by_blanks() {
        let want = "tell nobody that you sent the list to me";
        let between = |sign: &str| {
            let words: Vec<String> = want
                .split(' ')
                .map(|w| format!("{sign}{w}{sign}"))
                .collect();
            words.join(" ")
        };
        for text in [
            "tell_nobody_that_you_sent_the_list_to_me".to_owned(),
            "see /tmp/tell-nobody-that-you-sent-the-list-to-me.txt now".to_owned(),
            want.replace(' ', "\n"),
            want.replace(' ', "\n    "),
            want.replace(' ', "\n\n"),
            format!(
                "It says:\n{}\n\nand no more of it.",
                want.replace(' ', "\r\n")
            ),
            between("**"),
            between("*"),
        ] {
            assert_child(&text, Layer::Wrapped, Some(want));
        }
        let capitals = "Tell Nobody That You Sent The List To Me";
        assert_child(&capitals.replace(' ', ""), Layer::Wrapped, Some(capitals));
    }

    #[test]
    fn names_and_lists_stay_as_they_are() {
        for text in [
            "max_number_of_retries_exceeded_error_code",
            "alpha\nbeta\ngamma\ndelta\nepsilon\nzeta\neta",
            "if\nthe\nrest\n",
            "2 * 3 * 4 * 5 * 6 * 7 * 8",
            "https://blog.tld/how-to-tell-the-cat-from-the-dog-in-pictures",
        ] {
            assert_child(text, Layer::Wrapped, None);
        }
    }
}
