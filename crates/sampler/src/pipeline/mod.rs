//! The pipeline: threads prepare windows of batches ahead, one caller takes the batches in order.
//!
//! A [`loader::Loader`] makes [`epoch::Epoch`]s of the seeds that a [`cut::Cut`] gives a rank. The
//! `queue` hands windows to threads and batches to the caller; `prepare` samples, reserves and
//! gathers one window.

pub mod cut;
pub mod epoch;
pub mod loader;
pub mod order;
mod prepare;
pub(crate) mod queue;
pub mod reorder;
pub(crate) mod scratch;
pub(crate) mod shared;
pub mod stats;
pub mod types;
