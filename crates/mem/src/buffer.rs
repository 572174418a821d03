//! Owned, zeroed, page-aligned bytes.
//!
//! Huge pages matter to the drive before they matter to the TLB: a direct read into 4 KiB pages
//! hands the drive a list of one segment a page, into a huge page one segment.
//!
//! So single buffers from 2 MiB on, and [batches](AlignedBuf::batch) of smaller ones together, are
//! anonymous mappings that start on a huge-page boundary and ask for huge pages
//! (`MADV_HUGEPAGE`). The request is advice; where the kernel has no huge page to give, the mapping
//! works on 4 KiB pages. From 16 MiB on they may be kept when they are freed
//! ([`Keeping`](crate::Keeping)). Everything else comes from the allocator at 4 KiB alignment.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::any::Any;
use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

use tiergraph_core::{ByteSize, Error, ErrorKind, Result};

use crate::large;

/// Bytes of a page, the unit of direct reads: buffers start at multiples of it and are multiples long.
pub const PAGE_BYTES: usize = 4096;

/// Bytes of a huge page: buffers of this size and larger are mapped on huge pages.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A buffer that owns its bytes: aligned to [`PAGE_BYTES`], a multiple of it long, zeroed when made.
///
/// ```
/// use tiergraph_mem::AlignedBuf;
/// let mut block = AlignedBuf::zeroed(5000).unwrap();
/// assert_eq!(block.len(), 8192);
/// block[4999] = 7;
/// assert_eq!(block[4998..5001], [0, 7, 0]);
/// ```
pub struct AlignedBuf {
    start: NonNull<u8>,
    len: usize,
    /// What the bytes are part of and is freed with the last of them; none for the allocator's.
    owner: Option<Arc<dyn Send + Sync>>,
    is_locked: bool,
    /// What has to end before the bytes are freed.
    attached: Option<Box<dyn Any + Send + Sync>>,
}

// SAFETY: the buffer owns its bytes alone; they are reached only through `&self` and `&mut self`.
unsafe impl Send for AlignedBuf {}
// SAFETY: as above; `&AlignedBuf` gives nothing but `&[u8]`.
unsafe impl Sync for AlignedBuf {}

impl AlignedBuf {
    /// `len` zero bytes, rounded up to whole pages. A `len` of 0 allocates nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] when the system has no such amount of memory to give.
    pub fn zeroed(len: usize) -> Result<Self> {
        let len = len.checked_next_multiple_of(PAGE_BYTES).ok_or_else(|| too_large(len))?;
        match len {
            0 => Ok(Self::default()),
            small if small < HUGE_PAGE_BYTES => allocate(small),
            large => Mapping::new(large).map(|mapping| mapping.part(0, large)),
        }
    }

    /// `count` buffers of `len` bytes each, as [`zeroed`](Self::zeroed), side by side on huge
    /// pages: what blocks are read into. From 1 MiB in all on, the memory is whole huge pages; it
    /// is freed when the last of the buffers drops.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] when the system has no such amount of memory to give.
    ///
    /// ```
    /// use tiergraph_mem::AlignedBuf;
    /// let slots = AlignedBuf::batch(16, 1 << 20).unwrap();
    /// assert!(slots.len() == 16 && slots.iter().all(|slot| slot.len() == 1 << 20));
    /// ```
    pub fn batch(count: usize, len: usize) -> Result<Vec<Self>> {
        let len = len.checked_next_multiple_of(PAGE_BYTES).ok_or_else(|| too_large(len))?;
        let total = len.checked_mul(count).ok_or_else(|| too_large(usize::MAX))?;
        if total < HUGE_PAGE_BYTES / 2 {
            return (0..count).map(|_| Self::zeroed(len)).collect();
        }
        // A huge page that is mapped in part would not be huge.
        let span =
            total.checked_next_multiple_of(HUGE_PAGE_BYTES).ok_or_else(|| too_large(total))?;
        let mapping = Mapping::new(span)?;
        Ok((0..count).map(|number| mapping.part(number * len, len)).collect())
    }

