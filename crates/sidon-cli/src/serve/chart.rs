//! The last minutes as an SVG chart, for a light or a dark page. The page needs no script for it.

use sidon_lab::svg::{Anchor, Colour, Svg};

/// The page that a chart is drawn for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Theme {
    Light,
    Dark,
}

/// The unit of the vertical axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Number,
    Bytes,
}

/// A line, or a layer of a stack. Points are seconds before now (negative) and values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// A chart of some series over time.
#[derive(Debug, Clone)]
pub(super) struct Chart {
    /// Read aloud by screen readers.
    pub(super) title: String,
    pub(super) unit: Unit,
    /// Whether the chart adds each series to the ones before it.
    pub(super) stacked: bool,
    pub(super) series: Vec<Series>,
}

const SIZE: (u32, u32) = (560, 200);
/// The borders of the plot in pixels. The series' names are above it, values to the left, times
/// below.
const LEFT: f64 = 62.0;
const RIGHT: f64 = SIZE.0 as f64 - 14.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = SIZE.1 as f64 - 24.0;
const TEXT: u32 = 12;

/// Colours that colour-blind readers can distinguish (Okabe and Ito), for light and dark pages.
const COLOURS: [[Colour; 2]; 6] = [
    [[0, 102, 170], [86, 180, 233]],
    [[190, 80, 0], [240, 160, 60]],
    [[0, 120, 90], [50, 200, 160]],
    [[150, 70, 130], [220, 150, 190]],
    [[120, 110, 0], [225, 215, 80]],
    [[110, 110, 110], [160, 160, 160]],
];

impl Chart {
    /// The chart as one SVG element.
    pub(super) fn draw(&self, theme: Theme) -> String {
        let (ink, faint) = match theme {
            Theme::Light => ([80, 88, 98], [222, 227, 232]),
            Theme::Dark => ([165, 175, 186], [52, 60, 70]),
        };
        let layers = self.layers();
        let all = || layers.iter().flatten();
        let most = all().map(|&(_, y)| y).fold(0.0, f64::max);
        let most = if most > 0.0 { most * 1.08 } else { 1.0 };
        let first = all().map(|&(x, _)| x).fold(-60.0, f64::min);
        let column = |x: f64| LEFT + (RIGHT - LEFT) * (x - first) / -first;
        let row = |y: f64| BOTTOM - (BOTTOM - TOP) * y / most;

        let mut svg = Svg::new(SIZE, &self.title);
        for y in ticks(most, self.unit) {
            svg.line([(LEFT, row(y)), (RIGHT, row(y))], faint, 1);
            let at = (LEFT - 8.0, row(y) + 4.0);
            svg.text(at, Anchor::End, TEXT, ink, &short(y, self.unit));
        }
        let step = if first < -150.0 { 60.0 } else { 15.0 };
        for i in 0..=(-first / step) as u32 {
            let x = -step * f64::from(i);
            let anchor = if i == 0 { Anchor::End } else { Anchor::Middle };
            svg.text((column(x), BOTTOM + 17.0), anchor, TEXT, ink, &ago(x));
        }
        let names = self.series.iter().enumerate().flat_map(|(i, series)| {
            let gap = if i == 0 { 0 } else { 14 };
            [(gap, colour(i, theme), "\u{25a0}"), (4, ink, series.name.as_str())]
        });
        svg.spans((LEFT, 14.0), Anchor::Start, TEXT, ink, names);
        // The top layer of a stack comes first: lower layers then cover its lower part.
        for (i, points) in layers.into_iter().enumerate().rev() {
            let colour = colour(i, theme);
            let at = points.iter().map(|&(x, y)| (column(x), row(y)));
            if let (true, Some(first), Some(last)) = (self.stacked, points.first(), points.last()) {
                let ends = [(column(last.0), BOTTOM), (column(first.0), BOTTOM)];
                svg.polygon(at.chain(ends), colour);
            } else {
                svg.line(at, colour, 2);
            }
        }
        svg.finish()
    }

    /// The points of each series. In a stack, each series is added to the ones before it.
    fn layers(&self) -> Vec<Vec<(f64, f64)>> {
        let mut layers: Vec<Vec<(f64, f64)>> = Vec::new();
        for series in &self.series {
            let mut points = series.points.clone();
            if let Some(below) = layers.last().filter(|_| self.stacked) {
                for (point, below) in points.iter_mut().zip(below) {
                    point.1 += below.1;
                }
            }
            layers.push(points);
        }
        layers
    }
}

