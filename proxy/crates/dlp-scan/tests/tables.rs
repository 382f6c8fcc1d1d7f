//! Tables in JSON text: a value stands under the name of its column, and what is cut over a row is still one.

use dlp_scan::{Budget, FingerprintKey, LeafInput, LeafKind, RuleSet, Scanner};
use serde_json::json;

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

fn has(text: &str, rule: &str) -> bool {
    found(text).iter().any(|(id, _)| id == rule)
}

/// A token with the checksum that its maker gives it.
fn token() -> String {
    let body = "Zq7kW2m9XvT4rByLp0QeHs6JuN3dFa";
    let mut sum = crc32fast::hash(body.as_bytes());
    let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut tail = [0; 6];
    for place in tail.iter_mut().rev() {
        *place = digits[sum as usize % 62];
        sum /= 62;
    }
    format!("ghp_{body}{}", String::from_utf8_lossy(&tail))
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
