//! The size of an incident over time, as at most 32 points.
//!
//! A point is the largest size of a span of time. Spans are one second long at first. A series that is
//! full doubles their length and joins its points in pairs, so that the points always cover the whole
//! incident:
//! ```text
//! | 3 | 5 | 9 | 2 |  full, 1 s each  ->  |   5   |   9   |  2 s each
//! ```

use crate::{
    snapshot::encode::{In, Out},
    time,
};
use serde_json::{Value, json};
use sidon::Malformed;

/// The most points.
pub(crate) const POINTS_MAX: usize = 32;
/// The length of a span at first, in nanoseconds.
const STEP: u64 = 1_000_000_000;

/// Sizes by time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// The length of a span: [`STEP`] times a power of two.
    step: u64,
    /// The first time of each span and the largest size in it, by time.
    points: Vec<(u64, u64)>,
}

impl Default for Series {
    fn default() -> Self {
        Series { step: STEP, points: Vec::new() }
    }
}

impl Series {
    /// Adds a size. A time before the last point belongs to the last span.
    pub(crate) fn add(&mut self, time: u64, size: u64) {
        match self.points.last_mut() {
            Some((start, most)) if time.saturating_sub(*start) < self.step => {
                *most = size.max(*most);
            }
            _ => self.points.push((time, size)),
        }
        self.shrink();
    }

    /// Adds the points of another series.
    pub(super) fn join(&mut self, other: Series) {
        self.step = self.step.max(other.step);
        self.points.extend(other.points);
        self.points.sort_unstable();
        self.thin();
        self.shrink();
    }

    fn shrink(&mut self) {
        while self.points.len() > POINTS_MAX {
            self.step = self.step.saturating_mul(2);
            self.thin();
        }
    }

    /// Joins points that are less than a span apart.
    fn thin(&mut self) {
        let points = std::mem::take(&mut self.points);
        for (time, size) in points {
            match self.points.last_mut() {
                Some((start, most)) if time.saturating_sub(*start) < self.step => {
                    *most = size.max(*most);
                }
                _ => self.points.push((time, size)),
            }
        }
    }

    /// The times and sizes.
    pub fn points(&self) -> &[(u64, u64)] {
        &self.points
    }

    /// The largest size so far.
    pub fn peak(&self) -> u64 {
        self.points.iter().map(|(_, size)| *size).max().unwrap_or(0)
    }

    pub(super) fn to_json(&self) -> Value {
        self.points.iter().map(|(time, size)| json!([time::iso8601(*time), size])).collect()
    }

    pub(super) fn save(&self, out: &mut Out) {
        out.numbers(&[self.step, self.points.len() as u64]);
        self.points.iter().for_each(|(time, size)| out.numbers(&[*time, *size]));
    }

    pub(super) fn read(bytes: &mut In<'_>) -> Result<Self, Malformed> {
        let step = bytes.number()?;
        let is_step = step.is_multiple_of(STEP) && (step / STEP).is_power_of_two();
        bytes.check("size", is_step)?;
        let mut points: Vec<(u64, u64)> = Vec::new();
        for _ in 0..bytes.length("size", POINTS_MAX)? {
            let [time, size] = bytes.numbers()?;
            let is_later = |&(last, _): &(u64, u64)| time.checked_sub(last) >= Some(step);
            bytes.check("size", points.last().is_none_or(is_later))?;
            points.push((time, size));
        }
        Ok(Series { step, points })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(series: &Series) -> Series {
        let mut out = Out::default();
        series.save(&mut out);
        let mut bytes = In { bytes: &out.0, part: "test" };
        let read = Series::read(&mut bytes).unwrap();
        bytes.end().unwrap();
        read
    }

    #[test]
    fn a_series_of_any_length_covers_the_whole_incident_and_keeps_its_peak() {
        let mut series = Series::default();
        for second in 0..10_000u64 {
            // Three sizes a second; the peak is in the middle.
            for part in 0..3 {
                let size = 10_000 - second.abs_diff(5_000) + part;
                series.add(second * STEP + part * STEP / 3, size);
            }
            assert!(series.points.len() <= POINTS_MAX);
        }
        assert_eq!((series.peak(), series.points[0].0), (10_002, 0));
        assert!(series.points.last().unwrap().0 >= 9_000 * STEP);
        assert_eq!(read(&series), series);
        // A clock that steps back, and one at its end.
        series.add(0, 20_000);
        assert_eq!(series.points.last().unwrap().1, 20_000);
        (0..100).for_each(|size| series.add(u64::MAX, size));
        assert_eq!(read(&series), series);
    }

    #[test]
    fn two_series_are_joined_by_time() {
        let of = |points: &[(u64, u64)]| {
            let mut series = Series::default();
            points.iter().for_each(|(second, size)| series.add(second * STEP, *size));
            series
        };
        let mut one = of(&[(0, 1), (10, 5), (20, 2)]);
        one.join(of(&[(10, 9), (15, 4)]));
        assert_eq!(one, of(&[(0, 1), (10, 9), (15, 4), (20, 2)]));
        let long: Vec<_> = (0..500).map(|second| (second, second)).collect();
        one.join(of(&long));
        assert_eq!(one.peak(), 499);
        assert!(one.points.len() <= POINTS_MAX);
        assert_eq!(read(&one), one);
    }
}
