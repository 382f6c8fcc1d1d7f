//! What stands around a value in the bytes that were encoded, and around the digits, hides nothing.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use dlp_scan::{
    Budget, Category, FingerprintKey, LeafInput, LeafKind, LeafStream, Own, RuleSet, Scanner,
    ValueList,
};

/// Put together here so that none stands in the repository.
fn key() -> String {
    ["AKIA", "Q3EGRX7ZKTWM4LHB"].concat()
}

fn scanner() -> Scanner {
    Scanner::new(FingerprintKey::new([5; 32]))
}

fn leaf(text: &str) -> LeafInput<'_> {
    LeafInput {
        text,
        kind: LeafKind::String,
        name: None,
    }
}

/// What of the text is found under the rule.
fn found_by<'t>(rules: &RuleSet, text: &'t str, rule: &str) -> Vec<&'t str> {
    let outcome = scanner().scan(rules, [leaf(text)].into_iter(), &Budget::default());
    assert_eq!(outcome.over_budget, None);
    let it = outcome.findings.iter();
    it.filter(|f| &*rules.rule(f.rule).id == rule)
        .map(|f| &text[f.start as usize..f.end as usize])
        .collect()
}

fn found(text: &str) -> Vec<&str> {
    found_by(RuleSet::builtin(), text, "aws-access-key-id")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn base32(bytes: &[u8]) -> String {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let chunk = |five: &[u8]| {
        let bits = (0..5).fold(0u64, |n, i| n << 8 | u64::from(*five.get(i).unwrap_or(&0)));
        let len = (five.len() * 8).div_ceil(5);
        let digit = move |i: usize| char::from(digits[(bits >> (35 - 5 * i)) as usize & 31]);
        (0..len).map(digit).collect::<String>()
    };
    bytes.chunks(5).map(chunk).collect()
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut x = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    std::iter::repeat_with(|| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 32) as u8
    })
    .take(len)
    .collect()
}

