//! Versions are swapped while messages are judged: each message is judged by one of them, whole.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use domain::{Isolation, PluginBinding};

use crate::guest::{Guest, ask, bind, call, load};

/// Says its version as the reason.
fn version(n: u8) -> Guest {
    Guest {
        more: format!("(data (i32.const 3000) \"version {n}\") (data (i32.const 1024) \"\\01\\04\\00\\00\")"),
        evaluate: "(i32.store (i32.const 1028) (i32.const 3000)) (i32.store (i32.const 1032) (i32.const 9)) (i32.const 1024)".into(),
        ..Guest::default()
    }
}

#[test]
fn a_thousand_swaps_lose_and_mix_nothing() {
    let versions = [1u8, 2].map(|n| load(&version(n)).unwrap());
    let binding = PluginBinding {
        isolation: Isolation::Tenant,
        ..PluginBinding::new("swapped")
    };
    let slot = Mutex::new(Arc::new(bind(&versions[0], &binding, "tenant").unwrap()));
    let (stop, judged) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let view = call("tenant", "x");
                while !stop.load(Ordering::Relaxed) {
                    let bound = Arc::clone(&slot.lock().unwrap());
                    let reason = ask(&bound, &view).expect("every message is judged").reason;
                    assert!(
                        matches!(reason.as_deref(), Some("version 1" | "version 2")),
                        "{reason:?}"
                    );
                    judged.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for n in 0..1000 {
            let next = Arc::new(bind(&versions[n % 2], &binding, "tenant").unwrap());
            *slot.lock().unwrap() = next;
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(judged.into_inner() > 0);
}
