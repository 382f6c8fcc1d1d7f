//! The words of a recovery phrase in values of their own: `["gather", "olive", ...]`, `{"1": "gather", "2": "olive", ...}`,
//! `{"index": 1, "word": "gather"}`. They are read as one row of words, as a wallet shows them.

use smallvec::SmallVec;

use super::{Spawner, begin_cell};
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
    while at < node.cells.len() {
        let probed = &node.cells[at..node.cells.len().min(at + near)];
        let Some(hit) = probed.iter().position(word) else {
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
            join(node, node.cells[first].name, &row, spawn);
        }
    }
}

fn join(node: &Node, name: Span, words: &[Span], spawn: &mut Spawner<'_>) {
    let Some(mut child) = spawn.begin(Layer::Joined) else {
        return;
    };
    let name = begin_cell(&mut child, node, name);
    let start = child.text.len();
    for (nth, word) in words.iter().enumerate() {
        if nth > 0 {
            let at = word.start as usize;
            child.push(b" ", Span::new(at, at + 1), How::Atom);
        }
        child.push(&node.text[word.range()], *word, How::Copy);
    }
    child.close_cell(start, name, LeafKind::String, 0);
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
            .any(|(layer, text, _)| *layer == Layer::Joined && text.ends_with(WORDS))
    }

    #[test]
    fn words_in_cells_are_one_phrase() {
        let others: Vec<_> = (0..40).map(|n| format!("none of it, {n}")).collect();
        for before in 0..others.len() {
            let other = others[..before]
                .iter()
                .map(|other| ("seed", other.as_str()));
            let listed = WORDS.split(' ').map(|word| ("seed", word));
            let cells: Vec<_> = other.chain(listed).collect();
            assert!(joined(&cells), "{before}");
        }
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
