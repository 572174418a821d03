//! One view of arcs, whatever the layout they come from.

use tiergraph_core::Result;
use tiergraph_format::raw::WeightSlice;
use tiergraph_graph::{Direction, Graph, TileSelection};
use tiergraph_kernels::Slice;

/// Arcs that are in memory now: column → row (source → destination).
pub(crate) enum Arcs<'a> {
    /// A slice of a tile.
    Tile { row_base: u32, column_base: u32, slice: &'a Slice<'a> },
    /// A vertex's in-neighbours.
    Row { row: u32, columns: &'a [u32], weights: WeightSlice<'a> },
}

impl Arcs<'_> {
    /// Calls `visit(row, column, weight)` for each arc; weights are 1 in a graph without.
    #[inline(always)]
    pub(crate) fn for_each(&self, mut visit: impl FnMut(u32, u32, f64)) {
        match self {
            Self::Tile { row_base, column_base, slice } => {
                let mut at = 0;
                for (step, &active) in slice.columns.iter().zip(slice.active) {
                    let lanes = usize::from(active);
                    for (lane, (&row, &column)) in
                        slice.rows[..lanes].iter().zip(&step[..lanes]).enumerate()
                    {
                        visit(row_base + row, column_base + column, slice.weight(at + lane));
                    }
                    at += lanes;
                }
            }
            Self::Row { row, columns, weights } => {
                for (i, &column) in columns.iter().enumerate() {
                    let weight = match weights {
                        WeightSlice::None => 1.0,
                        WeightSlice::F32(w) => f64::from(w[i]),
                        WeightSlice::F64(w) => w[i],
                    };
                    visit(*row, column, weight);
                }
            }
        }
    }
}

/// Whether an undirected edge comes once, so that a visitor must look at it both ways.
pub(crate) fn stored_once(graph: &Graph) -> bool {
    graph.manifest().tiles.is_some_and(|t| t.stored_once)
}

/// Hands every arc of the selected tiles, or of the raw blocks, to `visit`.
pub(crate) fn for_each_arc<W>(
    graph: &Graph,
    selection: &TileSelection,
    begin: impl Fn(usize) -> W + Sync,
    visit: impl Fn(&mut W, &Arcs<'_>) + Sync,
    end: impl Fn(W) -> Result<()> + Sync,
) -> Result<()> {
    let Some(kernel) = graph.kernel() else {
        let one = |w: &mut W, row: &tiergraph_graph::RawRow<'_>| {
            let (columns, weights) = (row.neighbors, row.weights);
            visit(w, &Arcs::Row { row: row.vertex as u32, columns, weights });
            Ok(())
        };
        return graph.raw_pass(Direction::In, begin, one, end);
    };
    let one = |w: &mut W, _: &_, segment: &tiergraph_format::tiles::Segment<'_>| {
        let (row_base, column_base) = (segment.row_base as u32, segment.column_base as u32);
        kernel.for_each(segment, |slice| visit(w, &Arcs::Tile { row_base, column_base, slice }))
    };
    graph.tile_pass(selection, begin, one, end)
}
