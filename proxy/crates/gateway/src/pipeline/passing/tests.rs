//! A message that passes in steps becomes what it would have become whole.

use dlp_policy::{Evaluators, PolicyTable};
use dlp_scan::RuleSet;
use domain::{Era, FailureMode, Policy, PolicyAction, PolicyBinding, RedactForm};
use mcp_codec::Message;

use super::*;
use crate::pipeline::{self, Decoded, Release, ToClient, Whose};

fn binding(category: &str, action: PolicyAction, form: Option<RedactForm>) -> PolicyBinding {
    PolicyBinding {
        tool: None,
        direction: None,
        category: Some(category.into()),
        rule: None,
        action,
        form,
    }
}

fn table(form: Option<RedactForm>, dry_run: bool) -> PolicyTable {
    let policy = Policy {
        bindings: vec![
            binding("secret", PolicyAction::Redact, form),
            binding("pii", PolicyAction::Redact, form),
            binding("injection", PolicyAction::Log, None),
        ],
        dry_run,
        ..Policy::default()
    };
    PolicyTable::compile(&Policy::default(), &policy, RuleSet::builtin()).expect("it compiles")
}

fn limits() -> Limits {
    Limits {
        streamed_bytes_max: 1 << 30,
        ..Limits::default()
    }
}

fn judge<'a>(policy: &'a PolicyTable, limits: &'a Limits, none: &'a Evaluators) -> Judge<'a> {
    Judge {
        rules: RuleSet::builtin(),
        tenant: "acme",
        policy,
        limits,
        attribution: Attribution::Tool("t"),
        schemas: None,
        era: Era::Handshake,
        evaluators: none,
        whose: Whose::default(),
        said: None,
    }
}

fn whole(text: &str, judge: &Judge<'_>) -> Option<Bytes> {
    let codec = crate::codec_limits(judge.limits);
    let message = Message::decode(text.to_owned().into(), &codec).expect("a message");
    match pipeline::run(Decoded::<ToClient>::new(message, Vec::new()), judge) {
        Release::Cleared(cleared) => Some(cleared.bytes().clone()),
        Release::Blocked(_) => None,
    }
}

fn in_steps(
    text: &str,
    judge: &Judge<'_>,
    piece: usize,
) -> Result<(Vec<u8>, PassingReport), Halted> {
    let mut passing = Passing::<ToClient>::new(judge.limits, judge.policy.dry_run());
    let mut out = Vec::new();
    for piece in text.as_bytes().chunks(piece) {
        let passed = passing.push(piece, judge)?;
        out.extend_from_slice(passed.bytes());
        let whole = || serde_json::from_slice::<serde_json::Value>(&out).is_ok();
        assert!(passed.bytes().is_empty() || !whole());
    }
    out.extend_from_slice(passing.finish(judge)?.bytes());
    Ok((out, passing.report))
}

fn roll(state: &mut u64, sides: usize) -> usize {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % sides
}

