//! One loop for everything that reads: plan → residency → fill → poll → hand over → recycle.
//!
//! A [`Plan`] lists the [`Request`]s of a pass. Each worker has an engine, [`Buffers`] and a
//! [`Consumer`], keeps the engine full from its share of the plan and then from the others', and waits
//! for nobody else's reads (RealGraphGPU++'s asynchronous CPU threads). Requests whose blocks are
//! resident are handed over while others are read, and what was read becomes resident where there is
//! room. Where it is known that the same pass comes again, its reads begin before this one ends, so
//! that the drive works while vertices are updated; what they bring is for the next pass's consumers.
//!
//! | consumer | takes | gives back |
//! |---|---|---|
//! | a CPU's visitor | host memory | at once |
//! | a GPU's slots | host memory, and copies it | when the copy has ended |
//! | a GPU's slots, by an engine that writes to devices | device memory | when it was computed on |
//! | a reader of pages | host memory | at once, and has other work while reads are in flight |

mod buffers;
mod plan;
mod worker;
mod workers;

use std::sync::Arc;

use tiergraph_cache::BlockCache;
use tiergraph_core::metrics::Totals;
use tiergraph_core::trace::Trace;
use tiergraph_core::{Cancel, Result};
use tiergraph_gpu::DeviceSpan;
use tiergraph_mem::AlignedBuf;

pub use buffers::{Buffers, SMALL_READ_BYTES};
pub use plan::{Plan, Request};
pub use worker::{Pass, Worker};
pub use workers::ReadWorkers;

/// What follows a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextPass {
    /// Nothing that is known yet.
    Unknown,
    /// Another pass over the same: its reads begin before this one ends, once it is settled which
    /// blocks are resident.
    Same,
}

/// What surrounds a pass.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// Flags that end the pass when one is set.
    pub cancels: [&'a Cancel; 2],
    /// What reads, and the time of workers, are added to.
    pub totals: &'a Totals,
    /// Where spans go.
    pub trace: &'a Trace,
    /// The blocks that are resident, and may become so.
    pub residency: Option<&'a BlockCache>,
    /// What the pass is, as errors of cancellation say it.
    pub op: &'static str,
}

/// Where the bytes of a block are.
#[derive(Debug)]
pub enum Bytes {
    /// A buffer that they were just read into, and must be checked in.
    Host(AlignedBuf),
    /// A buffer in which they stay from pass to pass.
    Resident(Arc<AlignedBuf>),
    /// Device memory that they were just read into.
    Device(DeviceSpan),
}

impl Bytes {
    /// The bytes in host memory; none of device memory.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Host(buffer) => buffer,
            Self::Resident(buffer) => buffer,
            Self::Device(_) => &[],
        }
    }
}

/// The bytes of a request, for a consumer.
#[derive(Debug)]
pub struct Block {
    /// The request's number in the plan.
    pub number: usize,
    /// The request's bytes, which are the first here; zeros past the file's end.
    pub len: usize,
    /// Where they are.
    pub bytes: Bytes,
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_slice()
    }
}

/// Where a request's bytes may go.
#[derive(Debug)]
pub enum Room {
    /// One of the worker's buffers.
    Buffer,
    /// Device memory.
    Device(DeviceSpan),
    /// Nowhere, until the consumer has given something back.
    None,
}

/// What is done with the blocks of a pass; one a worker.
pub trait Consumer {
    /// What the time with a block is in traces.
    const ACTIVITY: &'static str;

    /// Where the bytes of a request shall go.
    ///
    /// # Errors
    /// Whatever the device gives; ends the pass.
    fn room(&mut self, _number: usize) -> Result<Room> {
        Ok(Room::Buffer)
    }

    /// Takes a block, without waiting for what becomes of it. Blocks that are not needed any more go
    /// to `back`, at once or at a later [`give_back`](Self::give_back). After [`finish`](Self::finish),
    /// a block is of the pass after this.
    ///
    /// # Errors
    /// Whatever comes of the block; ends the pass.
    fn take(&mut self, block: Block, back: &mut Vec<Block>) -> Result<()>;

    /// Does a piece of other work while nothing has arrived; whether there may be more.
    ///
    /// # Errors
    /// Whatever the work gives; ends the pass.
    fn idle(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Gives blocks back that are not needed any more; with `wait`, at least one if it has any.
    ///
    /// # Errors
    /// Whatever the device gives.
    fn give_back(&mut self, _back: &mut Vec<Block>, _wait: bool) -> Result<()> {
        Ok(())
    }

    /// Begins whatever still waits for more blocks: the pass has no more, or failed.
    ///
    /// # Errors
    /// Whatever the device gives.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    /// Whether it takes a block of the pass after this, now that this one is finished. The next
    /// pass's consumer, in the same place, gives it back.
    fn has_room_ahead(&self) -> bool {
        false
    }

    /// Forgets what was taken ahead, because another pass comes, and gives the blocks back.
    ///
    /// # Errors
    /// Whatever the device gives.
    fn forget(&mut self, _back: &mut Vec<Block>) -> Result<()> {
        Ok(())
    }
}
