//! Drives on the PCI bus, taken from the kernel for as long as they are used.
//!
//! [`PciDrive::open_all`] takes drives from the kernel's own driver, gives them to `vfio-pci`, and maps their
//! registers and this process's memory. Each of them then looks as a
//! [`SoftwareController`](crate::SoftwareController) does: registers, and a [`Dma`](crate::Dma). When
//! the process ends, however it does, a [`Keeper`](keeper::Keeper) gives them back to the kernel.
//!
//! Only VFIO's groups with the type 1 IOMMU are used: what every distribution's kernel has.

mod address;
mod iova;
mod keeper;
pub(crate) mod sysfs;
mod vfio;

pub use address::PciAddress;
pub use sysfs::{Driver, PciDevice};
pub use vfio::PciDrive;
