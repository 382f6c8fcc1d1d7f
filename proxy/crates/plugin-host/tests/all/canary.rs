//! Two tenants take turns in the same slots: neither ever sees a byte of the other.

use domain::{Grant, Isolation, PluginBinding, PolicyAction};

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

/// `CANARY_ROUNDS` says how many; tests of the whole run take 100,000.
#[test]
fn tenants_that_take_turns_see_nothing_of_each_other() {
    let rounds = rounds();
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

fn rounds() -> u32 {
    let wanted = std::env::var("CANARY_ROUNDS").ok();
    wanted.and_then(|n| n.parse().ok()).unwrap_or(100_000)
}

/// Keeps the first eight letters of the argument wherever something can be kept: in memory, in the state
/// of the session and of the tenant. Blocks if what it kept before says something else.
fn keeper() -> Guest {
    let state = |scope: u32| {
        format!(
            "(call $get (i32.const {scope}) (i32.const 3000) (i32.const 1) (i32.const 2048))
             (if (i32.load8_u (i32.const 2048)) (then unreachable))
             (if (i32.load8_u (i32.const 2052)) (then
               (if (i64.ne (i64.load (i32.load (i32.const 2056))) (local.get $mine)) (then (return (i32.const 1024))))))
             (call $set (i32.const {scope}) (i32.const 3000) (i32.const 1) (i32.const 131072) (i32.const 8) (i32.const 0) (i32.const 2048))
             (if (i32.load8_u (i32.const 2048)) (then unreachable))"
        )
    };
    Guest {
        imports: "(import \"weir:policy/host@0.1.0\" \"state-get\" (func $get (param i32 i32 i32 i32)))
            (import \"weir:policy/host@0.1.0\" \"state-set\" (func $set (param i32 i32 i32 i32 i32 i32 i32)))".into(),
        memory: "(memory (export \"memory\") 4)".into(),
        more: "(data (i32.const 3000) \"k\") (data (i32.const 1024) \"\\01\\04\\00\\00\")".into(),
        evaluate: format!(
            "(local $mine i64) (local $leaves i32)
             (local.set $leaves (i32.load offset=92 (local.get 0)))
             (local.set $mine (i64.load (i32.add (i32.load (local.get 0)) (i32.load offset=32 (local.get $leaves)))))
             (global.set $next (i32.const 4096))
             (if (i64.ne (i64.load (i32.const 131072)) (i64.const 0)) (then
               (if (i64.ne (i64.load (i32.const 131072)) (local.get $mine)) (then (return (i32.const 1024))))))
             (i64.store (i32.const 131072) (local.get $mine))
             {} {} (i32.const 0)",
            state(0),
            state(1)
        ),
        ..Guest::default()
    }
}

#[test]
fn what_tenants_may_keep_is_their_own() {
    let plugin = load(&keeper()).unwrap();
    for isolation in [Isolation::Message, Isolation::Tenant] {
        let binding = PluginBinding {
            isolation,
            grants: vec![Grant::SessionState, Grant::TenantState],
            ..PluginBinding::new("keeper")
        };
        // Sessions of the two have one name.
        let tenants = ["red", "blue"].map(|tenant| {
            (
                bind(&plugin, &binding, tenant).unwrap(),
                call(tenant, &tenant.repeat(8)),
            )
        });
        for round in 0..rounds() {
            for (bound, view) in &tenants {
                let verdict = ask(bound, view).unwrap();
                assert_eq!(verdict.action, None, "{isolation:?}, round {round}");
            }
        }
        // The keeper works: shown another's letters, it says so.
        let said = ask(&tenants[0].0, &tenants[1].1).unwrap().action;
        assert_eq!(said, Some(PolicyAction::Block), "{isolation:?}");
    }
}
