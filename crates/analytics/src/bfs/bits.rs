//! Sets of vertices, a bit for each: the bits of the hubs fit the first cache.

use std::sync::atomic::{AtomicU64, Ordering};

use tiergraph_core::Result;

use super::Search;

/// How many words of bits a thread takes at a time.
const CHUNK: usize = 1 << 10;

/// A set of vertices as a bitmap.
#[derive(Debug)]
pub(super) struct Bits(Vec<AtomicU64>);

impl Bits {
    /// Whether `v` is in the set.
    #[inline(always)]
    pub(super) fn has(&self, v: u64) -> bool {
        let word = self.0.get((v / 64) as usize);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (v % 64) & 1 > 0)
    }

    /// Calls `visit` with a vertex of each 64 side by side of which some are in the set.
    pub(super) fn each_64(&self, mut visit: impl FnMut(u32)) {
        for (i, word) in self.0.iter().enumerate() {
            if word.load(Ordering::Relaxed) != 0 {
                visit(i as u32 * 64);
            }
        }
    }

    /// Takes `v` out of the set; it may come back where another worker takes out a neighbour meanwhile.
    #[inline(always)]
    pub(super) fn take_out(&self, v: u64) {
        if let Some(word) = self.0.get((v / 64) as usize) {
            word.store(word.load(Ordering::Relaxed) & !(1 << (v % 64)), Ordering::Relaxed);
        }
    }
}

impl Search<'_> {
    /// The set of vertices with arcs whose depth is `wanted`.
    pub(super) fn bits(&self, wanted: impl Fn(u32) -> bool + Sync) -> Result<Bits> {
        let depth = &self.depth[..self.with_arcs];
        let words = depth.len().div_ceil(64);
        let mut bits: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
        let chunks = bits.chunks_mut(CHUNK).zip(depth.chunks(CHUNK * 64));
        self.graph.thread_pool().share(chunks, |_, chunks| {
            for (bits, depths) in chunks {
                for (word, depths) in bits.iter_mut().zip(depths.chunks(64)) {
                    let word = word.get_mut();
                    for (i, depth) in depths.iter().enumerate() {
                        *word |= u64::from(wanted(depth.load(Ordering::Relaxed))) << i;
                    }
                }
            }
        })?;
        Ok(Bits(bits))
    }
}
