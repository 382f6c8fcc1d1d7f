//! Lines of code that are full of calls on literals: all of them are undone, wherever a secret is among them.

#[path = "common/token.rs"]
mod token;

use dlp_scan::{Budget, FingerprintKey, LeafInput, LeafKind, Outcome, RuleSet, Scanner};
use token::token;

fn scan(text: &str) -> Outcome {
    let leaf = LeafInput {
        text,
        kind: LeafKind::String,
        name: None,
    };
    let mut scanner = Scanner::new(FingerprintKey::new([5; 32]));
    scanner.scan(RuleSet::builtin(), [leaf].into_iter(), &Budget::default())
}

/// Ways to write a text as a call.
const CALLS: [fn(&str) -> String; 5] = [
    |text| {
        let (a, b) = text.split_at(text.len() / 2);
        format!("\"{a}#{b}\".replace(\"#\", \"\")")
    },
    |text| {
        let digits: String = text.bytes().map(|b| format!("{b:02x}")).collect();
        format!("bytes.fromhex(\"{digits}\")")
    },
    |text| {
        let (a, b) = text.split_at(text.len() / 2);
        format!("\"{{0}}{{1}}\".format(\"{a}\",\"{b}\")")
    },
    |text| {
        let (a, b) = text.split_at(text.len() / 2);
        format!("\"\".join([\"{a}\", \"{b}\"])")
    },
    |text| {
        let turned: String = text.chars().rev().collect();
        format!("\"{turned}\"[::-1]")
    },
];

/// So many calls, one of which gives the secret, and where that one stands.
fn line(
    call: impl Fn(usize, &str) -> String,
    (count, secret): (usize, usize),
    between: &str,
) -> (String, std::ops::Range<usize>) {
    let (mut text, mut place) = (String::from("x = ["), 0..0);
    for n in 0..count {
        let start = text.len();
        match n == secret {
            true => {
                text += &call(n, &token());
                place = start..text.len();
            }
            false => text += &call(n, &format!("abc{n}def")),
        }
        text += between;
    }
    (text + "]", place)
}

fn assert_found(text: &str, place: &std::ops::Range<usize>) {
    let outcome = scan(text);
    assert_eq!(outcome.over_budget, None, "{text:.200}");
    let rule = |f: &&dlp_scan::Finding| RuleSet::builtin().rule(f.rule).id.as_ref() == "github-pat";
    let found: Vec<_> = outcome.findings.iter().filter(rule).collect();
    let within =
        |f: &&dlp_scan::Finding| place.start <= f.start as usize && f.end as usize <= place.end;
    assert!(
        !found.is_empty() && found.iter().all(within),
        "{place:?}: {text:.200}"
    );
}

#[test]
fn a_secret_in_any_of_many_calls_is_found() {
    for call in CALLS {
        for between in [", ", "\n", " "] {
            for count in [1, 5, 50, 500] {
                for secret in [0, count / 2, count - 1] {
                    let (text, place) = line(|_, text| call(text), (count, secret), between);
                    assert_found(&text, &place);
                }
            }
        }
    }
}

#[test]
fn calls_of_all_kinds_take_turns() {
    let mixed = |n: usize, text: &str| CALLS[n % CALLS.len()](text);
    for between in [", ", "\n"] {
        for secret in 0..CALLS.len() {
            let (text, place) = line(mixed, (60, 20 + secret), between);
            assert_found(&text, &place);
        }
    }
}

#[test]
fn what_a_call_gives_is_read_on() {
    let digits: String = token().bytes().map(|b| format!("{b:02x}")).collect();
    let (a, b) = digits.split_at(31);
    let turned: String = digits.chars().rev().collect();
    for call in [
        format!("bytes.fromhex(\"{a} {b}\".replace(\" \", \"\"))"),
        format!("bytes.fromhex(\"{turned}\"[::-1])"),
        format!("bytes.fromhex(\"\".join([\"{a}\", \"{b}\"]))"),
    ] {
        for count in [1, 5, 50] {
            for secret in [0, count / 2, count - 1] {
                let nested = |n: usize, text: &str| match n == secret {
                    true => call.clone(),
                    false => CALLS[0](text),
                };
                let (text, place) = line(nested, (count, secret), ", ");
                assert_found(&text, &place);
            }
        }
    }
}

#[test]
fn ordinary_lists_of_secrets_are_scanned_to_the_end() {
    let lines = (0..400).map(|n| format!("password: X{n}k9vQ2mZr7Lp\n"));
    let text: String = lines.collect();
    let outcome = scan(&text);
    assert_eq!(outcome.over_budget, None);
    // Of what counts up a few are believed by nobody.
    assert!(outcome.findings.len() * 10 > 400 * 9);
}

/// The second may be what the name is of.
#[test]
fn a_name_is_that_of_all_that_is_put_together_behind_it() {
    for text in [
        r#"password = concat("Walrus","-77xQ")"#,
        r#"password = concat("x","y") + concat("Walrus","-77xQ")"#,
        r#"password = ["a","b"].join("") + ["Walrus","-77xQ"].join("")"#,
        r#"password = concat(concat("a","b"), concat("Walrus","-77xQ"))"#,
    ] {
        assert!(!scan(text).findings.is_empty(), "{text}");
    }
}
