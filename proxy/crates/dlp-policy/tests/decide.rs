//! From text to decision, with the shipped rules.

use std::collections::BTreeSet;

use dlp_policy::{
    Action, AllowInput, Decision, EvalError, EvalInput, Evaluator, PolicyTable, Reason, Verdict,
    decide, decide_allowing, own_rules,
};
use dlp_scan::{
    Budget, Category, FingerprintKey, LeafInput, LeafKind, Outcome, OverBudget, RuleSet, Scanner,
    VAULT_RULE,
};
use domain::PolicyAction::{Block, Ignore, Log, Redact, Warn};
use domain::{
    AllowLine, Detection, Direction, FailureMode, Policy, PolicyAction, PolicyBinding, RedactForm,
};
use secret_prints::{PrintKey, SecretPrints};

fn scan(text: &str) -> Outcome {
    scan_by(RuleSet::builtin(), text)
}

fn scan_by(rules: &RuleSet, text: &str) -> Outcome {
    let leaf = LeafInput {
        text,
        kind: LeafKind::String,
        name: None,
    };
    let mut scanner = Scanner::new(FingerprintKey::new([7; 32]));
    scanner.scan(rules, [leaf].into_iter(), &Budget::default())
}

fn table(bindings: &[(&str, PolicyAction)]) -> PolicyTable {
    let binding = |&(rule, action): &(&str, PolicyAction)| PolicyBinding {
        tool: None,
        direction: None,
        category: None,
        rule: Some(rule.into()),
        action,
        form: None,
    };
    let server = Policy {
        bindings: bindings.iter().map(binding).collect(),
        ..Policy::default()
    };
    PolicyTable::compile(&Policy::default(), &server, RuleSet::builtin())
        .expect("the lines name shipped rules")
}

fn judge(table: &PolicyTable, direction: Direction, outcome: &Outcome, dry_run: bool) -> Decision {
    let actions = table.for_tool(direction, None);
    let (findings, over) = (&outcome.findings, outcome.over_budget);
    decide(findings, over, &actions, table.failure_mode(), dry_run)
}

/// Two findings: a mail address, then an AWS access key id.
const TEXT: &str = "ask anna.lindqvist@nordwind-logistik.de about AKIAQ3EGRX7ZKTWM4LHB please";

/// Bindings, direction, what comes of the message and of each finding, which finding was the reason.
type Case<'a> = (
    &'a [(&'a str, PolicyAction)],
    Direction,
    Action,
    [PolicyAction; 2],
    usize,
);

#[test]
fn the_strictest_finding_decides_and_each_keeps_its_own_action() {
    let outcome = scan(TEXT);
    assert_eq!(outcome.findings.len(), 2, "{outcome:?}");
    let key_rule = RuleSet::builtin().rule(outcome.findings[1].rule).id.clone();
    let cases: &[Case] = &[
        (&[], Direction::ToServer, Action::Block, [Log, Block], 1),
        (&[], Direction::ToClient, Action::Redact, [Log, Redact], 1),
        (
            &[("email", Block)],
            Direction::ToClient,
            Action::Block,
            [Block, Redact],
            0,
        ),
        (
            &[("email", Redact), (&key_rule, Redact)],
            Direction::ToServer,
            Action::Redact,
            [Redact, Redact],
            0,
        ),
        (
            &[("email", Ignore), (&key_rule, Warn)],
            Direction::ToServer,
            Action::Warn,
            [Ignore, Warn],
            1,
        ),
        (
            &[("*", Ignore)],
            Direction::ToServer,
            Action::Pass,
            [Ignore, Ignore],
            9,
        ),
    ];
    for (bindings, direction, action, hits, reason) in cases {
        let decision = judge(&table(bindings), *direction, &outcome, false);
        assert_eq!(
            (decision.action, &decision.hits[..]),
            (*action, &hits[..]),
            "{bindings:?}"
        );
        assert_eq!(decision.enforced, *action);
        let rule = outcome.findings.get(*reason).map(|f| Reason::Rule(f.rule));
        assert_eq!(
            decision.reason,
            rule.unwrap_or(Reason::Clean),
            "{bindings:?}"
        );

        let dry = judge(&table(bindings), *direction, &outcome, true);
        assert_eq!(
            (dry.action, &dry.hits, &dry.reason),
            (*action, &decision.hits, &decision.reason)
        );
        assert!(dry.enforced <= Action::Warn && dry.is_dry_run());
    }
}

#[test]
fn a_scan_cut_short_takes_the_failure_mode() {
    let table = table(&[]);
    let actions = table.for_tool(Direction::ToClient, None);
    let over = Some(OverBudget::Depth);
    let found = scan(TEXT).findings;
    let reason = Reason::OverBudget(OverBudget::Depth);
    for (findings, mode, action, reason) in [
        (&[][..], FailureMode::Closed, Action::Block, reason.clone()),
        (&[], FailureMode::Open, Action::Warn, reason.clone()),
        (&found, FailureMode::Closed, Action::Block, reason),
        (
            &found,
            FailureMode::Open,
            Action::Redact,
            Reason::Rule(found[1].rule),
        ),
    ] {
        let decision = decide(findings, over, &actions, mode, false);
        assert_eq!(
            (decision.action, decision.reason),
            (action, reason),
            "{mode:?}"
        );
    }
    assert_eq!(table.failure_mode(), FailureMode::Closed);
}

