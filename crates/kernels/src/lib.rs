//! The CPU's inner loops over `tiles`.
//!
//! A [`Kernel`] walks a segment's bytes, unpacks each slice of 32 rows into a small buffer in the
//! L1 cache (AVX-512, AVX2 or portable code, chosen at run time) and hands it on as a [`Slice`].
//! What is done with the arcs is a closure; the sums that PageRank and `propagate` are made of have
//! loops of their own in `sum`.
//!
//! Every decoded row is below 65,536 and every column below the tile's width, whatever the bytes:
//! damaged ones give an error or wrong arcs, never an access outside. `tiergraph_format::tiles`
//! holds the reference decoder that the tests compare with.
#![allow(unsafe_code)]

mod isa;
mod kernel;
mod lanes;
mod plain;
mod single;
mod sum;
mod walk;
mod widest;

pub use isa::Isa;
pub use kernel::Kernel;
pub use plain::sum_lists;
pub use sum::{RowState, SymmetricState};
pub use walk::{MAX_STEPS, Slice};
pub use widest::widest;
