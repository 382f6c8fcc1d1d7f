//! `weir client-config`: what to put into which client's settings.
//!
//! Each client wants its own form. Claude Desktop starts programs only, so a URL needs the bridge
//! `mcp-remote`; Claude Code takes a command; Cursor and VS Code take JSON and fill in the key
//! themselves, so that it stands in no file.

use std::io::Write;

use clap::ValueEnum;
use serde_json::{Map, Value, json};

const URL_DEFAULT: &str = "http://127.0.0.1:8080/mcp";

/// `weir client-config ...`
#[derive(Debug, clap::Args)]
pub struct ClientConfigArgs {
    /// URL of the server as Weir serves it [default: http://127.0.0.1:8080/mcp]
    #[arg(long, conflicts_with = "command", value_parser = parse_url)]
    pub url: Option<String>,
    /// The environment variable that holds the API key; leave it out where no key is asked for
    #[arg(long, value_name = "NAME", conflicts_with = "command", value_parser = parse_variable)]
    pub key_env: Option<String>,
    /// Which client; for a single one only its snippet goes to standard output
    #[arg(long, value_enum, default_value_t = Client::All)]
    pub client: Client,
    /// What the client shall call the server
    #[arg(long, default_value = "weir", value_parser = parse_name)]
    pub name: String,
    /// A stdio server's own command, to be wrapped by `weir stdio`
    #[arg(last = true, value_name = "CMD ARGS")]
    pub command: Vec<String>,
}

/// The clients whose form is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Client {
    /// Claude Desktop
    ClaudeDesktop,
    /// Claude Code
    ClaudeCode,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    Vscode,
    /// All of them
    All,
}

