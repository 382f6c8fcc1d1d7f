//! `requirements.txt` by a grammar of its own: a name, extras, versions, hashes. pip's format can also name files, other
//! indexes, other requirement files and programs to run; each of those is refused with its line number.

use runner_api::Refusal;

/// A file is at most this long.
pub const FILE_BYTES_MAX: usize = 64 * 1024;
/// And names at most this many packages.
pub const REQUIREMENTS_MAX: usize = 500;
const LINE_BYTES_MAX: usize = 2048;
const HASHES_MAX: usize = 64;

/// Checks a whole file; gives the requirements, in order, each in one spelling.
///
/// # Errors
/// Every line that is refused, at most 50.
pub fn check(bytes: &[u8]) -> Result<Vec<String>, Vec<Refusal>> {
    let whole = |reason: String| {
        vec![Refusal {
            path: Some("requirements.txt".into()),
            line: None,
            reason,
        }]
    };
    if bytes.len() > FILE_BYTES_MAX {
        return Err(whole(format!(
            "it is longer than {} KiB",
            FILE_BYTES_MAX / 1024
        )));
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(whole("it is not UTF-8".into()));
    };
    if text.starts_with('\u{feff}') {
        return Err(whole(
            "it begins with a byte order mark; save it as plain UTF-8".into(),
        ));
    }
    let mut good = Vec::new();
    let mut bad = Vec::new();
    for (number, line) in text.split('\n').enumerate() {
        let line = line.strip_suffix('\r').unwrap_or(line);
        match requirement(line) {
            Ok(None) => {}
            Ok(Some(requirement)) => good.push(requirement),
            Err(reason) if bad.len() < 50 => bad.push(Refusal {
                path: Some("requirements.txt".into()),
                line: u32::try_from(number + 1).ok(),
                reason,
            }),
            Err(_) => {}
        }
    }
    if !bad.is_empty() {
        return Err(bad);
    }
    if good.len() > REQUIREMENTS_MAX {
        return Err(whole(format!(
            "it names more than {REQUIREMENTS_MAX} packages"
        )));
    }
    Ok(good)
}

fn requirement(line: &str) -> Result<Option<String>, String> {
    if line.len() > LINE_BYTES_MAX {
        return Err(format!("longer than {LINE_BYTES_MAX} bytes"));
    }
    if line.chars().any(|c| c.is_control() && c != '\t') {
        return Err("a control character".into());
    }
    let line = line.trim_matches([' ', '\t']);
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    // As in pip, a comment needs a space before it; inside a URL it would be none.
    let line = line
        .split_once(" #")
        .map_or(line, |(before, _)| before)
        .trim_end();
    if !line.is_ascii() {
        return Err("only ASCII is allowed outside comments".into());
    }
    if let Some(reason) = known_trick(line) {
        return Err(reason.into());
    }
    let (spec, hashes) = split_hashes(line)?;
    let name_end = spec
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')))
        .unwrap_or(spec.len());
    let (name, rest) = spec.split_at(name_end);
    if name.is_empty()
        || name.len() > 128
        || !edge(name.as_bytes()[0])
        || !edge(name.as_bytes()[name.len() - 1])
    {
        return Err("a package name was expected: letters, digits, '.', '_' and '-'".into());
    }
    let (extras, rest) = extras(rest.trim_start())?;
    let versions = versions(rest.trim())?;
    let mut out = name.to_ascii_lowercase().replace(['_', '.'], "-");
    while out.contains("--") {
        out = out.replace("--", "-");
    }
    out.push_str(&extras);
    out.push_str(&versions);
    for hash in hashes {
        out.push_str(" --hash=sha256:");
        out.push_str(hash);
    }
    Ok(Some(out))
}

fn edge(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

/// What pip would do with it, for a message that helps; whatever is not found here fails the grammar anyway.
fn known_trick(line: &str) -> Option<&'static str> {
    let lower = line.to_ascii_lowercase();
    let first = lower.split([' ', '\t', '=']).next().unwrap_or_default();
    Some(match first {
        "-e" | "--editable" => "editable installs are not possible; name a published package",
        "-r" | "--requirement" | "-c" | "--constraint" => {
            "other files are not read; put their lines here"
        }
        "-i" | "--index-url" | "--extra-index-url" | "--find-links" | "-f" | "--trusted-host"
        | "--no-index" => "the package index is the operator's; take this line out",
        _ if first.starts_with('-') => "pip options are not taken; only packages",
        _ if lower.ends_with('\\') => "lines are not joined; write it on one line",
        _ if lower.contains("${") || lower.contains('$') => "variables are not replaced",
        _ if lower.contains("://") || lower.contains(" @ ") || lower.contains('@') => {
            "packages come from the index only, not from a URL or a repository"
        }
        _ if lower.starts_with(['.', '/', '~']) || lower.contains('/') => {
            "local paths are not possible; name a published package"
        }
        _ if lower.contains(';') => {
            "environment markers are not taken; the sandbox is always Linux and Python 3.11"
        }
        _ => return None,
    })
}

fn split_hashes(line: &str) -> Result<(&str, Vec<&str>), String> {
    let mut words = line.split(" --hash=");
    let spec = words.next().unwrap_or_default().trim_end();
    let mut hashes = Vec::new();
    for word in words {
        let hash = word.trim().strip_prefix("sha256:").filter(|h| {
            h.len() == 64
                && h.bytes()
                    .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        });
        hashes.push(hash.ok_or("a hash has to be sha256: and 64 lower-case hexadecimal digits")?);
    }
    if hashes.len() > HASHES_MAX {
        return Err(format!("more than {HASHES_MAX} hashes"));
    }
    Ok((spec, hashes))
}

fn extras(rest: &str) -> Result<(String, &str), String> {
    let Some(inner) = rest.strip_prefix('[') else {
        return Ok((String::new(), rest));
    };
    let (list, rest) = inner.split_once(']').ok_or("'[' without ']'")?;
    let mut names = Vec::new();
    for name in list.split(',').map(str::trim) {
        let ok = !name.is_empty()
            && name.len() <= 64
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if !ok || !edge(name.as_bytes()[0]) {
            return Err("an extra is a name of letters, digits, '-', '_' and '.'".into());
        }
        names.push(name.to_ascii_lowercase());
    }
    if names.len() > 16 {
        return Err("more than 16 extras".into());
    }
    Ok((format!("[{}]", names.join(",")), rest))
}

fn versions(rest: &str) -> Result<String, String> {
    if rest.is_empty() {
        return Ok(String::new());
    }
    let mut out = Vec::new();
    for part in rest.split(',').map(str::trim) {
        let operator = ["==", "!=", ">=", "<=", "~=", "<", ">"]
            .iter()
            .find(|op| part.starts_with(**op));
        let operator = operator.ok_or("a version was expected, like ==1.2, >=1.0 or ~=1.4")?;
        let version = part[operator.len()..].trim();
        let ok = !version.is_empty()
            && version.len() <= 64
            && edge(version.as_bytes()[0])
            && version.bytes().all(|b| {
                b.is_ascii_alphanumeric() || matches!(b, b'.' | b'!' | b'+' | b'*' | b'-' | b'_')
            });
        let star_ok = !version.contains('*')
            || (version.ends_with(".*")
                && version.matches('*').count() == 1
                && matches!(*operator, "==" | "!="));
        if !ok || !star_ok {
            return Err(format!(
                "{:?} is not a version",
                version.chars().take(80).collect::<String>()
            ));
        }
        out.push(format!("{operator}{version}"));
    }
    if out.len() > 16 {
        return Err("more than 16 version conditions".into());
    }
    Ok(out.join(","))
}
