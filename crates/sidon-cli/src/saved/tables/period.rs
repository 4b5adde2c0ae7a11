//! The start of a period, from the name of its file.

/// Nanoseconds since 1970 of `sidon-20231114T221320Z.sidon`, also with a number as in `..Z-2.sidon`. `None` for
/// another name. Hinnant, "chrono-compatible low-level date algorithms".
pub(super) fn start_ns(name: &str) -> Option<u64> {
    let rest = name.strip_prefix("sidon-")?.strip_suffix(".sidon")?;
    let (time, number) = rest.split_once('Z')?;
    let is_number = number.strip_prefix('-').is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    if !number.is_empty() && !is_number {
        return None;
    }
    let (date, clock) = time.split_once('T')?;
    if date.len() != 8 || clock.len() != 6 {
        return None;
    }
    let number = |text: &str| -> Option<u64> {
        if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
    };
    let [year, month, day] =
        [number(date.get(..4)?)?, number(date.get(4..6)?)?, number(date.get(6..)?)?];
    let [hour, minute, second] =
        [number(clock.get(..2)?)?, number(clock.get(2..4)?)?, number(clock.get(4..)?)?];
    if year < 1970
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || hour > 23
        || minute > 59
        || second > 59
    {
        return None;
    }
    // Years that start in March, so that the leap day is the last of its year.
    let (year, turn) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * turn + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second;
    seconds.checked_mul(1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::start_ns;
    use sidon_traffic::time::iso8601;

    #[test]
    fn a_name_has_the_time_that_it_was_made_of() {
        for day in (0..80_000u64).step_by(7) {
            let ns = (day * 86_400 + day * 13 % 86_400) * 1_000_000_000;
            let time: String = iso8601(ns).replace(['-', ':'], "").chars().take(15).collect();
            assert_eq!(start_ns(&format!("sidon-{time}Z.sidon")), Some(ns), "{time}");
            assert_eq!(start_ns(&format!("sidon-{time}Z-12.sidon")), Some(ns), "{time}");
        }
    }

    #[test]
    fn other_names_have_no_time() {
        for name in [
            "",
            "a.sidon",
            "sidon-.sidon",
            "sidon-Z.sidon",
            "sidon-TZ.sidon",
            "sidon-20231114T221320.sidon",
            "sidon-20231114T221320Z-.sidon",
            "sidon-20231114T221320Z-x.sidon",
            "sidon-20231314T221320Z.sidon",
            "sidon-20231114T241320Z.sidon",
            "sidon-2023111\u{e9}T221320Z.sidon",
            "sidon-+0231114T221320Z.sidon",
            "sidon-00000101T000000Z.sidon",
            "sidon-20231100T221320Z.sidon",
            "sidon-20231114T221360Z.sidon",
        ] {
            assert_eq!(start_ns(name), None, "{name}");
        }
    }
}
