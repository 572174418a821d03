//! Passes that reduce: `y[v] ⊕= …` over the arcs at v, for values that no processor adds to in one step.
//!
//! Workers reduce to buffers of their own and merge those into all values, by a [`Reduction`]: PageRank's sum, or
//! `propagate`'s sum, minimum or maximum. What is done with a segment's arcs is a function, which has kernels of
//! its own for the former.

use bytemuck::Zeroable;
use tiergraph_core::Result;
use tiergraph_format::tiles::{STRIP_ROWS, Segment};
use tiergraph_graph::{Direction, Graph, NextPass, RawRow, TileSelection};
use tiergraph_kernels::Kernel;
use tiergraph_mem::{Array, Reservation};

use super::chunks::{Chunks, LONG_BYTES, Scratch};
use super::strip::{RowBytes, Strip, Strips};
use crate::per_worker::PerWorker;

/// How values are reduced.
pub(crate) trait Reduction: Sync {
    /// The type of what is reduced.
    type Value: Copy + Zeroable + Send + Sync;

    /// How many values each vertex has.
    fn width(&self) -> usize {
        1
    }

    /// What `merge` leaves as it is.
    fn identity(&self) -> Self::Value;

    /// `to ⊕= value`.
    fn merge(&self, to: &mut Self::Value, value: Self::Value);
}

/// The ends of a tile's arcs that a pass reduces to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    rows: bool,
    columns: bool,
    /// How many vertices there are, where no buffer has to be longer.
    vertices: usize,
}

impl Ends {
    /// Those to which arcs lead; or, `transposed`, from which they come. Undirected edges have both.
    pub(crate) fn of(graph: &Graph, transposed: bool) -> Self {
        let directed = graph.manifest().directed;
        let (rows, columns) = (!(directed && transposed), !directed || transposed);
        Self { rows, columns, vertices: usize::MAX }
    }

    /// These ends, of passes that need no room for rows and columns that are no vertices of `graph`.
    pub(crate) fn of_vertices(self, graph: &Graph) -> Self {
        Self { vertices: graph.vertices(), ..self }
    }

    /// Rows that a worker's buffer of a strip has.
    pub(crate) fn strip_rows(self) -> usize {
        STRIP_ROWS.min(self.vertices)
    }

    /// Columns that a worker has scratch for.
    fn scratch_columns(self, graph: &Graph) -> usize {
        let kernel = graph.tiles().kernel().filter(|_| self.columns);
        kernel.map_or(0, |kernel| kernel.options().columns().min(self.vertices))
    }
}

/// Bytes of the buffers of strips that all workers together go over at a time: what the last cache has room for.
const STRIPS_BYTES: usize = 32 << 20;
/// The most strips that a worker goes over at a time.
const MOST_STRIPS: usize = 16;

/// What the workers of passes reduce in; it stays from pass to pass.
pub(crate) struct Buffers<S, T> {
    ends: Ends,
    pub(crate) strips: PerWorker<Strips<S>>,
    /// Scratch for the values of a tile's columns.
    columns: PerWorker<Array<T>>,
    /// Strips that a worker goes over at a time.
    at_once: usize,
    /// The memory of all but one strip a worker.
    _reserved: Option<Reservation>,
}

/// Reserves the memory of the strips that workers go over at a time beside one each, whose buffers take `of_one` bytes:
/// as many as fit the last cache, where workers hold blocks of several. Returns how many each has.
fn reserve_strips(graph: &Graph, of_one: usize) -> Result<(usize, Option<Reservation>)> {
    let workers = graph.thread_pool().size();
    let all = STRIPS_BYTES / (workers * of_one).max(1);
    let most = match graph.memory().blocks_to_hold() {
        0 => 0,
        _ => all.min(MOST_STRIPS).saturating_sub(1),
    };
    let bytes = (workers * of_one) as u64;
    let (more, reserved) = graph.memory().reserve_a_share(bytes, most, "strips of workers")?;
    Ok((1 + more, reserved))
}

impl<S: RowBytes, T: Copy + Zeroable> Buffers<S, T> {
    /// Bytes of memory that they take at least.
    pub(crate) fn bytes(graph: &Graph, ends: Ends, width: usize) -> u64 {
        let columns = ends.scratch_columns(graph) * width * size_of::<T>();
        let of_worker = ends.strip_rows() * S::row_bytes(width) + columns;
        (graph.thread_pool().size() * of_worker) as u64
    }

