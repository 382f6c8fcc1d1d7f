//! Base64, base32, base58 and hexadecimal runs, forwards, backwards or rotated, and gzip, zlib or deflate behind them.

use super::archive::{Packed, Unpacked, unpack};
use super::base58::base58;
use super::binary::{Bytes, Found, Texts, separate};
use super::digits::{
    Alphabet, Coded, Digits, base32_of, base64_bytes, is_hex, may_hold_text, never_text,
};
use super::packed::{HEAD, may_be_deflated, packed, packed_inside};
use super::run::Run;
use super::{Spawner, begin_cell, copy, lines, margin_after, margin_before, name_over, streams};
use crate::detect::Scratch;
use crate::text::{Cell, Fresh, How, Node, RUN_BYTES_MIN, Span, is_run};
use crate::{Layer, OverBudget};

/// Lines at least this long may be one wrapped run; shorter ones are put together as pieces of one length.
const WRAPPED_LINE_MIN: usize = 40;
/// A line break and the blanks before the next line.
const BREAK_BYTES_MAX: usize = 128;

pub(super) fn decode(node: &Node, scratch: &Scratch, spawn: &mut Spawner<'_>) {
    let (mut done, mut index) = (0, 0);
    // Of hexadecimal digits, and of others.
    let mut unjoined = [0; 2];
    let (runs, mut seen) = (&scratch.traces.runs, lines::Seen::default());
    // No run goes over the end of its cell.
    for (nth, span) in runs.iter().enumerate() {
        let (start, end) = (span.start as usize, span.end as usize);
        // It may be a line of a longer one.
        if start >= done
            && !seen.covers(*span)
            && let Some(cell) = node.cell_from(start, &mut index)
            && !decorated(node, cell, &runs[..=nth], &mut seen, spawn)
        {
            // A list of hashes is no text either.
            let hex = node.text[start..end].iter().all(is_hex);
            let (of_line, unjoined): (fn(u8) -> bool, _) = match hex {
                true => (|b| is_hex(&b), &mut unjoined[0]),
                false => (is_run, &mut unjoined[1]),
            };
            // Lines that are no run together are none from the second on either.
            let wrapped = match start >= *unjoined {
                true => wrapped_end(node, cell, (start, end), of_line),
                false => None,
            };
            done = match wrapped {
                Some(last) if joined(node, cell, (start, last), hex, spawn) => last,
                Some(last) if !hex && is_of_file(&node.text[start..last], end - start) => {
                    packed_lines(node, cell, (start, last), spawn);
                    last
                }
                _ => {
                    *unjoined = (*unjoined).max(wrapped.unwrap_or(0));
                    run(node, cell, (start, end), spawn);
                    end
                }
            };
        }
    }
}

/// So many lines of a file in base64 say what it is.
const FILE_LINES_MIN: usize = 8;
/// Digits of a line that show whether it begins as something of its own.
const PACKED_HEAD_DIGITS: usize = 40;

/// Are these the lines of a program, a picture, or what else is no text? Its texts were read out of all lines together; a line that
/// is text by chance is none of a list of values, where most are.
fn is_of_file(text: &[u8], line: usize) -> bool {
    let (mut lines, mut texts) = (0, 0);
    for digits in text
        .split(u8::is_ascii_whitespace)
        .filter(|l| !l.is_empty())
    {
        lines += 1;
        let bytes: Vec<u8> = Digits::new(digits, Alphabet::Base64).collect();
        let plain = |c: char| !c.is_control() || c.is_ascii_whitespace();
        let said = std::str::from_utf8(&bytes).is_ok_and(|text| text.chars().all(plain));
        texts += usize::from(said);
    }
    line.is_multiple_of(Alphabet::Base64.group().1) && lines >= FILE_LINES_MIN && texts * 2 < lines
}

/// A line that begins as something packed, or as text in UTF-16, may be a value of its own all the same.
fn packed_lines(node: &Node, cell: &Cell, (start, end): (usize, usize), spawn: &mut Spawner<'_>) {
    let text = &node.text[start..end];
    for line in text.split(u8::is_ascii_whitespace) {
        let head = &line[..line.len().min(PACKED_HEAD_DIGITS)];
        let bytes: Vec<u8> = Digits::new(head, Alphabet::Base64).collect();
        let of_own = packed(&bytes[..bytes.len().min(HEAD)], line.len()).is_some();
        if of_own || utf16_order(&bytes).is_some() {
            let from = start + (line.as_ptr() as usize - text.as_ptr() as usize);
            run(node, cell, (from, from + line.len()), spawn);
        }
    }
}

