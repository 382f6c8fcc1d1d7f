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
/// does not take messages of that length gives no cell; one that does not come through all messages of the text in that
/// time is judged by those it read, and nothing is said of what it finds.
pub fn rounds(engines: &mut [Engine], text: &Text, budget: Duration) -> Vec<Option<Cell>> {
    let mut engines: Vec<_> = engines
        .iter_mut()
        .map(|e| (text.bytes_each() <= e.bytes_max).then_some(e))
        .collect();
    let mut cells = Vec::new();
    let mut repeats = Vec::new();
    for engine in &mut engines {
        cells.push(engine.as_mut().map(|engine| {
            if let Some(nanos) = slow(engine, text, budget) {
                repeats.push(1);
                let findings = None;
                return Cell { nanos, findings };
            }
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

/// What all messages would take, if that is more than the budget.
fn slow(engine: &mut Engine, text: &Text, budget: Duration) -> Option<f64> {
    let start = cpu_time();
    let mut messages = text.messages.iter();
    let came_to = messages.position(|message| {
        engine.run(message);
        cpu_time() - start > budget
    })?;
    let share = text.messages.len() as f64 / (came_to + 1) as f64;
    let nanos = (cpu_time() - start).as_nanos() as f64 * share;
    Some(nanos.max(budget.as_nanos() as f64))
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
