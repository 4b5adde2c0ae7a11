//! The last minutes as SVG, drawn here: the page needs no script for it.
//!
//! Lines and layers are plotters'; words are placed beside the ticks and flow on from each other, so
//! that no text is measured and no font is needed. A chart is drawn for a light or a dark page.

use plotters::prelude::*;

/// The ground that a chart is drawn on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Theme {
    Light,
    Dark,
}

/// What an axis counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Number,
    Bytes,
}

/// A line, or a layer of a stack.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// What is drawn.
#[derive(Debug, Clone)]
pub(super) struct Chart {
    /// For those who do not see it.
    pub(super) title: String,
    pub(super) unit: Unit,
    /// Whether each series stands on the one before.
    pub(super) stacked: bool,
    pub(super) series: Vec<Series>,
}

const SIZE: (u32, u32) = (560, 200);
/// Room for the names of the series, the figures to the left and the times below.
const ABOVE: i32 = 26;
const LEFT: i32 = 62;
const BELOW: i32 = 24;
const RIGHT: i32 = 14;

/// Colours that those who see few colours tell apart (Okabe and Ito), for light and dark.
const COLOURS: [[RGBColor; 2]; 6] = [
    [RGBColor(0, 102, 170), RGBColor(86, 180, 233)],
    [RGBColor(190, 80, 0), RGBColor(240, 160, 60)],
    [RGBColor(0, 120, 90), RGBColor(50, 200, 160)],
    [RGBColor(150, 70, 130), RGBColor(220, 150, 190)],
    [RGBColor(120, 110, 0), RGBColor(225, 215, 80)],
    [RGBColor(110, 110, 110), RGBColor(160, 160, 160)],
];

impl Chart {
    /// The chart as one SVG element.
    pub(super) fn draw(&self, theme: Theme) -> Result<String, String> {
        let (mut text, mut words) = (String::new(), String::new());
        self.draw_to(&mut text, &mut words, theme).map_err(|why| why.to_string())?;
        let head = format!("<svg role=\"img\" aria-label=\"{}\" ", plain(&self.title));
        let text = text.replacen("<svg ", &head, 1);
        Ok(text.replacen("</svg>", &format!("{words}</svg>"), 1))
    }

    fn draw_to(
        &self,
        text: &mut String,
        words: &mut String,
        theme: Theme,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let (ink, faint) = match theme {
            Theme::Light => (RGBColor(80, 88, 98), RGBColor(222, 227, 232)),
            Theme::Dark => (RGBColor(165, 175, 186), RGBColor(52, 60, 70)),
        };
        let layers = self.layers();
        let all = || layers.iter().flatten();
        let most = all().map(|&(_, y)| y).fold(0.0, f64::max);
        let most = if most > 0.0 { most * 1.08 } else { 1.0 };
        let first = all().map(|&(x, _)| x).fold(-60.0, f64::min);

        let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin_top(ABOVE)
            .margin_right(RIGHT)
            .margin_bottom(BELOW)
            .margin_left(LEFT)
            .build_cartesian_2d(first..0.0, 0.0..most)?;
        for y in ticks(most, self.unit) {
            let line = PathElement::new(vec![(first, y), (0.0, y)], faint);
            chart.draw_series([line])?;
            let (_, row) = chart.backend_coord(&(first, y));
            word(words, (LEFT - 8, row + 4), "end", ink, &short(y, self.unit));
        }
        let step = if first < -150.0 { 60.0 } else { 15.0 };
        for i in 0..=(-first / step) as u32 {
            let x = -step * f64::from(i);
            let (column, row) = chart.backend_coord(&(x, 0.0));
            let anchor = if i == 0 { "end" } else { "middle" };
            word(words, (column, row + 17), anchor, ink, &ago(x));
        }
        let mut names = String::new();
        for (i, series) in self.series.iter().enumerate() {
            let RGBColor(r, g, b) = colour(i, theme);
            names += &format!(
                "<tspan dx=\"{}\" fill=\"#{r:02x}{g:02x}{b:02x}\">\u{25a0}</tspan><tspan dx=\"4\">{}</tspan>",
                if i == 0 { 0 } else { 14 },
                plain(&series.name)
            );
        }
        word(words, (LEFT, 14), "start", ink, &names);
        // The top of a stack is drawn first, so that those below cover its lower part.
        for (i, points) in layers.into_iter().enumerate().rev() {
            let colour = colour(i, theme);
            if self.stacked {
                chart.draw_series(AreaSeries::new(points, 0.0, colour))?;
            } else {
                chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
            }
        }
        area.present()?;
        Ok(())
    }

    /// Where each series is drawn: a layer of a stack includes those before it.
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

fn colour(series: usize, theme: Theme) -> RGBColor {
    let [light, dark] = COLOURS[series.min(COLOURS.len() - 1)];
    if theme == Theme::Light { light } else { dark }
}

/// Some words at a place.
fn word(words: &mut String, (x, y): (i32, i32), anchor: &str, ink: RGBColor, text: &str) {
    let RGBColor(r, g, b) = ink;
    *words += &format!(
        "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" font-size=\"12\" \
         fill=\"#{r:02x}{g:02x}{b:02x}\">{text}</text>\n"
    );
}

/// A text without what has a meaning in SVG.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '<' | '>' | '&' | '"')).collect()
}

/// Round numbers from zero on, three to six of them.
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

/// A number of an axis in a few letters.
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
            let svg = chart(false).draw(theme).unwrap();
            assert!(svg.starts_with("<svg role=\"img\" aria-label=\"a b  c\""), "{svg}");
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
        assert!(nothing.draw(Theme::Dark).is_ok());
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
