//! Queue pairs of controllers that this process has started: commands and completions lie in memory that it
//! shares with the drives.
#![allow(unsafe_code)]

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use tiergraph_core::Result;
use tiergraph_gpu::{Device, RegisteredMemory};
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};
use tiergraph_nvme::controller::{Mapped, map_buffer};
use tiergraph_nvme::prp::List;
use tiergraph_nvme::{
    Controller, Dma, Ended, Namespace, QueuePair, SharedMemory, SoftwareController, Timing,
};

use super::queues::{Access, COMMANDS, Completed, DriveQueues, span_bytes};
use super::{Drive, RawDrive, lock};

/// Bytes of a read that goes to its destination: for a few pages, a mapping costs more than a copy.
const DIRECT_BYTES: usize = 128 << 10;

/// Controllers that were started.
#[derive(Debug)]
pub(super) struct Controllers(Vec<Arc<StartedDrive>>);

/// A drive whose controller this process has started.
#[derive(Debug)]
pub(crate) struct StartedDrive {
    // Dropped first: it stops the controller, which the software answers.
    controller: Mutex<Controller>,
    namespace: Namespace,
    dma: Arc<dyn Dma>,
    /// Its registers as GPUs reach them, while one does.
    of_gpus: Mutex<Weak<RegisteredMemory>>,
    _software: Option<SoftwareController>,
}

impl StartedDrive {
    /// Starts the controller of a drive.
    pub(crate) fn start(drive: RawDrive, timing: Timing) -> Result<Self> {
        let RawDrive { name, registers, dma, software } = drive;
        let controller = Controller::start(registers, Arc::clone(&dma), timing)
            .map_err(|error| error.object(&name))?;
        let (namespace, controller) = (controller.namespace(), Mutex::new(controller));
        Ok(Self { controller, namespace, dma, of_gpus: Mutex::default(), _software: software })
    }

    /// The controller, which nobody else creates or deletes queues of meanwhile.
    pub(crate) fn controller(&self) -> MutexGuard<'_, Controller> {
        lock(&self.controller)
    }

    /// The namespace that is read.
    pub(crate) fn namespace(&self) -> Namespace {
        self.namespace
    }

    /// The drive's registers, mapped for kernels: memory is registered once, whoever uses it.
    pub(crate) fn registers_of_gpus(&self, device: &Device) -> Result<Arc<RegisteredMemory>> {
        let mut of_gpus = lock(&self.of_gpus);
        if let Some(registered) = of_gpus.upgrade() {
            return Ok(registered);
        }
        let registers = self.controller().registers().clone();
        let registered = Arc::new(RegisteredMemory::new(device, registers)?);
        *of_gpus = Arc::downgrade(&registered);
        Ok(registered)
    }
}

impl Controllers {
    /// Starts `drives`, and describes them.
    pub(super) fn start(drives: Vec<RawDrive>, timing: Timing) -> Result<(Vec<Drive>, Self)> {
        let start = |raw: RawDrive| {
            let name = raw.name.clone();
            let started = StartedDrive::start(raw, timing)?;
            Ok((Drive { name, namespace: started.namespace }, Arc::new(started)))
        };
        let started = drives.into_iter().map(start).collect::<Result<Vec<_>>>()?;
        let (drives, controllers) = started.into_iter().unzip();
        Ok((drives, Self(controllers)))
    }
}

impl Access for Controllers {
    fn queues(&self) -> Result<Box<dyn DriveQueues>> {
        let queue = |drive: &Arc<StartedDrive>| Queue::new(&mut drive.controller(), &drive.dma);
        let queues = self.0.iter().map(queue).collect::<Result<_>>()?;
        Ok(Box::new(Pairs { queues, polled: 0 }))
    }

    fn engine(&self) -> &'static str {
        "nvme"
    }

    fn started(&self, drive: usize) -> Option<Arc<StartedDrive>> {
        self.0.get(drive).cloned()
    }
}

