//! The saved bytes of a [`Distinct`]: the number of registers and of listed words, then the words or the
//! registers as they are in memory.

use super::{Distinct, Shape, most_listed};
use crate::{
    Malformed, Seed,
    count::registers,
    saved::{self, Save},
};

/// The field `listed` of a counter without a list.
const NO_LIST: u64 = u64::MAX;

impl Distinct {
    /// The byte image. It contains a check value of the seed, not the seed: store the seed apart.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (listed, payload) = match self.listed {
            Some(listed) => (listed as u64, 8 * listed),
            None => (NO_LIST, registers::bytes_of(self.shape.registers)),
        };
        let fields = [self.shape.registers.into(), listed];
        saved::write(<Self as Save>::KIND, self.seed, &fields, &self.bytes.bytes()[..payload])
    }

    /// The structure of a byte image that was written under this seed.
    pub fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let ([registers, listed], payload) = saved::read(image, <Self as Save>::KIND, seed)?;
        let shape = Shape { registers: saved::narrow("registers", registers)? };
        let bytes = shape.bytes()?;
        let list = (listed != NO_LIST).then_some(listed);
        if list.is_some_and(|listed| listed > most_listed(shape) as u64) {
            return Err(Malformed::Field { name: "listed" });
        }
        saved::justify(payload, list.map_or(bytes, |listed| 8 * listed))?;
        let sound = match list {
            Some(_) => payload
                .as_chunks::<8>()
                .0
                .is_sorted_by(|one, two| u64::from_le_bytes(*one) < u64::from_le_bytes(*two)),
            None => {
                registers::is_sound(payload, shape.registers)
                    && payload.iter().any(|&byte| byte != 0)
            }
        };
        if !sound {
            return Err(Malformed::Field { name: "words" });
        }
        let mut distinct = Distinct::new(shape, seed)?;
        distinct.bytes.bytes_mut()[..payload.len()].copy_from_slice(payload);
        distinct.listed = list.map(|listed| listed as usize);
        Ok(distinct)
    }
}

impl Save for Distinct {
    const KIND: u16 = saved::kinds::DISTINCT.number;

    fn to_bytes(&self) -> Vec<u8> {
        Distinct::to_bytes(self)
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        Distinct::from_bytes(image, seed)
    }
}
