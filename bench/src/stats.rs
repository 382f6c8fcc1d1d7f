//! From samples to figures: medians over rounds, ratios taken within a round, percentiles over all valid windows.

use crate::load::histogram;
use crate::plan::{Cell, cpu_goal};
use crate::process::meter::Parts;
use crate::run::{Sample, quantile_us};
use crate::stages::Stages;
use crate::target::Kind;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// One cell with every target's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellFigures {
    /// The cell.
    pub cell: Cell,
    /// Its label.
    pub label: String,
    /// In the order of the targets.
    pub results: Vec<Figures>,
}

/// One target in one cell. Times in microseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// The target.
    pub target: Kind,
    /// Windows that count.
    pub windows: usize,
    /// Windows that do not.
    pub invalid_windows: usize,
    /// Calls in the windows that count.
    pub calls: u64,
    /// Fewer than 1000 calls: p99 says little.
    pub thin: bool,
    /// Calls per second.
    pub rate: Option<Spread>,
    /// Latency quantiles over all calls.
    pub latency_us: Option<Quantiles>,
    /// Median latency added to `direct` in the same round.
    pub added_p50_us: Option<Spread>,
    /// `added_p50_us` as a multiple of what bare pingora adds, by round.
    pub added_p50_ratio: Option<Spread>,
    /// CPU of the target's process tree per call (for `direct`: of the upstream).
    pub cpu_us: Option<Spread>,
    /// The same as a multiple of its floor's (bare pingora's on the same wire), by round.
    pub cpu_ratio: Option<Spread>,
    /// The same as a multiple of weir's, by round: what a user of this target would save.
    #[serde(default)]
    pub cpu_of_weir: Option<Spread>,
    /// `cpu_us` by part, medians over the rounds, where more than the target's own tree works for it.
    #[serde(default)]
    pub cpu_parts: Option<Parts>,
    /// Latency as a multiple of the same server's without anything in between, by round; of hosted servers only.
    #[serde(default)]
    pub of_native: Option<OfNative>,
    /// The project's goal for that ratio, where there is one.
    pub cpu_goal: Option<f64>,
    /// CPU of the load generator per call.
    pub client_cpu_us: Option<Spread>,
    /// Calls in flight on average.
    pub in_flight: Option<Spread>,
    /// Open loop: p99 of how late our own timer sent a call.
    pub lateness_p99_us: Option<f64>,
    /// New connections after the first, all windows.
    pub reconnects: u64,
    /// Where the target says its time went, per call: medians over the rounds.
    #[serde(default)]
    pub stages: Option<Stages>,
    /// Cores that other programs of the machine used meanwhile.
    pub foreign_cores: Option<Spread>,
    /// Share of one core's time that the hypervisor took away meanwhile.
    pub stolen: Option<Spread>,
    /// (quantile, microseconds), for plots.
    pub curve: Vec<(f64, f64)>,
    /// The windows that count, one by one, for whoever compares two runs.
    #[serde(default)]
    pub rounds: Vec<Round>,
}

/// One window that counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// The round it was in.
    pub round: usize,
    /// Calls per second.
    pub rate: f64,
    /// Median latency in microseconds.
    pub p50_us: f64,
    /// CPU per call in microseconds.
    pub cpu_us: Option<f64>,
    /// The same as a multiple of bare pingora's in the same round.
    pub cpu_ratio: Option<f64>,
}

/// The middle and the ends of a few values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Lowest.
    pub min: f64,
    /// Highest.
    pub max: f64,
}

/// Quantiles as multiples of the native server's in the same round.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct OfNative {
    /// Of the medians.
    pub p50: Spread,
    /// Of nine in ten.
    pub p90: Spread,
    /// Of 99 in 100.
    pub p99: Spread,
}

/// Latency quantiles.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Quantiles {
    /// Half of the calls are faster.
    pub p50: f64,
    /// Nine of ten.
    pub p90: f64,
    /// 99 of 100.
    pub p99: f64,
    /// 999 of 1000.
    pub p999: f64,
    /// The slowest.
    pub max: f64,
}

