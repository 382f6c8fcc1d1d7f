//! What a name says about the value under it.

mod lists;
mod owner;
mod tongues;
mod words;

use lists::{
    ABOUT, KEY_BEFORE, KEY_DENIED, MNEMONIC, OF_WHAT, PASS_BEFORE, PASSWORD, STRONG, TOKEN_DENIED,
    WEAK, WRITTEN,
};
use words::Words;

pub(crate) use lists::KEYWORDS_TURNED;
pub(crate) use owner::says_whose;
pub(crate) use words::{cases, plain, plain_byte, unmarked};

/// How much a name promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Promise {
    Nothing,
    /// `SENDGRID_KEY`, `auth`, `signature`: believed if the value looks made by a generator.
    Weak,
    /// `api_token`, `client_secret`.
    Strong,
    /// A password: chosen by people too.
    Password,
    /// A password of words, which may have blanks between them.
    Passphrase,
    /// Seed words.
    Mnemonic,
}

/// Parts of names that the gate looks for.
pub(crate) fn keywords() -> impl Iterator<Item = String> {
    let one = lists::KEYWORDS.iter().chain(tongues::WORDS);
    let several = tongues::SEVERAL.iter();
    let several = several.flat_map(|words| [" ", "_", "-"].map(|sign| words.replace(' ', sign)));
    let keys = tongues::KEYS.iter().flat_map(|key| {
        [" ", "_", "-", ""].into_iter().flat_map(move |sign| {
            // `apiSchluessel`: humps are in lower case here.
            [format!("api{sign}{key}"), format!("{key}{sign}api")]
        })
    });
    let pairs = tongues::SECRET_PAIRS
        .iter()
        .filter(|(first, _)| first.len() > 2);
    let pairs = pairs.flat_map(|(a, b)| ["", " ", "_", "-"].map(|sign| format!("{a}{sign}{b}")));
    let third = tongues::KEYS
        .iter()
        .flat_map(|key| [" de ", " wa ", "_de_"].map(|of| format!("{key}{of}api")));
    let third = third.filter(|words| words.is_ascii());
    let secret = tongues::SECRET_WORDS.iter().map(ToString::to_string);
    // `app.signing.key`, `partnerWriteKey`, "the write key".
    let of_keys = KEY_BEFORE.iter();
    let of_keys = of_keys.flat_map(|word| [".", "", " "].map(|sign| format!("{word}{sign}key")));
    let headers = tongues::KEYS.iter();
    let headers = headers.filter(|key| key.is_ascii() && key.len() > 3);
    let headers = headers.map(|key| format!("-{key}"));
    let others = [
        "khóa bí mật",
        "mã truy cập",
        "ufunguo wa siri",
        "jeton d'acc",
        "clé d'acc",
        "cle d'acc",
        "cle d'api",
        "token de acceso",
        "token de acesso",
        "token di accesso",
    ];
    let others = others.into_iter().map(str::to_owned);
    let bare = tongues::BARE_KEYS.iter().map(ToString::to_string);
    one.map(ToString::to_string)
        .chain(bare)
        .chain(several)
        .chain(keys)
        .chain(pairs)
        .chain(third)
        .chain(secret)
        .chain(of_keys)
        .chain(headers)
        .chain(others)
}

