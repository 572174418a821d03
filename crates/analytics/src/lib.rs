//! Algorithms as passes over the blocks of a graph: vertex state in memory, arcs from storage.
//!
//! Each algorithm has a file, over one of two primitives: `edge_map` sees one arc at a time, `row_map` all
//! neighbours of a vertex. It takes an opened [`tiergraph_graph::Graph`], reserves its state from
//! the graph's memory, leaves the rest to resident blocks, and returns its result in the user's order
//! of vertices with a [`RunReport`]. Definitions are those of LDBC Graphalytics where it has one.
#![forbid(unsafe_code)]

mod adjacency;
mod bfs;
mod bits;
mod checkpoint;
mod components;
mod edge_map;
pub mod edges;
pub mod gpu;
mod labels;
mod pagerank;
mod paths;
mod per_worker;
mod propagate;
pub mod registry;
mod report;
mod row_map;
mod sizes;
mod source;
mod sssp;
mod structure;

pub use bfs::{UNREACHED, bfs};
pub use checkpoint::{CheckpointReport, LoopCheckpoints};
pub use components::wcc;
pub use pagerank::{PageRank, pagerank, pagerank_memory};
pub use paths::{Closeness, Walks, betweenness, harmonic, walks};
pub use propagate::{Propagate, Reduce, Value, propagate, propagate_bytes};
pub use report::{Iteration, RunReport};
pub use sizes::ComponentSizes;
pub use sssp::sssp;
pub use structure::{
    Communities, FoundCommunities, InCommon, Method, Mutual, Objective, Triangles, Weighed,
    clustering, coloring, communities, core_numbers, in_common, independent_set, k_core,
    label_propagation, mutual, scc, triangles,
};
