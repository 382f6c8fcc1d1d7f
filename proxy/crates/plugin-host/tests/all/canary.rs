//! Two tenants take turns in the same slots: neither ever sees a byte of the other.

use domain::{Isolation, PluginBinding, PolicyAction};

use crate::guest::{Guest, ask, bind, call, load};

/// Looks for anything but zeros in 64 KiB of its memory, in a global and in a table; blocks if there
/// is something, and then leaves its own mark in all three.
fn canary() -> Guest {
    Guest {
        memory: "(memory (export \"memory\") 4)".into(),
        more: "(global $mark (mut i64) (i64.const 0)) (table $t 8 funcref) (elem declare func $evaluate)
               (data (i32.const 1024) \"\\01\\04\\00\\00\")".into(),
        evaluate: "(local $at i32) (local $seen i64)
            (local.set $seen (global.get $mark))
            (if (i32.eqz (ref.is_null (table.get $t (i32.const 5)))) (then (local.set $seen (i64.const 1))))
            (local.set $at (i32.const 131072))
            (loop $l
              (local.set $seen (i64.or (local.get $seen) (i64.load (local.get $at))))
              (i64.store (local.get $at) (i64.const 0x4341_4e41_5259))
              (local.set $at (i32.add (local.get $at) (i32.const 64)))
              (br_if $l (i32.lt_u (local.get $at) (i32.const 196608))))
            (global.set $mark (i64.const 77))
            (table.set $t (i32.const 5) (ref.func $evaluate))
            (if (result i32) (i64.eqz (local.get $seen)) (then (i32.const 0)) (else (i32.const 1024)))".into(),
        ..Guest::default()
    }
}

/// `CANARY_ROUNDS=100000` is the long run.
#[test]
fn tenants_that_take_turns_see_nothing_of_each_other() {
    let rounds: u32 = std::env::var("CANARY_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(3_000);
    let plugin = load(&canary()).unwrap();
    let binding = PluginBinding::new("canary");
    let tenants = ["red", "blue"].map(|tenant| {
        (
            bind(&plugin, &binding, tenant).unwrap(),
            call(tenant, tenant),
        )
    });
    for round in 0..rounds {
        for (bound, view) in &tenants {
            assert_eq!(ask(bound, view).unwrap().action, None, "round {round}");
        }
    }
    // The canary works: kept, it sees itself.
    let kept = PluginBinding {
        isolation: Isolation::Tenant,
        ..binding
    };
    let kept = bind(&plugin, &kept, "red").unwrap();
    ask(&kept, &tenants[0].1).unwrap();
    assert_eq!(
        ask(&kept, &tenants[0].1).unwrap().action,
        Some(PolicyAction::Block)
    );
}
