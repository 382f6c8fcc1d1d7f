//! Passwords of small letters alone: two words and more without a sign between them, or with blanks.
//!
//! `kestrelriverlamp`, `correct horse battery`, `hunter2`. What else stands in small letters under the name of a password is a
//! place for one (`your password here`), what is asked of it (`required`, `too short`), how it is kept, or what a program calls
//! it (`userpassword`): said in words of forms and programs, of which one is enough to know it by.

use std::collections::HashSet;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::chosen::naming;
use super::placeholder::is_placeholder;
use crate::detect::{is_english, is_listed_word};

const BYTES: std::ops::RangeInclusive<usize> = 10..=48;
/// Longest of words without blanks: each part of it is looked up.
const GLUED_BYTES_MAX: usize = 32;
/// Without quotes, the name of a variable may stand there.
const BARE_BYTES_MIN: usize = 12;
const WORD_BYTES: std::ops::RangeInclusive<usize> = 3..=14;

/// Words that join others in a phrase. One alone tells nothing.
const JOINING: &[&str] = &[
    "i", "a", "my", "of", "on", "in", "at", "to", "we", "is", "an", "the", "and", "our", "his",
    "her", "two", "big", "for",
];

/// Words of forms and programs, and how they begin: what has one of them says something about a password.
const SAYING: &[&str] = &[
    "passw",
    "passp",
    "passc",
    "secret",
    "token",
    "user",
    "admin",
    "login",
    "logon",
    "signin",
    "test",
    "default",
    "change",
    "enter",
    "your",
    "example",
    "sampl",
    "valid",
    "string",
    "field",
    "input",
    "auth",
    "hash",
    "crypt",
    "server",
    "client",
    "servic",
    "account",
    "creden",
    "config",
    "value",
    "null",
    "defin",
    "requir",
    "option",
    "hidden",
    "hide",
    "prompt",
    "confirm",
    "forgot",
    "reset",
    "updat",
    "verif",
    "encod",
    "decod",
    "plain",
    "clear",
    "sql",
    "postgres",
    "redis",
    "mongo",
    "oracle",
    "docker",
    "kube",
    "search",
    "stack",
    "grafana",
    "elastic",
    "rabbit",
    "demo",
    "guest",
    "public",
    "privat",
    "master",
    "local",
    "host",
    "http",
    "json",
    "yaml",
    "html",
    "data",
    "code",
    "type",
    "word",
    "manager",
    "system",
    "program",
    "control",
    "build",
    "deploy",
    "method",
    "function",
    "class",
    "object",
    "module",
    "script",
    "query",
    "error",
    "empty",
    "miss",
    "known",
    "access",
    "licen",
    "base",
    "root",
    "name",
    "text",
    "file",
    "key",
    "store",
    "storag",
    "vault",
    "wallet",
    "crede",
    "ident",
    "session",
    "connect",
    "databas",
    "network",
    "device",
    "number",
    "charact",
    "letter",
    "digit",
    "length",
    "minim",
    "maxim",
    "short",
    "weak",
    "strong",
    "medium",
    "match",
    "wrong",
    "incorrect",
    "fail",
    "invit",
    "link",
    "form",
    "label",
    "placeholder",
    "hint",
    "help",
    "descri",
    "mask",
    "redact",
    "visib",
    "show",
    "format",
    "param",
    "argum",
    "variab",
    "environ",
    "setting",
    "propert",
    "attribut",
    "column",
    "table",
    "record",
    "row",
    "list",
    "array",
    "struct",
    "message",
    "request",
    "respon",
    "provid",
    "specif",
    "same",
    "other",
    "another",
    "else",
    "some",
    "any",
    "random",
    "generat",
    "automat",
    "creat",
    "delet",
    "remov",
    "insert",
    "select",
    "choose",
    "pick",
    "only",
    "never",
    "always",
    "must",
    "should",
    "please",
    "cannot",
    "does",
    "dont",
    "not",
    "can",
    "will",
    "again",
    "repeat",
    "twice",
    "new",
    "old",
    "current",
    "previous",
    "first",
    "last",
    "next",
    "temp",
    "expire",
    "disab",
    "enab",
    "allow",
    "deni",
    "support",
    "wordpress",
    "contact",
    "send",
    "sent",
    "email",
    "mail",
    "phone",
    "security",
    "secure",
    "safe",
    "protect",
    "lock",
    "unlock",
    "open",
    "close",
    "start",
    "stop",
    "step",
    "set",
    "unset",
    "get",
    "see",
    "ask",
    "say",
    "use",
    "used",
    "using",
    "with",
    "without",
    "from",
    "into",
    "here",
    "there",
    "this",
    "that",
    "which",
    "what",
    "when",
    "where",
    "how",
    "why",
    "optional",
    "canary",
    "fresh",
    "long",
    "latin",
    "ascii",
    "unicod",
    "python",
    "proto",
    "layer",
    "phase",
    "stage",
    "round",
    "grade",
    "chapter",
    "section",
    "route",
    "foo",
    "bar",
    "baz",
    "lorem",
    "ipsum",
    "dummy",
    "fake",
    "mock",
    "stub",
    "fixture",
    "bad",
    "good",
    "real",
    "true",
    "false",
    "yes",
    "none",
    "blank",
    "space",
    "trail",
    "lead",
    "common",
    "simple",
    "basic",
    "bearer",
    "native",
    "legacy",
    "custom",
    "extern",
    "intern",
    "remote",
    "import",
    "export",
    "load",
    "save",
    "read",
    "write",
    "view",
    "edit",
    "line",
    "page",
    "button",
    "title",
    "event",
    "click",
    "icon",
    "image",
    "color",
    "style",
    "layout",
    "window",
    "screen",
    "dialog",
    "modal",
    "menu",
    "toggle",
    "check",
    "box",
    "rotat",
    "manag",
    "special",
    "important",
    "matter",
    "most",
    "super",
    "low",
    "high",
    "score",
    "level",
    "rate",
    "polic",
    "rule",
    "role",
    "group",
    "team",
    "owner",
    "member",
    "person",
    "customer",
    "employ",
    "airflow",
    "superset",
    "kibana",
    "sonar",
    "jenkins",
    "nexus",
    "artifact",
    "harbor",
    "keycloak",
    "ldap",
    "radius",
    "kerber",
    "samba",
    "mysql",
    "maria",
    "couch",
    "cassandra",
    "influx",
    "click",
    "minio",
    "ceph",
    "gitlab",
    "gitea",
    "git",
    "vpn",
    "wifi",
    "smtp",
    "imap",
    "ftp",
    "ssh",
    "api",
    "app",
    "sdk",
    "cli",
    "env",
    "dev",
    "prod",
    "stag",
    "sandbox",
    "live",
    "web",
    "site",
    "url",
    "uri",
    "doc",
    "note",
    "info",
    "misc",
    "todo",
    "tbd",
    "xxx",
    "abc",
    "qwerty",
    "asdf",
    "rocket",
    "snowflake",
    "supabase",
    "fire",
    "mattermost",
    "outline",
    "ghost",
    "strapi",
    "drupal",
    "joomla",
    "magento",
    "odoo",
    "zabbix",
    "nagios",
    "puppet",
    "ansible",
    "chef",
    "salt",
    "terraform",
    "consul",
    "nomad",
    "packer",
    "vagrant",
    "open",
];

