//! Allowlists: what a line lets pass, and what it does not.

use std::sync::Arc;

use dlp_policy::{
    Action, AllowInput, Decision, Level, LineRef, PolicyTable, decide_allowing, own_rules,
};
use dlp_scan::{Budget, Finding, FingerprintKey, LeafInput, LeafKind, Outcome, RuleSet, Scanner};
use domain::{AllowLine, Detection, Direction, FailureMode, Policy};

const MAIL: &str = "anna.lindqvist@nordwind-logistik.de";
const OTHER: &str = "bert.lindqvist@nordwind-logistik.de";

fn key() -> FingerprintKey {
    FingerprintKey::new([7; 32])
}

fn fingerprint(value: &str) -> String {
    key().fingerprint(value.as_bytes()).to_string()
}

/// `value=... rule=email tool=a* direction=to_client`
fn line(text: &str) -> AllowLine {
    let mut line = AllowLine::default();
    for word in text.split_whitespace() {
        let (name, value) = word.split_once('=').expect("name=value");
        let value = Some(value.to_owned());
        match name {
            "value" => line.value = value,
            "pattern" => line.pattern = value,
            "path" => line.path = value,
            "rule" => line.rule = value,
            "category" => line.category = value,
            "tool" => line.tool = value,
            "direction" if value.as_deref() == Some("to_server") => {
                line.direction = Some(Direction::ToServer);
            }
            "direction" => line.direction = Some(Direction::ToClient),
            other => panic!("no field {other}"),
        }
    }
    line
}

fn policy(lines: &[&str]) -> Policy {
    Policy {
        bindings: vec![domain::PolicyBinding {
            tool: None,
            direction: None,
            category: None,
            rule: None,
            action: domain::PolicyAction::Block,
            form: None,
        }],
        allow: lines.iter().map(|l| line(l)).collect(),
        ..Policy::default()
    }
}

struct Judge {
    rules: Arc<RuleSet>,
    table: PolicyTable,
}

impl Judge {
    fn new(tenant: &[&str], server: &[&str]) -> Self {
        let (tenant, server) = (policy(tenant), policy(server));
        let none = Detection::default();
        let rules = own_rules(RuleSet::builtin(), &none, &tenant.allow).expect("it is in the set");
        let rules = own_rules(&rules, &none, &server.allow).expect("it is in the set");
        let table = PolicyTable::compile(&tenant, &server, &rules).expect("it is in the set");
        Self { rules, table }
    }

    fn scan(&self, text: &str) -> Outcome {
        let leaf = LeafInput {
            text,
            kind: LeafKind::String,
            name: Some("to"),
        };
        Scanner::new(key()).scan(&self.rules, [leaf].into_iter(), &Budget::default())
    }

    fn judge(&self, text: &str, direction: Direction, tool: Option<&str>) -> Decision {
        let outcome = self.scan(text);
        assert!(!outcome.findings.is_empty(), "{text}");
        let place = |_: &Finding| "$.params.arguments.to".to_owned();
        let input = AllowInput {
            direction,
            tool,
            place: &place,
        };
        let allowed = self.table.allow().of(&outcome.findings, &input);
        let actions = self.table.for_tool(direction, tool);
        let mode = FailureMode::Closed;
        decide_allowing(&outcome.findings, None, &actions, allowed, mode, false)
    }
}

#[test]
fn a_line_lets_pass_what_it_names_and_nothing_else() {
    let value = format!("value={}", fingerprint(MAIL));
    let and = |more: &str| format!("{value} {more}");
    // line, text, does it pass (to the server, tool send)
    let cases = [
        (value.clone(), MAIL, true),
        (value.clone(), OTHER, false),
        (value.clone(), "ANNA.lindqvist@nordwind-logistik.de", false),
        (and("rule=email"), MAIL, true),
        (and("rule=em*"), MAIL, true),
        (and("rule=ipv4"), MAIL, false),
        (and("category=pii"), MAIL, true),
        (and("category=secret"), MAIL, false),
        (and("tool=send"), MAIL, true),
        (and("tool=s*"), MAIL, true),
        (and("tool=receive"), MAIL, false),
        (and("direction=to_server"), MAIL, true),
        (and("direction=to_client"), MAIL, false),
        (and("path=$.params.arguments.to"), MAIL, true),
        (and("path=$.params.arguments.cc"), MAIL, false),
        ("path=$.params.**".into(), OTHER, true),
        ("rule=email".into(), OTHER, true),
        (r"pattern=[a-z.]+@nordwind-logistik\.de".into(), OTHER, true),
        (
            r"pattern=anna\.[a-z]+@nordwind-logistik\.de".into(),
            OTHER,
            false,
        ),
        // Part of a value is not the value.
        ("pattern=lindqvist".into(), MAIL, false),
        (
            r"pattern=anna.*\.de".into(),
            "anna.lindqvist@nordwind-logistik.de.evil.org",
            false,
        ),
    ];
    for (allow, text, passes) in cases {
        let text = format!("write to {text} please");
        for (tenant, server) in [
            (vec![allow.as_str()], vec![]),
            (vec![], vec![allow.as_str()]),
        ] {
            let judge = Judge::new(&tenant, &server);
            let decision = judge.judge(&text, Direction::ToServer, Some("send"));
            let expected = if passes { Action::Log } else { Action::Block };
            assert_eq!(decision.action, expected, "{allow}: {text}");
        }
    }
}

