//! Memory that this process shares with a device, another thread's controller, or a GPU: the one type by
//! which it is reached, with the ordering of each access said.
//!
//! No reference to such memory exists. Words are atomic; bytes of a payload are copied, and belong to one
//! side at a time, which the protocol's words say: what a side wrote before a [`store_release`] the other
//! sees after the [`load_acquire`] that finds it. Doorbells and the last word of a completion are accessed
//! so; all other words are ordered by them.
//!
//! [`store_release`]: SharedMemory::store_release
//! [`load_acquire`]: SharedMemory::load_acquire

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tiergraph_core::Result;
use tiergraph_mem::{AlignedBuf, HostMemory, prefetch_range};

/// Bytes that are asked for ahead of a copy: more of them keep the copy before from its own loads.
const PREFETCHED_BYTES: usize = 1024;

/// A range of shared memory. Clones and parts are the same bytes, which live until the last of them drops.
#[derive(Clone)]
pub struct SharedMemory {
    start: NonNull<u8>,
    len: usize,
    /// Whether the bytes are a device's registers.
    is_registers: bool,
    owner: Arc<dyn Send + Sync>,
}

// SAFETY: the bytes are reached by atomic words, and by copies that the protocol keeps apart.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

// SAFETY: `owner` keeps the bytes mapped, and no reference to them exists.
unsafe impl HostMemory for SharedMemory {
    fn start(&self) -> NonNull<u8> {
        self.start
    }

    fn bytes(&self) -> usize {
        self.len
    }

    fn is_registers(&self) -> bool {
        self.is_registers
    }
}

/// The mapping of a file.
struct MappedFile {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping may be undone by any thread.
unsafe impl Send for MappedFile {}
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: mapped by `SharedMemory::of_file`; nobody accesses it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

impl SharedMemory {
    /// `len` zero bytes of host memory, rounded up to pages; on huge pages from 2 MiB on.
    ///
    /// # Errors
    /// The system has no such amount of memory.
    pub fn zeroed(len: usize) -> Result<Self> {
        Ok(Self::from_buffer(AlignedBuf::zeroed(len)?))
    }

    /// Shares a buffer's bytes.
    pub fn from_buffer(mut buffer: AlignedBuf) -> Self {
        let (len, start) = (buffer.len(), NonNull::from(&mut *buffer).cast());
        Self { start, len, is_registers: false, owner: Arc::new(buffer) }
    }

    /// As [`from_owner`](Self::from_owner), of a device's mapped registers.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn of_registers(
        start: NonNull<u8>,
        len: usize,
        owner: Arc<dyn Send + Sync>,
    ) -> Self {
        // SAFETY: promised.
        Self { is_registers: true, ..unsafe { Self::from_owner(start, len, owner) } }
    }

    /// Shares `len` bytes from `start` on that `owner` holds.
    ///
    /// # Safety
    /// `start` is aligned to 8 bytes; the bytes are mapped, readable and writable until `owner` drops, and
    /// nobody else in this process has a reference to them meanwhile.
    pub unsafe fn from_owner(start: NonNull<u8>, len: usize, owner: Arc<dyn Send + Sync>) -> Self {
        debug_assert!(start.addr().get().is_multiple_of(8));
        Self { start, len, is_registers: false, owner }
    }

