//! From a bucket to sorted arcs in memory.
//!
//! A bucket's keys are distributed once, to parts that fit a core's first cache, and become 32-bit
//! words of what the part leaves open; each part is then sorted by radix. How keys are divided into
//! parts is the business of the file that they are for ([`Split`]).

use std::ops::Range;

use tiergraph_core::{Cancel, Error, ErrorKind, Result};
use tiergraph_format::manifest::Weights;

use super::runs::Runs;
use super::sorted::Sorted;
use crate::build::partition::family::ChunkReader;

/// Words of a part, about: they and the sort's scratch fit a first-level cache.
pub(crate) const PART_WORDS: u64 = 1 << 13;

/// How the keys of a bucket are divided.
pub(crate) trait Split: Sync {
    /// The part of a key, and what its arcs are sorted by in it.
    fn split(&self, key: u64) -> (u32, u32);

    /// Cells are consecutive parts that are encoded together.
    fn cells(&self) -> &[Cell];

    /// The arcs of each part, if they are known before any is read.
    fn arcs(&self) -> Option<&[u32]> {
        None
    }
}

/// Parts from the end of the cell before on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell {
    pub(crate) parts_end: u32,
    /// Words of a part differ in so many of their lowest bits.
    pub(crate) bits: u32,
}

/// The parts of some cells.
pub(crate) fn parts_of(cells: &[Cell], range: &Range<usize>) -> Range<u32> {
    let end = |cells_before: usize| match cells_before {
        0 => 0,
        n => cells[n - 1].parts_end,
    };
    end(range.start)..end(range.end)
}

/// Loads buckets and keeps its memory for the next one. One a thread.
#[derive(Debug, Default)]
pub(crate) struct Loader {
    /// Whether records' weights are wanted.
    weighted: bool,
    /// The most arcs that are expected, which there is room for at once.
    most: usize,
    runs: Runs,
    sorted: Sorted,
}

impl Loader {
    pub(crate) fn new(weighted: bool, most: u64) -> Self {
        Self { weighted, most: most as usize, ..Self::default() }
    }

    /// Reads the `arcs` arcs of the cells `wanted` and sorts them by part, word and weight. Without
    /// `duplicates`, the first of equal ones is kept.
    pub(crate) fn load<S: Split>(
        &mut self,
        reader: &ChunkReader,
        split: &S,
        wanted: &Range<usize>,
        arcs: u64,
        duplicates: bool,
        cancel: &Cancel,
    ) -> Result<&Sorted> {
        let cells = &split.cells()[wanted.clone()];
        let parts = parts_of(split.cells(), wanted);
        let weighted = self.weighted && reader.record().weights != Weights::None;
        let room = self.most.max(arcs as usize);
        self.sorted.make_room(room, weighted)?;
        self.runs.begin(parts.len(), arcs as usize, room, weighted)?;
        reader.for_each(|records| {
            self.runs.put(split, records, parts.start, weighted);
            cancel.check("build the graph")
        })?;
        self.sort(cells, parts.start);
        let found = (0..parts.len()).map(|part| self.sorted.part(part).len());
        if let Some(known) = split.arcs()
            && !found.eq(parts.map(|part| known[part as usize] as usize))
        {
            return Err(changed());
        }
        if !duplicates {
            self.sorted.dedup();
        }
        Ok(&self.sorted)
    }

    /// Brings the words of each part of `cells`, the first of which begins at part `first_part`,
    /// together, and sorts them while they are in a core's first cache.
    fn sort(&mut self, cells: &[Cell], first_part: u32) {
        self.sorted.ends.clear();
        for cell in cells {
            for part in self.sorted.ends.len()..(cell.parts_end - first_part) as usize {
                self.runs.copy(part, &mut self.sorted);
                self.sorted.sort(part, cell.bits);
            }
        }
    }
}

/// Counts the arcs of each cell of a bucket.
pub(crate) fn count<S: Split>(
    reader: &ChunkReader,
    split: &S,
    cancel: &Cancel,
) -> Result<Vec<u64>> {
    let cells = split.cells();
    let mut counts = vec![0u64; parts_of(cells, &(0..cells.len())).len()];
    reader.for_each(|records| {
        records.for_each_key(|key, _| counts[split.split(key).0 as usize] += 1);
        cancel.check("build the graph")
    })?;
    let of_cell = |cell: usize| {
        let parts = parts_of(cells, &(cell..cell + 1));
        counts[parts.start as usize..parts.end as usize].iter().sum()
    };
    Ok((0..cells.len()).map(of_cell).collect())
}

/// The error of degrees that are not those of the arcs.
fn changed() -> Error {
    Error::new(ErrorKind::Input, "read the edges again")
        .expected("those of the first pass over the input")
        .got("others")
        .hint("do not write to the input while a graph is built from it")
}
