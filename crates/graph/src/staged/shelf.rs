//! Blocks that a worker of staged passes keeps in host memory from pass to pass.

use std::sync::{Mutex, PoisonError};

use tiergraph_core::Result;
use tiergraph_mem::AlignedBuf;

use super::Stage;

/// Blocks of the shelf that are on their way to the device at a time: enough to keep the link busy,
/// and few enough that what is read need not wait long for it.
const UNDER_WAY: usize = 16;

/// Spare buffers that a worker takes at a time: they lie side by side, and are copied together.
const NEIGHBOURS: usize = 8;

/// The number of no block.
const NONE: u32 = u32::MAX;

/// One worker's blocks, none of which any other worker has.
#[derive(Default)]
pub(super) struct Shelf {
    kept: Vec<(u32, AlignedBuf)>,
    /// Of this pass, what is still to be handed over.
    todo: Vec<(u32, AlignedBuf)>,
    under_way: usize,
}

impl Shelf {
    /// Puts those of `wanted`, which ascends, up for this pass.
    pub(super) fn begin(&mut self, wanted: &[u32]) {
        self.under_way = 0;
        // They come back in whatever order; neighbours are to go out together again.
        self.kept.sort_by_key(|(_, buffer)| buffer.as_ptr());
        let is_wanted = |kept: &mut (u32, AlignedBuf)| wanted.binary_search(&kept.0).is_ok();
        self.todo = self.kept.extract_if(.., is_wanted).collect();
    }

    /// Whether some are still to be handed over.
    pub(super) fn is_waiting(&self) -> bool {
        !self.todo.is_empty()
    }

    /// The next block for the device, unless there are enough on their way.
    pub(super) fn next(&mut self) -> Option<(u32, AlignedBuf)> {
        let next = if self.under_way < UNDER_WAY { self.todo.pop() } else { None };
        self.under_way += usize::from(next.is_some());
        next
    }

    /// Takes a block back from the device.
    pub(super) fn put_back(&mut self, block: u32, buffer: AlignedBuf) {
        self.under_way -= 1;
        self.kept.push((block, buffer));
    }

    /// Takes a block that was read.
    pub(super) fn add(&mut self, block: u32, buffer: AlignedBuf) {
        self.kept.push((block, buffer));
    }

    /// Ends a pass, whatever was left of it.
    pub(super) fn end(&mut self) {
        self.kept.append(&mut self.todo);
    }

    /// The blocks that are here between passes: a device that failed may have kept some.
    pub(super) fn blocks(&self) -> impl Iterator<Item = u32> {
        self.kept.iter().map(|(block, _)| *block)
    }
}

/// The stage that keeps what is read, and gives a spare buffer for each block.
pub(super) struct Keeping<'a> {
    pub(super) taken: Vec<(u32, AlignedBuf)>,
    spare: &'a Mutex<Vec<AlignedBuf>>,
    /// Buffers taken and not given back.
    owed: usize,
}

impl<'a> Keeping<'a> {
    /// `spare` has a buffer for every block of the pass.
    pub(super) fn new(spare: &'a Mutex<Vec<AlignedBuf>>) -> Self {
        Self { taken: Vec::new(), spare, owed: 0 }
    }
}

impl Stage for Keeping<'_> {
    fn take(&mut self, block: u32, buffer: AlignedBuf) -> Result<()> {
        self.taken.push((block, buffer));
        self.owed += 1;
        Ok(())
    }

    fn give_back(&mut self, to: &mut Vec<(u32, AlignedBuf)>, wait: bool) -> Result<()> {
        if self.owed < NEIGHBOURS && !wait {
            return Ok(());
        }
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let first = spare.len().saturating_sub(self.owed);
        self.owed -= spare.len() - first;
        to.extend(spare.drain(first..).map(|buffer| (NONE, buffer)));
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
