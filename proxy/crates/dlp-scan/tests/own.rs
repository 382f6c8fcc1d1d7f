//! What a tenant adds to the built-in rules: what is found, what is refused, and that nobody else is judged by it.

use base64::Engine as _;
use dlp_scan::{
    AllowPattern, Budget, Category, Finding, FingerprintKey, LeafInput, LeafKind, Outcome,
    OverBudget, Own, RuleError, RuleSet, RuleSource, Scanner, VAULT_RULE, ValueList,
};
use secret_prints::{PrintKey, SecretPrints};

fn key() -> FingerprintKey {
    FingerprintKey::new([5; 32])
}

fn scan(rules: &RuleSet, leaves: &[&str]) -> Outcome {
    let inputs = leaves.iter().map(|text| LeafInput {
        text,
        kind: LeafKind::String,
        name: Some("text"),
    });
    Scanner::new(key()).scan(rules, inputs, &Budget::default())
}

fn of<'a>(rules: &RuleSet, outcome: &'a Outcome, id: &str) -> Vec<&'a Finding> {
    let id = rules.find(id).expect("the rule is in the set");
    outcome.findings.iter().filter(|f| f.rule == id).collect()
}

fn with_yaml(yaml: &str) -> Result<RuleSet, RuleError> {
    let sources = [RuleSource {
        name: "own.yml",
        yaml,
    }];
    let own = Own {
        sources: &sources,
        ..Own::default()
    };
    RuleSet::builtin().with(&own)
}

fn with_values(values: &[&str]) -> Result<RuleSet, RuleError> {
    let lists = [ValueList {
        id: "vault",
        title: "Vault",
        category: Category::Secret,
        values,
    }];
    let own = Own {
        lists: &lists,
        ..Own::default()
    };
    RuleSet::builtin().with(&own)
}

/// The same by its fingerprints only.
fn with_prints(values: &[&str]) -> RuleSet {
    let key = PrintKey::new([3; 32]);
    let prints = values
        .iter()
        .flat_map(|v| key.prints(v.as_bytes()))
        .collect();
    let secrets = SecretPrints { key, prints };
    let own = Own {
        prints: Some(&secrets),
        ..Own::default()
    };
    RuleSet::builtin().with(&own).expect("prints always fit")
}

/// A value that no built-in rule knows.
const VALUE: &str = "correct-horse-battery/staple?9";

/// The value as it may be written, and what the finding says about it.
fn written(value: &str) -> Vec<(&'static str, String)> {
    let b64 = base64::engine::general_purpose::STANDARD.encode(value);
    let each = |f: fn(u8) -> String| value.bytes().map(f).collect::<String>();
    vec![
        ("", value.to_owned()),
        ("base64", b64.clone()),
        (
            "base64>base64",
            base64::engine::general_purpose::STANDARD.encode(b64),
        ),
        ("hex", each(|b| format!("{b:02x}"))),
        ("percent", each(|b| format!("%{b:02X}"))),
        ("escapes", each(|b| format!("\\u{b:04x}"))),
        ("html", each(|b| format!("&#{b};"))),
        ("json", format!("{{\"a\":\"{value}\"}}")),
        ("reversed", value.chars().rev().collect()),
        ("fold", {
            let mut hidden = value.to_owned();
            hidden.insert(5, '\u{200b}');
            hidden
        }),
    ]
}

#[test]
fn a_listed_value_is_found_under_every_encoding_and_led_back() {
    let rules = with_values(&[VALUE]).unwrap();
    let mut fingerprint = None;
    for (layers, text) in written(VALUE) {
        let leaf = format!("before {text} after");
        let leaf = if layers == "json" { text.clone() } else { leaf };
        let outcome = scan(&rules, &[&leaf]);
        let found = of(&rules, &outcome, "vault");
        assert_eq!(found.len(), 1, "{layers}: {leaf}: {outcome:?}");
        assert_eq!(found[0].layers.to_string(), layers);
        assert_eq!(found[0].confidence, 100);
        let span = &leaf[found[0].start as usize..found[0].end as usize];
        let whole = if layers == "json" { VALUE } else { &text };
        assert!(
            span.contains(whole) || whole.contains(span),
            "{layers}: {span}"
        );
        let same = *fingerprint.get_or_insert(found[0].fingerprint);
        assert_eq!(found[0].fingerprint, same, "{layers}");
    }
    assert_eq!(fingerprint, Some(key().fingerprint(VALUE.as_bytes())));
}

#[test]
fn a_value_cut_over_two_leaves_is_found_in_both() {
    let rules = with_values(&[VALUE]).unwrap();
    for cut in 8..VALUE.len() - 4 {
        let (a, b) = VALUE.split_at(cut);
        let outcome = scan(
            &rules,
            &[&format!("it is {a}"), &format!("{b} and no more")],
        );
        let found = of(&rules, &outcome, "vault");
        let leaves: Vec<u32> = found.iter().map(|f| f.leaf).collect();
        assert_eq!(leaves, [0, 1], "{cut}: {outcome:?}");
    }
}

