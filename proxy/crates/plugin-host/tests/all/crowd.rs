//! A tenant whose plugin judges as many messages at once as it can get.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dlp_policy::EvalError;
use domain::PluginBinding;
use parking_lot::{Condvar, Mutex};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::guest::{Guest, ask, bind, call, load};

/// More than there are slots.
const CALLS: usize = 600;

/// Keeps every line that a plugin logs, and so the plugin, until it is told otherwise.
#[derive(Clone, Default)]
struct Hold(Arc<(Mutex<Held>, Condvar)>);

#[derive(Default)]
struct Held {
    lines: usize,
    released: bool,
}

impl Hold {
    fn lines(&self) -> usize {
        self.0.0.lock().lines
    }

    fn release(&self) {
        self.0.0.lock().released = true;
        self.0.1.notify_all();
    }
}

impl Subscriber for Hold {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        let (held, changed) = &*self.0;
        let mut held = held.lock();
        held.lines += 1;
        while !held.released {
            changed.wait(&mut held);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn one_tenants_slow_plugin_leaves_room_for_anothers() {
    let slow = Guest {
        imports: "(import \"weir:policy/host@0.1.0\" \"log\" (func $log (param i32 i32 i32)))"
            .into(),
        more: "(data (i32.const 3000) \"k\")".into(),
        evaluate: "(call $log (i32.const 1) (i32.const 3000) (i32.const 1)) (i32.const 0)".into(),
        ..Guest::default()
    };
    let slow = bind(&load(&slow).unwrap(), &PluginBinding::new("slow"), "tenant").unwrap();
    let decent = PluginBinding {
        timeout_ms: 1000,
        ..PluginBinding::new("decent")
    };
    let decent = bind(&load(&Guest::default()).unwrap(), &decent, "other").unwrap();
    let (hold, refused) = (Hold::default(), AtomicUsize::new(0));
    let crowd = || {
        tracing::subscriber::with_default(hold.clone(), || {
            let said = ask(&slow, &call("tenant", "x"));
            if said == Err(EvalError::NoRoom) {
                refused.fetch_add(1, Ordering::SeqCst);
            }
        });
    };
    std::thread::scope(|scope| {
        for _ in 0..CALLS {
            scope.spawn(crowd);
        }
        while hold.lines() + refused.load(Ordering::SeqCst) < CALLS {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let said: Vec<_> = (0..4).map(|_| ask(&decent, &call("other", "x"))).collect();
        let held = hold.lines();
        // First of all: whoever fails the test lets the crowd go.
        hold.release();
        assert!(said.iter().all(Result::is_ok), "{said:?}");
        assert!(held > 0 && held < CALLS / 4, "{held}");
    });
    ask(&slow, &call("tenant", "x")).expect("it has not failed, and its breaker is closed");
}
