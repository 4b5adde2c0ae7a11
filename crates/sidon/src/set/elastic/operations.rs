//! Operations on keys. Each reads the cells that have the key's core, and compares their extra bits.

use super::{Body, Content, EXTRA, Prefix};
use crate::{
    Digest, Refused,
    bucket::{ANY, Layout},
    dleft_table::Cell,
    key::spread,
    set::sum_of_copies,
    simd::BASE,
};

impl Body {
    /// The extra bits of a digest. The bits before them are its fingerprint.
    fn extra_of(&self, digest: Digest) -> u64 {
        let both = spread::fraction(digest.0, self.shape.fingerprints() << EXTRA);
        both & ((1 << EXTRA) - 1)
    }

    /// The cells of a fingerprint, with any extra bits.
    fn cells_of<'a>(
        &'a self,
        permuted: &'a [u64; ANY],
    ) -> impl Iterator<Item = (Cell, Content)> + 'a {
        let (layout, addressing) = (self.table.any(), &self.table.addressing);
        let each = permuted[..self.shape.subtables as usize].iter().enumerate();
        each.flat_map(move |(i, &permuted)| {
            let (bucket, value) = (addressing.bucket(i, permuted), addressing.value(permuted));
            let bytes = self.table.bucket(bucket);
            let mut found = layout.matches(BASE, bytes, value, addressing.low_mask);
            std::iter::from_fn(move || {
                let cell = (found != 0).then(|| found.trailing_zeros())?;
                found &= found - 1;
                let value = layout.read(bytes, cell);
                Some((Cell { bucket, cell, value }, addressing.low_bits(value)))
            })
        })
        // An empty cell has no content.
        .filter_map(|(cell, low)| Some((cell, self.content(low)?)))
    }

    /// The cells that match a key.
    fn matches<'a>(
        &'a self,
        digest: Digest,
        permuted: &'a [u64; ANY],
    ) -> impl Iterator<Item = (Cell, Content)> + 'a {
        let extra = self.extra_of(digest);
        self.cells_of(permuted).filter(move |(_, content)| content.prefix.begins(extra))
    }

    pub(super) fn contains_at(&self, digest: Digest, permuted: &[u64; ANY]) -> bool {
        self.matches(digest, permuted).next().is_some()
    }

    pub(super) fn count_at(&self, digest: Digest, permuted: &[u64; ANY]) -> u64 {
        self.matches(digest, permuted).map(|(_, content)| content.copies).sum()
    }

    /// A cell with the same extra bits that can count the copies of this content, and the sum.
    pub(super) fn equal(&self, permuted: &[u64; ANY], content: Content) -> Option<(Cell, u64)> {
        let alike = self.cells_of(permuted).filter(|(_, its)| its.prefix == content.prefix);
        let mut sums = alike.map(|(cell, its)| (cell, its.copies + content.copies));
        sums.find(|&(_, copies)| copies <= self.ceiling())
    }

    pub(super) fn insert_at(
        &mut self,
        digest: Digest,
        permuted: &[u64; ANY],
    ) -> Result<(), Refused> {
        let prefix = Prefix { bits: self.extra_of(digest), len: EXTRA };
        self.add(permuted, Content { prefix, copies: 1 })
    }

    /// Adds a content, cut to the present length. Without room for it, shortens the remainders if the shape
    /// allows that. On `Err`, nothing has changed.
    pub(super) fn add(&mut self, permuted: &[u64; ANY], content: Content) -> Result<(), Refused> {
        match self.add_at(permuted, self.cut(content)) {
            Err(Refused::Full { .. }) if self.add_to_more_cells(permuted, content) => Ok(()),
            done => done,
        }
    }

    /// The content with no more extra bits than the field has room for.
    fn cut(&self, content: Content) -> Content {
        Content { prefix: content.prefix.cut(self.shape.field() - 1), ..content }
    }

    /// Shortens the remainders and adds a content to the wider table. `false`, with nothing changed, if the
    /// shape does not allow that or the content finds no room in that table either.
    ///
    /// Half of the cells must be in use: at a lower load, a full bucket holds keys of few fingerprints,
    /// which more cells would not separate. After a vain attempt, an eighth of the cells must change before
    /// the next one, because each rewrites the table.
    #[cold]
    fn add_to_more_cells(&mut self, permuted: &[u64; ANY], content: Content) -> bool {
        let (cells, changes) = (self.table.form.all_cells(), self.table.changes);
        let waits = self.vain.is_some_and(|vain| changes - vain < cells / 8);
        let next = self
            .shape
            .narrower()
            .filter(|_| self.shape.narrows && !waits && self.table.occupied >= cells / 2);
        let Some(Ok(mut next)) = next.map(|shape| self.reshaped(shape)) else { return false };
        if next.add_at(permuted, next.cut(content)).is_err() {
            self.vain = Some(changes);
            return false;
        }
        *self = next;
        true
    }

    /// Adds copies to the cell with these extra bits, or takes a new one. On `Err`, nothing has changed.
    pub(super) fn add_at(
        &mut self,
        permuted: &[u64; ANY],
        content: Content,
    ) -> Result<(), Refused> {
        let stored = sum_of_copies(self.stored, content.copies)?;
        if let Some((cell, copies)) = self.equal(permuted, content) {
            self.rewrite(cell, Content { copies, ..content });
        } else {
            let room = self.table.any_finder().room(self.table.memory.bytes(), permuted);
            let room = room.or_else(|| self.table.room_by_moving(permuted));
            let Some(room) = room else { return Err(self.full()) };
            self.table.put(self.table.any(), room, self.low_of(content));
            self.passing += content.passes();
        }
        self.stored = stored;
        Ok(())
    }

    /// Removes a copy from the longest cell that matches.
    pub(super) fn remove_at(
        &mut self,
        digest: Digest,
        permuted: &[u64; ANY],
    ) -> Result<(), Refused> {
        let longest = self.matches(digest, permuted).max_by_key(|(_, content)| content.prefix.len);
        let Some((cell, content)) = longest else { return Err(Refused::NotStored) };
        if content.copies > 1 {
            self.rewrite(cell, Content { copies: content.copies - 1, ..content });
        } else {
            self.table.empty(self.table.any(), cell);
            self.passing -= content.passes();
        }
        self.stored -= 1;
        Ok(())
    }

    /// Changes the content of a cell in use.
    pub(super) fn rewrite(&mut self, cell: Cell, content: Content) {
        let old = self.table.addressing.low_bits(cell.value);
        let value = cell.value ^ old ^ self.low_of(content);
        let layout = self.table.any();
        let bucket = layout.bucket_mut(self.table.memory.bytes_mut(), cell.bucket);
        layout.write(bucket, cell.cell, value);
    }
}
