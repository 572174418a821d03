//! From a bucket to sorted arcs in memory.
//!
//! A bucket's keys are distributed once, to parts that fit a core's first cache, and become 32-bit
//! words of what the part leaves open; each part is then sorted by radix. How keys are divided into
//! parts is the business of the file that they are for ([`Split`]).

use std::ops::Range;

use tiergraph_core::{Cancel, Result};
use tiergraph_format::manifest::Weights;
use tiergraph_format::tiles::{radix_sort, sort_words};
use tiergraph_kernels::widest;

use super::array::Array;
use super::family::{ChunkReader, Record};

/// Words of a part, about: they and the sort's scratch fit a first-level cache.
pub(super) const PART_WORDS: u64 = 1 << 12;

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
    loaded: usize,
    words: Array<u32>,
    parts: Array<u32>,
    weights: Array<f64>,
    sorted: Sorted,
}

/// The arcs of consecutive parts.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    /// Part after part, each in ascending order.
    words: Array<u32>,
    weighted: bool,
    /// In the same order, if there are any; equal words have theirs in ascending order.
    weights: Array<f64>,
    /// Where each part ends.
    ends: Vec<u32>,
    scratch: Vec<u32>,
    pairs: Vec<(u32, f64)>,
    pair_scratch: Vec<(u32, f64)>,
}

