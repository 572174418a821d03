//! A worker's values of the rows of the strip that it is at.
//!
//! A worker reduces to a strip's rows in a buffer of its own, which its cache holds, and merges the buffer
//! into all values when it moves to another strip; a chunk's lock is taken once for thousands of arcs.

use bytemuck::Zeroable;
use tiergraph_core::Result;
use tiergraph_format::tiles::STRIP_ROWS;
use tiergraph_mem::Array;

use super::chunks::Chunks;
use super::reduce::Reduction;
use crate::per_worker::PerWorker;

/// The buffer in which a worker reduces to the rows of a strip.
pub(crate) trait Strip<R: Reduction>: Send {
    /// Makes this the buffer of the strip of `rows` rows from `first` on; merges what it has of the last
    /// strip into `y`.
    fn move_to(&mut self, reduction: &R, first: usize, rows: usize, y: &Chunks<R::Value>);

    /// Merges what the buffer has into `y`, and empties it.
    fn flush(&mut self, reduction: &R, y: &Chunks<R::Value>);
}

/// The values of each row.
#[derive(Debug)]
pub(crate) struct StripBuffer<T> {
    first: usize,
    rows: usize,
    /// Room for 65,536 rows.
    pub(crate) values: Array<T>,
}

impl<T: Copy + Zeroable> StripBuffer<T> {
    /// A buffer for each of `workers`, of `width` values a row, all of them the `identity`.
    ///
    /// # Errors
    /// The system has no such amount of memory.
    pub(crate) fn each(workers: usize, width: usize, identity: T) -> Result<PerWorker<Self>> {
        let make = |mut values: Array<T>| {
            values.fill(identity);
            Self { first: 0, rows: 0, values }
        };
        Ok(PerWorker::new(Array::batch(workers, STRIP_ROWS * width)?.into_iter().map(make)))
    }
}

impl<R: Reduction> Strip<R> for StripBuffer<R::Value> {
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
