//! How long something is hides nothing: a secret behind or across any bound of a reader is found, or the scan says that it
//! did not look at everything.

use dlp_scan::{Budget, Category, FingerprintKey, LeafInput, LeafKind, RuleSet, Scanner};

/// A token whose checksum holds, put together here so that none stands in the repository.
fn token() -> String {
    let body = "Zq7kW2mXv9Lp4TsR8bNc3YdF6hJg1K";
    let mut crc = crc32fast::hash(body.as_bytes());
    let mut tail = [0u8; 6];
    for b in tail.iter_mut().rev() {
        *b = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[(crc % 62) as usize];
        crc /= 62;
    }
    format!("ghp_{body}{}", String::from_utf8_lossy(&tail))
}

/// Is something of the category found in a message of one text? A scan that was over budget says so, and that will do.
fn found(text: &str, category: Category, rule: &str) -> bool {
    let rules = RuleSet::builtin();
    let leaf = LeafInput {
        text,
        kind: LeafKind::String,
        name: None,
    };
    let mut scanner = Scanner::new(FingerprintKey::new([5; 32]));
    let outcome = scanner.scan(rules, [leaf].into_iter(), &Budget::default());
    let it = |f: &dlp_scan::Finding| f.category == category && rules.rule(f.rule).id.contains(rule);
    outcome.over_budget.is_some() || outcome.findings.iter().any(it)
}

fn is_token(text: &str) -> bool {
    found(text, Category::Secret, "github-pat")
}

/// What may stand before the token in a row: so many pieces that the token lies behind or across a bound.
const BEFORE: [usize; 9] = [0, 190, 250, 505, 1_020, 4_090, 9_990, 16_380, 65_530];

/// The token in pieces of at most `len` characters, behind others that are none of it. Longer ones differ in length, or they
/// would be read as what was cut at equal distances.
fn rows(len: usize) -> impl Iterator<Item = (usize, Vec<String>)> {
    let length = move |n: usize| len - usize::from(len > 2) * (n % 3 % 2 + n % 2);
    BEFORE.into_iter().map(move |n| {
        let mut row: Vec<String> = (0..n)
            .map(|i| "xa7e-kq9w-r2tz-u4io-pl6"[..length(i)].to_owned())
            .collect();
        row.push("|".to_owned());
        let (token, mut at) = (token(), 0);
        while at < token.len() {
            let end = (at + length(row.len())).min(token.len());
            row.push(token[at..end].to_owned());
            at = end;
        }
        (n, row)
    })
}

/// Runs the writers over every row, and says which rows were not read.
fn check(name: &str, len: usize, write: impl Fn(&[String]) -> String) -> Vec<String> {
    let missed = rows(len).filter(|(_, row)| !is_token(&write(row)));
    missed
        .map(|(n, _)| format!("{name}, {n} pieces before"))
        .collect()
}

fn each(row: &[String], write: impl Fn(usize, &str) -> String) -> String {
    row.iter().enumerate().map(|(n, p)| write(n, p)).collect()
}

