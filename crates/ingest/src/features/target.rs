//! The graph that features, labels and splits are written to.

use tiergraph_format::features::Destination;
use tiergraph_mem::Budget;

use super::place::OrderFile;

/// A graph to write features, labels or splits to.
pub(crate) struct Target<'a> {
    pub(crate) to: &'a mut dyn Destination,
    pub(crate) vertices: u64,
    pub(crate) block_bytes: u32,
    pub(crate) order: Option<OrderFile>,
    pub(crate) budget: &'a Budget,
}
