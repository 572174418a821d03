//! Synthetic graphs, streamed.
//!
//! Every edge is a function of the parameters, the seed and its own number, so the same seed gives
//! the same graph on any machine, at any number of threads and any size of batch, and a source can
//! start again without having stored anything.
//!
//! | model | an edge is |
//! |---|---|
//! | [`Rmat`] | a path down a quadtree (Graph500's Kronecker generator) |
//! | [`Uniform`] | two vertices drawn evenly: G(n, m) with repetition |
//! | [`BlockModel`] | two vertices of one community, with a given probability, or of two |
//!
//! Edges have no direction of their own: the build decides whether the graph is directed. They may
//! repeat.

pub mod hash;
mod model;
mod rmat;
mod sbm;
mod uniform;

pub use model::{Generated, GeneratorOptions, Model, WeightRange};
pub use rmat::Rmat;
pub use sbm::BlockModel;
pub use uniform::Uniform;
