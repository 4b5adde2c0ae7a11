//! A figure as data: axes and curves in, an SVG or a PNG out.
//!
//! A curve has up to three kinds of points, all of one colour: a line that joins what a formula
//! gives, crosses for what was measured, circles for what a paper prints. Where a circle lies on
//! its line the paper is right.
//! ```text
//! title
//! y |  ---o---      lines, crosses, circles
//!   +-----------
//!        x
//! -- name   -- name      the key, below and never over the curves
//! ```
//! What an axis cannot show, such as zero on a scale of powers of ten, is left out. The same chart
//! gives the same bytes. Nothing here knows of papers: a server can draw its own.

mod draw;
mod ticks;

use std::{error, fmt};

/// Pixels from left to right.
pub const WIDTH: u32 = 800;
/// Pixels from top to bottom, without the key.
pub const HEIGHT: u32 = 480;

/// Some curves over one pair of axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// What it shows, in one line.
    pub title: String,
    /// The axis from left to right.
    pub x: Axis,
    /// The axis from bottom to top.
    pub y: Axis,
    /// What is drawn, the first one lowest.
    pub curves: Vec<Curve>,
}

/// A direction of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// What it measures, with its unit.
    pub label: String,
    /// Whether a step multiplies by ten.
    pub log: bool,
}

/// Points of one colour under one name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Curve {
    /// Its name in the key.
    pub name: String,
    /// Joined by a line.
    pub line: Vec<Point>,
    /// Drawn as crosses.
    pub measured: Vec<Point>,
    /// Drawn as circles.
    pub printed: Vec<Point>,
}

/// A place: along x, along y.
pub type Point = (f64, f64);

/// Why a chart could not be drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undrawable(String);

impl fmt::Display for Undrawable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the chart cannot be drawn: {}", self.0)
    }
}

impl error::Error for Undrawable {}

impl Axis {
    /// Equal steps add.
    pub fn linear(label: impl Into<String>) -> Self {
        Axis { label: label.into(), log: false }
    }

    /// Equal steps multiply.
    pub fn log(label: impl Into<String>) -> Self {
        Axis { label: label.into(), log: true }
    }

    /// Where a number lies, in steps; nothing if it lies nowhere.
    fn place(&self, number: f64) -> Option<f64> {
        let place = if self.log { number.log10() } else { number };
        place.is_finite().then_some(place)
    }
}

impl Curve {
    /// A curve without points.
    pub fn new(name: impl Into<String>) -> Self {
        Curve { name: name.into(), ..Curve::default() }
    }

    /// The same with these points joined by a line.
    #[must_use]
    pub fn line(mut self, points: impl IntoIterator<Item = Point>) -> Self {
        self.line = points.into_iter().collect();
        self
    }

    /// The same with these as crosses.
    #[must_use]
    pub fn measured(mut self, points: impl IntoIterator<Item = Point>) -> Self {
        self.measured = points.into_iter().collect();
        self
    }

    /// The same with these as circles.
    #[must_use]
    pub fn printed(mut self, points: impl IntoIterator<Item = Point>) -> Self {
        self.printed = points.into_iter().collect();
        self
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.line.iter().chain(&self.measured).chain(&self.printed)
    }
}

impl Chart {
    /// The chart as an SVG document.
    pub fn svg(&self) -> Result<String, Undrawable> {
        draw::svg(self)
    }

    /// The chart as a PNG image, [`WIDTH`] pixels wide.
    pub fn png(&self) -> Result<Vec<u8>, Undrawable> {
        draw::png(self)
    }

    /// The points that both axes can show, in steps.
    fn places<'a>(&'a self, points: &'a [Point]) -> impl Iterator<Item = Point> + 'a {
        points.iter().filter_map(|&(x, y)| Some((self.x.place(x)?, self.y.place(y)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(x: Axis, y: Axis) -> Chart {
        let line = (1..=50).map(|i| (f64::from(i), 0.62f64.powi(i)));
        let curve = Curve::new("a filter & its rate").line(line).printed([(10.0, 0.0082)]);
        let other = Curve::new("measured").measured([(10.0, 0.0), (10.0, 0.01), (20.0, f64::NAN)]);
        Chart { title: "rates < 1".into(), x, y, curves: vec![curve, other] }
    }

    #[test]
    fn a_chart_names_its_axes_its_curves_and_its_marks() {
        let chart = chart(Axis::linear("bits a key"), Axis::log("false positives"));
        let svg = chart.svg().unwrap();
        for text in ["rates &lt; 1", "bits a key", "false positives", "a filter &amp; its rate"] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(svg.contains("printed in the paper") && svg.contains("measured here"));
        assert!(svg.contains("1e-8") && svg.contains("0.01"));
        assert_eq!(svg, chart.svg().unwrap());
        // One circle on the curve and one in the key; zero and what is no number are left out: a
        // cross of two strokes is left, and one in the key.
        assert_eq!(svg.matches("<circle").count(), 2);
    }

    #[test]
    fn a_png_is_as_wide_as_it_says_and_not_blank() {
        let png = chart(Axis::log("x"), Axis::linear("y")).png().unwrap();
        assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
        assert_eq!(png[16..20], WIDTH.to_be_bytes());
        let mut reader = png::Decoder::new(std::io::Cursor::new(&png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        let dark = pixels.chunks(3).filter(|p| p.iter().all(|&part| part < 100)).count();
        assert!(dark > 500, "{dark} dark pixels");
    }

    #[test]
    fn nothing_to_show_is_still_a_chart() {
        let mut chart = chart(Axis::linear("x"), Axis::linear("y"));
        chart.curves.clear();
        assert!(chart.svg().unwrap().contains("rates"));
        chart.curves.push(Curve::new("one point").measured([(3.0, 3.0)]));
        assert!(chart.svg().unwrap().contains("one point"));
    }
}
