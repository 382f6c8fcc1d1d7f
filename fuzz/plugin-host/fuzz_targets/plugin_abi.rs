//! What a plugin can hand to the host, whatever it is: pointers, lengths, tags, a `realloc` that lies, a
//! verdict anywhere in memory. The host neither panics nor believes it, and another tenant's plugin
//! judges on.
//!
//! Input: a program for the machine below, which a plugin runs that was compiled once. Every instruction
//! is a byte and its arguments, two bytes each; those from 0xff00 on are negative, which is far outside
//! of memory.
#![no_main]

#[path = "../../../proxy/crates/plugin-host/tests/all/guest.rs"]
#[allow(dead_code)]
mod guest;

use std::sync::{Arc, LazyLock};

use dlp_policy::{MessageView, Verdict};
use domain::{Grant, Isolation, PluginBinding};
use guest::{Guest, ask, bind, call, load};
use libfuzzer_sys::fuzz_target;
use plugin_host::{Bound, Plugin};

/// Programs longer than this say nothing new.
const PROGRAM_BYTES_MAX: usize = 1024;

static MACHINE: LazyLock<Arc<Plugin>> = LazyLock::new(|| load(&machine()).expect("a plugin"));
static DECENT: LazyLock<Bound> = LazyLock::new(|| {
    let plugin = load(&Guest::default()).expect("a plugin");
    bind(&plugin, &PluginBinding::new("decent"), "other").expect("a binding")
});

fuzz_target!(|data: &[u8]| {
    let program: String = data
        .iter()
        .take(PROGRAM_BYTES_MAX)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let view = call("tenant", &program);
    let isolation = if program.len() % 4 == 0 {
        Isolation::Message
    } else {
        Isolation::Tenant
    };
    let binding = PluginBinding {
        isolation,
        timeout_ms: 1000,
        grants: vec![
            Grant::Scan,
            Grant::SessionState,
            Grant::TenantState,
            Grant::Clock,
        ],
        ..PluginBinding::new("machine")
    };
    // Bound anew each time: after three failures a breaker would open.
    let bound = bind(&MACHINE, &binding, "tenant").expect("a binding");
    // Twice: the second time in a kept instance, if the first one did no wrong.
    for _ in 0..2 {
        if let Ok(verdict) = ask(&bound, &view) {
            fits(&verdict, &view);
        }
    }
    let other = ask(&DECENT, &call("other", "select 1"));
    assert_eq!(other, Ok(Verdict::default()), "another tenant's plugin");
});

/// What a verdict that was let through must keep to.
fn fits(verdict: &Verdict, view: &MessageView) {
    if let Some(reason) = &verdict.reason {
        assert!(
            reason.len() <= 256 && !reason.chars().any(char::is_control),
            "{reason:?}"
        );
    }
    assert!(verdict.marks.len() <= 1024, "{} marks", verdict.marks.len());
    for mark in &verdict.marks {
        let leaf = view
            .leaf_at(mark.leaf)
            .expect("a leaf of the message");
        let text = view.cut(leaf.text);
        assert!(
            text.get(mark.start as usize..mark.end as usize).is_some(),
            "{mark:?}"
        );
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        assert!(!mark.label.is_empty() && mark.label.len() <= 64 && mark.label.bytes().all(plain));
    }
    for (finding, _) in &verdict.findings {
        assert!(
            (*finding as usize) < view.findings().len(),
            "finding {finding}"
        );
    }
}

/// A plugin that runs what stands, in hexadecimal, in the message's second leaf.
fn machine() -> Guest {
    let args = |n: usize| "(call $arg)".repeat(n);
    let import = |name: &str, params: &str| {
        format!("(import \"weir:policy/host@0.1.0\" \"{name}\" (func ${name} (param {params})))")
    };
    let imports = [
        import("log", "i32 i32 i32"),
        import("scan", "i32 i32 i32 i32 i32"),
        import("find", "i32 i32 i32 i32 i32 i32"),
        import("state-get", "i32 i32 i32 i32"),
        import("state-set", "i32 i32 i32 i32 i32 i32 i32"),
        import("state-add", "i32 i32 i32 i64 i32 i32"),
        import("keyed-hash", "i32 i32 i32"),
        import("now", "i32"),
    ];
    // One block per instruction, the last one outermost.
    let instructions = [
        format!("(i32.store {})", args(2)),
        format!("(i32.store8 {})", args(2)),
        format!("(call $log {})", args(3)),
        format!("(call $scan {})", args(5)),
        format!("(call $find {})", args(6)),
        format!("(call $state-get {})", args(4)),
        format!("(call $state-set {})", args(7)),
        format!(
            "(call $state-add {} (i64.extend_i32_s (call $arg)) {})",
            args(3),
            args(2)
        ),
        format!("(call $keyed-hash {})", args(3)),
        format!("(call $now {})", args(1)),
        "(global.set $lie (call $arg))".into(),
        "(drop (memory.grow (i32.and (call $arg) (i32.const 31))))".into(),
        "(return (call $arg))".into(),
        format!("(memory.copy {})", args(3)),
        format!("(memory.fill {})", args(3)),
        format!("(i64.store (call $arg) (i64.extend_i32_s (call $arg)))"),
    ];
    let labels: String = (0..instructions.len()).map(|n| format!("$i{n} ")).collect();
    let mut body = format!("(br_table {labels} (i32.and (call $byte) (i32.const 15)))");
    for (n, instruction) in instructions.iter().enumerate() {
        body = format!("(block $i{n} {body}) {instruction} (br $next)");
    }
    let usual = Guest::default();
    Guest {
        imports: imports.concat(),
        memory: "(memory (export \"memory\") 2 256)".into(),
        realloc: format!(
            "(local $kept i32) (if (global.get $lie) (then (return (global.get $lie)))) {}",
            usual.realloc.replace("(local $at i32)", "")
        )
        .replacen("(local $kept i32)", "(local $kept i32) (local $at i32)", 1),
        more: "(global $lie (mut i32) (i32.const 0)) (global $pc (mut i32) (i32.const 0)) (global $end (mut i32) (i32.const 0))
            (func $nibble (result i32) (local $c i32)
              (if (i32.ge_u (global.get $pc) (global.get $end)) (then (return (i32.const 0))))
              (local.set $c (i32.load8_u (global.get $pc)))
              (global.set $pc (i32.add (global.get $pc) (i32.const 1)))
              (i32.add (i32.and (local.get $c) (i32.const 15)) (i32.mul (i32.shr_u (local.get $c) (i32.const 6)) (i32.const 9))))
            (func $byte (result i32) (i32.or (i32.shl (call $nibble) (i32.const 4)) (call $nibble)))
            (func $arg (result i32) (local $n i32)
              (local.set $n (i32.or (call $byte) (i32.shl (call $byte) (i32.const 8))))
              (if (result i32) (i32.ge_u (local.get $n) (i32.const 0xff00))
                (then (i32.extend16_s (local.get $n))) (else (local.get $n))))"
            .into(),
        // The list of leaves is at 92 of the message, a leaf has 20 bytes, its text is at 12 of it.
        evaluate: format!(
            "(global.set $pc (i32.add (i32.load (local.get 0))
               (i32.load offset=32 (i32.load offset=92 (local.get 0)))))
             (global.set $end (i32.add (global.get $pc) (i32.load offset=36 (i32.load offset=92 (local.get 0)))))
             (loop $next
               (if (i32.ge_u (global.get $pc) (global.get $end)) (then (return (i32.const 1024))))
               {body})
             (unreachable)"
        ),
        ..usual
    }
}