/// The last of the runs, with what goes on from it in the lines that follow and that have something before or behind it.
fn decorated(
    node: &Node,
    cell: &Cell,
    runs: &[Span],
    seen: &mut lines::Seen,
    spawn: &mut Spawner<'_>,
) -> bool {
    let within = (cell.span.start as usize, cell.span.end as usize);
    let column = seen.column(&node.text, runs, within.1);
    let Some((first, (column, line_end))) = runs.last().zip(column) else {
        return false;
    };
    let place = (first.start as usize, first.end as usize);
    for bodies in lines::rows(&node.text, place, line_end, within) {
        // Where one of many lines was read by itself, those beside it have been looked at together.
        let mut new = bodies
            .iter()
            .filter(|body| spawn.is_new(**body, Fresh::overlaps));
        let is_new = node.coded == 0 || new.nth(1).is_some();
        let read = is_new && row(node, cell, &bodies, spawn);
        seen.note(column, bodies, read);
        if read {
            return true;
        }
    }
    false
}

/// The digits of some lines as one run. If that is all they are, nothing is left to be read in each.
fn row(node: &Node, cell: &Cell, bodies: &[Span], spawn: &mut Spawner<'_>) -> bool {
    let digits = lines::digits(&node.text, bodies);
    let alphabets = match digits.iter().all(is_hex) {
        true => [Some(Alphabet::Hex), None],
        false => [base32_of(&digits), Some(Alphabet::Base64)],
    };
    let mut emit_lines = |bodies: &[Span], digits: &[u8]| {
        let place = (
            bodies[0].start as usize,
            bodies[bodies.len() - 1].end as usize,
        );
        let mut alphabets = alphabets.into_iter().flatten();
        alphabets.find(|of| emit_as(node, cell, place, (digits, bodies), (*of, None), spawn))
    };
    if let Some(alphabet) = emit_lines(bodies, &digits) {
        return !each(node, cell, bodies, alphabet, spawn);
    }
    // What is shorter may be a word below the last line.
    let [rest @ .., last] = bodies else {
        return false;
    };
    if last.len() < bodies[0].len()
        && rest.len() > 1
        && let Some(alphabet) = emit_lines(rest, &digits[..digits.len() - last.len()])
    {
        return !each(node, cell, rest, alphabet, spawn);
    }
    if bodies[0].len() >= WRAPPED_LINE_MIN || bodies.len() > 2 {
        let run = Run::of_lines(&digits, bodies);
        let place = (bodies[0].start as usize, last.end as usize);
        let alphabet = alphabets[0].unwrap_or(Alphabet::Base64);
        run_texts(node, cell, &run, place, alphabet, spawn);
    }
    false
}

/// Lines of whole groups may as well be a value each, that only happens to be as long as the others. All of them are put in the
/// places of their digits, in one child. Whether each has to be looked at by itself, since it is packed.
fn each(
    node: &Node,
    cell: &Cell,
    bodies: &[Span],
    alphabet: Alphabet,
    spawn: &mut Spawner<'_>,
) -> bool {
    if !bodies[0].len().is_multiple_of(alphabet.group().1) {
        return false;
    }
    let bytes =
        |body: &Span| -> Vec<u8> { Digits::new(&node.text[body.range()], alphabet).collect() };
    let head = |body: &Span| {
        let bytes = bytes(body);
        packed(&bytes[..bytes.len().min(HEAD)], body.len())
    };
    if let Some(first) = head(&bodies[0]) {
        return head(&bodies[1]) == Some(first);
    }
    let texts: Vec<Vec<u8>> = bodies.iter().map(bytes).collect();
    if !texts.iter().all(|text| std::str::from_utf8(text).is_ok()) {
        return false;
    }
    let Some(mut child) = spawn.begin(alphabet.layer()) else {
        return false;
    };
    let (first, last) = (bodies[0], bodies[bodies.len() - 1]);
    // What stands above and below is not theirs, and what is coded there would be read once more.
    let within = (cell.span.start as usize, cell.span.end as usize);
    let (from, to) = lines::around(&node.text, (first, last), within);
    let name = begin_cell(&mut child, node, name_over(node, cell, from));
    let (at, mut end) = (child.text.len(), from);
    for (body, text) in bodies.iter().zip(&texts) {
        copy(&mut child, node, end, body.start as usize);
        let digits = &node.text[body.range()];
        Run::of_lines(digits, &[*body]).push(&mut child, text, (0, 0), alphabet);
        end = body.end as usize;
    }
    copy(&mut child, node, end, to);
    child.close_cell(at, name, cell.kind, 0);
    spawn.end(child);
    false
}

