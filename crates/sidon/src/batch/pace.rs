//! The sizes of a batch's groups: data of [`Batch`](super::Batch), so that one loop serves every
//! structure.

/// The most keys of a batch in flight at a time: enough to hide the latency of memory, few enough
/// to stay in the L1 cache.
pub(crate) const CHUNK: usize = 32;

/// Tables up to this many bytes are in the core's L2 cache. Prefetching their lines costs more than
/// it saves.
pub(crate) const NEAR: usize = 512 << 10;

/// Tables of at least this many bytes are not cached, so a batch keeps memory busy all the time.
/// Smaller tables are faster one chunk at a time.
pub(crate) const DEEP: usize = 16 << 20;

/// The group sizes of a batch on a table that is not cached. A smaller table uses
/// [`Pace::CHUNKS`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Keys located at a time, a divisor of [`CHUNK`].
    pub(crate) locate: usize,
    /// Keys applied at a time: a multiple of `locate`, a divisor of [`CHUNK`].
    pub(crate) apply: usize,
    /// The number of keys by which applying follows locating, a multiple of `locate`.
    pub(crate) lag: usize,
    /// The number of keys by which reading ahead follows locating: a multiple of `locate`, at most
    /// `lag`. `None` if the structure does not read ahead.
    pub(crate) ahead: Option<usize>,
    /// The least bytes of a table for which these sizes are used.
    pub(crate) from: usize,
    /// Whether each key is located right after it is hashed, so that its digest stays in a
    /// register. This is faster if a structure does little work per key. It is slower if locating
    /// needs many registers.
    pub(crate) singly: bool,
}

impl Pace {
    /// Groups of eight keys, applied while the next two groups are in flight.
    pub(crate) const USUAL: Pace =
        Pace { locate: 8, apply: 8, lag: 16, ahead: None, from: DEEP, singly: false };

    /// One chunk after the other in tables of any size.
    pub(crate) const CHUNKS: Pace = Pace { from: usize::MAX, ..Pace::USUAL };

    /// [`CHUNKS`](Self::CHUNKS) with reading ahead.
    pub(crate) const CHUNKS_AHEAD: Pace = Pace { ahead: Some(0), ..Pace::CHUNKS };

    /// One chunk after the other: each step finishes before the next begins.
    pub(super) const fn chunks(self) -> Pace {
        let ahead = match self.ahead {
            Some(_) => Some(0),
            None => None,
        };
        Pace { locate: CHUNK, apply: CHUNK, lag: 0, ahead, ..self }
    }

    /// Whether the driver can keep these sizes in a ring of [`CHUNK`] positions.
    pub(super) const fn is_sound(self) -> bool {
        let ahead = match self.ahead {
            Some(ahead) => ahead,
            None => 0,
        };
        CHUNK.is_multiple_of(self.locate)
            && CHUNK.is_multiple_of(self.apply)
            && self.apply.is_multiple_of(self.locate)
            && self.lag.is_multiple_of(self.locate)
            && ahead.is_multiple_of(self.locate)
            && ahead <= self.lag
            && self.apply + self.lag <= CHUNK
    }
}