/// Runs it. `exe` is the path of this program, for clients that start it.
///
/// # Errors
/// Only if `out` or `err` cannot be written.
pub fn run(
    args: &ClientConfigArgs,
    exe: &str,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> std::io::Result<()> {
    if args.client != Client::All {
        writeln!(err, "{}:", place(args.client, args))?;
        return writeln!(out, "{}", snippet(args.client, args, exe));
    }
    for (i, client) in [
        Client::ClaudeDesktop,
        Client::ClaudeCode,
        Client::Cursor,
        Client::Vscode,
    ]
    .into_iter()
    .enumerate()
    {
        let gap = if i == 0 { "" } else { "\n" };
        writeln!(out, "{gap}# {}:\n", place(client, args))?;
        writeln!(out, "{}", snippet(client, args, exe))?;
    }
    Ok(())
}

/// Where the snippet belongs.
fn place(client: Client, args: &ClientConfigArgs) -> String {
    let key = args.key_env.is_some();
    match client {
        Client::ClaudeDesktop => format!(
            "Claude Desktop: Settings > Developer > Edit Config (claude_desktop_config.json){}",
            if key { ", with the key put in" } else { "" }
        ),
        Client::ClaudeCode => "Claude Code: run this in a shell".into(),
        Client::Cursor => "Cursor: ~/.cursor/mcp.json, or .cursor/mcp.json in a project".into(),
        Client::Vscode => format!(
            "VS Code: .vscode/mcp.json, or the command \"MCP: Open User Configuration\"{}",
            if key {
                "; it asks for the key once"
            } else {
                ""
            }
        ),
        Client::All => "all clients".into(),
    }
}

fn snippet(client: Client, args: &ClientConfigArgs, exe: &str) -> String {
    let server = match client {
        Client::ClaudeCode | Client::All => return claude_code(args, exe),
        Client::ClaudeDesktop => claude_desktop(args, exe),
        Client::Cursor => cursor(args, exe),
        Client::Vscode => vscode(args, exe),
    };
    let mut servers = Map::new();
    servers.insert(args.name.clone(), server);
    let whole = match (client, &args.key_env) {
        (Client::Vscode, Some(name)) => json!({
            "inputs": [{
                "type": "promptString",
                "id": input_id(name),
                "description": format!("API key of {}", args.name),
                "password": true,
            }],
            "servers": servers,
        }),
        (Client::Vscode, None) => json!({ "servers": servers }),
        _ => json!({ "mcpServers": servers }),
    };
    format!("{whole:#}")
}

fn claude_desktop(args: &ClientConfigArgs, exe: &str) -> Value {
    let Some(url) = url(args) else {
        return wrapped(args, exe);
    };
    let mut bridge = vec!["-y", "mcp-remote", url, "--transport", "http-only"];
    // The bridge refuses clear text to other machines unless told.
    if url.starts_with("http://") && !is_local(url) {
        bridge.push("--allow-http");
    }
    let Some(name) = &args.key_env else {
        return json!({ "command": "npx", "args": bridge });
    };
    // No space after the colon: on Windows an argument with a space arrives in pieces.
    let header = format!("X-API-Key:${{{name}}}");
    bridge.extend(["--header", &header]);
    json!({
        "command": "npx",
        "args": bridge,
        "env": { name.as_str(): "PUT THE KEY HERE" },
    })
}

fn claude_code(args: &ClientConfigArgs, exe: &str) -> String {
    let name = &args.name;
    let Some(url) = url(args) else {
        let words = [exe, "stdio", "--"].into_iter();
        let words: Vec<String> = words
            .chain(args.command.iter().map(String::as_str))
            .map(shell_word)
            .collect();
        return format!("claude mcp add {name} -- {}", words.join(" "));
    };
    let add = format!("claude mcp add --transport http {name} {}", shell_word(url));
    match &args.key_env {
        Some(variable) => format!("{add} --header \"X-API-Key: ${variable}\""),
        None => add,
    }
}

fn cursor(args: &ClientConfigArgs, exe: &str) -> Value {
    match (url(args), &args.key_env) {
        (None, _) => wrapped(args, exe),
        (Some(url), None) => json!({ "url": url }),
        (Some(url), Some(name)) => {
            json!({ "url": url, "headers": { "X-API-Key": format!("${{env:{name}}}") } })
        }
    }
}

fn vscode(args: &ClientConfigArgs, exe: &str) -> Value {
    match (url(args), &args.key_env) {
        (None, _) => {
            let mut server = json!({ "type": "stdio" });
            if let (Value::Object(to), Value::Object(from)) = (&mut server, wrapped(args, exe)) {
                to.extend(from);
            }
            server
        }
        (Some(url), None) => json!({ "type": "http", "url": url }),
        (Some(url), Some(name)) => json!({
            "type": "http",
            "url": url,
            "headers": { "X-API-Key": format!("${{input:{}}}", input_id(name)) },
        }),
    }
}

/// The server's own command behind `weir stdio`.
fn wrapped(args: &ClientConfigArgs, exe: &str) -> Value {
    let words = ["stdio", "--"].into_iter();
    let words: Vec<&str> = words
        .chain(args.command.iter().map(String::as_str))
        .collect();
    json!({ "command": exe, "args": words })
}

fn url(args: &ClientConfigArgs) -> Option<&str> {
    let default = args.command.is_empty().then_some(URL_DEFAULT);
    args.url.as_deref().or(default)
}

fn is_local(url: &str) -> bool {
    let uri = url.parse::<http::Uri>();
    let host = uri
        .as_ref()
        .ok()
        .and_then(http::Uri::host)
        .unwrap_or_default();
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

fn input_id(variable: &str) -> String {
    variable.to_ascii_lowercase().replace('_', "-")
}

/// A word as a POSIX shell reads it back.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn parse_url(text: &str) -> Result<String, String> {
    crate::config::check_url(text).map(|()| text.to_owned())
}

fn parse_variable(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if text.starts_with(|c: char| c.is_ascii_digit()) || text.is_empty() || !text.chars().all(plain)
    {
        return Err("is no name of an environment variable; use letters, digits and '_'".into());
    }
    Ok(text.to_owned())
}

fn parse_name(text: &str) -> Result<String, String> {
    domain::KeyId::parse(text)
        .ok()
        .filter(|_| {
            text.chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        })
        .map(String::from)
        .ok_or_else(|| "use letters, digits, '-' and '_'".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Cli {
        #[command(flatten)]
        args: ClientConfigArgs,
    }

    fn check(words: &str) -> Result<String, String> {
        let words = std::iter::once("x").chain(words.split_whitespace());
        let args = Cli::try_parse_from(words).map_err(|e| e.to_string())?.args;
        let (mut out, mut err) = (Vec::new(), Vec::new());
        run(&args, "/usr/bin/weir", &mut out, &mut err).unwrap();
        Ok(String::from_utf8(out).unwrap())
    }

    fn json_of(words: &str) -> Value {
        serde_json::from_str(&check(words).unwrap()).unwrap()
    }

    #[test]
    fn json_clients() {
        let cases = [
            (
                "--client claude-desktop",
                json!({"mcpServers": {"weir": {"command": "npx", "args":
                    ["-y", "mcp-remote", URL_DEFAULT, "--transport", "http-only"]}}}),
            ),
            (
                "--client claude-desktop --url http://weir.lan/mcp --key-env WEIR_KEY",
                json!({"mcpServers": {"weir": {
                    "command": "npx",
                    "args": ["-y", "mcp-remote", "http://weir.lan/mcp", "--transport", "http-only",
                        "--allow-http", "--header", "X-API-Key:${WEIR_KEY}"],
                    "env": {"WEIR_KEY": "PUT THE KEY HERE"}}}}),
            ),
            (
                "--client claude-desktop --name fs -- npx -y server-fs /srv",
                json!({"mcpServers": {"fs": {"command": "/usr/bin/weir",
                    "args": ["stdio", "--", "npx", "-y", "server-fs", "/srv"]}}}),
            ),
            (
                "--client cursor --url https://w.example/servers/a/mcp --key-env WEIR_KEY",
                json!({"mcpServers": {"weir": {"url": "https://w.example/servers/a/mcp",
                    "headers": {"X-API-Key": "${env:WEIR_KEY}"}}}}),
            ),
            (
                "--client cursor -- cmd",
                json!({"mcpServers": {"weir": {"command": "/usr/bin/weir", "args": ["stdio", "--", "cmd"]}}}),
            ),
            (
                "--client vscode --key-env WEIR_KEY",
                json!({
                    "inputs": [{"type": "promptString", "id": "weir-key",
                        "description": "API key of weir", "password": true}],
                    "servers": {"weir": {"type": "http", "url": URL_DEFAULT,
                        "headers": {"X-API-Key": "${input:weir-key}"}}}}),
            ),
            (
                "--client vscode -- cmd",
                json!({"servers": {"weir": {"type": "stdio", "command": "/usr/bin/weir",
                    "args": ["stdio", "--", "cmd"]}}}),
            ),
        ];
        for (words, expected) in cases {
            assert_eq!(json_of(words), expected, "{words}");
        }
    }

    #[test]
    fn claude_code_takes_a_command() {
        let cases = [
            (
                "",
                "claude mcp add --transport http weir http://127.0.0.1:8080/mcp\n",
            ),
            (
                "--url https://w/mcp?a=1&b=2 --key-env K",
                "claude mcp add --transport http weir 'https://w/mcp?a=1&b=2' --header \"X-API-Key: $K\"\n",
            ),
            (
                "-- a it's",
                "claude mcp add weir -- /usr/bin/weir stdio -- a 'it'\\''s'\n",
            ),
        ];
        for (words, expected) in cases {
            let words = format!("--client claude-code {words}");
            assert_eq!(check(&words).unwrap(), expected, "{words}");
        }
    }

    #[test]
    fn all_holds_each() {
        let all = check("--key-env WEIR_KEY").unwrap();
        for client in ["claude-desktop", "claude-code", "cursor", "vscode"] {
            let one = check(&format!("--key-env WEIR_KEY --client {client}")).unwrap();
            assert!(all.contains(&one), "{client}");
        }
    }

    #[test]
    fn what_would_break_a_snippet_is_refused() {
        for words in [
            "--url ftp://x",
            "--url https://u:p@x/",
            "--key-env A$B",
            "--key-env 1A",
            "--name a;b",
            "--name é",
            "--url http://x -- cmd",
            "--client emacs",
        ] {
            assert!(check(words).is_err(), "{words}");
        }
    }
}
