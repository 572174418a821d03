//! Counts of how often each vertex occurs: a byte that is incremented, and a word for its overflows.

use tiergraph_core::Result;
use tiergraph_mem::{Budget, prefetch};

use crate::build::array::Array;

const WHAT: &str = "the degrees";

/// Ids between those whose counters are prefetched and those that are counted.
const AHEAD: usize = 64;

/// A counter for each vertex.
#[derive(Debug)]
pub(crate) struct Counts {
    bytes: Array<u8>,
    /// Overflows of the bytes, in steps of 256.
    words: Array<u32>,
}

impl Counts {
    /// Makes `len` counters, all 0.
    pub(crate) fn zeroed(len: usize, budget: &Budget) -> Result<Self> {
        Ok(Self {
            bytes: Array::zeroed(len, budget, WHAT)?,
            words: Array::zeroed(len, budget, WHAT)?,
        })
    }

    /// The number of counters.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds counters until there are `len`.
    pub(crate) fn grow(&mut self, len: usize, budget: &Budget) -> Result<()> {
        // A refusal leaves what was counted: room for both is there before either moves.
        let (words, bytes) = (Array::zeroed(len, budget, WHAT)?, Array::zeroed(len, budget, WHAT)?);
        self.words.move_to(words);
        self.bytes.move_to(bytes);
        Ok(())
    }

    /// Counts the ids whose indices in `ids` satisfy `counted`; true if a counter overflowed.
    pub(crate) fn count(&mut self, ids: &[u32], counted: impl Fn(usize) -> bool) -> bool {
        let (bytes, words) = (&mut self.bytes[..], &mut self.words[..]);
        let mut overflow = false;
        for (position, &id) in ids.iter().enumerate() {
            if let Some(&later) = ids.get(position + AHEAD) {
                prefetch(bytes, later as usize);
            }
            if !counted(position) {
                continue;
            }
            let byte = &mut bytes[id as usize];
            *byte = byte.wrapping_add(1);
            if *byte == 0 {
                let word = &mut words[id as usize];
                *word = word.wrapping_add(1 << u8::BITS);
                overflow |= *word == 0;
            }
        }
        overflow
    }

    /// Calls `visit(id, count)` for every id that occurred.
    pub(crate) fn each(&self, mut visit: impl FnMut(u64, u64)) {
        let counts = self.words.iter().zip(self.bytes.iter()).map(|(w, b)| w + u32::from(*b));
        for (id, count) in counts.enumerate().filter(|(_, count)| *count > 0) {
            visit(id as u64, count.into());
        }
    }

    /// The counts of all vertices.
    pub(crate) fn finish(mut self) -> Array<u32> {
        self.words
            .iter_mut()
            .zip(self.bytes.iter())
            .for_each(|(word, byte)| *word += u32::from(*byte));
        self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_beyond_a_byte_and_survive_growth() {
        let budget = Budget::new(1 << 20);
        let mut counts = Counts::zeroed(2, &budget).unwrap();
        assert!(!counts.count(&(0..1000).map(|i| i % 2).collect::<Vec<_>>(), |_| true));
        counts.grow(5, &budget).unwrap();
        assert!(!counts.count(&[&[4; 300][..], &[1, 2, 0]].concat(), |position| position < 302));
        assert_eq!(counts.finish()[..], [500, 501, 1, 0, 300]);
    }

    #[test]
    fn a_full_counter_is_told() {
        let budget = Budget::new(1 << 20);
        let mut counts = Counts::zeroed(1, &budget).unwrap();
        counts.words[0] = u32::MAX << 8;
        assert!(!counts.count(&[0; 255], |_| true));
        assert!(counts.count(&[0], |_| true));
    }
}
