//! Secrets that were written in code: `the Datadog token, hence url encoded: %35%65%37%37...`, `String.fromCharCode(81, 117, ...); //
//! SMTP password`. Decoded, they stand beside a word that says what they are, but not where rules look for the value of a name: a
//! note of how it is written comes between, or the word comes last. That somebody wrote it in code says the rest.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::Sink;
use crate::Layer;
use crate::names::Promise;
use crate::ruleset::Detector;
use crate::text::{Cell, How, Node, Span};
use crate::value::{is_drawn, is_told, judge};

/// How long a value may be, and a number that opens something.
const BYTES: std::ops::RangeInclusive<usize> = 6..=200;
const DIGITS: std::ops::RangeInclusive<usize> = 4..=10;
/// Signs glued to a value: more than any value may have.
const BESIDE_MAX: usize = 64;
/// How far from the value the word for it may stand.
const REACH: usize = 120;
/// Bytes as they are between two that were decoded: `%61-%62`.
const GAP_MAX: u32 = 2;

pub(super) fn scan(sink: &mut Sink<'_>) {
    let node = sink.node;
    let decodes = node.layer.is_some_and(|layer| {
        matches!(
            layer,
            Layer::Base64
                | Layer::Base32
                | Layer::Base58
                | Layer::Base85
                | Layer::Hex
                | Layer::Percent
                | Layer::Html
                | Layer::Escapes
                | Layer::Codes
                | Layer::Fold
                | Layer::QuotedPrintable
                | Layer::Uuencode
                | Layer::Reversed
                | Layer::Rot13
                | Layer::Concat
                | Layer::Spaced
                | Layer::Wrapped
        )
    });
    if !decodes || sink.rules.detectors[Detector::CodedSecret as usize].is_none() {
        return;
    }
    let hides = node.hides_letters();
    let (mut index, mut last) = (0, 0);
    for piece in pieces(node).chain(put_together(node)) {
        if std::mem::replace(&mut last, piece.start) > piece.start {
            index = 0;
        }
        let Some(cell) = node.cell_from(piece.start as usize, &mut index) else {
            continue;
        };
        let Some(value) = token(node, cell, piece) else {
            continue;
        };
        if !sink.limits.spend(1) {
            return;
        }
        if is_secret(node, cell, value, hides) {
            sink.report_for(Detector::CodedSecret, value, None);
        }
    }
}

/// The parts of the text that were decoded.
fn pieces(node: &Node) -> impl Iterator<Item = Span> {
    let ends = node.segs.iter().skip(1).map(|seg| seg.dst);
    let ends = ends.chain([crate::text::to_u32(node.text.len())]);
    let mut made = node
        .segs
        .iter()
        .zip(ends)
        .filter(|(seg, _)| seg.how != How::Copy)
        .map(|(seg, end)| Span {
            start: seg.dst,
            end,
        })
        .peekable();
    std::iter::from_fn(move || {
        let mut piece = made.next()?;
        while let Some(next) = made.next_if(|next| next.start - piece.end <= GAP_MAX) {
            piece.end = next.end;
        }
        Some(piece)
    })
}

/// What was put together of parts that are copies: what calls gave, or all between the surroundings.
fn put_together(node: &Node) -> impl Iterator<Item = Span> {
    let joined = matches!(node.layer, Some(Layer::Concat | Layer::Spaced));
    let whole = node.fresh.within(Span::new(0, node.text.len()));
    let whole = (joined && node.made.is_empty()).then_some(whole);
    let made = node.made.iter().filter(move |_| joined);
    made.copied().chain(whole)
}

/// The value that a piece is, or is most of.
fn token(node: &Node, cell: &Cell, piece: Span) -> Option<Span> {
    let text = &node.text;
    let of =
        |b: &u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\');
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let (from, to) = (piece.start as usize, (piece.end as usize).min(ceil));
    let made = text.get(from.max(floor)..to)?;
    // What a decoder put between a name and its value is none of it.
    let signs = made.iter().take_while(|b| b" \n\t=:".contains(b)).count();
    let whole = made[signs..].trim_ascii_end();
    // What was packed has no such byte beside it.
    if made.iter().any(|b| b.is_ascii_control() && *b != b'\n') && !made.contains(&b'\n') {
        return None;
    }
    if !BYTES.contains(&whole.len()) && !DIGITS.contains(&whole.len()) || !whole.iter().all(of) {
        return None;
    }
    let start = from.max(floor) + signs;
    let end = start + whole.len();
    let before = text[floor..start].iter().rev().take(BESIDE_MAX);
    let after = text[end..ceil].iter().take(BESIDE_MAX);
    let glued = |b: &&u8| of(b) && !b",;:=()[]{}|".contains(b);
    let beside = before.take_while(glued).count() + after.take_while(glued).count();
    // Two or three signs may be left of an odd end.
    (beside * 4 <= whole.len()).then(|| Span::new(start, end))
}

