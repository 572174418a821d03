//! Large blocks of memory, on huge pages, which may stay with the process when they are freed: for the next
//! that asks, or for the system if it runs short.
//!
//! The first touch of memory that is new to the process has to zero it, and in a virtual machine whose
//! host takes free memory back has to get it again, which takes longer than most loops over it. Runs over one
//! graph need the same arrays again and again.
//!
//! Promises: blocks are kept only while somebody holds a [`Keeping`]; what is in use and what is kept are
//! together never more than was in use at some time, or than was [allowed](Keeping::keep_at_most) since; and
//! what is kept is marked as free (`MADV_FREE`), so the kernel takes it before it swaps or kills.
#![allow(unsafe_code)]

mod blocks;
mod mapping;

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::ptr::{self, NonNull};

use crate::HUGE_PAGE_BYTES;
use blocks::Blocks;
pub(crate) use mapping::{map, unmap};

/// Bytes of the smallest large block. Each is whole huge pages, at most an eighth more than asked for.
pub const LARGE_BYTES: usize = 16 << 20;

/// The large blocks of this process.
static BLOCKS: Blocks = Blocks::new();

/// An allocator whose large blocks, of `Vec`s say, are on huge pages, and are kept when they are freed while
/// there is a [`Keeping`]; all others are the system's.
///
/// ```
/// #[global_allocator]
/// static MEMORY: tiergraph_mem::LargeBlocks = tiergraph_mem::LargeBlocks;
/// assert_eq!(vec![0u8; 100 << 20].len(), 100 << 20);
/// ```
#[derive(Debug)]
pub struct LargeBlocks;

// SAFETY: large blocks are mappings of at least the layout's size, aligned to huge pages, which are given to
// nobody else until they are freed; whether a layout is of a large block depends on the layout alone. All
// else is the system allocator's.
unsafe impl GlobalAlloc for LargeBlocks {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match large(layout) {
            Some(len) => BLOCKS.take(len).map_or(ptr::null_mut(), |(start, _)| start.as_ptr()),
            // SAFETY: the caller's promise.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match large(layout) {
            Some(len) => take_zeroed(len).map_or(ptr::null_mut(), NonNull::as_ptr),
            // SAFETY: the caller's promise.
            None => unsafe { System.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        match (large(layout), NonNull::new(start)) {
            // SAFETY: `alloc` gave a block of this length, which the caller gives up.
            (Some(len), Some(start)) => unsafe { BLOCKS.give(start, len) },
            // SAFETY: the caller's promise.
            _ => unsafe { System.dealloc(start, layout) },
        }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the size is not zero and does not overflow when rounded up.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (large(layout), large(new), NonNull::new(start)) {
            (Some(old), Some(new), Some(start)) => {
                // SAFETY: `alloc` gave a block of the old length, which the caller gives up for the new one.
                unsafe { BLOCKS.resize(start, old, new) }.map_or(ptr::null_mut(), NonNull::as_ptr)
            }
            // SAFETY: the caller's promise; the system allocator gave the block, and keeps it.
            (None, None, _) => unsafe { System.realloc(start, layout, size) },
            _ => {
                // SAFETY: the new block is another, and both have the bytes that are copied.
                unsafe {
                    let to = self.alloc(new);
                    if !to.is_null() {
                        ptr::copy_nonoverlapping(start, to, layout.size().min(size));
                        self.dealloc(start, layout);
                    }
                    to
                }
            }
        }
    }
}

/// The length of the large block for a layout; `None` for one that the system allocator serves.
fn large(layout: Layout) -> Option<usize> {
    let is_large = layout.size() >= LARGE_BYTES && layout.align() <= HUGE_PAGE_BYTES;
    is_large.then(|| layout.size().next_multiple_of(HUGE_PAGE_BYTES))
}

/// A block of `len` zero bytes, at least [`LARGE_BYTES`] and whole huge pages, or why the system has none.
pub(crate) fn take_zeroed(len: usize) -> io::Result<NonNull<u8>> {
    let (start, used) = BLOCKS.take(len)?;
    // SAFETY: the block was taken just now and has so many bytes.
    unsafe { start.write_bytes(0, used) };
    Ok(start)
}

/// Frees a block.
///
/// # Safety
/// [`take_zeroed`] gave it, with this length, and nobody uses it any more.
pub(crate) unsafe fn give(start: NonNull<u8>, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { BLOCKS.give(start, len) }
}

/// While a `Keeping` exists, large blocks that are freed, of [`AlignedBuf`](crate::AlignedBuf)s and of an
/// allocator that is [`LargeBlocks`], are kept for the next that asks. The last one to drop gives them to the
/// system.
#[derive(Debug)]
pub struct Keeping(());

impl Keeping {
    /// Has large blocks kept for as long as the value lives.
    #[must_use = "blocks are kept while it lives"]
    pub fn start() -> Self {
        BLOCKS.start_keeping();
        Self(())
    }

    /// Gives kept blocks to the system until they and those in use are at most `bytes` together, or none is
    /// kept, and keeps no more from now on until more are in use.
    pub fn keep_at_most(&self, bytes: u64) {
        BLOCKS.keep_at_most(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        BLOCKS.stop_keeping();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tiergraph_core::Draws;

    use super::*;

    #[global_allocator]
    static MEMORY: LargeBlocks = LargeBlocks;

    #[test]
    fn vectors_hold_what_was_written_whatever_they_grow_and_shrink_to() {
        let work = |seed| {
            let mut draws = Draws::new(seed);
            for _ in 0..20 {
                let mut values: Vec<u64> = (0..draws.below(6 << 20)).collect();
                values.shrink_to_fit();
                values.extend(values.len() as u64..draws.below(8 << 20));
                values.truncate(draws.below(values.len() as u64 + 1) as usize);
                values.shrink_to_fit();
                assert!(values.iter().zip(0..).all(|(&value, i)| value == i));
                let zeroes = vec![0u8; draws.below(64 << 20) as usize];
                assert!(zeroes.iter().all(|&byte| byte == 0));
            }
        };
        let keeping = Keeping::start();
        thread::scope(|scope| (0..3).for_each(|seed| drop(scope.spawn(move || work(seed)))));
        drop(keeping);
        work(3);
    }

    #[test]
    fn a_vector_larger_than_memory_is_refused() {
        assert!(Vec::<u8>::new().try_reserve_exact(1 << 62).is_err());
    }
}
