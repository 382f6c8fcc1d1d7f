//! Callers that go on whatever is killed under them, and keep accounts.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weir_tests::{Client, Era, Value, json};

/// Between two calls, so that the machine does something else too, and after an error, as a client does.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(50);

/// What all callers share.
pub struct Scene {
    address: Mutex<SocketAddr>,
    /// Just before and just after each kill.
    kills: Mutex<Vec<(Instant, Instant)>>,
    stop: AtomicBool,
    nonce: AtomicU64,
}

impl Scene {
    pub fn new(address: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            address: Mutex::new(address),
            kills: Mutex::default(),
            stop: AtomicBool::new(false),
            nonce: AtomicU64::new(0),
        })
    }

    /// The gateway is somewhere else now.
    pub fn moved(&self, address: SocketAddr) {
        *lock(&self.address) = address;
    }

    /// Kills, and remembers when.
    pub fn kill<T>(&self, kill: impl FnOnce() -> T) -> T {
        let before = Instant::now();
        lock(&self.kills).push((before, before + Duration::from_secs(3600)));
        let done = kill();
        if let Some(last) = lock(&self.kills).last_mut() {
            last.1 = Instant::now();
        }
        done
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn was_killed_under(&self, began: Instant) -> bool {
        let ended = Instant::now();
        let kills = lock(&self.kills);
        kills.iter().any(|(b, a)| began <= *a && ended >= *b)
    }
}

/// What one caller has seen.
#[derive(Debug, Default, Clone)]
pub struct Account {
    /// Right answers to calls.
    pub calls: u64,
    /// When the last mark was made, and when the first call that began after it was answered.
    mark: Option<Instant>,
    pub first: Option<Instant>,
    /// Messages that a sandbox has answered: each got one sandbox.
    pub answered: u64,
    /// Messages that failed and may or may not have got one.
    pub open: u64,
    /// Errors by their words.
    pub errors: BTreeMap<String, u64>,
    /// What may not be, whatever is killed.
    pub faults: Vec<String>,
    /// The slowest message.
    pub slowest: Duration,
}

impl Account {
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// A caller of one server.
pub struct Caller {
    pub server: &'static str,
    account: Arc<Mutex<Account>>,
    thread: JoinHandle<()>,
}

impl Caller {
    pub fn start(
        scene: &Arc<Scene>,
        server: &'static str,
        era: Era,
        key: &str,
        proof: &str,
    ) -> Self {
        let account: Arc<Mutex<Account>> = Arc::default();
        let path = format!("/sandbox/{server}/mcp");
        let mut client = Client::at(*lock(&scene.address), &path, era);
        client.headers.push(("X-API-Key".into(), key.to_owned()));
        let work = Work {
            scene: Arc::clone(scene),
            client,
            proof: proof.to_owned(),
            account: Arc::clone(&account),
        };
        Self {
            server,
            account,
            thread: std::thread::spawn(move || work.run()),
        }
    }

    /// From now on the first answer is waited for.
    pub fn mark(&self) {
        let mut account = lock(&self.account);
        account.mark = Some(Instant::now());
        account.first = None;
    }

    pub fn account(&self) -> Account {
        lock(&self.account).clone()
    }

    pub fn end(self) -> Account {
        self.thread.join().expect("a caller does not panic");
        Arc::try_unwrap(self.account)
            .map(|account| account.into_inner().unwrap_or_else(PoisonError::into_inner))
            .expect("its thread has ended")
    }
}

struct Work {
    scene: Arc<Scene>,
    client: Client,
    proof: String,
    account: Arc<Mutex<Account>>,
}

impl Work {
    fn run(mut self) {
        while !self.scene.stop.load(Ordering::Relaxed) {
            self.client.addr = *lock(&self.scene.address);
            let done = self.call();
            std::thread::sleep(done.map_or(PAUSE_AFTER_ERROR, |()| PAUSE));
        }
    }

    /// One call, in a session if there has to be one. `None` after an error.
    fn call(&mut self) -> Option<()> {
        if self.client.era == Era::Handshake && self.client.session.is_none() {
            self.hello()?;
        }
        let nonce = format!("n{}", self.scene.nonce.fetch_add(1, Ordering::Relaxed));
        let params = json!({"name": "work", "arguments": {"nonce": nonce}});
        let message = self.client.message("tools/call", params);
        let began = Instant::now();
        let (text, _) = self.post(&message)?;
        let mut account = lock(&self.account);
        if text == format!("{nonce} {}", self.proof) {
            account.calls += 1;
            if account.mark.is_some_and(|mark| began >= mark) {
                account.first.get_or_insert_with(Instant::now);
            }
        } else {
            account
                .faults
                .push(format!("{nonce} was answered {text:?}"));
        }
        Some(())
    }

    fn hello(&mut self) -> Option<()> {
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}});
        let hello = self.client.message("initialize", hello);
        let (_, session) = self.post(&hello)?;
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.client.session = session;
        let told = self.post(&done);
        if told.is_none() {
            self.client.session = None;
        }
        told.map(drop)
    }

    /// One message: the answer's text and session, or nothing after an error.
    fn post(&mut self, message: &Value) -> Option<(String, Option<String>)> {
        let began = Instant::now();
        let done = self.client.try_post(message);
        let killed = self.scene.was_killed_under(began);
        let mut account = lock(&self.account);
        account.slowest = account.slowest.max(began.elapsed());
        let (words, leased) = match done {
            Ok(answer) => {
                let good = match message["id"].is_null() {
                    true => answer.status() == 202,
                    false => {
                        answer.status() == 200
                            && answer.result().is_object()
                            && answer.result()["isError"] != json!(true)
                    }
                };
                if good {
                    account.answered += 1;
                    let session = answer.head.header("mcp-session-id").map(str::to_owned);
                    return Some((answer.first_text().to_owned(), session));
                }
                let text: String = answer.text().chars().take(300).collect();
                let text = text.replace(&format!("\"id\":{}", message["id"]), "\"id\":_");
                if answer.status() == 404 {
                    self.client.session = None;
                }
                // Who is told that there is no sandbox had none, unless the runner ended just then.
                let none = matches!(answer.told_status(), 401 | 404 | 429 | 503);
                (format!("{} {text}", answer.status()), killed || !none)
            }
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                account.faults.push("no answer in time".into());
                (error.to_string(), true)
            }
            Err(error) => {
                let words: String = error.to_string().chars().take(60).collect();
                (words, error.kind() != ErrorKind::ConnectionRefused)
            }
        };
        account.open += u64::from(leased);
        *account.errors.entry(words).or_default() += 1;
        None
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
