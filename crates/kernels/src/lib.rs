//! The CPU's inner loops over `tiles`.
//!
//! A [`Kernel`] walks a segment's bytes and unpacks each slice of 32 rows, step by step (AVX-512, AVX2 or
//! portable code, chosen at run time). What takes the steps is a type: most write them to a small buffer
//! in the L1 cache and hand that on as a [`Slice`] to a closure; the sums of PageRank's pass have loops of
//! their own in `sum`, one of which gathers a step's values while its columns are still in registers.
//!
//! Every decoded row is below 65,536 and every column below the tile's width, whatever the bytes:
//! damaged ones give an error or wrong arcs, never an access outside. `tiergraph_format::tiles`
//! holds the reference decoder that the tests compare with.
#![allow(unsafe_code)]

mod dedup;
#[cfg(target_arch = "x86_64")]
mod gathers;
mod isa;
mod kernel;
mod lanes;
mod plain;
mod single;
mod sum;
mod take;
mod walk;
mod widest;

pub use dedup::dedup_words;
pub use isa::Isa;
pub use kernel::Kernel;
pub use plain::sum_lists;
pub use sum::{SymmetricState, SymmetricStrip};
pub use take::{MAX_STEPS, Slice};
pub use widest::{Work, widest};
