//! `y += A x`, float32 values summed in float64: the pass of PageRank.

use tiergraph_core::Result;
use tiergraph_format::tiles::{STRIP_ROWS, Segment};
use tiergraph_graph::{Direction, Graph, NextPass, TileSelection};
use tiergraph_kernels::{Kernel, SymmetricState, SymmetricStrip, sum_lists};

use super::propagation_blocking::BlockedTiles;
use crate::edge_map::{
    Buffers, Chunks, Ends, Placed, Reduction, RowBytes, Strip, StripBuffer, Strips, move_to_row,
    reduce,
};
use crate::per_worker::PerWorker;

/// The sum of what comes along arcs; `x` is what goes along them.
pub(super) struct Sum<'a> {
    pub(super) x: &'a [f32],
}

impl Reduction for Sum<'_> {
    type Value = f64;

    fn identity(&self) -> f64 {
        0.0
    }

    #[inline(always)]
    fn merge(&self, to: &mut f64, value: f64) {
        *to += value;
    }
}

impl Sum<'_> {
    /// The values of the columns of a segment's tile.
    fn columns(&self, kernel: &Kernel, segment: &Segment<'_>) -> &[f32] {
        &self.x[segment.column_base as usize..][..kernel.options().columns()]
    }
}

/// The way in which the sparse tiles of a directed graph are summed.
enum Sparse<'a> {
    /// Like all others, until it is known which blocks stay.
    Undecided,
    /// By propagation blocking.
    Blocked(BlockedTiles<'a>),
    /// Like all others.
    WithAll,
}

impl<'a> Sparse<'a> {
    /// Begins a pass; returns the segments that it goes over, which are those without a bin.
    fn begin(&mut self, graph: &Graph, x: &[f32]) -> Result<TileSelection> {
        if let Self::Blocked(tiles) = self
            && !tiles.fill(x)?
        {
            *self = Self::WithAll;
        }
        Ok(match self {
            Self::Blocked(tiles) => graph.tiles().select(|entry| !tiles.has(entry)),
            Self::Undecided | Self::WithAll => graph.tiles().select(|_| true),
        })
    }

    /// Ends a pass: adds what is in bins, or makes bins for the passes to come.
    fn end(
        &mut self,
        graph: &'a Graph,
        kernel: &Kernel,
        next: NextPass,
        sums: &Sum<'_>,
        strips: &PerWorker<Strips<StripBuffer<f64>>>,
        y: &Chunks<f64>,
    ) -> Result<()> {
        match self {
            Self::Blocked(tiles) => tiles.add_to(sums, strips, y)?,
            Self::Undecided if next == NextPass::Same => {
                *self = BlockedTiles::new(graph, *kernel)?.map_or(Self::WithAll, Self::Blocked);
            }
            Self::Undecided | Self::WithAll => (),
        }
        Ok(())
    }
}

/// The pass `y += A x` over a graph, with its workers' buffers.
pub(super) struct PullSum<'a> {
    graph: &'a Graph,
    way: Way<'a>,
}

/// The way in which the arcs of a graph are summed.
enum Way<'a> {
    /// Lists of plain ids.
    Raw(Buffers<StripBuffer<f64>, f64>),
    /// Tiles of directed arcs.
    Rows(Kernel, Buffers<StripBuffer<f64>, f64>, Sparse<'a>),
    /// Tiles of undirected edges that are stored once.
    Both(Kernel, Buffers<StripOnce, f64>),
}

impl<'a> PullSum<'a> {
    /// Bytes of memory that [`PullSum::new`] allocates.
    pub(super) fn bytes(graph: &Graph) -> u64 {
        let ends = Ends::of(graph, false);
        match graph.tiles().kernel() {
            Some(_) if !graph.manifest().directed => {
                Buffers::<StripOnce, f64>::bytes(graph, ends, 1)
            }
            _ => Buffers::<StripBuffer<f64>, f64>::bytes(graph, ends, 1),
        }
    }

    /// # Errors
    /// The system has no memory for the workers' strips.
    pub(super) fn new(graph: &'a Graph) -> Result<Self> {
        let ends = Ends::of(graph, false);
        let rows =
            || Buffers::new(graph, ends, 1, |count| StripBuffer::batch(count, STRIP_ROWS, 0f64));
        let way = match graph.tiles().kernel() {
            None => Way::Raw(rows()?),
            Some(kernel) if graph.manifest().directed => {
                Way::Rows(kernel, rows()?, Sparse::Undecided)
            }
            Some(kernel) => Way::Both(kernel, Buffers::new(graph, ends, 1, StripOnce::batch)?),
        };
        Ok(Self { graph, way })
    }

