//! Locked host memory for blocks that the device has no room for and host memory has.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tiergraph_core::ByteSize;
use tiergraph_gpu::{Device, PinnedPool};
use tiergraph_graph::Graph;
use tiergraph_mem::AlignedBuf;

/// Bytes that are locked at a time.
const PIECE_BYTES: usize = 32 << 20;

/// Buffers of a block each, locked when they are needed: in them, blocks stay from pass to pass and from
/// run to run.
#[derive(Debug)]
pub(crate) struct LockedBlocks {
    device: Device,
    block_bytes: usize,
    room: Mutex<Room>,
}

#[derive(Debug)]
struct Room {
    /// Buffers that are locked and not used yet, the first in memory last.
    spare: Vec<AlignedBuf>,
    /// Blocks that may still be locked.
    left: usize,
    why: String,
}

impl LockedBlocks {
    /// Room for blocks in locked memory, `wanted` in all: as many as the graph's budget holds, beside those
    /// that an earlier run left there.
    pub fn new(graph: &Graph, device: &Device, block_bytes: usize, wanted: usize) -> Self {
        let bytes = graph.plan_locked_residency();
        let missing = wanted.saturating_sub(graph.resident_bytes() as usize / block_bytes);
        let left =
            (bytes.saturating_sub(graph.resident_bytes()) as usize / block_bytes).min(missing);
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

    /// Another buffer; none where the budget, or the system, gives no more.
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

    /// Why no more blocks stay in locked memory.
    pub fn why(&self) -> String {
        self.lock().why.clone()
    }
}
