//! What the kernel says of a PCI device, and which driver has it.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tiergraph_core::{Error, ErrorKind, Result};

use super::PciAddress;

const DEVICES: &str = "/sys/bus/pci/devices";
/// Where the kernel says what its block devices are.
pub(crate) const BLOCKS: &str = "/sys/class/block";
const PROBE: &str = "/sys/bus/pci/drivers_probe";
const VFIO_DRIVER: &str = "/sys/bus/pci/drivers/vfio-pci";
/// The class of NVMe controllers, by the interface that this crate has.
const NVME_CLASS: &str = "0x010802";

const NEEDS_ROOT: &str = "only root can take a drive from the kernel and give it back";

/// The driver that has a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Driver {
    /// None.
    None,
    /// The kernel's own driver of NVMe drives: block devices lie on it.
    Kernel,
    /// `vfio-pci`: a process may use it.
    Vfio,
    /// Another one, by its name.
    Other(String),
}

/// An NVMe controller on the PCI bus.
#[derive(Debug, Clone)]
pub struct PciDevice {
    address: PciAddress,
    path: PathBuf,
}

impl PciDevice {
    /// The device at `address`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if there is none, or it is no NVMe controller.
    pub fn at(address: PciAddress) -> Result<Self> {
        let path = Path::new(DEVICES).join(address.to_string());
        let refused = |got: String| {
            Error::new(ErrorKind::Input, "use the NVMe drive")
                .object(address)
                .expected("the PCI address of an NVMe drive of this machine")
                .got(got)
                .hint("`tiergraph drive list` names them")
        };
        match fs::read_to_string(path.join("class")) {
            Ok(class) if class.trim() == NVME_CLASS => Ok(Self { address, path }),
            Ok(class) => Err(refused(format!("a device of class `{}`", class.trim()))),
            Err(_) => Err(refused("no device".into())),
        }
    }

    /// All NVMe controllers of this machine, by address.
    pub fn all() -> Vec<Self> {
        let addresses =
            entries(Path::new(DEVICES)).into_iter().filter_map(|name| name.parse().ok());
        let mut all: Vec<Self> =
            addresses.filter_map(|address: PciAddress| Self::at(address).ok()).collect();
        all.sort_by_key(|device| device.address);
        all
    }

    /// The device's address on the bus.
    pub fn address(&self) -> PciAddress {
        self.address
    }

    /// The driver that has the device now.
    pub fn driver(&self) -> Driver {
        match link_name(&self.path.join("driver")).as_deref() {
            None => Driver::None,
            Some("nvme") => Driver::Kernel,
            Some("vfio-pci") => Driver::Vfio,
            Some(other) => Driver::Other(other.into()),
        }
    }

    /// The kernel's names of the drive's block devices, such as `nvme0n1`, without partitions.
    pub fn block_devices(&self) -> Vec<String> {
        let controllers = entries(&self.path.join("nvme"));
        let of = |controller: String| {
            let path = self.path.join("nvme").join(controller);
            entries(&path).into_iter().filter_map(|name| namespace(&name))
        };
        controllers.into_iter().flat_map(of).collect()
    }

    /// The drive's model, as its kernel driver knows it; `None` while another has it.
    pub fn model(&self) -> Option<String> {
        let controller = entries(&self.path.join("nvme")).into_iter().next()?;
        let model = fs::read_to_string(self.path.join("nvme").join(controller).join("model"));
        Some(model.ok()?.trim().to_owned())
    }

    /// Bytes of all its block devices; `None` while the kernel's driver does not have it.
    pub fn bytes(&self) -> Option<u64> {
        let devices = self.block_devices();
        let bytes = devices.iter().map(|device| {
            // Always in units of 512 bytes.
            let sectors = fs::read_to_string(Path::new(BLOCKS).join(device).join("size")).ok()?;
            Some(sectors.trim().parse::<u64>().ok()? * 512)
        });
        (!devices.is_empty()).then(|| bytes.sum::<Option<u64>>()).flatten()
    }

    /// The partitions of the drive's block devices, by the kernel's names.
    pub fn partitions(&self) -> Vec<String> {
        let of = |device: String| {
            entries(&Path::new(BLOCKS).join(&device))
                .into_iter()
                .filter(move |name| name.starts_with(&format!("{device}p")))
        };
        self.block_devices().into_iter().flat_map(of).collect()
    }

    /// The number of the device's IOMMU group.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where no IOMMU is on.
    pub(super) fn iommu_group(&self) -> Result<u32> {
        let group = link_name(&self.path.join("iommu_group"));
        group.and_then(|name| name.parse().ok()).ok_or_else(|| {
            Error::new(ErrorKind::Io, "use the NVMe drive")
                .object(self.address)
                .expected("an IOMMU, which keeps the drive to this process's memory")
                .got("none that is on")
                .hint("switch it on in the firmware (VT-d, AMD-Vi) and boot with `intel_iommu=on`")
        })
    }

    /// The other devices of the group that a process must take together, but bridges, which need no driver.
    pub(super) fn neighbours(&self) -> Vec<String> {
        let own = self.address.to_string();
        let is_other = |name: &String| {
            let class = fs::read_to_string(Path::new(DEVICES).join(name).join("class"));
            *name != own && !class.is_ok_and(|class| class.starts_with("0x06"))
        };
        entries(&self.path.join("iommu_group/devices")).into_iter().filter(is_other).collect()
    }

