//! A set of any structure, for programs that let a plan choose it.

use super::{
    backyard, bh, blocked, bloom, counting, dleft, elastic,
    filter::{Filter, Removes},
    multilayer,
    operations::{Set, Stats},
    variable,
};
use crate::{Digest, Infeasible, Key, Malformed, Refused, Seed, plan::SetShape, saved};

/// A set whose structure a plan chose at run time.
///
/// ```
/// use sidon::{Certainty, Refused, Seed, set::AnySet, plan::{self, Target}};
///
/// let target = Target { deletes: true, ..Target::new(10_000, 0.01) };
/// let mut seen = AnySet::new(plan::set(target)?.shape, Seed(42))?;
/// seen.insert("10.0.0.1:443")?;
/// assert!(seen.contains("10.0.0.1:443"));
/// assert!(matches!(seen.certainty(), Certainty::WrongAtMost(rate) if rate < 0.01));
/// seen.remove("10.0.0.1:443")?;
/// assert!(!seen.contains("10.0.0.1:443"));
///
/// // Keys cannot leave a Bloom filter.
/// let mut bloom = AnySet::new(plan::set(Target::new(10_000, 0.01))?.shape, Seed(42))?;
/// bloom.insert("10.0.0.1:443")?;
/// assert_eq!(bloom.remove("10.0.0.1:443"), Err(Refused::Permanent));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type AnySet = Set<Body>;

/// The cells of an [`AnySet`].
#[doc(hidden)]
#[derive(Debug)]
pub enum Body {
    Bloom(bloom::Body),
    Blocked(blocked::Body),
    Counting(counting::Body),
    Variable(variable::Body),
    Bh(bh::Body),
    Multilayer(multilayer::Body),
    DLeft(dleft::Body),
    Backyard(backyard::Body),
    Elastic(elastic::Body),
}

/// Evaluates `$do` with the body of `$self`, and with the function that makes its variant.
macro_rules! with_body {
    ($self:expr, $body:ident => $do:expr) => {
        with_body!($self, $body, _ => $do)
    };
    ($self:expr, $body:ident, $variant:pat => $do:expr) => {
        match $self {
            Body::Bloom($body) => {
                let $variant = Body::Bloom;
                $do
            }
            Body::Blocked($body) => {
                let $variant = Body::Blocked;
                $do
            }
            Body::Counting($body) => {
                let $variant = Body::Counting;
                $do
            }
            Body::Variable($body) => {
                let $variant = Body::Variable;
                $do
            }
            Body::Bh($body) => {
                let $variant = Body::Bh;
                $do
            }
            Body::Multilayer($body) => {
                let $variant = Body::Multilayer;
                $do
            }
            Body::DLeft($body) => {
                let $variant = Body::DLeft;
                $do
            }
            Body::Backyard($body) => {
                let $variant = Body::Backyard;
                $do
            }
            Body::Elastic($body) => {
                let $variant = Body::Elastic;
                $do
            }
        }
    };
}

impl Filter for Body {
    type Shape = SetShape;
    /// Stands for any set. Images have the kind of the structure inside.
    const KIND: u16 = 0;

    fn planned_bytes(shape: SetShape) -> u64 {
        shape.bytes()
    }

    fn new(shape: SetShape, seed: Seed) -> Result<Self, Infeasible> {
        Ok(match shape {
            SetShape::Bloom(shape) => Body::Bloom(Filter::new(shape, seed)?),
            SetShape::Blocked(shape) => Body::Blocked(Filter::new(shape, seed)?),
            SetShape::Counting(shape) => Body::Counting(Filter::new(shape, seed)?),
            SetShape::Variable(shape) => Body::Variable(Filter::new(shape, seed)?),
            SetShape::Bh(shape) => Body::Bh(Filter::new(shape, seed)?),
            SetShape::Multilayer(shape) => Body::Multilayer(Filter::new(shape, seed)?),
            SetShape::DLeft(shape) => Body::DLeft(Filter::new(shape, seed)?),
            SetShape::Backyard(shape) => Body::Backyard(Filter::new(shape, seed)?),
            SetShape::Elastic(shape) => Body::Elastic(Filter::new(shape, seed)?),
        })
    }

    fn shape(&self) -> SetShape {
        match self {
            Body::Bloom(body) => SetShape::Bloom(body.shape()),
            Body::Blocked(body) => SetShape::Blocked(body.shape()),
            Body::Counting(body) => SetShape::Counting(body.shape()),
            Body::Variable(body) => SetShape::Variable(body.shape()),
            Body::Bh(body) => SetShape::Bh(body.shape()),
            Body::Multilayer(body) => SetShape::Multilayer(body.shape()),
            Body::DLeft(body) => SetShape::DLeft(body.shape()),
            Body::Backyard(body) => SetShape::Backyard(body.shape()),
            Body::Elastic(body) => SetShape::Elastic(body.shape()),
        }
    }

    fn seed(&self) -> Seed {
        with_body!(self, body => body.seed())
    }

    fn len(&self) -> u64 {
        with_body!(self, body => body.len())
    }

    fn memory_bytes(&self) -> u64 {
        with_body!(self, body => body.memory_bytes())
    }

    fn load(&self) -> f64 {
        with_body!(self, body => body.load())
    }

    fn stats(&self) -> Stats {
        with_body!(self, body => body.stats())
    }

    fn rate(&self) -> f64 {
        with_body!(self, body => body.rate())
    }

    fn clear(&mut self) {
        with_body!(self, body => body.clear());
    }

    fn try_clone(&self) -> Result<Self, Infeasible> {
        Ok(with_body!(self, body, variant => variant(body.try_clone()?)))
    }

