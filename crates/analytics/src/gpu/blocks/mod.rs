//! A graph's blocks: which stay on the device or in pinned host memory, and how the others get there.

mod bringing;
mod copies;
mod direct;
mod host;
mod reader;
mod residency;
mod shape;
mod slots;
mod tables;

pub(super) use bringing::Bringing;
pub(super) use host::HostBlocks;
pub(super) use reader::Reader;
pub(super) use residency::Resident;
pub(super) use shape::Shape;
pub(super) use tables::{Tables, file_of};
