//! Plugins that mean harm. Each is refused with words, or ends in its fail mode; each time a decent
//! plugin of another tenant judges on, and no sooner than it always did.

use std::time::{Duration, Instant};

use dlp_policy::EvalError;
use domain::PluginBinding;

use crate::guest::{Guest, WIT, ask, bind, call, component, host, load};

/// Code that runs wherever it is put.
const HARM: &[(&str, &str)] = &[
    ("an endless loop", "(loop $l (br $l))"),
    (
        "a loop that counts",
        "(local $n i64) (loop $l (local.set $n (i64.add (local.get $n) (i64.const 1))) (br $l))",
    ),
    ("a nested loop", "(loop $a (loop $b (br $b)) (br $a))"),
    ("unreachable", "(unreachable)"),
    (
        "a division by zero",
        "(drop (i32.div_u (i32.const 1) (i32.const 0)))",
    ),
    (
        "an overflow of a division",
        "(drop (i32.div_s (i32.const -2147483648) (i32.const -1)))",
    ),
    (
        "a number that is no integer",
        "(drop (i32.trunc_f32_u (f32.const nan)))",
    ),
    ("a read beyond memory", "(drop (i32.load (i32.const -4)))"),
    (
        "a write beyond memory",
        "(i64.store (i32.const 0x7ffffff8) (i64.const 1))",
    ),
    (
        "a fill beyond memory",
        "(memory.fill (i32.const 0) (i32.const 1) (i32.const -1))",
    ),
    (
        "a copy beyond memory",
        "(memory.copy (i32.const 0) (i32.const 0) (i32.const -1))",
    ),
    ("calls without end", "(call $deep (i32.const 0))"),
    (
        "growth until it is refused, then a trap",
        "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) (unreachable)",
    ),
    (
        "growth in a loop without end",
        "(loop $l (drop (memory.grow (i32.const 1))) (br $l))",
    ),
    (
        "a wrong element of a table",
        "(call_indirect (i32.const 9))",
    ),
    (
        "an empty element of a table",
        "(call_indirect (i32.const 0))",
    ),
    (
        "a table grown until refused, then a trap",
        "(loop $l (br_if $l (i32.ne (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1)))) (unreachable)",
    ),
    (
        "a table filled for ever",
        "(loop $l (table.fill $t (i32.const 0) (ref.null func) (i32.const 4)) (br $l))",
    ),
    (
        "much memory written for ever",
        "(drop (memory.grow (i32.const 200))) (loop $l (memory.fill (i32.const 65536) (i32.const 255) (i32.const 13000000)) (br $l))",
    ),
];

const BESIDE: &str = "(table $t 4 funcref) (func $deep (param i32) (call $deep (i32.add (local.get 0) (i32.const 1))) (call $deep (local.get 0)))";

/// Where code can stand.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Start,
    Describe,
    Configure,
    Realloc,
    Evaluate,
    /// Every second message only: kept instances, too, are thrown away.
    SecondMessage,
}

const PLACES: [Place; 6] = [
    Place::Start,
    Place::Describe,
    Place::Configure,
    Place::Realloc,
    Place::Evaluate,
    Place::SecondMessage,
];

fn with(harm: &str, place: Place) -> Guest {
    let harmful = |rest: &str| {
        // Locals come first in a body.
        let (locals, code) = match harm.strip_prefix("(local $n i64)") {
            Some(code) => ("(local $n i64)", code),
            None => ("", harm),
        };
        format!("{locals} {code} {rest}")
    };
    let mut guest = Guest {
        more: BESIDE.into(),
        ..Guest::default()
    };
    match place {
        Place::Start => {
            guest.more = format!("{BESIDE} (func $start {}) (start $start)", harmful(""));
        }
        Place::Describe => guest.describe = harmful("(i32.const 0)"),
        Place::Configure => guest.configure = harmful("(i32.const 0)"),
        Place::Realloc => guest.realloc = harmful("(i32.const 4096)"),
        Place::Evaluate => guest.evaluate = harmful("(i32.const 0)"),
        Place::SecondMessage => {
            guest.more = format!(
                "{BESIDE} (global $seen (mut i32) (i32.const 0)) (func $harm {})",
                harmful("")
            );
            guest.evaluate = "(if (global.get $seen) (then (call $harm))) (global.set $seen (i32.const 1)) (i32.const 0)".into();
        }
    }
    guest
}