/// What the identifier `name` promises about its value.
pub(crate) fn promise(name: &[u8]) -> Promise {
    // Salesforce marks fields of one's own so: `Client_Secret__c`.
    let w = Words::of(name.strip_suffix(b"__c").unwrap_or(name));
    if w.n == 0 {
        return Promise::Nothing;
    }
    let last = w.back(0);
    let numbered = last.iter().all(u8::is_ascii_digit);
    let (last, before) = if numbered && w.n > 1 {
        (w.back(1), w.back(2))
    } else {
        (last, w.back(1))
    };
    // `MERCHANT_KEY1`: the first of several.
    let last = match last.split_last() {
        Some((b'1'..=b'9', word))
            if w.n > 1 && is_in(word, &["key", "token", "secret", "apikey"]) =>
        {
            word
        }
        _ => last,
    };
    // `AES_KEY_HEX`, `.vault_pass.txt`: how it is written down.
    let (last, before) = match w.n > 1 && is_in(last, WRITTEN) {
        true => (w.back(1), w.back(2)),
        false => (last, before),
    };
    if is_in(last, MNEMONIC)
        || (is_in(last, &["phrase", "seed", "words"])
            && is_in(
                before,
                &["seed", "recovery", "secret", "wallet", "backup", "mnemonic"],
            ))
    {
        return Promise::Mnemonic;
    }
    if last == b"otpseed"
        || last == b"seed" && is_in(before, &["otp", "totp", "hotp", "2fa", "mfa"])
    {
        return Promise::Strong;
    }
    if is_in(last, ABOUT) {
        return about(&w, last, before);
    }
    // Only ASCII is in lower case by now.
    let lower;
    let (last, before) = if last.is_ascii() && before.is_ascii() {
        (last, before)
    } else {
        lower = [last, before].map(|word| String::from_utf8_lossy(word).to_lowercase());
        (lower[0].as_bytes(), lower[1].as_bytes())
    };
    let pair =
        |(first, second): &(&str, &str)| last == second.as_bytes() && before == first.as_bytes();
    if tongues::PAIRS.iter().any(pair) {
        return Promise::Password;
    }
    if is_secret(last, before) || tongues::SECRET_PAIRS.iter().any(pair) {
        return Promise::Strong;
    }
    // `jeton d'accès`, `clé d'API`; a `point d'accès` is none.
    let of_access = before == b"d" && is_in(last, &["accès", "acces", "api"]);
    if of_access && is_in(w.back(2), &["jeton", "clé", "cle", "clef"]) {
        return Promise::Strong;
    }
    if is_in(last, PASSWORD) || is_in(last, tongues::WORDS) {
        return if is_in(
            before,
            &["no", "forgot", "reset", "change", "show", "hide", "one"],
        ) {
            Promise::Nothing
        } else if last == b"passphrase" {
            Promise::Passphrase
        } else {
            Promise::Password
        };
    }
    if w.any(&[
        "public",
        "pubkey",
        "publishable",
        "example",
        "sample",
        "dummy",
        "fake",
        "mock",
    ]) {
        return Promise::Nothing;
    }
    // `X-Stock-Key`, `X-Lager-Sleutel`: what a header of one's own is for is to log in.
    let header = w.n > 1 && name.len() > 2 && name[..2].eq_ignore_ascii_case(b"x-");
    let key = last == b"key" && w.n > 2 || is_in(last, tongues::KEYS);
    if header && key && !is_in(before, KEY_DENIED) {
        return Promise::Strong;
    }
    if last == b"key" || last == b"keys" {
        return key_promise(before, &w);
    }
    // What lists of known secrets keep of each.
    if last == b"secret" && before == b"hashed" {
        return Promise::Nothing;
    }
    if is_in(last, STRONG) {
        let token = last.ends_with(b"token");
        return if token
            && (is_in(before, TOKEN_DENIED)
                || w.any(&["csrf", "xsrf", "pagination", "continuation"]))
        {
            Promise::Nothing
        } else {
            Promise::Strong
        };
    }
    if is_in(last, WEAK) || w.n == 1 && is_in(last, tongues::BARE_KEYS) {
        return Promise::Weak;
    }
    if is_foreign(last, before, &w) {
        return Promise::Password;
    }
    by_ending(last, &w)
}

/// `senha_banco`, `hasło do bazy`, `mdpAdmin`: a word for a password, and behind it what it is for, as most languages say it.
fn is_foreign(last: &[u8], before: &[u8], w: &Words) -> bool {
    // Nearly all names are one word, or end in none of these.
    if w.n < 2 || !is_in(last, OF_WHAT) {
        return false;
    }
    let named = |word: &[u8]| {
        let spoken = is_in(word, tongues::WORDS) || is_in(word, &["mdp", "sifre"]);
        spoken
            || !word.is_ascii()
                && is_in(
                    String::from_utf8_lossy(word).to_lowercase().as_bytes(),
                    tongues::WORDS,
                )
    };
    // `clave` is any key: only the one right behind it says that of a login.
    // Of a bank and of a data base it says what everybody may know.
    let key = before == b"clave" && !is_in(last, &["banco", "base", "sistema"]);
    key || (1..w.n.min(5)).any(|nth| {
        let word = w.back(nth);
        named(word) || word == b"passe" && w.back(nth + 1) == b"de"
    })
}

/// `API-Schlüssel`, `clé API`, `APIキー`, `密钥`: a key or a token in another language. In lower case.
fn is_secret(last: &[u8], before: &[u8]) -> bool {
    let key = |word: &[u8]| is_in(word, tongues::KEYS);
    let glued = || {
        let rest = last
            .strip_prefix(b"api")
            .or_else(|| last.strip_suffix(b"api"));
        !last.is_ascii() && rest.is_some_and(key)
    };
    last == b"api" && key(before)
        || before == b"api" && key(last)
        || is_in(last, tongues::SECRET_WORDS)
        || glued()
}

