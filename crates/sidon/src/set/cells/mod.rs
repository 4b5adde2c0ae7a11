//! Parts that sets share: tables of cells, the positions of a key in them, and the values of cells.
//!
//! | file | content | used by |
//! |---|---|---|
//! | `mapping` | the positions of a key's cells: anywhere, or in a few cache lines | all sets of cells |
//! | `table` | the cells, and lookups that end at a zero cell | `Bloom`, `Counting` |
//! | `lines` | operations on all cells of a key in one cache line | `Counting` |
//! | `increment_filter` | a table of cells whose values an `increment_code` interprets | `Variable`, `Bh`, `Multilayer` |
//! | `admit_table` | for each value of a cell, the increments that it admits | `increment_filter` |
//! | `byte_cells`, `byte_lines` | lookups by an `admit_table`, anywhere and in lines | `increment_filter` |
//! | `overflow` | the choice at a counter's ceiling | all sets with counters |
//! | `overflow_map` | the parts of counters above their ceiling | `Multilayer` |

pub(super) mod admit_table;
pub(super) mod byte_cells;
pub(super) mod byte_lines;
pub(crate) mod increment_code;
pub(super) mod increment_filter;
pub(super) mod lines;
pub(super) mod mapping;
pub(super) mod overflow;
pub(super) mod overflow_map;
pub(super) mod table;
