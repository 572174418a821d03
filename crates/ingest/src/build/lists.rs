//! From buckets to `*.rows` and to `*.blocks` of codec `raw`: each vertex with its neighbours.

use std::ops::Range;
use std::sync::Arc;

use tiergraph_core::Result;
use tiergraph_format::raw::RawWriter;
use tiergraph_format::rows::RowsWriter;
use tiergraph_format::sink::FileSink;

use super::array::Array;
use super::cell::{CellSorter, bits_below};
use super::family::Family;
use super::load::{Cells, Page};
use super::sort::Encode;

/// Sorts the arcs of some rows.
pub(super) struct ListsEncode<'a> {
    family: Arc<Family>,
    duplicates: bool,
    cell_arcs: u64,
    /// Arcs of each row before duplicates are removed.
    arcs_of: &'a (dyn Fn(usize) -> u64 + Sync),
    sorter: CellSorter,
    neighbors: Vec<u64>,
}

/// Sorted arcs of some rows: row from the first one on, and neighbour.
pub(super) struct ReadyLists {
    first_row: u64,
    keys: Vec<u64>,
    weights: Vec<f64>,
}

/// Which file lists are written to.
pub(super) enum ListsWriter {
    Rows(RowsWriter<FileSink>),
    Raw(RawWriter<FileSink>),
}

/// Where lists go.
pub(super) struct ListsSink {
    pub(super) writer: ListsWriter,
    /// Arcs of each row, counted where duplicates are removed.
    pub(super) degrees: Option<Array<u32>>,
    pub(super) arcs: u64,
    pub(super) loops: u64,
}

impl<'a> ListsEncode<'a> {
    pub(super) fn new(
        family: Arc<Family>,
        duplicates: bool,
        cell_arcs: u64,
        arcs_of: &'a (dyn Fn(usize) -> u64 + Sync),
    ) -> Self {
        let (sorter, neighbors) = (CellSorter::default(), Vec::new());
        Self { family, duplicates, cell_arcs, arcs_of, sorter, neighbors }
    }
}

impl Encode for ListsEncode<'_> {
    type Ready = ReadyLists;
    type Sink = ListsSink;

    fn cells(&self, bucket: usize) -> Cells {
        let rows = &self.family.buckets[bucket].rows;
        let arcs_of = |row: u32| (self.arcs_of)((rows.start + row) as usize);
        Cells::by_arcs(rows.end - rows.start, self.cell_arcs, arcs_of)
    }

    fn prepare(&mut self, bucket: usize, rows: Range<u32>, pages: &[Page]) -> Result<ReadyLists> {
        let column_bits = self.family.record.column_bits;
        self.sorter.gather(pages, u64::from(rows.start) << column_bits);
        self.sorter.sort(column_bits + bits_below(rows.len() as u64), self.duplicates);
        let first_row = u64::from(self.family.buckets[bucket].rows.start + rows.start);
        let keys = std::mem::take(&mut self.sorter.keys);
        let weights = std::mem::take(&mut self.sorter.weights);
        Ok(ReadyLists { first_row, keys, weights })
    }

    fn write(&mut self, sink: &mut ListsSink, ready: ReadyLists) -> Result<()> {
        let column_bits = self.family.record.column_bits;
        let column_mask = (1u64 << column_bits) - 1;
        let mut at = 0;
        for run in ready.keys.chunk_by(|a, b| a >> column_bits == b >> column_bits) {
            let row = ready.first_row + (run[0] >> column_bits);
            self.neighbors.clear();
            self.neighbors.extend(run.iter().map(|key| key & column_mask));
            let weights = ready.weights.get(at..at + run.len());
            at += run.len();
            sink.push(row, &self.neighbors, weights)?;
        }
        Ok(())
    }
}

impl ListsSink {
    pub(super) fn new(writer: ListsWriter, degrees: Option<Array<u32>>) -> Self {
        Self { writer, degrees, arcs: 0, loops: 0 }
    }

    fn push(&mut self, row: u64, neighbors: &[u64], weights: Option<&[f64]>) -> Result<()> {
        self.arcs += neighbors.len() as u64;
        let first = neighbors.partition_point(|&n| n < row);
        self.loops += neighbors[first..].iter().take_while(|&&n| n == row).count() as u64;
        if let Some(degrees) = &mut self.degrees {
            degrees[row as usize] = neighbors.len() as u32;
        }
        match &mut self.writer {
            ListsWriter::Rows(writer) => writer.push(row, neighbors),
            ListsWriter::Raw(writer) => {
                writer.push(row, neighbors, weights.filter(|w| !w.is_empty()))
            }
        }
    }
}
