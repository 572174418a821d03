//! Propagation blocking (Beamer, Asanović and Patterson, IPDPS 2017) of the sparse tiles of directed
//! graphs.
//!
//! The arcs of such a tile read values that lie far apart: each brings a cache line from memory for
//! four bytes of it. Where their blocks are resident and memory is left over, a pass goes over them
//! in two steps instead. Column by column of tiles, whose values the cache then holds, the sum of
//! each row of each slice is written to a bin. Strip by strip these sums, which lie in that order, are
//! added to their rows. (Where edges are stored once a third step, for their other direction, costs
//! what the two gain.)

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tiergraph_core::Result;
use tiergraph_format::tiles::{STRIP_ROWS, TilesIndex};
use tiergraph_graph::Graph;
use tiergraph_kernels::{Kernel, Slice};
use tiergraph_mem::Reservation;

use super::sums::Sum;
use crate::edge_map::{Chunks, Strip, StripBuffer, Strips};
use crate::per_worker::PerWorker;

/// A sparse segment has less than one arc for so many columns.
const COLUMNS_PER_ARC: usize = 2;

/// The sparse segments of a graph, each with a bin.
pub(super) struct BlockedTiles<'a> {
    graph: &'a Graph,
    kernel: Kernel,
    /// The bins, column by column of tiles.
    columns: Vec<Vec<Mutex<Bin>>>,
    /// The indices of the same bins, strip by strip.
    strips: Vec<Vec<BinIndex>>,
    /// For each block, whether its sparse segments have bins.
    blocks: Vec<bool>,
    _memory: Reservation,
}

/// Where a bin is: the index of its column of tiles, and its own in that column.
#[derive(Clone, Copy)]
struct BinIndex {
    column: usize,
    bin: usize,
}

/// The bin of a segment: a sum for each row of each of its slices.
struct Bin {
    entry: TilesIndex,
    /// The row of each sum, counted from the strip's first.
    rows: Vec<u16>,
    sums: Vec<f32>,
}

impl<'a> BlockedTiles<'a> {
    /// Bins for the sparse segments that are resident now; `None` where nothing is sparse or memory is
    /// short.
    ///
    /// # Errors
    /// A damaged segment.
    pub(super) fn new(graph: &'a Graph, kernel: Kernel) -> Result<Option<Self>> {
        // Asked once a block: all of its sparse segments get bins, or none.
        let of_blocks = graph.tiles().segments().chunk_by(|a, b| a.block == b.block);
        let resident = of_blocks.filter(|of_block| graph.tiles().is_resident(&of_block[0]));
        let sparse = resident.flatten().filter(|entry| is_sparse(&kernel, entry));
        let mut here: Vec<TilesIndex> = sparse.copied().collect();
        // Every arc may be a row of its own.
        let most: u64 = here.iter().map(|e| u64::from(e.arcs)).sum();
        let bytes = most * Bin::BYTES_PER_ROW;
        if here.is_empty() || bytes > graph.memory().spare_bytes() {
            return Ok(None);
        }
        let mut memory = graph.memory().reserve(bytes, "the sums of sparse tiles")?;
        let mut blocks = vec![false; 1 + here[here.len() - 1].block as usize];
        here.iter().for_each(|e| blocks[e.block as usize] = true);
        here.sort_by_key(|e| e.column_tile);
        let columns = here.chunk_by(|a, b| a.column_tile == b.column_tile);
        let made = graph.thread_pool().share(columns, |_, columns| {
            let of_column = |column: &[TilesIndex]| {
                column.iter().map(|entry| Bin::new(graph, &kernel, entry)).collect()
            };
            columns.map(of_column).collect::<Result<Option<Vec<Vec<_>>>>>()
        })?;
        let made: Result<Option<Vec<_>>> = made.into_iter().collect();
        let Some(made) = made? else { return Ok(None) };
        let columns: Vec<Vec<Bin>> = made.into_iter().flatten().collect();
        let rows: usize = columns.iter().flatten().map(|bin| bin.rows.len()).sum();
        memory.shrink_to(rows as u64 * Bin::BYTES_PER_ROW);
        let strips = strips(&columns);
        let of_column = |column: Vec<Bin>| column.into_iter().map(Mutex::new).collect();
        let columns = columns.into_iter().map(of_column).collect();
        Ok(Some(Self { graph, kernel, columns, strips, blocks, _memory: memory }))
    }

