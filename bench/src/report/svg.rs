//! The plots, as inline SVG that needs no script and follows the page's colours.

use super::micros;
use std::fmt::Write;

/// One bar: a target's cost, with its lowest and highest round.
pub struct Bar {
    /// Name at the left.
    pub label: String,
    /// CSS class of its colour.
    pub class: &'static str,
    /// Median, microseconds.
    pub value: f64,
    /// Lowest and highest round.
    pub range: (f64, f64),
    /// Multiple of the floor, shown behind the value.
    pub ratio: Option<f64>,
}

/// One line of a percentile plot.
pub struct Line {
    /// CSS class of its colour.
    pub class: &'static str,
    /// (quantile, microseconds), rising.
    pub points: Vec<(f64, f64)>,
}

/// Of the canvas, in its own units.
pub const WIDTH: f64 = 520.0;
const LABEL: f64 = 130.0;
const VALUE: f64 = 128.0;
const ROW: f64 = 24.0;

/// Horizontal bars from zero, with a dashed line at `floor`.
pub fn bars(title: &str, bars: &[Bar], floor: Option<f64>) -> String {
    let height = ROW * bars.len() as f64 + 8.0;
    let room = WIDTH - LABEL - VALUE;
    let top = bars
        .iter()
        .map(|bar| bar.range.1.max(bar.value))
        .fold(0.0, f64::max)
        .max(f64::MIN_POSITIVE);
    let x = |value: f64| LABEL + room * value / top;
    let mut out = open(title, height);
    for (at, bar) in bars.iter().enumerate() {
        let y = ROW * at as f64 + 4.0;
        let middle = y + ROW / 2.0;
        text(
            &mut out,
            "name",
            LABEL - 8.0,
            middle + 4.0,
            "end",
            &bar.label,
        );
        let _ = write!(
            out,
            "<rect class=\"bar {}\" x=\"{LABEL}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{}\" rx=\"2\"/>\
             <path class=\"whisker\" d=\"M{:.1} {middle:.1}H{:.1}\"/>",
            bar.class,
            y + 4.0,
            (x(bar.value) - LABEL).max(1.0),
            ROW - 8.0,
            x(bar.range.0),
            x(bar.range.1),
        );
        text(
            &mut out,
            "value",
            WIDTH - 58.0,
            middle + 4.0,
            "end",
            &micros(bar.value),
        );
        if let Some(ratio) = bar.ratio {
            text(
                &mut out,
                "ratio",
                WIDTH - 4.0,
                middle + 4.0,
                "end",
                &if ratio < 100.0 {
                    format!("{ratio:.2}\u{d7}")
                } else {
                    format!("{ratio:.0}\u{d7}")
                },
            );
        }
    }
    if let Some(floor) = floor {
        let _ = write!(
            out,
            "<path class=\"floor\" d=\"M{:.1} 2V{:.1}\"/>",
            x(floor),
            height - 2.0
        );
    }
    out + "</svg>"
}

/// Of the canvas, in its own units.
pub const PLOT_HEIGHT: f64 = 250.0;
/// Of the canvas, in its own units.
pub const LEFT: f64 = 62.0;
/// Of the canvas, in its own units.
pub const BOTTOM: f64 = 26.0;

