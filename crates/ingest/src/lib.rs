//! Reading or generating a graph's edges, and building a graph on disk from them.
//!
//! [`source`] reads edges from files and from callers, [`generate`] makes synthetic ones, and
//! [`build`] sorts either kind within a memory budget and writes the graph, with the vertices'
//! [`features`].
#![forbid(unsafe_code)]

pub mod build;
pub mod components;
pub mod edges;
pub mod features;
pub mod generate;
pub mod lines;
mod npy;
pub mod numbering;
pub mod source;

pub use numbering::Names;
pub use source::{EdgeBatch, EdgeSource, Endpoints, SizeHint};