/// One run on one line.
fn run(node: &Node, cell: &Cell, (start, end): (usize, usize), spawn: &mut Spawner<'_>) {
    let text = &node.text[start..end];
    // PostgreSQL writes bytes as `\x6768`.
    let bytea = text[0] == b'x' && start > 0 && node.text[start - 1] == b'\\';
    let hex_from = usize::from(text.starts_with(b"0x")) * 2 + usize::from(bytea);
    if (text.len() - hex_from).is_multiple_of(2) && text[hex_from..].iter().all(is_hex) {
        let place = (start + hex_from, end);
        let binary = text.len().is_multiple_of(8) && text.iter().all(|b| matches!(b, b'0' | b'1'));
        let alphabet = match binary {
            true => Alphabet::Binary,
            false => Alphabet::Hex,
        };
        if !emit(node, cell, place, alphabet, spawn) {
            if !binary {
                turned(node, cell, place, alphabet, spawn);
            }
            texts(node, cell, place, alphabet, spawn);
        }
        return;
    }
    if let Some(alphabet) = base32_of(text)
        && emit(node, cell, (start, end), alphabet, spawn)
    {
        return;
    }
    if emit(node, cell, (start, end), Alphabet::Base64, spawn) {
        return;
    }
    // A path or a prefix glued to the front; UTF-7 begins with a plus.
    let cut = match text[0] {
        b'+' => Some(0),
        _ => text.iter().position(|b| *b == b'/'),
    };
    if let Some(cut) = cut
        && text.len() - cut > RUN_BYTES_MIN
        && emit(node, cell, (start + cut + 1, end), Alphabet::Base64, spawn)
    {
        texts(node, cell, (start, start + cut), Alphabet::Base64, spawn);
        return;
    }
    if turned(node, cell, (start, end), Alphabet::Base64, spawn) {
        // Not all of it need be text that way.
        texts(node, cell, (start, end), Alphabet::Base64, spawn);
    } else if !base58(node, cell, (start, end), spawn) && !made_of_noise(node) {
        glued(node, cell, (start, end), spawn);
    }
}

/// Lines as one run, if that is a text as a whole; if not, they are looked at one by one as well.
fn joined(
    node: &Node,
    cell: &Cell,
    place: (usize, usize),
    hex: bool,
    spawn: &mut Spawner<'_>,
) -> bool {
    if hex {
        return emit(node, cell, place, Alphabet::Hex, spawn);
    }
    let digits: Vec<u8> = node.text[place.0..place.1]
        .iter()
        .copied()
        .filter(|b| is_run(*b))
        .collect();
    let mut alphabets = [base32_of(&digits), Some(Alphabet::Base64)]
        .into_iter()
        .flatten();
    if alphabets.any(|of| emit(node, cell, place, of, spawn)) {
        return true;
    }
    texts(node, cell, place, Alphabet::Base64, spawn);
    false
}

/// Five times what of a short text may be none, beside a fifth.
const OTHER_BYTES: usize = 1024;
/// How far from the front of a run its digits may begin behind a sign.
const PREFIX_BYTES_MAX: usize = 16;

