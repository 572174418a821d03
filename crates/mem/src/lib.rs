//! Memory that devices read into, and the budget that it is counted in.
//!
//! [`AlignedBuf`] is what moves through every read: 4 KiB-aligned because `O_DIRECT` asks for it,
//! on huge pages from 2 MiB on because a gather over 4 KiB pages spends its time in the TLB.
//! [`Budget`] counts bytes, it does not allocate: a part of the engine reserves what it is about
//! to hold, and gives it back when the [`Reservation`] drops.

mod array;
pub mod budget;
pub mod buffer;
pub mod cgroup;
mod host;
mod large;
mod plan;
mod prefetch;
pub mod segments;
mod system;
mod vec;

pub use array::Array;
pub use budget::{Budget, Reservation};
pub use buffer::{AlignedBuf, HUGE_PAGE_BYTES, PAGE_BYTES};
pub use host::HostMemory;
pub use large::{Keeping, LARGE_BYTES, LargeBlocks};
pub use plan::MemoryPlan;
pub use prefetch::{prefetch, prefetch_all, prefetch_range};
pub use segments::Segments;
pub use system::{available_memory_bytes, peak_rss_bytes};
pub use vec::{as_atomic, vec_from_fn, zeroed_vec};
