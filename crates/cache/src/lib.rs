//! Which blocks, pages and rows of a graph stay in memory.
//!
//! The cache of blocks is static: a block that was cached stays until the capacity shrinks. A pass
//! reads every block once, in one order, and a replacement policy such as LRU holds nothing of a scan
//! that is longer than the cache, while any static set saves its own size of reading in every pass
//! (RealGraphGPU's buffer pre-checking is the same observation: look at what is resident first).
//! A capacity that shrinks evicts the blocks that were cached last.
//!
//! Samplers use single rows and pages, some far more often than others: [`placement`] chooses
//! which of them a memory tier holds, and [`RankedSet`] tells where each lies in it.
#![forbid(unsafe_code)]

pub mod placement;
mod ranked;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tiergraph_mem::AlignedBuf;

pub use ranked::RankedSet;

/// A kind of file of a graph, whose blocks may be cached. Blocks of which a GPU compares the checksums
/// have variants of their own, so that they are never taken for blocks that the CPU compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockFile {
    /// Blocks of `tiles.blocks`, checksums compared.
    Tiles,
    /// Blocks of pages of `out.rows`, whose checksums were compared.
    OutRows,
    /// Blocks of pages of `in.rows`, whose checksums were compared.
    InRows,
    /// Blocks of `out.blocks`, checksums compared.
    OutBlocks,
    /// Blocks of `in.blocks`, checksums compared.
    InBlocks,
    /// Blocks of `tiles.blocks` for copies to a GPU, checksums not compared.
    TilesForDevice,
    /// Blocks of `out.blocks` for copies to a GPU, checksums not compared.
    OutBlocksForDevice,
    /// Blocks of `in.blocks` for copies to a GPU, checksums not compared.
    InBlocksForDevice,
}

/// The key of a cached block in the cache of one graph: the kind of its file, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockKey {
    /// The kind of file that holds the block: a graph has at most one file of each kind.
    pub file: BlockFile,
    /// The block's number in its file.
    pub block: u64,
}

/// A cache of blocks, up to a capacity in bytes, shared by all workers. It takes blocks while there is
/// room and replaces none; only `set_capacity` and `retain` evict.
///
/// ```
/// use tiergraph_cache::{BlockCache, BlockFile, BlockKey};
/// use tiergraph_mem::AlignedBuf;
/// let cache = BlockCache::new(8192);
/// let key = |block| BlockKey { file: BlockFile::Tiles, block };
/// for block in 0..3 {
///     let _ = cache.offer(key(block), AlignedBuf::zeroed(4096).unwrap());
/// }
/// assert!(cache.get(key(1)).is_some() && cache.get(key(2)).is_none());
/// assert_eq!(cache.resident_bytes(), 8192);
/// ```
#[derive(Debug)]
pub struct BlockCache(Mutex<Resident>);

#[derive(Debug, Default)]
struct Resident {
    blocks: HashMap<BlockKey, Arc<AlignedBuf>>,
    /// Keys of all blocks, in the order in which the blocks were cached.
    order: Vec<BlockKey>,
    bytes: u64,
    capacity: u64,
}

impl BlockCache {
    /// An empty cache of `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        Self(Mutex::new(Resident { capacity, ..Resident::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, Resident> {
        // Every update leaves the counts whole, so a panic elsewhere does not spoil them.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The block that `key` names; `None` if it is not resident.
    pub fn get(&self, key: BlockKey) -> Option<Arc<AlignedBuf>> {
        self.lock().blocks.get(&key).cloned()
    }

    /// Whether the cache holds the block that `key` names.
    pub fn contains(&self, key: BlockKey) -> bool {
        self.lock().blocks.contains_key(&key)
    }

    /// Caches a block that was just read, if there is room.
    ///
    /// # Errors
    /// Hands the buffer back where there is no room, or where the block is resident already.
    pub fn offer(&self, key: BlockKey, block: AlignedBuf) -> Result<Arc<AlignedBuf>, AlignedBuf> {
        let mut resident = self.lock();
        let bytes = block.len() as u64;
        if resident.bytes + bytes > resident.capacity || resident.blocks.contains_key(&key) {
            return Err(block);
        }
        let block = Arc::new(block);
        resident.bytes += bytes;
        resident.order.push(key);
        resident.blocks.insert(key, Arc::clone(&block));
        Ok(block)
    }

    /// Changes the capacity to `bytes`; while blocks exceed it, evicts the one that was cached last.
    pub fn set_capacity(&self, bytes: u64) {
        let mut resident = self.lock();
        resident.capacity = bytes;
        while resident.bytes > resident.capacity {
            let Some(key) = resident.order.pop() else { break };
            if let Some(block) = resident.blocks.remove(&key) {
                resident.bytes -= block.len() as u64;
            }
        }
    }

    /// Evicts the blocks for which `wanted` is false.
    pub fn retain(&self, wanted: impl Fn(&AlignedBuf) -> bool) {
        let Resident { blocks, order, bytes, .. } = &mut *self.lock();
        blocks.retain(|_, block| wanted(block));
        order.retain(|key| blocks.contains_key(key));
        *bytes = blocks.values().map(|block| block.len() as u64).sum();
    }

    /// The most bytes that all blocks may take.
    pub fn capacity(&self) -> u64 {
        self.lock().capacity
    }

    /// Bytes that further blocks may take.
    pub fn left(&self) -> u64 {
        let resident = self.lock();
        resident.capacity.saturating_sub(resident.bytes)
    }

    /// Bytes that all blocks take now.
    pub fn resident_bytes(&self) -> u64 {
        self.lock().bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_wanted_is_evicted_and_its_room_is_free() {
        let cache = BlockCache::new(4 * 4096);
        let key = |block| BlockKey { file: BlockFile::Tiles, block };
        for block in 0..4 {
            let mut bytes = AlignedBuf::zeroed(4096).unwrap();
            bytes[0] = block as u8;
            cache.offer(key(block), bytes).unwrap();
        }
        cache.retain(|block| block[0] % 2 == 0);
        assert_eq!((cache.resident_bytes(), cache.left()), (2 * 4096, 2 * 4096));
        let here: Vec<u64> = (0..4).filter(|&block| cache.contains(key(block))).collect();
        assert_eq!(here, [0, 2]);
        // What is left is evicted in the order in which it came, the last first.
        cache.set_capacity(4096);
        assert!(cache.contains(key(0)) && !cache.contains(key(2)));
    }

    #[test]
    fn a_smaller_capacity_evicts_what_came_last() {
        let cache = BlockCache::new(1 << 20);
        let key = |block| BlockKey { file: BlockFile::OutRows, block };
        for block in 0..5 {
            cache.offer(key(block), AlignedBuf::zeroed(4096).unwrap()).unwrap();
        }
        assert!(cache.offer(key(0), AlignedBuf::zeroed(4096).unwrap()).is_err());
        cache.set_capacity(2 * 4096 + 100);
        let left: Vec<u64> = (0..5).filter(|&b| cache.contains(key(b))).collect();
        assert_eq!(left, [0, 1]);
        assert_eq!((cache.resident_bytes(), cache.left()), (8192, 100));
        assert_eq!(cache.capacity(), 2 * 4096 + 100);
    }
}