fn binding() -> PluginBinding {
    PluginBinding {
        isolation: domain::Isolation::Tenant,
        ..PluginBinding::new("hostile")
    }
}

#[test]
fn harm_done_anywhere_ends_in_the_fail_mode() {
    let decent = load(&Guest::default()).expect("a decent plugin");
    let decent = bind(&decent, &PluginBinding::new("decent"), "other").expect("a binding");
    let view = call("tenant", "select 1");
    let mut cases = 0;
    for (name, harm) in HARM {
        for place in PLACES {
            cases += 1;
            let began = Instant::now();
            let said = match load(&with(harm, place)) {
                Err(why) => Err(why),
                Ok(plugin) => bind(&plugin, &binding(), "tenant"),
            };
            match (place, said) {
                (Place::Start | Place::Describe | Place::Configure, Err(why)) => {
                    assert!(
                        !why.is_empty(),
                        "{name} in {place:?} is refused without a word"
                    );
                }
                // Reading a configuration allocates, so this one is found when it is bound.
                (Place::Realloc, Err(why)) => assert!(!why.is_empty()),
                (Place::Evaluate, Ok(bound)) => {
                    let error = ask(&bound, &view).expect_err(name);
                    assert!(
                        matches!(
                            error,
                            EvalError::Trapped | EvalError::TimedOut | EvalError::OutOfBounds
                        ),
                        "{name}: {error}"
                    );
                }
                (Place::SecondMessage, Ok(bound)) => {
                    ask(&bound, &view).expect("the first message is judged");
                    ask(&bound, &view).expect_err(name);
                    ask(&bound, &view).expect("a fresh instance takes the place of the broken one");
                }
                (place, Ok(_)) => panic!("{name} in {place:?} was taken"),
                (place, Err(why)) => panic!("{name} in {place:?} was refused: {why}"),
            }
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "{name} in {place:?} took {:?}",
                began.elapsed()
            );
            assert_eq!(
                ask(&decent, &view),
                Ok(dlp_policy::Verdict::default()),
                "after {name}"
            );
        }
    }
    assert!(cases >= 100, "{cases}");
}

/// Words at an address, little-endian.
fn store(words: &[(u32, u32)]) -> String {
    let stores = words
        .iter()
        .map(|(at, word)| format!("(i32.store (i32.const {at}) (i32.const {}))", *word as i32));
    stores.collect()
}

