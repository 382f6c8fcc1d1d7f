//! `testbed __reaper ...` is a reaper. `testbed hold PROGRAM ARGS...` starts a server with itself as the
//! reaper, prints the server's lines, and lives until its stdin ends or it is killed.

use std::io::Write;
use std::time::Duration;

use stdio_child::{Child, ChildSpec, REAPER_COMMAND, reaper_main};

fn main() {
    let mut args = std::env::args_os().skip(1);
    let first = args.next().expect("a sub-command");
    if first == REAPER_COMMAND {
        std::process::exit(reaper_main(args));
    }
    assert_eq!(first, "hold");
    let mut spec = ChildSpec::new(args.next().expect("a program"));
    spec.args = args.collect();
    spec.stop_grace = Duration::from_millis(300);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(hold(spec));
}

async fn hold(spec: ChildSpec) {
    let (child, mut lines) = Child::spawn(&spec).await.expect("the server starts");
    let stdin_ends =
        tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    let print = async {
        while let Some(Ok(line)) = lines.recv().await {
            let mut stdout = std::io::stdout().lock();
            stdout
                .write_all(&line)
                .and_then(|()| stdout.write_all(b"\n"))
                .expect("stdout is read");
            stdout.flush().expect("stdout is read");
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = stdin_ends => {}
        () = print => {}
    }
    child.stop().await;
}
