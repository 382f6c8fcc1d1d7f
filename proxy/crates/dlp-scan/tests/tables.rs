//! Tables in JSON text: a value stands under the name of its column, and what is cut over a row is still one.

#[path = "common/token.rs"]
mod token;

use dlp_scan::{Budget, FingerprintKey, LeafInput, LeafKind, RuleSet, Scanner, Step};
use serde_json::{Value, json};
use token::token;

/// The rules that find something, each with what it found.
fn found(text: &str) -> Vec<(String, String)> {
    let leaf = LeafInput {
        text,
        kind: LeafKind::String,
        name: None,
    };
    let rules = RuleSet::builtin();
    let mut scanner = Scanner::new(FingerprintKey::new([5; 32]));
    let outcome = scanner.scan(rules, [leaf].into_iter(), &Budget::default());
    let show = |f: &dlp_scan::Finding| {
        let span = f.start as usize..f.end as usize;
        (rules.rule(f.rule).id.to_string(), text[span].to_owned())
    };
    outcome.findings.iter().map(show).collect()
}

/// A message as it is given: its leaves, each with the name over it, and how they lie in it.
#[derive(Default)]
struct Message {
    leaves: Vec<(String, LeafKind, Option<String>)>,
    outline: Vec<Step>,
}

impl Message {
    fn of(value: &Value) -> Self {
        let mut message = Self::default();
        message.take(value, None);
        message
    }

    fn leaf(&mut self, text: String, kind: LeafKind, name: Option<&str>) {
        self.leaves.push((text, kind, name.map(str::to_owned)));
        self.outline.push(Step::Leaf);
    }

    fn take(&mut self, value: &Value, name: Option<&str>) {
        match value {
            Value::Object(members) => {
                self.outline.push(Step::Object);
                for (key, value) in members {
                    self.leaf(key.clone(), LeafKind::Key, None);
                    self.take(value, Some(key));
                }
                self.outline.push(Step::End);
            }
            Value::Array(elements) => {
                self.outline.push(Step::Array);
                elements.iter().for_each(|value| self.take(value, name));
                self.outline.push(Step::End);
            }
            Value::String(text) => self.leaf(text.clone(), LeafKind::String, name),
            Value::Number(number) => self.leaf(number.to_string(), LeafKind::Number, name),
            Value::Bool(_) | Value::Null => self.outline.push(Step::Other),
        }
    }

    /// The passwords that are found in it.
    fn passwords(&self) -> Vec<&str> {
        let leaves = self.leaves.iter().map(|(text, kind, name)| LeafInput {
            text,
            kind: *kind,
            name: name.as_deref(),
        });
        let rules = RuleSet::builtin();
        let mut scanner = Scanner::new(FingerprintKey::new([5; 32]));
        let (mut steps, budget) = (self.outline.iter().copied(), Budget::default());
        let outcome =
            scanner.scan_laid_out(rules, leaves, Some(&mut steps), &budget, &|_, _| false);
        let passwords = outcome.findings.iter();
        let passwords = passwords.filter(|f| rules.rule(f.rule).id.as_ref() == "generic-password");
        passwords
            .map(|f| &self.leaves[f.leaf as usize].0[f.start as usize..f.end as usize])
            .collect()
    }
}

fn has(text: &str, rule: &str) -> bool {
    found(text).iter().any(|(id, _)| id == rule)
}

#[test]
fn a_row_above_hides_nothing_that_is_cut_over_the_next() {
    let token = token();
    let pieces = |len: usize| -> Vec<String> {
        let bytes = token.as_bytes().chunks(len);
        bytes.map(|b| String::from_utf8_lossy(b).into()).collect()
    };
    for len in [1, 4, 20] {
        let row = pieces(len);
        let decoys: Vec<String> = (0..row.len().max(3))
            .map(|n| format!("user_id_{}", (b'a' + n as u8) as char))
            .collect();
        for text in [
            json!({"data": [decoys, row]}).to_string(),
            json!({"columns": decoys, "rows": [row]}).to_string(),
            json!({"rows": [row], "columns": decoys}).to_string(),
        ] {
            assert!(has(&text, "github-pat"), "{text}");
        }
    }
    let plain = json!({"values": [["a1", "tt", "zq"], ["rm", "-rf", "/home"]]});
    let named = json!({"values": [["first_name", "last_name", "note"], ["rm", "-rf", "/home"]]});
    for text in [plain, named] {
        assert!(has(&text.to_string(), "bare-command"), "{text}");
    }
}

