//! Page-locked host memory: what the GPU copies from, and to, without the driver's own staging.
//!
//! The driver allocates and locks memory in pages of 4 KiB and on one thread. Much memory is therefore
//! mapped here, on huge pages, and registered with the driver by several threads, each a part: the
//! pages come to be, zeroed, as they are locked.

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::thread;

use tiergraph_core::{ByteSize, Error, ErrorKind, Result};
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

use crate::driver::Driver;
use crate::failure::OUT_OF_MEMORY;
use crate::{Device, DevicePtr};

/// Usable by every context, and readable by kernels at an address of its own.
pub(crate) const PORTABLE_AND_MAPPED: u32 = 3;

/// The allocator of pinned (page-locked) host memory: of buffers that read engines fill and the GPU
/// copies from.
#[derive(Debug)]
pub struct PinnedPool;

/// Bytes from which on memory is registered, and not allocated by the driver.
const REGISTERED_BYTES: usize = 16 << 20;
/// Threads that register memory, at most: more wait for each other in the kernel.
const THREADS: usize = 8;

impl PinnedPool {
    /// `count` zeroed, page-aligned buffers of `len` bytes, rounded up to pages. They share memory,
    /// which is unlocked when the last of them drops, or in parts as each part's last one does.
    ///
    /// # Errors
    /// The system does not lock so much memory.
    pub fn buffers(device: &Device, count: usize, len: usize) -> Result<Vec<AlignedBuf>> {
        let len = len.next_multiple_of(PAGE_BYTES);
        let total = len * count;
        if total == 0 {
            return Ok((0..count).map(|_| AlignedBuf::default()).collect());
        }
        if total >= REGISTERED_BYTES {
            let most = thread::available_parallelism().map_or(1, usize::from).min(THREADS);
            let parts = (total / REGISTERED_BYTES).clamp(1, most).min(count);
            return Self::registered(device, count, len, parts);
        }
        // One page more, because the driver aligns to less than a page where it pleases; a part of it
        // is left at the end, so that buffers of two allocations never adjoin.
        let pinned = Arc::new(Pinned::new(device, len * count + PAGE_BYTES)?);
        let skip = pinned.start.as_ptr().align_offset(PAGE_BYTES);
        let part = |i: usize| {
            // SAFETY: inside the allocation: at most a page is skipped.
            let start = unsafe { pinned.start.add(skip + i * len) };
            // SAFETY: each part is handed out once, is initialised, and lives as long as `pinned`.
            unsafe { AlignedBuf::from_owner(start, len, Arc::clone(&pinned) as _) }
        };
        Ok((0..count).map(part).collect())
    }