/// A password of small letters that words make, `quoted` or the rest of its line.
pub(crate) fn is_of_words(value: &[u8], quoted: bool) -> bool {
    let Ok(text) = std::str::from_utf8(value) else {
        return false;
    };
    if text.len() > *BYTES.end()
        || !text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b" -_.".contains(&b))
        || is_placeholder(value)
    {
        return false;
    }
    if text.bytes().any(|b| b.is_ascii_digit()) {
        return quoted && is_counted(text);
    }
    match text.bytes().find(|b| !b.is_ascii_lowercase()) {
        Some(sign) => quoted && is_phrase(text, char::from(sign)),
        None => {
            let least = if quoted {
                *BYTES.start()
            } else {
                BARE_BYTES_MIN
            };
            text.len() >= least && is_glued(text)
        }
    }
}

/// The longer of them, wherever they stand in words without blanks.
static STEMS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let stems: Vec<&str> = SAYING
        .iter()
        .copied()
        .filter(|stem| is_stem(stem))
        .collect();
    super::words(&stems)
});

/// The short ones, and what programs name things with: whole words.
static WHOLE: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let short = SAYING.iter().copied().filter(|stem| !is_stem(stem));
    short.chain(naming()).collect()
});

fn is_stem(word: &str) -> bool {
    word.len() > 3
}

/// Does a word say something about a password, or is it a word of programs?
fn says(word: &str) -> bool {
    is_whole(word)
        || SAYING
            .iter()
            .any(|stem| is_stem(stem) && word.starts_with(stem))
}

/// The same of a word among others that were drawn, of which `willow` does not say `will`.
pub(super) fn says_alone(word: &str) -> bool {
    const LONG: usize = 5;
    let said = |stem: &&str| *stem == word || stem.len() >= LONG && word.starts_with(*stem);
    is_whole(word) || SAYING.iter().any(said)
}

fn is_whole(word: &str) -> bool {
    let one = word.strip_suffix('s').filter(|one| !is_stem(one));
    WHOLE.contains(word) || one.is_some_and(|one| WHOLE.contains(one))
}

pub(super) fn is_known(word: &str) -> bool {
    match word.len() {
        0..3 => false,
        3 => is_listed_word(word.as_bytes()),
        _ => is_english(word) || is_listed_word(word.as_bytes()),
    }
}

/// `orange tractor`: words with the same sign between each two. With another sign than a blank things are named so, too: there have
/// to be three, and two that generators of passphrases draw.
fn is_phrase(text: &str, sign: char) -> bool {
    let (mut words, mut listed) = (0, 0);
    for word in text.split(sign) {
        if JOINING.contains(&word) {
            continue;
        }
        if !WORD_BYTES.contains(&word.len())
            || says(word)
            || !word.bytes().all(|b| b.is_ascii_lowercase())
            || !is_known(word)
        {
            return false;
        }
        words += 1;
        listed += usize::from(is_listed_word(word.as_bytes()));
    }
    let least = if sign == ' ' { 2 } else { 3 };
    text.len() >= *BYTES.start() && words >= least && listed + 1 >= least
}

