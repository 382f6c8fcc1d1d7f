//! A FAKE runner behind a real socket: it speaks `runner-api`, gives out one address as the sandbox, and runs nothing.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use domain::ServerId;
use runner_api::*;
use tokio::io::BufStream;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use weir_tests::{Value, json};

pub struct FakeRunner {
    pub state: Arc<State>,
    pub socket: PathBuf,
    runtime: Option<tokio::runtime::Runtime>,
}

pub struct State {
    sandbox: SocketAddr,
    pub leases: Mutex<Vec<LeaseRequest>>,
    /// Whether each call timed out.
    pub releases: Mutex<Vec<bool>>,
    pub ended_sessions: Mutex<Vec<String>>,
    pub specs: Mutex<Vec<ServerSpec>>,
    pub bundles: Mutex<Vec<usize>>,
    pub refuse: Mutex<Option<ApiError>>,
    /// Which sandbox is leased: another number is another one, at the same address.
    pub life: AtomicU32,
    gone: watch::Sender<Option<GoneReason>>,
    secrets: Mutex<BTreeMap<(ServerId, SecretName), SecretValue>>,
}

impl FakeRunner {
    pub fn start(dir: &Path, sandbox: SocketAddr) -> Self {
        let state = State {
            sandbox,
            leases: Mutex::default(),
            releases: Mutex::default(),
            ended_sessions: Mutex::default(),
            specs: Mutex::default(),
            bundles: Mutex::default(),
            refuse: Mutex::default(),
            life: AtomicU32::new(1),
            gone: watch::channel(None).0,
            secrets: Mutex::default(),
        };
        let socket = dir.join("runner.sock");
        let mut fake = Self {
            state: Arc::new(state),
            socket,
            runtime: None,
        };
        fake.go_on();
        fake
    }

    /// Every sandbox that is leased now is gone.
    pub fn kill_sandboxes(&self, reason: GoneReason) {
        self.state.gone.send_replace(Some(reason));
    }

    /// The runner ends without a word.
    pub fn die(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        let _gone = std::fs::remove_file(&self.socket);
    }

    pub fn go_on(&mut self) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = {
            let _in_it = runtime.enter();
            UnixListener::bind(&self.socket).expect("a socket")
        };
        let state = Arc::clone(&self.state);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(stream, Arc::clone(&state)));
            }
        });
        self.runtime = Some(runtime);
    }
}

impl Drop for FakeRunner {
    fn drop(&mut self) {
        self.die();
    }
}

async fn converse(stream: UnixStream, state: Arc<State>) -> Result<(), frame::FrameError> {
    let mut stream = BufStream::new(stream);
    let _hello: Hello = frame::read(&mut stream).await?;
    frame::write(&mut stream, &Hello::of("fake runner")).await?;
    loop {
        let request: Request = frame::read(&mut stream).await?;
        answer(&mut stream, request, &state).await?;
    }
}

