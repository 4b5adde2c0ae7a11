//! The last minutes as an SVG chart of a given width, for a light or a dark page.
//!
//! Text is 12 pixels high at every width, so the page sends the width of its column. Invisible
//! bands over the plot carry the values of their second. A browser shows them under the pointer
//! without a script.

use crate::show;
use sidon_lab::svg::{Anchor, Colour, Svg};
use sidon_traffic::figure::{Figure, Kind};

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
    /// Bits per second.
    Bits,
    Bytes,
}

/// One value of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    /// Seconds before now (negative).
    at: f64,
    value: f64,
    /// The certainty; `None` for a rate or a size, which has none.
    kind: Option<Kind>,
}

impl Point {
    pub(super) fn new(at: f64, value: f64) -> Self {
        Point { at, value, kind: None }
    }

    pub(super) fn of(at: f64, figure: Figure) -> Self {
        Point { at, value: figure.value() as f64, kind: Some(figure.kind()) }
    }
}

/// A line, or a layer of a stack.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<Point>,
}

/// A chart of series over time, with a point each at the same times.
#[derive(Debug, Clone)]
pub(super) struct Chart {
    /// Read aloud by screen readers.
    pub(super) title: String,
    pub(super) unit: Unit,
    /// Whether the chart adds each series to the ones before it.
    pub(super) stacked: bool,
    pub(super) series: Vec<Series>,
}

