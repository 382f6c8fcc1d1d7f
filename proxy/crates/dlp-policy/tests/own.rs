//! The rule set of a server: what stands below it is shared, what it adds is its own.

use std::sync::Arc;

use dlp_policy::{base_rules, own_rules};
use dlp_scan::RuleSet;
use domain::{AllowLine, Detection, Secret, ValueList};

fn file(id: &str) -> (String, String) {
    let yaml = format!(
        "rules:\n- {{id: {id}, title: T, category: secret, keywords: [htk-], pattern: 'htk-[0-9]{{12}}'}}\n"
    );
    (format!("{id}.yml"), yaml)
}

fn vault(id: &str, category: &str) -> ValueList {
    ValueList {
        id: id.into(),
        title: "Vault".into(),
        category: category.into(),
        values: vec![Secret::new("a value of the vault")],
    }
}

#[test]
fn rules_of_ones_own_come_beside_the_built_in_ones() {
    let built_in = RuleSet::builtin();
    let base = base_rules(&[file("house-ticket")]).unwrap();
    assert_eq!(base.len(), built_in.len() + 1);
    let tenant = Detection {
        rules: vec![file("tenant-ticket")],
        values: vec![vault("tenant-vault", "pii")],
        ..Detection::default()
    };
    let tenant = own_rules(&base, &tenant, &[]).unwrap();
    let server = Detection {
        rules: vec![file("server-ticket")],
        ..Detection::default()
    };
    let server = own_rules(&tenant, &server, &[]).unwrap();
    for (set, known) in [(&base, 1), (&tenant, 3), (&server, 4)] {
        let ids = [
            "house-ticket",
            "tenant-ticket",
            "tenant-vault",
            "server-ticket",
        ];
        let found: Vec<bool> = ids.iter().map(|id| set.find(id).is_some()).collect();
        let expected: Vec<bool> = (0..ids.len()).map(|i| i < known).collect();
        assert_eq!(found, expected);
        assert!(
            built_in
                .rules()
                .all(|(id, rule)| set.find(&rule.id) == Some(id))
        );
    }
}

#[test]
fn nothing_of_ones_own_is_the_same_set() {
    let base = base_rules(&[]).unwrap();
    assert!(Arc::ptr_eq(&base, RuleSet::builtin()));
    let same = own_rules(&base, &Detection::default(), &[]).unwrap();
    assert!(Arc::ptr_eq(&base, &same));
}

#[test]
fn a_complaint_names_the_field() {
    let allow = |pattern: &str| AllowLine {
        pattern: Some(pattern.into()),
        ..AllowLine::default()
    };
    let none = Detection::default();
    let bad_file = Detection {
        rules: vec![file("good"), ("bad.yml".into(), "rules: [{id: x}]".into())],
        ..Detection::default()
    };
    let taken = Detection {
        values: vec![vault("email", "pii")],
        ..Detection::default()
    };
    let no_category = Detection {
        values: vec![vault("v", "food")],
        ..Detection::default()
    };
    for (detection, allow, field) in [
        (&bad_file, vec![], "rules[1]"),
        (&taken, vec![], "values.email"),
        (&no_category, vec![], "values.v.category"),
        (
            &none,
            vec![allow("ab"), allow("(")],
            "policy.allow[1].pattern",
        ),
    ] {
        let error = own_rules(RuleSet::builtin(), detection, &allow).unwrap_err();
        assert_eq!(error.field, field, "{error}");
    }
}