/// Signs and letters of the alphabet that stand before the digits or behind them (`tok_6c6f`, `v1-bXkg`) shift what is
/// read, or make another alphabet of it.
fn glued(node: &Node, cell: &Cell, (start, end): (usize, usize), spawn: &mut Spawner<'_>) {
    let text = &node.text[start..end];
    stretches(text, is_hex, |from, to| {
        let (from, to) = (start + from, start + to);
        let even = |from: usize| (from, to - (to - from) % 2);
        let mut whole =
            |from| to - from >= RUN_BYTES_MIN && emit(node, cell, even(from), Alphabet::Hex, spawn);
        if !whole(from) && !whole(from + 1) {
            texts(node, cell, (from, to), Alphabet::Hex, spawn);
        }
    });
    let base32 = |place: (usize, usize), spawn: &mut Spawner<'_>| {
        let digits = &text[place.0..place.1];
        if digits.iter().all(is_hex) {
            return;
        }
        if let Some(alphabet) = base32_of(digits) {
            let place = (start + place.0, start + place.1);
            if !emit(node, cell, place, alphabet, spawn) {
                texts(node, cell, place, alphabet, spawn);
            }
        }
    };
    stretches(
        text,
        |b| matches!(b, b'0'..=b'9' | b'A'..=b'Z'),
        |from, to| base32((from, to), spawn),
    );
    stretches(
        text,
        |b| matches!(b, b'0'..=b'9' | b'a'..=b'z'),
        |from, to| base32((from, to), spawn),
    );
    // Text in base64 has capital letters: they stand for blanks, digits and capital letters, and begin every third small one.
    if !text.iter().any(u8::is_ascii_uppercase) {
        return;
    }
    let front = &text[..text.len().min(PREFIX_BYTES_MAX)];
    let behind_sign = |at: &usize| *at < 4 || matches!(front[*at - 1], b'-' | b'_');
    let cuts = (1..front.len()).filter(behind_sign);
    for cut in cuts.filter(|cut| text.len() - cut >= RUN_BYTES_MIN) {
        if emit(node, cell, (start + cut, end), Alphabet::Base64, spawn) {
            texts(node, cell, (start, start + cut), Alphabet::Base64, spawn);
            return;
        }
    }
    texts(node, cell, (start, end), Alphabet::Base64, spawn);
}

/// The longest pieces of at least [`RUN_BYTES_MIN`] bytes that are all of a kind.
fn stretches(text: &[u8], is: fn(&u8) -> bool, mut found: impl FnMut(usize, usize)) {
    // One of so many bytes in a row lies in each.
    let mut at = RUN_BYTES_MIN - 1;
    let mut floor = 0;
    while at < text.len() {
        if is(&text[at]) {
            let before = text[floor..at].iter().rev().take_while(|b| is(b)).count();
            let len = before + text[at..].iter().take_while(|b| is(b)).count();
            floor = at - before + len;
            if len >= RUN_BYTES_MIN {
                found(at - before, floor);
            }
            at = floor;
        }
        at += RUN_BYTES_MIN;
    }
}

/// The same run backwards, and (letters only) rotated.
fn turned(
    node: &Node,
    cell: &Cell,
    (start, end): (usize, usize),
    alphabet: Alphabet,
    spawn: &mut Spawner<'_>,
) -> bool {
    let source = &node.text[start..end];
    if source.len() < RUN_BYTES_MIN || node.turned {
        return false;
    }
    // Few runs come any further than their first digits.
    let front = |turn: fn(usize, &[u8]) -> u8| {
        let first: [u8; 4] = std::array::from_fn(|i| turn(i, source));
        if never_text(&first, alphabet) {
            return false;
        }
        let front: [u8; RUN_BYTES_MIN] = std::array::from_fn(|i| turn(i, source));
        let mut text = [0; 8];
        let digits = Digits::new(&front, alphabet);
        text.iter_mut().zip(digits).for_each(|(to, b)| *to = b);
        packed(&text, 0).is_some() || texty(&text)
    };
    let mut emit_turned = |bytes: Vec<u8>, layer: Layer| {
        let how = (alphabet, Some(layer));
        !bytes.contains(&b'\n') && emit_as(node, cell, (start, end), (&bytes, &[]), how, spawn)
    };
    if front(|i, source| source[source.len() - 1 - i])
        && emit_turned(source.iter().rev().copied().collect(), Layer::Reversed)
    {
        return true;
    }
    alphabet == Alphabet::Base64
        && front(|i, source| super::rot13(source[i]))
        && emit_turned(
            source.iter().map(|b| super::rot13(*b)).collect(),
            Layer::Rot13,
        )
}

/// MIME, PEM and YAML break long runs into lines of one length, of which the last may be shorter. Where the last line ends,
/// if there is more than one.
fn wrapped_end(
    node: &Node,
    cell: &Cell,
    (start, end): (usize, usize),
    of_line: fn(u8) -> bool,
) -> Option<usize> {
    let rest = &node.text[..cell.span.end as usize];
    let (line, mut last, mut lines) = (end - start, end, 1);
    let labels = !of_line(b'z') && rest.get(end) == Some(&b'.');
    if line < WRAPPED_LINE_MIN && !labels {
        return None;
    }
    loop {
        let blanks = rest[last..].iter().take(BREAK_BYTES_MAX);
        let gap = blanks.take_while(|b| b" \t\r\n".contains(b)).count();
        // Labels of a host's name (RFC 1035: no longer than 63 bytes) that carry bytes out.
        let label = labels && rest.get(last) == Some(&b'.');
        let gap = gap.max(usize::from(label));
        let next = last + gap;
        let digits = rest[next..].iter().take(line + 1);
        let len = digits.take_while(|b| of_line(**b)).count();
        // A line of hexadecimal digits that goes on with others is none.
        if len <= line && rest.get(next + len).is_some_and(|b| is_run(*b)) {
            break;
        }
        if gap == 0 || len == 0 || len > line {
            break;
        }
        if len < line {
            // What stands behind a blank may as well be a word.
            if lines > 1 || label || rest[last..next].contains(&b'\n') {
                (last, lines) = (next + len, lines + 1);
            }
            break;
        }
        (last, lines) = (next + len, lines + 1);
    }
    (lines > 1).then_some(last)
}