    /// `count` buffers of `len` bytes in `parts` registered parts, each of which a thread makes.
    fn registered(
        device: &Device,
        count: usize,
        len: usize,
        parts: usize,
    ) -> Result<Vec<AlignedBuf>> {
        let counts = (0..parts).map(|part| count * (part + 1) / parts - count * part / parts);
        let made: Vec<Result<Vec<AlignedBuf>>> = thread::scope(|scope| {
            let make = |count| scope.spawn(move || Registered::buffers(device, count, len));
            let threads: Vec<_> = counts.map(make).collect();
            let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
            joined
                .map(|made| made.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let mut buffers = Vec::with_capacity(count);
        for made in made {
            buffers.extend(made?);
        }
        Ok(buffers)
    }
}

/// Memory on huge pages that is locked for as long as this lives.
struct Registered {
    device: Device,
    memory: AlignedBuf,
}

impl Registered {
    /// `count` buffers of `len` bytes side by side; the memory is unlocked when the last one drops.
    fn buffers(device: &Device, count: usize, len: usize) -> Result<Vec<AlignedBuf>> {
        // One page more, which is not locked, so that buffers of two parts never adjoin: a copy of
        // both would be refused.
        let mut memory = AlignedBuf::zeroed(count * len + PAGE_BYTES)?;
        let (start, bytes) = (memory.as_mut_ptr(), count * len);
        let op = lock_of(bytes);
        let register = |d: &Driver| {
            // SAFETY: `bytes` bytes from `start` are ours, and stay where they are until unregistered.
            unsafe { (d.host_register)(start.cast(), bytes, PORTABLE_AND_MAPPED) }
        };
        match device.code(register) {
            OUT_OF_MEMORY => return Err(no_room(op)),
            code => device.explain(code, &op)?,
        }
        let registered = Arc::new(Self { device: device.clone(), memory });
        let start = NonNull::new(start).unwrap_or(NonNull::dangling());
        let part = |i: usize| {
            // SAFETY: inside the memory.
            let start = unsafe { start.add(i * len) };
            // SAFETY: each part is handed out once, is zeroed, and lives as long as `registered`, which
            // reads and writes none of it.
            unsafe { AlignedBuf::from_owner(start, len, Arc::clone(&registered) as _) }
        };
        Ok((0..count).map(part).collect())
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let start = self.memory.as_mut_ptr().cast();
        // SAFETY: registered in `buffers`, and no buffer in it is left.
        self.device.release(|d| unsafe { (d.host_unregister)(start) });
    }
}

pub(crate) fn lock_of(bytes: usize) -> String {
    format!("lock {} of host memory", ByteSize(bytes as u64))
}

pub(crate) fn no_room(op: String) -> Error {
    Error::new(ErrorKind::Device, op)
        .got("out of memory, or of what may be locked (`ulimit -l`)")
        .hint("run with fewer `--threads`, or `--device cpu`")
}

struct Pinned {
    device: Device,
    start: NonNull<u8>,
}

// SAFETY: an address range; its bytes are reached only through the buffers in it.
unsafe impl Send for Pinned {}
// SAFETY: as above.
unsafe impl Sync for Pinned {}

impl Pinned {
    fn new(device: &Device, bytes: usize) -> Result<Self> {
        let mut start: *mut c_void = ptr::null_mut();
        let op = lock_of(bytes);
        let flags = PORTABLE_AND_MAPPED;
        // SAFETY: writes one address.
        match device.code(|d| unsafe { (d.host_alloc)(&raw mut start, bytes, flags) }) {
            OUT_OF_MEMORY => return Err(no_room(op)),
            code => device.explain(code, &op)?,
        }
        // SAFETY: `bytes` bytes from `start` are ours; zeroing makes them initialised.
        unsafe { start.cast::<u8>().write_bytes(0, bytes) };
        let start = NonNull::new(start.cast()).unwrap_or(NonNull::dangling());
        Ok(Self { device: device.clone(), start })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, and no buffer in it is left.
        self.device.release(|d| unsafe { (d.host_free)(self.start.as_ptr().cast()) });
    }
}

/// The pointer by which kernels reach a buffer of pinned memory, as values of any type.
pub(crate) fn mapped_ptr<T>(device: &Device, buffer: &AlignedBuf) -> Result<DevicePtr<T>> {
    device_address(device, buffer.as_ptr().cast_mut().cast())
}

/// The pointer by which kernels reach the pinned memory at `start`, as values of any type.
pub(crate) fn device_address<T>(device: &Device, start: *mut c_void) -> Result<DevicePtr<T>> {
    let mut address = 0;
    // SAFETY: writes one address; the driver refuses memory that is not pinned.
    device.call("map pinned memory", |d| unsafe {
        (d.host_device_pointer)(&raw mut address, start, 0)
    })?;
    Ok(DevicePtr::at(address))
}

/// Pinned host memory that kernels read in place, over the link.
pub struct MappedMemory {
    buffer: AlignedBuf,
    start: DevicePtr<u8>,
}

impl MappedMemory {
    /// `len` zero bytes, rounded up to pages, to be filled through [`bytes_mut`](Self::bytes_mut).
    ///
    /// # Errors
    /// The system does not lock so much memory.
    pub fn zeroed(device: &Device, len: usize) -> Result<Self> {
        let buffer = PinnedPool::buffers(device, 1, len)?.pop().unwrap_or_default();
        let start = if buffer.is_empty() { DevicePtr::NULL } else { mapped_ptr(device, &buffer)? };
        Ok(Self { buffer, start })
    }

    /// The bytes of the memory, to be filled before a kernel reads them.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> usize {
        self.buffer.len()
    }

    /// The pointer by which kernels reach the memory, as values of any type.
    pub fn ptr<T>(&self) -> DevicePtr<T> {
        self.start.field(0)
    }
}

impl std::fmt::Debug for MappedMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MappedMemory({})", ByteSize(self.buffer.len() as u64))
    }
}
