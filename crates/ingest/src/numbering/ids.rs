//! Integers that are numbered.

use tiergraph_format::names::mix;

use super::Keys;

/// Keys by which the list grows at least.
const STEP: usize = 1 << 12;

/// Ids in the order in which they first came.
#[derive(Default)]
pub(crate) struct Ids(Vec<u64>);

impl Ids {
    pub(crate) fn into_all(self) -> Vec<u64> {
        self.0
    }
}

impl Keys for Ids {
    type Key<'k> = u64;

    const WHAT: &'static str = "the distinct ids";

    #[inline]
    fn hash(id: u64) -> u64 {
        mix(id)
    }

    fn count(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn is(&self, number: usize, id: u64) -> bool {
        self.0[number] == id
    }

    fn hash_of(&self, number: usize) -> u64 {
        mix(self.0[number])
    }

    fn push(&mut self, id: u64) {
        self.0.push(id);
    }

    fn bytes(&self) -> u64 {
        8 * self.0.capacity() as u64
    }

    fn growth(&self, keys: &[(u64, u64)]) -> u64 {
        let room = self.0.capacity() - self.0.len();
        if room >= keys.len() { 0 } else { 8 * (self.0.len() / 4).max(STEP) as u64 }
    }

    fn grow(&mut self, _keys: &[(u64, u64)]) {
        self.0.reserve_exact((self.0.len() / 4).max(STEP));
    }
}
