//! The clock of a capture: a time for every packet that never runs backwards.
//!
//! The times in a file may be wrong. One packet may be dated an hour ahead, or in 2106. The clock of
//! the capturing machine may have been set back, and a file may join several captures. So a time
//! counts only if the packets around it agree.
//! ```text
//! within NEAR of the clock          the packet's time, or the clock if the packet is a little late
//! ahead, and AHEAD followers agree  a gap: the clock goes on to that time
//! back, and AHEAD followers agree   the file's clock was set back: later times are shifted forward,
//!                                   so that this packet is at the time of the clock
//! otherwise                         a time jump: the packet is at the time of the clock
//! ```
//! No time after [`LATEST`] counts, however many packets agree: the clock needs room to go on.
//!
//! A packet agrees with a gap if its time is not before the gap's end, and with a step back if it is
//! before the clock, too. The reader therefore holds up to `AHEAD` packets back while it decides.
//! [`SHIFTS`] shifts are remembered: a file that alternates between the clocks of two interfaces does
//! not advance the time at each change.
//!
//! The first packet has no packet before it. It is a time jump if most of its followers are earlier, or
//! more than [`FIRST_GAP`] later. If one of them is, the reader holds [`START`] packets back: up to
//! `AHEAD` wrong times at the start of a file are then outvoted.
//!
//! The last packets have fewer than `AHEAD` followers. A few wrong times there look like a few packets
//! after a gap, so the length of the gap decides:
//! ```text
//! a gap before packets that all agree      counts up to SHORT_GAP
//! a gap before the very last packet        counts up to LAST_GAP
//! either, in a file with similar gaps      counts up to SIMILAR times the longest gap before it, or
//!                                          SIMILAR times the median gap after it
//! ```
//! Packets that are hours or days apart in the whole file therefore keep their times. At the start, the
//! median gap of the followers extends [`FIRST_GAP`] in the same way.

use crate::Timing;
use std::collections::VecDeque;

const SECOND: i128 = 1_000_000_000;
/// The latest time that counts: 2^63 ns after 1970, in the year 2262.
const LATEST: i128 = i64::MAX as i128;
/// Packets may be this far ahead of the clock, or behind it, without a look at their followers.
const NEAR: i128 = 5 * SECOND;
/// Followers that decide whether a time counts.
pub(super) const AHEAD: usize = 8;
/// Followers that decide at which time a capture starts, if they disagree with its first packet.
pub(super) const START: usize = 2 * AHEAD;
/// Shifts that are remembered.
const SHIFTS: usize = 4;
/// The longest gap after the first packet of a capture, unless its followers are as far apart.
const FIRST_GAP: i128 = 86_400 * SECOND;
/// The longest gap before the last `AHEAD` packets of a capture, without similar gaps.
const SHORT_GAP: i128 = 86_400 * SECOND;
/// The longest gap before the last packet of a capture, without similar gaps.
const LAST_GAP: i128 = 600 * SECOND;
/// A gap of up to this many times another one is similar to it. If gaps are independent and
/// exponential, the last of five is longer than that in one capture of 70.
const SIMILAR: i128 = 4;

/// The clock of a capture.
#[derive(Debug, Clone, Default)]
pub(super) struct Timeline {
    /// The time of the last packet; `None` before the first.
    now: Option<u64>,
    /// The nanoseconds that are added to the times of the file.
    shift: i128,
    /// Earlier shifts, the latest first.
    others: VecDeque<i128>,
    /// The longest gap of more than [`NEAR`] so far.
    longest: i128,
}

impl Timeline {
    /// The time of a packet without a look at its followers; `None` if they must decide.
    #[inline]
    pub(super) fn near(&mut self, raw: u64) -> Option<(u64, Timing)> {
        let now = i128::from(self.now?);
        let time = i128::from(raw) + self.shift;
        if (time - now).abs() <= NEAR { Some(self.advance(time)) } else { None }
    }

