//! The clock of an interface or a socket: the time of day at the start, and from then on the
//! kernel's monotone clock.
//!
//! An administrator or NTP may set the time of day forward or back while Sidon runs. The monotone
//! clock ignores that, so timeouts and periods go on. Reports then show times that differ from the
//! time of day by the size of the step, until the next start.

use super::LATE;
use std::{
    sync::OnceLock,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

/// Frames after which the difference between the two clocks is measured again.
const FRAMES: u32 = 64;
/// A stamp may be this far ahead of the last measurement: frames arrive between two of them.
const AHEAD: u64 = 1_000_000_000;

/// The time of day, in nanoseconds since 1970.
pub(super) fn time_of_day_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds since 1970 by the monotone clock. The first call reads the time of day.
pub fn now_ns() -> u64 {
    static START: OnceLock<(Instant, u64)> = OnceLock::new();
    let (start, start_ns) = START.get_or_init(|| (Instant::now(), time_of_day_ns()));
    let since = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    start_ns.saturating_add(since)
}

/// The time while nothing arrives: a packet that arrives a little late is still in time.
pub(super) fn late_ns() -> u64 {
    now_ns().saturating_sub(LATE.as_nanos() as u64)
}

/// The monotone clock and the time of day.
pub(super) fn clocks() -> [u64; 2] {
    [now_ns(), time_of_day_ns()]
}

/// Converts the kernel's time stamps, which are times of day, to the monotone clock.
#[derive(Debug)]
pub(super) struct Stamps {
    /// The difference between the two clocks, and the monotone clock, as last measured.
    ahead: i128,
    measured_ns: u64,
    /// Frames until the next measurement.
    left: u32,
    /// The time of the last frame.
    last_ns: u64,
}

impl Stamps {
    pub(super) fn new() -> Self {
        Stamps { ahead: 0, measured_ns: 0, left: 0, last_ns: 0 }
    }

    /// The time of a frame with this stamp: not before the frame before it, and not in the future.
    #[inline]
    pub(super) fn time(&mut self, stamp: u64, clocks: impl Fn() -> [u64; 2]) -> u64 {
        let time = i128::from(stamp) + self.ahead;
        let is_future = time > i128::from(self.measured_ns.saturating_add(AHEAD));
        self.last_ns = if self.left == 0 || is_future {
            self.measure(stamp, clocks())
        } else {
            self.left -= 1;
            self.last_ns.max(u64::try_from(time).unwrap_or(0))
        };
        self.last_ns
    }

    #[cold]
    fn measure(&mut self, stamp: u64, [steady, time_of_day]: [u64; 2]) -> u64 {
        (self.left, self.measured_ns) = (FRAMES, steady);
        self.ahead = i128::from(steady) - i128::from(time_of_day);
        let time = (i128::from(stamp) + self.ahead).clamp(0, i128::from(steady)) as u64;
        self.last_ns.max(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const S: u64 = 1_000_000_000;

    #[test]
    fn the_time_of_frames_goes_on_when_the_time_of_day_is_set() {
        for step in [3_600, -3_600, 86_400 * 365 * 80, -60] {
            let mut stamps = Stamps::new();
            let mut before = 0;
            for frame in 0..4_000u64 {
                // A frame each millisecond; the step is in the middle. Frames wait for 30 ms in
                // the ring, so the first ones after the step have stamps from before it.
                let steady = 1_790_000_000 * S + frame * S / 1_000;
                let at = |frame: u64| if frame < 2_000 { 0 } else { step * S as i64 };
                let of_day = steady.checked_add_signed(at(frame)).unwrap();
                let stamp = steady - 30 * S / 1_000;
                let stamp = stamp.checked_add_signed(at(frame.saturating_sub(30))).unwrap();
                let time = stamps.time(stamp, || [steady, of_day]);
                assert!(time >= before && time <= steady, "{step} {frame}");
                assert!(steady - time <= 200 * S / 1_000, "{step} {frame}: {}", steady - time);
                before = time;
            }
        }
    }

    #[test]
    fn the_clocks_are_read_once_for_many_frames() {
        let reads = Cell::new(0);
        let mut stamps = Stamps::new();
        for frame in 0..6_500 {
            stamps.time(frame, || {
                reads.set(reads.get() + 1);
                [frame, frame]
            });
        }
        assert_eq!(reads.get(), 100);
    }

    #[test]
    fn the_monotone_clock_starts_at_the_time_of_day() {
        let [before, now] = [time_of_day_ns(), now_ns()];
        assert!(now.abs_diff(before) < 3_600 * S, "{before} {now}");
        assert!(now_ns() >= now);
    }
}
