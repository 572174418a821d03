//! An opened graph: the format's files, read by the I/O engines, kept by the cache.
//!
//! [`Graph::tile_pass`] and [`Graph::raw_pass`] hand every wanted piece of the adjacency to a
//! visitor, once each, in any order, on all threads; [`Graph::row_pass`] does so for the
//! pages that hold the neighbours of chosen vertices. All three run the same loop
//! (`reads`): fill the engine, process what is resident while it reads, process what arrived.
#![forbid(unsafe_code)]

mod arrays;
mod block_file;
mod crew;
mod degrees;
mod direct;
mod edges;
mod features;
mod hetero;
mod names;
mod near;
mod open;
mod order;
mod pages;
mod plan;
mod raw;
mod raw_rows;
mod reads;
mod rows;
mod staged;
mod stats;
mod team;
mod tiles;
mod worker;

pub use block_file::BlockFile;
pub use direct::{DirectReader, Lane};
pub use edges::{ArcColumn, EdgeNumbers};
pub use features::Features;
pub use hetero::HeteroGraph;
pub use near::NearLists;
pub use open::{EngineFactory, Graph, OpenOptions};
pub use pages::{PageReader, PagesRead, RowPages};
pub use raw::{RawLists, RawRow};
pub use raw_rows::RawSelection;
pub use reads::Then;
pub use rows::{Direction, RowSelection};
pub use staged::{Stage, StagedReader};
pub use stats::{PassStats, Totals};
pub use team::Team;
pub use tiles::TileSelection;