#[test]
fn ordinary_text_passes_untouched() {
    let table = table(&[]);
    for text in [
        "The weather in Berlin is 21 degrees, wind from the west.",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 bumps the parser to 2.14.0",
        "order 2024-11-05T10:15:00Z, 3 items, 129.90 EUR, id 550e8400-e29b-41d4-a716-446655440000",
        r#"{"name":"echo","description":"Echoes the text back","inputSchema":{"type":"object"}}"#,
    ] {
        for direction in [Direction::ToServer, Direction::ToClient] {
            let decision = judge(&table, direction, &scan(text), false);
            assert_eq!(decision.action, Action::Pass, "{text}");
            assert!(decision.hits.is_empty(), "{text}");
        }
    }
}

/// The everyday personal data of the built-in policy is named by globs over rule ids: this is all that
/// they name in the shipped rules. A new rule whose id fits by chance shows here.
#[test]
fn everyday_personal_data_by_name() {
    let rules = RuleSet::builtin();
    let table = table(&[]);
    for direction in [Direction::ToServer, Direction::ToClient] {
        let actions = table.for_tool(direction, None);
        let pii = rules.rules().filter(|(_, r)| r.category == Category::Pii);
        let logged: BTreeSet<&str> = pii
            .filter(|(id, _)| actions.action(*id) != Redact)
            .map(|(_, rule)| &*rule.id)
            .collect();
        let expected = [
            "email",
            "email-name",
            "email-told-in-words",
            "email-with-a-chinese-sign",
            "email-with-blanks",
            "email-written-out",
            "ipv4",
            "ipv4-with-bracketed-dots",
            "ipv6",
            "mac-address",
            "mac-address-dashed",
            "mac-address-plain",
            "ph-mobile",
            "phone-behind-its-short-label",
            "phone-behind-its-place",
            "phone-eight-digits",
            "phone-in-gecos",
            "phone-in-other-digits",
            "phone-in-signature",
            "phone-international",
            "phone-mobile-by-groups",
            "phone-mobile-by-its-form",
            "phone-national",
            "phone-of-a-caller",
            "phone-of-a-person",
            "phone-of-a-person-in-a-row",
            "phone-of-a-person-in-singapore",
            "phone-of-a-person-nanp",
            "phone-of-a-subscriber",
            "phone-over-two-lines",
            "phone-under-its-name",
            "phone-with-area-in-brackets",
            "phone-with-extension",
            "tr-mobile",
        ];
        assert_eq!(logged, BTreeSet::from(expected), "{direction}");
    }
}

/// What the built-in policy blocks on its way to the client, and what only warns.
#[test]
fn sure_injection_is_blocked_and_the_rest_warns() {
    let rules = RuleSet::builtin();
    let actions = table(&[]).for_tool(Direction::ToClient, None);
    for (id, action) in [
        ("instruction-override", Block),
        ("override-de", Block),
        ("unicode-tags", Block),
        ("variation-selectors", Block),
        ("dangerous-command", Warn),
        ("persona-switch", Warn),
    ] {
        let rule = rules.find(id).unwrap_or_else(|| panic!("no rule {id}"));
        assert_eq!(actions.action(rule), action, "{id}");
    }
}

/// A plugin that would let everything pass.
struct Loose;

impl Evaluator for Loose {
    fn name(&self) -> &str {
        "loose"
    }

    fn may_loosen(&self) -> bool {
        true
    }

    fn evaluate(&self, _: &EvalInput<'_>) -> Result<Verdict, EvalError> {
        Ok(Verdict::default())
    }
}

#[test]
fn nothing_lets_a_secret_of_the_server_pass() {
    let key = PrintKey::new([1; 32]);
    let prints = key.prints(b"AKIAQ3EGRX7ZKTWM4LHB");
    let detection = Detection {
        prints: Some(SecretPrints { key, prints }),
        ..Detection::default()
    };
    let line = |action, form| PolicyBinding {
        tool: None,
        direction: None,
        category: None,
        rule: Some("*".into()),
        action,
        form,
    };
    let by_rule = AllowLine {
        rule: Some("*".into()),
        ..AllowLine::default()
    };
    // What is written, what comes of the message, in a dry run as well.
    for (written, form, expected) in [
        (Ignore, None, Action::Block),
        (Log, None, Action::Block),
        (Warn, None, Action::Block),
        (Redact, Some(RedactForm::KeepLast4), Action::Redact),
        (Block, None, Action::Block),
    ] {
        let policy = Policy {
            dry_run: true,
            bindings: vec![line(written, form)],
            allow: vec![by_rule.clone()],
            ..Policy::default()
        };
        let rules = own_rules(RuleSet::builtin(), &detection, &policy.allow).expect("it fits");
        let table = PolicyTable::compile(&Policy::default(), &policy, &rules).expect("it fits");
        let outcome = scan_by(&rules, TEXT);
        let vault = rules.find(VAULT_RULE).expect("in the set");
        let index = outcome
            .findings
            .iter()
            .position(|f| f.rule == vault)
            .expect("found");
        for direction in [Direction::ToServer, Direction::ToClient] {
            let actions = table.for_tool(direction, None);
            assert_eq!(
                actions.form(vault),
                RedactForm::Placeholder,
                "a form could show a part"
            );
            let input = AllowInput {
                direction,
                tool: None,
                place: &|_| String::new(),
            };
            let allowed = table.allow().of(&outcome.findings, &input);
            let mut decision = decide_allowing(
                &outcome.findings,
                None,
                &actions,
                allowed,
                table.failure_mode(),
                table.dry_run(),
            );
            assert_eq!(decision.enforced, expected, "{written:?} {direction}");
            let mild = Verdict {
                findings: (0..outcome.findings.len() as u32)
                    .map(|n| (n, Ignore))
                    .collect(),
                ..Verdict::default()
            };
            decision.hear(&outcome.findings, vec![(&Loose, Ok(mild))]);
            assert_eq!(
                decision.enforced, expected,
                "{written:?} {direction}, with a plugin"
            );
            assert!(decision.hits[index] >= Redact);
        }
    }
}
