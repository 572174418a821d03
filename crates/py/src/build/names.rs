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

    /// The numbers of texts in `columns`, row by row: of the first texts of all columns, of the second ones
    /// and so on. A column is where each text begins, and the last ends, and the bytes of its texts.
    fn number<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<Texts<'py>>,
    ) -> PyResult<Vec<Bound<'py, PyArray1<u32>>>> {
        let columns =
            columns.iter().map(|(offsets, text)| Ok((offsets.as_slice()?, text.as_slice()?)));
        let columns: Vec<(&[i64], &[u8])> = columns.collect::<PyResult<_>>()?;
        let rows = columns.first().map_or(0, |(offsets, _)| offsets.len().saturating_sub(1));
        let numbers = detached(py, || {
            columns.iter().try_for_each(|(offsets, text)| check(offsets, rows, text.len()))?;
            let of = |at: usize| {
                let ((offsets, text), row) = (columns[at % columns.len()], at / columns.len());
                &text[offsets[row] as usize..offsets[row + 1] as usize]
            };
            let mut numbers = vec![0; rows * columns.len()];
            self.0.number(cores(), of, &mut numbers)?;
            Ok(numbers)
        })?;
        let of_column = |column| -> Vec<u32> {
            numbers.iter().skip(column).step_by(columns.len()).copied().collect()
        };
        Ok((0..columns.len()).map(|column| of_column(column).into_pyarray(py)).collect())
    }

    /// Keeps the names after a build, as its edges come again.
    fn stay(&self) {
        self.0.stay();
    }

    fn __len__(&self) -> usize {
        self.0.count()
    }
}

/// Where texts begin, and the last ends, in their bytes.
type Texts<'py> = (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, u8>);

fn check(offsets: &[i64], rows: usize, bytes: usize) -> Result<()> {
    let ascend = offsets.is_sorted() && offsets.first().is_none_or(|&first| first >= 0);
    let inside = offsets.last().is_none_or(|&last| last as u64 <= bytes as u64);
    if ascend && inside && offsets.len().saturating_sub(1) == rows {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Input, "number names")
        .expected(format!("{rows} offsets that ascend to at most {bytes}"))
        .got("others"))
}
