//! Streams, and the copies between host and device.

use std::ffi::c_int;
use std::ptr;

use bytemuck::{Pod, Zeroable};
use tiergraph_core::Result;
use tiergraph_mem::zeroed_vec;

use crate::driver::{Handle, NON_BLOCKING};
use crate::green::{GreenContext, Refused};
use crate::{Copying, Device, DeviceBuf, Event};

/// An order of work on a device: what one stream is given runs one behind the other.
#[derive(Debug)]
pub struct Stream {
    device: Device,
    handle: Handle,
    /// Where it has multiprocessors of its own.
    green: Option<GreenContext>,
}

// SAFETY: the driver takes a stream from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above; work of two threads is then in either order.
unsafe impl Sync for Stream {}

impl Stream {
    /// A stream that waits for no other.
    ///
    /// # Errors
    /// Whatever the driver gives.
    pub fn new(device: &Device) -> Result<Self> {
        Self::with_priority(device, 0)
    }

    /// A stream whose work goes before that of others: what a loader's kernels want beside training.
    ///
    /// # Errors
    /// Whatever the driver gives.
    pub fn urgent(device: &Device) -> Result<Self> {
        Self::with_priority(device, greatest_priority(device)?)
    }

    /// As [`urgent`](Self::urgent), a stream whose kernels run on at most `most` multiprocessors and
    /// leave the others alone; where the driver or the GPU cannot do that, why.
    ///
    /// # Errors
    /// Fewer than the GPU sets apart, whatever the driver gives.
    pub fn urgent_on(device: &Device, most: u32) -> Result<Result<Self, String>> {
        match Self::in_green_context(device, most) {
            Ok(stream) => Ok(Ok(stream)),
            Err(Refused::Unsupported(why)) => Ok(Err(why)),
            Err(Refused::Failed(error)) => Err(error),
        }
    }

    fn in_green_context(device: &Device, most: u32) -> Result<Self, Refused> {
        let green = GreenContext::new(device, most)?;
        let handle = green.stream(greatest_priority(device)?)?;
        Ok(Self { device: device.clone(), handle, green: Some(green) })
    }

    fn with_priority(device: &Device, priority: c_int) -> Result<Self> {
        let mut handle = ptr::null_mut();
        // SAFETY: writes one handle, destroyed in `drop`.
        device.call("make a stream", |d| unsafe {
            (d.stream_create)(&raw mut handle, NON_BLOCKING, priority)
        })?;
        Ok(Self { device: device.clone(), handle, green: None })
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// How many multiprocessors its kernels may run on.
    pub fn multiprocessors(&self) -> u32 {
        let all = || self.device.multiprocessors();
        self.green.as_ref().map_or_else(all, GreenContext::multiprocessors)
    }

    /// The driver's handle, as PyTorch's `ExternalStream` takes it.
    pub fn handle(&self) -> u64 {
        self.handle.addr() as u64
    }

    pub(crate) fn raw(&self) -> Handle {
        self.handle
    }

    /// Waits until all that was given so far is done.
    ///
    /// # Errors
    /// Whatever failed in it.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: a live stream.
        self.device.call("finish a stream", |d| unsafe { (d.stream_sync)(self.handle) })
    }

    /// Copies `values` to the start of `to`, and waits.
    ///
    /// # Errors
    /// Whatever the driver gives.
    ///
    /// # Panics
    /// If `to` is shorter.
    pub fn upload<T: Pod>(&self, to: &mut DeviceBuf<T>, values: &[T]) -> Result<()> {
        self.upload_at(to, 0, values)
    }

    /// Copies `values` to those of `to` from `at` on, and waits.
    ///
    /// # Errors
    /// Whatever the driver gives.
    ///
    /// # Panics
    /// If `to` is shorter.
    pub fn upload_at<T: Pod>(&self, to: &mut DeviceBuf<T>, at: usize, values: &[T]) -> Result<()> {
        assert!(at + values.len() <= to.len(), "{} values to {at} of {}", values.len(), to.len());
        let bytes = size_of_val(values);
        if bytes > 0 {
            // SAFETY: both sides have `bytes`, and the copy ends before this returns.
            self.device.submit("copy to the GPU", |d| unsafe {
                let to = to.address() + (at * size_of::<T>()) as u64;
                (d.copy_to_device)(to, values.as_ptr().cast(), bytes, self.handle)
            })?;
        }
        self.synchronize()
    }

