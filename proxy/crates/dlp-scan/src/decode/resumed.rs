//! A token of which only the head stands where it begins: `frag=ghp_Zq7k` in one line of a log, `frag=W2mXv9Lt` in the next; a cell
//! of a table each, a name of a file, a member of a query, a content block. Whatever stands between, the pieces are as long as each
//! other and stand between the same signs; only the last may be shorter. Where numbers count them, they count.

use smallvec::SmallVec;

use super::Spawner;
use super::marks::Mark;
use crate::text::{CELL_END, How, Node, Span};
use crate::{Layer, LeafKind};

/// Shortest and longest piece. Longer ones are tokens by themselves.
const PIECE: std::ops::RangeInclusive<usize> = 4..=48;
/// How far a piece may be behind the one before.
const GAP_BYTES_MAX: usize = 160;
/// Most pieces, and shortest token.
const PIECES_MAX: usize = 64;
const TOKEN_BYTES_MIN: usize = 20;
/// Signs before the second piece that are tried.
const TRIES_MAX: usize = 4;
/// What stands before a head in its word: `img_000_`.
const LEAD_BYTES_MAX: usize = 24;
/// Heads that are looked at in one text.
const HEADS_MAX: usize = 64;

pub(super) fn decode(node: &Node, marks: &[(u32, Mark)], spawn: &mut Spawner<'_>) {
    if node.layer == Some(Layer::Joined) {
        return;
    }
    let mut done = 0;
    let heads = marks.iter().filter(|(_, mark)| *mark == Mark::Head);
    for at in heads.map(|(at, _)| *at as usize).take(HEADS_MAX) {
        let signs = node.text[at..].iter().take(1);
        let at = at + signs.take_while(|b| !b.is_ascii_alphanumeric()).count();
        if at < done {
            continue;
        }
        let found = wrapped(&node.text, at)
            .or_else(|| apart(&node.text, at))
            .or_else(|| pieces(&node.text, at));
        let Some(pieces) = found else {
            continue;
        };
        done = pieces.iter().map(|p| p.end as usize).max().unwrap_or(at);
        join(node, &pieces, spawn);
        // What is shorter may be the sentence's.
        if let [first, .., last] = &pieces[..]
            && pieces.len() > 2
            && last.len() < first.len()
        {
            join(node, &pieces[..pieces.len() - 1], spawn);
        }
    }
}

/// A token with dots in it over lines that are as long as each other, as a mail breaks it off; the last may be shorter, and what
/// stands before the head makes the first one so.
fn wrapped(text: &[u8], at: usize) -> Option<SmallVec<[Span; 8]>> {
    const LINE: std::ops::RangeInclusive<usize> = 24..=120;
    const FIRST_BYTES_MIN: usize = 8;
    let of_line = |from: usize| {
        let rest = text.get(from..).unwrap_or_default().iter();
        let part = |b: &&u8| is_part(**b) || matches!(b, b'.' | b'=' | b'/');
        from + rest.take(LINE.end() + 1).take_while(part).count()
    };
    // Lines of an answer to a mail have a sign before them.
    let next = |end: usize| {
        let rest = text.get(end..)?;
        let rest = rest
            .strip_prefix(b"\r")
            .unwrap_or(rest)
            .strip_prefix(b"\n")?;
        let rest = rest.strip_prefix(b"> ").unwrap_or(rest);
        Some(text.len() - rest.len())
    };
    let mut pieces: SmallVec<[Span; 8]> = SmallVec::new();
    let mut end = of_line(at);
    let first = end - at;
    pieces.push(Span::new(at, end));
    let mut line = None;
    while let Some(from) = next(end).filter(|_| pieces.len() < PIECES_MAX) {
        let to = of_line(from);
        let len = to - from;
        let whole = text.get(to).is_none_or(|b| b"\r\n\"'`<".contains(b));
        let longest = *line.get_or_insert(len);
        if len == 0 || len > longest || !whole {
            break;
        }
        pieces.push(Span::new(from, to));
        end = to;
        if len < longest {
            break;
        }
    }
    let dots = memchr::memchr_iter(b'.', &text[at..end]).count();
    // A signed token is whole with two of them; what stands on the next line is then no part of it.
    let whole = memchr::memchr_iter(b'.', &text[at..at + first]).count() > 1;
    if whole && pieces.len() == 2 {
        return None;
    }
    let even = line.is_some_and(|len| pieces.len() == 2 && len <= first || LINE.contains(&len));
    (pieces.len() > 1 && dots > 0 && even && first >= FIRST_BYTES_MIN).then_some(pieces)
}

