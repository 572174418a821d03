//! The slot plan: how many slots on the device a pass streams blocks through, and by how many workers.

use tiergraph_gpu::kernels::MAX_BATCH;

use super::index::BlockIndex;
use crate::gpu::Transfers;

/// Slots take one part in so many of the device memory that vertex state leaves, or a block each.
const SLOTS_SHARE: u64 = 4;
/// Slots of a worker: one is being filled while the others are computed on.
const SLOTS: usize = 3;

/// A plan of how blocks stream to the device: through how many workers and slots, in what batches.
#[derive(Debug, Clone, Copy)]
pub(in crate::gpu) struct SlotPlan {
    pub transfers: Transfers,
    /// The number of threads that read blocks and submit work on them.
    pub workers: usize,
    /// The number of slots that each worker has.
    pub slots: usize,
    /// The number of blocks in a slot, which are computed on together.
    pub batch: usize,
}

impl SlotPlan {
    /// The plan for so many `workers` and the blocks of `index`, with `room` bytes of device memory
    /// beside vertex state: where that is little, slots are smaller.
    pub fn of(transfers: Transfers, workers: usize, index: &BlockIndex, room: u64) -> Self {
        Self::sized(transfers, workers, index.blocks, index.slot_bytes(), room)
    }

    fn sized(
        transfers: Transfers,
        workers: usize,
        blocks: u32,
        block_bytes: u64,
        room: u64,
    ) -> Self {
        let most = if transfers == Transfers::Synchronous { 1 } else { MAX_BATCH };
        // Of a small graph, every worker has something.
        let of_worker = blocks as usize / (2 * workers);
        let fit = room / SLOTS_SHARE / (block_bytes * (workers * SLOTS) as u64);
        let batch = of_worker.min(usize::try_from(fit).unwrap_or(most)).clamp(1, most);
        Self { transfers, workers, slots: SLOTS, batch }
    }

    /// Bytes of device memory that slots of `slot_bytes` take at least.
    pub fn least_bytes(workers: usize, slot_bytes: u64) -> u64 {
        (workers * SLOTS) as u64 * slot_bytes
    }

    /// Bytes of device memory that all slots for the blocks of `index` take.
    pub fn device_bytes(&self, index: &BlockIndex) -> u64 {
        (self.workers * self.slots * self.batch) as u64 * index.slot_bytes()
    }

    /// Whether each worker finishes one block before it reads the next, so that nothing overlaps.
    pub fn is_synchronous(&self) -> bool {
        self.transfers == Transfers::Synchronous
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_take_a_quarter_of_the_room_and_at_least_a_block_each() {
        let batch = |workers, blocks, room: u64| {
            SlotPlan::sized(Transfers::Asynchronous, workers, blocks, 1 << 20, room << 20).batch
        };
        assert_eq!(batch(12, 1000, 4 * 12 * 3 * 8), MAX_BATCH);
        assert_eq!(batch(12, 1000, 4 * 12 * 3 * 8 - 1), MAX_BATCH - 1);
        assert_eq!((batch(12, 1000, 0), batch(12, 48, 1 << 20)), (1, 2));
    }
}
