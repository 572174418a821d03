//! A software controller over bytes that say where they are from, and a driver of it.
#![allow(dead_code, clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use tiergraph_nvme::controller::Mapped;
use tiergraph_nvme::prp::List;
use tiergraph_nvme::{
    Command, Controller, Dma, MemoryStorage, QueuePair, SoftwareController, SoftwareOptions, Timing,
};

/// Byte `i` of the drive: blocks differ, and so do the bytes in one.
pub fn byte_at(i: usize) -> u8 {
    (i ^ (i >> 8).wrapping_mul(31) ^ (i >> 16).wrapping_mul(7)) as u8
}

pub fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(byte_at).collect()
}

/// Short deadlines: a test waits for what never comes.
pub const TIMING: Timing =
    Timing { command: Duration::from_millis(300), start: Duration::from_millis(500) };

pub fn start(bytes: usize, options: SoftwareOptions) -> (SoftwareController, Controller) {
    let storage = MemoryStorage::new(&content(bytes)).unwrap();
    let drive = SoftwareController::start(storage, options).unwrap();
    let controller = Controller::start(drive.registers(), drive.dma(), TIMING).unwrap();
    (drive, controller)
}

/// Memory for the commands in flight of a queue: a span of data and a list of pages each.
pub struct Buffers {
    data: Mapped,
    lists: Mapped,
    span: usize,
}

impl Buffers {
    pub fn new(dma: &Arc<dyn Dma>, count: usize, span: usize) -> Self {
        let data = Mapped::zeroed(dma, count * span).unwrap();
        let lists = Mapped::zeroed(dma, count * 4096).unwrap();
        Self { data, lists, span }
    }

    /// The command that reads `len` bytes from `offset` on into span `number`.
    pub fn read(&self, controller: &Controller, number: usize, offset: u64, len: usize) -> Command {
        let bus = self.data.bus() + (number * self.span) as u64;
        let at = number * 4096;
        let list = List {
            memory: self.lists.memory().part(at..at + 4096),
            bus: self.lists.bus() + at as u64,
        };
        controller.namespace().read(bus..bus + len as u64, offset, Some(&list)).unwrap()
    }

    /// The bytes of span `number`, which is made unlike any of the drive's afterwards.
    pub fn take(&self, number: usize, len: usize) -> Vec<u8> {
        let (mut bytes, at) = (vec![0; len], number * self.span);
        self.data.memory().read_bytes(at, &mut bytes);
        self.data.memory().write_bytes(at, &vec![0xee; len]);
        bytes
    }
}

/// Does `reads` (offset and length of each) with as many in flight as there is room for, and compares
/// every byte; `on_failure` decides about a command that fails.
pub fn read_all(
    controller: &Controller,
    queue: &mut QueuePair,
    buffers: &Buffers,
    reads: impl IntoIterator<Item = (u64, usize)>,
    mut on_failure: impl FnMut(tiergraph_nvme::Status),
) -> tiergraph_core::Result<u64> {
    let mut reads = reads.into_iter().peekable();
    let mut asked = vec![(0, 0); queue.capacity()];
    let mut done = 0;
    while reads.peek().is_some() || queue.in_flight() > 0 {
        while reads.peek().is_some()
            && let Some(slot) = queue.next_slot()
            && let Some((offset, len)) = reads.next()
        {
            asked[usize::from(slot)] = (offset, len);
            let command = buffers.read(controller, slot.into(), offset, len);
            assert_eq!(queue.push(command), Some(slot));
        }
        queue.ring();
        let ended = queue.wait(TIMING.command)?;
        let (offset, len) = asked[usize::from(ended.slot)];
        let found = buffers.take(ended.slot.into(), len);
        if ended.status.is_success() {
            let expected = (offset as usize..offset as usize + len).map(byte_at);
            assert!(found.into_iter().eq(expected), "{len} bytes at {offset}");
            done += 1;
        } else {
            on_failure(ended.status);
        }
    }
    Ok(done)
}