/// `npm_ + veT0p9Cs + LaUZ8xVS`, `"hvs.""CAES""dvhe"`, `ghp_4dvt{}o8R0`: pieces of any length with a sign between them that is part of no
/// token.
fn apart(text: &[u8], at: usize) -> Option<SmallVec<[Span; 8]>> {
    const SIGNS: [&str; 7] = [" + ", "\"\"", "''", "\\\"\\\"", "{}", "**", " & "];
    const PIECE_BYTES_MAX: usize = 160;
    let word = |from: usize| {
        let rest = text.get(from..).unwrap_or_default().iter();
        let part = |b: &&u8| is_part(**b) || **b == b'.';
        from + rest.take(PIECE_BYTES_MAX).take_while(part).count()
    };
    let mut end = word(at);
    let sign = SIGNS
        .iter()
        .find(|s| text[end..].starts_with(s.as_bytes()))?;
    let mut pieces: SmallVec<[Span; 8]> = SmallVec::new();
    pieces.push(Span::new(at, end));
    while text[end..].starts_with(sign.as_bytes()) && pieces.len() < PIECES_MAX {
        let from = end + sign.len();
        let to = word(from);
        if to == from {
            break;
        }
        pieces.push(Span::new(from, to));
        end = to;
    }
    let total: usize = pieces.iter().map(|p| p.len()).sum();
    let digits = pieces.iter().flat_map(|p| &text[p.range()]);
    let digits = digits.filter(|b| b.is_ascii_digit()).count();
    (pieces.len() > 1 && total >= TOKEN_BYTES_MIN && digits >= 2).then_some(pieces)
}

/// What tokens are written with.
fn is_part(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'+')
}

/// A word of such characters, and the signs around it.
#[derive(Clone, Copy)]
struct Word {
    start: usize,
    end: usize,
}

impl Word {
    fn after(text: &[u8], from: usize) -> Option<Self> {
        let near = &text[from..text.len().min(from + GAP_BYTES_MAX)];
        let start = from + near.iter().position(|b| is_part(*b))?;
        let most = text[start..].iter().take(PIECE.end() + LEAD_BYTES_MAX + 1);
        let end = start + most.take_while(|b| is_part(**b)).count();
        Some(Self { start, end })
    }

    fn len(self) -> usize {
        self.end - self.start
    }

    /// Two signs before it, as far as they are signs; one behind it and its padding.
    fn signs(self, text: &[u8]) -> ([u8; 2], u8) {
        let sign = |at: Option<usize>| at.map_or(0, |at| text[at]);
        let one = sign(self.start.checked_sub(1));
        let two = sign(self.start.checked_sub(2));
        let two = if is_part(two) { 0 } else { two };
        // Base64 ends in them.
        let padding = text[self.end..].iter().take(2);
        let padding = padding.take_while(|b| **b == b'=').count();
        (
            [two, one],
            text.get(self.end + padding).copied().unwrap_or(0),
        )
    }

    /// The number before its signs.
    fn number(self, text: &[u8]) -> Option<u32> {
        let before = &text[self.start.saturating_sub(12)..self.start];
        let signs = before.iter().rev().take(4);
        let signs = signs.take_while(|b| !b.is_ascii_alphanumeric()).count();
        let before = &before[..before.len() - signs];
        let digits = before.iter().rev().take(4);
        let digits = digits.take_while(|b| b.is_ascii_digit()).count();
        let number = &before[before.len() - digits..];
        std::str::from_utf8(number).ok()?.parse().ok()
    }
}

/// The pieces of the token whose head is at `at`, in their order.
fn pieces(text: &[u8], at: usize) -> Option<SmallVec<[Span; 8]>> {
    let lead = text[..at].iter().rev().take(LEAD_BYTES_MAX);
    let lead = lead.take_while(|b| is_part(**b)).count();
    let head = Word::after(text, at - lead).filter(|w| w.start == at - lead)?;
    let len = head.len().checked_sub(lead)?;
    if !PIECE.contains(&len) || lead > 0 && text[at - 1].is_ascii_alphanumeric() {
        return None;
    }
    // Most pieces are as long as each other; of two the second may be shorter.
    next_alike(text, head, lead, |word| word.len() == head.len())
        .or_else(|| next_alike(text, head, lead, |word| word.len() < head.len()))
}

