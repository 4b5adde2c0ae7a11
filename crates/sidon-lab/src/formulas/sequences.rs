//! Properties of increment sets, by enumeration of their sums, and searches for sets that have them.
//!
//! - *B_h*: all sums of `h` values are distinct.
//! - *tilde-B_h*: each sum of up to `h` values differs from every other sum of any number of values.
//!
//! Graham, "B_h sequences", 1996; Rottenstreich et al., INFOCOM 2012, sections II and III.

use sidon::set::Increments;
use std::{collections::BTreeSet, ops::RangeInclusive};

fn least(set: Increments) -> usize {
    set.values()[0].into()
}

fn most(set: Increments) -> usize {
    set.values().last().map_or(0, |&value| value.into())
}

/// The sets of all sums of 0, 1, 2, .. values.
fn levels(set: Increments) -> impl Iterator<Item = BTreeSet<usize>> {
    std::iter::successors(Some(BTreeSet::from([0])), move |sums| {
        let longer = |sum: &usize| {
            set.values().iter().map(|&value| sum + usize::from(value)).collect::<Vec<_>>()
        };
        Some(sums.iter().flat_map(longer).collect())
    })
}

/// The largest number of addends, up to `limit`, for which all sums are distinct; at least one.
pub fn order(set: Increments, limit: u32) -> u32 {
    // Sums are distinct if there are as many as multisets of `addends` values.
    let (mut multisets, count) = (1u128, set.values().len() as u128);
    let distinct =
        (1..=u128::from(limit)).zip(levels(set).skip(1)).take_while(|(addends, sums)| {
            multisets = multisets.saturating_mul(count + addends - 1) / addends;
            sums.len() as u128 == multisets
        });
    distinct.count().max(1) as u32
}

/// Whether all sums of exactly `addends` values are distinct. Then all sums of fewer values are
/// distinct, too.
pub fn is_bh(set: Increments, addends: u32) -> bool {
    order(set, addends) >= addends
}

/// Whether all sums of one to `addends` values are distinct, and differ from all sums of more.
pub fn is_tilde_bh(set: Increments, addends: u32) -> bool {
    let reach = addends as usize * most(set);
    // A sum of more addends than this is above all sums in question.
    let ways = multisets(set, reach / least(set));
    (1..=reach).all(|sum| {
        let of = |addends: usize| ways[addends].get(sum).map_or(0, |&ways| u32::from(ways));
        let few: u32 = (1..=addends as usize).map(of).sum();
        let many: u32 = (addends as usize + 1..ways.len()).map(of).sum();
        few == 0 || few + many == 1
    })
}

/// The number of multisets, by the number of addends, up to `limit`, and by sum. Two means two or
/// more.
fn multisets(set: Increments, limit: usize) -> Vec<Vec<u8>> {
    let reach = limit * most(set);
    let mut ways = vec![vec![0u8; reach + 1]; limit + 1];
    ways[0][0] = 1;
    for &value in set.values() {
        for addends in 1..ways.len() {
            for sum in usize::from(value)..=reach {
                let more = ways[addends - 1][sum - usize::from(value)];
                ways[addends][sum] = (ways[addends][sum] + more).min(2);
            }
        }
    }
    ways
}

/// Whether each number is a sum of exactly `addends` values.
pub fn sums_of(set: Increments, addends: u32) -> Vec<bool> {
    let sums = levels(set).nth(addends as usize).unwrap_or_default();
    (0..=addends as usize * most(set)).map(|sum| sums.contains(&sum)).collect()
}

/// The numbers below a bound that are no sum of values.
pub fn gaps(set: Increments, below: u32) -> Vec<u32> {
    let mut sums = vec![true];
    for number in 1..below as usize {
        let reached = |&value: &u8| number.checked_sub(value.into()).is_some_and(|rest| sums[rest]);
        sums.push(set.values().iter().any(reached));
    }
    (0..below).filter(|&number| !sums[number as usize]).collect()
}

/// All sets of `count` values from `range`, including its start, that have the property `has`.
/// Every subset of a set with the property must have it, too, as for B_h and tilde-B_h.
pub fn search(
    count: usize,
    range: RangeInclusive<u8>,
    has: impl Fn(Increments) -> bool,
) -> Vec<Increments> {
    let mut found = Vec::new();
    extend(&mut vec![*range.start()], *range.end(), &has, &mut |set, values| {
        if values.len() == count {
            found.push(set);
        }
        values.len() < count
    });
    found
}

