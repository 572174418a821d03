//! From buckets to `*.rows` and to `*.blocks` of codec `raw`: each vertex with its neighbours.

use std::ops::Range;
use std::sync::Arc;

use tiergraph_core::Result;
use tiergraph_format::raw::RawWriter;
use tiergraph_format::rows::{PackedRows, RowsWriter};
use tiergraph_format::sink::FileSink;

use super::load::{Cell, PART_WORDS, Split, parts_of};
use super::sort::Encode;
use super::sorted::{Sorted, repeats};
use super::turns::Prepare;
use crate::build::array::Array;
use crate::build::partition::family::{Family, RowOf};
use crate::build::partition::records::bits_below;

/// The most entries of a table from rows to parts, as a power of two, unless that makes parts of too
/// many rows.
const TABLE_LOG2: u32 = 16;

/// The encoder of neighbour lists: sorted arcs of a bucket to `*.rows` or raw blocks.
pub(crate) struct ListsEncode<'a> {
    family: Arc<Family>,
    raw: bool,
    /// The number of arcs of each row, before duplicates are removed or after.
    arcs_of: &'a (dyn Fn(usize) -> u64 + Sync),
    /// Whether `arcs_of` counts the arcs in the buckets: no duplicates are removed.
    exact: bool,
    /// Memory of lists that were written, to be used again.
    spare: PackedRows,
}

/// Encoded lists of some rows, ready to be written.
pub(crate) struct ReadyLists {
    lists: Lists,
    pub(crate) counts: ArcCounts,
}

/// Counts of the arcs in lists.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ArcCounts {
    pub(crate) arcs: u64,
    /// Self-loops among them; counted where edges have no direction.
    pub(crate) loops: u64,
    /// Arcs that are equal to another, counted where edges have no direction and duplicates are kept.
    pub(crate) repeats: u64,
}

impl ArcCounts {
    fn add(&mut self, more: Self) {
        self.arcs += more.arcs;
        self.loops += more.loops;
        self.repeats += more.repeats;
    }
}

enum Lists {
    Rows(PackedRows),
    Raw(RawLists),
}

/// Neighbour lists as plain ids, one after the other.
#[derive(Default)]
struct RawLists {
    /// Each row, and where its list ends in `neighbors`.
    rows: Vec<(u32, usize)>,
    neighbors: Vec<u32>,
    weights: Vec<f64>,
}

/// The writer of the file that lists go to.
pub(crate) enum ListsWriter {
    Rows(RowsWriter<FileSink>),
    Raw(RawWriter<FileSink>),
}

/// The file that lists go to, and the counts of what is written.
pub(crate) struct ListsSink {
    pub(crate) writer: ListsWriter,
    /// The number of arcs of each row; counted where duplicates are removed.
    pub(crate) degrees: Option<Array<u32>>,
    pub(crate) counts: ArcCounts,
    /// Neighbours as plain ids of 8 bytes.
    neighbors: Vec<u64>,
}

/// The parts of a bucket, each also a cell: rows with about as many arcs, or one row with more.
pub(crate) struct RowSplit {
    column_bits: u32,
    row_shift: u32,
    /// The part of each 2^`row_shift` rows.
    part_of: Vec<u32>,
    /// The least key of each part.
    bases: Vec<u64>,
    cells: Vec<Cell>,
    /// The number of arcs in each part by the degrees; empty where these leave duplicates out.
    arcs: Vec<u32>,
}

impl Split for RowSplit {
    #[inline(always)]
    fn split(&self, key: u64) -> (u32, u32) {
        let part = self.part_of[(key >> self.column_bits >> self.row_shift) as usize];
        (part, (key - self.bases[part as usize]) as u32)
    }

    fn cells(&self) -> &[Cell] {
        &self.cells
    }

    fn arcs(&self) -> Option<&[u32]> {
        (!self.arcs.is_empty()).then_some(&self.arcs[..])
    }
}