#[test]
fn values_stand_under_the_names_of_their_columns() {
    let password = "Tq7m!Z2vX";
    let pad = vec!["p"; 400];
    let wide: Vec<&str> = std::iter::repeat_n("c", 100).chain(["password"]).collect();
    let row: Vec<&str> = std::iter::repeat_n("c", 100).chain([password]).collect();
    for text in [
        json!({"columns": ["id", "password"], "rows": [["a", password]]}),
        json!({"columns": ["id", "password"], "pad": pad, "rows": [["a", password]]}),
        json!({"columns": wide, "rows": [row]}),
        json!({"data": [["a", password]], "fields": ["id", "password"]}),
        json!({"columns": [null, {"key": "x1", "text": "Password"}], "rows": [["a", password]]}),
        json!({"values": [["name", "email", "password"], ["Ann", "ann.k2@nordwind.de", password]]}),
    ] {
        let text = text.to_string();
        let want = ("generic-password".to_owned(), password.to_owned());
        assert!(found(&text).contains(&want), "{text}");
    }
    let text = json!({"columns": ["name", "email", "city"], "rows": [["Ann", "ann.k2@nordwind.de", "foo"]]});
    let addresses = found(&text.to_string()).len();
    assert_eq!(addresses, 1, "{text}");
}

#[test]
fn what_is_no_head_and_no_label_gives_no_meaning() {
    let coded = "NWY0ZGNjM2ItNWFhNy00NWQ2LTlkODMtMjdkZWI4ODJjZjk5";
    for text in [
        json!({"rows": [["1001", "Password", "Alice"], ["1002", "Outlook365", "Bob"]]}),
        json!({"secret": false, "value": coded}),
        json!({"name": "generate_password", "arguments": {"text": coded}}),
    ] {
        assert_eq!(found(&text.to_string()), [], "{text}");
    }
    let text = r#"{"columns":[{"name":"pwd","title":"Password"},{"name":"mail","title":"Email"}],"data":[["********","alice.b2@nordwind.de"]]}"#;
    assert!(!has(text, "generic-password"));
    let text = json!({"name": "db_password", "done": true, "value": "VHE3bSFaMnZYOWty"});
    assert!(has(&text.to_string(), "generic-password"), "{text}");
}

#[test]
fn a_label_tells_of_a_value_in_an_object_beside_its_own() {
    for text in [
        r#"{"name":"DB_PASSWORD","valueFrom":{"value":"Tq7m!Z2vX"}}"#,
        r#"{"key":"db.password","value":{"value":"Tq7m!Z2vX"}}"#,
        r#"{"key":"db.password","value":{"data":1,"valueOf":{"value":"Tq7m!Z2vX"}}}"#,
        r#"{"attribute":{"name":"password"},"value":"Tq7m!Z2vX"}"#,
        r#"{"a":[{"customField":{"name":"db_password"},"value":"Tq7m!Z2vX"}]}"#,
        r#"{"value":"Tq7m!Z2vX","field":{"name":"db_password"}}"#,
        r#"[{"name":"db_password"},{"value":"Tq7m!Z2vX"}]"#,
        r#"{"x":[{"name":"user"},{"value":"ann"},{"name":"db_password"},{"value":"Tq7m!Z2vX"}]}"#,
    ] {
        let want = ("generic-password".to_owned(), "Tq7m!Z2vX".to_owned());
        assert!(found(text).contains(&want), "{text}");
    }
    for text in [
        r#"{"name":"generate_password","arguments":{"value":"Tq7m!Z2vX"}}"#,
        r#"{"tool":{"name":"generate_password"},"value":"Tq7m!Z2vX"}"#,
        r#"{"name":"db_password","valueFrom":{"name":"vault","value":"Tq7m!Z2vX"}}"#,
        r#"{"field":{"name":"db_password"},"key":"build","value":"Tq7m!Z2vX"}"#,
        r#"[{"name":"db_password"},{"name":"build","value":"Tq7m!Z2vX"}]"#,
        r#"[{"name":"db_password"},{"id":1,"x":{"value":"Tq7m!Z2vX"}}]"#,
        r#"{"a":[{"name":"db_password"}],"b":[{"value":"Tq7m!Z2vX"}]}"#,
    ] {
        assert_eq!(found(text), [], "{text}");
    }
}

/// A table as programs write it: JSON, CSV, Markdown.
fn written(heads: [&str; 3], row: [&str; 3]) -> [String; 4] {
    let lines = |sign: &str| format!("{}\n{}\n", heads.join(sign), row.join(sign));
    [
        json!({"columns": heads, "rows": [row]}).to_string(),
        json!({"data": [heads, row]}).to_string(),
        lines(","),
        lines(" | "),
    ]
}

