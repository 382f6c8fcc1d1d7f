//! Plots that are not of one cell: cost over size, cost by stage, and a target over time.

use super::micros;
use super::svg::{BOTTOM, LEFT, Line, PLOT_HEIGHT, WIDTH, open, short, text, ticks};
use crate::plan::size_label;
use std::fmt::Write;

/// CPU per call over the size of the text, both logarithmic, with a dot for each size that was measured.
pub fn over_size(title: &str, lines: &[Line]) -> String {
    let values = |at: fn(&(f64, f64)) -> f64| {
        lines
            .iter()
            .flat_map(move |line| line.points.iter().map(at))
            .filter(|value| *value > 0.0)
    };
    let (Some((left, right)), Some((low, high))) = (range(values(|p| p.0)), range(values(|p| p.1)))
    else {
        return String::new();
    };
    let (low, high) = (low - 0.08, (high + 0.08).max(low + 0.3));
    let span = (right - left).max(0.1);
    let x = |size: f64| LEFT + 10.0 + (WIDTH - LEFT - 40.0) * (size.log10() - left) / span;
    let y = |value: f64| {
        8.0 + (PLOT_HEIGHT - BOTTOM - 8.0) * (1.0 - (value.log10() - low) / (high - low))
    };
    let mut out = open(title, PLOT_HEIGHT);
    for value in ticks(low, high) {
        grid_line(&mut out, y(value), &short(value));
    }
    let mut sizes: Vec<f64> = values(|p| p.0).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let mut last = f64::NEG_INFINITY;
    for size in sizes {
        // Labels that would touch the one before are left out; their dots still show.
        if x(size) - last > 44.0 {
            last = x(size);
            let label = size_label(size as usize);
            text(&mut out, "tick", last, PLOT_HEIGHT - 8.0, "middle", &label);
        }
    }
    for line in lines {
        let at = |&(size, value): &(f64, f64)| (x(size), y(value.max(1e-3)));
        polyline(&mut out, line.class, line.points.iter().map(at));
        for (x, y) in line.points.iter().map(at) {
            let _ = write!(
                out,
                "<circle class=\"dot {}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>",
                line.class
            );
        }
    }
    out + "</svg>"
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value.log10()), high.max(value.log10()))
    });
    low.is_finite().then_some((low, high))
}