/// Decodes a run into a child if what comes out is text.
fn emit(
    node: &Node,
    cell: &Cell,
    place: (usize, usize),
    alphabet: Alphabet,
    spawn: &mut Spawner<'_>,
) -> bool {
    let source = &node.text[place.0..place.1];
    emit_as(node, cell, place, (source, &[]), (alphabet, None), spawn)
}

/// As [`emit`], of digits that may have been turned before, or of those that stand in some lines.
fn emit_as(
    node: &Node,
    cell: &Cell,
    (start, end): (usize, usize),
    (source, lines): (&[u8], &[Span]),
    (alphabet, under): (Alphabet, Option<Layer>),
    spawn: &mut Spawner<'_>,
) -> bool {
    let layer = alphabet.layer();
    let run_of = || match lines {
        [] => Run::new(source, start),
        lines => Run::of_lines(source, lines),
    };
    if never_text(source, alphabet) && !may_be_deflated(source, alphabet) {
        return false;
    }
    let mut head = [0; HEAD];
    let mut len = 0;
    for b in Digits::new(source, alphabet).take(HEAD) {
        head[len] = b;
        len += 1;
    }
    let head = &head[..len];
    let packed = packed(head, source.len()).filter(|packed| {
        // Its own sign are more bytes than the head has.
        *packed != Packed::Lzma || streams::may_be_lzma(Digits::new(source, alphabet))
    });
    let wide = utf16_order(head);
    if packed.is_none() && wide.is_none() && !(len >= 8 && texty(head)) {
        return false;
    }
    let mut bytes = Vec::with_capacity(source.len() * 3 / 4);
    if bytes.capacity() > spawn.room() {
        spawn.over.get_or_insert(OverBudget::DecodedBytes);
        return true;
    }
    Digits::new(source, alphabet).for_each(|b| bytes.push(b));
    if let Some(inner) = packed {
        let Unpacked { any, streams } =
            unpack(node, cell, (start, end), layer, &bytes, inner, spawn);
        // Something else may stand behind it.
        if any && under.is_none() {
            let (run, front) = (run_of(), Some((inner, &streams[..])));
            packed_texts(node, cell, &run, (start, end), alphabet, front, spawn);
            plain_texts(node, cell, &run, (start, end), alphabet, spawn);
        }
        return any;
    }
    if let Some(read) = wide {
        bytes = from_utf16(&bytes, read);
    }
    let valid = valid_len(&bytes);
    // What is broken further on is read in pieces. Of what was turned the front will do: few runs come so far.
    let whole = match under {
        None => valid + 3 >= bytes.len(),
        Some(_) => valid * 10 >= bytes.len() * 8,
    };
    if valid < 8 || !whole || !texty(&bytes[..valid]) {
        return false;
    }
    let Some(mut child) = spawn.begin(layer) else {
        return true;
    };
    child.under = under;
    child.turned |= under.is_some();
    in_place(node, cell, (start, end), child, spawn, |child| {
        match wide.is_some() || under.is_some() {
            true => child.push(&bytes[..valid], Span::new(start, end), How::Atom),
            false => run_of().push(child, &bytes[..valid], (0, 0), alphabet),
        }
    });
    true
}

/// Puts a child in the place of a run, with what stands around it.
fn in_place(
    node: &Node,
    cell: &Cell,
    (start, end): (usize, usize),
    mut child: Node,
    spawn: &mut Spawner<'_>,
    fill: impl FnOnce(&mut Node),
) {
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let name = begin_cell(&mut child, node, name_over(node, cell, start));
    let at = child.text.len();
    let margin = margin_before(&node.text, start, floor);
    let before = super::without_data_head(&node.text[margin..start]);
    copy(&mut child, node, margin, margin + before.len());
    // `0x` or a prefix of letters is no part of the value.
    let glued = start > floor && node.text[start - 1].is_ascii_alphanumeric();
    if glued {
        child.push(b" ", Span::new(start, start + 1), How::Atom);
    }
    fill(&mut child);
    let mut tail = end;
    while tail < ceil && node.text[tail] == b'=' {
        tail += 1;
    }
    // A blank keeps the margin apart from the value.
    child.push(b" ", Span::new(end.saturating_sub(1), end), How::Atom);
    copy(&mut child, node, tail, margin_after(&node.text, tail, ceil));
    child.close_cell(at, name, cell.kind, 0);
    spawn.end(child);
}

