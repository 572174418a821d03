//! The blocks of a graph on their way to a GPU: which stay in its memory or in pinned host memory, and
//! how the others stream in.

mod copies;
mod index;
mod pinned_tier;
mod residency;
mod slot_plan;
mod slots;
mod stream;

pub(super) use index::{BlockIndex, file_of};
pub(crate) use pinned_tier::PinnedTier;
pub(super) use residency::ResidentBlocks;
pub(super) use slot_plan::SlotPlan;
pub(super) use stream::{BlockReader, BlockStream, Selection, Work};
