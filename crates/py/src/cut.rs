//! The division of an epoch's seeds into batches.

use pyo3::prelude::*;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_sampler::{Cut as Engine, Rank};

use crate::errors::raise;

/// The batches of an epoch that one rank has, and the seeds of each.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct Cut(Engine);

#[pymethods]
impl Cut {
    #[new]
    fn new(
        py: Python<'_>,
        seeds: usize,
        batch_size: i64,
        drop_last: bool,
        rank: usize,
        ranks: usize,
    ) -> PyResult<Self> {
        cut(seeds, batch_size, drop_last, rank, ranks).map(Self).map_err(|e| raise(py, &e))
    }

    /// The number of batches that the rank has.
    fn __len__(&self) -> usize {
        self.0.batches()
    }

    /// The number in the whole epoch of the rank's batch `batch`.
    fn number(&self, batch: usize) -> usize {
        self.0.number(batch)
    }

    /// The range of the epoch's seeds, in its order, that make up batch `batch`.
    fn range(&self, batch: usize) -> (usize, usize) {
        let range = self.0.range(batch);
        (range.start, range.end)
    }
}

fn cut(seeds: usize, size: i64, drop_last: bool, rank: usize, ranks: usize) -> Result<Engine> {
    let rank = Rank::new(rank, ranks)?;
    match usize::try_from(size) {
        Ok(size @ 1..) => Ok(Engine::new(seeds, size, drop_last, rank)),
        _ => Err(Error::new(ErrorKind::Input, "load batches with")
            .object("batch_size")
            .expected("1 or more")
            .got(size)),
    }
}