/// All figures of a run.
pub fn figures(cells: &[Cell], kinds: &[Kind], samples: &[Sample]) -> Vec<CellFigures> {
    let of = |at: usize, cell: &Cell| {
        let here: Vec<&Sample> = samples.iter().filter(|sample| sample.cell == at).collect();
        let results = kinds
            .iter()
            .filter(|kind| kind.takes(cell))
            .map(|&kind| figure(cell, kind, &here))
            .collect();
        CellFigures {
            cell: cell.clone(),
            label: cell.label(),
            results,
        }
    };
    cells
        .iter()
        .enumerate()
        .map(|(at, cell)| of(at, cell))
        .collect()
}

impl CellFigures {
    /// One target's figures.
    pub fn of(&self, kind: Kind) -> Option<&Figures> {
        self.results.iter().find(|figures| figures.target == kind)
    }
}

impl Spread {
    /// Of any number of values; `None` of none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values
            .into_iter()
            .filter(|value| value.is_finite())
            .collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            (values[middle - 1] + values[middle]) / 2.0
        };
        Some(Spread { median, min, max })
    }
}

/// Fewer calls than this and the 99th percentile is a handful of them.
const THIN_CALLS: u64 = 1000;

fn figure(cell: &Cell, kind: Kind, here: &[&Sample]) -> Figures {
    let mine: Vec<&Sample> = here
        .iter()
        .copied()
        .filter(|sample| sample.kind == kind)
        .collect();
    let valid: Vec<&Sample> = mine
        .iter()
        .copied()
        .filter(|sample| sample.valid())
        .collect();
    let (mut latency, mut lateness) = (histogram(), histogram());
    for sample in &valid {
        latency += &sample.outcome.latency;
        lateness += &sample.outcome.lateness;
    }
    let spread = |value: &dyn Fn(&Sample) -> Option<f64>| {
        Spread::of(valid.iter().filter_map(|sample| value(sample)))
    };
    // The other target's sample of the same round, so that both met the same minute.
    let beside = |sample: &Sample, kind: Kind| {
        here.iter()
            .copied()
            .find(|other| other.kind == kind && other.round == sample.round && other.valid())
    };
    let added = |sample: &Sample| Some(p50(sample) - p50(beside(sample, kind.bare())?));
    let proxy = kind != kind.bare();
    let of_native = |quantile: f64| {
        spread(&|sample| {
            let of = |sample: &Sample| quantile_us(&sample.outcome.latency, quantile);
            let native = of(beside(sample, Kind::Native)?);
            (proxy && native > 0.0).then(|| of(sample) / native)
        })
    };
    let cpu_ratio = |sample: &Sample| {
        Some(sample.cpu_us? / beside(sample, kind.floor())?.cpu_us?).filter(|_| proxy)
    };
    Figures {
        target: kind,
        windows: valid.len(),
        invalid_windows: mine.len() - valid.len(),
        calls: latency.len(),
        thin: latency.len() < THIN_CALLS,
        rate: spread(&|sample| Some(rate(sample))),
        latency_us: (!latency.is_empty()).then(|| quantiles(&latency)),
        added_p50_us: spread(&|sample| added(sample).filter(|_| proxy)),
        added_p50_ratio: spread(&|sample| {
            let floor = added(beside(sample, kind.floor())?)?;
            (proxy && floor > 1.0).then_some(added(sample)? / floor)
        }),
        cpu_us: spread(&|sample| sample.cpu_us),
        cpu_ratio: spread(&cpu_ratio),
        cpu_of_weir: spread(&|sample| {
            let weir = beside(sample, Kind::Weir)?.cpu_us?;
            (proxy && !kind.is_weir() && weir > 0.0).then_some(sample.cpu_us? / weir)
        }),
        cpu_parts: parts(&valid),
        of_native: of_native(0.5)
            .zip(of_native(0.9))
            .zip(of_native(0.99))
            .map(|((p50, p90), p99)| OfNative { p50, p90, p99 }),
        cpu_goal: (kind == Kind::Weir).then(|| cpu_goal(cell)).flatten(),
        client_cpu_us: spread(&|sample| Some(sample.client_cpu_us)),
        in_flight: spread(&|sample| Some(sample.outcome.in_flight)),
        lateness_p99_us: (!lateness.is_empty()).then(|| quantile_us(&lateness, 0.99)),
        stages: stages(&valid),
        reconnects: valid.iter().map(|sample| sample.outcome.reconnects).sum(),
        foreign_cores: spread(&|sample| Some(sample.foreign_cores)),
        stolen: spread(&|sample| Some(sample.stolen)),
        curve: curve(&latency),
        rounds: valid
            .iter()
            .map(|sample| Round {
                round: sample.round,
                rate: rate(sample),
                p50_us: p50(sample),
                cpu_us: sample.cpu_us,
                cpu_ratio: cpu_ratio(sample),
            })
            .collect(),
    }
}

