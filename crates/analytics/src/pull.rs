//! `y += A x`, float32 values summed in float64: the pass of PageRank.

use tiergraph_core::Result;
use tiergraph_format::tiles::STRIP_ROWS;
use tiergraph_graph::{Direction, Graph, NextPass, TileSelection};
use tiergraph_kernels::{Kernel, RowState, SymmetricState, sum_lists};
use tiergraph_mem::Array;

use crate::propagation_blocking::BlockedTiles;
use crate::state::{Chunks, PerWorker, Scratch, StripBuffer};

/// The length of a vector of `vertices` values that tiles read: every tile and strip that begins in it
/// also ends in it.
pub(crate) fn padded(graph: &Graph, vertices: usize) -> usize {
    let columns = graph.tiles().kernel().map_or(1, |k| k.options().columns());
    vertices.next_multiple_of(columns.max(STRIP_ROWS)) + STRIP_ROWS
}

/// The binary logarithm of the number of vertices whose sums share a lock: the columns of a tile.
pub(crate) fn chunk_log2(graph: &Graph) -> u32 {
    graph.tiles().kernel().map_or(16, |k| k.options().columns_log2)
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
        y: &Chunks<f64>,
        strips: &PerWorker<StripBuffer<f64>>,
    ) -> Result<()> {
        match self {
            Self::Blocked(tiles) => tiles.add_to(y, strips)?,
            Self::Undecided if next == NextPass::Same => {
                *self = BlockedTiles::new(graph, *kernel)?.map_or(Self::WithAll, Self::Blocked);
            }
            Self::Undecided | Self::WithAll => (),
        }
        Ok(())
    }
}

/// The pass `y += A x` over a graph, with its workers' buffers.
pub(crate) struct PullSum<'a> {
    graph: &'a Graph,
    way: Way<'a>,
}

/// The way in which the arcs of a graph are summed.
enum Way<'a> {
    /// Lists of plain ids.
    Raw(PerWorker<StripBuffer<f64>>),
    /// Tiles of directed arcs.
    Rows(Kernel, PerWorker<StripBuffer<f64>>, Sparse<'a>),
    /// Tiles of undirected edges that are stored once.
    Both(Kernel, PerWorker<SymmetricStrip>),
}

impl<'a> PullSum<'a> {
    /// Bytes of memory that [`PullSum::new`] allocates.
    pub(crate) fn bytes(graph: &Graph) -> u64 {
        let once = graph.tiles().kernel().filter(|_| !graph.manifest().directed);
        let columns = once.map_or(0, |k| k.options().columns());
        (graph.thread_pool().size() * (STRIP_ROWS + columns) * size_of::<f64>()) as u64
    }

    /// # Errors
    /// The system has no memory for the workers' strips.
    pub(crate) fn new(graph: &'a Graph) -> Result<Self> {
        let (workers, sums) =
            (graph.thread_pool().size(), |workers| StripBuffer::each(workers, 1, 0f64));
        let way = match graph.tiles().kernel() {
            None => Way::Raw(sums(workers)?),
            Some(kernel) if graph.manifest().directed => {
                Way::Rows(kernel, sums(workers)?, Sparse::Undecided)
            }
            Some(kernel) => {
                Way::Both(kernel, SymmetricStrip::each(workers, kernel.options().columns())?)
            }
        };
        Ok(Self { graph, way })
    }

    /// Adds `x` of every in-neighbour (every neighbour, if undirected) to each vertex's `y`.
    ///
    /// `x` is [`padded`], `y` has chunks of [`chunk_log2`]. Bytes: the pass file's, less what is
    /// resident. The order of additions, and so the last bits, depends on the order of
    /// completions.
    pub(crate) fn pass(&mut self, next: NextPass, x: &[f32], y: &Chunks<f64>) -> Result<()> {
        let graph = self.graph;
        match &mut self.way {
            Way::Raw(strips) => raw(graph, strips, next, x, y),
            Way::Rows(kernel, strips, sparse) => rows(graph, kernel, strips, sparse, next, x, y),
            Way::Both(kernel, strips) => both(graph, kernel, strips, next, x, y),
        }
    }
}