/// A result with values of several kinds among others, in leaves short and long.
fn result(seed: u64) -> String {
    let mut state = seed;
    let token = ["AKIA", "Z7Q2M4N6P3R7T5V2"].concat();
    let hex: String = token.bytes().map(|b| format!("{b:02x}")).collect();
    let mut leaf = |long: usize| {
        let mut out = String::new();
        // At least half as long as it may be: a long leaf is to be longer than a window, whatever the dice say.
        for _ in 0..=long / 2 + roll(&mut state, long / 2) {
            out.push_str(match roll(&mut state, 200) {
                0 => "mail anna.lindqvist@mailbox.org ",
                1 => &token,
                2 => &hex,
                3 => " card 4539 5787 6362 1486 ",
                4 => "line\\nüber \\\"it\\\" ",
                _ => "nothing to see here, ",
            });
            out.push(' ');
        }
        out
    };
    let mut members = Vec::new();
    for n in 0..120 {
        let long = if n % 40 == 7 { 12_000 } else { 6 };
        members.push(match n % 5 {
            0 => format!(r#""k{n}":{{"db_password":"Iqvldm982*cfBKh","n":{n}}}"#),
            1 => format!(r#""k{n}":["{}", "{}",[],{{}}]"#, leaf(long), leaf(long)),
            2 => format!(r#""k{n}":"{}""#, leaf(long)),
            3 => format!(r#""k{n} {token}":null"#),
            _ => format!(r#""k{n}":4539578763621486"#),
        });
    }
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"result":{{{}}}}}"#,
        members.join(", ")
    )
}

#[test]
fn what_passes_in_steps_is_what_passes_whole() {
    let (limits, none) = (limits(), Evaluators::default());
    let forms = [
        None,
        Some(RedactForm::Hash),
        Some(RedactForm::KeepLast4),
        Some(RedactForm::FormatPreserving),
    ];
    let mut redacted = 0;
    for seed in 0..8 {
        let text = result(seed);
        assert!(text.len() > 300_000, "{}", text.len());
        for (form, dry_run) in [(forms[seed as usize % 4], false), (None, true)] {
            let policy = table(form, dry_run);
            let judge = judge(&policy, &limits, &none);
            Passing::<ToClient>::check(&judge).expect("nothing blocks");
            let whole = whole(&text, &judge).expect("it can be redacted");
            let (out, report) =
                in_steps(&text, &judge, 1 + seed as usize * 4099).expect("it passes");
            let unnumbered = |bytes: &[u8]| number_of_keys_out(&String::from_utf8_lossy(bytes));
            let (whole, out) = (unnumbered(&whole), unnumbered(&out));
            let differs = whole.bytes().zip(out.bytes()).position(|(a, b)| a != b);
            let shown = differs.map(|at| {
                let cut = |s: &str| {
                    String::from_utf8_lossy(
                        &s.as_bytes()[at.saturating_sub(90)..(at + 60).min(s.len())],
                    )
                    .into_owned()
                };
                (cut(&whole), cut(&out))
            });
            assert_eq!(shown, None, "seed {seed} {form:?}");
            assert_eq!(whole.len(), out.len());
            assert_eq!(report.dry_run, dry_run);
            assert!(report.findings.len() == FINDINGS_MAX && report.findings_dropped > 100);
            let shown = |path: &str| path.starts_with("$.result") && !path.contains("AKIA");
            assert!(report.findings.iter().all(|f| shown(&f.path)));
            redacted += usize::from(report.enforced == Action::Redact);
        }
    }
    assert_eq!(redacted, 8);
}

/// Redacted keys are numbered through the message; where others were found in it between them, the numbers differ.
fn number_of_keys_out(text: &str) -> String {
    let mut out = String::new();
    for (n, part) in text.split("[REDACTED:aws-access-key-id:").enumerate() {
        let rest = if n == 0 {
            part
        } else {
            part.trim_start_matches(|c: char| c.is_ascii_digit())
        };
        out.push_str(if n == 0 {
            ""
        } else {
            "[REDACTED:aws-access-key-id:N"
        });
        out.push_str(rest);
    }
    out
}

#[test]
fn where_something_can_block_nothing_passes() {
    let (limits, none) = (limits(), Evaluators::default());
    let builtin = PolicyTable::compile(&Policy::default(), &Policy::default(), RuleSet::builtin());
    let builtin = builtin.expect("it compiles");
    let judge = judge(&builtin, &limits, &none);
    assert_eq!(
        Passing::<ToClient>::check(&judge),
        Err(Undecidable::PolicyBlocks)
    );
}

#[test]
fn what_cannot_be_redacted_halts() {
    let (limits, none) = (limits(), Evaluators::default());
    let policy = table(None, false);
    assert_eq!(policy.failure_mode(), FailureMode::Closed);
    let judge = judge(&policy, &limits, &none);
    let token = ["AKIA", "Z7Q2M4N6P3R7T5V2"].concat();
    let long = "nothing to see here, ".repeat(20_000);
    let cases = [
        format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"a":"{long}","nextCursor":"{token}"}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":"{token}","result":{{"a":"{long}"}}}}"#),
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"result":{{"a":"{}"}}}}"#,
            "a@b.io ".repeat(40_000)
        ),
    ];
    for text in cases {
        let halted = in_steps(&text, &judge, 10_000).expect_err("it halts");
        assert!(
            matches!(halted, Halted::Stopped(_)),
            "{text:.60}: {halted:?}"
        );
    }
}

#[test]
fn punctuation_alone_is_bounded() {
    let (limits, none) = (limits(), Evaluators::default());
    let policy = table(None, false);
    let judge = judge(&policy, &limits, &none);
    for filler in ["null,", "[], ", "     ", "1,"] {
        let many = filler.repeat(400_000);
        let text = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"a":[{many}0]}}}}"#);
        let mut passing = Passing::<ToClient>::new(judge.limits, false);
        let (mut out, mut held) = (Vec::new(), 0);
        for piece in text.as_bytes().chunks(4096) {
            out.extend_from_slice(passing.push(piece, &judge).expect("it passes").bytes());
            held = held.max(passing.position() as usize - out.len());
        }
        out.extend_from_slice(passing.finish(&judge).expect("it is whole").bytes());
        assert_eq!(String::from_utf8_lossy(&out), text);
        assert!(held < 512 << 10, "{filler}: {held} bytes were held back");
    }
}
