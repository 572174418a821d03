//! Passes over arcs, one at a time: which blocks are read, in which direction values go, and how they are put together.
//!
//! [`edge_map`] runs a [`Program`] whose values any worker may change in place (a distance that falls, a tree that is
//! joined); [`reduce()`] makes new values of all that come along arcs (sums of ranks). A GPU's programs
//! (`gpu/kernels/programs`) have the same verbs. [`for_each_arc`] is below the former, for what needs an arc's two ends
//! and nothing else.

mod active;
mod arcs;
mod chunks;
mod program;
mod reduce;
mod strip;

use tiergraph_format::tiles::STRIP_ROWS;
use tiergraph_graph::Graph;

pub(crate) use active::ActiveTiles;
pub(crate) use arcs::{Arcs, for_each_arc, is_within, no_vertices, stored_once};
pub(crate) use chunks::Chunks;
pub(crate) use program::{Program, edge_map};
pub(crate) use reduce::{Buffers, Ends, Placed, Reduction, move_to_row, reduce, reduce_lists};
pub(crate) use strip::{RowBytes, Strip, StripBuffer, Strips};

/// The length of a vector of `vertices` values that tiles read: every tile and strip that begins in it
/// also ends in it.
pub(crate) fn padded(graph: &Graph, vertices: usize) -> usize {
    let columns = graph.tiles().kernel().map_or(1, |k| k.options().columns());
    vertices.next_multiple_of(columns.max(STRIP_ROWS)) + STRIP_ROWS
}

/// The binary logarithm of the number of vertices whose values share a lock, or a flag: the columns of a tile.
pub(crate) fn chunk_log2(graph: &Graph) -> u32 {
    graph.tiles().kernel().map_or(16, |k| k.options().columns_log2)
}
