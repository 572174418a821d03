//! How many completions have come, as the host sees it in the rings that kernels take them from.

use tiergraph_nvme::SharedMemory;
use tiergraph_nvme::completion::COMPLETION_BYTES;

/// The byte of a completion at which its last word is, which has the phase tag (Base 3.3.3.2).
const LAST_WORD: usize = 12;
/// The bit of the phase tag.
const PHASE: u32 = 1 << 16;

/// The completions of a set of queue pairs.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// The rings, and for each the number of completions that were counted.
    rings: Vec<(SharedMemory, u32)>,
    entries_log2: u32,
}

impl Arrivals {
    /// The completions of rings of `2^entries_log2` entries that are new.
    pub fn new(rings: &[SharedMemory], entries_log2: u32) -> Self {
        Self { rings: rings.iter().map(|ring| (ring.clone(), 0)).collect(), entries_log2 }
    }

    /// Counts the completions that have come since the last call.
    pub fn count(&mut self) -> u32 {
        let log2 = self.entries_log2;
        let mut come = 0;
        for (ring, counted) in &mut self.rings {
            for _ in 0..1 << log2 {
                let entry = (*counted & ((1 << log2) - 1)) as usize;
                let word = ring.load_acquire(entry * COMPLETION_BYTES + LAST_WORD);
                // Those of the first round of a ring have the tag 1.
                let is_there = (word & PHASE != 0) == (*counted >> log2 & 1 == 0);
                if !is_there {
                    break;
                }
                *counted = counted.wrapping_add(1);
                come += 1;
            }
        }
        come
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn completions_are_counted_once_through_many_rounds_of_their_rings() {
        let rings = [(); 3].map(|()| SharedMemory::zeroed(8 * COMPLETION_BYTES).unwrap());
        let mut arrivals = Arrivals::new(&rings, 3);
        let mut written = [0_u32; 3];
        for step in 0..100 {
            let mut come = 0;
            for (number, (ring, written)) in rings.iter().zip(&mut written).enumerate() {
                // At most a whole ring at a time, as many as there are entries.
                for _ in 0..(step * (number + 2)) % 9 {
                    let entry = (*written & 7) as usize;
                    let phase = if *written >> 3 & 1 == 0 { PHASE } else { 0 };
                    ring.store_release(entry * COMPLETION_BYTES + LAST_WORD, phase | 77);
                    *written += 1;
                    come += 1;
                }
            }
            assert_eq!((arrivals.count(), arrivals.count()), (come, 0));
        }
        assert!(written.iter().all(|&written| written > 100));
    }
}
