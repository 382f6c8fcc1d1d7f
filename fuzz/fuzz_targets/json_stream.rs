//! The reader in pieces against the reader of whole messages: what the first accepts the second accepts, with the same
//! leaves, however the input is cut.
//!
//! Input: two bytes for each of up to 4 cuts, then the message.
#![no_main]

use std::ops::Range;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use mcp_codec::stream::{Event, MessageReader, Reader, StreamLimits};
use mcp_codec::{DecodeErrorKind, Document, LeafKind, Limits, Message};

fuzz_target!(|data: &[u8]| {
    let Some((cuts, bytes)) = data.split_at_checked(8) else {
        return;
    };
    let mut at: Vec<usize> = cuts
        .as_chunks::<2>()
        .0
        .iter()
        .map(|c| usize::from(u16::from_le_bytes(*c)) % (bytes.len() + 1))
        .collect();
    at.sort_unstable();
    let limits = StreamLimits::of(&Limits::default(), 1 << 30);

    let mut leaves: Vec<(LeafKind, String)> = Vec::new();
    let mut sink = |event: Event<'_>, _: Range<u64>| {
        match event {
            Event::Key(text) => leaves.push((LeafKind::Key, text.to_owned())),
            Event::Number(text) => leaves.push((LeafKind::Number, text.to_owned())),
            Event::TextStart => leaves.push((LeafKind::String, String::new())),
            Event::Text(piece) => leaves.last_mut().expect("it began").1.push_str(piece),
            _ => {}
        }
        Ok(())
    };
    let mut reader = Reader::new(limits);
    let read = pieces(bytes, &at).try_for_each(|piece| reader.push(piece, &mut sink));
    let read = read.and_then(|()| reader.finish(&mut sink));
    let whole = Document::parse(Bytes::copy_from_slice(bytes), &Limits::default());
    match (&whole, &read) {
        (Ok(doc), Ok(())) => {
            assert!(
                doc.leaves()
                    .map(|l| (l.kind, l.text))
                    .eq(leaves.iter().map(|(kind, text)| (*kind, text.as_str())))
            );
        }
        (Ok(_), Err(error)) => assert!(
            matches!(
                error.kind,
                DecodeErrorKind::NulInProtocolString | DecodeErrorKind::KeyTooLong
            ),
            "only in pieces: {error}"
        ),
        (Err(error), Ok(())) => panic!("only whole: {error}"),
        (Err(_), Err(_)) => {}
    }

    let mut nobody = |_: Event<'_>, _: Range<u64>| Ok(());
    let mut reader = MessageReader::new(limits);
    let read = pieces(bytes, &at).try_for_each(|piece| reader.push(piece, &mut nobody));
    if let Ok(kind) = read.and_then(|()| reader.finish(&mut nobody)) {
        let whole = Message::decode(Bytes::copy_from_slice(bytes), &Limits::default());
        let whole = whole.expect("what is accepted in pieces is accepted whole");
        assert_eq!(whole.kind(), kind);
        assert_eq!(whole.id(), reader.facts().id.clone().flatten().as_ref());
        assert_eq!(whole.method(), reader.facts().method.as_deref());
    }
});

fn pieces<'a>(bytes: &'a [u8], cuts: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let from = std::iter::once(0).chain(cuts.iter().copied());
    let to = cuts.iter().copied().chain([bytes.len()]);
    from.zip(to).map(|(from, to)| &bytes[from..to])
}
