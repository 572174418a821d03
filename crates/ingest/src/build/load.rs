//! From a bucket to sorted arcs in memory.
//!
//! A bucket's keys are distributed once, to parts that fit a core's first cache, and become 32-bit
//! words of what the part leaves open; each part is then sorted by radix. How keys are divided into
//! parts is the business of the file that they are for ([`Split`]), and so is how many arcs a part
//! has, if the degrees say so. Otherwise they are counted first, and words wait with their parts:
//! to divide keys twice takes longer.

use std::ops::Range;

use tiergraph_core::{Cancel, Error, ErrorKind, Result};
use tiergraph_format::manifest::Weights;
use tiergraph_kernels::widest;

use super::array::Array;
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
    /// Words that wait until all are counted, each below its part.
    waiting: Array<u64>,
    /// Their weights.
    weights: Array<f64>,
    /// Where each part will end.
    ends: Vec<u32>,
    sorted: Sorted,
}

impl Loader {
    pub(super) fn new(weighted: bool, most: u64) -> Self {
        Self { weighted, most: most as usize, ..Self::default() }
    }

    /// Reads the `arcs` arcs of the cells `wanted` and sorts them by part, word and weight. Without
    /// `duplicates`, the first of equal ones is kept.
    pub(super) fn load<S: Split>(
        &mut self,
        reader: &ChunkReader,
        split: &S,
        (wanted, arcs): (&Range<usize>, u64),
        duplicates: bool,
        cancel: &Cancel,
    ) -> Result<&Sorted> {
        let cells = &split.cells()[wanted.clone()];
        let parts = parts_of(split.cells(), wanted);
        let weighted = self.weighted && reader.record().weights != Weights::None;
        let room = self.most.max(arcs as usize);
        self.sorted.make_room(room, weighted)?;
        match split.arcs() {
            Some(arcs) => {
                self.begin(&arcs[parts.start as usize..parts.end as usize]);
                reader.for_each(|records| {
                    self.put(split, parts.start, records);
                    cancel.check("build the graph")
                })?;
            }
            None => {
                self.make_room(room, weighted)?;
                let (mut arcs, mut loaded) = (vec![0; parts.len()], 0);
                reader.for_each(|records| {
                    loaded = self.wait(split, parts.start, records, loaded, &mut arcs);
                    cancel.check("build the graph")
                })?;
                self.begin(&arcs);
                self.distribute(loaded);
            }
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

    fn make_room(&mut self, arcs: usize, weighted: bool) -> Result<()> {
        self.waiting.make_room(arcs)?;
        if weighted { self.weights.make_room(arcs) } else { Ok(()) }
    }

    /// Empties parts of so many arcs.
    fn begin(&mut self, arcs: &[u32]) {
        self.sorted.ends.clear();
        self.ends.clear();
        let mut sum = 0;
        for arcs in arcs {
            self.sorted.ends.push(sum);
            sum += arcs;
            self.ends.push(sum);
        }
    }

    /// Puts records behind those that their parts have.
    fn put<S: Split>(&mut self, split: &S, first_part: u32, records: &Records<'_>) {
        let Sorted { words, weights, ends, weighted, .. } = &mut self.sorted;
        let to = Target { words, weights, counts: ends };
        match weighted {
            true => widest(|| put_all::<true, S>(split, records, first_part, to)),
            false => widest(|| put_all::<false, S>(split, records, first_part, to)),
        }
    }

    /// Lets records wait behind the first `at`, and counts those of each part; how many wait then.
    fn wait<S: Split>(
        &mut self,
        split: &S,
        first_part: u32,
        records: &Records<'_>,
        at: usize,
        counts: &mut [u32],
    ) -> usize {
        let to = Target { words: &mut self.waiting[..], weights: &mut self.weights[..], counts };
        match self.sorted.weighted {
            true => widest(|| split_all::<true, S>(split, records, first_part, at, to)),
            false => widest(|| split_all::<false, S>(split, records, first_part, at, to)),
        }
    }

    /// Puts the first `loaded` words that wait, and weights, into the order of parts.
    fn distribute(&mut self, loaded: usize) {
        let sorted = &mut self.sorted;
        let (to, ends) = (&mut sorted.words[..], &mut sorted.ends[..]);
        let from = &self.waiting[..loaded];
        if !sorted.weighted {
            for word in from {
                let place = &mut ends[(word >> u32::BITS) as usize];
                to[*place as usize] = *word as u32;
                *place += 1;
            }
            return;
        }
        for (word, &weight) in from.iter().zip(&self.weights[..]) {
            let place = &mut ends[(word >> u32::BITS) as usize];
            (to[*place as usize], sorted.weights[*place as usize]) = (*word as u32, weight);
            *place += 1;
        }
    }
}

/// Where split keys go, and the counters of the parts.
struct Target<'a, W> {
    words: &'a mut [W],
    weights: &'a mut [f64],
    counts: &'a mut [u32],
}

/// Splits keys, of which those of parts from `first_part` on go behind the first `at`, and counts
/// those of each part; how many there are then.
///
/// A function of its own arguments, none of which can lie in another: what `split` has stays in
/// registers.
#[inline(always)]
fn split_all<const WEIGHTED: bool, S: Split>(
    split: &S,
    records: &Records<'_>,
    first_part: u32,
    mut at: usize,
    to: Target<'_, u64>,
) -> usize {
    let Target { words, weights, counts } = to;
    records.for_each_key(|key, bytes| {
        let (part, word) = split.split(key);
        // A part before the wanted ones wraps around to a large number.
        let part = part.wrapping_sub(first_part);
        let Some(count) = counts.get_mut(part as usize) else { return };
        *count += 1;
        words[at] = u64::from(part) << u32::BITS | u64::from(word);
        if WEIGHTED {
            weights[at] = records.record.weight(bytes);
        }
        at += 1;
    });
    at
}

/// As [`split_all`], and puts words where the counters say.
#[inline(always)]
fn put_all<const WEIGHTED: bool, S: Split>(
    split: &S,
    records: &Records<'_>,
    first_part: u32,
    to: Target<'_, u32>,
) {
    let Target { words, weights, counts } = to;
    records.for_each_key(|key, bytes| {
        let (part, word) = split.split(key);
        let Some(end) = counts.get_mut(part.wrapping_sub(first_part) as usize) else { return };
        // Arcs that there is no room for show in where parts end.
        if let Some(place) = words.get_mut(*end as usize) {
            *place = word;
            if WEIGHTED {
                weights[*end as usize] = records.record.weight(bytes);
            }
        }
        *end += 1;
    });
}

/// Counts the arcs of each cell of a bucket.
pub(super) fn count<S: Split>(
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
