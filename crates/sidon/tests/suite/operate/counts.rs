//! Counts: amounts are added, subtracted where the structure allows it, decay, and are merged.

use super::{Draw, MEMBERS, Operate, SEED, UNIVERSE, any_key, batch, keys, member, one_of};
use sidon::{
    Infeasible, Refused,
    count::{
        Distinct, FanOut, Layout, Min, Prefix, Prefixes, Top, Update, distinct, fan_out, min,
        prefixes, top,
    },
};
use std::{fmt::Debug, net::IpAddr};

/// Small, near the ceiling of some width, or the largest there is.
fn amount(draw: &mut Draw<'_>) -> u64 {
    match draw(12) {
        0 => one_of(draw, &[255, 254, 65_535, u32::MAX.into(), 1 << 62, u64::MAX / 2, u64::MAX]),
        1 => draw(300),
        _ => draw(8),
    }
}

impl Operate for Min {
    fn fresh(draw: &mut Draw<'_>) -> Result<Self, Infeasible> {
        let width = one_of(draw, &[8, 8, 16, 32, 64]);
        let rows = 1 + draw(4) as u32;
        let layout = one_of(draw, &[Layout::Rows, Layout::Rows, Layout::Line]);
        let columns = match layout {
            Layout::Rows => 1 + draw(9),
            Layout::Line => (1 + draw(2)) * (512 / u64::from(width) / u64::from(rows)),
        };
        let update = one_of(draw, &[Update::Plain, Update::Plain, Update::Conservative]);
        Min::new(min::Shape { rows, columns, width, update, layout }, SEED)
    }

