//! The buffers that the workers of passes read into.

use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

use tiergraph_core::Result;
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

/// Reads of up to so many bytes use small buffers.
pub const SMALL_READ_BYTES: usize = 64 << 10;

/// Large buffers are made this many at a time, because they then lie on huge pages, which reads are
/// faster into.
const LARGE_BATCH: usize = 2;

/// A function that gives a pinned buffer for one that becomes resident; `None` if there are no more.
pub type Replacements = Arc<dyn Fn() -> Option<AlignedBuf> + Send + Sync>;

/// The buffers that one worker reads into: small ones for pages, large ones for blocks.
pub struct Buffers {
    small: Stock,
    large: Stock,
    /// Where the large ones are locked for a device: what replaces those that become resident.
    replacements: Option<Replacements>,
    /// The most large ones in use, unless a pass's consumers hold blocks: of what was read, the processor's cache
    /// shall still have what nobody has looked at.
    large_at_once: usize,
    /// A replacement that was not needed yet.
    replacement: Option<AlignedBuf>,
    /// Whether the first buffers in memory are taken first: neighbours are read into together, and
    /// copied together.
    by_address: bool,
}

/// Buffers of one size.
struct Stock {
    free: Vec<AlignedBuf>,
    /// Buffers that may be made beside those that there are.
    left: usize,
    bytes: usize,
    /// How many are made at a time.
    batch: usize,
}

impl Stock {
    /// A free buffer; none while all are in use. Fewer than a batch are made only where the worker has
    /// nothing else (`is_idle`).
    fn take(&mut self, is_idle: bool) -> Result<Option<AlignedBuf>> {
        if let Some(buffer) = self.free.pop() {
            return Ok(Some(buffer));
        }
        if self.left == 0 || self.left < self.batch && !is_idle {
            return Ok(None);
        }
        let count = self.left.min(self.batch);
        self.free = AlignedBuf::batch(count, self.bytes)?;
        self.left -= count;
        Ok(self.free.pop())
    }
}

impl Buffers {
    /// A stock of buffers that are made when they are needed: up to `large` of them for blocks, of
    /// `block_bytes` each, and up to `small` for pages. Consumers that hold blocks have up to `more` large ones
    /// in a pass.
    pub fn of_blocks(block_bytes: usize, large: usize, more: usize, small: usize) -> Self {
        // A block's own size where that is smaller, so that it can become resident.
        let (page, block) = (SMALL_READ_BYTES.min(block_bytes), block_bytes);
        let block = block.next_multiple_of(PAGE_BYTES);
        Self {
            small: Stock { free: Vec::new(), left: small, bytes: page, batch: 1 },
            large: Stock { free: Vec::new(), left: large + more, bytes: block, batch: LARGE_BATCH },
            replacements: None,
            large_at_once: large,
            replacement: None,
            by_address: false,
        }
    }

    /// The small buffers `free`, of `bytes` each, and no others.
    pub fn of_pages(free: Vec<AlignedBuf>, bytes: usize) -> Self {
        let none = Stock { free: Vec::new(), left: 0, bytes: 0, batch: 1 };
        let small = Stock { free, left: 0, bytes, batch: 1 };
        Self {
            small,
            large: none,
            replacements: None,
            large_at_once: usize::MAX,
            replacement: None,
            by_address: false,
        }
    }

    /// The pinned buffers `free`, for blocks, and no others but the `replacements` of those that become
    /// resident.
    pub fn locked(free: Vec<AlignedBuf>, replacements: Option<Replacements>) -> Self {
        let none = Stock { free: Vec::new(), left: 0, bytes: 0, batch: 1 };
        let bytes = free.first().map_or(0, |buffer| buffer.len());
        let large = Stock { free, left: 0, bytes, batch: 1 };
        let mut buffers = Self {
            small: none,
            large,
            replacements,
            large_at_once: usize::MAX,
            replacement: None,
            by_address: true,
        };
        buffers.sort();
        buffers
    }

