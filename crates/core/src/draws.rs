//! Random numbers that depend on a seed alone: of faults that are made on purpose, of places to read.

/// Spreads a number over 64 bits: a step of SplitMix64.
#[inline]
pub fn mix(value: u64) -> u64 {
    finalize(value.wrapping_add(0x9E37_79B9_7F4A_7C15))
}

/// SplitMix64's finaliser: a bijection of 64-bit words whose every output bit depends on every
/// input bit (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", 2014).
#[inline]
pub fn finalize(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// A number from 0 to 1, without 1, of 64 random bits.
#[inline]
pub fn unit(random: u64) -> f64 {
    (random >> 11) as f64 / (1u64 << 53) as f64
}

/// A sequence of random numbers, the same for the same seed.
///
/// ```
/// use tiergraph_core::Draws;
/// let (mut a, mut b) = (Draws::new(7), Draws::new(7));
/// assert_eq!([a.below(100), a.below(100)], [b.below(100), b.below(100)]);
/// assert!(a.happens(1.0) && !a.happens(0.0));
/// ```
#[derive(Debug, Clone)]
pub struct Draws {
    seed: u64,
    count: u64,
}

impl Draws {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, count: 0 }
    }

    /// The next number of 64 bits.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.count += 1;
        mix(self.seed ^ mix(self.count))
    }

    /// Whether an event of this probability happens, by the next number.
    #[inline]
    pub fn happens(&mut self, probability: f64) -> bool {
        unit(self.draw()) < probability
    }

    /// The next number below `end`, which is not 0.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        self.draw() % end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_spread_as_splitmix64_does() {
        // The first numbers of the published generator, whose state is 0.
        let step = 0x9E37_79B9_7F4A_7C15_u64;
        assert_eq!(
            [0, 1, 2].map(|number: u64| mix(step.wrapping_mul(number))),
            [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F]
        );
    }
}
