//! What an engine asks drives by, whichever way its commands reach them.
#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_mem::AlignedBuf;
use tiergraph_nvme::{Namespace, SharedMemory};

use super::{Drive, StartedDrive};

/// Commands in flight at a drive for one engine: what a drive needs for its full bandwidth.
pub(super) const COMMANDS: usize = 63;
/// Bytes of the staging memory that a command reads to: large enough for a drive's full bandwidth with a
/// few in flight.
const SPAN_BYTES: u64 = 128 << 10;

/// The most bytes that a command moves.
pub(super) fn span_bytes(namespace: &Namespace) -> usize {
    namespace.most_bytes.min(SPAN_BYTES) as usize
}

/// Started drives, by the way in which commands reach them.
pub(crate) trait Access: Send + Sync + fmt::Debug {
    /// New queues for one engine.
    ///
    /// # Errors
    /// A drive or the system has no more.
    fn queues(&self) -> Result<Box<dyn DriveQueues>>;

    /// The name of engines over these drives in reports.
    fn engine(&self) -> &'static str;

    /// The controller of a drive, if this process has started it.
    fn started(&self, _drive: usize) -> Option<Arc<StartedDrive>> {
        None
    }

    /// What a report says of the way that was taken; `None` where there is no other.
    fn why(&self) -> Option<String> {
        None
    }
}

/// The queues by which one engine asks all of its drives. A drive has slots for commands in flight, each
/// with a span of staging memory that a command may move bytes to or from.
pub(crate) trait DriveQueues: Send + fmt::Debug {
    /// Slots of a drive.
    fn slots(&self, drive: usize) -> usize;

    /// The slot that the next command for a drive gets; `None` while all have a command in flight.
    fn next_slot(&self, drive: usize) -> Option<u16>;

    /// Commands that are in flight at all drives together.
    fn in_flight(&self) -> usize;

    /// The least bytes of a read that pay for reading to their destination instead of the spans.
    fn direct_bytes(&self) -> usize;

    /// The address by which commands for a drive name a buffer's first byte.
    ///
    /// # Errors
    /// The system does not let the drive reach the buffer.
    ///
    /// # Safety
    /// While a command is in flight that names these addresses, nobody refers to the buffer's bytes, frees it
    /// or detaches what is attached to it.
    unsafe fn reach(&mut self, drive: usize, buffer: &mut AlignedBuf) -> Result<u64>;

    /// Asks for `len` bytes of a drive from `offset` on, rounded up to blocks, to be read to the address `to`
    /// or, without one, to the span of the command's slot, which this gives; `None` without room.
    ///
    /// # Errors
    /// The drive has no such bytes.
    fn read(
        &mut self,
        drive: usize,
        offset: u64,
        len: usize,
        to: Option<u64>,
    ) -> Result<Option<u16>>;

    /// Asks for the first `len` bytes in the span of the next slot, whole blocks, to be written to a drive from
    /// `offset` on.
    ///
    /// # Errors
    /// The drive has no such bytes.
    fn write(&mut self, drive: usize, offset: u64, len: usize) -> Result<Option<u16>>;

    /// Asks for everything that was written to a drive to be made durable.
    ///
    /// # Errors
    /// The system has no room for the command.
    fn flush(&mut self, drive: usize) -> Result<Option<u16>>;

    /// The span of a slot.
    fn span(&self, drive: usize, slot: u16) -> SharedMemory;

    /// Copies what came to a slot to `to`.
    fn copy(&self, drive: usize, slot: u16, to: &mut [u8]);

    /// Tells the drives of new commands, where that takes no system call.
    fn ring_doorbells(&mut self) {}

    /// Hands new commands over and has completions brought, where that takes a system call.
    ///
    /// # Errors
    /// The system refuses.
    fn exchange(&mut self) -> Result<()> {
        Ok(())
    }

    /// A command that has ended; `None` if none has since.
    ///
    /// # Errors
    /// A completion that cannot be.
    fn poll(&mut self) -> Result<Option<Completed>>;

    /// Lets others work for a moment, or until a command ends where that is told: at most for `most`.
    ///
    /// # Errors
    /// The system refuses.
    fn rest(&mut self, _most: Duration) -> Result<()> {
        std::thread::yield_now();
        Ok(())
    }
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Completed {
    pub(crate) drive: usize,
    /// The slot that the command had.
    pub(crate) slot: u16,
    /// Why it was not done, if so.
    pub(crate) result: io::Result<()>,
}

/// Waits until a command ends, for as long as `most`. Some are in flight, at least one of them at `drive`.
pub(super) fn wait(
    queues: &mut dyn DriveQueues,
    drive: &Drive,
    most: Duration,
) -> Result<Completed> {
    let since = Instant::now();
    loop {
        queues.exchange()?;
        if let Some(completed) = queues.poll()? {
            return Ok(completed);
        }
        if since.elapsed() > most {
            return Err(late("wait for the NVMe drive", &drive.name, most));
        }
        queues.rest(most / LOOKS)?;
    }
}

/// How often in the time that a command may take those in flight are looked through.
pub(crate) const LOOKS: u32 = 8;

/// An error of a drive that has not completed a command in its time.
pub(crate) fn late(op: &str, drive: &str, most: Duration) -> Error {
    Error::new(ErrorKind::Io, op)
        .object(drive)
        .expected(format!("a completion within `{} ms`", most.as_millis()))
        .got("none")
}

/// Reads the bytes of drive `number` from `offset` on, and waits for them; nothing else is in flight.
pub(super) fn read_all(
    queues: &mut dyn DriveQueues,
    number: usize,
    drive: &Drive,
    offset: u64,
    to: &mut [u8],
    most: Duration,
) -> Result<()> {
    let mut pieces: Vec<Option<&mut [u8]>> = (0..queues.slots(number)).map(|_| None).collect();
    let mut left = to.chunks_mut(span_bytes(&drive.namespace));
    let mut offset = offset;
    loop {
        while queues.next_slot(number).is_some()
            && let Some(piece) = left.next()
        {
            let at = offset;
            offset += piece.len() as u64;
            if let Some(slot) = queues.read(number, at, piece.len(), None)? {
                pieces[usize::from(slot)] = Some(piece);
            }
        }
        queues.ring_doorbells();
        if queues.in_flight() == 0 {
            return Ok(());
        }
        let Completed { slot, result, .. } = wait(queues, drive, most)?;
        result.map_err(|e| Error::io("read the NVMe drive", &drive.name, e))?;
        if let Some(piece) = pieces[usize::from(slot)].take() {
            queues.copy(number, slot, piece);
        }
    }
}