    /// The most large buffers that are read into, or wait to be handed over, at a time; one more is kept for each of
    /// the blocks that a consumer holds.
    pub(super) fn large_at_once(&self, held: usize) -> usize {
        self.large_at_once.max(held)
    }

    /// Frees large buffers, now that no consumer holds blocks, down to as many as are in use otherwise.
    pub(super) fn trim(&mut self, in_use: usize) {
        let keep = self.large_at_once.saturating_sub(in_use);
        while self.large.free.len() > keep && self.large.free.pop().is_some() {
            self.large.left += 1;
        }
    }

    /// Bytes of all buffers that are free now.
    pub fn free_bytes(&self) -> u64 {
        self.small.free.iter().chain(&self.large.free).map(|buffer| buffer.len() as u64).sum()
    }

    /// A buffer for `len` bytes; none while all are in use.
    pub(super) fn take(&mut self, len: usize, is_idle: bool) -> Result<Option<AlignedBuf>> {
        if len <= self.small.bytes { self.small.take(is_idle) } else { self.large.take(is_idle) }
    }

    /// Takes a buffer back.
    pub(super) fn put(&mut self, buffer: AlignedBuf) {
        let is_small = buffer.len() == self.small.bytes;
        if is_small { self.small.free.push(buffer) } else { self.large.free.push(buffer) }
    }

    /// Puts the first buffers in memory where they are taken first, where that is wanted.
    pub(super) fn sort(&mut self) {
        if self.by_address {
            self.large.free.sort_unstable_by_key(|buffer| Reverse(buffer.as_ptr()));
        }
    }

    /// Whether blocks are handed over in the order of their addresses.
    pub(super) fn is_by_address(&self) -> bool {
        self.by_address
    }

    /// Whether there may be another buffer in place of one that becomes resident; false for good once
    /// there are no more.
    pub(super) fn may_replace(&self) -> bool {
        !self.by_address || self.replacement.is_some() || self.replacements.is_some()
    }

    /// Whether there is another buffer in place of one that becomes resident.
    pub(super) fn can_replace(&mut self) -> bool {
        if self.replacement.is_none() {
            self.replacement = self.replacements.as_ref().and_then(|replacements| replacements());
            self.replacements = self.replacements.take().filter(|_| self.replacement.is_some());
        }
        self.may_replace()
    }

    /// Replaces a buffer of `len` bytes that became resident, which [`can_replace`](Self::can_replace).
    pub(super) fn replace(&mut self, len: usize) {
        match self.replacement.take() {
            Some(buffer) => self.large.free.push(buffer),
            None if len == self.small.bytes => self.small.left += 1,
            None => self.large.left += 1,
        }
    }
}

