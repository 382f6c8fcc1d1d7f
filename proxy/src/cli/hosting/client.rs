//! One HTTP request to the admin API.

use std::convert::Infallible;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use domain::Secret;
use futures_util::stream;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST};
use http::{Method, Request, Response, Uri};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::ApiArgs;

/// The longest answer that is read whole, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Bytes of an upload that are sent at once.
const PART_BYTES: usize = 64 << 10;

/// The admin API.
pub struct Client {
    authority: String,
    token: Secret,
}

type Body = BoxBody<Bytes, Infallible>;

impl Client {
    /// Reads the token; connects to nothing.
    pub fn new(args: &ApiArgs) -> anyhow::Result<Self> {
        let uri: Uri = args
            .api
            .parse()
            .with_context(|| format!("--api {}", args.api))?;
        let (Some("http"), Some(authority), "/" | "") =
            (uri.scheme_str(), uri.authority(), uri.path())
        else {
            bail!("--api {}: write it as http://HOST:PORT", args.api);
        };
        let token = match std::env::var("WEIR_ADMIN_TOKEN") {
            Ok(token) => token,
            Err(_) => std::fs::read_to_string(&args.token_file).with_context(|| {
                let file = args.token_file.display();
                format!("the admin token cannot be read from {file}; name its file with --token-file (it is in the data folder of `weir serve`)")
            })?,
        };
        Ok(Self {
            authority: authority.to_string(),
            token: Secret::new(token.trim()),
        })
    }

    /// GET, as JSON.
    pub async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.json(Method::GET, path, Bytes::new()).await
    }

    /// A request with JSON, answered with JSON or nothing.
    pub async fn send(&self, method: Method, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.json(method, path, body.to_string().into()).await
    }

    /// A request with bytes, answered with JSON or nothing.
    pub async fn json(&self, method: Method, path: &str, body: Bytes) -> anyhow::Result<Value> {
        let length = body.len();
        let answer = self
            .request(method, path, Full::new(body).boxed(), length)
            .await?;
        whole(answer).await
    }

    /// Sends bytes piece by piece and tells how many are out.
    pub async fn upload(
        &self,
        path: &str,
        bytes: Bytes,
        mut told: impl FnMut(usize) + Send + Sync + 'static,
    ) -> anyhow::Result<Value> {
        let length = bytes.len();
        let parts = (0..length).step_by(PART_BYTES).map(move |from| {
            let to = (from + PART_BYTES).min(length);
            told(to);
            Ok(Frame::data(bytes.slice(from..to)))
        });
        let body = StreamBody::new(stream::iter(parts));
        let answer = self
            .request(Method::PUT, path, body.boxed(), length)
            .await?;
        whole(answer).await
    }

    /// A request whose answer is read line by line.
    pub async fn lines(&self, method: Method, path: &str) -> anyhow::Result<Lines> {
        let answer = self
            .request(method, path, Full::new(Bytes::new()).boxed(), 0)
            .await?;
        if !answer.status().is_success() {
            whole(answer).await?;
            bail!("the admin API gave an answer without words");
        }
        Ok(Lines {
            body: answer.into_body(),
            rest: Vec::new(),
        })
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        body: Body,
        length: usize,
    ) -> anyhow::Result<Response<Incoming>> {
        let stream = TcpStream::connect(&self.authority).await;
        let stream = stream.with_context(|| {
            format!("the admin API at {} cannot be reached; is `weir serve` running, with `hosting` in its configuration?", self.authority)
        })?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.authority)
            .header(AUTHORIZATION, format!("Bearer {}", self.token.expose()))
            .header(CONTENT_TYPE, "application/json")
            .header(CONTENT_LENGTH, length)
            .body(body)?;
        sender
            .send_request(request)
            .await
            .context("the admin API broke off")
    }
}

/// The whole answer; an error of the API becomes one of ours, with its details.
async fn whole(answer: Response<Incoming>) -> anyhow::Result<Value> {
    let status = answer.status();
    let bytes = Limited::new(answer.into_body(), ANSWER_BYTES_MAX)
        .collect()
        .await;
    let bytes = bytes
        .map_err(|_| anyhow::anyhow!("the answer of the admin API broke off"))?
        .to_bytes();
    let value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    if status.is_success() {
        return Ok(value);
    }
    bail!(
        "{}",
        error_text(&value["error"])
            .unwrap_or_else(|| format!("the admin API answered with status {status}"))
    );
}

/// Message and details of an error.
pub fn error_text(error: &Value) -> Option<String> {
    let mut text = error["message"].as_str()?.to_owned();
    for detail in error["details"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        text.push_str("\n  ");
        text.push_str(detail);
    }
    Some(text)
}

/// The lines of an answer, as they come.
pub struct Lines {
    body: Incoming,
    rest: Vec<u8>,
}

impl Lines {
    /// The next line, without its end.
    pub async fn next(&mut self) -> anyhow::Result<Option<String>> {
        loop {
            if let Some(end) = self.rest.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()));
            }
            if self.rest.len() > ANSWER_BYTES_MAX {
                bail!("a line of the admin API is too long");
            }
            match self
                .body
                .frame()
                .await
                .transpose()
                .context("the admin API broke off")?
            {
                Some(frame) => self.rest.extend(frame.into_data().unwrap_or_default()),
                None => return Ok(None),
            }
        }
    }
}
