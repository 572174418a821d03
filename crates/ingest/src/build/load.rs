//! From a bucket to sorted arcs in memory.
//!
//! A bucket's keys are distributed once, to parts that fit a core's first cache, and become 32-bit
//! words of what the part leaves open; each part is then sorted by radix. How keys are divided into
//! parts is the business of the file that they are for ([`Split`]), and so is how many arcs a part
//! has, if the degrees say so. Otherwise they are counted first, with all records in memory.

use std::ops::Range;

use tiergraph_core::{Cancel, Error, ErrorKind, Result};
use tiergraph_format::manifest::Weights;
use tiergraph_kernels::widest;

use super::family::ChunkReader;
use super::records::Records;
use super::sorted::Sorted;

/// Words of a part, about: they and the sort's scratch fit a first-level cache.
pub(super) const PART_WORDS: u64 = 1 << 13;

/// How the keys of a bucket are divided.
pub(super) trait Split: Sync {
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
pub(super) struct Cell {
    pub(super) parts_end: u32,
    /// Words of a part differ in so many of their lowest bits.
    pub(super) bits: u32,
}

/// The parts of some cells.
pub(super) fn parts_of(cells: &[Cell], range: &Range<usize>) -> Range<u32> {
    let end = |cells_before: usize| match cells_before {
        0 => 0,
        n => cells[n - 1].parts_end,
    };
    end(range.start)..end(range.end)
}

/// Loads buckets and keeps its memory for the next one. One a thread.
#[derive(Debug, Default)]
pub(super) struct Loader {
    /// Whether records' weights are wanted.
    weighted: bool,
    /// The most arcs that are expected, which there is room for at once.
    most: usize,
    /// Where each part will end.
    ends: Vec<u32>,
    sorted: Sorted,
}

impl Loader {
    pub(super) fn new(weighted: bool, most: u64) -> Self {
        Self { weighted, most: most as usize, ..Self::default() }
    }

    /// Reads the arcs of the cells `wanted` and sorts them by part, word and weight. Without
    /// `duplicates`, the first of equal ones is kept. Where neither `arcs` has the number of arcs of
    /// each part of the bucket nor the split knows it, all of the bucket is in memory meanwhile.
    pub(super) fn load<S: Split>(
        &mut self,
        reader: &ChunkReader,
        split: &S,
        (wanted, arcs): (&Range<usize>, Option<&[u32]>),
        duplicates: bool,
        cancel: &Cancel,
    ) -> Result<&Sorted> {
        let cells = &split.cells()[wanted.clone()];
        let parts = parts_of(split.cells(), wanted);
        self.sorted.weighted = self.weighted && reader.record().weights != Weights::None;
        if let Some(arcs) = arcs.or(split.arcs()) {
            self.make_room(&arcs[parts.start as usize..parts.end as usize])?;
            reader.for_each(|records| self.distribute(split, parts.start, records, cancel))?;
        } else {
            let mut arcs = vec![0; parts.len()];
            let held = reader.hold(|records| {
                widest(|| count_all(split, parts.start, records, &mut arcs));
                cancel.check("build the graph")
            })?;
            self.make_room(&arcs)?;
            held.for_each(|records| self.distribute(split, parts.start, records, cancel))?;
        }
        if self.sorted.ends != self.ends {
            return Err(changed());
        }
        self.sorted.sort(cells, parts.start);
        if !duplicates {
            self.sorted.dedup();
        }
        Ok(&self.sorted)
    }

    /// Makes room for parts of so many arcs, which are empty then.
    fn make_room(&mut self, arcs: &[u32]) -> Result<()> {
        let (mut sum, sorted) = (0, &mut self.sorted);
        sorted.ends.clear();
        self.ends.clear();
        for arcs in arcs {
            sorted.ends.push(sum);
            sum += arcs;
            self.ends.push(sum);
        }
        let room = self.most.max(sum as usize);
        sorted.words.make_room(room)?;
        if sorted.weighted { sorted.weights.make_room(room) } else { Ok(()) }
    }

    /// Puts the words of records, and weights, behind those that their parts have.
    fn distribute<S: Split>(
        &mut self,
        split: &S,
        first_part: u32,
        records: &Records<'_>,
        cancel: &Cancel,
    ) -> Result<()> {
        let Sorted { words, weights, ends, weighted, .. } = &mut self.sorted;
        match weighted {
            true => widest(|| put_all::<true, S>(split, first_part, records, words, weights, ends)),
            false => {
                widest(|| put_all::<false, S>(split, first_part, records, words, &mut [], ends))
            }
        }
        cancel.check("build the graph")
    }
}

/// Puts words, and weights, where their parts end, unless their part is not wanted.
///
/// A function of its own arguments, none of which can lie in another: what `split` has stays in
/// registers.
#[inline(always)]
fn put_all<const WEIGHTED: bool, S: Split>(
    split: &S,
    first_part: u32,
    records: &Records<'_>,
    words: &mut [u32],
    weights: &mut [f64],
    ends: &mut [u32],
) {
    records.for_each_key(|key, bytes| {
        let (part, word) = split.split(key);
        // A part before the wanted ones wraps around to a large number.
        let Some(end) = ends.get_mut(part.wrapping_sub(first_part) as usize) else { return };
        // There is no room for more arcs than were counted, which shows in the end.
        if let Some(to) = words.get_mut(*end as usize) {
            *to = word;
            if WEIGHTED {
                weights[*end as usize] = records.record.weight(bytes);
            }
        }
        *end += 1;
    });
}

/// Counts the arcs of each part from `first_part` on.
#[inline(always)]
fn count_all<S: Split>(split: &S, first_part: u32, records: &Records<'_>, arcs: &mut [u32]) {
    records.for_each_key(|key, _| {
        let part = split.split(key).0.wrapping_sub(first_part);
        if let Some(arcs) = arcs.get_mut(part as usize) {
            *arcs += 1;
        }
    });
}

/// Counts the arcs of each part of a bucket.
pub(super) fn count<S: Split>(
    reader: &ChunkReader,
    split: &S,
    cancel: &Cancel,
) -> Result<Vec<u32>> {
    let cells = split.cells();
    let mut arcs = vec![0; parts_of(cells, &(0..cells.len())).len()];
    reader.for_each(|records| {
        count_all(split, 0, records, &mut arcs);
        cancel.check("build the graph")
    })?;
    Ok(arcs)
}

/// The error of degrees that are not those of the arcs.
fn changed() -> Error {
    Error::new(ErrorKind::Input, "read the edges again")
        .expected("those of the first pass over the input")
        .got("others")
        .hint("do not write to the input while a graph is built from it")
}