#[test]
fn values_are_compared_exactly() {
    let rules =
        with_values(&["pinecone", "pine-cone-forest-path", "Zoë Ångström", "0421"]).unwrap();
    let cases = [
        ("a pinecone here", 1),
        ("pinecone=pinecone", 2),
        ("Pinecone", 0),
        ("pinecones", 0), // short: must stand free
        ("xpinecone", 0),
        ("xpine-cone-forest-pathx", 1), // long: found anywhere
        ("pine-cone-forest-pat", 0),
        ("by Zoë Ångström.", 1),
        ("code 0421!", 1),
        ("code 10421", 0),
    ];
    for (text, count) in cases {
        let outcome = scan(&rules, &[text]);
        assert_eq!(of(&rules, &outcome, "vault").len(), count, "{text}");
    }
}

#[test]
fn lists_are_bounded_and_refusals_do_not_show_values() {
    let long = "x".repeat(RuleSet::VALUE_BYTES_MAX + 1);
    let many: Vec<String> = (0..=RuleSet::VALUES_MAX)
        .map(|i| format!("value-{i}"))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let cases: [(&[&str], &str); 3] = [
        (&["good-value", "abc"], "the 2. value is 3 bytes"),
        (&[&long], "is 16385 bytes"),
        (&many, "10001 values, at most 10000"),
    ];
    for (values, why) in cases {
        let error = with_values(values).unwrap_err();
        assert_eq!(
            (error.field, error.rule.as_deref()),
            ("values", Some("vault"))
        );
        assert!(error.to_string().contains(why), "{error}");
        assert!(!error.to_string().contains("good-value"));
    }
    let full = with_values(&many[1..]).unwrap();
    let outcome = scan(&full, &["this is value-7777 and value-10001"]);
    assert_eq!(of(&full, &outcome, "vault").len(), 1);
    assert!(!format!("{full:?}").contains("value-"));
}

const RULE: &str = "
rules:
- id: acme-badge
  title: Acme badge
  category: pii
  keywords: [badge]
  kind: text
  back: 8
  pattern: '\\bB-[0-9]{6}\\b'
  context: [staff]
  examples: ['our staff badge, no B-123456']
  counter_examples: ['badge B-12']
- id: acme-token
  title: Acme token
  category: secret
  keywords: ['acme_']
  pattern: 'acme_[a-z0-9]{20}'
  entropy: 3
  examples: [[acme_, q7rk2zpx9vlm4tswq8bn]]
  counter_examples: [acme_aaaaaaaaaaaaaaaaaaaa]
";

#[test]
fn own_rules_are_found_by_their_set_and_by_no_other() {
    let rules = with_yaml(RULE).unwrap();
    let source = [RuleSource {
        name: "own.yml",
        yaml: RULE,
    }];
    assert_eq!(rules.failed_examples(&source).unwrap(), []);
    let text = format!(
        "ask the staff badge B-123456, then {}{}",
        "acme_", "q7rk2zpx9vlm4tswq8bn"
    );
    let found = scan(&rules, &[&text]);
    assert_eq!(of(&rules, &found, "acme-badge").len(), 1);
    assert_eq!(of(&rules, &found, "acme-token").len(), 1);
    let others = scan(RuleSet::builtin(), &[&text]);
    assert!(
        others
            .findings
            .iter()
            .all(|f| f.rule.index() < RuleSet::builtin().len()),
        "{others:?}"
    );
    // What the built-in rules find stays the same.
    let mail = "write to ana@mailbox.org";
    assert_eq!(
        scan(&rules, &[mail]).findings,
        scan(RuleSet::builtin(), &[mail]).findings
    );
}

#[test]
fn an_own_rule_speaks_beside_a_built_in_one_for_the_same_place() {
    let yaml = "rules: [{id: own-mail, title: t, category: pii, keywords: ['@mailbox'], kind: text, back: 64,
        pattern: '[a-z]+@mailbox.org'}]";
    let rules = with_yaml(yaml).unwrap();
    let outcome = scan(&rules, &["write to ana@mailbox.org"]);
    assert_eq!(of(&rules, &outcome, "own-mail").len(), 1);
    assert_eq!(of(&rules, &outcome, "email").len(), 1);
}