    /// The first byte, without a reference to any; a dangling address where there is none.
    #[inline]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Wraps page-locked (pinned) host memory that another object, `owner`, holds as a buffer, without a
    /// copy. The buffer keeps `owner` alive.
    ///
    /// # Safety
    /// `start` is aligned to [`PAGE_BYTES`], `len` a multiple of it; the bytes are initialised, are
    /// part of no other buffer, and live until `owner` drops.
    pub unsafe fn from_owner(start: NonNull<u8>, len: usize, owner: Arc<dyn Send + Sync>) -> Self {
        debug_assert!(start.addr().get().is_multiple_of(PAGE_BYTES));
        debug_assert!(len.is_multiple_of(PAGE_BYTES));
        Self { start, len, owner: Some(owner), is_locked: true, attached: None }
    }

    /// Whether the buffer is page-locked (pinned) host memory, which a GPU copies from by itself.
    pub fn is_locked(&self) -> bool {
        self.is_locked
    }

    /// Attaches something to the buffer that ends before its bytes are freed, such as a device's mapping of
    /// them, in place of what was attached before.
    pub fn attach(&mut self, thing: impl Any + Send + Sync) {
        self.attached = None;
        self.attached = Some(Box::new(thing));
    }

    /// What is attached to the buffer, if that is a `T`.
    pub fn attached<T: Any>(&self) -> Option<&T> {
        self.attached.as_ref()?.downcast_ref()
    }

    /// Takes what is attached to the buffer, if that is a `T`.
    pub fn take_attached<T: Any>(&mut self) -> Option<T> {
        let thing = self.attached.take()?;
        // No `T` is attached again: a mistake of the caller does not free what must end first.
        thing.downcast().map(|thing| *thing).map_err(|other| self.attached = Some(other)).ok()
    }

    /// Ends what is attached to the buffer.
    pub fn detach(&mut self) {
        self.attached = None;
    }
}

/// Anonymous memory from a huge-page boundary on, freed when the last buffer in it drops.
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is an address range; its bytes are reached only through the buffers in it.
unsafe impl Send for Mapping {}
// SAFETY: as above; `&Mapping` gives no access to bytes outside this module.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(len: usize) -> Result<Arc<Self>> {
        let refused = |e: io::Error| too_large(len).source(e);
        let start = match Self::is_block(len) {
            true => large::take_zeroed(len.next_multiple_of(HUGE_PAGE_BYTES)),
            false => large::map(len),
        };
        Ok(Arc::new(Self { start: start.map_err(refused)?, len }))
    }

    /// Whether a mapping of `len` bytes is a large block, which may be kept when it is freed.
    fn is_block(len: usize) -> bool {
        (large::LARGE_BYTES..=isize::MAX as usize).contains(&len)
    }

    /// The buffer of `len` bytes at `offset`. The callers above make each byte part of one buffer
    /// at most.
    fn part(self: &Arc<Self>, offset: usize, len: usize) -> AlignedBuf {
        assert!(offset + len <= self.len, "a buffer lies inside its mapping");
        // SAFETY: asserted just now.
        let start = unsafe { self.start.add(offset) };
        AlignedBuf {
            start,
            len,
            owner: Some(Arc::clone(self) as _),
            is_locked: false,
            attached: None,
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        match Self::is_block(self.len) {
            // SAFETY: `new` took it, and the last buffer in it is gone.
            true => unsafe { large::give(self.start, self.len.next_multiple_of(HUGE_PAGE_BYTES)) },
            false => large::unmap(self.start, self.len),
        }
    }
}

/// Allocates `len` zero bytes, a positive multiple of a page.
fn allocate(len: usize) -> Result<AlignedBuf> {
    let layout = Layout::from_size_align(len, PAGE_BYTES).map_err(|_| too_large(len))?;
    // SAFETY: the layout's size is not zero.
    let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(|| too_large(len))?;
    Ok(AlignedBuf { start, len, owner: None, is_locked: false, attached: None })
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        self.detach();
        if self.owner.is_none() && self.len > 0 {
            // SAFETY: `allocate` got these bytes with this layout, whose checks it passed.
            unsafe {
                let layout = Layout::from_size_align_unchecked(self.len, PAGE_BYTES);
                dealloc(self.start.as_ptr(), layout);
            }
        }
    }
}

