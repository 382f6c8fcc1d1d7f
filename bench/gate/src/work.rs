//! The cases: each stage of the line on fixed messages, and the whole line.
//!
//! Every case is prepared and run a few times uncounted, so that lazily built tables and grown buffers are there, as they
//! are in a worker that has seen traffic. Then [`measured`] runs it once: callgrind counts inside that function only, and
//! writes a profile each time it is left.

use crate::inputs::{
    TOKEN, answer, call, encoded_secret, escaped, listing, personal, prose, records, stream,
};
use anyhow::{Context, bail};
use bytes::Bytes;
use dlp_policy::{Evaluators, PolicyTable, decide};
use dlp_scan::{Budget, FingerprintKey, Outcome, RuleSet, Scanner};
use domain::{Direction, Era, Policy, PolicyAction, PolicyBinding};
use gateway::pipeline::{
    self, Attribution, Decoded, Judge, Release, ToClient, ToServer, Way, Whose, leaf_input,
};
use mcp_codec::{BatchRule, Edits, Limits, Message, Payload, decode, sse};
use std::hint::black_box;
use std::io::Write;

/// The function whose inside is counted, by the name callgrind is told. Whole, because callgrind takes one pattern with
/// stars for one option only.
pub const MEASURED: &str = "weir_gate::work::measured";

/// Runs before the counted one.
const WARM_UP_RUNS: usize = 3;

/// Runs every case and names each, in order, on `out`.
pub fn run_all(out: &mut dyn Write) -> anyhow::Result<()> {
    pipeline::set_fingerprint_key([7; 32]);
    let mut case = |name: &str, work: &mut dyn FnMut()| -> anyhow::Result<()> {
        (0..WARM_UP_RUNS).for_each(|_| work());
        measured(work);
        writeln!(out, "{name}")?;
        Ok(())
    };
    decoding(&mut case)?;
    scanning(&mut case)?;
    policy(&mut case)?;
    splicing(&mut case)?;
    events(&mut case)?;
    whole_line(&mut case)
}

type Case<'a> = &'a mut dyn FnMut(&str, &mut dyn FnMut()) -> anyhow::Result<()>;

#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    work();
    // Something after the call, or it would become a jump and the function would be left before the work is done.
    black_box(());
}

fn decoding(case: Case<'_>) -> anyhow::Result<()> {
    let messages = [
        ("decode/call 300 B", call(prose(300))),
        ("decode/call 4 KiB", call(prose(4096))),
        ("decode/answer 64 KiB", answer(prose(65_536))),
        ("decode/escapes 4 KiB", escaped(4096)),
        ("decode/listing of 40 tools", listing(40)),
    ];
    for (name, bytes) in messages {
        message(bytes.clone())?;
        case(name, &mut || {
            black_box(
                decode(
                    black_box(bytes.clone()),
                    &Limits::default(),
                    BatchRule::Refused,
                )
                .is_ok(),
            );
        })?;
    }
    Ok(())
}

fn scanning(case: Case<'_>) -> anyhow::Result<()> {
    let messages = [
        ("scan/clean 300 B", call(prose(300)), 0),
        ("scan/clean 4 KiB", call(prose(4096)), 0),
        ("scan/clean 64 KiB", answer(prose(65_536)), 0),
        ("scan/records of 4 KiB", records(4096), 0),
        ("scan/listing of 40 tools", listing(40), 0),
        ("scan/5 findings in 4 KiB", answer(&personal(4096, 5)), 5),
        (
            "scan/encoded secret in 4 KiB",
            answer(&encoded_secret(4096)),
            1,
        ),
    ];
    let mut scanner = Scanner::new(FingerprintKey::new([7; 32]));
    for (name, bytes, least) in messages {
        let message = message(bytes)?;
        let found = scan(&mut scanner, &message).findings.len();
        if found < least {
            bail!("{name}: {found} findings instead of {least}: the input is not what it was");
        }
        case(name, &mut || {
            black_box(scan(&mut scanner, black_box(&message)).findings.len());
        })?;
    }
    Ok(())
}

fn policy(case: Case<'_>) -> anyhow::Result<()> {
    let mut scanner = Scanner::new(FingerprintKey::new([7; 32]));
    let found = scan(&mut scanner, &message(answer(&personal(4096, 5)))?);
    let table = table()?;
    // One decision is a few hundred instructions; a hundred of them are a figure.
    let mut decisions = |name: &str, outcome: &Outcome| {
        case(name, &mut || {
            for _ in 0..100 {
                let actions = table.for_tool(Direction::ToClient, black_box(Some("search_mail")));
                let decision = decide(
                    &outcome.findings,
                    outcome.over_budget,
                    &actions,
                    table.failure_mode(),
                    false,
                );
                black_box(decision.enforced);
            }
        })
    };
    decisions("policy/100 times nothing found", &Outcome::default())?;
    decisions("policy/100 times 5 findings", &found)
}

fn splicing(case: Case<'_>) -> anyhow::Result<()> {
    for (name, bytes, changes) in [
        ("splice/1 change in 4 KiB", 4096, 1),
        ("splice/5 changes in 4 KiB", 4096, 5),
        ("splice/100 changes in 64 KiB", 65_536, 100),
    ] {
        let message = message(answer(&personal(bytes, changes)))?;
        let leaf = message
            .doc()
            .leaves()
            .find(|leaf| leaf.text.len() > 1000)
            .context("the text is a leaf")?;
        let places: Vec<usize> = leaf
            .text
            .match_indices("219-09-")
            .map(|(at, _)| at)
            .collect();
        case(name, &mut || {
            let mut edits = Edits::new();
            for &at in &places {
                edits.replace(leaf.id, at..at + 11, "[REDACTED:us-ssn]");
            }
            black_box(message.edited(&edits).is_ok());
        })?;
    }
    Ok(())
}

