//! `y += A x`, float32 values summed in float64: the pass that PageRank is made of.

use tiergraph_core::Result;
use tiergraph_format::tiles::STRIP_ROWS;
use tiergraph_graph::{Direction, Graph, TileSelection};
use tiergraph_kernels::{Kernel, SymmetricState};

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
    let both = !graph.manifest().directed;
    let columns = kernel.options().columns();
    graph.tile_pass(
        selection,
        |_| StripBuffer::new(1, 0f64),
        |strip, _, segment| {
            let (row, column) = (segment.row_base as usize, segment.column_base as usize);
            strip.move_to(row, segment.rows as usize, y, add);
            let x_columns = &x[column..column + columns];
            if !both {
                return kernel.sum_rows(segment, x_columns, &mut strip.values);
            }
            let mut y_columns = y.lock(column / columns);
            let x_rows = &x[row..row + STRIP_ROWS];
            let (y_rows, y_columns) = (&mut strip.values[..], &mut y_columns[..]);
            kernel.sum_both(segment, &mut SymmetricState { x_columns, x_rows, y_rows, y_columns })
        },
        |mut strip| {
            strip.flush(y, add);
            Ok(())
        },
    )
}

fn raw(graph: &Graph, x: &[f32], y: &Chunks<f64>) -> Result<()> {
    graph.raw_pass(
        Direction::In,
        |_| StripBuffer::new(1, 0f64),
        |strip, row| {
            let vertex = row.vertex as usize;
            let first = vertex / STRIP_ROWS * STRIP_ROWS;
            strip.move_to(first, vertex - first + 1, y, add);
            strip.values[vertex - first] += sum(x, row.neighbors);
            Ok(())
        },
        |mut strip| {
            strip.flush(y, add);
            Ok(())
        },
    )
}

/// Four sums at a time, so that additions do not wait for one another.
fn sum(x: &[f32], neighbors: &[u32]) -> f64 {
    let (fours, rest) = neighbors.as_chunks::<4>();
    let mut sums = [0f64; 4];
    for four in fours {
        for (sum, &v) in sums.iter_mut().zip(four) {
            *sum += f64::from(x[v as usize]);
        }
    }
    let rest: f64 = rest.iter().map(|&v| f64::from(x[v as usize])).sum();
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}
