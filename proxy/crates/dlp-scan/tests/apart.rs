//! Values that stand apart from their names: below them, compared with them, behind other arguments.

use dlp_scan::{Budget, Category, FingerprintKey, LeafInput, LeafKind, RuleSet, Scanner};

/// The texts of the secrets in a message with this text.
fn secrets(text: &str) -> Vec<String> {
    let leaf = LeafInput {
        text,
        kind: LeafKind::String,
        name: Some("text"),
    };
    let mut scanner = Scanner::new(FingerprintKey::new([5; 32]));
    let outcome = scanner.scan(
        RuleSet::builtin(),
        std::iter::once(leaf),
        &Budget::default(),
    );
    let secret = |f: &&dlp_scan::Finding| f.category == Category::Secret;
    let found = outcome.findings.iter().filter(secret);
    found
        .map(|f| text[f.start as usize..f.end as usize].to_owned())
        .collect()
}

const VALUE: &str = "kR7wZ2mXq9LtB4vNc8HsY1pJ";

#[test]
fn values_apart_from_their_names_are_found() {
    for form in [
        "name = \"/prod/db_password\"\ntype = \"SecureString\"\nvalue = \"VALUE\"\n",
        "DEPLOY_PASSWORD:\n    value: \"VALUE\"\n    description: \"pw\"\n",
        "DBPassword:\n    Type: String\n    Default: VALUE\n",
        "inputs:\n  api-token:\n    description: what to call with\n    required: true\n    default: VALUE\n",
        "{\"name\":\"Password\",\"type\":\"textbox\",\"ref\":\"e14\",\"value\":\"VALUE\"}",
        "{\"Client_Secret__c\":\"VALUE\"}",
        "if token == \"VALUE\":\n    pass\n",
        "if (req.headers.api_key !== 'VALUE') return;",
        "if ($http_x_api_key != \"VALUE\") { return 403; }",
        "parser.add_argument('--password', type=str, default='VALUE')",
        "@click.option(\"--api-key\", default=\"VALUE\", help=\"h\")",
        "UPDATE users SET password = MD5('VALUE') WHERE id = 7",
        "UPDATE users SET password = crypt('VALUE', gen_salt('bf'))",
        "api_token =3D \"VALUE\"",
        "- **API Key** — `VALUE`",
        "~ password = \"3LFCpfJn0JMHDCoOhP\" -> \"VALUE\"",
        "echo -n \"VALUE\" | gcloud secrets create db-password --data-file=-",
    ] {
        let found = secrets(&form.replace("VALUE", VALUE));
        assert!(found.iter().any(|f| f == VALUE), "{form}: {found:?}");
    }
    for chosen in [
        "ADMIN_PASSWORD=lagoonOrchid1",
        "DB_PASSWORD=0xLE@XPzpL#9567",
    ] {
        assert_eq!(secrets(chosen).len(), 1, "{chosen}");
    }
}

/// Some values without order have letters in the order of the alphabet, or pairs of letters as words have.
#[test]
fn chance_makes_no_placeholder() {
    for text in [
        "api_key: \"c252407c0f949ab805c4d6282e1058f6\"",
        "{\"password\":\"SeYP6KLTD1eSU376XiAni9sT\"}",
        "{\"password\":\"3KizEd3urx3LdroPheglpp3W\"}",
    ] {
        assert_eq!(secrets(text).len(), 1, "{text}");
    }
    for text in [
        "api_key: \"a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6\"",
        "{\"password\":\"put_the_password_of_the_server_here\"}",
    ] {
        assert_eq!(secrets(text), [""; 0], "{text}");
    }
}

#[test]
fn what_stands_there_and_is_none_stays() {
    for text in [
        "name = \"/prod/db_password\"\ntype = \"SecureString\"\nvalue = var.db_password\n",
        "password:\n    type: string\n    description: the password\n    default: \"\"\n",
        "api-token:\n    description: token\n    default: none\n",
        "token:\n  kind: Secret\n  name: deploy\nother: kR7wZ2mXq9LtB4vNc8HsY1pJ\n",
        "if token == \"identifier\":",
        "if password != 'wrong-password':",
        "if (token.type === 'punctuation') return;",
        "parser.add_argument('--password', default='changeme')",
        "parser.add_argument('--token', default=os.environ['TOKEN'])",
        "UPDATE users SET password = MD5(new_password)",
        "DB_PASSWORD=0x1F4A",
        "password = LoginForm1",
        "incident_key: 5d099ac8321bb966f4eee42e0883cfef",
    ] {
        assert_eq!(secrets(text), [""; 0], "{text}");
    }
}
