//! A cell's arcs in order.

use tiergraph_format::tiles::radix_sort;

use super::load::Page;

/// Sorts cells and keeps its working memory between them. One a thread.
#[derive(Debug, Default)]
pub(super) struct CellSorter {
    /// The sorted keys.
    pub(super) keys: Vec<u64>,
    /// Their weights, if they have any.
    pub(super) weights: Vec<f64>,
    scratch: Vec<u64>,
    pairs: Vec<(u64, f64)>,
    pair_scratch: Vec<(u64, f64)>,
}

impl CellSorter {
    /// Gathers a cell's keys less `base`, and weights, unsorted.
    pub(super) fn gather(&mut self, pages: &[Page], base: u64) {
        self.keys.clear();
        self.weights.clear();
        for page in pages {
            self.keys.extend(page.keys.iter().map(|key| key - base));
            self.weights.extend_from_slice(&page.weights);
        }
    }

    /// Sorts what was gathered, by key and then by weight, so that the order of the input does not
    /// matter; without `duplicates`, only the first of equal keys is kept. Keys have `bits` bits.
    pub(super) fn sort(&mut self, bits: u32, duplicates: bool) {
        if self.weights.is_empty() {
            radix_sort(&mut self.keys, &mut self.scratch, bits, |key| *key);
            if !duplicates {
                self.keys.dedup();
            }
            return;
        }
        self.pairs.clear();
        self.pairs.extend(self.keys.iter().copied().zip(self.weights.iter().copied()));
        radix_sort(&mut self.pairs, &mut self.pair_scratch, bits, |pair| pair.0);
        for equal in self.pairs.chunk_by_mut(|a, b| a.0 == b.0).filter(|run| run.len() > 1) {
            equal.sort_unstable_by(|a, b| a.1.total_cmp(&b.1));
        }
        if !duplicates {
            self.pairs.dedup_by_key(|pair| pair.0);
        }
        self.keys.clear();
        self.keys.extend(self.pairs.iter().map(|pair| pair.0));
        self.weights.clear();
        self.weights.extend(self.pairs.iter().map(|pair| pair.1));
    }
}

/// Bits that numbers below `n` need.
pub(super) fn bits_below(n: u64) -> u32 {
    u64::BITS - n.saturating_sub(1).leading_zeros()
}
