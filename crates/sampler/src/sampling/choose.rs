//! k of n without replacement: which of a vertex's neighbours are taken.
//!
//! Floyd's algorithm (Bentley and Floyd, *A Sample of Brilliance*, CACM 1987): for j = n − k … n − 1
//! draw t from 0 … j and take t, or j where t was taken before. It needs k draws whatever n is, so
//! a hub costs no more than a small vertex, and every set of k is equally likely. The order is that
//! of the draws, and not itself uniform: a sample is a set.

use crate::sampling::philox::{EpochKey, Stream, below};

/// Blocks of draws that are made together: they do not depend on each other, so a processor
/// overlaps them.
const TOGETHER: usize = 4;

/// Bits of the filter for each neighbour that is taken.
const FILTER_BITS: usize = 16;

/// A chooser of neighbours, which keeps its memory from choice to choice.
#[derive(Debug, Default)]
pub struct Chooser {
    /// A bit for each taken position modulo the filter's length: a clear one spares the search.
    filter: Vec<u64>,
    draws: Vec<u64>,
}

impl Chooser {
    /// Writes `base` plus each of the `out.len()` positions chosen among `n`, in the order of their
    /// draws. All positions in order, without a draw, where `out` has room for all n.
    ///
    /// # Panics
    /// When `out` is longer than `n`.
    #[inline]
    pub fn choose(&mut self, key: EpochKey, stream: Stream, n: u64, base: u64, out: &mut [u64]) {
        let k = out.len();
        assert!(k as u64 <= n, "no more than n of n are chosen");
        if k as u64 == n {
            out.iter_mut().zip(base..).for_each(|(slot, position)| *slot = position);
            return;
        }
        self.draw(key, stream, k);
        let words = (k * FILTER_BITS / 64).next_power_of_two().max(8);
        self.filter.clear();
        self.filter.resize(words, 0);
        let mask = words * 64 - 1;
        for (i, j) in (n - k as u64..n).enumerate() {
            let mut position = below(self.draws[i], j + 1);
            if self.is_marked(position as usize & mask) && out[..i].contains(&(base + position)) {
                position = j;
            }
            self.mark(position as usize & mask);
            out[i] = base + position;
        }
    }

    #[inline]
    fn is_marked(&self, bit: usize) -> bool {
        self.filter[bit / 64] >> (bit % 64) & 1 != 0
    }

    #[inline]
    fn mark(&mut self, bit: usize) {
        self.filter[bit / 64] |= 1 << (bit % 64);
    }

    /// Makes the first `k` draws of a stream, and a few more.
    #[inline]
    fn draw(&mut self, key: EpochKey, stream: Stream, k: usize) {
        let groups = k.div_ceil(2 * TOGETHER);
        self.draws.resize(groups * 2 * TOGETHER, 0);
        for (group, slots) in self.draws.chunks_exact_mut(2 * TOGETHER).enumerate() {
            for (i, pair) in slots.chunks_exact_mut(2).enumerate() {
                let block = (group * TOGETHER + i) as u32;
                pair.copy_from_slice(&key.draws(stream, block));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::sampling::philox::Purpose;

    /// Floyd's algorithm as its authors print it.
    fn serial(key: EpochKey, stream: Stream, n: u64, k: usize) -> Vec<u64> {
        let mut taken = HashSet::new();
        let mut order = Vec::new();
        for (i, j) in (n - k as u64..n).enumerate() {
            let draw = key.draws(stream, i as u32 / 2)[i % 2];
            let t = ((u128::from(draw) * u128::from(j + 1)) >> 64) as u64;
            let position = if taken.insert(t) { t } else { j };
            taken.insert(position);
            order.push(position);
        }
        order
    }

    proptest! {
        #[test]
        fn the_choice_is_floyds(n in 1u64..5000, k in 0usize..300, base in 0u64..1 << 40) {
            let k = k.min(n as usize);
            let key = EpochKey::new(n, k as u64, Purpose::Sample);
            let stream = Stream { vertex: n as u32, ..Stream::default() };
            let mut out = vec![0; k];
            Chooser::default().choose(key, stream, n, base, &mut out);
            let positions: Vec<u64> = out.iter().map(|p| p - base).collect();
            if k as u64 == n {
                prop_assert_eq!(positions, (0..n).collect::<Vec<_>>());
            } else {
                prop_assert_eq!(&positions, &serial(key, stream, n, k));
                prop_assert!(positions.iter().all(|&p| p < n));
                prop_assert_eq!(positions.iter().collect::<HashSet<_>>().len(), k);
            }
        }
    }

    /// Pearson's statistic of counts that should be equal.
    fn chi_square(counts: &[u32]) -> f64 {
        let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
        counts.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum()
    }

    #[test]
    fn every_set_is_equally_likely() {
        // 3 of 6: 20 sets. 43.8 is the 0.999 quantile of 19 degrees of freedom.
        let key = EpochKey::new(5, 0, Purpose::Sample);
        let mut counts = [0; 64];
        let mut out = [0; 3];
        for vertex in 0..40_000 {
            let stream = Stream { vertex, ..Stream::default() };
            Chooser::default().choose(key, stream, 6, 0, &mut out);
            counts[out.iter().map(|&p| 1usize << p).sum::<usize>()] += 1;
        }
        let sets: Vec<u32> = counts.into_iter().filter(|&c| c > 0).collect();
        assert_eq!(sets.len(), 20);
        assert!(chi_square(&sets) < 43.8, "{sets:?}");
    }

    #[test]
    fn every_neighbour_of_a_hub_is_equally_likely() {
        // 10 of 1,000 in 20,000 draws. 1,143 is the 0.999 quantile of 999 degrees of freedom; a
        // sample without replacement stays below it the more.
        let key = EpochKey::new(6, 1, Purpose::Sample);
        let mut counts = vec![0; 1000];
        let mut out = [0; 10];
        for batch in 0..20_000 {
            let stream = Stream { batch, hop: 1, ..Stream::default() };
            Chooser::default().choose(key, stream, 1000, 0, &mut out);
            out.iter().for_each(|&p| counts[p as usize] += 1);
        }
        assert!(chi_square(&counts) < 1143.0, "{}", chi_square(&counts));
    }
}