/// A run that is no text as a whole, nor packed from its front: the texts in what it stands for, wherever its first group
/// begins.
fn texts(
    node: &Node,
    cell: &Cell,
    (start, end): (usize, usize),
    alphabet: Alphabet,
    spawn: &mut Spawner<'_>,
) {
    let run = Run::new(&node.text[start..end], start);
    run_texts(node, cell, &run, (start, end), alphabet, spawn);
}

/// The same of a run that is known.
fn run_texts(
    node: &Node,
    cell: &Cell,
    run: &Run<'_>,
    place: (usize, usize),
    alphabet: Alphabet,
    spawn: &mut Spawner<'_>,
) {
    if !made_of_noise(node) {
        packed_texts(node, cell, run, place, alphabet, None, spawn);
        plain_texts(node, cell, run, place, alphabet, spawn);
    }
}

/// What is packed behind something else, where `front` is what was read at the front of the run, and from where on.
fn packed_texts(
    node: &Node,
    cell: &Cell,
    run: &Run<'_>,
    place: (usize, usize),
    alphabet: Alphabet,
    front: Option<(Packed, &[usize])>,
    spawn: &mut Spawner<'_>,
) {
    let (of_front, streams) = front.map_or((None, &[][..]), |(of, streams)| (Some(of), streams));
    let all = packed_inside(&run.digits, alphabet, streams, |at, packed| {
        // An archive has been gone through to its end, with all heads in it.
        let known = at.first % alphabet.group().1 == 0 && packed == Packed::Zip;
        if known && of_front == Some(Packed::Zip) {
            return Vec::new();
        }
        if run.digits.len() > spawn.room() {
            spawn.over.get_or_insert(OverBudget::DecodedBytes);
            return Vec::new();
        }
        let digits = &run.digits[at.first..];
        let bytes: Vec<u8> = Digits::new(digits, alphabet).skip(at.skipped).collect();
        unpack(node, cell, place, alphabet.layer(), &bytes, packed, spawn).streams
    });
    if !all {
        spawn.over.get_or_insert(OverBudget::DecodedBytes);
    }
}

/// Of the digits of a picture other decoders make many texts, and all that is in those is noise.
fn made_of_noise(node: &Node) -> bool {
    node.turned || node.only_sure || node.layer == Some(Layer::Spaced)
}

/// What is text.
fn plain_texts(
    node: &Node,
    cell: &Cell,
    run: &Run<'_>,
    place: (usize, usize),
    alphabet: Alphabet,
    spawn: &mut Spawner<'_>,
) {
    let mut whole = Vec::new();
    for skipped in 0..alphabet.group().1.min(run.digits.len()) {
        let digits = &run.digits[skipped..];
        if alphabet == Alphabet::Hex && !may_hold_text(digits) {
            continue;
        }
        let goes_on = match alphabet == Alphabet::Base64 && digits.len() >= WHOLE_DIGITS_MIN {
            true => {
                base64_bytes(digits, &mut whole);
                texts_of(
                    node,
                    cell,
                    run,
                    &whole[..],
                    (place, skipped),
                    alphabet,
                    spawn,
                )
            }
            false => {
                let bytes = Coded { digits, alphabet };
                texts_of(node, cell, run, &bytes, (place, skipped), alphabet, spawn)
            }
        };
        if !goes_on {
            return;
        }
    }
}

/// More digits than this are made bytes at once: where there are few, most of them are not looked at.
const WHOLE_DIGITS_MIN: usize = 128;

