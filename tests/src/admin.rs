//! The admin API of a running Weir: by the command line, and by HTTP as any other program would speak it.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::Value;

use crate::http::{Conn, Response};
use crate::weir::{Weir, run};

/// Where it is, and what opens it.
pub struct Admin {
    /// Where it listens.
    pub addr: SocketAddr,
    token_file: PathBuf,
}

impl Admin {
    /// That of a `weir serve` with `hosting` in its configuration.
    pub fn of(weir: &Weir) -> Self {
        let log = weir.log();
        let url = log
            .lines()
            .find_map(|l| l.strip_prefix("weir: hosting: admin API on http://"));
        Self {
            addr: url
                .and_then(|a| a.parse().ok())
                .expect("its address in the log"),
            token_file: weir.dir().join("data/admin.token"),
        }
    }

    /// The file with its token.
    pub fn token_file(&self) -> &std::path::Path {
        &self.token_file
    }

    /// Runs `weir` against it: whether it succeeded, what it printed, what it said.
    pub fn cli(&self, args: &[&str], stdin: &str) -> (bool, String, String) {
        let (api, token) = (
            format!("http://{}", self.addr),
            self.token_file.display().to_string(),
        );
        let place = ["--api", &api, "--token-file", &token];
        let output = run(&[args, &place].concat(), stdin);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.success(),
            text(&output.stdout),
            text(&output.stderr),
        )
    }

    /// One request with its token.
    pub fn request(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> Response {
        let token = std::fs::read_to_string(&self.token_file).expect("a token");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: {kind}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.addr,
            token.trim(),
            body.len()
        );
        let mut conn = Conn::open(self.addr);
        conn.send([head.as_bytes(), body].concat());
        conn.response()
            .unwrap_or_else(|e| panic!("{method} {path}: {e}"))
    }

    /// The same with JSON both ways.
    pub fn json(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let answer = self.request(method, path, "application/json", body.as_bytes());
        (
            answer.status(),
            serde_json::from_slice(&answer.body).unwrap_or_default(),
        )
    }
}
