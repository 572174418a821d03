//! Sampling: choosing the edges of a batch's nodes.
//!
//! A hop has three steps: [`choose`] arcs by their numbers, resolve them to neighbours, [`relabel`]
//! the neighbours as places in the batch. `window` takes a hop of several batches together, so that
//! they share the pages that they read; `paged` does so with weights and times.

pub mod batch;
pub mod choose;
pub(crate) mod paged;
pub mod permutation;
pub mod philox;
pub mod relabel;
pub(crate) mod retained;
pub mod sampler;
pub(crate) mod steps;
pub(crate) mod table;
pub(crate) mod weighted;
pub mod window;