/// The texts in the bytes that digits stand for, of which so many were skipped. False if there is no room for them.
fn texts_of<B: Bytes + ?Sized>(
    node: &Node,
    cell: &Cell,
    run: &Run<'_>,
    bytes: &B,
    ((start, end), skipped): ((usize, usize), usize),
    alphabet: Alphabet,
    spawn: &mut Spawner<'_>,
) -> bool {
    let mut found = Texts::new(bytes).peekable();
    if found.peek().is_none() {
        return true;
    }
    let found: Vec<Found> = found.collect();
    let text: usize = found.iter().map(|f| f.end - f.start).sum();
    if text + found.len() > spawn.room() {
        spawn.over.get_or_insert(OverBudget::DecodedBytes);
        return false;
    }
    let other = bytes.len() - text;
    // Words by chance are nothing that had to be looked at. Most pairs of decimal digits stand for something printable.
    let by_chance = match alphabet == Alphabet::Hex && run.digits.iter().all(u8::is_ascii_digit) {
        true => other * 5 > bytes.len(),
        false => spawn.is_deepest() && other > text && found.iter().all(Found::is_short),
    };
    if by_chance {
        return true;
    }
    let Some(mut child) = spawn.begin(alphabet.layer()) else {
        return false;
    };
    let fill = |child: &mut Node| {
        let mut last = 0;
        for Found { start, end, step } in found {
            let source = run.source(start, end, skipped, alphabet);
            let mut between = Vec::new();
            separate(bytes, (last, start), &mut between);
            child.push(
                &between,
                Span::new(source.start as usize, source.start as usize + 1),
                How::Atom,
            );
            let text: Vec<u8> = (start..end).step_by(step).map(|at| bytes.at(at)).collect();
            match step {
                1 => run.push(child, &text, (start, skipped), alphabet),
                _ => child.push(&text, source, How::Atom),
            }
            last = end;
        }
    };
    // What stands around it says something of a text with a head or a few wrong bytes, and nothing of the words in a
    // program.
    if other <= text && other * 5 <= bytes.len() + OTHER_BYTES {
        in_place(node, cell, (start, end), child, spawn, fill);
    } else {
        child.only_sure = true;
        fill(&mut child);
        child.close_cell(0, Span::default(), cell.kind, 0);
        spawn.end(child);
    }
    true
}

/// How much of the front is UTF-8.
fn valid_len(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Ok(_) => bytes.len(),
        Err(e) => e.valid_up_to(),
    }
}

/// Printable or blank, UTF-8 as far as it goes.
pub(super) fn texty(bytes: &[u8]) -> bool {
    let valid = valid_len(bytes);
    valid + 3 >= bytes.len()
        && bytes[..valid]
            .iter()
            .filter(|b| **b < 0x20 && !matches!(b, b'\n' | b'\r' | b'\t' | 0x1B) || **b == 0x7F)
            .count()
            * 50
            <= valid
}

/// One unit of UTF-16.
pub(super) type ReadUnit = fn([u8; 2]) -> u16;

/// Letters with a zero after each (PowerShell's -EncodedCommand) or before, now and then one of another script.
/// Where its mark stands in front, it may be any script.
pub(super) fn utf16_order(head: &[u8]) -> Option<ReadUnit> {
    match head {
        [0xFF, 0xFE, ..] => return Some(u16::from_le_bytes),
        [0xFE, 0xFF, ..] => return Some(u16::from_be_bytes),
        _ => {}
    }
    let units = head.as_chunks::<2>().0;
    let orders: [ReadUnit; 2] = [u16::from_le_bytes, u16::from_be_bytes];
    orders.into_iter().find(|read| {
        let plain = units.iter().filter(|unit| {
            matches!(read(**unit), 0x20..0x7F) || b"\n\r\t".map(u16::from).contains(&read(**unit))
        });
        head.len() >= 8 && plain.count() * 5 >= units.len() * 4
    })
}