fn colour(series: usize, theme: Theme) -> Colour {
    let [light, dark] = COLOURS[series.min(COLOURS.len() - 1)];
    if theme == Theme::Light { light } else { dark }
}

/// Three to six round numbers from zero up.
fn ticks(most: f64, unit: Unit) -> Vec<f64> {
    let base: f64 = if unit == Unit::Bytes { 1024.0 } else { 1000.0 };
    let scale = base.powf(most.log(base).floor().max(0.0));
    let steps = [0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0];
    let step = scale * steps.into_iter().find(|step| most / scale / step <= 5.0).unwrap_or(1.0);
    (0..=(most / step) as u32).map(|i| step * f64::from(i)).collect()
}

fn ago(seconds: f64) -> String {
    let seconds = -seconds.round() as i64;
    match (seconds / 60, seconds % 60) {
        (0, 0) => "now".to_owned(),
        (0, seconds) => format!("-{seconds} s"),
        (minutes, 0) => format!("-{minutes} min"),
        (minutes, seconds) => format!("-{minutes}:{seconds:02}"),
    }
}

/// The short form of a number on an axis.
fn short(value: f64, unit: Unit) -> String {
    let (step, names) = match unit {
        Unit::Number => (1000.0, ["", "k", "M", "G", "T"]),
        Unit::Bytes => (1024.0, [" B", " KiB", " MiB", " GiB", " TiB"]),
    };
    let (mut value, mut name) = (value, 0);
    while value >= step && name + 1 < names.len() {
        value /= step;
        name += 1;
    }
    let digits = usize::from(value < 10.0 && value.fract() > 0.04);
    format!("{value:.digits$}{}", names[name])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(stacked: bool) -> Chart {
        let line = |name: &str, y: f64| Series {
            name: name.to_owned(),
            points: (0..5).map(|x| (f64::from(x) - 4.0, y)).collect(),
        };
        let series = vec![line("one", 1.0), line("two", 2.0)];
        Chart { title: "a <b> & \"c\"".to_owned(), unit: Unit::Number, stacked, series }
    }

    #[test]
    fn a_chart_is_one_element_without_style_or_script() {
        for theme in [Theme::Light, Theme::Dark] {
            let svg = chart(false).draw(theme);
            assert!(
                svg.starts_with("<svg role=\"img\" aria-label=\"a &lt;b&gt; &amp; &quot;c&quot;\""),
                "{svg}"
            );
            assert!(svg.trim_end().ends_with("</svg>"));
            assert!(!svg.contains("style=") && !svg.contains("<script"), "{svg}");
            assert!(svg.contains(">now<"), "{svg}");
            assert_eq!(svg.matches("stroke-width=\"2\"").count(), 2, "{svg}");
        }
    }

    #[test]
    fn a_stack_stands_on_what_is_below() {
        let layers = chart(true).layers();
        assert_eq!(layers[0][0], (-4.0, 1.0));
        assert_eq!(layers[1][0], (-4.0, 3.0));
        assert_eq!(chart(false).layers()[1][0], (-4.0, 2.0));
        let nothing = Chart { series: Vec::new(), ..chart(true) };
        assert!(nothing.draw(Theme::Dark).contains("now"));
    }

    #[test]
    fn numbers_of_axes_are_short() {
        assert_eq!(short(0.0, Unit::Number), "0");
        assert_eq!(short(1500.0, Unit::Number), "1.5k");
        assert_eq!(short(250_000.0, Unit::Number), "250k");
        assert_eq!(short(f64::from(16 << 20), Unit::Bytes), "16 MiB");
        assert_eq!(ago(-90.0), "-1:30");
        assert_eq!(ago(-120.0), "-2 min");
        assert_eq!(ago(0.0), "now");
        assert_eq!(ticks(1.0, Unit::Number), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(ticks(35_000.0, Unit::Number), [0.0, 10_000.0, 20_000.0, 30_000.0]);
        assert_eq!(ticks(f64::from(20 << 20), Unit::Bytes).len(), 5);
    }
}