    fn operate(&mut self, other: &Self, draw: &mut Draw<'_>) -> Result<(), Refused> {
        match draw(32) {
            0..14 => self.add(&member(draw), amount(draw)),
            14..20 => self.subtract(&any_key(draw), amount(draw)),
            20..23 => {
                let keys = keys(draw, MEMBERS);
                let amounts: Vec<u64> = keys.iter().map(|_| amount(draw)).collect();
                batch(|refused| self.add_batch(&keys, &amounts, refused))
            }
            23..26 => self.merge(other),
            26..28 => self.unmerge(other),
            28..31 => {
                let denominator = 1 + draw(6) as u32;
                let numerator = draw(u64::from(denominator) + 2) as u32;
                let _ = self.decay(numerator, denominator);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn wipe(&mut self) {
        self.clear();
    }

    fn answers(&self) -> impl PartialEq + Debug {
        let estimates: Vec<_> = (0..UNIVERSE).map(|key| self.estimate(&key)).collect();
        let mut in_batch: Vec<_> = estimates.iter().rev().copied().collect();
        self.estimate_batch(&(0..UNIVERSE).collect::<Vec<u64>>(), &mut in_batch);
        assert_eq!(in_batch, estimates);
        let unbiased: Vec<_> = (0..UNIVERSE).map(|key| self.estimate_unbiased(&key)).collect();
        (estimates, unbiased, self.total(), self.stats().at_ceiling, self.stats().load)
    }
}

type Heavy = Top<[u8; 4], 2>;

fn heavy_key(key: u64) -> [u8; 4] {
    [10, 0, (key / 7) as u8, key as u8]
}

impl Operate for Heavy {
    fn fresh(draw: &mut Draw<'_>) -> Result<Self, Infeasible> {
        let (rows, columns) = (1 + draw(3) as u32, 1 + draw(6));
        Top::new(top::Shape { buckets: 1 + draw(2), rows, columns }, SEED)
    }

    fn operate(&mut self, other: &Self, draw: &mut Draw<'_>) -> Result<(), Refused> {
        match draw(32) {
            0..20 => {
                self.add(&heavy_key(any_key(draw)), [amount(draw), amount(draw)]);
                Ok(())
            }
            20..26 => {
                let keys: Vec<_> = keys(draw, UNIVERSE).into_iter().map(heavy_key).collect();
                let amounts: Vec<_> = keys.iter().map(|_| [amount(draw), draw(3)]).collect();
                self.add_batch(&keys, &amounts);
                Ok(())
            }
            26..28 => self.merge(other),
            28..31 => self.merge_disjoint(other),
            _ => Ok(()),
        }
    }

    fn wipe(&mut self) {
        self.clear();
    }

    fn answers(&self) -> impl PartialEq + Debug {
        let bounds: Vec<_> = (0..UNIVERSE).map(|key| self.bounds(&heavy_key(key))).collect();
        (bounds, self.heaviest(9), self.total(), self.len())
    }
}

/// Addresses of both families that share prefixes of every length.
fn address(key: u64) -> IpAddr {
    let [a, b, c] = [key / 16, key / 8 % 2, key % 8].map(|part| part as u8);
    if key.is_multiple_of(3) {
        return IpAddr::from([0x20, 1, 0xd, 0xb8, 0, a, 0, b, 0, 0, 0, 0, 0, 0, c, 1]);
    }
    IpAddr::from([10 + a, b, c << 5, c])
}

impl Operate for Prefixes<2> {
    fn fresh(draw: &mut Draw<'_>) -> Result<Self, Infeasible> {
        let buckets = [1 + draw(2), 1, 1, 1 + draw(2), 1];
        Prefixes::new(prefixes::Shape { buckets }, SEED)
    }

    fn operate(&mut self, other: &Self, draw: &mut Draw<'_>) -> Result<(), Refused> {
        match draw(32) {
            0..18 => self.add(address(any_key(draw)), [amount(draw), amount(draw)]),
            18..25 => {
                let keys: Vec<_> = keys(draw, UNIVERSE).into_iter().map(address).collect();
                let amounts: Vec<_> = keys.iter().map(|_| [amount(draw), draw(3)]).collect();
                self.add_batch(&keys, &amounts)
            }
            25..28 => self.merge(other),
            28..31 => {
                self.halve(one_of(draw, &[0, 1, 1, 1, 2, 5, 64, u32::MAX]));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn wipe(&mut self) {
        self.clear();
    }

    fn answers(&self) -> impl PartialEq + Debug {
        let length = |key: u64, address: IpAddr| if address.is_ipv4() { key % 33 } else { 3 * key };
        let bounds = |key: u64| {
            let address = address(key);
            Prefix::new(address, length(key, address) as u8).map(|prefix| self.bounds(&prefix))
        };
        let bounds: Vec<_> = (0..UNIVERSE).map(bounds).collect();
        (bounds, self.heavy(0, 5), self.heavy(1, 1 << 40), self.total(), self.len())
    }
}

impl Operate for Distinct {
    fn fresh(draw: &mut Draw<'_>) -> Result<Self, Infeasible> {
        Distinct::new(distinct::Shape { registers: 14 + 2 * draw(10) as u32 }, SEED)
    }

    fn operate(&mut self, other: &Self, draw: &mut Draw<'_>) -> Result<(), Refused> {
        match draw(32) {
            0..20 => {
                self.add(&any_key(draw));
                Ok(())
            }
            20..26 => {
                self.add_batch(&keys(draw, UNIVERSE));
                Ok(())
            }
            26..30 => self.merge(other),
            _ => Ok(()),
        }
    }

    fn wipe(&mut self) {
        self.clear();
    }

    fn answers(&self) -> impl PartialEq + Debug {
        (self.count(), self.certainty(), self.is_empty())
    }
}

type Spread = FanOut<[u8; 4]>;

/// A time that mostly moves forward a little, and sometimes far.
fn time(draw: &mut Draw<'_>) -> u64 {
    match draw(8) {
        0 => one_of(draw, &[0, 99, 1 << 40, u64::MAX - 1, u64::MAX]),
        _ => draw(60),
    }
}

impl Operate for Spread {
    fn fresh(draw: &mut Draw<'_>) -> Result<Self, Infeasible> {
        let registers = one_of(draw, &[4, 4, 6, 8, 64]);
        let pane = one_of(draw, &[1, 7, 20, u64::MAX]);
        let shape =
            fan_out::Shape { buckets: 1 + draw(2), registers, panes: 1 + draw(4) as u32, pane };
        FanOut::new(shape, SEED)
    }

    fn operate(&mut self, other: &Self, draw: &mut Draw<'_>) -> Result<(), Refused> {
        match draw(32) {
            0..20 => {
                self.add(&heavy_key(any_key(draw)), &draw(300), time(draw));
                Ok(())
            }
            20..27 => {
                let keys: Vec<_> = keys(draw, UNIVERSE).into_iter().map(heavy_key).collect();
                let elements: Vec<u64> = keys.iter().map(|_| draw(1_000)).collect();
                self.add_batch(&keys, &elements, time(draw));
                Ok(())
            }
            27..31 => self.merge(other),
            _ => Ok(()),
        }
    }

    fn wipe(&mut self) {
        self.clear();
    }

    fn answers(&self) -> impl PartialEq + Debug {
        let at = |now| {
            let keys = (0..UNIVERSE).map(heavy_key);
            let intervals: Vec<_> = keys.map(|key| self.estimate(&key, now)).collect();
            (intervals, self.largest(9, now), self.others(now))
        };
        (at(0), at(70), at(u64::MAX), self.len())
    }
}
