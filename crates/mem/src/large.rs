//! Large blocks of memory, on huge pages, which may stay with the process when they are freed: for the next
//! that asks, or for the system if it runs short.
//!
//! The first touch of memory that is new to the process has to zero it, and in a virtual machine whose
//! host takes free memory back has to get it again: there, half a gigabyte takes a second. Runs over one
//! graph need the same arrays again and again.
//!
//! Promises: blocks are kept only while somebody holds a [`Keeping`]; what is in use and what is kept are
//! together never more than was in use at some time, or than was [allowed](Keeping::keep_at_most) since; and
//! what is kept is marked as free (`MADV_FREE`), so the kernel takes it before it swaps or kills.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::process;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::thread;

use crate::{HUGE_PAGE_BYTES, PAGE_BYTES};

/// Bytes of the smallest large block. Each is whole huge pages, at most an eighth more than asked for.
pub const LARGE_BYTES: usize = 16 << 20;

/// The most blocks that are kept.
const MOST_KEPT: usize = 64;

/// How often the last keeper tries to free what is kept while another thread takes or gives a block. It does
/// not wait: in a process that was forked meanwhile, that thread does not exist.
const MOST_TRIES: usize = 10_000;

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
        BLOCKS.keepers.fetch_add(1, Relaxed);
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

/// A large block that nobody uses.
#[derive(Debug, Clone, Copy)]
struct Block {
    start: NonNull<u8>,
    len: usize,
}

impl Block {
    fn begin(self) -> usize {
        self.start.addr().get()
    }

    fn end(self) -> usize {
        self.begin() + self.len
    }
}

/// The blocks that are kept, the oldest first. It is no `Vec`, which would allocate.
struct Kept {
    blocks: [Option<Block>; MOST_KEPT],
    count: usize,
    bytes: usize,
}

/// The large blocks of a process.
pub(crate) struct Blocks {
    kept: Mutex<Kept>,
    /// Bytes in use.
    used: AtomicUsize,
    /// The most bytes that have been in use.
    most: AtomicUsize,
    /// How many want freed blocks to be kept.
    keepers: AtomicUsize,
}

// SAFETY: kept blocks are address ranges that nobody uses.
unsafe impl Send for Kept {}

impl Blocks {
    const fn new() -> Self {
        let kept = Kept { blocks: [None; MOST_KEPT], count: 0, bytes: 0 };
        let (used, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { kept: Mutex::new(kept), used, most, keepers: AtomicUsize::new(0) }
    }

    /// The blocks that are kept; `None` if another thread has them, or had them when this process was forked.
    fn kept(&self) -> Option<MutexGuard<'_, Kept>> {
        self.kept.try_lock().ok()
    }

    /// A block of `len` bytes, whole huge pages, and how many of its first bytes may be other than zero: the
    /// smallest that is kept and large enough, or a new one, to which the pages of those that are kept move.
    fn take(&self, len: usize) -> io::Result<(NonNull<u8>, usize)> {
        let left = self.count(len);
        let mut kept = self.kept();
        if let Some(start) = kept.as_mut().and_then(|kept| kept.take(len)) {
            return Ok((start, len));
        }
        let start = map(len).inspect_err(|_| {
            self.used.fetch_sub(len, Relaxed);
        })?;
        let moved = kept.map_or(0, |mut kept| {
            let moved = kept.move_to(start, len);
            kept.shrink_to(left);
            moved
        });
        Ok((start, moved))
    }

    /// Counts `len` bytes more as used; returns how many may be kept beside those that are used.
    fn count(&self, len: usize) -> usize {
        let used = self.used.fetch_add(len, Relaxed) + len;
        self.most.fetch_max(used, Relaxed).max(used) - used
    }

    /// Keeps a block of `len` bytes for the next that asks, or gives it to the system.
    ///
    /// # Safety
    /// `take` gave it, whole or in part, and nobody uses it any more.
    unsafe fn give(&self, start: NonNull<u8>, len: usize) {
        self.used.fetch_sub(len, Relaxed);
        // The last keeper may go meanwhile: it takes the lock after it is counted.
        let kept = self.kept().filter(|_| self.keepers.load(Relaxed) > 0);
        let Some(mut kept) = kept else { return unmap(start, len) };
        // SAFETY: nobody uses these bytes; where the kernel takes them, they are zero at the next touch.
        unsafe { libc::madvise(start.as_ptr().cast(), len, libc::MADV_FREE) };
        kept.give(Block { start, len });
    }

