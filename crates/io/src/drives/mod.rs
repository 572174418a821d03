//! The files of a [`FileSet`] as they lie on NVMe drives, which engines read by queue pairs or, where drives stay
//! with the kernel, by passthrough.

mod pairs;
mod passthrough;
mod placed;
mod queues;
mod write;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::drive::DriveContents;
use tiergraph_mem::PAGE_BYTES;
use tiergraph_nvme::{
    DeviceUse, Dma, FileStorage, ModelledDrive, Namespace, NamespaceDevice, PciAddress, PciDrive,
    SharedMemory, SoftwareController, SoftwareOptions, StripedStorage, Timing,
};

use crate::file_set::Stripe;
use crate::stripe::Layout;
use crate::{FileId, FileSet, Read};

pub(crate) use pairs::StartedDrive;
pub(crate) use placed::Piece;
pub(crate) use queues::{Completed, DriveQueues, LOOKS, late};
pub use write::write_drives;

use pairs::Controllers;
use passthrough::Devices;
use placed::{Part, PlacedFile, Placement};
use queues::{Access, read_all, span_bytes};

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

/// Drives that nobody has started yet, all of them to be asked in one way.
#[derive(Debug)]
pub enum RawDrives {
    /// By queue pairs of this process.
    Controllers(Vec<RawDrive>),
    /// By the kernel's driver, which has them.
    Devices(Vec<NamespaceDevice>),
}

impl From<Vec<RawDrive>> for RawDrives {
    fn from(drives: Vec<RawDrive>) -> Self {
        Self::Controllers(drives)
    }
}

impl From<Vec<NamespaceDevice>> for RawDrives {
    fn from(devices: Vec<NamespaceDevice>) -> Self {
        Self::Devices(devices)
    }
}

impl RawDrives {
    /// The drives of these PCI addresses, taken from the kernel, or with these devices (absolute paths), kept
    /// from others: those that a graph shall be written to.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for no such drives, or addresses and devices together; [`ErrorKind::Io`] where the
    /// system refuses or one is in use.
    pub fn to_be_written(names: &[String]) -> Result<Self> {
        let devices: Vec<PathBuf> =
            names.iter().filter(|name| name.starts_with('/')).map(PathBuf::from).collect();
        if devices.is_empty() {
            let addresses = names.iter().map(|name| name.parse());
            let addresses = addresses.collect::<Result<Vec<PciAddress>>>()?;
            let drives = PciDrive::open_all(&addresses)?.into_iter().map(RawDrive::from);
            return Ok(Self::Controllers(drives.collect()));
        }
        if devices.len() < names.len() {
            return Err(Error::new(ErrorKind::Input, "write the NVMe drives")
                .object(names.join(" "))
                .expected("addresses of the PCI bus, or devices")
                .got("some of each"));
        }
        NamespaceDevice::open_all(&devices, DeviceUse::Writing).map(Self::Devices)
    }

    /// Starts the drives.
    fn start(self, timing: Timing) -> Result<(Vec<Drive>, Box<dyn Access>)> {
        Ok(match self {
            Self::Controllers(drives) => {
                let (drives, controllers) = Controllers::start(drives, timing)?;
                (drives, Box::new(controllers))
            }
            Self::Devices(devices) => {
                let drive = |device: &NamespaceDevice| Drive {
                    name: device.name().into(),
                    namespace: device.namespace(),
                };
                let drives: Vec<_> = devices.iter().map(drive).collect();
                let devices = Devices::open(devices, &drives, timing)?;
                (drives, Box::new(devices))
            }
        })
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
    pub(crate) drives: Vec<Arc<StartedDrive>>,
}

/// NVMe drives that hold the files of a set, and the queues that no engine has.
#[derive(Debug)]
pub struct NvmeDrives {
    files: Arc<FileSet>,
    drives: Vec<Drive>,
    // Dropped before queues: controllers that have stopped write to no memory of theirs.
    access: Box<dyn Access>,
    placed: Placement,
    timing: Timing,
    /// Queues that wait for an engine.
    idle: Mutex<Vec<Box<dyn DriveQueues>>>,
    /// Queues of engines that failed: drives may still write to their memory.
    failed: Mutex<Vec<Box<dyn DriveQueues>>>,
}

/// What a started drive is.
#[derive(Debug)]
pub(crate) struct Drive {
    name: String,
    namespace: Namespace,
}

impl Drive {
    /// The description of the files that tiergraph has written to the drive; `None` if it has written none.
    fn contents(
        &self,
        queues: &mut dyn DriveQueues,
        number: usize,
        timing: Timing,
    ) -> Result<Option<DriveContents>> {
        let mut bytes = vec![0; PAGE_BYTES];
        let mut read = |bytes: &mut [u8]| read_all(queues, number, self, 0, bytes, timing.command);
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
    pub fn open(
        files: &Arc<FileSet>,
        drives: impl Into<RawDrives>,
        timing: Timing,
    ) -> Result<Arc<Self>> {
        let (drives, access) = drives.into().start(timing)?;
        let mut queues = access.queues()?;
        let numbered = drives.iter().enumerate();
        let held = numbered.map(|(number, drive)| drive.contents(&mut *queues, number, timing));
        let held = held.collect::<Result<Vec<_>>>()?;
        let placed = placed::on_written(files, &drives, &held)?;
        let opened = Self::new(files, drives, access, placed, timing);
        opened.give_back(queues, true);
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
            Ok(RawDrive::software(serial, software))
        });
        let drives = RawDrives::Controllers(drives.collect::<Result<_>>()?);
        let (drives, access) = drives.start(timing)?;
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
        Ok(Self::new(files, drives, access, placed, timing))
    }