#[test]
fn one_value_does_not_carry_another_through() {
    let allow = format!("value={}", fingerprint(MAIL));
    let judge = Judge::new(&[&allow], &[]);
    for text in [
        format!("{MAIL} {OTHER}"),
        format!("{MAIL},{OTHER}"),
        format!("{OTHER};{MAIL}"),
        format!("{MAIL} and key AKIAQ3EGRX7ZKTWM4LHB"),
    ] {
        let decision = judge.judge(&text, Direction::ToClient, None);
        assert_eq!(decision.action, Action::Block, "{text}");
        assert_eq!(
            decision
                .hits
                .iter()
                .filter(|h| **h < domain::PolicyAction::Redact)
                .count(),
            1
        );
    }
    // Encoded, it is the same value still.
    let encoded: String = MAIL.bytes().map(|b| format!("%{b:02X}")).collect();
    let decision = judge.judge(&format!("to={encoded}"), Direction::ToClient, None);
    assert_eq!(decision.action, Action::Log);
}

/// A rule that may pass somewhere does not hide another rule's finding in the same text.
#[test]
fn a_line_for_a_rule_does_not_hide_what_lies_inside() {
    let dsn = format!("https://svc:{}@db.example.net/app", "gT7kQ2vpL9xW4z");
    let rules = RuleSet::builtin();
    let judge = Judge::new(&[], &[]);
    let outer: Vec<String> = judge
        .scan(&dsn)
        .findings
        .iter()
        .map(|f| rules.rule(f.rule).id.to_string())
        .collect();
    assert_eq!(outer.len(), 1, "{outer:?}");
    let token = format!("https://svc:{}@db.example.net/app", "AKIAQ3EGRX7ZKTWM4LHB");
    let allow = format!("rule={}", outer[0]);
    let judge = Judge::new(&[&allow], &[]);
    assert_eq!(
        judge.judge(&dsn, Direction::ToServer, None).action,
        Action::Log
    );
    assert_eq!(
        judge.judge(&token, Direction::ToServer, None).action,
        Action::Block
    );
}

#[test]
fn the_line_is_named_and_patterns_keep_their_own_bits() {
    let judge = Judge::new(
        &["pattern=nobody@nowhere.org", "rule=ipv4"],
        &["pattern=bert.*", r"pattern=anna.*"],
    );
    let outcome = judge.scan(&format!("{MAIL}, {OTHER}, 81.169.145.78"));
    let place = |_: &Finding| unreachable!("no line names a path");
    let input = AllowInput {
        direction: Direction::ToServer,
        tool: None,
        place: &place,
    };
    let allowed = judge.table.allow().of(&outcome.findings, &input);
    let by: Vec<_> = (0..outcome.findings.len())
        .map(|i| allowed.by(i).map(|LineRef { level, index }| (level, index)))
        .collect();
    assert_eq!(
        by,
        [
            Some((Level::Server, 1)),
            Some((Level::Server, 0)),
            Some((Level::Tenant, 1))
        ],
        "{outcome:?}"
    );
    assert_eq!(allowed.count(), 3);
}

#[test]
fn lines_that_mean_nothing_are_refused() {
    let bad = "0123456789ABCDEF0123456789ABCDEF";
    let cases = [
        ("tool=send".to_owned(), "allow[1]", "names none of value"),
        (
            "category=pii direction=to_client".to_owned(),
            "allow[1]",
            "names none of value",
        ),
        (
            format!("value={bad}"),
            "allow[1].value",
            "32 hexadecimal digits",
        ),
        (
            "value=abc".to_owned(),
            "allow[1].value",
            "32 hexadecimal digits",
        ),
        (
            "rule=emai".to_owned(),
            "allow[1].rule",
            "did you mean \"email\"?",
        ),
        (
            "rule=email category=secret".to_owned(),
            "allow[1].category",
            "take the category out",
        ),
        (
            "path=params.to".to_owned(),
            "allow[1].path",
            "does not begin with $",
        ),
        ("rule=email tool=[".to_owned(), "allow[1].tool", "no glob"),
    ];
    for (text, field, why) in cases {
        let server = policy(&["rule=email", &text]);
        let error =
            PolicyTable::compile(&Policy::default(), &server, RuleSet::builtin()).unwrap_err();
        assert_eq!(
            (error.level, error.field.as_str()),
            (Level::Server, field),
            "{error}"
        );
        assert!(error.to_string().contains(why), "{error}");
    }
    let none = Detection::default();
    let error = own_rules(RuleSet::builtin(), &none, &[line("pattern=a*")]).unwrap_err();
    assert_eq!(error.field, "policy.allow[0].pattern");
}

/// The local part of an address is chosen by whoever writes it.
#[test]
fn a_pattern_for_one_rule_lets_no_other_rules_value_pass() {
    let key = ["AKIA", "Q3EGRX7ZKTWM4LHB"].concat();
    let text = format!("write to {key}@nordwind-logistik.de please");
    let pattern = r"pattern=[A-Za-z0-9.]+@nordwind-logistik\.de";
    for (more, passes) in [
        ("rule=email", false),
        ("category=pii", false),
        // Any rule's.
        ("", true),
    ] {
        let judge = Judge::new(&[&format!("{pattern} {more}")], &[]);
        let decision = judge.judge(&text, Direction::ToServer, None);
        assert_eq!(decision.enforced != Action::Block, passes, "{more}");
    }
    // A value that is allowed is allowed with all that is in it.
    let whole = format!(
        "value={} rule=email",
        fingerprint(&format!("{key}@nordwind-logistik.de"))
    );
    let judge = Judge::new(&[&whole], &[]);
    let decision = judge.judge(&text, Direction::ToServer, None);
    assert_ne!(decision.enforced, Action::Block);
}
