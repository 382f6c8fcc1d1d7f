//! How long something is hides nothing: a secret behind or across any bound of a reader is found, or the scan says that it
//! did not look at everything.

use base64::Engine as _;
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

#[test]
fn marks_of_other_rows_between_do_not_cut_a_list() {
    let token = token();
    let (a, b) = token.split_at(12);
    let text = format!("k = [\"{a}\", \"{b}\", \" three seven suffix\"].join('')");
    assert!(is_token(&text));
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
    let affordable = BEFORE.into_iter().filter(move |n| n * len < 100_000);
    affordable.map(move |n| {
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

/// A signed token with so many bytes of claims.
fn jwt(claims: usize) -> String {
    let mut body = String::new();
    let mut state = 7u32;
    while body.len() < claims {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        body.push_str(&format!("k{:x}v", state >> 8));
    }
    let claims = format!("{{\"sub\":\"ana\",\"scope\":\"{body}\"}}");
    let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let part = |text: &str| engine.encode(text);
    let head = part("{\"alg\":\"HS256\",\"typ\":\"JWT\"}");
    let mac = part("q9Zx71kLw0Pf3TbVy6Rm2NsHd8Gc5Ja4");
    format!("{head}.{}.{mac}", part(&claims))
}

#[test]
fn pieces_and_gaps_of_any_length() {
    let mut missed = Vec::new();
    let mut run = |name: &str, text: String, rule: &str| {
        if !found(&text, Category::Secret, rule) {
            missed.push(name.to_owned());
        }
    };
    let token = token();
    let (a, b) = token.split_at(12);
    for n in [1usize, 70, 600, 9_000] {
        let gap = " ".repeat(n);
        run(
            "appended far apart",
            format!("s.append(\"{a}\");{gap}s.append(\"{b}\");"),
            "github-pat",
        );
        run(
            "added far apart",
            format!("s += \"{a}\"{gap}\ns += \"{b}\""),
            "github-pat",
        );
        run(
            "concat far apart",
            format!("concat(\"{a}\",{gap}\"{b}\")"),
            "github-pat",
        );
        run(
            "continued, indented",
            format!("K={a}\\\n{gap}{b}"),
            "github-pat",
        );
        run(
            "tag",
            format!("{a}<span title='{gap}'>{b}</span>"),
            "github-pat",
        );
        let words = "word ".repeat(n);
        let rotated: String = token
            .bytes()
            .map(|c| match c {
                b'a'..=b'z' => char::from((c - b'a' + 13) % 26 + b'a'),
                b'A'..=b'Z' => char::from((c - b'A' + 13) % 26 + b'A'),
                c => char::from(c),
            })
            .collect();
        run(
            "rot13 line",
            format!("rot13: {words}{rotated}"),
            "github-pat",
        );
        run(
            "document",
            format!("{{\\rtf1 {words}\\b {a}\\b0 {b}}}"),
            "github-pat",
        );
        let engine = base64::engine::general_purpose::STANDARD;
        let reversed: String = engine
            .encode(format!("{words}{token}"))
            .chars()
            .rev()
            .collect();
        run("base64 backwards", format!("k {reversed} ok"), "github-pat");
        // As strides and as chunks.
        let row: Vec<String> = "abcdefgh"
            .repeat(n)
            .into_bytes()
            .into_iter()
            .chain(*b"--------")
            .chain(token.bytes())
            .collect::<Vec<_>>()
            .chunks(8)
            .map(|c| String::from_utf8_lossy(c).into_owned())
            .collect();
        run("stride", format!("k='{}'", row.join("<br>")), "github-pat");
        run("chunks", format!("k='{}'", row.join(" ")), "github-pat");
        let nested = format!(
            "{}{}{}",
            "[".repeat(n),
            serde_json::json!({ "k": cut(&token, 1) }),
            "]".repeat(n)
        );
        run("nested", nested, "github-pat");
        let base58 = base58(format!("{} {token}", "word ".repeat(n.min(500))).as_bytes());
        run("base58", format!("k {base58} ok"), "github-pat");
    }
    for claims in [100, 400, 1_500] {
        let jwt = jwt(claims);
        run("plain", jwt.clone(), "jwt");
        run("dots", jwt.replace('.', "%2E"), "jwt");
        run("first letter", jwt.replacen('e', "%65", 1), "jwt");
        run("entities", jwt.replace('.', "&#46;"), "jwt");
        run("mail", cut(&jwt, 75).join("=\n"), "jwt");
        for pieces in [2, 3, 5, 12] {
            let row = cut(&jwt, jwt.len().div_ceil(pieces));
            run(
                &format!("plus {claims} {pieces}"),
                format!("k = \"{}\"", row.join("\" + \"")),
                "jwt",
            );
            run(
                &format!("appended {claims} {pieces}"),
                row.iter()
                    .map(|p| format!("s.append(\"{p}\");\n"))
                    .collect(),
                "jwt",
            );
            run(
                &format!("added {claims} {pieces}"),
                format!("s = \"{}\"", row.join("\"\ns += \"")),
                "jwt",
            );
            run(
                &format!("continued {claims} {pieces}"),
                format!("K={}", row.join("\\\n")),
                "jwt",
            );
            run(
                &format!("array {claims} {pieces}"),
                serde_json::json!({ "k": row }).to_string(),
                "jwt",
            );
            let blocks: Vec<_> = row
                .iter()
                .map(|p| serde_json::json!({"type": "text", "text": p}))
                .collect();
            run(
                &format!("blocks {claims} {pieces}"),
                serde_json::json!({ "content": blocks }).to_string(),
                "jwt",
            );
            let lines: String = row
                .iter()
                .enumerate()
                .map(|(n, p)| format!("{}. {p}\n", n + 1))
                .collect();
            run(&format!("lines {claims} {pieces}"), lines, "jwt");
            let names: Vec<String> = (0..row.len()).map(|n| format!("p{n}")).collect();
            let given: String = row
                .iter()
                .zip(&names)
                .map(|(p, n)| format!("{n} = '{p}'\n"))
                .collect();
            if claims == 100 {
                run(
                    &format!("names {claims} {pieces}"),
                    format!("{given}f({})", names.join(" + ")),
                    "jwt",
                );
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// The bytes as one large number.
fn base58(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    let mut digits: Vec<u32> = Vec::new();
    for byte in bytes {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            carry += *digit << 8;
            (*digit, carry) = (carry % 58, carry / 58);
        }
        while carry > 0 {
            digits.push(carry % 58);
            carry /= 58;
        }
    }
    let digits = digits.iter().rev().map(|d| char::from(DIGITS[*d as usize]));
    digits.collect()
}

#[test]
fn blanks_hide_no_command_and_no_key() {
    let blanks = "\n".repeat(500);
    let text = serde_json::json!({ "command": format!("cat ~/.aws/credentials{blanks}") });
    assert!(found(&text.to_string(), Category::Injection, ""));
    let body = jwt(1_200).replace(['.', '_', '-'], "+");
    let key = format!("-----BEGIN PRIVATE KEY-----{blanks}{body}{blanks}-----END PRIVATE KEY-----");
    assert!(found(&key, Category::Secret, "private-key"));
}