/// Two words with a blank between them that name a password, or a key, together.
pub(crate) fn is_pair(both: &[u8]) -> bool {
    const WORD_BYTES_MAX: usize = 48;
    let Some(blank) = both.iter().position(|b| *b == b' ') else {
        return false;
    };
    let (first, second) = (&both[..blank], &both[blank + 1..]);
    if first.len().max(second.len()) > WORD_BYTES_MAX {
        return false;
    }
    let lower = |word: &[u8]| match word.is_ascii() {
        true => word.to_ascii_lowercase(),
        false => String::from_utf8_lossy(word).to_lowercase().into_bytes(),
    };
    let (first, second) = (lower(first), lower(second));
    let key = |word: &[u8]| is_in(word, tongues::KEYS);
    let pair = |(a, b): &(&str, &str)| second == b.as_bytes() && first == a.as_bytes();
    first == b"api" && key(&second)
        || second == b"api" && key(&first)
        || tongues::PAIRS.iter().any(pair)
        || tongues::SECRET_PAIRS.iter().any(pair)
}

/// `secret_id`, `token_value`: mostly about, sometimes the thing itself.
fn about(w: &Words, last: &[u8], before: &[u8]) -> Promise {
    if (last == b"id" || last == b"hash") && is_in(before, &["secret", "session", "sess"]) {
        return Promise::Weak;
    }
    if is_in(last, &["header", "config", "env", "var", "login"]) && w.any(&["authorization"]) {
        return Promise::Weak;
    }
    Promise::Nothing
}

fn key_promise(before: &[u8], w: &Words) -> Promise {
    // What a browser subscribes to messages with is public (RFC 8292).
    // So is what opens a WebSocket (RFC 6455, 11.3.1).
    let subscribes = before == b"server" && w.any(&["application"])
        || before == b"socket" && w.any(&["web"])
        || before == b"websocket";
    if is_in(before, KEY_DENIED) || subscribes {
        Promise::Nothing
    } else if is_in(before, KEY_BEFORE) || w.any(&["secret", "private", "api"]) {
        Promise::Strong
    } else {
        Promise::Weak
    }
}

/// Names run together: `mydbpassword`, `slacktoken`.
fn by_ending(last: &[u8], w: &Words) -> Promise {
    // `rootpass`, `dbpw`, `Password2`
    let run_together = [&b"pass"[..], b"pw", b"pwd"].iter().any(|end| {
        last.strip_suffix(*end)
            .is_some_and(|word| is_in(word, PASS_BEFORE))
    });
    let digits = last.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let counted = (1..=2).contains(&digits)
        && is_in(&last[..last.len() - digits], &["password", "passwd", "pwd"]);
    if run_together || counted {
        return Promise::Password;
    }
    // `NOPASSWD: /usr/bin/x`, in a file of sudo: what may be run without one.
    if last == b"nopasswd" {
        return Promise::Nothing;
    }
    let ends = |list: &[&str]| {
        list.iter()
            .any(|e| e.len() < last.len() && last.ends_with(e.as_bytes()))
    };
    if ends(&[
        "password",
        "passwd",
        "passphrase",
        "passwort",
        "kennwort",
        "passord",
        "lösenord",
        "密码",
        "密碼",
        "口令",
        "パスワード",
        "비밀번호",
    ]) {
        Promise::Password
    } else if ends(&[
        "secret",
        "token",
        "apikey",
        "secretkey",
        "accesskey",
        "authkey",
        "privatekey",
    ]) {
        Promise::Strong
    } else if ends(&["key"])
        && !is_in(
            last,
            &[
                "monkey",
                "turkey",
                "hotkey",
                "pubkey",
                "publickey",
                "sitekey",
                "hockey",
                "whiskey",
                "jockey",
                "donkey",
                "hickey",
            ],
        )
    {
        Promise::Weak
    } else if w.any(&[
        "password", "passwd", "pwd", "passwort", "secret", "token", "apikey",
    ]) && is_in(
        last,
        &[
            "value",
            "val",
            "data",
            "prod",
            "production",
            "dev",
            "staging",
            "test",
            "live",
            "current",
            "old",
            "new",
            "primary",
            "secondary",
            "base64",
            "b64",
            "hex",
            "raw",
            "string",
            "str",
            "default",
            "main",
            "backup",
            "plaintext",
            "plain",
            "hash",
            "hashed",
            "admin",
            "root",
            "user",
            "db",
            "database",
            "service",
            "system",
            "mail",
            "smtp",
            "ftp",
            "wifi",
            "server",
            "master",
            "owner",
            "portal",
            "base",
            "private",
            "postgres",
            "mysql",
            "redis",
            "ldap",
            "vpn",
            "bd",
            "bdd",
            "banco",
        ],
    ) {
        if w.any(&["password", "passwd", "pwd", "passwort"]) {
            Promise::Password
        } else {
            Promise::Strong
        }
    } else {
        Promise::Nothing
    }
}

