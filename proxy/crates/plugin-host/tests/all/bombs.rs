//! Components that are large, deep or crooked. Each is refused with words by the compiling process, or
//! loaded within its bounds; the process that judges messages is untouched either way.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use domain::PluginBinding;
use plugin_host::{CompileLimits, Compiler, HostOptions, PluginHost};

use crate::guest::{Guest, WIT, ask, bind, call, component, load};

const LIMITS: CompileLimits = CompileLimits {
    wall_ms: 10_000,
    cpu_s: 8,
    memory_bytes: 1 << 30,
};

/// A host that compiles in another process, as `weir` does.
fn host(limits: CompileLimits) -> PluginHost {
    let me = std::env::current_exe().expect("a running program has a path");
    let program = me
        .ancestors()
        .nth(2)
        .map(|profile| profile.join("examples/compile"))
        .expect("a test is in target/PROFILE/deps");
    assert!(
        program.is_file(),
        "{} is missing; build it with: cargo build --release --workspace --examples",
        program.display()
    );
    PluginHost::new(HostOptions {
        compiler: Compiler::Process { program, limits },
        cache: None,
        hash_key: [7; 32],
    })
    .expect("plugins run here")
}

fn with(more: &str) -> Result<Vec<u8>, String> {
    Guest {
        more: more.into(),
        ..Guest::default()
    }
    .component()
}

fn leb(mut n: usize) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let byte = (n & 0x7f) as u8;
        n >>= 7;
        if n == 0 {
            out.push(byte);
            return out;
        }
        out.push(byte | 0x80);
    }
}

fn section(id: u8, body: &[u8]) -> Vec<u8> {
    [&[id][..], &leb(body.len()), body].concat()
}

const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

/// A component in a component in a component.
fn nested(depth: usize) -> Vec<u8> {
    (0..depth).fold(COMPONENT.to_vec(), |inner, _| {
        [COMPONENT, &section(4, &inner)].concat()
    })
}

/// A type that doubles in every line.
fn doubling(lines: usize) -> String {
    let mut text = String::from("(component (type $t0 (tuple u8 u8))");
    for n in 1..lines {
        text += &format!("(type $t{n} (tuple $t{0} $t{0}))", n - 1);
    }
    text + ")"
}

/// A component, or why the tools make none.
type Made = Result<Vec<u8>, String>;
/// What must be said; `None`: it may be loaded as well.
type Words = Option<&'static str>;

