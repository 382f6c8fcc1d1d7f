//! No process outlives a server, whichever side ends first and however: every kind of server against every kind
//! of ending.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use common::{
    Identity, all_gone, eventually, identity, mark_env, marked, new_mark, program, shell, stat,
    testbed, within,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use stdio_child::{Child, ChildSpec, LineReceiver};

/// Servers by what makes them hard to end. Each prints `pid N` for a process that hides its mark, then
/// `ready` when all its processes run.
const SERVERS: &[(&str, &str)] = &[
    ("reads to the end", "echo ready; exec cat"),
    ("never reads", "echo ready; exec sleep 100"),
    (
        "has grandchildren",
        "sh -c 'sleep 100 & echo ready; cat; wait; true'; true",
    ),
    (
        "ignores SIGTERM",
        "trap '' TERM HUP INT; echo ready; while :; do sleep 100; done",
    ),
    (
        "leaves a background process",
        "trap '' TERM; sleep 100 & echo ready; exec cat",
    ),
    ("is stopped", "sleep 100 & echo ready; kill -STOP $$"),
    (
        "kills its group",
        "trap 'kill -9 0' EXIT TERM; echo ready; cat",
    ),
    ("daemonises", "exec /usr/bin/python3 -c \"$DAEMON\""),
    (
        "hides a daemon",
        "exec /usr/bin/python3 -c \"$HIDDEN_DAEMON\"",
    ),
    (
        "hops from id to id",
        "HOPS=1 PAUSE=0.005 exec /usr/bin/python3 -c \"$HOPPERS\"",
    ),
];

/// Forks twice with `setsid` between, ignores SIGTERM, holds no pipe.
const DAEMON: &str = "
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(1, b'ready\\n')
        os.closerange(0, 10)
        time.sleep(100)
    os._exit(0)
os.wait()
time.sleep(100)
";

/// The same, and the daemon has an empty environment.
const HIDDEN_DAEMON: &str = "
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(1, b'pid %d\\nready\\n' % os.getpid())
        os.closerange(0, 10)
        os.execve('/bin/sleep', ['sleep', '100'], {})
    os._exit(0)
os.wait()
time.sleep(100)
";

/// Processes that take a new id again and again: HOPS of them, every PAUSE seconds. They end by themselves, since
/// what a failed test leaves behind could not be caught by hand.
const HOPPERS: &str = "
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
end = time.monotonic() + 30
hops, pause = int(os.environ['HOPS']), float(os.environ['PAUSE'])
for _ in range(hops):
    if os.fork() == 0:
        os.setsid()
        os.closerange(0, 10)
        while time.monotonic() < end:
            if os.fork() != 0:
                os._exit(0)
            time.sleep(pause)
        os._exit(0)
os.write(1, b'ready\\n')
time.sleep(100)
";

fn server(script: &str) -> (ChildSpec, String) {
    let (mut spec, mark) = shell(script);
    spec.stop_grace = Duration::from_millis(100);
    for (name, value) in [
        ("DAEMON", DAEMON),
        ("HIDDEN_DAEMON", HIDDEN_DAEMON),
        ("HOPPERS", HOPPERS),
    ] {
        spec.env.push((name.into(), value.into()));
    }
    (spec, mark)
}

/// A running server, and all its processes.
async fn start(script: &str) -> (Child, LineReceiver, String, BTreeSet<Identity>) {
    let (spec, mark) = server(script);
    let (child, mut lines) = within(Child::spawn(&spec)).await.unwrap();
    let mut processes = BTreeSet::new();
    loop {
        let line = within(lines.recv()).await.unwrap().unwrap();
        let Some(hidden) = hidden(std::str::from_utf8(&line).unwrap()) else {
            break;
        };
        processes.insert(hidden);
    }
    // The reaper and the server at least. One that starts another program just now has no environment for a moment.
    let two = async {
        while processes.len() < 2 {
            processes.extend(marked(&mark).into_iter().filter_map(identity));
            tokio::task::yield_now().await;
        }
    };
    within(two).await;
    processes.extend(marked(&mark).into_iter().filter_map(identity));
    (child, lines, mark, processes)
}

/// The process which a line `pid N` names.
fn hidden(line: &str) -> Option<Identity> {
    identity(line.strip_prefix("pid ")?.parse().unwrap())
}

fn reaper_of(child: &Child) -> i32 {
    let (_, reaper, _) = stat(child.pid() as i32).unwrap();
    assert_eq!(stat(reaper).unwrap().2, "mcp-reaper");
    reaper
}

fn signal(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).unwrap();
}

#[tokio::test]
async fn stop_ends_all() {
    for (name, script) in SERVERS {
        println!("{name}");
        let (child, mut lines, mark, processes) = start(script).await;
        let (first, second) = tokio::join!(within(child.stop()), within(child.stop()));
        assert_eq!(first, second);
        assert_eq!(
            marked(&mark),
            BTreeSet::new(),
            "stop returns when all are gone"
        );
        assert!(within(lines.recv()).await.is_none());
        assert_eq!(within(child.stop()).await, first);
        all_gone(&mark, &processes).await;
    }
}

