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