#[test]
fn verdicts_that_mean_nothing_end_in_the_fail_mode() {
    // A verdict at 1,024: action 0 and 1, reason 4 and 8, marks 12 and 16, edits 20 and 24, rulings 28
    // and 32. A mark at 2,048: leaf, start, end, label (pointer, length), action.
    let mark = |leaf, start, end, label, len, action: u32| {
        store(&[
            (1036, 2048),
            (1040, 1),
            (2048, leaf),
            (2052, start),
            (2056, end),
            (2060, label),
            (2064, len),
            (2068, action),
        ])
    };
    let edit = |leaf, start, end, text, len| {
        store(&[
            (1044, 2048),
            (1048, 1),
            (2048, leaf),
            (2052, start),
            (2056, end),
            (2060, text),
            (2064, len),
        ])
    };
    let label = "(i32.store (i32.const 3000) (i32.const 0x61616161))";
    let bad_utf8 = "(i32.store (i32.const 3000) (i32.const 0xfffefdfc))";
    let cases: Vec<(&str, String)> = vec![
        ("an unknown action", store(&[(1024, 0x0901)])),
        ("an unknown case of an option", store(&[(1024, 7)])),
        (
            "a reason beyond memory",
            store(&[(1028, 0x7fff_0000), (1032, 64)]),
        ),
        (
            "a reason that wraps around",
            store(&[(1028, 0xffff_fff0), (1032, 64)]),
        ),
        (
            "a reason longer than memory",
            store(&[(1028, 0), (1032, 0x7fff_ffff)]),
        ),
        (
            "a reason that is no text",
            format!("{bad_utf8}{}", store(&[(1028, 3000), (1032, 4)])),
        ),
        (
            "marks beyond memory",
            store(&[(1036, 0x7fff_0000), (1040, 1)]),
        ),
        (
            "marks at a crooked address",
            store(&[(1036, 2049), (1040, 1)]),
        ),
        (
            "more marks than memory",
            store(&[(1036, 2048), (1040, 0x0fff_ffff)]),
        ),
        ("as many marks as fit", store(&[(1036, 0), (1040, 5000)])),
        ("as many edits as fit", store(&[(1044, 0), (1048, 5000)])),
        ("as many rulings as fit", store(&[(1052, 0), (1056, 16000)])),
        (
            "edits at a crooked address",
            store(&[(1044, 2050), (1048, 1)]),
        ),
        (
            "a mark in no leaf",
            format!("{label}{}", mark(3, 0, 1, 3000, 4, 1)),
        ),
        (
            "a mark in a leaf far away",
            format!("{label}{}", mark(u32::MAX, 0, 1, 3000, 4, 1)),
        ),
        (
            "a mark behind its leaf",
            format!("{label}{}", mark(1, 0, 99, 3000, 4, 1)),
        ),
        (
            "a mark that ends before it begins",
            format!("{label}{}", mark(1, 5, 2, 3000, 4, 1)),
        ),
        (
            "a mark that cuts a letter",
            format!("{label}{}", mark(1, 1, 2, 3000, 4, 1)),
        ),
        ("a mark without a label", mark(1, 0, 2, 3000, 0, 1)),
        (
            "a label with a line break",
            format!(
                "(i32.store (i32.const 3000) (i32.const 0x0a0a0a0a)){}",
                mark(1, 0, 2, 3000, 4, 1)
            ),
        ),
        (
            "a label that is too long",
            format!(
                "(memory.fill (i32.const 3000) (i32.const 97) (i32.const 65)){}",
                mark(1, 0, 2, 3000, 65, 1)
            ),
        ),
        (
            "a mark with an unknown action",
            format!("{label}{}", mark(1, 0, 2, 3000, 4, 5)),
        ),
        ("an edit in no leaf", edit(3, 0, 1, 3000, 0)),
        ("an edit of a number", edit(2, 0, 1, 3000, 0)),
        ("an edit behind its leaf", edit(1, 0, 99, 3000, 0)),
        ("an edit that cuts a letter", edit(1, 0, 1, 3000, 0)),
        (
            "an edit whose text lies outside",
            edit(1, 0, 2, 0x7fff_0000, 9),
        ),
        (
            "an edit with a whole memory of text",
            edit(1, 0, 2, 0, 131_072 * 9),
        ),
        (
            "a ruling about no finding",
            store(&[(1052, 2048), (1056, 1), (2048, 0), (2052, 1)]),
        ),
        (
            "a verdict at no address",
            String::from("(return (i32.const -4))"),
        ),
        (
            "a verdict at a crooked address",
            String::from("(return (i32.const 1025))"),
        ),
        (
            "a verdict at the end of memory",
            String::from("(return (i32.const 131064))"),
        ),
    ];
    let view = call("tenant", "ä select");
    for (name, body) in &cases {
        let guest = Guest {
            evaluate: format!("{body} (i32.const 1024)"),
            ..Guest::default()
        };
        let plugin = load(&guest).unwrap_or_else(|why| panic!("{name}: {why}"));
        let bound = bind(&plugin, &binding(), "tenant").expect("a binding");
        let error = ask(&bound, &view).expect_err(name);
        assert!(
            !matches!(error, EvalError::TimedOut | EvalError::Open),
            "{name}: {error}"
        );
    }
}

