//! Rules, lists of values, allowlists and redaction forms of a tenant, through a running Weir.

use weir_tests::config::{Config, SERVER, TENANT};
use weir_tests::{Client, Era, Upstream, Value, Weir, json};

/// A server that says back what it was given.
fn echo() -> Upstream {
    Upstream::mcp(|_| None)
}

fn say(client: &mut Client, text: &str) -> (bool, String) {
    let answer = client.call("echo", json!({ "message": text }));
    let blocked = answer.result()["isError"] == json!(true);
    (blocked, answer.first_text().to_owned())
}

/// Two tenants with a server each, and a key for both.
fn two_tenants(upstream: &Upstream) -> (Config, String, String) {
    let mut config = Config::new(&upstream.url()).set(
        "tenants.other.servers.theirs.upstream",
        json!({ "url": upstream.url() }),
    );
    let ours = config.key(TENANT, "ours");
    let theirs = config.key("other", "theirs");
    (config, ours, theirs)
}

fn client(weir: &Weir, server: &str, key: &str) -> Client {
    let mut client = Client::new(weir, Era::Stateless, &[("x-api-key", key)]);
    client.path = format!("/servers/{server}/mcp");
    client
}

const RULE: &str = "rules:
- id: house-ticket
  title: House ticket
  category: secret
  keywords: [htk-]
  pattern: 'htk-[0-9]{12}'
  examples: ['htk-483920175563']
";

#[test]
fn a_tenants_rules_judge_its_own_traffic_and_are_reloaded() {
    let upstream = echo();
    let (config, ours, theirs) = two_tenants(&upstream);
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("own.yml");
    std::fs::write(&file, RULE).expect("writable");
    let config = config.set(&format!("tenants.{TENANT}.rules"), json!([file]));
    let weir = Weir::serve(&config);
    let mut our = client(&weir, SERVER, &ours);
    let mut their = client(&weir, "theirs", &theirs);
    let text = "see htk-483920175563";
    let (blocked, said) = say(&mut our, text);
    assert!(blocked && said.contains("house-ticket"), "{said}");
    assert_eq!(say(&mut their, text), (false, format!("Echo: {text}")));

    // A bad file is refused whole, with its line; the old rules stay.
    std::fs::write(&file, RULE.replace("{12}'", "{12'")).expect("writable");
    weir.wait_for_log("the new configuration is refused");
    let log = weir.log();
    assert!(
        log.contains("own.yml:6: rule house-ticket: pattern"),
        "{log}"
    );
    assert!(say(&mut our, text).0);

    // A good one is taken.
    std::fs::write(&file, RULE.replace("htk-", "hxk-")).expect("writable");
    weir.wait_for_log("configuration reloaded");
    assert_eq!(say(&mut our, text), (false, format!("Echo: {text}")));
    assert!(say(&mut our, "see hxk-483920175563").0);
}

#[test]
fn listed_values_do_not_come_out_in_any_dress() {
    let upstream = echo();
    let (config, ours, theirs) = two_tenants(&upstream);
    let value = "blue-walrus-climbs-9-trees";
    let hex: String = value.bytes().map(|b| format!("{b:02x}")).collect();
    let config = config
        .set(
            &format!("tenants.{TENANT}.values.vault.list"),
            json!([value]),
        )
        .bind(json!({ "rule": "vault", "action": "redact" }));
    let weir = Weir::serve(&config);
    let mut our = client(&weir, SERVER, &ours);
    let mut their = client(&weir, "theirs", &theirs);
    for dress in [value.to_owned(), format!("x{value}x"), hex] {
        let (blocked, said) = say(&mut our, &format!("a {dress} b"));
        assert!(!blocked && said.contains("[REDACTED:vault]"), "{said}");
        assert!(!said.contains(&dress), "{said}");
        assert!(say(&mut their, &dress).1.contains(&dress));
    }
    assert_eq!(
        say(&mut our, "blue-walrus-climbs-8-trees").1,
        "Echo: blue-walrus-climbs-8-trees"
    );
    let log = weir.log();
    assert!(!log.contains(value), "{log}");
}

#[test]
fn redaction_takes_the_form_that_policy_names() {
    let upstream = echo();
    let card = "4539 5787 6362 1486";
    let mail = "anna.lindqvist@nordwind-logistik.de";
    let line = |rule: &str, form: &str| json!({ "rule": rule, "action": "redact", "form": form });
    let config = Config::new(&upstream.url())
        .bind(line("credit-card*", "keep_last_4"))
        .bind(line("email", "format_preserving"))
        .bind(line("ipv4", "hash"))
        .bind(json!({ "rule": "iban", "action": "redact" }));
    let weir = Weir::serve(&config);
    let mut client = Client::connect(&weir, Era::Stateless);

    let (_, said) = say(&mut client, &format!("card number {card} ok"));
    assert_eq!(said, "Echo: card number ****1486 ok");

    let (blocked, said) = say(&mut client, &format!("write to {mail}!"));
    let made_up = said
        .trim_start_matches("Echo: write to ")
        .trim_end_matches('!');
    assert!(
        !blocked && made_up.len() == mail.len() && made_up != mail,
        "{said}"
    );
    let punctuation = |text: &str| -> Vec<(usize, char)> {
        let marks = text
            .char_indices()
            .filter(|(_, c)| !c.is_ascii_alphanumeric());
        marks.collect()
    };
    assert_eq!(punctuation(made_up), punctuation(mail));
    let again = say(&mut client, &format!("write to {mail}!")).1;
    assert_eq!(again, said, "equal values become equal");

    let (_, said) = say(&mut client, "host 81.169.145.78 is up");
    assert!(said.starts_with("Echo: host [HASH:ipv4:"), "{said}");
    // Under an encoding a form cannot be kept: the placeholder stands in.
    let percent: String = mail.bytes().map(|b| format!("%{b:02X}")).collect();
    let (_, said) = say(&mut client, &format!("to={percent}"));
    assert!(said.contains("[REDACTED:email]"), "{said}");
}

