//! Names of vertices that Python hands over as texts, and their numbers.

use std::path::PathBuf;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::directory::GraphDir;
use tiergraph_mem::Budget;

use super::options::cores;
use crate::errors::detached;

/// What numbers the names of a graph that is built from them.
#[pyclass(frozen, module = "tiergraph._native")]
pub(crate) struct Names(pub(crate) tiergraph_ingest::Names);

#[pymethods]
impl Names {
    #[new]
    fn new() -> Self {
        Self(tiergraph_ingest::Names::default())
    }

    /// The names of the graph at `path`, in `memory` bytes: half of what is available by default.
    #[staticmethod]
    fn of_graph(py: Python<'_>, path: PathBuf, memory: Option<u64>) -> PyResult<Self> {
        let read = detached(py, || {
            tiergraph_ingest::Names::of(&GraphDir::open(&path)?, &Budget::of(memory)?)
        });
        read.map(Self)
    }

    /// The numbers of texts, given by where each begins, and the last ends, in `text`.
    fn number<'py>(
        &self,
        py: Python<'py>,
        offsets: PyReadonlyArray1<'py, i64>,
        text: PyReadonlyArray1<'py, u8>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let (offsets, text) = (offsets.as_slice()?, text.as_slice()?);
        let numbers = detached(py, || {
            check(offsets, text.len())?;
            let of = |at: usize| &text[offsets[at] as usize..offsets[at + 1] as usize];
            let mut numbers = vec![0; offsets.len().saturating_sub(1)];
            self.0.number(cores(), of, &mut numbers)?;
            Ok(numbers)
        })?;
        Ok(numbers.into_pyarray(py))
    }

    /// Keeps the names after a build, as its edges come again.
    fn stay(&self) {
        self.0.stay();
    }

    fn __len__(&self) -> usize {
        self.0.count()
    }
}

fn check(offsets: &[i64], bytes: usize) -> Result<()> {
    let ascend = offsets.is_sorted() && offsets.first().is_none_or(|&first| first >= 0);
    if ascend && offsets.last().is_none_or(|&last| last as u64 <= bytes as u64) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Input, "number names")
        .expected(format!("offsets that ascend to at most {bytes}"))
        .got("others"))
}
