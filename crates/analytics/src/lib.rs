//! Algorithms as passes over the blocks of a graph: vertex state in memory, arcs from storage.
//!
//! Each algorithm has a file. It takes an opened [`tiergraph_graph::Graph`], reserves its state from
//! the graph's memory, leaves the rest to resident blocks, and returns its result in the user's order
//! of vertices with a [`RunReport`]. Definitions are those of LDBC Graphalytics where it has one.
#![forbid(unsafe_code)]

mod active;
mod adjacency;
mod arcs;
mod betweenness;
mod bfs;
mod closeness;
mod communities;
mod components;
mod cores;
pub mod edges;
pub mod gpu;
mod greedy;
mod label_propagation;
mod mutual;
mod pagerank;
mod propagate;
mod propagation_blocking;
mod pull;
pub mod registry;
mod report;
mod row_map;
mod sizes;
mod source;
mod sssp;
mod state;
mod strong;
mod triangles;
mod walks;

pub use betweenness::betweenness;
pub use bfs::{UNREACHED, bfs};
pub use closeness::{Closeness, harmonic};
pub use communities::{Communities, Found as FoundCommunities, Method, Objective, communities};
pub use components::wcc;
pub use cores::core_numbers;
pub use greedy::{coloring, independent_set};
pub use label_propagation::label_propagation;
pub use mutual::{Mutual, mutual};
pub use pagerank::{PageRank, pagerank, pagerank_memory};
pub use propagate::{Propagate, Reduce, Value, propagate, propagate_bytes};
pub use report::{Iteration, RunReport};
pub use sizes::ComponentSizes;
pub use sssp::sssp;
pub use strong::scc;
pub use triangles::{Triangles, clustering, triangles};
pub use walks::{Walks, walks};