impl Loader {
    pub(super) fn new(weighted: bool) -> Self {
        Self { weighted, ..Self::default() }
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
        self.make_room(arcs as usize, weighted)?;
        self.loaded = 0;
        self.sorted.ends.clear();
        self.sorted.ends.resize(parts.len(), 0);
        reader.for_each(|bytes, records| {
            cancel.check("build the graph")?;
            match weighted {
                true => widest(|| {
                    self.split::<true, S>(bytes, records, record, split, parts.start);
                }),
                false => widest(|| {
                    self.split::<false, S>(bytes, records, record, split, parts.start);
                }),
            }
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

    /// Splits the keys of a chunk and counts those of each part.
    #[inline(always)]
    fn split<const WEIGHTED: bool, S: Split>(
        &mut self,
        bytes: &[u8],
        records: usize,
        record: Record,
        split: &S,
        first_part: u32,
    ) {
        let counts = &mut self.sorted.ends[..];
        let (words, parts) = (&mut self.words[..], &mut self.parts[..]);
        let weights = &mut self.weights[..];
        let mut at = self.loaded;
        for_each_key(bytes, records, record, |key, bytes| {
            let (part, word) = split.split(key);
            // A part before the wanted ones wraps around to a large number.
            let part = part.wrapping_sub(first_part);
            let Some(count) = counts.get_mut(part as usize) else { return };
            *count += 1;
            (words[at], parts[at]) = (word, part);
            if WEIGHTED {
                weights[at] = record.weight(bytes);
            }
            at += 1;
        });
        self.loaded = at;
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

impl Sorted {
    /// Where part `part` is.
    pub(super) fn part(&self, part: usize) -> Range<usize> {
        let begin = part.checked_sub(1).map_or(0, |before| self.ends[before]);
        begin as usize..self.ends[part] as usize
    }

    /// All arcs.
    pub(super) fn len(&self) -> usize {
        self.ends.last().map_or(0, |&end| end as usize)
    }

    pub(super) fn words(&self, arcs: Range<usize>) -> &[u32] {
        &self.words[arcs]
    }

    /// The weights of arcs that have some.
    pub(super) fn weights(&self, arcs: Range<usize>) -> &[f64] {
        if self.weighted { &self.weights[arcs] } else { &[] }
    }

    fn sort(&mut self, cells: &[Cell], first_part: u32) {
        let mut part = 0;
        for cell in cells {
            for part in part..(cell.parts_end - first_part) as usize {
                let arcs = self.part(part);
                if !self.weighted {
                    let words = &mut self.words[arcs];
                    if self.scratch.len() < words.len() {
                        self.scratch.resize(words.len(), 0);
                    }
                    sort_words(words, &mut self.scratch, cell.bits);
                } else {
                    self.sort_weighted(arcs, cell.bits);
                }
            }
            part = (cell.parts_end - first_part) as usize;
        }
    }

    /// Sorts by word and then by weight, so that the order of the input does not matter.
    fn sort_weighted(&mut self, arcs: Range<usize>, bits: u32) {
        let (words, weights) = (&mut self.words[arcs.clone()], &mut self.weights[arcs]);
        self.pairs.clear();
        self.pairs.extend(words.iter().copied().zip(weights.iter().copied()));
        radix_sort(&mut self.pairs, &mut self.pair_scratch, bits, |pair| pair.0.into());
        for equal in self.pairs.chunk_by_mut(|a, b| a.0 == b.0).filter(|run| run.len() > 1) {
            equal.sort_unstable_by(|a, b| a.1.total_cmp(&b.1));
        }
        for ((word, weight), pair) in words.iter_mut().zip(weights).zip(&self.pairs) {
            (*word, *weight) = *pair;
        }
    }

    /// Removes all but the first of equal words of each part.
    fn dedup(&mut self) {
        let (mut begin, mut kept) = (0, 0);
        for end in &mut self.ends {
            let part = begin..*end as usize;
            begin = part.end;
            let first = kept;
            for i in part {
                let word = self.words[i];
                let new = kept == first || self.words[kept - 1] != word;
                // Written in any case: no branch that depends on the arcs.
                self.words[kept] = word;
                if self.weighted && new {
                    self.weights[kept] = self.weights[i];
                }
                kept += usize::from(new);
            }
            *end = kept as u32;
        }
    }
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
        for_each_key(bytes, records, reader.record(), |key, _| {
            counts[split.split(key).0 as usize] += 1;
        });
        cancel.check("build the graph")
    })?;
    let of_cell = |cell: usize| {
        let parts = parts_of(cells, &(cell..cell + 1));
        counts[parts.start as usize..parts.end as usize].iter().sum()
    };
    Ok((0..cells.len()).map(of_cell).collect())
}

/// Calls `visit` with the key and the bytes of each record.
#[inline(always)]
fn for_each_key(bytes: &[u8], records: usize, record: Record, mut visit: impl FnMut(u64, &[u8])) {
    let (size, mask) = (record.bytes(), record.mask());
    for i in 0..records {
        let bytes = &bytes[i * size..];
        let word = bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        visit(word & mask, bytes);
    }
}

/// Bits that numbers below `n` need.
pub(super) fn bits_below(n: u64) -> u32 {
    u64::BITS - n.saturating_sub(1).leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys of 14 bits, in parts of 2^`bits`.
    struct Leading(u32, Vec<Cell>);

    impl Split for Leading {
        fn split(&self, key: u64) -> (u32, u32) {
            ((key >> self.0) as u32, key as u32 & ((1 << self.0) - 1))
        }

        fn cells(&self) -> &[Cell] {
            &self.1
        }
    }

    #[test]
    fn arcs_are_sorted_by_part_word_and_weight_and_lose_duplicates() {
        let mix = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 50;
        let arcs: Vec<(u64, f64)> = (0..9000).map(|i| (mix(i % 8000), (i % 7) as f64)).collect();
        for (bits, weighted, duplicates) in
            [(9, false, true), (12, false, false), (12, true, true), (9, true, false)]
        {
            let cells = (1..=1 << (14 - bits)).map(|parts_end| Cell { parts_end, bits }).collect();
            let split = Leading(bits, cells);
            let mut expected = arcs.clone();
            expected.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
            if !duplicates {
                expected.dedup_by_key(|arc| arc.0);
            }
            let mut sorted = Sorted { weighted, ..Sorted::default() };
            sorted.words.make_room(arcs.len()).unwrap();
            sorted.weights.make_room(arcs.len()).unwrap();
            let mut at = 0;
            for part in 0..split.1.len() as u32 {
                for &(key, weight) in arcs.iter().filter(|arc| split.split(arc.0).0 == part) {
                    (sorted.words[at], sorted.weights[at]) = (split.split(key).1, weight);
                    at += 1;
                }
                sorted.ends.push(at as u32);
            }
            sorted.sort(&split.1, 0);
            if !duplicates {
                sorted.dedup();
            }
            let (mut keys, mut weights) = (Vec::new(), Vec::new());
            for part in 0..split.1.len() {
                let words = sorted.words(sorted.part(part));
                keys.extend(words.iter().map(|&w| (part as u64) << bits | u64::from(w)));
                weights.extend_from_slice(sorted.weights(sorted.part(part)));
            }
            assert!(keys.iter().copied().eq(expected.iter().map(|arc| arc.0)));
            assert!(!weighted || weights.iter().copied().eq(expected.iter().map(|arc| arc.1)));
        }
    }
}
