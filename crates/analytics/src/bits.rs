//! Sets of vertices that all threads add to and look at, a bit for each: the bits of the hubs fit the first
//! cache.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tiergraph_core::{Result, ThreadPool};

/// How many words of bits a thread takes at a time.
const CHUNK: usize = 1 << 10;

/// A set of vertices as a bitmap.
#[derive(Debug)]
pub(crate) struct Bits(Vec<AtomicU64>);

impl Bits {
    /// The set of the places of those of `values` that are `wanted`, made by all threads.
    pub(crate) fn of(
        threads: &ThreadPool,
        values: &[AtomicU32],
        wanted: impl Fn(u32) -> bool + Sync,
    ) -> Result<Self> {
        let words = values.len().div_ceil(64);
        let mut bits: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
        let chunks = bits.chunks_mut(CHUNK).zip(values.chunks(CHUNK * 64));
        threads.share(chunks, |_, chunks| {
            for (bits, values) in chunks {
                for (word, values) in bits.iter_mut().zip(values.chunks(64)) {
                    let word = word.get_mut();
                    for (i, value) in values.iter().enumerate() {
                        *word |= u64::from(wanted(value.load(Ordering::Relaxed))) << i;
                    }
                }
            }
        })?;
        Ok(Self(bits))
    }

    /// The empty set.
    pub(crate) fn none(vertices: usize) -> Self {
        Self((0..vertices.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    /// The set of all vertices; bits behind the last one are set, too.
    pub(crate) fn all(vertices: usize) -> Self {
        Self((0..vertices.div_ceil(64)).map(|_| AtomicU64::new(u64::MAX)).collect())
    }

    /// Bytes of a set of so many vertices.
    pub(crate) fn bytes(vertices: usize) -> u64 {
        vertices.div_ceil(64) as u64 * 8
    }

    /// The number of vertices in the set.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(|word| word.load(Ordering::Relaxed).count_ones() as usize).sum()
    }

    /// Whether at least one vertex is in the set of bits.
    pub(crate) fn any(&self) -> bool {
        self.0.iter().any(|word| word.load(Ordering::Relaxed) != 0)
    }

    /// Whether `v` is in the set.
    #[inline(always)]
    pub(crate) fn has(&self, v: impl Into<u64>) -> bool {
        let v = v.into();
        let word = self.0.get((v / 64) as usize);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (v % 64) & 1 > 0)
    }

    /// Calls `visit` with a vertex of each 64 side by side of which some are in the set.
    pub(crate) fn each_64(&self, mut visit: impl FnMut(u32)) {
        for (i, word) in self.0.iter().enumerate() {
            if word.load(Ordering::Relaxed) != 0 {
                visit(i as u32 * 64);
            }
        }
    }

    /// Those of the vertices of `range` that are in the set, which may lose them meanwhile.
    pub(crate) fn within(&self, range: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        let words = range.start / 64..range.end.div_ceil(64);
        words.flat_map(move |word| {
            let first = word * 64;
            let below = |v: u32| u64::MAX.checked_shl(v.saturating_sub(first)).unwrap_or(0);
            let mut bits = self.0[word as usize].load(Ordering::Relaxed)
                & below(range.start)
                & !below(range.end);
            std::iter::from_fn(move || {
                let next = first + bits.trailing_zeros();
                (bits != 0).then(|| {
                    bits &= bits - 1;
                    next
                })
            })
        })
    }

    /// Takes those out of the set of which `mask(number)`, of the 64 vertices of this number, has a bit, and returns them.
    /// Nobody changes the set meanwhile.
    pub(crate) fn take_masked(&self, mask: impl Fn(u32) -> u64) -> Self {
        let taken = |(number, word): (u32, &AtomicU64)| {
            let all = word.load(Ordering::Relaxed);
            let own = if all == 0 { 0 } else { all & mask(number) };
            word.store(all & !own, Ordering::Relaxed);
            AtomicU64::new(own)
        };
        Self((0..).zip(&self.0).map(taken).collect())
    }

    /// Puts `v` into the set.
    #[inline(always)]
    pub(crate) fn put(&self, v: u32) {
        self.0[(v / 64) as usize].fetch_or(1 << (v % 64), Ordering::Relaxed);
    }

    /// Puts the vertices of another set of as many into this one.
    pub(crate) fn put_all(&self, other: &Self) {
        for (own, other) in self.0.iter().zip(&other.0) {
            own.fetch_or(other.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Takes `v` out of the set, into which nobody puts vertices meanwhile; it may come back where another
    /// worker takes out a neighbour.
    #[inline(always)]
    pub(crate) fn take_out(&self, v: u64) {
        if let Some(word) = self.0.get((v / 64) as usize) {
            word.store(word.load(Ordering::Relaxed) & !(1 << (v % 64)), Ordering::Relaxed);
        }
    }

    /// Takes the vertices of another set of as many out of this one.
    pub(crate) fn take_out_all(&self, other: &Self) {
        for (own, other) in self.0.iter().zip(&other.0) {
            own.fetch_and(!other.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// The bits of 64 vertices each.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        &self.0
    }

    pub(crate) fn words_mut(&mut self) -> &mut [AtomicU64] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use tiergraph_core::Draws;

    use super::*;

    #[test]
    fn those_within_a_range_are_those_that_the_set_has() {
        let mut draws = Draws::new(2);
        let bits = Bits::none(300);
        (0..300).filter(|_| draws.below(3) == 0).for_each(|v| bits.put(v));
        for begin in 0..300 {
            for end in begin..=300 {
                let expected = (begin..end).filter(|&v| bits.has(v));
                assert!(bits.within(begin..end).eq(expected), "{begin}..{end}");
            }
        }
    }
}
