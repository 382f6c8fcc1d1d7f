//! What a name says about the value under it.

/// Parts of names that the gate looks for. A hit is only the reason to read the whole name.
pub(crate) const KEYWORDS: &[&str] = &[
    "passw",
    "passphrase",
    "_pass",
    "pass=",
    "pass:",
    "pass\"",
    "pass\u{1e}",
    "passcode",
    "pwd=",
    "pwd:",
    "pwd\"",
    "pwd'",
    "pwd ",
    "pwd\u{1e}",
    "pwd<",
    "pwd`",
    "pwd\n",
    "pwd,",
    "pwd;",
    "pwd\t",
    "pwd_",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "api key",
    "api.key",
    "accesskey",
    "access_key",
    "access-key",
    "accountkey",
    "account_key",
    "privatekey",
    "private_key",
    "private-key",
    "private key",
    "authkey",
    "auth_key",
    "signingkey",
    "signing_key",
    "encryption_key",
    "encryptionkey",
    "masterkey",
    "master_key",
    "sharedkey",
    "shared_key",
    "storagekey",
    "_key=",
    "_key:",
    "_key =",
    "_key\"",
    "_key'",
    "_key\u{1e}",
    "_key<",
    "_key`",
    "_key |",
    "_key\n",
    "_key\r",
    "_key,",
    "_key;",
    "-key:",
    "-key\"",
    "-key\u{1e}",
    "-key=",
    "-key ",
    "key = ",
    "key=\"",
    "key='",
    "key: ",
    "key\": ",
    "key\":\"",
    "key' =",
    "key\u{1e}",
    "credential",
    "mnemonic",
    "seed_phrase",
    "seed phrase",
    "recovery",
    "_auth",
    "auth=",
    "auth:",
    "auth\"",
    "auth\u{1e}",
    "auth\n",
    "authorization",
    "sessionid",
    "session_id",
    "sessid",
    "session=",
    "_pat=",
    "_pat\"",
    "_pat:",
    "_pat\u{1e}",
    "_pat ",
    "_pat\n",
    "_pw\"",
    "_pw=",
    "_pw:",
    "_pw\u{1e}",
    "webhook",
    "signature",
    "_salt",
    "_sid",
    "passwd",
    "passwort",
    "contraseña",
    "mot_de_passe",
    "motdepasse",
    "identified by",
    "_sig",
    "licensekey",
    "license_key",
    "_dsn",
    "wachtwoord",
    "contrasena",
    "senha",
    "haslo",
    "пароль",
    "密码",
    "パスワード",
    "비밀번호",
];

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
    /// Seed words.
    Mnemonic,
}

/// The ways a word is commonly written. The gate and [`plain`] fold the case of ASCII alone, so a word of another
/// script is looked for in lower case, upper case, and with a capital.
pub(crate) fn cases(word: &str) -> Vec<String> {
    let lower = word.to_lowercase();
    if lower.is_ascii() {
        return vec![lower];
    }
    let mut first = lower.chars();
    let capital = first
        .next()
        .map(|c| c.to_uppercase().chain(first).collect())
        .unwrap_or_default();
    let mut out = vec![lower.to_uppercase(), capital, lower];
    out.sort();
    out.dedup();
    out
}

/// Lower case, with a blank for every `_`, `-` and `.`: so that one way to write a word finds all.
pub(crate) fn plain(name: &[u8]) -> Vec<u8> {
    let mut out = name.to_vec();
    plain_in_place(&mut out);
    out
}

/// What [`plain`] takes for a blank.
pub(crate) const BLANKS: &[u8] = b" _-.\x1e\x1f";

/// [`plain`], where it stands.
pub(crate) fn plain_in_place(text: &mut [u8]) {
    for b in text {
        *b = match *b {
            b'_' | b'-' | b'.' | 0x1E | 0x1F => b' ',
            b => b.to_ascii_lowercase(),
        };
    }
}

