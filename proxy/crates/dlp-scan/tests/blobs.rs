//! Files as base64: whatever they are, what stands in them by chance is nothing, and what somebody wrote into them is found.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dlp_scan::{Budget, FingerprintKey, LeafInput, LeafKind, Outcome, RuleSet, Scanner};

/// As the gateway has it.
const BUDGET: Budget = Budget {
    decoded_bytes_max: 8 << 20,
    depth_max: 5,
    findings_max: 1024,
    candidates_max: 1 << 22,
};

/// Put together here so that none stands in the repository.
fn key() -> String {
    ["AKIA", "Q3EGRX7ZKTWM4LHB"].concat()
}

fn scan_within(text: &str, budget: &Budget) -> Outcome {
    let leaf = LeafInput {
        text,
        kind: LeafKind::String,
        name: None,
    };
    let mut scanner = Scanner::new(FingerprintKey::new([5; 32]));
    scanner.scan(RuleSet::builtin(), [leaf].into_iter(), budget)
}

fn scan(text: &str) -> Outcome {
    scan_within(text, &BUDGET)
}

fn finds(text: &str, rule: &str) -> bool {
    let id = |f: &dlp_scan::Finding| RuleSet::builtin().rule(f.rule).id.to_string();
    scan(text).findings.iter().any(|f| id(f) == rule)
}

struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn roll(&mut self, sides: u64) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 16) % sides).expect("small")
    }

    fn byte(&mut self) -> u8 {
        self.roll(256) as u8
    }
}

/// Bytes as pictures and what is packed have them.
fn random(len: usize, seed: u64) -> Vec<u8> {
    let mut dice = Dice::new(seed);
    std::iter::repeat_with(|| dice.byte()).take(len).collect()
}

/// Bytes as programs and fonts have them: instructions that come again, and tables of small numbers.
fn records(len: usize, seed: u64) -> Vec<u8> {
    let mut dice = Dice::new(seed);
    let common: Vec<Vec<u8>> = (0..40)
        .map(|_| (0..1 + dice.roll(7)).map(|_| dice.byte()).collect())
        .collect();
    let mut out = Vec::new();
    while out.len() < len {
        match dice.roll(4) {
            0 => (0..dice.roll(60)).for_each(|n| {
                let number = (n * (1 + dice.roll(3))) as u32;
                out.extend(number.to_be_bytes());
            }),
            1 => out.extend(std::iter::repeat_n(dice.roll(2) as u8, dice.roll(40))),
            _ => (0..dice.roll(80)).for_each(|_| {
                let piece = &common[dice.roll(40)];
                out.extend_from_slice(piece);
            }),
        }
    }
    out.truncate(len);
    out
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(bytes).expect("a vector takes all");
    out.finish().expect("a vector takes all")
}

/// An archive of one file, without a directory.
fn zip(body: &[u8]) -> Vec<u8> {
    let packed = deflate(body);
    let len = |n: usize| u32::try_from(n).expect("short").to_le_bytes();
    let mut out = b"PK\x03\x04\x14\0\0\0\x08\0\0\0\0\0\0\0\0\0".to_vec();
    out.extend(len(packed.len()));
    out.extend(len(body.len()));
    out.extend(b"\x01\0\0\0a");
    out.extend(packed);
    out
}

/// Text in which nothing is to be found, and which packs badly.
fn words(bytes: usize, seed: u64) -> String {
    let mut dice = Dice::new(seed);
    let mut text = String::new();
    while text.len() < bytes {
        let letters = 2 + dice.roll(9);
        text.extend((0..letters).map(|_| char::from(b'a' + dice.roll(26) as u8)));
        text.push(if dice.roll(12) == 0 { '\n' } else { ' ' });
    }
    text
}

#[test]
fn files_without_text_are_let_through() {
    for seed in 0..6 {
        for (what, bytes) in [
            ("random", random(925_000, seed)),
            ("records", records(400_000, seed)),
        ] {
            let text = STANDARD.encode(&bytes);
            let lines: Vec<&str> = text
                .as_bytes()
                .chunks(76)
                .map(|line| std::str::from_utf8(line).expect("digits"))
                .collect();
            for text in [&text, &lines.join("\r\n")] {
                let outcome = scan(text);
                assert_eq!(outcome.over_budget, None, "{what} {seed}");
                assert!(
                    outcome.findings.is_empty(),
                    "{what} {seed}: {:?}",
                    outcome.findings
                );
            }
        }
    }
}

