//! Namespaces that stay with the kernel's driver, and commands that it hands to the drive as they are.
//!
//! The driver gives each namespace a character device (`/dev/ng0n1`). An `ioctl` on it does one command and
//! waits for it: that is how [`NamespaceDevice::open`] describes the namespace. A ring of io_uring takes many
//! commands on it at a time (`IORING_OP_URING_CMD`, Linux 5.19; K. Joshi et al., "I/O Passthru", FAST '24).
//! Either way a command is a [`PassthroughCommand`].

use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bytemuck::{Pod, Zeroable};
use tiergraph_core::{Error, ErrorKind, Result};

use crate::command::{Command, Identify};
use crate::dma::PAGE_BYTES;
use crate::identify::{ControllerInfo, IDENTIFY_BYTES};
use crate::pci::sysfs::{BLOCKS, claim_block_device, link_name, namespace};
use crate::{Namespace, Status};

/// The class of the character devices of namespaces.
const CLASS: &str = "nvme-generic";
/// The request that numbers the namespace of a device, `_IO('N', 0x40)`.
const NVME_IOCTL_ID: u32 = 0x4e40;
/// The request that does an admin command, `_IOWR('N', 0x41, struct nvme_admin_cmd)`.
const NVME_IOCTL_ADMIN_CMD: u32 = read_write_request(0x41);
/// The operation of io_uring that does a command of the namespace, `_IOWR('N', 0x80, struct nvme_uring_cmd)`.
pub const NVME_URING_CMD_IO: u32 = read_write_request(0x80);

/// Request `number` of the driver with a command that both sides access (include/uapi/asm-generic/ioctl.h).
const fn read_write_request(number: u32) -> u32 {
    3 << 30 | (size_of::<PassthroughCommand>() as u32) << 16 | (b'N' as u32) << 8 | number
}

/// A command as the kernel's driver takes it: `struct nvme_uring_cmd`, and `struct nvme_passthru_cmd` of
/// `ioctl` (include/uapi/linux/nvme_ioctl.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(C)]
pub struct PassthroughCommand {
    /// What shall be done.
    pub opcode: u8,
    /// Fused operations, of which there are none here.
    pub flags: u8,
    /// Zero.
    pub reserved: u16,
    /// The namespace.
    pub nsid: u32,
    /// Dwords 2 and 3.
    pub cdw2: [u32; 2],
    /// The address of metadata, of which there is none here.
    pub metadata: u64,
    /// The address of the data in this process, which the driver makes a list of pages of.
    pub address: u64,
    /// Bytes of metadata.
    pub metadata_bytes: u32,
    /// Bytes of the data.
    pub bytes: u32,
    /// Dwords 10 to 15.
    pub cdw10: [u32; 6],
    /// Milliseconds until the driver aborts the command; 0: as many as of every other one, 30,000.
    pub timeout_ms: u32,
    /// Of `ioctl`, dword 0 of the completion; zero otherwise.
    pub result: u32,
}

const _: () = {
    assert!(size_of::<PassthroughCommand>() == 72);
    assert!(offset_of!(PassthroughCommand, nsid) == 4);
    assert!(offset_of!(PassthroughCommand, cdw2) == 8);
    assert!(offset_of!(PassthroughCommand, metadata) == 16);
    assert!(offset_of!(PassthroughCommand, address) == 24);
    assert!(offset_of!(PassthroughCommand, metadata_bytes) == 32);
    assert!(offset_of!(PassthroughCommand, bytes) == 36);
    assert!(offset_of!(PassthroughCommand, cdw10) == 40);
    assert!(offset_of!(PassthroughCommand, timeout_ms) == 64);
    assert!(offset_of!(PassthroughCommand, result) == 68);
};

impl PassthroughCommand {
    /// `command` with the `bytes` bytes from `address` on for its data.
    pub fn new(command: &Command, address: u64, bytes: u32) -> Self {
        let &Command { opcode, flags, nsid, cdw2, cdw10, .. } = command;
        Self { opcode, flags, nsid, cdw2, cdw10, address, bytes, ..Self::default() }
    }
}

/// What a device is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceUse {
    /// Commands that read.
    Reading,
    /// Commands that write, too: nobody else may use the drive's blocks meanwhile.
    Writing,
}

/// The character device of a namespace, opened, and what the namespace is.
#[derive(Debug)]
pub struct NamespaceDevice {
    name: String,
    file: File,
    namespace: Namespace,
    has_poll_queues: bool,
    /// The block device of the namespace, while it is kept from others.
    _claimed: Option<File>,
}

