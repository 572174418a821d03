//! Drives through VFIO: their registers in this process, and this process's memory on their bus.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tiergraph_core::{ByteSize, Error, ErrorKind, Result};
use vfio_bindings::bindings::vfio::{
    VFIO_BASE, VFIO_DMA_MAP_FLAG_READ, VFIO_DMA_MAP_FLAG_WRITE, VFIO_GROUP_FLAGS_VIABLE,
    VFIO_IOMMU_INFO_CAPS, VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE, VFIO_PCI_BAR0_REGION_INDEX,
    VFIO_PCI_CONFIG_REGION_INDEX, VFIO_REGION_INFO_FLAG_MMAP, VFIO_TYPE, VFIO_TYPE1v2_IOMMU,
    vfio_group_status, vfio_iommu_type1_dma_map, vfio_iommu_type1_dma_unmap, vfio_iommu_type1_info,
    vfio_region_info,
};

use super::PciAddress;
use super::iova::FreeAddresses;
use super::keeper::Keeper;
use super::sysfs::{Driver, PciDevice};
use crate::dma::PAGE_BYTES;
use crate::registers::DOORBELLS;
use crate::{Dma, SharedMemory};

/// The requests of VFIO that are used here, by their numbers from `VFIO_BASE` on.
#[derive(Debug, Clone, Copy)]
enum Request {
    SetIommu = 2,
    GroupStatus = 3,
    SetContainer = 4,
    DeviceFd = 6,
    RegionInfo = 8,
    IommuInfo = 12,
    MapDma = 13,
    UnmapDma = 14,
}

/// Large memory is mapped at multiples of this, so that the IOMMU has few entries for it.
const HUGE_BYTES: u64 = 2 << 20;
/// Where a device's configuration has its command register (PCI 3.0, 6.2.2), and the bits by which it
/// answers at its registers and accesses memory.
const PCI_COMMAND: u64 = 4;
const PCI_COMMAND_MEMORY_AND_MASTER: u16 = 1 << 1 | 1 << 2;

/// A drive that is this process's, until it drops it and all that it gave out, or ends.
#[derive(Debug)]
pub struct PciDrive {
    address: PciAddress,
    registers: SharedMemory,
    container: Arc<Container>,
}

impl PciDrive {
    /// Takes the drives at `addresses`, which share what is mapped. Those that the kernel's driver has are
    /// given to `vfio-pci`, and back to the kernel when they are dropped or the process ends. Those that
    /// `vfio-pci` has stay with it.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for an address of no NVMe drive or of one that is in use; [`ErrorKind::Io`]
    /// where the machine has no IOMMU or VFIO, or does not let this process use them.
    pub fn open_all(addresses: &[PciAddress]) -> Result<Vec<Self>> {
        if let Some(twice) = addresses.iter().enumerate().find(|(i, a)| addresses[..*i].contains(a))
        {
            return Err(Error::new(ErrorKind::Input, "take the NVMe drive")
                .object(twice.1)
                .expected("each drive once")
                .got("one that is named twice"));
        }
        let devices = addresses.iter().map(|&address| PciDevice::at(address));
        let devices = devices.collect::<Result<Vec<_>>>()?;
        let groups = devices.iter().map(PciDevice::iommu_group).collect::<Result<Vec<_>>>()?;
        let mut taken = Vec::with_capacity(devices.len());
        for device in devices {
            taken.push(Taken { keeper: take(&device)?, device });
        }
        let mut opened: BTreeMap<u32, Arc<File>> = BTreeMap::new();
        let container = open("/dev/vfio/vfio")?;
        for (&group, taken) in groups.iter().zip(&taken) {
            if let Entry::Vacant(entry) = opened.entry(group) {
                entry.insert(Arc::new(open_group(group, &taken.device, &container)?));
            }
        }
        let container = Arc::new(Container::new(container)?);
        let drive = |(taken, group): (Taken, u32)| {
            Self::open(taken, Arc::clone(&opened[&group]), Arc::clone(&container))
        };
        taken.into_iter().zip(groups).map(drive).collect()
    }

    /// The drive's address on the bus.
    pub fn address(&self) -> PciAddress {
        self.address
    }

    /// The drive's registers.
    pub fn registers(&self) -> SharedMemory {
        self.registers.clone()
    }

    /// The bus by which the drive reaches memory.
    pub fn dma(&self) -> Arc<dyn Dma> {
        Arc::clone(&self.container) as _
    }

