//! A value is found, and found whole, however long it is, however far down its table it stands, and whatever stands
//! beside it.

use dlp_scan::{Budget, Category, FingerprintKey, LeafInput, LeafKind, RuleSet, Scanner};

/// What is found in a text: the category, and the place.
fn findings(text: &str, kind: LeafKind, name: Option<&str>) -> Vec<(Category, String, usize)> {
    let rules = RuleSet::builtin();
    let leaf = LeafInput { text, kind, name };
    let mut scanner = Scanner::new(FingerprintKey::new([3; 32]));
    let outcome = scanner.scan(rules, [leaf].into_iter(), &Budget::default());
    assert_eq!(outcome.over_budget, None, "{:.200}", text);
    let found = outcome.findings.iter();
    found
        .map(|f| {
            let found = text[f.start as usize..f.end as usize].to_owned();
            (f.category, found, f.start as usize)
        })
        .collect()
}

/// What is left of a text once all that was found is taken out.
fn left(text: &str) -> String {
    let mut keep = vec![true; text.len()];
    for (_, found, start) in findings(text, LeafKind::String, None) {
        keep[start..start + found.len()].fill(false);
    }
    let bytes = text.bytes().zip(keep).filter(|(_, keep)| *keep);
    String::from_utf8_lossy(&bytes.map(|(b, _)| b).collect::<Vec<_>>()).into_owned()
}

fn finds(text: &str, value: &str) -> bool {
    findings(text, LeafKind::String, None)
        .iter()
        .any(|f| f.1 == value)
}

/// Letters and digits as a generator makes them, the same each time.
fn drawn(len: usize, seed: u64) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut seed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut letter = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        char::from(letters[(seed >> 11) as usize % letters.len()])
    };
    (0..len).map(|_| letter()).collect()
}

/// A token of three parts, the second so long.
fn jwt(payload: usize) -> String {
    let head = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9";
    format!("{head}.eyJ{}.{}", drawn(payload, 5), drawn(342, 6))
}

#[test]
fn values_of_any_length_are_taken_whole() {
    for len in [400, 600, 4_000, 4_090, 9_000, 70_000] {
        let value = drawn(len, 1);
        for text in [
            format!("CLIENT_SECRET={value}\nnext"),
            format!("client_secret: {value}\nnext"),
            format!("x = f(client_secret={value}, 3)"),
            format!("client_secret = \"{value}\"; next"),
            format!("{{\\\"client_secret\\\": \\\"{value}\\\"}} next"),
            format!("{{\"client_secret\":\"{value}\"}}"),
            format!("<client_secret>{value}</client_secret>"),
            format!("Authorization: Bearer {value}\nnext"),
            format!("id,client_secret,note\n1,{value},x\n"),
        ] {
            let rest = left(&text);
            assert!(rest.len() < 60, "{len} {text:.40}: {} left", rest.len());
        }
        let token = jwt(len);
        for text in [
            token.clone(),
            format!("see {token} there"),
            format!("Authorization: Bearer {token}\nnext"),
            format!("Cookie: session={token}; theme=dark"),
        ] {
            let rest = left(&text);
            assert!(rest.len() < 60, "{len} {text:.40}: {} left", rest.len());
        }
        let url = format!("postgres://svc:{value}@db.acme.io/app now");
        assert!(left(&url).len() < 10, "{len}: a URL");
        let long_url = format!("https://svc:gT7kQ2vpL9xW4z@acme.io/app?{value} now");
        assert!(left(&long_url).len() < 10, "{len}: behind a URL");
    }
}

#[test]
fn names_in_a_row_without_a_blank_cost_what_they_are_long() {
    let text = format!("password={}&", drawn(20, 3)).repeat(4_000);
    let leaf = LeafInput {
        text: &text,
        kind: LeafKind::String,
        name: None,
    };
    let mut scanner = Scanner::new(FingerprintKey::new([3; 32]));
    let outcome = scanner.scan(RuleSet::builtin(), [leaf].into_iter(), &Budget::default());
    assert!(outcome.over_budget.is_some() || outcome.findings.len() >= 1_000);
}

/// So many secrets, each with all that a generator draws from.
fn secrets(n: usize) -> Vec<String> {
    (0..n)
        .map(|i| format!("Zq7{}kW2m", drawn(20, 100 + i as u64)))
        .collect()
}

fn all_found(text: &str, secrets: &[String], what: &str) {
    let rest = left(text);
    let missed: Vec<_> = (0..secrets.len())
        .filter(|n| rest.contains(secrets[*n].as_str()))
        .collect();
    assert!(missed.is_empty(), "{what}: {missed:?} of {}", secrets.len());
}