/// The pieces that begin with a word of such a length behind the head.
fn next_alike(
    text: &[u8],
    head: Word,
    lead: usize,
    long: impl Fn(Word) -> bool,
) -> Option<SmallVec<[Span; 8]>> {
    let (_, closing) = head.signs(text);
    let mut tried: SmallVec<[[u8; 2]; TRIES_MAX]> = SmallVec::new();
    let mut from = head.end;
    while let Some(word) = Word::after(text, from) {
        from = word.end;
        let (opening, behind) = word.signs(text);
        if word.start - head.end > GAP_BYTES_MAX || tried.len() == TRIES_MAX {
            break;
        }
        let short = word.len() < head.len();
        let alike = long(word) && (short || behind == closing);
        if !alike || word.len() <= lead || tried.contains(&opening) {
            continue;
        }
        tried.push(opening);
        let found = row(text, head, lead, opening);
        if found.is_some() {
            return found;
        }
    }
    None
}

/// The words behind the head that stand between the same signs and are as long, up to the first that is shorter.
fn row(text: &[u8], head: Word, lead: usize, opening: [u8; 2]) -> Option<SmallVec<[Span; 8]>> {
    let piece = |w: Word| Span::new(w.start + lead, w.end);
    let (_, closing) = head.signs(text);
    let counted = head.number(text);
    let mut words: SmallVec<[Word; 8]> = SmallVec::new();
    words.push(head);
    let (mut from, mut near) = (head.end, head.end);
    while let Some(word) = Word::after(text, from).filter(|w| w.start - near <= GAP_BYTES_MAX) {
        from = word.end;
        let (before, behind) = word.signs(text);
        // The last piece may be the last of its text; what else stands there is nearer to the piece before.
        let first = words.get(1).map_or(0, |second| second.start - head.end);
        let last = text[word.end..].len() < 2 || behind == CELL_END;
        let ends = behind == closing || last && (word.start - near) * 2 >= first;
        let fits = before == opening && ends && word.len() > lead && word.len() <= head.len();
        if !fits {
            continue;
        }
        words.push(word);
        near = word.end;
        // The last one.
        if word.len() < head.len() || words.len() == PIECES_MAX {
            break;
        }
    }
    // Where numbers count the pieces, some may stand before the head.
    let first = counted.filter(|n| *n <= 1);
    let numbers: SmallVec<[Option<u32>; 8]> = words.iter().map(|w| w.number(text)).collect();
    let mixed = numbers.windows(2).any(|pair| pair[0] >= pair[1]);
    if let Some(first) = first
        && (mixed || words.len() == 1)
        && numbers.iter().all(Option::is_some)
    {
        return shuffled(text, head, lead, first);
    }
    let total: usize = words.iter().map(|w| w.len() - lead).sum();
    (words.len() > 1 && total >= TOKEN_BYTES_MIN).then(|| words.into_iter().map(piece).collect())
}

/// Pieces in any order, each with its number before it.
fn shuffled(text: &[u8], head: Word, lead: usize, first: u32) -> Option<SmallVec<[Span; 8]>> {
    const REACH: usize = 400;
    let (opening, _) = head.signs(text);
    let mut found: SmallVec<[(u32, Word); 8]> = SmallVec::new();
    let mut from = head.start.saturating_sub(REACH);
    while let Some(word) = Word::after(text, from).filter(|w| w.start < head.end + REACH) {
        from = word.end;
        let fits = word.signs(text).0[1] == opening[1] && word.len() > lead;
        let number = word
            .number(text)
            .filter(|_| fits && word.len() <= head.len());
        if let Some(number) = number.filter(|_| found.len() < PIECES_MAX) {
            found.push((number, word));
        }
    }
    found.sort_by_key(|(number, word)| (*number, word.start));
    found.dedup_by_key(|(number, _)| *number);
    let counts = |(nth, (number, _)): (usize, &(u32, Word))| *number == first + nth as u32;
    let row = found
        .iter()
        .enumerate()
        .take_while(|pair| counts(*pair))
        .count();
    found.truncate(row);
    let total: usize = found.iter().map(|(_, w)| w.len() - lead).sum();
    let piece = |(_, w): (u32, Word)| Span::new(w.start + lead, w.end);
    (found.len() > 2 && total >= TOKEN_BYTES_MIN).then(|| found.into_iter().map(piece).collect())
}

fn join(node: &Node, pieces: &[Span], spawn: &mut Spawner<'_>) {
    let Some(mut child) = spawn.begin(Layer::Joined) else {
        return;
    };
    let start = child.text.len();
    for piece in pieces {
        child.push(&node.text[piece.range()], *piece, How::Copy);
    }
    child.close_cell(start, Span::default(), LeafKind::String, 0);
    spawn.end(child);
}

#[cfg(test)]
mod tests {
    use super::{apart, pieces, wrapped};

    fn joined(text: &str, head: &str) -> Option<String> {
        let at = text.find(head).unwrap();
        let found = pieces(text.as_bytes(), at)?;
        Some(found.iter().map(|p| &text[p.range()]).collect())
    }