    fn insert(&mut self, digest: Digest) -> Result<(), Refused> {
        with_body!(self, body => body.insert(digest))
    }

    fn insert_batch<K: Key>(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused)) {
        with_body!(self, body => body.insert_batch(keys, refused));
    }

    fn contains(&self, digest: Digest) -> bool {
        with_body!(self, body => body.contains(digest))
    }

    fn contains_batch<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        with_body!(self, body => body.contains_batch(keys, found));
    }

    fn merge(&mut self, other: &Self) -> Result<(), Refused> {
        match (self, other) {
            (Body::Bloom(own), Body::Bloom(other)) => own.merge(other),
            (Body::Blocked(own), Body::Blocked(other)) => own.merge(other),
            (Body::Counting(own), Body::Counting(other)) => own.merge(other),
            (Body::Variable(own), Body::Variable(other)) => own.merge(other),
            (Body::Bh(own), Body::Bh(other)) => own.merge(other),
            (Body::Multilayer(own), Body::Multilayer(other)) => own.merge(other),
            (Body::DLeft(own), Body::DLeft(other)) => own.merge(other),
            (Body::Backyard(own), Body::Backyard(other)) => own.merge(other),
            (Body::Elastic(own), Body::Elastic(other)) => own.merge(other),
            _ => Err(Refused::Mismatch { field: "structure" }),
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        with_body!(self, body => body.to_bytes())
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        Ok(match saved::kind(image)? {
            bloom::Body::KIND => Body::Bloom(Filter::from_bytes(image, seed)?),
            blocked::Body::KIND => Body::Blocked(Filter::from_bytes(image, seed)?),
            counting::Body::KIND => Body::Counting(Filter::from_bytes(image, seed)?),
            variable::Body::KIND => Body::Variable(Filter::from_bytes(image, seed)?),
            bh::Body::KIND => Body::Bh(Filter::from_bytes(image, seed)?),
            multilayer::Body::KIND => Body::Multilayer(Filter::from_bytes(image, seed)?),
            dleft::Body::KIND => Body::DLeft(Filter::from_bytes(image, seed)?),
            backyard::Body::KIND => Body::Backyard(Filter::from_bytes(image, seed)?),
            elastic::Body::KIND => Body::Elastic(Filter::from_bytes(image, seed)?),
            got => return Err(Malformed::Kind { expected: Self::KIND, got }),
        })
    }
}

/// Removing from a set whose keys never leave is refused as [`Refused::Permanent`].
impl Removes for Body {
    fn remove(&mut self, digest: Digest) -> Result<(), Refused> {
        match self {
            Body::Bloom(_) | Body::Blocked(_) => Err(Refused::Permanent),
            Body::Counting(body) => body.remove(digest),
            Body::Variable(body) => body.remove(digest),
            Body::Bh(body) => body.remove(digest),
            Body::Multilayer(body) => body.remove(digest),
            Body::DLeft(body) => body.remove(digest),
            Body::Backyard(body) => body.remove(digest),
            Body::Elastic(body) => body.remove(digest),
        }
    }

    fn remove_batch<K: Key>(&mut self, keys: &[K], refused: &mut dyn FnMut(usize, Refused)) {
        match self {
            Body::Bloom(_) | Body::Blocked(_) => {
                (0..keys.len()).for_each(|key| refused(key, Refused::Permanent));
            }
            Body::Counting(body) => body.remove_batch(keys, refused),
            Body::Variable(body) => body.remove_batch(keys, refused),
            Body::Bh(body) => body.remove_batch(keys, refused),
            Body::Multilayer(body) => body.remove_batch(keys, refused),
            Body::DLeft(body) => body.remove_batch(keys, refused),
            Body::Backyard(body) => body.remove_batch(keys, refused),
            Body::Elastic(body) => body.remove_batch(keys, refused),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Certainty,
        plan::{self, Target},
    };

    #[test]
    fn every_planned_set_holds_its_keys_and_lets_them_leave() {
        for growth in [0, 2] {
            let target = Target { growth, ..Target::new(500, 1e-3) };
            let rows = plan::sets(target).unwrap();
            assert!(rows.len() >= 3, "{rows:?}");
            for row in rows {
                let mut set = AnySet::new(row.shape, Seed(7)).unwrap();
                assert_eq!(set.memory_bytes(), row.bytes, "{row:?}");
                let keys = 0..500u64 << growth;
                for key in keys.clone() {
                    set.insert(&key).unwrap();
                }
                assert!(keys.clone().all(|key| set.contains(&key)), "{row:?}");
                let Certainty::WrongAtMost(rate) = set.certainty() else { panic!("{row:?}") };
                // 500 keys differ from the mean table by a few per cent.
                assert!(rate > 0.0 && rate <= 1.3e-3, "{rate} {row:?}");
                assert_eq!(set.memory_bytes(), row.bytes << growth, "{row:?}");
                let again = AnySet::from_bytes(&set.to_bytes(), Seed(7)).unwrap();
                assert_eq!((&again, again.shape()), (&set, set.shape()));
                if matches!(set.shape(), SetShape::Bloom(_) | SetShape::Blocked(_)) {
                    assert_eq!(set.remove(&1u64), Err(Refused::Permanent));
                    let mut refused = Vec::new();
                    set.remove_batch(&[1u64, 2], &mut |key, why| refused.push((key, why)));
                    assert_eq!(refused, [(0, Refused::Permanent), (1, Refused::Permanent)]);
                    assert!(set.contains(&1u64));
                    continue;
                }
                for key in keys.clone() {
                    set.remove(&key).unwrap();
                }
                assert!(!keys.clone().any(|key| set.contains(&key)), "{row:?}");
            }
        }
    }
}