/// UTF-16 as UTF-8. Where more than a few of its units are halves of no character it is something else, and gives nothing.
fn from_utf16(bytes: &[u8], read: ReadUnit) -> Vec<u8> {
    let units = bytes.as_chunks::<2>().0;
    let chars = char::decode_utf16(units.iter().map(|unit| read(*unit)));
    let mut broken = 0;
    let text: String = chars
        .map(|c| {
            broken += usize::from(c.is_err());
            c.unwrap_or(char::REPLACEMENT_CHARACTER)
        })
        .collect();
    match broken * 50 <= units.len() {
        true => text.into_bytes(),
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::tests::children;

    fn has(text: &str, layer: Layer, want: &str) -> bool {
        children(text)
            .iter()
            .any(|(l, t, _)| *l == layer && t.contains(want))
    }

    #[test]
    fn labels_of_a_host_are_one() {
        let text = "get 6768705f5a71376b57326d5876394c70.345473523862.x.example.org";
        assert!(has(text, Layer::Hex, "ghp_Zq7kW2mXv9Lp4TsR8b"));
        assert!(!has(
            "deadbeefdeadbeefdeadbeefdeadbeef.0a0b0c0d.example",
            Layer::Hex,
            ""
        ));
    }

    #[test]
    fn alphabets() {
        let cases = [
            (
                "payload: dG9rZW49Z2hwX2FiY2RlZg==",
                Layer::Base64,
                "token=ghp_abcdef",
            ),
            (
                "d=dG9rZW49Z2hwX2FiY2RlZj8_Pz8",
                Layer::Base64,
                "token=ghp_abcdef????",
            ),
            ("746f6b656e3d6768705f616263", Layer::Hex, "token=ghp_abc"),
            ("ORXWWZLOHVTWQ4C7MFRGGZA=", Layer::Base32, "token=ghp_abcd"),
            (
                "p dABvAGsAZQBuAD0AZwBoAHAAXwA=",
                Layer::Base64,
                "token=ghp_",
            ),
            (
                "p AHQAbwBrAGUAbgA9AGcAaABwAF8=",
                Layer::Base64,
                "token=ghp_",
            ),
            (
                "p +AHQAbwBrAGUAbgA9AGcAaABwAF8-",
                Layer::Base64,
                "token=ghp_",
            ),
            (
                "0111000001100001011100110111001100111101011110000011000100111001",
                Layer::Codes,
                "pass=x19",
            ),
            (
                "n = 0x746f6b656e3d6768705f616263",
                Layer::Hex,
                "0x token=ghp_abc",
            ),
            ("orxwwzlohvtwq4c7mfrggza", Layer::Base32, "token=ghp_abcd"),
            ("EHNMMPBE7LJMGS2VC5H66P0=", Layer::Base32, "token=ghp_abcd"),
            (
                "==gZlR2YiF2Xwh2Z94WZr9Gd",
                Layer::Base64,
                "token=ghp_abcdef",
            ),
            (
                "qT9eMJ49M2ujK2SvL2EyMt==",
                Layer::Base64,
                "token=ghp_abcdef",
            ),
            (
                "746f6b656e3d6768705f6162636465666768696a6b6c\n6d6e6f707172737475767778797a20746f6b656e3d67\n68705f6162\nend",
                Layer::Hex,
                "token=ghp_abcdefghijklmnopqrstuvwxyz token=ghp_ab",
            ),
            (
                "665646362616f5078676d3e656b6f647",
                Layer::Hex,
                "token=ghp_abcdef",
            ),
            ("FNvKWh5xS1JzvPJmmawXWV", Layer::Base58, "token=ghp_abcdef"),
            ("K8nPTs2zTc8oiE9MSk5JTQMA", Layer::Zlib, "token=ghp_abcdef"),
        ];
        for (text, layer, want) in cases {
            assert!(
                has(text, layer, want),
                "{text}: {:?}",
                children(text)
                    .iter()
                    .map(|(l, t, _)| (*l, t.clone()))
                    .collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn noise_is_left_alone() {
        for text in [
            "4012b2614a42b61c43ca1f4a3e98d956dfec4925",
            "iVBORw0KGgoAAAANSUhEUgAAw0wt04+nRZVMwK9aimq6dA",
            "some-long-identifier-name-here_and_more",
            "0xdeadbeefdeadbe",
        ] {
            assert!(
                children(text)
                    .iter()
                    .all(|(l, ..)| !matches!(l, Layer::Base64 | Layer::Hex | Layer::Base32)),
                "{text}"
            );
        }
    }

    #[test]
    fn offsets_lead_back_to_the_digits() {
        let text = "x: dG9rZW49Z2hwX2FiY2RlZg== y";
        for (layer, child, map) in children(text) {
            if layer == Layer::Base64 {
                let at = child.find("ghp_abc").unwrap();
                assert_eq!(&text[map(at, at + 7)], "Z2hwX2FiY2Rl");
            }
        }
    }

    #[test]
    fn gzip_is_bounded() {
        use std::io::Write;
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gz.write_all(&vec![b'a'; 20 << 20]).unwrap();
        let packed = gz.finish().unwrap();
        let text: String = packed.iter().map(|b| format!("{b:02x}")).collect();
        let (nodes, over) = crate::decode::tests::run(&text, 1 << 20);
        assert!(nodes.iter().map(|n| n.text.len()).sum::<usize>() <= 1 << 20);
        assert_eq!(over, Some(OverBudget::DecodedBytes));
    }
}