    /// Shares the first `len` bytes of `file`, whole pages or up to its end, which are only read: who writes
    /// there, or reads what somebody cuts off meanwhile, ends the process.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub(crate) fn of_file(file: &File, len: usize) -> io::Result<Self> {
        let (kind, fd) = (libc::MAP_SHARED | libc::MAP_POPULATE, file.as_raw_fd());
        // SAFETY: a new mapping, which replaces none.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ, kind, fd, 0) };
        let start = NonNull::new(at.cast()).filter(|_| at != libc::MAP_FAILED);
        let start = start.ok_or_else(io::Error::last_os_error)?;
        let owner = Arc::new(MappedFile { start, len });
        Ok(Self { start, len, is_registers: false, owner })
    }

    /// Bytes of the range.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the range has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of the first byte, as this process sees it.
    pub fn address(&self) -> u64 {
        self.start.addr().get() as u64
    }

    /// A part of the range.
    ///
    /// # Panics
    /// If the part does not lie in the range, or does not begin at a multiple of 8 bytes.
    pub fn part(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len, "a part lies in its range");
        assert!(range.start.is_multiple_of(8), "a part is aligned to 8 bytes");
        // SAFETY: asserted just now.
        let start = unsafe { self.start.add(range.start) };
        let (owner, is_registers) = (Arc::clone(&self.owner), self.is_registers);
        Self { start, len: range.len(), is_registers, owner }
    }

    /// Reads a 32-bit word; what the other side wrote before it stored the word is visible afterwards.
    ///
    /// # Panics
    /// If there is no aligned word at byte `at`.
    #[inline]
    pub fn load_acquire(&self, at: usize) -> u32 {
        self.word32(at).load(Ordering::Acquire)
    }

    /// Writes a 32-bit word, after everything that this side wrote before.
    ///
    /// # Panics
    /// If there is no aligned word at byte `at`.
    #[inline]
    pub fn store_release(&self, at: usize, value: u32) {
        write_barrier();
        self.word32(at).store(value, Ordering::Release);
    }

    /// Reads a 32-bit word, in no order with other accesses.
    ///
    /// # Panics
    /// If there is no aligned word at byte `at`.
    #[inline]
    pub fn load(&self, at: usize) -> u32 {
        self.word32(at).load(Ordering::Relaxed)
    }

    /// Writes a 32-bit word, in no order with other accesses.
    ///
    /// # Panics
    /// If there is no aligned word at byte `at`.
    #[inline]
    pub fn store(&self, at: usize, value: u32) {
        self.word32(at).store(value, Ordering::Relaxed);
    }

    /// Reads a 64-bit word, in no order with other accesses.
    ///
    /// # Panics
    /// If there is no aligned word at byte `at`.
    #[inline]
    pub fn load64(&self, at: usize) -> u64 {
        self.word64(at).load(Ordering::Relaxed)
    }

    /// Writes a 64-bit word, in no order with other accesses.
    ///
    /// # Panics
    /// If there is no aligned word at byte `at`.
    #[inline]
    pub fn store64(&self, at: usize, value: u64) {
        self.word64(at).store(value, Ordering::Relaxed);
    }

    /// Copies the bytes from byte `at` on to `to`. The other side writes none of them meanwhile.
    ///
    /// # Panics
    /// If they do not lie in the range.
    #[inline]
    pub fn read_bytes(&self, at: usize, to: &mut [u8]) {
        let len = to.len();
        let from = self.bytes(at, len);
        // SAFETY: `len` bytes are there (`bytes`); `to` is ours alone, so they do not overlap.
        unsafe { from.copy_to_nonoverlapping(NonNull::from(to).cast(), len) }
    }

    /// Copies `from` to the bytes from byte `at` on. The other side accesses none of them meanwhile.
    ///
    /// # Panics
    /// If they do not lie in the range.
    #[inline]
    pub fn write_bytes(&self, at: usize, from: &[u8]) {
        let to = self.bytes(at, from.len());
        // SAFETY: `from.len()` bytes are there (`bytes`), and no reference to them exists.
        unsafe { to.copy_from_nonoverlapping(NonNull::from(from).cast(), from.len()) }
    }

    /// Copies `len` bytes from byte `from` on to byte `at` of `to`; the two do not overlap. The other sides
    /// write none of the former and access none of the latter meanwhile.
    ///
    /// # Panics
    /// If they do not lie in their ranges.
    #[inline]
    pub fn copy_to(&self, from: usize, to: &Self, at: usize, len: usize) {
        let (from, to) = (self.bytes(from, len), to.bytes(at, len));
        // SAFETY: `len` bytes are there on both sides (`bytes`), and no reference to them exists. Where
        // a caller's ranges overlap after all, the copy is one of `memmove`.
        unsafe { to.copy_from(from, len) }
    }

    /// Has the caches fetch the first of `len` bytes from byte `at` on, for a copy that is to come: the
    /// hardware sees by these what follows.
    ///
    /// # Panics
    /// If they do not lie in the range.
    #[inline]
    pub fn prefetch(&self, at: usize, len: usize) {
        prefetch_range(self.bytes(at, len).as_ptr(), len.min(PREFETCHED_BYTES));
    }

    /// Reads `len` bytes of `file` from `offset` on to byte `at`; how many there were, fewer only at the
    /// file's end. The other side accesses none of them meanwhile.
    ///
    /// # Errors
    /// Those of pread(2).
    ///
    /// # Panics
    /// If they do not lie in the range.
    pub fn read_file(
        &self,
        file: &impl AsRawFd,
        offset: u64,
        at: usize,
        len: usize,
    ) -> io::Result<usize> {
        let to = self.bytes(at, len);
        let mut done = 0;
        while done < len {
            let (from, left) = ((offset + done as u64) as libc::off_t, len - done);
            // SAFETY: `len` bytes are ours to write (`bytes`), of which `done` were written.
            let read =
                unsafe { libc::pread(file.as_raw_fd(), to.add(done).as_ptr().cast(), left, from) };
            match usize::try_from(read) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
        Ok(done)
    }

    /// Whether `file` lies in memory, on a tmpfs.
    pub(crate) fn is_in_memory(file: &File) -> bool {
        // SAFETY: all fields are numbers.
        let mut about: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: writes to `about` alone.
        let told = unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut about) };
        told == 0 && about.f_type == libc::TMPFS_MAGIC
    }

    /// Writes zeros to `len` bytes from byte `at` on. The other side accesses none of them meanwhile.
    ///
    /// # Panics
    /// If they do not lie in the range.
    pub fn fill_zeros(&self, at: usize, len: usize) {
        let start = self.bytes(at, len);
        // SAFETY: the bytes are ours to write (`bytes`); no reference to them exists.
        unsafe { start.write_bytes(0, len) }
    }

    /// The start of `len` bytes from byte `at` on.
    ///
    /// # Panics
    /// If they do not lie in the range.
    pub(crate) fn bytes(&self, at: usize, len: usize) -> NonNull<u8> {
        let end = at.checked_add(len);
        assert!(end.is_some_and(|end| end <= self.len), "bytes lie in their range");
        // SAFETY: asserted just now.
        unsafe { self.start.add(at) }
    }

    #[inline]
    fn word32(&self, at: usize) -> &AtomicU32 {
        let start = self.bytes(at, size_of::<u32>()).cast();
        assert!(start.is_aligned(), "a word is aligned");
        // SAFETY: mapped and aligned for as long as `self`; all access to the word is atomic.
        unsafe { AtomicU32::from_ptr(start.as_ptr()) }
    }

    #[inline]
    fn word64(&self, at: usize) -> &AtomicU64 {
        let start = self.bytes(at, size_of::<u64>()).cast();
        assert!(start.is_aligned(), "a word is aligned");
        // SAFETY: mapped and aligned for as long as `self`; all access to the word is atomic.
        unsafe { AtomicU64::from_ptr(start.as_ptr()) }
    }
}