fn bombs() -> Vec<(&'static str, Made, Words)> {
    let good = Guest::default().component().expect("a component");
    let padded = |bytes: usize| {
        let custom = [&leb(1)[..], b"x", &vec![0; bytes]].concat();
        Ok([&good[..], &section(0, &custom)].concat())
    };
    let text = Guest::default().text();
    let without = |name: &str| {
        let from = text.find(name).expect("an export");
        let start = text[..from].rfind("(export").expect("an export");
        let end = start + text[start..].find(')').expect("its end") + 1;
        component(&format!("{}{}", &text[..start], &text[end..]), WIT)
    };
    let of_version = |version: &str| {
        let here = format!("@{version}");
        let wit = WIT.replace("weir:policy@0.1.0", &format!("weir:policy{here}"));
        component(&text.replace("@0.1.0", &here), &wit)
    };
    let other = |from: &str, to: &str| component(&text, &WIT.replacen(from, to, 1));
    let wat = |text: &str| wat::parse_str(text).map_err(|error| error.to_string());
    vec![
        (
            "100,000 functions",
            with(&"(func)".repeat(100_000)),
            Some("functions"),
        ),
        (
            "60,000 small functions",
            with(&"(func (drop (i32.const 1)))".repeat(59_000)),
            None,
        ),
        (
            "a function of a megabyte",
            with(&format!("(func {})", "i32.const 1 drop ".repeat(350_000))),
            None,
        ),
        (
            "a function of eight megabytes",
            with(&format!("(func {})", "i32.const 1 drop ".repeat(2_800_000))),
            Some("valid"),
        ),
        (
            "blocks 100,000 deep",
            with(&format!(
                "(func {} {})",
                "block ".repeat(100_000),
                "end ".repeat(100_000)
            )),
            None,
        ),
        (
            "loops 20,000 deep",
            with(&format!(
                "(func {} {})",
                "loop ".repeat(20_000),
                "end ".repeat(20_000)
            )),
            None,
        ),
        (
            "ifs 20,000 deep",
            with(&format!(
                "(func {} {})",
                "i32.const 1 if ".repeat(20_000),
                "end ".repeat(20_000)
            )),
            None,
        ),
        (
            "60,000 locals",
            with(&format!("(func (local{}))", " i64".repeat(60_000))),
            Some("valid"),
        ),
        (
            "50,000 locals in use",
            with(&format!(
                "(func (local{}) {})",
                " i64".repeat(49_000),
                (0..49_000)
                    .map(|n| format!("local.get {n} drop "))
                    .collect::<String>()
            )),
            None,
        ),
        (
            "2,000 parameters",
            with(&format!("(func (param{}))", " i64".repeat(2_000))),
            Some("valid"),
        ),
        (
            "2,000 results",
            with(&format!("(type (func (result{})))", " i64".repeat(2_000))),
            Some("valid"),
        ),
        (
            "a table of 70,000 jumps",
            with(&format!(
                "(func i32.const 0 br_table {})",
                "0 ".repeat(70_000)
            )),
            None,
        ),
        (
            "a thousand tables of jumps",
            with(
                &"(func block block block i32.const 1 br_table 0 1 2 0 1 2 0 1 2 end end end)"
                    .repeat(1_000),
            ),
            None,
        ),
        (
            "20,000 globals",
            with(&"(global (mut i64) (i64.const 1))".repeat(20_000)),
            None,
        ),
        (
            "1,100,000 globals",
            with(&"(global i32 (i32.const 1))".repeat(1_100_000)),
            Some("valid"),
        ),
        (
            "20,000 pieces of data",
            with(&"(data (i32.const 9) \"x\")".repeat(20_000)),
            None,
        ),
        (
            "110,000 pieces of data",
            with(&"(data (i32.const 9) \"x\")".repeat(110_000)),
            Some("valid"),
        ),
        (
            "20,000 types",
            with(&"(type (func (param i32 i64)))".repeat(20_000)),
            None,
        ),
        (
            "200 tables",
            with(&"(table 1 funcref)".repeat(200)),
            Some(""),
        ),
        (
            "tables of 100,000 elements",
            with("(table 100000 funcref)"),
            Some("at most 20000"),
        ),
        (
            "a table that may grow for ever",
            with("(table 1 4294967295 funcref)"),
            None,
        ),
        (
            "elements without end",
            with(&format!(
                "(table 20000 funcref) (elem (i32.const 0) func {})",
                "$evaluate ".repeat(20_000)
            )),
            None,
        ),
        (
            "30,000 exports",
            with(
                &(0..30_000)
                    .map(|n| format!("(export \"e{n}\" (func $evaluate))"))
                    .collect::<String>(),
            ),
            None,
        ),
        (
            "a name of a megabyte",
            with(&format!(
                "(export \"{}\" (func $evaluate))",
                "n".repeat(1 << 20)
            )),
            Some(""),
        ),
        (
            "a custom section of 17 MiB",
            padded(17 << 20),
            Some("at most"),
        ),
        ("a custom section of 12 MiB", padded(12 << 20), None),
        (
            "components 10 deep",
            Ok(nested(10)),
            Some("does not export"),
        ),
        ("components 1,000 deep", Ok(nested(1_000)), Some("")),
        ("components 10,000 deep", Ok(nested(10_000)), Some("")),
        (
            "a hundred components side by side",
            Ok([COMPONENT, &section(4, COMPONENT).repeat(100)].concat()),
            Some("at most 64"),
        ),
        ("a type that doubles 20 times", wat(&doubling(20)), Some("")),
        ("a type that doubles 60 times", wat(&doubling(60)), Some("")),
        (
            "2,000 imports",
            wat(&format!(
                "(component {})",
                (0..2_000)
                    .map(|n| format!("(import \"a{n}\" (func))"))
                    .collect::<String>()
            )),
            Some("does not have"),
        ),
        (
            "shared memory",
            Guest {
                memory: "(memory (export \"memory\") 1 2 shared)".into(),
                ..Guest::default()
            }
            .component(),
            Some(""),
        ),
        (
            "threads",
            with("(func (drop (i32.atomic.load (i32.const 0))))"),
            Some(""),
        ),
        (
            "tail calls",
            with("(func $t (return_call $t))"),
            Some("tail calls"),
        ),
        (
            "relaxed vectors",
            with("(func (result v128) (i32x4.relaxed_trunc_f32x4_s (v128.const i64x2 0 0)))"),
            Some("relaxed"),
        ),
        ("no describe", without("#describe"), Some("describe")),
        ("no configure", without("#configure"), Some("configure")),
        ("no evaluate", without("#evaluate"), Some("evaluate")),
        ("no memory", without("\"memory\""), Some("memory")),
        ("no realloc", without("\"cabi_realloc\""), Some("realloc")),
        ("version 0.0.9", of_version("0.0.9"), Some("this Weir has")),
        ("version 0.2.0", of_version("0.2.0"), Some("this Weir has")),
        ("version 1.0.0", of_version("1.0.0"), Some("this Weir has")),
        (
            "another verdict",
            other("reason: string", "reason: list<u8>"),
            Some(""),
        ),
        (
            "a verdict with one field more",
            other(
                "reason: string,\n        /// What the plugin found.",
                "reason: string, more: u64,\n        /// What the plugin found.",
            ),
            Some(""),
        ),
        (
            "a message with one field less",
            other(
                "direction: direction,\n        /// How it is spoken.",
                "/// How it is spoken.",
            ),
            Some(""),
        ),
        (
            "an action of its own",
            other(
                "/// The message goes no further.\n        block,",
                "block, shout,",
            ),
            Some(""),
        ),
        (
            "another result of configure",
            other(
                "configure: func(config: string) -> result<_, string>",
                "configure: func(config: string) -> string",
            ),
            Some(""),
        ),
        (
            "an asynchronous evaluate",
            other("evaluate: func(", "evaluate: async func("),
            Some(""),
        ),
        (
            "a function that the host does not have",
            {
                let wit = WIT.replacen(
                    "log: func(level: log-level, line: string);",
                    "log: func(level: log-level, line: string);\n    system: func(line: string);",
                    1,
                );
                component(
                    &Guest {
                        imports:
                            "(import \"weir:policy/host@0.1.0\" \"system\" (func (param i32 i32)))"
                                .into(),
                        ..Guest::default()
                    }
                    .text(),
                    &wit,
                )
            },
            Some("system"),
        ),
        (
            "a function of the host with another signature",
            {
                let wit = WIT.replacen(
                    "now: func() -> result<u64, host-error>",
                    "now: func() -> u64",
                    1,
                );
                component(
                    &Guest {
                        imports: "(import \"weir:policy/host@0.1.0\" \"now\" (func (result i64)))"
                            .into(),
                        ..Guest::default()
                    }
                    .text(),
                    &wit,
                )
            },
            Some(""),
        ),
        (
            "an interface of files",
            wat("(component (import \"wasi:filesystem/types@0.2.0\" (instance)))"),
            Some("no WASI"),
        ),
        (
            "an interface of sockets",
            wat("(component (import \"wasi:sockets/tcp@0.2.0\" (instance)))"),
            Some("no WASI"),
        ),
    ]
}

