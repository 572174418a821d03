//! Staging: how values pass between a device and host memory that is not page-locked.

use std::ops::Range;

use bytemuck::Pod;
use tiergraph_core::Result;
use tiergraph_mem::AlignedBuf;

use crate::{Device, DeviceBuf, PinnedPool, Span, Stream};

/// A pinned buffer and a stream of its own, so that a thread fills or empties one while the link is
/// busy with another.
#[derive(Debug)]
pub struct StagingBuffer {
    stream: Stream,
    bytes: AlignedBuf,
}

impl StagingBuffer {
    /// `count` buffers of `bytes` each, rounded up to pages.
    ///
    /// # Errors
    /// The system does not give so much page-locked memory, whatever the driver gives.
    pub fn several(device: &Device, count: usize, bytes: usize) -> Result<Vec<Self>> {
        let buffers = PinnedPool::buffers(device, count, bytes)?.into_iter();
        buffers.map(|bytes| Ok(Self { stream: Stream::new(device)?, bytes })).collect()
    }

    /// Starts copying `values` of `from` here; what earlier work of other streams made of them is
    /// the caller's to wait for.
    ///
    /// # Errors
    /// Whatever the driver gives.
    ///
    /// # Panics
    /// If there are no such values, or more than fit.
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

    /// The first `len` values here, once the copy that was started last is done.
    ///
    /// # Errors
    /// Whatever failed in it.
    ///
    /// # Panics
    /// If fewer fit.
    pub fn values<T: Pod>(&mut self, len: usize) -> Result<&mut [T]> {
        self.stream.synchronize()?;
        Ok(bytemuck::cast_slice_mut(&mut self.bytes[..len * size_of::<T>()]))
    }

    /// Starts copying the first `len` values here to those of `to` from `at` on.
    ///
    /// # Errors
    /// Whatever the driver gives.
    ///
    /// # Panics
    /// If either has fewer.
    pub fn begin_upload<T: Pod>(&mut self, to: Span<T>, at: usize, len: usize) -> Result<()> {
        let bytes = len * size_of::<T>();
        assert!(at + len <= to.len() && bytes <= self.bytes.len(), "{len} values to {at}");
        let to = to.address() + (at * size_of::<T>()) as u64;
        let from = self.bytes.as_ptr().cast();
        // SAFETY: both sides have `bytes`; `values`, or `drop`, waits before they are used or freed.
        self.stream.device().submit("copy to the GPU", |d| unsafe {
            (d.copy_to_device)(to, from, bytes, self.stream.raw())
        })
    }

    /// Waits for the copy that was started last.
    ///
    /// # Errors
    /// Whatever failed in it.
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
