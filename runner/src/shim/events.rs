//! What a stdio server says beside its answers: who hears it, and who may answer.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::tests::{Shim, both};

/// An answer on its way to somebody who takes events.
struct Answer {
    from: BufReader<TcpStream>,
    streams: bool,
    status: u16,
    length: usize,
    text: String,
}

impl Answer {
    /// The next message, or `None` when the answer has ended.
    fn next(&mut self) -> Option<Value> {
        if !self.streams {
            let mut body = vec![0; std::mem::take(&mut self.length)];
            self.from.read_exact(&mut body).expect("a body");
            return serde_json::from_slice(&body).ok();
        }
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let data = event.strip_prefix("data: ").expect("data alone");
                let message = serde_json::from_str(data).expect("a message");
                self.text = rest.to_owned();
                return Some(message);
            }
            let mut size = String::new();
            self.from.read_line(&mut size).expect("a size");
            let size = usize::from_str_radix(size.trim(), 16).expect("a chunk");
            let mut chunk = vec![0; size + 2];
            self.from.read_exact(&mut chunk).expect("a chunk");
            if size == 0 {
                assert_eq!(self.text, "", "nothing is cut off");
                return None;
            }
            chunk.truncate(size);
            self.text.push_str(&String::from_utf8(chunk).expect("text"));
        }
    }

    fn all(mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.next()).collect()
    }
}

fn begin(shim: &Shim, session: &str, arguments: &Value, token: &Value) -> Answer {
    let mut params = json!({"name": "t", "arguments": arguments});
    if !token.is_null() {
        params["_meta"] = json!({ "progressToken": token });
    }
    let body = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params});
    let body = body.to_string();
    let mut to = TcpStream::connect(("127.0.0.1", shim.port)).expect("connected");
    to.set_read_timeout(Some(Duration::from_secs(60)))
        .expect("set");
    let session = match session {
        "" => String::new(),
        id => format!("Mcp-Session-Id: {id}\r\n"),
    };
    write!(
        to,
        "POST /mcp HTTP/1.1\r\nHost: x\r\nAccept: application/json, text/event-stream\r\n{session}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("sent");
    let mut answer = Answer {
        from: BufReader::new(to),
        streams: false,
        status: 0,
        length: 0,
        text: String::new(),
    };
    loop {
        let mut line = String::new();
        answer.from.read_line(&mut line).expect("a head");
        let line = line.trim().to_ascii_lowercase();
        if let Some(status) = line.strip_prefix("http/1.1 ") {
            answer.status = status[..3].parse().expect("a status");
        } else if let Some(length) = line.strip_prefix("content-length: ") {
            answer.length = length.parse().expect("a length");
        } else if let Some(kind) = line.strip_prefix("content-type: ") {
            answer.streams = kind == "text/event-stream";
        } else if line.is_empty() {
            return answer;
        }
    }
}

fn elicitation(id: &Value) -> Value {
    let params =
        json!({"message": "who?", "requestedSchema": {"type": "object", "properties": {}}});
    json!({"id": id, "method": "elicitation/create", "params": params})
}

fn log(data: &str) -> Value {
    json!({"method": "notifications/message", "params": {"level": "info", "data": data}})
}

fn progress(on: &str) -> Value {
    json!({"method": "notifications/progress", "params": {"on": on, "progress": 1}})
}

fn able(shim: &Shim) -> String {
    shim.session_of(&json!({"elicitation": {}}))
}

/// Answers a request of the server's; gives the status.
fn accept(shim: &Shim, session: &str, id: &Value, name: &str) -> u16 {
    let result = json!({"action": "accept", "content": {"name": name}});
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
    let (status, _, said) = shim.post(session, &answer);
    if status == 400 {
        let reason = said["error"]["message"].as_str().unwrap_or_default();
        assert!(reason.contains("asked nothing with this id"), "{said}");
    }
    status
}

/// What the server was answered, by the end of its call.
fn answers(answer: Answer) -> Vec<Value> {
    let last = answer.all().pop().expect("an answer");
    assert_eq!(last["id"], "a", "{last}");
    let answers = last["result"]["answers"].as_array();
    answers.unwrap_or_else(|| panic!("{last}")).clone()
}

fn names(answers: &[Value]) -> Vec<&str> {
    let name = |a: &Value| a["result"]["content"]["name"].as_str().map(str::len);
    assert!(answers.iter().all(|a| name(a).is_some()), "{answers:?}");
    let names = answers.iter();
    names
        .filter_map(|a| a["result"]["content"]["name"].as_str())
        .collect()
}

#[test]
fn what_is_said_before_an_answer_comes_before_it_in_order() {
    for shim in both() {
        let session = able(&shim);
        let said =
            json!({"say": [progress("own"), log("one"), progress("own"), log("\u{2028}two")]});
        let answer = begin(&shim, &session, &said, &json!("mine"));
        assert!(answer.streams && answer.status == 200);
        let heard = answer.all();
        let what: Vec<_> = heard
            .iter()
            .map(|m| match (m["params"]["data"].as_str(), &m["id"]) {
                (Some(data), _) => data,
                (None, Value::Null) => m["params"]["progressToken"].as_str().expect("a token"),
                (None, id) => id.as_str().expect("an id"),
            })
            .collect();
        assert_eq!(what, ["mine", "one", "mine", "\u{2028}two", "a"]);
        // Who takes no events gets the answer alone.
        let (status, answer) = shim.call(&session, said);
        assert_eq!((status, &answer["result"]["answers"]), (200, &json!([])));
    }
}