    fn new(
        files: &Arc<FileSet>,
        drives: Vec<Drive>,
        access: Box<dyn Access>,
        placed: Placement,
        timing: Timing,
    ) -> Arc<Self> {
        let (idle, failed) = (Mutex::default(), Mutex::default());
        Arc::new(Self { files: Arc::clone(files), drives, access, placed, timing, idle, failed })
    }

    /// The files.
    pub(crate) fn files(&self) -> &Arc<FileSet> {
        &self.files
    }

    /// The time that the drives may take.
    pub(crate) fn timing(&self) -> Timing {
        self.timing
    }

    /// The number of drives.
    pub(crate) fn count(&self) -> usize {
        self.drives.len()
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
        let most = |drive: usize| span_bytes(&self.drives[drive].namespace);
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
    /// [`ErrorKind::Input`] for a file in several pieces: a graph's stripes, or extents; for drives that
    /// the kernel's driver has.
    pub(crate) fn striped(&self, file: FileId) -> Result<StripedFile> {
        let refused = |expected: &str, got: &str| {
            Error::new(ErrorKind::Input, "read a file of the graph by a GPU")
                .object(self.files.identity(file))
                .expected(expected)
                .got(got)
                .hint("read it by the host's engines")
        };
        let placed = self.files.position(file).and_then(|file| self.placed.files.get(file));
        let start = placed
            .and_then(PlacedFile::start)
            .ok_or_else(|| refused("a file in one piece", "stripes or extents"))?;
        let drive = |&drive: &usize| {
            let of_kernel = || refused("drives of this process", "drives that the kernel has");
            self.access.started(drive).ok_or_else(of_kernel)
        };
        let drives = self.placed.drives.iter().map(drive).collect::<Result<_>>()?;
        let Placement { units, base, .. } = self.placed;
        let unit_bytes = if units.stripes == 1 { UNIT_BYTES } else { units.unit_bytes };
        Ok(StripedFile { start, unit_bytes, base, drives })
    }

    /// The name of engines over these drives in reports.
    pub(crate) fn engine(&self) -> &'static str {
        self.access.engine()
    }

    /// What a report says of the way in which the drives are asked; `None` where there is no other.
    pub(crate) fn why(&self) -> Option<String> {
        self.access.why()
    }

    /// Queues for an engine: idle ones, or new ones.
    ///
    /// # Errors
    /// A drive or the system has no more.
    pub(crate) fn take(&self) -> Result<Box<dyn DriveQueues>> {
        let idle = lock(&self.idle).pop();
        idle.map_or_else(|| self.access.queues(), Ok)
    }

    /// Takes queues back that an engine needs no more; `is_sound` unless one of them failed.
    pub(crate) fn give_back(&self, queues: Box<dyn DriveQueues>, is_sound: bool) {
        let is_idle = queues.in_flight() == 0;
        lock(if is_sound && is_idle { &self.idle } else { &self.failed }).push(queues);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
