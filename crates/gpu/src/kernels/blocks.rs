//! Blocks in device memory, as kernels take them.

use bytemuck::Zeroable;

use crate::shared::shared;
use crate::{DeviceBuf, DevicePtr};

/// The most blocks of a batch: those that one launch computes on while others stream in.
pub const MAX_BATCH: usize = 8;

shared! {
    /// A kernel's view of blocks in device memory: each at its own address, or a batch side by side.
    #[derive(Debug)]
    pub struct Blocks as "Blocks" {
        addresses: DevicePtr<DevicePtr<u8>>,
        base: DevicePtr<u8>,
        damaged: DevicePtr<u32>,
        size: u32,
        count: u32,
        numbers: [u32; MAX_BATCH],
    }
}

impl Blocks {
    /// A view of the first blocks of a graph, block i at the address `addresses[i]`.
    pub fn at(addresses: &DeviceBuf<DevicePtr<u8>>) -> Self {
        Self { addresses: addresses.ptr(), count: addresses.len() as u32, ..Self::zeroed() }
    }

    /// A view of a batch: the blocks `numbers` of a graph, side by side from the start of `buffer`,
    /// `size` bytes each.
    ///
    /// # Panics
    /// If there are more blocks than [`MAX_BATCH`], or than `buffer` holds.
    pub fn batch(buffer: &DeviceBuf<u8>, size: usize, numbers: &[u32]) -> Self {
        assert!(numbers.len() <= MAX_BATCH && numbers.len() * size <= buffer.len());
        let mut all = [u32::MAX; MAX_BATCH];
        all[..numbers.len()].copy_from_slice(numbers);
        Self {
            base: buffer.ptr(),
            size: size as u32,
            count: numbers.len() as u32,
            numbers: all,
            ..Self::zeroed()
        }
    }

    /// The same batch, of which kernels leave out block i where `damaged[i]` is not 0.
    #[must_use]
    pub fn without(self, damaged: &DeviceBuf<u32>) -> Self {
        Self { damaged: damaged.ptr(), ..self }
    }

    /// Whether the blocks lie at addresses of their own.
    pub(super) fn are_resident(&self) -> bool {
        !self.addresses.is_null()
    }

    /// The number of blocks in the view.
    pub fn count(&self) -> u32 {
        self.count
    }
}