fn rows<'a>(
    graph: &'a Graph,
    kernel: &Kernel,
    strips: &PerWorker<StripBuffer<f64>>,
    sparse: &mut Sparse<'a>,
    next: NextPass,
    x: &[f32],
    y: &Chunks<f64>,
) -> Result<()> {
    let selection = sparse.begin(graph, x)?;
    let columns = kernel.options().columns();
    graph.tiles().pass(
        &selection,
        next,
        |worker| strips.of(worker),
        |strip, _, segment| {
            strip.move_to(segment.row_base as usize, segment.rows as usize, y, add);
            let x = &x[segment.column_base as usize..][..columns];
            kernel.sum_rows(segment, x, &mut strip.values)
        },
        |mut strip| {
            strip.flush(y, add);
            Ok(())
        },
    )?;
    sparse.end(graph, kernel, next, y, strips)
}

fn both(
    graph: &Graph,
    kernel: &Kernel,
    strips: &PerWorker<SymmetricStrip>,
    next: NextPass,
    x: &[f32],
    y: &Chunks<f64>,
) -> Result<()> {
    let columns = kernel.options().columns();
    graph.tiles().pass(
        &graph.tiles().select(|_| true),
        next,
        |worker| strips.of(worker),
        |strip, _, segment| {
            strip.move_to(segment.row_base as usize, segment.rows as usize, x, y);
            let column = segment.column_base as usize;
            let x_columns = &x[column..column + columns];
            let SymmetricStrip { rows, columns: scratch, .. } = &mut **strip;
            let scratch = Scratch { values: scratch, identity: 0.0 };
            y.visit(column / columns, segment.len, scratch, add, |y_columns| {
                kernel.sum_both(segment, &mut SymmetricState { x_columns, y_columns, rows })
            })
        },
        |mut strip| {
            strip.merge(y);
            Ok(())
        },
    )
}

fn raw(
    graph: &Graph,
    strips: &PerWorker<StripBuffer<f64>>,
    next: NextPass,
    x: &[f32],
    y: &Chunks<f64>,
) -> Result<()> {
    graph.raw(Direction::In).lists_pass(
        next,
        |worker| strips.of(worker),
        |strip, lists| {
            sum_lists(x, lists.ids, lists.table, |vertex, sum| {
                let vertex = lists.first_vertex as usize + vertex as usize;
                let first = vertex / STRIP_ROWS * STRIP_ROWS;
                strip.move_to(first, vertex - first + 1, y, add);
                strip.values[vertex - first] += sum;
            });
            Ok(())
        },
        |mut strip| {
            strip.flush(y, add);
            Ok(())
        },
    )
}

fn add(to: &mut f64, value: f64) {
    *to += value;
}

/// One worker's values and sums of the rows of the strip that it is at.
struct SymmetricStrip {
    first: usize,
    len: usize,
    rows: Array<RowState>,
    /// Scratch for the sums of a tile's columns.
    columns: Array<f64>,
}

impl SymmetricStrip {
    /// A strip for each of `workers`, over tiles of so many `columns`.
    ///
    /// # Errors
    /// The system has no such amount of memory.
    fn each(workers: usize, columns: usize) -> Result<PerWorker<Self>> {
        let rows = Array::batch(workers, STRIP_ROWS)?.into_iter();
        let columns = Array::batch(workers, columns)?.into_iter();
        let make = |(rows, columns)| Self { first: 0, len: 0, rows, columns };
        Ok(PerWorker::new(rows.zip(columns).map(make)))
    }

    /// Makes this the strip of `len` rows from `first`, merging the sums of the last one.
    fn move_to(&mut self, first: usize, len: usize, x: &[f32], y: &Chunks<f64>) {
        if (self.first, self.len) == (first, len) {
            return;
        }
        self.merge(y);
        (self.first, self.len) = (first, len);
        let now = x[first..first + len].iter().map(|&x| RowState { x, y: 0.0 });
        self.rows.iter_mut().zip(now).for_each(|(row, now)| *row = now);
        // Slices are padded with rows that the strip does not have.
        self.rows[len..].fill(RowState::default());
    }

    /// Merges the sums and forgets the strip: the next pass has other values.
    fn merge(&mut self, y: &Chunks<f64>) {
        let sums = self.rows[..self.len].iter().map(|row| f64::from(row.y));
        y.merge(self.first, sums, add);
        self.len = 0;
    }
}
