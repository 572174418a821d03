//! Mini-batches for graph neural networks, prepared from storage while others are trained on.
//!
//! ```text
//! seeds ─ sample ─────────────────────── gather ───────────────── Prepared
//!         choose → resolve → relabel     kept rows ∥ read pages   in order
//!         (Philox) (Topology) (Labels)   (RowStore)  (PageReader)
//! ```
//! A [`Loader`] has threads that each prepare a window of batches at a time: [`Sampler`] samples
//! them from a [`Topology`], of which any part may be in memory, [`gather`](gather::gather) brings
//! the features, and an [`Epoch`] hands the batches out in order. [`Hotness`] counts what batches
//! want, and plans what to keep.
//!
//! Batches depend on (seed, epoch, batch number) and on nothing else: not on threads, windows,
//! what is in memory, the device, or the rank. `docs/sampling.md` defines them to the byte.
//!
//! Graphs of several types of nodes and edges have a loader of their own ([`hetero`]).
//!
//! Neighbours are taken evenly ([`choose`]), by weight, or by time: [`columns`] has both, in memory
//! or on storage, where they are read page by page as rows are.
#![forbid(unsafe_code)]

pub mod arrange;
pub mod batch;
mod biased;
mod board;
pub mod choose;
pub mod columns;
mod cut;
pub mod edges;
pub mod epoch;
mod extent;
mod fit;
mod fragments;
pub mod gather;
pub mod gpu;
pub mod hetero;
pub mod hotness;
pub mod keep;
mod load;
pub mod loader;
pub mod matrix;
mod needs;
pub mod offsets;
pub mod options;
pub mod order;
pub mod page_map;
pub mod philox;
mod prepare;
pub mod relabel;
mod retained;
mod room;
pub mod sample;
mod shared;
mod sizes;
pub mod stats;
mod steps;
pub mod store;
mod stored;
mod table;
mod tools;
pub mod topology;
pub mod window;

pub use arrange::{Arranged, Arrangement};
pub use batch::{MiniBatch, Seeds};
pub use biased::Strategy;
pub use columns::{Column, Columns, Numbers};
pub use cut::{Cut, Rank};
pub use edges::{EdgeValues, Held};
pub use epoch::{Epoch, Prepared};
pub use fit::Fitted;
pub use hotness::{Hotness, Kept, Plan};
pub use keep::Keep;
pub use loader::Loader;
pub use matrix::{Delivery, Matrix};
pub use options::{
    Fanout, HandedOver, LoaderOptions, PerThread, Resident, SampleOptions, Sharing, Times,
};
pub use philox::{EpochKey, Purpose};
pub use sample::Sampler;
pub use shared::Inputs;
pub use stats::EpochStats;
pub use store::RowStore;
pub use table::TableKind;
pub use topology::Topology;
