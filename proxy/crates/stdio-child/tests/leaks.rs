//! Many servers one after the other and at once leave no descriptor and no process. Alone in its program, since it
//! counts what the whole program has open.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;
use std::time::Instant;

use bytes::Bytes;
use common::{eventually, marked, open_fds, program, within};
use stdio_child::Child;

async fn round_trip(mark: &mut BTreeSet<String>) {
    let (spec, new_mark) = program("cat");
    mark.insert(new_mark);
    let (child, mut lines) = within(Child::spawn(&spec)).await.unwrap();
    child.send(Bytes::from("ping")).await.unwrap();
    assert_eq!(within(lines.recv()).await.unwrap().unwrap(), "ping");
    assert_eq!(within(child.stop()).await.code, Some(0));
}

#[tokio::test]
async fn a_hundred_starts_and_stops_leave_nothing() {
    let mut marks = BTreeSet::new();
    // What the runtime opens once for all.
    round_trip(&mut marks).await;
    let fds = open_fds();
    let start = Instant::now();
    for _ in 0..100 {
        round_trip(&mut marks).await;
    }
    println!("{:?} for each start, call and stop", start.elapsed() / 100);
    let mut missing = program("no-such-program").0;
    missing.args = vec!["x".into()];
    for _ in 0..20 {
        assert!(within(Child::spawn(&missing)).await.is_err());
    }
    let many: Vec<_> = (0..30)
        .map(|_| tokio::spawn(async { round_trip(&mut BTreeSet::new()).await }))
        .collect();
    for one in many {
        one.await.unwrap();
    }
    eventually("descriptors as before", || open_fds() == fds).await;
    assert!(marks.iter().all(|mark| marked(mark).is_empty()));
    eventually("no zombie", || common::own_zombies().is_empty()).await;
}