/// An empty buffer, which holds no memory: what is left where a buffer was taken.
impl Default for AlignedBuf {
    fn default() -> Self {
        let nowhere = ptr::without_provenance_mut(PAGE_BYTES);
        let start = NonNull::new(nowhere).unwrap_or(NonNull::dangling());
        Self { start, len: 0, owner: None, is_locked: false, attached: None }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` is valid for `len` initialised bytes (dangling and 0 when empty).
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes this the only reference.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuf({})", ByteSize(self.len as u64))
    }
}

fn too_large(len: usize) -> Error {
    Error::new(ErrorKind::Budget, "allocate a buffer of")
        .object(ByteSize(len as u64))
        .got("the system has no such amount of memory")
        .hint("run with a smaller `--memory`")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn buffers_of_every_kind_are_aligned_whole_pages_of_zeros() {
        for len in [0, 1, 4096, 4097, HUGE_PAGE_BYTES - 1, HUGE_PAGE_BYTES, (5 << 20) + 3] {
            let mut buffer = AlignedBuf::zeroed(len).unwrap();
            assert_eq!(buffer.len(), len.next_multiple_of(PAGE_BYTES));
            assert!(buffer.iter().all(|&b| b == 0));
            buffer.fill(0xA5);
            assert!(buffer.iter().all(|&b| b == 0xA5));
            let alignment = if len >= HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { PAGE_BYTES };
            assert!(buffer.is_empty() || buffer.as_ptr().addr().is_multiple_of(alignment));
        }
    }

    #[test]
    fn the_buffers_of_a_batch_are_disjoint_and_outlive_each_other() {
        for (count, len) in [(0, 4096), (3, 0), (5, 4096), (1, 1 << 20), (7, 1 << 20), (700, 5000)]
        {
            let mut batch = AlignedBuf::batch(count, len).unwrap();
            assert_eq!(batch.len(), count);
            for (number, buffer) in batch.iter_mut().enumerate() {
                assert_eq!(buffer.len(), len.next_multiple_of(PAGE_BYTES));
                assert!(buffer.iter().all(|&b| b == 0));
                buffer.fill(number as u8);
            }
            let last = batch.pop();
            for (number, buffer) in batch.iter().enumerate() {
                assert!(buffer.iter().all(|&b| b == number as u8));
            }
            drop(batch);
            let expected = count.wrapping_sub(1) as u8;
            assert!(last.iter().all(|buffer| buffer.iter().all(|&b| b == expected)));
        }
        assert!(AlignedBuf::batch(usize::MAX, 4096).is_err());
        assert!(AlignedBuf::batch(1 << 20, 1 << 42).is_err());
    }

    #[test]
    fn a_buffer_larger_than_memory_is_an_error() {
        let e = AlignedBuf::zeroed(1 << 62).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Budget);
        assert_eq!(
            e.to_string(),
            "cannot allocate a buffer of `4194304.0 TiB`: the system has no such amount of \
             memory: Cannot allocate memory (os error 12)\n\nhint: run with a smaller `--memory`"
        );
        assert!(AlignedBuf::zeroed(usize::MAX).is_err());
    }

    #[test]
    fn what_is_attached_ends_before_the_bytes_do() {
        struct Ending(Arc<AtomicUsize>);
        impl Drop for Ending {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let ended = Arc::new(AtomicUsize::new(0));
        let count = || ended.load(Ordering::Relaxed);
        let mut buffer = AlignedBuf::zeroed(4096).unwrap();
        buffer.attach(Ending(Arc::clone(&ended)));
        assert!(buffer.attached::<Ending>().is_some() && buffer.attached::<u32>().is_none());
        buffer.attach(Ending(Arc::clone(&ended)));
        assert_eq!(count(), 1, "one at a time");
        buffer.detach();
        assert!(buffer.attached::<Ending>().is_none() && count() == 2);
        buffer.attach(Ending(Arc::clone(&ended)));
        drop(buffer);
        assert_eq!(count(), 3);
    }

    #[test]
    fn a_buffer_moves_between_threads() {
        let mut buffer = AlignedBuf::zeroed(4096).unwrap();
        buffer[0] = 9;
        let back = std::thread::spawn(move || buffer).join().unwrap();
        assert_eq!(back[0], 9);
    }
}
