//! A random permutation, for the order of an epoch's seeds.

use crate::sampling::philox::{EpochKey, HOP_SHIFT, Stream, below};

/// A permutation of 0 … n − 1: Fisher and Yates' shuffle (Knuth, *TAOCP* 2, algorithm P) from the
/// last place down, draw t for place n − 1 − t.
pub fn permutation(key: EpochKey, n: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n).collect();
    for (t, place) in (1..n).rev().enumerate() {
        let block = t as u32 / 2;
        // A counter's first word has room for 2²⁴ blocks; the next are another vertex's.
        let stream = Stream { vertex: block >> HOP_SHIFT, ..Stream::default() };
        let draw = key.draws(stream, block & ((1 << HOP_SHIFT) - 1))[t % 2];
        order.swap(place as usize, below(draw, u64::from(place) + 1) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::philox::Purpose;

    #[test]
    fn every_order_is_equally_likely() {
        let mut counts = std::collections::HashMap::new();
        for epoch in 0..24_000 {
            let order = permutation(EpochKey::new(3, epoch, Purpose::Shuffle), 4);
            *counts.entry(order).or_insert(0u32) += 1;
        }
        let square = |&c: &u32| (f64::from(c) - 1000.0).powi(2) / 1000.0;
        // 49.7 is the 0.999 quantile of 23 degrees of freedom.
        assert_eq!(counts.len(), 24);
        assert!(counts.values().map(square).sum::<f64>() < 49.7, "{counts:?}");
    }

    #[test]
    fn a_permutation_has_every_number_once() {
        for n in [0, 1, 2, 1000] {
            let mut order = permutation(EpochKey::new(3, 9, Purpose::Shuffle), n);
            order.sort_unstable();
            assert!(order.into_iter().eq(0..n));
        }
    }
}
