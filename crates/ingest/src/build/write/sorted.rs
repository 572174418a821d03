//! Sorted arcs in memory, part after part.

use std::ops::Range;

use tiergraph_core::Result;
use tiergraph_format::tiles::{radix_sort, sort_words};
use tiergraph_kernels::{dedup_words, widest};

use crate::build::array::Array;

/// The arcs of consecutive parts.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    /// The words of arcs, part after part, each part in ascending order.
    pub(crate) words: Array<u32>,
    pub(crate) weighted: bool,
    /// Their weights in the same order, if there are any; equal words have theirs in ascending order.
    pub(crate) weights: Array<f64>,
    /// Where each part ends in `words`.
    pub(crate) ends: Vec<u32>,
    scratch: Vec<u32>,
    pairs: Vec<(u32, f64)>,
    pair_scratch: Vec<(u32, f64)>,
}

impl Sorted {
    /// The range of part `part` in `words`.
    pub(crate) fn part(&self, part: usize) -> Range<usize> {
        let begin = part.checked_sub(1).map_or(0, |before| self.ends[before]);
        begin as usize..self.ends[part] as usize
    }

    /// Makes room for `arcs` arcs; the arcs before are lost.
    pub(crate) fn make_room(&mut self, arcs: usize, weighted: bool) -> Result<()> {
        self.weighted = weighted;
        self.words.make_room(arcs)?;
        if weighted { self.weights.make_room(arcs) } else { Ok(()) }
    }

    /// The number of arcs.
    pub(crate) fn len(&self) -> usize {
        self.ends.last().map_or(0, |&end| end as usize)
    }

    pub(crate) fn words(&self, arcs: Range<usize>) -> &[u32] {
        &self.words[arcs]
    }

    /// The weights of arcs; empty if the arcs have none.
    pub(crate) fn weights(&self, arcs: Range<usize>) -> &[f64] {
        if self.weighted { &self.weights[arcs] } else { &[] }
    }

    /// Sorts the arcs of a part, whose words differ in their lowest `bits` bits.
    pub(crate) fn sort(&mut self, part: usize, bits: u32) {
        let arcs = self.part(part);
        if self.weighted {
            return self.sort_weighted(arcs, bits);
        }
        let words = &mut self.words[arcs];
        if self.scratch.len() < words.len() {
            self.scratch.resize(words.len(), 0);
        }
        sort_words(words, &mut self.scratch, bits);
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

    /// The number of arcs that are equal to the one before them in their part.
    pub(crate) fn repeats(&self) -> u64 {
        let parts = (0..self.ends.len()).map(|part| self.words(self.part(part)));
        widest(|| parts.map(repeats).sum())
    }

    /// Removes all but the first of equal words of each part.
    pub(crate) fn dedup(&mut self) {
        let (mut begin, mut kept) = (0, 0);
        for end in &mut self.ends {
            let part = begin..*end as usize;
            begin = part.end;
            kept = match self.weighted {
                false => dedup_words(&mut self.words, part, kept),
                true => dedup_weighted(&mut self.words, &mut self.weights, part, kept),
            };
            *end = kept as u32;
        }
    }
}

/// As [`dedup_words`], with a weight for each word.
fn dedup_weighted(
    words: &mut [u32],
    weights: &mut [f64],
    part: Range<usize>,
    mut to: usize,
) -> usize {
    let first = to;
    for i in part {
        if to == first || words[to - 1] != words[i] {
            (words[to], weights[to]) = (words[i], weights[i]);
            to += 1;
        }
    }
    to
}

/// The number of words, which ascend, that are equal to the one before them.
#[inline(always)]
pub(crate) fn repeats(words: &[u32]) -> u64 {
    let next = words.get(1..).unwrap_or_default();
    next.iter().zip(words).map(|(word, before)| u64::from(word == before)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::write::load::{Cell, Split};

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
            (0..split.1.len()).for_each(|part| sorted.sort(part, bits));
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
