//! Merging another filter.

use super::Body;
use crate::{
    Refused,
    set::{filter::Filter, same},
};

impl Body {
    /// Inserts every stored fingerprint of the other, each as often as it is there. The two may have
    /// grown apart, since growing does not change a fingerprint; all else must be equal.
    pub(super) fn join(&mut self, other: &Self) -> Result<(), Refused> {
        same("seed", self.seed == other.seed)?;
        same("subtables", self.shape.subtables == other.shape.subtables)?;
        same("fingerprints", self.shape.fingerprints() == other.shape.fingerprints())?;
        same("counter", self.shape.counter == other.shape.counter)?;
        same("remainders", self.table.fingerprints.passed == other.table.fingerprints.passed)?;
        // A refusal in the middle is undone by restoring this copy.
        let Ok(before) = self.try_clone() else {
            return Err(Refused::Full {
                stored: self.table.occupied,
                cells: self.shape.all_cells(),
            });
        };
        for (fingerprint, copies) in other.fingerprints() {
            for _ in 0..copies {
                if let Err(why) = self.insert_fingerprint(fingerprint) {
                    *self = before;
                    return Err(why);
                }
            }
        }
        Ok(())
    }
}
