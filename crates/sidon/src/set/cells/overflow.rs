//! The choice of every set with counters: an insertion that finds a counter at its ceiling is refused, or
//! the counter stays there for good.

/// The action when an insertion finds a counter at its ceiling.
///
/// ```
/// use sidon::{Refused, Seed, set::{Counting, Overflow, Spread, counting::Shape}};
///
/// // Counters of one bit count to one.
/// let (overflow, spread) = (Overflow::Refuse, Spread::Anywhere);
/// let shape = Shape { counters: 1_000, hashes: 3, width: 1, overflow, spread };
/// let mut once = Counting::from_keys(shape, Seed(1), ["key"])?;
/// assert_eq!(once.insert("key"), Err(Refused::Overflow { ceiling: 1 }));
/// let mut pinned = Counting::new(Shape { overflow: Overflow::Pin, ..shape }, Seed(1))?;
/// assert_eq!((pinned.insert("key"), pinned.insert("key")), (Ok(()), Ok(())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Overflow {
    /// The insertion is refused, and nothing changes.
    #[default]
    Refuse,
    /// The counter is pinned: it stays at its ceiling, is never decremented and never excludes a
    /// key. No insertion is refused and `false` stays a fact. Pinned counters add to the fill.
    Pin,
}