    /// Adds `x` of every in-neighbour (every neighbour, if undirected) to each vertex's `y`.
    ///
    /// `x` is [`padded`](crate::edge_map::padded). Bytes: the pass file's, less what is resident.
    pub(super) fn pass(&mut self, next: NextPass, x: &[f32], y: &Chunks<f64>) -> Result<()> {
        let graph = self.graph;
        match &mut self.way {
            Way::Raw(buffers) => lists(graph, next, &Sum { x }, buffers, y),
            Way::Rows(kernel, buffers, sparse) => {
                let (sums, selection) = (Sum { x }, sparse.begin(graph, x)?);
                let rows = |placed: &Placed<'_>, strips: &mut [StripBuffer<f64>], _: &mut [f64]| {
                    placed.iter().try_for_each(|&(segment, strip)| {
                        let x = sums.columns(kernel, segment);
                        kernel.sum_rows(segment, x, &mut strips[strip].values)
                    })
                };
                reduce(graph, kernel, (&selection, next), &sums, rows, buffers, y)?;
                sparse.end(graph, kernel, next, &sums, &buffers.strips, y)
            }
            Way::Both(kernel, buffers) => {
                let (sums, all) = (Sum { x }, graph.tiles().select(|_| true));
                let both = |placed: &Placed<'_>, strips: &mut [StripOnce], y: &mut [f64]| {
                    let Some(&(first, _)) = placed.first() else { return Ok(()) };
                    placed.iter().for_each(|&(_, strip)| strips[strip].segments += 1);
                    let x_columns = sums.columns(kernel, first);
                    let state = SymmetricState { x_columns, y_columns: y, strips };
                    kernel.sum_both(placed.iter().copied(), state)
                };
                reduce(graph, kernel, (&all, next), &sums, both, buffers, y)
            }
        }
    }
}

fn lists(
    graph: &Graph,
    next: NextPass,
    sums: &Sum<'_>,
    buffers: &Buffers<StripBuffer<f64>, f64>,
    y: &Chunks<f64>,
) -> Result<()> {
    graph.raw(Direction::In).lists_pass(
        next,
        |worker| buffers.strips.of(worker),
        |strips, lists| {
            let strip = strips.one();
            sum_lists(sums.x, lists.ids, lists.table, |vertex, sum| {
                let vertex = lists.first_vertex as usize + vertex as usize;
                let row = move_to_row(strip, sums, vertex, y);
                strip.values[row] += sum;
            });
            Ok(())
        },
        |mut strips| {
            strips.flush(sums, y);
            Ok(())
        },
    )
}

/// A worker's buffer of a strip whose edges are stored once.
struct StripOnce {
    first: usize,
    rows: usize,
    /// The segments that were summed since its sums were 0.
    segments: usize,
    sums: SymmetricStrip,
}

/// Sums are merged at the latest after so many segments, each of which adds to a row in float32 a few times: until
/// then they are off by 2^-24 of themselves a time at most.
const MOST_SEGMENTS: usize = 2048;

impl StripOnce {
    /// So many buffers.
    ///
    /// # Errors
    /// The system has no such amount of memory.
    fn batch(count: usize) -> Result<Vec<Self>> {
        let make = |sums| Self { first: 0, rows: 0, segments: 0, sums };
        Ok(SymmetricStrip::batch(count)?.into_iter().map(make).collect())
    }
}

impl AsMut<SymmetricStrip> for StripOnce {
    fn as_mut(&mut self) -> &mut SymmetricStrip {
        &mut self.sums
    }
}

impl RowBytes for StripOnce {
    fn row_bytes(_: usize) -> usize {
        SymmetricStrip::ROW_BYTES
    }
}

impl Strip<Sum<'_>> for StripOnce {
    fn is_at(&self, first: usize) -> bool {
        self.rows > 0 && self.first == first && self.segments < MOST_SEGMENTS
    }

    fn move_to(&mut self, sums: &Sum<'_>, first: usize, rows: usize, y: &Chunks<f64>) {
        self.flush(sums, y);
        (self.first, self.rows, self.segments) = (first, rows, 0);
        self.sums.begin(&sums.x[first..first + rows]);
    }

    /// Forgets the strip, too: the next pass has other values.
    fn flush(&mut self, sums: &Sum<'_>, y: &Chunks<f64>) {
        let of_rows = self.sums.sums(self.rows);
        y.merge(self.first, of_rows, |to, value| sums.merge(to, value));
        self.rows = 0;
    }
}
