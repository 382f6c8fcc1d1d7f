//! Lines in and out of real processes, and how a server's own ending looks.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use common::{all_gone, eventually, marked, program, shell, within};
use stdio_child::{
    Child, ChildSpec, Exit, LineError, LineReceiver, SendError, SpawnError, StderrSink,
};

async fn spawn(spec: &ChildSpec) -> (Child, LineReceiver) {
    within(Child::spawn(spec)).await.unwrap()
}

async fn line(lines: &mut LineReceiver) -> String {
    let line = within(lines.recv())
        .await
        .expect("a line")
        .expect("no error");
    String::from_utf8(line.to_vec()).unwrap()
}

fn code(exit: &Exit) -> (Option<i32>, Option<i32>) {
    (exit.code, exit.signal)
}

#[tokio::test]
async fn lines_go_in_and_come_out() {
    let (spec, mark) = program("cat");
    let (child, mut lines) = spawn(&spec).await;
    for text in ["{\"id\":1}", "", "\u{e9}\u{1f600}", "with\rreturn"] {
        child.send(Bytes::from(text)).await.unwrap();
        assert_eq!(line(&mut lines).await, text);
    }
    assert!(child.is_alive());
    let all = marked(&mark);
    assert_eq!(all.len(), 2, "the server and its reaper");
    assert!(all.contains(&(child.pid() as i32)));
    let identities = all
        .iter()
        .filter_map(|pid| common::identity(*pid))
        .collect();
    assert_eq!(code(&within(child.stop()).await), (Some(0), None));
    assert!(!child.is_alive());
    assert!(within(lines.recv()).await.is_none());
    assert_eq!(
        child.send(Bytes::from("late")).await,
        Err(SendError::Closed)
    );
    all_gone(&mark, &identities).await;
}

#[tokio::test]
async fn large_lines_go_both_ways_at_once() {
    let (spec, _) = program("cat");
    let (child, mut lines) = spawn(&spec).await;
    let large = Bytes::from(vec![b'x'; 3 * 1024 * 1024]);
    let send = async {
        for _ in 0..4 {
            child.send(large.clone()).await.unwrap();
        }
    };
    let receive = async {
        for _ in 0..4 {
            assert!(within(lines.recv()).await.unwrap().unwrap() == large);
        }
    };
    tokio::join!(send, receive);
    child.stop().await;
}

#[tokio::test]
async fn what_is_no_line_is_refused() {
    let (mut spec, _) = program("cat");
    spec.line_bytes_max = 10;
    let (child, mut lines) = spawn(&spec).await;
    let send = |text: &'static str| child.send(Bytes::from_static(text.as_bytes()));
    assert_eq!(send("a\nb").await, Err(SendError::LineFeed));
    assert_eq!(
        send("12345678901").await,
        Err(SendError::TooLong {
            bytes: 11,
            bytes_max: 10
        })
    );
    send("1234567890").await.unwrap();
    assert_eq!(line(&mut lines).await, "1234567890");
    child.stop().await;

    spec.written_bytes_max = Some(11);
    let (child, mut lines) = spawn(&spec).await;
    let send = |text: &'static str| child.send(Bytes::from_static(text.as_bytes()));
    assert!(send("123456789012").await.is_err());
    send("12345678901").await.unwrap();
    let read = within(lines.recv()).await.unwrap();
    assert!(matches!(
        read,
        Err(LineError::TooLong { bytes_max: 10, .. })
    ));
    child.stop().await;
}

#[tokio::test]
async fn a_long_line_comes_in_parts_and_the_next_one_after_it() {
    let (mut spec, _) = shell("head -c 50000000 /dev/zero | tr '\\0' x; echo; echo next");
    spec.line_bytes_max = 100_000;
    let (child, mut lines) = spawn(&spec).await;
    let mut bytes = 0;
    loop {
        let read = within(lines.recv()).await.unwrap();
        let Err(LineError::TooLong { part, ends, .. }) = read else {
            panic!("no part of a line: {read:?}");
        };
        bytes += part.0.len();
        if ends {
            break;
        }
    }
    assert_eq!(bytes, 50_000_000);
    assert_eq!(line(&mut lines).await, "next");
    assert!(within(lines.recv()).await.is_none());
    assert_eq!(code(&within(child.exited()).await), (Some(0), None));
}