/// Latency (logarithmic) over the quantile, stretched so that every nine has the same room.
pub fn percentiles(title: &str, lines: &[Line]) -> String {
    let values = || {
        lines
            .iter()
            .flat_map(|line| line.points.iter().map(|point| point.1))
            .filter(|value| *value > 0.0)
    };
    let (low, high) = (
        values().fold(f64::INFINITY, f64::min),
        values().fold(0.0, f64::max),
    );
    if !low.is_finite() {
        return String::new();
    }
    let (low, high) = (
        low.log10() - 0.05,
        (high.log10() + 0.05).max(low.log10() + 0.3),
    );
    let nines = lines
        .iter()
        .flat_map(|line| line.points.last())
        .map(|point| stretch(point.0))
        .fold(1.0, f64::max);
    let x = |quantile: f64| LEFT + (WIDTH - LEFT - 12.0) * stretch(quantile) / nines;
    let y = |value: f64| {
        8.0 + (PLOT_HEIGHT - BOTTOM - 8.0) * (1.0 - (value.log10() - low) / (high - low))
    };
    let mut out = open(title, PLOT_HEIGHT);
    for value in ticks(low, high) {
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{LEFT} {0:.1}H{WIDTH}\"/>",
            y(value)
        );
        text(
            &mut out,
            "tick",
            LEFT - 6.0,
            y(value) + 4.0,
            "end",
            &short(value),
        );
    }
    for (quantile, label) in [
        (0.5, "p50"),
        (0.9, "p90"),
        (0.99, "p99"),
        (0.999, "p99.9"),
        (0.9999, "p99.99"),
    ] {
        if stretch(quantile) <= nines + 1e-9 {
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{0:.1} 8V{1:.1}\"/>",
                x(quantile),
                PLOT_HEIGHT - BOTTOM
            );
            text(
                &mut out,
                "tick",
                x(quantile),
                PLOT_HEIGHT - 8.0,
                "middle",
                label,
            );
        }
    }
    for line in lines {
        let points: Vec<String> = line
            .points
            .iter()
            .map(|&(q, v)| format!("{:.1},{:.1}", x(q), y(v.max(1e-3))))
            .collect();
        let _ = write!(
            out,
            "<polyline class=\"line {}\" points=\"{}\"/>",
            line.class,
            points.join(" ")
        );
    }
    out + "</svg>"
}

fn stretch(quantile: f64) -> f64 {
    -(1.0 - quantile.min(0.999_99)).log10()
}

/// 1, 2, 5 times powers of ten within a logarithmic range; only powers of ten when it is wide.
pub fn ticks(low: f64, high: f64) -> Vec<f64> {
    let steps: &[f64] = if high - low > 2.5 {
        &[1.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let powers = low.floor() as i32..=high.ceil() as i32;
    let all = powers.flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
    all.filter(|value| (low..=high).contains(&value.log10()))
        .collect()
}

/// A duration for an axis.
pub fn short(value: f64) -> String {
    if value >= 1000.0 {
        format!("{} ms", value / 1000.0)
    } else {
        format!("{value} \u{b5}s")
    }
}

/// The beginning of a plot.
pub fn open(title: &str, height: f64) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
        escape(title)
    )
}

/// Words on a plot.
pub fn text(out: &mut String, class: &str, x: f64, y: f64, anchor: &str, words: &str) {
    let _ = write!(
        out,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
        escape(words)
    );
}

/// Text for HTML and SVG, in content and in quoted attributes.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_stay_in_range() {
        assert_eq!(ticks(1.0, 2.05), [10.0, 20.0, 50.0, 100.0]);
        assert_eq!(ticks(0.5, 4.5), [10.0, 100.0, 1000.0, 10_000.0]);
    }

    #[test]
    fn empty_plots_are_no_plots() {
        assert_eq!(percentiles("x", &[]), "");
        assert_eq!(
            percentiles(
                "x",
                &[Line {
                    class: "a",
                    points: vec![]
                }]
            ),
            ""
        );
    }

    #[test]
    fn plots_stay_on_the_canvas_and_are_escaped() {
        let points = vec![(0.0, 10.0), (0.5, 20.0), (0.99, 4000.0)];
        let plot = percentiles("<x>", &[Line { class: "a", points }]);
        assert!(plot.contains("&lt;x&gt;") && !plot.contains("NaN"));
        let line = plot
            .split("points=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        for pair in line.split(' ') {
            let (x, y) = pair.split_once(',').unwrap();
            assert!(
                (LEFT..=WIDTH).contains(&x.parse().unwrap())
                    && (0.0..=PLOT_HEIGHT).contains(&y.parse().unwrap()),
                "{pair}"
            );
        }
        let bar = Bar {
            label: "a&b".into(),
            class: "a",
            value: 5.0,
            range: (4.0, 9.0),
            ratio: Some(1.25),
        };
        let plot = bars("t", &[bar], Some(4.0));
        assert!(
            plot.contains("a&amp;b")
                && plot.contains("1.25\u{d7}")
                && plot.contains("class=\"floor\"")
        );
    }
}
