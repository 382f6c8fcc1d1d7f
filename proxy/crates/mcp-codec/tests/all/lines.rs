//! Lines: split anywhere, bounded, never confused by what was too long.

use mcp_codec::lines::{Decoder, LineError, encode};

type Line = Result<String, LineError>;

fn drain(decoder: &mut Decoder, into: &mut Vec<Line>) {
    while let Some(line) = decoder.next() {
        let stop = line == Err(LineError::NotDrained);
        into.push(line.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
        if stop {
            return;
        }
    }
}

fn read(chunks: &[&[u8]], line_bytes_max: usize) -> (Vec<Line>, bool) {
    let mut decoder = Decoder::new(line_bytes_max);
    let mut lines = Vec::new();
    for chunk in chunks {
        decoder.push(chunk);
        drain(&mut decoder, &mut lines);
    }
    (lines, decoder.finish().is_ok())
}

fn whole(text: &str) -> Line {
    Ok(text.into())
}

#[test]
fn lines_and_their_ends() {
    let cases: &[(&[u8], &[Line], bool)] = &[
        (b"", &[], true),
        (b"a\n", &[whole("a")], true),
        (b"a\r\nb\n", &[whole("a"), whole("b")], true),
        (b"\n\r\n\n", &[], true),
        (b"a\rb\n", &[whole("a\rb")], true),
        (b"a", &[], false),
        (b"a\nb", &[whole("a")], false),
        (b"12345678\n", &[whole("12345678")], true),
        (b"12345678\r\n", &[whole("12345678")], true),
        (
            b"123456789\nok\n",
            &[Err(LineError::TooLong), whole("ok")],
            true,
        ),
        (
            b"12345678\rx\nok\n",
            &[Err(LineError::TooLong), whole("ok")],
            true,
        ),
        (
            b"1234567890123456789012345\nok\n123456789\r\nend\n",
            &[
                Err(LineError::TooLong),
                whole("ok"),
                Err(LineError::TooLong),
                whole("end"),
            ],
            true,
        ),
        (b"123456789", &[Err(LineError::TooLong)], false),
    ];
    for (input, lines, clean) in cases {
        let name = String::from_utf8_lossy(input);
        assert_eq!(read(&[input], 8), (lines.to_vec(), *clean), "{name:?}");
        for cut in 0..=input.len() {
            let (before, after) = input.split_at(cut);
            assert_eq!(
                read(&[before, after], 8),
                (lines.to_vec(), *clean),
                "{name:?} cut at {cut}"
            );
        }
        let bytes: Vec<&[u8]> = input.chunks(1).collect();
        assert_eq!(
            read(&bytes, 8),
            (lines.to_vec(), *clean),
            "{name:?} byte by byte"
        );
    }
}

#[test]
fn a_caller_that_never_takes_lines_is_stopped() {
    let mut decoder = Decoder::new(100);
    for _ in 0..1000 {
        decoder.push(b"{}\n");
    }
    let mut lines = Vec::new();
    drain(&mut decoder, &mut lines);
    assert!(lines.len() < 10, "{}", lines.len());
    assert_eq!(lines.last(), Some(&Err(LineError::NotDrained)));
}

#[test]
fn written_lines_are_read_again() {
    let mut out = Vec::new();
    encode(&mut out, b"{\"a\":1}").unwrap();
    encode(&mut out, b"{}").unwrap();
    assert_eq!(encode(&mut out, b"{\n}"), Err(LineError::LineBreak));
    assert_eq!(encode(&mut out, b"{}\r"), Err(LineError::LineBreak));
    assert_eq!(
        read(&[&out], 100),
        (vec![whole("{\"a\":1}"), whole("{}")], true)
    );
}
