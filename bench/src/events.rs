//! How long an event of a stream takes from the server's hand to the client's.
//!
//! The upstream writes an event every few milliseconds with the time at which it did so in it; this program notes when the
//! event was whole on its side. Both clocks are the machine's monotonic one, so the difference is the delay. Events come one
//! by one, as they do when a tool reports progress: what is seen is the delay of a proxy at rest, not of one under load.

use crate::load::{Endpoint, histogram};
use crate::random::Random;
use crate::run::quantile_us;
use crate::target::{Kind, Target};
use crate::wire::rpc::Era;
use anyhow::{Context, bail};
use hdrhistogram::Histogram;
use nix::time::ClockId;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Events of one stream.
pub const EVENTS: u64 = 200;
/// Time between two.
pub const EVERY: Duration = Duration::from_millis(2);
/// The tool of our upstream that streams them.
pub const TOOL: &str = "ticks";
/// More bytes than this are no stream of ours.
const STREAM_BYTES_MAX: usize = 4 << 20;

/// Delays of one target's events, in microseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EventFigures {
    /// The target.
    pub target: Kind,
    /// Events of valid streams.
    pub events: u64,
    /// Half of the events take less.
    pub p50_us: f64,
    /// 99 of 100.
    pub p99_us: f64,
    /// The slowest.
    pub max_us: f64,
    /// `p50_us` over that of the pass-through that this target is compared with, measured in the same rounds.
    pub over_floor_us: Option<f64>,
    /// Why streams do not count.
    pub faults: Vec<String>,
}

/// Now, in nanoseconds of the clock that all processes of a machine share.
pub fn now_ns() -> u64 {
    ClockId::CLOCK_MONOTONIC
        .now()
        .map_or(0, |time| Duration::from(time).as_nanos() as u64)
}

/// A time as letters: digits of this length would look like the number of a card to a firewall.
pub fn letters(ns: u64) -> String {
    let digits = format!("{ns:016}");
    let letters: Vec<char> = digits
        .bytes()
        .map(|digit| char::from(digit - b'0' + b'a'))
        .collect();
    let groups: Vec<String> = letters
        .chunks(4)
        .map(|four| four.iter().collect())
        .collect();
    format!("sent {}.", groups.join("-"))
}

fn from_letters(text: &str) -> Option<u64> {
    let at = text.find("sent ")? + 5;
    let letters = &text[at..at + text[at..].find('.')?];
    let digits: Option<String> = letters
        .chars()
        .filter(|&c| c != '-')
        .map(|c| {
            ('a'..='j')
                .contains(&c)
                .then(|| char::from(c as u8 - b'a' + b'0'))
        })
        .collect();
    digits?.parse().ok()
}

/// Streams from all targets in turn, round after round.
pub fn measure(targets: &mut [Target], rounds: usize, seed: u64) -> Vec<EventFigures> {
    let mut all: Vec<(Histogram<u64>, Vec<String>)> =
        targets.iter().map(|_| (histogram(), Vec::new())).collect();
    let mut random = Random::new(seed);
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..targets.len()).collect();
        random.shuffle(&mut order);
        for at in order {
            let target = &mut targets[at];
            if target.kind.is_tls() || target.kind.is_peer() || !target.kind.calls_our_upstream() {
                continue;
            }
            target.thaw();
            let delays = stream(&mut target.endpoint, round as u64);
            target.freeze();
            match delays {
                Ok(delays) => delays
                    .iter()
                    .for_each(|&ns| all[at].0.saturating_record(ns)),
                Err(error) => all[at].1.push(format!("{error:#}")),
            }
        }
    }
    let floor = |kind: Kind| {
        let at = targets.iter().position(|target| target.kind == kind)?;
        (!all[at].0.is_empty()).then(|| quantile_us(&all[at].0, 0.5))
    };
    targets
        .iter()
        .zip(&all)
        .filter(|(_, (delays, faults))| !delays.is_empty() || !faults.is_empty())
        .map(|(target, (delays, faults))| {
            let p50_us = quantile_us(delays, 0.5);
            EventFigures {
                target: target.kind,
                events: delays.len(),
                p50_us,
                p99_us: quantile_us(delays, 0.99),
                max_us: delays.max() as f64 / 1e3,
                over_floor_us: floor(target.kind.floor())
                    .filter(|_| target.kind != Kind::Direct)
                    .map(|floor| p50_us - floor),
                faults: faults.clone(),
            }
        })
        .collect()
}

