//! Sources of feature rows.

use std::thread;

use crossbeam_channel::bounded;
use tiergraph_core::{Result, threads};

/// The number and the width of a source's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The number of rows; `None` if the source does not know it before it has read them.
    pub rows: Option<u64>,
    /// The number of values in a row.
    pub dim: usize,
}

/// A source of feature rows in batches, in the user's order of vertices.
pub trait RowSource: Send {
    /// The source as messages and provenance name it.
    fn describe(&self) -> String;

    /// The shape of all rows. May read the first rows, which are handed out later all the same.
    ///
    /// # Errors
    /// Errors of reading.
    fn shape(&mut self) -> Result<Shape>;

    /// Replaces `values` by the next rows, one after the other; false at the end.
    ///
    /// # Errors
    /// Errors of reading.
    fn next_rows(&mut self, values: &mut Vec<f32>) -> Result<bool>;
}

/// Calls `take` with every batch while a thread of its own reads the next: three exist at most.
pub(super) fn for_each_batch(
    source: &mut dyn RowSource,
    mut take: impl FnMut(&[f32]) -> Result<()>,
) -> Result<()> {
    let (filled, batches) = bounded(1);
    let (spare, spares) = bounded::<Vec<f32>>(2);
    thread::scope(|scope| {
        let read = move || {
            loop {
                let mut values = spares.try_recv().unwrap_or_default();
                let next = source.next_rows(&mut values);
                let more = matches!(next, Ok(true));
                if matches!(next, Ok(false)) || filled.send(next.map(|_| values)).is_err() || !more
                {
                    return;
                }
            }
        };
        threads::start_in(scope, "rows", read)?;
        // Dropped with the first error, which ends the thread.
        for batch in batches {
            let values = batch?;
            take(&values)?;
            // A full channel means that there are spares enough.
            let _ = spare.try_send(values);
        }
        Ok(())
    })
}

/// A source of rows that are in memory.
#[derive(Debug, Clone)]
pub struct MemoryRows {
    values: Vec<f32>,
    dim: usize,
    batch_rows: usize,
    next: usize,
}

impl MemoryRows {
    /// A source of `values` as rows of `dim` values, handed out `batch_rows` at a time.
    pub fn new(values: Vec<f32>, dim: usize, batch_rows: usize) -> Self {
        Self { values, dim, batch_rows, next: 0 }
    }
}

impl RowSource for MemoryRows {
    fn describe(&self) -> String {
        "an array".into()
    }

    fn shape(&mut self) -> Result<Shape> {
        Ok(Shape { rows: Some((self.values.len() / self.dim) as u64), dim: self.dim })
    }

    fn next_rows(&mut self, values: &mut Vec<f32>) -> Result<bool> {
        let end = (self.next + self.batch_rows * self.dim).min(self.values.len());
        values.clear();
        values.extend_from_slice(&self.values[self.next..end]);
        self.next = end;
        Ok(!values.is_empty())
    }
}
