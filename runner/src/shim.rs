//! The shim for stdio servers: a small program in the sandbox, in the server's own language, that speaks Streamable HTTP
//! to the gateway and lines to the server.

use std::fs;
use std::io;
use std::path::Path;

use runner_api::Runtime;

const PYTHON: &str = include_str!("../shim/stdio.py");
const NODE: &str = include_str!("../shim/stdio.mjs");

/// Writes the shims where sandboxes find them.
///
/// # Errors
/// The system's.
pub fn install(run: &Path) -> io::Result<()> {
    let dir = run.join("weir");
    fs::create_dir_all(&dir)?;
    fs::write(dir.join("stdio.py"), PYTHON)?;
    fs::write(dir.join("stdio.mjs"), NODE)
}

/// The words that go before a stdio server's own command.
pub fn command(runtime: Runtime, port: u16) -> Vec<String> {
    let words: [&str; 3] = match runtime {
        Runtime::Python => ["/usr/bin/python3", "-I", "/weir/stdio.py"],
        Runtime::Node => ["/usr/local/bin/node", "--", "/weir/stdio.mjs"],
    };
    words
        .iter()
        .map(|w| (*w).to_owned())
        .chain([port.to_string(), "--".to_owned()])
        .collect()
}

#[cfg(test)]
mod events;

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::path::PathBuf;
    use std::process::{Child, Command, Stdio};
    use std::thread;
    use std::time::{Duration, Instant};

    use serde_json::{Value, json};

    use super::*;

    /// Knows the handshake only. It notes each start, and while there is a file `broken` it ends at once, while there is one
    /// `shy` as soon as it hears anything else first.
    const SERVER: &str = r#"
import json, os, select, sys, time
open("starts", "a").write("x")
if os.path.exists("broken"): sys.exit(3)
greeted, held, later = False, None, []
def read():
    line = later.pop(0) if later else sys.stdin.readline()
    return json.loads(line) if line else sys.exit()
def note(message):
    if message.get("method") == "notifications/cancelled":
        open("cancelled", "a").write(f"{message['params']['requestId']} ")
        return True
def answers_to(asked):
    """What is answered, and whether it was cancelled before."""
    got, cancelled = [], False
    while len(got) < asked and not cancelled:
        line = sys.stdin.readline()
        if not line: sys.exit()
        message = json.loads(line)
        if "method" not in message: got.append(message)
        elif note(message): cancelled = True
        else: later.append(line)
    open("answers", "a").write(json.dumps(got) + " ")
    return got, cancelled
while True:
    message = read()
    if note(message) or "id" not in message or "method" not in message: continue
    greeted |= message["method"] == "initialize"
    if os.path.exists("shy") and not greeted: os._exit(1)
    said = (message.get("params") or {}).get("arguments") or {}
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
    elif message["method"] == "tools/call":
        if said.get("die"): os._exit(1)
        if said.get("hold"):
            open("held", "a").write(f"{message['id']} ")
            held = message["params"]["_meta"]["progressToken"] if "_meta" in message["params"] else None
            continue
        if said.get("say"):
            own = (message["params"].get("_meta") or {}).get("progressToken")
            for word in said["say"]:
                for _ in range(word.pop("times", 1)):
                    if word.get("method") == "notifications/progress":
                        word["params"]["progressToken"] = held if word["params"]["on"] == "held" else own
                    print(json.dumps({"jsonrpc": "2.0", **word}), flush=True)
            open("said", "a").write("x ")
            answers, cancelled = answers_to(said.get("asked", 0))
            if not cancelled: print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"answers": answers}}), flush=True)
            continue
        if said.get("ask"):
            print(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}), flush=True)
            said["text"] = str(json.loads(sys.stdin.readline())["error"]["code"])
        if said.get("raw"):
            print(f'{{"jsonrpc": "2.0", "id": {message["id"]}, "result": ', end="", flush=True)
            os.write(1, bytes(said["raw"]) + b"}\n")
            continue
        if said.get("tell"):
            print('{"jsonrpc": "2.0", "method": "notifications/message", "params": "' + "z" * (65 << 20) + '"}', flush=True)
        time.sleep(said.get("slow", 0))
        text = said.get("text", "")
        result = {"answer": "y" * said.get("n", 0), "length": len(text), "letters": sorted(set(text))}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    if said.get("deaf"):
        # With a call that it was sent and never reads.
        select.select([0], [], [])
        os.close(0)
        while True: time.sleep(1)