#[test]
fn an_output_bomb_is_ended_before_it_unfolds() {
    // 2,000 edits whose texts are all the same megabyte: 2 GB, were they believed.
    let guest = Guest {
        memory: "(memory (export \"memory\") 20)".into(),
        evaluate: "(local $n i32)
            (loop $l
              (i32.store offset=131072 (i32.mul (local.get $n) (i32.const 20)) (i32.const 1))
              (i32.store offset=131084 (i32.mul (local.get $n) (i32.const 20)) (i32.const 200000))
              (i32.store offset=131088 (i32.mul (local.get $n) (i32.const 20)) (i32.const 1000000))
              (local.set $n (i32.add (local.get $n) (i32.const 1)))
              (br_if $l (i32.lt_u (local.get $n) (i32.const 2000))))
            (i32.store (i32.const 1044) (i32.const 131072))
            (i32.store (i32.const 1048) (i32.const 2000))
            (i32.const 1024)"
            .into(),
        ..Guest::default()
    };
    let bound = bind(&load(&guest).unwrap(), &binding(), "tenant").unwrap();
    let began = Instant::now();
    ask(&bound, &call("tenant", "x")).expect_err("a bomb");
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
}

const LOG: &str = "(import \"weir:policy/host@0.1.0\" \"log\" (func $log (param i32 i32 i32)))";
const FIND: &str =
    "(import \"weir:policy/host@0.1.0\" \"find\" (func $find (param i32 i32 i32 i32 i32 i32)))";
const GET: &str =
    "(import \"weir:policy/host@0.1.0\" \"state-get\" (func $get (param i32 i32 i32 i32)))";
const NOW: &str = "(import \"weir:policy/host@0.1.0\" \"now\" (func $now (param i32)))";

#[test]
fn floods_of_host_calls_are_ended() {
    let cases = [
        (
            "lines",
            LOG,
            "(loop $l (call $log (i32.const 0) (i32.const 0) (i32.const 1)) (br $l))",
        ),
        (
            "long lines",
            LOG,
            "(loop $l (call $log (i32.const 0) (i32.const 0) (i32.const 131072)) (br $l))",
        ),
        (
            "a line outside of memory",
            LOG,
            "(call $log (i32.const 0) (i32.const -9) (i32.const 8))",
        ),
        (
            "an unknown level",
            LOG,
            "(call $log (i32.const 9) (i32.const 0) (i32.const 1))",
        ),
        (
            "searches",
            FIND,
            "(loop $l (call $find (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 1) (i32.const 1024)) (br $l))",
        ),
        (
            "searches that are dear",
            FIND,
            "(loop $l (call $find (i32.const 0) (i32.const 2000) (i32.const 0) (i32.const 100000) (i32.const 1000) (i32.const 1024)) (br $l))",
        ),
        (
            "a pattern outside of memory",
            FIND,
            "(call $find (i32.const -1) (i32.const 10) (i32.const 0) (i32.const 4) (i32.const 1) (i32.const 1024))",
        ),
        (
            "an answer outside of memory",
            FIND,
            "(call $find (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 1) (i32.const -4))",
        ),
        (
            "an answer at a crooked address",
            FIND,
            "(call $find (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 1) (i32.const 1025))",
        ),
        (
            "reads of state",
            GET,
            "(loop $l (call $get (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 1024)) (br $l))",
        ),
        (
            "an unknown scope",
            GET,
            "(call $get (i32.const 7) (i32.const 0) (i32.const 4) (i32.const 1024))",
        ),
        (
            "looks at the clock",
            NOW,
            "(loop $l (call $now (i32.const 1024)) (br $l))",
        ),
    ];
    let view = call("tenant", "x");
    for (name, imports, body) in cases {
        let guest = Guest {
            imports: imports.into(),
            evaluate: format!("{body} (i32.const 0)"),
            ..Guest::default()
        };
        let plugin = load(&guest).unwrap_or_else(|why| panic!("{name}: {why}"));
        let bound = bind(&plugin, &binding(), "tenant").expect("a binding");
        let began = Instant::now();
        ask(&bound, &view).expect_err(name);
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "{name}: {:?}",
            began.elapsed()
        );
    }
}

