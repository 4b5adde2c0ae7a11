//! The saved bytes of a fingerprint map: its buckets, then 16 bytes for each stashed flow. If the map has a
//! list, the number of listed flows and 16 bytes for each of them lie between, by ascending digest.

use super::{Body, Moves, Placing, Shape, Sweep, shape::STASH_BYTES};
use crate::{Digest, Malformed, Seed, bucket::Layout, saved, state::cells::Cells};

impl Body {
    pub(super) fn write_image(&self) -> Vec<u8> {
        let shape = self.shape;
        let [policy, limit] = shape.moves.to_fields();
        let fields = [
            shape.subtables.into(),
            shape.buckets,
            shape.cells.into(),
            shape.width.into(),
            shape.remainder.into(),
            shape.states.into(),
            shape.shared.into(),
            (shape.placing == Placing::Independent).into(),
            policy,
            limit,
            shape.reinsert.into(),
            u64::from(shape.stash) | u64::from(shape.listed) << 32,
            shape.growths.into(),
            shape.grows.into(),
            self.hand,
        ];
        let mut payload = self.table.payload().to_vec();
        if self.listed.is_on() {
            payload.extend(self.listed.len().to_le_bytes());
        }
        for (Digest(digest), low) in self.listed.sorted() {
            payload.extend(digest.to_le_bytes());
            payload.extend(low.to_le_bytes());
        }
        for (fingerprint, low) in &self.stash {
            payload.extend(fingerprint.to_le_bytes());
            payload.extend(low.to_le_bytes());
        }
        saved::write(Self::KIND, self.seed, &fields, &payload)
    }

    pub(super) fn read_image(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let (fields, payload) = saved::read::<15>(image, Self::KIND, seed)?;
        let [subtables, buckets, cells, width, remainder, states, shared, placing, rest @ ..] =
            fields;
        let [policy, limit, reinsert, stash, growths, grows, hand] = rest;
        let shape = Shape {
            subtables: saved::narrow("subtables", subtables)?,
            buckets,
            cells: saved::narrow("cells", cells)?,
            width: saved::narrow("width", width)?,
            remainder: saved::narrow("remainder", remainder)?,
            states: saved::narrow("states", states)?,
            shared: saved::narrow("shared", shared)?,
            placing: match saved::flag("placing", placing)? {
                false => Placing::Permuted,
                true => Placing::Independent,
            },
            moves: Moves::from_fields(policy, saved::narrow("limit", limit)?)
                .ok_or(Malformed::Field { name: "moves" })?,
            reinsert: saved::flag("reinsert", reinsert)?,
            stash: stash as u32,
            growths: saved::narrow("growths", growths)?,
            grows: saved::flag("grows", grows)?,
            listed: (stash >> 32) as u32,
        };
        shape.check()?;
        let table = shape.form().bytes();
        let length = Malformed::Length { expected: table, got: payload.len() as u64 };
        let Some((cells, rest)) =
            payload.split_at_checked(usize::try_from(table).unwrap_or(usize::MAX))
        else {
            return Err(length);
        };
        let (listed, stash) = if shape.listed == 0 {
            (&[][..], rest)
        } else {
            split_list(rest, shape.listed).ok_or(length.clone())?
        };
        let stashed = stash.len() as u64;
        if !stashed.is_multiple_of(STASH_BYTES) || stashed / STASH_BYTES > shape.stash.into() {
            return Err(length);
        }
        let mut map = Body::new(shape, seed)?;
        if hand >= map.units() {
            return Err(Malformed::Field { name: "hand" });
        }
        map.hand = hand;
        map.table.memory.bytes_mut()[..cells.len()].copy_from_slice(cells);
        for entry in stash.as_chunks::<16>().0 {
            let entry = u128::from_le_bytes(*entry);
            map.stash.push((entry as u64, (entry >> 64) as u64));
        }
        let mut above = 0;
        for entry in listed.as_chunks::<16>().0 {
            let entry = u128::from_le_bytes(*entry);
            let (digest, low) = (entry as u64, (entry >> 64) as u64);
            if map.listed.len() > 0 && digest <= above || low == u64::MAX {
                return Err(Malformed::Field { name: "payload" });
            }
            map.listed.set(Digest(digest), low);
            above = digest;
        }
        map.recount()?;
        Ok(map)
    }
}

/// The entries of the list, and what follows them. `None` if there are more than `room`.
fn split_list(rest: &[u8], room: u32) -> Option<(&[u8], &[u8])> {
    let (count, entries) = rest.split_first_chunk::<8>()?;
    let count = u64::from_le_bytes(*count);
    if count > room.into() {
        return None;
    }
    entries.split_at_checked(16 * count as usize)
}

impl Body {
    /// Counts the stored flows, and refuses a table that no sequence of operations produces.
    /// Examples are bits beyond the parts of a cell, a value without a meaning, and a fingerprint
    /// in two cells.
    fn recount(&mut self) -> Result<(), Malformed> {
        let malformed = Malformed::Field { name: "payload" };
        let permuted = self.shape.placing == Placing::Permuted;
        // With independent placing, no two flows share a cell.
        let shared = if permuted { self.shape.shared } else { 1 };
        let values = u64::from(self.shape.states) + u64::from(shared);
        let (mut flows, mut shared, mut occupied) = (0, 0, 0);
        for bucket in 0..self.table.buckets() {
            // The unused bytes of a bucket must be zero.
            let used = (self.shape.cells * self.shape.width / 8) as usize;
            let unused = &self.table.bucket(bucket)[used..self.table.any().offset(1)];
            if unused.iter().any(|&byte| byte != 0) {
                return Err(malformed);
            }
            for cell in 0..self.shape.cells {
                if self.table.read(bucket, cell) & !self.table.addressing.cell_mask != 0 {
                    return Err(malformed);
                }
                let Some((fingerprint, low)) = self.table.cell(bucket, cell) else { continue };
                let alone = !permuted || self.table.cells_of(fingerprint) == 1;
                if low >> 1 >= values || !alone {
                    return Err(malformed);
                }
                flows += self.tally.flows_of(low);
                shared += u64::from(low >> 1 >= self.shape.states.into());
                occupied += 1;
            }
        }
        for (i, &(fingerprint, low)) in self.stash.iter().enumerate() {
            let storable = fingerprint < self.shape.fingerprints() && low >> 1 < values;
            let twice = self.stash[..i].iter().any(|&(other, _)| other == fingerprint);
            if !storable || twice || self.table.cells_of(fingerprint) != 0 {
                return Err(malformed);
            }
            flows += self.tally.flows_of(low);
            shared += u64::from(low >> 1 >= self.shape.states.into());
        }
        let values = u64::from(self.shape.states) + u64::from(self.shape.shared);
        for (_, low) in self.listed.iter() {
            if low >> 1 >= values {
                return Err(malformed);
            }
            flows += self.tally.flows_of(low);
            shared += u64::from(self.tally.is_shared(low));
        }
        (self.tally.flows, self.tally.shared, self.table.occupied) = (flows, shared, occupied);
        Ok(())
    }
}
