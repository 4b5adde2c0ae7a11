//! Where an axis is marked, and how the marks are written.

use super::{Axis, Point};

/// An axis cut to its points, in steps of the axis: logarithms on a scale of powers of ten.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scale {
    /// The first place shown.
    pub(super) low: f64,
    /// The last place shown.
    pub(super) high: f64,
    /// The places that are marked.
    pub(super) marks: Vec<f64>,
}

/// The most marks that fit an axis side by side.
const MOST: f64 = 8.0;

impl Scale {
    /// A scale that shows all these values, and zero unless it would take more room than they.
    pub(super) fn of(axis: &Axis, places: impl Iterator<Item = f64>) -> Self {
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        let (low, high) = places.fold(ends, |(low, high), at| (low.min(at), high.max(at)));
        match (low <= high, axis.log) {
            (false, _) => Scale::linear(0.0, 1.0),
            (true, false) => Scale::linear(low, high),
            (true, true) => Scale::log(low, high),
        }
    }

    /// The position of a step between the ends, from 0 to 1.
    pub(super) fn share(&self, step: f64) -> f64 {
        (step - self.low) / (self.high - self.low)
    }

    fn linear(low: f64, high: f64) -> Self {
        let (mut low, mut high) = (low, high);
        if low == high {
            (low, high) = (low - 1.0, high + 1.0);
        }
        let low = if low > 0.0 && low < 0.4 * high { 0.0 } else { low };
        let room = 0.03 * (high - low);
        let (low, high) = (if low == 0.0 { low } else { low - room }, high + room);
        let rough = (high - low) / MOST;
        let ten = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * ten);
        let step = step.into_iter().find(|&step| step >= rough).unwrap_or(10.0 * ten);
        let first = (low / step).ceil() as i64;
        let marks = (first..).map(|i| i as f64 * step).take_while(|&at| at <= high);
        Scale { low, high, marks: marks.collect() }
    }

    /// Whole powers where there are several, else the 2 and 5 between them too.
    fn log(low: f64, high: f64) -> Self {
        let room = 0.03 * (high - low).max(0.5);
        let (low, high) = (low - room, high + room);
        let span = high - low;
        let fine: &[f64] = match span {
            _ if span < 0.8 => &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
            _ if span < 2.0 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let every = (span / MOST).ceil().max(1.0) as i64;
        let powers = low.floor() as i64..=high.ceil() as i64;
        let powers = powers.filter(|power| power.rem_euclid(every) == 0);
        let marks = powers.flat_map(|power| fine.iter().map(move |f| power as f64 + f.log10()));
        Scale { low, high, marks: marks.filter(|&at| low <= at && at <= high).collect() }
    }
}

/// A mark as one reads it.
pub(super) fn text(axis: &Axis, place: f64) -> String {
    if !axis.log {
        return number(place);
    }
    let (power, part) = (place.floor(), place - place.floor());
    // A logarithm of 2, 5 or 10 that is a hair off its digit.
    let (power, digit) = match 10f64.powf(part).round() as u32 {
        10 => (power + 1.0, 1),
        digit => (power, digit.max(1)),
    };
    match power as i32 {
        power @ -3..=5 => number(f64::from(digit) * 10f64.powi(power)),
        power => format!("{digit}e{power}"),
    }
}

fn number(number: f64) -> String {
    let rounded = (number * 1e6).round() / 1e6;
    let text = if rounded == 0.0 { "0".to_owned() } else { format!("{rounded}") };
    // Thousands apart.
    let (whole, rest) = text.split_once('.').map_or((&*text, ""), |(whole, rest)| (whole, rest));
    let digits = whole.len();
    let grouped = whole.char_indices().fold(String::new(), |mut out, (i, digit)| {
        if i > 0 && (digits - i).is_multiple_of(3) && !out.ends_with('-') {
            out.push(',');
        }
        out.push(digit);
        out
    });
    if rest.is_empty() { grouped } else { format!("{grouped}.{rest}") }
}

/// The places of points along one axis.
pub(super) fn along<'a>(
    axis: &'a Axis,
    points: impl Iterator<Item = &'a Point> + 'a,
    of: fn(&Point) -> f64,
) -> impl Iterator<Item = f64> + 'a {
    points.filter_map(move |point| axis.place(of(point)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis, low: f64, high: f64) -> Vec<String> {
        let places = [low, high].map(|number| axis.place(number).unwrap());
        let scale = Scale::of(axis, places.into_iter());
        assert!(scale.marks.len() <= 10, "{scale:?}");
        scale.marks.iter().map(|&place| text(axis, place)).collect()
    }

    #[test]
    fn marks_are_round_numbers_few_enough_to_read() {
        let (linear, log) = (Axis::linear("x"), Axis::log("x"));
        assert_eq!(texts(&linear, 0.0, 10.0), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(texts(&linear, 30.0, 50.0)[0], "30");
        assert_eq!(texts(&linear, 1e5, 4.6e6)[1], "1,000,000");
        assert_eq!(texts(&log, 0.02, 0.3), ["0.02", "0.05", "0.1", "0.2"]);
        assert_eq!(texts(&log, 1e-4, 1.0), ["1e-4", "0.001", "0.01", "0.1", "1"]);
        assert_eq!(texts(&log, 1e-15, 1.0).first().unwrap(), "1e-14");
        assert_eq!(texts(&log, 1e3, 2e6), ["1,000", "10,000", "100,000", "1e6"]);
    }

    #[test]
    fn one_number_or_none_has_room_around_it() {
        let scale = Scale::of(&Axis::linear("x"), [3.0].into_iter());
        assert!(scale.low < 3.0 && scale.high > 3.0);
        assert_eq!(Scale::of(&Axis::log("x"), [].into_iter()).low, 0.0);
    }
}
