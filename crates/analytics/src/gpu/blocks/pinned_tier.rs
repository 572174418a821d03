//! The pinned tier: blocks that the device has no room for stay in pinned host memory, as far as the
//! graph's budget holds them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tiergraph_core::ByteSize;
use tiergraph_gpu::{Device, PinnedPool};
use tiergraph_graph::Graph;
use tiergraph_mem::AlignedBuf;

/// Bytes of memory that are pinned at a time.
const PIECE_BYTES: usize = 32 << 20;

/// Pinned buffers of a block each, which are made when they are needed. Blocks stay in them from pass to
/// pass and from run to run.
#[derive(Debug)]
pub(crate) struct PinnedTier {
    device: Device,
    block_bytes: usize,
    room: Mutex<Room>,
}

#[derive(Debug)]
struct Room {
    /// Buffers that are pinned and not used yet, the first in memory last.
    spare: Vec<AlignedBuf>,
    /// How many further buffers may be pinned.
    left: usize,
    /// Why no more blocks stay in the tier.
    why: String,
}

impl PinnedTier {
    /// Makes a tier for `wanted` blocks, or as many of them as the graph's budget holds, with those that
    /// an earlier run left in it.
    pub fn new(graph: &Graph, device: &Device, block_bytes: usize, wanted: usize) -> Self {
        let bytes = graph.memory().plan_locked_residency();
        let missing = wanted.saturating_sub(graph.memory().resident_bytes() as usize / block_bytes);
        let left = (bytes.saturating_sub(graph.memory().resident_bytes()) as usize / block_bytes)
            .min(missing);
        let why = match left < missing {
            true => format!("`--memory` leaves {} to blocks", ByteSize(bytes)),
            false => "all others fit".into(),
        };
        let room = Mutex::new(Room { spare: Vec::new(), left, why });
        Self { device: device.clone(), block_bytes, room }
    }

    fn lock(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another pinned buffer; `None` where the budget, or the system, allows no more.
    pub fn next(&self) -> Option<AlignedBuf> {
        let mut room = self.lock();
        if room.spare.is_empty() && room.left > 0 {
            let count = room.left.min((PIECE_BYTES / self.block_bytes).max(1));
            match PinnedPool::buffers(&self.device, count, self.block_bytes) {
                Ok(buffers) => {
                    room.spare = buffers;
                    room.spare.reverse();
                    room.left -= count;
                }
                // The system locks less than the budget allows: the other blocks are read.
                Err(error) => (room.left, room.why) = (0, error.to_string()),
            }
        }
        room.spare.pop()
    }

    /// Why no more blocks stay in the tier.
    pub fn why(&self) -> String {
        self.lock().why.clone()
    }
}