    /// A device copy of `values`.
    ///
    /// # Errors
    /// Not enough device memory, whatever the driver gives.
    pub fn uploaded<T: Pod>(&self, values: &[T]) -> Result<DeviceBuf<T>> {
        let mut to = DeviceBuf::new(&self.device, values.len())?;
        self.upload(&mut to, values)?;
        Ok(to)
    }

    /// The first `len` values of `from`, after all that was given so far.
    ///
    /// # Errors
    /// Whatever failed in it.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn download<T: Pod + Zeroable>(&self, from: &DeviceBuf<T>, len: usize) -> Result<Vec<T>> {
        assert!(len <= from.len(), "{len} values out of {}", from.len());
        let mut values: Vec<T> = zeroed_vec(len);
        if len > 0 {
            let bytes = size_of_val(&values[..]);
            // SAFETY: both sides have `bytes`, and the copy ends before this returns.
            self.device.call("copy from the GPU", |d| unsafe {
                (d.copy_to_host)(values.as_mut_ptr().cast(), from.address(), bytes, self.handle)
            })?;
        }
        self.synchronize()?;
        Ok(values)
    }

    /// Starts copying the first `len` bytes of each of `from` to `to`, one after the other from byte
    /// `at` on; `event` is to tell when that is done.
    ///
    /// Buffers that lie side by side in memory go in one copy: a link gives more to larger ones.
    ///
    /// # Errors
    /// Whatever the driver gives; the buffers are lost then.
    ///
    /// # Panics
    /// If a buffer or `to` is shorter.
    pub fn start_upload<B: AsRef<[u8]>>(
        &self,
        to: &DeviceBuf<u8>,
        at: usize,
        (from, len): (Vec<B>, usize),
        event: Event,
    ) -> Result<Copying<Vec<B>>> {
        let is_there = from.iter().all(|buffer| len <= buffer.as_ref().len());
        let end = at + from.len() * len;
        assert!(is_there && end <= to.len(), "{len} bytes each to {at}..{end} of {}", to.len());
        let adjoin = |a: &[u8], b: &[u8]| a.len() == len && a.as_ptr_range().end == b.as_ptr();
        let mut address = to.address() + at as u64;
        for piece in from.chunk_by(|a, b| adjoin(a.as_ref(), b.as_ref())) {
            let (start, bytes) = (piece[0].as_ref().as_ptr(), piece.len() * len);
            // SAFETY: both sides have `bytes`; `Copying` keeps the buffers until the copy ended.
            let given = self.device.submit("copy blocks to the GPU", |d| unsafe {
                (d.copy_to_device)(address, start.cast(), bytes, self.handle)
            });
            if let Err(e) = given {
                // Others of them may be on their way.
                std::mem::forget(from);
                return Err(e);
            }
            address += bytes as u64;
        }
        Copying::until(event, self, from)
    }

    /// Copies value `from` of `values` to place `to`, in order with the stream.
    ///
    /// # Errors
    /// Whatever the driver gives.
    ///
    /// # Panics
    /// If there is no such value or place.
    pub fn copy_value<T: Pod>(
        &self,
        values: &mut DeviceBuf<T>,
        from: usize,
        to: usize,
    ) -> Result<()> {
        assert!(from.max(to) < values.len(), "value {from} to {to} of {}", values.len());
        let at = |i: usize| values.address() + (i * size_of::<T>()) as u64;
        // SAFETY: both are inside the buffer; every bit pattern is a `T`.
        self.device.submit("copy inside the GPU", |d| unsafe {
            (d.copy_inside)(at(to), at(from), size_of::<T>(), self.handle)
        })
    }

    /// Sets every byte of `to` to `byte`, in order with the stream.
    ///
    /// # Errors
    /// Whatever the driver gives.
    pub fn fill_bytes<T: Pod>(&self, to: &mut DeviceBuf<T>, byte: u8) -> Result<()> {
        if to.is_empty() {
            return Ok(());
        }
        // SAFETY: inside the buffer; every bit pattern is a `T`.
        self.device.submit("fill GPU memory", |d| unsafe {
            (d.set_bytes)(to.address(), byte, to.bytes(), self.handle)
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.green.is_some() {
            // The driver says nothing of work that a green context's end finds.
            let _ = self.synchronize();
        }
        // SAFETY: made here, and its green context is alive; the driver lets its work finish.
        self.device.release(|d| unsafe { (d.stream_destroy)(self.handle) });
    }
}

fn greatest_priority(device: &Device) -> Result<c_int> {
    let (mut least, mut greatest) = (0, 0);
    // SAFETY: writes two integers.
    device.call("ask for stream priorities", |d| unsafe {
        (d.priority_range)(&raw mut least, &raw mut greatest)
    })?;
    Ok(greatest)
}
