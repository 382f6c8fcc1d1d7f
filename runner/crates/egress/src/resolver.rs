//! Answers the guest's DNS questions out of the allowlist. Nothing is ever asked of anybody else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::dns::{self, Kind, QUESTION_BYTES_MAX, Reply};
use crate::event::Refusal;
use crate::rules::Allowlist;
use crate::serve::{Shared, pause_after_error};

/// Connections at once for questions over TCP. They are hardly ever used.
const TCP_CONNECTIONS_MAX: usize = 8;
/// Questions on one of them.
const TCP_QUESTIONS_MAX: usize = 64;
const TCP_WAIT_MAX: Duration = Duration::from_secs(10);

/// Answers over UDP until the rules' sender is gone.
pub async fn answer_udp(
    socket: UdpSocket,
    shared: Arc<Shared>,
    mut rules: watch::Receiver<Arc<Allowlist>>,
) {
    let mut buffer = vec![0; QUESTION_BYTES_MAX + 1];
    loop {
        tokio::select! {
            received = socket.recv_from(&mut buffer) => match received {
                Ok((length, from)) => {
                    let list = Arc::clone(&rules.borrow());
                    if let Some(reply) = answer(&buffer[..length], &list, &shared) {
                        // A full send buffer loses the answer, as networks do.
                        let _ = socket.try_send_to(&reply, from);
                    }
                }
                Err(error) => pause_after_error("a question of a sandbox cannot be read", &error).await,
            },
            changed = rules.changed() => if changed.is_err() { return },
        }
    }
}

/// Answers over TCP until the rules' sender is gone.
pub async fn answer_tcp(
    listener: TcpListener,
    shared: Arc<Shared>,
    mut rules: watch::Receiver<Arc<Allowlist>>,
) {
    let room = Arc::new(Semaphore::new(TCP_CONNECTIONS_MAX));
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                // Above the bound the connection is closed at once: a resolver of the guest asks again.
                Ok((guest, _)) => if let Ok(permit) = Arc::clone(&room).try_acquire_owned() {
                    let (shared, rules) = (Arc::clone(&shared), rules.clone());
                    open.spawn(async move {
                        let _permit = permit;
                        let _ = converse(guest, &shared, &rules).await;
                    });
                },
                Err(error) => pause_after_error("a connection of a sandbox cannot be accepted", &error).await,
            },
            _ = open.join_next(), if !open.is_empty() => {}
            // What is under way is dropped with the set.
            changed = rules.changed() => if changed.is_err() { return },
        }
    }
}

async fn converse(
    mut guest: TcpStream,
    shared: &Shared,
    rules: &watch::Receiver<Arc<Allowlist>>,
) -> std::io::Result<()> {
    let mut buffer = vec![0; QUESTION_BYTES_MAX];
    for _ in 0..TCP_QUESTIONS_MAX {
        let length = timeout(TCP_WAIT_MAX, guest.read_u16()).await??;
        let Some(question) = buffer.get_mut(..usize::from(length)) else {
            return Ok(());
        };
        timeout(TCP_WAIT_MAX, guest.read_exact(question)).await??;
        let list = Arc::clone(&rules.borrow());
        let Some(reply) = answer(question, &list, shared) else {
            return Ok(());
        };
        let length = u16::try_from(reply.len()).unwrap_or(u16::MAX);
        let framed = [&length.to_be_bytes()[..], &reply].concat();
        timeout(TCP_WAIT_MAX, guest.write_all(&framed)).await??;
    }
    Ok(())
}

/// The bytes to send back, if any.
fn answer(message: &[u8], rules: &Allowlist, shared: &Shared) -> Option<Vec<u8>> {
    if !shared.questions.take(Instant::now()) {
        if shared.question_alarms.take(Instant::now()) {
            shared.refused_question(None, Refusal::TooManyNames);
        }
        return None;
    }
    let question = match dns::read(message) {
        Ok(question) => question,
        Err(reply) => return reply,
    };
    let reply = match (&question.name, question.kind) {
        (_, Kind::Unsupported) => Reply::NotDone,
        (None, _) => {
            shared.refused_question(None, Refusal::NotAHostName);
            Reply::NoName
        }
        (Some(name), _) if !rules.knows(name) => {
            shared.refused_question(Some(name), Refusal::NameNotAllowed);
            Reply::NoName
        }
        (Some(_), Kind::Other) => Reply::NoData,
        (Some(name), Kind::A) => match shared.names.address(name) {
            Some(address) => Reply::Address(address),
            None => {
                shared.refused_question(Some(name), Refusal::TooManyNames);
                Reply::Failed
            }
        },
    };
    Some(dns::write(&question, reply))
}

/// A token bucket.
pub struct Bucket {
    per_second: f64,
    burst: f64,
    level: Mutex<(f64, Instant)>,
}

impl Bucket {
    pub fn new(per_second: u32, burst: u32) -> Self {
        let (per_second, burst) = (f64::from(per_second), f64::from(burst));
        Self {
            per_second,
            burst,
            level: Mutex::new((burst, Instant::now())),
        }
    }

    fn take(&self, now: Instant) -> bool {
        let mut level = self.level.lock();
        let refill = now.saturating_duration_since(level.1).as_secs_f64() * self.per_second;
        *level = ((level.0 + refill).min(self.burst), now.max(level.1));
        let there = level.0 >= 1.0;
        if there {
            level.0 -= 1.0;
        }
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let bucket = Bucket::new(10, 3);
        let start = Instant::now();
        let taken = |ms: u64| {
            (0..100)
                .filter(|_| bucket.take(start + Duration::from_millis(ms)))
                .count()
        };
        assert_eq!(
            [taken(0), taken(100), taken(150), taken(250), taken(10_000)],
            [3, 1, 0, 1, 3]
        );
    }
}
