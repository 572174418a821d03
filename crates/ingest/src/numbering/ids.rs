//! Integers that are numbered.

use tiergraph_core::Result;
use tiergraph_core::finalize;
use tiergraph_mem::Segments;

use super::Keys;

/// Ids in the order in which they first came.
#[derive(Default)]
pub(crate) struct Ids(Segments<u64>);

impl Ids {
    /// All of them.
    pub(crate) fn into_all(self) -> Vec<u64> {
        let count = self.0.len();
        let mut all = Vec::with_capacity(count);
        for part in self.0.into_parts() {
            all.extend_from_slice(&part[..part.len().min(count - all.len())]);
        }
        all
    }
}

impl Keys for Ids {
    type Key<'k> = u64;

    const WHAT: &'static str = "the distinct ids";

    #[inline]
    fn hash(id: u64) -> u64 {
        finalize(id)
    }

    fn count(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn is(&self, number: usize, id: u64) -> bool {
        self.0.get(number) == id
    }

    #[inline]
    fn prefetch_place(&self, number: usize) {
        self.0.prefetch(number);
    }

    #[inline]
    fn prefetch(&self, _number: usize) {}

    fn hash_of(&self, number: usize) -> u64 {
        finalize(self.0.get(number))
    }

    #[inline]
    fn push(&mut self, id: u64) {
        self.0.push(id);
    }

    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn growth(&self, keys: &[(u64, u64)]) -> u64 {
        if self.0.room() >= keys.len() { 0 } else { Segments::<u64>::SEGMENT_BYTES }
    }

    fn grow(&mut self, _keys: &[(u64, u64)]) -> Result<()> {
        self.0.grow()
    }
}