    fn open(taken: Taken, group: Arc<File>, container: Arc<Container>) -> Result<Self> {
        let Taken { device, keeper } = taken;
        let address = device.address();
        let name = std::ffi::CString::new(address.to_string()).unwrap_or_default();
        let failed = |op: &str| {
            let op = format!("{op} the NVMe drive");
            move |e| Error::io(op.clone(), address, e)
        };
        // SAFETY: the name ends with a zero byte.
        let fd = unsafe { request(&group, Request::DeviceFd, name.as_ptr().cast_mut()) };
        let fd = fd.map_err(failed("open"))?;
        // SAFETY: the system gave this descriptor to nobody else.
        let file = unsafe { File::from_raw_fd(fd) };
        let config = region(&file, VFIO_PCI_CONFIG_REGION_INDEX).map_err(failed("configure"))?;
        let mut command = [0; 2];
        let at = config.offset + PCI_COMMAND;
        let enabled = file.read_exact_at(&mut command, at).and_then(|()| {
            let bits = u16::from_le_bytes(command) | PCI_COMMAND_MEMORY_AND_MASTER;
            file.write_all_at(&bits.to_le_bytes(), at)
        });
        enabled.map_err(failed("configure"))?;
        let bar = region(&file, VFIO_PCI_BAR0_REGION_INDEX).map_err(failed("map"))?;
        let len = bar.size as usize;
        if bar.flags & VFIO_REGION_INFO_FLAG_MMAP == 0 || len < DOORBELLS + 4096 {
            return Err(Error::new(ErrorKind::Io, "map the NVMe drive")
                .object(address)
                .expected("registers that can be mapped")
                .got(format!("a region of `{len}` bytes with flags `{:#x}`", bar.flags)));
        }
        let start = map_file(&file, bar.offset, len).map_err(failed("map"))?;
        let bar = Bar { start, len, file, group, keeper };
        // SAFETY: the registers are mapped until `bar` drops; no reference to them is made.
        let registers = unsafe { SharedMemory::of_registers(start.cast(), len, Arc::new(bar)) };
        Ok(Self { address, registers, container })
    }
}

/// A drive that `vfio-pci` has.
struct Taken {
    device: PciDevice,
    keeper: Option<Keeper>,
}

/// Gives a drive to `vfio-pci`, if that does not have it yet; who gives it back.
fn take(device: &PciDevice) -> Result<Option<Keeper>> {
    match device.driver() {
        Driver::Vfio => Ok(None),
        Driver::Other(name) => Err(Error::new(ErrorKind::Input, "take the NVMe drive")
            .object(device.address())
            .expected("the kernel's driver `nvme`, `vfio-pci` or none")
            .got(format!("`{name}`"))),
        Driver::None | Driver::Kernel => {
            let keeper = Keeper::start(device.address())?;
            device.give_to_vfio()?;
            Ok(Some(keeper))
        }
    }
}

/// Mapped registers, with what must be open meanwhile. What is closed is closed in this order: unmapped,
/// the device, its group, and then the keeper gives the device back.
#[derive(Debug)]
#[expect(dead_code, reason = "kept open")]
struct Bar {
    start: NonNull<c_void>,
    len: usize,
    file: File,
    group: Arc<File>,
    keeper: Option<Keeper>,
}

// SAFETY: the mapping may be undone by any thread.
unsafe impl Send for Bar {}
// SAFETY: as above.
unsafe impl Sync for Bar {}

impl Drop for Bar {
    fn drop(&mut self) {
        // SAFETY: mapped by `map_file`; nobody has a reference to it any more.
        unsafe { libc::munmap(self.start.as_ptr(), self.len) };
    }
}

fn map_file(file: &File, offset: u64, len: usize) -> io::Result<NonNull<c_void>> {
    let (protection, offset) = (libc::PROT_READ | libc::PROT_WRITE, offset as libc::off_t);
    let (kind, fd) = (libc::MAP_SHARED, file.as_raw_fd());
    // SAFETY: a new mapping, which replaces none.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, kind, fd, offset) };
    match start {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        start => NonNull::new(start).ok_or_else(io::Error::last_os_error),
    }
}

fn region(device: &File, index: u32) -> io::Result<vfio_region_info> {
    let argsz = size_of::<vfio_region_info>() as u32;
    let mut info = vfio_region_info { argsz, index, ..Default::default() };
    // SAFETY: the system writes as many bytes as `argsz` says.
    unsafe { request(device, Request::RegionInfo, &raw mut info) }?;
    Ok(info)
}