#[test]
fn an_answer_that_comes_first_is_plain() {
    for shim in both() {
        for session in [String::new(), able(&shim)] {
            let mut answer = begin(&shim, &session, &json!({"text": "x"}), &json!(1));
            let message = answer.next().expect("an answer");
            assert!(!answer.streams && answer.status == 200, "{message}");
            assert_eq!(message["result"]["length"], 1);
            // Progress of a call that gave no token is nobody's.
            let quiet = json!({"say": [progress("own")]});
            assert!(!begin(&shim, &session, &quiet, &Value::Null).streams);
        }
    }
}

#[test]
fn the_client_answers_what_the_server_asks() {
    for shim in both() {
        let session = able(&shim);
        let asks = json!({"say": [elicitation(&json!(1)), elicitation(&json!("1"))], "asked": 2});
        let mut answer = begin(&shim, &session, &asks, &Value::Null);
        for id in [json!(1), json!("1")] {
            let asked = answer.next().expect("a request");
            assert_eq!(
                (&asked["method"], &asked["id"]),
                (&json!("elicitation/create"), &id)
            );
        }
        assert_eq!(accept(&shim, &session, &json!("1"), "text"), 202);
        assert_eq!(accept(&shim, &session, &json!(1), "number"), 202);
        assert_eq!(names(&answers(answer)), ["text", "number"]);
    }
}

#[test]
fn sessions_at_once_hear_and_answer_their_own() {
    for shim in both() {
        let sessions = [able(&shim), able(&shim)];
        let asks = |data: &str| json!({"say": [log(data), elicitation(&json!(0))], "asked": 1});
        let mut both: Vec<_> = sessions
            .iter()
            .enumerate()
            .map(|(at, session)| begin(&shim, session, &asks(&at.to_string()), &Value::Null))
            .collect();
        for (at, answer) in both.iter_mut().enumerate() {
            let heard = answer.next().expect("a notification");
            assert_eq!(heard["params"]["data"], at.to_string());
            let asked = answer.next().expect("a request");
            assert_eq!(asked["id"], 0);
        }
        // In the other order than they were asked in.
        for (at, session) in sessions.iter().enumerate().rev() {
            assert_eq!(accept(&shim, session, &json!(0), &format!("of {at}")), 202);
        }
        for (at, answer) in both.into_iter().enumerate() {
            assert_eq!(names(&answers(answer)), [format!("of {at}")]);
        }
    }
}

#[test]
fn an_answer_that_nobody_asked_for_is_refused_and_not_written() {
    for shim in both() {
        let [session, other] = [able(&shim), able(&shim)];
        assert_eq!(accept(&shim, &session, &json!(1), "too early"), 400);
        let asks = json!({"say": [elicitation(&json!(1))], "asked": 1});
        let mut answer = begin(&shim, &session, &asks, &Value::Null);
        assert_eq!(answer.next().expect("a request")["id"], 1);
        assert_eq!(accept(&shim, &other, &json!(1), "another's"), 400);
        assert_eq!(accept(&shim, "", &json!(1), "nobody's"), 400);
        assert_eq!(accept(&shim, &session, &json!("1"), "no number"), 400);
        assert_eq!(accept(&shim, "x", &json!(1), "unknown session"), 404);
        assert_eq!(accept(&shim, &session, &json!(1), "right"), 202);
        assert_eq!(accept(&shim, &session, &json!(1), "again"), 400);
        assert_eq!(names(&answers(answer)), ["right"]);
    }
}

#[test]
fn who_cannot_answer_is_not_asked() {
    for shim in both() {
        let asks = json!({"say": [elicitation(&json!(1))], "asked": 1});
        // Without sessions; and with one, of a client that never said that it can.
        for session in [String::new(), shim.session()] {
            let heard = answers(begin(&shim, &session, &asks, &Value::Null));
            assert_eq!(heard[0]["error"]["code"], -32601, "{heard:?}");
        }
        // A ping is answered here, and what the client cannot do is refused, whatever else it can.
        let asks = json!({"say": [{"id": 1, "method": "ping"}, {"id": 2, "method": "roots/list"}], "asked": 2});
        let heard = answers(begin(&shim, &able(&shim), &asks, &Value::Null));
        assert_eq!(heard[0]["result"], json!({}));
        assert_eq!(heard[1]["error"]["code"], -32601);
    }
}

