//! `y += A x`, float32 values summed in float64: the pass that PageRank is made of.

use tiergraph_core::Result;
use tiergraph_format::tiles::STRIP_ROWS;
use tiergraph_graph::{Direction, Graph, TileSelection};
use tiergraph_kernels::{Kernel, RowState, SymmetricState, sum_of};

use crate::state::{Chunks, StripBuffer};

/// Length of a vector that tiles read: every tile and strip that begins in it ends in it.
pub(crate) fn padded(graph: &Graph, vertices: usize) -> usize {
    let columns = graph.kernel().map_or(1, |k| k.options().columns());
    vertices.next_multiple_of(columns.max(STRIP_ROWS)) + STRIP_ROWS
}

/// The chunks that sums are locked by: a tile's columns.
pub(crate) fn chunk_log2(graph: &Graph) -> u32 {
    graph.kernel().map_or(16, |k| k.options().columns_log2)
}

/// Adds `x` of every in-neighbour (every neighbour, if undirected) to each vertex's `y`.
///
/// `x` is [`padded`], `y` has chunks of [`chunk_log2`]. Bytes: the pass file's, less what is
/// resident. The order of additions, and so the last bits, depends on the order of completions.
pub(crate) fn pull_sum(
    graph: &Graph,
    selection: &TileSelection,
    x: &[f32],
    y: &Chunks<f64>,
) -> Result<()> {
    match graph.kernel() {
        Some(kernel) => tiles(graph, selection, &kernel, x, y),
        None => raw(graph, x, y),
    }
}

fn add(to: &mut f64, value: f64) {
    *to += value;
}

fn tiles(
    graph: &Graph,
    selection: &TileSelection,
    kernel: &Kernel,
    x: &[f32],
    y: &Chunks<f64>,
) -> Result<()> {
    let columns = kernel.options().columns();
    if graph.manifest().directed {
        return graph.tile_pass(
            selection,
            |_| StripBuffer::new(1, 0f64),
            |strip, _, segment| {
                strip.move_to(segment.row_base as usize, segment.rows as usize, y, add);
                let x = &x[segment.column_base as usize..][..columns];
                kernel.sum_rows(segment, x, &mut strip.values)
            },
            |mut strip| {
                strip.flush(y, add);
                Ok(())
            },
        );
    }
    graph.tile_pass(
        selection,
        |_| SymmetricStrip::default(),
        |strip, _, segment| {
            strip.move_to(segment.row_base as usize, segment.rows as usize, x, y);
            let column = segment.column_base as usize;
            let mut y_columns = y.lock(column / columns);
            let (x_columns, y_columns) = (&x[column..column + columns], &mut y_columns[..]);
            let rows = &mut strip.rows[..];
            kernel.sum_both(segment, &mut SymmetricState { x_columns, y_columns, rows })
        },
        |strip| {
            strip.merge(y);
            Ok(())
        },
    )
}

/// One worker's values and sums of the rows of the strip that it is at.
#[derive(Default)]
struct SymmetricStrip {
    first: usize,
    len: usize,
    rows: Vec<RowState>,
}

impl SymmetricStrip {
    /// Makes this the strip of `len` rows from `first`, merging the sums of the last one.
    fn move_to(&mut self, first: usize, len: usize, x: &[f32], y: &Chunks<f64>) {
        if (self.first, self.len) == (first, len) {
            return;
        }
        self.merge(y);
        (self.first, self.len) = (first, len);
        self.rows.clear();
        self.rows.extend(x[first..first + len].iter().map(|&x| RowState { x, y: 0.0 }));
        self.rows.resize(STRIP_ROWS, RowState::default());
    }

    fn merge(&self, y: &Chunks<f64>) {
        let sums = self.rows[..self.len].iter().map(|row| f64::from(row.y));
        y.merge(self.first, sums, add);
    }
}

fn raw(graph: &Graph, x: &[f32], y: &Chunks<f64>) -> Result<()> {
    graph.raw_pass(
        Direction::In,
        |_| StripBuffer::new(1, 0f64),
        |strip, row| {
            let vertex = row.vertex as usize;
            let first = vertex / STRIP_ROWS * STRIP_ROWS;
            strip.move_to(first, vertex - first + 1, y, add);
            strip.values[vertex - first] += sum_of(x, row.neighbors, row.upcoming);
            Ok(())
        },
        |mut strip| {
            strip.flush(y, add);
            Ok(())
        },
    )
}
