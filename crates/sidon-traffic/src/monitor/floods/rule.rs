//! The floors of floods in the units of the detectors: counts and bytes of one window.

use super::class::{CLASSES, Class};
use crate::thresholds::{Floor, Thresholds};

const SECOND: u64 = 1_000_000_000;

/// What one class needs at least.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rule {
    /// The least size within one to two windows.
    pub(super) count: u64,
    /// The least bytes within one to two windows; 0 if bytes alone are no flood.
    pub(super) bytes: u64,
    /// The length of a window, in nanoseconds.
    pub(super) window: u64,
    /// The time that the condition must hold.
    pub(super) holds: u64,
    /// The least share of the size in everything that asked.
    pub(super) ratio: f64,
    pub(super) enabled: bool,
}

impl Rule {
    /// The rule of a floor. A floor without a count has one from its packets per second.
    fn new(floor: &Floor) -> Self {
        let window = floor.window.max(1);
        let per_window = floor.per_second.saturating_mul(window);
        Rule {
            count: if floor.count > 0 { floor.count } else { per_window }.max(1),
            bytes: floor.bytes_per_second.saturating_mul(window),
            window: window.saturating_mul(SECOND),
            holds: floor.holds.saturating_mul(SECOND),
            ratio: floor.ratio,
            enabled: floor.enabled,
        }
    }

    /// The rules of all classes, by number.
    pub(super) fn all(thresholds: &Thresholds) -> [Rule; CLASSES.len()] {
        CLASSES.map(|class: Class| Rule::new(thresholds.floor(class.kind())))
    }
}