#[test]
fn what_is_large_deep_or_crooked_is_refused_with_words_or_loaded_within_bounds() {
    let decent = load(&Guest::default()).expect("a decent plugin");
    let decent = bind(&decent, &PluginBinding::new("decent"), "other").expect("a binding");
    let (host, view) = (host(LIMITS), call("other", "select 1"));
    for (name, bytes, words) in bombs() {
        let began = Instant::now();
        let said = match bytes {
            Err(why) => Err(why),
            Ok(bytes) => host.load(&bytes).map_err(|error| error.to_string()),
        };
        let took = began.elapsed();
        assert!(took < Duration::from_secs(15), "{name} took {took:?}");
        match (&said, words) {
            (Err(why), None) => assert!(!why.is_empty(), "{name} is refused without a word"),
            (Err(why), Some(words)) => {
                assert!(why.contains(words) && !why.is_empty(), "{name}: {why}");
            }
            (Ok(_), None) => {}
            (Ok(_), Some(words)) => panic!("{name} was loaded; {words:?} was expected"),
        }
        assert_eq!(
            ask(&decent, &view),
            Ok(dlp_policy::Verdict::default()),
            "after {name}"
        );
    }
}

#[test]
fn compiling_is_bounded_in_time_and_memory_and_says_so() {
    let slow = with(
        &"(func block block block i32.const 1 br_table 0 1 2 0 1 2 end end end)".repeat(50_000),
    );
    let slow = slow.expect("a component");
    let cases = [
        (
            "wall",
            CompileLimits {
                wall_ms: 20,
                ..LIMITS
            },
            "longer than 20 ms",
        ),
        (
            "memory",
            CompileLimits {
                memory_bytes: 24 << 20,
                ..LIMITS
            },
            "24 MiB",
        ),
    ];
    for (name, limits, words) in cases {
        let why = host(limits).load(&slow).expect_err(name).to_string();
        assert!(why.contains(words), "{name}: {why}");
    }
}

#[test]
fn a_compiler_that_cannot_be_started_is_said() {
    let host = PluginHost::new(HostOptions {
        compiler: Compiler::Process {
            program: PathBuf::from("no-such-program"),
            limits: LIMITS,
        },
        cache: None,
        hash_key: [7; 32],
    })
    .expect("plugins run here");
    let good = Guest::default().component().expect("a component");
    let why = host.load(&good).expect_err("no compiler").to_string();
    assert!(why.contains("no-such-program"), "{why}");
}