/// `hunter2`: a word and a figure or two.
fn is_counted(text: &str) -> bool {
    let word = text.trim_end_matches(|c: char| c.is_ascii_digit());
    (6..=12).contains(&word.len())
        && (1..=2).contains(&(text.len() - word.len()))
        && word.bytes().all(|b| b.is_ascii_lowercase())
        && is_known(word)
        && !says(word)
}

/// Words with nothing between them. One of them may be a word that is not known, if the others are more than it.
fn is_glued(text: &str) -> bool {
    // A stem anywhere in it, as no word begins there yet.
    if text.len() > GLUED_BYTES_MAX
        || is_english(text)
        || STEMS.is_match(text)
        || !text.bytes().any(|b| b"aeiou".contains(&b))
    {
        return false;
    }
    split(text).is_some_and(|cut| cut.words >= 2 && cut.unknown * 2 <= text.len())
}

/// How a text falls apart into words.
#[derive(Clone, Copy, Default)]
struct Cut {
    /// Words that tell something.
    words: usize,
    unknown: usize,
    /// Fewer pieces are likelier.
    pieces: usize,
}

/// The way with the fewest letters that belong to no word, and of those the one with the fewest pieces.
fn split(text: &str) -> Option<Cut> {
    const UNKNOWN_BYTES: std::ops::RangeInclusive<usize> = 4..=9;
    let mut best: Vec<Option<Cut>> = vec![None; text.len() + 1];
    best[0] = Some(Cut::default());
    for end in 1..=text.len() {
        for start in end.saturating_sub(*WORD_BYTES.end())..end {
            let Some(before) = best[start] else { continue };
            let piece = &text[start..end];
            let cut = if JOINING.contains(&piece) {
                Cut {
                    pieces: before.pieces + 1,
                    ..before
                }
            } else if is_known(piece) && !is_whole(piece) {
                Cut {
                    words: before.words + 1,
                    pieces: before.pieces + 1,
                    ..before
                }
            } else if before.unknown == 0
                && UNKNOWN_BYTES.contains(&piece.len())
                && !is_whole(piece)
            {
                Cut {
                    unknown: piece.len(),
                    pieces: before.pieces + 1,
                    ..before
                }
            } else {
                continue;
            };
            let better =
                best[end].is_none_or(|old| (cut.unknown, cut.pieces) < (old.unknown, old.pieces));
            if better {
                best[end] = Some(cut);
            }
        }
    }
    best[text.len()]
}

#[cfg(test)]
mod tests {
    use super::is_of_words;

    #[test]
    fn words_that_people_choose() {
        for value in [
            "kestrelriverlamp",
            "correct horse battery",
            "bluemoonrising",
            "orange tractor",
            "mysunnygarden",
            "winterbreeze",
            "maplesyrupjar",
            "happy little clouds",
            "correct-horse-battery",
            "hunter2",
            "dragon12",
        ] {
            assert!(is_of_words(value.as_bytes(), true), "{value}");
        }
        for value in ["kestrelriverlamp", "bluemoonrising"] {
            assert!(is_of_words(value.as_bytes(), false), "{value}");
        }
    }

    #[test]
    fn words_about_a_password() {
        for value in [
            "your-password-here",
            "changeme",
            "required",
            "string",
            "enter your password",
            "the user password",
            "invalid",
            "encrypted",
            "plaintext",
            "confirm password",
            "forgot password",
            "newpassword",
            "userpassword",
            "resetpassword",
            "too short",
            "must match",
            "secretref",
            "getpassword",
            "oauthtoken",
            "basicauth",
            "secure string",
            "not set",
            "stored in vault",
            "same as username",
            "minioadmin",
            "wachtwoord vergeten",
            "passwort vergessen",
            "elasticsearch",
            "authentication",
            "administrator",
            "configuration",
            "verschluesselung",
            "obligatorisch",
            "erforderlich",
            "somethingelse",
            "trailing spaces important",
            "doesnt start right",
            "top secret",
            "mysql_native_password",
            "caching_sha",
            "admin1",
            "argon2",
            "python3",
            "version2",
            "debian12",
            "opensesame",
            "rocketchat",
            "mattermost",
            "benutzername",
            "internationalization",
            "is required",
            "can be empty",
            "very weak",
            "at least eight characters",
            "keyring-file-store",
            "my-app-tls",
            "kubernetes-dashboard",
            "supersecure",
            "notrequired",
            "correct password",
        ] {
            assert!(!is_of_words(value.as_bytes(), true), "{value}");
        }
        for value in [
            "hunter2",
            "orange tractor",
            "summerrain",
            "textfieldvalue",
            "linkedlistnode",
        ] {
            assert!(!is_of_words(value.as_bytes(), false), "{value}");
        }
    }
}
