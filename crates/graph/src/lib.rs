//! An opened graph: its files, read by I/O engines, with blocks kept in memory by the block cache.
//!
//! [`Tiles::pass`] and [`RawBlocks::pass`] hand every selected piece of the adjacency to a visitor, once
//! each, in any order, on all threads; [`Rows::pass`] does so for the pages that hold the neighbours of
//! selected vertices. All three run the same loop (`reads`): submit reads to the engine, process
//! resident blocks while it reads, process what arrives.
#![forbid(unsafe_code)]

mod arrays;
mod block_file;
mod degrees;
mod drive;
mod edges;
mod features;
mod hetero;
mod ids;
mod memory;
mod names;
mod near;
mod open;
mod order;
mod pages;
mod raw;
mod raw_rows;
mod reads;
mod rows;
mod stored_lists;
mod tiles;

pub use block_file::{BlockFile, Blocks};
pub use degrees::Degrees;
pub use drive::write_to_drives;
pub use edges::{ArcColumn, EdgeNumbers, EdgeValues};
pub use features::{FeatureSet, Features, RowCrcs};
pub use hetero::HeteroGraph;
pub use ids::Ids;
pub use memory::Memory;
pub use names::{Names, Texts};
pub use near::NearLists;
pub use open::{Checkpointing, ENGINE_DEPTH, Every, Graph, OpenOptions};
pub use order::VertexOrder;
pub use pages::{PageReader, PagesRead, RowPages};
pub use raw::{RawBlocks, RawLists, RawRow};
pub use raw_rows::RawSelection;
pub use rows::{Direction, RowSelection, Rows};
pub use stored_lists::{ListReading, ListsOnStorage, ListsReadBy};
pub use tiergraph_core::metrics::{PassStats, Totals};
pub use tiergraph_io::pipeline::NextPass;
pub use tiles::{SegmentRun, TileSelection, Tiles};
