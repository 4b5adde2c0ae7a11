//! A figure as data: axes and curves in, an SVG document out.
//!
//! A curve has up to three kinds of points, all of one colour: a line through the values of a
//! formula, crosses for measured values, circles for values that a paper prints. A circle on its
//! line shows that the paper is right.
//! ```text
//! title
//! y |  ---o---      lines, crosses, circles
//!   +-----------
//!        x
//! -- name   -- name      the legend, below the plot
//! ```
//! A chart leaves out points that an axis cannot show, such as zero on a logarithmic axis. Equal
//! charts give equal bytes.

mod draw;
mod ticks;

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
    /// The curves; later ones cover earlier ones.
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

    /// The curve with these points joined by a line.
    #[must_use]
    pub fn line(mut self, points: impl IntoIterator<Item = Point>) -> Self {
        self.line = points.into_iter().collect();
        self
    }

    /// The curve with these points as crosses.
    #[must_use]
    pub fn measured(mut self, points: impl IntoIterator<Item = Point>) -> Self {
        self.measured = points.into_iter().collect();
        self
    }

    /// The curve with these points as circles.
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
    /// The chart as an SVG document, [`WIDTH`] pixels wide.
    pub fn svg(&self) -> String {
        draw::svg(self)
    }

    /// The points that both axes can show, in steps of the axes.
    fn steps<'a>(&'a self, points: &'a [Point]) -> impl Iterator<Item = Point> + 'a {
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
        let svg = chart.svg();
        for text in ["rates &lt; 1", "bits a key", "false positives", "a filter &amp; its rate"] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(svg.contains("printed in the paper") && svg.contains("measured here"));
        assert!(svg.contains("1e-8") && svg.contains("0.01"));
        assert_eq!(svg, chart.svg());
        // One circle on the curve and one in the legend. Zero and NaN have no position on a
        // logarithmic axis, so one cross of two strokes is left, and two crosses in the legend.
        assert_eq!(svg.matches("<circle").count(), 2);
        let crosses =
            svg.lines().filter(|line| line.contains("polyline") && line.contains("width=\"2\""));
        assert_eq!(crosses.count(), 1 + 2 + 4);
    }

    #[test]
    fn nothing_to_show_is_still_a_chart() {
        let mut chart = chart(Axis::linear("x"), Axis::linear("y"));
        chart.curves.clear();
        assert!(chart.svg().contains("rates"));
        chart.curves.push(Curve::new("one point").measured([(3.0, 3.0)]));
        assert!(chart.svg().contains("one point"));
    }
}
