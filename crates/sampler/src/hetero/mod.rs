//! Mini-batches of graphs with types of nodes and edges.
//!
//! A batch has nodes of every type and edges of every type. A hop expands, edge type by edge type in
//! the graph's order, the nodes of the destination's type that the hop before found, and enters the
//! neighbours among the nodes of the source's type. That is PyG's contract for `HeteroData`.
//!
//! Everything is made of the pieces that graphs of one type use: a [`Topology`](crate::Topology) an
//! edge type, a [`RowStore`](crate::RowStore) a node type, the steps of a hop, look-ups on pages for
//! a window, and the threads of an [`Epoch`](crate::Epoch).

mod batch;
mod fit;
mod hotness;
mod loader;
mod options;
mod prepare;
mod sampler;
mod shared;

pub use batch::{HeteroBatch, SampledEdges, SampledNodes};
pub use loader::{HeteroKept, HeteroLoader};
pub use options::HeteroOptions;
pub use prepare::HeteroPrepared;
pub use sampler::HeteroSampler;
pub use shared::HeteroShared;
