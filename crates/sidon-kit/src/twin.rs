//! The exact twin: what a structure would say if memory were free.

use std::collections::HashMap;
use std::hash::Hash;

/// A multiset that never errs.
#[derive(Debug, Clone, Default)]
pub struct Multiset<K> {
    copies: HashMap<K, u64>,
    /// The keys in an order that does not depend on the map's: for drawing members.
    members: Vec<K>,
    places: HashMap<K, usize>,
    total: u64,
}

impl<K: Copy + Eq + Hash> Multiset<K> {
    /// Nothing yet.
    pub fn new() -> Self {
        Multiset { copies: HashMap::new(), members: Vec::new(), places: HashMap::new(), total: 0 }
    }

    /// One more copy.
    pub fn insert(&mut self, key: K) {
        let copies = self.copies.entry(key).or_insert(0);
        *copies += 1;
        self.total += 1;
        if *copies == 1 {
            self.places.insert(key, self.members.len());
            self.members.push(key);
        }
    }

    /// One copy less; `false` if there was none.
    pub fn remove(&mut self, key: K) -> bool {
        let Some(copies) = self.copies.get_mut(&key) else { return false };
        *copies -= 1;
        self.total -= 1;
        if *copies == 0 {
            self.copies.remove(&key);
            let place = self.places.remove(&key).expect("every member has a place");
            self.members.swap_remove(place);
            if let Some(&moved) = self.members.get(place) {
                self.places.insert(moved, place);
            }
        }
        true
    }

    /// How many copies there are.
    pub fn count(&self, key: K) -> u64 {
        self.copies.get(&key).copied().unwrap_or(0)
    }

    /// The distinct keys, in an order that only the operations decide.
    pub fn members(&self) -> &[K] {
        &self.members
    }

    /// All copies of all keys.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Takes everything out.
    pub fn clear(&mut self) {
        *self = Multiset::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_counted_and_members_listed_once() {
        let mut twin = Multiset::new();
        for key in [1, 2, 1, 3] {
            twin.insert(key);
        }
        assert_eq!((twin.count(1), twin.count(4), twin.total()), (2, 0, 4));
        assert!(twin.remove(1) && twin.remove(2) && !twin.remove(2));
        assert_eq!(twin.members(), [1, 3]);
        assert!(twin.remove(1));
        assert_eq!(twin.members(), [3]);
    }
}
