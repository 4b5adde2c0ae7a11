//! Packet times: as text, and what may be odd about them.

/// The time as `2026-11-16T02:11:32.000000123Z`, in the proleptic Gregorian calendar. Hinnant,
/// "chrono-compatible low-level date algorithms".
pub fn iso8601(time_ns: u64) -> String {
    let (seconds, nanoseconds) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years that start in March, so that the leap day is the last of its year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, turn) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + turn;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanoseconds:09}Z")
}

/// The verdict on the time of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// Nothing.
    Good,
    /// The packet is older than one before it, by this many nanoseconds.
    Late(u64),
    /// The time disagrees with those of the packets around it, so it does not count.
    Jump {
        /// Nanoseconds by which the packet is older than one before it; 0 if its time is ahead.
        late_ns: u64,
    },
    /// The clock of the source was set back before this packet. Later times are shifted forward.
    SetBack,
}

#[cfg(test)]
mod tests {
    use super::iso8601;

    #[test]
    fn days_of_every_kind_have_their_names() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (1_709_251_199, "2024-02-29T23:59:59"),
            (4_107_542_399, "2100-02-28T23:59:59"),
            (4_107_542_400, "2100-03-01T00:00:00"),
            (1_798_761_599, "2026-12-31T23:59:59"),
        ] {
            assert_eq!(iso8601(seconds * 1_000_000_000 + 7), format!("{text}.000000007Z"));
        }
    }
}
