//! The list of heavy prefixes, each without the heavy prefixes that it contains.
//!
//! The levels are visited from addresses upwards. A prefix whose *residue* may reach the threshold is
//! listed. The residue of a prefix is its amounts without those of the longest listed prefixes below
//! it. So a heavy address alone does not put its network on the list.
//!
//! ```text
//! 192.0.2.7/32      900  listed, residue 900
//! 192.0.2.0/24      950  residue  50, passed on
//! 192.0.0.0/16    1 800  listed, residue 900
//! 192.0.0.0/8     1 830  residue  30
//! ```
//! A residue has a lower and an upper bound. Its kept part is the sum of the entries at and below the
//! prefix that lie in no listed prefix below it. Levels above hold at most [`above`](Prefixes::above) of the
//! prefix; with it, the kept part is the upper bound. Amounts of a listed prefix may lie in entries
//! between the two prefixes. So the lower bound is the kept part less `above` of each listed prefix.

use super::{
    LEVELS, Prefix, Prefixes,
    bucket::{Bucket, Entry, Item, ceil, floor, parts},
    prefix::at_level,
};
use crate::count::{Bounds, prefixes::CEILING};

/// A prefix of a [`Heavy`] list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<const A: usize> {
    /// The prefix.
    pub prefix: Prefix,
    /// Its amounts, with those of all its addresses.
    pub amounts: [Bounds; A],
    /// Its amounts without those of the longest listed prefixes below it.
    pub residue: [Bounds; A],
}

/// The heavy prefixes, the largest residue first. Equal residues are in the order of their prefixes.
///
/// ```
/// use sidon::{Seed, count::{Prefixes, prefixes::Shape}};
///
/// let mut table: Prefixes<1> = Prefixes::new(Shape { buckets: [64, 32, 16, 8, 8] }, Seed(1))?;
/// table.add([192, 0, 2, 7].into(), [900])?;
/// for host in 0..100 {
///     table.add([192, 0, host, 1].into(), [9])?;
/// }
/// let heavy = table.heavy(0, 800);
/// let row = |n: usize| (heavy.rows[n].prefix.to_string(), heavy.rows[n].residue[0].least);
/// assert_eq!((row(0), row(1)), (("192.0.0.0/16".into(), 900), ("192.0.2.7/32".into(), 900)));
/// assert_eq!(heavy.rows.len(), 2);
/// // No other prefix of these lengths has more than this beside the listed ones.
/// assert!(heavy.others < 800);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Heavy<const A: usize> {
    /// The list.
    pub rows: Vec<Row<A>>,
    /// The upper bound for the residue of every prefix of the table's lengths that is not listed. If it
    /// is below the threshold, the list is complete.
    pub others: u64,
}

/// The amounts of a prefix while the list is made.
#[derive(Clone, Copy)]
struct Node<const A: usize> {
    /// The sum of the entries at and below the prefix.
    held: Item<A>,
    /// `held` without the entries of listed prefixes.
    kept: Item<A>,
    /// The most that may lie above the listed prefixes below it.
    listed: [u64; A],
}

impl<const A: usize> Prefixes<A> {
    /// The prefixes whose residue of the amount with this index may be `least` or more. A residue is at
    /// least `least` with certainty where its lower bound says so.
    ///
    /// Reads all buckets, and takes memory for all entries.
    ///
    /// # Panics
    /// If `amount` is `A` or more.
    pub fn heavy(&self, amount: usize, least: u64) -> Heavy<A> {
        assert!(amount < A, "amount {amount} of {A}");
        // A prefix without amounts is not listed.
        let least = parts(least.clamp(1, CEILING));
        let (mut rows, mut others) = (Vec::new(), 0u64);
        let mut nodes: Vec<Node<A>> = Vec::with_capacity(self.entries());
        for level in 0..LEVELS {
            let mut away = 0;
            for bytes in self.buckets(level) {
                let due = Bucket::<A>::due(bytes, self.halvings);
                away = away.max(Bucket::<A>::away(bytes, due)[amount]);
                nodes.extend(Bucket::<A>::taken(bytes).map(|entry| {
                    let Entry { item, .. } = Bucket::entry(bytes, entry, due);
                    Node { held: item, kept: item, listed: [0; A] }
                }));
            }
            // No prefix without an entry at or below it has more than this.
            others = others.max(away);
            join_equal(&mut nodes);
            for node in &mut nodes {
                let kept = node.kept.kept[amount];
                if kept.saturating_add(away) >= least {
                    let above = self.above(level, node.held.key);
                    if kept.saturating_add(above[amount]) >= least {
                        rows.push(node.row(level, above));
                        node.kept = Item { key: node.kept.key, ..Item::NONE };
                        node.listed = above;
                    } else {
                        others = others.max(kept.saturating_add(above[amount]));
                    }
                } else {
                    others = others.max(kept.saturating_add(away));
                }
            }
            if level + 1 < LEVELS {
                for node in &mut nodes {
                    let key = at_level(node.held.key, level + 1);
                    (node.held.key, node.kept.key) = (key, key);
                }
            }
        }
        rows.sort_unstable_by_key(|row: &Row<A>| {
            (std::cmp::Reverse(row.residue[amount].most), row.prefix)
        });
        Heavy { rows, others: ceil(others) }
    }
}

/// Sorts the nodes, and joins those of one prefix.
fn join_equal<const A: usize>(nodes: &mut Vec<Node<A>>) {
    nodes.sort_unstable_by_key(|node| node.held.key);
    nodes.dedup_by(|next, first| {
        let equal = next.held.key == first.held.key;
        if equal {
            first.held.join(&next.held);
            first.kept.join(&next.kept);
            for (first, next) in first.listed.iter_mut().zip(next.listed) {
                *first = first.saturating_add(next);
            }
        }
        equal
    });
}

impl<const A: usize> Node<A> {
    /// The row of a listed prefix.
    fn row(&self, level: usize, above: [u64; A]) -> Row<A> {
        let bounds = |item: &Item<A>, amount: usize, less: u64| Bounds {
            least: floor(item.kept[amount].saturating_sub(item.rounding).saturating_sub(less)),
            most: ceil(item.kept[amount].saturating_add(above[amount])),
        };
        Row {
            prefix: Prefix::at(self.held.key, level),
            amounts: std::array::from_fn(|amount| bounds(&self.held, amount, 0)),
            residue: std::array::from_fn(|amount| bounds(&self.kept, amount, self.listed[amount])),
        }
    }
}
