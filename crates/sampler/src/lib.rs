//! Mini-batches for graph neural networks, prepared from storage while others are trained on.
//!
//! ```text
//! seeds ─ sample ─────────────────────── gather ───────────────── Prepared
//!         choose → resolve → relabel     kept rows ∥ read pages   in order
//!         (Philox) (Topology) (Labels)   (RowStore)  (PageReader)
//! ```
//! A [`Loader`] has threads that each prepare a window of batches at a time: [`Sampler`] samples
//! them from a [`Topology`], of which any part may be in memory, [`gather`](gathering::gather::gather) brings
//! the features, and an [`Epoch`] hands the batches out in order. [`Hotness`] counts what batches
//! want, and plans what to keep.
//!
//! Batches depend on (seed, epoch, batch number) and on nothing else: not on threads, windows,
//! what is in memory, the device, or the rank. `docs/sampling.md` defines them to the byte.
//!
//! Graphs of several types of nodes and edges have a loader of their own ([`hetero`]).
//!
//! Neighbours are taken evenly ([`choose`](sampling::choose)), by weight, or by time: [`columns`](residency::columns) has both, in memory
//! or on storage, where they are read page by page as rows are.
#![forbid(unsafe_code)]

pub mod gathering;
pub mod gpu;
pub mod hetero;
pub mod options;
pub mod pipeline;
pub mod residency;
pub mod sampling;

pub use gathering::edges::{EdgeValues, Held};
pub use gathering::matrix::{Delivery, Matrix};
pub use options::{
    Fanout, HandedOver, LoaderOptions, PerThread, Resident, SampleOptions, Sharing, Times,
};
pub use pipeline::cut::{Cut, Rank};
pub use pipeline::epoch::{Epoch, Prepared};
pub use pipeline::loader::Loader;
pub use pipeline::reorder::{Arranged, Arrangement};
pub use pipeline::shared::Inputs;
pub use pipeline::stats::EpochStats;
pub use residency::columns::{Column, Columns, Numbers};
pub use residency::hotness::{Hotness, Kept, Plan};
pub use residency::memory_plan::Fitted;
pub use residency::neighbors::Keep;
pub use residency::rows::RowStore;
pub use residency::topology::Topology;
pub use sampling::batch::{MiniBatch, Seeds};
pub use sampling::philox::{EpochKey, Purpose};
pub use sampling::sampler::Sampler;
pub use sampling::table::TableKind;
pub use sampling::weighted::Strategy;
