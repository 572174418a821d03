//! Mini-batches for graph neural networks, prepared from storage while others are trained on.
//!
//! ```text
//! seeds ─ sample ─────────────────────── gather ───────────────── Prepared
//!         choose → resolve → relabel     resident rows ∥ pages   in order
//!         (Philox) (Topology) (Labels)   (RowStore)  (PageReader)
//! ```
//! A [`Loader`] has threads that each prepare a window of batches at a time: [`Sampler`] samples
//! them from a [`Topology`], of which any part may be in memory,
//! [`gathering`] reads the features, and an [`Epoch`] hands the batches out in order. [`Hotness`] counts what batches
//! want, and plans what to keep.
//!
//! Batches depend on (seed, epoch, batch number) and on nothing else: not on threads, windows,
//! what is in memory, the device, or the rank. `docs/sampling.md` defines them to the byte.
//!
//! A heterogeneous graph has several types of nodes and edges ([`GraphTypes`]); an ordinary graph is
//! one type of each, so that everything is written once.
//!
//! Neighbours are taken evenly ([`choose`](sampling::choose)), by weight, or by time:
//! [`columns`](residency::columns) has both, in memory or on storage, where they are read page by page as rows are.
#![forbid(unsafe_code)]

pub mod gathering;
pub mod gpu;
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
pub use pipeline::order::Inputs;
pub use pipeline::reorder::{ReorderedRows, SortBy};
pub use pipeline::stats::EpochStats;
pub use pipeline::types::{Ends, GraphTypes};
pub use residency::columns::{Column, Columns, NamedColumn, Words};
pub use residency::hotness::{Counts, Hotness, Plan};
pub use residency::memory_plan::MemoryPlan;
pub use residency::neighbors::{Residency, Residents};
pub use residency::rows::RowStore;
pub use residency::topology::Topology;
pub use sampling::batch::{MiniBatch, SampledEdges, SampledNodes, Seeds};
pub use sampling::philox::{EpochKey, Purpose};
pub use sampling::sampler::{SampledTypes, Sampler};
pub use sampling::table::TableKind;
pub use sampling::weighted::Strategy;
pub use sampling::window::WindowSource;
