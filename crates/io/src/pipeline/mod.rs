//! One loop for everything that reads: plan → residency → fill → poll → hand over → recycle.
//!
//! A *pass* reads a list of [`Request`]s, each once; its [`Plan`] divides them among workers. Each
//! worker has an engine, [`Buffers`] and a [`Consumer`], keeps the engine full from its share of the
//! plan and then from the others', and waits for nobody else's reads (RealGraphGPU++'s asynchronous CPU
//! threads). Requests whose blocks are resident are handed over while others are read, and what was read
//! becomes resident where there is room. Where it is known that the same pass comes again, its reads
//! begin before this one ends, so that the drive works while vertices are updated; what they bring is
//! for the next pass's consumers.
//!
//! | consumer | takes | gives back |
//! |---|---|---|
//! | a CPU's visitor | host memory | at once, or when it has visited a batch of them |
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

/// What is known of the pass that comes after a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextPass {
    /// Nothing is known of it yet.
    Unknown,
    /// Another pass over the same requests: its reads begin before this one ends, once it is settled
    /// which blocks are resident.
    Same,
}

/// What a pass takes from its run: flags to end it, counters, trace, and cache.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// Flags that end the pass when one is set.
    pub cancels: [&'a Cancel; 2],
    /// The counters that reads, and the time of workers, are added to.
    pub totals: &'a Totals,
    /// The trace that records spans.
    pub trace: &'a Trace,
    /// The cache of resident blocks, which may take further ones; `None` if blocks are not cached.
    pub residency: Option<&'a BlockCache>,
    /// Blocks that each consumer may hold; as many are read meanwhile.
    pub held: usize,
    /// The operation that errors of cancellation name.
    pub op: &'static str,
}

/// The bytes of a block, in the memory that holds them.
#[derive(Debug)]
pub enum Bytes {
    /// A buffer that they were just read into; their checksum is not compared yet.
    Host(AlignedBuf),
    /// A cached buffer, in which they stay from pass to pass.
    Resident(Arc<AlignedBuf>),
    /// Device memory that they were just read into.
    Device(DeviceSpan),
}

impl Bytes {
    /// The bytes that are in host memory; empty for device memory.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Host(buffer) => buffer,
            Self::Resident(buffer) => buffer,
            Self::Device(_) => &[],
        }
    }
}

/// A block as a consumer takes it: the bytes of one request.
#[derive(Debug)]
pub struct Block {
    /// The index of the request in the plan.
    pub number: usize,
    /// Bytes of the request: the first ones here, zeros past the file's end.
    pub len: usize,
    /// The bytes, and perhaps more behind them.
    pub bytes: Bytes,
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_slice()
    }
}

/// The memory that a consumer has for the bytes of a request.
#[derive(Debug)]
pub enum Room {
    /// A host buffer of the worker.
    Buffer,
    /// A span of device memory.
    Device(DeviceSpan),
    /// No memory, until the consumer has given a block back.
    None,
}

/// A consumer of a pass's blocks, which does something with each; every worker has its own.
pub trait Consumer {
    /// The category, in traces, of the time spent on a block.
    const ACTIVITY: &'static str;

    /// Resident blocks that the consumer has at a time: enough to keep a device's link busy, and few enough that what
    /// is read need not wait long for it.
    const RESIDENT_AT_ONCE: usize = 16;

    /// The memory that the bytes of a request, by its index, shall go to.
    ///
    /// # Errors
    /// An error of the device, which ends the pass.
    fn room(&mut self, _number: usize) -> Result<Room> {
        Ok(Room::Buffer)
    }

    /// Takes a block, without waiting for work that it starts on it. Blocks that are not needed any more
    /// go to `back`, at once or at a later [`give_back`](Self::give_back). After
    /// [`finish`](Self::finish), a block is of the pass after this.
    ///
    /// # Errors
    /// An error of the block or of the work on it, which ends the pass.
    fn take(&mut self, block: Block, back: &mut Vec<Block>) -> Result<()>;

    /// Does a piece of other work while nothing has arrived; returns whether there may be more of it.
    ///
    /// # Errors
    /// An error of that work, which ends the pass.
    fn idle(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Gives blocks back that are no longer needed; with `wait`, waits for at least one, if it has any.
    ///
    /// # Errors
    /// An error of the device.
    fn give_back(&mut self, _back: &mut Vec<Block>, _wait: bool) -> Result<()> {
        Ok(())
    }

    /// Starts the work that still waits for more blocks: the pass has no more of them, or failed.
    ///
    /// # Errors
    /// An error of the device.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    /// Whether the consumer takes a block of the next pass, now that this one is finished. The next
    /// pass's consumer of the same worker gives it back.
    fn has_room_ahead(&self) -> bool {
        false
    }

    /// Forgets the blocks taken ahead for a pass that does not come, and gives them back.
    ///
    /// # Errors
    /// An error of the device.
    fn forget(&mut self, _back: &mut Vec<Block>) -> Result<()> {
        Ok(())
    }
}