#[test]
fn every_row_and_element_is_read() {
    for n in [15, 17, 40, 400] {
        let secrets = secrets(n);
        let rows = |write: &dyn Fn(usize, &str) -> String| -> String {
            (0..n).map(|i| write(i, &secrets[i])).collect()
        };
        let csv = rows(&|i, s| format!("u{i},{s}\n"));
        all_found(&format!("user,api_key\n{csv}"), &secrets, "csv");
        let wide = rows(&|i, s| format!("u{i},{s},{}\n", "x ".repeat(60)));
        all_found(
            &format!("notes\nuser,api_key,about\n{wide}"),
            &secrets,
            "wide",
        );
        let list = serde_json::json!({ "api_key": secrets }).to_string();
        all_found(&list, &secrets, "array");
        let sql = rows(&|i, s| format!("({i}, '{s}'),\n"));
        all_found(
            &format!("INSERT INTO t (id, api_key) VALUES\n{sql};"),
            &secrets,
            "insert",
        );
        let mut gaps = vec![String::new(); n];
        gaps.push("Iqvldm982*cfBKh".to_owned());
        let list = serde_json::json!({ "password": gaps }).to_string();
        assert!(finds(&list, "Iqvldm982*cfBKh"), "behind {n} that are empty");
    }
}

#[test]
fn names_in_the_rows_of_a_table_do_not_use_up_the_budget() {
    let rows: String = (0..5_000)
        .map(|i| format!("{i},password,see note {i},x\n"))
        .collect();
    let text = format!("id,field,note,by\n{rows}");
    assert_eq!(findings(&text, LeafKind::String, None), []);
}

#[test]
fn tables_with_blanks_beside_the_delimiter() {
    let value = "Iqvldm982*cfBKh";
    for text in [
        format!("| user | password |\n|---|---|\n| ana | {value} |\n| bo | x |\n"),
        format!("|  user  |  password  |\n|:---|---:|\n|  ana  |  {value}  |\n"),
        format!("| user | password |\n|---|---|\n| ana | `{value}` |\n"),
        format!("user, password\nana, {value}\n"),
        format!("\"user\", \"password\"\n\"ana\", \"{value}\"\n"),
        format!("user ; password ; role\nana ; {value} ; admin\n"),
        format!("password | user\n{value} | ana\n"),
    ] {
        assert!(finds(&text, value), "{text}");
    }
    for text in [
        "user, password\nYou need both of them, ask Ana2 for more\n",
        "| field | password |\n|---|---|\n| type | string |\n| min length | 12 |\n",
    ] {
        assert_eq!(findings(text, LeafKind::String, None), [], "{text}");
    }
}

#[test]
fn a_table_is_not_joined_over_its_rows() {
    let rows = [
        "user,password",
        "u0,Qm4!kLmQ27vTpRs",
        "u1,Zx9!kLmQ27vTpRs",
        "u2,Wd3!kLmQ27vTpRs",
    ];
    for end in ["\n", "\r\n", "\n  "] {
        let text = rows.join(end);
        let found = findings(&text, LeafKind::String, None);
        assert!(found.len() >= 3, "{found:?}");
        assert!(found.iter().all(|f| !f.1.contains('\n')), "{found:?}");
    }
}

#[test]
fn private_keys_of_any_length_and_indent() {
    let key = |title: &str, lines: usize, indent: usize| -> String {
        let body: String = (0..lines)
            .map(|i| format!("{}{}\n", " ".repeat(indent), drawn(64, i as u64 + 1)))
            .collect();
        format!("-----BEGIN {title}-----\n{body}-----END {title}-----")
    };
    for lines in [24, 500, 900, 4_000] {
        for (title, indent) in [
            ("RSA PRIVATE KEY", 0),
            ("RSA PRIVATE KEY", 100),
            ("PGP PRIVATE KEY BLOCK", 0),
        ] {
            let key = key(title, lines, indent);
            let text = format!("before\n{key}\nafter it stands - and that is all. -----\n");
            assert!(finds(&text, &key), "{lines} lines, {indent} blanks");
            let open = &key[..key.len() - 40 - title.len()];
            assert!(
                left(open).len() < 100,
                "{lines} lines, {indent} blanks, no end"
            );
        }
    }
}

const CARD: &str = "4539578763621486";

#[test]
fn numbers_in_json_text_however_written() {
    for number in [
        "4539578763621486",
        "4539578763621486.0",
        "4539578763621486e0",
        "4.539578763621486e15",
        "-4539578763621486",
        "-4539578763621486.0",
        "-4.539578763621486E+15",
    ] {
        for text in [
            format!("{{\"card\": {number}}}"),
            format!("{{\"rows\": [1, 2.5, {number}], \"x\": \"y\"}}"),
        ] {
            assert_eq!(findings(&text, LeafKind::String, None).len(), 1, "{text}");
        }
        let found = findings(number, LeafKind::Number, Some("card"));
        assert_eq!(found.len(), 1, "{number} as a value");
    }
}

