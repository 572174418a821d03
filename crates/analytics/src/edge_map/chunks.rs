//! Values of vertices that several workers reduce to: chunks of vertices, each behind a lock.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use bytemuck::Zeroable;
use tiergraph_core::Result;
use tiergraph_mem::Array;

/// Segments of so many bytes keep a worker for longer than adding a chunk's sums would.
pub(crate) const LONG_BYTES: usize = 64 << 10;

/// The values of all vertices, in chunks of `2^log2` vertices; the last chunk has those that are left.
#[derive(Debug)]
pub(crate) struct Chunks<T> {
    chunks: Vec<Mutex<Array<T>>>,
    log2: u32,
    width: usize,
}

impl<T: Copy + Zeroable> Chunks<T> {
    /// The values of `len` vertices, `width` zeros each.
    ///
    /// # Errors
    /// The system has no such amount of memory.
    pub(crate) fn zeroed(len: usize, width: usize, log2: u32) -> Result<Self> {
        let (whole, rest) = (len >> log2, len % (1 << log2));
        let mut chunks = Array::batch(whole, width << log2)?;
        if rest > 0 {
            chunks.push(Array::zeroed(rest * width)?);
        }
        Ok(Self { chunks: chunks.into_iter().map(Mutex::new).collect(), log2, width })
    }

    /// Makes every value `value`.
    pub(crate) fn fill(&mut self, value: T) {
        self.chunks_mut().for_each(|chunk| chunk.fill(value));
    }

    /// Locks the chunk with the values of vertices `number << log2` and on.
    fn lock(&self, number: usize) -> MutexGuard<'_, Array<T>> {
        // A worker that panics ends the run; what it left is not looked at.
        self.chunks[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_lock(&self, number: usize) -> Option<MutexGuard<'_, Array<T>>> {
        match self.chunks[number].try_lock() {
            Ok(chunk) => Some(chunk),
            Err(TryLockError::Poisoned(left)) => Some(left.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Calls `work`, which goes over `bytes` of arcs, on the values of chunk `number`; or, if another
    /// worker has the chunk locked or `work` would lock it for long, on `scratch`, which is then merged
    /// into the chunk.
    ///
    /// A worker that waits for a chunk waits at most as long as one merge takes, not for a long
    /// segment's arcs. Work on fewer arcs than a chunk has values, about a byte each, waits for the
    /// lock: merging would take longer.
    pub(crate) fn visit(
        &self,
        number: usize,
        bytes: usize,
        scratch: Scratch<'_, T>,
        merge: impl FnMut(&mut T, T),
        work: impl FnOnce(&mut [T]) -> Result<()>,
    ) -> Result<()> {
        let chunk = match bytes {
            few if few < 1 << self.log2 => Some(self.lock(number)),
            some if some < LONG_BYTES => self.try_lock(number),
            _ => None,
        };
        if let Some(mut chunk) = chunk {
            return work(&mut chunk);
        }
        let Scratch { values, identity } = scratch;
        values.fill(identity);
        work(values)?;
        self.merge(number << self.log2, values.iter().copied(), merge);
        Ok(())
    }

    /// Merges `values` into those of the vertices from `first` on.
    pub(crate) fn merge(
        &self,
        first: usize,
        mut values: impl ExactSizeIterator<Item = T>,
        mut merge: impl FnMut(&mut T, T),
    ) {
        let (size, width) = (1usize << self.log2, self.width);
        let mut vertex = first;
        while values.len() > 0 && vertex >> self.log2 < self.chunks.len() {
            let from = vertex % size;
            let mut chunk = self.lock(vertex >> self.log2);
            let to = chunk[from * width..].iter_mut();
            to.zip(values.by_ref()).for_each(|(to, value)| merge(to, value));
            vertex += size - from;
        }
    }

    /// The values of each chunk, without locks.
    pub(crate) fn chunks_mut(&mut self) -> impl ExactSizeIterator<Item = &mut Array<T>> {
        self.chunks.iter_mut().map(|c| c.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    /// The values without locks, once no worker adds to them any more.
    pub(crate) fn into_values(self) -> Values<T> {
        let open = |chunk: Mutex<_>| chunk.into_inner().unwrap_or_else(PoisonError::into_inner);
        let chunks = self.chunks.into_iter().map(open).collect();
        Values { chunks, log2: self.log2, width: self.width }
    }
}

/// One worker's scratch for a chunk's values, and the identity of `merge` that it begins with.
pub(crate) struct Scratch<'a, T> {
    pub(crate) values: &'a mut [T],
    pub(crate) identity: T,
}

/// The values of [`Chunks`] without their locks, to be read.
pub(crate) struct Values<T> {
    chunks: Vec<Array<T>>,
    log2: u32,
    width: usize,
}

impl<T> Values<T> {
    /// The values of `vertex`, followed by those of the vertices after it in its chunk.
    pub(crate) fn of(&self, vertex: usize) -> &[T] {
        let first = vertex % (1 << self.log2) * self.width;
        &self.chunks[vertex >> self.log2][first..]
    }
}
