//! The files of a [`FileSet`] as they lie on NVMe drives, which engines read by queue pairs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_mem::PAGE_BYTES;
use tiergraph_nvme::controller::Mapped;
use tiergraph_nvme::prp::List;
use tiergraph_nvme::{
    Controller, Dma, FileStorage, ModelledDrive, Namespace, QueuePair, SoftwareController,
    SoftwareOptions, Timing,
};

use crate::FileSet;
use crate::file_set::Place;

/// Commands in flight in a queue pair: what a drive needs for its full bandwidth.
const COMMANDS: usize = 63;
/// Bytes of the staging memory that a command reads to: large enough for a drive's full bandwidth with a
/// few in flight.
const SPAN_BYTES: u64 = 128 << 10;

/// NVMe drives that hold the stripes of a file set, and the queue pairs that no engine has.
#[derive(Debug)]
pub struct NvmeDrives {
    files: Arc<FileSet>,
    drives: Vec<Drive>,
    /// By stripe of the file set: where it lies.
    placed: Vec<Placed>,
    timing: Timing,
    /// Queue pairs that wait for an engine.
    idle: Mutex<Vec<Queues>>,
    /// Queue pairs of engines that failed: controllers may still write to their memory.
    failed: Mutex<Vec<Queues>>,
}

#[derive(Debug)]
struct Drive {
    // Dropped first: it stops the controller, which the software answers.
    controller: Mutex<Controller>,
    namespace: Namespace,
    dma: Arc<dyn Dma>,
    _software: SoftwareController,
}

#[derive(Debug, Clone, Copy)]
struct Placed {
    drive: usize,
    /// The byte of the drive where it begins.
    start: u64,
}

/// Bytes on a drive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OnDrive {
    pub(crate) drive: usize,
    pub(crate) offset: u64,
}

/// A queue pair of each drive, and the memory that commands in it read to.
#[derive(Debug)]
pub(crate) struct Queues(pub(crate) Vec<Queue>);

/// A queue pair, and a span of staging memory for each of its slots.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) pair: QueuePair,
    pub(crate) staging: Mapped,
    pub(crate) span_bytes: usize,
    lists: Vec<List>,
    namespace: Namespace,
    _lists: Mapped,
}

impl NvmeDrives {
    /// `count` drives (at least one) that are software controllers over the opened files of `files`, a
    /// stripe on each in turn.
    ///
    /// # Errors
    /// The system gives no more threads or memory.
    pub fn software(
        files: &Arc<FileSet>,
        count: usize,
        options: &SoftwareOptions,
        timing: Timing,
    ) -> Result<Arc<Self>> {
        let stripes = files.stripes();
        let count = count.clamp(1, stripes.len().max(1));
        let mut placed = vec![Placed { drive: 0, start: 0 }; stripes.len()];
        let mut drives = Vec::with_capacity(count);
        for drive in 0..count {
            let numbers = (drive..stripes.len()).step_by(count);
            let opened = numbers.clone().map(|number| {
                let stripe = &stripes[number];
                let failed = |e| Error::io("open", stripe.path().display(), e);
                Ok((stripe.file.try_clone().map_err(failed)?, stripe.path_bytes()))
            });
            let storage = FileStorage::new(opened.collect::<Result<Vec<_>>>()?);
            for (number, start) in numbers.zip(storage.starts()) {
                placed[number] = Placed { drive, start };
            }
            let serial = format!("{}-{drive}", options.serial);
            let model = options.drive.as_ref().map(ModelledDrive::another);
            let options = SoftwareOptions { serial, drive: model, ..options.clone() };
            let software = SoftwareController::start(storage, options)?;
            let dma = software.dma();
            let controller = Controller::start(software.registers(), Arc::clone(&dma), timing)?;
            drives.push(Drive {
                namespace: controller.namespace(),
                controller: Mutex::new(controller),
                dma,
                _software: software,
            });
        }
        let (idle, failed) = (Mutex::default(), Mutex::default());
        Ok(Arc::new(Self { files: Arc::clone(files), drives, placed, timing, idle, failed }))
    }

    /// The files.
    pub(crate) fn files(&self) -> &FileSet {
        &self.files
    }

    /// How long the drives may take.
    pub(crate) fn timing(&self) -> Timing {
        self.timing
    }

    /// Where the bytes at `place` lie.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] for a stripe that lies on no drive.
    pub(crate) fn locate(&self, place: Place) -> Result<OnDrive> {
        let placed = self.placed.get(place.stripe).ok_or_else(|| {
            Error::new(ErrorKind::Internal, "read from a drive").got("a stripe that lies on none")
        })?;
        Ok(OnDrive { drive: placed.drive, offset: placed.start + place.offset })
    }

    /// Queue pairs for an engine: idle ones, or new ones.
    ///
    /// # Errors
    /// A controller has no more.
    pub(crate) fn take(&self) -> Result<Queues> {
        if let Some(queues) = lock(&self.idle).pop() {
            return Ok(queues);
        }
        let queues = self.drives.iter().map(Drive::queue).collect::<Result<_>>()?;
        Ok(Queues(queues))
    }

    /// Takes queue pairs back that an engine needs no more; `is_sound` unless one of them failed.
    pub(crate) fn give_back(&self, queues: Queues, is_sound: bool) {
        let is_idle = queues.0.iter().all(|queue| queue.pair.in_flight() == 0);
        lock(if is_sound && is_idle { &self.idle } else { &self.failed }).push(queues);
    }
}

impl Drive {
    fn queue(&self) -> Result<Queue> {
        let pair = lock(&self.controller).queue_pair(COMMANDS)?;
        let span_bytes = self.namespace.most_bytes.min(SPAN_BYTES) as usize;
        let staging = Mapped::zeroed(&self.dma, pair.capacity() * span_bytes)?;
        let pages = Mapped::zeroed(&self.dma, pair.capacity() * PAGE_BYTES)?;
        let list = |slot: usize| List {
            memory: pages.memory().part(slot * PAGE_BYTES..(slot + 1) * PAGE_BYTES),
            bus: pages.bus() + (slot * PAGE_BYTES) as u64,
        };
        let lists = (0..pair.capacity()).map(list).collect();
        let namespace = self.namespace;
        Ok(Queue { pair, staging, span_bytes, lists, namespace, _lists: pages })
    }
}

impl Queue {
    /// Asks for `len` bytes of the drive from `offset` on, rounded up to blocks; the slot that they come
    /// to, or `None` without room.
    pub(crate) fn read(&mut self, offset: u64, len: usize) -> Result<Option<u16>> {
        let Some(slot) = self.pair.next_slot() else { return Ok(None) };
        let bus = self.staging.bus() + (usize::from(slot) * self.span_bytes) as u64;
        let len = len.next_multiple_of(self.namespace.block_bytes as usize) as u64;
        let list = &self.lists[usize::from(slot)];
        let command = self.namespace.read(bus..bus + len, offset, Some(list))?;
        Ok(self.pair.push(command))
    }

    /// Copies what came to `slot` to `to`.
    pub(crate) fn copy(&self, slot: u16, to: &mut [u8]) {
        self.staging.memory().read_bytes(usize::from(slot) * self.span_bytes, to);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