/// The widths that a chart can have, in pixels.
const WIDTHS: [u32; 2] = [240, 2000];
/// The width unless the request names one.
pub(super) const WIDTH: u32 = 560;
const HEIGHT: u32 = 200;
/// The height of text, and the mean width of a letter.
const TEXT: u32 = 12;
const LETTER: f64 = 6.9;
/// The borders of the plot in pixels. The names of the series are above it, values to the left,
/// times below.
const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const NAMES: f64 = 17.0;
const BOTTOM: f64 = HEIGHT as f64 - 24.0;
/// The smallest width of a band with the values of one second.
const BAND: f64 = 4.0;

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
    /// The chart as one SVG element, `width` pixels wide.
    pub(super) fn draw(&self, theme: Theme, width: u32) -> String {
        let (ink, faint) = match theme {
            Theme::Light => ([80, 88, 98], [222, 227, 232]),
            Theme::Dark => ([165, 175, 186], [52, 60, 70]),
        };
        let width = width.clamp(WIDTHS[0], WIDTHS[1]);
        let right = f64::from(width) - RIGHT;
        let names = self.names(right - LEFT);
        let top = 9.0 + NAMES * names.len() as f64;
        let layers = self.layers();
        let all = || layers.iter().flatten();
        let most = all().map(|&(_, y)| y).fold(0.0, f64::max);
        let most = if most > 0.0 { most * 1.08 } else { 1.0 };
        let first = all().map(|&(x, _)| x).fold(-60.0, f64::min);
        let column = |x: f64| LEFT + (right - LEFT) * (x - first) / -first;
        let row = |y: f64| BOTTOM - (BOTTOM - top) * y / most;

        let mut svg = Svg::new((width, HEIGHT), &self.title);
        for y in ticks(most, self.unit) {
            svg.line([(LEFT, row(y)), (right, row(y))], faint, 1);
            let at = (LEFT - 8.0, row(y) + 4.0);
            svg.text(at, Anchor::End, TEXT, ink, &short(y, self.unit));
        }
        let step = seconds_per_label(-first, right - LEFT);
        for i in 0..=(-first / step) as u32 {
            let x = -step * f64::from(i);
            let anchor = if i == 0 { Anchor::End } else { Anchor::Middle };
            svg.text((column(x), BOTTOM + 17.0), anchor, TEXT, ink, &before(x));
        }
        for (line, series) in names.iter().enumerate() {
            let names = series.iter().enumerate().flat_map(|(i, &index)| {
                let gap = if i == 0 { 0 } else { 14 };
                [(gap, colour(index, theme), "\u{25a0}"), (4, ink, &*self.series[index].name)]
            });
            let at = (LEFT, 14.0 + NAMES * line as f64);
            svg.spans(at, Anchor::Start, TEXT, ink, names);
        }
        // The top layer of a stack comes first: lower layers then cover its lower part.
        for (i, points) in layers.iter().enumerate().rev() {
            let colour = colour(i, theme);
            let at = points.iter().map(|&(x, y)| (column(x), row(y)));
            if let (true, Some(first), Some(last)) = (self.stacked, points.first(), points.last()) {
                let ends = [(column(last.0), BOTTOM), (column(first.0), BOTTOM)];
                svg.polygon(at.chain(ends), colour);
            } else {
                svg.line(at, colour, 2);
            }
        }
        self.bands(&mut svg, top, right, column);
        svg.finish()
    }

    /// Invisible bands, each with the values of one second. Points that are closer together than
    /// [`BAND`] share a band, which shows the latest of them.
    fn bands(&self, svg: &mut Svg, top: f64, right: f64, column: impl Fn(f64) -> f64) {
        let Some(Series { points, .. }) = self.series.first() else { return };
        let (mut until, mut latest) = (right, points.len().saturating_sub(1));
        for (index, point) in points.iter().enumerate().rev() {
            let before = index.checked_sub(1).map(|index| &points[index]);
            let from = before.map_or(LEFT, |before| column((before.at + point.at) / 2.0));
            if until - from >= BAND || before.is_none() {
                svg.tip((from, top), (until, BOTTOM), &self.values(latest));
                (until, latest) = (from, index.saturating_sub(1));
            }
        }
    }

    /// The time and the values of a point, one line each.
    fn values(&self, index: usize) -> String {
        let points = self.series.iter().filter_map(|one| Some((&one.name, one.points.get(index)?)));
        let mut text = String::new();
        for (name, point) in points {
            if text.is_empty() {
                text = ago(point.at);
            }
            let mark = point.kind.map_or(String::new(), |kind| format!("{} ", kind.mark()));
            text += &format!("\n{name}: {mark}{}", long(point.value, self.unit));
        }
        text
    }

    /// The series by the line on which their names fit.
    fn names(&self, width: f64) -> Vec<Vec<usize>> {
        let mut lines = vec![Vec::new()];
        let mut used = 0.0;
        for (index, series) in self.series.iter().enumerate() {
            let name = 30.0 + LETTER * series.name.chars().count() as f64;
            if used + name > width && used > 0.0 {
                lines.push(Vec::new());
                used = 0.0;
            }
            used += name;
            if let Some(line) = lines.last_mut() {
                line.push(index);
            }
        }
        lines
    }

    /// The points of each series. In a stack, each series is added to the ones before it.
    fn layers(&self) -> Vec<Vec<(f64, f64)>> {
        let mut layers: Vec<Vec<(f64, f64)>> = Vec::new();
        for series in &self.series {
            let mut points: Vec<_> = series.points.iter().map(|one| (one.at, one.value)).collect();
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

/// The seconds between two labels of the time axis, so that no two labels touch.
fn seconds_per_label(seconds: f64, width: f64) -> f64 {
    let steps = [15.0, 30.0, 60.0, 120.0];
    let fits = |step: &f64| width * step / seconds >= 48.0;
    steps.into_iter().find(fits).unwrap_or(300.0)
}

/// A time on the axis.
fn before(seconds: f64) -> String {
    let seconds = -seconds.round() as i64;
    match (seconds / 60, seconds % 60) {
        (0, 0) => "now".to_owned(),
        (0, seconds) => format!("-{seconds} s"),
        (minutes, 0) => format!("-{minutes} min"),
        (minutes, seconds) => format!("-{minutes}:{seconds:02}"),
    }
}

/// A time in words.
fn ago(seconds: f64) -> String {
    match -seconds.round() as i64 {
        0 => "now".to_owned(),
        seconds @ 1..60 => format!("{seconds} s ago"),
        seconds => format!("{} min {} s ago", seconds / 60, seconds % 60),
    }
}

/// The short form of a number on an axis.
fn short(value: f64, unit: Unit) -> String {
    let (value, name) = scaled(value, unit);
    let digits = usize::from(value < 10.0 && value.fract() > 0.04);
    format!("{value:.digits$}{name}")
}

/// The form of a number under the pointer.
fn long(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Number => show::whole(value.round() as u64),
        Unit::Bytes => show::bytes(value.round() as u64),
        Unit::Bits => {
            let (value, name) = scaled(value, unit);
            let digits = usize::from(value < 100.0 && !name.starts_with(" bit"));
            format!("{value:.digits$}{name}/s")
        }
    }
}

/// A number in the unit that suits it, and the unit's name.
fn scaled(value: f64, unit: Unit) -> (f64, &'static str) {
    let (step, names) = match unit {
        Unit::Number => (1000.0, ["", "k", "M", "G", "T"]),
        Unit::Bits => (1000.0, [" bit", " kbit", " Mbit", " Gbit", " Tbit"]),
        Unit::Bytes => (1024.0, [" B", " KiB", " MiB", " GiB", " TiB"]),
    };
    let (mut value, mut name) = (value, 0);
    while value >= step && name + 1 < names.len() {
        value /= step;
        name += 1;
    }
    (value, names[name])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(stacked: bool) -> Chart {
        let line = |name: &str, y: u64| Series {
            name: name.to_owned(),
            points: (0..5).map(|x| Point::of(f64::from(x) - 4.0, Figure::at_most(0, y))).collect(),
        };
        let series = vec![line("one", 1), line("two", 2)];
        Chart { title: "a <b> & \"c\"".to_owned(), unit: Unit::Number, stacked, series }
    }

    #[test]
    fn a_chart_is_one_element_without_style_or_script() {
        for theme in [Theme::Light, Theme::Dark] {
            let svg = chart(false).draw(theme, WIDTH);
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
    fn text_keeps_its_size_at_every_width() {
        for (asked, width) in [(0, 240), (344, 344), (u32::MAX, 2000)] {
            let svg = chart(true).draw(Theme::Light, asked);
            assert!(svg.contains(&format!("width=\"{width}\" height=\"200\"")), "{svg}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            assert_eq!(svg.matches("font-size").count(), svg.matches("font-size=\"12\"").count());
        }
        assert_eq!(seconds_per_label(60.0, 480.0), 15.0);
        assert_eq!(seconds_per_label(300.0, 270.0), 60.0);
        assert_eq!(seconds_per_label(3000.0, 270.0), 300.0);
    }

    #[test]
    fn names_of_series_go_to_a_second_line_if_they_do_not_fit() {
        let name = |i: usize| Series { name: format!("RSTRH{i}"), points: Vec::new() };
        let chart = Chart { series: (0..5).map(name).collect(), ..chart(true) };
        assert_eq!(chart.names(500.0).len(), 1);
        assert_eq!(chart.names(270.0), [vec![0, 1, 2], vec![3, 4]]);
        assert_eq!(chart.names(10.0).len(), 5);
    }

    #[test]
    fn every_second_has_a_band_with_its_values_and_their_marks() {
        let svg = chart(true).draw(Theme::Dark, WIDTH);
        assert_eq!(svg.matches("<title>").count(), 5, "{svg}");
        assert!(svg.contains("<title>now\none: &lt;= 1\ntwo: &lt;= 2</title>"), "{svg}");
        assert!(svg.contains("<title>4 s ago\n"), "{svg}");
        // Five minutes at 240 pixels: bands of 4 pixels, side by side from end to end.
        let points = (0..300).map(|x| Point::new(f64::from(x) - 299.0, f64::from(x))).collect();
        let series = vec![Series { name: "rate".to_owned(), points }];
        let svg = Chart { series, stacked: false, ..chart(true) }.draw(Theme::Dark, 240);
        let number = |rect: &str, name: &str| -> f64 {
            let value = rect.split(&format!(" {name}=\"")).nth(1).unwrap();
            value.split('"').next().unwrap().parse().unwrap()
        };
        let bands: Vec<_> = svg
            .lines()
            .filter(|line| line.contains("<title>") || line.starts_with("<rect"))
            .collect();
        assert!(bands.len() < 50 && bands.len() > 30, "{}", bands.len());
        let mut until = 226.0;
        for band in bands {
            let (from, width) = (number(band, "x"), number(band, "width"));
            assert!((from + width - until).abs() < 0.11, "{band}");
            until = from;
        }
        assert_eq!(until, LEFT);
    }

    #[test]
    fn a_stack_adds_each_series_to_those_below() {
        let layers = chart(true).layers();
        assert_eq!(layers[0][0], (-4.0, 1.0));
        assert_eq!(layers[1][0], (-4.0, 3.0));
        assert_eq!(chart(false).layers()[1][0], (-4.0, 2.0));
        let nothing = Chart { series: Vec::new(), ..chart(true) };
        assert!(nothing.draw(Theme::Dark, WIDTH).contains("now"));
    }

    #[test]
    fn numbers_of_axes_are_short() {
        assert_eq!(short(0.0, Unit::Number), "0");
        assert_eq!(short(1500.0, Unit::Number), "1.5k");
        assert_eq!(short(250_000.0, Unit::Number), "250k");
        assert_eq!(short(20_000_000.0, Unit::Bits), "20 Mbit");
        assert_eq!(short(f64::from(16 << 20), Unit::Bytes), "16 MiB");
        assert_eq!(long(1500.4, Unit::Number), "1,500");
        assert_eq!(long(27_542_418.0, Unit::Bits), "27.5 Mbit/s");
        assert_eq!(long(275.4, Unit::Bits), "275 bit/s");
        assert_eq!(before(-90.0), "-1:30");
        assert_eq!(before(-120.0), "-2 min");
        assert_eq!(before(0.0), "now");
        assert_eq!(ago(-90.0), "1 min 30 s ago");
        assert_eq!(ticks(1.0, Unit::Number), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(ticks(35_000.0, Unit::Number), [0.0, 10_000.0, 20_000.0, 30_000.0]);
        assert_eq!(ticks(f64::from(20 << 20), Unit::Bytes).len(), 5);
    }
}