impl fmt::Debug for Buffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (small, large) = (self.small.free.len(), self.large.free.len());
        write!(f, "Buffers({small} small, {large} large free)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 4 * SMALL_READ_BYTES;

    fn taken(buffers: &mut Buffers, len: usize, is_idle: bool) -> Option<usize> {
        buffers.take(len, is_idle).unwrap().map(|buffer| buffer.len())
    }

    #[test]
    fn reads_up_to_64_kib_have_small_buffers_and_others_large_ones() {
        let mut buffers = Buffers::of_blocks(BLOCK, 1, 0, 1);
        assert_eq!(taken(&mut buffers, 64 * 1024 + 4096, true), Some(BLOCK));
        assert_eq!(taken(&mut buffers, 64 * 1024, true), Some(64 * 1024));
        assert_eq!((taken(&mut buffers, BLOCK, true), taken(&mut buffers, 1, true)), (None, None));
        // A block that is smaller than that has buffers of its size.
        assert_eq!(taken(&mut Buffers::of_blocks(8192, 1, 0, 1), 4096, true), Some(8192));
    }

    #[test]
    fn large_buffers_are_made_in_pairs_and_a_single_one_only_where_nothing_is_in_flight() {
        let mut buffers = Buffers::of_blocks(BLOCK, 3, 0, 0);
        assert_eq!(taken(&mut buffers, BLOCK, false), Some(BLOCK));
        assert_eq!(buffers.free_bytes(), BLOCK as u64);
        assert_eq!(format!("{buffers:?}"), "Buffers(0 small, 1 large free)");
        assert_eq!(taken(&mut buffers, BLOCK, false), Some(BLOCK));
        assert_eq!((taken(&mut buffers, BLOCK, false), buffers.free_bytes()), (None, 0));
        assert_eq!(taken(&mut buffers, BLOCK, true), Some(BLOCK));
        assert_eq!(taken(&mut buffers, BLOCK, true), None);
        let mut pair = Buffers::of_blocks(BLOCK, 4, 0, 0);
        assert_eq!(
            [(); 5].map(|()| taken(&mut pair, BLOCK, false).is_some()).map(u8::from),
            [1, 1, 1, 1, 0]
        );
    }

    #[test]
    fn buffers_of_held_blocks_are_freed_after_the_pass() {
        let mut buffers = Buffers::of_blocks(BLOCK, 2, 4, 0);
        assert_eq!((buffers.large_at_once(0), buffers.large_at_once(3)), (2, 3));
        let all = [(); 6].map(|()| buffers.take(BLOCK, false).unwrap().unwrap());
        assert_eq!(taken(&mut buffers, BLOCK, true), None);
        all.into_iter().for_each(|buffer| buffers.put(buffer));
        // One is in use: by a read of the next pass.
        buffers.trim(1);
        assert_eq!(buffers.free_bytes(), BLOCK as u64);
        assert_eq!([(); 6].map(|()| taken(&mut buffers, BLOCK, true).is_some()), [true; 6]);
    }

    #[test]
    fn in_place_of_a_resident_buffer_one_of_its_size_may_be_made() {
        let mut buffers = Buffers::of_blocks(BLOCK, 0, 0, 0);
        assert!(!buffers.is_by_address() && buffers.may_replace() && buffers.can_replace());
        buffers.replace(BLOCK);
        assert_eq!(taken(&mut buffers, 4096, true), None);
        assert_eq!(taken(&mut buffers, BLOCK, true), Some(BLOCK));
        buffers.replace(SMALL_READ_BYTES);
        assert_eq!(taken(&mut buffers, BLOCK, true), None);
        assert_eq!(taken(&mut buffers, 4096, true), Some(SMALL_READ_BYTES));
        assert_eq!(taken(&mut buffers, 4096, true), None);
    }

    #[test]
    fn locked_buffers_are_replaced_while_there_are_others() {
        let none = Buffers::locked(AlignedBuf::batch(2, 4096).unwrap(), None);
        assert!(none.is_by_address() && !none.may_replace());
        let spares = std::sync::Mutex::new(AlignedBuf::batch(1, 4096).unwrap());
        let next = move || spares.lock().unwrap().pop();
        let mut buffers = Buffers::locked(Vec::new(), Some(Arc::new(next)));
        assert!(buffers.may_replace() && buffers.can_replace() && buffers.can_replace());
        buffers.replace(4096);
        assert_eq!(buffers.free_bytes(), 4096);
        // Whether there is a second one is known once it is asked for.
        assert!(buffers.may_replace() && !buffers.can_replace() && !buffers.may_replace());
        assert_eq!(buffers.free_bytes(), 4096);
    }

    #[test]
    fn locked_buffers_are_taken_in_the_order_of_their_addresses() {
        let mut free = AlignedBuf::batch(4, 4096).unwrap();
        free.swap(0, 2);
        let mut buffers = Buffers::locked(free, None);
        let mut address = || buffers.take(4096, true).unwrap().unwrap().as_ptr();
        let addresses = [(); 4].map(|()| address());
        assert!(addresses.is_sorted(), "{addresses:?}");
    }
}
