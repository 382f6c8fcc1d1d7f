//! The server name in the first bytes of a TLS connection (RFC 8446, section 4.1.2; RFC 6066, section 3).

use crate::host::HostName;

/// The longest hello, in bytes of handshake. Those with post-quantum keys have about 2,000.
pub const HELLO_BYTES_MAX: usize = 16 * 1024;
/// The longest record (RFC 8446, section 5.1).
const RECORD_BYTES_MAX: usize = 1 << 14;
const EXTENSION_SERVER_NAME: u16 = 0;
/// Encrypted hellos: RFC 9849, and the draft before it. What looks like one may be padding against ossification
/// ("GREASE"); nobody can tell the two apart, and that is their purpose.
const EXTENSION_ECH: [u16; 2] = [0xfe0d, 0xffce];

/// Why there is no server name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// The bytes so far are the start of a hello; read on.
    #[error("the hello is not complete yet")]
    Incomplete,
    /// These bytes are no TLS hello, or an ill-formed one.
    #[error("not a TLS hello")]
    NotTls,
    /// A hello without exactly one server name that is a host name.
    #[error("the hello has no server name")]
    NoName,
    /// A hello that hides the server name.
    #[error("the hello's server name is encrypted")]
    Encrypted,
}

/// The one server name of the hello at the start of `bytes`, which may be cut over several records.
///
/// # Errors
/// [`HelloError::Incomplete`] as long as more bytes may complete it: never for more than
/// [`HELLO_BYTES_MAX`] and the records' heads.
pub fn server_name(bytes: &[u8]) -> Result<HostName, HelloError> {
    let mut handshake = Vec::new();
    let mut rest = bytes;
    loop {
        if let Some(hello) = complete(&handshake)? {
            return name_of(hello);
        }
        let record = record(rest)?;
        handshake.extend_from_slice(record);
        rest = &rest[5 + record.len()..];
    }
}

/// The payload of the handshake record at the start of `bytes`.
fn record(bytes: &[u8]) -> Result<&[u8], HelloError> {
    let head = [0x16u8, 0x03];
    if bytes.iter().zip(&head).any(|(a, b)| a != b) || bytes.get(2).is_some_and(|minor| *minor > 4)
    {
        return Err(HelloError::NotTls);
    }
    let Some(length) = bytes.get(3..5) else {
        return Err(HelloError::Incomplete);
    };
    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
    if length == 0 || length > RECORD_BYTES_MAX {
        return Err(HelloError::NotTls);
    }
    bytes.get(5..5 + length).ok_or(HelloError::Incomplete)
}

/// The body of the client hello, once it is all there.
fn complete(handshake: &[u8]) -> Result<Option<&[u8]>, HelloError> {
    if handshake.first().is_some_and(|kind| *kind != 1) {
        return Err(HelloError::NotTls);
    }
    let Some(length) = handshake.get(1..4) else {
        return Ok(None);
    };
    let length =
        usize::from(length[0]) << 16 | usize::from(length[1]) << 8 | usize::from(length[2]);
    if length > HELLO_BYTES_MAX {
        return Err(HelloError::NotTls);
    }
    Ok(handshake.get(4..4 + length))
}

fn name_of(hello: &[u8]) -> Result<HostName, HelloError> {
    let extensions = extensions(hello).ok_or(HelloError::NotTls)?;
    let mut rest = Reader(extensions);
    let mut found = None;
    let mut encrypted = false;
    while !rest.0.is_empty() {
        let kind = rest.u16().ok_or(HelloError::NotTls)?;
        let body = rest.vector16().ok_or(HelloError::NotTls)?;
        encrypted |= EXTENSION_ECH.contains(&kind);
        if kind == EXTENSION_SERVER_NAME && found.replace(body).is_some() {
            return Err(HelloError::NotTls);
        }
    }
    if encrypted {
        return Err(HelloError::Encrypted);
    }
    let name = one_name(found.ok_or(HelloError::NoName)?).ok_or(HelloError::NoName)?;
    let text = std::str::from_utf8(name).map_err(|_| HelloError::NoName)?;
    // RFC 6066: without a trailing dot.
    if text.ends_with('.') {
        return Err(HelloError::NoName);
    }
    HostName::parse(text).map_err(|_| HelloError::NoName)
}

/// The extensions' bytes; an old hello without any has none.
fn extensions(hello: &[u8]) -> Option<&[u8]> {
    let mut rest = Reader(hello);
    rest.take(2 + 32)?;
    rest.vector8()?;
    rest.vector16()?;
    rest.vector8()?;
    if rest.0.is_empty() {
        return Some(&[]);
    }
    let extensions = rest.vector16()?;
    rest.0.is_empty().then_some(extensions)
}

