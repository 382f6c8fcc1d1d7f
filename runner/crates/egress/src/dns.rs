//! DNS questions and answers as bytes (RFC 1035): the part that a resolver for one sandbox needs, and no more.
//!
//! A question with a name that is no host name is a question all the same, and is answered with NXDOMAIN; bytes that
//! are no question get FORMERR if they have a header, and nothing at all otherwise.

use std::net::Ipv4Addr;

use crate::host::HostName;

/// The longest question that is read, in bytes: a header, a name, type and class, and room for EDNS options.
pub const QUESTION_BYTES_MAX: usize = 1232;
/// How long an answer may be kept, in seconds. Short, since rules change.
const TTL_S: u32 = 5;
const HEADER_BYTES: usize = 12;
const NAME_BYTES_MAX: usize = 255;

/// A question.
#[derive(Debug, PartialEq, Eq)]
pub struct Question<'a> {
    id: [u8; 2],
    opcode: u8,
    recursion_desired: bool,
    /// Name, type and class as they came: they go back in the answer, in the case that the asker chose.
    raw: &'a [u8],
    /// The name; `None` when it is not a host name.
    pub name: Option<HostName>,
    /// What is asked for.
    pub kind: Kind,
}

/// What a question asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An IPv4 address.
    A,
    /// Any other record of class IN.
    Other,
    /// Not a query, or of another class.
    Unsupported,
}

/// What the answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// The name has this address.
    Address(Ipv4Addr),
    /// The name is there, but has no such record.
    NoData,
    /// There is no such name.
    NoName,
    /// Not now.
    Failed,
    /// Not a thing that this resolver does.
    NotDone,
}

impl Reply {
    fn code(self) -> u8 {
        match self {
            Self::Address(_) | Self::NoData => 0,
            Self::Failed => 2,
            Self::NoName => 3,
            Self::NotDone => 4,
        }
    }
}

/// Reads a question. `Err(Some(_))` is the FORMERR to send, `Err(None)` means silence: not even a header, or an
/// answer, to which one does not answer.
pub fn read(message: &[u8]) -> Result<Question<'_>, Option<Vec<u8>>> {
    let header = message.get(..HEADER_BYTES).ok_or(None)?;
    if header[2] & 0x80 != 0 {
        return Err(None);
    }
    let bad = || Some(form_error(header));
    let count = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    if message.len() > QUESTION_BYTES_MAX || count(4) != 1 || count(6) != 0 {
        return Err(bad());
    }
    let opcode = header[2] >> 3 & 0x0f;
    let body = &message[HEADER_BYTES..];
    let (name, name_bytes) = read_name(body).ok_or_else(bad)?;
    let tail = body.get(name_bytes..name_bytes + 4).ok_or_else(bad)?;
    let kind = match (opcode, [tail[2], tail[3]], [tail[0], tail[1]]) {
        (0, [0, 1], [0, 1]) => Kind::A,
        (0, [0, 1], _) => Kind::Other,
        _ => Kind::Unsupported,
    };
    Ok(Question {
        id: [header[0], header[1]],
        opcode,
        recursion_desired: header[2] & 1 != 0,
        raw: &body[..name_bytes + 4],
        name,
        kind,
    })
}

/// The host name, if it is one, and the bytes that it took. `None`: the bytes are no name.
fn read_name(bytes: &[u8]) -> Option<(Option<HostName>, usize)> {
    let mut at = 0;
    let mut text = String::new();
    let mut is_host = true;
    loop {
        let len = usize::from(*bytes.get(at)?);
        at += 1;
        if len == 0 {
            break;
        }
        // Compression (11) has nothing to point at in a question; 01 and 10 mean nothing.
        if len > 63 || at + len >= NAME_BYTES_MAX {
            return None;
        }
        let label = bytes.get(at..at + len)?;
        at += len;
        // A dot within a label must not become one between labels.
        is_host &= label
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || *b == b'-');
        if is_host {
            text.extend(label.iter().map(|b| char::from(*b)));
            text.push('.');
        }
    }
    let name = is_host.then(|| HostName::parse(&text).ok()).flatten();
    Some((name, at))
}

