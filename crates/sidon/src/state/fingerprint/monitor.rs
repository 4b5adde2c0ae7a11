//! Operations of a monitor that ages flows by their states and samples them by class. They belong to
//! `sidon-traffic` and may change in any release, so they are not documented.

use super::*;

#[doc(hidden)]
impl Fingerprint {
    /// The sampling class of a flow: the number of zero bits at the end of its fingerprint, at most
    /// [`CLASSES`] and at most the bits of a remainder. One flow in `2^k` is of class `k` or
    /// higher. The class can be read from the cell of a flow ([`Visited::class`]), so a caller that
    /// samples flows by class knows the share of an expired flow. With independent placing, a cell
    /// and its flow may differ in class.
    ///
    /// The function does not borrow the map.
    pub fn classes(&self) -> impl Fn(Digest) -> u32 + use<> {
        let (fingerprints, bits) = (self.body.shape.fingerprints(), self.body.shape.remainder);
        move |digest: Digest| class(spread::fraction(digest.0, fingerprints), bits)
    }

    /// The fingerprint of a flow. With permuted placing, the map cannot distinguish flows with
    /// equal fingerprints, and distinguishes all others.
    #[doc(hidden)]
    pub fn fingerprint<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.body.table.fingerprints.of_digest(key.digest(self.body.seed))
    }

    /// As [`census`](Self::census), for the flows of this sampling class or a higher one.
    pub fn census_from(&self, least: u32) -> Vec<u64> {
        let mut census = vec![0; self.body.shape.states as usize + 1];
        for (_, answer) in self.cells().filter(|&(class, _)| class >= least) {
            let state = match answer {
                Lookup::State(state) => state.into(),
                _ => self.body.shape.states as usize,
            };
            census[state] += 1;
        }
        census
    }

    /// The sampling class and the answer of every cell in use, in the order of the table.
    pub fn cells(&self) -> impl Iterator<Item = (u32, Lookup<State>)> + '_ {
        let fingerprints = &self.body.table.fingerprints;
        let listed = self.body.listed.iter();
        let listed = listed.map(|(digest, low)| (fingerprints.of_digest(digest), low));
        let cells = self.body.table.cells().chain(self.body.stash.iter().copied()).chain(listed);
        cells.map(|(fingerprint, low)| (self.body.class_at(fingerprint), self.body.tally.read(low)))
    }

    /// The buckets that searches for room may follow now. With the counts of searches, it is the
    /// state of a map that its image leaves out.
    pub fn search_tokens(&self) -> u64 {
        self.body.table.tokens()
    }

    /// The counts of searches.
    pub fn searches(&self) -> Moved {
        self.body.table.moved
    }

    /// Sets [`search_tokens`](Self::search_tokens) and the counts of searches to those of an earlier
    /// map. Returns `false`, and changes nothing, if the policy allows fewer tokens.
    pub fn resume_searches(&mut self, tokens: u64, moved: Moved) -> bool {
        self.body.table.resume_searches(tokens, moved)
    }

    /// A transition of each flow, in order. `follow` chooses the next states and is called after
    /// each write with its result.
    pub fn follow_batch<K: Key>(&mut self, keys: &[K], follow: &mut impl Follow) {
        // `follow` may insert any of these keys, so their exceptions end.
        if !self.exceptions.is_empty() {
            keys.iter().for_each(|key| self.exceptions.take_out(key.digest(self.body.seed)));
        }
        let hasher = hasher(self.body.seed, keys);
        self.body.follow_keys(Keys::Any(keys.len(), &hasher), follow);
    }

    /// Sets the timers of each state: one bit per timer for each state, and at the end the bits of
    /// shared cells. [`sweep_timer`](Self::sweep_timer) then skips groups of buckets that hold no
    /// cell for its timer. The ninth timer and later ones share the bit of the eighth. Reads all of
    /// the table.
    pub fn set_timers(&mut self, timers_of: Vec<u8>) {
        self.body.set_timers(timers_of);
    }

    /// The timers of each state, as given to [`set_timers`](Self::set_timers).
    pub fn timers_of(&self) -> &[u8] {
        self.body.marks.timers_of()
    }

    /// Visits the cells of timer `timer` and those of the stash, and applies the action that `fate`
    /// returns. It reads groups of buckets that may hold such cells. Without
    /// [`set_timers`](Self::set_timers) it visits the stash alone.
    pub fn sweep_timer(&mut self, timer: usize, fate: &mut dyn FnMut(Visited) -> Fate) -> Swept {
        self.body.sweep_timer(timer, fate)
    }

    /// Visits buckets `from..to`, numbered through all subtables, and the stash with the last one.
    /// Applies the action that `fate` returns to every cell in use. Returns the number of cells
    /// cleared. The clock hand does not move.
    pub fn sweep_by(&mut self, from: u64, to: u64, fate: &mut dyn FnMut(Visited) -> Fate) -> u64 {
        self.body.sweep_by(from, to, fate)
    }

    /// Adds the flows of another map, as far as there is room, and calls `met` for each cell. A
    /// fingerprint stored in both becomes a shared cell. Its count of flows stops at the ceiling,
    /// so the map should remove such flows by ageing, not by `forget`.
    ///
    /// `Err`, with nothing changed, if the maps differ as for [`merge`](Self::merge).
    pub fn take_over(&mut self, other: &Self, met: &mut dyn FnMut(Met)) -> Result<(), Refused> {
        self.body.take_over(&other.body, met)?;
        self.exceptions.retain(|digest| other.body.lookup(digest) != Lookup::Absent);
        Ok(())
    }
}