/// The words of an identifier, lower case, at most 12 of at most 24 bytes: by `_ - . / space` and by humps.
struct Words {
    buf: [u8; 160],
    ends: [u8; 12],
    n: usize,
}

impl Words {
    fn of(name: &[u8]) -> Self {
        let name = &name[name.len().saturating_sub(128)..];
        let mut w = Self {
            buf: [0; 160],
            ends: [0; 12],
            n: 0,
        };
        let mut len = 0u8;
        let mut prev = 0u8;
        for (i, b) in name.iter().enumerate() {
            let next_lower = name.get(i + 1).is_some_and(u8::is_ascii_lowercase);
            let hump = b.is_ascii_uppercase()
                && (prev.is_ascii_lowercase()
                    || prev.is_ascii_digit()
                    || (prev.is_ascii_uppercase() && next_lower));
            let word_byte = b.is_ascii_alphanumeric() || *b >= 0x80;
            if (hump || !word_byte) && len > w.start(w.n) && w.n < 11 {
                w.ends[w.n] = len;
                w.n += 1;
            }
            if word_byte && usize::from(len) < w.buf.len() {
                w.buf[usize::from(len)] = b.to_ascii_lowercase();
                len += 1;
            }
            prev = *b;
        }
        if len > w.start(w.n) {
            w.ends[w.n] = len;
            w.n += 1;
        }
        w
    }

    fn start(&self, i: usize) -> u8 {
        if i == 0 { 0 } else { self.ends[i - 1] }
    }

    fn get(&self, i: usize) -> &[u8] {
        if i >= self.n {
            return b"";
        }
        &self.buf[usize::from(self.start(i))..usize::from(self.ends[i])]
    }

    /// Counted from the last, which is 0.
    fn back(&self, i: usize) -> &[u8] {
        if i < self.n {
            self.get(self.n - 1 - i)
        } else {
            b""
        }
    }

    fn any(&self, list: &[&str]) -> bool {
        (0..self.n).any(|i| is_in(self.get(i), list))
    }
}

fn is_in(word: &[u8], list: &[&str]) -> bool {
    list.iter().any(|w| w.as_bytes() == word)
}