#[test]
fn a_bad_file_is_refused_with_line_and_field() {
    let rule = |more: &str| {
        format!("rules:\n- id: own-a\n  title: t\n  category: secret\n  keywords: [own_]\n{more}")
    };
    let cases = [
        (rule("  pattern: 'own_('\n"), "pattern", 6, "unclosed group"),
        (
            rule("  pattern: '(own_)\\1'\n"),
            "pattern",
            6,
            "back-references are not supported",
        ),
        (
            rule("  pattern: 'own_(?=x)'\n"),
            "pattern",
            6,
            "look-around",
        ),
        (
            rule("  pattern: 'own_(?:[a-z]{100}){100}'\n"),
            "pattern",
            6,
            "too costly",
        ),
        (
            rule("  pattern: 'own_(?:.{0,50}x){40}'\n"),
            "pattern",
            6,
            "too costly",
        ),
        (
            rule("  pattern: 'own_[a-z]{200}'\n  ahead: 999999\n"),
            "ahead",
            7,
            "at most 4096",
        ),
        (rule("  pattern: '(?:own_)?'\n"), "pattern", 6, "empty"),
        (
            rule("  pattern: own_x\n  checks: [luhn, lun]\n"),
            "checks",
            7,
            "lun",
        ),
        (
            rule("  pattern: own_x\n  kind: detector\n  detector: email\n"),
            "kind",
            7,
            "built-in",
        ),
        (
            rule("  pattern: own_x\n  confidence: 101\n"),
            "confidence",
            7,
            "0 to 100",
        ),
        (
            rule("  pattern: own_x\n  colour: red\n"),
            "file",
            7,
            "colour",
        ),
        (
            rule("  pattern: own_x\n").replace("own-a", "email"),
            "id",
            2,
            "taken",
        ),
        (
            rule("  pattern: own_x\n").replace("[own_]", "[ab]"),
            "keywords",
            5,
            "3 to 64",
        ),
        (
            rule(&format!("  pattern: 'own_{}'\n", "x".repeat(3000))),
            "pattern",
            6,
            "at most 2048",
        ),
    ];
    for (yaml, field, line, why) in cases {
        let error = with_yaml(&yaml).unwrap_err();
        assert_eq!((error.field, error.line), (field, line), "{error}");
        assert!(error.to_string().contains(why), "{error}");
        assert!(error.to_string().starts_with("own.yml:"), "{error}");
    }
}

#[test]
fn the_number_of_own_rules_and_their_size_are_bounded() {
    let many = |count: usize, pattern: &str| {
        let rules = (0..count).map(|i| {
            format!("- {{id: own-{i}, title: t, category: pii, keywords: [own{i}x], pattern: 'own{i}x{pattern}'}}\n")
        });
        with_yaml(&format!("rules:\n{}", rules.collect::<String>()))
    };
    let error = many(RuleSet::OWN_RULES_MAX + 1, "[0-9]").unwrap_err();
    assert!(error.to_string().contains("at most 500 rules"), "{error}");
    assert_eq!(error.line, RuleSet::OWN_RULES_MAX + 2);
    let error = many(400, "[a-z]{300}").unwrap_err();
    assert!(
        error.to_string().contains("all patterns together"),
        "{error}"
    );
    assert!(many(RuleSet::OWN_RULES_MAX, "[0-9]").is_ok());
}

/// The worst that the bounds admit, against text made for it: the scan ends by its budget, and soon.
#[test]
fn the_costliest_rule_runs_into_its_budget() {
    let yaml = "rules: [{id: own-slow, title: t, category: pii, keywords: [aaa], before: any,
        pattern: 'aaa(?:.{0,20}b){12}'}]";
    let rules = with_yaml(yaml).unwrap();
    let text = "a".repeat(4 << 20);
    let outcome = scan(&rules, &[&text]);
    assert_eq!(outcome.over_budget, Some(dlp_scan::OverBudget::Candidates));
}

#[test]
fn patterns_of_an_allowlist_mark_whole_values_only() {
    let patterns = [
        AllowPattern {
            name: "allow[0]",
            pattern: "[a-z]+@mailbox.org",
        },
        AllowPattern {
            name: "allow[1]",
            pattern: "ana|mailbox",
        },
    ];
    let own = Own {
        allow_patterns: &patterns,
        ..Own::default()
    };
    let rules = RuleSet::builtin().with(&own).unwrap();
    for (text, marks) in [
        ("write to ana@mailbox.org", 1),
        ("write to ana@mailbox.org.evil.com", 0),
        ("write to Ana@mailbox.org", 0),
        ("x%61na%40mailbox.org", 1), // the decoded value counts
    ] {
        let outcome = scan(&rules, &[text]);
        let found = of(&rules, &outcome, "email");
        assert!(
            found.iter().any(|f| f.marks == marks) && found.iter().all(|f| f.marks <= marks),
            "{text}: {outcome:?}"
        );
    }
    for bad in ["", "a*", "(", "(?:a{100}){100}", "a)|(?:b"] {
        let patterns = [AllowPattern {
            name: "allow[0]",
            pattern: bad,
        }];
        let own = Own {
            allow_patterns: &patterns,
            ..Own::default()
        };
        let error = RuleSet::builtin().with(&own).unwrap_err();
        assert_eq!(error.file, "allow[0]", "{bad}");
    }
}