fn open(path: &str) -> Result<File> {
    OpenOptions::new().read(true).write(true).open(path).map_err(|e| {
        let hint = match e.kind() {
            io::ErrorKind::NotFound => "`modprobe vfio-pci`, as root",
            io::ErrorKind::PermissionDenied => {
                "run as root, or let this user read and write the files in `/dev/vfio`"
            }
            _ => "another process may use the drive",
        };
        Error::io("open", path, e).hint(hint)
    })
}

/// Opens an IOMMU group, and puts it into the container.
fn open_group(number: u32, device: &PciDevice, container: &File) -> Result<File> {
    let path = format!("/dev/vfio/{number}");
    let group = open(&path)?;
    let failed = |e| Error::io("open", &path, e);
    let mut status =
        vfio_group_status { argsz: size_of::<vfio_group_status>() as u32, ..Default::default() };
    // SAFETY: the system writes as many bytes as `argsz` says.
    unsafe { request(&group, Request::GroupStatus, &raw mut status) }.map_err(failed)?;
    if status.flags & VFIO_GROUP_FLAGS_VIABLE == 0 {
        return Err(Error::new(ErrorKind::Io, "take the NVMe drive")
            .object(device.address())
            .expected(format!("no driver for the rest of IOMMU group `{number}`"))
            .got(device.neighbours().join(", "))
            .hint("put the drive into a slot of its own group, or unbind those devices"));
    }
    let mut fd = container.as_raw_fd();
    // SAFETY: the system reads one descriptor.
    unsafe { request(&group, Request::SetContainer, &raw mut fd) }.map_err(failed)?;
    Ok(group)
}

/// The memory that the drives of a process reach: an IOMMU's mappings.
#[derive(Debug)]
struct Container {
    file: File,
    mapped: Mutex<Mappings>,
}

#[derive(Debug)]
struct Mappings {
    free: FreeAddresses,
    /// By first bus address.
    memory: BTreeMap<u64, Mapping>,
}

/// A mapping: its bus addresses, and the memory there, which is kept as long.
#[derive(Debug)]
struct Mapping {
    bus: Range<u64>,
    _memory: SharedMemory,
}

impl Container {
    /// The container `file`, which has its groups.
    fn new(file: File) -> Result<Self> {
        let failed = |e| Error::io("use the IOMMU by", "/dev/vfio/vfio", e);
        let kind = VFIO_TYPE1v2_IOMMU as usize as *mut c_void;
        // SAFETY: a number, not an address.
        unsafe { request(&file, Request::SetIommu, kind) }.map_err(failed)?;
        let free = FreeAddresses::new(usable(&file).map_err(failed)?, PAGE_BYTES);
        Ok(Self { file, mapped: Mutex::new(Mappings { free, memory: BTreeMap::new() }) })
    }