    fn keep_at_most(&self, bytes: usize) {
        let Some(mut kept) = self.kept() else { return };
        let used = self.used.load(Relaxed);
        let most = self.most.fetch_min(bytes.max(used), Relaxed).min(bytes.max(used));
        kept.shrink_to(most.saturating_sub(used));
    }

    fn stop_keeping(&self) {
        if self.keepers.fetch_sub(1, Relaxed) > 1 {
            return;
        }
        for _ in 0..MOST_TRIES {
            if let Some(mut kept) = self.kept() {
                return kept.shrink_to(0);
            }
            thread::yield_now();
        }
    }

    /// Makes a block of `old` bytes one of `new` bytes, elsewhere if it has to; what both have of it stays.
    ///
    /// # Safety
    /// `take` gave it, and the caller uses the new one only.
    unsafe fn resize(&self, start: NonNull<u8>, old: usize, new: usize) -> io::Result<NonNull<u8>> {
        if new <= old {
            if new < old {
                // SAFETY: the end of a block that is in use up to there.
                unsafe { self.give(start.add(new), old - new) };
            }
            return Ok(start);
        }
        let to = map(new)?;
        // SAFETY: a block that the caller gives up, and the first bytes of a new one that is larger.
        unsafe { move_pages(start, old, to) };
        let left = self.count(new - old);
        if let Some(mut kept) = self.kept() {
            kept.shrink_to(left);
        }
        Ok(to)
    }
}

impl Kept {
    /// Takes `len` bytes of the smallest block that has so many.
    fn take(&mut self, len: usize) -> Option<NonNull<u8>> {
        let fits = |&at: &usize| self.len_of(at) >= len;
        let best = (0..self.count).filter(fits).min_by_key(|&at| self.len_of(at))?;
        let block = self.remove(best)?;
        if block.len > len {
            // SAFETY: inside the block.
            let start = unsafe { block.start.add(len) };
            self.give(Block { start, len: block.len - len });
        }
        Some(block.start)
    }

    /// Moves the pages of kept blocks, the last first, to a new block of `len` bytes, from its start on, as far
    /// as they reach; returns how far.
    fn move_to(&mut self, start: NonNull<u8>, len: usize) -> usize {
        let mut moved = 0;
        while moved < len
            && let Some(block) = self.count.checked_sub(1).and_then(|last| self.remove(last))
        {
            let part = block.len.min(len - moved);
            // SAFETY: inside both blocks: nobody uses the pages, and those that they replace are new.
            unsafe {
                move_pages(block.start.add(block.len - part), part, start.add(moved));
            }
            moved += part;
            if part < block.len {
                self.give(Block { start: block.start, len: block.len - part });
            }
        }
        moved
    }

    /// Keeps a block, as one with those beside it.
    fn give(&mut self, mut block: Block) {
        let mut at = 0;
        while let Some(other) = self.blocks.get(at).copied().flatten() {
            if other.end() != block.begin() && block.end() != other.begin() {
                at += 1;
                continue;
            }
            self.remove(at);
            let start = if other.begin() < block.begin() { other.start } else { block.start };
            block = Block { start, len: block.len + other.len };
        }
        if self.count == MOST_KEPT {
            self.drop_oldest();
        }
        self.blocks[self.count] = Some(block);
        self.count += 1;
        self.bytes += block.len;
    }

