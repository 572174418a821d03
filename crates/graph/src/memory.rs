//! The memory that an opened graph and its algorithms share, and what of it resident blocks get.

use std::ops::Range;

use tiergraph_cache::{BlockFile, BlockKey};
use tiergraph_core::{ErrorKind, Result};
use tiergraph_mem::{AlignedBuf, Budget, LARGE_BYTES, MemoryPlan, Reservation};

use crate::Graph;
use crate::open::{BLOCKS_IN_FLIGHT, MOST_HELD};

/// What makes passes faster and is not needed takes at most this part of the memory.
const SHARE: u64 = 24;
/// The part of the memory that the same takes where a graph is larger than that, and so mostly read again by each pass.
const SHARE_WHERE_READ: u64 = 8;

/// A view of a graph's memory budget, made by [`Graph::memory`]: state of algorithms, indexes, buffers
/// and resident blocks all count in it.
#[derive(Clone, Copy)]
pub struct Memory<'g> {
    graph: &'g Graph,
}

impl Graph {
    /// A view of the memory budget that the graph and its algorithms share.
    pub fn memory(&self) -> Memory<'_> {
        Memory { graph: self }
    }
}

impl<'g> Memory<'g> {
    /// The budget that all reservations count in.
    pub fn budget(self) -> &'g Budget {
        &self.graph.budget
    }

    /// Lets resident blocks take all the memory that is not reserved. An algorithm calls this once it
    /// has reserved its state.
    pub fn plan_residency(self) {
        let capacity = if self.graph.residency { self.graph.budget.left() } else { 0 };
        self.graph.cache.retain(|block| !block.is_locked());
        self.graph.cache.set_capacity(capacity);
        self.bound_kept();
    }

    /// Lets resident blocks take all the memory that is not reserved, in buffers page-locked for a
    /// device, and drops blocks in other buffers. Returns the bytes that blocks may take.
    pub fn plan_locked_residency(self) -> u64 {
        let capacity = if self.graph.residency { self.graph.budget.left() } else { 0 };
        self.graph.cache.retain(AlignedBuf::is_locked);
        self.graph.cache.set_capacity(capacity);
        capacity
    }

    /// Refuses a budget that is smaller than the indexes and buffers that the opened graph holds.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] where [`OpenOptions::refuse_later`](crate::OpenOptions::refuse_later) put this off.
    pub fn check(self) -> Result<()> {
        let nothing = MemoryPlan::default();
        match self.graph.budget.used() > self.graph.budget.limit() {
            true => {
                Err(self.graph.opened.0.refused(&Budget::new(self.graph.budget.limit()), &nothing))
            }
            false => Ok(()),
        }
    }

    /// Reserves `bytes` of state, named `what` in errors; resident blocks make room.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] when the state does not fit the memory.
    pub fn reserve(self, bytes: u64, what: &str) -> Result<Reservation> {
        self.reserve_all(&MemoryPlan::default().and(what.to_owned(), bytes))
    }

    /// Reserves `bytes` that a run can do without; `None` where the memory does not hold them.
    ///
    /// # Errors
    /// Those of [`reserve`](Self::reserve), but for [`ErrorKind::Budget`].
    pub fn reserve_if_left(self, bytes: u64, what: &str) -> Result<Option<Reservation>> {
        match self.reserve(bytes, what) {
            Err(error) if error.kind() == ErrorKind::Budget => Ok(None),
            reserved => reserved.map(Some),
        }
    }

    /// Reserves all memory of `plan`, as a run does when it begins; resident blocks make room.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] when it does not fit beside what the opened graph holds: the error lists
    /// the parts of both, and the least memory to open the graph with.
    pub fn reserve_all(self, plan: &MemoryPlan) -> Result<Reservation> {
        let reservation = plan.reserve(&self.graph.budget, &self.graph.opened.0)?;
        self.graph.cache.set_capacity(self.graph.cache.capacity().min(self.graph.budget.left()));
        self.bound_kept();
        Ok(reservation)
    }

    /// Bounds the memory of earlier runs that is kept by what a run reserves, whose place it takes: resident
    /// blocks may take the rest. Nothing is kept where arrays of vertices are no large blocks.
    fn bound_kept(self) {
        if let Some(keeping) = &self.graph.keeping {
            let state = self.graph.budget.used().saturating_sub(self.graph.opened.1.bytes());
            // Half of the vertices may have no arcs, and no state; bits of vertices are no large blocks.
            let of_vertices = self.graph.vertices() / 2 * size_of::<u32>();
            let kept = if of_vertices >= LARGE_BYTES { state / 16 * 15 } else { 0 };
            keeping.keep_at_most(kept);
        }
    }

    /// The most bytes of what makes passes faster and is not needed. Where resident blocks make room for it, a pass
    /// reads as much more: little, of a graph that is larger than the memory.
    fn share(self) -> u64 {
        let memory = self.budget().limit();
        memory / if self.graph.tiles().bytes() > memory { SHARE_WHERE_READ } else { SHARE }
    }

    /// How many blocks a worker may hold, to go over them together: as many as take, with those that are read
    /// meanwhile, a 24th of the memory, or an eighth where the graph is larger than that. None where these would be
    /// fewer than are read anyway.
    pub fn blocks_to_hold(self) -> usize {
        let of_one = self.blocks_of_workers();
        let of_file = self.graph.tiles().bytes() / of_one.max(1);
        let held = (self.share() / 2 / of_one.max(1)).min(of_file);
        if held < BLOCKS_IN_FLIGHT as u64 { 0 } else { (held as usize).min(MOST_HELD) }
    }

    /// Reserves the memory of as many blocks as workers may hold, beside the buffers that they have; nothing where it
    /// is not left.
    pub(crate) fn hold_blocks(self) -> Result<Option<(usize, Reservation)>> {
        let held = self.blocks_to_hold();
        let more = (2 * held).saturating_sub(BLOCKS_IN_FLIGHT) as u64;
        let reserved = match held {
            0 => None,
            _ => {
                self.reserve_if_left(more * self.blocks_of_workers(), "blocks that workers hold")?
            }
        };
        Ok(reserved.map(|reserved| (held, reserved)))
    }

    /// Bytes of a block for each worker.
    fn blocks_of_workers(self) -> u64 {
        self.graph.thread_pool().size() as u64 * self.graph.block_bytes() as u64
    }

    /// Reserves memory of `of_one` bytes `most` times, or as often as a 24th of the memory has room for it (an eighth
    /// where the graph is larger than that), for what a run can do without. Returns how often; 0 where the memory does
    /// not hold it.
    ///
    /// # Errors
    /// Those of [`reserve`](Self::reserve), but for [`ErrorKind::Budget`].
    pub fn reserve_a_share(
        self,
        of_one: u64,
        most: usize,
        what: &str,
    ) -> Result<(usize, Option<Reservation>)> {
        let count = (self.share() / of_one.max(1)).min(most as u64);
        let reserved = self.reserve_if_left(count * of_one, what)?;
        Ok((if reserved.is_some() { count as usize } else { 0 }, reserved))
    }

    /// Bytes that can be reserved without evicting a resident block.
    pub fn spare_bytes(self) -> u64 {
        self.graph.budget.left().saturating_sub(self.graph.cache.resident_bytes())
    }

    /// Where blocks of the file that passes read are in memory: for each of `cells` equal parts of it, or of as
    /// many as it has blocks, the share of its blocks that is resident. Empty where passes read pages of rows.
    pub fn residency(self, cells: usize) -> Vec<f64> {
        let manifest = self.graph.manifest();
        let kinds = match self.graph.pass_file() {
            Some("tiles.blocks") => [BlockFile::Tiles, BlockFile::TilesForDevice],
            Some("out.blocks") => [BlockFile::OutBlocks, BlockFile::OutBlocksForDevice],
            Some("in.blocks") => [BlockFile::InBlocks, BlockFile::InBlocksForDevice],
            _ => return Vec::new(),
        };
        let bytes = self.graph.pass_file().and_then(|name| manifest.files.get(name));
        let blocks = bytes.map_or(0, |file| file.bytes / u64::from(manifest.block_bytes));
        let is_resident = |block: u64| {
            kinds.iter().any(|&file| self.graph.cache.contains(BlockKey { file, block }))
        };
        parts(blocks, cells)
            .map(|part| {
                let resident = part.clone().filter(|&block| is_resident(block)).count();
                resident as f64 / (part.end - part.start) as f64
            })
            .collect()
    }

    /// Bytes that resident blocks take now.
    pub fn resident_bytes(self) -> u64 {
        self.graph.cache.resident_bytes()
    }
}

/// `count` blocks as at most `cells` parts that differ by one block at most; none of them is empty.
fn parts(count: u64, cells: usize) -> impl Iterator<Item = Range<u64>> {
    let cells = (cells as u64).min(count);
    (0..cells).map(move |cell| cell * count / cells..(cell + 1) * count / cells)
}
