//! NVMe queue pairs: who asks a drive for blocks, and who answers.
//!
//! A *queue pair* is a submission queue of 64-byte commands and a completion queue of 16-byte entries,
//! both rings in memory that host and controller share; a *doorbell* is a register by which one side
//! tells the other how far it has come. Both sides have two forms here, and each of them works with each
//! of the other's:
//!
//! | asks | answers |
//! |---|---|
//! | a CPU thread ([`QueuePair`], user-space I/O) | a drive |
//! | a GPU's kernel | a [`SoftwareController`]: threads that do what a drive does, from memory or files |
//!
//! | module | what it has | NVM Express |
//! |---|---|---|
//! | [`command`], [`completion`], [`identify`], [`registers`] | layouts of what both sides exchange | Base 2.0, NVM Command Set 1.0 |
//! | [`prp`] | lists of the pages that a command moves | Base 4.1.1 |
//! | [`shared`], [`dma`] | memory that host and controller share, and its bus addresses | |
//! | [`queue`], [`controller`] | the asking side: queue pairs, and the start of a controller | Base 3.3, 3.5 |
//! | [`pci`] | drives on the PCI bus, through VFIO | |
//! | [`passthrough`] | drives that stay with the kernel's driver, and commands that it hands on | |
//! | [`software`] | a controller of threads: the answering side | Base 3.3, 3.5, 5 |
//! | [`model`], [`catalogue`] | the speed of a drive, for a controller to imitate, and drives by name | |
//!
//! ```
//! use tiergraph_nvme::{Controller, MemoryStorage, SharedMemory, SoftwareController, Timing};
//!
//! // A drive of four blocks of 4 KiB, served by one thread.
//! let content: Vec<u8> = (0..4u8).flat_map(|block| [block; 4096]).collect();
//! let drive = SoftwareController::start(MemoryStorage::new(&content)?, Default::default())?;
//! let mut controller = Controller::start(drive.registers(), drive.dma(), Timing::default())?;
//! let mut queue = controller.queue_pair(8)?;
//!
//! let to = SharedMemory::zeroed(4096)?;
//! let bus = drive.dma().map(&to)?;
//! queue.push(controller.namespace().read(bus..bus + 4096, 3 * 4096, None)?);
//! queue.ring();
//! let ended = queue.wait(Timing::default().command)?;
//! assert!(ended.status.is_success());
//! let mut bytes = [0; 4096];
//! to.read_bytes(0, &mut bytes);
//! assert_eq!(bytes, [3; 4096]);
//! # Ok::<(), tiergraph_core::Error>(())
//! ```
#![allow(unsafe_code)]

pub mod catalogue;
pub mod command;
pub mod completion;
pub mod controller;
pub mod dma;
pub mod identify;
pub mod model;
pub mod passthrough;
pub mod pci;
pub mod prp;
pub mod queue;
pub mod registers;
pub mod shared;
pub mod software;

pub use catalogue::DriveKind;
pub use command::Command;
pub use completion::{Completion, Status};
pub use controller::{Controller, Namespace, Rings, Timing};
pub use dma::{AddressMap, Dma};
pub use model::ModelledDrive;
pub use passthrough::{DeviceUse, NamespaceDevice, PassthroughCommand};
pub use pci::{PciAddress, PciDevice, PciDrive};
pub use queue::{Ended, QueuePair};
pub use shared::SharedMemory;
pub use software::{
    Faults, FileStorage, MemoryStorage, SoftwareController, SoftwareOptions, Storage,
    StripedStorage,
};
