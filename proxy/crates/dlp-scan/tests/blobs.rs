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