#[test]
fn literals_in_rows_of_any_length() {
    let mut missed = Vec::new();
    let mut run = |name: &str, write: &dyn Fn(&[String]) -> String| {
        missed.extend(check(name, 6, write));
    };
    run("append", &|row| {
        each(row, |_, p| format!("sb.append(\"{p}\");\n"))
    });
    run("chained", &|row| {
        format!("sb{};", each(row, |_, p| format!(".append(\"{p}\")")))
    });
    run("added", &|row| each(row, |_, p| format!("k += \"{p}\"\n")));
    run("indexed", &|row| {
        each(row, |n, p| format!("k[{n}] = \"{p}\";\n"))
    });
    run("concat", &|row| {
        format!("k = concat(\"{}\")", row.join("\", \""))
    });
    run("joined", &|row| {
        format!("k = [\"{}\"].join('')", row.join("\", \""))
    });
    run("under each other", &|row| {
        format!("k = (\n{})\n", each(row, |_, p| format!("  \"{p}\"\n")))
    });
    run("operator", &|row| {
        format!("k = \"{}\"", row.join("\" ^ \""))
    });
    run("define", &|row| {
        format!("#define K \"{}\"\n", row.join("\" \""))
    });
    run("plus", &|row| format!("k = \"{}\"", row.join("\" + \"")));
    run("numbered", &|row| {
        format!("{{{}}}", each(row, |n, p| format!("\"{n}\": \"{p}\", ")))
    });
    run("table", &|row| {
        format!(
            "| n | c |\n|---|---|{}\n",
            each(row, |n, p| format!("\n| {n} | {p} |"))
        )
    });
    run("continued", &|row| format!("K={}", row.join("\\\n")));
    run("tags", &|row| row.join("<b></b>"));
    run("format", &|row| {
        format!(
            "k = \"{}\" % (\"{}\")",
            "%s".repeat(row.len()),
            row.join("\", \"")
        )
    });
    run("counted", &|row| {
        each(row, |n, p| format!("k [{}/{}] {p}\n", n + 1, row.len()))
    });
    run("array", &|row| serde_json::json!({ "k": row }).to_string());
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn codes_in_rows_of_any_length() {
    let mut missed = Vec::new();
    let mut run = |name: &str, write: &dyn Fn(&[String]) -> String| {
        missed.extend(check(name, 1, write));
    };
    let code = |p: &str| p.as_bytes()[0];
    run("decimal", &|row| {
        format!("bytes({})", each(row, |_, p| format!("{}, ", code(p))))
    });
    run("chr", &|row| each(row, |_, p| format!("chr({}).", code(p))));
    run("array", &|row| {
        let codes: Vec<_> = row.iter().map(|p| code(p)).collect();
        serde_json::json!({ "k": codes }).to_string()
    });
    run("chars", &|row| {
        format!("{}1", each(row, |_, p| format!("[char]{}+", code(p))))
    });
    run("hex pairs", &|row| {
        each(row, |_, p| format!("{:02x} ", code(p)))
    });
    run("singles", &|row| {
        serde_json::json!({ "k": row }).to_string()
    });
    run("spaced", &|row| format!("k: {}", row.join(".")));
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn parts_in_rows_of_any_length() {
    let mut missed = Vec::new();
    for (len, name) in [(2, "text"), (3, "delta"), (6, "text"), (20, "text")] {
        missed.extend(check(&format!("blocks of {len}"), len, |row| {
            let blocks: Vec<_> = row
                .iter()
                .map(|p| serde_json::json!({"type": "text", name: p}))
                .collect();
            serde_json::json!({ "content": blocks }).to_string()
        }));
        missed.extend(check(&format!("array of {len}"), len, |row| {
            serde_json::json!({ "rows": row }).to_string()
        }));
    }
    let many = vec!["a b"; 300_000];
    let text = serde_json::json!({ "many": many, "k": cut(&token(), 1) }).to_string();
    assert!(is_token(&text), "behind many cells");
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Pieces of so many characters.
fn cut(text: &str, len: usize) -> Vec<&str> {
    (0..text.len())
        .step_by(len)
        .map(|at| &text[at..text.len().min(at + len)])
        .collect()
}

#[test]
fn numbers_read_out_in_rows_of_any_length() {
    let words = "zero one two three four five six seven eight nine";
    let words: Vec<_> = words.split(' ').collect();
    let said = |digits: &str| -> String {
        let digits = digits.bytes().map(|b| words[usize::from(b - b'0')]);
        digits.collect::<Vec<_>>().join(" ")
    };
    let morse = |digits: &str| -> String {
        let digit = |b: u8| -> String {
            let n = usize::from(b - b'0');
            let dot = |i: usize| if n <= 5 { i < n } else { i >= n - 5 };
            (0..5).map(|i| if dot(i) { '.' } else { '-' }).collect()
        };
        digits.bytes().map(digit).collect::<Vec<_>>().join(" ")
    };
    let card = "4012888888881881";
    for n in [0, 100, 240, 250, 500, 505, 510, 1_020, 5_000] {
        // Ones and twos alone are no mark of such a row.
        for filler in ["7", "1"] {
            let before = filler.repeat(n);
            let is_card = |text: &str| found(text, Category::Pii, "card");
            let text = format!("{} colon {} is my card", said(&before), said(card));
            assert!(is_card(&text), "{n} words before");
            let text = format!("{} / {} is my card", morse(&before), morse(card));
            assert!(is_card(&text), "{n} signs before: {text}");
        }
    }
}
