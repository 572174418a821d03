//! Gathering: the feature rows and values of a batch, from memory and storage into its own memory.

pub mod edges;
pub(crate) mod fragments;
pub mod gather;
pub mod matrix;