fn parts(valid: &[&Sample]) -> Option<Parts> {
    let median = |of: fn(&Parts) -> f64| {
        let parts = valid.iter().filter_map(|sample| sample.cpu_parts.as_ref());
        Spread::of(parts.map(of)).map(|spread| spread.median)
    };
    Some(Parts {
        own_us: median(|parts| parts.own_us)?,
        runner_us: median(|parts| parts.runner_us)?,
        server_us: median(|parts| parts.server_us)?,
    })
}

fn stages(valid: &[&Sample]) -> Option<Stages> {
    let median = |of: fn(&Stages) -> f64| {
        Spread::of(
            valid
                .iter()
                .filter_map(|sample| sample.stages.as_ref().map(of)),
        )
        .map(|spread| spread.median)
    };
    Some(Stages {
        scan_us: median(|stages| stages.scan_us)?,
        policy_us: median(|stages| stages.policy_us)?,
        upstream_us: median(|stages| stages.upstream_us)?,
        exchange_us: median(|stages| stages.exchange_us)?,
    })
}

fn rate(sample: &Sample) -> f64 {
    sample.outcome.calls as f64 / sample.outcome.elapsed.as_secs_f64()
}

fn p50(sample: &Sample) -> f64 {
    quantile_us(&sample.outcome.latency, 0.5)
}

fn quantiles(latency: &Histogram<u64>) -> Quantiles {
    let at = |quantile| quantile_us(latency, quantile);
    Quantiles {
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p999: at(0.999),
        max: latency.max() as f64 / 1e3,
    }
}

