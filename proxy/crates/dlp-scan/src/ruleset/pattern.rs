//! How patterns are written: over several lines, with lists of words, and in bytes with letters of any script.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::compile::Refusal;

/// Bytes that the lists of a file may become where its rules name them, all together.
const FILLED_BYTES_MAX: usize = 4 << 20;
/// What a list is named with, between this and a closing bracket. As Perl's regular expressions name a group to repeat.
const LIST: &str = "(?&";
/// Flags of a pattern of bytes.
const BYTES: &str = "(?i-u)";

/// Lists of words of a file, by name.
pub(super) type Lists = BTreeMap<String, Vec<String>>;

/// Puts the words of a file's lists where rules name them.
pub(super) struct Filler<'l> {
    lists: &'l Lists,
    /// Bytes that may still be put in: a small file names a large list as often as it likes.
    left: usize,
}

impl<'l> Filler<'l> {
    pub fn new(lists: &'l Lists) -> Self {
        Self {
            lists,
            left: FILLED_BYTES_MAX,
        }
    }

    /// The pattern in one line: what begins a line and lines that begin with `# ` are left out, `(?&name)` is one of the
    /// words of the list of that name.
    pub fn pattern(&mut self, written: &str) -> Result<String, Refusal> {
        let lines = written.lines().map(str::trim_start);
        let line: Cow<'_, str> = match written.contains('\n') {
            true => Cow::Owned(lines.filter(|line| !line.starts_with("# ")).collect()),
            false => Cow::Borrowed(written),
        };
        let mut parts = line.split(LIST);
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let Some((name, rest)) = part.split_once(')') else {
                return Err(("pattern", format!("{LIST}{part} has no closing bracket")));
            };
            let words = self.list("pattern", name)?;
            let words: Vec<String> = words.iter().map(|w| regex_syntax::escape(w)).collect();
            whole.push_str("(?:");
            whole.push_str(&words.join("|"));
            whole.push(')');
            whole.push_str(rest);
        }
        Ok(whole)
    }

    /// The words of a field, those of lists in place of their names.
    pub fn words(
        &mut self,
        field: &'static str,
        written: Vec<String>,
    ) -> Result<Vec<String>, Refusal> {
        let mut all = Vec::with_capacity(written.len());
        for word in written {
            match word.strip_prefix(LIST).and_then(|w| w.strip_suffix(')')) {
                Some(name) => all.extend_from_slice(self.list(field, name)?),
                None => all.push(word),
            }
        }
        Ok(all)
    }

    fn list(&mut self, field: &'static str, name: &str) -> Result<&'l [String], Refusal> {
        let problem = match self.lists.get(name) {
            None => format!(
                "there is no list {name:?}; name one that stands under `lists` in the same file"
            ),
            Some(words) if words.is_empty() => format!("the list {name:?} is empty; give it words"),
            Some(words) => {
                let bytes: usize = words.iter().map(|w| w.len() + size_of::<String>()).sum();
                if let Some(left) = self.left.checked_sub(bytes) {
                    self.left = left;
                    return Ok(words);
                }
                format!(
                    "the lists of this file make more than {FILLED_BYTES_MAX} bytes where rules name them"
                )
            }
        };
        Err((field, problem))
    }
}

/// A pattern that begins with `(?i-u)` matches bytes, which keeps its automaton small; letters beyond ASCII are spelled
/// out for it, in either case. Others stay as they are.
pub(super) fn spelled(source: &str) -> Result<Cow<'_, str>, String> {
    if !source.contains(BYTES) || source.is_ascii() {
        return Ok(Cow::Borrowed(source));
    }
    let mut out = String::with_capacity(source.len() * 2);
    let mut rest = source.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => {
                out.push(c);
                out.extend(rest.next());
            }
            '[' => class(&mut rest, &mut out)?,
            c if c.is_ascii() => out.push(c),
            c => spell(c, &mut out),
        }
    }
    Ok(Cow::Owned(out))
}