async fn answer(
    stream: &mut BufStream<UnixStream>,
    request: Request,
    state: &State,
) -> Result<(), frame::FrameError> {
    let reply = match request {
        Request::Doctor => Reply::Doctor(Doctor {
            runner: "fake".into(),
            fit: true,
            checks: vec![],
        }),
        Request::PutBundle { tenant } => {
            let mut bytes = 0;
            loop {
                match frame::read_chunk(stream).await?.len() {
                    0 => break,
                    n => bytes += n,
                }
            }
            state.bundles.lock().expect("no panic inside").push(bytes);
            Reply::Bundle(bundle(&tenant, bytes))
        }
        Request::Build { .. } => {
            let layer = json!({"event": "done", "layer": {"id": "cd".repeat(32), "packages": 3, "bytes": 9, "cached": false, "elapsed_ms": 5}});
            let done: BuildEvent = parsed(layer);
            for reply in [Reply::Ok, Reply::Build(done), Reply::End] {
                frame::write(stream, &reply).await?;
            }
            return Ok(());
        }
        Request::PutServer { spec } => {
            state.specs.lock().expect("no panic inside").push(*spec);
            Reply::Ok
        }
        Request::Lease { lease } => return hold(stream, lease, state).await,
        Request::EndSession { session, .. } => {
            state
                .ended_sessions
                .lock()
                .expect("no panic inside")
                .push(session.to_string());
            Reply::Ok
        }
        Request::SetSecret {
            server,
            name,
            value,
            ..
        } => {
            let mut secrets = state.secrets.lock().expect("no panic inside");
            secrets.insert((server, name), value);
            Reply::Ok
        }
        Request::ListSecrets { server, .. } => {
            let secrets = state.secrets.lock().expect("no panic inside");
            let own = secrets.keys().filter(|(of, _)| *of == server);
            Reply::Secrets(own.map(|(_, name)| name.clone()).collect())
        }
        Request::SecretPrints { server, key, .. } => {
            let secrets = state.secrets.lock().expect("no panic inside");
            let own = secrets.iter().filter(|((of, _), _)| *of == server);
            let prints = own.map(|((_, name), value)| (name.clone(), key.prints(value.expose())));
            Reply::SecretPrints(prints.collect())
        }
        Request::Servers { .. } => Reply::Servers(vec![]),
        Request::Usage { .. } => Reply::Usage(vec![]),
        Request::Logs { .. } => {
            frame::write(stream, &Reply::Ok).await?;
            Reply::End
        }
        // An endless stream without anything in it: nothing more is asked on this connection.
        Request::Events { .. } => Reply::Ok,
        _ => Reply::Ok,
    };
    frame::write(stream, &reply).await
}

async fn hold(
    stream: &mut BufStream<UnixStream>,
    wanted: LeaseRequest,
    state: &State,
) -> Result<(), frame::FrameError> {
    let refuse = state.refuse.lock().expect("no panic inside").clone();
    if let Some(error) = refuse {
        return frame::write(stream, &Reply::Error(error)).await;
    }
    let number = {
        let mut leases = state.leases.lock().expect("no panic inside");
        leases.push(wanted);
        leases.len()
    };
    // A sandbox that is leased from now on is another one.
    state.gone.send_replace(None);
    let mut gone = state.gone.subscribe();
    let sandbox = format!("sandbox{:05}", state.life.load(Ordering::Relaxed));
    let lease = json!({
        "id": format!("lease{number:07}"), "sandbox": sandbox, "address": state.sandbox, "fresh": true, "waited_ms": 0,
        "call_timeout_s": 3,
    });
    frame::write(stream, &Reply::Lease(parsed(lease))).await?;
    let reason = async {
        loop {
            // The value is taken out before anything is awaited again.
            let reason = gone.borrow_and_update().clone();
            match reason {
                Some(reason) => return reason,
                None if gone.changed().await.is_err() => std::future::pending().await,
                None => {}
            }
        }
    };
    let request: Request = tokio::select! {
        request = frame::read(stream) => request?,
        reason = reason => {
            frame::write(stream, &Reply::Gone(reason)).await?;
            frame::read(stream).await?
        }
    };
    let Request::Release { timed_out, .. } = request else {
        return frame::write(
            stream,
            &Reply::Error(ApiError::new(
                ErrorCode::BadRequest,
                "a lease is released first",
            )),
        )
        .await;
    };
    state
        .releases
        .lock()
        .expect("no panic inside")
        .push(timed_out);
    frame::write(stream, &Reply::Ok).await
}

fn bundle(tenant: &impl std::fmt::Display, bytes: usize) -> BundleInfo {
    parsed(json!({
        "id": "ab".repeat(32), "tenant": tenant.to_string(), "runtime": "python", "packed_bytes": bytes, "unpacked_bytes": bytes,
        "files": 2, "root_names": ["server.py"], "dependencies": [],
    }))
}

fn parsed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("it has the shape")
}