#[tokio::test]
async fn death_in_mid_line_is_no_line() {
    let (spec, mark) = shell("echo whole; printf '{\"id\":'; kill -9 $$");
    let (child, mut lines) = spawn(&spec).await;
    assert_eq!(line(&mut lines).await, "whole");
    let half = within(lines.recv()).await.unwrap();
    assert!(
        matches!(half, Err(LineError::Unfinished { bytes: 6 })),
        "{half:?}"
    );
    assert!(within(lines.recv()).await.is_none());
    assert!(within(lines.recv()).await.is_none());
    let exit = within(child.exited()).await;
    assert_eq!(code(&exit), (None, Some(9)));
    assert_eq!(exit.to_string(), "`sh` was ended by signal 9");
    all_gone(&mark, &Default::default()).await;
}

/// A server that writes as fast as it can is held by its pipe, and nothing grows on our side.
#[tokio::test]
async fn a_slow_reader_makes_the_server_wait() {
    let dir = tempfile::tempdir().unwrap();
    let count = dir.path().join("count");
    let (mut spec, _) = program("/usr/bin/python3");
    spec.stop_grace = Duration::from_millis(500);
    let script = "import os, sys\n\
        line = b'y' * 999 + b'\\n'\n\
        for n in range(100000):\n    os.write(1, line)\n    os.pwrite(fd, b'%d' % (n + 1), 0)\n";
    let open = format!("import os\nfd = os.open({count:?}, os.O_CREAT | os.O_RDWR)\n");
    spec.args = vec!["-c".into(), (open + script).into()];
    let (child, mut lines) = spawn(&spec).await;
    let written = || {
        std::fs::read_to_string(&count)
            .ok()
            .and_then(|text| text.parse::<usize>().ok())
    };
    eventually("the server sleeps in its write to a full pipe", || {
        let asleep = common::stat(child.pid() as i32).is_some_and(|(state, ..)| state == 'S');
        asleep && written().is_some_and(|count| count > 60)
    })
    .await;
    for _ in 0..100 {
        line(&mut lines).await;
    }
    eventually("room was used", || written().unwrap_or(0) > 100).await;
    let written = written().unwrap();
    assert!(
        written < 300,
        "{written} lines of 1000 bytes were taken, 100 of them were asked for"
    );
    assert!(within(child.stop()).await.signal.is_some());
}

/// The queue is bounded: with a server that reads nothing, `send` waits in the end.
#[tokio::test]
async fn a_server_that_does_not_read_makes_the_sender_wait() {
    let (mut spec, mark) = program("sleep");
    spec.args = vec!["100".into()];
    spec.stop_grace = Duration::from_millis(500);
    spec.queue_max = 3;
    let (child, _lines) = spawn(&spec).await;
    let kib32 = Bytes::from(vec![b'x'; 32 * 1024]);
    let mut sent = 0;
    while tokio::time::timeout(Duration::from_millis(500), child.send(kib32.clone()))
        .await
        .is_ok()
    {
        sent += 1;
        assert!(sent < 100, "nothing ever filled up");
    }
    // 64 KiB in the pipe, one line in the writer's hand, three in the queue.
    assert!((4..=6).contains(&sent), "{sent}");
    // One who waits is let go when the server is stopped.
    let (late, exit) = tokio::join!(child.send(kib32), child.stop());
    assert_eq!(late, Err(SendError::Closed));
    assert!(exit.signal.is_some());
    all_gone(&mark, &Default::default()).await;
}