#[test]
fn a_word_excuses_no_value_that_stands_beside_it() {
    let name = ["sk-", "ant-api03-"].concat();
    let anthropic = format!("{name}{}AA", drawn(93, 7));
    let openai = ["sk-", "proj-", &drawn(48, 8)].concat();
    for text in [
        format!("key {anthropic}-example"),
        format!("key {openai}-EXAMPLE"),
        format!("key {openai}_todo"),
    ] {
        let value = &text[4..text.rfind(['-', '_']).unwrap()];
        assert!(finds(&text, value), "{text}");
    }
    for value in [
        "Iqvldm982*cfBKhexample",
        "nullIqvldm982*cfBKh",
        "aB3()xK9mQ2zLw",
        "k9->Zq72LmPw4t",
    ] {
        let text = format!("{{\"password\": \"{value}\"}}");
        assert!(finds(&text, value), "{text}");
    }
    for text in [
        "aws_access_key_id = AKIAIOSFODNN7EXAMPLE",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "api_key: your-api-key-here-1234",
        "OPENAI_API_KEY=sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxexample",
        "password: \"getPassword2()->value1\"",
    ] {
        assert_eq!(findings(text, LeafKind::String, None), [], "{text}");
    }
}

#[test]
fn a_neighbour_hides_no_card_account_or_social_number() {
    for (text, values) in [
        (
            "card 4539 5787 6362 1486 12/27",
            &["4539 5787 6362 1486"][..],
        ),
        ("card #4539578763621486", &[CARD]),
        (
            "cards 4539 5787 6362 1486 4012 8888 8888 1881",
            &["4539 5787 6362 1486", "4012 8888 8888 1881"],
        ),
        (
            "both: 4539 5787 6362 1486 4012 8888 8888 1881",
            &["4539 5787 6362 1486", "4012 8888 8888 1881"],
        ),
        ("4539 5787 6362 1486 20 EUR", &["4539 5787 6362 1486"]),
        ("10:22 4539 5787 6362 1486", &["4539 5787 6362 1486"]),
        ("card no.4539578763621486", &[CARD]),
        ("4539578763621486/12/27", &[CARD]),
        ("paid with CC4539578763621486 today", &[CARD]),
        (
            "paid with Visa4539 5787 6362 1486",
            &["4539 5787 6362 1486"],
        ),
        ("4539-5787-6362-1486-123", &["4539-5787-6362-1486"]),
        (
            "IBAN: DE89 3704 0044 0532 0130 00 12/27",
            &["DE89 3704 0044 0532 0130 00"],
        ),
        ("SSN #536-90-4399", &["536-90-4399"]),
        ("Amex 3782 822463 10005 1227", &["3782 822463 10005"]),
    ] {
        for value in values {
            assert!(finds(text, value), "{value} in {text}");
        }
    }
    for text in [
        "row 4539 5787 6362 1486 2034 9981 1120 4412 7781",
        "order #4539578763621486",
        "file 2024-4539578763621486-7",
        "img/4539578763621486/12/27.png",
        "v4539578763621486/13/27",
        "item x4539578763621486y",
        "job4539578763621486",
        "ticket #536-90-4399",
        "id 4539-5787-6362-1486-12345",
        "0.4539578763621486",
    ] {
        assert_eq!(findings(text, LeafKind::String, None), [], "{text}");
    }
}

/// Leaves of a message, of which nothing says how they lie in objects: a public key beside a private one stays as it is.
#[test]
fn private_members_of_a_web_key_are_found_in_a_message() {
    let key = |text| LeafInput {
        text,
        kind: LeafKind::Key,
        name: None,
    };
    let under = |name, text| LeafInput {
        text,
        kind: LeafKind::String,
        name: Some(name),
    };
    let (public, private) = (drawn(43, 8), drawn(43, 9));
    let one = |secret| {
        let mut leaves = vec![
            key("kty"),
            under("kty", "OKP"),
            key("x"),
            under("x", &public),
        ];
        if secret {
            leaves.extend([key("d"), under("d", &private)]);
        }
        leaves
    };
    for (leaves, want) in [
        ([one(true), one(false)].concat(), &[5][..]),
        ([one(false), one(true)].concat(), &[9]),
        ([one(false), one(false)].concat(), &[]),
    ] {
        let mut scanner = Scanner::new(FingerprintKey::new([3; 32]));
        let outcome = scanner.scan(RuleSet::builtin(), leaves.into_iter(), &Budget::default());
        let found: Vec<u32> = outcome.findings.iter().map(|f| f.leaf).collect();
        assert_eq!(found, want);
    }
}
