//! Plugins that do what they should.

use domain::{Grant, Isolation, PluginBinding, PolicyAction};

use crate::guest::{Guest, ask, bind, call, load};

#[test]
fn a_verdict_comes_back_as_it_was_said() {
    // block, with a reason, and one mark on the argument.
    let guest = Guest {
        more: "(data (i32.const 3000) \"no such word\") (data (i32.const 3100) \"word\")
               (data (i32.const 1024) \"\\01\\04\\00\\00\") ".into(),
        evaluate: "(i32.store (i32.const 1028) (i32.const 3000)) (i32.store (i32.const 1032) (i32.const 12))
            (i32.store (i32.const 1036) (i32.const 2048)) (i32.store (i32.const 1040) (i32.const 1))
            (i32.store (i32.const 2048) (i32.const 1)) (i32.store (i32.const 2052) (i32.const 2))
            (i32.store (i32.const 2056) (i32.const 6)) (i32.store (i32.const 2060) (i32.const 3100))
            (i32.store (i32.const 2064) (i32.const 4)) (i32.store (i32.const 2068) (i32.const 3))
            (i32.const 1024)".into(),
        ..Guest::default()
    };
    let bound = bind(
        &load(&guest).unwrap(),
        &PluginBinding::new("guard"),
        "tenant",
    )
    .unwrap();
    let verdict = ask(&bound, &call("tenant", "a word")).unwrap();
    assert_eq!(verdict.action, Some(PolicyAction::Block));
    assert_eq!(verdict.reason.as_deref(), Some("no such word"));
    let mark = &verdict.marks[0];
    assert_eq!(
        (mark.leaf, mark.start, mark.end, &*mark.label),
        (1, 2, 6, "word")
    );
    assert_eq!(mark.action, PolicyAction::Redact);
}

#[test]
fn a_reason_that_quotes_a_secret_is_kept_back() {
    // Its check digits fit. In two parts, so that no scanner stumbles over it here.
    let key = concat!("ghp_Q7dR2mXk9LwZtV4c", "NpB1sYhE6uJgA34eUZEa");
    let guest = Guest {
        more: format!(
            "(data (i32.const 3000) \"{key}\") (data (i32.const 1024) \"\\01\\04\\00\\00\")"
        ),
        evaluate: format!(
            "(i32.store (i32.const 1028) (i32.const 3000)) (i32.store (i32.const 1032) (i32.const {})) (i32.const 1024)",
            key.len()
        ),
        ..Guest::default()
    };
    let bound = bind(
        &load(&guest).unwrap(),
        &PluginBinding::new("leaky"),
        "tenant",
    )
    .unwrap();
    let verdict = ask(&bound, &call("tenant", key)).unwrap();
    assert_eq!(verdict.action, Some(PolicyAction::Block));
    assert!(!verdict.reason.unwrap().contains(key));
}

/// Marks the argument's first byte and calls it so.
fn labels(label: &str) -> Guest {
    Guest {
        more: format!("(data (i32.const 3100) \"{label}\")"),
        evaluate: format!(
            "(i32.store (i32.const 1036) (i32.const 2048)) (i32.store (i32.const 1040) (i32.const 1))
            (i32.store (i32.const 2048) (i32.const 1)) (i32.store (i32.const 2052) (i32.const 0))
            (i32.store (i32.const 2056) (i32.const 1)) (i32.store (i32.const 2060) (i32.const 3100))
            (i32.store (i32.const 2064) (i32.const {})) (i32.store (i32.const 2068) (i32.const 1))
            (i32.const 1024)",
            label.len()
        ),
        ..Guest::default()
    }
}

#[test]
fn a_label_that_quotes_the_message_is_kept_back() {
    let key = concat!("ghp_Q7dR2mXk9LwZtV4c", "NpB1sYhE6uJgA34eUZEa");
    let mut binding = PluginBinding::new("leaky");
    let check = |label: &str, text: &str, expected: &str| {
        let bound = bind(&load(&labels(label)).unwrap(), &binding, "tenant").unwrap();
        let verdict = ask(&bound, &call("tenant", text)).unwrap();
        assert_eq!(&*verdict.marks[0].label, expected, "{label} over {text:?}");
    };
    check(
        "hunter2-and-more",
        "the word is hunter2-and-more",
        "kept-back",
    );
    check(key, "nothing of it", "kept-back");
    check(
        "other-server",
        "the word is hunter2-and-more",
        "other-server",
    );
    // Words that short are in texts by chance.
    check("order", "an order", "order");
    // What the binding says is not the message's, though the message may say it too.
    binding.config = serde_json::from_str(r#"{"label": "nightfall"}"#).unwrap();
    let bound = bind(&load(&labels("nightfall")).unwrap(), &binding, "tenant").unwrap();
    let verdict = ask(&bound, &call("tenant", "about nightfall")).unwrap();
    assert_eq!(&*verdict.marks[0].label, "nightfall");
}

/// Blocks what holds a `true`, which is no leaf.
#[test]
fn what_is_no_leaf_is_given_to_who_asks_for_it() {
    let guest = Guest {
        imports: "(import \"weir:policy/host@0.1.0\" \"words\" (func $words (param i32)))".into(),
        more: "(data (i32.const 1024) \"\\01\\04\\00\\00\")".into(),
        // The text ends in the last word; `e` stands at its end for true and false alone.
        evaluate: "(call $words (i32.const 2048))
            (if (result i32) (i32.load (i32.const 2060)) (then
              (if (result i32) (i32.eq (i32.const 0x65757274) (i32.load (i32.sub (i32.add (i32.load (i32.const 2048)) (i32.load (i32.const 2052))) (i32.const 4))))
                (then (i32.const 1024)) (else (i32.const 0))))
              (else (i32.const 0)))".into(),
        ..Guest::default()
    };
    let binding = PluginBinding {
        isolation: Isolation::Tenant,
        ..PluginBinding::new("words")
    };
    let bound = bind(&load(&guest).unwrap(), &binding, "tenant").unwrap();
    let said = |words: &[&str]| {
        let mut view = call("tenant", "x");
        for word in words {
            view.word("$.params.arguments.a", word);
        }
        ask(&bound, &view).unwrap().action
    };
    assert_eq!(said(&["false", "true"]), Some(PolicyAction::Block));
    assert_eq!(said(&[]), None, "nothing is left of the message before");
    assert_eq!(said(&["true", "null"]), None);
}

/// Blocks from its second message on: what is left of the first is what isolation is about.
fn counter() -> Guest {
    Guest {
        more: "(global $seen (mut i32) (i32.const 0)) (data (i32.const 1024) \"\\01\\04\\00\\00\")"
            .into(),
        evaluate: "(if (result i32) (global.get $seen) (then (i32.const 1024))
            (else (global.set $seen (i32.const 1)) (i32.const 0)))"
            .into(),
        ..Guest::default()
    }
}

#[test]
fn only_an_instance_per_tenant_remembers() {
    let plugin = load(&counter()).unwrap();
    let view = call("tenant", "x");
    for (isolation, second) in [
        (Isolation::Message, None),
        (Isolation::Tenant, Some(PolicyAction::Block)),
    ] {
        let binding = PluginBinding {
            isolation,
            ..PluginBinding::new("counter")
        };
        let bound = bind(&plugin, &binding, "tenant").unwrap();
        assert_eq!(ask(&bound, &view).unwrap().action, None);
        assert_eq!(ask(&bound, &view).unwrap().action, second, "{isolation:?}");
        // Another binding of the same plugin, of the same or another tenant, begins anew.
        let other = bind(&plugin, &binding, "other").unwrap();
        assert_eq!(ask(&other, &view).unwrap().action, None);
    }
}

/// Asks for something and blocks if it got `ok`.
fn asks(import: &str, call: &str) -> Guest {
    Guest {
        imports: format!("(import \"weir:policy/host@0.1.0\" {import})"),
        more: "(data (i32.const 1024) \"\\01\\04\\00\\00\") (data (i32.const 3000) \"k\")".into(),
        evaluate: format!(
            "{call} (if (result i32) (i32.load8_u (i32.const 2048)) (then (i32.const 0)) (else (i32.const 1024)))"
        ),
        ..Guest::default()
    }
}

#[test]
fn what_is_not_granted_is_denied() {
    let get = "\"state-get\" (func $f (param i32 i32 i32 i32))";
    let cases = [
        (
            asks(
                "\"now\" (func $f (param i32))",
                "(call $f (i32.const 2048))",
            ),
            Grant::Clock,
        ),
        (
            asks(
                get,
                "(call $f (i32.const 0) (i32.const 3000) (i32.const 1) (i32.const 2048))",
            ),
            Grant::SessionState,
        ),
        (
            asks(
                get,
                "(call $f (i32.const 1) (i32.const 3000) (i32.const 1) (i32.const 2048))",
            ),
            Grant::TenantState,
        ),
        (
            asks(
                "\"scan\" (func $f (param i32 i32 i32 i32 i32))",
                "(call $f (i32.const 3000) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 2048))",
            ),
            Grant::Scan,
        ),
    ];
    let view = call("tenant", "x");
    for (guest, grant) in cases {
        let plugin = load(&guest).unwrap();
        let mut binding = PluginBinding::new("asks");
        let bound = bind(&plugin, &binding, "tenant").unwrap();
        assert_eq!(
            ask(&bound, &view).unwrap().action,
            None,
            "{grant:?} was not granted"
        );
        binding.grants.push(grant);
        let bound = bind(&plugin, &binding, "tenant").unwrap();
        assert_eq!(
            ask(&bound, &view).unwrap().action,
            Some(PolicyAction::Block),
            "{grant:?}"
        );
    }
}

/// Blocks what says `nightfall` anywhere: the plugin of the end-to-end tests, in two versions.
fn word_guard(version: u8) -> Guest {
    Guest {
        imports: "(import \"weir:policy/host@0.1.0\" \"find\" (func $find (param i32 i32 i32 i32 i32 i32)))".into(),
        memory: "(memory (export \"memory\") 32)".into(),
        more: format!("(data (i32.const 3000) \"(?i)nightfall\") (data (i32.const 3100) \"a word of list {version}\")
               (data (i32.const 3200) \"word-guard\") (data (i32.const 3300) \"{version}.0.0\") (data (i32.const 3400) \"{{}}\")
               (data (i32.const 1024) \"\\01\\04\\00\\00\\1c\\0c\\00\\00\\10\\00\\00\\00\")
               (data (i32.const 512) \"\\80\\0c\\00\\00\\0a\\00\\00\\00\\e4\\0c\\00\\00\\05\\00\\00\\00\\80\\0c\\00\\00\\0a\\00\\00\\00\\48\\0d\\00\\00\\02\\00\\00\\00\")"),
        describe: "(i32.const 512)".into(),
        evaluate: "(call $find (i32.const 3000) (i32.const 13) (i32.load (local.get 0)) (i32.load offset=4 (local.get 0)) (i32.const 1) (i32.const 2048))
            (if (result i32) (i32.and (i32.eqz (i32.load8_u (i32.const 2048))) (i32.gt_u (i32.load (i32.const 2056)) (i32.const 0)))
              (then (i32.const 1024)) (else (i32.const 0)))".into(),
        ..Guest::default()
    }
}

/// Never comes to an end.
fn endless() -> Guest {
    Guest {
        evaluate: "(loop $l (br $l)) (i32.const 0)".into(),
        ..Guest::default()
    }
}

#[test]
fn the_plugins_of_the_end_to_end_tests_are_made_of_this() {
    let made = [
        ("word-guard.wasm", word_guard(1)),
        ("word-guard-2.wasm", word_guard(2)),
        ("endless.wasm", endless()),
    ];
    for (name, guest) in made {
        let component = guest.component().unwrap();
        let path = format!(
            "{}/../../../tests/fixtures/plugins/{name}",
            env!("CARGO_MANIFEST_DIR")
        );
        if std::env::var_os("WRITE_FIXTURES").is_some() {
            std::fs::write(&path, &component).unwrap();
        }
        assert!(
            std::fs::read(&path).is_ok_and(|bytes| bytes == component),
            "{name}: run this test with WRITE_FIXTURES=1"
        );
    }
    let plugin = load(&word_guard(1)).unwrap();
    let said = plugin.description();
    assert_eq!((&*said.name, &*said.version), ("word-guard", "1.0.0"));
    let bound = bind(&plugin, &PluginBinding::new("word-guard"), "tenant").unwrap();
    let blocked = ask(&bound, &call("tenant", "about Nightfall")).unwrap();
    assert_eq!(blocked.action, Some(PolicyAction::Block));
    assert_eq!(blocked.reason.as_deref(), Some("a word of list 1"));
    let passed = ask(&bound, &call("tenant", "about noon")).unwrap();
    assert_eq!(passed.action, None);
}

#[test]
fn before_the_first_message_nothing_is_granted() {
    // `configure` asks for tenant state and says yes only if it got some.
    let guest = Guest {
        imports: "(import \"weir:policy/host@0.1.0\" \"state-set\" (func $set (param i32 i32 i32 i32 i32 i32 i32)))".into(),
        configure: "(call $set (i32.const 1) (i32.const 3000) (i32.const 1) (i32.const 3000) (i32.const 1) (i32.const 0) (i32.const 2048))
            (i32.store8 (i32.const 2560) (i32.eqz (i32.load8_u (i32.const 2048)))) (i32.const 2560)".into(),
        ..Guest::default()
    };
    let mut binding = PluginBinding::new("eager");
    binding.grants.push(Grant::TenantState);
    bind(&load(&guest).unwrap(), &binding, "tenant").expect("it was denied");
}
