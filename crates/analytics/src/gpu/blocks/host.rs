//! Blocks that the device has no room for and host memory has.

use tiergraph_core::{ByteSize, Result};
use tiergraph_gpu::{Device, PinnedPool};
use tiergraph_graph::Graph;
use tiergraph_mem::Reservation;

use super::reader::Reader;
use super::tables::Tables;

/// Bytes that are locked at a time.
const PIECE_BYTES: u64 = 1 << 30;

/// The blocks after those on the device, in pinned memory that the reader has.
pub(in crate::gpu) struct HostBlocks {
    blocks: u32,
    why: String,
    held: Vec<Reservation>,
}

impl HostBlocks {
    pub fn none(why: &str) -> Self {
        Self { blocks: 0, why: why.into(), held: Vec::new() }
    }

    /// Has `reader` keep blocks from `first` on, as many as the graph's budget has room for.
    pub fn load(
        (graph, device, tables): (&Graph, &Device, &Tables),
        first: u32,
        reader: &mut Reader,
    ) -> Result<Self> {
        let Reader::Staged(reader) = reader else {
            return Ok(Self::none("blocks do not pass through host memory"));
        };
        let size = tables.block_bytes as u64;
        let room = graph.budget().left() / size;
        let blocks: Vec<u32> = (first..tables.blocks).take(room as usize).collect();
        let mut kept = Self::none("all others fit");
        if blocks.len() < (tables.blocks - first) as usize {
            kept.why = format!("`--memory` leaves {} to blocks", ByteSize(room * size));
        }
        for piece in blocks.chunks((PIECE_BYTES / size).max(1) as usize) {
            let bytes = piece.len() as u64 * size;
            let held = graph.reserve(bytes, "blocks in pinned memory")?;
            match PinnedPool::buffers(device, piece.len(), size as usize) {
                Ok(buffers) => reader.keep(graph, (tables.file, piece), buffers)?,
                // The system locks less than the budget allows: the others are read.
                Err(error) => {
                    kept.why = error.to_string();
                    break;
                }
            }
            kept.held.push(held);
            kept.blocks += piece.len() as u32;
        }
        Ok(kept)
    }

    pub fn blocks(&self) -> u32 {
        debug_assert!(self.blocks == 0 || !self.held.is_empty());
        self.blocks
    }

    /// Why so many.
    pub fn why(&self) -> &str {
        &self.why
    }
}
