//! A worker's values of the rows of the strip that it is at.
//!
//! A worker reduces to a strip's rows in a buffer of its own, which its cache holds, and merges the buffer
//! into all values when it moves to another strip; a chunk's lock is taken once for thousands of arcs.

use bytemuck::Zeroable;
use tiergraph_core::Result;
use tiergraph_mem::Array;

use super::chunks::Chunks;
use super::reduce::Reduction;
use crate::per_worker::PerWorker;

/// The memory of a buffer.
pub(crate) trait RowBytes {
    /// Bytes for each of its rows, of `width` values.
    fn row_bytes(width: usize) -> usize;
}

/// The buffer in which a worker reduces to the rows of a strip.
pub(crate) trait Strip<R: Reduction>: Send {
    /// Whether this is the buffer of the strip whose first row is `first`.
    fn is_at(&self, first: usize) -> bool;

    /// Makes this the buffer of the strip of `rows` rows from `first` on; merges what it has of the last
    /// strip into `y`.
    fn move_to(&mut self, reduction: &R, first: usize, rows: usize, y: &Chunks<R::Value>);

    /// Merges what the buffer has into `y`, and empties it.
    fn flush(&mut self, reduction: &R, y: &Chunks<R::Value>);
}

/// A worker's buffers of strips: as many as it goes over at a time.
#[derive(Debug)]
pub(crate) struct Strips<S> {
    buffers: Vec<S>,
    /// The buffer that the next strip takes.
    next: usize,
}

impl<S> Strips<S> {
    /// Divides `buffers` among `workers`.
    pub(crate) fn each(workers: usize, buffers: impl IntoIterator<Item = S>) -> PerWorker<Self> {
        let mut buffers: Vec<S> = buffers.into_iter().collect();
        let share = buffers.len() / workers;
        let mut of_worker = || Self { buffers: buffers.split_off(buffers.len() - share), next: 0 };
        PerWorker::new((0..workers).map(|_| of_worker()))
    }

    /// The index of the buffer of the strip whose first row is `first`.
    pub(crate) fn find<R: Reduction>(&self, first: usize) -> Option<usize>
    where
        S: Strip<R>,
    {
        self.buffers.iter().position(|strip| strip.is_at(first))
    }

    /// Moves the buffer that was moved first to the strip of `rows` rows from `first` on; returns its index.
    pub(crate) fn move_one<R: Reduction>(
        &mut self,
        reduction: &R,
        (first, rows): (usize, usize),
        y: &Chunks<R::Value>,
    ) -> usize
    where
        S: Strip<R>,
    {
        self.next = (self.next + 1) % self.buffers.len();
        self.buffers[self.next].move_to(reduction, first, rows, y);
        self.next
    }

    /// All buffers, which [`find`](Self::find) and [`move_one`](Self::move_one) return indices of.
    pub(crate) fn all(&mut self) -> &mut [S] {
        &mut self.buffers
    }

    /// The buffer of a worker that goes over one strip at a time.
    pub(crate) fn one(&mut self) -> &mut S {
        &mut self.buffers[0]
    }

    /// Merges what the buffers have into `y`, and empties them.
    pub(crate) fn flush<R: Reduction>(&mut self, reduction: &R, y: &Chunks<R::Value>)
    where
        S: Strip<R>,
    {
        self.buffers.iter_mut().for_each(|strip| strip.flush(reduction, y));
    }
}

/// The values of each row.
#[derive(Debug)]
pub(crate) struct StripBuffer<T> {
    first: usize,
    rows: usize,
    /// Room for the rows of any strip.
    pub(crate) values: Array<T>,
}

impl<T: Copy + Zeroable> StripBuffer<T> {
    /// So many buffers of `len` values, all of them the `identity`.
    ///
    /// # Errors
    /// The system has no such amount of memory.
    pub(crate) fn batch(count: usize, len: usize, identity: T) -> Result<Vec<Self>> {
        let make = |mut values: Array<T>| {
            values.fill(identity);
            Self { first: 0, rows: 0, values }
        };
        Ok(Array::batch(count, len)?.into_iter().map(make).collect())
    }
}

impl<T> RowBytes for StripBuffer<T> {
    fn row_bytes(width: usize) -> usize {
        width * size_of::<T>()
    }
}

impl<R: Reduction> Strip<R> for StripBuffer<R::Value> {
    fn is_at(&self, first: usize) -> bool {
        self.rows > 0 && self.first == first
    }

    fn move_to(&mut self, reduction: &R, first: usize, rows: usize, y: &Chunks<R::Value>) {
        if self.rows > 0 && self.first == first {
            self.rows = self.rows.max(rows);
            return;
        }
        self.flush(reduction, y);
        (self.first, self.rows) = (first, rows);
    }

    fn flush(&mut self, reduction: &R, y: &Chunks<R::Value>) {
        let used = self.rows * reduction.width();
        let values = self.values[..used].iter().copied();
        y.merge(self.first, values, |to, value| reduction.merge(to, value));
        self.values[..used].fill(reduction.identity());
        self.rows = 0;
    }
}