/// Orders this side's stores to memory before its next store to a device's register. A release store
/// orders them for other threads; on Arm a device is further away than any thread.
#[inline]
fn write_barrier() {
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: a barrier changes neither registers nor memory.
    unsafe {
        std::arch::asm!("dmb oshst", options(nostack, preserves_flags));
    }
}

impl fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedMemory({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_bytes_of_parts_are_those_of_the_whole() {
        let memory = SharedMemory::zeroed(4096).unwrap();
        let part = memory.part(64..128);
        part.store64(8, 0x0807_0605_0403_0201);
        let mut bytes = [0; 8];
        memory.read_bytes(72, &mut bytes);
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8]);
        memory.write_bytes(64, &[0xff; 4]);
        assert_eq!((part.load(0), part.load(4), part.len()), (u32::MAX, 0, 64));
        drop(memory);
        part.store_release(60, 9);
        assert_eq!(part.load_acquire(60), 9);
        part.fill_zeros(8, 8);
        assert_eq!((part.load64(8), part.load64(0)), (0, 0xffff_ffff));
    }

    #[test]
    #[should_panic(expected = "bytes lie in their range")]
    fn a_word_past_the_end_is_a_panic() {
        SharedMemory::zeroed(4096).unwrap().part(0..64).load(64);
    }

    #[test]
    #[should_panic(expected = "a word is aligned")]
    fn a_word_between_words_is_a_panic() {
        SharedMemory::zeroed(4096).unwrap().load64(12);
    }
}
