//! A chart on a drawing area: the same calls for SVG and for pixels.

use super::{Chart, Curve, HEIGHT, Undrawable, WIDTH, ticks};
use plotters::{
    coord::{
        Shift,
        ranged1d::{DefaultFormatting, KeyPointHint, Ranged},
    },
    prelude::*,
    style::{FontTransform, register_font},
};
use std::{error::Error, ops::Range, sync::Once};

/// Told apart by those who see colours differently, and in print (Okabe and Ito).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(96, 96, 96),
    RGBColor(153, 102, 51),
];

/// The font that texts are measured with. Most others are narrower, so that what does not overlap
/// here does not where an SVG is shown in another.
const FONT: &str = "sans-serif";
const TEXT: i32 = 14;
const TITLE: i32 = 18;
/// Pixels of the key: a line, the margin to the left, a sample, a column.
const KEY_LINE: i32 = 22;
const KEY_LEFT: i32 = 24;
const SAMPLE: i32 = 28;

type Area<'a, B> = DrawingArea<B, Shift>;

pub(super) fn svg(chart: &Chart) -> Result<String, Undrawable> {
    let mut out = String::new();
    let root = SVGBackend::with_string(&mut out, size(chart)).into_drawing_area();
    draw(chart, &root).map_err(|why| Undrawable(why.to_string()))?;
    drop(root);
    Ok(out)
}

pub(super) fn png(chart: &Chart) -> Result<Vec<u8>, Undrawable> {
    let (width, height) = size(chart);
    let mut pixels = vec![0; width as usize * height as usize * 3];
    let root = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
    draw(chart, &root).map_err(|why| Undrawable(why.to_string()))?;
    drop(root);
    encode(&pixels, width, height).map_err(|why| Undrawable(why.to_string()))
}

fn encode(pixels: &[u8], width: u32, height: u32) -> Result<Vec<u8>, png::EncodingError> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::High);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(out)
}

fn size(chart: &Chart) -> (u32, u32) {
    (WIDTH, HEIGHT + (entries(chart).len().div_ceil(2) as i32 * KEY_LINE + 12) as u32)
}

/// A scale is an axis of its own marks.
impl Ranged for ticks::Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (from, to): (i32, i32)) -> i32 {
        let share = (place - self.low) / (self.high - self.low);
        from + (f64::from(to - from) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.marks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

/// What a line of the key shows.
enum Sample {
    Line(RGBColor),
    Cross(RGBColor),
    Circle(RGBColor),
}

/// The key: a curve by its line, or by its mark if it has none; then what the marks mean.
fn entries(chart: &Chart) -> Vec<(Sample, String)> {
    let mut entries = Vec::new();
    for (i, curve) in chart.curves.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let sample = match curve {
            Curve { line, .. } if !line.is_empty() => Sample::Line(colour),
            Curve { measured, .. } if !measured.is_empty() => Sample::Cross(colour),
            _ => Sample::Circle(colour),
        };
        entries.push((sample, curve.name.clone()));
    }
    let any = |of: fn(&Curve) -> bool| chart.curves.iter().any(of);
    if any(|curve| !curve.measured.is_empty()) {
        entries.push((Sample::Cross(BLACK), "measured here".to_owned()));
    }
    if any(|curve| !curve.printed.is_empty()) {
        entries.push((Sample::Circle(BLACK), "printed in the paper".to_owned()));
    }
    entries
}

fn draw<B: DrawingBackend>(chart: &Chart, root: &Area<'_, B>) -> Result<(), Box<dyn Error>>
where
    B::ErrorType: 'static,
{
    static REGISTERED: Once = Once::new();
    // A font that does not load shows as an error of the first text.
    REGISTERED.call_once(|| {
        let _ = register_font(FONT, FontStyle::Normal, dejavu::sans::regular());
    });
    root.fill(&WHITE)?;
    let (plot, key) = root.split_vertically(HEIGHT);
    let points = || chart.curves.iter().flat_map(Curve::points);
    let x = ticks::Scale::of(&chart.x, ticks::along(&chart.x, points(), |point| point.0));
    let y = ticks::Scale::of(&chart.y, ticks::along(&chart.y, points(), |point| point.1));
    let mut builder = ChartBuilder::on(&plot);
    builder
        .caption(&chart.title, (FONT, TITLE))
        .margin(10)
        .margin_right(28)
        .x_label_area_size(48)
        .y_label_area_size(86);
    let mut plane = builder.build_cartesian_2d(x, y)?;
    plane
        .configure_mesh()
        .bold_line_style(RGBColor(224, 224, 224))
        .light_line_style(TRANSPARENT)
        .label_style((FONT, TEXT))
        .axis_desc_style((FONT, TEXT + 1))
        .x_desc(&chart.x.label)
        .y_desc(&chart.y.label)
        .x_label_formatter(&|place| ticks::text(&chart.x, *place))
        .y_label_formatter(&|place| ticks::text(&chart.y, *place))
        .draw()?;
    for (i, curve) in chart.curves.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        plane.draw_series(LineSeries::new(chart.places(&curve.line), colour.stroke_width(2)))?;
        let crosses = chart.places(&curve.measured);
        plane.draw_series(crosses.map(|at| Cross::new(at, 4, colour.stroke_width(2))))?;
        let circles = chart.places(&curve.printed);
        plane.draw_series(circles.map(|at| Circle::new(at, 6, colour.stroke_width(2))))?;
    }
    let column = (WIDTH as i32 - KEY_LEFT) / 2;
    for (i, (sample, name)) in (0..).zip(entries(chart)) {
        let (left, middle) = (KEY_LEFT + i % 2 * column, i / 2 * KEY_LINE + KEY_LINE / 2);
        let centre = (left + SAMPLE / 2, middle);
        match sample {
            Sample::Line(colour) => {
                let line = vec![(left, middle), (left + SAMPLE, middle)];
                key.draw(&PathElement::new(line, colour.stroke_width(3)))?;
            }
            Sample::Cross(colour) => key.draw(&Cross::new(centre, 4, colour.stroke_width(2)))?,
            Sample::Circle(colour) => key.draw(&Circle::new(centre, 6, colour.stroke_width(2)))?,
        }
        let font = (FONT, TEXT).into_font().transform(FontTransform::None);
        key.draw(&Text::new(name, (left + SAMPLE + 8, middle - TEXT / 2 + 3), font))?;
    }
    root.present()?;
    Ok(())
}
