//! Vertex state that several workers add to: chunks of vertices, each behind a lock.
//!
//! A worker sums a strip's rows in a buffer of its own, which its cache holds, and adds the buffer
//! to the state when it moves to another strip; a chunk's lock is taken once for thousands of arcs.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use bytemuck::Zeroable;
use tiergraph_core::Result;
use tiergraph_format::tiles::STRIP_ROWS;
use tiergraph_mem::Array;

/// A segment of so many bytes keeps a worker for longer than adding a chunk's sums would.
const LONG_BYTES: usize = 64 << 10;

/// `len` values in chunks of `2^log2`; the last chunk is padded to its full length.
#[derive(Debug)]
pub(crate) struct Chunks<T> {
    chunks: Vec<Mutex<Array<T>>>,
    log2: u32,
    width: usize,
}

impl<T: Copy + Zeroable> Chunks<T> {
    /// `len` vertices of `width` zeroes each.
    ///
    /// # Errors
    /// The system has no such amount of memory.
    pub(crate) fn zeroed(len: usize, width: usize, log2: u32) -> Result<Self> {
        let chunks = Array::batch(len.div_ceil(1 << log2), width << log2)?;
        Ok(Self { chunks: chunks.into_iter().map(Mutex::new).collect(), log2, width })
    }

    /// Makes every value `value`.
    pub(crate) fn fill(&mut self, value: T) {
        self.chunks_mut().for_each(|chunk| chunk.fill(value));
    }

    /// The values of vertices `number << log2` and on, locked.
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

    /// Calls `work`, which goes over `bytes` of arcs, on the values of chunk `number`; or on `aside`, a
    /// chunk of `identity`, which is then combined into them, if another worker has them or `work`
    /// would keep them for long.
    ///
    /// Who waits for a chunk then waits for an addition of sums, not for a long segment's arcs. Arcs
    /// that are fewer than a chunk's values, about a byte each, wait: adding would take longer.
    pub(crate) fn visit(
        &self,
        (number, bytes): (usize, usize),
        (aside, identity): (&mut [T], T),
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
        aside.fill(identity);
        work(aside)?;
        self.merge(number << self.log2, aside.iter().copied(), merge);
        Ok(())
    }

    /// Combines `values` into those of vertices `first` and on.
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
            let count = (values.len() / width).min(size - from);
            let mut chunk = self.lock(vertex >> self.log2);
            let to = &mut chunk[from * width..(from + count) * width];
            to.iter_mut().zip(values.by_ref()).for_each(|(to, value)| merge(to, value));
            vertex += count;
        }
    }

    /// The chunks, without locks.
    pub(crate) fn chunks_mut(&mut self) -> impl ExactSizeIterator<Item = &mut Array<T>> {
        self.chunks.iter_mut().map(|c| c.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    /// Without locks: nobody adds any more.
    pub(crate) fn into_values(self) -> Values<T> {
        let open = |chunk: Mutex<_>| chunk.into_inner().unwrap_or_else(PoisonError::into_inner);
        let chunks = self.chunks.into_iter().map(open).collect();
        Values { chunks, log2: self.log2, width: self.width }
    }
}

/// The values of [`Chunks`], to be read.
pub(crate) struct Values<T> {
    chunks: Vec<Array<T>>,
    log2: u32,
    width: usize,
}

impl<T> Values<T> {
    /// Those of a vertex, and of some after it.
    pub(crate) fn of(&self, vertex: usize) -> &[T] {
        let place = vertex % (1 << self.log2) * self.width;
        &self.chunks[vertex >> self.log2][place..]
    }
}

/// What each worker has for itself, kept from pass to pass.
#[derive(Debug)]
pub(crate) struct PerWorker<S>(Vec<Mutex<S>>);

impl<S> PerWorker<S> {
    /// The first worker's, the second's, and so on.
    pub(crate) fn new(each: impl Iterator<Item = S>) -> Self {
        Self(each.map(Mutex::new).collect())
    }

    /// That of `worker`, who alone asks for it.
    pub(crate) fn of(&self, worker: usize) -> MutexGuard<'_, S> {
        self.0[worker].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One worker's sums over the rows of the strip that it is at.
#[derive(Debug)]
pub(crate) struct StripBuffer<T> {
    first: usize,
    rows: usize,
    width: usize,
    identity: T,
    /// Room for 65,536 rows.
    pub(crate) values: Array<T>,
}

impl<T: Copy + Zeroable> StripBuffer<T> {
    /// One for each of `workers`.
    ///
    /// # Errors
    /// The system has no such amount of memory.
    pub(crate) fn each(workers: usize, width: usize, identity: T) -> Result<PerWorker<Self>> {
        let make = |mut values: Array<T>| {
            values.fill(identity);
            Self { first: 0, rows: 0, width, identity, values }
        };
        Ok(PerWorker::new(Array::batch(workers, STRIP_ROWS * width)?.into_iter().map(make)))
    }

    /// Makes the buffer that of the strip of `rows` rows from `first`, merging what it held.
    pub(crate) fn move_to(
        &mut self,
        first: usize,
        rows: usize,
        state: &Chunks<T>,
        merge: impl FnMut(&mut T, T),
    ) {
        if self.rows > 0 && self.first == first {
            self.rows = self.rows.max(rows);
            return;
        }
        self.flush(state, merge);
        (self.first, self.rows) = (first, rows);
    }

    /// Merges what the buffer holds and empties it.
    pub(crate) fn flush(&mut self, state: &Chunks<T>, merge: impl FnMut(&mut T, T)) {
        let used = self.rows * self.width;
        state.merge(self.first, self.values[..used].iter().copied(), merge);
        self.values[..used].fill(self.identity);
        self.rows = 0;
    }
}
