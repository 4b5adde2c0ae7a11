//! Packets at the pace of their times.

use std::time::{Duration, Instant};

/// Delays packets until their time.
#[derive(Debug)]
pub(super) struct Pace {
    /// Seconds of packet time per second; `None` without delays.
    speed: Option<f64>,
    /// When the first packet was read, and its time.
    first: Option<(Instant, u64)>,
}

impl Pace {
    pub(super) fn new(speed: Option<f64>) -> Self {
        Pace { speed, first: None }
    }

    /// Waits for the time of a packet, but at most `wait`. Returns whether the packet is due.
    pub(super) fn wait_for(&mut self, time_ns: u64, wait: Duration) -> bool {
        let Some(left) = self.early(time_ns) else { return true };
        std::thread::sleep(left.min(wait));
        left <= wait
    }

    /// How long a packet of this time must still wait; `None` if it is due.
    fn early(&mut self, time_ns: u64) -> Option<Duration> {
        let speed = self.speed?;
        let (start, first_ns) = *self.first.get_or_insert_with(|| (Instant::now(), time_ns));
        let since = Duration::from_nanos(time_ns.saturating_sub(first_ns));
        let due = Duration::try_from_secs_f64(since.as_secs_f64() / speed);
        let due = due.unwrap_or(Duration::MAX);
        due.checked_sub(start.elapsed()).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_waits_for_its_time() {
        let mut pace = Pace::new(Some(1.0));
        assert_eq!(pace.early(5_000_000_000), None);
        let left = pace.early(65_000_000_000).unwrap();
        assert!(left > Duration::from_secs(50) && left <= Duration::from_secs(60), "{left:?}");
        assert_eq!(pace.early(4_000_000_000), None);
        assert_eq!(Pace::new(None).early(u64::MAX), None);
        assert!(!pace.wait_for(65_000_000_000, Duration::ZERO));
        assert!(pace.wait_for(5_000_000_000, Duration::ZERO));
    }
}
