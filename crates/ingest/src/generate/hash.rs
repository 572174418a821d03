//! Random numbers by counting: the i-th number is a hash of the seed and i.
//!
//! The hash is SplitMix64's (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number
//! generators", 2014): a Weyl sequence and a bijective finaliser, two multiplications a number. It
//! passes the usual batteries and, unlike a generator with state, starts anywhere at no cost.

use std::ops::{BitAnd, BitOr, BitXor, Shl, Shr};

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

pub use tiergraph_core::finalize as mix;

/// An unsigned number of 32 or 64 bits: vector instructions work on twice as many of the former.
pub trait Word:
    Copy
    + Default
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    /// The lowest bits of `word`.
    fn low(word: u64) -> Self;

    /// The lowest bits of `self * factor + addend`.
    fn multiply_add(self, factor: Self, addend: Self) -> Self;
}

impl Word for u32 {
    #[inline(always)]
    fn low(word: u64) -> Self {
        word as u32
    }

    #[inline(always)]
    fn multiply_add(self, factor: Self, addend: Self) -> Self {
        self.wrapping_mul(factor).wrapping_add(addend)
    }
}

impl Word for u64 {
    #[inline(always)]
    fn low(word: u64) -> Self {
        word
    }

    #[inline(always)]
    fn multiply_add(self, factor: Self, addend: Self) -> Self {
        self.wrapping_mul(factor).wrapping_add(addend)
    }
}

/// A stream of random words that can be read at any place.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    key: u64,
}

impl Counter {
    /// The stream of a seed and a purpose; streams of two purposes are independent.
    pub fn new(seed: u64, purpose: u64) -> Self {
        Self { key: mix(mix(seed.wrapping_add(GOLDEN)) ^ mix(purpose.wrapping_mul(GOLDEN))) }
    }

    /// The word at place `at`.
    #[inline]
    pub fn word(self, at: u64) -> u64 {
        mix(self.key.wrapping_add(at.wrapping_mul(GOLDEN)))
    }

    /// A number below `n` from the word at a place (D. Lemire, "Fast random integer generation in
    /// an interval", 2019; the bias is below n / 2⁶⁴).
    #[inline]
    pub fn below(self, at: u64, n: u64) -> u64 {
        ((u128::from(self.word(at)) * u128::from(n)) >> 64) as u64
    }
}

/// A bijection of `0 … 2^bits − 1` that a seed chooses: rounds of an odd multiplication, an addition
/// and an xor of the high half into the low one, each of which can be undone.
#[derive(Debug, Clone, Copy)]
pub struct Permutation {
    multipliers: [u64; 3],
    addends: [u64; 3],
    mask: u64,
    shift: u32,
}

impl Permutation {
    /// The permutation of this seed, for 1 ≤ `bits` ≤ 63.
    pub fn new(seed: u64, bits: u32) -> Self {
        let words = Counter::new(seed, 0x7065_726d);
        Self {
            multipliers: [0, 1, 2].map(|round| words.word(round) | 1),
            addends: [3, 4, 5].map(|round| words.word(round)),
            mask: (1 << bits) - 1,
            shift: bits.div_ceil(2),
        }
    }

    /// The image of `id`, whose type has at least the permutation's bits.
    #[inline]
    pub fn apply<W: Word>(&self, mut id: W) -> W {
        for (&multiplier, addend) in self.multipliers.iter().zip(self.addends) {
            id = id.multiply_add(W::low(multiplier), W::low(addend)) & W::low(self.mask);
            id = id ^ id >> self.shift;
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mix_is_splitmix64() {
        // The first outputs of SplitMix64 seeded with 1234567, as its authors publish them.
        let words = [1, 2, 3].map(|i: u64| mix(1_234_567u64.wrapping_add(i.wrapping_mul(GOLDEN))));
        assert_eq!(
            words,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn a_permutation_hits_every_id_once() {
        for bits in 1..=12 {
            let permutation = Permutation::new(7, bits);
            let mut hit = vec![false; 1 << bits];
            for id in 0..1u32 << bits {
                let to = permutation.apply(id) as usize;
                assert_eq!(permutation.apply(u64::from(id)), to as u64);
                assert!(!std::mem::replace(&mut hit[to], true), "{bits} bits: {to} twice");
            }
        }
    }

    #[test]
    fn numbers_below_n_are_even() {
        let words = Counter::new(1, 2);
        let mut counts = [0u32; 10];
        (0..100_000).for_each(|at| counts[words.below(at, 10) as usize] += 1);
        // Five standard deviations of a binomial of 100,000 and 1/10 are 474.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 474), "{counts:?}");
    }
}