/// The one entry of a server name list, of type `host_name`.
fn one_name(extension: &[u8]) -> Option<&[u8]> {
    let mut rest = Reader(extension);
    let mut list = Reader(rest.vector16()?);
    let kind = list.take(1)?;
    let name = list.vector16()?;
    (kind == [0] && list.0.is_empty() && rest.0.is_empty()).then_some(name)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(bytes)?;
        self.0 = tail;
        Some(head)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2).map(|b| u16::from_be_bytes([b[0], b[1]]))
    }

    fn vector8(&mut self) -> Option<&'a [u8]> {
        let length = self.take(1)?[0];
        self.take(usize::from(length))
    }

    fn vector16(&mut self) -> Option<&'a [u8]> {
        let length = self.u16()?;
        self.take(usize::from(length))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn vector16(body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(body.len()).expect("short").to_be_bytes();
        [&length[..], body].concat()
    }

    fn name_entry(kind: u8, name: &[u8]) -> Vec<u8> {
        [&[kind][..], &vector16(name)].concat()
    }

    fn extension(kind: u16, body: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &vector16(body)].concat()
    }

    fn sni(name: &[u8]) -> Vec<u8> {
        extension(0, &vector16(&name_entry(0, name)))
    }

    fn hello(extensions: &[u8]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.push(0);
        body.extend(vector16(&[0x13, 0x01]));
        body.extend([1, 0]);
        body.extend(vector16(extensions));
        let length = u32::try_from(body.len()).expect("short").to_be_bytes();
        [&[1][..], &length[1..], &body].concat()
    }

    /// One that shows this name.
    pub(crate) fn hello_for(name: &[u8]) -> Vec<u8> {
        hello(&sni(name))
    }

    /// In records of so many bytes each.
    pub(crate) fn records(handshake: &[u8], each: usize) -> Vec<u8> {
        let record = |part: &[u8]| [&[0x16, 3, 1][..], &vector16(part)].concat();
        handshake.chunks(each).flat_map(record).collect()
    }

    fn read(extensions: &[u8]) -> Result<String, HelloError> {
        server_name(&records(&hello(extensions), 1 << 14)).map(|n| n.to_string())
    }

    #[test]
    fn the_name_is_found_however_the_hello_is_cut() {
        let handshake = hello(&[extension(0x2b, &[2, 3, 4]), sni(b"api.GitHub.com")].concat());
        for each in 1..handshake.len() {
            let bytes = records(&handshake, each);
            assert_eq!(
                server_name(&bytes).map(|n| n.to_string()),
                Ok("api.github.com".to_owned())
            );
            for cut in 0..bytes.len() {
                assert_eq!(
                    server_name(&bytes[..cut]),
                    Err(HelloError::Incomplete),
                    "{each} {cut}"
                );
            }
        }
    }

    #[test]
    fn bytes_after_the_hello_do_not_matter() {
        let mut bytes = records(&hello(&sni(b"a.com")), 1 << 14);
        bytes.extend(b"\x17\x03\x03early data");
        assert_eq!(
            server_name(&bytes).map(|n| n.to_string()),
            Ok("a.com".to_owned())
        );
    }

    #[test]
    fn a_hello_must_have_one_readable_name() {
        use HelloError::{Encrypted, NoName, NotTls};
        let two = extension(
            0,
            &vector16(&[name_entry(0, b"a.com"), name_entry(0, b"b.com")].concat()),
        );
        for (extensions, error) in [
            (vec![], NoName),
            (extension(0x2b, &[2, 3, 4]), NoName),
            (two, NoName),
            ([sni(b"a.com"), sni(b"b.com")].concat(), NotTls),
            (extension(0, &vector16(&name_entry(1, b"a.com"))), NoName),
            (extension(0, &vector16(&[])), NoName),
            (extension(0, &[]), NoName),
            (sni(b""), NoName),
            (sni(b"10.0.0.1"), NoName),
            (sni(b"a.com\0.b.com"), NoName),
            (sni(b"a.com."), NoName),
            (sni(b"\xff.com"), NoName),
            (
                [sni(b"a.com"), extension(0xfe0d, &[0; 40])].concat(),
                Encrypted,
            ),
            ([extension(0xffce, &[]), sni(b"a.com")].concat(), Encrypted),
            (vec![0, 0, 0], NotTls),
            (
                extension(0, &vector16(&name_entry(0, b"a.com")))[..8].to_vec(),
                NotTls,
            ),
        ] {
            assert_eq!(read(&extensions), Err(error), "{extensions:?}");
        }
    }

    #[test]
    fn other_bytes_are_no_hello() {
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"SSH-2.0-x\r\n",
            b"\x16\x02",
            b"\x16\x03\x05",
            b"\x17\x03\x03\0\x05hello",
            b"\x80\x2e\x01\x03\x01",
            b"\x16\x03\x01\0\0",
            b"\x16\x03\x01\xff\xff",
            b"\x16\x03\x01\0\x01\x02",
            b"\x16\x03\x01\0\x04\x01\xff\xff\xff",
        ] {
            assert_eq!(server_name(bytes), Err(HelloError::NotTls), "{bytes:?}");
        }
    }
}
