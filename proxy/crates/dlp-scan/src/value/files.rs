//! Names of files, which keys of buckets and members called `key` are.

use super::{Classes, is_identifier};

/// What files are called that programs write: nothing else ends so.
const TYPES: [&[u8]; 36] = [
    b"avro", b"bak", b"bin", b"bz2", b"css", b"csv", b"docx", b"gif", b"gz", b"html", b"ico",
    b"jpeg", b"jpg", b"js", b"json", b"jsonl", b"log", b"mov", b"mp3", b"mp4", b"orc", b"parquet",
    b"pdf", b"png", b"svg", b"tar", b"tgz", b"tmp", b"tsv", b"txt", b"wav", b"webp", b"xlsx",
    b"xml", b"yaml", b"zip",
];

fn of_name(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || b"-_.".contains(b)
}

/// `a8Kd93jf02mm.json`: a name by itself, whatever it is, of a known type. Under a name that promises a secret it would be a way to
/// make any value pass.
pub(super) fn has_type(value: &[u8]) -> bool {
    let dot = value.iter().rposition(|b| *b == b'.');
    dot.is_some_and(|dot| dot > 0 && TYPES.contains(&&value[dot + 1..]))
        && value.iter().all(of_name)
}

/// `exports/2024/01/77c66f29-5f06-ecee-c0a1-c291bca8b8ba.parquet`: folders of words and numbers, and a name with an extension.
pub(super) fn is_file(value: &[u8]) -> bool {
    let Some((folders, file)) = value
        .iter()
        .rposition(|b| *b == b'/')
        .map(|at| (&value[..at], &value[at + 1..]))
    else {
        return false;
    };
    let extension = file.rsplit(|b| *b == b'.').next().unwrap_or(file);
    let has_one = extension.len() + 1 < file.len()
        && (2..=8).contains(&extension.len())
        && extension[0].is_ascii_lowercase()
        && extension
            .iter()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let folder = |part: &[u8]| {
        let digits = part.iter().filter(|b| b.is_ascii_digit()).count();
        // `rsa-2048`
        let sized = || {
            part.split(|b| b"-_.".contains(b)).all(|word| {
                word.iter().all(u8::is_ascii_lowercase)
                    || word.len() <= 4 && word.iter().all(u8::is_ascii_digit)
            })
        };
        part.iter().all(of_name)
            && (digits == part.len() || is_identifier(part, Classes::of(part)) || sized())
    };
    has_one && file.iter().all(of_name) && folders.split(|b| *b == b'/').all(folder)
}

#[cfg(test)]
mod tests {
    use crate::names::Promise;
    use crate::value::judge;

    #[test]
    fn a_type_makes_no_secret_a_file() {
        for value in ["a8Kd93jf02mmLq91Zx7B.json", "Xk9vQ2mZr7Lp4Ts8.txt"] {
            for promise in [Promise::Strong, Promise::Password] {
                assert!(judge(value.as_bytes(), promise, true).is_some(), "{value}");
            }
        }
    }
}