/// A number inside a longer value of the same category: covered unless somebody asks.
#[test]
fn covered_findings_are_kept_on_request() {
    let kept = RuleSet::builtin().with(&Own {
        keep_covered: true,
        ..Own::default()
    });
    let token = ["AKIA", "Z7Q2M4N6P3R7T5V2"].concat();
    let text = format!("https://svc:{token}@db.example.net/app");
    let (more, less) = (
        scan(&kept.unwrap(), &[&text]).findings.len(),
        scan(RuleSet::builtin(), &[&text]).findings.len(),
    );
    assert_eq!((more > less, less), (true, 1), "{more} {less}");
}

#[test]
fn a_secret_is_found_by_its_fingerprints_under_every_encoding() {
    let rules = with_prints(&[VALUE, "another-of-them-7"]);
    for (layers, text) in written(VALUE) {
        let leaf = match layers {
            "json" => text.clone(),
            _ => format!("before {text} after"),
        };
        let outcome = scan(&rules, &[&leaf]);
        let found = of(&rules, &outcome, VAULT_RULE);
        assert_eq!(found.len(), 1, "{layers}: {leaf}: {outcome:?}");
        // Read backwards it is another print of the value, not a layer.
        let expected = if layers == "reversed" { "" } else { layers };
        assert_eq!(found[0].layers.to_string(), expected);
        let span = &leaf[found[0].start as usize..found[0].end as usize];
        let whole = if layers == "json" { VALUE } else { &text };
        assert!(
            span.contains(whole) || whole.contains(span),
            "{layers}: {span}"
        );
    }
    for other in [
        "before correct-horse-battery/staple?8 after",
        "correct-horse",
        "",
    ] {
        assert!(
            of(&rules, &scan(&rules, &[other]), VAULT_RULE).is_empty(),
            "{other}"
        );
    }
    assert!(
        RuleSet::builtin().find(VAULT_RULE).is_none(),
        "other sets know nothing of it"
    );
}

#[test]
fn a_secret_is_found_over_parts_and_in_keys() {
    let rules = with_prints(&[VALUE]);
    for cut in 2..VALUE.len() - 2 {
        let (a, b) = VALUE.split_at(cut);
        let outcome = scan(&rules, &[&format!("it is {a}"), &format!("{b} ok")]);
        assert_eq!(of(&rules, &outcome, VAULT_RULE).len(), 2, "cut at {cut}");
    }
    let key = LeafInput {
        text: VALUE,
        kind: LeafKind::Key,
        name: None,
    };
    let outcome = Scanner::new(self::key()).scan(&rules, [key].into_iter(), &Budget::default());
    assert_eq!(of(&rules, &outcome, VAULT_RULE).len(), 1);
}

#[test]
fn secrets_stay_beside_rules_of_ones_own_and_their_rule_is_nobody_elses() {
    let lists = [ValueList {
        id: "list",
        title: "List",
        category: Category::Pii,
        values: &["somebody else"],
    }];
    let rules = with_prints(&[VALUE]);
    let own = Own {
        lists: &lists,
        ..Own::default()
    };
    let rules = rules.with(&own).expect("it fits");
    let text = format!("{VALUE} somebody else");
    let outcome = scan(&rules, &[&text]);
    assert_eq!(of(&rules, &outcome, VAULT_RULE).len(), 1);
    assert_eq!(of(&rules, &outcome, "list").len(), 1);
    let taken = format!(
        "rules: [{{id: {VAULT_RULE}, title: T, category: pii, keywords: [acme-], pattern: 'acme-[0-9]{{6}}'}}]"
    );
    let error = with_yaml(&taken).expect_err("it is reserved");
    assert!(error.problem.contains("is kept for"), "{error}");
}

#[test]
fn looking_for_secrets_is_bounded_like_all_else() {
    // The beginning of a long secret, over and over: each is a candidate, and none of them is the secret.
    let long: String = (0..4096u32)
        .map(|n| char::from(b'!' + (n * n % 89) as u8))
        .collect();
    let rules = with_prints(&[&long]);
    let text = long[..64].repeat(128);
    let leaf = LeafInput {
        text: &text,
        kind: LeafKind::String,
        name: None,
    };
    let budget = Budget {
        candidates_max: 63 * 65,
        ..Budget::default()
    };
    let outcome = Scanner::new(key()).scan(&rules, [leaf].into_iter(), &budget);
    assert_eq!(outcome.over_budget, Some(OverBudget::Candidates));
    let outcome = scan(&rules, &[&long]);
    assert_eq!(of(&rules, &outcome, VAULT_RULE).len(), 1);
}