    #[test]
    fn pieces_between_the_same_signs() {
        let token = Some("ghp_Zq7kW2mXv9LtR4nB8sYd");
        for text in [
            "09:10 DEBUG frag=ghp_Zq7k\n09:11 DEBUG frag=W2mXv9Lt\n09:12 DEBUG frag=R4nB8sYd\n",
            "img_000_ghp_Zq7k.png\nimg_001_W2mXv9Lt.png\nimg_002_R4nB8sYd.png",
            "/x?a=ghp_Zq7k&b=W2mXv9Lt&c=R4nB8sYd",
            "X-Ray: ghp_Zq7k\nX-Edge: W2mXv9Lt\nX-Pop: R4nB8sYd\n",
            "int a = 1;  // ghp_Zq7k\nint b = 2;  // W2mXv9Lt\na += b;  // R4nB8sYd",
            "{\"ghp_Zq7k\": 0, \"W2mXv9Lt\": 1, \"R4nB8sYd\": 2}",
            "nr | val | loc\n 0 | ghp_Zq7k | XSV\n 1 | W2mXv9Lt | NMY\n 2 | R4nB8sYd | DLW",
            "3;R4nB8sYd\n1;ghp_Zq7k\n2;W2mXv9Lt",
            "1\n00:00:00,000 --> 00:00:01,500\nghp_Zq7k\n\n2\n00:00:02,000 --> 00:00:03,500\nW2mXv9Lt\n\n3\n             00:00:04,000 --> 00:00:05,500\nR4nB8sYd\n",
            "$ ls -1\nimg_000_ghp_Zq7k.png\nimg_001_W2mXv9Lt.png\nimg_002_R4nB8sYd.png\n",
            "<150>1 - bac knoo - seq 0 free 23% tag=ghp_Zq7k\n<59>1 - hbh rosp - seq 1 free 42% tag=W2mXv9Lt\n<7>1 - a b - \
             seq 2 tag=R4nB8sYd\n",
            "query { a0: node(id:\"ghp_Zq7k\"){id} a1: node(id:\"W2mXv9Lt\"){id} a2: node(id:\"R4nB8sYd\"){id} }",
            "+k = \"ghp_Zq7k\"\n+k += \"W2mXv9Lt\"\n+k += \"R4nB8sYd\"",
        ] {
            assert_eq!(joined(text, "ghp_").as_deref(), token, "{text}");
        }
        let short = "frag=ghp_Zq7k;\nfrag=W2mXv9Lt;\nfrag=R4nB;\nother=1;";
        assert_eq!(
            joined(short, "ghp_").as_deref(),
            Some("ghp_Zq7kW2mXv9LtR4nB")
        );
    }

    #[test]
    fn a_token_over_the_lines_of_a_mail() {
        let first = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJz";
        let next = "dWIiOiI4MDUxNDAzZS02ZWEyLTQ2MzAtYWEzZS0yZ.";
        for (text, lines) in [
            (format!("Bearer:\n{first}\n{next}\n0u83WfBv\n\nBye"), 3),
            (format!("> {first}\n> {next}\n> 0u83WfBv"), 3),
            (format!("{first}\nmore words of a text"), 0),
            (format!("{first}.0u83WfBv\ndone"), 0),
        ] {
            let at = text.find("eyJ").unwrap();
            let found = wrapped(text.as_bytes(), at);
            assert_eq!(found.map_or(0, |f| f.len()), lines, "{text}");
        }
    }

    #[test]
    fn signs_that_are_part_of_no_token() {
        for (text, want) in [
            (
                "npm_ + veT0p9CsgboemaZk + LaUZ8xVS now",
                Some("npm_veT0p9CsgboemaZkLaUZ8xVS"),
            ),
            (
                "\"hvs.\"\"CAESIs1w9plb\"\"dvheeHvvVO\"",
                Some("hvs.CAESIs1w9plbdvheeHvvVO"),
            ),
            (
                "ghp_4dvthS{}o8R0bgNk0ueap6}",
                Some("ghp_4dvthSo8R0bgNk0ueap6"),
            ),
            ("npm_ + name", None),
            ("npm_config", None),
        ] {
            let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap();
            let found = apart(text.as_bytes(), at);
            let found = found.map(|f| f.iter().map(|p| &text[p.range()]).collect::<String>());
            assert_eq!(found.as_deref(), want, "{text}");
        }
    }

    #[test]
    fn a_head_by_itself_is_no_token() {
        for text in [
            "ghp_ is how they begin",
            "prefix ghp_Zq7k, and more words of a text",
            "ghp_abcd",
        ] {
            assert_eq!(joined(text, "ghp_"), None, "{text}");
        }
    }
}
