//! Queue pairs of drives, and the memory that their commands move bytes to and from.

use std::sync::Arc;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_mem::PAGE_BYTES;
use tiergraph_nvme::controller::Mapped;
use tiergraph_nvme::prp::List;
use tiergraph_nvme::{Controller, Dma, Namespace, QueuePair, SharedMemory, Timing};

/// Commands in flight in a queue pair: what a drive needs for its full bandwidth.
const COMMANDS: usize = 63;
/// Bytes of the staging memory that a command reads to: large enough for a drive's full bandwidth with a
/// few in flight.
const SPAN_BYTES: u64 = 128 << 10;

/// A queue pair of each drive.
#[derive(Debug)]
pub(crate) struct Queues(pub(crate) Vec<Queue>);

/// A queue pair, and a span of staging memory for each of its slots.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) pair: QueuePair,
    staging: Mapped,
    span_bytes: usize,
    lists: Vec<List>,
    namespace: Namespace,
    _lists: Mapped,
}

/// The most bytes that a command of a queue moves.
pub(super) fn span_bytes(namespace: &Namespace) -> usize {
    namespace.most_bytes.min(SPAN_BYTES) as usize
}

impl Queue {
    /// A new queue pair of `controller`.
    pub(super) fn new(controller: &mut Controller, dma: &Arc<dyn Dma>) -> Result<Self> {
        let pair = controller.queue_pair(COMMANDS)?;
        let namespace = controller.namespace();
        let span_bytes = span_bytes(&namespace);
        let staging = Mapped::zeroed(dma, pair.capacity() * span_bytes)?;
        let pages = Mapped::zeroed(dma, pair.capacity() * PAGE_BYTES)?;
        let list = |slot: usize| List {
            memory: pages.memory().part(slot * PAGE_BYTES..(slot + 1) * PAGE_BYTES),
            bus: pages.bus() + (slot * PAGE_BYTES) as u64,
        };
        let lists = (0..pair.capacity()).map(list).collect();
        Ok(Self { pair, staging, span_bytes, lists, namespace, _lists: pages })
    }

    /// Asks for `len` bytes of the drive from `offset` on, rounded up to blocks, to be read to the bus address
    /// `to` or, without one, to the span of the command's slot, which this gives; `None` without room.
    pub(crate) fn read(&mut self, offset: u64, len: usize, to: Option<u64>) -> Result<Option<u16>> {
        let Some(slot) = self.pair.next_slot() else { return Ok(None) };
        let len = len.next_multiple_of(self.namespace.block_bytes as usize) as u64;
        let bus = to.unwrap_or_else(|| self.bus(slot));
        let list = &self.lists[usize::from(slot)];
        let command = self.namespace.read(bus..bus + len, offset, Some(list))?;
        Ok(self.pair.push(command))
    }

    /// Asks for the `len` bytes in the span of the next slot, whole blocks, to be written from `offset` on.
    pub(super) fn write(&mut self, offset: u64, len: usize) -> Result<Option<u16>> {
        let Some(slot) = self.pair.next_slot() else { return Ok(None) };
        let bus = self.bus(slot);
        let list = &self.lists[usize::from(slot)];
        let command = self.namespace.write(bus..bus + len as u64, offset, Some(list))?;
        Ok(self.pair.push(command))
    }

    /// Asks for everything that was written to be made durable.
    pub(super) fn flush(&mut self) -> Option<u16> {
        self.pair.push(self.namespace.flush())
    }

    /// The span of a slot.
    pub(super) fn span(&self, slot: u16) -> SharedMemory {
        let begin = usize::from(slot) * self.span_bytes;
        self.staging.memory().part(begin..begin + self.span_bytes)
    }

    /// Copies what came to `slot` to `to`.
    pub(crate) fn copy(&self, slot: u16, to: &mut [u8]) {
        self.staging.memory().read_bytes(usize::from(slot) * self.span_bytes, to);
    }

    /// Reads the bytes from `offset` on, and waits for them.
    pub(super) fn read_all(&mut self, offset: u64, to: &mut [u8], timing: Timing) -> Result<()> {
        let mut pieces: Vec<Option<&mut [u8]>> = (0..self.pair.capacity()).map(|_| None).collect();
        let mut left = to.chunks_mut(self.span_bytes);
        let mut offset = offset;
        loop {
            while self.pair.next_slot().is_some()
                && let Some(piece) = left.next()
            {
                let at = offset;
                offset += piece.len() as u64;
                if let Some(slot) = self.read(at, piece.len(), None)? {
                    pieces[usize::from(slot)] = Some(piece);
                }
            }
            self.pair.ring();
            if self.pair.in_flight() == 0 {
                return Ok(());
            }
            let ended = self.pair.wait(timing.command)?;
            if !ended.status.is_success() {
                return Err(Error::new(ErrorKind::Io, "read the NVMe drive").source(ended.status));
            }
            if let Some(piece) = pieces[usize::from(ended.slot)].take() {
                self.copy(ended.slot, piece);
            }
        }
    }

    fn bus(&self, slot: u16) -> u64 {
        self.staging.bus() + (usize::from(slot) * self.span_bytes) as u64
    }
}
