//! Sets of vertices, a bit for each: the bits of the hubs fit the first cache.

use std::sync::atomic::Ordering;

use tiergraph_core::Result;

use super::Search;

/// How many words of bits a thread takes at a time.
const CHUNK: usize = 1 << 10;

/// A set of vertices as a bitmap.
#[derive(Debug)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    /// Whether `v` is in the set.
    #[inline(always)]
    pub(super) fn has(&self, v: u64) -> bool {
        self.0.get((v / 64) as usize).is_some_and(|word| word >> (v % 64) & 1 > 0)
    }
}

impl Search<'_> {
    /// The set of vertices whose depth is `wanted`.
    pub(super) fn bits(&self, wanted: impl Fn(u32) -> bool + Sync) -> Result<Bits> {
        let mut bits = vec![0; self.depth.len().div_ceil(64)];
        let chunks = bits.chunks_mut(CHUNK).zip(self.depth.chunks(CHUNK * 64));
        self.graph.thread_pool().share(chunks, |_, chunks| {
            for (bits, depths) in chunks {
                for (word, depths) in bits.iter_mut().zip(depths.chunks(64)) {
                    for (i, depth) in depths.iter().enumerate() {
                        *word |= u64::from(wanted(depth.load(Ordering::Relaxed))) << i;
                    }
                }
            }
        })?;
        Ok(Bits(bits))
    }
}