/// One stream: the delay of each of its events in nanoseconds. Every event must come once and in order, and the result last.
fn stream(endpoint: &mut Endpoint, id: u64) -> anyhow::Result<Vec<u64>> {
    endpoint.open(Era::Handshake)?;
    let mut socket = TcpStream::connect(endpoint.addr)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(Duration::from_secs(10)))?;
    let tool = endpoint.tool_name(TOOL);
    let body = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\",\"arguments\":{{\"text\":\"x\"}},\"_meta\":{{\"progressToken\":\"t{id}\"}}}}}}"
    );
    let session = endpoint
        .session
        .as_ref()
        .map_or_else(String::new, |session| {
            format!("mcp-session-id: {session}\r\n")
        });
    let request = format!(
        "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         mcp-protocol-version: 2025-11-25\r\n{session}content-length: {}\r\n\r\n{body}",
        endpoint.path,
        endpoint.host,
        body.len()
    );
    socket.write_all(request.as_bytes())?;
    let mut stream = Stream::default();
    let (mut delays, mut text) = (Vec::new(), Vec::new());
    loop {
        let ended = stream.fill(&mut socket, &mut text)?;
        let now = now_ns();
        while let Some(end) = memchr::memmem::find(&text, b"\n\n") {
            let event = String::from_utf8_lossy(&text[..end]).into_owned();
            text.drain(..end + 2);
            let Some(data) = event.lines().find_map(|line| line.strip_prefix("data:")) else {
                continue;
            };
            let data: serde_json::Value =
                serde_json::from_str(data).context("an event is no JSON")?;
            if data["method"] == "notifications/progress" {
                let sent = data["params"]["message"]
                    .as_str()
                    .and_then(from_letters)
                    .context("an event without its time")?;
                if data["params"]["progress"].as_u64() != Some(delays.len() as u64 + 1) {
                    bail!("events are lost or out of order");
                }
                delays.push(now.saturating_sub(sent));
            } else if data["id"].as_u64() == Some(id) && data["result"].is_object() {
                if delays.len() as u64 != EVENTS {
                    bail!("{} of {EVENTS} events came", delays.len());
                }
                return Ok(delays);
            } else {
                bail!("not what was asked for: {:.200}", data.to_string());
            }
        }
        if ended {
            bail!("the stream ended after {} events", delays.len());
        }
    }
}

/// Takes a chunked answer apart as it comes in.
#[derive(Default)]
struct Stream {
    raw: Vec<u8>,
    past_head: bool,
    /// Bytes left of the chunk, its line end included.
    left: usize,
    ended: bool,
}

impl Stream {
    /// Reads once and appends what is text of the body. `true`: it was the end.
    fn fill(&mut self, source: &mut impl Read, text: &mut Vec<u8>) -> anyhow::Result<bool> {
        let mut piece = [0; 16 << 10];
        let got = source.read(&mut piece)?;
        self.raw.extend_from_slice(&piece[..got]);
        if self.raw.len() + text.len() > STREAM_BYTES_MAX {
            bail!("the stream is too large");
        }
        if !self.past_head {
            let Some(end) = memchr::memmem::find(&self.raw, b"\r\n\r\n") else {
                return Ok(got == 0);
            };
            let head = String::from_utf8_lossy(&self.raw[..end]).to_ascii_lowercase();
            if !head.starts_with("http/1.1 200") {
                bail!("{}", head.lines().next().unwrap_or_default());
            }
            if !head.contains("transfer-encoding: chunked") {
                bail!("the answer is not sent piece by piece");
            }
            self.raw.drain(..end + 4);
            self.past_head = true;
        }
        Ok(self.chunks(text)? || got == 0)
    }

