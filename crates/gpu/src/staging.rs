//! Staging: how values pass between a device and host memory that is not pinned.

use std::ops::Range;

use bytemuck::Pod;
use tiergraph_core::Result;
use tiergraph_mem::AlignedBuf;

use crate::{Device, DeviceBuf, DeviceView, PinnedPool, Stream};

/// A pinned buffer and a stream of its own, so that a thread fills or empties one while the link is
/// busy with another.
#[derive(Debug)]
pub struct StagingBuffer {
    stream: Stream,
    bytes: AlignedBuf,
}

impl StagingBuffer {
    /// `count` staging buffers of `bytes` each, rounded up to pages.
    ///
    /// # Errors
    /// The system does not lock so much memory, any error of the driver.
    pub fn several(device: &Device, count: usize, bytes: usize) -> Result<Vec<Self>> {
        let buffers = PinnedPool::buffers(device, count, bytes)?.into_iter();
        buffers.map(|bytes| Ok(Self { stream: Stream::new(device)?, bytes })).collect()
    }

    /// Starts copying `values` of `from` to this buffer. Work of other streams that writes them has
    /// ended before.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If `from` has no such values, or the buffer has no room for them.
    pub fn begin_download<T: Pod>(
        &mut self,
        from: &DeviceBuf<T>,
        values: Range<usize>,
    ) -> Result<()> {
        let bytes = values.len() * size_of::<T>();
        assert!(values.end <= from.len() && bytes <= self.bytes.len(), "{values:?}");
        let from = from.address() + (values.start * size_of::<T>()) as u64;
        let to = self.bytes.as_mut_ptr().cast();
        // SAFETY: both sides have `bytes`; `values`, or `drop`, waits before they are used or freed.
        self.stream.device().submit("copy from the GPU", |d| unsafe {
            (d.copy_to_host)(to, from, bytes, self.stream.raw())
        })
    }

    /// The first `len` values in this buffer, once the copy that was started last has ended.
    ///
    /// # Errors
    /// Any error of that copy.
    ///
    /// # Panics
    /// If the buffer has no room for so many.
    pub fn values<T: Pod>(&mut self, len: usize) -> Result<&mut [T]> {
        self.stream.synchronize()?;
        Ok(bytemuck::cast_slice_mut(&mut self.bytes[..len * size_of::<T>()]))
    }

    /// Starts copying the first `len` values in this buffer to `to`, from its value `at` on.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If the buffer or `to` has no room for so many.
    pub fn begin_upload<T: Pod>(&mut self, to: DeviceView<T>, at: usize, len: usize) -> Result<()> {
        let bytes = len * size_of::<T>();
        assert!(at + len <= to.len() && bytes <= self.bytes.len(), "{len} values to {at}");
        let to = to.address() + (at * size_of::<T>()) as u64;
        let from = self.bytes.as_ptr().cast();
        // SAFETY: both sides have `bytes`; `values`, or `drop`, waits before they are used or freed.
        self.stream.device().submit("copy to the GPU", |d| unsafe {
            (d.copy_to_device)(to, from, bytes, self.stream.raw())
        })
    }

    /// Waits for the end of the copy that was started last.
    ///
    /// # Errors
    /// Any error of that copy.
    pub fn synchronize(&self) -> Result<()> {
        self.stream.synchronize()
    }
}

impl Drop for StagingBuffer {
    fn drop(&mut self) {
        // After an error the context does nothing more, so the buffer may go.
        let _ = self.stream.synchronize();
    }
}