/// What a word says of a value beside it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Password,
    Key,
    /// Of a number that opens something.
    Code,
    /// What is coded for other reasons.
    Other,
}

fn is_secret(node: &Node, cell: &Cell, value: Span, hides: bool) -> bool {
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let (start, end) = (value.start as usize, value.end as usize);
    let before = &node.text[start.saturating_sub(REACH).max(floor)..start];
    let after = &node.text[end..(end + REACH).min(ceil)];
    let name = &node.text[cell.name.range()];
    let bytes = &node.text[value.range()];
    // `0xfe, 0x6c`: the bytes of something that is no text.
    let bytes_of_code = memchr::memmem::find_iter(bytes, b"0x").nth(1).is_some();
    if is_fraction(before, after) || names_id(before) || bytes_of_code {
        return false;
    }
    let mut words = [before, after, name]
        .into_iter()
        .flat_map(|text| WORDS.of(text));
    let (mut password, mut key, mut code) = (false, false, false);
    for word in &mut words {
        match word {
            Word::Password => password = true,
            Word::Key => key = true,
            Word::Code => code = true,
            Word::Other => return false,
        }
    }
    if bytes.iter().all(u8::is_ascii_digit) {
        return (password || code) && hides && DIGITS.contains(&bytes.len());
    }
    if !(password || key || code) || !BYTES.contains(&bytes.len()) {
        return false;
    }
    // `user:password`
    let last = memchr::memchr(b':', bytes).map(|at| &bytes[at + 1..]);
    let chosen = |value: &[u8]| {
        judge(value, Promise::Password, true).is_some() && (hides || is_told(value))
            || is_told(value)
            || is_drawn(value)
    };
    if is_of_chance(node.layer, bytes) {
        return false;
    }
    let hex = |value: &[u8]| value.len() >= 20 && value.iter().all(u8::is_ascii_hexdigit);
    (key || password) && (judge(bytes, Promise::Strong, true).is_some() || hex(bytes))
        || (password || key && hides) && chosen(bytes)
        || key && (is_drawn(bytes) || is_told(bytes))
        || last.is_some_and(|last| BYTES.contains(&last.len()) && (is_told(last) || is_drawn(last)))
}

/// Names in programs are base64, too, and some stand for bytes that can be printed: those have signs everywhere and no words.
fn is_of_chance(layer: Option<Layer>, value: &[u8]) -> bool {
    const BYTES_MAX: usize = 16;
    const LETTERS_MIN: usize = 5;
    let packed = matches!(layer, Some(Layer::Base64 | Layer::Base32 | Layer::Base58));
    let plain = value.iter().filter(|b| b.is_ascii_alphanumeric()).count();
    let letters = value
        .split(|b| !b.is_ascii_alphabetic())
        .map(<[u8]>::len)
        .max();
    packed
        && value.len() <= BYTES_MAX
        && plain * 5 < value.len() * 4
        && letters.is_none_or(|letters| letters < LETTERS_MIN)
}

/// The digits behind the point of a number, or before it where they were turned round.
fn is_fraction(before: &[u8], after: &[u8]) -> bool {
    matches!(before, [.., b'0'..=b'9', b'.']) || matches!(after, [b'.', b'0'..=b'9', ..])
}

/// `"sha":"`, `trace_id=`, `"subscriptionId": "`: the name right before a value says that it is an id, whatever is told of beside it.
pub(super) fn names_id(before: &[u8]) -> bool {
    const SIGNS: &[u8] = b"\"'`:= ";
    let signs = before
        .iter()
        .rev()
        .take_while(|b| SIGNS.contains(b))
        .count();
    let (named, signs) = before.split_at(before.len() - signs);
    let part = |b: &&u8| b.is_ascii_alphanumeric() || b"_-".contains(b);
    let name = &named[named.len() - named.iter().rev().take_while(part).count()..];
    let is = [
        &b"sha"[..],
        b"sha1",
        b"sha256",
        b"commit",
        b"etag",
        b"uuid",
        b"guid",
        b"traceid",
        b"spanid",
    ];
    let id = [&b"_id"[..], b"-id", b"Id", b"_sha", b"_uuid"];
    signs.iter().any(|b| b":=".contains(b))
        && (is.iter().any(|w| name.eq_ignore_ascii_case(w)) || id.iter().any(|e| name.ends_with(e)))
        && crate::names::promise(name) == Promise::Nothing
}