    fn chunks(&mut self, text: &mut Vec<u8>) -> anyhow::Result<bool> {
        loop {
            if self.ended {
                return Ok(true);
            }
            if self.left > 2 {
                let take = (self.left - 2).min(self.raw.len());
                text.extend(self.raw.drain(..take));
                self.left -= take;
                if self.raw.is_empty() {
                    return Ok(false);
                }
            }
            if self.left > 0 {
                let take = self.left.min(self.raw.len());
                self.raw.drain(..take);
                self.left -= take;
                if self.left > 0 {
                    return Ok(false);
                }
            }
            let Some(end) = memchr::memmem::find(&self.raw, b"\r\n") else {
                return Ok(false);
            };
            let line = String::from_utf8_lossy(&self.raw[..end]).into_owned();
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).context("the size of a chunk")?;
            self.raw.drain(..end + 2);
            self.ended = size == 0;
            self.left = size + 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::echo;
    use std::net::TcpListener;

    fn serve() -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        std::thread::spawn(move || echo::serve(&listener));
        Endpoint::parse(&url, false).unwrap()
    }

    #[test]
    fn times_travel_as_letters() {
        for ns in [0, 1, 987_654_321_012_345, 9_999_999_999_999_999] {
            let text = letters(ns);
            assert!(!text.contains(|c: char| c.is_ascii_digit()), "{text}");
            assert_eq!(from_letters(&text), Some(ns));
        }
        assert_eq!(from_letters("sent xyz."), None);
        assert_eq!(from_letters("sent a"), None);
    }

    #[test]
    fn a_stream_of_the_upstream_has_all_its_events() {
        let delays = stream(&mut serve(), 7).unwrap();
        assert_eq!(delays.len() as u64, EVENTS);
        assert!(delays.iter().all(|&ns| ns < 5_000_000_000));
    }

    /// Cut at every byte, a chunked body gives the same text.
    #[test]
    fn chunks_may_come_in_any_pieces() {
        let whole: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nab\ncd\r\n3\r\n\nef\r\n0\r\n\r\n";
        let whole = String::from_utf8_lossy(whole).replace("4\r\nab\ncd", "5\r\nab\ncd");
        for cut in 0..=whole.len() {
            let (mut stream, mut text, mut ended) = (Stream::default(), Vec::new(), false);
            for mut piece in [&whole.as_bytes()[..cut], &whole.as_bytes()[cut..]] {
                if !piece.is_empty() {
                    ended = stream.fill(&mut piece, &mut text).unwrap();
                }
            }
            assert_eq!(
                (text.as_slice(), ended),
                (b"ab\ncd\nef".as_slice(), true),
                "{cut}"
            );
        }
    }

    /// A proxy that gathers the events and hands them over at the end is seen by their delay, one that loses some is a fault.
    #[test]
    fn lost_events_are_a_fault() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for (at, stream) in listener.incoming().flatten().enumerate() {
                let mut stream = stream;
                let _ = stream.read(&mut [0; 4096]);
                let body = match at {
                    0 => "{\"jsonrpc\":\"2.0\",\"id\":\"init\",\"result\":{}}".to_owned(),
                    1 => String::new(),
                    _ => {
                        let event = format!(
                            "data: {{\"method\":\"notifications/progress\",\"params\":{{\"progress\":2,\"message\":\"{}\"}}}}\n\n",
                            letters(1)
                        );
                        let _ = write!(
                            stream,
                            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{event}\r\n0\r\n\r\n",
                            event.len()
                        );
                        continue;
                    }
                };
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
            }
        });
        let mut endpoint = Endpoint::parse(&url, false).unwrap();
        let error = stream(&mut endpoint, 1).unwrap_err().to_string();
        assert!(error.contains("lost or out of order"), "{error}");
    }
}
