//! Streams, and the copies between host and device.

use std::ffi::c_int;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::{Pod, Zeroable};
use tiergraph_core::Result;
use tiergraph_mem::{AlignedBuf, zeroed_vec};

use crate::driver::{Address, Handle, NON_BLOCKING};
use crate::green::{GreenContext, Refused};
use crate::{Copying, Device, DeviceBuf, DeviceView, Event, PinnedPool, RegisteredMemory};

/// The most bytes that come to the host through pinned memory of the stream: the driver takes longer to copy
/// to other memory.
const SMALL: usize = 4096;

/// A queue of work on a device: kernels and copies run one after the other, as they were submitted.
#[derive(Debug)]
pub struct Stream {
    device: Device,
    handle: Handle,
    /// The green context whose multiprocessors its kernels are confined to, if they are.
    green: Option<Arc<GreenContext>>,
    /// Pinned memory through which few values come to the host, from the first on.
    small: Mutex<Vec<AlignedBuf>>,
}

// SAFETY: the driver takes a stream from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above; work of two threads is then in either order.
unsafe impl Sync for Stream {}

impl Stream {
    /// A stream whose work waits for no other stream's.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn new(device: &Device) -> Result<Self> {
        Self::with_priority(device, 0)
    }

    /// A stream of the greatest priority: its kernels go before those of other streams, as a loader's do
    /// beside training.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn urgent(device: &Device) -> Result<Self> {
        Self::with_priority(device, greatest_priority(device)?)
    }

    /// A stream like one of [`urgent`](Self::urgent), whose kernels run on at most `most`
    /// multiprocessors and leave the others alone; the inner `Err` says why that cannot be had here.
    ///
    /// # Errors
    /// Fewer than the GPU sets apart, any error of the driver.
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
        Ok(Self::of(device, handle, Some(Arc::new(green))))
    }

    /// An urgent stream whose kernels run on the same multiprocessors as this one's.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn another(&self) -> Result<Self> {
        let Some(green) = &self.green else { return Self::urgent(&self.device) };
        let handle = green.stream(greatest_priority(&self.device)?).map_err(Refused::into_error)?;
        Ok(Self::of(&self.device, handle, Some(Arc::clone(green))))
    }

    fn with_priority(device: &Device, priority: c_int) -> Result<Self> {
        let mut handle = ptr::null_mut();
        // SAFETY: writes one handle, destroyed in `drop`.
        device.call("make a stream", |d| unsafe {
            (d.stream_create)(&raw mut handle, NON_BLOCKING, priority)
        })?;
        Ok(Self::of(device, handle, None))
    }

    fn of(device: &Device, handle: Handle, green: Option<Arc<GreenContext>>) -> Self {
        Self { device: device.clone(), handle, green, small: Mutex::default() }
    }

    /// The device that the stream's work runs on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// How many multiprocessors the stream's kernels may run on.
    pub fn multiprocessors(&self) -> u32 {
        let all = || self.device.multiprocessors();
        self.green.as_ref().map_or_else(all, |green| green.multiprocessors())
    }

    /// The driver's handle of the stream, as PyTorch's `ExternalStream` takes it.
    pub fn handle(&self) -> u64 {
        self.handle.addr() as u64
    }

    pub(crate) fn raw(&self) -> Handle {
        self.handle
    }

    /// Waits until all work that was submitted so far has ended.
    ///
    /// # Errors
    /// Any error of that work.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: a live stream.
        self.device.call("finish a stream", |d| unsafe { (d.stream_sync)(self.handle) })
    }

    /// Has work that is submitted from now on wait until `event` has happened, as it was recorded last.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        // SAFETY: a live stream and a live event; the driver keeps what it needs of the event.
        self.device
            .call("order two streams", |d| unsafe { (d.stream_wait)(self.handle, event.raw(), 0) })
    }

    /// Copies `values` to the start of `to`, and waits for the copy's end.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If `to` is shorter.
    pub fn upload<T: Pod>(&self, to: &mut DeviceBuf<T>, values: &[T]) -> Result<()> {
        self.upload_at(to, 0, values)
    }

    /// Copies `values` to `to`, from its value `at` on, and waits for the copy's end.
    ///
    /// # Errors
    /// Any error of the driver.
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

    /// A new buffer in device memory that holds `values`.
    ///
    /// # Errors
    /// Not enough device memory, any error of the driver.
    pub fn uploaded<T: Pod>(&self, values: &[T]) -> Result<DeviceBuf<T>> {
        let mut to = DeviceBuf::new(&self.device, values.len())?;
        self.upload(&mut to, values)?;
        Ok(to)
    }

    /// The first `len` values of `from`, once all work that was submitted so far has ended.
    ///
    /// # Errors
    /// Any error of that work, or of the copy.
    ///
    /// # Panics
    /// If `from` is shorter.
    pub fn download<T: Pod + Zeroable>(&self, from: &DeviceBuf<T>, len: usize) -> Result<Vec<T>> {
        assert!(len <= from.len(), "{len} values out of {}", from.len());
        self.download_view(DeviceView::at(from.ptr(), len))
    }

    /// The values of a view, as [`download`](Self::download) gives them.
    ///
    /// # Errors
    /// Any error of the work before, or of the copy.
    pub fn download_view<T: Pod + Zeroable>(&self, from: DeviceView<T>) -> Result<Vec<T>> {
        let mut values: Vec<T> = zeroed_vec(from.len());
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut values);
        let mut small = self.small.lock().unwrap_or_else(PoisonError::into_inner);
        if small.is_empty() && (1..=SMALL).contains(&bytes.len()) {
            // Where the system locks no more memory, a slower copy does.
            *small = PinnedPool::buffers(&self.device, 1, SMALL).unwrap_or_default();
        }
        match small.first_mut().and_then(|small| small.get_mut(..bytes.len())) {
            Some(pinned) if !bytes.is_empty() => {
                // SAFETY: what is waited for next ends the copy; others wait for the lock until then.
                unsafe { self.start_download(from.address(), pinned)? };
                self.synchronize()?;
                bytes.copy_from_slice(pinned);
            }
            _ => {
                drop(small);
                if !bytes.is_empty() {
                    // SAFETY: what is waited for next ends the copy.
                    unsafe { self.start_download(from.address(), bytes)? };
                }
                self.synchronize()?;
            }
        }
        Ok(values)
    }

    /// Starts a copy of as many bytes from `address` as `to` has.
    ///
    /// # Safety
    /// `to` stays, and nobody else accesses it, until the stream has done the copy.
    unsafe fn start_download(&self, address: Address, to: &mut [u8]) -> Result<()> {
        // SAFETY: as promised; `to` has these bytes.
        self.device.call("copy from the GPU", |d| unsafe {
            (d.copy_to_host)(to.as_mut_ptr().cast(), address, to.len(), self.handle)
        })
    }

    /// Starts copying the first `len` bytes of each buffer of `from` to `to`, one after the other from
    /// its byte `at` on; `event` happens when they are copied.
    ///
    /// Buffers that lie side by side in memory go in one copy: a link gives more to larger ones.
    ///
    /// # Errors
    /// Any error of the driver; the buffers are lost then.
    ///
    /// # Panics
    /// If a buffer or `to` is shorter.
    pub fn start_upload<B: AsRef<[u8]>>(
        &self,
        from: Vec<B>,
        len: usize,
        to: &DeviceBuf<u8>,
        at: usize,
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

    /// Copies value number `from` of `values` over value number `to`, in order with the stream.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If `values` has not so many values.
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

    /// Copies the first `bytes` bytes of `from`, behind its byte `at`, to the start of `to`, in order with the
    /// stream, by a copy engine. The driver waits for the copy before it frees either memory.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If either memory has not so many bytes.
    pub fn copy_registered(
        &self,
        from: &RegisteredMemory,
        at: usize,
        bytes: usize,
        to: &DeviceBuf<u8>,
    ) -> Result<()> {
        assert!(at + bytes <= from.bytes() && bytes <= to.len(), "{bytes} bytes from {at} on");
        if bytes == 0 {
            return Ok(());
        }
        let start = from.host().wrapping_add(at);
        // SAFETY: both sides have `bytes`, and the driver keeps them as said.
        self.device.submit("copy rows to the GPU", |d| unsafe {
            (d.copy_to_device)(to.address(), start.cast(), bytes, self.handle)
        })
    }

    /// Sets every byte of `to` to `byte`, in order with the stream.
    ///
    /// # Errors
    /// Any error of the driver.
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
