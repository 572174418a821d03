//! A graph's blocks: which stay on the device or in locked host memory, and how the others get there.

mod copies;
mod locked;
mod residency;
mod shape;
mod slots;
mod stream;
mod tables;

pub(crate) use locked::LockedBlocks;
pub(super) use residency::Resident;
pub(super) use shape::Shape;
pub(super) use stream::{BlockReader, BlockStream};
pub(super) use tables::{Tables, file_of};
