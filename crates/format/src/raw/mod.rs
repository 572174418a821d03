//! Codec `raw`: plain neighbour ids in adjacency order, as the papers' engines read them.
//!
//! ```text
//! header   64 bytes ([`crate::block`]); items = listed vertices
//! table    (items + 1) × { u32 vertex − first vertex, u32 where its arcs begin in this block };
//!          the last entry is { 0, arcs }
//! ids      arcs × id width, padded to 8 bytes
//! weights  arcs × weight width
//! ```
//! Vertices without neighbours are not listed. A list that does not fit goes on in the next block:
//! flags say whether the first list began earlier and whether the last goes on. In a block that
//! lies at an 8-byte boundary the ids are read in place.

mod block;
mod writer;

use crate::manifest::Weights;

pub use block::{Ids, Neighbors, RawBlock, WeightSlice};
pub use writer::RawWriter;

const BEGAN_EARLIER: u16 = 1;
const GOES_ON: u16 = 2;
const WIDE_IDS: u16 = 4;
const F32_WEIGHTS: u16 = 8;
const F64_WEIGHTS: u16 = 16;
const ENTRY_BYTES: usize = 8;

/// The width of ids in a raw file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdWidth {
    /// `u32`.
    Four,
    /// `u64`.
    Eight,
}

impl IdWidth {
    /// Bytes of an id.
    pub fn bytes(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

impl Weights {
    /// Bytes of a weight; 0 without weights.
    pub fn bytes(self) -> usize {
        match self {
            Self::None => 0,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}
