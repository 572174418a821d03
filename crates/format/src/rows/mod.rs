//! Codec `packed`, rows: one vertex's neighbours on one 4 KiB page.
//!
//! What a sparse frontier or a sampler reads: a vertex's list in one small read, and its k-th
//! neighbour from one page even where the list fills thousands. A list shorter than a page never
//! straddles two; a longer one is cut at chunks and fills pages to the brim.
//!
//! A page is a 32-byte header ([`page`]), a 2-byte end for each of its vertices, and their lists
//! ([`list`]): neighbours ascending, as gaps in groups of 16 with a bit width each, in chunks of 64
//! that a table lets a reader enter. On a directed Kronecker graph of 4 M vertices in degree order
//! (`examples/rows_size.rs`) this is 1.86 bytes an arc, all included, of which the groups are 1.55.
//! Groups of 8 would take 1.50 but twice the branches, groups of 32 1.60, of 64 1.69; varints take
//! 1.71, StreamVByte 1.82. A core scans about 400 M neighbours/s.
//!
//! The index ([`RowsIndex`]) has 16 bytes a page: 0.1 bytes a vertex on the same graph.
//!
//! Each page counts the arcs before it, so that values of arcs in a parallel file (weights, edge ids)
//! are found by position.

mod group;
mod index;
pub mod list;
mod packed;
pub mod page;
mod writer;

pub use index::RowsIndex;
pub use packed::PackedRows;
pub use page::{PAGE_BYTES, Piece, RowsPage, check_page, damaged_list, page_error};
pub use writer::RowsWriter;