impl RowSplit {
    /// Divides `rows` rows into parts.
    fn new(rows: u32, column_bits: u32, arcs_of: impl Fn(u32) -> u64) -> Self {
        // A row and a column of a part are 32 bits.
        let most_log2 = u32::BITS - column_bits;
        let row_shift = bits_below(rows.into()).saturating_sub(TABLE_LOG2).min(most_log2);
        let mut split = Self {
            column_bits,
            row_shift,
            part_of: Vec::new(),
            bases: Vec::new(),
            cells: Vec::new(),
            arcs: Vec::new(),
        };
        let (mut first, mut arcs) = (0, 0);
        for begin in (0..rows).step_by(1 << row_shift) {
            let end = rows.min(begin + (1 << row_shift));
            let more: u64 = (begin..end).map(&arcs_of).sum();
            let fits = arcs + more <= PART_WORDS && u64::from(end - first) <= 1 << most_log2;
            if split.bases.is_empty() || !fits {
                split.bases.push(u64::from(begin) << column_bits);
                split.cells.push(Cell { parts_end: split.bases.len() as u32, bits: 0 });
                split.arcs.push(0);
                (first, arcs) = (begin, 0);
            }
            arcs += more;
            if let Some(all) = split.arcs.last_mut() {
                *all = arcs as u32;
            }
            split.part_of.push(split.bases.len() as u32 - 1);
            if let Some(cell) = split.cells.last_mut() {
                cell.bits = column_bits + bits_below((end - first).into());
            }
        }
        split
    }
}

impl<'a> ListsEncode<'a> {
    pub(crate) fn new(
        family: Arc<Family>,
        raw: bool,
        arcs_of: &'a (dyn Fn(usize) -> u64 + Sync),
        exact: bool,
    ) -> Self {
        Self { family, raw, arcs_of, exact, spare: PackedRows::default() }
    }
}

impl Encode for ListsEncode<'_> {
    type Split = RowSplit;

    fn split(&self, bucket: usize) -> RowSplit {
        let rows = &self.family.buckets[bucket].rows;
        let arcs_of = |row: u32| (self.arcs_of)((rows.start + row) as usize);
        let mut split = RowSplit::new(rows.end - rows.start, self.family.column_bits, arcs_of);
        if !self.exact {
            split.arcs.clear();
        }
        split
    }

    fn prepare(
        &mut self,
        bucket: usize,
        split: &RowSplit,
        wanted: &Range<usize>,
        sorted: &Sorted,
    ) -> Result<ReadyLists> {
        let first_row = self.family.buckets[bucket].rows.start;
        let mut lists = match self.raw {
            true => Lists::Raw(RawLists::of(sorted.len())),
            false => Lists::Rows(std::mem::take(&mut self.spare)),
        };
        let (mut loops, mask) = (0, ((1u64 << split.column_bits) - 1) as u32);
        let row_of = |word: u32| (u64::from(word) >> split.column_bits) as u32;
        for (part, cell) in parts_of(&split.cells, wanted).enumerate().map(|(i, p)| (i, p as usize))
        {
            let first_row = first_row + (split.bases[cell] >> split.column_bits) as u32;
            let (words, mut at) = (sorted.words(sorted.part(part)), sorted.part(part).start);
            for run in words.chunk_by(|&a, &b| row_of(a) == row_of(b)) {
                let row = first_row + row_of(run[0]);
                if self.family.row_of == RowOf::Both {
                    let first = run.partition_point(|&word| word & mask < row);
                    loops += run[first..].iter().take_while(|&&word| word & mask == row).count();
                }
                match &mut lists {
                    Lists::Rows(packed) => packed.push(row.into(), run, mask)?,
                    Lists::Raw(raw) => {
                        raw.push(row, run, mask, sorted.weights(at..at + run.len()));
                    }
                }
                at += run.len();
            }
        }
        let counted = self.exact && self.family.row_of == RowOf::Both;
        let repeats = if counted { sorted.repeats() } else { 0 };
        let counts = ArcCounts { arcs: sorted.len() as u64, loops: loops as u64, repeats };
        Ok(ReadyLists { lists, counts })
    }
}

