use super::*;

const NOW: u64 = 1_800_000_000;

/// What a listing came to: what of it was approved, and what was new.
fn list(pins: &Pins, tools: &str, is_last: bool) -> (Vec<String>, Vec<(String, &'static str)>) {
    list_at(pins, tools, is_last, NOW)
}

fn list_at(
    pins: &Pins,
    tools: &str,
    is_last: bool,
    now: u64,
) -> (Vec<String>, Vec<(String, &'static str)>) {
    let doc = Document::parse(tools.to_owned().into(), &mcp_codec::Limits::default()).unwrap();
    let listed = pins.listed(&doc, doc.root(), is_last, now);
    let name = |node| doc.member(node, "name").and_then(|n| doc.str(n));
    let passes = doc
        .elements(doc.root())
        .filter(|node| !listed.unapproved.contains(node))
        .filter_map(|node| name(node).map(str::to_owned));
    let news = listed.news.iter();
    let news = news.map(|news| (news.tool.to_string(), news.change.as_str()));
    (passes.collect(), news.collect())
}

#[track_caller]
fn check(pins: &Pins, tools: &str, passes: &[&str], news: &[(&str, &str)]) {
    let (passed, told) = list(pins, tools, true);
    assert_eq!(passed, passes, "{tools}");
    let told: Vec<_> = told
        .iter()
        .map(|(tool, change)| (&**tool, *change))
        .collect();
    assert_eq!(told, news, "{tools}");
}

/// One tool, `a`, that was approved.
fn settled() -> Pins {
    let pins = Pins::default();
    check(&pins, r#"[{"name":"a","description":"one"}]"#, &["a"], &[]);
    pins
}

fn tool(pins: &Pins, name: &str) -> ToolPin {
    pins.state.read().pins.tools[name].clone()
}

#[test]
fn the_first_listing_is_approved_over_all_its_pages() {
    let pins = Pins::default();
    assert!(!pins.holds("a", NOW), "nothing is known yet");
    assert_eq!(list(&pins, "[]", true).0.len(), 0);
    assert!(
        !pins.holds("a", NOW),
        "a server without tools has none to hold"
    );
    assert_eq!(list(&pins, r#"[{"name":"a"}]"#, false).0, ["a"]);
    assert!(!pins.holds("b", NOW));
    assert_eq!(list(&pins, r#"[{"name":"b"}]"#, true).0, ["b"]);
    assert!(!pins.holds("a", NOW) && !pins.holds("b", NOW) && pins.holds("c", NOW));
    check(&pins, r#"[{"name":"c"}]"#, &[], &[("c", "added")]);
    // One that went away changes nothing.
    check(&pins, r#"[{"name":"b"}]"#, &["b"], &[]);
    assert!(!pins.holds("a", NOW));
}

#[test]
fn a_first_listing_does_not_go_on_for_ever() {
    let pins = Pins::default();
    list(&pins, r#"[{"name":"a"}]"#, false);
    let later = NOW + FIRST_LISTING_S_MAX;
    assert_eq!(
        list_at(&pins, r#"[{"name":"b"}]"#, false, later - 1).0,
        ["b"]
    );
    assert!(!pins.holds("c", later - 1) && pins.holds("c", later));
    assert_eq!(list_at(&pins, r#"[{"name":"c"}]"#, false, later).0.len(), 0);
    assert!(pins.state.read().pins.settled);
}

#[test]
fn a_changed_definition_is_told_once_and_free_again_when_it_is_changed_back() {
    let pins = settled();
    let other = r#"[{"name":"a","description":"two"}]"#;
    check(&pins, other, &[], &[("a", "changed")]);
    assert!(pins.holds("a", NOW));
    check(&pins, other, &[], &[]);
    check(&pins, r#"[{"description":"two","name":"a"}]"#, &[], &[]);
    check(&pins, r#"[{"name":"a","description":"one"}]"#, &["a"], &[]);
    assert!(!pins.holds("a", NOW));
    // Known from before.
    check(&pins, other, &[], &[]);
    assert!(pins.holds("a", NOW));
    check(
        &pins,
        r#"[{"name":"a","description":"three"}]"#,
        &[],
        &[("a", "changed")],
    );
}

#[test]
fn only_what_is_said_counts_and_not_how_it_is_written() {
    let pins = Pins::default();
    let first = r#"[{"name":"a","description":"caf\u00e9","inputSchema":{"type":"object","properties":{"x":{"a":1,"b":[true,null]}}}}]"#;
    check(&pins, first, &["a"], &[]);
    for same in [
        "[ {\"inputSchema\" : {\"properties\":{\"x\":{\"b\":[true, null],\"a\":1}},\"type\":\"object\"},\n\"description\":\"café\", \"name\":\"a\"} ]",
        r#"[{"name":"a","_meta":{"at":"noon"},"description":"caf\u00e9","inputSchema":{"type":"object","properties":{"x":{"a":1,"b":[true,null]}}}}]"#,
    ] {
        check(&pins, same, &["a"], &[]);
    }
    for other in [
        first.replace("true,null", "null,true"),
        first.replace(r#""a":1"#, r#""a":2"#),
        first.replace("x", "_meta"),
        first.replace(r#""type":"object""#, r#""type":"object","_meta":{}"#),
    ] {
        check(&pins, &other, &[], &[("a", "changed")]);
    }
}

#[test]
fn the_canonical_form_is_pinned() {
    let text = r#"{"name":"a","z":[1e3,{"b":"\u0007\/","a":-0.0}],"_meta":{"x":1},"É":false}"#;
    let doc = Document::parse(text.to_owned().into(), &mcp_codec::Limits::default()).unwrap();
    let expected = r#"{"name":"a","z":[1e3,{"a":-0.0,"b":"\u0007/"}],"É":false}"#;
    assert_eq!(canonical::text(&doc, doc.root()), expected);
    assert_eq!(
        canonical::sha256_hex(b"abc"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

#[test]
fn a_name_that_stands_twice_is_held_while_one_of_the_two_is_not_approved() {
    let (one, two) = (
        r#"{"name":"a","description":"one"}"#,
        r#"{"name":"a","description":"two"}"#,
    );
    for list in [format!("[{one},{two}]"), format!("[{two},{one}]")] {
        let pins = settled();
        for _ in 0..2 {
            let (passed, _) = super::tests::list(&pins, &list, true);
            assert_eq!(passed, ["a"], "the approved one");
            assert!(pins.holds("a", NOW), "{list}");
        }
    }
}

#[test]
fn what_has_no_name_of_a_tool_is_not_approved() {
    let pins = settled();
    for element in [
        r#"{"name":7}"#,
        r#"{"description":"x"}"#,
        "7",
        r#"{"name":"a b"}"#,
    ] {
        let doc = format!("[{element}]");
        let doc = Document::parse(doc.into(), &mcp_codec::Limits::default()).unwrap();
        let listed = pins.listed(&doc, doc.root(), true, NOW);
        assert_eq!(
            (listed.unapproved.len(), listed.news.len()),
            (1, 0),
            "{element}"
        );
    }
}

#[test]
fn a_list_of_no_known_call_teaches_nothing() {
    let left = |pins: &Pins, tools: &str| {
        let doc = Document::parse(tools.to_owned().into(), &mcp_codec::Limits::default()).unwrap();
        doc.elements(doc.root()).count() - pins.not_approved_in(&doc, doc.root(), NOW).len()
    };
    let pins = settled();
    let list =
        r#"[{"name":"a","description":"one"},{"name":"a","description":"two"},{"name":"b"},7]"#;
    assert_eq!(left(&pins, list), 1);
    assert!(!pins.holds("a", NOW));
    assert_eq!(left(&Pins::default(), r#"[{"name":"a"}]"#), 1);
}

#[test]
fn there_are_no_more_pins_and_no_more_text_than_there_may_be() {
    let pins = Pins::default();
    let names: Vec<_> = (0..=PINS_MAX)
        .map(|n| format!(r#"{{"name":"t{n}"}}"#))
        .collect();
    let doc = format!("[{}]", names.join(","));
    let doc = Document::parse(doc.into(), &mcp_codec::Limits::default()).unwrap();
    for is_over in [true, false] {
        let listed = pins.listed(&doc, doc.root(), true, NOW);
        assert_eq!((listed.unapproved.len(), listed.is_over), (1, is_over));
    }
    assert!(pins.holds(&format!("t{PINS_MAX}"), NOW) && !pins.holds("t0", NOW));
    assert_eq!(pins.state.read().pins.tools.len(), PINS_MAX);

    let pins = Pins::default();
    let long = "x".repeat(TEXT_BYTES_MAX);
    check(
        &pins,
        &format!(r#"[{{"name":"a","description":"{long}"}}]"#),
        &["a"],
        &[],
    );
    assert_eq!(tool(&pins, "a").approved.unwrap().text, None);
    check(
        &pins,
        &format!(r#"[{{"name":"a","description":"{long}y"}}]"#),
        &[],
        &[("a", "changed")],
    );

    let pins = Pins::default();
    let half = "x".repeat(TEXT_BYTES_MAX / 2);
    for round in ["a", "b"] {
        for n in 0..100 {
            list(
                &pins,
                &format!(r#"[{{"name":"t{n}","description":"{round}{half}"}}]"#),
                false,
            );
        }
    }
    let state = pins.state.read();
    let texts: usize = state.pins.tools.values().map(ToolPin::text_bytes).sum();
    assert_eq!(state.text_bytes, texts);
    assert!(
        texts <= TEXTS_BYTES_MAX && texts > TEXTS_BYTES_MAX - TEXT_BYTES_MAX,
        "{texts}"
    );
}

/// Saves, and gives what was saved.
fn save(pins: &Pins, kept: Option<&ToolPins>) -> ToolPins {
    pins.to_save(kept).expect("something to save").pins
}

#[test]
fn what_was_saved_is_saved_again_only_when_it_changes() {
    let pins = settled();
    assert!(pins.is_unsaved());
    let kept = save(&pins, None);
    assert!(!pins.is_unsaved() && pins.to_save(Some(&kept)).is_none());
    check(&pins, r#"[{"name":"a","description":"one"}]"#, &["a"], &[]);
    assert!(!pins.is_unsaved());
    check(
        &pins,
        r#"[{"name":"a","description":"two"}]"#,
        &[],
        &[("a", "changed")],
    );
    let unsaved = pins.to_save(Some(&kept)).unwrap();
    assert!(unsaved.pins.tools["a"].lists_other);
    pins.not_saved(unsaved);
    assert!(pins.is_unsaved());
    // Over a restart it stays as it was.
    let again = Pins::kept(save(&pins, Some(&kept)));
    assert!(again.holds("a", NOW) && again.holds("b", NOW));
    check(&again, r#"[{"name":"a","description":"one"}]"#, &["a"], &[]);
    // A file that is gone is written again.
    assert!(pins.to_save(None).is_some());
}

#[test]
fn an_approval_is_taken_and_what_was_listed_meanwhile_stays() {
    let pins = settled();
    check(
        &pins,
        r#"[{"name":"a","description":"two"},{"name":"b"}]"#,
        &[],
        &[("a", "changed"), ("b", "added")],
    );
    let mut kept = save(&pins, None);
    for name in ["a", "b"] {
        assert!(kept.tools.get_mut(name).unwrap().approve().is_some());
    }
    kept.decisions += 1;
    // Another definition came after what was approved was saved.
    check(
        &pins,
        r#"[{"name":"a","description":"three"},{"name":"b"}]"#,
        &[],
        &[("a", "changed")],
    );
    let kept = save(&pins, Some(&kept));
    assert!(pins.holds("a", NOW) && !pins.holds("b", NOW));
    check(
        &pins,
        r#"[{"name":"a","description":"two"},{"name":"b"}]"#,
        &["a", "b"],
        &[],
    );
    check(
        &pins,
        r#"[{"name":"a","description":"one"}]"#,
        &[],
        &[("a", "changed")],
    );
    assert!(kept.tools["a"].lists_other && !kept.tools["b"].lists_other);
}

#[test]
fn what_is_forgotten_is_at_its_first_use_again() {
    let pins = settled();
    check(&pins, r#"[{"name":"b"}]"#, &[], &[("b", "added")]);
    let mut kept = save(&pins, None);
    assert!(kept.forget("a") && !kept.forget("c"));
    kept.decisions += 1;
    pins.to_save(Some(&kept));
    assert!(!pins.holds("a", NOW) && pins.holds("b", NOW));
    check(
        &pins,
        r#"[{"name":"a","description":"nine"},{"name":"b"}]"#,
        &["a"],
        &[],
    );
    check(
        &pins,
        r#"[{"name":"a","description":"ten"}]"#,
        &[],
        &[("a", "changed")],
    );

    let mut kept = save(&pins, Some(&kept));
    kept.forget_all();
    kept.decisions += 1;
    pins.to_save(Some(&kept));
    assert!(!pins.holds("x", NOW));
    check(&pins, r#"[{"name":"x"},{"name":"a"}]"#, &["x", "a"], &[]);
}

#[test]
fn a_pin_without_anything_approved_is_held() {
    let mut kept = settled().to_save(None).unwrap().pins;
    kept.tools.get_mut("a").unwrap().approved = None;
    assert!(Pins::kept(kept).holds("a", NOW));
}

/// What a listing that went to nobody has of news.
fn stop(pins: &Pins, tools: &str) -> Vec<(String, &'static str)> {
    let doc = Document::parse(tools.to_owned().into(), &mcp_codec::Limits::default()).unwrap();
    let before = pins.state.read().pins.clone();
    let compared = pins.compare(&doc, doc.root(), true, NOW);
    assert_eq!(pins.state.read().pins, before, "to compare learns nothing");
    match compared.is_news {
        true => pins.stopped(&doc, doc.root(), NOW),
        false => Vec::new(),
    }
    .into_iter()
    .map(|news| (news.tool.into(), news.change.as_str()))
    .collect()
}

#[test]
fn a_listing_that_went_to_nobody_approves_nothing() {
    let pins = Pins::default();
    assert_eq!(stop(&pins, r#"[{"name":"a","description":"bad"}]"#), []);
    assert!(pins.state.read().pins.tools.is_empty());
    assert!(!pins.is_unsaved());
    // The first one that is shown is the one that is approved.
    check(&pins, r#"[{"name":"a","description":"good"}]"#, &["a"], &[]);
    check(
        &pins,
        r#"[{"name":"a","description":"bad"}]"#,
        &[],
        &[("a", "changed")],
    );
}

#[test]
fn a_pinned_tool_that_is_listed_otherwise_is_held_also_where_the_list_went_to_nobody() {
    let pins = settled();
    let (bad, good) = (
        r#"[{"name":"a","description":"bad"},{"name":"b"}]"#,
        r#"[{"name":"a","description":"one"}]"#,
    );
    let changed = || vec![("a".to_owned(), "changed")];
    assert_eq!(stop(&pins, bad), changed());
    assert!(pins.holds("a", NOW));
    assert!(!pins.state.read().pins.tools.contains_key("b"));
    // Said once, and not taken back by what nobody saw.
    assert_eq!(stop(&pins, bad), []);
    assert_eq!(stop(&pins, good), []);
    assert!(pins.holds("a", NOW));
    check(&pins, good, &["a"], &[]);
    assert!(!pins.holds("a", NOW));
}

#[test]
fn what_a_listing_would_come_to_is_what_it_comes_to() {
    let lists = [
        r#"[{"name":"a"},{"name":"b"}]"#,
        r#"[{"name":"a","description":"other"},{"name":"b"},{"name":"c"}]"#,
        r#"[{"name":"a"},{"name":"a","description":"x"},{"noname":1}]"#,
        r#"[{"name":"b"}]"#,
    ];
    let pins = Pins::default();
    for list in lists.iter().chain(&lists) {
        let doc = Document::parse((*list).into(), &mcp_codec::Limits::default()).unwrap();
        let compared = pins.compare(&doc, doc.root(), true, NOW);
        let listed = pins.listed(&doc, doc.root(), true, NOW);
        assert_eq!(compared.unapproved, listed.unapproved, "{list}");
        assert!(compared.is_news || listed.news.is_empty(), "{list}");
    }
}