#[test]
fn what_is_written_into_noise_is_found() {
    let noise = STANDARD.encode(random(30_000, 3));
    let (front, back) = noise.split_at(20_000);
    let gitlab = ["glpat-", "Xk9vQ2mZr7Lp4Ts8Wd3n"].concat();
    let text = format!("user and {} of it", key());
    let inside = [&random(9000, 4)[..], text.as_bytes(), &random(9000, 5)].concat();
    let cases = [
        (
            "a key between strokes",
            format!("{front}/{}/{back}", key()),
            "aws-access-key-id",
        ),
        (
            "a key at the front",
            format!("{}/{back}", key()),
            "aws-access-key-id",
        ),
        (
            "a key at the end",
            format!("{front}/{}", key()),
            "aws-access-key-id",
        ),
        (
            "a key beside it",
            format!("{front} {} {back}", key()),
            "aws-access-key-id",
        ),
        (
            "another alphabet",
            format!("{front}/{gitlab}/{back}"),
            "gitlab-pat",
        ),
        (
            "text among the bytes",
            STANDARD.encode(&inside),
            "aws-access-key-id",
        ),
    ];
    let missed: Vec<&str> = cases
        .iter()
        .filter(|(_, text, rule)| !finds(text, rule))
        .map(|(what, ..)| *what)
        .collect();
    assert!(missed.is_empty(), "{missed:?}");
}

/// A list of keys is no noise, however long it is and whatever stands between them.
#[test]
fn every_key_of_a_list_is_found() {
    const DIGITS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut dice = Dice::new(11);
    let mut letters = |len: usize| -> String {
        (0..len)
            .map(|_| char::from(DIGITS[dice.roll(62)]))
            .collect()
    };
    for (begin, len) in [("sk_live_", 24), ("AIza", 35), ("glpat-", 20), ("hf_", 34)] {
        let keys: Vec<String> = (0..60)
            .map(|_| format!("{begin}{}", letters(len)))
            .collect();
        for between in ["\n", "\r\n", "\n\n", "+", "/", " ", ","] {
            let text = format!("{}\n{}\n{}", letters(40), keys.join(between), letters(40));
            let found = scan(&text).findings;
            let is_found = |key: &&String| {
                let at = text.find(key.as_str()).expect("it is there");
                let holds = |f: &dlp_scan::Finding| (f.start..f.end).contains(&(at as u32));
                found.iter().any(holds)
            };
            let count = keys.iter().filter(is_found).count();
            // A few of those that are drawn look like words or lack a digit.
            assert!(count >= 55, "{begin} {between:?}: {count} of 60");
        }
    }
}

#[test]
fn a_decoy_hides_no_archive() {
    let archive = zip(format!("user and {} of it", key()).as_bytes());
    for shift in 0..3 {
        let bytes = [&random(3000 + shift, 6)[..], &archive].concat();
        for decoy in 1..5 {
            let mut digits = STANDARD.encode(&bytes);
            digits.replace_range(400 + decoy..405 + decoy, "UEsDB");
            assert!(finds(&digits, "aws-access-key-id"), "{shift} {decoy}");
        }
    }
}

#[test]
fn an_archive_is_paid_for_once() {
    let mut body = words(2_900_000, 7);
    body.push_str(&key());
    let text = STANDARD.encode(zip(body.as_bytes()));
    let outcome = scan(&text);
    assert_eq!(outcome.over_budget, None);
    assert_eq!(outcome.findings.len(), 1, "{:?}", outcome.findings);
}

#[test]
fn one_strange_letter_does_not_make_a_long_text_twice_as_long() {
    let wide: String = key()
        .chars()
        .map(|c| char::from_u32(u32::from(c) + 0xFEE0).expect("it is full width"))
        .collect();
    let text = format!("{} {wide} {}", words(300_000, 8), words(300_000, 9));
    let budget = Budget {
        decoded_bytes_max: 64 << 10,
        ..BUDGET
    };
    let outcome = scan_within(&text, &budget);
    assert_eq!(outcome.over_budget, None);
    let found: Vec<&str> = outcome
        .findings
        .iter()
        .map(|f| &text[f.start as usize..f.end as usize])
        .collect();
    assert!(found.contains(&wide.as_str()), "{found:?}");
}

#[test]
fn a_list_may_have_as_many_findings_as_lines() {
    let mut dice = Dice::new(10);
    let list: String = (0..5000)
        .map(|_| {
            let name: String = (0..6)
                .map(|_| char::from(b'a' + dice.roll(26) as u8))
                .collect();
            format!("{name}@firma-nord.de\n")
        })
        .collect();
    let outcome = scan(&list);
    assert_eq!(outcome.over_budget, None);
    assert!(outcome.findings.len() > 4900, "{}", outcome.findings.len());
}

