//! Loads of the buckets of d-left tables.

/// The share of all buckets that hold `count` keys or more, of the shares by subtable that
/// [`bucket_loads`](sidon::plan::dleft::bucket_loads) gives.
pub fn at_least(loads: &[Vec<f64>], count: usize) -> f64 {
    let share = |shares: &Vec<f64>| shares.get(count).copied().unwrap_or(0.0);
    loads.iter().map(share).sum::<f64>() / loads.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon::plan;

    #[test]
    fn every_bucket_holds_no_keys_or_more_and_none_holds_very_many() {
        let loads = plan::dleft::bucket_loads(3, 4.0, true);
        assert_eq!((at_least(&loads, 0), at_least(&loads, 1000)), (1.0, 0.0));
        // The loads of all buckets add up to the keys.
        let sum: f64 = (1..30).map(|count| at_least(&loads, count)).sum();
        sidon_kit::rate::assert_close(sum, 4.0, 1e-9);
    }
}