const PASSWORD: &[&str] = &[
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "pass",
    "passwort",
    "passcode",
    "contraseña",
    "contrasena",
    "senha",
    "haslo",
    "wachtwoord",
    "motdepasse",
    "dbpassword",
    "userpassword",
    "pw",
    "userpwd",
    "psw",
    "mypassword",
    "adminpassword",
    "пароль",
    "密码",
    "パスワード",
    "비밀번호",
    "rootpassword",
    "storepass",
    "keypass",
    "storepassword",
    "keypassword",
    "sshpass",
    "pgpassword",
    "dbpass",
    "dbpasswd",
    "smtppassword",
    "loginpassword",
    "passw",
];
const STRONG: &[&str] = &[
    "secret",
    "token",
    "apikey",
    "credential",
    "credentials",
    "secretkey",
    "accesskey",
    "accesstoken",
    "authtoken",
    "privatekey",
    "clientsecret",
    "appsecret",
    "apitoken",
    "apisecret",
    "bearer",
    "pat",
    "authkey",
    "accountkey",
    "masterkey",
    "refreshtoken",
    "secretaccesskey",
    "sessiontoken",
    "idtoken",
    "jwt",
    "userkey",
    "appkey",
    "appkeys",
    "secrets",
    "licensekey",
    "signingkey",
    "secretid",
    "secretvalue",
    "secretpassphrase",
    "sharedsecret",
    "xoxb",
    "encryptionkey",
    "sharedaccesskey",
    "consumersecret",
    "consumerkey",
    "authtokens",
    "deploykey",
    "apikeys",
    "logintoken",
    "bottoken",
    "usertoken",
    "storagekey",
];
const WEAK: &[&str] = &[
    "key",
    "auth",
    "authorization",
    "sid",
    "salt",
    "sessionid",
    "session",
    "sess",
    "sessid",
    "webhook",
    "cookie",
    "dsn",
    "keys",
    "hmac",
    "cert",
    "phpsessid",
    "jsessionid",
];
const KEY_BEFORE: &[&str] = &[
    "api",
    "access",
    "secret",
    "private",
    "auth",
    "account",
    "master",
    "admin",
    "signing",
    "encryption",
    "service",
    "shared",
    "license",
    "licence",
    "write",
    "ingest",
    "ingestion",
    "sdk",
    "storage",
    "consumer",
    "deploy",
    "client",
    "server",
    "app",
    "application",
    "hmac",
    "crypto",
    "webhook",
    "user",
    "session",
    "project",
    "root",
    "read",
    "live",
    "prod",
    "production",
    "developer",
    "dev",
    "security",
    "subscription",
    "functions",
    "function",
    "host",
    "rest",
    "merchant",
    "integration",
];
/// A `key` under one of these opens nothing.
const KEY_DENIED: &[&str] = &[
    "primary",
    "foreign",
    "sort",
    "partition",
    "cache",
    "public",
    "pub",
    "idempotency",
    "object",
    "row",
    "index",
    "unique",
    "group",
    "map",
    "dict",
    "translation",
    "message",
    "routing",
    "lookup",
    "registry",
    "hash",
    "range",
    "composite",
    "natural",
    "surrogate",
    "candidate",
    "query",
    "column",
    "field",
    "data",
    "json",
    "config",
    "i18n",
    "locale",
    "label",
    "sheet",
    "issue",
    "s3",
    "bucket",
    "file",
    "parent",
    "ref",
    "arrow",
    "shift",
    "ctrl",
    "alt",
    "enter",
    "hot",
    "shortcut",
    "on",
    "for",
    "by",
    "same",
    "the",
    "a",
    "this",
    "each",
    "other",
    "publishable",
    "anon",
    "metric",
    "tag",
    "sorting",
    "dedup",
    "dedupe",
    "node",
    "component",
    "state",
    "property",
    "attribute",
    "header",
    "param",
    "storagekeyname",
    "translationkey",
    "react",
    "list",
    "item",
    "kms",
    "task",
    "activity",
    "event",
    "topic",
    "compound",
    "clustering",
    "distribution",
    "trace",
    "feature",
    "flag",
    "jira",
    "space",
    "cipher",
];
/// A name that ends in one of these tells about a secret without holding it.
const ABOUT: &[&str] = &[
    "id",
    "ids",
    "name",
    "names",
    "count",
    "length",
    "len",
    "max",
    "min",
    "type",
    "types",
    "url",
    "uri",
    "path",
    "file",
    "files",
    "filename",
    "endpoint",
    "policy",
    "expires",
    "expiry",
    "expiration",
    "expired",
    "ttl",
    "limit",
    "limits",
    "size",
    "usage",
    "used",
    "page",
    "label",
    "description",
    "desc",
    "hint",
    "title",
    "format",
    "regex",
    "pattern",
    "arn",
    "version",
    "enabled",
    "disabled",
    "required",
    "at",
    "in",
    "on",
    "field",
    "fields",
    "header",
    "headers",
    "prefix",
    "suffix",
    "index",
    "position",
    "status",
    "state",
    "kind",
    "class",
    "method",
    "manager",
    "service",
    "provider",
    "handler",
    "factory",
    "list",
    "set",
    "ref",
    "reference",
    "rotation",
    "strength",
    "rules",
    "rule",
    "reset",
    "change",
    "changed",
    "updated",
    "created",
    "time",
    "timestamp",
    "date",
    "days",
    "error",
    "errors",
    "message",
    "placeholder",
    "help",
    "text",
    "input",
    "prompt",
    "tokens",
    "tokenizer",
    "budget",
    "cost",
    "rate",
    "price",
    "address",
    "symbol",
    "env",
    "var",
    "variable",
    "store",
    "alias",
    "algorithm",
    "alg",
    "scope",
    "scopes",
    "issuer",
    "audience",
    "mode",
    "valid",
    "is",
    "validation",
    "confirm",
    "confirmation",
    "options",
    "option",
    "config",
    "model",
    "schema",
    "table",
    "column",
    "link",
    "href",
    "domain",
    "host",
    "port",
    "user",
    "username",
    "email",
    "region",
    "zone",
    "checksum",
    "fingerprint",
    "digest",
    "sha256",
    "sha1",
    "md5",
    "thumbprint",
    "location",
    "source",
    "target",
    "properties",
    "counts",
    "present",
    "set",
    "exists",
    "last4",
    "masked",
    "hidden",
    "visible",
    "login",
    "docs",
    "doc",
];
const TOKEN_DENIED: &[&str] = &[
    "next",
    "page",
    "continuation",
    "pagination",
    "cursor",
    "sync",
    "csrf",
    "xsrf",
    "progress",
    "cancellation",
    "cancel",
    "stop",
    "eos",
    "bos",
    "pad",
    "unk",
    "sep",
    "cls",
    "mask",
    "eot",
    "special",
    "max",
    "num",
    "min",
    "total",
    "prompt",
    "completion",
    "input",
    "output",
    "start",
    "end",
    "resume",
    "since",
    "lexer",
    "parse",
    "parser",
    "syntax",
    "css",
    "design",
    "color",
    "punctuation",
    "lock",
    "fencing",
    "request",
    "trace",
    "correlation",
    "position",
    "marker",
    "batch",
    "nft",
    "erc20",
    "lp",
    "governance",
    "next_page",
    "continue",
];
const MNEMONIC: &[&str] = &[
    "mnemonic",
    "mnemonics",
    "seedphrase",
    "recoveryphrase",
    "bip39",
];