    /// Whether the sums of a segment are put in a bin.
    pub(super) fn has(&self, entry: &TilesIndex) -> bool {
        let is_blocked = self.blocks.get(entry.block as usize).is_some_and(|&blocked| blocked);
        is_blocked && is_sparse(&self.kernel, entry)
    }

    /// Writes the sums of `x` over the rows' columns to the bins; false if a block is not resident any
    /// more.
    ///
    /// # Errors
    /// The run was cancelled, a damaged segment.
    pub(super) fn fill(&self, x: &[f32]) -> Result<bool> {
        let filled = self.share(self.columns.len(), |_, columns| {
            for bin in columns.flat_map(|column| &self.columns[column]) {
                self.graph.cancel().check("finish the pass")?;
                if !lock(bin).fill(self.graph, &self.kernel, x)? {
                    return Ok(false);
                }
            }
            Ok(true)
        })?;
        filled.into_iter().try_fold(true, |all, one| Ok(all && one?))
    }

    /// Adds the sums in the bins, which are some of `sums`, to their rows in `y`; `strips` are the workers' buffers.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub(super) fn add_to(
        &self,
        sums: &Sum<'_>,
        strips: &PerWorker<Strips<StripBuffer<f64>>>,
        y: &Chunks<f64>,
    ) -> Result<()> {
        self.share(self.strips.len(), |worker, numbers| {
            let mut strips = strips.of(worker);
            let strip = strips.one();
            for &BinIndex { column, bin } in numbers.flat_map(|number| &self.strips[number]) {
                let bin = lock(&self.columns[column][bin]);
                let (first, rows) = (bin.entry.row_base as usize, bin.entry.rows as usize);
                strip.move_to(sums, first, rows, y);
                bin.add_to(&mut strip.values);
            }
            strip.flush(sums, y);
        })?;
        Ok(())
    }

    /// Calls `work` on all threads, with the worker's number and its part of the numbers below `len`.
    fn share<R: Send>(
        &self,
        len: usize,
        work: impl Fn(usize, &mut dyn Iterator<Item = usize>) -> R + Sync,
    ) -> Result<Vec<R>> {
        self.graph.thread_pool().share(0..len, |worker, items| {
            let since = Instant::now();
            let worked = work(worker, items);
            self.graph.totals().computed(since);
            self.graph.trace().span("compute", "sparse tiles", worker as u32, since);
            worked
        })
    }
}

impl Bin {
    const BYTES_PER_ROW: u64 = (size_of::<u16>() + size_of::<f32>()) as u64;

    /// The bin of a segment; `None` if that is not resident any more.
    fn new(graph: &Graph, kernel: &Kernel, entry: &TilesIndex) -> Result<Option<Self>> {
        let mut rows = Vec::with_capacity(entry.arcs as usize);
        let of_slice = |slice: &Slice<'_>| {
            let used = &slice.rows[..usize::from(slice.active[0])];
            rows.extend(used.iter().map(|&row| row as u16));
        };
        let read =
            graph.tiles().resident_segment(entry, |segment| kernel.for_each(segment, of_slice));
        rows.shrink_to_fit();
        let sums = vec![0.0; rows.len()];
        Ok(read.transpose()?.map(|()| Self { entry: *entry, rows, sums }))
    }

    fn fill(&mut self, graph: &Graph, kernel: &Kernel, x: &[f32]) -> Result<bool> {
        let summed = graph.tiles().resident_segment(&self.entry, |segment| {
            let x = &x[segment.column_base as usize..][..kernel.options().columns()];
            kernel.sum_slice_rows(segment, x, &mut self.sums)
        });
        Ok(summed.transpose()?.is_some())
    }

    fn add_to(&self, y: &mut [f64]) {
        // As many rows as there can be, so that none needs a check.
        let Some(y) = y.first_chunk_mut::<STRIP_ROWS>() else { return };
        for (&row, &sum) in self.rows.iter().zip(&self.sums) {
            y[usize::from(row)] += f64::from(sum);
        }
    }
}

fn is_sparse(kernel: &Kernel, entry: &TilesIndex) -> bool {
    (entry.arcs as usize) < kernel.options().columns() / COLUMNS_PER_ARC
}

