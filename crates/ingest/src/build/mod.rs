//! Builds a graph on disk from an [`EdgeSource`](crate::EdgeSource).
