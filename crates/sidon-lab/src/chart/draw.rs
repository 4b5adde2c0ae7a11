//! Draws a chart as an SVG document.

use super::{Chart, Curve, HEIGHT, WIDTH, ticks};
use crate::svg::{Anchor, At, Colour, Svg};

/// Eight colours that colour-blind readers can distinguish, also in print (Okabe and Ito).
const COLOURS: [Colour; 8] = [
    [0, 114, 178],
    [213, 94, 0],
    [0, 158, 115],
    [204, 121, 167],
    [230, 159, 0],
    [86, 180, 233],
    [96, 96, 96],
    [153, 102, 51],
];
const BLACK: Colour = [0; 3];
const WHITE: Colour = [255; 3];
const GRID: Colour = [224; 3];

/// Font sizes in pixels.
const TEXT: u32 = 12;
const TITLE: u32 = 15;
/// The plot's borders in pixels from the left and the top.
const LEFT: f64 = 96.0;
const RIGHT: f64 = WIDTH as f64 - 28.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = HEIGHT as f64 - 58.0;
/// The length of a tick in pixels.
const TICK: f64 = 5.0;
/// The legend in pixels: height of a line, left margin, width of a sample.
const LEGEND_LINE: u32 = 22;
const LEGEND_LEFT: f64 = 24.0;
const SAMPLE: f64 = 28.0;

pub(super) fn svg(chart: &Chart) -> String {
    let entries = legend(chart);
    let height = HEIGHT + entries.len().div_ceil(2) as u32 * LEGEND_LINE + 12;
    let mut svg = Svg::new((WIDTH, height), &chart.title);
    svg.rectangle((0.0, 0.0), (WIDTH.into(), height.into()), WHITE);
    let middle = (LEFT + RIGHT) / 2.0;
    svg.text((middle, 24.0), Anchor::Middle, TITLE, BLACK, &chart.title);

    let points = || chart.curves.iter().flat_map(Curve::points);
    let x = ticks::Scale::of(&chart.x, ticks::along(&chart.x, points(), |point| point.0));
    let y = ticks::Scale::of(&chart.y, ticks::along(&chart.y, points(), |point| point.1));
    let column = |step: f64| LEFT + (RIGHT - LEFT) * x.share(step);
    let row = |step: f64| BOTTOM - (BOTTOM - TOP) * y.share(step);
    for &mark in &x.marks {
        let at = column(mark);
        svg.line([(at, TOP), (at, BOTTOM)], GRID, 1);
        svg.line([(at, BOTTOM), (at, BOTTOM + TICK)], BLACK, 1);
        let text = ticks::text(&chart.x, mark);
        svg.text((at, BOTTOM + TICK + 15.0), Anchor::Middle, TEXT, BLACK, &text);
    }
    for &mark in &y.marks {
        let at = row(mark);
        svg.line([(LEFT, at), (RIGHT, at)], GRID, 1);
        svg.line([(LEFT - TICK, at), (LEFT, at)], BLACK, 1);
        let text = ticks::text(&chart.y, mark);
        svg.text((LEFT - TICK - 4.0, at + 4.0), Anchor::End, TEXT, BLACK, &text);
    }
    svg.line([(LEFT, TOP), (LEFT, BOTTOM), (RIGHT, BOTTOM)], BLACK, 1);
    svg.text((middle, BOTTOM + 44.0), Anchor::Middle, TEXT, BLACK, &chart.x.label);
    svg.text_upwards((22.0, (TOP + BOTTOM) / 2.0), TEXT, BLACK, &chart.y.label);

    let at = |(x, y): (f64, f64)| -> At { (column(x), row(y)) };
    for (i, curve) in chart.curves.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        if !curve.line.is_empty() {
            svg.line(chart.steps(&curve.line).map(at), colour, 2);
        }
        chart.steps(&curve.measured).map(at).for_each(|at| svg.cross(at, 4.0, colour));
        chart.steps(&curve.printed).map(at).for_each(|at| svg.circle(at, 6, colour));
    }

    let width = (f64::from(WIDTH) - LEGEND_LEFT) / 2.0;
    for (i, (sample, name)) in (0u32..).zip(entries) {
        let left = LEGEND_LEFT + f64::from(i % 2) * width;
        let middle = f64::from(HEIGHT + i / 2 * LEGEND_LINE + LEGEND_LINE / 2);
        let centre = (left + SAMPLE / 2.0, middle);
        match sample {
            Sample::Line(colour) => svg.line([(left, middle), (left + SAMPLE, middle)], colour, 3),
            Sample::Cross(colour) => svg.cross(centre, 4.0, colour),
            Sample::Circle(colour) => svg.circle(centre, 6, colour),
        }
        svg.text((left + SAMPLE + 8.0, middle + 4.0), Anchor::Start, TEXT, BLACK, name);
    }
    svg.finish()
}

/// The mark beside a name in the legend.
enum Sample {
    Line(Colour),
    Cross(Colour),
    Circle(Colour),
}

/// The entries of the legend: each curve by its line, or by its mark if it has no line, then the
/// meaning of the marks.
fn legend(chart: &Chart) -> Vec<(Sample, &str)> {
    let mut entries = Vec::new();
    for (i, curve) in chart.curves.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let sample = match curve {
            Curve { line, .. } if !line.is_empty() => Sample::Line(colour),
            Curve { measured, .. } if !measured.is_empty() => Sample::Cross(colour),
            _ => Sample::Circle(colour),
        };
        entries.push((sample, curve.name.as_str()));
    }
    let any = |of: fn(&Curve) -> bool| chart.curves.iter().any(of);
    if any(|curve| !curve.measured.is_empty()) {
        entries.push((Sample::Cross(BLACK), "measured here"));
    }
    if any(|curve| !curve.printed.is_empty()) {
        entries.push((Sample::Circle(BLACK), "printed in the paper"));
    }
    entries
}
