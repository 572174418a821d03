//! The blocks of a process that are kept, and how many are in use.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::thread;

use super::mapping::{map, move_pages, unmap};
use crate::HUGE_PAGE_BYTES;

/// The most blocks that are kept.
const MOST_KEPT: usize = 64;

/// How often the last keeper tries to free what is kept while another thread takes or gives a block. It does
/// not wait: in a process that was forked meanwhile, that thread does not exist.
const MOST_TRIES: usize = 10_000;

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
pub(super) struct Blocks {
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
    pub(super) const fn new() -> Self {
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
    pub(super) fn take(&self, len: usize) -> io::Result<(NonNull<u8>, usize)> {
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
    pub(super) unsafe fn give(&self, start: NonNull<u8>, len: usize) {
        self.used.fetch_sub(len, Relaxed);
        // The last keeper may go meanwhile: it takes the lock after it is counted.
        let kept = self.kept().filter(|_| self.keepers.load(Relaxed) > 0);
        let Some(mut kept) = kept else { return unmap(start, len) };
        // SAFETY: nobody uses these bytes; where the kernel takes them, they are zero at the next touch.
        unsafe { libc::madvise(start.as_ptr().cast(), len, libc::MADV_FREE) };
        kept.give(Block { start, len });
    }

    pub(super) fn keep_at_most(&self, bytes: usize) {
        let Some(mut kept) = self.kept() else { return };
        let used = self.used.load(Relaxed);
        let most = self.most.fetch_min(bytes.max(used), Relaxed).min(bytes.max(used));
        kept.shrink_to(most.saturating_sub(used));
    }

    pub(super) fn start_keeping(&self) {
        self.keepers.fetch_add(1, Relaxed);
    }

    pub(super) fn stop_keeping(&self) {
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
    pub(super) unsafe fn resize(
        &self,
        start: NonNull<u8>,
        old: usize,
        new: usize,
    ) -> io::Result<NonNull<u8>> {
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

#[cfg(test)]
mod tests {
    use tiergraph_core::Draws;

    use super::*;

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
    }
}
