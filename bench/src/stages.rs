//! Where the proxy under test says its time went: sums of its own histograms, read before and after a window.

use crate::wire::http::Reader;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The sums at one moment, in seconds, and how many exchanges they are of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    scan: f64,
    policy: f64,
    upstream: f64,
    exchange: f64,
    count: f64,
}

/// Time per call, in microseconds, as the target measured it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stages {
    /// Detection, both ways.
    pub scan_us: f64,
    /// Policy, decision and rewriting, both ways.
    pub policy_us: f64,
    /// Waiting for the upstream's answer.
    pub upstream_us: f64,
    /// From the first byte in to the last byte out.
    pub exchange_us: f64,
}

/// Asks a target's metrics page. `None`: it has none, or says nothing of this.
pub fn read(admin: SocketAddr) -> Option<Sums> {
    let time = Duration::from_secs(5);
    let stream = TcpStream::connect_timeout(&admin, time).ok()?;
    stream.set_read_timeout(Some(time)).ok()?;
    let mut reader = Reader::new(stream);
    let request = format!("GET /metrics HTTP/1.1\r\nhost: {admin}\r\nconnection: close\r\n\r\n");
    reader.source().write_all(request.as_bytes()).ok()?;
    let mut body = Vec::new();
    let head = reader.answer(&mut body).ok()??;
    if head.status != 200 {
        return None;
    }
    Some(parse(std::str::from_utf8(&body).ok()?))
}

/// Adds up all servers.
fn parse(text: &str) -> Sums {
    let sum = |name: &str| -> f64 {
        text.lines()
            .filter(|line| {
                line.strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with(['{', ' ']))
            })
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    };
    Sums {
        scan: sum("weir_scan_seconds_sum"),
        policy: sum("weir_policy_seconds_sum"),
        upstream: sum("weir_upstream_seconds_sum"),
        exchange: sum("weir_exchange_seconds_sum"),
        count: sum("weir_exchange_seconds_count"),
    }
}

impl Sums {
    /// Per call since an earlier moment; `None` when there was none.
    pub fn since(&self, before: &Sums) -> Option<Stages> {
        let count = self.count - before.count;
        let each = |now: f64, then: f64| (now - then).max(0.0) * 1e6 / count;
        (count >= 1.0).then(|| Stages {
            scan_us: each(self.scan, before.scan),
            policy_us: each(self.policy, before.policy),
            upstream_us: each(self.upstream, before.upstream),
            exchange_us: each(self.exchange, before.exchange),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_all_servers_become_times_per_call() {
        let before = parse(
            "# TYPE weir_scan_seconds summary\nweir_scan_seconds{server=\"a\",quantile=\"0.5\"} 9\n\
             weir_scan_seconds_sum{server=\"a\"} 1\nweir_exchange_seconds_count{server=\"a\"} 10\n",
        );
        let after = parse(
            "weir_scan_seconds_sum{server=\"a\"} 1.5\nweir_scan_seconds_sum{server=\"b\"} 0.5\n\
             weir_exchange_seconds_count{server=\"a\"} 15\nweir_exchange_seconds_count{server=\"b\"} 5\n\
             weir_policy_seconds_sum 0.001\n",
        );
        let stages = after.since(&before).unwrap();
        assert!((stages.scan_us - 100_000.0).abs() < 1.0, "{stages:?}");
        assert!((stages.policy_us - 100.0).abs() < 1e-6, "{stages:?}");
        assert_eq!(before.since(&before), None);
        assert_eq!(parse("nonsense"), Sums::default());
    }
}