/// A tar archive (POSIX.1, pax interchange format) of one file, as far as readers look.
fn tar(name: &str, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 512];
    out[..name.len()].copy_from_slice(name.as_bytes());
    out[124..135].copy_from_slice(format!("{:011o}", body.len()).as_bytes());
    out[257..263].copy_from_slice(b"ustar\0");
    out.extend_from_slice(body);
    out.resize(out.len().next_multiple_of(512) + 1024, 0);
    out
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(bytes).expect("a vector takes all");
    out.finish().expect("a vector takes all")
}

/// `password: Kx7mQ2vRt9 for all of them, and so on, and so on, and so on`, behind a block of other words, by Python's `lzma`.
const XZ: &str = "/Td6WFoAAATm1rRGAgAhARYAAAB0L+WjAQANbm90aGluZyB0byBzZWUAAADnNFA7vBwwfAIAIQEWAAAAdC/lo+AARAA2XQA4GErgAwnP9/Ue6hrmK5ZYNcc6kuw+xs/5Re4OzB6jxWdh72RZcdLpClESUjY8Ta76Hq0DAAAAAAAaHA4I4oSqNgAAAAA=";

#[test]
fn what_is_packed_within_what_is_packed_is_read() {
    let text = format!("user and {} of it", key());
    let (gz, archive) = (gzip(text.as_bytes()), zip(text.as_bytes()));
    let cases = [
        ("tar.gz of gz", gzip(&tar("a.gz", &gz))),
        ("tar.gz of zip", gzip(&tar("a.zip", &archive))),
        (
            "tar.gz of tar.gz",
            gzip(&tar("b.tgz", &gzip(&tar("a", text.as_bytes())))),
        ),
        ("zip of tar of gz", zip(&tar("a.gz", &gz))),
        (
            "gz of text and gz",
            gzip(&[b"some text first\n", &gz[..]].concat()),
        ),
        (
            "gz of zeros and zip",
            gzip(&[&[0; 600], &archive[..]].concat()),
        ),
    ];
    let missed: Vec<&str> = cases
        .iter()
        .filter(|(_, bytes)| !finds(&STANDARD.encode(bytes), "aws-access-key-id"))
        .map(|(what, _)| *what)
        .collect();
    assert!(missed.is_empty(), "{missed:?}");
    let xz = STANDARD.decode(XZ).expect("it is base64");
    for before in 0..3 {
        let bytes = [&random(600 + before, 12)[..], &xz].concat();
        for text in [STANDARD.encode(&bytes), STANDARD.encode(gzip(&bytes))] {
            assert!(!scan(&text).findings.is_empty(), "{before}: {text:.20}");
        }
    }
}

/// Times of a certificate stand among names, and what follows them looks like digits.
#[test]
fn the_times_of_a_certificate_are_no_cards() {
    for second in 0..60 {
        for (year, behind) in [(22, "091"), (27, "0l1"), (24, "01")] {
            let name = b"\x31\x16\x30\x14\x06\x03\x55\x04\x03\x0c\x0dnode.firma.de";
            let time = format!("\x17\x0d{year}05030425{second:02}Z{behind}");
            let der = [&name[..], time.as_bytes(), time.as_bytes(), &name[..]].concat();
            let text = STANDARD.encode(&der);
            assert!(!finds(&text, "credit-card"), "{second} {year} {behind}");
        }
    }
}

/// What a code says of a value that stands beside it is heard.
#[test]
fn a_name_in_code_tells_of_a_plain_value() {
    let value = ["Xk9vQ2mZr7", "Lp4Ts8Wd3n"].concat();
    let noise = STANDARD.encode(random(9000, 13));
    for name in [
        STANDARD.encode("the database password"),
        "%70%61%73%73%77%6f%72%64".into(),
        "p\\u0061ssword".into(),
        "&#112;assword".into(),
        "ｐａｓｓｗｏｒｄ".into(),
    ] {
        for text in [
            format!("{name}: {value}"),
            format!("{noise}\n{name}: {value}"),
            format!("{name}: {value}\n{noise}"),
        ] {
            let at = text.find(&value).expect("it is there") as u32;
            let found = scan(&text).findings;
            let holds = |f: &dlp_scan::Finding| (f.start..f.end).contains(&at);
            assert!(found.iter().any(holds), "{text:.60}: {found:?}");
        }
    }
}

/// Beginnings of streams that are none cost by their number, and are told of.
#[test]
fn a_flood_of_false_heads_is_bounded() {
    let flood: Vec<u8> = b"\x1F\x8B\x08\x08".repeat(500_000);
    let text = STANDARD.encode(gzip(&[b"\xFF", &flood[..]].concat()));
    assert!(scan(&text).over_budget.is_some());
}
