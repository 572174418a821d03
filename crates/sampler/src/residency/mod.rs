//! Residency: which neighbours, values and feature rows are in memory, and where the others are.
//!
//! A [`topology::Topology`] has the neighbours, a [`rows::RowStore`] the rows of a feature file, and
//! [`columns::Columns`] the values of arcs. [`hotness::Hotness`] counts what batches want;
//! `memory_plan` divides the memory among batches and what stays resident.

pub mod columns;
pub(crate) mod extent;
pub mod hotness;
mod load;
pub(crate) mod memory_plan;
pub(crate) mod needs;
pub mod neighbors;
pub mod offsets;
pub mod page_map;
pub(crate) mod room;
pub mod rows;
pub(crate) mod sizes;
pub mod topology;
pub(crate) mod unmet;