#[test]
fn an_allowed_value_passes_and_is_counted() {
    let upstream = echo();
    let mail = "anna.lindqvist@nordwind-logistik.de";
    let other = "bert.lindqvist@nordwind-logistik.de";
    let block = |config: Config| config.bind(json!({ "rule": "email", "action": "block" }));
    let config = block(Config::new(&upstream.url()));
    let weir = Weir::serve(&config);
    let mut client = Client::connect(&weir, Era::Stateless);
    assert!(say(&mut client, mail).0);

    // The audit record names the value without showing it; the same words allow it.
    let fingerprint = fingerprints(&weir, "email").pop().expect("a finding");
    let allow = json!([{ "value": fingerprint, "tool": "echo" }]);
    let allowed =
        block(Config::new(&upstream.url())).set(&format!("tenants.{TENANT}.policy.allow"), allow);
    weir.rewrite_config(&allowed.text());
    weir.wait_for_log("configuration reloaded");
    let mut client = Client::connect(&weir, Era::Stateless);
    assert_eq!(say(&mut client, mail), (false, format!("Echo: {mail}")));
    assert!(say(&mut client, other).0);
    assert!(say(&mut client, &format!("{mail} {other}")).0);

    let (_, metrics) = weir.admin_get("/metrics");
    let counted = metrics
        .lines()
        .find(|l| l.starts_with("weir_findings_allowed_total"))
        .unwrap_or_else(|| panic!("{metrics}"));
    assert!(!counted.ends_with(" 0"), "{counted}");
    let by: Vec<Value> = findings(&weir, "email")
        .into_iter()
        .filter(|f| f["action"] == "log")
        .map(|f| f["allowed_by"].clone())
        .collect();
    assert!(
        !by.is_empty() && by.iter().all(|b| b == "tenant[0]"),
        "{by:?}"
    );
}

fn findings(weir: &Weir, rule: &str) -> Vec<Value> {
    let dir = weir.dir().join("data");
    let dir = dir.to_str().expect("a plain path");
    let output = weir_tests::weir::run(
        &[
            "audit",
            "search",
            "--json",
            "--oldest-first",
            "--data-dir",
            dir,
        ],
        "",
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let records = text
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).expect("JSON"));
    records
        .flat_map(|r| r["findings"].as_array().cloned().unwrap_or_default())
        .filter(|f| f["rule"] == rule)
        .collect()
}

fn fingerprints(weir: &Weir, rule: &str) -> Vec<String> {
    let found = findings(weir, rule);
    let prints = found.iter().filter_map(|f| f["fingerprint"].as_str());
    prints.map(str::to_owned).collect()
}

#[test]
fn what_is_only_logged_hides_nothing_that_is_stopped() {
    let upstream = echo();
    let line = |rule: &str, action: &str| json!({ "rule": rule, "action": action });
    let config = Config::new(&upstream.url())
        .bind(line("url-credentials", "log"))
        .bind(line("github-pat", "block"))
        .bind(line("phone-*", "log"))
        .bind(line("us-bank-account", "redact"));
    let weir = Weir::serve(&config);
    let mut client = Client::connect(&weir, Era::Stateless);
    let token = ["gh", "p_KN3YGvbVW3Gn7Qz0h", "piuZKWieDGxjq0uUkaj"].concat();
    let (blocked, said) = say(
        &mut client,
        &format!("clone https://bot:{token}@github.com/a/b"),
    );
    assert!(blocked && said.contains("github-pat"), "{said}");
    let number = "2127023599";
    let (_, said) = say(
        &mut client,
        &format!("my bank account number is {number}, call me"),
    );
    assert!(!said.contains(number), "{said}");
}

#[test]
fn a_number_is_what_it_means() {
    let upstream = echo();
    let config =
        Config::new(&upstream.url()).bind(json!({ "rule": "credit-card*", "action": "block" }));
    let weir = Weir::serve(&config);
    let mut client = Client::connect(&weir, Era::Stateless);
    for number in [
        "4539578763621486",
        "4539578763621486.0",
        "4.539578763621486e15",
        "4539578763621486E+00",
        "45395787636214860e-1",
    ] {
        // As it is written: a JSON library would write it in its own way.
        let message = client.message(
            "tools/call",
            json!({ "name": "echo", "arguments": { "card": "HERE" } }),
        );
        let body = message.to_string().replace("\"HERE\"", number);
        let answer = client.post_bytes(body.as_bytes(), &client.headers_for(&message));
        let answer = answer.expect("an answer");
        assert!(
            answer.text().contains("\"isError\":true"),
            "{number}: {}",
            answer.text()
        );
    }
}