    /// The time of a packet, by the times of the packets after it. `None` if more of them are
    /// needed; at the end of the file, there are no more.
    pub(super) fn decide(
        &mut self,
        raw: u64,
        followers: impl Iterator<Item = u64> + Clone,
        is_end: bool,
    ) -> Option<(u64, Timing)> {
        if let Some(decided) = self.near(raw).or_else(|| self.other_shift(raw)) {
            return Some(decided);
        }
        let (raw, followers) = (i128::from(raw), followers.map(i128::from));
        if raw > LATEST {
            return Some((self.now.unwrap_or(0), Timing::Jump { late_ns: 0 }));
        }
        let Some(now) = self.now else { return self.begin(raw, followers, is_end) };
        let followers = followers.take(AHEAD);
        let known = followers.clone().count();
        if known < AHEAD && !is_end {
            return None;
        }
        let (now, shift) = (i128::from(now), self.shift);
        let time = raw + shift;
        if time > now {
            let gap = time - now;
            let counts = known == AHEAD || gap <= self.longest_last(raw, followers.clone());
            if counts
                && time <= LATEST
                && followers.clone().all(|other| other + shift >= time - NEAR)
            {
                self.longest = self.longest.max(gap);
                return Some(self.advance(time));
            }
        } else if known > 0 && followers.clone().all(|other| other + shift < now - NEAR) {
            self.others.push_front(std::mem::replace(&mut self.shift, now - raw));
            self.others.truncate(SHIFTS);
            return Some((self.advance(now).0, Timing::SetBack));
        }
        let late_ns = u64::try_from((now - time).max(0)).unwrap_or(u64::MAX);
        Some((self.now.unwrap_or(0), Timing::Jump { late_ns }))
    }

    /// The longest gap that counts before a packet with fewer than [`AHEAD`] followers.
    fn longest_last(&self, raw: i128, followers: impl Iterator<Item = i128> + Clone) -> i128 {
        let without = if followers.clone().next().is_none() { LAST_GAP } else { SHORT_GAP };
        let after = median_gap(std::iter::once(raw).chain(followers));
        without.max(SIMILAR * self.longest.max(after))
    }

    /// The time of the first packet, and of the clock.
    fn begin(
        &mut self,
        first: i128,
        followers: impl Iterator<Item = i128> + Clone,
        is_end: bool,
    ) -> Option<(u64, Timing)> {
        let few: Vec<_> = followers.clone().take(AHEAD).collect();
        let most = if odd(first, &few) == 0 { AHEAD } else { START };
        let followers: Vec<_> = followers.take(most).collect();
        if followers.len() < most && !is_end {
            return None;
        }
        let followers = followers.into_iter().filter(|&time| time <= LATEST).collect();
        let start = start(first, followers);
        let timing = if start == first { Timing::Good } else { Timing::Jump { late_ns: 0 } };
        Some((self.advance(start).0, timing))
    }

    /// The time of a packet by a remembered shift, if it is near the clock.
    fn other_shift(&mut self, raw: u64) -> Option<(u64, Timing)> {
        let now = i128::from(self.now?);
        let is_near = |shift: &i128| (i128::from(raw) + shift - now).abs() <= NEAR;
        let place = self.others.iter().position(is_near)?;
        let shift = self.others.remove(place)?;
        self.others.push_front(std::mem::replace(&mut self.shift, shift));
        Some(self.advance(i128::from(raw) + shift))
    }

    /// Moves the clock to `time`, if that is later.
    #[inline]
    fn advance(&mut self, time: i128) -> (u64, Timing) {
        let time = time.clamp(0, i128::from(u64::MAX)) as u64;
        match self.now {
            Some(now) if time < now => (now, Timing::Late(now - time)),
            _ => {
                self.now = Some(time);
                (time, Timing::Good)
            }
        }
    }
}