#[tokio::test]
async fn dropping_the_handle_ends_all() {
    for (name, script) in SERVERS {
        println!("{name}");
        let (child, lines, mark, processes) = start(script).await;
        drop((child, lines));
        all_gone(&mark, &processes).await;
    }
}

#[tokio::test]
async fn what_the_server_leaves_behind_is_ended() {
    for (name, script) in SERVERS {
        println!("{name}");
        let (child, mut lines, mark, processes) = start(script).await;
        signal(child.pid() as i32, Signal::SIGKILL);
        let exit = within(child.exited()).await;
        assert_eq!((exit.code, exit.signal), (None, Some(9)));
        assert!(within(lines.recv()).await.is_none());
        all_gone(&mark, &processes).await;
    }
}

/// `kill -9` of the program that uses this crate.
#[tokio::test]
async fn death_of_the_parent_ends_all() {
    for (name, script) in SERVERS {
        println!("{name}");
        let (mut holder, mark, processes) = hold(script);
        holder.kill().unwrap();
        holder.wait().unwrap();
        all_gone(&mark, &processes).await;
    }
}

/// A program that runs the server `script`, and all the processes of both.
fn hold(script: &str) -> (std::process::Child, String, BTreeSet<Identity>) {
    let mark = new_mark();
    let mut holder = Command::new(testbed())
        .args(["hold", "sh", "-c", script])
        .envs([mark_env(&mark), ("DAEMON", DAEMON)])
        .envs([("HIDDEN_DAEMON", HIDDEN_DAEMON), ("HOPPERS", HOPPERS)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    let mut processes: BTreeSet<_> = lines.map_while(|line| hidden(&line.unwrap())).collect();
    // Between two programs a process has no environment to be known by.
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while processes.len() < 3 && std::time::Instant::now() < deadline {
        processes.extend(marked(&mark).into_iter().filter_map(identity));
        std::thread::sleep(Duration::from_millis(5));
    }
    processes.extend(marked(&mark).into_iter().filter_map(identity));
    assert!(processes.len() >= 3, "holder, reaper, server");
    (holder, mark, processes)
}

/// `kill -9` of the reaper, the process that was to clean up. Only a daemon without our environment and
/// outside the reaper's session cannot be found then.
#[tokio::test]
async fn death_of_the_reaper_ends_all() {
    for (name, script) in SERVERS.iter().filter(|(name, _)| *name != "hides a daemon") {
        println!("{name}");
        let (child, mut lines, mark, processes) = start(script).await;
        signal(reaper_of(&child), Signal::SIGKILL);
        let exit = within(child.exited()).await;
        assert_eq!((exit.code, exit.signal), (None, None));
        assert!(within(lines.recv()).await.is_none());
        all_gone(&mark, &processes).await;
    }
}

/// Both at once: nobody is left to look for anything, but the server itself dies by its parent-death signal.
#[tokio::test]
async fn death_of_parent_and_reaper_ends_the_server() {
    let (mut holder, mark, processes) = hold("echo ready; exec sleep 100");
    let is_reaper =
        |(pid, _): &&Identity| stat(*pid).is_some_and(|(_, _, name)| name == "mcp-reaper");
    let (reaper, _) = *processes.iter().find(is_reaper).unwrap();
    // Stopped first, so that it cannot act on the parent's death.
    signal(reaper, Signal::SIGSTOP);
    holder.kill().unwrap();
    holder.wait().unwrap();
    signal(reaper, Signal::SIGKILL);
    all_gone(&mark, &processes).await;
}

/// A reaper that does not answer is killed in the end, and its work done for it.
#[tokio::test]
async fn a_hanging_reaper_does_not_hang_the_stop() {
    let (child, _lines, mark, processes) =
        start("trap '' TERM; sleep 100 & echo ready; sleep 100").await;
    signal(reaper_of(&child), Signal::SIGSTOP);
    within(child.stop()).await;
    all_gone(&mark, &processes).await;
}

/// A service manager's or an operator's polite signal to the reaper is passed on.
#[tokio::test]
async fn sigterm_to_the_reaper_ends_all() {
    let (spec, mark) = shell("sleep 100 & echo ready; sleep 100; true");
    let (child, mut lines) = within(Child::spawn(&spec)).await.unwrap();
    assert_eq!(within(lines.recv()).await.unwrap().unwrap(), "ready");
    let processes = marked(&mark).into_iter().filter_map(identity).collect();
    let reaper = reaper_of(&child);
    // Neither of these ends it.
    signal(reaper, Signal::SIGUSR1);
    signal(reaper, Signal::SIGALRM);
    signal(reaper, Signal::SIGTERM);
    let exit = within(child.exited()).await;
    assert_eq!((exit.code, exit.signal), (None, Some(15)));
    all_gone(&mark, &processes).await;
}

/// A swarm that is never where it was when one looked: each round of SIGKILL gets some of it, and only
/// the reaper is there to go on.
#[tokio::test]
async fn a_swarm_is_ended() {
    let script = "HOPS=30 PAUSE=0 exec /usr/bin/python3 -c \"$HOPPERS\"";
    let (mut holder, mark, processes) = hold(script);
    holder.kill().unwrap();
    holder.wait().unwrap();
    all_gone(&mark, &processes).await;
}

/// SIGTERM alone would stay pending until the grace is over.
#[tokio::test]
async fn a_stopped_server_gets_its_polite_signal() {
    let (spec, mark) = shell("echo ready; kill -STOP $$");
    let (child, mut lines) = within(Child::spawn(&spec)).await.unwrap();
    assert_eq!(within(lines.recv()).await.unwrap().unwrap(), "ready");
    signal(reaper_of(&child), Signal::SIGTERM);
    let exit = within(child.exited()).await;
    assert_eq!((exit.code, exit.signal), (None, Some(15)));
    all_gone(&mark, &BTreeSet::new()).await;
}

/// Its process group is its own, so the reaper lives to tell.
#[tokio::test]
async fn a_server_may_kill_its_group() {
    let (spec, mark) = shell("sleep 100 & kill -9 0");
    let (child, _lines) = within(Child::spawn(&spec)).await.unwrap();
    let exit = within(child.exited()).await;
    assert_eq!((exit.code, exit.signal), (None, Some(9)));
    all_gone(&mark, &BTreeSet::new()).await;
}

#[tokio::test]
async fn orphans_are_reaped_while_the_server_runs() {
    let script = "for n in 1 2 3 4 5; do sh -c 'true & true' & done; wait; echo ready; exec cat";
    let (child, _lines, mark, _) = start(script).await;
    let reaper = reaper_of(&child);
    let children = || std::fs::read_to_string(format!("/proc/{reaper}/task/{reaper}/children"));
    eventually("only the server is left", || {
        children().unwrap().trim() == child.pid().to_string()
    })
    .await;
    child.stop().await;
    all_gone(&mark, &BTreeSet::new()).await;
}

/// The parent-death signal follows threads, this crate's promise does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_outlives_the_thread_that_spawned_it() {
    let (spec, mark) = program("cat");
    let runtime = tokio::runtime::Handle::current();
    let spawning = std::thread::spawn(move || runtime.block_on(Child::spawn(&spec)).unwrap());
    let (child, mut lines) = tokio::task::spawn_blocking(|| spawning.join().unwrap())
        .await
        .unwrap();
    for _ in 0..3 {
        child.send(Bytes::from("still here")).await.unwrap();
        assert_eq!(within(lines.recv()).await.unwrap().unwrap(), "still here");
    }
    child.stop().await;
    all_gone(&mark, &BTreeSet::new()).await;
}

#[tokio::test]
async fn a_start_that_nobody_waits_for_leaves_nothing() {
    for micros in (0..4000).step_by(200) {
        let (spec, mark) = server("trap '' TERM; sleep 100 & exec cat");
        let started =
            tokio::time::timeout(Duration::from_micros(micros), Child::spawn(&spec)).await;
        drop(started);
        eventually("all gone", || marked(&mark).is_empty()).await;
    }
    eventually("no zombie", || common::own_zombies().is_empty()).await;
}

#[test]
fn the_end_of_the_runtime_ends_all() {
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let first = runtime();
    let (child, lines, mark, _) =
        first.block_on(start("trap '' TERM; sleep 100 & echo ready; cat"));
    drop(first);
    runtime().block_on(async {
        eventually("all gone", || marked(&mark).is_empty()).await;
        // The driver went with its runtime, so nothing more is known.
        let exit = within(child.stop()).await;
        assert_eq!((exit.code, exit.signal), (None, None));
    });
    drop(lines);
}

/// Not even a descriptor that somebody forgot to mark as close-on-exec reaches a server.
#[tokio::test]
async fn no_descriptor_leaks_into_the_server() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    // A plain `dup` is not close-on-exec.
    let forgotten = nix::unistd::dup(&listener).unwrap();
    let (spec, _) = shell("exec ls /proc/self/fd");
    let (child, mut lines) = within(Child::spawn(&spec)).await.unwrap();
    let mut seen = Vec::new();
    while let Some(line) = within(lines.recv()).await {
        seen.push(String::from_utf8(line.unwrap().to_vec()).unwrap());
    }
    // The fourth is the directory that `ls` reads.
    assert_eq!(seen, ["0", "1", "2", "3"]);
    drop(forgotten);
    child.stop().await;
}