    /// Buffers of workers for values of `width`; `strips` makes as many buffers of strips as it is asked for. Those of
    /// more strips than one a worker are reserved here.
    ///
    /// # Errors
    /// The system has no such amount of memory.
    pub(crate) fn new(
        graph: &Graph,
        ends: Ends,
        width: usize,
        strips: impl FnOnce(usize) -> Result<Vec<S>>,
    ) -> Result<Self> {
        let workers = graph.thread_pool().size();
        let (at_once, reserved) = reserve_strips(graph, ends.strip_rows() * S::row_bytes(width))?;
        let strips = Strips::each(workers, strips(workers * at_once)?);
        let columns = Array::batch(workers, ends.scratch_columns(graph) * width)?;
        Ok(Self {
            ends,
            strips,
            columns: PerWorker::new(columns.into_iter()),
            at_once,
            _reserved: reserved,
        })
    }
}

/// Segments of the same columns, each with the index of the buffer of its strip.
pub(crate) type Placed<'a> = [(&'a Segment<'a>, usize)];

/// Reduces the arcs of the selected tiles to `y`, whose chunks are as wide as a tile. `of_segments` reduces those of
/// some segments of the same columns to the rows of their strips, to these columns, or to both: to the [`Ends`] that
/// `buffers` are for.
///
/// The order of reductions, and so the last bits of sums, depends on the order of completions.
pub(crate) fn reduce<R: Reduction, S: Strip<R>>(
    graph: &Graph,
    kernel: &Kernel,
    (selection, next): (&TileSelection, NextPass),
    reduction: &R,
    of_segments: impl Fn(&Placed<'_>, &mut [S], &mut [R::Value]) -> Result<()> + Sync,
    buffers: &Buffers<S, R::Value>,
    y: &Chunks<R::Value>,
) -> Result<()> {
    let ends = buffers.ends;
    let bytes = |of: &Placed<'_>| of.iter().map(|(segment, _)| segment.len).sum::<usize>();
    let of_part = |part: &Placed<'_>, strips: &mut Strips<S>, columns: &mut [R::Value]| {
        let Some((first, _)) = part.first() else { return Ok(()) };
        if !ends.columns {
            return of_segments(part, strips.all(), &mut []);
        }
        let chunk = first.column_base as usize >> kernel.options().columns_log2;
        let scratch = Scratch { values: columns, identity: reduction.identity() };
        let merge = |to: &mut R::Value, value| reduction.merge(to, value);
        y.visit(chunk, bytes(part), scratch, merge, |columns| {
            of_segments(part, strips.all(), columns)
        })
    };
    graph.tiles().pass_by_tile(
        (selection, next),
        buffers.at_once,
        |worker| (buffers.strips.of(worker), buffers.columns.of(worker)),
        |(strips, columns), run| {
            // No chunk is locked while a strip moves, which locks others.
            let mut together = Vec::with_capacity(run.len());
            for (_, segment) in run {
                let first = segment.row_base as usize;
                let found = if ends.rows { strips.find(first) } else { Some(0) };
                if found.is_none() || bytes(&together) + segment.len > LONG_BYTES {
                    of_part(&together, strips, columns)?;
                    together.clear();
                }
                let strip = match found {
                    Some(strip) => strip,
                    None => strips.move_one(reduction, (first, segment.rows as usize), y),
                };
                together.push((segment, strip));
            }
            of_part(&together, strips, columns)
        },
        |(mut strips, _)| {
            strips.flush(reduction, y);
            Ok(())
        },
    )
}

/// Reduces the lists of raw blocks to `y`; `of_list` reduces one to the row at an index of a strip.
pub(crate) fn reduce_lists<R: Reduction, S: Strip<R>>(
    graph: &Graph,
    (direction, next): (Direction, NextPass),
    reduction: &R,
    of_list: impl Fn(&RawRow<'_>, &mut S, usize) + Sync,
    buffers: &Buffers<S, R::Value>,
    y: &Chunks<R::Value>,
) -> Result<()> {
    graph.raw(direction).pass(
        next,
        |worker| buffers.strips.of(worker),
        |strips, row| {
            let strip = strips.one();
            let at = move_to_row(strip, reduction, row.vertex as usize, y);
            of_list(row, strip, at);
            Ok(())
        },
        |mut strips| {
            strips.flush(reduction, y);
            Ok(())
        },
    )
}

/// Moves to the strip that has `vertex`, and returns its row there.
pub(crate) fn move_to_row<R: Reduction, S: Strip<R>>(
    strip: &mut S,
    reduction: &R,
    vertex: usize,
    y: &Chunks<R::Value>,
) -> usize {
    let first = vertex / STRIP_ROWS * STRIP_ROWS;
    strip.move_to(reduction, first, vertex - first + 1, y);
    vertex - first
}