/// The median gap between packets of these times, or the lower one of two. Zero for one packet.
fn median_gap(times: impl Iterator<Item = i128>) -> i128 {
    let mut times: Vec<_> = times.collect();
    times.sort_unstable();
    let mut gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

/// The followers that disagree with the time of the first packet: they are earlier, or more than
/// [`FIRST_GAP`] later and not as far apart.
fn odd(first: i128, followers: &[i128]) -> usize {
    let similar = SIMILAR * followers.len() as i128 * median_gap(followers.iter().copied());
    let last = first + FIRST_GAP.max(similar);
    followers.iter().filter(|&&time| time < first - NEAR || time > last).count()
}

/// The time at which a capture starts: that of its first packet, unless most of its followers are
/// [`odd`]. Then it is the first time that agrees with their median.
fn start(first: i128, mut followers: Vec<i128>) -> i128 {
    if odd(first, &followers) * 2 <= followers.len() {
        return first;
    }
    followers.sort_unstable();
    let median = followers[followers.len() / 2];
    followers.into_iter().find(|time| *time >= median - FIRST_GAP).unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    /// 2026, and 2106.
    const T: u64 = 1_790_000_000 * S;
    const FAR: u64 = 4_294_967_295 * S;

    /// The times in seconds after `T` and what was odd, of a whole file.
    fn run(raw: &[u64]) -> Vec<(u64, Timing)> {
        let mut timeline = Timeline::default();
        let mut decided = Vec::new();
        for (index, &time) in raw.iter().enumerate() {
            let followers = raw[index + 1..].iter().copied();
            // Fewer followers must never decide otherwise.
            let mut few = None;
            for known in 0..START.min(raw.len() - index - 1) {
                let mut copy = timeline.clone();
                few = few.or(copy.decide(time, followers.clone().take(known), false));
            }
            let all = timeline.decide(time, followers, true).unwrap();
            assert!(few.is_none_or(|few| few == all), "{few:?} {all:?}");
            decided.push(all);
        }
        assert!(decided.is_sorted_by_key(|(time, _)| *time), "{decided:?}");
        decided
    }

    fn steady(start: u64, packets: u64) -> Vec<u64> {
        (0..packets).map(|packet| start + packet * S / 2).collect()
    }

    /// Times beyond any calendar never count, so that the clock has room to go on.
    #[test]
    fn bursts_of_times_near_the_last_one_do_not_stop_the_clock() {
        for far in [u64::MAX, u64::MAX - 3_600 * S, LATEST as u64 + 1] {
            for (place, packets) in [(0, 20), (0, 9), (50, 9), (50, 100), (99, 9)] {
                let mut raw = steady(T, 100);
                raw.splice(place..place, vec![far; packets]);
                let decided = run(&raw);
                let jumps = decided.iter().filter(|(_, timing)| *timing != Timing::Good).count();
                assert_eq!(jumps, packets, "{packets} packets at {far}, from {place} on");
                assert_eq!(decided[decided.len() - 1].0, T + 99 * S / 2);
            }
        }
    }

    /// Clocks that are far apart, each for many packets: the clock never has to stop at a ceiling.
    #[test]
    fn clocks_far_apart_in_turn_do_not_stop_the_clock() {
        let years = 20 * 365 * 86_400 * S;
        let raw: Vec<_> = (0..200u64)
            .flat_map(|turn| {
                (0..9).map(move |packet| T + turn % 6 * years + (9 * turn + packet) * S)
            })
            .collect();
        let decided = run(&raw);
        assert!(i128::from(decided[decided.len() - 1].0) <= LATEST + 3_600 * i128::from(S));
        let last = &decided[decided.len() - 100..];
        assert!(last[0].0 < last[99].0, "{last:?}");
    }

    #[test]
    fn one_packet_ahead_is_a_jump_wherever_it_is_and_the_clock_goes_on() {
        for bad in [T + 3_600 * S, T + 60 * S, FAR, u64::MAX] {
            for place in [0, 1, 10, 18, 19, 20] {
                let mut raw = steady(T, 20);
                raw.insert(place, bad);
                let decided = run(&raw);
                let odd: Vec<_> = (0..21).filter(|&i| decided[i].1 != Timing::Good).collect();
                let lone = place == 20 && bad == T + 60 * S;
                assert_eq!(odd, if lone { vec![] } else { vec![place] }, "{bad} {decided:?}");
                assert_eq!(decided[if place == 20 { 19 } else { 20 }].0, T + 19 * S / 2);
            }
        }
    }

    #[test]
    fn a_burst_of_wrong_times_does_not_stop_the_clock() {
        for burst in [2, 5, 8, 9, 20] {
            let mut raw = steady(T, 50);
            for at in 0..burst {
                raw[10 + at] = FAR - at as u64;
            }
            let decided = run(&raw);
            let [first, last] = [decided[10 + burst].0, decided[49].0];
            assert_eq!(last - first, (39 - burst as u64) * S / 2, "{burst}");
        }
        // At the start of a capture, the first times that most packets agree with count.
        let mut raw = steady(T, 20);
        raw.splice(0..0, [FAR, FAR, 0]);
        let decided = run(&raw);
        assert_eq!([decided[0].0, decided[3].0, decided[22].0], [T, T, T + 19 * S / 2]);
    }

    #[test]
    fn a_gap_counts_and_so_do_packets_that_are_far_apart() {
        let mut raw = steady(T, 20);
        raw.extend(steady(T + 86_400 * S, 20));
        assert!(run(&raw).iter().zip(&raw).all(|(got, &raw)| *got == (raw, Timing::Good)));
        let far: Vec<_> = (0..30).map(|packet| T + packet * 400 * S).collect();
        assert!(run(&far).iter().zip(&far).all(|(got, &raw)| *got == (raw, Timing::Good)));
    }

    #[test]
    fn a_few_wrong_times_at_the_end_are_jumps_and_a_gap_of_up_to_a_day_counts() {
        let day = 86_400 * S;
        let cases = [(600 * S, 1, true), (601 * S, 1, false), (day, 2, true), (day, 8, true)];
        let cases = cases.into_iter().chain((2..=8).map(|last| (day + S, last, false)));
        let cases = cases.chain((1..=8).map(|last| (FAR - T, last, false)));
        for (gap, last, counts) in cases.chain([(FAR - T, 9, true)]) {
            let mut raw = steady(T, 20);
            raw.extend(steady(raw[19] + gap, last));
            let decided = run(&raw);
            for (at, got) in decided.iter().enumerate().skip(20) {
                let jump = (raw[19], Timing::Jump { late_ns: 0 });
                let expected = if counts { (raw[at], Timing::Good) } else { jump };
                assert_eq!(*got, expected, "{gap} before {last}: {at}");
            }
        }
    }

    #[test]
    fn packets_that_are_all_far_apart_keep_their_times_to_the_end() {
        for hours in [1, 3, 8, 20, 72, 24 * 365] {
            for packets in [3, 4, 5, 9, 10, 17, 18, 30] {
                // Up to half a gap early, and up to half a gap late.
                let apart = |n: u64| T + hours * 3_600 * S * (2 * n + n * n % 3) / 2;
                let raw: Vec<_> = (0..packets).map(apart).collect();
                let mut expected: Vec<_> = raw.iter().map(|&time| (time, Timing::Good)).collect();
                assert_eq!(run(&raw), expected, "{packets} packets, {hours} hours apart");
                // A few wrong times at their end are still wrong, if they are fewer.
                let (last, few) = (raw[raw.len() - 1], 7.min(packets - 1));
                let raw = [raw, steady(last + 100 * 365 * 86_400 * S, few)].concat();
                expected.resize(raw.len(), (last, Timing::Jump { late_ns: 0 }));
                assert_eq!(run(&raw), expected, "{packets} packets, {hours} hours apart");
            }
        }
        // The file has a gap of five days before, so another one counts.
        for (before, counts) in [(5, true), (1, false)] {
            let day = 86_400 * S;
            let starts = [T, T + before * day, T + (before + 5) * day];
            let raw = [steady(starts[0], 20), steady(starts[1], 20), steady(starts[2], 1)].concat();
            assert_eq!(run(&raw)[40].1 == Timing::Good, counts, "{before}");
        }
    }

    #[test]
    fn up_to_eight_wrong_times_at_the_start_are_outvoted() {
        for bad in [T + 3_600 * S, FAR, T - 86_400 * S, 0] {
            for burst in 1..=8 {
                let mut raw = steady(T, 40);
                raw[..burst].fill(bad);
                let decided = run(&raw);
                assert!(decided[..burst].iter().all(|one| one.0 == raw[burst]), "{bad} {burst}");
                assert_eq!(decided[39], (raw[39], Timing::Good), "{bad} {burst}");
            }
        }
        // Followers that agree decide at once, and the others wait for more.
        let mut raw = steady(T, 40);
        let eight =
            |raw: &[u64]| Timeline::default().decide(raw[0], raw[1..=AHEAD].iter().copied(), false);
        assert_eq!(eight(&raw), Some((T, Timing::Good)));
        raw[3] = FAR;
        assert_eq!(eight(&raw), None);
    }

    #[test]
    fn after_a_step_back_the_clock_goes_on_at_the_same_speed() {
        for back in [10, 3_600, 86_400 * 365] {
            let mut raw = steady(T, 20);
            raw.extend(steady(T - back * S, 20));
            let decided = run(&raw);
            assert_eq!(decided[20], (T + 19 * S / 2, Timing::SetBack));
            assert_eq!(decided[39], (T + 19 * S, Timing::Good));
        }
    }

    #[test]
    fn two_clocks_in_turn_do_not_advance_the_time() {
        for block in [1, 3, 8, 20] {
            let mut raw = Vec::new();
            for packet in 0..400u64 {
                let skew = packet / block % 2 * 3_600;
                raw.push(T + 3_600 * S + packet * S / 100 - skew * S);
            }
            let decided = run(&raw);
            assert!(decided[399].0 <= T + 3_600 * S + 5 * S, "{block}: {:?}", decided[399]);
            assert!(decided[399].0 >= T + 3_600 * S + 3 * S, "{block}: {:?}", decided[399]);
        }
    }

    #[test]
    fn late_packets_are_at_the_time_of_the_clock() {
        let raw = [T, T + S, T, T + 2 * S, T - 100 * S, T + 3 * S];
        let timings: Vec<_> = run(&raw).iter().map(|(_, timing)| *timing).collect();
        let good = Timing::Good;
        let jump = Timing::Jump { late_ns: 102 * S };
        assert_eq!(timings, [good, good, Timing::Late(S), good, jump, good]);
    }

    #[test]
    fn any_times_give_times_in_order() {
        let mut rng = sidon_kit::Rng::seeded(3);
        for _ in 0..300 {
            let spread = 1 << rng.below(64);
            let raw: Vec<_> = (0..60)
                .map(|_| match rng.below(4) {
                    0 => rng.next_u64(),
                    1 => u64::MAX - rng.below(3),
                    _ => T.saturating_add(rng.below(spread)),
                })
                .collect();
            run(&raw);
        }
    }
}
