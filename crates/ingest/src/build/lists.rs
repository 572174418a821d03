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
use super::parts::{PartSorter, keys_of, part_bits};
use super::sort::Encode;

/// Sorts the arcs of some rows.
pub(super) struct ListsEncode<'a> {
    family: Arc<Family>,
    duplicates: bool,
    cell_arcs: u64,
    /// Arcs of each row before duplicates are removed.
    arcs_of: &'a (dyn Fn(usize) -> u64 + Sync),
    sorter: PartSorter,
    weighted_sorter: CellSorter,
    neighbors: Vec<u64>,
}

/// Sorted arcs of some rows.
pub(super) struct ReadyLists {
    first_row: u64,
    arcs: Sorted,
}

enum Sorted {
    /// Rows from the first one on and neighbours: parts of 2^`rows_log2` rows each.
    Plain { words: Vec<u32>, ends: Vec<u32>, rows_log2: u32 },
    /// Row from the first one on, and neighbour.
    Weighted { keys: Vec<u64>, weights: Vec<f64> },
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
        Self {
            family,
            duplicates,
            cell_arcs,
            arcs_of,
            sorter: PartSorter::default(),
            weighted_sorter: CellSorter::default(),
            neighbors: Vec::new(),
        }
    }

    fn plain(&mut self, rows: &Range<u32>, pages: &[Page]) -> Sorted {
        let column_bits = self.family.record.column_bits;
        let (base, row_bits) =
            (u64::from(rows.start) << column_bits, bits_below(rows.len() as u64));
        // Rows of a part: no more than leave 32 bits for a row and a column.
        let rows_log2 =
            row_bits.saturating_sub(part_bits(keys_of(pages))).min(u32::BITS - column_bits);
        let bits = column_bits + rows_log2;
        let mask = (1u64 << bits) - 1;
        let split = |key: u64| (((key - base) >> bits) as usize, ((key - base) & mask) as u32);
        self.sorter.sort(pages, rows.len().div_ceil(1 << rows_log2), bits, split);
        if !self.duplicates {
            self.sorter.dedup();
        }
        let (words, ends) = (&mut self.sorter.words, &mut self.sorter.ends);
        Sorted::Plain { words: std::mem::take(words), ends: std::mem::take(ends), rows_log2 }
    }

    fn weighted(&mut self, rows: &Range<u32>, pages: &[Page]) -> Sorted {
        let (column_bits, sorter) = (self.family.record.column_bits, &mut self.weighted_sorter);
        sorter.gather(pages, u64::from(rows.start) << column_bits);
        sorter.sort(column_bits + bits_below(rows.len() as u64), self.duplicates);
        let (keys, weights) = (&mut sorter.keys, &mut sorter.weights);
        Sorted::Weighted { keys: std::mem::take(keys), weights: std::mem::take(weights) }
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

    fn prepare(
        &mut self,
        bucket: usize,
        cells: &Cells,
        cell: usize,
        pages: &[Page],
    ) -> Result<ReadyLists> {
        let rows = cells.rows_of(cell);
        let first_row = u64::from(self.family.buckets[bucket].rows.start + rows.start);
        let weighted = pages.iter().any(|page| !page.weights.is_empty());
        let arcs = if weighted { self.weighted(&rows, pages) } else { self.plain(&rows, pages) };
        Ok(ReadyLists { first_row, arcs })
    }

    fn write(&mut self, sink: &mut ListsSink, ready: ReadyLists) -> Result<()> {
        let column_bits = self.family.record.column_bits;
        let (first_row, neighbors) = (ready.first_row, &mut self.neighbors);
        match ready.arcs {
            Sorted::Plain { words, ends, rows_log2 } => {
                let mut begin = 0;
                for (part, &end) in ends.iter().enumerate() {
                    let first_row = first_row + ((part as u64) << rows_log2);
                    let words = &words[begin as usize..end as usize];
                    sink.push_rows(words, first_row, column_bits, None, neighbors)?;
                    begin = end;
                }
                Ok(())
            }
            Sorted::Weighted { keys, weights } => {
                sink.push_rows(&keys, first_row, column_bits, Some(&weights), neighbors)
            }
        }
    }
}

impl ListsSink {
    pub(super) fn new(writer: ListsWriter, degrees: Option<Array<u32>>) -> Self {
        Self { writer, degrees, arcs: 0, loops: 0 }
    }

    /// Writes the rows of sorted keys: row from `first_row` on, then neighbour.
    fn push_rows<K: Copy + Into<u64>>(
        &mut self,
        keys: &[K],
        first_row: u64,
        column_bits: u32,
        weights: Option<&[f64]>,
        neighbors: &mut Vec<u64>,
    ) -> Result<()> {
        let column_mask = (1u64 << column_bits) - 1;
        let row = |key: &K| (*key).into() >> column_bits;
        let mut at = 0;
        for run in keys.chunk_by(|a, b| row(a) == row(b)) {
            neighbors.clear();
            neighbors.extend(run.iter().map(|&key| key.into() & column_mask));
            let weights = weights.and_then(|weights| weights.get(at..at + run.len()));
            at += run.len();
            self.push(first_row + row(&run[0]), neighbors, weights)?;
        }
        Ok(())
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
