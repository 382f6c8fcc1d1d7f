//! A day in the life of a proxy: mostly short calls, some long answers, now and then something to find.
//!
//! The shares are a judgement, not a measurement of anyone's traffic: most tool calls carry a query and an answer of a few
//! hundred bytes, files and search results a few KiB, and the rare export is large. One answer in four is a stream.

use super::{Payload, one};
use crate::plan::Content;
use crate::random::Random;

/// (bytes of the text, how many of 200 calls).
const SIZES: [(usize, usize); 7] = [
    (120, 40),
    (300, 70),
    (1 << 10, 36),
    (4 << 10, 30),
    (16 << 10, 14),
    (64 << 10, 8),
    (256 << 10, 2),
];
/// (what a text holds, how many of 200 calls). The rest is clean.
const CONTENTS: [(Content, usize); 3] = [
    (Content::Logged, 8),
    (Content::Redacted, 6),
    (Content::Blocked, 2),
];
/// One call in so many asks for a stream.
const STREAM_EVERY: u64 = 4;
/// Calls of the trace before it begins again.
const CALLS: usize = 400;

/// The calls of the trace, in their order.
pub fn texts(random: &mut Random) -> Vec<Payload> {
    let mut sizes = spread(&SIZES);
    random.shuffle(&mut sizes);
    let mut contents = spread(&CONTENTS);
    contents.resize(CALLS, Content::Clean);
    random.shuffle(&mut contents);
    sizes
        .into_iter()
        .zip(contents)
        .enumerate()
        .map(|(nth, (size, content))| {
            let stream = random.below(STREAM_EVERY) == 0;
            Payload {
                tool: stream.then_some("echo_sse"),
                ..one(random, size, content, nth)
            }
        })
        .collect()
}

fn spread<T: Copy>(shares: &[(T, usize)]) -> Vec<T> {
    shares
        .iter()
        .flat_map(|&(what, of_200)| std::iter::repeat_n(what, of_200 * CALLS / 200))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_day_has_its_shares() {
        let texts = texts(&mut Random::new(3));
        assert_eq!(texts.len(), CALLS);
        assert_eq!(SIZES.iter().map(|(_, n)| n).sum::<usize>(), 200);
        let of = |content| texts.iter().filter(|t| t.content == content).count();
        assert_eq!(
            [Content::Logged, Content::Redacted, Content::Blocked].map(of),
            [16, 12, 4]
        );
        let streams = texts.iter().filter(|t| t.tool.is_some()).count();
        assert!((50..=150).contains(&streams), "{streams}");
        assert!(
            texts
                .iter()
                .all(|t| t.planted.is_some() == (t.content != Content::Clean))
        );
    }
}
