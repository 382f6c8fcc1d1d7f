//! The engine: one configuration for compiling and for running, and the clock that ends plugins.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::Duration;

use parking_lot::Mutex;
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

/// Largest memory an instance can have; a binding allows at most this.
pub(crate) const MEMORY_BYTES_MAX: usize = 64 << 20;
/// Elements of one table.
pub(crate) const TABLE_ELEMENTS_MAX: usize = 20_000;
/// Core instances of one component; what the tools make of a Rust module has three, of JavaScript some
/// forty.
const CORE_INSTANCES_MAX: u32 = 64;
/// Memories of one component, and tables. The bound of a binding holds for all memories together.
const MEMORIES_MAX: u32 = 4;
const TABLES_MAX: u32 = 8;
/// Stack of the guest's calls.
const STACK_BYTES_MAX: usize = 256 << 10;
/// Memory put back by copying rather than by giving the pages up.
const KEPT_RESIDENT_BYTES: usize = 512 << 10;
/// One tick of the clock by which plugins are ended.
const TICK: Duration = Duration::from_millis(1);
/// Idle ticks after which the clock stands still.
const IDLE_TICKS: u32 = 100;

/// What compiling and running must agree about.
fn common() -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .wasm_memory64(false)
        // For the engine's own adapters only: `check` refuses modules with more than one.
        .wasm_multi_memory(true)
        .wasm_relaxed_simd(false)
        .wasm_tail_call(false)
        .epoch_interruption(true)
        .max_wasm_stack(STACK_BYTES_MAX)
        .memory_reservation(4 << 30)
        .memory_guard_size(32 << 20)
        .memory_may_move(false)
        .wasm_backtrace_max_frames(None);
    config
}

/// An engine that compiles and never runs anything.
pub(crate) fn compiling() -> wasmtime::Result<Engine> {
    Engine::new(&common())
}

/// An engine that runs up to `slots` instances at once.
pub(crate) fn running(slots: u32) -> wasmtime::Result<Engine> {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(slots)
        // Enough for every slot to be taken by the largest: what one tenant's plugin is made of never
        // keeps another's from starting.
        .total_core_instances(slots.saturating_mul(CORE_INSTANCES_MAX))
        .total_memories(slots.saturating_mul(MEMORIES_MAX))
        .total_tables(slots.saturating_mul(TABLES_MAX))
        .max_core_instances_per_component(CORE_INSTANCES_MAX)
        .max_memories_per_component(MEMORIES_MAX)
        .max_tables_per_component(TABLES_MAX)
        .max_memories_per_module(1)
        .max_tables_per_module(4)
        .max_component_instance_size(256 << 10)
        .max_core_instance_size(256 << 10)
        .max_memory_size(MEMORY_BYTES_MAX)
        .table_elements(TABLE_ELEMENTS_MAX)
        .linear_memory_keep_resident(KEPT_RESIDENT_BYTES)
        .table_keep_resident(16 << 10)
        .pagemap_scan(Enabled::Auto);
    let mut config = common();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&config)
}

/// Moves the engine's epoch on, as long as plugins run.
#[derive(Debug)]
pub(crate) struct Clock {
    shared: Arc<Shared>,
    thread: Mutex<Option<Thread>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Plugins that run now.
    running: AtomicUsize,
    asleep: AtomicBool,
    stop: AtomicBool,
}

/// As long as this lives the clock goes.
pub(crate) struct Running<'a>(&'a Shared);

impl Clock {
    pub(crate) fn start(engine: &Engine) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (weak, clock) = (engine.weak(), Arc::clone(&shared));
        let thread = std::thread::Builder::new()
            .name("plugin-clock".into())
            .spawn(move || {
                let mut idle = 0;
                while !clock.stop.load(Ordering::SeqCst) {
                    std::thread::sleep(TICK);
                    let Some(engine) = weak.upgrade() else { return };
                    engine.increment_epoch();
                    idle = match clock.running.load(Ordering::SeqCst) {
                        0 => idle + 1,
                        _ => 0,
                    };
                    if idle >= IDLE_TICKS {
                        drop(engine);
                        clock.wait();
                        idle = 0;
                    }
                }
            })?;
        let thread = Mutex::new(Some(thread.thread().clone()));
        Ok(Self { shared, thread })
    }

    /// A plugin runs from now until the guard is gone.
    pub(crate) fn run(&self) -> Running<'_> {
        self.shared.running.fetch_add(1, Ordering::SeqCst);
        if self.shared.asleep.load(Ordering::SeqCst) {
            self.wake();
        }
        Running(&self.shared)
    }

    fn wake(&self) {
        if let Some(thread) = &*self.thread.lock() {
            thread.unpark();
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Shared {
    /// Stands still until something runs. `running` is looked at after `asleep` is set, and counted up
    /// before `asleep` is looked at, so that no waking is lost.
    fn wait(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        while self.running.load(Ordering::SeqCst) == 0 && !self.stop.load(Ordering::SeqCst) {
            std::thread::park();
        }
        self.asleep.store(false, Ordering::SeqCst);
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.wake();
    }
}