    /// Block devices of the drive, opened so that nobody else in the system can have them exclusively: no
    /// mount, no swap, no RAID or volume over them.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if something has one of them.
    pub fn claim(&self) -> Result<Vec<File>> {
        let claim = |name: String| claim_block_device(&name, self.address);
        self.block_devices().into_iter().map(claim).collect()
    }

    /// Gives the device to `vfio-pci`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if it is in use, [`ErrorKind::Io`] if the system does not let this process.
    pub(super) fn give_to_vfio(&self) -> Result<()> {
        if !Path::new(VFIO_DRIVER).exists() {
            return Err(Error::new(ErrorKind::Io, "use the NVMe drive")
                .object(self.address)
                .expected("the kernel's driver `vfio-pci`")
                .got("none that is loaded")
                .hint("`modprobe vfio-pci`, as root"));
        }
        // Held while the driver changes, so that nothing mounts the drive meanwhile.
        let claimed = self.claim()?;
        self.write("driver_override", "vfio-pci")?;
        let changed = self.change_driver();
        drop(claimed);
        changed.and_then(|()| match self.driver() {
            Driver::Vfio => Ok(()),
            other => Err(Error::new(ErrorKind::Io, "give the NVMe drive to `vfio-pci`")
                .object(self.address)
                .got(format!("driver {other:?}"))),
        })
    }

    /// Gives the device to whichever driver the kernel finds for it, which without `vfio-pci` is its own.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the system does not let this process.
    pub fn give_back(&self) -> Result<()> {
        self.write("driver_override", "\n")?;
        self.change_driver()
    }

    fn change_driver(&self) -> Result<()> {
        if self.driver() != Driver::None {
            self.write("driver/unbind", &self.address.to_string())?;
        }
        fs::write(PROBE, self.address.to_string()).map_err(|e| self.not_written("driver", e))
    }

    fn write(&self, attribute: &str, text: &str) -> Result<()> {
        fs::write(self.path.join(attribute), text).map_err(|e| self.not_written(attribute, e))
    }

    fn not_written(&self, attribute: &str, e: io::Error) -> Error {
        Error::io(format!("set `{attribute}` of the NVMe drive"), self.address, e).hint(NEEDS_ROOT)
    }
}

/// The block device `name`, opened so that nobody else in the system can have it exclusively; messages say that
/// it is of the drive `drive`.
///
/// # Errors
/// [`ErrorKind::Io`] if something has it, or this process may not ask.
pub(crate) fn claim_block_device(name: &str, drive: impl fmt::Display) -> Result<File> {
    let path = Path::new("/dev").join(name);
    let flags = libc::O_EXCL | libc::O_CLOEXEC;
    OpenOptions::new().read(true).custom_flags(flags).open(&path).map_err(|e| {
        let error = Error::io("take the NVMe drive", drive, e);
        match error_is_busy(&error) {
            true => error
                .expected(format!("that nothing uses `{}`", path.display()))
                .hint("unmount its file systems, and end what else uses it (`lsblk`)"),
            false => error
                .expected(format!("to find out what uses `{}`", path.display()))
                .hint(NEEDS_ROOT),
        }
    })
}

fn error_is_busy(error: &Error) -> bool {
    let source = std::error::Error::source(error);
    let system = source.and_then(|source| source.downcast_ref::<io::Error>());
    system.is_some_and(|e| e.raw_os_error() == Some(libc::EBUSY))
}

/// The block device of a namespace that the kernel lists with a controller, under its own name or, of a
/// drive with several ports, that of one path to it (`nvme0c1n1` for `nvme0n1`); `None` for other names.
pub(crate) fn namespace(name: &str) -> Option<String> {
    let (controller, namespace) = name.strip_prefix("nvme")?.split_once('n')?;
    let subsystem = controller.split_once('c').map_or(controller, |(subsystem, _)| subsystem);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(subsystem) && is_number(namespace)).then(|| format!("nvme{subsystem}n{namespace}"))
}

/// The names in a folder; none where it cannot be read.
fn entries(folder: &Path) -> Vec<String> {
    let read = fs::read_dir(folder).into_iter().flatten().flatten();
    read.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The last part of what a link points to.
pub(crate) fn link_name(link: &Path) -> Option<String> {
    Some(fs::read_link(link).ok()?.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_told_from_partitions_and_attributes() {
        for (name, device) in
            [("nvme0n1", "nvme0n1"), ("nvme12n3", "nvme12n3"), ("nvme0c1n2", "nvme0n2")]
        {
            assert_eq!(namespace(name).as_deref(), Some(device));
        }
        for name in ["nvme0", "nvme0n1p1", "ng0n1", "hwmon1", "power", "nvmen1", "nvme0n"] {
            assert_eq!(namespace(name), None);
        }
    }

    #[test]
    fn what_is_no_drive_is_refused_by_name() {
        let error = PciDevice::at("ffff:ff:1f.7".parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains("`ffff:ff:1f.7`") && error.contains("no device"), "{error}");
    }
}
