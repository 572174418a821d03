//! The trait: a read goes in with its buffer, and comes out with it.
//!
//! While a read is in flight its buffer belongs to the engine, so no reference to memory that a
//! device may write to exists, and the interface needs no `unsafe` at either end.

use tiergraph_core::Result;
use tiergraph_mem::AlignedBuf;

use crate::FileId;

/// One read of a logical file.
#[derive(Debug)]
pub struct Read {
    /// The file, as [`FileSet::open`](crate::FileSet::open) named it.
    pub file: FileId,
    /// Where the bytes start: a multiple of 4 KiB.
    pub offset: u64,
    /// How many bytes: a multiple of 4 KiB, at most the buffer's length. A read of a striped file
    /// stays inside one stripe unit.
    pub len: usize,
    /// Where the bytes go, from its start on.
    pub buffer: AlignedBuf,
    /// Whatever tells the caller which read this is; engines only hand it back.
    pub tag: u64,
}

/// A read that has ended, well or not.
#[derive(Debug)]
pub struct Done {
    /// The read's tag.
    pub tag: u64,
    /// The read's buffer; what it holds past the count is not specified.
    pub buffer: AlignedBuf,
    /// How many bytes were read. Engines of [`open_engine`](crate::open_engine) give fewer than
    /// asked for only at the file's end, and zeros there up to the read's length.
    pub result: Result<usize>,
}

/// How long a poll may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Returns with what is there, perhaps nothing.
    No,
    /// Waits for at least one completion, if a read is in flight.
    One,
    /// Waits for every read in flight.
    All,
}

/// Reads files, many at a time; completions come in any order.
///
/// A worker thread owns its engine. An engine may be moved to another thread while nothing is in
/// flight. Dropping it with reads in flight waits for them, or gives their buffers up.
pub trait ReadEngine: Send {
    /// Takes a read, without waiting. A read that cannot be done (misaligned, an unknown file)
    /// is taken too, and completes with the error.
    ///
    /// # Errors
    /// Gives the read back when [`capacity`](Self::capacity) reads are in flight.
    fn submit(&mut self, read: Read) -> std::result::Result<(), Read>;

    /// Appends completions to `done`. Reads may start no earlier than at the next poll.
    ///
    /// # Errors
    /// When the engine itself fails; a read's failure is in its [`Done`].
    fn poll(&mut self, done: &mut Vec<Done>, wait: Wait) -> Result<()>;

    /// How many reads were taken and not given back yet.
    fn in_flight(&self) -> usize;

    /// How many reads may be in flight.
    fn capacity(&self) -> usize;

    /// Whether a read begins only at the poll that gives it back.
    fn reads_when_polled(&self) -> bool {
        false
    }

    /// The engine's name in reports.
    fn name(&self) -> &'static str;
}

impl<E: ReadEngine + ?Sized> ReadEngine for Box<E> {
    fn submit(&mut self, read: Read) -> std::result::Result<(), Read> {
        (**self).submit(read)
    }

    fn poll(&mut self, done: &mut Vec<Done>, wait: Wait) -> Result<()> {
        (**self).poll(done, wait)
    }

    fn in_flight(&self) -> usize {
        (**self).in_flight()
    }

    fn capacity(&self) -> usize {
        (**self).capacity()
    }

    fn reads_when_polled(&self) -> bool {
        (**self).reads_when_polled()
    }

    fn name(&self) -> &'static str {
        (**self).name()
    }
}