/// Nobody but the server holds the other ends of its pipes.
#[tokio::test]
async fn a_server_that_closes_its_pipes_is_seen_to() {
    let (mut spec, mark) = shell("echo bye; exec <&- >&-; sleep 100");
    spec.stop_grace = Duration::from_millis(100);
    let (child, mut lines) = spawn(&spec).await;
    assert_eq!(line(&mut lines).await, "bye");
    assert!(within(lines.recv()).await.is_none());
    let closed = async {
        while child.send(Bytes::from("x")).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    within(closed).await;
    assert!(child.is_alive());
    child.stop().await;
    all_gone(&mark, &Default::default()).await;
}

#[tokio::test]
async fn what_was_sent_before_a_stop_is_still_written() {
    let (spec, _) = shell("sleep 0.2; wc -l");
    let (child, mut lines) = spawn(&spec).await;
    for _ in 0..50 {
        child.send(Bytes::from("x")).await.unwrap();
    }
    let exit = within(child.stop()).await;
    assert_eq!(code(&exit), (Some(0), None));
    assert_eq!(line(&mut lines).await.trim(), "50");
}

#[tokio::test]
async fn an_exit_at_once_is_told_with_the_last_stderr_lines() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (mut spec, mark) =
        shell("echo 'cannot find module x' >&2; printf 'half\\033[2J' >&2; exit 3");
    spec.stderr = StderrSink::Log({
        let seen = Arc::clone(&seen);
        Arc::new(move |line: &str| seen.lock().unwrap().push(line.to_owned()))
    });
    let (child, mut lines) = spawn(&spec).await;
    assert!(within(lines.recv()).await.is_none());
    let exit = within(child.exited()).await;
    assert_eq!(code(&exit), (Some(3), None));
    assert_eq!(exit.to_string(), "`sh` exited with code 3");
    assert_eq!(
        exit.stderr_tail,
        ["cannot find module x", "half\u{fffd}[2J"]
    );
    assert_eq!(*seen.lock().unwrap(), exit.stderr_tail);
    all_gone(&mark, &Default::default()).await;
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "text").unwrap();
    let plain = plain.to_str().unwrap();
    for (name, errno) in [
        ("no-such-program-here", 2),
        ("/no/such", 2),
        ("", 2),
        (plain, 13),
        ("/", 13),
    ] {
        let (spec, mark) = program(name);
        match within(Child::spawn(&spec)).await.map(drop) {
            Err(SpawnError::Program { program, source }) => {
                assert_eq!(program, name);
                assert_eq!(source.raw_os_error(), Some(errno), "{name:?}: {source}");
            }
            other => panic!("{name:?}: {other:?}"),
        }
        assert!(marked(&mark).is_empty());
    }
    let (mut spec, _) = program("cat");
    spec.cwd = Some("/no/such/directory".into());
    let error = within(Child::spawn(&spec)).await.map(drop).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot enter the working directory /no/such/directory"
    );
    let (mut spec, _) = program("cat");
    spec.reaper = stdio_child::ReaperMode::Program("/no/such/reaper".into(), vec![]);
    let error = within(Child::spawn(&spec)).await.map(drop).unwrap_err();
    assert!(matches!(error, SpawnError::Reaper { .. }), "{error:?}");
    spec.reaper = stdio_child::ReaperMode::Program("/bin/true".into(), vec![]);
    let error = within(Child::spawn(&spec)).await.map(drop).unwrap_err();
    assert!(matches!(error, SpawnError::ReaperEnded { .. }), "{error:?}");
    // Other tests' children pass through this state, those of a failed start would stay in it.
    eventually("no zombie of a failed start", || {
        common::own_zombies().is_empty()
    })
    .await;
}

#[tokio::test]
async fn environment_directory_and_arguments() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let (mut spec, _) =
        shell("pwd; echo \"$0 $1\"; env | sed 's/=.*//' | sort | tr '\\n' ' '; echo; echo $SECRET");
    spec.args.extend(["--".into(), "--grace-ms".into()]);
    spec.cwd = Some(dir.clone());
    spec.env_clear = true;
    spec.env.push(("PATH".into(), "/usr/bin:/bin".into()));
    spec.env.push(("SECRET".into(), "hunter2".into()));
    let (child, mut lines) = spawn(&spec).await;
    assert_eq!(line(&mut lines).await, dir.to_str().unwrap());
    assert_eq!(line(&mut lines).await, "-- --grace-ms");
    assert_eq!(
        line(&mut lines).await.trim(),
        "PATH PWD SECRET STDIO_CHILD_TEST WEIR_CHILD_TAG"
    );
    assert_eq!(line(&mut lines).await, "hunter2");
    assert_eq!(code(&within(child.exited()).await), (Some(0), None));
    assert!(!format!("{spec:?} {child:?}").contains("hunter2"));
}
