//! From a bucket to sorted arcs in memory.
//!
//! A bucket's keys are distributed once, to parts that fit a core's first cache, and become 32-bit
//! words of what the part leaves open; each part is then sorted by radix. How keys are divided into
//! parts is the business of the file that they are for ([`Split`]).

use std::ops::Range;

use tiergraph_core::{Cancel, Result};
use tiergraph_format::manifest::Weights;
use tiergraph_kernels::widest;

use super::array::Array;
use super::family::{ChunkReader, Record};
use super::sorted::Sorted;

/// Words of a part, about: they and the sort's scratch fit a first-level cache.
pub(super) const PART_WORDS: u64 = 1 << 13;

/// How the keys of a bucket are divided.
pub(super) trait Split: Sync {
    /// The part of a key, and what its arcs are sorted by in it.
    fn split(&self, key: u64) -> (u32, u32);

    /// Cells are consecutive parts that are encoded together.
    fn cells(&self) -> &[Cell];
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
    loaded: usize,
    words: Array<u32>,
    parts: Array<u32>,
    weights: Array<f64>,
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
        let record = reader.record();
        let weighted = self.weighted && record.weights != Weights::None;
        self.make_room((arcs as usize).max(self.most), weighted)?;
        self.loaded = 0;
        self.sorted.ends.clear();
        self.sorted.ends.resize(parts.len(), 0);
        reader.for_each(|bytes, records| {
            cancel.check("build the graph")?;
            let records = Records { bytes, count: records, record };
            let to = Target {
                words: &mut self.words,
                parts: &mut self.parts,
                weights: if weighted { &mut self.weights } else { &mut [] },
                counts: &mut self.sorted.ends,
            };
            self.loaded = match weighted {
                true => {
                    widest(|| split_all::<true, S>(split, &records, parts.start, self.loaded, to))
                }
                false => {
                    widest(|| split_all::<false, S>(split, &records, parts.start, self.loaded, to))
                }
            };
            Ok(())
        })?;
        cancel.check("build the graph")?;
        self.distribute(weighted);
        self.sorted.sort(cells, parts.start);
        if !duplicates {
            self.sorted.dedup();
        }
        Ok(&self.sorted)
    }

    /// Puts words, and weights, into the order of parts.
    fn distribute(&mut self, weighted: bool) {
        let sorted = &mut self.sorted;
        let mut sum = 0;
        for end in &mut sorted.ends {
            (*end, sum) = (sum, sum + *end);
        }
        let (to, ends) = (&mut sorted.words[..], &mut sorted.ends[..]);
        let from = self.parts[..self.loaded].iter().zip(&self.words[..self.loaded]);
        if !weighted {
            for (&part, &word) in from {
                let place = &mut ends[part as usize];
                to[*place as usize] = word;
                *place += 1;
            }
            return;
        }
        for ((&part, &word), &weight) in from.zip(&self.weights[..]) {
            let place = &mut ends[part as usize];
            (to[*place as usize], sorted.weights[*place as usize]) = (word, weight);
            *place += 1;
        }
    }

    fn make_room(&mut self, arcs: usize, weighted: bool) -> Result<()> {
        self.words.make_room(arcs)?;
        self.parts.make_room(arcs)?;
        self.sorted.words.make_room(arcs)?;
        self.sorted.weighted = weighted;
        if weighted {
            self.weights.make_room(arcs)?;
            self.sorted.weights.make_room(arcs)?;
        }
        Ok(())
    }
}

/// Records one behind the other.
struct Records<'a> {
    bytes: &'a [u8],
    count: usize,
    record: Record,
}

impl Records<'_> {
    /// Calls `visit` with the key and the bytes of each record.
    #[inline(always)]
    fn for_each_key(&self, mut visit: impl FnMut(u64, &[u8])) {
        let (size, mask) = (self.record.bytes(), self.record.mask());
        for i in 0..self.count {
            let bytes = &self.bytes[i * size..];
            let word = bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
            visit(word & mask, bytes);
        }
    }
}

/// Where split keys go, and the counters of the parts.
struct Target<'a> {
    words: &'a mut [u32],
    parts: &'a mut [u32],
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
    to: Target<'_>,
) -> usize {
    let Target { words, parts, weights, counts } = to;
    records.for_each_key(|key, bytes| {
        let (part, word) = split.split(key);
        // A part before the wanted ones wraps around to a large number.
        let part = part.wrapping_sub(first_part);
        let Some(count) = counts.get_mut(part as usize) else { return };
        *count += 1;
        (words[at], parts[at]) = (word, part);
        if WEIGHTED {
            weights[at] = records.record.weight(bytes);
        }
        at += 1;
    });
    at
}

/// Counts the arcs of each cell of a bucket.
pub(super) fn count<S: Split>(
    reader: &ChunkReader,
    split: &S,
    cancel: &Cancel,
) -> Result<Vec<u64>> {
    let cells = split.cells();
    let mut counts = vec![0u64; parts_of(cells, &(0..cells.len())).len()];
    reader.for_each(|bytes, records| {
        let records = Records { bytes, count: records, record: reader.record() };
        records.for_each_key(|key, _| counts[split.split(key).0 as usize] += 1);
        cancel.check("build the graph")
    })?;
    let of_cell = |cell: usize| {
        let parts = parts_of(cells, &(cell..cell + 1));
        counts[parts.start as usize..parts.end as usize].iter().sum()
    };
    Ok((0..cells.len()).map(of_cell).collect())
}

/// Bits that numbers below `n` need.
pub(super) fn bits_below(n: u64) -> u32 {
    u64::BITS - n.saturating_sub(1).leading_zeros()
}