impl NamespaceDevice {
    /// Opens the devices at `paths`, each of them once.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for what is no NVMe namespace; [`ErrorKind::Io`] where the system or the drive
    /// refuses, or something uses a drive that shall be written.
    pub fn open_all(paths: &[PathBuf], what_for: DeviceUse) -> Result<Vec<Self>> {
        let devices = paths.iter().map(|path| generic_device(path)).collect::<Vec<_>>();
        if let Some(twice) = devices.iter().enumerate().find(|(i, d)| devices[..*i].contains(d)) {
            return Err(Error::new(ErrorKind::Input, "use the NVMe drive")
                .object(twice.1.display())
                .expected("each drive once")
                .got("one that is named twice"));
        }
        devices.iter().map(|device| Self::open(device, what_for)).collect()
    }

    /// Opens the device at `path` and describes its namespace.
    fn open(path: &Path, what_for: DeviceUse) -> Result<Self> {
        let name = path.display().to_string();
        let kernel_name = kernel_name(path)?;
        let block = kernel_name.strip_prefix("ng").map(|rest| format!("nvme{rest}"));
        let block = block.unwrap_or_default();
        let claimed = match what_for {
            DeviceUse::Reading => None,
            DeviceUse::Writing => Some(claim_block_device(&block, &name)?),
        };
        let mut options = OpenOptions::new();
        options.read(true).write(what_for == DeviceUse::Writing).custom_flags(libc::O_CLOEXEC);
        let file = options.open(path).map_err(|e| not_allowed(&name, e))?;
        let queue = Path::new(BLOCKS).join(block).join("queue");
        let namespace = describe(&file, &name, &queue)?;
        let has_poll_queues = number_in(&queue.join("io_poll")) == Some(1);
        Ok(Self { name, file, namespace, has_poll_queues, _claimed: claimed })
    }

    /// The device's path, which messages name it by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The device, for commands of rings.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The namespace.
    pub fn namespace(&self) -> Namespace {
        self.namespace
    }

    /// Whether the kernel's driver has queues for commands whose completions are polled.
    pub fn has_poll_queues(&self) -> bool {
        self.has_poll_queues
    }
}

/// The character device beside a block device (`/dev/ng0n1` for `/dev/nvme0n1`); other paths as they are.
fn generic_device(path: &Path) -> PathBuf {
    let name = path.file_name().and_then(|name| name.to_str());
    let block = name.filter(|name| namespace(name).as_deref() == Some(*name));
    let rest = block.and_then(|name| name.strip_prefix("nvme"));
    rest.map_or_else(|| path.to_owned(), |rest| path.with_file_name(format!("ng{rest}")))
}

/// The kernel's name of the character device at `path`.
fn kernel_name(path: &Path) -> Result<String> {
    let refused = |got: &str| {
        Error::new(ErrorKind::Input, "use the NVMe drive")
            .object(path.display())
            .expected("the character device of an NVMe namespace, such as `/dev/ng0n1`")
            .got(got)
            .hint(
                "the kernel's driver `nvme` makes them for the drives that it has, from Linux 5.13 on: \
                 `ls /dev/ng*`",
            )
    };
    let device = match fs::metadata(path) {
        Ok(device) if device.file_type().is_char_device() => device.rdev(),
        Ok(device) if device.file_type().is_block_device() => {
            return Err(refused("a block device that is no whole NVMe namespace"));
        }
        Ok(_) => return Err(refused("no device, but a file or folder")),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(refused("no device")),
        Err(e) => return Err(not_allowed(&path.display().to_string(), e)),
    };
    let (major, minor) = (libc::major(device), libc::minor(device));
    let known = PathBuf::from(format!("/sys/dev/char/{major}:{minor}"));
    match link_name(&known.join("subsystem")) {
        Some(class) if class == CLASS => Ok(link_name(&known).unwrap_or_default()),
        Some(class) => Err(refused(&format!("a device of class `{class}`"))),
        None => Err(refused("a device that the kernel has in no class")),
    }
}

/// An error of a system call by which a device is opened or asked, with what to do about it.
fn not_allowed(name: &str, e: io::Error) -> Error {
    let hint = match e.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => format!(
            "run as root, or give this user the capability CAP_SYS_ADMIN; from Linux 6.2 on it is enough \
             that the user may read `{name}`, and write it to write the drive"
        ),
        _ => "`dmesg` says what the kernel's driver `nvme` knows of the drive".into(),
    };
    Error::io("use the NVMe drive", name, e).hint(hint)
}