    fn mapped(&self) -> MutexGuard<'_, Mappings> {
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dma for Container {
    fn map(&self, memory: &SharedMemory) -> Result<u64> {
        let len = (memory.len() as u64).next_multiple_of(PAGE_BYTES);
        let refused = || {
            Error::new(ErrorKind::Io, "map memory for an NVMe drive")
                .expected("memory that starts at a page, and bus addresses for it")
                .got(format!("`{}` bytes at `{:#x}`", memory.len(), memory.address()))
        };
        if !memory.address().is_multiple_of(PAGE_BYTES) || memory.is_empty() {
            return Err(refused());
        }
        let align = if len >= HUGE_BYTES { HUGE_BYTES } else { PAGE_BYTES };
        let mut mapped = self.mapped();
        let bus = mapped.free.take(len, align).ok_or_else(refused)?;
        let mut map = vfio_iommu_type1_dma_map {
            argsz: size_of::<vfio_iommu_type1_dma_map>() as u32,
            flags: VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
            vaddr: memory.address(),
            iova: bus.start,
            size: len,
        };
        // SAFETY: the system reads as many bytes as `argsz` says. The memory is kept until it is unmapped.
        match unsafe { request(&self.file, Request::MapDma, &raw mut map) } {
            Ok(_) => {
                let start = bus.start;
                mapped.memory.insert(start, Mapping { bus, _memory: memory.clone() });
                Ok(start)
            }
            Err(e) => {
                mapped.free.give(bus);
                let what = format!("{} of memory", ByteSize(len));
                Err(Error::io("lock for an NVMe drive", what, e)
                    .hint("raise the limit of locked memory (`ulimit -l unlimited`), as root"))
            }
        }
    }

    fn unmap(&self, bus: u64) {
        let mut mapped = self.mapped();
        let Some(mapping) = mapped.memory.get(&bus) else { return };
        let Range { start, end } = mapping.bus;
        let mut unmap = vfio_iommu_type1_dma_unmap {
            argsz: size_of::<vfio_iommu_type1_dma_unmap>() as u32,
            iova: start,
            size: end - start,
            ..Default::default()
        };
        // SAFETY: the system reads and writes as many bytes as `argsz` says.
        let unmapped = unsafe { request(&self.file, Request::UnmapDma, &raw mut unmap) };
        // A container without groups has no mapping left. Whatever is still mapped is never freed.
        if unmapped.is_ok() {
            mapped.memory.remove(&bus);
            mapped.free.give(start..end);
        }
    }
}

/// The bus addresses that the container's IOMMU can use.
fn usable(container: &File) -> io::Result<Vec<Range<u64>>> {
    let mut words = vec![0_u64; size_of::<vfio_iommu_type1_info>().div_ceil(8)];
    let info = |words: &mut Vec<u64>| {
        let info = vfio_iommu_type1_info { argsz: (words.len() * 8) as u32, ..Default::default() };
        // SAFETY: the words are aligned, and hold the struct.
        unsafe { words.as_mut_ptr().cast::<vfio_iommu_type1_info>().write(info) };
        // SAFETY: the system writes at most as many bytes as `argsz` says, which the words have.
        unsafe { request(container, Request::IommuInfo, words.as_mut_ptr()) }?;
        // SAFETY: the words hold the struct, of which any bits are a value.
        Ok::<_, io::Error>(unsafe { words.as_ptr().cast::<vfio_iommu_type1_info>().read() })
    };
    let needed = info(&mut words)?.argsz as usize;
    words.resize(needed.div_ceil(8).max(words.len()), 0);
    let header = info(&mut words)?;
    let bytes: &[u8] = bytemuck::cast_slice(&words);
    let has_list = header.flags & VFIO_IOMMU_INFO_CAPS != 0;
    let ranges = has_list.then(|| iova_ranges(bytes, header.cap_offset as usize)).flatten();
    ranges.ok_or_else(|| io::Error::other("the kernel does not say which bus addresses it maps"))
}

/// The ranges in the chain of capabilities that begins at byte `at`.
fn iova_ranges(bytes: &[u8], mut at: usize) -> Option<Vec<Range<u64>>> {
    let u16_at = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let u32_at = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let u64_at = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    // Its header has an id, a version, and the place of the next.
    while at != 0 {
        if u32::from(u16_at(at)?) == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE {
            let count = u32_at(at + 8)? as usize;
            let range = |number: usize| {
                let at = at + 16 + number * 16;
                Some(u64_at(at)?..u64_at(at + 8)?.saturating_add(1))
            };
            return (0..count).map(range).collect();
        }
        let next = u32_at(at + 4)? as usize;
        at = if next > at { next } else { 0 };
    }
    None
}

/// Asks VFIO for something; what it returns.
///
/// # Safety
/// `argument` is what the request takes.
unsafe fn request<T>(file: &File, request: Request, argument: *mut T) -> io::Result<i32> {
    let number = u32::from(VFIO_TYPE) << 8 | (VFIO_BASE + request as u32);
    // SAFETY: promised.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), number.into(), argument) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_found_behind_other_capabilities_and_damage_is_none() {
        let mut bytes = vec![0_u8; 72];
        // At 8 another capability, whose next is at 24: two ranges.
        bytes[8..16].copy_from_slice(&[3, 0, 1, 0, 24, 0, 0, 0]);
        bytes[24..32].copy_from_slice(&[1, 0, 1, 0, 0, 0, 0, 0]);
        bytes[32] = 2;
        for (at, value) in [(40, 0_u64), (48, 0xfedf_ffff), (56, 0xfef0_0000), (64, u64::MAX)] {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let ranges = iova_ranges(&bytes, 8).unwrap();
        assert_eq!(ranges, [0..0xfee0_0000, 0xfef0_0000..u64::MAX]);
        assert_eq!(iova_ranges(&bytes[..60], 8), None, "cut short");
        assert_eq!(iova_ranges(&bytes, 0), None, "no capability");
    }
}
