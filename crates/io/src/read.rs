//! The trait of everything that reads: a read goes in with its destination, and comes out with it.
//!
//! While a read is in flight its destination belongs to the engine, so no reference to memory that a
//! device may write to exists, and the interface needs no `unsafe` at either end.

use std::collections::VecDeque;

use tiergraph_core::Result;
use tiergraph_gpu::DeviceSpan;
use tiergraph_mem::AlignedBuf;

use crate::FileId;

/// The memory that a read writes to.
#[derive(Debug)]
pub enum Destination {
    /// Host memory, plain or pinned: engines make no difference.
    Host(AlignedBuf),
    /// A part of device memory.
    Device(DeviceSpan),
}

/// A kind of memory that an engine can write to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// [`Destination::Host`].
    Host,
    /// [`Destination::Device`].
    Device,
}

impl Destination {
    /// Bytes of the destination.
    pub fn len(&self) -> usize {
        match self {
            Self::Host(buffer) => buffer.len(),
            Self::Device(span) => span.len(),
        }
    }

    /// Whether the destination has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The kind of memory that the destination is in.
    pub fn memory(&self) -> Memory {
        match self {
            Self::Host(_) => Memory::Host,
            Self::Device(_) => Memory::Device,
        }
    }

    /// The destination's bytes, if they are in host memory; empty for device memory.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Host(buffer) => buffer,
            Self::Device(_) => &[],
        }
    }

    /// The destination's bytes, to be written, if they are in host memory; empty for device memory.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Host(buffer) => buffer,
            Self::Device(_) => &mut [],
        }
    }
}

impl From<AlignedBuf> for Destination {
    fn from(buffer: AlignedBuf) -> Self {
        Self::Host(buffer)
    }
}

/// One read of a logical file.
#[derive(Debug)]
pub struct Read {
    /// The file, as [`FileSet::open`](crate::FileSet::open) named it.
    pub file: FileId,
    /// The byte of the file at which the read starts: a multiple of 4 KiB.
    pub offset: u64,
    /// Bytes to read: a multiple of 4 KiB. A read of a striped file stays inside one stripe unit.
    pub len: usize,
    /// Where the bytes go.
    pub to: Destination,
    /// The destination's first byte that is written, a multiple of 4 KiB; `at + len` bytes are there.
    pub at: usize,
    /// A number that tells the caller which read this is; engines only hand it back.
    pub tag: u64,
}

/// A read that has ended, well or not.
#[derive(Debug)]
pub struct Done {
    /// The read's tag.
    pub tag: u64,
    /// The read's destination; what it holds past the count is not specified.
    pub to: Destination,
    /// The number of bytes read. Engines of [`open_engine`](crate::open_engine) give fewer than asked
    /// for only at the file's end, and zeros in host memory there up to the read's length.
    pub result: Result<usize>,
}

/// How long a poll waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not at all: it returns with the completions that are there, perhaps none.
    No,
    /// Until at least one read has completed, if any is in flight.
    One,
    /// Until every read in flight has completed.
    All,
}

impl Wait {
    /// Whether a poll that has found a completion, or not, returns, with so many reads in flight.
    pub(crate) fn is_over(self, has_found: bool, in_flight: usize) -> bool {
        match self {
            Self::No => true,
            Self::One => has_found || in_flight == 0,
            Self::All => in_flight == 0,
        }
    }
}

/// An engine that reads files, many reads at a time; completions come in any order.
///
/// A worker thread owns its engine. An engine may be moved to another thread while nothing is in
/// flight. Dropping it with reads in flight waits for them, or gives their destinations up.
pub trait ReadEngine: Send {
    /// Takes reads from the front of `reads`, as many as it has room for, without waiting. A read
    /// that cannot be done (misaligned, an unknown file, memory that the engine does not write to)
    /// is taken too, and completes with the error.
    fn submit(&mut self, reads: &mut VecDeque<Read>);

    /// Appends completions to `done`, and waits for them as `wait` says. Reads may start no earlier than
    /// at the next poll.
    ///
    /// # Errors
    /// When the engine itself fails; a read's failure is in its [`Done`].
    fn poll(&mut self, done: &mut Vec<Done>, wait: Wait) -> Result<()>;

    /// The number of reads that the engine took and has not given back yet.
    fn in_flight(&self) -> usize;

    /// The most reads that may be in flight.
    fn capacity(&self) -> usize;

    /// The kind of memory that the engine writes to.
    fn writes_to(&self) -> Memory {
        Memory::Host
    }

    /// Whether a read begins only at the poll that gives it back.
    fn reads_when_polled(&self) -> bool {
        false
    }

    /// The engine's name in reports.
    fn name(&self) -> &'static str;
}

impl<E: ReadEngine + ?Sized> ReadEngine for Box<E> {
    fn submit(&mut self, reads: &mut VecDeque<Read>) {
        (**self).submit(reads);
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

    fn writes_to(&self) -> Memory {
        (**self).writes_to()
    }

    fn reads_when_polled(&self) -> bool {
        (**self).reads_when_polled()
    }

    fn name(&self) -> &'static str {
        (**self).name()
    }
}
