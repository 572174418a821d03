//! CUDA, found at run time: a machine without it loses nothing, and nothing links against it.
//!
//! [`Device`] is a GPU's primary context; [`DeviceBuf`] its memory, [`PinnedPool`] host memory that
//! it copies from at full speed, [`Stream`] a queue of work, [`DirectFile`] a file that is read
//! straight into device memory. Kernels are CUDA C++ in `kernels/`, compiled by NVRTC for the device
//! that is there and cached on disk ([`cubins`]); each family has its launcher in the Rust file of the
//! same stem, with the shapes checked before a launch.
#![allow(unsafe_code)]

pub mod cubins;
mod cufile;
mod device;
mod driver;
mod event;
mod failure;
mod green;
mod kernel;
pub mod kernels;
mod library;
mod memory;
mod nvrtc;
mod pinned;
mod registered;
mod shared;
pub mod speeds;
mod staging;
mod start;
mod stream;

pub use cufile::{CuFile, DirectFile};
pub use device::{Architecture, Device, DeviceMemory, Submissions};
pub use event::{Copying, Event};
pub use kernel::{Grid, Kernel, Module};
pub use library::search_libraries_in;
pub use memory::{DeviceBuf, DevicePtr, DeviceSpan, DeviceView};
pub use nvrtc::Compiler;
pub use pinned::{MappedMemory, PinnedPool};
pub use registered::RegisteredMemory;
pub use shared::Shared;
pub use staging::StagingBuffer;
pub use stream::Stream;