#[test]
fn without_sessions_each_caller_hears_of_its_own_progress_only() {
    for shim in both() {
        // The same token: clients that do not know of each other may choose the same.
        let hold = json!({"hold": true});
        let (held, other) = thread::scope(|scope| {
            let held = scope.spawn(|| begin(&shim, "", &hold, &json!(1)));
            shim.noted("held");
            let said = json!({"say": [progress("own"), log("whose?"), progress("held")]});
            let other = begin(&shim, "", &said, &json!(1)).all();
            (held.join().expect("a stream").next(), other)
        });
        assert_eq!(held.expect("progress")["params"]["progressToken"], 1);
        assert_eq!(other.len(), 2, "{other:?}");
        assert_eq!(other[0]["params"]["progressToken"], 1);
    }
}

#[test]
fn the_call_of_a_caller_that_left_is_cancelled_and_asks_nobody() {
    for shim in both() {
        let session = able(&shim);
        let asks = json!({"say": [elicitation(&json!(1))], "asked": 2});
        let mut answer = begin(&shim, &session, &asks, &Value::Null);
        assert_eq!(answer.next().expect("a request")["id"], 1);
        drop(answer);
        let refused = shim.noted("answers");
        assert!(refused.contains("-32601"), "{refused}");
        assert_eq!(shim.noted("cancelled").split_whitespace().count(), 1);
        // Too late, which is not wrong.
        assert_eq!(accept(&shim, &session, &json!(1), "late"), 202);
        let asks = json!({"say": [elicitation(&json!(2))], "asked": 1});
        let mut answer = begin(&shim, &session, &asks, &Value::Null);
        assert_eq!(answer.next().expect("a request")["id"], 2);
        assert_eq!(accept(&shim, &session, &json!(2), "next"), 202);
        assert_eq!(names(&answers(answer)), ["next"]);
    }
}

#[test]
fn a_call_that_is_told_of_can_be_cancelled() {
    for shim in both() {
        let session = able(&shim);
        let asks = json!({"say": [elicitation(&json!(1))], "asked": 1});
        let mut answer = begin(&shim, &session, &asks, &Value::Null);
        assert_eq!(answer.next().expect("a request")["id"], 1);
        let params = json!({"requestId": "a"});
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        assert_eq!(shim.post(&session, &cancel).0, 202);
        let rest = answer.all();
        assert_eq!(rest.len(), 1, "{rest:?}");
        assert_eq!(rest[0]["error"]["message"], "the call was cancelled");
        shim.noted("cancelled");
    }
}

#[test]
fn a_request_that_the_server_takes_back_is_answered_to_nobody() {
    for shim in both() {
        let session = able(&shim);
        let back = json!({"method": "notifications/cancelled", "params": {"requestId": 1}});
        let said =
            json!({"say": [elicitation(&json!(1)), back, elicitation(&json!(2))], "asked": 1});
        let mut answer = begin(&shim, &session, &said, &Value::Null);
        for _ in 0..3 {
            answer.next().expect("a message");
        }
        assert_eq!(accept(&shim, &session, &json!(1), "late"), 202);
        assert_eq!(accept(&shim, &session, &json!(2), "right"), 202);
        assert_eq!(names(&answers(answer)), ["right"]);
    }
}

#[test]
fn what_is_too_much_is_refused_or_lost_and_the_answer_comes() {
    for shim in both() {
        let session = able(&shim);
        // More than may be asked at once. Its answer waits for none but the refusals, and the client's answers count after it.
        let many: Vec<_> = (1..=70).map(|id| elicitation(&json!(id))).collect();
        let asks = json!({"say": many, "asked": 6});
        let mut heard = begin(&shim, &session, &asks, &Value::Null).all();
        let answer = heard.pop().expect("an answer");
        let refused: Vec<_> = (65..=70).map(|id| json!(id)).collect();
        let answers = answer["result"]["answers"].as_array().expect("answers");
        assert!(answers.iter().map(|a| &a["id"]).eq(&refused), "{answer}");
        assert!(answers.iter().all(|a| a["error"]["code"] == -32601));
        assert_eq!(heard.len(), 64);
        for asked in &heard {
            assert_eq!(accept(&shim, &session, &asked["id"], "x"), 202);
        }
        // One that is too long by itself.
        let mut long = elicitation(&json!(1));
        long["params"]["message"] = json!("z".repeat(2 << 20));
        let said = json!({"say": [log(&"z".repeat(2 << 20)), long, log("short")], "asked": 1});
        let heard = begin(&shim, &session, &said, &Value::Null).all();
        assert_eq!(heard.len(), 2);
        assert_eq!(heard[0]["params"]["data"], "short");
        assert_eq!(heard[1]["result"]["answers"][0]["error"]["code"], -32601);
    }
}

#[test]
fn events_that_nobody_reads_are_lost_and_the_answer_comes() {
    for shim in both() {
        let session = able(&shim);
        // Far more than sockets hold.
        let mut flood = log(&"z".repeat(10_000));
        flood["times"] = json!(5_000);
        let said = json!({"say": [log("first"), flood]});
        let answer = begin(&shim, &session, &said, &Value::Null);
        shim.noted("said");
        let heard = answer.all();
        assert!((2..5_000).contains(&heard.len()), "{}", heard.len());
        assert_eq!(heard[0]["params"]["data"], "first");
        assert_eq!(heard[heard.len() - 1]["id"], "a");
    }
}