/// The first of the longest such sets.
pub fn longest(range: RangeInclusive<u8>, has: impl Fn(Increments) -> bool) -> Option<Increments> {
    let mut longest: Option<Increments> = None;
    extend(&mut vec![*range.start()], *range.end(), &has, &mut |set, values| {
        let best = longest.map_or(0, |set| set.values().len());
        if values.len() > best {
            longest = Some(set);
        }
        // The values left cannot make this set longer than the longest.
        let room = values.last().map_or(0, |&last| usize::from(range.end() - last));
        values.len() + room > best.max(values.len())
    });
    longest
}

/// Visits the set of these ascending values and all its extensions, if it has the property. `further`
/// returns whether to extend a set.
fn extend(
    values: &mut Vec<u8>,
    most: u8,
    has: &impl Fn(Increments) -> bool,
    further: &mut impl FnMut(Increments, &[u8]) -> bool,
) {
    // Sets of more values than `Increments` takes end the search.
    let Some(set) = Increments::set(values).ok().filter(|&set| has(set)) else { return };
    let last = values.last().copied().unwrap_or(most);
    if further(set, values) {
        for value in last..most {
            values.push(value + 1);
            extend(values, most, has, further);
            values.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// All multisets of `addends` values, by enumeration.
    fn multisets(values: &[u8], addends: u32) -> Vec<Vec<u8>> {
        if addends == 0 {
            return vec![Vec::new()];
        }
        let mut all = Vec::new();
        for (i, &value) in values.iter().enumerate() {
            for mut rest in multisets(&values[i..], addends - 1) {
                rest.push(value);
                all.push(rest);
            }
        }
        all
    }

    fn sum(multiset: &[u8]) -> u32 {
        multiset.iter().map(|&value| u32::from(value)).sum()
    }

    /// Every set of up to four values of 1..=9.
    fn small_sets() -> Vec<Increments> {
        (1u16..1 << 9)
            .filter(|bits| bits.count_ones() <= 4)
            .map(|bits| {
                let values: Vec<u8> = (1..=9).filter(|i| bits >> (i - 1) & 1 == 1).collect();
                Increments::set(&values).unwrap()
            })
            .collect()
    }

    #[test]
    fn both_properties_are_what_enumeration_says() {
        let (mut bh, mut tilde) = (0, 0);
        for set in small_sets() {
            for addends in 1..=3 {
                let distinct = |from: u32, to: u32| {
                    let mut times = HashMap::new();
                    for count in from..=to {
                        for multiset in multisets(set.values(), count) {
                            *times.entry(sum(&multiset)).or_insert(0) += 1;
                        }
                    }
                    times
                };
                let alone = distinct(addends, addends).values().all(|&times| times == 1);
                assert_eq!(is_bh(set, addends), alone, "{set} {addends}");
                bh += u32::from(alone);
                if least(set) >= 3 {
                    let few = distinct(1, addends);
                    let all = distinct(1, addends * (most(set) / least(set) + 1) as u32);
                    let told = few.keys().all(|sum| all[sum] == 1);
                    assert_eq!(is_tilde_bh(set, addends), told, "tilde {set} {addends}");
                    tilde += u32::from(told);
                }
            }
        }
        assert!(bh > 300 && tilde > 50, "{bh} {tilde}");
    }

    #[test]
    fn searches_find_all_that_there_are() {
        let found = search(4, 1..=9, |set| is_bh(set, 2));
        let all: Vec<_> = small_sets()
            .into_iter()
            .filter(|&set| set.values().len() == 4 && least(set) == 1 && is_bh(set, 2))
            .collect();
        assert!(found.len() == all.len() && all.iter().all(|set| found.contains(set)));
        let found = search(2, 3..=9, |set| is_tilde_bh(set, 2));
        assert!(
            found.contains(&Increments::of([3, 4])) && !found.contains(&Increments::of([3, 6]))
        );
        let longest = longest(1..=9, |set| is_bh(set, 2)).unwrap();
        let sets = small_sets().into_iter().filter(|&set| is_bh(set, 2));
        assert_eq!(Some(longest.values().len()), sets.map(|set| set.values().len()).max());
        assert!(is_bh(longest, 2) && most(longest) <= 9);
    }

    #[test]
    fn sums_and_gaps_by_hand() {
        let set = Increments::of([8, 12, 14, 15]);
        let expected = [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 13, 17, 18, 19, 21, 25, 33];
        assert_eq!(gaps(set, 1000), expected);
        let two: Vec<_> =
            (0..).zip(sums_of(set, 2)).filter(|(_, is)| *is).map(|(s, _)| s).collect();
        assert_eq!(two, [16, 20, 22, 23, 24, 26, 27, 28, 29, 30]);
    }
}