struct Words {
    find: AhoCorasick,
    of: Vec<Word>,
}

impl Words {
    /// The words of a text that stand by themselves. Those in other scripts do anywhere.
    fn of<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = Word> + 't {
        let letter = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphabetic);
        self.find.find_overlapping_iter(text).filter_map(move |m| {
            let own = text[m.start()] >= 0x80
                || !letter(m.start().checked_sub(1).and_then(|at| text.get(at)))
                    && (!letter(text.get(m.end())) || text.get(m.end()) == Some(&b's'));
            own.then(|| self.of[m.pattern().as_usize()])
        })
    }
}

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let lists = [
        (PASSWORDS, Word::Password),
        (KEYS, Word::Key),
        (CODES, Word::Code),
        (OTHERS, Word::Other),
    ];
    let words = lists
        .iter()
        .flat_map(|(list, of)| list.iter().map(move |word| (*word, *of)));
    let (words, of): (Vec<&str>, Vec<Word>) = words.unzip();
    let find = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .build(words);
    Words {
        find: find.expect("a few words"),
        of,
    }
});

const PASSWORDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pass phrase",
    "pass code",
    "pwd",
    "psw",
    "secret word",
    "login",
    "logon",
    "keystore",
    "kennwort",
    "passwort",
    "zugang",
    "mot de passe",
    "mdp",
    "contraseña",
    "clave",
    "senha",
    "palavra-passe",
    "parola",
    "hasło",
    "haslo",
    "heslo",
    "lösenord",
    "adgangskode",
    "adgangsord",
    "passord",
    "wachtwoord",
    "salasana",
    "şifre",
    "sifre",
    "parolă",
    "jelszó",
    "jelszo",
    "лозинка",
    "lozinka",
    "geslo",
    "slaptažodis",
    "parole",
    "parool",
    "κωδικός",
    "пароль",
    "пароля",
    "пароли",
    "парола",
    "密码",
    "密碼",
    "口令",
    "パスワード",
    "비밀번호",
    "암호",
    "كلمة المرور",
    "كلمة السر",
    "סיסמה",
    "סיסמא",
    "पासवर्ड",
    "รหัสผ่าน",
    "mật khẩu",
];
const KEYS: &[&str] = &[
    "token",
    "api key",
    "api-key",
    "api_key",
    "apikey",
    "secret",
    "credential",
    "credentials",
    "cookie",
    "private key",
    "private jwk",
    "jwk",
    "psk",
    "pre-shared",
    "shared key",
    "community",
    "community string",
    "license key",
    "licence key",
    "activation key",
    "recovery key",
    "unseal key",
    "signing key",
    "encryption key",
    "access key",
    "account key",
    "storage key",
    "master key",
    "secret key",
    "host key",
    "app key",
    "appkey",
    "nwkkey",
    "sharedaccesskey",
    "authorization",
    "registry auth",
    "basic auth",
    "bearer",
    "refresh_token",
    "access_token",
    "nt hash",
    "ntlm",
    "totp",
    "otp seed",
    "2fa seed",
    "schlüssel",
    "zugangsschlüssel",
    "jeton",
    "clé d'api",
    "clé api",
    "clé d'accès",
    "clave de api",
    "clave api",
    "clave de acceso",
    "chiave api",
    "chave de api",
    "chave api",
    "klucz api",
    "api-sleutel",
    "api-nyckel",
    "api-nøgle",
    "токен",
    "токена",
    "ключ api",
    "api-ключ",
    "секрет",
    "令牌",
    "密钥",
    "密鑰",
    "トークン",
    "秘密鍵",
    "apiキー",
    "토큰",
    "api 키",
    "رمز الوصول",
    "مفتاح api",
];
const CODES: &[&str] = &[
    "pin",
    "puk",
    "pin code",
    "pincode",
    "alarm",
    "door code",
    "gate code",
    "lock code",
    "access code",
    "entry code",
    "safe code",
    "unlock code",
    "pairing code",
    "panel code",
    "host key",
    "geheimzahl",
    "türcode",
    "code pin",
    "pin-code",
    "пин",
    "пин-код",
    "暗証番号",
];
const OTHERS: &[&str] = &[
    "cursor",
    "page",
    "next",
    "previous",
    "continuation",
    "pagination",
    "offset",
    "etag",
    "checksum",
    "digest",
    "fingerprint",
    "public key",
    "example",
    "sample",
    "dummy",
    "placeholder",
    "test vector",
];