/// The bytes of an answer; at most those of the question and 16 more.
pub fn write(question: &Question<'_>, reply: Reply) -> Vec<u8> {
    let answers = u8::from(matches!(reply, Reply::Address(_)));
    let flags = 0x80 | question.opcode << 3 | u8::from(question.recursion_desired);
    let mut out = Vec::with_capacity(HEADER_BYTES + question.raw.len() + 16);
    out.extend(question.id);
    out.extend([flags, 0x80 | reply.code(), 0, 1, 0, answers, 0, 0, 0, 0]);
    out.extend(question.raw);
    if let Reply::Address(address) = reply {
        out.extend([0xc0, 0x0c, 0, 1, 0, 1]);
        out.extend(TTL_S.to_be_bytes());
        out.extend([0, 4]);
        out.extend(address.octets());
    }
    out
}

fn form_error(header: &[u8]) -> Vec<u8> {
    let flags = 0x80 | header[2] & 0x79;
    vec![header[0], header[1], flags, 0x81, 0, 0, 0, 0, 0, 0, 0, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(name: &[&[u8]], kind: u16, class: u16) -> Vec<u8> {
        let mut out = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name {
            out.push(u8::try_from(label.len()).expect("short"));
            out.extend(*label);
        }
        out.push(0);
        out.extend(kind.to_be_bytes());
        out.extend(class.to_be_bytes());
        out
    }

    #[test]
    fn a_question_is_read_and_answered() {
        let bytes = question(&[b"API", b"github", b"com"], 1, 1);
        let read = read(&bytes).expect("a question");
        assert_eq!(
            read.name.as_ref().map(HostName::as_str),
            Some("api.github.com")
        );
        assert_eq!(read.kind, Kind::A);
        let answer = write(&read, Reply::Address(Ipv4Addr::new(198, 18, 0, 7)));
        let mut wanted = vec![0xab, 0xcd, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0];
        wanted.extend(&bytes[12..]);
        wanted.extend([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 198, 18, 0, 7]);
        assert_eq!(answer, wanted);
        assert_eq!(
            write(&read, Reply::NoName)[2..12],
            [0x81, 0x83, 0, 1, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(write(&read, Reply::NoData)[2..4], [0x81, 0x80]);
    }

    #[test]
    fn kinds() {
        for (kind, class, wanted) in [
            (1, 1, Kind::A),
            (28, 1, Kind::Other),
            (16, 1, Kind::Other),
            (65, 1, Kind::Other),
            (255, 1, Kind::Other),
            (1, 3, Kind::Unsupported),
            (1, 255, Kind::Unsupported),
        ] {
            let bytes = question(&[b"a", b"com"], kind, class);
            assert_eq!(
                read(&bytes).expect("a question").kind,
                wanted,
                "{kind} {class}"
            );
        }
        let mut update = question(&[b"a", b"com"], 1, 1);
        update[2] = 5 << 3;
        assert_eq!(read(&update).expect("a question").kind, Kind::Unsupported);
    }

    #[test]
    fn names_that_are_no_host_names_are_none() {
        for labels in [
            &[&b"a.b"[..], b"com"][..],
            &[b"evil\0", b"com"],
            &[b"_dns", b"com"],
            &[b"com"],
            &[],
            &[b"\xff", b"com"],
            &[b"1", b"2", b"3", b"4"],
            &[b"-a", b"com"],
        ] {
            assert_eq!(
                read(&question(labels, 1, 1)).expect("a question").name,
                None,
                "{labels:?}"
            );
        }
    }

    #[test]
    fn what_is_no_question_gets_an_error_or_silence() {
        let good = question(&[b"a", b"com"], 1, 1);
        for cut in 0..12 {
            assert_eq!(read(&good[..cut]), Err(None));
        }
        for cut in 12..good.len() {
            assert_eq!(
                read(&good[..cut]),
                Err(Some(vec![0xab, 0xcd, 0x81, 0x81, 0, 0, 0, 0, 0, 0, 0, 0])),
                "{cut}"
            );
        }
        let changed = |at: usize, to: u8| {
            let mut bytes = good.clone();
            bytes[at] = to;
            bytes
        };
        assert_eq!(read(&changed(2, 0x80)), Err(None), "an answer");
        for bytes in [
            changed(5, 2),
            changed(5, 0),
            changed(7, 1),
            changed(12, 0xc0),
            changed(12, 64),
        ] {
            assert!(matches!(read(&bytes), Err(Some(_))), "{bytes:?}");
        }
        let mut long = good.clone();
        long.resize(QUESTION_BYTES_MAX + 1, 0);
        assert!(matches!(read(&long), Err(Some(_))));
        let label = [b'a'; 63];
        assert!(
            matches!(read(&question(&[&label[..]; 4], 1, 1)), Err(Some(_))),
            "a name of more than 255 bytes"
        );
    }
}
