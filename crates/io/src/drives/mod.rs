//! The files of a [`FileSet`] as they lie on NVMe drives, which engines read by queue pairs.

mod placed;
mod queue;
mod write;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::drive::DriveContents;
use tiergraph_gpu::{Device, RegisteredMemory};
use tiergraph_mem::PAGE_BYTES;
use tiergraph_nvme::{
    Controller, Dma, FileStorage, ModelledDrive, Namespace, PciDrive, SharedMemory,
    SoftwareController, SoftwareOptions, StripedStorage, Timing,
};

use crate::file_set::Stripe;
use crate::stripe::Layout;
use crate::{FileId, FileSet, Read};

pub(crate) use placed::Piece;
pub(crate) use queue::{Queue, Queues};
pub use write::write_drives;

use placed::{Part, PlacedFile, Placement};

/// Bytes of a unit of files that lie on several drives: what one command moves, so that a block's read keeps
/// all of them busy.
const UNIT_BYTES: u64 = 128 << 10;

/// A drive that nobody has started yet: the registers of its controller, and its bus.
#[derive(Debug)]
pub struct RawDrive {
    /// The drive's name in messages: its address on the PCI bus, if it has one.
    pub name: String,
    /// Its registers.
    pub registers: SharedMemory,
    /// The bus by which it reaches memory.
    pub dma: Arc<dyn Dma>,
    /// The threads that are the drive, if it is one of software.
    pub software: Option<SoftwareController>,
}

impl From<PciDrive> for RawDrive {
    fn from(drive: PciDrive) -> Self {
        let name = drive.address().to_string();
        Self { name, registers: drive.registers(), dma: drive.dma(), software: None }
    }
}

impl RawDrive {
    /// A drive that a software controller is.
    pub fn software(name: String, software: SoftwareController) -> Self {
        let (registers, dma) = (software.registers(), software.dma());
        Self { name, registers, dma, software: Some(software) }
    }
}

/// The bytes of a file on drives: side by side in a row of units, which lie on the drives in turn.
#[derive(Debug)]
pub(crate) struct StripedFile {
    /// The byte of the row at which the file begins.
    pub(crate) start: u64,
    /// Bytes of a unit.
    pub(crate) unit_bytes: u64,
    /// The byte of each drive at which its units begin.
    pub(crate) base: u64,
    /// The drives, in the order of their units.
    pub(crate) drives: Vec<Arc<Drive>>,
}

/// NVMe drives that hold the files of a set, and the queue pairs that no engine has.
#[derive(Debug)]
pub struct NvmeDrives {
    files: Arc<FileSet>,
    drives: Vec<Arc<Drive>>,
    placed: Placement,
    timing: Timing,
    /// Queue pairs that wait for an engine.
    idle: Mutex<Vec<Queues>>,
    /// Queue pairs of engines that failed: controllers may still write to their memory.
    failed: Mutex<Vec<Queues>>,
}

/// A drive that was started.
#[derive(Debug)]
pub(crate) struct Drive {
    name: String,
    // Dropped first: it stops the controller, which the software answers.
    controller: Mutex<Controller>,
    namespace: Namespace,
    dma: Arc<dyn Dma>,
    /// Its registers as GPUs reach them, while one does.
    of_gpus: Mutex<Weak<RegisteredMemory>>,
    _software: Option<SoftwareController>,
}

impl Drive {
    pub(crate) fn start(drive: RawDrive, timing: Timing) -> Result<Self> {
        let RawDrive { name, registers, dma, software } = drive;
        let controller = Controller::start(registers, Arc::clone(&dma), timing)
            .map_err(|error| error.object(&name))?;
        let (namespace, controller) = (controller.namespace(), Mutex::new(controller));
        let of_gpus = Mutex::default();
        Ok(Self { name, controller, namespace, dma, of_gpus, _software: software })
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

    fn queue(&self) -> Result<Queue> {
        Queue::new(&mut self.controller(), &self.dma)
    }

    /// The description of the files that tiergraph has written to the drive; `None` if it has written none.
    fn contents(&self, queue: &mut Queue, timing: Timing) -> Result<Option<DriveContents>> {
        let mut bytes = vec![0; PAGE_BYTES];
        let mut read = |bytes: &mut [u8]| {
            queue.read_all(0, bytes, timing).map_err(|error| error.object(&self.name))
        };
        read(&mut bytes)?;
        let needed = DriveContents::bytes_of(&bytes).min(self.namespace.bytes() as usize);
        bytes.resize(needed, 0);
        read(&mut bytes)?;
        DriveContents::from_bytes(&bytes, &self.name)
    }
}

impl NvmeDrives {
    /// Starts `drives`, which hold the files of `files`: [`write_drives`] has written them there.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if they hold others, or are not those that were written together;
    /// [`ErrorKind::Io`] if one does not start or cannot be read.
    pub fn open(files: &Arc<FileSet>, drives: Vec<RawDrive>, timing: Timing) -> Result<Arc<Self>> {
        let drives = drives.into_iter().map(|drive| Drive::start(drive, timing).map(Arc::new));
        let drives = drives.collect::<Result<Vec<_>>>()?;
        let mut queues = drives.iter().map(|drive| drive.queue()).collect::<Result<Vec<_>>>()?;
        let both = drives.iter().zip(&mut queues);
        let held = both.map(|(drive, queue)| drive.contents(queue, timing));
        let held = held.collect::<Result<Vec<_>>>()?;
        let placed = placed::on_written(files, &drives, &held)?;
        let opened = Self::new(files, drives, placed, timing);
        opened.give_back(Queues(queues), true);
        Ok(opened)
    }

