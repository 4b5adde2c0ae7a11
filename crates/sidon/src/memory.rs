//! A fixed number of zeroed bytes, aligned to cache lines, on huge pages if there are many.
//!
//! A random read in a large table also costs a walk through the page tables. With pages of 2 MiB
//! the walk is shorter and mostly cached. Many systems give huge pages only on request, so a table
//! of at least 2 MiB gets its own mapping and requests them. Without huge pages the table works on
//! ordinary pages. Targets other than Unix and Windows, such as WebAssembly, cannot map memory:
//! tables of any size are then on the heap.

use crate::{error::Infeasible, simd::LINE};
use memmap2::MmapMut;
use std::fmt;

/// A table of at least this size is mapped, aligned to a huge page, and requests huge pages.
const HUGE_FROM: usize = 2 << 20;
const HUGE_PAGE: usize = 2 << 20;
/// Whether the target can map memory. Otherwise every call of `memmap2` returns an error.
const MAPS: bool = cfg!(any(unix, windows));

/// Zeroed bytes: a whole number of cache lines, the first at the start of one.
pub struct Memory {
    owner: Owner,
    /// The offset of the first cache line in the owner's bytes.
    start: usize,
    len: usize,
}

enum Owner {
    Heap(Vec<u8>),
    Mapped(MmapMut),
}

impl Memory {
    /// `bytes` zeroed bytes, rounded up to whole cache lines.
    pub fn zeroed(bytes: u64) -> Result<Self, Infeasible> {
        Memory::with(bytes, MAPS)
    }

    /// Zeroed memory of `bytes` bytes. Without `maps`, large tables are on the heap, like small
    /// ones.
    fn with(bytes: u64, maps: bool) -> Result<Self, Infeasible> {
        let infeasible = || Infeasible::Memory { bytes };
        let len = usize::try_from(bytes)
            .ok()
            .and_then(|bytes| bytes.max(1).checked_next_multiple_of(LINE))
            .ok_or_else(infeasible)?;
        let mapped = maps && len >= HUGE_FROM;
        let align = if mapped { HUGE_PAGE } else { LINE };
        let room = len
            .checked_add(align)
            .filter(|&room| isize::try_from(room).is_ok())
            .ok_or_else(infeasible)?;
        let owner = if mapped {
            Owner::Mapped(MmapMut::map_anon(room).map_err(|_| infeasible())?)
        } else {
            let mut heap = Vec::new();
            heap.try_reserve_exact(room).map_err(|_| infeasible())?;
            heap.resize(room, 0);
            Owner::Heap(heap)
        };
        let start = owner.bytes().as_ptr().align_offset(align);
        if start > align {
            return Err(infeasible());
        }
        #[cfg(target_os = "linux")]
        if let Owner::Mapped(map) = &owner {
            // The request may fail: a kernel without huge pages refuses it, and the table works. A
            // remainder of less than half a huge page stays on ordinary pages, which waste less.
            let huge = (len + HUGE_PAGE / 2) / HUGE_PAGE * HUGE_PAGE;
            let _ = map.advise_range(memmap2::Advice::HugePage, start, huge);
        }
        Ok(Memory { owner, start, len })
    }

    /// All bytes.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        &self.owner.bytes()[self.start..self.start + self.len]
    }

    /// All bytes, mutable.
    #[inline(always)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let bytes = match &mut self.owner {
            Owner::Heap(heap) => heap.as_mut_slice(),
            Owner::Mapped(map) => map,
        };
        &mut bytes[self.start..self.start + self.len]
    }

    /// An independent copy.
    pub(crate) fn try_clone(&self) -> Result<Self, Infeasible> {
        let mut copy = Memory::zeroed(self.len as u64)?;
        copy.bytes_mut().copy_from_slice(self.bytes());
        Ok(copy)
    }
}

impl Owner {
    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        match self {
            Owner::Heap(heap) => heap,
            Owner::Mapped(map) => map,
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zero_aligned_and_of_whole_lines() {
        for bytes in [0, 1, 63, 64, 65, 1000, HUGE_FROM - 1, HUGE_FROM, HUGE_FROM + 1] {
            for maps in [MAPS, false] {
                let memory = Memory::with(bytes as u64, maps).unwrap();
                let whole = bytes.max(1).next_multiple_of(LINE);
                assert_eq!(memory.bytes().len(), whole);
                assert_eq!(memory.bytes().as_ptr().align_offset(LINE), 0);
                assert!(memory.bytes().iter().all(|&byte| byte == 0));
                let mapped = matches!(memory.owner, Owner::Mapped(_));
                assert_eq!(mapped, maps && whole >= HUGE_FROM);
            }
        }
    }

    #[test]
    fn a_copy_is_equal_and_apart() {
        for bytes in [100, HUGE_FROM] {
            let mut memory = Memory::zeroed(bytes as u64).unwrap();
            memory.bytes_mut()[bytes - 1] = 7;
            let mut copy = memory.try_clone().unwrap();
            assert_eq!(memory.bytes(), copy.bytes());
            copy.bytes_mut()[0] = 1;
            assert_eq!(memory.bytes()[0], 0);
        }
    }

    #[test]
    fn what_no_machine_has_is_infeasible() {
        for bytes in [u64::MAX, u64::MAX / 2, 1 << 60] {
            for maps in [MAPS, false] {
                assert_eq!(Memory::with(bytes, maps).unwrap_err(), Infeasible::Memory { bytes });
            }
        }
    }
}
