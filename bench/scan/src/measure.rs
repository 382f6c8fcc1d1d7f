//! Time on the processor, engine by engine in turns.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use crate::engines::Engine;
use crate::texts::Text;

/// One engine on one text.
pub struct Cell {
    /// Nanoseconds on the processor for all messages of the text once: the best round.
    pub nanos: f64,
    pub findings: Option<usize>,
}

/// Time this thread has had on the processor; where the system does not tell, the time that passed.
pub fn cpu_time() -> Duration {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or_else(|_| START.elapsed(), Duration::from)
}

/// Every engine gets `budget` of the processor in all, in turns of about a tenth of it, and three rounds at least. One that
/// does not take messages of that length gives no cell.
pub fn rounds(engines: &mut [Engine], text: &Text, budget: Duration) -> Vec<Option<Cell>> {
    let mut engines: Vec<_> = engines
        .iter_mut()
        .map(|e| (text.bytes_each() <= e.bytes_max).then_some(e))
        .collect();
    let mut cells = Vec::new();
    let mut repeats = Vec::new();
    for engine in &mut engines {
        cells.push(engine.as_mut().map(|engine| {
            timed(engine, text, 1);
            let (nanos, findings) = timed(engine, text, 1);
            repeats.push(((budget.as_nanos() as f64 / 10.0 / nanos) as usize).clamp(1, 1 << 20));
            Cell {
                nanos,
                findings: engine.finds.then_some(findings),
            }
        }));
    }
    for _ in 0..10 {
        let running = engines.iter_mut().flatten().zip(cells.iter_mut().flatten());
        for ((engine, cell), repeats) in running.zip(&repeats) {
            // What takes longer than a whole budget has been measured by now.
            if cell.nanos < budget.as_nanos() as f64 {
                let (nanos, _) = timed(engine, text, *repeats);
                cell.nanos = cell.nanos.min(nanos);
            }
        }
    }
    cells
}

fn timed(engine: &mut Engine, text: &Text, repeats: usize) -> (f64, usize) {
    let start = cpu_time();
    let mut findings = 0;
    for _ in 0..repeats {
        findings = text.messages.iter().map(|m| engine.run(m)).sum();
    }
    (
        (cpu_time() - start).as_nanos() as f64 / repeats as f64,
        findings,
    )
}
