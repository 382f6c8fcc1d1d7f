//! Compiling in another process, which may be as slow, as large or as broken as it likes.
//!
//! The program starts itself again with [`COMPILE_COMMAND`]; the component goes in by its standard
//! input, code comes out by its standard output, a reason by its standard error.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, setrlimit};

use crate::cache::CODE_BYTES_MAX;
use crate::{check, engine};

/// The first argument by which a program knows that it shall compile ([`compile_main`]).
pub const COMPILE_COMMAND: &str = "__compile-plugin";
/// Words of a refusal, in bytes.
const REASON_BYTES_MAX: u64 = 2048;

/// Who compiles.
#[derive(Debug, Clone)]
pub enum Compiler {
    /// This program, started anew for each component.
    Process {
        /// The program; it calls [`compile_main`] when its first argument is [`COMPILE_COMMAND`].
        program: PathBuf,
        /// Its bounds.
        limits: CompileLimits,
    },
    /// This very process, without bounds. For tests and tools that judge no traffic.
    InThisProcess,
}

/// Bounds of one compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileLimits {
    /// From start to end, in milliseconds.
    pub wall_ms: u64,
    /// Over all its threads, in seconds.
    pub cpu_s: u64,
    /// Address space, in bytes.
    pub memory_bytes: u64,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self {
            wall_ms: 60_000,
            cpu_s: 60,
            memory_bytes: 3 << 30,
        }
    }
}

impl Compiler {
    /// Compiles a component to code for the engine of this program.
    pub(crate) fn compile(&self, component: &[u8]) -> Result<Vec<u8>, String> {
        check::size(component.len())?;
        match self {
            Self::InThisProcess => compile(component),
            Self::Process { program, limits } => {
                let child = spawn(program, limits)?;
                talk(child, component, limits)
            }
        }
    }
}

/// What a program does that was started to compile. Gives its exit code.
pub fn compile_main(args: impl Iterator<Item = std::ffi::OsString>) -> u8 {
    match compile_child(args) {
        Ok(()) => 0,
        Err(reason) => {
            // If not even this can be said, the exit code says it.
            let _ = std::io::stderr().write_all(reason.as_bytes());
            1
        }
    }
}

fn compile_child(args: impl Iterator<Item = std::ffi::OsString>) -> Result<(), String> {
    let numbers: Vec<u64> = args.filter_map(|arg| arg.to_str()?.parse().ok()).collect();
    let [cpu_s, memory_bytes] = numbers[..] else {
        return Err("it was started without bounds".into());
    };
    for (resource, limit) in [
        (Resource::RLIMIT_CPU, cpu_s),
        (Resource::RLIMIT_AS, memory_bytes),
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_FSIZE, 0),
    ] {
        setrlimit(resource, limit, limit)
            .map_err(|error| format!("bounds cannot be set: {error}"))?;
    }
    let mut component = Vec::new();
    std::io::stdin()
        .take(check::COMPONENT_BYTES_MAX as u64 + 1)
        .read_to_end(&mut component)
        .map_err(|error| error.to_string())?;
    let code = compile(&component)?;
    std::io::stdout()
        .write_all(&code)
        .map_err(|error| error.to_string())
}

fn compile(component: &[u8]) -> Result<Vec<u8>, String> {
    check::check(component)?;
    let engine = engine::compiling().map_err(|error| format!("{error:#}"))?;
    let code = engine
        .precompile_component(component)
        .map_err(|error| format!("it does not compile: {error:#}"))?;
    if code.len() > CODE_BYTES_MAX {
        return Err(format!(
            "it compiles to {} bytes; at most {CODE_BYTES_MAX}",
            code.len()
        ));
    }
    Ok(code)
}

fn spawn(program: &PathBuf, limits: &CompileLimits) -> Result<Child, String> {
    Command::new(program)
        .arg(COMPILE_COMMAND)
        .arg(limits.cpu_s.to_string())
        .arg(limits.memory_bytes.to_string())
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{} cannot be started: {error}", program.display()))
}

fn talk(mut child: Child, component: &[u8], limits: &CompileLimits) -> Result<Vec<u8>, String> {
    let (Some(mut stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err("the compiling process has no pipes".into());
    };
    let component = component.to_vec();
    // A child that does not read breaks the pipe when it ends; its exit code tells then.
    std::thread::spawn(move || stdin.write_all(&component));
    let code = read_in_thread(stdout, CODE_BYTES_MAX as u64 + 1);
    let reason = read_in_thread(stderr, REASON_BYTES_MAX);
    let until = Instant::now() + Duration::from_millis(limits.wall_ms);
    let left = |until: Instant| until.saturating_duration_since(Instant::now());
    let code = code.recv_timeout(left(until));
    let reason = code
        .as_ref()
        .ok()
        .and_then(|_| reason.recv_timeout(left(until)).ok());
    if code.is_err() || reason.is_none() {
        // It may have ended in this moment; then there is nothing to kill.
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("compiling took longer than {} ms", limits.wall_ms));
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let code = code.map_err(|_| "the compiling process said nothing".to_owned())?;
    if status.success() && !code.is_empty() && code.len() <= CODE_BYTES_MAX {
        return Ok(code);
    }
    let reason = String::from_utf8_lossy(&reason.unwrap_or_default())
        .trim()
        .to_owned();
    Err(
        match std::os::unix::process::ExitStatusExt::signal(&status) {
            _ if status.code() == Some(1) && !reason.is_empty() => reason,
            Some(signal) => format!(
                "compiling needed more than {} s of CPU or {} MiB (it ended by signal {signal})",
                limits.cpu_s,
                limits.memory_bytes >> 20
            ),
            None => format!("the compiling process failed ({status})"),
        },
    )
}

fn read_in_thread(pipe: impl Read + Send + 'static, max: u64) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What broke off is too short to be code, or a reason without its end.
        let _ = pipe.take(max).read_to_end(&mut bytes);
        // Nobody waits any more when the time is up.
        let _ = send.send(bytes);
    });
    receive
}