/// What the namespace behind `file` is. The folder `queue` has the limits of the kernel's queue of it.
fn describe(file: &File, name: &str, queue: &Path) -> Result<Namespace> {
    // SAFETY: this request takes no argument.
    let id = unsafe { libc::ioctl(file.as_raw_fd(), NVME_IOCTL_ID.into()) };
    let id = u32::try_from(id).map_err(|_| not_allowed(name, io::Error::last_os_error()))?;
    let controller = ControllerInfo::from_bytes(&*identify(file, name, Identify::Controller, 0)?);
    // The unit is the controller's smallest page, which is not told here: 4 KiB or more.
    let of_drive = controller.most_pages.unwrap_or(u64::MAX).saturating_mul(PAGE_BYTES);
    let of_queue = number_in(&queue.join("max_hw_sectors_kb")).map_or(u64::MAX, |kib| kib << 10);
    let page = identify(file, name, Identify::Namespace, id)?;
    Namespace::described(id, &page, of_drive.min(of_queue), name)
}

/// A description that the drive gives.
fn identify(
    file: &File,
    name: &str,
    what: Identify,
    nsid: u32,
) -> Result<Box<[u8; IDENTIFY_BYTES]>> {
    let mut page = Box::new([0; IDENTIFY_BYTES]);
    let (address, command) = (page.as_mut_ptr(), Command::identify(what, nsid, 0));
    let address = address.expose_provenance() as u64;
    let mut command = PassthroughCommand::new(&command, address, IDENTIFY_BYTES as u32);
    let request = NVME_IOCTL_ADMIN_CMD.into();
    // SAFETY: the command is as this request takes it, and the drive writes to `page` until this returns.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), request, &raw mut command) };
    match u16::try_from(status) {
        Ok(0) => Ok(page),
        Ok(status) => Err(Error::new(ErrorKind::Io, "identify the NVMe drive")
            .object(name)
            .source(Status(status))),
        Err(_) => Err(not_allowed(name, io::Error::last_os_error())),
    }
}

/// The number that a file of the kernel's holds; `None` if it holds none or is not there.
fn number_in(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::io::READ;

    #[test]
    fn a_read_is_encoded_as_the_kernel_takes_it() {
        let namespace = Namespace { id: 3, block_bytes: 512, blocks: 1 << 40, most_bytes: 8192 };
        let command = namespace.move_blocks(READ, 0x5_0000_0006 * 512, 4096).unwrap();
        let command = PassthroughCommand::new(&command, 0x7f00_0000_1000, 4096);
        let mut expected = [0; 72];
        (expected[0], expected[4]) = (0x02, 3);
        expected[24..32].copy_from_slice(&[0, 0x10, 0, 0, 0, 0x7f, 0, 0]);
        expected[36..40].copy_from_slice(&[0, 0x10, 0, 0]);
        expected[40..50].copy_from_slice(&[6, 0, 0, 0, 5, 0, 0, 0, 7, 0]);
        assert_eq!(bytemuck::bytes_of(&command), expected);
    }

    #[test]
    fn requests_have_the_numbers_of_the_header() {
        assert_eq!((NVME_IOCTL_ADMIN_CMD, NVME_URING_CMD_IO), (0xc048_4e41, 0xc048_4e80));
    }

    #[test]
    fn block_devices_stand_for_the_character_devices_beside_them() {
        for (path, device) in [
            ("/dev/nvme0n1", "/dev/ng0n1"),
            ("/dev/nvme12n3", "/dev/ng12n3"),
            ("/dev/ng0n1", "/dev/ng0n1"),
            ("/dev/nvme0n1p1", "/dev/nvme0n1p1"),
            ("/dev/nvme0", "/dev/nvme0"),
        ] {
            assert_eq!(generic_device(path.as_ref()), Path::new(device));
        }
    }

    #[test]
    fn what_is_no_namespace_is_refused_by_name() {
        let folder = std::env::temp_dir();
        for (path, got) in [
            ("/dev/ng4095n1".as_ref(), "got no device\n"),
            (folder.as_path(), "got no device, but a file or folder"),
            ("/dev/null".as_ref(), "got a device of class `mem`"),
        ] {
            let error =
                NamespaceDevice::open_all(&[path.to_owned()], DeviceUse::Reading).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Input);
            let error = error.to_string();
            assert!(error.contains(got) && error.contains("such as `/dev/ng0n1`"), "{error}");
        }
        let twice = ["/dev/nvme7n1", "/dev/ng7n1"].map(PathBuf::from);
        let error = NamespaceDevice::open_all(&twice, DeviceUse::Reading).unwrap_err().to_string();
        assert!(error.contains("`/dev/ng7n1`: expected each drive once"), "{error}");
    }
}