    /// Gives the oldest blocks to the system until at most `bytes` are kept.
    fn shrink_to(&mut self, bytes: usize) {
        while self.bytes > bytes {
            let excess = (self.bytes - bytes).next_multiple_of(HUGE_PAGE_BYTES);
            match &mut self.blocks[0] {
                Some(oldest) if oldest.len > excess => {
                    oldest.len -= excess;
                    self.bytes -= excess;
                    // SAFETY: the end of the block, which it was just taken from.
                    unmap(unsafe { oldest.start.add(oldest.len) }, excess);
                }
                _ => self.drop_oldest(),
            }
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(block) = self.remove(0) {
            unmap(block.start, block.len);
        }
    }

    fn remove(&mut self, at: usize) -> Option<Block> {
        let block = self.blocks[at].take()?;
        self.blocks[at..self.count].rotate_left(1);
        self.count -= 1;
        self.bytes -= block.len;
        Some(block)
    }

    fn len_of(&self, at: usize) -> usize {
        self.blocks[at].map_or(0, |block| block.len)
    }
}

/// Moves `len` bytes of pages to another place, in place of the pages there.
///
/// # Safety
/// Both ranges are blocks of ours, or parts; nobody uses the bytes of either but the caller.
unsafe fn move_pages(from: NonNull<u8>, len: usize, to: NonNull<u8>) {
    // One huge page at a time: more may be of several mappings, which kernels before 6.17 do not move at once,
    // and find out when the pages there are gone.
    for offset in (0..len).step_by(HUGE_PAGE_BYTES) {
        // SAFETY: inside the ranges.
        let (from, to) = unsafe { (from.add(offset), to.add(offset)) };
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: the caller's promise: both are mapped, are whole huge pages, and do not overlap.
        let moved = unsafe {
            let (from, to) = (from.as_ptr().cast(), to.as_ptr());
            libc::mremap(from, HUGE_PAGE_BYTES, HUGE_PAGE_BYTES, flags, to)
        };
        if moved != libc::MAP_FAILED {
            continue;
        }
        // The process has as many mappings as it may; or the system has no memory for its own tables, and the
        // pages may be gone.
        if !is_mapped(from) || !is_mapped(to) {
            process::abort();
        }
        // SAFETY: both are there, and are the caller's.
        unsafe { to.copy_from_nonoverlapping(from, HUGE_PAGE_BYTES) };
        unmap(from, HUGE_PAGE_BYTES);
    }
}

/// Whether all of a huge page from `start` on is mapped.
fn is_mapped(start: NonNull<u8>) -> bool {
    // SAFETY: of anonymous memory, it changes nothing.
    unsafe { libc::msync(start.as_ptr().cast(), HUGE_PAGE_BYTES, libc::MS_ASYNC) == 0 }
}

/// Maps `len` zero bytes, whole pages, on huge pages from a huge-page boundary on.
pub(crate) fn map(len: usize) -> io::Result<NonNull<u8>> {
    let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
    // One huge page too many, whose ends are given back.
    let span = len.checked_add(HUGE_PAGE_BYTES - PAGE_BYTES).ok_or_else(too_large)?;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing else.
    let base = unsafe { libc::mmap(ptr::null_mut(), span, protection, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let base = NonNull::new(base.cast::<u8>()).ok_or_else(too_large)?;
    let head = base.align_offset(HUGE_PAGE_BYTES);
    // SAFETY: `head + len <= span`, because `head` is a multiple of a page below a huge page.
    let (start, end) = unsafe { (base.add(head), base.add(head + len)) };
    unmap(base, head);
    unmap(end, span - head - len);
    // SAFETY: `start..start + len` is ours. A refusal leaves ordinary pages, which is correct.
    unsafe { libc::madvise(start.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
    Ok(start)
}

/// Gives `len` bytes (whole pages, perhaps none) that [`map`] gave back to the system; nobody uses them.
pub(crate) fn unmap(start: NonNull<u8>, len: usize) {
    if len > 0 {
        // SAFETY: the callers pass parts of their own mapping that nothing refers to.
        unsafe { libc::munmap(start.as_ptr().cast(), len) };
    }
}

#[cfg(test)]
mod tests {
    use tiergraph_core::Draws;

    use super::*;

    #[global_allocator]
    static MEMORY: LargeBlocks = LargeBlocks;

    const MIB: usize = 1 << 20;

    /// Blocks of a test's own: those of the process belong to the other tests too.
    struct Own {
        blocks: Blocks,
        held: Vec<(NonNull<u8>, usize)>,
    }

    impl Own {
        fn new() -> Self {
            let own = Self { blocks: Blocks::new(), held: Vec::new() };
            own.blocks.keepers.store(1, Relaxed);
            own
        }

        fn kept(&self) -> (usize, usize) {
            let kept = self.blocks.kept().unwrap();
            (kept.count, kept.bytes)
        }

        /// Takes a block; returns its address, and how much of it was used before.
        fn take(&mut self, len: usize) -> (usize, usize) {
            let (start, used) = self.blocks.take(len).unwrap();
            self.held.push((start, len));
            (start.addr().get(), used)
        }

        fn give(&mut self, at: usize) {
            let (start, len) = self.held.remove(at);
            // SAFETY: `take` gave it.
            unsafe { self.blocks.give(start, len) };
        }
    }

    impl Drop for Own {
        fn drop(&mut self) {
            while !self.held.is_empty() {
                self.give(0);
            }
            self.blocks.stop_keeping();
            assert_eq!((self.blocks.used.load(Relaxed), self.kept()), (0, (0, 0)));
        }
    }

    #[test]
    fn a_freed_block_serves_the_next_that_fits_and_its_rest_too() {
        let mut own = Own::new();
        let (first, used) = own.take(32 * MIB);
        assert_eq!((used, own.kept()), (0, (0, 0)));
        own.give(0);
        assert_eq!(own.kept(), (1, 32 * MIB));
        assert_eq!(own.take(20 * MIB), (first, 20 * MIB));
        assert_eq!(own.kept(), (1, 12 * MIB));
        // The parts of a block are one again when both are free.
        own.give(0);
        assert_eq!(own.kept(), (1, 32 * MIB));
        assert_eq!(own.take(32 * MIB), (first, 32 * MIB));
    }

    #[test]
    fn small_blocks_become_a_larger_one() {
        let mut own = Own::new();
        for byte in 1..=3 {
            own.take(16 * MIB);
            let (start, len) = own.held[own.held.len() - 1];
            // SAFETY: just taken.
            unsafe { start.write_bytes(byte, len) };
        }
        (0..3).for_each(|_| own.give(0));
        let (_, used) = own.take(64 * MIB);
        assert_eq!((used, own.kept()), (48 * MIB, (0, 0)));
        let (start, len) = own.held[0];
        // SAFETY: just taken.
        let bytes = unsafe { std::slice::from_raw_parts(start.as_ptr(), len) };
        let seen = bytes[..used].chunks(16 * MIB).map(|part| usize::from(part[5]));
        // Where the kernel has taken pages meanwhile, they are zeroes.
        assert!(seen.sum::<usize>() <= 6 && bytes[used..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn kept_and_used_are_never_more_than_was_used_at_some_time() {
        let (mut own, mut draws) = (Own::new(), Draws::new(5));
        let mut most = 0;
        for _ in 0..3000 {
            if own.held.is_empty() || draws.below(100) < 52 {
                own.take((8 + draws.below(24) as usize) * HUGE_PAGE_BYTES);
            } else {
                own.give(draws.below(own.held.len() as u64) as usize);
            }
            let used = own.held.iter().map(|(_, len)| len).sum::<usize>();
            assert_eq!(used, own.blocks.used.load(Relaxed));
            most = most.max(used);
            assert!(used + own.kept().1 <= most);
        }
        let mut ranges: Vec<_> = own.held.iter().map(|(s, len)| (s.addr().get(), *len)).collect();
        ranges
            .extend(own.blocks.kept().unwrap().blocks.iter().flatten().map(|b| (b.begin(), b.len)));
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|two| two[0].0 + two[0].1 <= two[1].0), "blocks overlap");
    }

    #[test]
    fn what_is_kept_is_as_little_as_was_asked_for() {
        let mut own = Own::new();
        for _ in 0..4 {
            own.take(16 * MIB);
        }
        (0..3).for_each(|_| own.give(0));
        let kept = |own: &Own| own.kept().1 / MIB;
        assert_eq!(kept(&own), 48);
        own.blocks.keep_at_most(100 * MIB);
        assert_eq!(kept(&own), 48);
        own.blocks.keep_at_most(40 * MIB);
        assert_eq!(kept(&own), 24);
        own.blocks.keep_at_most(0);
        assert_eq!(kept(&own), 0);
        // More in use is more that may be kept.
        own.take(32 * MIB);
        own.give(1);
        assert_eq!(kept(&own), 32);
    }

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
    fn another_thread_that_has_the_kept_blocks_is_not_waited_for() {
        let mut own = Own::new();
        own.take(16 * MIB);
        own.give(0);
        let kept = own.blocks.kept.lock().unwrap();
        let (start, used) = own.blocks.take(16 * MIB).unwrap();
        assert_eq!(used, 0);
        // SAFETY: just taken.
        unsafe { own.blocks.give(start, 16 * MIB) };
        assert_eq!((kept.count, own.blocks.used.load(Relaxed)), (1, 0));
        drop(kept);
    }

    #[test]
    fn nothing_is_kept_where_nobody_keeps() {
        let mut own = Own::new();
        own.take(48 * MIB);
        own.take(16 * MIB);
        own.give(0);
        assert_eq!(own.kept(), (1, 48 * MIB));
        own.blocks.stop_keeping();
        assert_eq!(own.kept(), (0, 0));
        own.give(0);
        assert_eq!(own.kept(), (0, 0));
        assert_eq!(own.take(16 * MIB).1, 0);
        own.blocks.keepers.store(1, Relaxed);
    }

    #[test]
    fn memory_that_the_system_has_not_is_an_error() {
        let own = Own::new();
        assert!(own.blocks.take(1 << 62).is_err() && own.blocks.take(usize::MAX - MIB).is_err());
        assert_eq!(own.blocks.used.load(Relaxed), 0);
        assert!(Vec::<u8>::new().try_reserve_exact(1 << 62).is_err());
    }
}