/// What stands between the brackets of a class; letters beyond ASCII become branches beside it.
fn class(rest: &mut std::str::Chars<'_>, out: &mut String) -> Result<(), String> {
    let (mut bytes, mut letters) = (String::new(), Vec::new());
    let mut depth = 0;
    loop {
        let Some(c) = rest.next() else {
            return Err("a class has no closing bracket".to_owned());
        };
        match c {
            '\\' => {
                bytes.push(c);
                bytes.extend(rest.next());
            }
            ']' if depth == 0 && !matches!(bytes.as_str(), "" | "^") => break,
            c if c.is_ascii() => {
                depth += i32::from(c == '[') - i32::from(c == ']' && depth > 0);
                bytes.push(c);
            }
            c => letters.push(c),
        }
        let end = letters.len();
        if end > 0
            && (bytes.starts_with('^') || bytes.ends_with('-') || rest.as_str().starts_with('-'))
        {
            return Err(format!(
                "{:?} cannot stand in a range or a negated class of a pattern that begins with {BYTES}; write {BYTES} as (?i)",
                letters[end - 1]
            ));
        }
        // Nothing but letters: the class may end here.
        if bytes.is_empty() && !letters.is_empty() && rest.as_str().starts_with(']') {
            rest.next();
            break;
        }
    }
    if letters.is_empty() {
        out.push('[');
        out.push_str(&bytes);
        out.push(']');
        return Ok(());
    }
    out.push_str("(?:");
    if !bytes.is_empty() {
        out.push('[');
        out.push_str(&bytes);
        out.push_str("]|");
    }
    for (nth, letter) in letters.into_iter().enumerate() {
        out.push_str(if nth > 0 { "|" } else { "" });
        spell(letter, out);
    }
    out.push(')');
    Ok(())
}

/// A character's bytes, and those of its other case.
fn spell(c: char, out: &mut String) {
    let mut cases = vec![c];
    let lower: Vec<char> = c.to_lowercase().collect();
    let upper: Vec<char> = c.to_uppercase().collect();
    for other in [lower, upper] {
        match other[..] {
            [other] if !cases.contains(&other) => cases.push(other),
            _ => {}
        }
    }
    out.push_str("(?:");
    for (nth, case) in cases.into_iter().enumerate() {
        out.push_str(if nth > 0 { "|" } else { "" });
        for byte in case.encode_utf8(&mut [0; 4]).bytes() {
            out.push_str(&format!(r"\x{byte:02x}"));
        }
    }
    out.push(')');
}

#[cfg(test)]
mod tests {
    use super::{Filler, Lists, spelled};

    fn lists() -> Lists {
        let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect();
        Lists::from([
            ("word".to_owned(), words(&["a.b", "ç d"])),
            ("none".to_owned(), Vec::new()),
            ("long".to_owned(), words(&["x"; 400_000])),
        ])
    }

    #[test]
    fn lines_and_lists_are_one_pattern() {
        for (written, want) in [
            ("a b", Ok("a b")),
            ("(?i)(?:\n  a\n  |b\n)[ ]\n", Ok("(?i)(?:a|b)[ ]")),
            ("a\n# of b\n#c", Ok("a#c")),
            ("# a", Ok("# a")),
            ("x(?&word)?y", Ok(r"x(?:a\.b|ç d)?y")),
            ("(?&word)(?&word)", Ok(r"(?:a\.b|ç d)(?:a\.b|ç d)")),
            ("(?&other)", Err("no list \"other\"")),
            ("(?&word", Err("no closing bracket")),
            ("(?&none)", Err("the list \"none\" is empty")),
            ("(?&long)", Err("more than 4194304 bytes")),
        ] {
            match (Filler::new(&lists()).pattern(written), want) {
                (Ok(got), Ok(want)) => assert_eq!(got, want, "{written}"),
                (Err((_, got)), Err(want)) => assert!(got.contains(want), "{written}: {got}"),
                (got, want) => panic!("{written}: {got:?}, not {want:?}"),
            }
        }
    }

    #[test]
    fn words_are_those_of_their_lists() {
        let written = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect();
        let lists = lists();
        let mut filler = Filler::new(&lists);
        let got = filler.words("keywords", written(&["x", "(?&word)", "&word"]));
        assert_eq!(got.unwrap(), ["x", "a.b", "ç d", "&word"]);
        assert!(filler.words("keywords", written(&["(?&other)"])).is_err());
    }

    #[test]
    fn letters_are_spelled_in_bytes_and_both_cases() {
        for (source, want) in [
            ("(?i)né", Some("(?i)né")),
            ("(?i-u)ne", Some("(?i-u)ne")),
            ("(?i-u)né", Some(r"(?i-u)n(?:\xc3\xa9|\xc3\x89)")),
            ("(?i-u)你+", Some(r"(?i-u)(?:\xe4\xbd\xa0)+")),
            ("(?i-u)[eé]", Some(r"(?i-u)(?:[e]|(?:\xc3\xa9|\xc3\x89))")),
            ("(?i-u)[é]x", Some(r"(?i-u)(?:(?:\xc3\xa9|\xc3\x89))x")),
            (r"(?i-u)[\]’]", Some(r"(?i-u)(?:[\]]|(?:\xe2\x80\x99))")),
            (r"(?i-u)[^ ]é\[", Some(r"(?i-u)[^ ](?:\xc3\xa9|\xc3\x89)\[")),
            ("(?i-u)[^é]", None),
            ("(?i-u)[а-я]", None),
            ("(?i-u)[aé", None),
        ] {
            assert_eq!(spelled(source).ok().as_deref(), want, "{source}");
        }
    }
}