/// Bytes around the value that are no text.
fn blobs() -> Vec<(String, Vec<u8>)> {
    let key = key();
    let text = format!("my key {key} is");
    let utf16 = |text: &str, to: fn(u16) -> [u8; 2]| -> Vec<u8> {
        text.encode_utf16().flat_map(to).collect()
    };
    let mut blobs = Vec::new();
    let mut add = |name: &str, parts: &[&[u8]]| blobs.push((name.to_owned(), parts.concat()));
    for n in 1..=12 {
        add(&format!("{n} zeros"), &[&vec![0; n], text.as_bytes()]);
        add(
            &format!("{n} of noise"),
            &[&noise(n, n as u64), b"\xff", text.as_bytes(), b"\xff"],
        );
    }
    add("one byte", &[b"\xff", text.as_bytes()]);
    add(
        "a byte behind",
        &[text.as_bytes(), b"\xff\xfe\x80 ", &noise(40, 3)],
    );
    add(
        "a byte amid",
        &[b"some words before it \xff and ", text.as_bytes()],
    );
    add(
        "bytes amid",
        &[&b"words \xff\xc0".repeat(30), text.as_bytes()],
    );
    add(
        "latin-1",
        &[
            "Schl\u{fc}ssel f\u{fc}r alle "
                .chars()
                .map(|c| c as u8)
                .collect::<Vec<_>>()
                .as_slice(),
            text.as_bytes(),
        ],
    );
    for (name, to) in [
        ("LE", u16::to_le_bytes as fn(u16) -> [u8; 2]),
        ("BE", u16::to_be_bytes),
    ] {
        add(&format!("UTF-16{name}"), &[&utf16(&text, to)]);
        add(
            &format!("UTF-16{name} with its mark"),
            &[&utf16(&format!("\u{feff}{text}"), to)],
        );
        add(
            &format!("UTF-16{name} of another script"),
            &[&utf16(&format!("\u{feff}пароль: {text}"), to)],
        );
        add(
            &format!("UTF-16{name} amid"),
            &[&noise(33, 7), b"\xff", &utf16(&text, to), b"\xff\xff"],
        );
    }
    add("PNG", &[b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\x22tEXtComment\0", text.as_bytes(), b"\x12\x34\x56\x78", &noise(90, 1)]);
    add(
        "PDF",
        &[
            b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n(",
            text.as_bytes(),
            b")\nendobj\n",
            &noise(90, 2),
        ],
    );
    add(
        "protobuf",
        &[b"\x08\x96\x01\x12\x14", key.as_bytes(), b"\x1a\x03abc"],
    );
    add(
        "SQLite",
        &[
            b"SQLite format 3\0\x10\0\x01\x01\0@  ",
            &[0; 80],
            text.as_bytes(),
            &[0; 40],
        ],
    );
    let mut tar = b"a.txt".to_vec();
    tar.resize(512, 0);
    add("tar", &[&tar, text.as_bytes(), &[0; 300]]);
    blobs
}

#[test]
fn bytes_that_are_no_text_hide_none() {
    let mut missed = Vec::new();
    for (name, bytes) in blobs() {
        for (code, text) in [
            ("base64", STANDARD.encode(&bytes)),
            ("base64url", URL_SAFE_NO_PAD.encode(&bytes)),
            ("hex", hex(&bytes)),
            ("base32", base32(&bytes)),
        ] {
            for text in [text.clone(), format!("blob: \"{text}\" of it")] {
                let found = found(&text);
                // What is redacted are digits of the run, and no more than its own.
                if found.len() != 1 || found[0].len() > text.len() || found[0].contains(' ') {
                    missed.push(format!("{name} in {code}: {found:?}"));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn only_the_digits_of_the_value_are_taken() {
    let bytes = [
        &noise(300, 9)[..],
        b"\xff",
        key().as_bytes(),
        b"\xff",
        &noise(300, 10),
    ]
    .concat();
    for text in [STANDARD.encode(&bytes), hex(&bytes)] {
        let per_byte = text.len() / bytes.len() + 1;
        let found = found(&text);
        assert_eq!(found.len(), 1);
        assert!(found[0].len() <= 24 * per_byte, "{}", found[0].len());
    }
}

#[test]
fn noise_of_any_length_gives_nothing() {
    for seed in 0..40 {
        let bytes = noise(20_000, seed);
        for text in [
            STANDARD.encode(&bytes),
            hex(&bytes[..8000]),
            base32(&bytes[..8000]),
        ] {
            let outcome = scanner().scan(
                RuleSet::builtin(),
                [leaf(&text)].into_iter(),
                &Budget::default(),
            );
            assert!(
                outcome.findings.is_empty(),
                "{seed}: {:?}",
                outcome.findings
            );
        }
    }
}

#[test]
fn what_is_glued_to_a_run_hides_none() {
    let text = format!("user and {} of it", key());
    let mut missed = Vec::new();
    for (code, run) in [
        ("base64", STANDARD_NO_PAD.encode(&text)),
        ("base64url", URL_SAFE_NO_PAD.encode(&text)),
        ("hex", hex(text.as_bytes())),
        ("HEX", hex(text.as_bytes()).to_uppercase()),
        ("base32", base32(text.as_bytes())),
    ] {
        for before in [
            "",
            "k",
            "_",
            "-",
            "A",
            "a",
            "7",
            "id-",
            "id_",
            "v1-",
            "tok_",
            "data_",
            "Bearer_",
            "A/",
            "a1_b2-",
            "session-token-",
            "tokenA",
            "prefixes",
            "PREFIX",
        ] {
            for after in ["", "a", "_x", "-x", "/x", "-0", "_and_more-of-it", "Z"] {
                let glued = format!("{before}{run}{after}");
                for text in [glued.clone(), format!("it is {glued}, they say")] {
                    if found(&text).len() != 1 {
                        missed.push(format!("{code}: {before}...{after}"));
                    }
                }
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(bytes).expect("a vector takes all");
    out.finish().expect("a vector takes all")
}

/// How the files of an archive are written down.
#[derive(Clone, Copy, Default)]
struct Zip {
    stored: bool,
    /// The lengths stand behind the file.
    descriptor: bool,
    /// Added to the lengths in the heads of the files.
    wrong: u32,
    without_directory: bool,
}

impl Zip {
    fn of(self, files: &[(&str, &[u8])]) -> Vec<u8> {
        let (mut out, mut directory) = (Vec::new(), Vec::new());
        let number = |n: usize| u32::try_from(n).expect("short").to_le_bytes();
        for (name, body) in files {
            let mut packed = body.to_vec();
            let method = if self.stored || body.is_empty() {
                0u16
            } else {
                8
            };
            if method == 8 {
                let mut deflate =
                    flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
                deflate.write_all(body).expect("a vector takes all");
                packed = deflate.finish().expect("a vector takes all");
            }
            let (len, plain) = (number(packed.len()), number(body.len()));
            let flags = if self.descriptor { 8u16 } else { 0 };
            let common = |out: &mut Vec<u8>, len: [u8; 4], plain: [u8; 4]| {
                out.extend(b"\x14\0");
                out.extend(flags.to_le_bytes());
                out.extend(method.to_le_bytes());
                out.extend([0; 8]);
                out.extend(len);
                out.extend(plain);
                out.extend(u16::try_from(name.len()).expect("short").to_le_bytes());
                out.extend([0; 2]);
            };
            let head = out.len();
            out.extend(b"PK\x03\x04");
            if self.descriptor {
                common(&mut out, [0; 4], [0; 4]);
            } else {
                let wrong = |len: [u8; 4]| (u32::from_le_bytes(len) + self.wrong).to_le_bytes();
                common(&mut out, wrong(len), wrong(plain));
            }
            out.extend(name.as_bytes());
            out.extend(&packed);
            if self.descriptor {
                out.extend(b"PK\x07\x08\0\0\0\0");
                out.extend(len);
                out.extend(plain);
            }
            directory.extend(b"PK\x01\x02\x14\0");
            common(&mut directory, len, plain);
            directory.extend([0; 10]);
            directory.extend(number(head));
            directory.extend(name.as_bytes());
        }
        if !self.without_directory {
            let (at, len) = (number(out.len()), number(directory.len()));
            let count = u16::try_from(files.len()).expect("few").to_le_bytes();
            out.extend(directory);
            out.extend(b"PK\x05\x06\0\0\0\0");
            out.extend([count, count].concat());
            out.extend(len);
            out.extend(at);
            out.extend([0; 2]);
        }
        out
    }
}

#[test]
fn archives_of_every_make_are_read() {
    let secret = format!("aws key = {} of the account\n", key());
    let words = b"nothing to see in this file but ordinary words\n".repeat(3);
    let picture = [&b"\x89PNG\0\0"[..], &noise(300, 4)].concat();
    let files: [&[(&str, &[u8])]; 4] = [
        &[("conf/", b""), ("conf/b.env", secret.as_bytes())],
        &[
            ("a.txt", &words),
            ("__init__.py", b""),
            ("b.env", secret.as_bytes()),
        ],
        &[("a.png", &picture), ("b.env", secret.as_bytes())],
        &[("b.env", secret.as_bytes()), ("a.txt", &words)],
    ];
    let plain = Zip::default();
    let makes = [
        ("plain", plain),
        (
            "stored",
            Zip {
                stored: true,
                ..plain
            },
        ),
        (
            "descriptor",
            Zip {
                descriptor: true,
                ..plain
            },
        ),
        (
            "descriptor, stored",
            Zip {
                descriptor: true,
                stored: true,
                ..plain
            },
        ),
        (
            "wrong",
            Zip {
                wrong: 1000,
                ..plain
            },
        ),
        (
            "wrong, stored",
            Zip {
                wrong: 7,
                stored: true,
                ..plain
            },
        ),
        (
            "wrong, no directory",
            Zip {
                wrong: 1000,
                without_directory: true,
                ..plain
            },
        ),
        (
            "wrong, stored, no directory",
            Zip {
                wrong: 7,
                stored: true,
                without_directory: true,
                ..plain
            },
        ),
        (
            "descriptor, stored, no directory",
            Zip {
                descriptor: true,
                stored: true,
                without_directory: true,
                ..plain
            },
        ),
    ];
    let mut missed = Vec::new();
    for (name, make) in makes {
        for (nth, files) in files.iter().enumerate() {
            let zip = make.of(files);
            for before in [&b""[..], b"x", b"xx", b"#!/bin/sh\nexit\n", &noise(100, 5)] {
                let bytes = [before, &zip].concat();
                for text in [STANDARD.encode(&bytes), hex(&bytes)] {
                    if found(&text).is_empty() {
                        missed.push(format!("{name}, {nth}, {} bytes before", before.len()));
                    }
                }
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn what_is_packed_twice_is_read_or_said() {
    let secret = format!("aws key = {} of the account\n", key());
    let plain = Zip::default();
    let zip = |name: &str, body: &[u8]| plain.of(&[("a/", b""), (name, body)]);
    let mut tar = b"a.txt".to_vec();
    tar.resize(512, 0);
    tar.extend(secret.as_bytes());
    tar.resize(1536, 0);
    let cases = [
        ("gzip in gzip", gzip(&gzip(secret.as_bytes()))),
        ("gzip in zip", zip("b.gz", &gzip(secret.as_bytes()))),
        ("zip in zip", zip("b.zip", &zip("b.env", secret.as_bytes()))),
        (
            "stored zip in zip",
            Zip {
                stored: true,
                ..plain
            }
            .of(&[("b.zip", &zip("b", secret.as_bytes()))]),
        ),
        ("zip in gzip", gzip(&zip("b.env", secret.as_bytes()))),
        ("tar", gzip(&tar)),
        ("tgz in zip", zip("b.tgz", &gzip(&tar))),
        (
            "a database in a zip",
            zip(
                "b.db",
                &[&noise(90, 6)[..], secret.as_bytes(), &noise(90, 7)].concat(),
            ),
        ),
    ];
    for (name, bytes) in cases {
        assert_eq!(found(&STANDARD.encode(&bytes)).len(), 1, "{name}");
        assert_eq!(found(&hex(&bytes)).len(), 1, "{name}");
    }
    let behind = [
        &gzip(b"words that say nothing")[..],
        b"\0\0",
        secret.as_bytes(),
    ]
    .concat();
    assert_eq!(found(&STANDARD.encode(&behind)).len(), 1, "behind a stream");
    let mut deep = secret.into_bytes();
    for _ in 0..12 {
        deep = gzip(&deep);
    }
    let text = STANDARD.encode(&deep);
    let outcome = scanner().scan(
        RuleSet::builtin(),
        [leaf(&text)].into_iter(),
        &Budget::default(),
    );
    assert!(outcome.over_budget.is_some());
}

#[test]
fn lines_of_any_width_are_one_run() {
    let words = "ordinary words that say nothing at all ".repeat(3);
    let text = format!("{words}{} {words}", key());
    let run = STANDARD.encode(&text);
    let mut missed = Vec::new();
    for width in 16..=120 {
        let lines: Vec<&str> = (0..run.len())
            .step_by(width)
            .map(|at| &run[at..run.len().min(at + width)])
            .collect();
        for gap in ["\n", "\r\n", "\n  ", "\n\t", "\n        ", " "] {
            for text in [
                lines.join(gap),
                format!("data: |{gap}{}\nname: b", lines.join(gap)),
            ] {
                let found = found(&text);
                if found.len() != 1 || found[0].trim() != found[0] {
                    missed.push(format!("{width} {gap:?}: {found:?}"));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn a_list_of_runs_is_not_one_run() {
    let item = |n: usize| STANDARD_NO_PAD.encode(format!("entry {n:02} of the list {} ", key()));
    for gap in ["\n", "\n  ", ", "] {
        let text = (10..16).map(item).collect::<Vec<_>>().join(gap);
        assert_eq!(found(&text).len(), 6, "{gap:?}");
        let glued =
            (10..16).map(|n| format!("tok_{}", hex(format!("entry {n:02} {}", key()).as_bytes())));
        assert_eq!(
            found(&glued.collect::<Vec<_>>().join(gap)).len(),
            6,
            "{gap:?}"
        );
    }
}

/// Findings of a leaf that arrives in windows.
fn streamed(text: &str) -> Vec<(u64, u64)> {
    let (mut scanner, mut out) = (scanner(), Vec::new());
    let mut leaves = LeafStream::new(LeafStream::<()>::HOLD_BACK_MIN, 1024);
    leaves.begin(LeafKind::String, None, (), 0);
    let mut decide = |leaves: &mut LeafStream<()>, last: bool| {
        let step = leaves.decide(&mut scanner, RuleSet::builtin(), &Budget::default(), last);
        out.extend(step.findings.iter().map(|f| {
            let at = leaves.offset(f.leaf as usize);
            (at + u64::from(f.start), at + u64::from(f.end))
        }));
        leaves.forget();
    };
    for at in (0..text.len()).step_by(100) {
        leaves.push(&text[at..text.len().min(at + 100)]);
        while leaves.is_full() {
            decide(&mut leaves, false);
        }
    }
    decide(&mut leaves, true);
    out
}

#[test]
fn a_run_may_begin_anywhere_in_a_stream() {
    let words = "words of a text that say nothing at all and go on ".repeat(60);
    let mut missed = Vec::new();
    for prefix in 0..30 {
        let before = &"data:text/plain;base64,, no sign of it. "[23 - prefix.min(23)..][..prefix];
        let body = format!("{words}key {} and {words}", key());
        for run in [
            STANDARD.encode(&body),
            hex(body.as_bytes()),
            base32(body.as_bytes()),
        ] {
            let text = format!("{before} {run}");
            let outcome = scanner().scan(
                RuleSet::builtin(),
                [leaf(&text)].into_iter(),
                &Budget::default(),
            );
            let whole: Vec<_> = outcome
                .findings
                .iter()
                .map(|f| (u64::from(f.start), u64::from(f.end)))
                .collect();
            assert_eq!(whole.len(), 1);
            if streamed(&text) != whole {
                missed.push((prefix, streamed(&text), whole));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn a_short_value_of_a_list_is_found_in_its_codes() {
    for value in [
        "s3cr3tPw",
        "s3cr3tPw9",
        "s3cr3tPw9x",
        "s3cr3tPw9xy",
        "s3cr3tPw9xyz",
    ] {
        let list = ValueList {
            id: "own-value",
            title: "Value",
            category: Category::Secret,
            values: &[value],
        };
        let own = Own {
            lists: &[list],
            ..Own::default()
        };
        let rules = RuleSet::builtin().with(&own).expect("a list of one value");
        let found = |text: &str| found_by(&rules, text, "own-value").len();
        for text in [
            value.to_owned(),
            format!("{value}\n"),
            format!("={value}"),
            format!("a {value}"),
            format!("user:{value} "),
        ] {
            for code in [
                STANDARD_NO_PAD.encode(&text),
                STANDARD.encode(&text),
                hex(text.as_bytes()),
            ] {
                for text in [
                    code.clone(),
                    format!("v={code}"),
                    format!("it is {code}, ok"),
                ] {
                    assert_eq!(found(&text), 1, "{value}: {text}");
                }
            }
        }
        assert_eq!(found(&STANDARD.encode("s3cr3tQw and more")), 0);
    }
}

#[test]
fn a_number_in_groups_that_are_not_its_own_is_found() {
    for (text, rule, want) in [
        ("PESEL: 5602 2604 805", "pl-pesel", "5602 2604 805"),
        ("NIP = 5260 2502 74", "pl-nip", "5260 2502 74"),
    ] {
        assert_eq!(found_by(RuleSet::builtin(), text, rule), [want], "{text}");
    }
    // A table's rows are numbers, whatever they add up to.
    let table = "PESEL or not\n5602 2604 805\n1234 5678 901\n";
    assert!(found_by(RuleSet::builtin(), table, "pl-pesel").is_empty());
}

/// Values that stand beside each other in a list are one layer, whatever each is.
#[test]
fn lists_of_identifiers_are_not_too_deep() {
    type Value = fn(usize) -> String;
    let values: [(&str, Value); 5] = [
        ("id", |n| format!("gid://shopify/Product/{}", 7_156_328 + n)),
        ("cursor", |n| format!("cursor:v2:{}", 434_742_425 + n)),
        ("cursor", |n| format!("arrayconnection:{n}")),
        ("cursor", |n| {
            format!(
                "{{\"id\": {}, \"ts\": {}}}",
                583_572 + n,
                1_700_000_000 + 37 * n
            )
        }),
        ("id", |n| format!("04:Issue{}", 90_412 + 7 * n)),
    ];
    let shallow = Budget {
        depth_max: 5,
        ..Budget::default()
    };
    let scan = |text: &str| scanner().scan(RuleSet::builtin(), [leaf(text)].into_iter(), &shallow);
    for (name, value) in values {
        for count in [3, 4, 5, 10] {
            let each = |n| format!("{{\"{name}\": \"{}\"}}", STANDARD.encode(value(n)));
            let all: Vec<String> = (0..count).map(each).collect();
            let text = format!("{{\"nodes\": [{}]}}", all.join(", "));
            let outcome = scan(&text);
            assert_eq!(outcome.over_budget, None, "{text}");
            assert!(outcome.findings.is_empty(), "{text}");
        }
    }
    let jwt = |alg: &str, claims: &str, sum: usize| {
        let parts = [&*format!("{{\"alg\":\"{alg}\",\"typ\":\"JWT\"}}"), claims]
            .map(|part| URL_SAFE_NO_PAD.encode(part));
        let sum = URL_SAFE_NO_PAD.encode(noise(sum, 9));
        format!("{}.{}.{sum}", parts[0], parts[1])
    };
    for (alg, sum) in [("HS256", 32), ("HS512", 64), ("ES256", 64)] {
        let one = jwt(alg, r#"{"sub":"81276354","iat":1763850000}"#, sum);
        let other = jwt(
            alg,
            r#"{"sub":"81276354","name":"Mia Chen","iat":1763850000}"#,
            sum,
        );
        let text = format!("{{\"access_token\": \"{one}\", \"refresh_token\": \"{other}\"}}");
        for text in [text, format!("{one}\n{one}")] {
            let outcome = scan(&text);
            assert_eq!(outcome.over_budget, None, "{text}");
            assert!(!outcome.findings.is_empty(), "{text}");
        }
    }
}

#[test]
fn a_value_may_be_parted_by_two_signs() {
    let value = ["sk_live_", "4Xk9vQ2mZr7Lp4Ts8Wd3nB6y"].concat();
    let dashed = |text: &str| text.chars().map(String::from).collect::<Vec<_>>().join("-");
    let pieces = |text: &str, len: usize| -> String {
        let pieces = text.as_bytes().chunks(len);
        let pieces: Vec<&str> = pieces.map(|c| std::str::from_utf8(c).unwrap()).collect();
        pieces.join(" ")
    };
    for text in [pieces(&dashed(&value), 5), dashed(&pieces(&value, 4))] {
        let found = found_by(RuleSet::builtin(), &text, "stripe-secret-key");
        assert_eq!(found.len(), 1, "{text}");
    }
}
