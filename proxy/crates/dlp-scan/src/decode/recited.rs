//! The words of a recovery phrase in values of their own: `["gather", "olive", ...]`, `{"1": "gather", "2": "olive", ...}`,
//! `{"index": 1, "word": "gather"}`. They are read as one row of words, as a wallet shows them.

use smallvec::SmallVec;

use super::Spawner;
use crate::detect::is_listed_word;
use crate::text::{Cell, How, Node, Span};
use crate::{Layer, LeafKind};

/// Fewest words of a phrase, and most in a row that is no list of words.
const WORDS: std::ops::RangeInclusive<usize> = 12..=26;
/// Cells that stand between two words: a name, a number and its name.
const BETWEEN_MAX: usize = 3;

pub(super) fn decode(node: &Node, spawn: &mut Spawner<'_>) {
    if node.layer == Some(Layer::Joined) {
        return;
    }
    let word = |c: &Cell| c.kind == LeafKind::String && is_listed_word(&node.text[c.span.range()]);
    let near = BETWEEN_MAX + 1;
    let (mut at, mut floor) = (0, 0);
    // Of so many cells one after the other, wherever they begin, some are looked at, and as many as may stand between.
    while at + WORDS.start() <= node.cells.len() {
        let Some(hit) = node.cells[at..at + near].iter().position(word) else {
            at += WORDS.start();
            continue;
        };
        let hit = at + hit;
        let mut row: SmallVec<[Span; 32]> = SmallVec::new();
        let mut first = hit;
        loop {
            row.push(node.cells[first].span);
            let from = first.saturating_sub(near).max(floor);
            let Some(n) = node.cells[from..first].iter().rposition(word) else {
                break;
            };
            first = from + n;
        }
        row.reverse();
        let mut last = hit;
        while let Some(n) = node.cells[last + 1..].iter().take(near).position(word) {
            last += 1 + n;
            row.push(node.cells[last].span);
        }
        // What was a row is looked at once.
        (at, floor) = (last + 1, last + 1);
        if WORDS.contains(&row.len()) {
            join(node, &row, spawn);
        }
    }
}

fn join(node: &Node, words: &[Span], spawn: &mut Spawner<'_>) {
    let Some(mut child) = spawn.begin(Layer::Joined) else {
        return;
    };
    for (nth, word) in words.iter().enumerate() {
        if nth > 0 {
            let at = word.start as usize;
            child.push(b" ", Span::new(at, at + 1), How::Atom);
        }
        child.push(&node.text[word.range()], *word, How::Copy);
    }
    child.close_cell(0, Span::default(), LeafKind::String, 0);
    spawn.end(child);
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::children_of;

    const WORDS: &str =
        "gather olive vessel museum crane puzzle lemon sphere oxygen blame rifle window";

    fn joined(cells: &[(&str, &str)]) -> bool {
        children_of(cells)
            .iter()
            .any(|(layer, text, _)| *layer == Layer::Joined && text == WORDS)
    }

    #[test]
    fn words_in_cells_are_one_phrase() {
        let listed: Vec<_> = WORDS.split(' ').map(|word| ("seed", word)).collect();
        assert!(joined(&listed));
        for before in 0..20 {
            let names: Vec<_> = (0..40).map(|n| format!("{n:02}")).collect();
            let other = names[..before]
                .iter()
                .map(|n| (n.as_str(), "none of the list"));
            let words = WORDS.split(' ').zip(&names[20..]);
            let mut cells: Vec<_> = other.chain(words.map(|(w, n)| (n.as_str(), w))).collect();
            assert!(joined(&cells), "{before}");
            cells.push(("note", "the end of it"));
            assert!(joined(&cells), "{before}");
        }
    }

    #[test]
    fn fewer_words_and_longer_lists_are_none() {
        let eleven: Vec<_> = WORDS.split(' ').take(11).map(|w| ("w", w)).collect();
        assert!(!joined(&eleven));
        let many: Vec<_> = WORDS
            .split(' ')
            .cycle()
            .take(40)
            .map(|w| ("w", w))
            .collect();
        let children = children_of(&many);
        let spaced = |text: &str| text.contains(' ');
        assert!(!children.iter().any(|(_, text, _)| spaced(text)));
    }
}