/// Points of the percentile curve, up to the quantile that still has ten calls above it.
fn curve(latency: &Histogram<u64>) -> Vec<(f64, f64)> {
    if latency.is_empty() {
        return Vec::new();
    }
    let last = 1.0 - 10.0 / latency.len() as f64;
    let steps = (0..=80).map(|step| 1.0 - 10f64.powf(-f64::from(step) / 20.0));
    steps
        .take_while(|&quantile| quantile <= last.max(0.0))
        .map(|quantile| (quantile, quantile_us(latency, quantile)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Outcome;
    use crate::plan::{Content, Form};
    use std::time::Duration;

    fn sample(kind: Kind, round: usize, p50_us: u64, cpu_us: f64) -> Sample {
        let mut latency = histogram();
        latency.record_n(p50_us * 1000, 100).unwrap();
        let outcome = Outcome {
            calls: 100,
            calls_with_warmup: 110,
            stopped: 0,
            failed: 0,
            faults: Vec::new(),
            elapsed: Duration::from_secs(1),
            latency,
            lateness: histogram(),
            in_flight: 1.0,
            occupancy: 1.0,
            reconnects: 1,
        };
        let cpu_us = Some(cpu_us);
        Sample {
            cell: 0,
            round,
            kind,
            outcome,
            cpu_us,
            cpu_parts: None,
            client_cpu_us: 5.0,
            foreign_cores: 0.1,
            stolen: 0.0,
            stages: None,
            rejected: None,
        }
    }

    fn cells() -> [Cell; 1] {
        [Cell {
            size: 300,
            connections: 1,
            rate: None,
            form: Form::Json,
            content: Content::Clean,
            era: crate::wire::rpc::Era::Handshake,
        }]
    }

    /// Latency and CPU of hosted servers are told as multiples of the native one's in the same round.
    #[test]
    fn a_sandbox_is_compared_with_the_native_server_of_its_round() {
        let mut samples = Vec::new();
        for (round, slow) in [(0, 1), (1, 4), (2, 1)] {
            samples.push(sample(Kind::Native, round, 100 * slow, 50.0 * slow as f64));
            samples.push(sample(
                Kind::WeirHosted,
                round,
                400 * slow,
                150.0 * slow as f64,
            ));
        }
        let all = figures(&cells(), &Kind::HOSTING, &samples);
        let hosted = all[0].of(Kind::WeirHosted).unwrap();
        let of = hosted.of_native.unwrap();
        for spread in [of.p50, of.p90, of.p99] {
            assert!((spread.median - 4.0).abs() < 0.02, "{spread:?}");
            assert!(spread.max - spread.min < 0.05, "{spread:?}");
        }
        let cpu = hosted.cpu_ratio.unwrap();
        assert!((cpu.median - 3.0).abs() < 0.01 && cpu.max - cpu.min < 0.01);
        assert!((hosted.added_p50_us.unwrap().min - 300.0).abs() < 1.0);
        let native = all[0].of(Kind::Native).unwrap();
        assert!(native.of_native.is_none() && native.cpu_ratio.is_none());
        assert!(all[0].of(Kind::WeirNative).unwrap().latency_us.is_none());
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The second round was measured while the machine was four times slower: the ratios do not notice.
        let mut samples = Vec::new();
        for (round, slow) in [(0, 1), (1, 4), (2, 1)] {
            samples.push(sample(Kind::Direct, round, 20 * slow, 10.0));
            samples.push(sample(Kind::Pingora, round, 120 * slow, 50.0 * slow as f64));
            samples.push(sample(Kind::Weir, round, 140 * slow, 60.0 * slow as f64));
        }
        let figures = figures(
            &cells(),
            &[Kind::Direct, Kind::Pingora, Kind::Weir],
            &samples,
        );
        let weir = figures[0].of(Kind::Weir).unwrap();
        let near = |spread: Option<Spread>, value: f64| {
            let spread = spread.unwrap();
            assert!(
                (spread.min - value).abs() < 0.01 && (spread.max - value).abs() < 0.01,
                "{spread:?}"
            );
        };
        near(weir.cpu_ratio, 1.2);
        near(weir.added_p50_ratio, 1.2);
        assert_eq!(
            (weir.windows, weir.calls, weir.reconnects, weir.thin),
            (3, 300, 3, true)
        );
        assert_eq!(weir.cpu_goal, Some(1.3));
        let rounds: Vec<_> = weir
            .rounds
            .iter()
            .map(|r| (r.round, r.p50_us.round(), r.cpu_us))
            .collect();
        assert_eq!(
            rounds,
            [
                (0, 140.0, Some(60.0)),
                (1, 560.0, Some(240.0)),
                (2, 140.0, Some(60.0))
            ]
        );
        let direct = figures[0].of(Kind::Direct).unwrap();
        assert!(direct.added_p50_us.is_none() && direct.cpu_ratio.is_none());
    }

    #[test]
    fn invalid_windows_are_counted_and_not_used() {
        let mut bad = sample(Kind::Weir, 1, 1, 1.0);
        bad.outcome.failed = 1;
        let mut hanging = sample(Kind::Weir, 2, 1, 1.0);
        hanging.rejected = Some("hanging".to_owned());
        let samples = [sample(Kind::Weir, 0, 100, 60.0), bad, hanging];
        let figures = figures(&cells(), &[Kind::Weir, Kind::Pingora], &samples);
        let weir = figures[0].of(Kind::Weir).unwrap();
        assert_eq!(
            (weir.windows, weir.invalid_windows, weir.calls),
            (1, 2, 100)
        );
        assert_eq!(weir.cpu_us.unwrap().max, 60.0);
        let absent = figures[0].of(Kind::Pingora).unwrap();
        assert!(
            absent.windows == 0
                && absent.latency_us.is_none()
                && absent.curve.is_empty()
                && absent.cpu_us.is_none()
        );
    }

    #[test]
    fn spreads() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([f64::NAN, f64::INFINITY]), None);
        assert_eq!(
            Spread::of([3.0, 1.0, 2.0]),
            Some(Spread {
                median: 2.0,
                min: 1.0,
                max: 3.0
            })
        );
        assert_eq!(Spread::of([4.0, 1.0]).unwrap().median, 2.5);
    }

    #[test]
    fn curves_stop_where_calls_run_out() {
        let mut latency = histogram();
        (1..=10_000u64).for_each(|n| latency.record(n * 1000).unwrap());
        let curve = curve(&latency);
        assert!(
            curve.last().unwrap().0 <= 0.999 + 1e-9,
            "{:?}",
            curve.last()
        );
        assert!(
            curve
                .windows(2)
                .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1)
        );
    }
}