/// A queue pair of each drive.
#[derive(Debug)]
struct Pairs {
    queues: Vec<Queue>,
    /// The drive whose completions are taken next.
    polled: usize,
}

/// A queue pair, and a span of staging memory for each of its slots.
#[derive(Debug)]
struct Queue {
    pair: QueuePair,
    staging: Mapped,
    span_bytes: usize,
    lists: Vec<List>,
    namespace: Namespace,
    dma: Arc<dyn Dma>,
    _lists: Mapped,
}

impl Queue {
    /// A new queue pair of `controller`.
    fn new(controller: &mut Controller, dma: &Arc<dyn Dma>) -> Result<Self> {
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
        let dma = Arc::clone(dma);
        Ok(Self { pair, staging, span_bytes, lists, namespace, dma, _lists: pages })
    }

    fn bus(&self, slot: u16) -> u64 {
        self.staging.bus() + (usize::from(slot) * self.span_bytes) as u64
    }
}

impl DriveQueues for Pairs {
    fn slots(&self, drive: usize) -> usize {
        self.queues[drive].pair.capacity()
    }

    fn next_slot(&self, drive: usize) -> Option<u16> {
        self.queues[drive].pair.next_slot()
    }

    fn in_flight(&self) -> usize {
        self.queues.iter().map(|queue| queue.pair.in_flight()).sum()
    }

    fn direct_bytes(&self) -> usize {
        DIRECT_BYTES
    }

    unsafe fn reach(&mut self, drive: usize, buffer: &mut AlignedBuf) -> Result<u64> {
        // SAFETY: promised.
        unsafe { map_buffer(buffer, &self.queues[drive].dma) }
    }

    fn read(
        &mut self,
        drive: usize,
        offset: u64,
        len: usize,
        to: Option<u64>,
    ) -> Result<Option<u16>> {
        let queue = &mut self.queues[drive];
        let Some(slot) = queue.pair.next_slot() else { return Ok(None) };
        let len = len.next_multiple_of(queue.namespace.block_bytes as usize) as u64;
        let bus = to.unwrap_or_else(|| queue.bus(slot));
        let list = &queue.lists[usize::from(slot)];
        let command = queue.namespace.read(bus..bus + len, offset, Some(list))?;
        Ok(queue.pair.push(command))
    }

    fn write(&mut self, drive: usize, offset: u64, len: usize) -> Result<Option<u16>> {
        let queue = &mut self.queues[drive];
        let Some(slot) = queue.pair.next_slot() else { return Ok(None) };
        let bus = queue.bus(slot);
        let list = &queue.lists[usize::from(slot)];
        let command = queue.namespace.write(bus..bus + len as u64, offset, Some(list))?;
        Ok(queue.pair.push(command))
    }

    fn flush(&mut self, drive: usize) -> Result<Option<u16>> {
        let queue = &mut self.queues[drive];
        Ok(queue.pair.push(queue.namespace.flush()))
    }

    fn span(&self, drive: usize, slot: u16) -> SharedMemory {
        let Queue { staging, span_bytes, .. } = &self.queues[drive];
        let begin = usize::from(slot) * span_bytes;
        staging.memory().part(begin..begin + span_bytes)
    }

    fn copy(&self, drive: usize, slot: u16, to: &mut [u8]) {
        let Queue { staging, span_bytes, .. } = &self.queues[drive];
        staging.memory().read_bytes(usize::from(slot) * span_bytes, to);
    }

    fn ring_doorbells(&mut self) {
        self.queues.iter_mut().for_each(|queue| queue.pair.ring());
    }

    fn poll(&mut self) -> Result<Option<Completed>> {
        while let Some(queue) = self.queues.get_mut(self.polled) {
            if let Some(Ended { slot, status, .. }) = queue.pair.poll()? {
                let result =
                    if status.is_success() { Ok(()) } else { Err(io::Error::other(status)) };
                return Ok(Some(Completed { drive: self.polled, slot, result }));
            }
            queue.pair.free_entries();
            self.polled += 1;
        }
        self.polled = 0;
        Ok(None)
    }
}