fn is_in(word: &[u8], list: &[&str]) -> bool {
    list.iter().any(|w| w.as_bytes() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises() {
        use Promise::*;
        let cases = [
            ("X-Veiling-Key", Strong),
            ("x-lager-sleutel", Strong),
            ("X-Idempotency-Key", Nothing),
            ("LICENSE_SIGNING", Weak),
            ("password", Password),
            ("DB_PASSWORD", Password),
            ("dbPassword", Password),
            ("mysql.root.pwd", Password),
            ("userpassword1", Nothing),
            ("token", Strong),
            ("RAILWAY_TOKEN", Strong),
            ("accessToken", Strong),
            ("client_secret", Strong),
            ("AccountKey", Strong),
            ("x_functions_key", Strong),
            ("SENDGRID_KEY", Weak),
            ("AWS_SECRET_ACCESS_KEY", Strong),
            ("primary_key", Nothing),
            ("public_key", Nothing),
            ("publishableKey", Nothing),
            ("cacheKey", Nothing),
            ("max_tokens", Nothing),
            ("next_page_token", Nothing),
            ("nextPageToken", Nothing),
            ("csrf_token", Nothing),
            ("token_count", Nothing),
            ("password_policy", Nothing),
            ("passwordResetUrl", Nothing),
            ("api_key_id", Nothing),
            ("mnemonic", Mnemonic),
            ("seed_phrase", Mnemonic),
            ("monkey", Nothing),
            ("name", Nothing),
            ("", Nothing),
            ("slacktoken", Strong),
            ("AUTH", Weak),
            ("ASANA_PAT", Strong),
            ("sort_key", Nothing),
            ("secretsManager", Nothing),
            ("password_prod", Password),
            ("API_KEY_2", Strong),
            ("secret_key_base", Strong),
            ("MJ_APIKEY_PRIVATE", Strong),
            ("knowledge_base", Nothing),
            ("clave_de_acceso", Password),
            ("mot-de-passe", Password),
            ("كلمة_المرور", Password),
            ("գաղտնաբառ", Password),
            ("Neno-la-siri", Password),
            ("нууц_үг", Password),
            ("root_pw", Password),
            ("ldap.bindpw", Password),
            ("RABBITMQ_ERLANG_COOKIE", Password),
            ("PASSWORD_PEPPER", Weak),
            ("cookie_policy", Nothing),
            ("HASŁO", Password),
            ("数据库密码", Password),
            ("totp_seed", Strong),
            ("random_seed", Nothing),
            ("pre-shared-key", Password),
            ("disk_passphrase", Passphrase),
            ("ipsec_psk", Password),
            ("RADIUS_shared_secret", Password),
            ("punto_de_acceso_id", Nothing),
            ("mdp_base", Password),
            ("clave_usuario", Password),
            ("claveAcceso", Password),
            ("clave_banco", Nothing),
            ("clave_producto", Nothing),
            ("senhaBanco", Password),
            ("hasło_do_bazy", Password),
            ("mot_de_passe_admin", Password),
            ("пароль_админа", Password),
            ("ПАРОЛЬ_БД", Password),
            ("REDIS_AUTH", Password),
            ("dbPw", Password),
            ("mysqlpass", Password),
            ("bypass", Nothing),
            ("compass", Nothing),
            ("oldpwd", Nothing),
            ("pass_word", Password),
            ("db_pswd", Password),
            ("Password2", Password),
            ("snmp_community", Password),
            ("heslo_length", Nothing),
            ("API-Schlüssel", Strong),
            ("chave_api", Strong),
            ("CLE_API", Strong),
            ("apiSchluessel", Strong),
            ("cle_secrete", Strong),
            ("jetonAcces", Strong),
            ("geheim_sleutel", Strong),
            ("parola_chiave", Password),
            ("klyuch_api", Strong),
            ("jeton", Strong),
            ("schluessel", Weak),
            ("jeton d'accès", Strong),
            ("point d'accès", Nothing),
            ("segreto", Strong),
            ("GPG_KEY", Nothing),
            ("cycle_api", Nothing),
            ("clé_api", Strong),
            ("APIキー", Strong),
            ("API密钥", Strong),
            ("ключ_API", Strong),
            ("Секретный ключ", Strong),
            ("kunci_rahasia", Strong),
            ("ключ", Nothing),
            ("キーワード", Nothing),
        ];
        for (name, want) in cases {
            assert_eq!(promise(name.as_bytes()), want, "{name}");
        }
    }
}
