//! How many slots a pass has, and who fills them.

use tiergraph_gpu::kernels::BATCH;

use crate::gpu::Transfers;

/// Lanes for each of the graph's threads: they mostly wait.
const LANES: usize = 4;

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
    /// For `blocks` and as many `workers`.
    pub fn of(transfers: Transfers, workers: usize, blocks: u32) -> Self {
        let (lanes, slots, most) = match transfers {
            Transfers::Synchronous => (workers, 3, 1),
            Transfers::Asynchronous => (workers, 3, BATCH),
            // Four times the lanes, and not much more device memory.
            Transfers::Direct => (workers * LANES, 2, BATCH / 2),
        };
        // Of a small graph, every lane has something.
        let batch = (blocks as usize / (2 * lanes)).clamp(1, most);
        Self { lanes, slots, batch }
    }
}
