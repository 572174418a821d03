//! Layout `tiles`: the graph as two-dimensional tiles, for passes over all arcs.
//!
//! Rows (destinations) are cut into *strips* of at most 65,536 rows, columns (sources) into tiles
//! of `2^k` columns, so that the vertex state a tile touches stays in a core's cache. Inside a tile
//! the rows are sorted by how many arcs they have in it and sliced by 32, one row a lane: the
//! sliced ELLPACK of sparse linear algebra (Kreutzer et al., SIAM J. Sci. Comput. 36(5), 2014),
//! whose column indices are here gaps, packed step by step in as many bits as the step's widest gap
//! needs. Decoding 16 lanes of a step is one load, one permute, one shift, one mask, one add.
//!
//! An undirected edge is stored once, with row ≥ column, and a pass visits both directions.
//!
//! `docs/format.md` has the bytes. Here live the encoder, the block writer and reader, and a scalar
//! decoder that is the reference for the SIMD ones in `tiergraph-kernels`.

pub mod bits;
mod block;
mod decode;
mod encode;
mod index;
mod pack;
mod slices;
mod sort;
mod strip;
mod writer;

pub use block::{Segment, TilesBlock};
pub use decode::{StepView, for_each_step};
pub use encode::StripEncoder;
pub use index::TilesIndex;
pub use sort::{radix_sort, sort_words};
pub use strip::EncodedStrip;
pub use writer::TilesWriter;

use crate::manifest::{Manifest, Weights};

/// Lanes of a slice: the rows that are decoded together.
pub const LANES: usize = 32;
/// The most rows of a strip: a row inside its strip is 16 bits.
pub const STRIP_ROWS: usize = 1 << 16;
/// Rows and columns are below this: `tiles.index` counts rows in units of 32.
pub const MAX_VERTICES: u64 = 1 << 37;
/// A decoder may read this far behind a segment's last byte; every block keeps as much free.
pub const SLACK: usize = 96;
/// Rows of at most this many arcs in a tile are grouped by exact length.
pub const UNIFORM_MAX: usize = 16;
/// Longer rows of a tile are cut.
const MAX_ROW_ARCS: usize = 128;

/// The options of tiles that an encoder and its decoders must agree on; the manifest keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileOptions {
    /// Columns of a tile, as a power of two: 10 to 16.
    pub columns_log2: u32,
    /// The least difference of two neighbours of one row: 1 in a graph without duplicates, else 0.
    pub min_gap: u32,
    /// The type of the weights, which lie behind each slice.
    pub weights: Weights,
    /// Bytes of a block.
    pub block_bytes: usize,
}

impl TileOptions {
    /// The options that a graph's manifest records; `None` when it has no tiles.
    pub fn of(manifest: &Manifest) -> Option<Self> {
        manifest.tiles.map(|tiles| Self {
            columns_log2: tiles.columns_log2,
            min_gap: tiles.min_gap,
            weights: manifest.weighted,
            block_bytes: manifest.block_bytes as usize,
        })
    }

    /// The number of columns of a tile.
    pub fn columns(&self) -> usize {
        1 << self.columns_log2
    }

    /// The most arcs of one row in one slice, so that a slice fits a block several times and is a
    /// small share of a pass: a GPU's warp has it alone.
    pub fn max_row_arcs(&self) -> usize {
        let bytes_per_step = LANES * (2 + self.weights.bytes());
        (self.block_bytes / 2 / bytes_per_step).clamp(1, MAX_ROW_ARCS)
    }
}

/// The key of an arc inside a strip: row in the strip (16 bits), column (48). Sorts by row, then column.
#[inline]
pub fn arc_key(row_in_strip: u32, column: u64) -> u64 {
    (u64::from(row_in_strip) << 48) | column
}