    /// `count` drives (at least one) that are software controllers over the opened files of `files`, units of
    /// which lie on them in turn.
    ///
    /// # Errors
    /// The system gives no more threads or memory.
    pub fn software(
        files: &Arc<FileSet>,
        count: usize,
        options: &SoftwareOptions,
        timing: Timing,
    ) -> Result<Arc<Self>> {
        let opened = files.stripes().iter().map(|stripe| {
            let failed = |e| Error::io("open", stripe.path().display(), e);
            Ok((stripe.file.try_clone().map_err(failed)?, stripe.path_bytes()))
        });
        let row = Arc::new(FileStorage::new(opened.collect::<Result<Vec<_>>>()?));
        let stripes = files.stripes().iter().zip(row.starts());
        let part =
            |(stripe, start): (&Stripe, u64)| Part { start, extents: stripe.extents.clone() };
        let parts: Vec<Part> = stripes.map(part).collect();
        let drives = (0..count.max(1)).map(|drive| {
            let serial = format!("{}-{drive}", options.serial);
            let model = options.drive.as_ref().map(ModelledDrive::another);
            let options =
                SoftwareOptions { serial: serial.clone(), drive: model, ..options.clone() };
            let storage = StripedStorage::new(Arc::clone(&row), drive, count.max(1), UNIT_BYTES);
            let software = SoftwareController::start(storage, options)?;
            Drive::start(RawDrive::software(serial, software), timing).map(Arc::new)
        });
        let drives = drives.collect::<Result<Vec<_>>>()?;
        let file = |file| PlacedFile {
            layout: files.layout(file),
            parts: parts[files.stripes_of(file)].to_vec(),
        };
        let placed = Placement {
            files: files.ids().map(file).collect(),
            units: Layout { stripes: drives.len() as u64, unit_bytes: UNIT_BYTES },
            drives: (0..drives.len()).collect(),
            base: 0,
        };
        Ok(Self::new(files, drives, placed, timing))
    }

    fn new(
        files: &Arc<FileSet>,
        drives: Vec<Arc<Drive>>,
        placed: Placement,
        timing: Timing,
    ) -> Arc<Self> {
        let (idle, failed) = (Mutex::default(), Mutex::default());
        Arc::new(Self { files: Arc::clone(files), drives, placed, timing, idle, failed })
    }

    /// The files.
    pub(crate) fn files(&self) -> &Arc<FileSet> {
        &self.files
    }

    /// The time that the drives may take.
    pub(crate) fn timing(&self) -> Timing {
        self.timing
    }

    /// The name of a drive in messages.
    pub(crate) fn name(&self, drive: usize) -> &str {
        self.drives.get(drive).map_or("", |drive| &drive.name)
    }

    /// The pieces on drives that hold the first `len` bytes of a read, in order.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] for bytes that lie on no drive.
    pub(crate) fn pieces(&self, read: &Read, len: usize) -> Result<Vec<Piece>> {
        let most = |drive: usize| queue::span_bytes(&self.drives[drive].namespace);
        let pieces = self
            .files
            .position(read.file)
            .and_then(|file| self.placed.pieces(file, read.offset, len, most));
        pieces.ok_or_else(|| {
            Error::new(ErrorKind::Internal, "read from a drive").got("bytes that lie on none")
        })
    }

    /// Where the bytes of `file` lie, as a kernel computes it.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a file in several pieces: a graph's stripes, or extents.
    pub(crate) fn striped(&self, file: FileId) -> Result<StripedFile> {
        let placed = self.files.position(file).and_then(|file| self.placed.files.get(file));
        let whole = placed.and_then(PlacedFile::start).ok_or_else(|| {
            Error::new(ErrorKind::Input, "read a file of the graph by a GPU")
                .object(self.files.identity(file))
                .expected("a file in one piece")
                .got("stripes or extents")
                .hint("build the graph without `--stripe`, or read it by the host's engines")
        })?;
        let drives = self.placed.drives.iter().map(|&drive| Arc::clone(&self.drives[drive]));
        let Placement { units, base, .. } = self.placed;
        let unit_bytes = if units.stripes == 1 { UNIT_BYTES } else { units.unit_bytes };
        Ok(StripedFile { start: whole, unit_bytes, base, drives: drives.collect() })
    }

    /// The bus by which a drive reaches memory.
    pub(crate) fn dma(&self, drive: usize) -> &Arc<dyn Dma> {
        &self.drives[drive].dma
    }

    /// Queue pairs for an engine: idle ones, or new ones.
    ///
    /// # Errors
    /// A controller has no more.
    pub(crate) fn take(&self) -> Result<Queues> {
        if let Some(queues) = lock(&self.idle).pop() {
            return Ok(queues);
        }
        let queues = self.drives.iter().map(|drive| drive.queue()).collect::<Result<_>>()?;
        Ok(Queues(queues))
    }

    /// Takes queue pairs back that an engine needs no more; `is_sound` unless one of them failed.
    pub(crate) fn give_back(&self, queues: Queues, is_sound: bool) {
        let is_idle = queues.0.iter().all(|queue| queue.pair.in_flight() == 0);
        lock(if is_sound && is_idle { &self.idle } else { &self.failed }).push(queues);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