#[test]
fn heads_that_mean_something_else_are_believed_for_what_stands_under_them() {
    for (heads, row) in [
        (["Suite", "Pass", "Fail"], ["e2e", "88/90-r2", "2"]),
        (["Suite", "Pass", "Fail"], ["e2e", "12of14x", "2"]),
        (["Name", "Pass", "Yards"], ["T. Brady", "37C52x2TD", "320"]),
        (
            ["metric", "token", "cost"],
            ["gpt-4o-2024-08-06", "gpt-4o-2024-08-06", "12"],
        ),
        (
            ["service", "password", "owner"],
            ["db", "rotated-2024-03-01", "alice"],
        ),
    ] {
        for text in written(heads, row) {
            assert_eq!(found(&text), [], "{text}");
        }
    }
    for text in &written(["user", "Pass", "team"], ["ann", "Harbor2024", "sea"])[..2] {
        assert!(has(text, "generic-password"), "{text}");
    }
    for heads in [
        ["name", "pass", "dept"],
        ["User ID", "Pass", "x"],
        ["Name", "PW", "city"],
    ] {
        for text in &written(heads, ["ana", "Sommer2024", "sea"])[..2] {
            assert!(has(text, "generic-password"), "{text}");
        }
    }
    for text in &written(["Suite", "Pass", "Fail"], ["e2e", "Tq7m!Z2vX", "2"])[..2] {
        assert!(has(text, "generic-password"), "{text}");
    }
}

#[test]
fn tables_of_the_message_itself_are_read_like_those_in_a_text() {
    let (password, other) = ("Tq7m!Z2vX", "Wk3p!R8nD");
    let long = "n".repeat(200);
    for (message, want) in [
        (
            json!({"columns": ["id", "password"], "rows": [[1, password], [2, other]]}),
            vec![password, other],
        ),
        (
            json!({"data": [["a", password]], "fields": ["id", "password"]}),
            vec![password],
        ),
        (
            json!({"columns": [null, {"key": "x1", "text": "Password"}], "rows": [[true, password]]}),
            vec![password],
        ),
        (
            json!({"values": [["user_id", "mail", "password"], ["x", "y", password]]}),
            vec![password],
        ),
        (
            json!({"columns": ["a", "password"], "rows": [[{"k": []}, password], [[], other]]}),
            vec![password, other],
        ),
        (
            json!([{"columns": ["a", "password"], "rows": [["{\"json\": \"in a cell\"}", password]]}]),
            vec![password],
        ),
        (
            json!({"items": [[{"name": "DB_PASSWORD", "done": true, "value": password}]]}),
            vec![password],
        ),
        (
            json!({"columns": ["id", "city"], "rows": [[1, password]], "password": other}),
            vec![other],
        ),
        (
            json!({"columns": ["password", "id"], "rows": [[], ["", password]]}),
            vec![],
        ),
        (
            json!({"name": "generate_password", "arguments": {"a": [["x"]], "text": password}}),
            vec![],
        ),
        (
            json!({&long: [[password, password]], "columns": [&long]}),
            vec![],
        ),
    ] {
        assert_eq!(Message::of(&message).passwords(), want, "{message}");
    }
}

/// A server may put an empty table beside anything.
#[test]
fn a_table_elsewhere_in_the_message_hides_no_value_beside_its_label() {
    let password = "Tq7m!Z2vX";
    for message in [
        json!({"name": "dbPassword", "properties": {"value": password}}),
        json!({"name": "dbPassword", "spec": {"value": password}}),
        json!({"item": {"name": "DB_PASSWORD"}, "value": password}),
        json!({"key": "db_password", "zbody": {"text": password}}),
    ] {
        let mut message = message;
        assert_eq!(Message::of(&message).passwords(), [password], "{message}");
        message["zz"] = json!([[]]);
        assert_eq!(Message::of(&message).passwords(), [password], "{message}");
    }
}

/// What does not go with the leaves gives wrong names at the worst.
#[test]
fn an_outline_of_something_else_breaks_nothing() {
    let table = json!({"columns": ["id", "password"], "rows": [[1, "Tq7m!Z2vX"]], "pin": null});
    let mut message = Message::of(&table);
    let steps = message.outline.clone();
    for cut in 0..steps.len() {
        message.outline = steps[cut..].to_vec();
        message.passwords();
        message.outline = [&steps[..cut], &[Step::End, Step::End], &steps[cut..]].concat();
        message.passwords();
    }
    message.outline = vec![Step::Array; 10_000];
    message.passwords();
}