/// One stacked bar.
pub struct Stack {
    /// Name at the left.
    pub label: String,
    /// (CSS class, value) from left to right.
    pub parts: Vec<(&'static str, f64)>,
    /// A mark across the bar, for what it is compared with.
    pub mark: Option<f64>,
}

/// Stacked bars, each drawn to its own full width (what is shown is shares; the sum stands behind).
pub fn stacks(title: &str, stacks: &[Stack]) -> String {
    const LABEL: f64 = 66.0;
    const VALUE: f64 = 74.0;
    const ROW: f64 = 30.0;
    let height = ROW * stacks.len() as f64 + 8.0;
    let room = WIDTH - LABEL - VALUE;
    let mut out = open(title, height);
    for (at, stack) in stacks.iter().enumerate() {
        let y = ROW * at as f64 + 4.0;
        let middle = y + ROW / 2.0 + 4.0;
        text(&mut out, "name", LABEL - 8.0, middle, "end", &stack.label);
        let sum: f64 = stack.parts.iter().map(|part| part.1.max(0.0)).sum();
        let scale = if sum > 0.0 { room / sum } else { 0.0 };
        let mut x = LABEL;
        for (class, value) in &stack.parts {
            let width = value.max(0.0) * scale;
            let _ = write!(
                out,
                "<rect class=\"bar {class}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{}\"/>",
                y + 5.0,
                ROW - 10.0
            );
            if width > 46.0 {
                let words = micros(*value);
                text(
                    &mut out,
                    "inside",
                    x + width / 2.0,
                    middle,
                    "middle",
                    &words,
                );
            }
            x += width;
        }
        if let Some(mark) = stack.mark.filter(|mark| *mark <= sum) {
            let _ = write!(
                out,
                "<path class=\"floor\" d=\"M{:.1} {:.1}V{:.1}\"/>",
                LABEL + mark * scale,
                y + 1.0,
                y + ROW - 1.0
            );
        }
        text(&mut out, "value", WIDTH - 4.0, middle, "end", &micros(sum));
    }
    out + "</svg>"
}

/// A value over time, from zero.
pub fn over_time(title: &str, class: &'static str, unit: &str, points: &[(f64, f64)]) -> String {
    let Some(end) = points.last().map(|point| point.0.max(1.0)) else {
        return String::new();
    };
    let top = points.iter().map(|point| point.1).fold(1.0, f64::max) * 1.15;
    let x = |seconds: f64| LEFT + (WIDTH - LEFT - 12.0) * seconds / end;
    let y = |value: f64| 8.0 + (PLOT_HEIGHT - BOTTOM - 8.0) * (1.0 - value / top);
    let mut out = open(title, PLOT_HEIGHT);
    let step = round_step(top / 4.0);
    let mut value = 0.0;
    while value <= top {
        grid_line(&mut out, y(value), &format!("{value}{unit}"));
        value += step;
    }
    let (divisor, name) = if end > 180.0 {
        (60.0, "min")
    } else {
        (1.0, "s")
    };
    let step = round_step(end / divisor / 5.0);
    let mut at = 0.0;
    while at * divisor <= end + 1e-9 {
        let label = format!("{at} {name}");
        text(
            &mut out,
            "tick",
            x(at * divisor),
            PLOT_HEIGHT - 8.0,
            "middle",
            &label,
        );
        at += step;
    }
    polyline(&mut out, class, points.iter().map(|&(s, v)| (x(s), y(v))));
    out + "</svg>"
}

/// The next of 1, 2, 5 times a power of ten.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.max(1e-9).log10().floor());
    let of = [1.0, 2.0, 5.0, 10.0];
    let step = of.iter().find(|step| *step * power >= least - 1e-12);
    (step.unwrap_or(&10.0) * power).max(1.0)
}

fn grid_line(out: &mut String, y: f64, label: &str) {
    let _ = write!(out, "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{WIDTH}\"/>");
    text(out, "tick", LEFT - 6.0, y + 4.0, "end", label);
}

fn polyline(out: &mut String, class: &str, points: impl Iterator<Item = (f64, f64)>) {
    let points: Vec<String> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = write!(
        out,
        "<polyline class=\"line {class}\" points=\"{}\"/>",
        points.join(" ")
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_no_plot_and_one_point_is_no_division_by_zero() {
        assert_eq!(over_size("x", &[]), "");
        assert_eq!(over_time("x", "a", "", &[]), "");
        let line = Line {
            class: "a",
            points: vec![(300.0, 40.0)],
        };
        assert!(!over_size("x", &[line]).contains("NaN"));
        assert!(!over_time("x", "a", "", &[(0.0, 0.0)]).contains("NaN"));
        let empty = Stack {
            label: "a&b".into(),
            parts: vec![("a", 0.0)],
            mark: Some(1.0),
        };
        let plot = stacks("x", &[empty]);
        assert!(!plot.contains("NaN") && plot.contains("a&amp;b"));
    }

    #[test]
    fn steps_are_round() {
        let cases = [
            (0.2, 1.0),
            (1.0, 1.0),
            (1.1, 2.0),
            (3.0, 5.0),
            (7.0, 10.0),
            (23.0, 50.0),
        ];
        for (least, step) in cases {
            assert_eq!(round_step(least), step, "{least}");
        }
    }

    #[test]
    fn shares_fill_the_bar_and_a_mark_beyond_it_is_left_out() {
        let stack = |mark| Stack {
            label: "x".into(),
            parts: vec![("a", 30.0), ("b", 70.0)],
            mark,
        };
        assert!(stacks("x", &[stack(Some(50.0))]).contains("floor"));
        assert!(!stacks("x", &[stack(Some(150.0))]).contains("floor"));
    }
}
