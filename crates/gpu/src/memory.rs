//! Device memory, by plain allocations.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use tiergraph_core::{ByteSize, Error, ErrorKind, Result};

use crate::cufile::Registration;
use crate::driver::Address;
use crate::failure::OUT_OF_MEMORY;
use crate::{Device, DeviceMemory};

/// A buffer in device memory. Dropping it waits for the kernels that use it and frees the memory.
pub struct DeviceBuf<T> {
    device: Device,
    start: Address,
    len: usize,
    /// Ends before the memory does.
    pub(crate) registration: Option<Registration>,
    values: PhantomData<T>,
}

impl<T: Pod> DeviceBuf<T> {
    /// A buffer of `len` values, whose bits are undefined until they are written.
    ///
    /// # Errors
    /// Not enough device memory.
    pub fn new(device: &Device, len: usize) -> Result<Self> {
        let bytes = len * size_of::<T>();
        let mut start = 0;
        if bytes > 0 {
            // SAFETY: writes one address.
            match device.code(|d| unsafe { (d.memory_alloc)(&raw mut start, bytes) }) {
                OUT_OF_MEMORY => return Err(no_room(device, bytes as u64)),
                code => device.explain(code, "allocate GPU memory")?,
            }
        }
        let (device, registration) = (device.clone(), None);
        Ok(Self { device, start, len, registration, values: PhantomData })
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the buffer has no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of all values.
    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// The address of the first value, as the driver takes it.
    pub(crate) fn address(&self) -> Address {
        self.start
    }

    /// The pointer to the first value, as kernels take it.
    pub fn ptr(&self) -> DevicePtr<T> {
        DevicePtr::at(self.start)
    }

    /// The device that the memory belongs to.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

/// A pointer as kernels have it: the address of a `T`, or of the first of several side by side, in
/// memory that they reach.
///
/// It does not own the memory: a [`DeviceBuf`] that drops first waits for the kernels that use it.
#[repr(transparent)]
pub struct DevicePtr<T> {
    address: Address,
    values: PhantomData<fn() -> T>,
}

impl<T> DevicePtr<T> {
    /// The null pointer.
    pub const NULL: Self = Self::at(0);

    /// The pointer to what is at `address` in device memory, as PyTorch's `data_ptr` says it.
    pub const fn at(address: u64) -> Self {
        Self { address, values: PhantomData }
    }

    /// The pointer to the value that lies `values` values behind this one.
    #[must_use]
    pub fn offset(self, values: usize) -> Self {
        self.field(values * size_of::<T>())
    }

    /// The pointer to the `U` that begins `bytes` bytes from here.
    #[must_use]
    pub fn field<U>(self, bytes: usize) -> DevicePtr<U> {
        DevicePtr::at(self.address + bytes as u64)
    }

    /// The address, as the driver takes it.
    pub(crate) fn address(self) -> Address {
        self.address
    }

    /// Whether it is the null pointer.
    pub(crate) fn is_null(self) -> bool {
        self.address == 0
    }
}

impl<T> Clone for DevicePtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DevicePtr<T> {}

impl<T> fmt::Debug for DevicePtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DevicePtr({:#x})", self.address)
    }
}

// SAFETY: zero is the null pointer.
unsafe impl<T> Zeroable for DevicePtr<T> {}
// SAFETY: an address and nothing else, of which every bit pattern is one; only kernels follow it.
unsafe impl<T: 'static> Pod for DevicePtr<T> {}

/// The driver's answer says neither what was asked for nor what there is.
fn no_room(device: &Device, bytes: u64) -> Error {
    let error = Error::new(ErrorKind::Device, "allocate GPU memory")
        .expected(format!("{} in one piece", ByteSize(bytes)))
        .hint("end what else uses the GPU, or run with a smaller `--device-memory`, or `--device cpu`");
    match device.memory() {
        Ok(DeviceMemory { free, total }) => {
            error.got(format!("{} free of {}", ByteSize(free), ByteSize(total)))
        }
        Err(_) => error,
    }
}

/// A view of values in device memory that somebody else owns: a [`DeviceBuf`], or PyTorch's allocator.
#[derive(Debug, Clone, Copy)]
pub struct DeviceView<T> {
    start: DevicePtr<T>,
    len: usize,
}

impl<T: Pod> DeviceView<T> {
    /// The `len` values from `start` on. The caller keeps the memory until all work that uses the view
    /// has ended; a wrong pointer is an error of the device at the next call, out of reach of host
    /// memory.
    pub fn at(start: DevicePtr<T>, len: usize) -> Self {
        Self { start, len }
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the view has no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of the first value, as the driver takes it.
    pub(crate) fn address(&self) -> Address {
        self.start.address
    }

    /// The pointer to the first value, as kernels take it.
    pub fn ptr(&self) -> DevicePtr<T> {
        self.start
    }
}

impl<T: Pod> From<&mut DeviceBuf<T>> for DeviceView<T> {
    fn from(buffer: &mut DeviceBuf<T>) -> Self {
        Self::at(buffer.ptr(), buffer.len)
    }
}

/// A part of a buffer in device memory that one read fills, and that nothing else uses meanwhile.
#[derive(Debug)]
pub struct DeviceSpan {
    buffer: Arc<DeviceBuf<u8>>,
    range: Range<usize>,
}

impl DeviceSpan {
    /// The part of `buffer` that has the bytes `range`.
    ///
    /// # Panics
    /// If the buffer is shorter.
    pub fn new(buffer: &Arc<DeviceBuf<u8>>, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= buffer.len(), "{range:?} of {buffer:?}");
        Self { buffer: Arc::clone(buffer), range }
    }

    /// The number of bytes of the span.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether the span has no bytes.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The whole buffer.
    pub(crate) fn buffer(&self) -> &DeviceBuf<u8> {
        &self.buffer
    }

    /// The byte of the buffer where the span starts.
    pub(crate) fn start(&self) -> usize {
        self.range.start
    }
}

impl<T> Drop for DeviceBuf<T> {
    fn drop(&mut self) {
        self.registration = None;
        if self.start != 0 {
            // SAFETY: allocated in `new`; `cuMemFree` waits for the kernels that use it.
            self.device.release(|d| unsafe { (d.memory_free)(self.start) });
        }
    }
}

impl<T> fmt::Debug for DeviceBuf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceBuf({} × {})", self.len, size_of::<T>())
    }
}