fn events(case: Case<'_>) -> anyhow::Result<()> {
    let stream = stream(32 << 10);
    let read = || {
        let mut decoder = sse::Decoder::new(sse::SseLimits::for_event_bytes(4 << 20));
        let mut events = 0;
        for piece in stream.chunks(1400) {
            decoder.push(piece);
            while let Some(Ok(event)) = decoder.next() {
                black_box(&event);
                events += 1;
            }
        }
        events
    };
    if read() < 10 {
        bail!("the event stream has too few events");
    }
    case("events/32 KiB in pieces", &mut || {
        black_box(read());
    })
}

fn whole_line(case: Case<'_>) -> anyhow::Result<()> {
    line::<ToServer>(case, "line/call 300 B", call(prose(300)), End::AsItCame)?;
    line::<ToServer>(case, "line/call 4 KiB", call(prose(4096)), End::AsItCame)?;
    line::<ToClient>(case, "line/answer 300 B", answer(prose(300)), End::AsItCame)?;
    line::<ToClient>(
        case,
        "line/answer 4 KiB",
        answer(prose(4096)),
        End::AsItCame,
    )?;
    line::<ToClient>(
        case,
        "line/answer 64 KiB",
        answer(prose(65_536)),
        End::AsItCame,
    )?;
    line::<ToClient>(case, "line/listing of 40 tools", listing(40), End::AsItCame)?;
    again(case)?;
    line::<ToClient>(
        case,
        "line/redaction in 4 KiB",
        answer(&personal(4096, 5)),
        End::Changed,
    )?;
    let secret = format!("{} token {TOKEN}", prose(4096));
    line::<ToServer>(case, "line/block in 4 KiB", call(&secret), End::Blocked)
}

/// What has to become of a message, or the case counts something else than its name says.
#[derive(Debug, PartialEq, Eq)]
enum End {
    AsItCame,
    Changed,
    Blocked,
}

/// Messages that are known to be clean.
fn again(case: Case<'_>) -> anyhow::Result<()> {
    for (name, bytes) in [
        ("line/answer 300 B, seen before", answer(prose(300))),
        ("line/answer 64 KiB, seen before", answer(prose(65_536))),
        ("line/listing of 40 tools, seen before", listing(40)),
    ] {
        line_within::<ToClient>(case, name, bytes, End::AsItCame, &domain::Limits::default())?;
    }
    Ok(())
}

/// From bytes to what may leave, each time as if for the first time.
fn line<W: Way>(case: Case<'_>, name: &str, bytes: Bytes, end: End) -> anyhow::Result<()> {
    let limits = domain::Limits {
        clean_messages_max: 0,
        ..domain::Limits::default()
    };
    line_within::<W>(case, name, bytes, end, &limits)
}

fn line_within<W: Way>(
    case: Case<'_>,
    name: &str,
    bytes: Bytes,
    end: End,
    limits: &domain::Limits,
) -> anyhow::Result<()> {
    let table = table()?;
    let evaluators = Evaluators::default();
    let judge = Judge {
        rules: RuleSet::builtin(),
        tenant: "acme",
        policy: &table,
        limits,
        attribution: Attribution::Tool("echo"),
        schemas: None,
        era: Era::Handshake,
        evaluators: &evaluators,
        whose: Whose::default(),
        said: None,
    };
    let run = || -> anyhow::Result<Release<W>> {
        Ok(pipeline::run(
            Decoded::<W>::new(message(bytes.clone())?, Vec::new()),
            &judge,
        ))
    };
    let was = match run()? {
        Release::Cleared(cleared) if cleared.bytes() == &bytes => End::AsItCame,
        Release::Cleared(_) => End::Changed,
        Release::Blocked(_) => End::Blocked,
    };
    if was != end {
        bail!(
            "{name}: {was:?} instead of {end:?}: the input or the default policy is not what it was"
        );
    }
    case(name, &mut || {
        black_box(run().is_ok());
    })
}

fn message(bytes: Bytes) -> anyhow::Result<Message> {
    match decode(bytes, &Limits::default(), BatchRule::Refused)? {
        Payload::Single(message) => Ok(message),
        _ => bail!("one message was expected"),
    }
}

fn scan(scanner: &mut Scanner, message: &Message) -> Outcome {
    let leaves = message.doc().leaves().map(leaf_input);
    scanner.scan(RuleSet::builtin(), leaves, &Budget::default())
}

/// The default policy with one line for some tools, so that the lookup by tool is really taken.
fn table() -> anyhow::Result<PolicyTable> {
    let server = Policy {
        bindings: vec![PolicyBinding {
            tool: Some("search_*".to_owned()),
            direction: None,
            category: Some("injection".to_owned()),
            rule: None,
            action: PolicyAction::Warn,
            form: None,
        }],
        ..Policy::default()
    };
    Ok(PolicyTable::compile(
        &Policy::default(),
        &server,
        RuleSet::builtin(),
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_runs_and_has_its_own_name() {
        let mut out = Vec::new();
        run_all(&mut out).unwrap();
        let names: Vec<&str> = std::str::from_utf8(&out).unwrap().lines().collect();
        let different: std::collections::BTreeSet<&&str> = names.iter().collect();
        assert!(
            names.len() > 20 && different.len() == names.len(),
            "{names:?}"
        );
    }
}