/// The indices of the bins of each strip.
fn strips(columns: &[Vec<Bin>]) -> Vec<Vec<BinIndex>> {
    let mut all = Vec::new();
    for (column, bins) in columns.iter().enumerate() {
        all.extend((0..bins.len()).map(|bin| BinIndex { column, bin }));
    }
    let strip = |at: &BinIndex| columns[at.column][at.bin].entry.row_base;
    all.sort_by_key(strip);
    all.chunk_by(|a, b| strip(a) == strip(b)).map(<[_]>::to_vec).collect()
}

/// Locks a bin, also one of a worker that panicked: its run has ended, and nobody reads its sums.
fn lock(bin: &Mutex<Bin>) -> MutexGuard<'_, Bin> {
    bin.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tiergraph_core::{Cancel, Silent};
    use tiergraph_format::tiles::Segment;
    use tiergraph_graph::{NextPass, OpenOptions};
    use tiergraph_ingest::build::{BuildOptions, Direction, build};
    use tiergraph_ingest::source::memory::{ArraySource, MemorySpec};
    use tiergraph_ingest::{EdgeBatch, Endpoints};

    use super::*;

    const VERTICES: u32 = 5000;

    /// 20 of 25 tiles are sparse: those of columns from 1024 on.
    fn edges() -> Vec<(u32, u32)> {
        let dense = (0..60_000u32).map(|i| (i * 7 % 1024, i * 13 % VERTICES));
        let few = (0..3_000u32).map(|i| (1024 + i * 31 % (VERTICES - 1024), i * 17 % VERTICES));
        dense.chain(few).collect()
    }

    fn built(path: &std::path::Path) {
        let (src, dst) = edges().into_iter().map(|(s, d)| (u64::from(s), u64::from(d))).unzip();
        let batch = EdgeBatch { ends: Endpoints::U64 { src, dst }, weights: None };
        let spec = MemorySpec { name: "a test".into(), ..MemorySpec::default() };
        let options = BuildOptions {
            direction: Direction::Directed,
            columns_log2: Some(10),
            threads: 1,
            ..BuildOptions::default()
        };
        let mut source = ArraySource::new(spec, vec![batch]).unwrap();
        build(&mut source, path, &options, &Silent, &Cancel::default()).unwrap();
    }

    /// Goes over everything, so that it becomes resident.
    fn read_all(graph: &Graph) {
        let all = graph.tiles().select(|_| true);
        graph
            .tiles()
            .pass((&all, NextPass::Unknown), |_| (), |(), _, _| Ok(()), |()| Ok(()))
            .unwrap();
    }

    #[test]
    fn sums_in_bins_are_those_of_the_sparse_segments_arcs() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("g.tg");
        built(&path);
        let options = OpenOptions { threads: Some(2), ..OpenOptions::default() };
        let graph = Graph::open(&path, &options).unwrap();
        graph.memory().plan_residency();
        let kernel = graph.tiles().kernel().unwrap();
        assert!(BlockedTiles::new(&graph, kernel).unwrap().is_none(), "nothing is resident yet");
        read_all(&graph);
        let blocked = BlockedTiles::new(&graph, kernel).unwrap().unwrap();
        let x: Vec<f32> = (0..1 << 17).map(|i| (i % 97) as f32).collect();
        assert!(blocked.fill(&x).unwrap());
        let y = Chunks::zeroed(VERTICES as usize, 1, 10).unwrap();
        let strips = Strips::each(2, StripBuffer::batch(2, STRIP_ROWS, 0.0).unwrap());
        blocked.add_to(&Sum { x: &x }, &strips, &y).unwrap();
        let sparse: Vec<_> = graph.tiles().segments().iter().filter(|e| blocked.has(e)).collect();
        assert!(!sparse.is_empty() && sparse.len() < graph.tiles().segments().len());
        // Small integers, so that the order of additions does not matter.
        let mut expected = vec![0.0; VERTICES as usize + STRIP_ROWS];
        for entry in sparse {
            let sum = |segment: &Segment<'_>| {
                let y = &mut expected[segment.row_base as usize..];
                kernel.sum_rows(segment, &x[segment.column_base as usize..], y)
            };
            graph.tiles().resident_segment(entry, sum).unwrap().unwrap();
        }
        let y = y.into_values();
        assert!((0..VERTICES as usize).all(|v| y.of(v)[0] == expected[v]));
    }
}