impl Prepare for ListsEncode<'_> {
    type Ready = ReadyLists;
    type Sink = ListsSink;

    fn write(&mut self, sink: &mut ListsSink, ready: ReadyLists) -> Result<()> {
        self.spare = sink.put(ready)?.unwrap_or_default();
        Ok(())
    }
}

impl ReadyLists {
    /// No lists yet, which use the memory of `spare`.
    pub(crate) fn of(spare: PackedRows) -> Self {
        Self { lists: Lists::Rows(spare), counts: ArcCounts::default() }
    }

    /// Packs the neighbours of a vertex, which ascend; `counts_repeats` says whether those that are equal to
    /// another are counted.
    pub(crate) fn push(
        &mut self,
        vertex: u32,
        neighbors: &[u32],
        counts_repeats: bool,
    ) -> Result<()> {
        let Lists::Rows(packed) = &mut self.lists else { return Ok(()) };
        self.counts.arcs += neighbors.len() as u64;
        if counts_repeats {
            self.counts.repeats += repeats(neighbors);
        }
        packed.push(vertex.into(), neighbors, u32::MAX)
    }

    /// Bytes that packed lists take in memory.
    pub(crate) fn resident_bytes(&self) -> u64 {
        match &self.lists {
            Lists::Rows(packed) => packed.resident_bytes(),
            Lists::Raw(_) => 0,
        }
    }
}

impl Lists {
    fn for_each_length(&self, mut visit: impl FnMut(u64, u64)) {
        match self {
            Self::Rows(packed) => packed.lengths().for_each(|(row, arcs)| visit(row, arcs)),
            Self::Raw(raw) => {
                let mut begin = 0;
                for &(row, end) in &raw.rows {
                    visit(row.into(), (end - begin) as u64);
                    begin = end;
                }
            }
        }
    }
}

impl RawLists {
    /// Empty lists with room for `neighbors` neighbours: while lists grow, they take twice the memory.
    fn of(neighbors: usize) -> Self {
        Self { neighbors: Vec::with_capacity(neighbors), ..Self::default() }
    }

    fn push(&mut self, row: u32, words: &[u32], mask: u32, weights: &[f64]) {
        self.neighbors.extend(words.iter().map(|word| word & mask));
        self.weights.extend_from_slice(weights);
        self.rows.push((row, self.neighbors.len()));
    }

    fn write(&self, writer: &mut RawWriter<FileSink>, wide: &mut Vec<u64>) -> Result<()> {
        let mut begin = 0;
        for &(row, end) in &self.rows {
            wide.clear();
            wide.extend(self.neighbors[begin..end].iter().map(|&n| u64::from(n)));
            writer.push(row.into(), wide, self.weights.get(begin..end))?;
            begin = end;
        }
        Ok(())
    }
}

impl ListsSink {
    pub(crate) fn new(writer: ListsWriter, degrees: Option<Array<u32>>) -> Self {
        Self { writer, degrees, counts: ArcCounts::default(), neighbors: Vec::new() }
    }

    /// Writes lists, which come in the order of vertices; gives packed ones' memory back.
    pub(crate) fn put(&mut self, ready: ReadyLists) -> Result<Option<PackedRows>> {
        self.counts.add(ready.counts);
        if let Some(degrees) = &mut self.degrees {
            ready.lists.for_each_length(|row, arcs| degrees[row as usize] = arcs as u32);
        }
        match (&mut self.writer, ready.lists) {
            (ListsWriter::Rows(writer), Lists::Rows(mut packed)) => {
                writer.push_packed(&packed)?;
                packed.clear();
                Ok(Some(packed))
            }
            (ListsWriter::Raw(writer), Lists::Raw(raw)) => {
                raw.write(writer, &mut self.neighbors).map(|()| None)
            }
            // What prepares lists makes what its sink's writer takes.
            _ => Ok(None),
        }
    }
}