"#;

    pub(super) struct Shim {
        child: Child,
        dir: tempfile::TempDir,
        pub(super) port: u16,
    }

    impl Drop for Shim {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    /// Both shims, the second one where there is a Node.
    pub(super) fn both() -> Vec<Shim> {
        let node = Command::new("node").arg("--version").output().is_ok();
        let python = Shim::start(&["python3", "-I"], "stdio.py", PYTHON);
        let node = node.then(|| Shim::start(&["node"], "stdio.mjs", NODE));
        [python].into_iter().chain(node).collect()
    }

    impl Shim {
        fn start(words: &[&str], name: &str, text: &str) -> Self {
            let dir = tempfile::tempdir().expect("a folder");
            fs::write(dir.path().join(name), text).expect("written");
            fs::write(dir.path().join("server.py"), SERVER).expect("written");
            let free = TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = free.local_addr().expect("an address").port();
            drop(free);
            let child = Command::new(words[0])
                .args(&words[1..])
                .args([name, &port.to_string(), "--", "python3", "server.py"])
                .current_dir(dir.path())
                .stderr(Stdio::null())
                .spawn()
                .expect("started");
            let shim = Self { child, dir, port };
            let until = Instant::now() + Duration::from_secs(20);
            while TcpStream::connect(("127.0.0.1", port)).is_err() {
                assert!(Instant::now() < until, "{name} does not listen");
                thread::sleep(Duration::from_millis(20));
            }
            shim
        }

        pub(super) fn file(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        /// Status, session if one was given, and the answer.
        pub(super) fn post(&self, session: &str, message: &Value) -> (u16, String, Value) {
            let body = message.to_string();
            let mut to = TcpStream::connect(("127.0.0.1", self.port)).expect("connected");
            to.set_read_timeout(Some(Duration::from_secs(60)))
                .expect("set");
            let session = match session {
                "" => String::new(),
                id => format!("Mcp-Session-Id: {id}\r\n"),
            };
            write!(
                to,
                "POST /mcp HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{session}Content-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .expect("sent");
            let mut bytes = Vec::new();
            to.read_to_end(&mut bytes).expect("read");
            let at = bytes.windows(4).position(|w| w == b"\r\n\r\n");
            let at = at.expect("a head");
            let head = String::from_utf8_lossy(&bytes[..at]).to_ascii_lowercase();
            let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
            let given = head
                .lines()
                .find_map(|line| line.strip_prefix("mcp-session-id: "))
                .unwrap_or_default();
            let body = serde_json::from_slice(&bytes[at + 4..]).unwrap_or(Value::Null);
            (status.expect("a status"), given.to_owned(), body)
        }

        pub(super) fn call(&self, session: &str, arguments: Value) -> (u16, Value) {
            let params = json!({"name": "t", "arguments": arguments});
            let message =
                json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params});
            let (status, _, answer) = self.post(session, &message);
            assert_eq!(answer["id"], "a");
            (status, answer)
        }

        pub(super) fn session(&self) -> String {
            self.session_of(&json!({}))
        }

        /// Of a client that can be asked this.
        pub(super) fn session_of(&self, capabilities: &Value) -> String {
            let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": capabilities}});
            let (status, session, _) = self.post("", &hello);
            assert!(status == 200 && !session.is_empty());
            session
        }

        /// What a file holds as soon as there is one.
        pub(super) fn noted(&self, name: &str) -> String {
            let until = Instant::now() + Duration::from_secs(20);
            loop {
                match fs::read_to_string(self.file(name)) {
                    Ok(text) if text.ends_with(' ') => return text,
                    _ => assert!(Instant::now() < until, "no {name}"),
                }
                thread::sleep(Duration::from_millis(10));
            }
        }
    }

    #[test]
    fn long_answers_come_whole_and_those_beyond_the_bound_are_told() {
        for shim in both() {
            for n in [1, 1_000_000, 4_000_000] {
                let began = Instant::now();
                let (status, answer) = shim.call("", json!({"n": n}));
                let length = answer["result"]["answer"].as_str().map(str::len);
                assert_eq!((status, length), (200, Some(n)));
                assert!(began.elapsed() < Duration::from_secs(10));
            }
            let (status, answer) = shim.call("", json!({"n": 65 << 20}));
            let reason = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(
                status == 200 && reason.contains("67108864"),
                "{status} {reason}"
            );
            assert_eq!(shim.call("", json!({"n": 1})).0, 200);
            let starts = fs::read(shim.file("starts")).expect("notes");
            assert_eq!(starts.len(), 1, "the same process all the time");
        }
    }

    #[test]
    fn calls_at_once_do_not_tear_each_others_messages() {
        for shim in both() {
            assert_eq!(shim.call("", json!({})).0, 200);
            thread::scope(|scope| {
                // What comes meanwhile has to wait in the pipe.
                scope.spawn(|| shim.call("", json!({"slow": 1})));
                thread::sleep(Duration::from_millis(200));
                for letter in 'a'..='h' {
                    let shim = &shim;
                    scope.spawn(move || {
                        let text = letter.to_string().repeat(400_000);
                        let (status, answer) = shim.call("", json!({"text": text}));
                        let result = &answer["result"];
                        assert_eq!((status, &result["length"]), (200, &json!(400_000)));
                        assert_eq!(result["letters"], json!([letter.to_string()]));
                    });
                }
            });
        }
    }

    #[test]
    fn a_process_that_ended_is_replaced_and_its_session_is_gone() {
        for shim in both() {
            assert_eq!(shim.call("", json!({"die": true})).0, 502);
            assert_eq!(shim.call("", json!({})).0, 200);
            let session = shim.session();
            assert_eq!(shim.call(&session, json!({})).0, 200);
            assert_eq!(shim.call(&session, json!({"die": true})).0, 502);
            assert_eq!(shim.call(&session, json!({})).0, 404);
            let next = shim.session();
            assert_ne!(next, session);
            assert_eq!(shim.call(&next, json!({})).0, 200);
            assert_eq!(shim.call("", json!({})).0, 200, "the other one lives on");
        }
    }

    #[test]
    fn a_server_that_ends_at_once_is_not_started_with_every_call() {
        for shim in both() {
            fs::write(shim.file("broken"), "").expect("written");
            assert_eq!(shim.call("", json!({"die": true})).0, 502);
            let mut told = false;
            for _ in 0..30 {
                let (status, answer) = shim.call("", json!({}));
                let reason = answer["error"]["message"].as_str().unwrap_or_default();
                assert!(status == 502 || status == 503, "{status} {reason}");
                told |= status == 503 && reason.contains("ends as soon as it is started");
            }
            assert!(told);
            let starts = fs::read(shim.file("starts")).expect("notes").len();
            assert!(starts <= 6, "started {starts} times for 31 calls");
            fs::remove_file(shim.file("broken")).expect("removed");
            let until = Instant::now() + Duration::from_secs(30);
            while shim.call("", json!({})).0 != 200 {
                assert!(Instant::now() < until, "it is never started again");
                thread::sleep(Duration::from_millis(100));
            }
        }
    }

    #[test]
    fn a_server_that_the_probe_ends_is_greeted_first() {
        for shim in both() {
            fs::write(shim.file("shy"), "").expect("written");
            for _ in 0..3 {
                assert_eq!(shim.call("", json!({})).0, 200);
            }
            assert_eq!(shim.call(&shim.session(), json!({})).0, 200);
        }
    }

    #[test]
    fn sessions_do_not_wait_for_a_process_without_them() {
        for shim in both() {
            fs::write(shim.file("broken"), "").expect("written");
            assert_eq!(shim.call("", json!({"die": true})).0, 502);
            let until = Instant::now() + Duration::from_secs(20);
            while shim.call("", json!({})).0 != 503 {
                assert!(Instant::now() < until, "it is started with every call");
            }
            fs::remove_file(shim.file("broken")).expect("removed");
            let session = shim.session();
            assert_eq!(shim.call(&session, json!({})).0, 200);
        }
    }

    #[test]
    fn a_call_is_cancelled_by_its_own_id_and_no_other() {
        for shim in both() {
            let session = shim.session();
            let cancel = |session: &str, id: i32| {
                let params = json!({"requestId": id});
                let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
                assert_eq!(shim.post(session, &message).0, 202);
            };
            let params = json!({"name": "t", "arguments": {"hold": true}});
            let held =
                json!({"jsonrpc": "2.0", "id": 70, "method": "tools/call", "params": params});
            thread::scope(|scope| {
                let call = scope.spawn(|| shim.post(&session, &held));
                let number = shim.noted("held");
                assert_ne!(number, "70 ", "it has a number of the shim's own");
                // Its number is no id of a client's.
                cancel(&session, number.trim().parse().expect("a number"));
                cancel("", 70);
                assert!(!shim.file("cancelled").exists());
                cancel(&session, 70);
                let (status, _, answer) = call.join().expect("answered");
                assert_eq!((status, &answer["id"]), (200, &json!(70)));
                assert_eq!(answer["error"]["message"], "the call was cancelled");
                assert_eq!(shim.noted("cancelled"), number);
            });
            cancel(&session, 70);
            assert_eq!(shim.call(&session, json!({})).0, 200);
            assert_eq!(shim.noted("cancelled").split_whitespace().count(), 1);
        }
    }

    #[test]
    fn a_server_that_closed_its_input_is_replaced() {
        for shim in both() {
            let session = shim.session();
            for key in ["", &session] {
                assert_eq!(shim.call(key, json!({"deaf": true})).0, 200);
                let (status, answer) = shim.call(key, json!({}));
                let reason = &answer["error"]["message"];
                assert_eq!((status, reason), (502, &json!("the server has ended")));
            }
            assert_eq!(shim.call("", json!({})).0, 200);
            assert_eq!(shim.call(&session, json!({})).0, 404);
        }
    }

    #[test]
    fn what_is_no_answer_keeps_nobody_waiting() {
        for shim in both() {
            let session = shim.session();
            for key in ["", &session] {
                let (status, answer) = shim.call(key, json!({"ask": true}));
                assert_eq!((status, &answer["result"]["length"]), (200, &json!(6)));
                for raw in [&b"NaN"[..], b"{", b"1e"] {
                    let (status, answer) = shim.call(key, json!({"raw": raw}));
                    assert_eq!((status, &answer["error"]["code"]), (200, &json!(-32603)));
                }
                let (status, answer) = shim.call(key, json!({"raw": b"\"\xff\""}));
                assert_eq!((status, &answer["result"]), (200, &json!("\u{fffd}")));
            }
            let (status, answer) = shim.call(&session, json!({"tell": true}));
            assert!(status == 200 && answer["result"].is_object());
        }
    }
}