/// What the identifier `name` promises about its value.
pub(crate) fn promise(name: &[u8]) -> Promise {
    let w = Words::of(name);
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
    if is_in(last, MNEMONIC)
        || (is_in(last, &["phrase", "seed", "words"])
            && is_in(
                before,
                &["seed", "recovery", "secret", "wallet", "backup", "mnemonic"],
            ))
    {
        return Promise::Mnemonic;
    }
    if is_in(last, ABOUT) {
        return about(&w, last, before);
    }
    if is_in(last, PASSWORD) {
        return if is_in(
            before,
            &["no", "forgot", "reset", "change", "show", "hide", "one"],
        ) {
            Promise::Nothing
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
    if last == b"key" || last == b"keys" {
        return key_promise(before, &w);
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
    if is_in(last, WEAK) {
        return Promise::Weak;
    }
    by_ending(last, &w)
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
    if is_in(before, KEY_DENIED) {
        Promise::Nothing
    } else if is_in(before, KEY_BEFORE) || w.any(&["secret", "private", "api"]) {
        Promise::Strong
    } else {
        Promise::Weak
    }
}

/// Names run together: `mydbpassword`, `slacktoken`.
fn by_ending(last: &[u8], w: &Words) -> Promise {
    let ends = |list: &[&str]| {
        list.iter()
            .any(|e| e.len() < last.len() && last.ends_with(e.as_bytes()))
    };
    if ends(&["password", "passwd", "passphrase", "passwort"]) {
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
                "hockey",
                "whiskey",
                "jockey",
                "donkey",
                "hickey",
            ],
        )
    {
        Promise::Weak
    } else if w.any(&["password", "passwd", "secret", "token", "apikey"])
        && is_in(
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
            ],
        )
    {
        if w.any(&["password", "passwd"]) {
            Promise::Password
        } else {
            Promise::Strong
        }
    } else {
        Promise::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises() {
        use Promise::*;
        let cases = [
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
        ];
        for (name, want) in cases {
            assert_eq!(promise(name.as_bytes()), want, "{name}");
        }
    }
}
