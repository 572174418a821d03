//! From a bucket to sorted arcs in memory.
//!
//! A bucket's keys are distributed once, to parts that fit a core's first cache, and become 32-bit words
//! of the bits that the part leaves open; each part is then sorted by radix. The file that a bucket is
//! for decides how keys are divided into parts ([`Split`]).

use std::ops::Range;

use tiergraph_core::{Cancel, Error, ErrorKind, Result};
use tiergraph_format::manifest::Weights;

use super::runs::Runs;
use super::sorted::Sorted;
use crate::build::partition::family::ChunkReader;

/// Words of a part, about: they and the sort's scratch fit a first-level cache.
pub(crate) const PART_WORDS: u64 = 1 << 13;

/// A division of a bucket's keys into parts, and of parts into cells.
pub(crate) trait Split: Sync {
    /// The part of a key, and the word by which its arc is sorted within that part.
    fn split(&self, key: u64) -> (u32, u32);

    /// The cells: consecutive parts that are encoded together.
    fn cells(&self) -> &[Cell];

    /// The number of arcs in each part; `None` if it is not known before they are read.
    fn arcs(&self) -> Option<&[u32]> {
        None
    }
}

/// A cell: the parts from the end of the cell before it to `parts_end`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell {
    pub(crate) parts_end: u32,
    /// The number of lowest bits in which words of a part differ.
    pub(crate) bits: u32,
}

/// The range of parts in a range of cells.
pub(crate) fn parts_of(cells: &[Cell], range: &Range<usize>) -> Range<u32> {
    let end = |cells_before: usize| match cells_before {
        0 => 0,
        n => cells[n - 1].parts_end,
    };
    end(range.start)..end(range.end)
}

/// A loader of buckets, one for each thread, which keeps its memory for the next bucket.
#[derive(Debug, Default)]
pub(crate) struct Loader {
    /// Whether records' weights are wanted.
    weighted: bool,
    /// The number of arcs for which it makes room at once: the most that are expected.
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
        reader: ChunkReader,
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

    /// Gathers the words of each part of `cells`, whose first part is `first_part`, and sorts them while
    /// they are in a core's first cache.
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
pub(crate) fn count<S: Split>(reader: ChunkReader, split: &S, cancel: &Cancel) -> Result<Vec<u64>> {
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

/// The error of degrees that do not match the arcs: the input changed between passes.
pub(crate) fn changed() -> Error {
    Error::new(ErrorKind::Input, "read the edges again")
        .expected("those of the first pass over the input")
        .got("others")
        .hint("do not write to the input while a graph is built from it")
}