#[test]
fn what_is_no_plugin_is_refused_with_words() {
    let text = Guest::default().text();
    let other = WIT.replace("weir:policy@0.1.0", "weir:policy@0.2.0");
    let wasi = "(component (import \"wasi:cli/environment@0.2.0\" (instance)))";
    type Made = Result<Vec<u8>, String>;
    let cases: Vec<(&str, Made, &str)> = vec![
        ("nothing", Ok(Vec::new()), "not WebAssembly"),
        ("text", Ok(b"hello".to_vec()), "not WebAssembly"),
        (
            "a core module",
            Ok(wat::parse_str(&text).unwrap()),
            "policy build",
        ),
        (
            "an empty component",
            Ok(wat::parse_str("(component)").unwrap()),
            "does not export",
        ),
        (
            "a component that wants WASI",
            Ok(wat::parse_str(wasi).unwrap()),
            "no WASI",
        ),
        (
            "another version",
            component(&text.replace("@0.1.0", "@0.2.0"), &other),
            "this SDK",
        ),
        (
            "a module without exports",
            component("(module (memory (export \"memory\") 1))", WIT),
            "wrapped",
        ),
        (
            "a truncated component",
            Guest::default().component().map(|mut c| {
                c.truncate(c.len() / 2);
                c
            }),
            "valid",
        ),
        (
            "an import that nobody has",
            component(
                &text.replace("(module", "(module (import \"env\" \"system\" (func))"),
                WIT,
            ),
            "wrapped",
        ),
        (
            "more memory than there is",
            Guest {
                memory: "(memory (export \"memory\") 2000)".into(),
                ..Guest::default()
            }
            .component(),
            "at most 64",
        ),
        (
            "a memory of 64 bits",
            Guest {
                memory: "(memory (export \"memory\") i64 1)".into(),
                ..Guest::default()
            }
            .component(),
            "",
        ),
        (
            "two memories",
            Guest {
                more: "(memory 1)".into(),
                ..Guest::default()
            }
            .component(),
            "",
        ),
        (
            "a table without end",
            Guest {
                more: "(table 4000000 funcref)".into(),
                ..Guest::default()
            }
            .component(),
            "at most 20000",
        ),
        (
            "data outside of memory",
            Guest {
                more: "(data (i32.const 0x7fff0000) \"x\")".into(),
                ..Guest::default()
            }
            .component(),
            "",
        ),
        (
            "elements outside of a table",
            Guest {
                more: "(table 1 funcref) (elem (i32.const 9) $evaluate)".into(),
                ..Guest::default()
            }
            .component(),
            "",
        ),
    ];
    for (name, bytes, words) in cases {
        let why = match bytes {
            Err(why) => why,
            Ok(bytes) => match host().load(&bytes) {
                Err(error) => error.to_string(),
                Ok(plugin) => bind(&plugin, &binding(), "tenant").expect_err(name),
            },
        };
        assert!(why.contains(words) && !why.is_empty(), "{name}: {why}");
    }
}

#[test]
fn three_failures_in_a_row_open_the_breaker() {
    let bound = bind(
        &load(&with("(unreachable)", Place::Evaluate)).unwrap(),
        &binding(),
        "tenant",
    )
    .unwrap();
    let view = call("tenant", "x");
    let said: Vec<_> = (0..4).map(|_| ask(&bound, &view).unwrap_err()).collect();
    assert_eq!(
        said,
        [
            EvalError::Trapped,
            EvalError::Trapped,
            EvalError::Trapped,
            EvalError::Open
        ]
    );
}
