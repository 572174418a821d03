//! How many slots a pass has, and who fills them.

use tiergraph_gpu::kernels::MAX_BATCH;

use super::tables::Tables;
use crate::gpu::Transfers;

/// Slots take one part of so many of the device's memory that state leaves, or a block each.
const SHARE: u64 = 4;

/// How many slots there are.
#[derive(Debug, Clone, Copy)]
pub(in crate::gpu) struct Shape {
    /// Threads that bring blocks.
    pub lanes: usize,
    /// Slots a lane: one is being filled while the others are computed on.
    pub slots: usize,
    /// Blocks that are computed on together.
    pub batch: usize,
}

impl Shape {
    /// For as many `workers` and the blocks of `tables`, of the `room` that there is on the device:
    /// where that is little, batches are smaller.
    pub fn of(transfers: Transfers, workers: usize, tables: &Tables, room: u64) -> Self {
        Self::sized(transfers, workers, tables.blocks, (tables.slot_bytes(), room))
    }

    fn sized(
        transfers: Transfers,
        workers: usize,
        blocks: u32,
        (block_bytes, room): (u64, u64),
    ) -> Self {
        let (lanes, slots, most) = match transfers {
            Transfers::Synchronous => (workers, 3, 1),
            Transfers::Asynchronous | Transfers::Direct => (workers, 3, MAX_BATCH),
        };
        // Of a small graph, every lane has something.
        let share = blocks as usize / (2 * lanes);
        let fit = room / SHARE / (block_bytes * (lanes * slots) as u64);
        let batch = share.min(usize::try_from(fit).unwrap_or(most)).clamp(1, most);
        Self { lanes, slots, batch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_take_a_quarter_of_the_room_and_at_least_a_block_each() {
        let batch = |workers, blocks, room: u64| {
            Shape::sized(Transfers::Asynchronous, workers, blocks, (1 << 20, room << 20)).batch
        };
        assert_eq!(batch(12, 1000, 4 * 12 * 3 * 8), MAX_BATCH);
        assert_eq!(batch(12, 1000, 4 * 12 * 3 * 8 - 1), MAX_BATCH - 1);
        assert_eq!((batch(12, 1000, 0), batch(12, 48, 1 << 20)), (1, 2));
    }
}
