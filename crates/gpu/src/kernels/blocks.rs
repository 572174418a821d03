//! Where blocks lie in device memory.

use bytemuck::Zeroable;

use crate::shared::shared;
use crate::{DeviceBuf, DevicePtr};

/// The most blocks that are computed on by one launch while they stream in.
pub const BATCH: usize = 8;

shared! {
    /// Blocks in device memory, as kernels take them: `types.cuh`.
    #[derive(Debug)]
    pub struct Blocks as "Blocks" {
        addresses: DevicePtr<u64>,
        base: DevicePtr<u8>,
        damaged: DevicePtr<u32>,
        size: u32,
        count: u32,
        numbers: [u32; BATCH],
    }
}

impl Blocks {
    /// Block i at the address `addresses[i]`.
    pub fn at(addresses: &DeviceBuf<u64>) -> Self {
        Self { addresses: addresses.ptr(), count: addresses.len() as u32, ..Self::zeroed() }
    }

    /// The blocks `numbers`, one behind the other from the start of `buffer`, `size` bytes each.
    ///
    /// # Panics
    /// If they are more than [`BATCH`], or than `buffer` holds.
    pub fn batch(buffer: &DeviceBuf<u8>, size: usize, numbers: &[u32]) -> Self {
        assert!(numbers.len() <= BATCH && numbers.len() * size <= buffer.len());
        let mut all = [u32::MAX; BATCH];
        all[..numbers.len()].copy_from_slice(numbers);
        Self {
            base: buffer.ptr(),
            size: size as u32,
            count: numbers.len() as u32,
            numbers: all,
            ..Self::zeroed()
        }
    }

    /// The same blocks, of which those are left out that `damaged` marks.
    #[must_use]
    pub fn unless(self, damaged: &DeviceBuf<u32>) -> Self {
        Self { damaged: damaged.ptr(), ..self }
    }

    /// Whether the blocks lie at addresses of their own.
    pub(super) fn are_resident(&self) -> bool {
        !self.addresses.is_null()
    }

    /// The number of blocks.
    pub fn count(&self) -> u32 {
        self.count
    }
}
